//! The cases that a run counted, each with the name that its tool gives it and how it ended.

use serde::{Deserialize, Serialize};

/// How many cases of a run are kept by name; the others are only counted.
pub const MOST_CASES: usize = 100_000;

/// How a case ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaseOutcome {
    Passed,
    /// Its own check did not hold.
    FailedByAssertion,
    /// Something else went wrong in it or before it; which of both is for the tool to say.
    FailedByError,
    Skipped,
}

/// A case as its tool names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountedCase {
    pub name: String,
    /// The class, module or package that it stands in, where the tool says one apart from the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The file that it stands in; relative to the tree where it lies there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    pub outcome: CaseOutcome,
}

/// File, class and name of a case.
pub type CaseIdentity<'a> = (Option<&'a str>, Option<&'a str>, &'a str);

impl CountedCase {
    /// A case of which only the name is known.
    pub fn with_name(name: &str, outcome: CaseOutcome) -> Self {
        Self { name: name.to_owned(), class: None, file: None, outcome }
    }

    /// What makes it the same case in another run.
    pub fn identity(&self) -> CaseIdentity<'_> {
        (self.file.as_deref(), self.class.as_deref(), &self.name)
    }

    /// Class and name in one.
    pub fn full_title(&self) -> String {
        match self.class.as_deref().filter(|class| !class.is_empty()) {
            Some(class) => format!("{class}::{}", self.name),
            None => self.name.clone(),
        }
    }
}

/// The cases of a run as they are stored beside its record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaseList {
    /// Sorted, so that runs with the same cases have the same list.
    pub cases: Vec<CountedCase>,
    /// How many more there were than are kept by name.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unnamed: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference over")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl CaseList {
    pub fn new(mut cases: Vec<CountedCase>, unnamed: u64) -> Self {
        cases.sort_by(|a, b| (a.identity(), a.outcome).cmp(&(b.identity(), b.outcome)));
        Self { cases, unnamed }
    }
}
