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
    _lock: LockGuard,
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
        Quarantine { objects: self.layout.task_objects(task), repository_objects: self.repository.objects_dir() }
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
            [] => Err(Failure::new(Code::NotFound, "no task is open here").remedy(
                "Open one, or name a task that has ended.",
                ["git", "tender", "status"],
            )),
            several => Err(Failure::new(Code::ArgumentsInvalid, format!("{} tasks are open; name one", several.len()))
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
        let (ledger, view) = self.view(named)?;
        let lock = LockGuard::acquire(&self.layout.task_lock(&view.id))?;
        super::recover::before_writing(self, &view.id)?;
        let id = view.id;
        drop(ledger);
        let ledger = Ledger::create(&self.layout)?;
        let view = load(&ledger, &id)?.ok_or_else(|| no_such_task(&id))?;
        Ok(TaskWrite { session: self, ledger, view, _lock: lock })
    }
}

impl TaskWrite<'_> {
    /// Refuses unless the task can still be worked on.
    pub fn require_active(&self) -> Result<()> {
        self.view.require_active()
    }

    /// Writes an action's first rows (planned, authorized, dispatched) and returns the handle that its result goes to.
    pub fn begin(&mut self, tool: &str, params: &impl Serialize) -> Result<RunningAction> {
        let action = RunningAction::new(self.session.actor, Some(&self.view.id), tool, params, self.view.basis());
        action.dispatch(&mut self.ledger)?;
        Ok(action)
    }

    /// Writes an action's result and takes it into the view.
    pub fn finish(&mut self, action: RunningAction, record: &Record) -> Result<()> {
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
        let action = self.begin(tool, params)?;
        match work(self) {
            Ok((record, value)) => {
                self.finish(action, &record)?;
                Ok(value)
            }
            Err(failure) => Err(action.fail(&mut self.ledger, failure)),
        }
    }
}

/// An action that was dispatched and has no result yet.
#[derive(Debug)]
#[must_use = "an action that gets no result looks like a crash"]
pub struct RunningAction {
    template: Draft,
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
        }
    }

    /// The action's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.template.action
    }

    fn row(&self, state: ActionState, result: Value) -> Draft {
        Draft { state, result, ..self.template.clone() }
    }

    /// Planned, authorized, dispatched: in one transaction, before any effect.
    pub fn dispatch(&self, ledger: &mut Ledger) -> Result<()> {
        let states = [ActionState::Planned, ActionState::Authorized, ActionState::Dispatched];
        let rows: Vec<Draft> = states.into_iter().map(|state| self.row(state, Value::Null)).collect();
        ledger.append(&rows).map(|_| ())
    }

    /// A record of progress: the action stays dispatched.
    pub fn note(&self, ledger: &mut Ledger, record: &Record) -> Result<()> {
        ledger.append(&[self.row(ActionState::Dispatched, record.to_value()?)]).map(|_| ())
    }

    /// Refused before any effect. Gives the failure back with a reference to the action.
    pub fn deny(self, ledger: &mut Ledger, failure: Failure) -> Failure {
        let failure = failure.reference(self.id());
        let result = json!({"record": "failure", "failure": failure});
        let rows = [self.row(ActionState::Planned, Value::Null), self.row(ActionState::Denied, result)];
        match ledger.append(&rows) {
            Ok(_) => failure,
            Err(second) => failure.also([second]),
        }
    }

    /// The effect took place.
    pub fn succeed(self, ledger: &mut Ledger, record: &Record) -> Result<Vec<Entry>> {
        let mut row = self.row(ActionState::Succeeded, record.to_value()?);
        row.key = record.evidence_key();
        ledger.append(&[row])
    }

    /// It failed and changed nothing. Gives the failure back with a reference to the action.
    pub fn fail(self, ledger: &mut Ledger, failure: Failure) -> Failure {
        let failure = failure.reference(self.id());
        let result = json!({"record": "failure", "failure": failure});
        match ledger.append(&[self.row(ActionState::FailedWithoutEffect, result)]) {
            Ok(_) => failure,
            Err(second) => failure.also([second]),
        }
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
