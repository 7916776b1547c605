//! rustc and clippy; panics of tests and programs.

use crate::domain::proof::run::Kind;
use crate::verifier::logs::log::{LogLine, LogLines};
use crate::verifier::logs::place::SourcePlace;
use crate::verifier::logs::{FoundError, LINES, Reading, Sign};
use std::collections::HashMap;

/// The most panics that are kept until it is told whose they were.
const PANICS: usize = 1000;

/// Which part of the output of tests it is.
#[derive(Debug, Default)]
pub(super) struct RustMemory {
    running: bool,
    /// What libtest shows of tests that passed.
    successes: bool,
    /// libtest names those that failed.
    names: bool,
    /// What nextest shows of a test that passed.
    passed: bool,
    /// By the name of the thread, which is that of the test.
    panics: HashMap<String, (Vec<String>, SourcePlace, u32)>,
}

pub(super) fn read_line(line: &LogLine, rest: &LogLines<'_>, memory: &mut RustMemory) -> Option<FoundError> {
    if memory.names
        && let Some(name) = line.text.strip_prefix("    ")
        && let Some((text, place, number)) = memory.panics.remove(name)
    {
        let from = Some(number);
        return Some(FoundError { sign: Sign::Sure, kind: Kind::Libtest, text, place: Some(place), from });
    }
    find_diagnostic(line, rest)
        .or_else(|| find_failed_test(line, rest))
        .or_else(|| find_link_error(line, rest))
        .or_else(|| {
            let (text, place) = read_panic(&line.text, rest)?;
            if memory.panics.len() < PANICS
                && let Some(name) = thread_name(&text[0])
            {
                let seen = || (text.clone(), place.clone(), line.number);
                memory.panics.entry(name.to_owned()).or_insert_with(seen);
            }
            Some(FoundError { sign: Sign::Likely, kind: Kind::Libtest, text, place: Some(place), from: None })
        })
}

/// Takes the lines that a passed test wrote: nothing in them is an error.
pub(super) fn pass_over_passed_test(line: &LogLine, memory: &mut RustMemory) -> Reading {
    let text = line.text.as_str();
    match text {
        "successes:" => memory.successes = memory.running,
        "failures:" => memory.successes = false,
        _ if text.starts_with("test result: ") => (memory.successes, memory.running) = (false, false),
        _ if text.starts_with("running ") && text.contains(" test") => memory.running = true,
        _ => {}
    }
    memory.names = text == "failures:" || (memory.names && text.starts_with("    "));
    match nextest_status(text) {
        Some(word) => memory.passed = word.ends_with("PASS") || word == "LEAK",
        None => memory.passed &= text.starts_with("  "),
    }
    if memory.successes || memory.passed { Reading::Content } else { Reading::Nothing }
}

/// `        PASS [   0.008s] (1/3) crate test` of nextest.
fn nextest_status(text: &str) -> Option<&str> {
    let (word, rest) = text.strip_prefix("  ")?.trim_start().split_once(" [")?;
    let time = rest.split_once("s]")?.0.trim_start_matches([' ', '>']);
    (time.parse::<f64>().is_ok() && !word.bytes().any(|b| b.is_ascii_lowercase())).then_some(word)
}

/// `error…: …`, and the arrow to its place right below. Errors of cargo itself have none.
fn find_diagnostic(line: &LogLine, rest: &LogLines<'_>) -> Option<FoundError> {
    if !line.text.starts_with("error: ") && !line.text.starts_with("error[") {
        return None;
    }
    rest.mention(3, "--> ").then_some(())?;
    let place = rest.ahead(3).find_map(|next| place_of_arrow(&next.text))?;
    let mut text = vec![line.text.clone()];
    text.extend(rest.ahead_while(LINES, |next| !next.trim().is_empty()));
    Some(FoundError { sign: Sign::Sure, kind: Kind::Rustc, text, place: Some(place), from: None })
}

/// ` --> path:row:column`
pub(super) fn place_of_arrow(text: &str) -> Option<SourcePlace> {
    SourcePlace::whole(text.trim_start().strip_prefix("--> ")?)
}

