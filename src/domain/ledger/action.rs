//! Actions: every gated call has an id and a state, and changes its state only here.

use crate::error::{Failure, Result};
use serde::{Deserialize, Serialize};

/// The one who asks. It follows from the channel, never from arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Actor {
    /// A person at a terminal.
    User,
    /// A program: no terminal.
    Agent,
    /// The privileged job of a PR bot.
    Bot,
    /// git-tender itself: verifiers, recovery.
    Harness,
}

/// The state of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionState {
    /// Written down, not yet allowed.
    Planned,
    /// Allowed, on the basis that the entry names.
    Authorized,
    /// Refused: an end.
    Denied,
    /// The effect may have begun.
    Dispatched,
    /// The effect took place: an end.
    Succeeded,
    /// It failed and changed nothing: an end.
    FailedWithoutEffect,
    /// It may or may not have taken place.
    OutcomeUnknown,
    Reconcile,
    /// It did not take place and may be repeated: an end.
    SafeToRetry,
    /// Only a person can say.
    NeedsHumanDecision,
}

impl ActionState {
    #[cfg(test)]
    pub const ALL: [ActionState; 10] = [
        Self::Planned,
        Self::Authorized,
        Self::Denied,
        Self::Dispatched,
        Self::Succeeded,
        Self::FailedWithoutEffect,
        Self::OutcomeUnknown,
        Self::Reconcile,
        Self::SafeToRetry,
        Self::NeedsHumanDecision,
    ];

    /// The states that may follow this one.
    pub fn possible_successors(self) -> &'static [ActionState] {
        match self {
            Self::Planned => &[Self::Authorized, Self::Denied],
            Self::Authorized => &[Self::Dispatched],
            Self::Dispatched => &[Self::Succeeded, Self::FailedWithoutEffect, Self::OutcomeUnknown],
            Self::OutcomeUnknown => &[Self::Reconcile],
            Self::Reconcile => &[Self::Succeeded, Self::SafeToRetry, Self::NeedsHumanDecision],
            Self::NeedsHumanDecision => &[Self::Succeeded, Self::SafeToRetry],
            Self::Denied | Self::Succeeded | Self::FailedWithoutEffect | Self::SafeToRetry => &[],
        }
    }

    /// The only way from one state to the next.
    pub fn transition_to(self, to: ActionState) -> Result<ActionState> {
        if self.possible_successors().contains(&to) {
            Ok(to)
        } else {
            Err(Failure::internal(format!("an action cannot go from {self:?} to {to:?}")))
        }
    }

    /// True while nobody can say whether the effect took place.
    pub fn is_unknown(self) -> bool {
        matches!(self, Self::OutcomeUnknown | Self::Reconcile | Self::NeedsHumanDecision)
    }

    /// True where nothing can follow.
    pub fn is_final(self) -> bool {
        self.possible_successors().is_empty()
    }
}

/// What a fix of the user's files is called that belongs to no task.
pub const FIX: &str = "fix";

/// True for the tools whose actions write to the live tree.
pub fn writes_live_tree(tool: &str) -> bool {
    matches!(tool, "deliver" | "undo" | FIX)
}

#[cfg(test)]
mod tests {
    use crate::domain::ledger::action::ActionState::*;
    use crate::domain::ledger::action::*;

    #[test]
    fn only_the_drawn_transitions_exist() {
        let drawn = [
            (Planned, Authorized),
            (Planned, Denied),
            (Authorized, Dispatched),
            (Dispatched, Succeeded),
            (Dispatched, FailedWithoutEffect),
            (Dispatched, OutcomeUnknown),
            (OutcomeUnknown, Reconcile),
            (Reconcile, Succeeded),
            (Reconcile, SafeToRetry),
            (Reconcile, NeedsHumanDecision),
            (NeedsHumanDecision, Succeeded),
            (NeedsHumanDecision, SafeToRetry),
        ];
        for from in ActionState::ALL {
            for to in ActionState::ALL {
                assert_eq!(from.transition_to(to).is_ok(), drawn.contains(&(from, to)), "{from:?} -> {to:?}");
            }
        }
    }
}
