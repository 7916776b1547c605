//! Verdicts: the words for what can be said of a requirement, and the row that reports show.

use super::case_changes::CaseChanges;
use crate::error::DetailKey;
use serde::{Deserialize, Serialize};

/// The knowledge of a requirement for exactly these bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Passed,
    Failed,
    /// It did not run; the reason says why.
    NotRun,
    /// Evidence exists for other digests.
    Stale,
    /// A person has to attest it.
    NeedsConfirmation,
    /// The run itself went wrong, so it says nothing.
    Error,
}

/// A verdict with its reason; none for a pass.
pub type Said = (Verdict, Option<String>);

/// The cases that a run counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checks {
    /// Cases that ran (passed + failed).
    pub ran: u64,
    pub passed: u64,
    pub failed: u64,
    /// Cases that were left out.
    pub skipped: u64,
    /// Cases that failed and then passed.
    pub flaky: u64,
}

/// The strength of a pass, by what the same verifier said of the base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strength {
    /// Failed on the base, passes on the candidate.
    Fixed,
    NoRegression,
    /// Not tried on the base.
    Unmeasured,
}

/// The rows that a refusal rests on.
pub const REQUIREMENTS: DetailKey<Vec<Row>> = DetailKey::new("requirements");

/// One requirement in a verification or a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    pub id: String,
    /// The verifier that shows it.
    pub verifier: String,
    /// The title in the verifier's manifest; `None` where there is no manifest, or it gives none.
    #[serde(default)]
    pub title: Option<String>,
    pub required: bool,
    pub verdict: Verdict,
    /// The reason, where the verdict is not `passed`.
    pub reason: Option<String>,
    /// True where a pass of an earlier run was used.
    pub reused: bool,
    /// The strength of a pass.
    pub strength: Strength,
    /// True where the candidate touches the verifier's manifest or closure, or cases of the base are gone.
    pub judge_changed: bool,
    /// `sha256:…` of the evidence record it rests on.
    pub evidence: Option<String>,
    /// Counted cases; `None` where nothing counts.
    pub checks: Option<Checks>,
    /// What became of the cases of the base; `None` where nothing is compared.
    #[serde(default)]
    pub cases: Option<CaseChanges>,
    /// What its runs read beside the tree without that a change there makes a pass stale: stores, and folders
    /// of many files.
    #[serde(default)]
    pub outside_key: Vec<String>,
    /// Those patterns of its inputs that name no file of the candidate.
    #[serde(default)]
    pub dead_inputs: Vec<String>,
}

impl Row {
    /// A row that no run has shown anything of, and that nothing waits for.
    pub fn without_run(id: &str, verifier: &str, verdict: Verdict, reason: Option<String>) -> Self {
        Self {
            id: id.to_owned(),
            verifier: verifier.to_owned(),
            title: None,
            required: false,
            verdict,
            reason,
            reused: false,
            strength: Strength::Unmeasured,
            judge_changed: false,
            evidence: None,
            checks: None,
            cases: None,
            outside_key: Vec::new(),
            dead_inputs: Vec::new(),
        }
    }
}
