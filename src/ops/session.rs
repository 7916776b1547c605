//! What every operation works on: the repository that was meant, its store, and who asks.
//!
//! Also the two ways into a task: [`Session::view`] for looking, [`Session::write`] for changing, which takes
//! the task's lock and reconciles first what a crash left unfinished.

use crate::domain::ledger::action::Actor;
use crate::domain::ledger::record::Record;
use crate::domain::ledger::task::TaskView;
use crate::error::{Code, Failure, Result};
use crate::git::apply::Keeper;
use crate::git::materialise::HeldFiles;
use crate::git::{Quarantine, Repository};
use crate::process::{Secrets, secret_values};
use crate::store::layout::{create_private_dir, write_private};
use crate::store::lock::LockGuard;
use crate::store::{Blobs, Claim, Layout, Ledger};
use serde::Serialize;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

pub use super::running::{RunningAction, fresh_id, random_hex};

/// How a person is asked to confirm. The command line asks on the controlling terminal.
pub trait Person: std::fmt::Debug {
    /// Puts the question and waits for the answer; `None` where no person can be reached.
    fn confirm(&self, question: &str) -> Option<bool>;

    /// True where the repository's owner has said that calls without a terminal count as a person's.
    fn has_consented(&self) -> bool;
}

/// Where no person can be reached, and none has consented beforehand.
#[derive(Debug)]
pub struct Nobody;

impl Person for Nobody {
    fn confirm(&self, _question: &str) -> Option<bool> {
        None
    }

    fn has_consented(&self) -> bool {
        false
    }
}

/// Progress of a long step: done and total.
pub type Progress<'a> = &'a dyn Fn(u64, u64);

/// Asked between steps, and many times a second while a program runs: true once whoever called wants no
/// answer any more.
pub type Stop<'a> = &'a (dyn Fn() -> bool + Sync);

/// What a process found out about itself and its machine.
#[derive(Debug, Clone)]
pub struct Machine {
    /// This program's file, to start the supervising helper.
    pub program: PathBuf,
    pub vars: Vec<(OsString, OsString)>,
    pub home: Option<PathBuf>,
    pub cache: Option<PathBuf>,
    /// What of the environment must be seen nowhere, once somebody has asked for it.
    secrets: OnceLock<Secrets>,
}

impl Machine {
    /// By what a process found out.
    pub fn new(program: PathBuf, vars: Vec<(OsString, OsString)>) -> Self {
        Self { program, vars, home: None, cache: None, secrets: OnceLock::new() }
    }

    /// The values of all variables whose names look like secrets, made ready to be looked for.
    pub fn secrets(&self) -> &Secrets {
        self.secrets.get_or_init(|| Secrets::new(&secret_values(&self.vars)))
    }
}

/// The repository, its store and the caller.
#[derive(Debug)]
pub struct Session {
    /// The repository that was meant.
    pub repository: Repository,
    pub layout: Layout,
    pub actor: Actor,
    /// The channel that it comes by: `cli` or `mcp`.
    pub origin: String,
    pub machine: Machine,
    /// A way to a person.
    pub person: Box<dyn Person>,
}

/// A task that is being changed: its lock is held, its state is known, and its actions are written to the
/// ledger.
pub struct TaskWrite<'s> {
    pub session: &'s Session,
    pub ledger: Ledger,
    /// What is known of the task.
    pub view: TaskView,
    // Fields drop in this order: the task's lock was taken last.
    claim: Claim,
    stop: Option<Stop<'s>>,
    _delivery: Option<LockGuard>,
}

impl Session {
    /// The same repository for a worker's calls: whatever terminal or consent there is, nobody of it is a
    /// person.
    pub fn for_a_worker(self) -> Self {
        Self { actor: Actor::Agent, origin: "mcp".to_owned(), person: Box::new(Nobody), ..self }
    }

    pub fn blobs(&self) -> Blobs {
        Blobs::new(&self.layout)
    }

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

