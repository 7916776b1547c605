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
use crate::error::clipped;
use serde::{Deserialize, Serialize};

/// The most bytes that are kept of where an answer's content came from: a pattern is the worker's words.
const LONGEST_ORIGIN: usize = 1024;

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

impl Called {
    /// With what the worker wrote as `kept` leaves it. Only then it is clipped: what is left of a secret that
    /// was cut off is not found.
    pub fn with_words_kept(mut self, kept: &dyn Fn(&str) -> String) -> Self {
        if let Some(origin) = &mut self.origin {
            origin.of = clipped(&kept(&origin.of), LONGEST_ORIGIN).into_owned();
        }
        match &mut self.effect {
            Some(Effect::Asked(question)) => question.text = kept(&question.text),
            Some(Effect::Proposed(proposal)) => proposal.reason = kept(&proposal.reason),
            Some(Effect::Noted(finding)) => finding.text = kept(&finding.text),
            Some(Effect::Patched { .. }) | None => {}
        }
        self
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::worker::finding::Kind;
    use serde_json::Map;

    #[test]
    fn every_word_of_a_worker_is_kept_as_it_may_be() {
        let kept = |text: &str| text.replace("secret", "[…]");
        let text = || "a secret".to_owned();
        let finding = Finding { kind: Kind::Finding, text: text(), refs: Vec::new() };
        let proposal = Proposal { change: Map::new(), reason: text(), version: 1 };
        for effect in
            [Effect::Asked(Question { text: text() }), Effect::Proposed(proposal), Effect::Noted(finding)]
        {
            let long = format!("secret{}", "x".repeat(LONGEST_ORIGIN));
            let called = Called {
                worker: "w".to_owned(),
                result: Sha256::of(b""),
                milliseconds: 0,
                origin: Some(Origin::new("search", long)),
                seen: Vec::new(),
                effect: Some(effect),
            };
            let told = serde_json::to_string(&called.with_words_kept(&kept)).expect("a record");
            assert!(told.contains("a […]") && told.contains("[…]xxx"), "{told}");
            assert!(!told.contains("secret") && told.len() < LONGEST_ORIGIN + 600, "{told}");
        }
    }
}
