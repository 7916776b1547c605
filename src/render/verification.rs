//! A verification: a line for each requirement, and what its run said.

use super::run::{error_lines, log_size};
use super::style::{BAD, BOLD, DIM, GOOD, OPEN, spaced_word, style_text};
use crate::domain::ledger::report::VerificationObject;
use crate::domain::proof::case_changes::{CaseChanges, MovedCase};
use crate::domain::proof::run::Run;
use crate::domain::proof::verdict::{Row, Strength, Verdict};
use crate::domain::value::outside::plain_line;
use std::fmt::Write;

/// The most lines that are shown of a first error, its place among them.
const ERROR_LINES: usize = 5;

/// The most characters of one.
const ERROR_WIDTH: usize = 200;

/// The most cases that are named of each kind.
const NAMED_CASES: usize = 5;

/// The most characters of a verifier's title.
const TITLE: usize = 200;

pub fn verification_text(verification: &VerificationObject) -> String {
    let mut out = String::new();
    if let (Some(candidate), Some(task)) = (verification.candidate, &verification.task_id) {
        let _ = writeln!(out, "candidate {candidate} of task {}", style_text(BOLD, task));
    }
    write_rows(&mut out, &verification.requirements, &verification.runs);
    let passed = |row: &&Row| row.verdict == Verdict::Passed;
    if verification.requirements.iter().any(|row| row.reused)
        && verification.requirements.iter().filter(passed).all(|row| row.reused)
    {
        let _ = writeln!(out, "  nothing had to run: the evidence is fresh");
        for row in verification.requirements.iter().filter(passed) {
            let _ =
                writeln!(out, "    {} rests on {}", row.id, row.evidence.as_deref().unwrap_or("no record"));
        }
    }
    for explanation in verification.explanations.iter().flatten() {
        let _ = writeln!(out, "  {}: {}", explanation.id, plain_line(&explanation.text, usize::MAX));
    }
    out
}

pub(super) fn write_rows(out: &mut String, rows: &[Row], runs: &[Run]) {
    if rows.is_empty() {
        let _ = writeln!(out, "  nothing was required, so nothing was checked");
    }
    rows.iter().for_each(|row| requirement_row(out, row, runs));
}

pub(super) fn requirement_row(out: &mut String, row: &Row, runs: &[Run]) {
    let style = match row.verdict {
        Verdict::Passed => GOOD,
        Verdict::Failed | Verdict::Error => BAD,
        _ if row.required => OPEN,
        _ => DIM,
    };
    let mut notes = Vec::new();
    if let Some(checks) = &row.checks {
        notes.push(format!(
            "{} ran, {} passed, {} failed, {} skipped",
            checks.ran, checks.passed, checks.failed, checks.skipped
        ));
    }
    if row.strength != Strength::Unmeasured {
        notes.push(spaced_word(&row.strength));
    }
    notes.extend(row.reused.then(|| "reused".to_owned()));
    notes.extend(row.judge_changed.then(|| "the change touches what judges it".to_owned()));
    let outside = row.outside_key.join(", ");
    notes.extend((!outside.is_empty()).then(|| format!("not in the key: {outside}")));
    let dead = row.dead_inputs.join(", ");
    notes.extend((!dead.is_empty()).then(|| format!("no file here for {}", plain_line(&dead, TITLE))));
    notes.extend((!row.required).then(|| "not required".to_owned()));
    let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
    let title =
        row.title.as_ref().map(|title| format!(" - {}", plain_line(title, TITLE))).unwrap_or_default();
    // What a verifier's output named is the candidate's own words.
    let reason =
        row.reason.as_ref().map(|reason| format!(": {}", plain_line(reason, usize::MAX))).unwrap_or_default();
    let _ = writeln!(
        out,
        "  {} {}{title}{notes}{reason}",
        style_text(style, &format!("{:<18}", spaced_word(&row.verdict))),
        row.id
    );
    row.cases.iter().for_each(|cases| write_cases(out, cases));
    runs.iter().filter(|run| run.is_told_at(row)).for_each(|run| write_run(out, run));
    if let (Verdict::Failed | Verdict::Error, Some(evidence)) = (row.verdict, &row.evidence) {
        let _ = writeln!(out, "{:21}{}", "", style_text(DIM, &format!("git tender show {evidence}")));
    }
}

/// What became of the cases of the base, where anything did.
fn write_cases(out: &mut String, cases: &CaseChanges) {
    let kinds =
        [("gone", &cases.gone), ("new", &cases.new), ("fixed", &cases.fixed), ("broken", &cases.broken)];
    for (kind, named) in kinds.into_iter().filter(|(_, named)| named.count > 0) {
        let names = plain_line(&named.list_names(NAMED_CASES), usize::MAX);
        let _ = writeln!(out, "{:21}{} {kind}: {names}", "", named.count);
    }
    for MovedCase { from, to } in cases.moved.first.iter().take(NAMED_CASES) {
        let _ =
            writeln!(out, "{:21}moved, it seems: {}", "", plain_line(&format!("{from} -> {to}"), usize::MAX));
    }
    if cases.unnamed > 0 {
        let _ = writeln!(out, "{:21}{} more cases have no name here: there were too many", "", cases.unnamed);
    }
}

/// The first error of a run in a few lines, and how to see its whole logs.
fn write_run(out: &mut String, run: &Run) {
    for line in error_lines(run, ERROR_LINES) {
        let _ = writeln!(out, "{:21}{}", "", plain_line(&line, ERROR_WIDTH));
    }
    for log in &run.logs {
        let show = format!("git tender show {}", log.reference);
        let _ = writeln!(out, "{:21}{}  ({})", "", style_text(DIM, &show), log_size(log));
    }
}