/// The linker's words stand behind those with which it was called.
fn find_link_error(line: &LogLine, rest: &LogLines<'_>) -> Option<FoundError> {
    line.text.starts_with("error: linking with ").then_some(())?;
    let block = rest.ahead_while(40, |next| !next.is_empty());
    let called = |text: &str| {
        let note = text.trim_start().trim_start_matches("= note:").trim_start();
        note == "|"
            || note.starts_with('"')
            || note.starts_with("some arguments")
            || note.starts_with("collect2:")
    };
    let said: Vec<String> = block.into_iter().filter(|text| !called(text)).collect();
    // `>>> referenced by main.rs:2 (src/main.rs:2)`
    let place = said.iter().filter(|text| text.contains(">>> referenced by")).find_map(|text| {
        let within = text.trim_end_matches(')').rsplit([' ', '(']).next()?;
        SourcePlace::whole(within)
    });
    let text = std::iter::once(line.text.clone()).chain(said).collect();
    Some(FoundError { sign: Sign::Sure, kind: Kind::Linker, text, place, from: None })
}

/// What an error without a place has below it: why it is one.
pub(super) fn read_causes(rest: &LogLines<'_>) -> Vec<String> {
    let (mut said, mut gap) = (Vec::new(), false);
    for next in rest.ahead(LINES * 2) {
        let text = next.text;
        if text.trim().is_empty() {
            gap = true;
            continue;
        }
        let cause = text.starts_with("Caused by:");
        let belongs = [" ", "note:", "help:", "location searched:", "required by "]
            .iter()
            .any(|word| text.starts_with(word));
        if !cause && (gap || !belongs) {
            break;
        }
        gap = false;
        said.push(text);
    }
    said
}

/// What libtest shows of a failed test: `---- name stdout ----`, then what it printed, its panic among that.
fn find_failed_test(line: &LogLine, rest: &LogLines<'_>) -> Option<FoundError> {
    let name = line.text.strip_prefix("---- ")?;
    let name = name.strip_suffix(" stdout ----").or_else(|| name.strip_suffix(" stderr ----"))?;
    let ends = |text: &str| text.starts_with("---- ") || text == "failures:";
    let mut body = rest.clone();
    let mut printed = Vec::new();
    for _ in 0..1000 {
        let Some(next) = body.next().filter(|next| !ends(&next.text)) else { break };
        if let Some((mut text, place)) = read_panic(&next.text, &body) {
            let mut from = Some(next.number);
            // A thread that the test started has another name.
            if !text[0].contains(name) {
                text.insert(0, line.text.clone());
                from = None;
            }
            return Some(FoundError {
                sign: Sign::Sure,
                kind: Kind::Libtest,
                text,
                place: Some(place),
                from,
            });
        }
        // An example in the documentation that does not compile.
        if let Some(mut found) = find_diagnostic(&next, &body).filter(|_| name.contains(" (line ")) {
            found.text.insert(0, line.text.clone());
            return Some(found);
        }
        if !next.text.trim().is_empty() && printed.len() < LINES {
            printed.push(next.text);
        }
    }
    // A test can fail by what it returns; then there is no place.
    let text = std::iter::once(line.text.clone()).chain(printed).collect();
    Some(FoundError { sign: Sign::Sure, kind: Kind::Libtest, text, place: None, from: None })
}

/// The name of the thread in `thread 'name' (1) panicked at …`.
fn thread_name(text: &str) -> Option<&str> {
    text.strip_prefix("thread '")?.split_once('\'').map(|(name, _)| name)
}

/// `thread '…' panicked at path:row:column:`, and the message below it.
fn read_panic(text: &str, rest: &LogLines<'_>) -> Option<(Vec<String>, SourcePlace)> {
    let text = text.trim_start();
    let (_, at) = text.strip_prefix("thread '")?.split_once(" panicked at ")?;
    // Before Rust 1.73 the message stood in front of the place.
    let at = if at.starts_with('\'') { at.rsplit_once(", ")?.1 } else { at };
    let place = SourcePlace::whole(at)?;
    let ends = |next: &str| {
        let next = next.trim_start();
        next.is_empty()
            || next == "ok"
            || next == "FAILED"
            || next.starts_with("stack backtrace:")
            || next.starts_with("note: ")
    };
    let mut said = vec![text.to_owned()];
    said.extend(rest.ahead_while(LINES, |next| !ends(next)));
    Some((said, place))
}
