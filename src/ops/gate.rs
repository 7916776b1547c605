//! The gate: the one door through which everything goes that a worker does.
//!
//! The order is fixed. A call is written down as planned and charged on arrival, in one transaction over the
//! family's budget; then its tool has to be allowed, its arguments have to fit, its targets are looked at
//! where they really are, the guards of the repository are heard, and the budget has to have had something
//! left. Only then it is authorized and dispatched, and runs; its result is written before anybody hears it.
//! Whatever ends earlier is denied, with the reason in the ledger. Calls on one task run one after the other,
//! since each holds the task's lock from arrival to end; so neither a burst nor several servers can use the
//! same rest twice.

mod calls;
mod checks;
mod outcome;

use crate::domain::contract::budget::{Cost, Key};
use crate::domain::contract::tool::WorkerTool;
use crate::domain::ledger::charges::{Spent, Standing};
use crate::domain::ledger::inquiries::HintObject;
use crate::domain::ledger::record::Record;
use crate::domain::ledger::task::TaskView;
use crate::domain::value::digest::Sha256;
use crate::domain::worker::call::{Arrived, Called, Effect};
use crate::domain::worker::inquiry::Hint;
use crate::error::{Code, Failure, Result, clipped};
use crate::store::Ledger;
use crate::task::action::{RunningAction, fresh_id, milliseconds};
use crate::task::enter::require_own_store;
use crate::task::held::TaskWrite;
use crate::task::inquiry::keep_hint;
use crate::task::reach::allowed_tools;
use crate::task::session::{Session, Stop, redacted};
use crate::task::view::catch_up;
use crate::task::{budget, family, hooks};
use crate::tools::{ToolCall, ToolDescription, tool_descriptions};
use calls::{authorize_call, run_call};
use outcome::CallFailure;
use serde_json::Value;
use std::borrow::Cow;
use std::time::Instant;

/// The most bytes that are shown of a name that is no tool's.
const LONGEST_NAME: usize = 64;
/// How many calls in a row of one connection are written down although they cost nothing. Whoever goes on
/// after that gets the same refusal without a row: a ledger that anybody can make grow for nothing would be
/// no better record. The next call that costs something is written again.
const MOST_UNPAID: u32 = 100;

/// One worker of one task: a connection, from its first call to its last.
#[derive(Debug)]
pub struct Door<'s> {
    session: &'s Session,
    task: String,
    worker: String,
    /// What was read of the task so far, so that a call costs its own rows and not those of all calls before
    /// it.
    known: TaskView,
    /// Calls since the last one that was charged.
    unpaid: u32,
}

/// What goes on beside a call.
#[derive(Clone, Copy)]
pub struct CallControl<'a> {
    /// True once whoever called wants no answer any more.
    pub wants_to_stop: Stop<'a>,
    /// Hears how far it is: done, total, and what is being done.
    pub progress: &'a dyn Fn(u64, u64, &str),
}

/// The answer to a call.
#[derive(Debug)]
pub struct GateAnswer {
    /// The result, or why there is none.
    pub result: Result<Value>,
    /// A word of warning for the worker.
    pub warning: Option<String>,
    /// The action in the ledger; `None` where it could not be written down.
    pub action: Option<String>,
}

impl<'s> Door<'s> {
    /// Opens the door for a worker of a task that has not ended.
    pub fn open(session: &'s Session, named: Option<&str>) -> Result<Self> {
        require_own_store(session)?;
        let (_, view) = session.view(named)?;
        view.require_active()?;
        Ok(Self { session, task: view.id.clone(), worker: fresh_id("w"), known: view, unpaid: 0 })
    }

    /// The tools that the task's contract allows.
    pub fn tools(&self) -> Result<Vec<ToolDescription>> {
        let mut view = self.known.clone();
        // Somebody may have agreed to other tools meanwhile.
        if let Some(ledger) = self.session.ledger()? {
            catch_up(&ledger, &mut view)?;
        }
        let allowed = allowed_tools(&view)?;
        Ok(tool_descriptions()
            .iter()
            .filter(|described| allowed.contains(&described.tool))
            .cloned()
            .collect())
    }

