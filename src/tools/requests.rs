//! Arguments and answers of the tools that are carried out by operations on the ledger.

use crate::domain::ledger::inquiries::HintObject;
use crate::domain::proof::run::Run;
use crate::domain::worker::finding::Kind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// No arguments.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// Arguments of `run_check`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunCheck {
    /// The verifier's id, one of those that the contract allows.
    pub id: String,
}

/// Arguments of `request_input`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestInput {
    /// What a person has to answer.
    pub question: String,
}

/// Arguments of `propose_amendment`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProposeAmendment {
    /// The contract's fields as they should be, such as {"writeScope": ["docs/", "src/parser/"]}.
    pub change: Map<String, Value>,
    /// Why the task cannot be done otherwise.
    pub reason: String,
}

/// Arguments of `note_finding`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoteFinding {
    /// What was found.
    pub text: String,
    /// What it rests on: `path`, `path:line`, `path:first-last`, or a reference of this task. Without any it
    /// is recorded as unverified.
    #[serde(default)]
    pub refs: Vec<String>,
    /// `finding`, or `limit`: what was not looked at, and why.
    #[serde(default)]
    pub kind: Kind,
}

/// Answer of `run_check`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Checked {
    /// The candidate that was checked: the worktree as it was when the call began.
    pub candidate: u32,
    /// The worst verdict of its rows: `passed`, `failed`, `not_run`, `stale`, `needs_confirmation` or
    /// `error`.
    pub verdict: String,
    /// The requirement rows that this verifier shows.
    pub requirements: Vec<Map<String, Value>>,
    /// Programs that failed, with their logs.
    pub runs: Vec<Run>,
}

/// Answer of `finish`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Finished {
    /// True where nothing is left for the worker to do: every required row has passed, or waits for a person.
    pub done: bool,
    /// What keeps it from being done, or who is waited for.
    pub why: Vec<String>,
    /// The task's state.
    pub state: String,
    /// The candidate.
    pub candidate: u32,
    /// All requirement rows.
    pub requirements: Vec<Map<String, Value>>,
    /// The candidate's changes.
    pub changes: Vec<Map<String, Value>>,
    /// Programs that failed, with their logs.
    pub runs: Vec<Run>,
}

/// Answer of `request_input`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Asked {
    /// Always `waiting_input`.
    pub status: String,
    /// The question's id.
    pub id: String,
    /// What to do now.
    pub next: String,
    /// What the user said through the client, where it can ask them. No answer yet: the task waits all the
    /// same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<HintObject>,
}

impl Asked {
    /// Of a question that was recorded under this id.
    pub fn of(id: &str) -> Self {
        Self {
            status: "waiting_input".to_owned(),
            id: id.to_owned(),
            next: "The user answers on the command line; task_status shows the answer. Until then reading and patching go on, finish does not."
                .to_owned(),
            hint: None,
        }
    }
}

impl Proposed {
    /// Of a wish that was recorded under this id.
    pub fn of(id: &str) -> Self {
        Self {
            status: "proposed".to_owned(),
            id: id.to_owned(),
            next: "Nothing has changed yet. The user decides on the command line; task_status shows it, and the contract that is in force."
                .to_owned(),
        }
    }
}

/// Answer of `propose_amendment`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Proposed {
    /// Always `proposed`: nothing has changed.
    pub status: String,
    /// The proposal's id.
    pub id: String,
    /// What to do now.
    pub next: String,
}

/// Answer of `note_finding`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Noted {
    /// The finding's id.
    pub id: String,
    /// True where it has references.
    pub verified: bool,
}
