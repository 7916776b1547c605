//! Linters: ESLint's list by file, and lines or headings with a code (flake8, Ruff, pylint).

use crate::domain::proof::run::Kind;
use crate::verifier::logs::log::{LogLine, LogLines};
use crate::verifier::logs::place::SourcePlace;
use crate::verifier::logs::{FoundError, Sign, rust};

/// The file that findings are listed below.
#[derive(Debug, Default)]
pub(super) struct LintMemory {
    file: Option<String>,
}

pub(super) fn read_line(line: &LogLine, rest: &LogLines<'_>, memory: &mut LintMemory) -> Option<FoundError> {
    if !line.text.starts_with(char::is_whitespace) {
        let path = line.text.as_str();
        let alone = path.contains('.') && !path.ends_with(['.', ':', '!', '?']);
        memory.file = alone.then(|| path.to_owned());
        return find_annotation(line).or_else(|| find_headed(line, rest)).or_else(|| find_coded(line));
    }
    find_listed(line, memory)
}

/// `  2:5  error  message  rule` below the line of its file.
fn find_listed(line: &LogLine, memory: &LintMemory) -> Option<FoundError> {
    let (at, rest) = line.text.trim_start().split_once(' ')?;
    rest.trim_start().strip_prefix("error")?.strip_prefix(' ')?;
    let (row, column) = at.split_once(':')?;
    let path = memory.file.as_ref()?;
    let place = SourcePlace::new(path, row.parse().ok()?, Some(column.parse().ok()?));
    Some(linter_error(Sign::Sure, vec![path.clone(), line.text.clone()], place))
}

/// `::error file=path,line=4,col=2::message`, for those who run workflows on GitHub.
fn find_annotation(line: &LogLine) -> Option<FoundError> {
    let (facts, _) = line.text.strip_prefix("::error ")?.split_once("::")?;
    let fact =
        |key: &str| facts.split(',').filter_map(|fact| fact.split_once('=')).find(|(name, _)| *name == key);
    let number = |key: &str| fact(key).and_then(|(_, number)| number.parse().ok());
    let place = SourcePlace { path: fact("file")?.1.to_owned(), row: number("line"), column: number("col") };
    Some(linter_error(Sign::Sure, vec![line.text.clone()], place))
}

/// `path:row:column: F401 message`
fn find_coded(line: &LogLine) -> Option<FoundError> {
    let (place, said) = SourcePlace::in_front(&line.text)?;
    let word = said.split(' ').next()?;
    let sign = judge_code(word)?;
    let named = place.path.contains('.');
    (named && place.column.is_some()).then(|| linter_error(sign, vec![line.text.clone()], place))
}

/// `F401 message`, and the arrow to its place below it.
fn find_headed(line: &LogLine, rest: &LogLines<'_>) -> Option<FoundError> {
    let word = line.text.split(' ').next()?;
    let named = |word: &str| {
        word.ends_with(':') && word.trim_end_matches(':').bytes().all(|b| b.is_ascii_lowercase() || b == b'-')
    };
    let sign = judge_code(word).or_else(|| {
        (named(word) && !["warning:", "note:", "help:", "error:"].contains(&word)).then_some(Sign::Likely)
    })?;
    let place = rust::place_of_arrow(&rest.ahead(1).next()?.text)?;
    let mut text = vec![line.text.clone()];
    text.extend(rest.ahead_while(8, |next| !next.trim().is_empty()));
    Some(linter_error(sign, text, place))
}

/// How sure a code is: letters and digits, such as F401. pylint writes a colon behind its own, whose letter
/// says how bad it is; a W stands for a warning.
fn judge_code(word: &str) -> Option<Sign> {
    let code = word.trim_end_matches(':');
    let letters = code.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = code.len() - letters.len();
    let is_code = (1..=5).contains(&letters.len())
        && (3..=5).contains(&digits)
        && letters.bytes().all(|b| b.is_ascii_uppercase());
    is_code.then_some(())?;
    let minor = letters == "W" || (code.len() < word.len() && ["C", "R", "I"].contains(&letters));
    Some(if minor { Sign::Likely } else { Sign::Sure })
}

fn linter_error(sign: Sign, text: Vec<String>, place: SourcePlace) -> FoundError {
    FoundError { sign, kind: Kind::Linter, text, place: Some(place), from: None }
}
