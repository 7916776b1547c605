//! tsc, Jest and Vitest.

use super::log::{Line, Lines};
use super::place::Place;
use super::{Found, Kind, LINES, Sign};

pub(super) fn read(line: &Line, rest: &Lines<'_>) -> Option<Found> {
    typescript(line, rest).or_else(|| vitest(line, rest)).or_else(|| jest(line, rest))
}

/// `path(row,column): error TS1: …`, or `path:row:column - error TS1: …`.
fn typescript(line: &Line, rest: &Lines<'_>) -> Option<Found> {
    let text = line.text.as_str();
    let (front, _) = text.split_once("error TS")?;
    let place = match front.trim_end().strip_suffix(" -") {
        Some(place) => Place::whole(place),
        None => in_brackets(front.trim_end().strip_suffix(':')?),
    }?;
    let mut lines = vec![text.to_owned()];
    lines.extend(rest.ahead_while(5, |next| next.starts_with(' ')));
    Some(Found { sign: Sign::Sure, kind: Kind::Tsc, text: lines, place: Some(place) })
}

/// `path(row,column)`
fn in_brackets(text: &str) -> Option<Place> {
    let (path, numbers) = text.strip_suffix(')')?.rsplit_once('(')?;
    let (row, column) = numbers.split_once(',')?;
    Some(Place::new(path, row.parse().ok()?, column.parse().ok()))
}

/// ` FAIL  path > name`, the error below it, and an arrow to its place.
fn vitest(line: &Line, rest: &Lines<'_>) -> Option<Found> {
    line.text.trim_start().strip_prefix("FAIL ")?;
    let below: Vec<String> = rest.ahead(40).map(|next| next.text).collect();
    let arrow = below.iter().position(|text| place_behind(text, "❯ ").is_some())?;
    // Another file's failure in between: the arrow is not this one's.
    if below[..arrow].iter().any(|text| text.trim_start().starts_with('●')) {
        return None;
    }
    let text = std::iter::once(&line.text).chain(&below[..=arrow]).cloned().collect();
    let place = place_behind(&below[arrow], "❯ ");
    Some(Found { sign: Sign::Sure, kind: Kind::Vitest, text, place })
}

/// `● suite › test`, what was expected, and the stack.
fn jest(line: &Line, rest: &Lines<'_>) -> Option<Found> {
    let name = line.text.trim_start().strip_prefix("● ")?;
    if name.starts_with("Console") || name.contains("Warning") {
        return None;
    }
    let below: Vec<String> = rest.ahead(80).map(|next| next.text).collect();
    let own = below.iter().take_while(|text| !text.trim_start().starts_with("● "));
    let own: Vec<&String> = own.collect();
    let place = own
        .iter()
        .filter_map(|text| place_behind(text, "at "))
        .find(|place| !place.path.contains("node_modules"));
    let said = own.iter().filter(|text| !text.trim().is_empty()).take(LINES - 1).map(|text| (*text).clone());
    let text = std::iter::once(line.text.clone()).chain(said).collect();
    Some(Found { sign: Sign::Sure, kind: Kind::Jest, text, place })
}

/// The place behind a sign: `❯ path:row:column`, `at name (path:row:column)`.
fn place_behind(text: &str, sign: &str) -> Option<Place> {
    let text = text.trim_start().strip_prefix(sign)?.trim_end_matches(')');
    let place = Place::whole(text.rsplit(['(', ' ']).next()?)?;
    place.column.is_some().then_some(place)
}