    /// Carries out a call, or says why not. Waits for the task's lock, like every command.
    pub fn call(&mut self, tool: &str, arguments: &Value, line: &CallControl<'_>) -> GateAnswer {
        let tool = &*self.name_to_keep(tool);
        match self.session.write_until(self.known.clone(), line.wants_to_stop) {
            Ok(mut task) => {
                let answer = match task.require_active() {
                    Ok(()) => self.admit_call(&mut task, tool, arguments, line),
                    Err(failure) => GateAnswer { result: Err(failure), warning: None, action: None },
                };
                self.known = task.view;
                answer
            }
            Err(failure) => self.turned_away(tool, arguments, failure),
        }
    }

    /// Keeps what the user said to the worker's question through its client. It is no answer, costs nothing
    /// and stops nothing.
    pub fn hint(&mut self, hint: &Hint, line: &CallControl<'_>) -> Result<Option<HintObject>> {
        let mut task = self.session.write_until(self.known.clone(), line.wants_to_stop)?;
        let kept = keep_hint(&mut task, hint);
        self.known = task.view;
        kept
    }

    /// The lock was not free in time: what could not even be looked at is written down and charged as well,
    /// planned and denied at once.
    fn turned_away(&mut self, tool: &str, arguments: &Value, failure: Failure) -> GateAnswer {
        let written = (|| {
            require_own_store(self.session)?;
            let mut ledger = Ledger::create(&self.session.layout)?;
            let mut view = self.known.clone();
            catch_up(&ledger, &mut view)?;
            view.require_active()?;
            let (session, basis) = (self.session, view.authorization_basis());
            let mut action = session.action(session.actor, &self.task, tool, arguments, basis);
            let (id, worker) = (action.id().to_owned(), self.worker.clone());
            let denied = failure.clone();
            if self.unpaid >= MOST_UNPAID && without_call(&ledger, &mut view)?.is_some() {
                return Err(denied);
            }
            let failure = ledger.atomically(|ledger| {
                let charged = without_call(ledger, &mut view)?.is_none();
                self.unpaid = if charged { 0 } else { self.unpaid + 1 };
                action.arrive(ledger, &Record::Call(Arrived { worker, charged }))?;
                Ok(action.deny(ledger, denied))
            })?;
            Ok::<_, Failure>((failure, id))
        })();
        match written {
            Ok((failure, id)) => GateAnswer { result: Err(failure), warning: None, action: Some(id) },
            Err(_) => GateAnswer { result: Err(failure), warning: None, action: None },
        }
    }

    fn admit_call(
        &mut self,
        task: &mut TaskWrite<'_>,
        tool: &str,
        arguments: &Value,
        line: &CallControl<'_>,
    ) -> GateAnswer {
        if let Some(failure) = self.refused_as_before(task) {
            return GateAnswer { result: Err(failure), warning: None, action: None };
        }
        let mut action = task.action(tool, arguments);
        let (id, arrived) = (action.id().to_owned(), Instant::now());
        let result = match self.charge_arrival(task, &mut action) {
            Err(failure) => return GateAnswer { result: Err(failure), warning: None, action: None },
            Ok(lacking) => self.authorize_and_run(task, (action, lacking), tool, arguments, line),
        };
        let ended = hooks::Ended {
            code: result.as_ref().err().map(Failure::code),
            duration: arrived.elapsed(),
            bytes: result.as_ref().map_or(0, |value| value.to_string().len() as u64),
        };
        hooks::after_action(task, &hooks::Event { tool, action: &id, arguments }, &ended);
        match look_for_repetition(task, &id) {
            Ok((Some(stopped), _)) if counts(&result) => {
                let last = result.unwrap_or_else(|failure| serde_json::to_value(failure).unwrap_or_default());
                GateAnswer {
                    result: Err(stopped.reference(&id).detail("last", last)),
                    warning: None,
                    action: Some(id),
                }
            }
            Ok((_, warning)) => GateAnswer { result, warning, action: Some(id) },
            Err(failure) => GateAnswer { result: result.and(Err(failure)), warning: None, action: Some(id) },
        }
    }

