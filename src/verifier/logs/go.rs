//! The Go compiler, Go tests, and Go programs that panic.
//!
//! With `-v` and in JSON, what a test says stands above the word on how it ended, mixed with what others say
//! at the same time. So that is kept test by test until its word comes: a test that passed may have said
//! anything.

use crate::domain::proof::run::Kind;
use crate::verifier::logs::log::{LogLine, LogLines};
use crate::verifier::logs::place::SourcePlace;
use crate::verifier::logs::{FoundError, LINES, Reading, Sign};
use std::collections::HashMap;

/// How far down the stacks of a panic are looked at.
const STACK: usize = 200;

/// What tests have said whose end is not told yet.
#[derive(Debug, Default)]
pub(super) struct GoMemory {
    /// The test that the lines of plain text belong to.
    current: Option<String>,
    said: HashMap<String, TestWords>,
}

/// The last thing that a test said with a place, or what it printed without.
#[derive(Debug, Default)]
struct TestWords {
    text: Vec<String>,
    place: Option<SourcePlace>,
    number: u32,
}

pub(super) fn read_line(line: &LogLine, rest: &LogLines<'_>, memory: &mut GoMemory) -> Reading {
    let text = line.text.as_str();
    let trimmed = text.trim_start();
    if let Some(found) = find_panic(line, rest).or_else(|| find_data_race(line, rest)) {
        return Reading::Error(found);
    }
    if let Some(name) = name_of_ended_test(trimmed, "--- FAIL: ") {
        return Reading::Error(read_failed_test(line, rest, memory, name));
    }
    if let Some(name) =
        name_of_ended_test(trimmed, "--- PASS: ").or_else(|| name_of_ended_test(trimmed, "--- SKIP: "))
    {
        memory.said.remove(&key_of_test(line, name));
        memory.leave_test(text);
        return Reading::Nothing;
    }
    if let Some(what) = text.strip_prefix("=== ") {
        let mut words = what.split_whitespace();
        let is_test = |name: &&str| ["Test", "Example", "Fuzz"].iter().any(|word| name.starts_with(word));
        if let (Some("RUN" | "CONT" | "NAME"), Some(name)) = (words.next(), words.next().filter(is_test)) {
            memory.current = Some(name.to_owned());
        }
        return Reading::Nothing;
    }
    if ["ok  \t", "FAIL\t", "exit status "].iter().any(|word| text.starts_with(word)) || text == "FAIL" {
        return memory.take_unfinished_test(line).map_or(Reading::Nothing, Reading::Error);
    }
    if let Some(test) = memory.test_of(line) {
        memory.said.entry(test).or_default().add_line(line);
        return Reading::Content;
    }
    find_compiler_error(text).map_or(Reading::Nothing, Reading::Error)
}

impl GoMemory {
    /// The test that said a line.
    fn test_of(&self, line: &LogLine) -> Option<String> {
        match &line.owner {
            Some(owner) => owner.test.as_deref().map(|test| key_of_test(line, test)),
            None => self.current.as_deref().map(|test| key_of_test(line, test)),
        }
    }

    /// After the end of a test, lines belong to none until the next is named. The ends of its parts are
    /// indented.
    fn leave_test(&mut self, text: &str) {
        if !text.starts_with(' ') {
            self.current = None;
        }
    }

    /// What a test has said that never came to its end, at the end of its package.
    fn take_unfinished_test(&mut self, line: &LogLine) -> Option<FoundError> {
        let test = self.current.take()?;
        let said = self.said.remove(&key_of_test(line, &test))?;
        (!line.text.starts_with("ok")).then_some(())?;
        let from = Some(said.number);
        Some(FoundError { sign: Sign::Likely, kind: Kind::GoTest, text: said.text, place: said.place, from })
    }
}

impl TestWords {
    fn add_line(&mut self, line: &LogLine) {
        let text = line.text.as_str();
        let place = text.strip_prefix("    ").and_then(|text| place_in_words(text.trim_start()));
        if place.is_some() || self.text.is_empty() {
            *self = Self { text: vec![text.to_owned()], place, number: line.number };
        } else if self.text.len() < LINES && !text.trim().is_empty() {
            self.text.push(text.to_owned());
        }
    }
}

/// A test by its name, in its package where that is told.
fn key_of_test(line: &LogLine, test: &str) -> String {
    let package = line.owner.as_ref().map(|owner| owner.package.as_str()).unwrap_or_default();
    format!("{package}\0{test}")
}

/// `--- FAIL: Name (0.00s)`
fn name_of_ended_test<'t>(text: &'t str, how: &str) -> Option<&'t str> {
    text.strip_prefix(how)?.split_whitespace().next()
}

/// `path.go:row:column: …`
fn find_compiler_error(text: &str) -> Option<FoundError> {
    let (place, _) = SourcePlace::in_front(text)?;
    (place.path.ends_with(".go") && place.column.is_some()).then(|| FoundError {
        sign: Sign::Sure,
        kind: Kind::Go,
        text: vec![text.to_owned()],
        place: Some(place),
        from: None,
    })
}

