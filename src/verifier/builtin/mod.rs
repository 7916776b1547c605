//! The verifiers that git-tender has itself: they need no manifest, start no program of the repository and
//! look at objects only, so that they say the same of the same trees everywhere.
//!
//! Each gives a [`BuiltinOutcome`]. All that is wrong is a finding; nothing that is wrong is left out of the
//! count.

pub mod artifacts;
pub mod scope;
pub mod whitespace;

use crate::domain::proof::evidence::{Finding, MOST_FINDINGS};
use crate::domain::proof::verdict::Verdict;
use crate::domain::value::repo_path::RepoPath;

/// The ids of the verifiers that need no manifest.
pub const NAMES: [&str; 3] = ["scope", "artifacts", "whitespace"];

/// Those of a later version. Nobody takes them for a person's to attest; a manifest of that id counts like
/// any other.
pub const LATER: [&str; 1] = ["secrets"];

/// What one of them says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltinOutcome {
    /// `passed`, `failed`, or `error` where it could not look.
    pub outcome: Verdict,
    /// Why, where it is no pass.
    pub reason: Option<String>,
    /// What is wrong, at most [`MOST_FINDINGS`].
    pub findings: Vec<Finding>,
}

impl BuiltinOutcome {
    /// Failed where there is a finding; the reason is the first one and how many there are.
    fn by(mut findings: Vec<Finding>) -> Self {
        let Some(first) = findings.first() else {
            return Self { outcome: Verdict::Passed, reason: None, findings };
        };
        let place = match (&first.path, first.line) {
            (Some(path), Some(line)) => format!("{path}:{line}: "),
            (Some(path), None) => format!("{path}: "),
            _ => String::new(),
        };
        let more = match findings.len() - 1 {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        let reason = format!("{place}{}{more}", first.message);
        findings.truncate(MOST_FINDINGS);
        Self { outcome: Verdict::Failed, reason: Some(reason), findings }
    }
}

/// Something wrong with a path.
fn finding(path: &RepoPath, line: Option<u64>, rule: &str, message: impl Into<String>) -> Finding {
    Finding {
        path: Some(path.to_string()),
        line,
        column: None,
        level: "error".to_owned(),
        rule: Some(rule.to_owned()),
        message: message.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_names_the_first_and_counts_all() {
        let path = RepoPath::new("a b").expect("a path");
        let many: Vec<Finding> = (1..=500).map(|line| finding(&path, Some(line), "r", "is wrong")).collect();
        let judged = BuiltinOutcome::by(many);
        assert_eq!(judged.reason.as_deref(), Some("a b:1: is wrong (and 499 more)"));
        assert_eq!((judged.outcome, judged.findings.len()), (Verdict::Failed, MOST_FINDINGS));
        let one = BuiltinOutcome::by(vec![finding(&path, None, "r", "is wrong")]);
        assert_eq!(one.reason.as_deref(), Some("a b: is wrong"));
        assert_eq!(BuiltinOutcome::by(Vec::new()).outcome, Verdict::Passed);
    }
}
