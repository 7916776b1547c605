//! The ways into a task: [`Session::view`] for looking, [`Session::write`] and its kin for changing, which
//! take the task's lock and bring to its end first what a crash left unfinished.

use super::family::attach;
use super::held::TaskWrite;
use super::home::require_home;
use super::rollback::refuse_rollback;
use super::session::Stop;
use super::view::load;
use super::{Session, recover};
use crate::domain::ledger::task::TaskView;
use crate::error::{Code, Failure, Result};
use crate::store::layout::create_private_dir;
use crate::store::lock::LockGuard;
use crate::store::{Claim, Ledger};

/// Before anything is written: the ledger has all its rows, and belongs to this repository.
pub fn require_own_store(session: &Session) -> Result<()> {
    refuse_rollback(session)?;
    require_home(session)
}

impl Session {
    /// The id of the task that is meant: the one named, the one whose worktree the call comes from, or the
    /// only one that has not ended.
    pub fn task_id(&self, named: Option<&str>) -> Result<String> {
        if let Some(task) = named.or(self.repository.task()) {
            return Ok(task.to_owned());
        }
        let ledger = self.ledger()?;
        let open = match &ledger {
            Some(ledger) => ledger.open_tasks()?,
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

    /// The id of the task that a view without a name means: after a delivery the delivered one, until
    /// something else is done.
    pub fn task_id_to_show(&self, named: Option<&str>) -> Result<String> {
        if named.is_none()
            && self.repository.task().is_none()
            && let Some(ledger) = self.ledger()?
            && let Some(last) = ledger.last_task()?
            && load(&ledger, &last)?.is_some_and(|view| view.delivered.is_some())
        {
            return Ok(last);
        }
        self.task_id(named).or_else(|failure| match self.last_delivered()? {
            Some(last) if failure.code() == Code::NotFound => Ok(last),
            _ => Err(failure),
        })
    }

    /// The id of the task whose delivery is meant: the one named, the one whose worktree the call comes from,
    /// or the one that was delivered last.
    pub fn delivered_task_id(&self, named: Option<&str>) -> Result<String> {
        if named.is_none()
            && self.repository.task().is_none()
            && let Some(last) = self.last_delivered()?
        {
            return Ok(last);
        }
        self.task_id(named)
    }

    fn last_delivered(&self) -> Result<Option<String>> {
        self.ledger()?.map_or(Ok(None), |ledger| ledger.last_delivered_task())
    }

    /// What is known of a task, for looking at it.
    pub fn view(&self, named: Option<&str>) -> Result<(Ledger, TaskView)> {
        let found = self.find(named);
        if found.as_ref().is_err_and(|failure| failure.code() == Code::NotFound) {
            // It may be among what a ledger that was set back has lost.
            refuse_rollback(self)?;
        }
        let (ledger, mut view) = found?;
        attach(&ledger, &mut view)?;
        Ok((ledger, view))
    }

    /// The same without its family, for changing it.
    fn find_to_change(&self, named: Option<&str>) -> Result<(Ledger, TaskView)> {
        require_own_store(self)?;
        self.find(named)
    }

    fn find(&self, named: Option<&str>) -> Result<(Ledger, TaskView)> {
        let id = self.task_id(named)?;
        let missing = || no_such_task(&id);
        let ledger = self.ledger()?.ok_or_else(missing)?;
        let view = load(&ledger, &id)?.ok_or_else(missing)?;
        Ok((ledger, view))
    }

    /// A task for changing it. What a crash left unfinished is reconciled first.
    pub fn write(&self, named: Option<&str>) -> Result<TaskWrite<'_>> {
        let (_, view) = self.find_to_change(named)?;
        let claim = Claim::acquire(&self.layout, &view.id)?;
        self.restore_folder(&view)?;
        recover::before_writing(self, &view.id)?;
        TaskWrite::read(self, view, claim)
    }

    /// The same for a call that may be called off: while it waits for the lock, and from then on.
    /// `known` is what was read of the task before: only what came since is read.
    pub fn write_until<'s>(&'s self, known: TaskView, stop: Stop<'s>) -> Result<TaskWrite<'s>> {
        let view = known;
        require_own_store(self)?;
        let claim = Claim::acquire_unless(&self.layout, &view.id, &|| stop())?;
        self.restore_folder(&view)?;
        recover::before_writing(self, &view.id)?;
        Ok(TaskWrite::read(self, view, claim)?.stopped_by(stop))
    }

    /// A task for a person's decision: it may not be known what became of an effect.
    pub fn write_while_unknown(&self, named: Option<&str>) -> Result<TaskWrite<'_>> {
        let (_, view) = self.find_to_change(named)?;
        let claim = Claim::acquire(&self.layout, &view.id)?;
        self.restore_folder(&view)?;
        recover::as_far_as_known(self, &view.id)?;
        TaskWrite::read(self, view, claim)
    }

    /// A task for ending it: likewise, and whatever command is at work on it is asked to stop.
    pub fn write_stopping(&self, named: Option<&str>) -> Result<TaskWrite<'_>> {
        let (_, view) = self.find_to_change(named)?;
        let claim = Claim::acquire_stopping(&self.layout, &view.id)?;
        self.restore_folder(&view)?;
        recover::as_far_as_known(self, &view.id)?;
        TaskWrite::read(self, view, claim)
    }

    /// A task for writing to the live tree: the delivery lock is taken first, and every unfinished delivery
    /// is reconciled. One that leaves the live tree alone gets by with its own lock.
    pub fn write_live(&self, named: Option<&str>) -> Result<TaskWrite<'_>> {
        let (_, view) = self.find_to_change(named)?;
        if view.publishes() {
            return self.write(Some(&view.id));
        }
        let delivery = LockGuard::acquire(&self.layout.delivery_lock())?;
        let claim = Claim::acquire(&self.layout, &view.id)?;
        self.restore_folder(&view)?;
        recover::before_delivering(self, &view.id, &delivery)?;
        Ok(TaskWrite::read(self, view, claim)?.keeping(delivery))
    }

    /// Somebody may have removed the task's private folder: what it held is in the repository, kept by the
    /// task's refs, or is made anew.
    fn restore_folder(&self, view: &TaskView) -> Result<()> {
        if view.collected {
            return Ok(());
        }
        create_private_dir(&self.layout.task_objects(&view.id))?;
        self.quarantine(&view.id).drop_torn_objects()
    }
}

fn no_such_task(id: &str) -> Failure {
    Failure::new(Code::NotFound, format!("there is no task {id:?} in this repository"))
        .subject(id)
        .remedy("See which tasks there are.", ["git", "tender", "status"])
}
