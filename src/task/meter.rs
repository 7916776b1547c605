//! The meter of a run.
//!
//! It reserves what a run may use slice by slice, each in one transaction with the look at the whole family,
//! and stops the run where there is no further slice. So runs of several sub-tasks side by side cannot use
//! the same rest twice, and what a crash cuts off is known to a slice.

use super::action::{RunningAction, milliseconds};
use super::budget::is_a_person;
use super::family::family;
use super::held::TaskWrite;
use super::view::load;
use crate::domain::contract::budget::{Cost, Reservation};
use crate::domain::ledger::charges::{Member, Standing, family_standing};
use crate::domain::ledger::record::Record;
use crate::error::{Code, Failure, Result};
use crate::store::Ledger;
use crate::store::lock::{LockGuard, PATIENCE};
use crate::task::recover;
use crate::verifier::RunHalt;
use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

/// How often who waits for what others have reserved looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// How often it is looked whether somebody wants the run to stop.
const ASK_AGAIN: Duration = Duration::from_millis(50);

/// How far a run may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    Left,
    /// A person has it run although the budget is spent: it is charged, and not stopped.
    None,
}

impl Bound {
    /// For runs that begin now. Only a person goes beyond what is left; for anybody else the budget may have
    /// been spent since it was asked.
    pub fn of(task: &TaskWrite<'_>) -> Self {
        let is_spent = task.view.spent_for_runs().is_some();
        if is_spent && is_a_person(task.session) { Self::None } else { Self::Left }
    }
}

/// The meter of one run.
#[derive(Debug)]
pub struct Meter<'a> {
    action: &'a RunningAction,
    task: &'a TaskWrite<'a>,
    bound: Bound,
    ledger: RefCell<Ledger>,
    started: Instant,
    reserved: Cell<Cost>,
    printed: Cell<u64>,
    asked: Cell<Instant>,
}

/// What a look at the family gave.
enum Answer {
    Granted(Cost),
    /// All that is left is reserved for other runs.
    Reserved(String, Vec<String>),
    /// Nothing is left, with the sentence that says of what.
    Spent(String),
}

/// Dispatches a run with its first slice and measures it from then on; `None`, and nothing is written, where
/// there is nothing left for it. Waits while others have reserved all that is left.
pub fn begin<'a>(
    task: &'a TaskWrite<'a>,
    action: &'a mut RunningAction,
    bound: Bound,
) -> Result<Option<Meter<'a>>> {
    let mut ledger = Ledger::create(&task.session.layout)?;
    let end = Instant::now() + PATIENCE;
    let reserved = loop {
        task.require_wanted()?;
        let answer = ledger.atomically(|ledger| {
            let answer = find_share(ledger, &task.view.id, bound, None)?;
            if let Answer::Granted(reserved) = answer {
                action.dispatch_with(
                    ledger,
                    &Record::Reserved(Reservation { reserved, used: Cost::default() }),
                )?;
            }
            Ok(answer)
        })?;
        match answer {
            Answer::Granted(slice) => break slice,
            Answer::Spent(_) => return Ok(None),
            Answer::Reserved(why, holders) if Instant::now() >= end => {
                return Err(reserved_by(&why, &holders));
            }
            Answer::Reserved(_, holders) => settle_the_dead(task, &holders)?,
        }
        std::thread::sleep(LOOK_AGAIN);
    };
    let started = Instant::now();
    Ok(Some(Meter {
        action,
        task,
        bound,
        ledger: RefCell::new(ledger),
        started,
        reserved: Cell::new(reserved),
        printed: Cell::new(0),
        asked: Cell::new(started),
    }))
}

