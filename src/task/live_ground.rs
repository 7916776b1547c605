//! A candidate laid over the live tree, in our own objects: what verifiers run on that have to show it there
//! before anything is written.
//!
//! It is judged by what HEAD of the live tree has of policy and verifiers. What the keys of evidence do not
//! tell apart from the candidate by itself needs no run.

use super::held::TaskWrite;
use super::newer_rules::read_head;
use super::observation::{Judged, take_observation};
use super::terms::read_terms;
use crate::domain::change::patch::{Candidate, Change};
use crate::domain::contract::Kind;
use crate::domain::ledger::record::{BaseState, Opened};
use crate::domain::proof::evidence::{Observation, Observed};
use crate::domain::value::digest::{FileState, ObjectId};
use crate::error::{Code, Failure, Result};
use crate::git::limits::{CandidateLimits, find_violations};
use crate::git::live_base::capture_live;
use crate::git::private_index::PrivateIndex;
use crate::git::{Quarantine, Repository};

/// The task as it would be with the live tree as its base.
#[derive(Debug)]
pub struct LiveGround {
    pub opened: Opened,
    pub candidate: Candidate,
    /// The keys that records must have.
    pub observation: Observation,
}

impl LiveGround {
    /// What verifiers are given of it.
    pub fn judged(&self) -> Judged<'_> {
        Judged { opened: &self.opened, candidate: &self.candidate }
    }

    /// True where a row is shown by another key than by itself: the live tree has other inputs or judges.
    pub fn is_apart(&self, row: &str, by_itself: &Observation) -> bool {
        let key = |of: &Observation| {
            let own = |observed: &&Observed| observed.clause.id == row;
            of.rows.iter().find(own).and_then(|observed| observed.key.clone())
        };
        key(&self.observation) != key(by_itself)
    }
}

/// Lays the last candidate over the live tree as it is now, uncommitted and untracked work included. The
/// caller holds the delivery lock: what a delivery under way leaves for a moment is no work of the user's.
pub fn lay_on_live_tree(task: &TaskWrite<'_>) -> Result<LiveGround> {
    let session = task.session;
    let (opened, candidate) = (task.view.opened_terms()?, &task.view.last_candidate()?.value);
    let home = session.live_repository(opened)?;
    let no_commit = || Failure::new(Code::NotFound, "the live tree has no commit any more");
    let head = read_head(&home)?.ok_or_else(no_commit)?;
    let quarantine = session.quarantine(&task.view.id);
    let live = capture_live(&home, &quarantine)?;
    let (before, after) = lay_changes(&home, &quarantine, &live, &candidate.changes)?;
    let base = BaseState { tree: before.clone(), live: true, ..head };
    let terms = read_terms(session, &opened.contract, base.commit_tree())?;
    let opened = Opened { base, ..terms.apply(opened.clone()) };
    let limits = CandidateLimits {
        allowed: &|path| opened.effective.write_allows(path),
        scope: &opened.effective.write_patterns(),
        artifact_bytes: None,
    };
    let objects = home.object_reader(Some(&quarantine))?;
    if let Some(failure) = Failure::first_of(find_violations(&objects, &before, &after, &limits)?) {
        return Err(failure);
    }
    let candidate = Candidate { base_tree: before, tree: after, ..candidate.clone() };
    let observation = take_observation(task, Judged { opened: &opened, candidate: &candidate })?;
    // That a repair mends something was shown on its base; the live tree may have it mended already.
    let observation = Observation { kind: Kind::Edit, ..observation };
    Ok(LiveGround { opened, candidate, observation })
}

/// The live tree with the old and with the new side of each change. Whether the live tree has the old one is
/// asked where it is compared, conversions considered.
fn lay_changes(
    home: &Repository,
    quarantine: &Quarantine,
    live: &ObjectId,
    changes: &[Change],
) -> Result<(ObjectId, ObjectId)> {
    let index = PrivateIndex::holding_tree(home, quarantine, live)?;
    let lay = |side: fn(&Change) -> &Option<FileState>| -> Result<ObjectId> {
        let entry =
            |change: &Change| (change.path.clone(), side(change).as_ref().map(FileState::tree_object));
        index.update_entries(&changes.iter().map(entry).collect::<Vec<_>>())?;
        index.write_tree()
    };
    Ok((lay(|change| &change.old)?, lay(|change| &change.new)?))
}
