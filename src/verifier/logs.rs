//! The first error in a log that is worth reading: what a person would scroll up to.
//!
//! Each kind of tool has a reader that knows a sure sign of its errors, with the place in the source beside
//! it. The first sure sign in the log wins. Where there is none, the first line that calls itself an error is
//! taken, and else the last lines; the kind says which it was, so that nobody takes a guess for more. What
//! only repeats that something failed (summaries, `could not compile`) is passed over, and so are warnings.
//!
//! One pass, line by line, with a bounded look ahead: the time is linear in the log, whatever stands in it.
//! Nothing that is read here is believed; it is only quoted.

mod go;
mod json;
mod lint;
mod log;
mod native;
mod place;
mod python;
mod rust;
mod script;

use crate::domain::proof::run::{FirstError, Kind};
use log::{Line, Lines};
use place::Place;

/// The most lines that are quoted.
const LINES: usize = 12;
/// The most characters that are quoted of one line.
const WIDTH: usize = 400;

/// How sure a reader is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sign {
    /// A line that calls itself an error.
    Word,
    /// The form is right, but a log that tells of no failure may have it too.
    Likely,
    /// Only a failure looks like this.
    Sure,
}

/// What a reader found at a line.
#[derive(Debug)]
struct Found {
    sign: Sign,
    kind: Kind,
    text: Vec<String>,
    place: Option<Place>,
    /// The line that it begins at, where that is further down.
    from: Option<u32>,
}

/// What earlier lines have left for later ones.
#[derive(Debug, Default)]
struct Memory {
    json: json::Memory,
    rust: rust::Memory,
    python: python::Memory,
    script: script::Memory,
    lint: lint::Memory,
    go: go::Memory,
}

/// Whether last lines, of which nothing was recognised, have a word that goes with failures.
pub fn speaks_of_failure(error: &FirstError) -> bool {
    const WORDS: &[&str] =
        &["error", "fail", "fatal", "cannot", "can't", "not found", "no such", "denied", "invalid", "abort"];
    let speaks = |line: &str| {
        let line = line.to_ascii_lowercase();
        WORDS.iter().any(|word| line.contains(word)) && !counts_none(&line)
    };
    error.text.lines().any(speaks)
}

/// The first error of a log; `None` where the log says nothing.
pub fn find(log: &[u8]) -> Option<FirstError> {
    let log = log::decoded(log);
    let mut lines = Lines::new(&log);
    let mut memory = Memory::default();
    let mut best: Option<(Sign, FirstError)> = None;
    let mut tail: std::collections::VecDeque<Line> = std::collections::VecDeque::new();
    loop {
        let here = lines.clone();
        let Some(line) = lines.next() else { break };
        if line.text.trim().is_empty() {
            continue;
        }
        let found = match json::read(&line, &here, &mut lines, &mut memory.json) {
            json::Read::Found(found) => Some(found),
            json::Read::Content => None,
            json::Read::Nothing => read(&line, &lines, &mut memory, best.is_some()),
        };
        if let Some(found) = found
            && best.as_ref().is_none_or(|(sign, _)| *sign < found.sign)
        {
            let sign = found.sign;
            let number = found.from.unwrap_or(line.number);
            let error = told(found, number);
            if sign == Sign::Sure {
                return Some(error);
            }
            best = Some((sign, error));
        }
        if tail.len() == LINES {
            tail.pop_front();
        }
        tail.push_back(line);
    }
    best.map(|(_, error)| error).or_else(|| last(tail.into()))
}

/// What the readers find at a line. Mere words count for as long as nothing was `found`.
fn read(line: &Line, rest: &Lines<'_>, memory: &mut Memory, found: bool) -> Option<Found> {
    if rust::is_of_a_passed_test(line, &mut memory.rust) {
        return None;
    }
    match go::read(line, rest, &mut memory.go) {
        go::Read::Found(found) => return Some(found),
        go::Read::Kept => return None,
        go::Read::Nothing => {}
    }
    rust::read(line, rest, &mut memory.rust)
        .or_else(|| python::read(line, rest, &mut memory.python))
        .or_else(|| script::read(line, rest, &mut memory.script))
        .or_else(|| native::read(line, rest))
        .or_else(|| lint::read(line, rest, &mut memory.lint))
        .or_else(|| if found { None } else { plain(line, rest) })
}

fn told(found: Found, line: u32) -> FirstError {
    let lines = found.text.iter().take(LINES).map(|text| text.chars().take(WIDTH).collect::<String>());
    let text = lines.collect::<Vec<_>>().join("\n").trim_end().to_owned();
    let Place { path, row, column } = found.place.unwrap_or_default();
    FirstError { kind: found.kind, text, line, path: (!path.is_empty()).then_some(path), row, column }
}

fn last(tail: Vec<Line>) -> Option<FirstError> {
    let first = tail.first()?.number;
    let text = tail.into_iter().map(|line| line.text).collect();
    Some(told(Found { sign: Sign::Word, kind: Kind::Tail, text, place: None, from: None }, first))
}

/// Beginnings of lines that call themselves errors.
const WORDS: &[&str] =
    &["error:", "error[", "error ", "fatal:", "fatal error", "failed", "failure:", "panic:", "[error]"];

/// Lines that only say that something failed, somewhere above or below.
const ECHOES: &[&str] = &[
    "error: could not compile",
    "error: test failed",
    "error: aborting due to",
    "error: build failed",
    "error: process didn't exit successfully",
    "error: recipe",
    "failed tests",
    "failed to run",
    "failed in",
    "error summary",
    "error: usage:",
    "collect2: error:",
    "clang: error: linker command failed",
    "clang++: error: linker command failed",
];

/// `0 errors`: none was counted.
fn counts_none(text: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).peekable();
    std::iter::from_fn(|| Some((words.next()?, words.peek().copied().unwrap_or_default()))).any(
        |(count, what)| {
            ["0", "no"].contains(&count) && ["failed", "error", "errors", "failures"].contains(&what)
        },
    )
}

/// A line that calls itself an error. What is indented is quoted by somebody.
fn plain(line: &Line, rest: &Lines<'_>) -> Option<Found> {
    if line.text.starts_with("    ") || line.text.starts_with('\t') {
        return None;
    }
    let text = line.text.trim().to_ascii_lowercase();
    let begins = WORDS.iter().any(|word| text.starts_with(word));
    let named =
        text.contains(": error:") || text.contains(": fatal error:") || line.text.ends_with(" ... FAILED");
    let thrown = text.split_whitespace().next().is_some_and(|word| {
        word.ends_with("error:") || word.ends_with("exception:") || word.ends_with("exception")
    });
    if !(begins || named || thrown) || ECHOES.iter().any(|echo| text.starts_with(echo)) || counts_none(&text)
    {
        return None;
    }
    let why = || if line.text.starts_with("error: ") { rust::why(rest) } else { Vec::new() };
    Some(Found {
        sign: Sign::Word,
        kind: Kind::Plain,
        text: std::iter::once(line.text.clone()).chain(why()).collect(),
        place: Place::in_front(&line.text).map(|(place, _)| place),
        from: None,
    })
}

#[cfg(test)]
mod tests;
