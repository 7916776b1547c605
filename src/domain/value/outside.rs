//! Text that came from outside: a worker's own words. It is kept as it is, marked with where it came from,
//! and shown to people only in a form that can neither move a cursor nor turn a line around. Nothing in it is
//! ever an instruction to the harness.

use crate::error::{Code, Failure, Result};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// Where a text came from. Only [`Speaker::Person`] is somebody whose word counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Speaker {
    /// Whoever works on the task.
    Worker,
    /// A person.
    Person,
    /// Whoever answers for the user in the program that the worker runs in: perhaps a person, perhaps the
    /// worker.
    Client,
}

/// Where content came from. Nothing that has an origin is ever an instruction to the harness.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Origin {
    /// `file`, `listing`, `search`, `log` or `verifier`.
    pub kind: String,
    /// The path, the pattern, the reference or the verifier's id.
    pub of: String,
    /// Always `untrusted`: whoever wrote the content is not known to the harness.
    pub trust: Trust,
}

/// How far content is to be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Trust {
    /// Not at all.
    Untrusted,
}

impl Origin {
    /// Content of that kind and name.
    pub fn new(kind: &str, of: impl Into<String>) -> Self {
        Self { kind: kind.to_owned(), of: of.into(), trust: Trust::Untrusted }
    }
}

/// Takes a text of at most `most` characters that says something. `field` is the argument that it came in.
pub fn accept_text(field: &str, text: &str, most: usize) -> Result<String> {
    let refused =
        |why: String| Failure::new(Code::ArgumentsInvalid, format!("`{field}` {why}")).subject(field);
    if text.trim().is_empty() {
        return Err(refused("is empty".to_owned()).expected("words", text));
    }
    let length = text.chars().count();
    if length > most {
        return Err(refused(format!("has {length} characters; at most {most} are taken"))
            .expected(most, length)
            .detail("limit", most));
    }
    Ok(text.to_owned())
}

/// A text in one line for a terminal: at most `most` characters of it, and what could act on a terminal, or
/// show it as something else, is spelled out.
pub fn plain_line(text: &str, most: usize) -> String {
    let mut out = String::new();
    for (at, character) in text.trim().chars().enumerate() {
        if at == most {
            out.push('…');
            break;
        }
        match character {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            _ => spell_out(&mut out, character),
        }
    }
    out
}

/// A text of several lines for a terminal: lines and indentation stay, and what could act is spelled out as
/// in [`plain_line`].
pub fn readable_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.replace("\r\n", "\n").chars() {
        match character {
            '\n' | '\t' => out.push(character),
            _ => spell_out(&mut out, character),
        }
    }
    out
}

fn spell_out(out: &mut String, character: char) {
    if acts_on_terminal(character) {
        let _ = write!(out, "\\u{{{:x}}}", u32::from(character));
    } else {
        out.push(character);
    }
}

/// Control characters, and those that are not seen but change what is.
fn acts_on_terminal(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use crate::domain::value::outside::*;

    #[test]
    fn what_acts_on_a_terminal_is_spelled_out_and_long_text_cut() {
        let hostile = "a\u{1b}[2Jb\r\u{7}\n\u{202e}c\u{9b}d";
        let shown = plain_line(hostile, 100);
        assert_eq!(shown, "a\\u{1b}[2Jb\\u{d}\\u{7}\\n\\u{202e}c\\u{9b}d");
        assert!(!shown.chars().any(char::is_control));
        assert_eq!(plain_line("  äöü 漢字 ", 100), "äöü 漢字");
        assert_eq!(readable_text(" a\r\n\tb\r\u{1b}[2K"), " a\n\tb\\u{d}\\u{1b}[2K");
        assert_eq!(plain_line(&"x".repeat(50), 3), "xxx…");
        assert_eq!(plain_line("xxx", 3), "xxx");
    }

    #[test]
    fn only_words_of_a_bounded_length_are_taken() {
        for empty in ["", " \n\t "] {
            let failure = accept_text("question", empty, 10).expect_err("refused");
            assert_eq!((failure.code(), failure.subject_text()), (Code::ArgumentsInvalid, Some("question")));
        }
        assert_eq!(accept_text("question", "ten chars!", 10).expect("taken"), "ten chars!");
        let failure = accept_text("question", "eleven char", 10).expect_err("refused");
        assert_eq!(failure.details()["limit"], 10);
    }
}
