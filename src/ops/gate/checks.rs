//! `run_check` and `finish`: a capture of the worktree as it is now, and the verifiers of the contract on it.

use super::CallControl;
use super::outcome::CallOutcome;
use crate::domain::change::patch::Candidate;
use crate::domain::contract;
use crate::domain::ledger::report::{VerificationObject, word_of};
use crate::domain::proof::verdict::{Row, Verdict};
use crate::domain::value::outside::Origin;
use crate::error::Result;
use crate::task::effect::findings;
use crate::task::evidence;
use crate::task::held::TaskWrite;
use crate::task::runs::{self, object};
use crate::task::submission::capture_candidate;
use crate::task::verification::{Options, produce_for_captured};
use crate::tools::table::{FinishAnswer, RunCheckAnswer};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Captures, and runs one verifier.
pub fn run_check(task: &mut TaskWrite<'_>, id: &str, line: &CallControl<'_>) -> Result<CallOutcome> {
    let (candidate, verification) = capture_and_verify(task, std::slice::from_ref(&id.to_owned()), line)?;
    let rows: Vec<&Row> = verification.requirements.iter().filter(|row| row.verifier == id).collect();
    let evidence = evidence::counting_for(&task.ledger, &task.view)?;
    let worst = rows.iter().map(|row| row.verdict).max_by_key(|verdict| severity(*verdict));
    let answer = RunCheckAnswer {
        candidate: candidate.candidate,
        verdict: word_of(&worst.unwrap_or(Verdict::NotRun)),
        requirements: rows.iter().map(object).collect(),
        runs: runs::of_verifier(&task.session.blobs(), &evidence, &verification.requirements, id),
    };
    let (origin, novelty) = (Some(Origin::new("verifier", id)), Some(novelty(&candidate, &rows)));
    Ok(CallOutcome { origin, novelty, ..CallOutcome::of_answer(&answer)? })
}

/// Captures, runs all verifiers, and says whether anything is left for the worker to do.
pub fn run_finish(task: &mut TaskWrite<'_>, line: &CallControl<'_>) -> Result<CallOutcome> {
    let (candidate, verification) = capture_and_verify(task, &[], line)?;
    let rows: Vec<&Row> = verification.requirements.iter().collect();
    let (mut why, mut done) = (Vec::new(), true);
    for row in rows.iter().filter(|row| row.required && row.verdict != Verdict::Passed) {
        let waits = row.verdict == Verdict::NeedsConfirmation;
        let reason = row.reason.as_deref().unwrap_or("no reason was recorded");
        why.push(format!("{} is {}: {reason}", row.id, word_of(&row.verdict)));
        done &= waits;
    }
    if candidate.changes.is_empty() && task.view.opened_terms()?.contract.kind != contract::Kind::Explore {
        done = false;
        why.push("nothing has changed against the base".to_owned());
    }
    if findings::is_meant(task) && task.view.findings.is_empty() {
        done = false;
        why.push(
            "nothing was noted: an exploration needs a finding, or a limit of what was looked at".to_owned(),
        );
    }
    let answer = FinishAnswer {
        done,
        why,
        state: word_of(&task.view.state_with(&verification.requirements)),
        candidate: candidate.candidate,
        requirements: rows.iter().map(object).collect(),
        changes: candidate.changes.iter().map(object).collect(),
        runs: verification.runs.clone(),
    };
    let (origin, novelty) = (said_by(&rows), Some(novelty(&candidate, &rows)));
    Ok(CallOutcome { origin, novelty, ..CallOutcome::of_answer(&answer)? })
}

/// The verifiers whose words an answer quotes; `None` where there are none.
fn said_by(rows: &[&Row]) -> Option<Origin> {
    let verifiers: BTreeSet<&str> = rows.iter().map(|row| row.verifier.as_str()).collect();
    let names: Vec<&str> = verifiers.into_iter().collect();
    (!names.is_empty()).then(|| Origin::new("verifier", names.join(", ")))
}

/// What tells a new result from an old one: the bytes that were judged, and the verdicts. That it ran anew is
/// nothing new.
fn novelty(candidate: &Candidate, rows: &[&Row]) -> Value {
    let verdicts: Vec<Value> =
        rows.iter().map(|row| json!([row.id, row.verdict, row.reason, row.checks])).collect();
    json!([candidate.tree, verdicts])
}

fn capture_and_verify(
    task: &mut TaskWrite<'_>,
    only: &[String],
    line: &CallControl<'_>,
) -> Result<(Candidate, VerificationObject)> {
    (line.progress)(0, 0, "capturing the worktree");
    let candidate = capture_candidate(task, None)?;
    let options = Options { only, ..Default::default() };
    // The capture was a step of its own.
    let steps = std::cell::Cell::new(1);
    let progress = |done: u64, total: u64| {
        steps.set(total + 1);
        (line.progress)(done + 1, total + 1, "running verifiers");
    };
    let verification = produce_for_captured(task, &candidate, &options, &progress)?;
    (line.progress)(steps.get(), steps.get(), "done");
    task.refresh()?;
    Ok((candidate, verification))
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
