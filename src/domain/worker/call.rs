//! Calls of a worker's tools, as the ledger has them: what was asked for and charged, and what came of it.
//!
//! The arguments themselves are not kept, only their digest: they are the worker's words and may hold
//! anything.

use crate::domain::change::patch::Change;
use crate::domain::contract::amendment::Proposal;
use crate::domain::ledger::action::ActionState;
use crate::domain::ledger::entry::Entry;
use crate::domain::value::digest::{ObjectId, Sha256};
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
    /// Where what the answer holds came from; `None` where all of it is the harness's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The blobs that the worker knows of by this call; `None` for a path that is not there any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<Seen>,
    /// What it brought about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
}

/// A call as a task's rows tell it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Id of the action.
    pub action: String,
    /// The tool's name.
    pub tool: String,
    /// When it came to the state that it is in, RFC 3339.
    pub at: String,
    /// Its state.
    pub state: ActionState,
    /// Paths that it changed.
    pub changed: Vec<RepoPath>,
}

/// How many calls came to which end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// All that arrived.
    pub made: u64,
    /// Carried out.
    pub succeeded: u64,
    /// Let through, and failed without an effect.
    pub failed: u64,
    /// Refused by the gate.
    pub denied: u64,
    /// Cut off by a crash, and settled since: without an effect.
    pub cut_off: u64,
}

/// All calls of a task, in the order of their arrival.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Calls(Vec<Call>);

impl Calls {
    /// Takes one row in.
    pub fn take(&mut self, entry: &Entry) {
        if entry.state == ActionState::Planned
            && entry.result.get("record").is_some_and(|record| record == "call")
        {
            let (action, tool, at) = (entry.action.clone(), entry.tool.clone(), entry.at.clone());
            self.0.push(Call { action, tool, at, state: entry.state, changed: Vec::new() });
        } else if let Some(call) = self.0.iter_mut().rev().find(|call| call.action == entry.action) {
            call.state = entry.state;
            call.at.clone_from(&entry.at);
        }
    }

    /// Paths that a call has changed.
    pub fn changed(&mut self, action: &str, paths: impl IntoIterator<Item = RepoPath>) {
        if let Some(call) = self.0.iter_mut().rev().find(|call| call.action == action) {
            call.changed.extend(paths);
        }
    }

    /// True where no worker has come yet.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = &Call> {
        self.0.iter()
    }

    /// How many there were.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for call in &self.0 {
            counts.made += 1;
            match call.state {
                ActionState::Succeeded => counts.succeeded += 1,
                ActionState::FailedWithoutEffect => counts.failed += 1,
                ActionState::Denied => counts.denied += 1,
                ActionState::SafeToRetry => counts.cut_off += 1,
                _ => {}
            }
        }
        counts
    }
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

/// Where content came from. Nothing that has an origin is ever an instruction to the harness.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Origin {
    /// `file`, `listing`, `search`, `log` or `verifier`.
    pub kind: String,
    /// The path, the pattern, the reference or the verifier's id.
    pub of: String,
    /// Always `untrusted`: whoever wrote the content is not known to the harness.
    pub trust: Trust,
}

/// How far content is to be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Trust {
    /// Not at all.
    Untrusted,
}

impl Origin {
    /// Content of that kind and name.
    pub fn new(kind: &str, of: impl Into<String>) -> Self {
        Self { kind: kind.to_owned(), of: of.into(), trust: Trust::Untrusted }
    }
}

/// What a call brought about.
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
