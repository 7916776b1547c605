//! JSON: messages of cargo, results of libtest, the output of Go's tests, reports of linters and of Jest.
//!
//! What a report calls its parts differs from tool to tool, but little: a message, a file, and where in it.
//! So reports are searched for the first object that has these, and calls itself no warning.

use crate::domain::proof::run::Kind;
use crate::verifier::logs::log::{LogLine, LogLines};
use crate::verifier::logs::place::SourcePlace;
use crate::verifier::logs::{FoundError, Reading, Sign, script};
use serde_json::Value;

/// A value that spans several lines is tried this often: each try may read to the end of the log.
const TRIES: u8 = 8;

/// How many values over several lines may still be tried.
#[derive(Debug)]
pub(super) struct JsonMemory {
    tries: u8,
}

impl Default for JsonMemory {
    fn default() -> Self {
        Self { tries: TRIES }
    }
}

/// Reads a value that begins at the line, whose start is where `here` is; `rest` goes behind it.
pub(super) fn read_value<'l>(
    line: &LogLine,
    here: &LogLines<'l>,
    rest: &mut LogLines<'l>,
    memory: &mut JsonMemory,
) -> Reading {
    if line.owner.is_some() || !line.text.starts_with(['{', '[']) {
        return Reading::Nothing;
    }
    let bytes = here.rest();
    let end = bytes.iter().position(|b| *b == b'\n').unwrap_or(bytes.len());
    let value = match serde_json::from_slice::<Value>(&bytes[..end]) {
        Ok(value) => Some(value),
        Err(error) if error.is_eof() && end < bytes.len() && memory.tries > 0 => {
            memory.tries -= 1;
            // Where it ends is looked for first: that is cheap.
            let mut ends = serde_json::Deserializer::from_slice(bytes).into_iter::<serde::de::IgnoredAny>();
            let whole = ends.next().and_then(std::result::Result::ok).map(|_| ends.byte_offset());
            let value = whole.and_then(|end| serde_json::from_slice(&bytes[..end]).ok());
            if let (Some(end), Some(_)) = (whole, &value) {
                *rest = here.clone();
                rest.pass_over(end);
            }
            value
        }
        Err(_) => None,
    };
    match value {
        Some(value) if value.is_object() || value.is_array() => {
            find_in_value(&value).map_or(Reading::Content, Reading::Error)
        }
        _ => Reading::Nothing,
    }
}

fn find_in_value(value: &Value) -> Option<FoundError> {
    find_cargo_message(value)
        .or_else(|| find_libtest_failure(value))
        .or_else(|| find_js_test_failure(value))
        .or_else(|| find_in_report(value, None, false))
        .or_else(|| find_error_text(value))
}

fn number_of(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|number| u32::try_from(number).ok())
}

/// An error among cargo's messages, as the compiler would have shown it.
fn find_cargo_message(value: &Value) -> Option<FoundError> {
    let message = match value["reason"].as_str() {
        Some("compiler-message") => &value["message"],
        _ if value["$message_type"] == "diagnostic" => value,
        _ => return None,
    };
    (message["level"] == "error").then_some(())?;
    let spans = message["spans"].as_array()?;
    let span = spans.iter().find(|span| span["is_primary"] == true).or(spans.first())?;
    let place = SourcePlace::new(
        span["file_name"].as_str()?,
        number_of(&span["line_start"])?,
        number_of(&span["column_start"]),
    );
    let shown = message["rendered"].as_str().or(message["message"].as_str())?;
    let text = shown.lines().take_while(|text| !text.trim().is_empty()).map(str::to_owned).collect();
    Some(FoundError { sign: Sign::Sure, kind: Kind::Rustc, text, place: Some(place), from: None })
}

/// A failed test of libtest, with what it printed.
fn find_libtest_failure(value: &Value) -> Option<FoundError> {
    (value["type"] == "test" && value["event"] == "failed").then_some(())?;
    let name = value["name"].as_str()?;
    let printed = format!("---- {name} stdout ----\n{}", value["stdout"].as_str().unwrap_or_default());
    let mut lines = LogLines::new(printed.as_bytes());
    let first = lines.next()?;
    // The whole of it stands in this one line.
    let found = super::rust::read_line(&first, &lines, &mut super::rust::RustMemory::default());
    found.map(|found| FoundError { from: None, ..found })
}

