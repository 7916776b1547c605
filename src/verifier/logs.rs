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
use log::{LogLine, LogLines};
use place::SourcePlace;

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
struct FoundError {
    sign: Sign,
    kind: Kind,
    text: Vec<String>,
    place: Option<SourcePlace>,
    /// The line that it begins at, where that is further down.
    from: Option<u32>,
}

/// What a reader says of a line.
#[derive(Debug)]
enum Reading {
    Error(FoundError),
    /// The line is the reader's, and tells of no error; no other reader is asked.
    Content,
    /// The line is not the reader's.
    Nothing,
}

impl From<Option<FoundError>> for Reading {
    fn from(found: Option<FoundError>) -> Self {
        found.map_or(Self::Nothing, Self::Error)
    }
}

/// What earlier lines have left for later ones.
#[derive(Debug, Default)]
struct LogMemory {
    json: json::JsonMemory,
    rust: rust::RustMemory,
    python: python::PythonMemory,
    mocha: script::MochaMemory,
    lint: lint::LintMemory,
    go: go::GoMemory,
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
    let log = log::decode_by_mark(log);
    let mut lines = LogLines::new(&log);
    let mut memory = LogMemory::default();
    let mut best: Option<(Sign, FirstError)> = None;
    let mut tail: std::collections::VecDeque<LogLine> = std::collections::VecDeque::new();
    loop {
        let here = lines.clone();
        let Some(line) = lines.next() else { break };
        if line.text.trim().is_empty() {
            continue;
        }
        let reading = match json::read_value(&line, &here, &mut lines, &mut memory.json) {
            Reading::Nothing => read_line(&line, &lines, &mut memory, best.is_some()),
            reading => reading,
        };
        if let Reading::Error(found) = reading
            && best.as_ref().is_none_or(|(sign, _)| *sign < found.sign)
        {
            let sign = found.sign;
            let number = found.from.unwrap_or(line.number);
            let error = quote_error(found, number);
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
    best.map(|(_, error)| error).or_else(|| quote_last_lines(tail.into()))
}

/// Reads a line as one tool family writes it.
type LogReader = fn(&LogLine, &LogLines<'_>, &mut LogMemory) -> Reading;

/// The readers, in the order in which they are asked; the first that knows the line has it.
const READERS: &[LogReader] = &[
    |line, _, memory| rust::pass_over_passed_test(line, &mut memory.rust),
    |line, rest, memory| go::read_line(line, rest, &mut memory.go),
    |line, rest, memory| rust::read_line(line, rest, &mut memory.rust).into(),
    |line, rest, memory| python::read_line(line, rest, &mut memory.python).into(),
    |line, rest, memory| script::read_line(line, rest, &mut memory.mocha).into(),
    |line, rest, _| native::read_line(line, rest).into(),
    |line, rest, memory| lint::read_line(line, rest, &mut memory.lint).into(),
];

/// Asks the readers about a line. Mere words count only as long as nothing else was `found`.
fn read_line(line: &LogLine, rest: &LogLines<'_>, memory: &mut LogMemory, found: bool) -> Reading {
    let readings = READERS.iter().map(|reader| reader(line, rest, memory));
    match readings.into_iter().find(|reading| !matches!(reading, Reading::Nothing)) {
        Some(reading) => reading,
        None if found => Reading::Nothing,
        None => find_plain_error(line, rest).into(),
    }
}

fn quote_error(found: FoundError, line: u32) -> FirstError {
    let lines = found.text.iter().take(LINES).map(|text| text.chars().take(WIDTH).collect::<String>());
    let text = lines.collect::<Vec<_>>().join("\n").trim_end().to_owned();
    let SourcePlace { path, row, column } = found.place.unwrap_or_default();
    FirstError { kind: found.kind, text, line, path: (!path.is_empty()).then_some(path), row, column }
}

fn quote_last_lines(tail: Vec<LogLine>) -> Option<FirstError> {
    let first = tail.first()?.number;
    let text = tail.into_iter().map(|line| line.text).collect();
    Some(quote_error(FoundError { sign: Sign::Word, kind: Kind::Tail, text, place: None, from: None }, first))
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
fn find_plain_error(line: &LogLine, rest: &LogLines<'_>) -> Option<FoundError> {
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
    let causes = || if line.text.starts_with("error: ") { rust::read_causes(rest) } else { Vec::new() };
    Some(FoundError {
        sign: Sign::Word,
        kind: Kind::Plain,
        text: std::iter::once(line.text.clone()).chain(causes()).collect(),
        place: SourcePlace::in_front(&line.text).map(|(place, _)| place),
        from: None,
    })
}

#[cfg(test)]
mod tests;