    /// Written down and charged before anything is decided: a call that is denied costs too. One that comes
    /// when nothing is left costs nothing; what it lacked then is what it is refused for, whatever a person
    /// adds while it is looked at.
    fn charge_arrival(
        &mut self,
        task: &mut TaskWrite<'_>,
        action: &mut RunningAction,
    ) -> Result<Option<Spent>> {
        let worker = self.worker.clone();
        let TaskWrite { ledger, view, .. } = task;
        let lacking = action.unawaited(ledger, |action, ledger| {
            let lacking = without_call(ledger, view)?;
            let charged = lacking.is_none();
            action.arrive(ledger, &Record::Call(Arrived { worker, charged }))?;
            Ok(lacking)
        })?;
        self.unpaid = if lacking.is_none() { 0 } else { self.unpaid + 1 };
        Ok(lacking)
    }

    /// The refusal of a worker that has been refused over and over since nothing is left, and that goes on
    /// although it still is so.
    fn refused_as_before(&self, task: &TaskWrite<'_>) -> Option<Failure> {
        let standing = task.view.standing.as_ref().filter(|_| self.unpaid >= MOST_UNPAID)?;
        let lacking = standing.without_call()?;
        Some(budget::exhausted(task, &lacking).unwrap_or_else(|failure| failure))
    }

    /// A tool's name as it is written down and told: any other word is the worker's, and may be long or hold
    /// anything. Not where the row is written: there it cannot be told from a name of ours, which has to stay
    /// as it is even where it is somebody's secret.
    fn name_to_keep<'a>(&self, tool: &'a str) -> Cow<'a, str> {
        if tool_descriptions().iter().any(|described| described.tool.name() == tool) {
            return Cow::Borrowed(tool);
        }
        Cow::Owned(clipped(&redacted(self.session, tool), LONGEST_NAME).into_owned())
    }

    /// The rest of the way, in the fixed order.
    fn authorize_and_run(
        &self,
        task: &mut TaskWrite<'_>,
        (mut action, lacking): (RunningAction, Option<Spent>),
        tool: &str,
        arguments: &Value,
        line: &CallControl<'_>,
    ) -> Result<Value> {
        let event = hooks::Event { tool, action: action.id(), arguments };
        // A task that was stopped for repeating itself is like one that has ended: nothing else is asked any
        // more.
        let stopped = task.view.refuse_repetition();
        let admitted = stopped
            .map_or(Ok(()), Err)
            .and_then(|()| require_tool(&task.view, tool))
            .and_then(|tool| ToolCall::parse_arguments(tool, arguments))
            .and_then(|call| authorize_call(task, call, &self.worker))
            .and_then(|call| task.require_wanted().map(|()| call))
            .and_then(|call| hooks::before_action(task, &event).map(|()| call))
            .and_then(|call| task.refresh().map(|()| call))
            .and_then(|call| require_budget(task, lacking.as_ref()).map(|()| call))
            .and_then(|call| task.require_wanted().map(|()| call));
        let call = match admitted {
            Ok(call) => call,
            Err(failure) => return Err(action.deny(&mut task.ledger, for_a_worker(&task.view, failure))),
        };
        // What has an effect writes a row of its own before it.
        action.unawaited(&mut task.ledger, RunningAction::dispatch)?;
        let (started, before) = (Instant::now(), task.view.charges.ended_cost());
        let ran = run_call(task, &mut action, call, (&self.worker, line));
        let cost = own_cost(task, started, before);
        match ran {
            Ok(outcome) => {
                let called = Called {
                    worker: self.worker.clone(),
                    result: Sha256::of_json(outcome.novelty.as_ref().unwrap_or(&outcome.value)),
                    milliseconds: cost.milliseconds,
                    origin: outcome.origin,
                    seen: outcome.seen,
                    effect: outcome.effect,
                };
                let written = matches!(called.effect, Some(Effect::Patched { .. }));
                let record = Record::Called(Box::new(called));
                match written {
                    true => task.finish_unawaited(action, &record)?,
                    false => task.finish(action, &record)?,
                }
                Ok(outcome.value)
            }
            Err(CallFailure::WithoutEffect(failure)) => {
                Err(action.fail_charged(&mut task.ledger, cost, for_a_worker(&task.view, failure)))
            }
            Err(CallFailure::Unknown(failure)) => Err(action.lose_charged(&mut task.ledger, cost, failure)),
        }
    }
}

