//! A capture of the task's worktree, and what becomes of it: a candidate, bound to the blobs that it was made
//! against, and kept.

use super::Session;
use super::furnish::brought_places;
use super::held::TaskWrite;
use crate::domain::change::patch::{BoundPatch, Candidate, manifest_sha256};
use crate::domain::ledger::record::Opened;
use crate::domain::ledger::report::CandidateObject;
use crate::domain::value::digest::ObjectId;
use crate::error::presence::is_folder;
use crate::error::{Code, Failure, Result};
use crate::git::capture::{self, Capture};
use crate::git::keep::{self, KeptRef};
use crate::git::limits::CandidateLimits;
use crate::git::private_index::PrivateIndexEntry;
use crate::git::{Quarantine, bound};
use std::path::Path;

/// Where the candidate's versions lie that no conflict markers could show: a worker decides, then removes the
/// folder.
pub const SET_ASIDE: &str = ".tender-conflicts";

/// The worktree as it is now; refused with everything in it that is not allowed.
pub fn worktree(task: &TaskWrite<'_>, limits: CandidateLimits<'_>) -> Result<Capture> {
    let (session, id, opened) = (task.session, task.view.id.as_str(), task.view.opened_terms()?);
    let quarantine = session.quarantine(id);
    let worktree = Path::new(&opened.worktree);
    if !is_folder(worktree)? {
        return Err(Failure::new(
            Code::NotFound,
            format!("the worktree {} of task {id} is gone", worktree.display()),
        )
        .subject(opened.worktree.clone())
        .remedy(
            "Cancel the task, or submit a patch instead. A candidate that was captured is kept.",
            ["git", "tender", "cancel", id],
        ));
    }
    let last = task.view.current_candidate().map(|last| last.value.changes.as_slice()).unwrap_or_default();
    let new = last.iter().filter(|change| change.old.is_none());
    let added: Vec<PrivateIndexEntry> = new
        .filter_map(|change| Some((change.path.clone(), Some(change.new.as_ref()?.tree_object()))))
        .collect();
    capture::capture_worktree(&capture::CaptureRequest {
        repository: &session.repository,
        quarantine: &quarantine,
        worktree,
        base_tree: &opened.base.tree,
        held: &session.held(id).unwrap_or_default(),
        added: &added,
        scratch: &opened.contract.scratch,
        brought: &brought_places(session, opened)?,
        limits,
    })
}

/// A candidate as the object that it is shown as.
pub fn candidate_object(session: &Session, task: &str, candidate: &Candidate) -> CandidateObject {
    let patch = session.blobs().path(&candidate.patch.sha256);
    CandidateObject::new(task, candidate, patch.display().to_string())
}

/// Binds what was captured to the blobs that it was made against.
pub fn bind(task: &TaskWrite<'_>, opened: &Opened, captured: Capture) -> Result<Candidate> {
    let session = task.session;
    let quarantine = session.quarantine(&task.view.id);
    let base = &opened.base.tree;
    let text = bound::patch_text(&session.repository, &quarantine, base, &captured.tree)?;
    bound::verify_patch(&session.repository, &quarantine, base, &text, &captured.tree)?;
    let sha256 = session.blobs().put(&text)?;
    let artifact_bytes = artifact_bytes(session, &quarantine, &captured)?;
    Ok(Candidate {
        candidate: task.view.candidate_number(&captured.tree, base, opened.seal.version),
        contract_version: opened.seal.version,
        base_tree: base.clone(),
        tree: captured.tree,
        artifact_bytes,
        patch: BoundPatch {
            manifest_sha256: manifest_sha256(&captured.changes),
            sha256,
            bytes: text.len() as u64,
        },
        changes: captured.changes,
    })
}

fn artifact_bytes(session: &Session, quarantine: &Quarantine, captured: &Capture) -> Result<u64> {
    let objects = session.repository.object_reader(Some(quarantine))?;
    let new = captured.changes.iter().filter_map(|change| change.new.as_ref());
    new.map(|state| objects.read_blob(&state.git_blob).map(|bytes| bytes.len() as u64)).sum()
}

/// Copies the candidate's tree into the repository, so that the task's last state survives whatever happens
/// to its private files.
pub fn keep_last(
    session: &Session,
    task: &str,
    opened: &Opened,
    quarantine: &Quarantine,
    tree: &ObjectId,
) -> Result<()> {
    let (repository, commit) = (&session.repository, Some(&opened.base.commit));
    let kept = keep::copy_into_repository(repository, quarantine, task, KeptRef::Last, tree, commit)?;
    if let Some(device) = kept.synced {
        session.blobs().note_synced(device);
    }
    Ok(())
}
