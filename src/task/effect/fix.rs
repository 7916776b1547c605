//! A fix: what verifiers made of a tree that was looked at without a task, written to the user's files, and
//! to the index where that is what was looked at.
//!
//! It goes the way of a delivery: compared, planned, in the ledger before the first byte, everything or
//! nothing. What the user has edited beside it stays: it is merged where both leave each other's lines alone,
//! and else nothing is written. It belongs to no task, so that the delivery lock is all that it needs.

use crate::domain::change::patch::{Change, manifest_sha256};
use crate::domain::delivery::receipt::Outcome;
use crate::domain::delivery::{
    Clearance, Conflict, IndexRule, IndexState, IndexStep, Reason, plan_delivery, refuse_delivery,
};
use crate::domain::ledger::action::FIX;
use crate::domain::value::digest::{FileState, ObjectId, TreeObject};
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Code, Failure, Result};
use crate::git::apply::{self, Delivery};
use crate::git::keep::{self, KeptRef};
use crate::git::live::{self, LiveTerms, Settings};
use crate::git::merge::{self, Labels, MergeConflict};
use crate::git::private_index::PrivateIndex;
use crate::git::{Quarantine, tree};
use crate::store::Ledger;
use crate::store::lock::LockGuard;
use crate::task::Session;
use crate::task::action::{ActionOrigin, RunningAction};
use crate::task::journal::{DeliveryFacts, LedgerJournal, WriteEnd};
use crate::task::recover;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};

/// A change of a tree that lies in the user's index or files.
#[derive(Debug, Clone, Copy)]
pub struct TreeFix<'a> {
    /// Where the objects lie, as a task's would.
    pub room: &'a str,
    /// The tree whose attributes say which filter drivers may run.
    pub drivers: &'a ObjectId,
    /// The tree that was looked at.
    pub before: &'a ObjectId,
    pub after: &'a ObjectId,
    /// What differs between the two.
    pub changes: &'a [Change],
    /// [`IndexRule::Follows`] where the tree is the index's.
    pub index: IndexRule,
    /// `sha256:…` of the evidence of what it leads to.
    pub evidence: &'a [String],
}

/// A fix that was written.
#[derive(Debug)]
pub struct WrittenFix {
    pub action: String,
    pub paths: Vec<(RepoPath, Outcome)>,
}

/// Writes it. All conflicts are in the failure, and nothing was written then.
pub fn carry_out(session: &Session, fix: TreeFix<'_>) -> Result<WrittenFix> {
    let delivery = LockGuard::acquire(&session.layout.delivery_lock())?;
    recover::before_delivering(session, fix.room, &delivery)?;
    let repository = &session.repository;
    let quarantine = session.quarantine(fix.room);
    let head = repository.resolve_revision("HEAD", "commit")?;
    if fix.index == IndexRule::Follows {
        // The index must name no object that only we have.
        keep::copy_into_repository(
            repository,
            &quarantine,
            fix.room,
            KeptRef::Last,
            fix.after,
            head.as_ref(),
        )?;
    }
    let params =
        json!({ "before": fix.before, "after": fix.after, "manifestSha256": manifest_sha256(fix.changes) });
    let channel = ActionOrigin { origin: &session.origin, secrets: session.secrets() };
    let mut action = RunningAction::new(session.actor, None, FIX, &params, Value::Null, channel);
    let mut ledger = Ledger::create(&session.layout)?;
    action.dispatch(&mut ledger)?;
    let facts = DeliveryFacts { head, evidence: fix.evidence.to_vec(), undoes: false };
    let end = WriteEnd::Delivery { facts, planned: None };
    let mut journal = LedgerJournal { ledger: &mut ledger, action: &mut action, end, open: false };
    let written =
        write(session, &quarantine, fix, &mut journal).map_err(|failure| journal.end_failed(failure));
    if fix.index == IndexRule::Follows {
        keep::drop_refs(repository, fix.room)?;
    }
    Ok(WrittenFix { paths: written?, action: action.id().to_owned() })
}

