//! What every operation works on: the repository that was meant, its store, and who asks.
//!
//! Also the two ways into a task: [`Session::view`] for looking, [`Session::write`] for changing, which takes the task's lock and
//! reconciles first what a crash left unfinished.

use crate::domain::action::{ActionState, Actor};
use crate::domain::digest::Sha256;
use crate::domain::entry::Entry;
use crate::domain::task::{Record, TaskView};
use crate::error::{Code, Failure, Result};
use crate::git::{Quarantine, Repository};
use crate::store::lock::LockGuard;
use crate::store::{Blobs, Draft, Layout, Ledger};
use serde::Serialize;
use serde_json::{Value, json};
use std::path::PathBuf;

/// How a person is asked to confirm. The command line asks on the controlling terminal.
pub trait Person: std::fmt::Debug {
    /// Puts the question and waits for the answer; `None` where no person can be reached.
    fn confirm(&self, question: &str) -> Option<bool>;
}

/// Progress of a long step: done and total.
pub type Progress<'a> = &'a dyn Fn(u64, u64);

/// What a process found out about itself and its machine.
#[derive(Debug, Clone)]
pub struct Machine {
    /// This program's file, to start the supervising helper.
    pub program: PathBuf,
    /// The caller's environment.
    pub vars: Vec<(std::ffi::OsString, std::ffi::OsString)>,
    /// The user's home directory.
    pub home: Option<PathBuf>,
    /// The user's cache directory.
    pub cache: Option<PathBuf>,
}

/// The repository, its store and the caller.
#[derive(Debug)]
pub struct Session {
    /// The repository that was meant.
    pub repository: Repository,
    /// Its store.
    pub layout: Layout,
    /// Who asks.
    pub actor: Actor,
    /// The machine.
    pub machine: Machine,
    /// A way to a person.
    pub person: Box<dyn Person>,
}

/// A task that is being changed: its lock is held, its state is known, and its actions are written to the ledger.
#[derive(Debug)]
pub struct TaskWrite<'s> {
    /// The session.
    pub session: &'s Session,
    /// The open ledger.
    pub ledger: Ledger,
    /// What is known of the task.
    pub view: TaskView,
    // Fields drop in this order: the task's lock was taken last.
    _lock: LockGuard,
    _delivery: Option<LockGuard>,
}

impl Session {
    /// The store of blobs.
    #[must_use]
    pub fn blobs(&self) -> Blobs {
        Blobs::new(&self.layout)
    }

    /// A task's quarantine.
    #[must_use]
    pub fn quarantine(&self, task: &str) -> Quarantine {
        Quarantine {
            objects: self.layout.task_objects(task),
            repository_objects: self.repository.objects_dir(),
        }
    }

    /// The ledger, if the repository has one.
    pub fn ledger(&self) -> Result<Option<Ledger>> {
        Ledger::open(&self.layout)
    }

    /// The id of the task that is meant: the one named, the one whose worktree the call comes from, or the only one that has not ended.
    pub fn task_id(&self, named: Option<&str>) -> Result<String> {
        if let Some(task) = named.or(self.repository.task()) {
            return Ok(task.to_owned());
        }
        let ledger = self.ledger()?;
        let open = match &ledger {
            Some(ledger) => open_tasks(ledger)?,
            None => Vec::new(),
        };
        match open.as_slice() {
            [one] => Ok(one.clone()),
            [] => Err(Failure::new(Code::NotFound, "no task is open here")
                .remedy("Open one, or name a task that has ended.", ["git", "tender", "status"])),
            several => Err(Failure::new(
                Code::ArgumentsInvalid,
                format!("{} tasks are open; name one", several.len()),
            )
            .subject("TASK")
            .detail("open", several)
            .remedy("Name the task.", ["git", "tender", "status"])),
        }
    }

    /// What is known of a task, for looking at it.
    pub fn view(&self, named: Option<&str>) -> Result<(Ledger, TaskView)> {
        let id = self.task_id(named)?;
        let missing = || no_such_task(&id);
        let ledger = self.ledger()?.ok_or_else(missing)?;
        let view = load(&ledger, &id)?.ok_or_else(missing)?;
        Ok((ledger, view))
    }

    /// A task for changing it. What a crash left unfinished is reconciled first.
    pub fn write(&self, named: Option<&str>) -> Result<TaskWrite<'_>> {
        let (_, view) = self.view(named)?;
        let lock = LockGuard::acquire(&self.layout.task_lock(&view.id))?;
        super::recover::before_writing(self, &view.id)?;
        self.locked(view.id, lock, None)
    }

    /// A task for writing to the live tree: the delivery lock is taken first, and every unfinished delivery is reconciled.
    pub fn write_live(&self, named: Option<&str>) -> Result<TaskWrite<'_>> {
        let (_, view) = self.view(named)?;
        let delivery = LockGuard::acquire(&self.layout.delivery_lock())?;
        let lock = LockGuard::acquire(&self.layout.task_lock(&view.id))?;
        super::recover::before_delivering(self, &view.id, &delivery)?;
        self.locked(view.id, lock, Some(delivery))
    }

    fn locked(&self, id: String, lock: LockGuard, delivery: Option<LockGuard>) -> Result<TaskWrite<'_>> {
        let ledger = Ledger::create(&self.layout)?;
        let view = load(&ledger, &id)?.ok_or_else(|| no_such_task(&id))?;
        Ok(TaskWrite { session: self, ledger, view, _delivery: delivery, _lock: lock })
    }
}

