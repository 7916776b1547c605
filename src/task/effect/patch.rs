//! A worker's `apply_patch`, as an action: decided first, then written by the careful writer with every step
//! of it in the ledger, then read again. Cut off anywhere, recovery finds the steps and brings it to its end
//! or back.
//!
//! It needs its own task's lock and no other: nobody but the task has anything in that worktree.

use crate::domain::change::patch::Change;
use crate::domain::delivery::receipt::Outcome;
use crate::domain::ledger::objects::RecoveryOutcome;
use crate::domain::ledger::record::Record;
use crate::domain::value::digest::{ObjectId, Sha256};
use crate::domain::value::repo_path::RepoPath;
use crate::domain::worker::call::{Called, Effect, Seen};
use crate::error::presence::is_folder;
use crate::error::{Code, Failure, Result};
use crate::git::Repository;
use crate::git::apply::recover::{Recovered, UnfinishedDelivery};
use crate::git::apply::{self, Delivery};
use crate::git::edit::{Worktree, as_version_conflict};
use crate::store::Ledger;
use crate::task::Session;
use crate::task::action::RunningAction;
use crate::task::effect::CutOff;
use crate::task::journal::{LedgerJournal, WriteEnd};
use crate::tools::apply_patch::{self, ApplyPatchAnswer, ApplyPatchArguments, PatchGround};
use std::path::Path;

/// What the ledger says of an edit that took place.
const WRITTEN: &str = "the patch was applied";

/// What a worker may touch, and what it has seen.
#[derive(Clone, Copy)]
pub struct Allowed<'a> {
    /// Refuses paths that may not be read.
    pub read: &'a dyn Fn(&RepoPath) -> Result<()>,
    /// Refuses paths that may not be written.
    pub write: &'a dyn Fn(&RepoPath) -> Result<()>,
    /// The blob that this worker last read or wrote at a path.
    pub known: &'a dyn Fn(&RepoPath) -> Option<ObjectId>,
}

impl<'a> Allowed<'a> {
    /// What a call works on.
    pub fn ground(self, repository: &'a Repository, worktree: &'a Path) -> PatchGround<'a> {
        PatchGround { repository, worktree, may_read: self.read, may_write: self.write, known: self.known }
    }
}

impl std::fmt::Debug for Allowed<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Allowed")
    }
}

/// Why a patch was not applied; the action still has to be ended.
#[derive(Debug)]
pub enum Unapplied {
    Unchanged(Failure),
    /// It cannot be said; recovery has to look.
    Unknown(Failure),
}

/// Applies a patch in a task's worktree, under an action that was dispatched. All of it or nothing; what
/// comes back was read again.
pub fn carry_out(
    session: &Session,
    (ledger, action): (&mut Ledger, &mut RunningAction),
    worktree: &Path,
    arguments: &ApplyPatchArguments,
    allowed: Allowed<'_>,
) -> std::result::Result<ApplyPatchAnswer, Unapplied> {
    let ground = allowed.ground(&session.repository, worktree);
    let ready = apply_patch::prepare_edit(arguments, ground).map_err(Unapplied::Unchanged)?;
    let id = action.id().to_owned();
    let delivery = Delivery {
        id: &id,
        top: ground.worktree,
        outcome: Outcome::Applied,
        repository: &session.repository,
    };
    let mut journal = LedgerJournal { ledger, action, end: WriteEnd::Note(WRITTEN), open: false };
    let (plan, blobs) = (ready.cleared, session.blobs());
    if let Err(failure) = apply::execute_plan(plan, ready.materials, delivery, &mut journal, &blobs) {
        return Err(if journal.open {
            Unapplied::Unknown(failure)
        } else {
            Unapplied::Unchanged(as_version_conflict(failure))
        });
    }
    // What somebody else did to it meanwhile is no success, and no failure without effect either.
    let confirmed = Worktree::open_worktree(&session.repository, ground.worktree)
        .and_then(|now| now.confirm_written(&ready.changes));
    confirmed.map_err(|failure| Unapplied::Unknown(unconfirmed(&failure)))?;
    Ok(ApplyPatchAnswer { changes: ready.changes })
}

/// It was written, and then could not be found as it was written: whatever the reason, nobody may take it for
/// refused.
fn unconfirmed(why: &Failure) -> Failure {
    let text = format!("the patch was written, but it is not known what is there now: {}", why.message());
    Failure::new(Code::OutcomeUnknown, text)
        .subject(why.subject_text().unwrap_or_default())
        .detail("because", why)
        .advice("Read the files again before anything else is done with them.")
}

/// The blobs that whoever made the changes knows of from then on.
pub fn seen(changes: &[Change]) -> Vec<Seen> {
    let seen = |change: &Change| Seen {
        path: change.path.clone(),
        git_blob: change.new.as_ref().map(|state| state.git_blob.clone()),
    };
    changes.iter().map(seen).collect()
}

/// The record of an edit that recovery has brought to its end. Nobody knows how long it would have taken.
fn called(unfinished: &UnfinishedDelivery, worker: String) -> Record {
    let changes: Vec<Change> = unfinished.plan.steps.iter().map(|step| step.change.clone()).collect();
    Record::Called(Box::new(Called {
        worker,
        result: Sha256::of_json(&changes),
        milliseconds: 0,
        origin: None,
        seen: seen(&changes),
        effect: Some(Effect::Patched { changes }),
    }))
}

/// An edit that did not end.
#[derive(Debug)]
pub struct UnfinishedPatch {
    /// The worker that asked for it.
    pub worker: String,
    /// How far it came.
    pub write: UnfinishedDelivery,
}

/// Brings an edit that was cut off to its end, or back.
pub fn resume(cut: &mut CutOff<'_>, unfinished: UnfinishedPatch) -> Result<()> {
    let UnfinishedPatch { worker, write } = unfinished;
    if !is_folder(&write.plan.top)? {
        return cut.end_untouched("it was cut off, and the worktree is gone");
    }
    cut.action.reconcile(&mut cut.ledger)?;
    let end = WriteEnd::Note(WRITTEN);
    let mut journal = LedgerJournal { ledger: &mut cut.ledger, action: &mut cut.action, end, open: true };
    let environment = cut.session.repository.environment();
    let blobs = cut.session.blobs();
    match apply::recover::recover_delivery(environment, &write, &mut journal, &blobs)? {
        Recovered::Completed { later, .. } => {
            cut.action.succeed(&mut cut.ledger, &called(&write, worker))?;
            (cut.found.outcome, cut.found.kept) = (RecoveryOutcome::Completed, later);
        }
        Recovered::TakenBack { later, .. } => {
            cut.action.safe_to_retry(&mut cut.ledger, &Record::TakenBack { later: later.clone() })?;
            (cut.found.outcome, cut.found.kept) = (RecoveryOutcome::TakenBack, later);
        }
    }
    Ok(())
}

#[cfg(test)]
pub(in crate::task) mod tests;