/// What a call took beyond what its own runs are charged with. They are this task's, whose lock is held, and
/// have ended in the ledger.
fn own_cost(task: &mut TaskWrite<'_>, started: Instant, before: Cost) -> Cost {
    let elapsed = milliseconds(started.elapsed());
    // Where the rows cannot be read, all of it is this call's.
    let _ = catch_up(&task.ledger, &mut task.view);
    let of_runs = task.view.charges.ended_cost().milliseconds.saturating_sub(before.milliseconds);
    Cost { milliseconds: elapsed.saturating_sub(of_runs), output_bytes: 0 }
}

fn require_tool(view: &TaskView, name: &str) -> Result<WorkerTool> {
    let allowed = allowed_tools(view)?;
    if let Some(tool) = allowed.iter().find(|tool| tool.name() == name) {
        return Ok(*tool);
    }
    let allowed: Vec<&str> = allowed.into_iter().map(WorkerTool::name).collect();
    Err(Failure::new(
        Code::ToolNotAllowed,
        format!("the contract of {} does not allow the tool {name:?}", view.id),
    )
    .subject(name)
    .expected(&allowed, name)
    .detail("allowed", &allowed)
    .advice("Use a tool that is allowed, or propose an amendment of allowedTools."))
}

fn without_call(ledger: &Ledger, view: &mut TaskView) -> Result<Option<Spent>> {
    catch_up(ledger, view)?;
    family::attach(ledger, view)?;
    Ok(view.standing.as_ref().and_then(Standing::without_call))
}

/// What was charged on arrival is this call's; what a run would lack now, or that the task was stopped,
/// refuses it all the same.
fn require_budget(task: &TaskWrite<'_>, lacking: Option<&Spent>) -> Result<()> {
    match lacking {
        Some(lacking) => Err(budget::exhausted(task, lacking)?),
        None => budget::require_left_for_charged(task),
    }
}

/// What the task's rows say after a call: the failure that stops it, or a word of warning.
fn look_for_repetition(task: &mut TaskWrite<'_>, action: &str) -> Result<(Option<Failure>, Option<String>)> {
    task.refresh()?;
    let limit = task.view.current_limits().limit_of(Key::RepeatedFailures);
    Ok((task.view.refuse_repetition(), task.view.charges.repetition().warning_for(action, limit)))
}

/// What generally comes next at the command line is of no use to a worker.
fn for_a_worker(view: &TaskView, failure: Failure) -> Failure {
    if failure.has_remedy() {
        return failure;
    }
    failure.remedy(
        "task_status says what this task may read, change and check, and what is left of its budget.",
        ["git", "tender", "report", "--brief", &view.id],
    )
}

/// False for refusals that follow from the task's state: the call that brought the task there has had its
/// answer.
fn counts(result: &Result<Value>) -> bool {
    let of_the_state = |failure: &Failure| {
        matches!(
            failure.code(),
            Code::BudgetExhausted | Code::FailureRepeated | Code::Cancelled | Code::StoreBusy
        )
    };
    result.as_ref().err().is_none_or(|failure| !of_the_state(failure))
}
