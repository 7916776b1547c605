//! The rules that turn evidence into verdicts.
//!
//! A row is a function of what was observed (which keys hold now) and of the records in the ledger. Nothing
//! here is stored: the same observation and the same records always give the same rows, so a report is a
//! projection, and putting bytes back makes the old evidence fresh again without anyone noticing.

use crate::domain::contract::Kind;
use crate::domain::contract::policy::Flaky;
use crate::domain::proof::evidence::{
    Evidence, EvidenceKind, InputFile, Observation, Observed, Reuse, Source, listing_differences, shown,
};
use crate::domain::proof::verdict::{Row, Strength, Verdict};
use crate::domain::value::digest::Sha256;
use std::collections::BTreeSet;

/// The reason of a row whose verifier the contract forbids.
pub const FORBIDDEN: &str = "forbidden by contract";

/// The reason of a row whose verifier is not in the base commit, but elsewhere, begins so.
pub const NOT_COMMITTED: &str = "is not in the base commit, only in";

/// The reason of a row that has no evidence at all.
pub const NEVER_RUN: &str = "never run on this candidate";

/// The reason of a row that passed last and failed before.
const FLAKY: &str = "flaky: it failed and passed on the same bytes; `verify --again` clears it where it passes three times in a row";

/// A record with its digest. Records come in the order of the ledger.
pub type Record = (Sha256, Evidence);

/// Finds the files of a stored listing, to name what changed; asked only for a stale row.
pub type Listings<'a> = &'a dyn Fn(&Sha256) -> Option<Vec<InputFile>>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// The rows of one verifier that one run shows, by their position in the observation.
    pub rows: Vec<usize>,
    pub on: On,
}

/// The tree that a verifier runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    Candidate,
    /// The base, with the case of a repair.
    Base,
}

/// The rows of a report: computed from what was observed and from the records, never stored.
pub fn rows(observation: &Observation, records: &[Record], listings: Listings<'_>) -> Vec<Row> {
    let mut rows: Vec<Row> = observation
        .rows
        .iter()
        .map(|observed| {
            let mut row = judged(observation, observed, records, listings);
            row.strength = strength(observation, observed, &row, records);
            row
        })
        .collect();
    if observation.kind == Kind::Repair {
        refuse_what_was_not_reproduced(observation, records, &mut rows);
    }
    rows
}

/// What `verify` has to run so that no row lacks evidence that a run could give. A row that was shown and
/// failed is tried again.
pub fn missing(observation: &Observation, records: &[Record]) -> Vec<Job> {
    let mut jobs: Vec<Job> = Vec::new();
    for on in [On::Base, On::Candidate] {
        for (at, observed) in observation.rows.iter().enumerate() {
            if !wanted(observation, observed, records, on) {
                continue;
            }
            let verifier = &observed.clause.verifier;
            let same = |job: &&mut Job| {
                job.on == on
                    && job
                        .rows
                        .first()
                        .is_some_and(|first| observation.rows[*first].clause.verifier == *verifier)
            };
            match jobs.iter_mut().find(same) {
                Some(job) => job.rows.push(at),
                None => jobs.push(Job { rows: vec![at], on }),
            }
        }
    }
    jobs
}

fn wanted(observation: &Observation, observed: &Observed, records: &[Record], on: On) -> bool {
    match (&observed.source, on) {
        (Source::Command | Source::Builtin, On::Candidate) => {
            let pass = current(observation, observed, records);
            observed.reuse == Reuse::Never
                || pass.is_none_or(|found| found.verdict != Verdict::Passed || found.flaky)
        }
        (Source::Command, On::Base) => {
            observation.kind == Kind::Repair
                && observed.counts
                && on_base(observation, observed, records).is_none()
        }
        _ => false,
    }
}

