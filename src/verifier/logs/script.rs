//! tsc, Jest, Vitest, mocha, Node.js and its tests.

use crate::domain::proof::run::Kind;
use crate::verifier::logs::log::{LogLine, LogLines};
use crate::verifier::logs::place::SourcePlace;
use crate::verifier::logs::{FoundError, LINES, Sign};

/// How far down an error is looked at: advice and excerpts of source stand above its stack.
const BLOCK: usize = 80;

/// What mocha has come to.
#[derive(Debug, Default)]
pub(super) struct MochaMemory {
    /// Behind `2 failing`: what has a number there is a failure.
    failing: bool,
}

pub(super) fn read_line(line: &LogLine, rest: &LogLines<'_>, memory: &mut MochaMemory) -> Option<FoundError> {
    find_tsc_error(line, rest)
        .or_else(|| find_vitest_failure(line, rest))
        .or_else(|| find_jest_failure(line, rest))
        .or_else(|| find_mocha_failure(line, rest, memory))
        .or_else(|| find_tap_failure(line, rest))
        .or_else(|| find_node_test_failure(line, rest))
        .or_else(|| find_uncaught_error(line, rest))
}

/// `path(row,column): error TS1: …`, or `path:row:column - error TS1: …`; others write the first form with
/// codes of their own.
fn find_tsc_error(line: &LogLine, rest: &LogLines<'_>) -> Option<FoundError> {
    let text = line.text.as_str();
    let (front, code) = text.split_once("error ")?;
    let (code, _) = code.split_once(':')?;
    let letters = code.trim_end_matches(|c: char| c.is_ascii_digit());
    (letters.len() < code.len() && letters.bytes().all(|b| b.is_ascii_uppercase())).then_some(())?;
    let place = match front.trim_end().strip_suffix(" -") {
        Some(place) => SourcePlace::whole(place),
        None => place_in_brackets(front.trim_end().strip_suffix(':')?),
    }?;
    let mut lines = vec![text.to_owned()];
    lines.extend(rest.ahead_while(5, |next| next.starts_with(' ')));
    let kind = if letters == "TS" { Kind::Tsc } else { Kind::Compiler };
    Some(FoundError { sign: Sign::Sure, kind, text: lines, place: Some(place), from: None })
}

/// `path(row,column)`
fn place_in_brackets(text: &str) -> Option<SourcePlace> {
    let (path, numbers) = text.strip_suffix(')')?.rsplit_once('(')?;
    let path = path.rsplit(": ").next()?;
    let (row, column) = numbers.split_once(',')?;
    Some(SourcePlace::new(path, row.parse().ok()?, column.parse().ok()))
}

/// ` FAIL  path > name`, the error below it, and an arrow to its place.
fn find_vitest_failure(line: &LogLine, rest: &LogLines<'_>) -> Option<FoundError> {
    line.text.trim_start().strip_prefix("FAIL ")?;
    rest.mention(BLOCK / 2 + 1, "❯").then_some(())?;
    // Jest begins its files with the same word; its failures begin with a bullet.
    let is_other = |text: &str| text.trim_start().starts_with("FAIL ") || text.trim_start().starts_with('●');
    let below = rest.ahead_while(BLOCK / 2, |text| !is_other(text) && place_behind(text, "❯ ").is_none());
    let place = Some(place_behind(&rest.ahead(BLOCK / 2 + 1).nth(below.len())?.text, "❯ ")?);
    let said = below.into_iter().filter(|text| !text.is_empty());
    let text = std::iter::once(line.text.clone()).chain(said).collect();
    Some(FoundError { sign: Sign::Sure, kind: Kind::Vitest, text, place, from: None })
}

/// `● suite › test`, what was expected, and the stack.
fn find_jest_failure(line: &LogLine, rest: &LogLines<'_>) -> Option<FoundError> {
    let name = line.text.trim_start().strip_prefix("● ")?;
    if name.starts_with("Console") || name.contains("Warning") {
        return None;
    }
    let own = rest.ahead_while(BLOCK, |text| !text.trim_start().starts_with("● "));
    let (said, place) = read_thrown(&own);
    let text = std::iter::once(line.text.clone()).chain(said).collect();
    Some(FoundError { sign: Sign::Sure, kind: Kind::Jest, text, place, from: None })
}

/// `  1) suite`, the rest of the name below it, and the error.
fn find_mocha_failure(line: &LogLine, rest: &LogLines<'_>, memory: &mut MochaMemory) -> Option<FoundError> {
    let trimmed = line.text.trim_start();
    let number = trimmed.trim_start_matches(|c: char| c.is_ascii_digit());
    if number.len() == trimmed.len() || !line.text.starts_with("  ") {
        return None;
    }
    memory.failing |= number == " failing";
    (memory.failing && number.starts_with(") ")).then_some(())?;
    let next = |text: &str| {
        let digits = text.trim_start_matches(' ').trim_start_matches(|c: char| c.is_ascii_digit());
        text.starts_with("  ") && !text.starts_with("    ") && digits.starts_with(") ")
    };
    let (said, place) = read_thrown(&rest.ahead_while(BLOCK, |text| !next(text)));
    let text = std::iter::once(line.text.clone()).chain(said).collect();
    Some(FoundError { sign: Sign::Sure, kind: Kind::Mocha, text, place, from: None })
}

