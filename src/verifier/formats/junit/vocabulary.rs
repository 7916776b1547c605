//! The words of JUnit files: which element may stand where, what a case says of itself in attributes, and
//! which cases are none.
//!
//! A word that is not here is not guessed at: the reader refuses the file.

use crate::domain::proof::cases::CaseOutcome;
use crate::verifier::formats::runners::{is_hook_name, is_script_name};

/// An element, by its part in the count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    Suites,
    Suite,
    Case,
    Failed(CaseOutcome),
    /// A repetition that failed too; alone it is a failure.
    FailedAgain(CaseOutcome),
    Skipped,
    Flaky,
    /// `PHPUnit`'s remark on a case that went well, or on a file without cases.
    Warning,
    Properties,
    Property,
    Output,
    StackTrace,
}

impl Element {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "testsuites" => Self::Suites,
            "testsuite" => Self::Suite,
            "testcase" => Self::Case,
            "failure" => Self::Failed(CaseOutcome::FailedByAssertion),
            "error" => Self::Failed(CaseOutcome::FailedByError),
            "rerunFailure" => Self::FailedAgain(CaseOutcome::FailedByAssertion),
            "rerunError" => Self::FailedAgain(CaseOutcome::FailedByError),
            "skipped" => Self::Skipped,
            "flakyFailure" | "flakyError" => Self::Flaky,
            "warning" => Self::Warning,
            "properties" => Self::Properties,
            "property" => Self::Property,
            "system-out" | "system-err" => Self::Output,
            "stackTrace" => Self::StackTrace,
            _ => return None,
        })
    }

    /// True where the element is understood within this one.
    pub(super) fn may_stand_in(self, parent: Option<Element>) -> bool {
        match parent {
            None => matches!(self, Self::Suites | Self::Suite),
            Some(Self::Suites | Self::Suite) => {
                matches!(self, Self::Suite | Self::Case | Self::Failed(_) | Self::Properties | Self::Output)
            }
            Some(Self::Case) => matches!(
                self,
                Self::Failed(_)
                    | Self::FailedAgain(_)
                    | Self::Skipped
                    | Self::Flaky
                    | Self::Warning
                    | Self::Properties
                    | Self::Output
            ),
            Some(Self::Failed(_) | Self::FailedAgain(_) | Self::Flaky) => {
                matches!(self, Self::Output | Self::StackTrace)
            }
            Some(Self::Properties) => self == Self::Property,
            Some(_) => false,
        }
    }

    /// True where text between its elements has a meaning.
    pub(super) fn holds_text(self) -> bool {
        !matches!(self, Self::Suites | Self::Suite | Self::Case | Self::Properties)
    }
}

/// What an attribute of a case says of its outcome. `Err`: it is about the outcome and not understood.
pub(super) fn outcome_in_attribute(key: &str, value: &str) -> Result<Option<CaseOutcome>, String> {
    let value = value.trim().to_ascii_lowercase();
    let no = ["", "false", "0"].contains(&value.as_str());
    Ok(match (key, value.as_str()) {
        ("status" | "result", "passed" | "pass" | "success" | "successful" | "ok" | "run" | "completed") => {
            None
        }
        ("status" | "result", "failed" | "failure" | "fail") => Some(CaseOutcome::FailedByAssertion),
        ("status" | "result", "error" | "errored") => Some(CaseOutcome::FailedByError),
        (
            "status" | "result",
            "notrun" | "disabled" | "skipped" | "skip" | "suppressed" | "ignored" | "pending" | "todo",
        ) => Some(CaseOutcome::Skipped),
        ("status" | "result", _) => return Err(format!("a case has the unknown {key} {value:?}")),
        ("failure", _) if !no => Some(CaseOutcome::FailedByAssertion),
        ("error", _) if !no => Some(CaseOutcome::FailedByError),
        ("skipped" | "disabled" | "ignored", _) if !no => Some(CaseOutcome::Skipped),
        ("success" | "passed", _) if no => Some(CaseOutcome::FailedByAssertion),
        ("executed", _) if no => Some(CaseOutcome::Skipped),
        _ => None,
    })
}

/// What is known of an element `testcase` that may be no case.
pub(super) struct SuspectCase<'a> {
    pub name: &'a str,
    pub class: &'a str,
    pub failed: bool,
    pub warned: bool,
    pub message: &'a str,
}

/// True where the element stands for a file, a suite, a script or a hook, and for no case.
pub(super) fn is_no_case(suspect: &SuspectCase<'_>) -> bool {
    let SuspectCase { name, class, failed, warned, message } = *suspect;
    // node names a file without tests like this, and vitest one that it could not load.
    (class == "test" || class == name) && is_script_name(name)
        || class == "Test suite failed to run" // jest
        || class.starts_with("@setup-script:") // nextest
        || class.is_empty() && ["collection failure", "collection skipped"].contains(&message) // pytest
        || class.starts_with("unittest.loader.")
        || failed && ["initializationError", "executionError", "classMethod"].contains(&name) // JUnit
        || failed && name.is_empty() && !class.is_empty() // surefire, a class as a whole
        || is_hook_name(name) // mocha
        || ["[build failed]", "[setup failed]"].contains(&name) // go-junit-report
        || warned && name == "Warning" // PHPUnit
}
