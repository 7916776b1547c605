//! Recovery: what a crash left unfinished is looked at and brought to an end, forward or back, and the ledger says which.
//!
//! Whoever holds an action's locks is alive; an unfinished action whose locks are free belongs to nobody any more. Every command that
//! writes does this first; `recover` does it on demand and checks the whole chain.

use super::Session;
use super::live::{Facts, LedgerJournal};
use super::session::RunningAction;
use crate::domain::entry::Entry;
use crate::domain::receipt::Outcome;
use crate::domain::task::{Planned, Record};
use crate::error::{Failure, Result};
use crate::git::apply::Keeper;
use crate::git::apply::recover::{Recovered, Unfinished, run};
use crate::store::Ledger;
use crate::store::lock::LockGuard;
use serde::Serialize;

/// What `recover` shows.
#[derive(Debug, Serialize)]
pub struct Recovery {
    schema: &'static str,
    /// Rows of the ledger; its whole chain was checked.
    pub rows: u64,
    /// One an action that was unfinished.
    pub actions: Vec<Reconciled>,
}

/// An action that was unfinished.
#[derive(Debug, Serialize)]
pub struct Reconciled {
    /// Its id.
    pub action: String,
    /// Its task.
    pub task: Option<String>,
    /// Its command.
    pub tool: String,
    /// `completed`, `taken_back`, `safe_to_retry`, or `busy` where it is still running.
    pub outcome: &'static str,
    /// Paths that the user edited meanwhile; they were kept.
    pub kept: Vec<crate::domain::repo_path::RepoPath>,
    /// What else to know.
    pub notes: Vec<String>,
}

/// Brings everything unfinished to its end.
pub fn recover(session: &Session) -> Result<Recovery> {
    let mut recovery = Recovery { schema: "git-tender/recovery/v1", rows: 0, actions: Vec::new() };
    let Some(ledger) = session.ledger()? else { return Ok(recovery) };
    recovery.rows = ledger.check_chain()?;
    let delivery = LockGuard::try_acquire(&session.layout.delivery_lock())?;
    for (action, task, tool) in ledger.unfinished()? {
        let busy = || Reconciled {
            action: action.clone(),
            task: task.clone(),
            tool: tool.clone(),
            outcome: "busy",
            kept: Vec::new(),
            notes: Vec::new(),
        };
        let free = !is_live(&tool) || delivery.is_some();
        let lock = match &task {
            Some(task) => LockGuard::try_acquire(&session.layout.task_lock(task))?,
            None => None,
        };
        let may = free && (lock.is_some() || task.is_none());
        recovery.actions.push(if may { reconcile(session, &action)? } else { busy() });
    }
    Ok(recovery)
}

/// Before a command changes a task, whose lock it holds.
pub fn before_writing(session: &Session, task: &str) -> Result<()> {
    let Some(ledger) = session.ledger()? else { return Ok(()) };
    let unfinished = ledger.unfinished()?;
    if unfinished.is_empty() {
        return Ok(());
    }
    let delivery = LockGuard::try_acquire(&session.layout.delivery_lock())?;
    for (action, of, tool) in unfinished {
        settle(session, task, delivery.is_some(), (&action, of.as_deref(), &tool))?;
    }
    Ok(())
}

/// Before a command writes to the live tree: it holds the delivery lock and its task's.
pub fn before_delivering(session: &Session, task: &str, _delivery: &LockGuard) -> Result<()> {
    let Some(ledger) = session.ledger()? else { return Ok(()) };
    for (action, of, tool) in ledger.unfinished()? {
        settle(session, task, true, (&action, of.as_deref(), &tool))?;
    }
    Ok(())
}

/// Before the live tree is taken as a base: what a crashed delivery left in it is no work of the user's. Other actions are left alone.
pub fn before_capturing(session: &Session, _delivery: &LockGuard) -> Result<()> {
    let Some(ledger) = session.ledger()? else { return Ok(()) };
    for (action, of, tool) in ledger.unfinished()?.into_iter().filter(|(.., tool)| is_live(tool)) {
        let nobody = "";
        settle(session, nobody, true, (&action, of.as_deref(), &tool))?;
    }
    Ok(())
}

/// Reconciles one unfinished action if it is nobody's: a delivery of whichever task, anything else of the own task only.
fn settle(
    session: &Session,
    own: &str,
    delivery_is_ours: bool,
    (action, task, tool): (&str, Option<&str>, &str),
) -> Result<()> {
    let mine = task == Some(own);
    let other = match task {
        Some(task) if !mine && is_live(tool) => LockGuard::try_acquire(&session.layout.task_lock(task))?,
        _ => None,
    };
    let live = is_live(tool) && delivery_is_ours && (mine || other.is_some());
    if live || (mine && !is_live(tool)) {
        reconcile(session, action)?;
    }
    Ok(())
}