    /// The id of the task that is meant: the one named, the one whose worktree the call comes from, or the
    /// only one that has not ended.
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
        let (ledger, mut view) = self.find(named)?;
        super::budget::attach(&ledger, &mut view)?;
        Ok((ledger, view))
    }

    /// The same without its family.
    fn find(&self, named: Option<&str>) -> Result<(Ledger, TaskView)> {
        let id = self.task_id(named)?;
        let missing = || no_such_task(&id);
        let ledger = self.ledger()?.ok_or_else(missing)?;
        let view = load(&ledger, &id)?.ok_or_else(missing)?;
        Ok((ledger, view))
    }

    /// A task for changing it. What a crash left unfinished is reconciled first.
    pub fn write(&self, named: Option<&str>) -> Result<TaskWrite<'_>> {
        let (_, view) = self.find(named)?;
        let claim = Claim::acquire(&self.layout, &view.id)?;
        self.enter(view, claim, |id| super::recover::before_writing(self, id))
    }

    /// The same for a call that may be called off: while it waits for the lock, and from then on.
    /// `known` is what was read of the task before: only what came since is read.
    pub fn write_until<'s>(&'s self, known: TaskView, stop: Stop<'s>) -> Result<TaskWrite<'s>> {
        let view = known;
        let claim = Claim::acquire_unless(&self.layout, &view.id, &|| stop())?;
        let task = self.enter(view, claim, |id| super::recover::before_writing(self, id))?;
        Ok(TaskWrite { stop: Some(stop), ..task })
    }

    /// A task for a person's decision: it may not be known what became of an effect.
    pub fn write_while_unknown(&self, named: Option<&str>) -> Result<TaskWrite<'_>> {
        let (_, view) = self.find(named)?;
        let claim = Claim::acquire(&self.layout, &view.id)?;
        self.enter(view, claim, |id| super::recover::as_far_as_known(self, id).map(drop))
    }

    /// A task for ending it: likewise, and whatever command is at work on it is asked to stop.
    pub fn write_stopping(&self, named: Option<&str>) -> Result<TaskWrite<'_>> {
        let (_, view) = self.find(named)?;
        let claim = Claim::acquire_stopping(&self.layout, &view.id)?;
        self.enter(view, claim, |id| super::recover::as_far_as_known(self, id).map(drop))
    }

    /// A task for writing to the live tree: the delivery lock is taken first, and every unfinished delivery
    /// is reconciled. One that leaves the live tree alone gets by with its own lock.
    pub fn write_live(&self, named: Option<&str>) -> Result<TaskWrite<'_>> {
        let (_, view) = self.find(named)?;
        if view.publishes() {
            return self.write(Some(&view.id));
        }
        let delivery = LockGuard::acquire(&self.layout.delivery_lock())?;
        let claim = Claim::acquire(&self.layout, &view.id)?;
        let settle = |id: &str| super::recover::before_delivering(self, id, &delivery);
        let mut task = self.enter(view, claim, settle)?;
        task._delivery = Some(delivery);
        Ok(task)
    }

    /// Somebody may have removed the task's private folder: what it held is in the repository, kept by the
    /// task's refs, or is made anew.
    fn restore_folder(&self, view: &TaskView) -> Result<()> {
        if view.collected { Ok(()) } else { create_private_dir(&self.layout.task_objects(&view.id)) }
    }

    /// Settles what was left unfinished, then reads what is known by now.
    fn enter(
        &self,
        found: TaskView,
        claim: Claim,
        settle: impl FnOnce(&str) -> Result<()>,
    ) -> Result<TaskWrite<'_>> {
        self.restore_folder(&found)?;
        settle(&found.id)?;
        let ledger = Ledger::create(&self.layout)?;
        let mut view = found;
        catch_up(&ledger, &mut view)?;
        super::budget::attach(&ledger, &mut view)?;
        Ok(TaskWrite { session: self, ledger, view, claim, stop: None, _delivery: None })
    }

    /// Lends the store of blobs to whoever writes user files.
    pub fn with_keeper<T>(&self, work: impl FnOnce(Keeper<'_>) -> T) -> T {
        let blobs = self.blobs();
        work(Keeper { put: &|bytes| blobs.put(bytes), get: &|digest| blobs.get(digest) })
    }

    /// What we wrote into a task's worktree, as far as it is noted. Without the note every file is read.
    pub fn held(&self, task: &str) -> Option<HeldFiles> {
        serde_json::from_slice(&std::fs::read(self.layout.task_held(task)).ok()?).ok()
    }

    /// Notes what we wrote into a task's worktree.
    pub fn keep_held(&self, task: &str, held: &HeldFiles) -> Result<()> {
        let held = serde_json::to_vec(held)
            .map_err(|e| Failure::internal(format!("the stat cache cannot be written: {e}")))?;
        write_private(&self.layout.task_held(task), &held)
    }
}

/// Values that must be seen nowhere: those of all the caller's variables whose names look like secrets.
pub fn secrets(session: &Session) -> Vec<Vec<u8>> {
    secret_values(&session.machine.vars)
}

/// A text of a worker's without any value that must be seen nowhere.
pub fn redacted(session: &Session, text: &str) -> String {
    session.machine.secrets().redact_text(text)
}