/// `x_test.go:6: …`
fn place_in_words(text: &str) -> Option<SourcePlace> {
    SourcePlace::in_front(text).map(|(place, _)| place).filter(|place| place.path.ends_with(".go"))
}

fn read_failed_test(line: &LogLine, rest: &LogLines<'_>, memory: &mut GoMemory, name: &str) -> FoundError {
    let above = memory.said.remove(&key_of_test(line, name)).unwrap_or_default();
    memory.leave_test(&line.text);
    let ends = |next: &str| {
        ["---", "===", "FAIL", "PASS", "ok "].iter().any(|word| next.trim_start().starts_with(word))
    };
    let next = lines_of_package(line, rest, LINES).take_while(|next| !ends(&next.text));
    let below: Vec<String> = next.map(|next| next.text).collect();
    let panic = below.iter().position(|text| text.starts_with("panic: "));
    if let Some(mut found) = panic.and_then(|at| read_panic(&below[at..], line, rest)) {
        found.text.insert(0, line.text.clone());
        return found;
    }
    let place =
        above.place.clone().or_else(|| below.iter().find_map(|text| place_in_words(text.trim_start())));
    // A test that failed by its parts has nothing of its own to say: the next word of failure has.
    let sign = if place.is_some() { Sign::Sure } else { Sign::Likely };
    let text = std::iter::once(line.text.clone()).chain(above.text).chain(below).collect();
    FoundError { sign, kind: Kind::GoTest, text, place, from: None }
}

fn lines_of_package<'l>(
    line: &'l LogLine,
    rest: &LogLines<'l>,
    count: usize,
) -> impl Iterator<Item = LogLine> + use<'l> {
    let package = line.owner.as_ref().map(|owner| owner.package.clone());
    rest.ahead(count).filter(move |next| next.owner.as_ref().map(|owner| &owner.package) == package.as_ref())
}

/// `panic: …` and the goroutine below it.
fn find_panic(line: &LogLine, rest: &LogLines<'_>) -> Option<FoundError> {
    if !line.text.starts_with("panic: ") && !line.text.starts_with("fatal error: ") {
        return None;
    }
    // Looked for first: most lines with the word have no stack below them.
    rest.mention(LINES * 2, "goroutine ").then_some(())?;
    let mut said = vec![line.text.clone()];
    said.extend(rest.ahead_while(LINES, |next| !next.is_empty()));
    read_panic(&said, line, rest)
}

fn read_panic(said: &[String], line: &LogLine, rest: &LogLines<'_>) -> Option<FoundError> {
    let is_stack = |next: &LogLine| next.text.starts_with("goroutine ");
    lines_of_package(line, rest, LINES * 2).position(|next| is_stack(&next))?;
    let stack = lines_of_package(line, rest, STACK).skip_while(|next| !is_stack(next));
    let frames = stack.filter_map(|next| next.text.strip_prefix('\t').and_then(place_of_frame));
    let late = said.first().is_some_and(|text| text.contains("test timed out"));
    let text = said.iter().take_while(|text| !text.starts_with("goroutine ")).cloned().collect();
    let place = own_frame(&frames.collect::<Vec<_>>(), late);
    Some(FoundError { sign: Sign::Sure, kind: Kind::GoTest, text, place, from: None })
}

/// What the race detector saw.
fn find_data_race(line: &LogLine, rest: &LogLines<'_>) -> Option<FoundError> {
    (line.text == "WARNING: DATA RACE").then_some(())?;
    let block = lines_of_package(line, rest, STACK).map(|next| next.text);
    let block: Vec<String> = block.take_while(|text| !text.starts_with("=====")).collect();
    let frames: Vec<SourcePlace> =
        block.iter().filter_map(|text| text.strip_prefix("      ").and_then(place_of_frame)).collect();
    let place = own_frame(&frames, false);
    let text = std::iter::once(line.text.clone()).chain(block).collect();
    Some(FoundError { sign: Sign::Sure, kind: Kind::GoTest, text, place, from: None })
}

/// `/path.go:7 +0x30`
fn place_of_frame(text: &str) -> Option<SourcePlace> {
    SourcePlace::whole(text.split(" +0x").next()?)
}

/// The first frame of the program itself. Who runs out of time waits somewhere: there it is the test's that
/// counts.
fn own_frame(frames: &[SourcePlace], late: bool) -> Option<SourcePlace> {
    // Where Go itself lies is told by the parts of it that are in every stack.
    let root = frames.iter().find_map(|frame| {
        let path = frame.path.as_str();
        let at = path.find("/src/testing/").or_else(|| path.find("/src/runtime/"))?;
        Some(format!("{}/src/", &path[..at]))
    });
    let of_go = |place: &SourcePlace| {
        let path = place.path.as_str();
        path.starts_with('_') || root.as_ref().is_some_and(|root| path.starts_with(root.as_str()))
    };
    let own: Vec<&SourcePlace> = frames.iter().filter(|place| !of_go(place)).collect();
    let test = own.iter().find(|place| late && place.path.ends_with("_test.go"));
    let here = own.iter().find(|place| !place.path.contains("/pkg/mod/"));
    test.or(here).or(own.first()).copied().cloned()
}
