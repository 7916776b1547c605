//! Results for people, in plain words. Styles are escape codes that the output strips where they are not
//! wanted.

use crate::domain::change::patch::{Change, Status};
use crate::domain::contract::Kind;
use crate::domain::delivery::receipt::Outcome;
use crate::domain::ledger::entry::Entry;
use crate::domain::ledger::report::{
    CandidateObject, DeliveryObject, Report, TaskObject, VerificationObject,
};
use crate::domain::ledger::task::TaskState;
use crate::domain::proof::evidence::Evidence;
use crate::domain::proof::run::Run;
use crate::domain::proof::verdict::{Row, Strength, Verdict};
use crate::domain::value::outside::{plain, readable};
use crate::domain::value::repo_path::RepoPath;
use crate::domain::worker::call::Counts;
use crate::error::Failure;
use anstyle::{AnsiColor, Style};
use serde::Serialize;
use std::fmt::Write;

const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const OPEN: Style = AnsiColor::Yellow.on_default();
const DIM: Style = Style::new().dimmed();
const BOLD: Style = Style::new().bold();

/// How much of a detail is shown, in characters.
const DETAIL: usize = 20_000;

/// The most lines that are shown of a first error, its place among them.
const ERROR_LINES: usize = 5;
/// The most characters of one.
const ERROR_WIDTH: usize = 200;

/// The most characters of a verifier's title.
const TITLE: usize = 200;

/// How many paths of a list are shown before the rest is only counted.
const SHOWN: usize = 10;

fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// The text of a serialized word (`needs_confirmation` → `needs confirmation`).
fn word(value: &impl Serialize) -> String {
    crate::domain::ledger::report::word(value).replace('_', " ")
}

/// A failure: what, where, expected and actual, and the next command.
pub fn failure(failure: &Failure) -> String {
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
pub fn refusal(refused: &Failure) -> String {
    let remedy = refused.next_step();
    failure(&Failure::new(refused.code(), refused.message()).remedy(remedy.text, remedy.command))
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
                    requirement(out, &row, &runs);
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

fn short(id: &str) -> String {
    id.chars().take(12).collect()
}

/// An argument vector as one line that a shell takes.
pub fn shell_line(argv: &[String]) -> String {
    let plain =
        |arg: &str| !arg.is_empty() && arg.chars().all(|c| c.is_alphanumeric() || "-_./=:@,+%".contains(c));
    let quoted: Vec<String> = argv
        .iter()
        .map(|arg| if plain(arg) { arg.clone() } else { format!("'{}'", arg.replace('\'', "'\\''")) })
        .collect();
    quoted.join(" ")
}

pub fn task(task: &TaskObject) -> String {
    let mut out = format!("task {} is {}\n", styled(BOLD, &task.task_id), word(&task.state));
    let base = short(task.base.commit.as_str());
    let live = if task.base.live { " with your uncommitted work" } else { "" };
    let _ = writeln!(out, "  base      {base}{live}");
    let _ = writeln!(out, "  worktree  {}", task.worktree);
    let _ = writeln!(
        out,
        "  contract  version {}, sha256 {}",
        task.contract.version,
        short(&task.contract.sha256.to_string())
    );
    for line in &task.narrowed {
        let _ = writeln!(out, "  {} {line}", styled(OPEN, "narrowed:"));
    }
    for id in &task.manual {
        let _ = writeln!(
            out,
            "  {} {id} has no verifier here; a person has to attest it",
            styled(OPEN, "manual:")
        );
    }
    for (what, paths) in [
        ("uncommitted work", &task.lacks.dirty),
        ("ignored files", &task.lacks.ignored),
        ("submodules", &task.lacks.submodules),
        ("LFS content", &task.lacks.lfs),
    ] {
        if !paths.is_empty() {
            let _ = writeln!(out, "  the worktree lacks {what}: {}", path_list(paths));
        }
    }
    for note in &task.notes {
        let _ = writeln!(out, "  {} {note}", styled(OPEN, "note:"));
    }
    if task.state == TaskState::Open {
        let _ = writeln!(
            out,
            "  next      {}, then: git tender ship {}",
            if task.kind == Kind::Explore.as_str() {
                format!("let a worker explore over git tender mcp {}", task.task_id)
            } else {
                "make the change in the worktree".to_owned()
            },
            task.task_id
        );
    }
    out
}

fn path_list(paths: &[RepoPath]) -> String {
    let shown: Vec<String> = paths.iter().take(SHOWN).map(ToString::to_string).collect();
    let rest = paths.len().saturating_sub(SHOWN);
    if rest == 0 { shown.join(", ") } else { format!("{} and {rest} more", shown.join(", ")) }
}

pub fn candidate(candidate: &CandidateObject) -> String {
    let mut out = format!("candidate {} of task {}\n", candidate.candidate, styled(BOLD, &candidate.task_id));
    changes(&mut out, &candidate.changes);
    let _ = writeln!(out, "  patch     {}", candidate.patch.path);
    let _ = writeln!(out, "  manifest  sha256 {}", short(&candidate.patch.manifest_sha256.to_string()));
    out
}

fn changes(out: &mut String, changes: &[Change]) {
    if changes.is_empty() {
        let _ = writeln!(out, "  {}", styled(OPEN, "no changes: nothing was done"));
    }
    for change in changes.iter().take(SHOWN * 5) {
        let letter = match change.status {
            Status::Added => "A",
            Status::Deleted => "D",
            Status::Modified => "M",
        };
        let _ = writeln!(out, "  {letter} {}", change.path);
    }
    if changes.len() > SHOWN * 5 {
        let _ = writeln!(out, "  … and {} more", changes.len() - SHOWN * 5);
    }
}

/// The rows of a verification.
pub fn verification(verification: &VerificationObject) -> String {
    let mut out =
        format!("candidate {} of task {}\n", verification.candidate, styled(BOLD, &verification.task_id));
    rows(&mut out, &verification.requirements, &verification.runs);
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
        let _ = writeln!(out, "  {}: {}", explanation.id, plain(&explanation.text, usize::MAX));
    }
    out
}

fn rows(out: &mut String, rows: &[Row], runs: &[Run]) {
    if rows.is_empty() {
        let _ = writeln!(out, "  nothing was required, so nothing was checked");
    }
    rows.iter().for_each(|row| requirement(out, row, runs));
}

fn requirement(out: &mut String, row: &Row, runs: &[Run]) {
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
        notes.push(word(&row.strength));
    }
    notes.extend(row.reused.then(|| "reused".to_owned()));
    notes.extend(row.judge_changed.then(|| "the change touches what judges it".to_owned()));
    notes.extend((!row.required).then(|| "not required".to_owned()));
    let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
    let title = row.title.as_ref().map(|title| format!(" - {}", plain(title, TITLE))).unwrap_or_default();
    // What a verifier's output named is the candidate's own words.
    let reason =
        row.reason.as_ref().map(|reason| format!(": {}", plain(reason, usize::MAX))).unwrap_or_default();
    let _ = writeln!(
        out,
        "  {} {}{title}{notes}{reason}",
        styled(style, &format!("{:<18}", word(&row.verdict))),
        row.id
    );
    runs.iter().filter(|run| run.is_told_at(row)).for_each(|run| told(out, run));
    if let (Verdict::Failed | Verdict::Error, Some(evidence)) = (row.verdict, &row.evidence) {
        let _ = writeln!(out, "{:21}{}", "", styled(DIM, &format!("git tender show {evidence}")));
    }
}

