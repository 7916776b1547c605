//! What a worker asks of a person, and what is said to it. Questions stop the task until they are answered;
//! wishes for another contract ([`crate::domain::contract::amendment`]) stop nothing.
//!
//! Both are the results of the worker's own actions; the id of that action is what a person answers to. An
//! answer is an action of its own.

use crate::domain::value::outside::accept_text;
use crate::error::Result;
use serde::{Deserialize, Serialize};

/// The longest question, in characters.
pub const LONGEST_QUESTION: usize = 4000;
/// The longest answer, in characters.
pub const LONGEST_ANSWER: usize = 20_000;
/// Characters of a worker's text that one line for people shows.
pub const SHOWN: usize = 400;

/// A question of the worker's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// In the worker's words.
    pub text: String,
}

impl Question {
    /// Refused (`arguments.invalid`) where it asks nothing, or is longer than [`LONGEST_QUESTION`].
    pub fn new(text: &str) -> Result<Self> {
        accept_text("question", text, LONGEST_QUESTION).map(|text| Self { text })
    }
}

/// A person's answer to a question, or the refusal of an amendment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// The action that asked.
    pub to: String,
    /// In the person's words.
    pub text: String,
}

/// What the worker's client gave back when it was asked to put a question to its user. It may help the
/// worker; a person's answer it is not, for nobody can tell who typed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hint {
    /// The action that asked.
    pub to: String,
    /// The words.
    pub text: String,
    /// The client, as it calls itself.
    pub through: String,
}
