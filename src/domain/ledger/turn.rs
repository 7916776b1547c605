//! Whose turn it is at a task, and the command that goes on with it: what a list of tasks says of each.

use crate::domain::ledger::task::TaskState;
use crate::domain::proof::verdict::{Row, Verdict};
use serde::Serialize;

/// Who has to do something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WhoseTurn {
    /// Whoever makes the change.
    Worker,
    /// Whoever the change is for.
    Person,
}

/// Whose turn it is, and the next command, in words; nothing of a task that has ended.
pub fn next_turn(task: &str, state: TaskState, rows: &[Row]) -> Option<(WhoseTurn, Vec<String>)> {
    let unconfirmed = |row: &&Row| row.required && row.verdict == Verdict::NeedsConfirmation;
    let (turn, words) = match state {
        TaskState::Open | TaskState::Working => (WhoseTurn::Worker, vec!["ship", task]),
        TaskState::VerificationFailed => (WhoseTurn::Worker, vec!["report", task]),
        TaskState::Candidate => match rows.iter().find(unconfirmed) {
            Some(row) => (WhoseTurn::Person, vec!["attest", task, &row.id, "--pass", "-m", "TEXT"]),
            None => (WhoseTurn::Person, vec!["verify", task]),
        },
        TaskState::Verified => (WhoseTurn::Person, vec!["deliver", task]),
        TaskState::WaitingInput => (WhoseTurn::Person, vec!["answer", task, "TEXT"]),
        TaskState::Incomplete => (WhoseTurn::Person, vec!["report", task]),
        TaskState::Delivering | TaskState::OutcomeUnknown => (WhoseTurn::Person, vec!["recover"]),
        TaskState::Completed | TaskState::Cancelled | TaskState::Undone => return None,
    };
    Some((turn, ["git", "tender"].iter().chain(&words).map(|word| (*word).to_owned()).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(state: TaskState) -> Option<String> {
        next_turn("t1", state, &[]).map(|(turn, words)| format!("{turn:?}: {}", words.join(" ")))
    }

    #[test]
    fn each_state_has_somebody_whose_turn_it_is_until_the_end() {
        for ended in [TaskState::Completed, TaskState::Cancelled, TaskState::Undone] {
            assert_eq!(said(ended), None);
        }
        assert_eq!(said(TaskState::Working).as_deref(), Some("Worker: git tender ship t1"));
        assert_eq!(said(TaskState::Candidate).as_deref(), Some("Person: git tender verify t1"));
        assert_eq!(said(TaskState::Verified).as_deref(), Some("Person: git tender deliver t1"));
        assert_eq!(said(TaskState::WaitingInput).as_deref(), Some("Person: git tender answer t1 TEXT"));
    }
}
