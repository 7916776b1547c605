//! pytest, unittest, and tracebacks of Python programs.

use crate::domain::proof::run::Kind;
use crate::verifier::logs::log::{LogLine, LogLines};
use crate::verifier::logs::place::SourcePlace;
use crate::verifier::logs::{FoundError, LINES, Sign};

/// Where in pytest's output a line stands.
#[derive(Debug, Default)]
pub(super) struct PythonMemory {
    /// Behind the ruler above failures.
    failures: bool,
    /// The last `path:row:` of a file that is no library.
    place: Option<SourcePlace>,
    /// The last line of source that pytest points at.
    source: Option<String>,
    /// A traceback was seen: of those of programs, the first is enough.
    traced: bool,
}

pub(super) fn read_line(
    line: &LogLine,
    rest: &LogLines<'_>,
    memory: &mut PythonMemory,
) -> Option<FoundError> {
    let text = line.text.as_str();
    if text.starts_with("===") {
        memory.failures = is_ruler(text, "FAILURES") || is_ruler(text, "ERRORS");
    } else if text.starts_with("ImportError while loading conftest") {
        memory.failures = true;
    } else if memory.failures && text.starts_with("E  ") {
        return Some(read_assertion(line, rest, memory));
    } else if memory.failures && text.starts_with("> ") {
        memory.source = Some(text.to_owned());
    } else if memory.failures
        && let Some((place, _)) = SourcePlace::in_front(text).filter(|(place, _)| !is_library(&place.path))
    {
        memory.place = Some(place);
    } else if let Some(found) = find_unittest_failure(line, rest).or_else(|| find_in_summary(text)) {
        return Some(found);
    } else if text == "Traceback (most recent call last):" {
        return if memory.failures || !memory.traced { find_traceback(line, rest, memory) } else { None };
    } else if text.starts_with("  File \"") {
        return find_syntax_error(line, rest);
    }
    None
}

/// `=== WORD ===`
fn is_ruler(text: &str, word: &str) -> bool {
    text.trim_matches('=').trim() == word
}

fn is_library(path: &str) -> bool {
    path.contains("site-packages/") || path.contains("/lib/python") || path.starts_with('<')
}

/// How far behind a failure its place is looked for: what was printed may stand in between.
const BEHIND: usize = 200;

/// The lines that say what is wrong. Their place stands below in the long form, above in the short one,
/// within where it is a matter of syntax.
fn read_assertion(line: &LogLine, rest: &LogLines<'_>, memory: &mut PythonMemory) -> FoundError {
    let is_said = |text: &str| text == "E" || text.starts_with("E  ");
    let mut wrong = vec![line.text.clone()];
    wrong.extend(rest.ahead_while(LINES, is_said));
    let within = wrong.iter().find_map(|text| place_of_file(text.trim_start_matches('E').trim_start()));
    let behind = || {
        let below = rest.ahead(BEHIND).map(|next| next.text).skip_while(|text| is_said(text));
        let own = below.take_while(|text| !is_said(text) && !is_heading(text));
        let mut places = own.filter_map(|text| {
            let (place, said) = SourcePlace::in_front(&text)?;
            // `test_a.py:9: AssertionError`, and what is wrong once more where a failure has but one line.
            let name = said.split(':').next()?;
            (!name.is_empty() && !name.contains(' ') && place.column.is_none()).then_some(place)
        });
        places.next()
    };
    let place = within.or_else(behind).or_else(|| memory.place.take());
    let text = memory.source.take().into_iter().chain(wrong).collect();
    FoundError { sign: Sign::Sure, kind: Kind::Pytest, text, place, from: None }
}

/// What begins the next failure, or what follows all.
fn is_heading(text: &str) -> bool {
    text.starts_with("===") || (text.starts_with("__") && text.ends_with("__"))
}

