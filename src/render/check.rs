//! A check as it goes on: what is looked at, a line for each verifier as it ends, and what came of it.

use super::style::{BAD, BOLD, DIM, GOOD, style_text};
use super::verification::requirement_row;
use crate::domain::change::patch::Change;
use crate::domain::ledger::report::{CheckedTree, FixObject, Summary, VerificationObject};
use crate::domain::proof::judge::is_not_concerned;
use crate::domain::proof::run::Run;
use crate::domain::proof::verdict::{Row, Verdict};
use crate::domain::value::outside::plain_line;
use std::fmt::Write;

/// How many paths a line names.
const MOST_NAMES: usize = 8;

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

/// What verifiers would change: it is looked at next.
pub fn mended_text(changes: &[Change]) -> String {
    let names: Vec<String> = changes.iter().take(MOST_NAMES).map(|change| change.path.to_string()).collect();
    let more = match changes.len().saturating_sub(MOST_NAMES) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    format!("  with a fix of {}{more}:\n", plain_line(&names.join(", "), usize::MAX))
}

/// What was written, and how it is taken back.
fn fix_text(fix: &FixObject, what: &str) -> String {
    let paths = match fix.paths.len() {
        1 => "1 path".to_owned(),
        many => format!("{many} paths"),
    };
    let place = if what == "staged" { "your files and the index" } else { "your files, not staged" };
    format!("fixed {paths} in {place}; git tender show {} tells what was there\n", fix.action)
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
    if let Some(checked) = &object.checked
        && let Some(fix) = &checked.fix
    {
        out.push_str(&fix_text(fix, &checked.what));
    }
    out
}
