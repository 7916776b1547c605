//! The effects that a task can have beyond the ledger.

pub mod advance;
pub mod patch;
pub mod refs;
pub mod tree;

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
