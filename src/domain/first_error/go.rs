//! The Go compiler, Go tests, and Go programs that panic.

use super::log::{Line, Lines};
use super::place::Place;
use super::{Found, Kind, LINES, Sign};

/// What the test that runs has said last, with its place. With `-v` that stands above the word that it failed.
#[derive(Debug, Default)]
pub(super) struct Memory {
    said: Option<(String, Place)>,
}

pub(super) fn read(line: &Line, rest: &Lines<'_>, memory: &mut Memory) -> Option<Found> {
    let text = line.text.as_str();
    let trimmed = text.trim_start();
    if trimmed.starts_with("=== RUN") || trimmed.starts_with("--- PASS") {
        memory.said = None;
    } else if trimmed.starts_with("--- FAIL: ") {
        return Some(failure(line, rest, memory));
    } else if let Some(found) = panic(line, rest) {
        return Some(found);
    } else if text.starts_with("    ") {
        if let Some(place) = said_at(trimmed) {
            memory.said = Some((text.to_owned(), place));
        }
    } else if let Some((place, _)) = Place::in_front(text)
        && place.path.ends_with(".go")
        && place.column.is_some()
    {
        return Some(Found {
            sign: Sign::Sure,
            kind: Kind::Go,
            text: vec![text.to_owned()],
            place: Some(place),
        });
    }
    None
}

/// `x_test.go:6: …`
fn said_at(text: &str) -> Option<Place> {
    Place::in_front(text).map(|(place, _)| place).filter(|place| place.path.ends_with(".go"))
}

fn failure(line: &Line, rest: &Lines<'_>, memory: &mut Memory) -> Found {
    let ends = |next: &str| {
        ["---", "===", "FAIL", "PASS", "ok "].iter().any(|word| next.trim_start().starts_with(word))
    };
    let below = rest.ahead_while(LINES, |next| !ends(next));
    if let Some(found) = below.iter().enumerate().find_map(|(at, text)| {
        let from = text.starts_with("panic: ").then_some(at)?;
        let mut found = panicked(&below[from..], rest)?;
        found.text.insert(0, line.text.clone());
        Some(found)
    }) {
        return found;
    }
    let place = below.iter().find_map(|text| said_at(text.trim_start()));
    let above = memory.said.take();
    // A test that failed by its parts has nothing of its own to say: the next word of failure has.
    let sign = if place.is_some() || above.is_some() { Sign::Sure } else { Sign::Likely };
    let mut text = vec![line.text.clone()];
    text.extend(above.iter().filter(|_| place.is_none()).map(|(said, _)| said.clone()));
    text.extend(below);
    Found { sign, kind: Kind::GoTest, text, place: place.or_else(|| above.map(|(_, place)| place)) }
}

/// `panic: …` and the goroutine below it.
fn panic(line: &Line, rest: &Lines<'_>) -> Option<Found> {
    if !line.text.starts_with("panic: ") && !line.text.starts_with("fatal error: ") {
        return None;
    }
    let mut lines = vec![line.text.clone()];
    lines.extend(rest.ahead_while(LINES, |next| !next.is_empty()));
    panicked(&lines, rest)
}

fn panicked(said: &[String], rest: &Lines<'_>) -> Option<Found> {
    let stack: Vec<String> = rest.ahead(100).map(|next| next.text).collect();
    let start = stack.iter().position(|text| text.starts_with("goroutine "))?;
    let frames = stack[start..].iter().filter_map(|text| text.strip_prefix('\t'));
    let places = frames.filter_map(|frame| Place::whole(frame.split(" +0x").next()?));
    let place = places.into_iter().find(|place| !is_of_go(&place.path));
    let text = said.iter().take_while(|text| !text.starts_with("goroutine ")).cloned().collect();
    Some(Found { sign: Sign::Sure, kind: Kind::GoTest, text, place })
}

/// Files of Go itself: the runtime and the package of tests are in every stack.
fn is_of_go(path: &str) -> bool {
    path.contains("/src/runtime/") || path.contains("/src/testing/") || path.starts_with('_')
}
