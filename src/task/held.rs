//! A task that is being changed: whoever has a [`TaskWrite`] holds its lock, knows its state, and writes its
//! actions to the ledger.

use super::Session;
use super::action::RunningAction;
use super::family::attach;
use super::session::Stop;
use super::view::catch_up;
use crate::domain::ledger::record::Record;
use crate::domain::ledger::task::TaskView;
use crate::error::{Code, Failure, Result};
use crate::git::anchor::anchor_of_task;
use crate::store::lock::LockGuard;
use crate::store::{Claim, Ledger};
use serde::Serialize;

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
    delivery: Option<LockGuard>,
}

impl<'s> TaskWrite<'s> {
    /// A task whose lock is held, and of which nothing is left to settle, with what is known by now.
    pub(super) fn read(session: &'s Session, found: TaskView, claim: Claim) -> Result<Self> {
        let mut ledger = Ledger::create(&session.layout)?;
        ledger.keep_head_at(anchor_of_task(&session.repository, &found.id)?);
        let mut task = Self { session, ledger, view: found, claim, stop: None, delivery: None };
        task.refresh()?;
        Ok(task)
    }

    /// The same for a call that may be called off.
    pub(super) fn stopped_by(self, stop: Stop<'s>) -> Self {
        Self { stop: Some(stop), ..self }
    }

    /// The same for a write to the live tree, with the lock on that.
    pub(super) fn keeping(self, delivery: LockGuard) -> Self {
        Self { delivery: Some(delivery), ..self }
    }

    /// Lets others write to the live tree: from here on this only works on the task.
    pub fn release_live_tree(&mut self) {
        self.delivery = None;
    }

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
        attach(&self.ledger, &mut self.view)
    }

    /// An action of whoever called, on this task's basis; nothing of it is written yet.
    pub fn action(&self, tool: &str, params: &impl Serialize) -> RunningAction {
        let (session, id) = (self.session, self.view.id.as_str());
        session.action(session.actor, id, tool, params, self.view.authorization_basis())
    }

    /// Writes an action's first rows (planned, authorized, dispatched) and returns the handle that its result
    /// goes to.
    pub fn begin(&mut self, tool: &str, params: &impl Serialize) -> Result<RunningAction> {
        let mut action = self.action(tool, params);
        action.dispatch(&mut self.ledger)?;
        Ok(action)
    }

    /// The same for an action whose first effect has a row of its own before it, or that has none.
    pub fn begin_unawaited(&mut self, tool: &str, params: &impl Serialize) -> Result<RunningAction> {
        let mut action = self.action(tool, params);
        action.unawaited(&mut self.ledger, RunningAction::dispatch)?;
        Ok(action)
    }

    /// Writes an action that only looked, with what it saw: all of its rows at once.
    pub fn note_look(&mut self, tool: &str, params: &impl Serialize, record: &Record) -> Result<()> {
        let mut action = self.action(tool, params);
        self.ledger.atomically(|ledger| {
            action.dispatch(ledger)?;
            action.succeed(ledger, record)
        })?;
        catch_up(&self.ledger, &mut self.view)
    }

    /// Writes an action's result and takes it into the view.
    pub fn finish(&mut self, mut action: RunningAction, record: &Record) -> Result<()> {
        action.succeed(&mut self.ledger, record)?;
        catch_up(&self.ledger, &mut self.view)
    }

    /// The same where recovery would come to this end by itself, so that nobody waits for the disk.
    pub fn finish_unawaited(&mut self, mut action: RunningAction, record: &Record) -> Result<()> {
        action.unawaited(&mut self.ledger, |action, ledger| action.succeed(ledger, record))?;
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
