//! The bound patch: which path goes from which state to which, and the digest that evidence binds to.

use crate::domain::value::digest::{FileState, ObjectId, Sha256};
use crate::domain::value::repo_path::RepoPath;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// The kind of a change to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Added,
    Deleted,
    /// In both, with other bytes or another mode.
    Modified,
}

/// One path of the patch: its preimage and its postimage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub path: RepoPath,
    /// Follows from which of `old` and `new` is there.
    pub status: Status,
    /// The preimage; `None` for an added path.
    pub old: Option<FileState>,
    /// The postimage; `None` for a deleted path.
    pub new: Option<FileState>,
}

impl Change {
    /// A change between two states that are not both absent.
    pub fn new(path: RepoPath, old: Option<FileState>, new: Option<FileState>) -> Self {
        let status = match (&old, &new) {
            (None, _) => Status::Added,
            (_, None) => Status::Deleted,
            _ => Status::Modified,
        };
        Self { path, status, old, new }
    }

    /// The same change backwards, as `undo` needs it.
    pub fn reverse_change(&self) -> Self {
        Self::new(self.path.clone(), self.new.clone(), self.old.clone())
    }
}

/// The digest of the manifest: sha256 over the canonical JSON of the changes sorted by path bytes.
pub fn manifest_sha256(changes: &[Change]) -> Sha256 {
    let mut sorted: Vec<&Change> = changes.iter().collect();
    sorted.sort_by(|a, b| a.path.cmp(&b.path));
    Sha256::of_json(&sorted)
}

/// The patch of a candidate. The text is kept as a blob, found by `sha256`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BoundPatch {
    /// Digest of the manifest; evidence and attestations bind to it.
    pub manifest_sha256: Sha256,
    /// Digest of the patch text.
    pub sha256: Sha256,
    /// Length of the patch text in bytes.
    pub bytes: u64,
}

/// An immutable capture of a task's state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Candidate {
    /// 1, 2, … in the order of capture.
    pub candidate: u32,
    /// Version of the contract under which it was captured.
    pub contract_version: u32,
    /// The tree it was made against.
    pub base_tree: ObjectId,
    pub tree: ObjectId,
    pub patch: BoundPatch,
    /// Bytes of all added and modified files together; what the artifact budget is charged with.
    pub artifact_bytes: u64,
    /// The manifest: sorted by path bytes.
    pub changes: Vec<Change>,
}

/// Whether each change adds a name that another one of them spells differently: one of both would be lost on
/// a file system that ignores case or the form of Unicode.
pub fn find_clashes(changes: &[Change]) -> Vec<Option<RepoPath>> {
    let mut spelled: HashMap<Vec<u8>, RepoPath> = HashMap::new();
    let clashes = |change: &Change| {
        change.new.as_ref()?;
        let mut partner = None;
        for name in change.path.ancestors().into_iter().chain([change.path.clone()]) {
            let first = spelled.entry(name.fold_key()).or_insert_with(|| name.clone());
            if *first != name {
                partner = partner.or_else(|| Some(first.clone()));
            }
        }
        partner.filter(|_| change.old.is_none())
    };
    changes.iter().map(clashes).collect()
}