fn write(
    session: &Session,
    quarantine: &Quarantine,
    fix: TreeFix<'_>,
    journal: &mut LedgerJournal<'_>,
) -> Result<Vec<(RepoPath, Outcome)>> {
    let repository = &session.repository;
    let terms = LiveTerms {
        repository,
        quarantine: Some(quarantine),
        top: repository.top()?,
        changes: fix.changes,
        before_tree: fix.before,
        after_tree: fix.after,
        drivers: fix.drivers,
        former: None,
        settings: Settings::read_settings(repository)?,
    };
    let changes = beside_edits(&terms, quarantine, fix)?;
    let terms = LiveTerms { changes: &changes, ..terms };
    let survey = live::survey_paths(&terms)?;
    let looked_at: HashMap<&RepoPath, &Change> = fix.changes.iter().map(|c| (&c.path, c)).collect();
    let expected = changes.iter().zip(&survey.facts).map(|(change, fact)| match fix.index {
        IndexRule::Follows => {
            IndexState::from_tree_state(looked_at.get(&change.path).and_then(|c| c.old.as_ref()))
        }
        IndexRule::Stays => fact.index.clone(),
    });
    let expected: Vec<IndexState> = expected.collect();
    let plan = plan_delivery(&changes, &survey.facts, IndexRule::Stays, &expected)
        .map_err(|conflicts| refused(&conflicts))?;
    let steps = match fix.index {
        IndexRule::Follows => fix.changes.iter().map(index_step).collect(),
        IndexRule::Stays => Vec::new(),
    };
    let plan = plan.with_index_steps(steps);
    let materials = live::prepare_materials(&terms, survey, &plan)?;
    let id = journal.action.id().to_owned();
    let delivery = Delivery { id: &id, top: terms.top, outcome: Outcome::Applied, repository };
    let cleared = plan.clear_with(&Clearance::for_an_asked_fix(manifest_sha256(&changes)))?;
    let receipt = apply::execute_plan(cleared, materials, delivery, journal, &session.blobs())
        .map_err(with_next_step)?;
    Ok(receipt.paths.into_iter().map(|path| (path.change.path, path.outcome)).collect())
}

fn index_step(change: &Change) -> IndexStep {
    IndexStep {
        path: change.path.clone(),
        before: IndexState::from_tree_state(change.old.as_ref()),
        after: IndexState::from_tree_state(change.new.as_ref()),
    }
}

/// The change of the files: from what lies there, with the edits that were not looked at, to the fix with the
/// same edits.
fn beside_edits(terms: &LiveTerms<'_>, quarantine: &Quarantine, fix: TreeFix<'_>) -> Result<Vec<Change>> {
    let survey = live::survey_paths(terms)?;
    let sides =
        |change: &Change| [&change.old, &change.new].map(|side| side.as_ref().map(FileState::tree_object));
    let edited: HashSet<&RepoPath> = fix
        .changes
        .iter()
        .zip(&survey.facts)
        .filter(|(change, fact)| !sides(change).contains(&fact.tree_object()))
        .map(|(change, _)| &change.path)
        .collect();
    if edited.is_empty() {
        return Ok(fix.changes.to_vec());
    }
    let found = live::store_found(terms, &survey, fix.before, &edited)?;
    let index = PrivateIndex::holding_tree(terms.repository, quarantine, fix.before)?;
    index.update_entries(&found)?;
    let lies = index.write_tree()?;
    let of_edited: Vec<Change> =
        fix.changes.iter().filter(|change| edited.contains(&change.path)).cloned().collect();
    let labels = Labels { theirs: "yours", ours: "fix" };
    let merged = merge::carry_over(&index, fix.before, &of_edited, &lies, labels)?;
    if !merged.conflicts.is_empty() {
        let conflicts: Vec<Conflict> =
            merged.conflicts.into_iter().map(|conflict| same_lines(conflict, fix.changes)).collect();
        return Err(refused(&conflicts));
    }
    let objects = index.object_reader()?;
    let between = tree::changes_between(&objects, &lies, &merged.tree)?;
    let mut by_path: HashMap<RepoPath, Change> =
        between.into_iter().map(|change| (change.path.clone(), change)).collect();
    // Where nothing is left to do in a file, only its entry changes.
    let merged = fix.changes.iter().filter_map(|change| match edited.contains(&change.path) {
        true => by_path.remove(&change.path),
        false => Some(change.clone()),
    });
    Ok(merged.collect())
}

/// The user and the fix changed the same lines, or what they made cannot be merged.
fn same_lines(conflict: MergeConflict, changes: &[Change]) -> Conflict {
    let change = changes.iter().find(|change| change.path == conflict.path);
    let expected: Option<TreeObject> =
        change.and_then(|change| change.old.as_ref()).map(FileState::tree_object);
    let reason = if conflict.theirs.is_none() { Reason::Missing } else { Reason::Edited };
    Conflict {
        path: conflict.path,
        reason,
        expected,
        actual: conflict.theirs,
        mergeable: false,
        partner: None,
    }
}

fn refused(conflicts: &[Conflict]) -> Failure {
    with_next_step(refuse_delivery(conflicts))
}

/// What a conflict's reader does next.
fn with_next_step(failure: Failure) -> Failure {
    if failure.code() != Code::DeliveryConflict || failure.has_remedy() {
        return failure;
    }
    let text = "Your edits and the fix touch the same. Stage what you edited there, or take it back, then check again.";
    failure.remedy(text, ["git", "status"])
}
