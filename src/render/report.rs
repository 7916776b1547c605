//! The report of a task.

use super::candidate::write_changes;
use super::delivery::write_ref;
use super::style::{BAD, BOLD, DIM, GOOD, OPEN, short_id, spaced_word, style_text};
use super::verification::write_rows;
use super::worker::{amendment_lines, finding_line, question_lines};
use crate::domain::delivery::receipt::Outcome;
use crate::domain::ledger::calls::Counts;
use crate::domain::ledger::report::Report;
use crate::domain::ledger::task::TaskState;
use crate::domain::value::outside::plain_line;
use crate::domain::worker::inquiry::SHOWN;
use anstyle::Style;
use std::fmt::Write;

pub fn report_text(report: &Report) -> String {
    let mut out = format!(
        "task {}: {}\n",
        style_text(BOLD, &report.task_id),
        style_text(state_style(report.state), &spaced_word(&report.state))
    );
    let _ = writeln!(out, "  goal      {}", plain_line(&report.goal, usize::MAX));
    let _ = writeln!(
        out,
        "  contract  version {}, sha256 {}",
        report.contract.version,
        short_id(&report.contract.sha256.to_string())
    );
    for line in &report.narrowed {
        let _ = writeln!(out, "  {} {}", style_text(OPEN, "narrowed:"), plain_line(line, usize::MAX));
    }
    let _ = writeln!(
        out,
        "  sandbox   {} asked for, {} enforced",
        report.sandbox.requested, report.sandbox.enforced
    );
    let _ = writeln!(out, "{}", style_text(BOLD, "requirements"));
    write_rows(&mut out, &report.requirements, &report.runs);
    write_worker_words(&mut out, report);
    match report.candidate {
        None => {
            let _ = writeln!(out, "no candidate yet");
        }
        // An exploration delivers what was found.
        Some(_) if report.kind == "explore" => {}
        Some(number) => {
            let _ = writeln!(out, "{}", style_text(BOLD, &format!("changes (candidate {number})")));
            write_changes(&mut out, &report.changes);
        }
    }
    if let Some(done) = &report.delivery {
        let applied = done.paths.iter().filter(|p| p.outcome != Outcome::Already).count();
        let _ = writeln!(
            out,
            "{} {}: {} of {} paths written",
            style_text(BOLD, "delivery"),
            done.mode,
            applied,
            done.paths.len()
        );
        write_ref(&mut out, done);
    }
    write_surroundings(&mut out, report);
    out
}

/// What to know beside the result: the worker's calls, risks and limits.
fn write_surroundings(out: &mut String, report: &Report) {
    if let Some(calls) = &report.calls {
        let Counts { made, succeeded, failed, denied, cut_off } = calls;
        let _ = writeln!(
            out,
            "{} {made}: {succeeded} succeeded, {failed} failed, {denied} denied, {cut_off} cut off",
            style_text(BOLD, "calls of the worker")
        );
    }
    if !report.risks.is_empty() {
        let _ = writeln!(out, "{}", style_text(BOLD, "risks"));
        for risk in &report.risks {
            let _ = writeln!(
                out,
                "  {} {}",
                plain_line(&risk.text, usize::MAX),
                style_text(DIM, &format!("[{}]", risk.reference))
            );
        }
    }
    for limit in &report.limits {
        let _ = writeln!(out, "  limit: {}", plain_line(limit, SHOWN));
    }
}

/// The questions, wishes and findings of the worker. Nobody vouches for its words.
fn write_worker_words(out: &mut String, report: &Report) {
    let questions = report.questions.iter().flat_map(question_lines);
    let amendments = report.amendments.iter().flat_map(amendment_lines);
    for line in questions.chain(amendments) {
        let _ = writeln!(out, "{line}");
    }
    if !report.findings.is_empty() {
        let _ = writeln!(out, "{}", style_text(BOLD, "findings, in the worker's words"));
    }
    for finding in &report.findings {
        let _ = writeln!(out, "  {}", finding_line(finding));
    }
}

fn state_style(state: TaskState) -> Style {
    match state {
        TaskState::Completed | TaskState::Verified => GOOD,
        TaskState::VerificationFailed | TaskState::OutcomeUnknown => BAD,
        _ => OPEN,
    }
}
