//! What is told of a run, mostly of one that is no pass: how it ended, the error to begin with, and where its
//! whole logs are.
//!
//! One form for all who ask: the tools of a worker, the report, the verification and a refused delivery.

use crate::domain::proof::verdict::Row;
use crate::domain::worker::call::Origin;
use crate::verifier::logs::FirstError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A run of a verifier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// The verifier.
    pub verifier: String,
    /// The requirement rows that rest on it.
    pub requirements: Vec<String>,
    /// How it ended, such as `exit 1`.
    pub end: String,
    /// The error to begin with, where one can be told.
    pub first_error: Option<FirstErrorIn>,
    /// What it said, at most ten.
    pub findings: Vec<Map<String, Value>>,
    /// The logs, to read with `read_file` by `ref` and `lines` or `bytes`, or with `git tender show`. Whole,
    /// unless `truncated`.
    pub logs: Vec<Log>,
    /// Where all of it came from.
    pub origin: Origin,
}

/// An error, and the log that it stands in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FirstErrorIn {
    /// The error.
    #[serde(flatten)]
    pub error: FirstError,
    /// The log's reference.
    #[serde(rename = "ref")]
    pub reference: String,
}

/// A stored log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Log {
    /// `stdout` or `stderr`.
    pub stream: String,
    /// Its reference.
    #[serde(rename = "ref")]
    pub reference: String,
    /// How many bytes are stored.
    pub bytes: u64,
    /// True where that is not all: a line in it tells how much of the middle was left out. Where `bytes` is
    /// 0, it can no longer be read.
    pub truncated: bool,
    /// How many bytes the program wrote to this stream.
    pub total_bytes: u64,
}

impl Run {
    /// True where it is the first that a row's reader should look at, and this row is the first of those that
    /// rest on it.
    pub fn is_told_at(&self, row: &Row) -> bool {
        self.requirements.first() == Some(&row.id)
    }
}
