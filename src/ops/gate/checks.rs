//! `run_check` and `finish`: a capture of the worktree as it is now, and the verifiers of the contract on it.

use super::super::session::TaskWrite;
use super::super::verify::{self, Explain, Options, Sandbox};
use super::super::{explore, report, submit};
use super::Line;
use super::run::{Outcome, object};
use crate::domain::call::Origin;
use crate::domain::contract;
use crate::domain::digest::Sha256;
use crate::domain::evidence::{Attempt, Evidence, shown};
use crate::domain::first_error::{self, Kind};
use crate::domain::patch::Candidate;
use crate::domain::report::{VerificationObject, word};
use crate::domain::verdict::{Row, Verdict};
use crate::error::Result;
use crate::tools::requests::{Checked, Finished, FirstErrorIn, Log, Run};
use serde_json::{Value, json};

/// The most findings of a run in one answer.
const MOST_FINDINGS: usize = 10;

/// Captures, and runs one verifier.
pub fn run_check(task: &mut TaskWrite<'_>, id: &str, line: &Line<'_>) -> Result<Outcome> {
    let (candidate, verification) = produce(task, std::slice::from_ref(&id.to_owned()), line)?;
    let rows: Vec<&Row> = verification.requirements.iter().filter(|row| row.verifier == id).collect();
    let worst = rows.iter().map(|row| row.verdict).max_by_key(|verdict| severity(*verdict));
    let answer = Checked {
        candidate: candidate.candidate,
        verdict: word(&worst.unwrap_or(Verdict::NotRun)),
        requirements: rows.iter().map(object).collect(),
        runs: runs(task, &rows)?,
    };
    let (origin, novelty) = (Some(Origin::new("verifier", id)), Some(novelty(&candidate, &rows)));
    Ok(Outcome { origin, novelty, charged_otherwise: true, ..Outcome::of(&answer)? })
}

/// Captures, runs all verifiers, and says whether anything is left for the worker to do.
pub fn finish(task: &mut TaskWrite<'_>, line: &Line<'_>) -> Result<Outcome> {
    let (candidate, verification) = produce(task, &[], line)?;
    let rows: Vec<&Row> = verification.requirements.iter().collect();
    let (mut why, mut done) = (Vec::new(), true);
    for row in rows.iter().filter(|row| row.required && row.verdict != Verdict::Passed) {
        let waits = row.verdict == Verdict::NeedsConfirmation;
        let reason = row.reason.as_deref().unwrap_or("no reason was recorded");
        why.push(format!("{} is {}: {reason}", row.id, word(&row.verdict)));
        done &= waits;
    }
    if candidate.changes.is_empty() && task.view.opened()?.contract.kind != contract::Kind::Explore {
        done = false;
        why.push("nothing has changed against the base".to_owned());
    }
    if explore::is_meant(task) && task.view.findings.is_empty() {
        done = false;
        why.push(
            "nothing was noted: an exploration needs a finding, or a limit of what was looked at".to_owned(),
        );
    }
    let answer = Finished {
        done,
        why,
        state: word(&task.view.state(&verification.requirements)),
        candidate: candidate.candidate,
        requirements: rows.iter().map(object).collect(),
        changes: candidate.changes.iter().map(object).collect(),
        runs: runs(task, &rows)?,
    };
    let novelty = Some(novelty(&candidate, &rows));
    Ok(Outcome { novelty, charged_otherwise: true, ..Outcome::of(&answer)? })
}

/// What tells a new result from an old one: the bytes that were judged, and the verdicts. That it ran anew is nothing new.
fn novelty(candidate: &Candidate, rows: &[&Row]) -> Value {
    let verdicts: Vec<Value> =
        rows.iter().map(|row| json!([row.id, row.verdict, row.reason, row.checks])).collect();
    json!([candidate.tree, verdicts])
}

fn produce(
    task: &mut TaskWrite<'_>,
    only: &[String],
    line: &Line<'_>,
) -> Result<(Candidate, VerificationObject)> {
    (line.progress)(0, 0, "capturing the worktree");
    let candidate = submit::take_now(task, None)?;
    let options = Options { only, explain: Explain::No, sandbox: Sandbox::AsContracted };
    // The capture was a step of its own.
    let steps = std::cell::Cell::new(1);
    let progress = |done: u64, total: u64| {
        steps.set(total + 1);
        (line.progress)(done + 1, total + 1, "running verifiers");
    };
    let verification = verify::produce_for_captured(task, &candidate, &options, &progress)?;
    (line.progress)(steps.get(), steps.get(), "done");
    task.refresh()?;
    Ok((candidate, verification))
}

