//! A row of the ledger, and the hash that chains it to the row before.

use crate::domain::ledger::action::{ActionState, Actor};
use crate::domain::value::digest::{Sha256, canonical_json};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The content of a row, without its place in the chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EntryBody {
    /// The task, where the action belongs to one.
    pub task: Option<String>,
    pub actor: Actor,
    /// Id of the action; several rows share it.
    pub action: String,
    /// The tool's or the command's name.
    pub tool: String,
    /// The state that the action reached.
    pub state: ActionState,
    /// Digest of the canonical arguments.
    pub params_sha256: Sha256,
    /// The ground on which it was allowed: contract version and digest, policy digest.
    pub basis: Value,
    /// The channel it came by.
    pub origin: String,
    pub result: Value,
}

/// A row as `log` shows it. It is read like its body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Position, from 1 without gaps.
    pub seq: i64,
    pub at: String,
    #[serde(flatten)]
    pub body: EntryBody,
    /// Hash of the row before; zeros for the first.
    pub prev: String,
    pub hash: Sha256,
}

impl std::ops::Deref for Entry {
    type Target = EntryBody;

    fn deref(&self) -> &EntryBody {
        &self.body
    }
}

impl Entry {
    /// The hash of the row: sha256 over the canonical JSON of all its fields but the hash.
    pub fn computed_hash(&self) -> Sha256 {
        let mut value = serde_json::to_value(self).unwrap_or(Value::Null);
        if let Some(object) = value.as_object_mut() {
            object.remove("hash");
        }
        Sha256::of(&canonical_json(&value))
    }
}

/// A record with the action it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded<T> {
    /// Position of the row in the ledger.
    pub seq: i64,
    pub action: String,
    /// When, RFC 3339 in UTC.
    pub at: String,
    pub value: T,
}

impl<T> Recorded<T> {
    /// With the place of the row that it stands in.
    pub fn new(entry: &Entry, value: T) -> Self {
        Self { seq: entry.seq, action: entry.action.clone(), at: entry.at.clone(), value }
    }
}
