//! A failure: what, where, expected and actual, and the next command.

use super::style::{BAD, BOLD, shell_line, short, styled};
use super::verification::requirement_row;
use crate::domain::proof::run::Run;
use crate::domain::proof::verdict::Row;
use crate::domain::value::outside::{plain, readable};
use crate::error::Failure;
use std::fmt::Write;

/// How much of a detail is shown, in characters.
const DETAIL: usize = 20_000;

pub fn failure_text(failure: &Failure) -> String {
    let mut out = format!(
        "{} {}\n",
        styled(BAD, &format!("error[{}]:", failure.code().as_str())),
        readable(failure.message())
    );
    details(&mut out, failure);
    for other in failure.others() {
        let _ = writeln!(
            out,
            "{} {}",
            styled(BAD, &format!("also[{}]:", other.code().as_str())),
            readable(other.message())
        );
        details(&mut out, other);
    }
    if failure.more() > 0 {
        let _ = writeln!(out, "and {} more", failure.more());
    }
    let remedy = failure.next_step();
    let _ = writeln!(out, "{} {}", styled(BOLD, "next:"), remedy.text);
    if !remedy.command.is_empty() {
        let _ = writeln!(out, "  {}", shell_line(&remedy.command));
    }
    out
}

/// A failure below a report that has shown its rows already: only what and what next.
pub fn refusal_text(refused: &Failure) -> String {
    let remedy = refused.next_step();
    failure_text(&Failure::new(refused.code(), refused.message()).remedy(remedy.text, remedy.command))
}

fn details(out: &mut String, failure: &Failure) {
    for (key, value) in failure.details() {
        match (key.as_str(), value) {
            ("conflicts", serde_json::Value::Array(conflicts)) => {
                conflicts.iter().for_each(|c| conflict(out, c))
            }
            ("requirements", serde_json::Value::Array(rows)) => {
                let runs = failure.details().get("runs").cloned().unwrap_or_default();
                let runs: Vec<Run> = serde_json::from_value(runs).unwrap_or_default();
                for row in rows.iter().filter_map(|row| serde_json::from_value::<Row>(row.clone()).ok()) {
                    requirement_row(out, &row, &runs);
                }
            }
            // Shown with their rows.
            ("runs", serde_json::Value::Array(_)) => {}
            // Details may hold a worker's words.
            (_, serde_json::Value::String(text)) => {
                let lines: Vec<String> = text.lines().map(|line| plain(line, DETAIL)).collect();
                let _ = writeln!(out, "  {key}: {}", lines.join("\n"));
            }
            (_, value) => {
                let _ = writeln!(out, "  {key}: {}", plain(&value.to_string(), DETAIL));
            }
        }
    }
}

fn conflict(out: &mut String, conflict: &serde_json::Value) {
    let side = |name: &str| {
        let state = &conflict[name];
        if state.is_null() {
            "nothing".to_owned()
        } else {
            format!("{} {}", text_of(&state["mode"]), short(&text_of(&state["gitBlob"])))
        }
    };
    let mergeable = if conflict["mergeable"] == true { ", a three-way merge would be clean" } else { "" };
    let reason = text_of(&conflict["reason"]).replace('_', " ");
    let _ = writeln!(
        out,
        "  {} {}: expected {}, found {}{mergeable}",
        styled(BAD, &reason),
        text_of(&conflict["path"]),
        side("expected"),
        side("actual"),
    );
}

fn text_of(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
