//! Lines of JSON: messages of cargo, results of libtest, the output of Go's tests.

use super::log::Line;
use super::place::Place;
use super::{Found, Kind, Sign};
use serde_json::Value;

/// The line that stands within an event of `go test -json`; that is then read like any other.
pub(super) fn output_of(line: &[u8]) -> Option<String> {
    // Looked for before it is parsed: most lines that begin like this are others.
    let key = b"\"Output\":";
    line.windows(key.len()).any(|window| window == key).then_some(())?;
    let event: Value = serde_json::from_slice(line).ok()?;
    (event["Action"] == "output").then_some(())?;
    Some(event["Output"].as_str()?.trim_end_matches('\n').to_owned())
}

pub(super) fn read(line: &Line) -> Option<Found> {
    if !line.text.starts_with('{') {
        return None;
    }
    let value: Value = serde_json::from_str(&line.text).ok()?;
    cargo(&value).or_else(|| libtest(&value)).or_else(|| entry(&value))
}

/// An error among cargo's messages, as the compiler would have shown it.
fn cargo(value: &Value) -> Option<Found> {
    let message = match value["reason"].as_str() {
        Some("compiler-message") => &value["message"],
        _ if value["$message_type"] == "diagnostic" => value,
        _ => return None,
    };
    (message["level"] == "error").then_some(())?;
    let spans = message["spans"].as_array()?;
    let span = spans.iter().find(|span| span["is_primary"] == true).or(spans.first())?;
    let number = |key: &str| span[key].as_u64().and_then(|number| u32::try_from(number).ok());
    let place = Place::new(span["file_name"].as_str()?, number("line_start")?, number("column_start"));
    let shown = message["rendered"].as_str().or(message["message"].as_str())?;
    let text = shown.lines().take_while(|text| !text.trim().is_empty()).map(str::to_owned).collect();
    Some(Found { sign: Sign::Sure, kind: Kind::Rustc, text, place: Some(place), from: None })
}

/// A failed test of libtest, with what it printed.
fn libtest(value: &Value) -> Option<Found> {
    (value["type"] == "test" && value["event"] == "failed").then_some(())?;
    let name = value["name"].as_str()?;
    let printed = format!("---- {name} stdout ----\n{}", value["stdout"].as_str().unwrap_or_default());
    let mut lines = super::log::Lines::new(printed.as_bytes());
    let first = lines.next()?;
    // The whole of it stands in this one line.
    super::rust::read(&first, &lines).map(|found| Found { from: None, ..found })
}

/// An entry of a log that calls itself an error.
fn entry(value: &Value) -> Option<Found> {
    let level = value["level"].as_str().or(value["severity"].as_str())?;
    ["error", "fatal", "critical"].contains(&level.to_ascii_lowercase().as_str()).then_some(())?;
    let text = value["message"].as_str().or(value["msg"].as_str())?;
    let text = text.lines().map(str::to_owned).collect();
    Some(Found { sign: Sign::Word, kind: Kind::Plain, text, place: None, from: None })
}
