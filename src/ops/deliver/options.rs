//! How a delivery is wanted.

use crate::domain::ledger::task::TaskView;
use crate::error::{Code, Failure, Result};
use crate::task::effect::Write;

#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    pub write: Write,
    pub place: Place,
    pub proof: LiveProof,
    pub turn: Turn,
}

/// Whether it is delivered for the first time, or again after it was undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Turn {
    #[default]
    First,
    Again,
}

impl Turn {
    /// Refuses a task that is past it, or not at it yet.
    pub(super) fn require_turn(self, view: &TaskView) -> Result<()> {
        match self {
            Self::First => view.require_active(),
            Self::Again => require_undone(view),
        }
    }
}

/// Whether the change is shown on the live tree before it is written there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LiveProof {
    /// Where the policy wants it.
    #[default]
    ByPolicy,
    Asked,
}

/// Which branch may be checked out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Place {
    /// The one of when the task was opened.
    #[default]
    AsOpened,
    /// Whichever there is now; a person confirms it.
    Here,
}

/// Only what was delivered and then undone can be delivered once more, as long as its files are kept.
fn require_undone(view: &TaskView) -> Result<()> {
    if view.undone.is_some() && !view.collected {
        return Ok(());
    }
    let (why, next) = match (view.undone.is_some(), &view.cancelled) {
        (true, _) => ("its kept files were removed by gc", "report"),
        (false, Some(_)) => ("it was cancelled", "report"),
        (false, None) => ("it was not undone", "deliver"),
    };
    Err(Failure::new(Code::StateInvalid, format!("the task {} cannot be delivered again: {why}", view.id))
        .subject(view.id.clone())
        .expected("undone", why)
        .remedy("`redo` repeats what `undo` took back.", ["git", "tender", next, &view.id]))
}
