//! Why a path cannot be delivered, and how a refused delivery says so.

use crate::domain::value::digest::TreeObject;
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Code, DetailKey, Failure};
use serde::{Deserialize, Serialize};

/// The paths that stand in the way.
pub const CONFLICTS: DetailKey<Vec<Conflict>> = DetailKey::new("conflicts");

/// Paths that somebody edited while a delivery was taken back; their edits stay.
pub const EDITED_MEANWHILE: DetailKey<Vec<RepoPath>> = DetailKey::new("editedMeanwhile");

/// The reason why a path cannot be delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The content is neither the preimage nor the postimage.
    Edited,
    Missing,
    /// Something lies where the change creates a file.
    Appeared,
    /// A file became a link, a directory or something else.
    TypeChanged,
    /// The executable bit is not the preimage's.
    ModeChanged,
    /// A directory on the way is a symbolic link.
    ParentIsLink,
    /// A directory on the way is a file.
    ParentIsFile,
    /// A sibling's name differs in case or Unicode form only.
    Collision,
    /// The index entry is not what it was, nor the preimage or the postimage.
    IndexChanged,
    /// The index holds a merge conflict.
    Unmerged,
    /// The index promises the file (`git add -N`).
    IntentToAdd,
    /// The path is outside the sparse checkout.
    OutsideSparse,
    /// Another repository lies in between.
    NestedRepository,
    Gitlink,
    /// The file's owner could not be kept.
    Owner,
    /// Somebody has the file open for writing.
    OpenForWriting,
}

/// One path that is not what the change was made for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Conflict {
    pub path: RepoPath,
    pub reason: Reason,
    /// The preimage; `None` where the change creates the path.
    pub expected: Option<TreeObject>,
    /// The object that is there, as git would store it; `None` where git could store none.
    pub actual: Option<TreeObject>,
    /// True where a three-way merge would be clean.
    pub mergeable: bool,
    /// What the path collides with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partner: Option<RepoPath>,
}

impl Conflict {
    /// An index entry that is not what the delivery was made for; the file itself is no matter.
    pub fn of_the_index(path: RepoPath) -> Self {
        Self {
            path,
            reason: Reason::IndexChanged,
            expected: None,
            actual: None,
            mergeable: false,
            partner: None,
        }
    }
}

/// The failure that a refused delivery ends with; nothing was written.
pub fn refuse_delivery(conflicts: &[Conflict]) -> Failure {
    stopped_by_conflicts("nothing was written", conflicts)
}

/// The same where it had begun: what became of it, and why it did not go on.
pub fn stopped_by_conflicts(what_became: &str, conflicts: &[Conflict]) -> Failure {
    let first = conflicts.first().map(|c| c.path.to_string()).unwrap_or_default();
    let others = match conflicts.len() {
        0 | 1 => String::new(),
        n => format!(" and {} more", n - 1),
    };
    let message =
        format!("{what_became}: the live tree is not what the change was made for at {first}{others}");
    Failure::new(Code::DeliveryConflict, message).subject(first).with_detail(&CONFLICTS, conflicts)
}
