//! The effects that a task can have beyond the ledger.

pub mod advance;
pub mod findings;
pub mod patch;
pub mod refs;
pub mod tree;

use crate::domain::delivery::decision::{CHOICES, Choice};
use crate::error::Failure;

/// Whether an effect is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Write {
    #[default]
    Yes,
    /// Only say what would be written.
    DryRun,
}

impl From<bool> for Write {
    fn from(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::DryRun }
    }
}

/// The question and its answers, as lines.
pub fn choice_lines(failure: &Failure) -> Vec<String> {
    let choices = failure.read_detail(&CHOICES).unwrap_or_default();
    let line = |choice: &Choice| format!("{}: {}", choice.answer, choice.consequence);
    std::iter::once(failure.message().to_owned()).chain(choices.iter().map(line)).collect()
}