impl TaskWrite<'_> {
    /// Refuses unless the task can still be worked on.
    pub fn require_active(&self) -> Result<()> {
        self.view.require_active()
    }

    /// Writes an action's first rows (planned, authorized, dispatched) and returns the handle that its result goes to.
    pub fn begin(&mut self, tool: &str, params: &impl Serialize) -> Result<RunningAction> {
        let mut action =
            RunningAction::new(self.session.actor, Some(&self.view.id), tool, params, self.view.basis());
        action.dispatch(&mut self.ledger)?;
        Ok(action)
    }

    /// Writes an action's result and takes it into the view.
    pub fn finish(&mut self, mut action: RunningAction, record: &Record) -> Result<()> {
        for entry in action.succeed(&mut self.ledger, record)? {
            self.view.apply(&entry)?;
        }
        Ok(())
    }

    /// Runs `work` as one action: its record on success; on failure the ledger says that nothing was changed.
    pub fn act<T>(
        &mut self,
        tool: &str,
        params: &impl Serialize,
        work: impl FnOnce(&mut Self) -> Result<(Record, T)>,
    ) -> Result<T> {
        let mut action = self.begin(tool, params)?;
        match work(self) {
            Ok((record, value)) => {
                self.finish(action, &record)?;
                Ok(value)
            }
            Err(failure) => Err(action.fail(&mut self.ledger, failure)),
        }
    }
}

/// An action on its way. Every row that it writes goes through the one transition function.
#[derive(Debug)]
#[must_use = "an action that gets no result looks like a crash"]
pub struct RunningAction {
    template: Draft,
    state: Option<ActionState>,
}

impl RunningAction {
    /// A new action with an id of its own.
    pub fn new(actor: Actor, task: Option<&str>, tool: &str, params: &impl Serialize, basis: Value) -> Self {
        Self {
            template: Draft {
                task: task.map(str::to_owned),
                actor,
                action: fresh_id("a"),
                tool: tool.to_owned(),
                state: ActionState::Planned,
                params_sha256: Sha256::of_json(params),
                basis,
                origin: "cli".to_owned(),
                result: Value::Null,
                key: None,
            },
            state: None,
        }
    }

    /// An action that a crash left unfinished, to be reconciled by the harness. `last` is its last row.
    pub fn resume(last: &Entry) -> Self {
        Self {
            template: Draft {
                task: last.task.clone(),
                actor: Actor::Harness,
                action: last.action.clone(),
                tool: last.tool.clone(),
                state: last.state,
                params_sha256: last.params_sha256,
                basis: last.basis.clone(),
                origin: "recovery".to_owned(),
                result: Value::Null,
                key: None,
            },
            state: Some(last.state),
        }
    }

