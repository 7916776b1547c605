//! The brief report, as text for a person or a worker.

use super::run::{error_lines, log_size};
use super::worker::{amendment_lines, finding_line, question_lines};
use crate::domain::contract::Verification;
use crate::domain::ledger::brief::Brief;
use crate::domain::value::outside::plain_line;
use crate::domain::worker::inquiry::SHOWN;
use std::fmt::Write;

/// The most lines of a first error.
const ERROR_LINES: usize = 4;
/// The most characters of one.
const ERROR_WIDTH: usize = 200;

pub fn brief_text(brief: &Brief) -> String {
    let mut out = format!("task {}: {}\n", brief.task_id, plain_line(&brief.goal, usize::MAX));
    let listed = |list: &[String]| if list.is_empty() { "nothing".to_owned() } else { list.join(", ") };
    let _ = writeln!(out, "  worktree  {}\n  may write {}", brief.worktree, listed(&brief.write_scope));
    if let Some(read) = &brief.read_scope {
        let _ = writeln!(out, "  may read  {}", listed(read));
    }
    let Verification { allowed, forbidden } = &brief.verification;
    let _ = writeln!(out, "  may check {}", listed(allowed));
    if !forbidden.is_empty() {
        let _ = writeln!(out, "  forbidden {}", forbidden.join(", "));
    }
    for line in &brief.narrowed {
        let _ = writeln!(out, "  narrowed  {}", plain_line(line, usize::MAX));
    }
    for row in &brief.open {
        let reason = plain_line(row.reason.as_deref().unwrap_or("not shown yet"), usize::MAX);
        let _ = writeln!(out, "  open      {}: {reason}", row.id);
        if let Some(evidence) = &row.evidence {
            let _ = writeln!(out, "            record {evidence}");
        }
    }
    // Whoever reads this may be a model: the words are those of a program that ran the candidate, and are
    // marked so.
    for run in &brief.runs {
        for line in error_lines(run, ERROR_LINES) {
            let _ = writeln!(out, "  printed   {}: {}", run.verifier, plain_line(&line, ERROR_WIDTH));
        }
        for log in &run.logs {
            let _ = writeln!(out, "  log       {} {}: {}", run.verifier, log_size(log), log.reference);
        }
    }
    for step in &brief.done {
        let _ = writeln!(out, "  done      {} [{}]", step.text, step.reference);
    }
    let asked = brief.questions.iter().flat_map(question_lines);
    for line in asked.chain(brief.amendments.iter().flat_map(amendment_lines)) {
        let _ = writeln!(out, "  {line}");
    }
    for finding in &brief.findings {
        let _ = writeln!(out, "  found     in the worker's words: {}", finding_line(finding));
    }
    for limit in &brief.limits {
        let _ = writeln!(out, "  limit     {}", plain_line(limit, SHOWN));
    }
    for (key, share) in brief.budget.as_object().into_iter().flatten() {
        let used = share["used"].as_str().map_or_else(|| share["used"].to_string(), str::to_owned);
        let _ = writeln!(out, "  budget    {key}: {used} of {} used", share["limit"]);
    }
    out
}