/// What a run may use next: one that begins, or one that has used up some of what it holds.
fn find_share(ledger: &Ledger, task: &str, bound: Bound, held: Option<Reservation>) -> Result<Answer> {
    if bound == Bound::None {
        return Ok(Answer::Granted(Standing::slice_without_limits()));
    }
    let view = load(ledger, task)?.ok_or_else(|| Failure::internal("the task has no rows any more"))?;
    let members = family(ledger, &view)?;
    let standing = family_standing(&members, task);
    if let Some(spent) = standing.spent_for_runs() {
        return Ok(Answer::Spent(spent.budget_sentence()));
    }
    let slice = match held {
        None => Some(standing.next_slice()).filter(|slice| !slice.lacks_something()),
        Some(held) => standing.further_slice(held),
    };
    let Some(slice) = slice else {
        let running = |member: &&Member| member.charges.running_actions().next().is_some();
        let holders = members.iter().filter(running).map(|member| member.id.clone()).collect();
        return Ok(Answer::Reserved(standing.lacking_sentence(held), holders));
    };
    Ok(Answer::Granted(slice))
}

/// What a killed run of another task had reserved is given back: whoever holds a run's lock is alive.
fn settle_the_dead(task: &TaskWrite<'_>, holders: &[String]) -> Result<()> {
    for holder in holders.iter().filter(|holder| **holder != task.view.id) {
        if let Some(_lock) = LockGuard::try_acquire(&task.session.layout.task_lock(holder))? {
            recover::before_writing(task.session, holder)?;
        }
    }
    Ok(())
}

fn reserved_by(why: &str, holders: &[String]) -> Failure {
    Failure::new(
        Code::StoreBusy,
        format!("{why}, and all that is left of it is reserved for runs of {}", holders.join(", ")),
    )
    .detail("runningTasks", holders)
    .remedy("Wait until they have ended, then run the same command again.", ["git", "tender", "status"])
}

impl Meter<'_> {
    /// What the run took so far. Ending it takes the harness time too, which is not charged beyond what was
    /// reserved.
    pub fn cost(&self) -> Cost {
        let elapsed = milliseconds(self.started.elapsed());
        let milliseconds = match self.bound {
            Bound::Left => elapsed.min(self.reserved.get().milliseconds),
            Bound::None => elapsed,
        };
        Cost { milliseconds, output_bytes: self.printed.get() }
    }

    /// How long the run may take, as far as that is known when it begins.
    pub fn most(&self) -> Option<Duration> {
        let left = self.task.view.standing.as_ref()?.cost_left().milliseconds;
        (self.bound == Bound::Left).then_some(Duration::from_millis(left))
    }

    /// Asked many times a second while the run goes on: whether it has to end.
    pub fn watch(&self, printed: u64) -> Option<RunHalt> {
        self.printed.set(self.printed.get().max(printed));
        if self.asked.get().elapsed() >= ASK_AGAIN {
            self.asked.set(Instant::now());
            if let Err(failure) = self.task.require_wanted() {
                return Some(RunHalt::Unwanted(failure));
            }
        }
        let elapsed = milliseconds(self.started.elapsed());
        let used = Cost { milliseconds: elapsed, output_bytes: self.printed.get() };
        let reserved = self.reserved.get();
        if used.at_most(reserved) == used && used.milliseconds < reserved.milliseconds {
            return None;
        }
        match self.extend(used) {
            Ok(Answer::Granted(_)) => None,
            Ok(Answer::Spent(why)) => Some(RunHalt::Spent(why)),
            Ok(Answer::Reserved(why, holders)) => Some(RunHalt::Spent(self.with_others(why, holders))),
            Err(failure) => Some(RunHalt::Unwanted(failure)),
        }
    }

    /// Others may give back what they hold: then it is not spent, and whoever reads it has to know why this
    /// run was ended.
    fn with_others(&self, why: String, mut holders: Vec<String>) -> String {
        holders.retain(|holder| *holder != self.task.view.id);
        if holders.is_empty() { why } else { format!("{why}, with what runs of {} hold", holders.join(", ")) }
    }

    fn extend(&self, used: Cost) -> Result<Answer> {
        let mut ledger = self.ledger.borrow_mut();
        let answer = ledger.atomically(|ledger| {
            let held = Reservation { reserved: self.reserved.get(), used };
            let answer = find_share(ledger, &self.task.view.id, self.bound, Some(held))?;
            if let Answer::Granted(slice) = answer {
                let reserved = self.reserved.get().plus(slice);
                self.action.note(ledger, &Record::Reserved(Reservation { reserved, used }))?;
                self.reserved.set(reserved);
            }
            Ok(answer)
        })?;
        Ok(answer)
    }
}
