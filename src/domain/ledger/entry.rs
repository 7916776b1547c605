//! A row of the ledger, and the hash that chains it to the row before.

use crate::domain::ledger::action::{ActionState, Actor};
use crate::domain::ledger::row_json::RowJson;
use crate::domain::value::digest::{Sha256, canonical_json};
use serde::Serialize;
use serde_json::{Value, json};

/// The content of a row, without its place in the chain.
#[derive(Debug, Clone, PartialEq, Serialize)]
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
    pub basis: RowJson,
    /// The channel it came by.
    pub origin: String,
    pub result: RowJson,
}

/// How the hash of a row is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowVersion {
    /// Over the canonical JSON of all its fields but the hash.
    Canonical,
    /// Over its fields as a JSON array, basis and result as their text stands: nothing is sorted, and a long
    /// result is not taken apart, to say whether a row is as it was written.
    AsItStands,
}

impl RowVersion {
    /// The one that rows are written in.
    pub const NOW: Self = Self::AsItStands;

    /// As it is stored.
    pub fn number(self) -> i64 {
        match self {
            Self::Canonical => 1,
            Self::AsItStands => 2,
        }
    }

    pub fn from_number(number: i64) -> Option<Self> {
        [Self::Canonical, Self::AsItStands].into_iter().find(|version| version.number() == number)
    }

    /// Rows from before have no field that says so.
    fn goes_unsaid(&self) -> bool {
        *self == Self::Canonical
    }
}

impl Serialize for RowVersion {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(self.number())
    }
}

/// A row as `log` shows it. It is read like its body.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    #[serde(skip_serializing_if = "RowVersion::goes_unsaid")]
    pub version: RowVersion,
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
    /// The hash of the row, which covers everything in it but the hash.
    pub fn computed_hash(&self) -> Sha256 {
        match self.version {
            RowVersion::Canonical => self.canonical_hash(),
            RowVersion::AsItStands => self.hash_as_it_stands(),
        }
    }

    fn canonical_hash(&self) -> Sha256 {
        let mut value = serde_json::to_value(self).unwrap_or(Value::Null);
        if let Some(object) = value.as_object_mut() {
            object.remove("hash");
        }
        Sha256::of(&canonical_json(&value))
    }

    fn hash_as_it_stands(&self) -> Sha256 {
        let EntryBody { task, actor, action, tool, state, params_sha256, origin, .. } = &self.body;
        let head = json!([self.version, self.seq, self.at, task, actor, action, tool, state, params_sha256]);
        let head = head.to_string();
        let open = head.strip_suffix(']').unwrap_or(&head);
        let (origin, prev) = (json!(origin).to_string(), json!(self.prev).to_string());
        let parts =
            [open, ",", self.basis.as_str(), ",", &origin, ",", self.result.as_str(), ",", &prev, "]"];
        Sha256::of_parts(parts.map(str::as_bytes))
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