/// The runs that rows rest on and that are no pass, each once.
fn runs(task: &TaskWrite<'_>, rows: &[&Row]) -> Result<Vec<Run>> {
    let wanted: Vec<&str> = rows
        .iter()
        .filter(|row| row.verdict != Verdict::Passed)
        .filter_map(|row| row.evidence.as_deref())
        .collect();
    let (mut runs, mut known): (Vec<Run>, Vec<String>) = (Vec::new(), Vec::new());
    for record in report::evidence(&task.ledger, &task.view)? {
        let evidence = record.value;
        if wanted.contains(&shown(&evidence.digest()).as_str()) && !known.contains(&evidence.run) {
            known.push(evidence.run.clone());
            runs.push(run_of(task, &evidence)?);
        }
    }
    Ok(runs)
}

fn run_of(task: &TaskWrite<'_>, evidence: &Evidence) -> Result<Run> {
    let last = evidence.attempts.last();
    let mut logs = Vec::new();
    for (stream, digest) in last.into_iter().flat_map(streams) {
        let bytes = task.session.blobs().get(&digest)?;
        logs.push((bytes, Log { stream: stream.to_owned(), reference: shown(&digest), bytes: 0 }));
    }
    let first_error = first_error(&logs);
    Ok(Run {
        verifier: evidence.verifier.clone(),
        end: last.map_or_else(|| "nothing ran".to_owned(), end),
        first_error,
        findings: evidence.findings.iter().take(MOST_FINDINGS).map(object).collect(),
        logs: logs.into_iter().map(|(bytes, log)| Log { bytes: bytes.len() as u64, ..log }).collect(),
        origin: Origin::new("verifier", &evidence.verifier),
    })
}

fn streams(attempt: &Attempt) -> impl Iterator<Item = (&'static str, Sha256)> {
    [("stdout", attempt.stdout), ("stderr", attempt.stderr)]
        .into_iter()
        .filter_map(|(name, digest)| Some((name, digest?)))
}

/// Of both streams the one that a tool's own words tell; what only looks like an error comes after, and standard error first.
/// Where nothing was recognised, a stream that speaks of failure, and else standard output: standard error tells of progress, too.
fn first_error(logs: &[(Vec<u8>, Log)]) -> Option<FirstErrorIn> {
    let found = logs.iter().rev().filter_map(|(bytes, log)| {
        let error = first_error::find(bytes)?;
        Some(FirstErrorIn { error, reference: log.reference.clone() })
    });
    let streams: Vec<FirstErrorIn> = found.collect();
    let rank = |(at, found): &(usize, FirstErrorIn)| match found.error.kind {
        Kind::Tail if found.error.speaks_of_failure() => (2, *at),
        // The streams stand in reverse.
        Kind::Tail => (3, usize::MAX - at),
        Kind::Plain => (1, *at),
        _ => (0, *at),
    };
    streams.into_iter().enumerate().min_by_key(rank).map(|(_, found)| found)
}

fn end(attempt: &Attempt) -> String {
    match (attempt.exit_code, attempt.signal) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => attempt.reason.clone().unwrap_or_else(|| "it did not start".to_owned()),
    }
}

fn severity(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Passed => 0,
        Verdict::NeedsConfirmation => 1,
        Verdict::NotRun => 2,
        Verdict::Stale => 3,
        Verdict::Failed => 4,
        Verdict::Error => 5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(stdout: &str, stderr: &str) -> String {
        let log = |stream: &str, text: &str| {
            let log = Log { stream: stream.to_owned(), reference: stream.to_owned(), bytes: 0 };
            (text.as_bytes().to_vec(), log)
        };
        first_error(&[log("stdout", stdout), log("stderr", stderr)])
            .map_or_else(String::new, |found| found.reference)
    }

    #[test]
    fn the_stream_that_tells_of_the_failure_is_chosen() {
        assert_eq!(shown("all\nwords\n", "progress 100%\n"), "stdout");
        assert_eq!(shown("all\nwords\n", "disk cannot be written\n"), "stderr");
        assert_eq!(shown("3 checks have failed\n", "progress 100%\n"), "stdout");
        assert_eq!(shown("0 failed\n", "it has failed\n"), "stderr");
        assert_eq!(shown("a.c:1:2: error: x\n", "Error: y\n"), "stdout");
        assert_eq!(shown("Error: x\n", "Error: y\n"), "stderr");
        assert_eq!(shown("", "up\n"), "stderr");
        assert_eq!(shown("", ""), "");
    }
}
