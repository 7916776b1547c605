//! What `verifier` shows: verifiers, for those who write them.

use crate::domain::ledger::objects::KnownVerifier;
use crate::domain::proof::run::FirstErrorIn;
use crate::domain::proof::verdict::Verdict;
use serde::Serialize;

/// The verifiers of a repository.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VerifierList {
    pub schema: &'static str,
    pub verifiers: Vec<KnownVerifier>,
}

/// One of them.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownVerifier {
    pub schema: &'static str,
    pub verifier: KnownVerifier,
    /// Where its manifest lies, as it is shown.
    pub file: String,
    pub manifest: String,
}

/// A verifier that was written to begin with.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WrittenVerifier {
    pub schema: &'static str,
    pub id: String,
    pub written: Vec<String>,
}

/// What a verifier said of its own projects.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TestedVerifier {
    pub schema: &'static str,
    pub id: String,
    /// True where it said of each what it should.
    pub passed: bool,
    pub fixtures: Vec<FixtureRun>,
}

/// One of the projects.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FixtureRun {
    /// The name of its folder.
    pub fixture: String,
    pub expected: Verdict,
    pub verdict: Verdict,
    pub reason: Option<String>,
    /// The first error that its log has.
    pub first_error: Option<FirstErrorIn>,
    pub as_expected: bool,
}
