//! What is told of a run, mostly of one that is no pass: how it ended, the error to begin with, and where its
//! whole logs are.
//!
//! One form for all who ask: the tools of a worker, the report, the verification and a refused delivery.

use crate::domain::proof::verdict::Row;
use crate::domain::value::outside::Origin;
use crate::error::DetailKey;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The runs that the rows of a refusal rest on.
pub const RUNS: DetailKey<Vec<Run>> = DetailKey::new("runs");

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

/// Which tool's error it is, as far as its form says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The Rust compiler.
    Rustc,
    /// A Rust test, or a Rust program that panicked.
    Libtest,
    /// pytest.
    Pytest,
    /// unittest.
    Unittest,
    /// A Python program that ended with a traceback, or that cannot be read.
    Python,
    /// The TypeScript compiler.
    Tsc,
    /// Jest.
    Jest,
    /// Vitest.
    Vitest,
    /// mocha.
    Mocha,
    /// Node.js: a program that threw, or a test.
    Node,
    /// Tests that report in the Test Anything Protocol.
    Tap,
    /// The Go compiler.
    Go,
    /// A Go test, or a Go program that panicked.
    GoTest,
    /// A compiler that writes `path:row:column: error:`, such as gcc and clang.
    Compiler,
    /// A linker.
    Linker,
    /// A linter, such as ESLint, Ruff and flake8.
    Linter,
    /// A report in JSON.
    Json,
    /// A line that calls itself an error.
    Plain,
    /// No error was recognised: the last lines.
    Tail,
}

/// An error and where it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FirstError {
    /// Which tool's error it is.
    pub kind: Kind,
    /// A few lines of it, without colours.
    pub text: String,
    /// The line of the log that it begins at; 1 is the first.
    pub line: u32,
    /// The source file, as the tool names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The row in it; 1 is the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row: Option<u32>,
    /// The column in it; 1 is the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
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
