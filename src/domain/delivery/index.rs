//! What the index says of a path, and how a delivery changes it together with the files.

use crate::domain::value::digest::{FileState, Mode, ObjectId};
use crate::domain::value::repo_path::RepoPath;
use serde::{Deserialize, Serialize};

/// The index entry of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "state")]
pub enum IndexState {
    Absent,
    #[serde(rename_all = "camelCase")]
    Entry {
        mode: Mode,
        git_blob: ObjectId,
    },
    /// `git add -N`.
    IntentToAdd,
    Unmerged,
}

impl IndexState {
    /// The entry of an index that has the file as a tree has it.
    pub fn from_tree_state(state: Option<&FileState>) -> Self {
        state.map_or(Self::Absent, |s| Self::Entry { mode: s.mode, git_blob: s.git_blob.clone() })
    }
}

/// Says if a delivery changes the index together with the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexRule {
    /// The index stays as it is, and may be as it was when the base was fixed.
    Stays,
    /// Each touched entry goes from preimage to postimage with its file, and so has to be one of the two.
    Follows,
}

/// An index entry that changes together with its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IndexStep {
    pub path: RepoPath,
    pub before: IndexState,
    pub after: IndexState,
}

impl IndexStep {
    /// The step that takes this one back.
    pub fn reverse_step(&self) -> Self {
        Self { path: self.path.clone(), before: self.after.clone(), after: self.before.clone() }
    }
}