/// `not ok 1 - name`, and what is known of it: as YAML, indented, or in comments.
fn find_tap_failure(line: &LogLine, rest: &LogLines<'_>) -> Option<FoundError> {
    let trimmed = line.text.trim_start();
    let name = trimmed.strip_prefix("not ok ")?;
    // Such a failure is expected.
    if ["# TODO", "# SKIP", "# todo", "# skip"].iter().any(|word| name.contains(word)) {
        return None;
    }
    let depth = line.text.len() - trimmed.len();
    let within = |text: &str| text.is_empty() || text.len() - text.trim_start().len() > depth;
    let below = rest.ahead_while(BLOCK, |text| within(text) || text.trim_start().starts_with("#  "));
    let yaml = |key: &str| below.iter().position(|text| text.trim_start().starts_with(key));
    // A test that failed by its parts says nothing of its own.
    let parts = below.iter().any(|text| text.contains("'subtestsFailed'"));
    let location = yaml("location:")
        .and_then(|at| below[at].split_once(':'))
        .and_then(|(_, text)| SourcePlace::whole(text.trim().trim_matches('\'')));
    let (mut said, at) = read_thrown(&below);
    if let Some(error) = yaml("error:") {
        let keys = |text: &&String| {
            !["code:", "name:", "stack:"].iter().any(|key| text.trim_start().starts_with(key))
        };
        said =
            below[error..].iter().take_while(keys).filter(|text| !text.trim().is_empty()).cloned().collect();
    }
    let place = location.or(at);
    let sign = if parts || (place.is_none() && said.is_empty()) { Sign::Likely } else { Sign::Sure };
    let text = std::iter::once(line.text.clone()).chain(said).collect();
    Some(FoundError { sign, kind: Kind::Tap, text, place, from: None })
}

/// `test at path:row:column`, as Node.js lists failed tests at its end.
fn find_node_test_failure(line: &LogLine, rest: &LogLines<'_>) -> Option<FoundError> {
    let place = place_behind(&line.text, "test at ")?;
    rest.ahead(1).next()?.text.starts_with('✖').then_some(())?;
    let below = rest.ahead_while(BLOCK, |text| !text.starts_with("test at "));
    let text = std::iter::once(line.text.clone()).chain(read_thrown(&below).0).collect();
    Some(FoundError { sign: Sign::Sure, kind: Kind::Node, text, place: Some(place), from: None })
}

/// `path:row`, the line of source, a mark below it, and the error that ended the program.
fn find_uncaught_error(line: &LogLine, rest: &LogLines<'_>) -> Option<FoundError> {
    (line.text.contains('/') || line.text.starts_with("node:")).then_some(())?;
    let place = SourcePlace::whole(&line.text).filter(|place| place.column.is_none())?;
    let is_mark = |text: &str| !text.is_empty() && text.trim_matches([' ', '\t', '^']).is_empty();
    let mark = rest.ahead(4).position(|next| is_mark(&next.text))?;
    let mut behind = rest.ahead(mark + 4).enumerate().skip(mark + 1);
    let (error, next) = behind.find(|(_, next)| !next.text.is_empty())?;
    let name = next.text.split([':', ' ']).next().unwrap_or_default();
    (name.ends_with("Error") || next.text.starts_with("Uncaught ")).then_some(())?;
    let below: Vec<String> = rest.ahead(BLOCK / 2).map(|next| next.text).collect();
    let (said, at) = read_thrown(&below[error..]);
    let place = match at {
        // Where Node.js itself throws, what called it counts.
        Some(at)
            if place.path.starts_with("node:")
                || (at.path == without_scheme(&place.path) && at.row == place.row) =>
        {
            at
        }
        _ => SourcePlace { path: without_scheme(&place.path).to_owned(), ..place },
    };
    let text = std::iter::once(&line.text).chain(&below[..=mark]).cloned().chain(said).collect();
    let place = (!place.path.starts_with("node:")).then_some(place);
    Some(FoundError { sign: Sign::Sure, kind: Kind::Node, text, place, from: None })
}

/// Of a thrown error what it says, and the first frame that is no library's.
pub(super) fn read_thrown(block: &[String]) -> (Vec<String>, Option<SourcePlace>) {
    // Jest gives much advice before it quotes what its parser said.
    let details = block.iter().position(|text| text.trim() == "Details:").map_or(0, |at| at + 1);
    let block = &block[details..];
    let is_frame = |text: &&String| text.trim_start().starts_with("at ");
    let own = block.iter().take_while(|text| !is_frame(text)).filter(|text| !text.trim().is_empty());
    let mut said: Vec<String> = own.take(LINES - 3).cloned().collect();
    if let Some(place) = said.iter().take(2).find_map(|text| place_of_syntax_error(text)) {
        return (said, Some(place));
    }
    let foreign =
        |place: &SourcePlace| place.path.contains("node_modules") || place.path.starts_with("node:");
    let mut frames = block.iter().filter_map(|text| Some((text, place_behind(text, "at ")?)));
    let Some((frame, place)) = frames.find(|(_, place)| !foreign(place)) else { return (said, None) };
    said.push(frame.clone());
    (said, Some(place))
}

/// `SyntaxError: path: message (row:column)`
fn place_of_syntax_error(text: &str) -> Option<SourcePlace> {
    let (path, said) = text.trim_start().strip_prefix("SyntaxError: ")?.split_once(": ")?;
    let (row, column) = said.trim_end().strip_suffix(')')?.rsplit_once('(')?.1.split_once(':')?;
    Some(SourcePlace::new(path, row.parse().ok()?, column.parse().ok()))
}

/// The place behind a sign: `❯ path:row:column`, `at name (path:row:column)`.
fn place_behind(text: &str, sign: &str) -> Option<SourcePlace> {
    let text = text.trim_start().strip_prefix(sign)?.trim_end_matches(')');
    let place = SourcePlace::whole(without_scheme(text.rsplit(['(', ' ']).next()?))?;
    place.column.is_some().then_some(place)
}

fn without_scheme(path: &str) -> &str {
    path.strip_prefix("file://").unwrap_or(path)
}
