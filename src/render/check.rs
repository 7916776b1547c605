//! A check as it goes on: what is looked at, a line for each verifier as it ends, and what came of it.

use super::style::{BAD, BOLD, DIM, GOOD, style_text};
use super::verification::requirement_row;
use crate::domain::ledger::report::{CheckedTree, Summary, VerificationObject};
use crate::domain::proof::judge::is_not_concerned;
use crate::domain::proof::run::Run;
use crate::domain::proof::verdict::{Row, Verdict};
use crate::domain::value::outside::plain_line;
use std::fmt::Write;

/// What is looked at.
pub fn checked_text(checked: &CheckedTree) -> String {
    let what = match checked.what.as_str() {
        "staged" => "what is staged",
        "all" => "what is staged, by every verifier",
        "live" => "the live tree",
        _ => "the commits of the range",
    };
    let paths = match checked.changes {
        1 => "1 changed path".to_owned(),
        many => format!("{many} changed paths"),
    };
    let mut out = format!("{}: {paths}\n", style_text(BOLD, what));
    for note in &checked.notes {
        let _ = writeln!(out, "  {}", plain_line(note, usize::MAX));
    }
    out
}

/// A row that is settled, with the first error and how to see the rest; nothing of one that the change is
/// none of the business of.
pub fn settled_text(row: &Row, runs: &[Run]) -> String {
    let mut out = String::new();
    if !is_not_concerned(row) {
        requirement_row(&mut out, row, runs);
    }
    out
}

/// What came of it, in a line or two.
pub fn check_end_text(object: &VerificationObject) -> String {
    let rows = &object.requirements;
    let (idle, rows): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| is_not_concerned(row));
    let mut out = String::new();
    if !idle.is_empty() {
        let names: Vec<&str> = idle.iter().map(|row| row.id.as_str()).collect();
        let _ = writeln!(out, "  {}", style_text(DIM, &format!("not concerned: {}", names.join(", "))));
    }
    let nothing = object.checked.as_ref().is_some_and(|checked| checked.changes == 0);
    if rows.is_empty() {
        let what = if nothing { "nothing is changed, so nothing was checked" } else { "nothing was checked" };
        let _ = writeln!(out, "{what}");
        return out;
    }
    let rows: Vec<Row> = rows.into_iter().cloned().collect();
    let count = Summary::count_rows(&rows);
    let reused = rows.iter().filter(|row| row.reused).count();
    let blocked = rows.iter().any(|row| row.required && row.verdict != Verdict::Passed);
    let mut parts = vec![match reused {
        0 => format!("{} passed", count.passed),
        _ => format!("{} passed ({reused} of them by evidence that is there)", count.passed),
    }];
    for (number, word) in [
        (count.failed, "failed"),
        (count.error, "in error"),
        (count.not_run, "not run"),
        (count.needs_confirmation, "for a person"),
    ] {
        parts.extend((number > 0).then(|| format!("{number} {word}")));
    }
    let style = if blocked { BAD } else { GOOD };
    let _ = writeln!(out, "{}", style_text(style, &parts.join(", ")));
    out
}