/// True for actions that write to the live tree.
fn is_live(tool: &str) -> bool {
    matches!(tool, "deliver" | "undo")
}

fn reconcile(session: &Session, action: &str) -> Result<Reconciled> {
    let mut ledger = Ledger::create(&session.layout)?;
    let entries = ledger.action(action)?;
    let no_rows = || {
        let message = format!("the ledger is damaged: the unfinished action {action} has no rows");
        Failure::new(crate::error::Code::StoreCorrupt, message).subject(action)
    };
    let last = entries.last().ok_or_else(no_rows)?.clone();
    let mut resumed = RunningAction::resume(&last);
    let mut reconciled = Reconciled {
        action: action.to_owned(),
        task: last.task.clone(),
        tool: last.tool.clone(),
        outcome: "safe_to_retry",
        kept: Vec::new(),
        notes: Vec::new(),
    };
    let (planned, unfinished) = unfinished(&entries)?;
    resumed.reconcile(&mut ledger)?;
    match unfinished {
        None => {
            let text = "it was cut off before it changed anything".to_owned();
            resumed.safe_to_retry(&mut ledger, &Record::Done { text })?;
        }
        Some(unfinished) => {
            finish(session, &mut ledger, &mut resumed, planned, &unfinished, &mut reconciled)?
        }
    }
    Ok(reconciled)
}

/// What the ledger says of a delivery that did not end; `None` where it had not planned anything.
fn unfinished(entries: &[Entry]) -> Result<(Option<Planned>, Option<Unfinished>)> {
    let (mut planned, mut staged, mut taking_back): (Option<Planned>, _, _) = (None, None, false);
    for entry in entries.iter().filter(|entry| entry.result.get("record").is_some()) {
        let record: Record = serde_json::from_value(entry.result.clone()).map_err(|e| {
            Failure::new(
                crate::error::Code::StoreCorrupt,
                format!("row {} holds a record that cannot be read: {e}", entry.seq),
            )
        })?;
        match record {
            Record::Planned(found) => planned = Some(*found),
            Record::Staged(found) => staged = Some(*found),
            Record::TakingBack | Record::TakenBack { .. } => taking_back = true,
            _ => {}
        }
    }
    let unfinished = planned.as_ref().map(|planned| Unfinished {
        plan: planned.plan.clone(),
        staged,
        taking_back,
        outcome: if planned.undoes { Outcome::Reverted } else { Outcome::Applied },
    });
    Ok((planned, unfinished))
}

fn finish(
    session: &Session,
    ledger: &mut Ledger,
    action: &mut RunningAction,
    planned: Option<Planned>,
    unfinished: &Unfinished,
    reconciled: &mut Reconciled,
) -> Result<()> {
    let blobs = session.blobs();
    let keeper = Keeper { put: &|bytes| blobs.put(bytes), get: &|digest| blobs.get(digest) };
    let facts = Facts { head: None, evidence: Vec::new(), undoes: false };
    let mut journal = LedgerJournal { ledger, action, planned, facts, open: true };
    match run(unfinished, &mut journal, keeper)? {
        Recovered::Completed { receipt, later } => {
            reconciled.outcome = "completed";
            reconciled.kept = later;
            reconciled.notes = receipt.sentences();
        }
        Recovered::TakenBack { later, notes, because } => {
            reconciled.outcome = "taken_back";
            reconciled.notes = notes
                .iter()
                .flat_map(|(path, notes)| notes.iter().map(move |note| note.sentence(path)))
                .collect();
            reconciled.notes.extend(because.map(|failure| failure.message().to_owned()));
            reconciled.kept.clone_from(&later);
            action.safe_to_retry(ledger, &Record::TakenBack { later })?;
        }
    }
    Ok(())
}

impl Recovery {
    /// As text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = format!("the ledger is whole: {} rows\n", self.rows);
        if self.actions.is_empty() {
            out.push_str("nothing was left unfinished\n");
        }
        for action in &self.actions {
            let task = action.task.as_deref().unwrap_or("-");
            out.push_str(&format!(
                "{} of task {task} ({}): {}\n",
                action.tool,
                action.action,
                action.outcome.replace('_', " ")
            ));
            for path in &action.kept {
                out.push_str(&format!("  your later edit of {path} was kept\n"));
            }
            for note in &action.notes {
                out.push_str(&format!("  {note}\n"));
            }
        }
        out
    }
}
