//! The move of a task's worktree to another base: all of it or nothing, and what was cut off is completed by
//! recovery.

use crate::domain::delivery::ClearedPlan;
use crate::domain::delivery::receipt::Outcome;
use crate::domain::ledger::objects::RecoveryOutcome;
use crate::domain::ledger::record::{Rebased, Record};
use crate::error::Result;
use crate::error::presence::is_folder;
use crate::git::Quarantine;
use crate::git::advance::Move;
use crate::git::apply::recover::{Recovered, UnfinishedDelivery};
use crate::git::apply::{self, Delivery};
use crate::git::keep::{self, KeptRef};
use crate::git::live::Materials;
use crate::task::Session;
use crate::task::action::RunningAction;
use crate::task::candidate::keep_last;
use crate::task::effect::CutOff;
use crate::task::held::TaskWrite;
use crate::task::journal::{LedgerJournal, WriteEnd};
use std::path::Path;

/// A move that was looked at from all sides, before anything is touched.
pub type Ready = (ClearedPlan, Materials);

/// Everything of a move that can fail without a trace.
pub fn plan(session: &Session, rebased: &Rebased) -> Result<Ready> {
    let quarantine = session.quarantine(&rebased.opened.contract.task_id);
    let movement = movement(session, rebased, &quarantine);
    let changes = movement.differing_changes()?;
    movement.prepare_move(&changes)
}

/// Moves the worktree under an action that was dispatched, and ends that.
pub fn carry_out(
    task: &mut TaskWrite<'_>,
    mut action: RunningAction,
    rebased: Rebased,
    (plan, materials): Ready,
) -> Result<()> {
    let session = task.session;
    action.note(&mut task.ledger, &Record::Rebasing(Box::new(rebased.clone())))?;
    let mut journal = LedgerJournal {
        ledger: &mut task.ledger,
        action: &mut action,
        end: WriteEnd::Note(MOVED),
        open: false,
    };
    let moved = keep_states(session, &rebased).and_then(|()| {
        let delivery = Delivery {
            id: &rebased.opened.contract.task_id,
            top: Path::new(&rebased.opened.worktree),
            outcome: Outcome::Applied,
            repository: &session.repository,
        };
        apply::execute_plan(plan, materials, delivery, &mut journal, &session.blobs())
    });
    if let Err(failure) = moved {
        return Err(journal.end_failed(failure));
    }
    settle_in(session, &rebased)?;
    task.finish(action, &Record::Rebased(Box::new(rebased)))
}

/// A move that did not end.
#[derive(Debug)]
pub struct UnfinishedMove {
    /// What it was about to do.
    pub rebased: Box<Rebased>,
    /// How far it came; `None` where no file was written yet.
    pub write: Option<UnfinishedDelivery>,
}

/// Goes on with a rebase that was cut off: to its end where the worktree can be moved, back where it cannot.
pub fn resume(cut: &mut CutOff<'_>, unfinished: UnfinishedMove) -> Result<()> {
    let UnfinishedMove { rebased, write } = unfinished;
    cut.action.reconcile(&mut cut.ledger)?;
    let moved = match write {
        Some(write) if is_folder(&write.plan.top)? => {
            let end = WriteEnd::Note(MOVED);
            let mut journal =
                LedgerJournal { ledger: &mut cut.ledger, action: &mut cut.action, end, open: true };
            let environment = cut.session.repository.environment();
            let blobs = cut.session.blobs();
            let recovered = apply::recover::recover_delivery(environment, &write, &mut journal, &blobs)?;
            matches!(recovered, Recovered::Completed { .. })
        }
        _ => false,
    };
    if !moved {
        return cut.end_untouched("it was cut off; the worktree is as it was before");
    }
    settle_in(cut.session, &rebased)?;
    cut.action.succeed(&mut cut.ledger, &Record::Rebased(rebased))?;
    cut.found.outcome = RecoveryOutcome::Completed;
    Ok(())
}

/// What the ledger says at the end of a move.
const MOVED: &str = "the worktree was moved";

fn movement<'a>(session: &'a Session, rebased: &'a Rebased, quarantine: &'a Quarantine) -> Move<'a> {
    Move {
        repository: &session.repository,
        quarantine,
        worktree: Path::new(&rebased.opened.worktree),
        from: &rebased.from,
        to: &rebased.to,
    }
}

/// The new base and the new state, in the repository's own objects.
fn keep_states(session: &Session, rebased: &Rebased) -> Result<()> {
    let opened = &rebased.opened;
    let id = &opened.contract.task_id;
    let quarantine = session.quarantine(id);
    if opened.base.tree != opened.base.commit_tree {
        let commit = Some(&opened.base.commit);
        keep::copy_into_repository(
            &session.repository,
            &quarantine,
            id,
            KeptRef::Base,
            &opened.base.tree,
            commit,
        )?;
    }
    keep_last(session, id, opened, &quarantine, &rebased.to)
}

/// After the move: git's view from inside, and what is known of the files that we wrote.
fn settle_in(session: &Session, rebased: &Rebased) -> Result<()> {
    let opened = &rebased.opened;
    let id = &opened.contract.task_id;
    let quarantine = session.quarantine(id);
    let movement = movement(session, rebased, &quarantine);
    movement.tell_git(&opened.base.commit, &opened.base.tree);
    let Some(mut held) = session.held(id) else { return Ok(()) };
    for path in movement.touched_paths()? {
        // The next capture reads it.
        held.0.remove(&path);
    }
    session.keep_held(id, &held)
}
