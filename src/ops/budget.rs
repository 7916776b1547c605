//! Budgets in force: where a task stands within its family, who is refused once one is spent, and the meter
//! of a run.
//!
//! The meter reserves what a run may use slice by slice, each in one transaction with the look at the whole
//! family, and stops the run where there is no further slice. So runs of several sub-tasks side by side
//! cannot use the same rest twice, and what a crash cuts off is known to a slice.

use super::session::{RunningAction, TaskWrite, load, milliseconds};
use super::{Session, report};
use crate::domain::contract::budget::{Cost, Reservation};
use crate::domain::ledger::action::Actor;
use crate::domain::ledger::charges::{Member, Spent, Standing, standing};
use crate::domain::ledger::record::Record;
use crate::domain::ledger::report::word;
use crate::domain::ledger::task::{TaskView, candidate_state};
use crate::domain::proof::judge::NEVER_RUN;
use crate::domain::proof::verdict::{Row, Verdict};
use crate::error::{Code, Failure, Result};
use crate::store::Ledger;
use crate::store::lock::{LockGuard, PATIENCE};
use crate::verifier::RunHalt;
use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

/// How often who waits for what others have reserved looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// How often it is looked whether somebody wants the run to stop.
const ASK_AGAIN: Duration = Duration::from_millis(50);

/// Looks up where the task stands: its own use and limits, and those of its family.
pub fn attach(ledger: &Ledger, view: &mut TaskView) -> Result<()> {
    view.standing = Some(standing(&family(ledger, view)?, &view.id));
    Ok(())
}

/// The task, those above it, and all that are beneath one of those.
fn family(ledger: &Ledger, view: &TaskView) -> Result<Vec<Member>> {
    let kin = ledger.kin()?;
    let mut ids = vec![view.id.clone()];
    let related = |(child, parent): &&(String, String), ids: &[String]| {
        (ids.contains(parent) && !ids.contains(child)) || (ids.contains(child) && !ids.contains(parent))
    };
    while let Some((child, parent)) = kin.iter().find(|pair| related(pair, &ids)) {
        let next = if ids.contains(child) { parent } else { child };
        ids.push(next.clone());
    }
    let mut members = vec![view.member()];
    for id in ids.iter().filter(|id| **id != view.id) {
        members.extend(load(ledger, id)?.map(|view| view.member()));
    }
    Ok(members)
}

/// The tasks that are parts of this one, and not of one of those.
pub fn children(ledger: &Ledger, task: &str) -> Result<Vec<String>> {
    let kin = ledger.kin()?;
    Ok(kin.into_iter().filter(|(_, parent)| parent == task).map(|(child, _)| child).collect())
}

/// Refuses whoever is no person once the budget is spent, and anybody once the task is being cancelled.
pub fn require_left(task: &TaskWrite<'_>) -> Result<()> {
    task.require_wanted()?;
    if is_a_person(task.session) {
        return Ok(());
    }
    if let Some(repeated) = task.view.repeated() {
        return Err(repeated);
    }
    task.view.spent().map_or(Ok(()), |spent| Err(exhausted(task, &spent)?))
}

/// The same for a call that was charged on arrival: whoever has asked for more since then takes nothing of it
/// away.
pub fn require_left_for_charged(task: &TaskWrite<'_>) -> Result<()> {
    match task.view.repeated() {
        Some(repeated) => Err(repeated),
        None => task.view.spent_for_runs().map_or(Ok(()), |spent| Err(exhausted(task, &spent)?)),
    }
}

/// The refusal of everything that would use more, with the candidate that is kept.
pub fn exhausted(task: &TaskWrite<'_>, spent: &Spent) -> Result<Failure> {
    let Some(last) = task.view.candidates.last() else {
        return Ok(spent.refusal("there is no candidate yet"));
    };
    let evidence = report::evidence(&task.ledger, &task.view)?;
    let state = word(&candidate_state(&report::rows(&task.session.blobs(), &task.view, &evidence)?));
    let number = last.value.candidate;
    let refusal = spent.refusal(&format!("candidate {number} is kept ({})", state.replace('_', " ")));
    Ok(refusal.detail("candidate", number).detail("candidateState", state))
}

/// Somebody at a terminal, or the standing consent of the repository's owner.
fn is_a_person(session: &Session) -> bool {
    session.actor == Actor::User || session.person.has_consented()
}

/// The most bytes that the task's next candidate may have.
pub fn artifact_bytes(view: &TaskView) -> u64 {
    view.standing.as_ref().map_or(0, Standing::artifact_bytes)
}

/// Whether a candidate still fits beside those of the family, within the transaction that records it: others
/// may have captured meanwhile.
pub fn still_fits(ledger: &Ledger, task: &str, record: &Record) -> Result<()> {
    let (Record::Captured { candidate, .. }, Some(mut view)) = (record, load(ledger, task)?) else {
        return Ok(());
    };
    attach(ledger, &mut view)?;
    let (most, bytes) = (artifact_bytes(&view), candidate.artifact_bytes);
    if bytes <= most {
        return Ok(());
    }
    let text = format!(
        "the changed files come to {bytes} bytes; beside the candidates of its family {most} are left"
    );
    Err(Failure::new(Code::BudgetExhausted, text)
        .subject(task)
        .expected(most, bytes)
        .detail("budget", "artifactBytes"))
}

/// Says of rows for which nothing ran that the budget is why.
pub fn explain(view: &TaskView, rows: &mut [Row]) {
    let Some(spent) = view.spent() else { return };
    for row in rows.iter_mut().filter(|row| row.verdict == Verdict::NotRun) {
        if row.reason.as_deref() == Some(NEVER_RUN) {
            row.reason = Some(format!("not run: {}", spent.sentence()));
        }
    }
}

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
            let answer = ask(ledger, &task.view.id, bound, None)?;
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
fn ask(ledger: &Ledger, task: &str, bound: Bound, held: Option<Reservation>) -> Result<Answer> {
    if bound == Bound::None {
        return Ok(Answer::Granted(Standing::slice_without_limits()));
    }
    let view = load(ledger, task)?.ok_or_else(|| Failure::internal("the task has no rows any more"))?;
    let members = family(ledger, &view)?;
    let standing = standing(&members, task);
    if let Some(spent) = standing.spent_for_runs() {
        return Ok(Answer::Spent(spent.sentence()));
    }
    let slice = match held {
        None => Some(standing.next_slice()).filter(|slice| !slice.lacks_something()),
        Some(held) => standing.further_slice(held),
    };
    let Some(slice) = slice else {
        let running = |member: &&Member| member.charges.running().next().is_some();
        let holders = members.iter().filter(running).map(|member| member.id.clone()).collect();
        return Ok(Answer::Reserved(standing.lacking(held), holders));
    };
    Ok(Answer::Granted(slice))
}

/// What a killed run of another task had reserved is given back: whoever holds a run's lock is alive.
fn settle_the_dead(task: &TaskWrite<'_>, holders: &[String]) -> Result<()> {
    for holder in holders.iter().filter(|holder| **holder != task.view.id) {
        if let Some(_lock) = LockGuard::try_acquire(&task.session.layout.task_lock(holder))? {
            super::recover::before_writing(task.session, holder)?;
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
        let left = self.task.view.standing.as_ref()?.left().milliseconds;
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
            let answer = ask(ledger, &self.task.view.id, self.bound, Some(held))?;
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