/// A failed test in the report of Jest, Vitest or mocha.
fn find_js_test_failure(value: &Value) -> Option<FoundError> {
    if let Some(failure) = value["failures"].as_array().and_then(|failures| failures.first()) {
        let said = failure["err"]["stack"].as_str().or(failure["err"]["message"].as_str())?;
        let name = failure["fullTitle"].as_str().or(failure["title"].as_str())?;
        return Some(quote_thrown(Kind::Mocha, name, said, failure["file"].as_str()));
    }
    value["testResults"].as_array()?.iter().find_map(|file| {
        let path = file["name"].as_str();
        let tests = file["assertionResults"].as_array().into_iter().flatten();
        let failed = tests.into_iter().find(|test| test["status"] == "failed");
        if let Some(test) = failed {
            let name = test["fullName"].as_str().or(test["title"].as_str()).unwrap_or_default();
            return Some(quote_thrown(Kind::Jest, name, test["failureMessages"][0].as_str()?, path));
        }
        (file["status"] == "failed").then_some(())?;
        Some(quote_thrown(Kind::Jest, "", file["message"].as_str()?, path))
    })
}

/// What a test threw, with its stack.
fn quote_thrown(kind: Kind, name: &str, said: &str, file: Option<&str>) -> FoundError {
    let plain: Vec<String> = LogLines::new(said.as_bytes()).map(|line| line.text).collect();
    let (said, at) = script::read_thrown(&plain);
    let place =
        at.or_else(|| file.map(|path| SourcePlace { path: path.to_owned(), row: None, column: None }));
    let text = std::iter::once(name.to_owned()).filter(|name| !name.is_empty()).chain(said).collect();
    FoundError { sign: Sign::Sure, kind, text, place, from: None }
}

/// What reports call the lists of what they found.
const LISTS: &[&str] = &[
    "errors",
    "error",
    "messages",
    "diagnostics",
    "generalDiagnostics",
    "results",
    "issues",
    "findings",
    "Issues",
];

/// The first finding in a report that is no warning. `path` is the file that lists are about; only what a
/// list holds needs no word that it is an error.
fn find_in_report(value: &Value, path: Option<&str>, listed: bool) -> Option<FoundError> {
    if let Some(values) = value.as_array() {
        return values.iter().find_map(|value| find_in_report(value, path, true));
    }
    let path = text_at(value, &["filePath", "file", "filename", "path", "file_path"]).or(path);
    if let Some(found) = read_finding(value, path, listed) {
        return Some(found);
    }
    LISTS.iter().find_map(|list| find_in_report(value.get(*list)?, path, true))
}

fn text_at<'v>(value: &'v Value, keys: &[&str]) -> Option<&'v str> {
    keys.iter().find_map(|key| value[*key].as_str())
}

/// An object with a message: with a path and a row it is sure to be meant for a reader of the source.
fn read_finding(value: &Value, path: Option<&str>, listed: bool) -> Option<FoundError> {
    let message = text_at(value, &["message", "text", "Text", "msg"])?;
    let error = match text_at(value, &["severity", "level", "kind", "type"]) {
        Some(word) => {
            ["error", "fatal", "critical", "fatal error"].contains(&word.to_ascii_lowercase().as_str())
        }
        None => value["severity"].as_u64().map_or(listed, |severity| severity == 2),
    };
    error.then_some(())?;
    let spot = [&value["locations"][0]["caret"], &value["location"], &value["start"], &value["Pos"], value];
    let row = |spot: &Value| ["line", "row", "Line"].iter().find_map(|key| number_of(&spot[*key]));
    let at = spot.into_iter().find(|spot| row(spot).is_some());
    let path = path.or_else(|| text_at(at?, &["file", "path", "Filename"]));
    let row = at.and_then(row).filter(|_| path.is_some());
    let column = at.and_then(|at| ["column", "col", "Column"].iter().find_map(|key| number_of(&at[*key])));
    let code = text_at(value, &["ruleId", "code", "rule", "symbol"]);
    let mut text: Vec<String> = message.lines().map(str::to_owned).collect();
    if let (Some(first), Some(code)) = (text.first_mut(), code) {
        *first = format!("{first} ({code})");
    }
    let place =
        path.map(|path| SourcePlace { path: path.to_owned(), row, column: column.filter(|_| row.is_some()) });
    let sign = if row.is_some() { Sign::Sure } else { Sign::Word };
    // A log may have entries in JSON, which say nothing of a source.
    let kind = if listed || row.is_some() { Kind::Json } else { Kind::Plain };
    Some(FoundError { sign, kind, text, place, from: None })
}

/// `{"error": "…"}`
fn find_error_text(value: &Value) -> Option<FoundError> {
    let text = value["error"].as_str()?.lines().map(str::to_owned).collect::<Vec<_>>();
    (!text.is_empty()).then_some(())?;
    Some(FoundError { sign: Sign::Word, kind: Kind::Json, text, place: None, from: None })
}