/// The first error of a run in a few lines, and how to see its whole logs.
fn told(out: &mut String, run: &Run) {
    for line in run.error_lines(ERROR_LINES) {
        let _ = writeln!(out, "{:21}{}", "", plain(&line, ERROR_WIDTH));
    }
    for log in &run.logs {
        let show = format!("git tender show {}", log.reference);
        let _ = writeln!(out, "{:21}{}  ({})", "", styled(DIM, &show), log.size());
    }
}

/// A record of evidence: what ran and came out, then the logs, in words that cannot act on a terminal.
pub fn evidence(record: &Evidence, logs: &[(&str, Vec<u8>)]) -> String {
    let reason =
        record.reason.as_ref().map(|reason| format!(": {}", plain(reason, usize::MAX))).unwrap_or_default();
    let mut out = format!(
        "{} for task {}, candidate {}: {}{reason}\n",
        record.requirement,
        record.task,
        record.candidate,
        word(&record.outcome)
    );
    let _ = writeln!(out, "  verifier  {}", record.verifier);
    if !record.identity.argv.is_empty() {
        let _ = writeln!(out, "  command   {}", shell_line(&record.identity.argv));
    }
    if let Some(said) = &record.attestation {
        let _ = writeln!(out, "  {} says: {}", said.person, readable(&said.message));
    }
    let _ = writeln!(out, "  made      {} to {} [{}]", record.started_at, record.finished_at, record.run);
    for finding in &record.findings {
        let place = finding.path.as_ref().map(|path| format!("{path}: ")).unwrap_or_default();
        let said = format!("{}: {place}{}", finding.level, finding.message);
        let _ = writeln!(out, "  {}", plain(&said, usize::MAX));
    }
    for (name, log) in logs {
        let _ = writeln!(
            out,
            "{}\n{}",
            styled(BOLD, &format!("--- {name}")),
            readable(String::from_utf8_lossy(log).trim_end())
        );
    }
    out
}

