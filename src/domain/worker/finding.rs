//! Findings: what a worker noted of what it looked at, and the limits of that. A finding is worth what it
//! refers to; one without references is marked as unverified.

use crate::domain::value::digest::ObjectId;
use crate::domain::value::outside::{accept_text, plain_line};
use crate::domain::value::repo_path::RepoPath;
use crate::error::Result;
use serde::{Deserialize, Serialize};

/// The longest finding, in characters.
pub const LONGEST_TEXT: usize = 8000;
/// Most references of one finding.
pub const MOST_REFERENCES: usize = 100;
/// How much of a finding's text one line for people shows, in characters.
const SHOWN: usize = 400;

/// What a note is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Something that is so.
    #[default]
    Finding,
    /// Something that was not looked at, or cannot be known.
    Limit,
}

/// A note, whose references were looked up when it was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What it is.
    pub kind: Kind,
    /// In the worker's words.
    pub text: String,
    /// What it rests on.
    pub refs: Vec<Reference>,
}

/// Something that a finding rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "to", rename_all = "snake_case")]
pub enum Reference {
    /// A file, or some of its lines, as it was then.
    File {
        /// The file.
        path: RepoPath,
        /// Its lines.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lines: Option<Lines>,
        /// Git's id of the bytes that were there.
        blob: ObjectId,
    },
    /// An action, or something that one left in the ledger.
    Ledger {
        /// The action's id, or `sha256:…`.
        name: String,
    },
}

/// Some lines of a file; 1 is the first, and both are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lines {
    /// The first.
    pub first: u64,
    /// The last.
    pub last: u64,
}

impl Lines {
    /// Of `12` or `12-15`.
    pub fn parse_range(text: &str) -> Option<Self> {
        let number =
            |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse::<u64>().ok()).flatten();
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let lines = Self { first: number(first)?, last: number(last)? };
        (lines.first > 0 && lines.first <= lines.last).then_some(lines)
    }
}

impl std::fmt::Display for Lines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.first == self.last {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}-{}", self.first, self.last)
        }
    }
}

impl std::fmt::Display for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File { path, lines: Some(lines), .. } => write!(f, "{path}:{lines}"),
            Self::File { path, lines: None, .. } => write!(f, "{path}"),
            Self::Ledger { name } => f.write_str(name),
        }
    }
}

impl Finding {
    /// With references that were looked up. Refused (`arguments.invalid`) where it says nothing, or too much.
    pub fn new(kind: Kind, text: &str, refs: Vec<Reference>) -> Result<Self> {
        Ok(Self { kind, text: accept_text("text", text, LONGEST_TEXT)?, refs })
    }

    /// True where it refers to something that was there.
    pub fn is_verified(&self) -> bool {
        !self.refs.is_empty()
    }

    /// In one line for people.
    pub fn one_line(&self) -> String {
        plain_line(&self.text, SHOWN)
    }
}

#[cfg(test)]
mod tests {
    use crate::domain::worker::finding::*;

    #[test]
    fn lines_are_numbers_in_order() {
        let lines = |first, last| Some(Lines { first, last });
        for (text, read) in [("1", lines(1, 1)), ("3-5", lines(3, 5)), ("4-4", lines(4, 4))] {
            assert_eq!(Lines::parse_range(text), read, "{text}");
        }
        for wrong in ["", "0", "-1", "3-", "5-3", "a", "1-2-3", "+1", "1:2", "99999999999999999999"] {
            assert_eq!(Lines::parse_range(wrong), None, "{wrong}");
        }
        assert_eq!(Lines { first: 2, last: 2 }.to_string(), "2");
        assert_eq!(Lines { first: 2, last: 3 }.to_string(), "2-3");
    }
}