    /// The action's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.template.action
    }

    /// The row that takes the action to `state`.
    fn advance(&mut self, state: ActionState, result: Value) -> Result<Draft> {
        self.state = Some(match self.state {
            None if state == ActionState::Planned => state,
            None => return Err(Failure::internal("an action begins as planned")),
            Some(now) => now.transition(state)?,
        });
        Ok(Draft { state, result, ..self.template.clone() })
    }

    fn write(
        &mut self,
        ledger: &mut Ledger,
        rows: impl IntoIterator<Item = (ActionState, Value)>,
    ) -> Result<Vec<Entry>> {
        let before = self.state;
        let drafts = rows
            .into_iter()
            .map(|(state, result)| self.advance(state, result))
            .collect::<Result<Vec<_>>>()?;
        self.append(ledger, before, &drafts)
    }

    /// A state counts only once the ledger has it: where that fails, the action is still in the one before.
    fn append(
        &mut self,
        ledger: &mut Ledger,
        before: Option<ActionState>,
        drafts: &[Draft],
    ) -> Result<Vec<Entry>> {
        let appended = ledger.append(drafts);
        if appended.is_err() {
            self.state = before;
        }
        appended
    }

    /// Planned, authorized, dispatched: in one transaction, before any effect.
    pub fn dispatch(&mut self, ledger: &mut Ledger) -> Result<()> {
        let states = [ActionState::Planned, ActionState::Authorized, ActionState::Dispatched];
        self.write(ledger, states.map(|state| (state, Value::Null))).map(|_| ())
    }

    /// A record of progress: the action stays in its state.
    pub fn note(&self, ledger: &mut Ledger, record: &Record) -> Result<()> {
        let state = self.state.unwrap_or(ActionState::Planned);
        let row = Draft { state, result: record.to_value()?, ..self.template.clone() };
        ledger.append(&[row]).map(|_| ())
    }

    /// The effect took place.
    pub fn succeed(&mut self, ledger: &mut Ledger, record: &Record) -> Result<Vec<Entry>> {
        let (before, value) = (self.state, record.to_value()?);
        let mut row = self.advance(ActionState::Succeeded, value)?;
        row.key = record.evidence_key();
        self.append(ledger, before, &[row])
    }

    /// The effect took place and left several records: all but the last are notes.
    pub fn succeed_with(
        &mut self,
        ledger: &mut Ledger,
        records: impl IntoIterator<Item = Record>,
    ) -> Result<Vec<Entry>> {
        let mut rows = Vec::new();
        for record in records {
            let row =
                Draft { key: record.evidence_key(), result: record.to_value()?, ..self.template.clone() };
            rows.push(row);
        }
        let last = rows.pop().ok_or_else(|| Failure::internal("an action succeeded without a record"))?;
        let before = self.state;
        self.advance(ActionState::Succeeded, Value::Null)?;
        rows.push(last);
        for row in &mut rows {
            row.state = ActionState::Succeeded;
        }
        self.append(ledger, before, &rows)
    }

    /// It failed and changed nothing. Gives the failure back with a reference to the action.
    pub fn fail(&mut self, ledger: &mut Ledger, failure: Failure) -> Failure {
        self.end_with(ledger, &[ActionState::FailedWithoutEffect], failure)
    }

    /// Refused before any effect. Gives the failure back with a reference to the action.
    pub fn deny(&mut self, ledger: &mut Ledger, failure: Failure) -> Failure {
        self.end_with(ledger, &[ActionState::Planned, ActionState::Denied], failure)
    }

    /// It cannot be said whether the effect took place; recovery will look.
    pub fn lose(&mut self, ledger: &mut Ledger, failure: Failure) -> Failure {
        self.end_with(ledger, &[ActionState::OutcomeUnknown], failure)
    }

    fn end_with(&mut self, ledger: &mut Ledger, states: &[ActionState], failure: Failure) -> Failure {
        let failure = failure.reference(self.id());
        let result = json!({"record": "failure", "failure": failure});
        match self.write(ledger, states.iter().map(|state| (*state, result.clone()))) {
            Ok(_) => failure,
            Err(second) => failure.also([second]),
        }
    }

    /// Recovery begins to look; from here on the action ends as succeeded, safe to retry, or a person's decision.
    pub fn reconcile(&mut self, ledger: &mut Ledger) -> Result<()> {
        let steps = match self.state {
            Some(ActionState::Dispatched) => vec![ActionState::OutcomeUnknown, ActionState::Reconcile],
            Some(ActionState::OutcomeUnknown) => vec![ActionState::Reconcile],
            Some(ActionState::Planned) => {
                vec![
                    ActionState::Authorized,
                    ActionState::Dispatched,
                    ActionState::OutcomeUnknown,
                    ActionState::Reconcile,
                ]
            }
            Some(ActionState::Authorized) => {
                vec![ActionState::Dispatched, ActionState::OutcomeUnknown, ActionState::Reconcile]
            }
            _ => vec![],
        };
        self.write(ledger, steps.into_iter().map(|state| (state, Value::Null))).map(|_| ())
    }

    /// Recovery found that nothing took place.
    pub fn safe_to_retry(&mut self, ledger: &mut Ledger, record: &Record) -> Result<()> {
        let value = record.to_value()?;
        self.write(ledger, [(ActionState::SafeToRetry, value)]).map(|_| ())
    }
}

/// An id that nobody else has: a letter and 16 random hex digits.
#[must_use]
pub fn fresh_id(prefix: &str) -> String {
    format!("{prefix}{}", random_hex(8))
}

/// `bytes` random bytes in hex, from the kernel.
#[must_use]
pub fn random_hex(bytes: usize) -> String {
    let mut buffer = vec![0u8; bytes];
    let mut filled = 0;
    while filled < bytes {
        match rustix::rand::getrandom(&mut buffer[filled..], rustix::rand::GetRandomFlags::empty()) {
            Ok(n) => filled += n,
            Err(_) => break,
        }
    }
    buffer.iter().map(|b| format!("{b:02x}")).collect()
}

/// Folds a task's rows; `None` where it has none that opened it.
pub fn load(ledger: &Ledger, id: &str) -> Result<Option<TaskView>> {
    let mut view = TaskView::new(id);
    for entry in ledger.entries(Some(id))? {
        view.apply(&entry)?;
    }
    Ok(view.opened.is_some().then_some(view))
}

fn open_tasks(ledger: &Ledger) -> Result<Vec<String>> {
    let mut open = Vec::new();
    for id in ledger.tasks()? {
        if load(ledger, &id)?.is_some_and(|view| !view.has_ended()) {
            open.push(id);
        }
    }
    Ok(open)
}

fn no_such_task(id: &str) -> Failure {
    Failure::new(Code::NotFound, format!("there is no task {id:?} in this repository"))
        .subject(id)
        .remedy("See which tasks there are.", ["git", "tender", "status"])
}
