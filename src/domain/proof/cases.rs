//! The cases that a run counted, each with the name that its tool gives it and how it ended.

use serde::{Deserialize, Serialize};

/// How many cases of a run are kept by name; the others are only counted.
pub const MOST_CASES: usize = 100_000;

/// How a case ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
    pub class: Option<String>,
    /// The file that it stands in; relative to the tree where it lies there.
    pub file: Option<String>,
    pub outcome: CaseOutcome,
}

impl CountedCase {
    /// A case of which only the name is known.
    pub fn named(name: &str, outcome: CaseOutcome) -> Self {
        Self { name: name.to_owned(), class: None, file: None, outcome }
    }

    /// Class and name in one.
    pub fn title(&self) -> String {
        match self.class.as_deref().filter(|class| !class.is_empty()) {
            Some(class) => format!("{class}::{}", self.name),
            None => self.name.clone(),
        }
    }
}
