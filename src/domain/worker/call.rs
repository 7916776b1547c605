//! Calls of a worker's tools, as the ledger has them: what was asked for and charged, and what came of it.
//!
//! The arguments themselves are not kept, only their digest: they are the worker's words and may hold
//! anything.

use crate::domain::change::patch::Change;
use crate::domain::contract::amendment::Proposal;
use crate::domain::value::digest::{ObjectId, Sha256};
use crate::domain::value::outside::Origin;
use crate::domain::value::repo_path::RepoPath;
use crate::domain::worker::finding::Finding;
use crate::domain::worker::inquiry::Question;
use serde::{Deserialize, Serialize};

/// A call that has arrived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrived {
    /// The connection that it came by; each server process is a worker of its own.
    pub worker: String,
    /// False where nothing of the budget was left: it is refused, and costs nothing.
    pub charged: bool,
}

/// A call that was carried out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Called {
    /// The connection that it came by.
    #[serde(default)]
    pub worker: String,
    /// Digest of the part of its answer that tells a new result from one that was given before.
    pub result: Sha256,
    /// Milliseconds that it took and that nothing else was charged for.
    pub milliseconds: u64,
    /// The origin of the answer's content; `None` where all of it is the harness's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The blobs that the worker knows of by this call; `None` for a path that is not there any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<Seen>,
    /// The effect of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
}

/// A path with the blob that a worker has read or written there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Seen {
    /// The path.
    pub path: RepoPath,
    /// Git's id of the bytes on disk.
    pub git_blob: Option<ObjectId>,
}

/// The effect of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "snake_case")]
pub enum Effect {
    /// Files of the worktree were changed.
    Patched {
        /// The changes, by raw bytes.
        changes: Vec<Change>,
    },
    /// A person was asked.
    Asked(Question),
    /// Another contract was wished for.
    Proposed(Proposal),
    /// Something was noted.
    Noted(Finding),
}
