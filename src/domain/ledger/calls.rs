//! The calls of a task's workers, folded from its rows.

use crate::domain::ledger::action::ActionState;
use crate::domain::ledger::entry::Entry;
use crate::domain::value::repo_path::RepoPath;
use serde::{Deserialize, Serialize};

/// A call as a task's rows tell it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Id of the action.
    pub action: String,
    /// The tool's name.
    pub tool: String,
    /// When it came to the state that it is in, RFC 3339.
    pub at: String,
    /// Its state.
    pub state: ActionState,
    /// Paths that it changed.
    pub changed: Vec<RepoPath>,
}

/// Number of calls by the end that they came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// All that arrived.
    pub made: u64,
    /// Carried out.
    pub succeeded: u64,
    /// Let through, and failed without an effect.
    pub failed: u64,
    /// Refused by the gate.
    pub denied: u64,
    /// Cut off by a crash, and settled since: without an effect.
    pub cut_off: u64,
}

/// All calls of a task, in the order of their arrival.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Calls(Vec<Call>);

impl Calls {
    /// Takes one row in.
    pub fn take_row(&mut self, entry: &Entry) {
        if entry.state == ActionState::Planned && entry.result.record_kind().as_deref() == Some("call") {
            let (action, tool, at) = (entry.action.clone(), entry.tool.clone(), entry.at.clone());
            self.0.push(Call { action, tool, at, state: entry.state, changed: Vec::new() });
        } else if let Some(call) = self.0.iter_mut().rev().find(|call| call.action == entry.action) {
            call.state = entry.state;
            call.at.clone_from(&entry.at);
        }
    }

    /// Paths that a call has changed.
    pub fn note_changed_paths(&mut self, action: &str, paths: impl IntoIterator<Item = RepoPath>) {
        if let Some(call) = self.0.iter_mut().rev().find(|call| call.action == action) {
            call.changed.extend(paths);
        }
    }

    /// True where no worker has come yet.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = &Call> {
        self.0.iter()
    }

    /// Counts the calls by their ends.
    pub fn count_ends(&self) -> Counts {
        let mut counts = Counts::default();
        for call in &self.0 {
            counts.made += 1;
            match call.state {
                ActionState::Succeeded => counts.succeeded += 1,
                ActionState::FailedWithoutEffect => counts.failed += 1,
                ActionState::Denied => counts.denied += 1,
                ActionState::SafeToRetry => counts.cut_off += 1,
                _ => {}
            }
        }
        counts
    }
}