/// `FAILED path::test - message` of the short summary, where nothing else was shown.
fn find_in_summary(text: &str) -> Option<FoundError> {
    let what = text.strip_prefix("FAILED ").or_else(|| text.strip_prefix("ERROR "))?;
    let path = what.split("::").next().unwrap_or(what).split(" - ").next().unwrap_or(what);
    path.ends_with(".py").then(|| FoundError {
        sign: Sign::Likely,
        kind: Kind::Pytest,
        text: vec![text.to_owned()],
        place: Some(SourcePlace { path: path.to_owned(), row: None, column: None }),
        from: None,
    })
}

/// Up to the exception itself, the first line that is not indented. A program may log one that it has
/// handled.
fn find_traceback(line: &LogLine, rest: &LogLines<'_>, memory: &mut PythonMemory) -> Option<FoundError> {
    let (mut text, place) = read_traceback(rest)?;
    memory.traced = true;
    text.insert(0, line.text.clone());
    let (sign, kind) =
        if memory.failures { (Sign::Sure, Kind::Pytest) } else { (Sign::Likely, Kind::Python) };
    Some(FoundError { sign, kind, text, place, from: None })
}

/// The end of a traceback, below its heading, and the last place in it that is no library's.
fn read_traceback(rest: &LogLines<'_>) -> Option<(Vec<String>, Option<SourcePlace>)> {
    let mut body = rest.ahead_while(BEHIND, |text| text.is_empty() || text.starts_with(' '));
    let end = body.len();
    body.push(rest.ahead(end + 1).nth(end)?.text);
    let place = body[..end]
        .iter()
        .filter_map(|text| place_of_file(text.trim_start()))
        .rfind(|place| !is_library(&place.path));
    Some((body[end.saturating_sub(LINES - 4)..].to_vec(), place))
}

/// `FAIL: test_b (…)` of unittest, a ruler, and the traceback. What tests have logged stands elsewhere.
fn find_unittest_failure(line: &LogLine, rest: &LogLines<'_>) -> Option<FoundError> {
    (line.text.starts_with("FAIL: ") || line.text.starts_with("ERROR: ")).then_some(())?;
    rest.mention(4, "----------").then_some(())?;
    let mut below = rest.clone();
    let is_rule = |text: &str| text.len() > 20 && text.trim_matches('-').is_empty();
    // A description of the test may stand in between.
    below.by_ref().take(4).find(|next| is_rule(&next.text))?;
    // So may what was wrong with a module of tests.
    let heading = below.by_ref().take(3).find(|next| next.text.starts_with("Traceback "))?;
    let (text, place) = read_traceback(&below)?;
    let text = [line.text.clone(), heading.text].into_iter().chain(text).collect();
    Some(FoundError { sign: Sign::Sure, kind: Kind::Unittest, text, place, from: None })
}

/// `  File "path", line 4`, the line of source, and what is wrong with it: a program that cannot be read has
/// no traceback.
fn find_syntax_error(line: &LogLine, rest: &LogLines<'_>) -> Option<FoundError> {
    let place = place_of_file(line.text.trim_start())?;
    line.text.ends_with(|c: char| c.is_ascii_digit()).then_some(())?;
    let below: Vec<String> = rest.ahead(4).map(|next| next.text).collect();
    let end = below.iter().position(|text| !text.starts_with(' '))?;
    let named =
        ["SyntaxError: ", "IndentationError: ", "TabError: "].iter().any(|word| below[end].starts_with(word));
    let text = std::iter::once(&line.text).chain(&below[..=end]).cloned().collect();
    named.then_some(FoundError {
        sign: Sign::Likely,
        kind: Kind::Python,
        text,
        place: Some(place),
        from: None,
    })
}

/// `File "path", line 4, in f`
fn place_of_file(text: &str) -> Option<SourcePlace> {
    let (path, rest) = text.strip_prefix("File \"")?.split_once("\", line ")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some(SourcePlace::new(path, digits.parse().ok()?, None))
}