/// A delivery or its reversal.
pub fn delivery(delivery: &DeliveryObject) -> String {
    let mut out = format!("task {} is {}\n", styled(BOLD, &delivery.task_id), word(&delivery.state));
    place(&mut out, delivery);
    for path in delivery.paths.iter().take(SHOWN * 5) {
        let style = if path.outcome == Outcome::Already { DIM } else { GOOD };
        let _ = writeln!(out, "  {} {}", styled(style, &format!("{:<12}", word(&path.outcome))), path.path);
    }
    if delivery.paths.len() > SHOWN * 5 {
        let _ = writeln!(out, "  … and {} more", delivery.paths.len() - SHOWN * 5);
    }
    for note in &delivery.notes {
        let _ = writeln!(out, "  {} {note}", styled(OPEN, "note:"));
    }
    out
}

/// The ref that a delivery moved.
fn place(out: &mut String, delivery: &DeliveryObject) {
    let Some(branch) = &delivery.branch else { return };
    let remote = delivery.remote.as_ref().map(|remote| format!(" of {remote}")).unwrap_or_default();
    let commit =
        delivery.commit.as_ref().map(|id| format!(", commit {}", short(id.as_str()))).unwrap_or_default();
    let _ = writeln!(out, "  branch    {branch}{remote}{commit}");
}

pub fn report(report: &Report) -> String {
    let mut out = format!(
        "task {}: {}\n",
        styled(BOLD, &report.task_id),
        styled(state_style(report.state), &word(&report.state))
    );
    let _ = writeln!(out, "  goal      {}", plain(&report.goal, usize::MAX));
    let _ = writeln!(
        out,
        "  contract  version {}, sha256 {}",
        report.contract.version,
        short(&report.contract.sha256.to_string())
    );
    for line in &report.narrowed {
        let _ = writeln!(out, "  {} {}", styled(OPEN, "narrowed:"), plain(line, usize::MAX));
    }
    let _ = writeln!(
        out,
        "  sandbox   {} asked for, {} enforced",
        report.sandbox.requested, report.sandbox.enforced
    );
    let _ = writeln!(out, "{}", styled(BOLD, "requirements"));
    rows(&mut out, &report.requirements, &report.runs);
    worker_words(&mut out, report);
    match report.candidate {
        None => {
            let _ = writeln!(out, "no candidate yet");
        }
        // An exploration delivers what was found.
        Some(_) if report.kind == "explore" => {}
        Some(number) => {
            let _ = writeln!(out, "{}", styled(BOLD, &format!("changes (candidate {number})")));
            changes(&mut out, &report.changes);
        }
    }
    if let Some(done) = &report.delivery {
        let applied = done.paths.iter().filter(|p| p.outcome != Outcome::Already).count();
        let _ = writeln!(
            out,
            "{} {}: {} of {} paths written",
            styled(BOLD, "delivery"),
            done.mode,
            applied,
            done.paths.len()
        );
        place(&mut out, done);
    }
    around(&mut out, report);
    out
}

/// What to know beside the result: the worker's calls, risks and limits.
fn around(out: &mut String, report: &Report) {
    if let Some(calls) = &report.calls {
        let Counts { made, succeeded, failed, denied, cut_off } = calls;
        let _ = writeln!(
            out,
            "{} {made}: {succeeded} succeeded, {failed} failed, {denied} denied, {cut_off} cut off",
            styled(BOLD, "calls of the worker")
        );
    }
    if !report.risks.is_empty() {
        let _ = writeln!(out, "{}", styled(BOLD, "risks"));
        for risk in &report.risks {
            let _ = writeln!(
                out,
                "  {} {}",
                plain(&risk.text, usize::MAX),
                styled(DIM, &format!("[{}]", risk.reference))
            );
        }
    }
    for limit in &report.limits {
        let _ = writeln!(out, "  limit: {}", plain(limit, crate::domain::worker::inquiry::SHOWN));
    }
}

/// What the worker asked, wished and found. Its words are no one's whom we trust.
fn worker_words(out: &mut String, report: &Report) {
    let questions = report.questions.iter().flat_map(crate::domain::worker::inquiry::QuestionObject::lines);
    let amendments =
        report.amendments.iter().flat_map(crate::domain::worker::inquiry::AmendmentObject::lines);
    for line in questions.chain(amendments) {
        let _ = writeln!(out, "{line}");
    }
    if !report.findings.is_empty() {
        let _ = writeln!(out, "{}", styled(BOLD, "findings, in the worker's words"));
    }
    for finding in &report.findings {
        let _ = writeln!(out, "  {}", finding.line());
    }
}

fn state_style(state: TaskState) -> Style {
    match state {
        TaskState::Completed | TaskState::Verified => GOOD,
        TaskState::VerificationFailed | TaskState::OutcomeUnknown => BAD,
        _ => OPEN,
    }
}

/// One line of the ledger.
pub fn entry(entry: &Entry) -> String {
    let task = entry.task.as_deref().unwrap_or("-");
    format!(
        "{:>5}  {}  {:<16} {:<9} {:<18} {} {}\n",
        entry.seq,
        entry.at,
        task,
        entry.tool,
        word(&entry.state),
        entry.action,
        word(&entry.actor)
    )
}