fn judged(observation: &Observation, observed: &Observed, records: &[Record], listings: Listings<'_>) -> Row {
    let not_run = |reason: String| blank(observed, Verdict::NotRun, Some(reason));
    match &observed.source {
        Source::Forbidden => not_run(FORBIDDEN.to_owned()),
        Source::NotAllowed => not_run(format!(
            "{} is not among the verifiers that the contract allows",
            observed.clause.verifier
        )),
        Source::OnlyIn { place } => not_run(format!(
            "its manifest .tender/verifiers/{}/verifier.toml {NOT_COMMITTED} {place}",
            observed.clause.verifier
        )),
        Source::Missing { what } | Source::NothingToSee { why: what } => not_run(what.clone()),
        Source::Manual | Source::Protected { .. } => attested(observation, observed, records),
        Source::Command | Source::Builtin => shown_by_runs(observation, observed, records, listings),
    }
}

fn blank(observed: &Observed, verdict: Verdict, reason: Option<String>) -> Row {
    Row {
        id: observed.clause.id.clone(),
        verifier: observed.clause.verifier.clone(),
        title: observed.title.clone(),
        required: observed.clause.required,
        verdict,
        reason,
        reused: false,
        strength: Strength::Unmeasured,
        judge_changed: observed.judge_changed,
        evidence: None,
        checks: None,
    }
}

fn attested(observation: &Observation, observed: &Observed, records: &[Record]) -> Row {
    let words = |(_, e): &&Record| {
        e.kind == EvidenceKind::Attestation
            && e.requirement == observed.clause.id
            && e.task == observation.task
    };
    let fresh = records.iter().rev().filter(words).find(|(_, e)| observed.key.as_ref() == Some(&e.key));
    let Some((digest, evidence)) = fresh else {
        let earlier = records.iter().any(|record| words(&record));
        let reason = match (&observed.source, earlier) {
            (_, true) => "attested for other bytes or other words, not for this candidate".to_owned(),
            (Source::Protected { why }, false) => {
                format!("{}: a person has to confirm", some_of(why, "protected paths are touched"))
            }
            (_, false) => "a person has to attest it for this candidate".to_owned(),
        };
        return blank(observed, Verdict::NeedsConfirmation, Some(reason));
    };
    let said = evidence.attestation.as_ref().map(|a| a.message.clone());
    let (verdict, reason) = match evidence.outcome {
        Verdict::Passed => (Verdict::Passed, None),
        _ => (Verdict::Failed, Some(format!("attested as failed: {}", said.unwrap_or_default()))),
    };
    let mut row = blank(observed, verdict, reason);
    row.evidence = Some(shown(digest));
    row.reused = evidence.candidate != observation.candidate;
    row
}

/// The verdict of a row's fresh records.
struct Current<'a> {
    verdict: Verdict,
    reason: Option<String>,
    flaky: bool,
    record: &'a Record,
}

/// What a candidate left in the scratch can have judged the next one; the key does not cover it, so such a
/// run counts for its own task only.
fn counts_here(observation: &Observation, evidence: &Evidence) -> bool {
    !evidence.warm || evidence.task == observation.task
}

/// The key knows a requirement by its words alone. Where two of one verifier have the same, each record
/// speaks for its own: a run may say one thing of the first and another of the second.
fn is_of(observation: &Observation, observed: &Observed, evidence: &Evidence) -> bool {
    let (clause, id) = (&observed.clause, &evidence.requirement);
    let is_twin = |other: &Observed| {
        other.clause.id == *id && other.clause.text == clause.text && other.clause.verifier == clause.verifier
    };
    clause.id == *id || !observation.rows.iter().any(is_twin)
}

/// True where a record is a run for exactly what the row is about now.
pub fn is_fresh(observation: &Observation, observed: &Observed, evidence: &Evidence) -> bool {
    let here = evidence.task == observation.task && evidence.candidate == observation.candidate;
    evidence.kind != EvidenceKind::Attestation
        && observed.key.as_ref() == Some(&evidence.key)
        && is_of(observation, observed, evidence)
        && counts_here(observation, evidence)
        && (observed.reuse == Reuse::SameInputs || here)
}

/// True where fresh records of a row disagree, or one of them does with itself.
pub fn disagree<'a>(fresh: impl Iterator<Item = &'a Evidence>) -> bool {
    let (mut passed, mut failed, mut flaky) = (false, false, false);
    for evidence in fresh {
        passed |= evidence.outcome == Verdict::Passed;
        failed |= evidence.outcome == Verdict::Failed;
        flaky |= evidence.flaky;
    }
    flaky || (passed && failed)
}

