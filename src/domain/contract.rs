//! The contract: what a task may do and what must be shown.
//!
//! A [`Contract`] is only made by [`Contract::parse_document`] (or read back from a ledger that holds such a
//! one), so that whoever has one knows: every field has its type, every scope stays in the repository, no id
//! comes twice, nothing in it contradicts anything else, and it asks for nothing that this version does not
//! do. Defaults are filled in. What is sealed is the document as given, byte for byte, not this reading of
//! it.

pub mod amendment;
pub mod budget;
mod check;
pub mod clause;
mod draft;
pub mod family;
pub mod hook;
mod later;
mod mode;
mod parse;
pub mod policy;
pub mod terms;
pub mod tool;
pub mod worktree_rules;

pub(super) use later::read_network;
pub use mode::DeliveryMode;
#[cfg(test)]
pub use parse::CONTRACT_FIELDS;

use crate::domain::contract::budget::Amounts;

use crate::domain::contract::policy::BaseRuns;
use crate::domain::contract::terms::Terms;
use crate::domain::value::digest::Sha256;
use crate::domain::value::scope::Scope;
use crate::error::Result;
use serde::{Deserialize, Serialize};

/// The schema of a contract, the one that this version reads.
pub const SCHEMA: &str = "git-tender/contract/v1";

/// The id of the row that stands for protected paths; no requirement and no verifier may have it.
pub const PROTECTED: &str = "protected";

/// The id of the row that stands for `artifacts`, and of the verifier that judges it.
pub const ARTIFACTS: &str = "artifacts";

/// The kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Edit,
    /// A change that must make a failing case pass.
    Repair,
    Explore,
}

/// The state that the task starts from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Base {
    /// The commit that a revision names; `HEAD` unless said.
    Revision(String),
    /// HEAD plus the user's uncommitted work.
    Live,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Requirement {
    pub id: String,
    /// The claim in words for people; its digest is part of the evidence key.
    pub text: String,
    /// Id of the verifier that shows it.
    pub verifier: String,
    /// Paths it speaks of; `None` where not narrowed.
    pub paths: Option<Scope>,
    pub required: bool,
    /// Whether its verifier is run on the base too, to compare.
    #[serde(default, skip_serializing_if = "BaseRuns::is_default")]
    pub base: BaseRuns,
}

/// A claim about one file of the candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    /// The file; a path that may be written.
    pub path: String,
    /// It is in the candidate; true unless said, since the other claims say nothing of a file that is not
    /// there.
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
    pub allowed: Vec<String>,
    pub forbidden: Vec<String>,
}

/// Says if the task insists on confinement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SandboxWish {
    /// Nothing runs without it.
    Required,
    /// `--no-sandbox` is let through, and the report says so.
    Optional,
}

/// The part of the network that the task may reach.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    #[default]
    Disabled,
}

/// A parsed contract with its defaults filled in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Contract {
    pub task_id: String,
    pub kind: Kind,
    /// The reproducing test of a repair; empty otherwise.
    pub case: Scope,
    /// The goal, in the words of whoever asked.
    pub goal: String,
    pub base: Base,
    pub write_scope: Scope,
    /// Paths that may be read; `None` is the whole tree.
    pub read_scope: Option<Scope>,
    /// Tools that a worker may call.
    pub allowed_tools: Vec<String>,
    /// Writable for the worker, never captured.
    pub scratch: Scope,
    /// The part of the network that may be reached.
    pub network: Network,
    pub sandbox: SandboxWish,
    /// It says so itself; otherwise that is the default.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sandbox_in_words: bool,
    pub verification: Verification,
    /// Requirements: as written, or one per allowed verifier.
    pub requirements: Vec<Requirement>,
    /// Claims about files; a required row `artifacts` where there are any.
    pub artifacts: Vec<Artifact>,
    /// The limits that the contract sets.
    #[serde(default)]
    pub budget: Amounts,
    /// The task that it is a part of.
    #[serde(default)]
    pub parent: Option<String>,
    pub delivery: DeliveryMode,
    /// The names and texts that go with `branch` and `push`.
    #[serde(default, skip_serializing_if = "Terms::is_empty")]
    pub terms: Terms,
    pub commit_allowed: bool,
}

impl Contract {
    /// Reads a contract. The failure is `contract.invalid`, or `not_supported` where the contract is right
    /// but asks for what this version does not do; its subject is the field, and it lists every problem in
    /// the order of the document.
    pub fn parse_document(bytes: &[u8]) -> Result<Self> {
        parse::parse_contract(bytes)
    }

    /// The seal of a document: the sha256 of its bytes as given.
    pub fn seal_document(bytes: &[u8]) -> Sha256 {
        Sha256::of(bytes)
    }
}

impl Kind {
    /// Every kind with its word.
    pub const ALL: [(&'static str, Kind); 3] = [
        (Self::Edit.as_str(), Self::Edit),
        (Self::Repair.as_str(), Self::Repair),
        (Self::Explore.as_str(), Self::Explore),
    ];

    /// The word in contract, policy and objects.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Edit => "edit",
            Self::Repair => "repair",
            Self::Explore => "explore",
        }
    }
}

#[cfg(test)]
mod tests;
