//! The contract: what a task may do and what must be shown.

use super::scope::Scope;
use serde::{Deserialize, Serialize};

/// What kind of work it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A change.
    Edit,
    /// A change that must make a failing case pass.
    Repair,
    /// Findings, no change.
    Explore,
}

/// What the task starts from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Base {
    /// The commit that a revision names; `HEAD` unless said.
    Revision(String),
    /// HEAD plus the user's uncommitted work.
    Live,
}

/// One observable clause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Requirement {
    /// Unique in the contract.
    pub id: String,
    /// What must hold, for people; its digest is part of the evidence key.
    pub text: String,
    /// Id of the verifier that shows it.
    pub verifier: String,
    /// Paths it speaks of; `None` where not narrowed.
    pub paths: Option<Scope>,
    /// Whether delivery needs it.
    pub required: bool,
}

/// A claim about one file of the candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    /// The file.
    pub path: String,
    /// It is in the candidate.
    pub must_exist: bool,
    /// It differs from the base.
    pub must_change: bool,
    /// Upper bound of its size in bytes.
    pub max_bytes: Option<u64>,
    /// Texts that must not occur in it.
    pub must_not_contain: Vec<String>,
}

/// Verifier ids that may and may not run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verification {
    /// May run.
    pub allowed: Vec<String>,
    /// Must not run.
    pub forbidden: Vec<String>,
}

/// Whether the task insists on confinement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SandboxWish {
    /// Nothing runs without it (from the version on that has it).
    Required,
    /// `--no-sandbox` is let through, and the report says so.
    Optional,
}

/// A parsed contract with its defaults filled in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Contract {
    /// The task's id.
    pub task_id: String,
    /// The kind of work.
    pub kind: Kind,
    /// The reproducing test of a repair; empty otherwise.
    pub case: Scope,
    /// The goal, in the words of whoever asked.
    pub goal: String,
    /// What it starts from.
    pub base: Base,
    /// Paths that may change.
    pub write_scope: Scope,
    /// Paths that may be read; `None` is the whole tree.
    pub read_scope: Option<Scope>,
    /// Tools that a worker may call.
    pub allowed_tools: Vec<String>,
    /// Writable for the worker, never captured.
    pub scratch: Scope,
    /// The sandbox wish.
    pub sandbox: SandboxWish,
    /// Verifiers.
    pub verification: Verification,
    /// Requirements: as written, or one per allowed verifier.
    pub requirements: Vec<Requirement>,
    /// Claims about files; a required row `artifacts` where there are any.
    pub artifacts: Vec<Artifact>,
    /// Upper bound in bytes of what a candidate may add; `None` where the contract sets none.
    pub artifact_bytes: Option<u64>,
    /// Whether commits are allowed.
    pub commit_allowed: bool,
}