/// How many runs in a row have to pass before an earlier failure on the same bytes is forgiven.
pub const CLEARING_RUNS: usize = 3;

/// True where the last runs of a row were asked for to clear it and passed, enough of them in a row.
fn is_cleared(fresh: &[&Record]) -> bool {
    let passes = fresh.iter().rev().map(|(_, e)| e);
    let passes = passes.take_while(|e| e.clearing && e.outcome == Verdict::Passed && !e.flaky);
    passes.map(|e| e.run.as_str()).collect::<BTreeSet<_>>().len() >= CLEARING_RUNS
}

/// True where a run of the job passed last, and has to pass again to clear what disagreed before.
pub fn has_to_clear(observation: &Observation, job: &Job, records: &[Record]) -> bool {
    let found = job.rows.iter().filter_map(|at| current(observation, &observation.rows[*at], records));
    job.on == On::Candidate
        && found.into_iter().any(|found| found.flaky && found.record.1.outcome == Verdict::Passed)
}

/// Only the last run with exactly this key speaks; that another one disagreed makes the row flaky.
fn current<'a>(observation: &Observation, observed: &Observed, records: &'a [Record]) -> Option<Current<'a>> {
    let fresh: Vec<&Record> = records.iter().filter(|(_, e)| is_fresh(observation, observed, e)).collect();
    let record = *fresh.last()?;
    let flaky = disagree(fresh.iter().map(|(_, e)| e)) && !is_cleared(&fresh);
    let (verdict, reason) = match (record.1.outcome, flaky) {
        (Verdict::Passed, true) if observation.flaky == Flaky::Warn => {
            (Verdict::Passed, Some("flaky: it failed before on the same bytes".to_owned()))
        }
        (Verdict::Passed, true) => (Verdict::Failed, Some(FLAKY.to_owned())),
        (Verdict::Failed, true) => {
            let reason = record.1.reason.as_deref().unwrap_or("it failed");
            (Verdict::Failed, Some(format!("flaky: {reason}; it passed on the same bytes")))
        }
        (verdict, _) => (verdict, record.1.reason.clone()),
    };
    Some(Current { verdict, reason, flaky, record })
}

fn shown_by_runs(
    observation: &Observation,
    observed: &Observed,
    records: &[Record],
    listings: Listings<'_>,
) -> Row {
    if let Some(found) = current(observation, observed, records) {
        let (digest, evidence) = found.record;
        let mut row = blank(observed, found.verdict, found.reason);
        row.evidence = Some(shown(digest));
        row.checks = evidence.checks;
        row.reused = evidence.task != observation.task || evidence.candidate != observation.candidate;
        return row;
    }
    let earlier = records.iter().rev().find(|(_, e)| {
        e.kind == EvidenceKind::Run
            && e.task == observation.task
            && e.requirement == observed.clause.id
            && e.verifier == observed.clause.verifier
    });
    let Some((digest, evidence)) = earlier else {
        return blank(observed, Verdict::NotRun, Some(NEVER_RUN.to_owned()));
    };
    let mut row = blank(observed, Verdict::Stale, Some(stale_reason(observed, evidence, listings)));
    row.evidence = Some(shown(digest));
    row
}

/// Names the part of the key that is another one.
fn stale_reason(observed: &Observed, before: &Evidence, listings: Listings<'_>) -> String {
    let Some(key) = &observed.key else { return "nothing can be shown now".to_owned() };
    let mut found = Vec::new();
    if key.requirement != before.key.requirement {
        found.push("the requirement's text changed".to_owned());
    }
    if key.verifier != before.key.verifier {
        let parts =
            observed.identity.as_ref().map(|now| now.differences(&before.identity)).unwrap_or_default();
        found.push(some_of(&parts, "the verifier changed"));
    }
    if key.inputs != before.key.inputs {
        let files = |listing: Option<Sha256>| listing.and_then(|digest| listings(&digest));
        let named = match (files(before.listing), files(observed.listing)) {
            (Some(old), Some(new)) => listing_differences(&old, &new),
            _ => Vec::new(),
        };
        found.push(some_of(&named, "the candidate changed"));
    }
    if key.platform != before.key.platform {
        found.push(format!("it was made on {}, this is {}", before.key.platform, key.platform));
    }
    match found.is_empty() {
        true => {
            "the run was made for another candidate, and this verifier's runs are never reused".to_owned()
        }
        false => found.join("; "),
    }
}