/// The refusal of what a person has to confirm and nobody did. `call` is the command that asks again.
pub fn unconfirmed<S: Into<String>>(what: &str, subject: &str, call: impl IntoIterator<Item = S>) -> Failure {
    Failure::new(Code::PermissionDenied, format!("{what}, and no person confirmed it")).subject(subject).remedy(
        "Run it in a terminal and type yes. Who works without one may set tender.approveWithoutTerminal in this repository's git configuration.",
        call,
    )
}

impl TaskWrite<'_> {
    /// Refuses unless the task can still be worked on.
    pub fn require_active(&self) -> Result<()> {
        self.view.require_active()
    }

    /// Refuses once somebody wants to cancel the task, and waits for this command to stop; or once whoever
    /// called wants no answer.
    pub fn require_wanted(&self) -> Result<()> {
        if self.stop.is_some_and(|stop| stop()) {
            let text = format!(
                "the call was cancelled by whoever made it, while it was at work on {}",
                self.view.id
            );
            return Err(Failure::new(Code::Cancelled, text).subject(self.view.id.clone()));
        }
        if self.claim.is_asked_to_stop() {
            return Err(Failure::new(
                Code::Cancelled,
                format!("the task {} was cancelled while a command was at work on it", self.view.id),
            )
            .subject(self.view.id.clone())
            .remedy("See what it had come to.", ["git", "tender", "report", &self.view.id]));
        }
        Ok(())
    }

    /// Reads the task's rows that came since: what was written without this view, and what others of its
    /// family have used.
    pub fn refresh(&mut self) -> Result<()> {
        catch_up(&self.ledger, &mut self.view)?;
        super::budget::attach(&self.ledger, &mut self.view)
    }

    /// An action of whoever called, on this task's basis; nothing of it is written yet.
    pub fn action(&self, tool: &str, params: &impl Serialize) -> RunningAction {
        let (session, id) = (self.session, self.view.id.as_str());
        RunningAction::new(session.actor, Some(id), tool, params, self.view.basis()).by(session)
    }

    /// Writes an action's first rows (planned, authorized, dispatched) and returns the handle that its result
    /// goes to.
    pub fn begin(&mut self, tool: &str, params: &impl Serialize) -> Result<RunningAction> {
        let mut action = self.action(tool, params);
        action.dispatch(&mut self.ledger)?;
        Ok(action)
    }

    /// Writes an action's result and takes it into the view.
    pub fn finish(&mut self, mut action: RunningAction, record: &Record) -> Result<()> {
        action.succeed(&mut self.ledger, record)?;
        catch_up(&self.ledger, &mut self.view)
    }

    /// Runs `work` as one action: its record on success; on failure the ledger says that nothing was changed.
    pub fn act<T>(
        &mut self,
        tool: &str,
        params: &impl Serialize,
        work: impl FnOnce(&mut Self) -> Result<(Record, T)>,
    ) -> Result<T> {
        self.act_if(tool, params, |_, _, _| Ok(()), work)
    }

    /// The same, with a last look (at the ledger, the task's id and the record) in the transaction that
    /// records it.
    pub fn act_if<T>(
        &mut self,
        tool: &str,
        params: &impl Serialize,
        check: impl FnOnce(&Ledger, &str, &Record) -> Result<()>,
        work: impl FnOnce(&mut Self) -> Result<(Record, T)>,
    ) -> Result<T> {
        let mut action = self.begin(tool, params)?;
        let (record, value) = match work(self) {
            Ok(done) => done,
            Err(failure) => return Err(action.fail(&mut self.ledger, failure)),
        };
        let id = self.view.id.clone();
        let ended = self.ledger.atomically(|ledger| match check(ledger, &id, &record) {
            Ok(()) => action.succeed(ledger, &record).map(Ok),
            Err(failure) => Ok(Err(failure)),
        })?;
        match ended {
            Ok(_) => catch_up(&self.ledger, &mut self.view).map(|()| value),
            Err(failure) => Err(action.fail(&mut self.ledger, failure)),
        }
    }
}

impl std::fmt::Debug for TaskWrite<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TaskWrite").field("task", &self.view.id).finish_non_exhaustive()
    }
}

/// A duration as the ledger counts it.
pub fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Folds a task's rows; `None` where it has none that opened it.
pub fn load(ledger: &Ledger, id: &str) -> Result<Option<TaskView>> {
    let mut view = TaskView::new(id);
    catch_up(ledger, &mut view)?;
    Ok(view.opened.is_some().then_some(view))
}

/// Takes the rows in that a view does not have yet, in their order.
pub fn catch_up(ledger: &Ledger, view: &mut TaskView) -> Result<()> {
    for entry in ledger.entries_after(&view.id, view.upto)? {
        view.apply(&entry)?;
    }
    Ok(())
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
