//! pytest, and tracebacks of Python programs.

use super::log::{Line, Lines};
use super::place::Place;
use super::{Found, Kind, LINES, Sign};

/// Where in pytest's output a line stands.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Behind the ruler above failures.
    failures: bool,
    /// The last `path:row:` of a file that is no library.
    place: Option<Place>,
    /// The last line of source that pytest points at.
    source: Option<String>,
}

pub(super) fn read(line: &Line, rest: &Lines<'_>, memory: &mut Memory) -> Option<Found> {
    let text = line.text.as_str();
    if text.starts_with("===") {
        memory.failures = ruler(text, "FAILURES") || ruler(text, "ERRORS");
    } else if memory.failures && text.starts_with("E  ") {
        return Some(assertion(line, rest, memory));
    } else if memory.failures && text.starts_with("> ") {
        memory.source = Some(text.to_owned());
    } else if memory.failures
        && let Some((place, _)) = Place::in_front(text).filter(|(place, _)| !is_library(&place.path))
    {
        memory.place = Some(place);
    } else if let Some(found) = summary(text) {
        return Some(found);
    } else if text == "Traceback (most recent call last):" {
        return traceback(line, rest);
    }
    None
}

/// `=== WORD ===`
fn ruler(text: &str, word: &str) -> bool {
    text.trim_matches('=').trim() == word
}

fn is_library(path: &str) -> bool {
    path.contains("site-packages/") || path.contains("/lib/python") || path.starts_with('<')
}

/// The lines that say what is wrong. Their place stands below in the long form, above in the short one, within where it is a matter of syntax.
fn assertion(line: &Line, rest: &Lines<'_>, memory: &mut Memory) -> Found {
    let mut wrong = vec![line.text.clone()];
    wrong.extend(rest.ahead_while(LINES, |next| next.starts_with("E  ")));
    let within = wrong.iter().find_map(|text| file(text.trim_start_matches('E').trim_start()));
    let behind = || {
        let next = rest.ahead(LINES).map(|next| next.text).skip_while(|next| next.starts_with("E  "));
        let next = next.skip_while(|next| next.is_empty() || next.starts_with("  ")).next()?;
        Place::in_front(&next).map(|(place, _)| place)
    };
    let place = within.or_else(behind).or_else(|| memory.place.take());
    let text = memory.source.take().into_iter().chain(wrong).collect();
    Found { sign: Sign::Sure, kind: Kind::Pytest, text, place }
}

/// `FAILED path::test - message` of the short summary, where nothing else was shown.
fn summary(text: &str) -> Option<Found> {
    let what = text.strip_prefix("FAILED ").or_else(|| text.strip_prefix("ERROR "))?;
    let path = what.split("::").next().unwrap_or(what).split(" - ").next().unwrap_or(what);
    path.ends_with(".py").then(|| Found {
        sign: Sign::Likely,
        kind: Kind::Pytest,
        text: vec![text.to_owned()],
        place: Some(Place { path: path.to_owned(), row: None, column: None }),
    })
}

/// Up to the exception itself, the first line that is not indented. A program may log one that it has handled.
fn traceback(line: &Line, rest: &Lines<'_>) -> Option<Found> {
    let body: Vec<String> = rest.ahead(200).map(|next| next.text).collect();
    let end = body.iter().position(|text| !text.is_empty() && !text.starts_with(' '))?;
    let place =
        body[..end].iter().filter_map(|text| file(text.trim_start())).rfind(|place| !is_library(&place.path));
    let shown = body[end.saturating_sub(LINES - 3)..=end].iter().cloned();
    let text = std::iter::once(line.text.clone()).chain(shown).collect();
    Some(Found { sign: Sign::Likely, kind: Kind::Python, text, place })
}

/// `File "path", line 4, in f`
fn file(text: &str) -> Option<Place> {
    let (path, rest) = text.strip_prefix("File \"")?.split_once("\", line ")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some(Place::new(path, digits.parse().ok()?, None))
}