/// At most three of what is named; `otherwise` where nothing is.
pub fn some_of(named: &[String], otherwise: &str) -> String {
    match named.len() {
        0 => otherwise.to_owned(),
        1..=3 => named.join(", "),
        more => format!("{}, and {} more", named[..3].join(", "), more - 3),
    }
}

/// The last run of the same verifier on the base. Errors and runs that counted nothing say nothing.
fn on_base<'a>(observation: &Observation, observed: &Observed, records: &'a [Record]) -> Option<&'a Record> {
    let key = observed.base_key.as_ref()?;
    records.iter().rev().find(|(_, e)| {
        e.kind != EvidenceKind::Attestation
            && e.key == *key
            && is_of(observation, observed, e)
            && counts_here(observation, e)
            && matches!(e.outcome, Verdict::Passed | Verdict::Failed)
    })
}

/// True where a counted case failed: a build that fails proves nothing of a case.
fn failed_by_a_case(evidence: &Evidence) -> bool {
    evidence.outcome == Verdict::Failed && evidence.checks.is_some_and(|checks| checks.failed > 0)
}

fn strength(observation: &Observation, observed: &Observed, row: &Row, records: &[Record]) -> Strength {
    if row.verdict != Verdict::Passed {
        return Strength::Unmeasured;
    }
    match on_base(observation, observed, records) {
        Some((_, base)) if base.flaky => Strength::Unmeasured,
        Some((_, base)) if base.outcome == Verdict::Passed => Strength::NoRegression,
        Some((_, base))
            if failed_by_a_case(base) || (observation.kind != Kind::Repair && base.checks.is_none()) =>
        {
            Strength::Fixed
        }
        _ => Strength::Unmeasured,
    }
}

/// A repair has to show that something failed before. Where no required row does, none that counts cases may
/// pass; where no required one counts, none of the required ones.
fn refuse_what_was_not_reproduced(observation: &Observation, records: &[Record], rows: &mut [Row]) {
    if rows.iter().any(|row| row.required && row.strength == Strength::Fixed) {
        return;
    }
    let counts = |observed: &Observed| {
        observed.clause.required && observed.counts && observed.source == Source::Command
    };
    let counting = observation.rows.iter().any(counts);
    for (row, observed) in rows.iter_mut().zip(&observation.rows) {
        let affected = observed.counts || (row.required && !counting);
        if row.verdict != Verdict::Passed || !affected {
            continue;
        }
        let why = match on_base(observation, observed, records) {
            _ if !observed.counts => "no required verifier that counts cases ran on the base",
            None => "it was not run on the base, or that run ended in an error",
            Some((_, base)) if base.outcome == Verdict::Passed => "the case passes on the base already",
            Some((_, base)) if failed_by_a_case(base) => "only a row that is not required shows it",
            Some(_) => "on the base no counted case failed; a build error proves nothing",
        };
        row.verdict = Verdict::Failed;
        row.reason = Some(format!("not reproduced: {why}"));
        row.strength = Strength::Unmeasured;
    }
}

/// Marks as reused every pass that rests on a record which is not among those just made.
pub fn mark_reused(rows: &mut [Row], made: &[Sha256]) {
    let made: Vec<String> = made.iter().map(shown).collect();
    for row in rows.iter_mut().filter(|row| row.verdict == Verdict::Passed) {
        row.reused = row.evidence.as_ref().is_some_and(|evidence| !made.contains(evidence));
    }
}

#[cfg(test)]
fn all_required_passed(rows: &[Row]) -> bool {
    rows.iter().filter(|row| row.required).all(|row| row.verdict == Verdict::Passed)
}

#[cfg(test)]
mod tests;
