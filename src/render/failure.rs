//! A failure: what, where, expected and actual, and the next command.

use super::style::{BAD, BOLD, shell_line, short_id, spaced_word, style_text};
use super::verification::requirement_row;
use crate::domain::delivery::conflict::{CONFLICTS, Conflict};
use crate::domain::proof::run::RUNS;
use crate::domain::proof::verdict::REQUIREMENTS;
use crate::domain::value::digest::TreeObject;
use crate::domain::value::outside::{plain_line, readable_text};
use crate::error::Failure;
use serde::Serialize;
use std::fmt::Write;

/// How much of a detail is shown, in characters.
const DETAIL: usize = 20_000;

pub fn failure_text(failure: &Failure) -> String {
    let mut out = format!(
        "{} {}\n",
        style_text(BAD, &format!("error[{}]:", failure.code().as_str())),
        readable_text(failure.message())
    );
    write_details(&mut out, failure);
    for other in failure.others() {
        let _ = writeln!(
            out,
            "{} {}",
            style_text(BAD, &format!("also[{}]:", other.code().as_str())),
            readable_text(other.message())
        );
        write_details(&mut out, other);
    }
    if failure.more() > 0 {
        let _ = writeln!(out, "and {} more", failure.more());
    }
    let remedy = failure.next_step();
    let _ = writeln!(out, "{} {}", style_text(BOLD, "next:"), remedy.text);
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

fn write_details(out: &mut String, failure: &Failure) {
    for (key, value) in failure.details() {
        if key == CONFLICTS.name()
            && let Some(conflicts) = failure.read_detail(&CONFLICTS)
        {
            conflicts.iter().for_each(|one| write_conflict(out, one));
            continue;
        }
        if key == REQUIREMENTS.name()
            && let Some(rows) = failure.read_detail(&REQUIREMENTS)
        {
            let runs = failure.read_detail(&RUNS).unwrap_or_default();
            rows.iter().for_each(|row| requirement_row(out, row, &runs));
            continue;
        }
        match (key.as_str(), value) {
            // Shown with their rows.
            (name, serde_json::Value::Array(_)) if name == RUNS.name() => {}
            // Details may hold a worker's words.
            (_, serde_json::Value::String(text)) => {
                let lines: Vec<String> = text.lines().map(|line| plain_line(line, DETAIL)).collect();
                let _ = writeln!(out, "  {key}: {}", lines.join("\n"));
            }
            (_, value) => {
                let _ = writeln!(out, "  {key}: {}", plain_line(&value.to_string(), DETAIL));
            }
        }
    }
}

fn write_conflict(out: &mut String, conflict: &Conflict) {
    let side = |state: &Option<TreeObject>| match state {
        None => "nothing".to_owned(),
        Some(TreeObject { mode, id }) => format!("{} {}", text_of(mode), short_id(id.as_str())),
    };
    let mergeable = if conflict.mergeable { ", a three-way merge would be clean" } else { "" };
    if let Some(partner) = &conflict.partner {
        let _ = writeln!(
            out,
            "  {} {}: {} is there, whose name differs in case or Unicode form only",
            style_text(BAD, &spaced_word(&conflict.reason)),
            text_of(&conflict.path),
            text_of(partner),
        );
        return;
    }
    let _ = writeln!(
        out,
        "  {} {}: expected {}, found {}{mergeable}",
        style_text(BAD, &spaced_word(&conflict.reason)),
        text_of(&conflict.path),
        side(&conflict.expected),
        side(&conflict.actual),
    );
}

/// The text that a value is in JSON.
fn text_of(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
