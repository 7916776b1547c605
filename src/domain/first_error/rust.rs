//! rustc and clippy; panics of tests and programs.

use super::log::{Line, Lines};
use super::place::Place;
use super::{Found, Kind, LINES, Sign};

pub(super) fn read(line: &Line, rest: &Lines<'_>) -> Option<Found> {
    diagnostic(line, rest).or_else(|| section(line, rest)).or_else(|| {
        let (text, place) = panic(&line.text, rest)?;
        Some(Found { sign: Sign::Likely, kind: Kind::Libtest, text, place: Some(place) })
    })
}

/// `error…: …`, and the arrow to its place right below. Errors of cargo itself have none.
fn diagnostic(line: &Line, rest: &Lines<'_>) -> Option<Found> {
    if !line.text.starts_with("error: ") && !line.text.starts_with("error[") {
        return None;
    }
    let arrow = rest.ahead(3).find_map(|next| Place::whole(next.text.trim_start().strip_prefix("--> ")?))?;
    let mut text = vec![line.text.clone()];
    text.extend(rest.ahead_while(LINES, |next| !next.trim().is_empty()));
    Some(Found { sign: Sign::Sure, kind: Kind::Rustc, text, place: Some(arrow) })
}

/// What libtest shows of a failed test: `---- name stdout ----`, then what it printed, its panic among that.
fn section(line: &Line, rest: &Lines<'_>) -> Option<Found> {
    let name = line.text.strip_prefix("---- ")?;
    let name = name.strip_suffix(" stdout ----").or_else(|| name.strip_suffix(" stderr ----"))?;
    let ends = |text: &str| text.starts_with("---- ") || text == "failures:";
    let mut body = rest.clone();
    let mut printed = Vec::new();
    for _ in 0..1000 {
        let Some(next) = body.next().filter(|next| !ends(&next.text)) else { break };
        if let Some((mut text, place)) = panic(&next.text, &body) {
            if !text[0].contains(name) {
                text.insert(0, line.text.clone());
            }
            return Some(Found { sign: Sign::Sure, kind: Kind::Libtest, text, place: Some(place) });
        }
        if !next.text.trim().is_empty() && printed.len() < LINES {
            printed.push(next.text);
        }
    }
    // A test can fail by what it returns; then there is no place.
    let text = std::iter::once(line.text.clone()).chain(printed).collect();
    Some(Found { sign: Sign::Sure, kind: Kind::Libtest, text, place: None })
}

/// `thread '…' panicked at path:row:column:`, and the message below it.
fn panic(text: &str, rest: &Lines<'_>) -> Option<(Vec<String>, Place)> {
    let text = text.trim_start();
    let (_, at) = text.strip_prefix("thread '")?.split_once(" panicked at ")?;
    // Before Rust 1.73 the message stood in front of the place.
    let place = Place::whole(at).or_else(|| Place::whole(at.rsplit_once(", ")?.1))?;
    let ends = |next: &str| {
        let next = next.trim_start();
        next.is_empty() || next.starts_with("stack backtrace:") || next.starts_with("note: ")
    };
    let mut said = vec![text.to_owned()];
    said.extend(rest.ahead_while(LINES, |next| !ends(next)));
    Some((said, place))
}
