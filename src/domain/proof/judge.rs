//! The rules that turn evidence into verdicts.
//!
//! A row is a function of what was observed (which keys hold now) and of the records in the ledger. Nothing
//! here is stored: the same observation and the same records always give the same rows, so a report is a
//! projection, and putting bytes back makes the old evidence fresh again without anyone noticing.

use super::base_runs::{compare_with_base, tell_of_base, wants_base_run};
use super::gone_cases::require_confirmation;
use super::records::{On, Record, StoredLists, counts_here, find_on_base, is_of};
use super::reproduction::{Reproduction, find_reproduction};
use crate::domain::contract::Kind;
use crate::domain::contract::policy::Flaky;
use crate::domain::proof::evidence::{
    Evidence, EvidenceKind, Identity, Observation, Observed, Reuse, Source, shown_digest,
};
use crate::domain::proof::listing::{flat_listing_digest, listing_differences};
use crate::domain::proof::verdict::{Row, Strength, Verdict};
use crate::domain::value::digest::Sha256;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The reason of a row whose verifier the contract forbids.
pub const FORBIDDEN: &str = "forbidden by contract";

/// The reason of a row whose verifier is not in the base commit, but elsewhere, begins so.
pub const NOT_COMMITTED: &str = "is not in the base commit, only in";

/// The reason of a row that a change says nothing of.
pub const NOT_CONCERNED: &str = "the change touches none of its inputs";

/// True where a row asks nothing because the change is none of its business.
pub fn is_not_concerned(row: &Row) -> bool {
    row.verdict == Verdict::NotRun && !row.required && row.reason.as_deref() == Some(NOT_CONCERNED)
}

/// The reason of a row that has no evidence at all.
pub const NEVER_RUN: &str = "never run on this candidate";

/// The reason of a row that passed last and failed before.
pub const FLAKY: &str = "flaky: it failed and passed on the same bytes; `verify --again` clears it where it passes three times in a row";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// The rows of one verifier that one run shows, by their position in the observation.
    pub rows: Vec<usize>,
    pub on: On,
}

/// The rows of a report: computed from what was observed and from the records, never stored.
pub fn judge_rows(observation: &Observation, records: &[Record], stored: StoredLists<'_>) -> Vec<Row> {
    let (_, mut rows) = with_confirmation(observation, records, stored);
    if observation.kind == Kind::Repair {
        refuse_what_was_not_reproduced(observation, records, stored, &mut rows);
    }
    rows
}

/// What was observed, with the row that a person has to confirm where cases of the base are gone; and the
/// rows.
pub fn with_confirmation<'a>(
    observation: &'a Observation,
    records: &[Record],
    stored: StoredLists<'_>,
) -> (Cow<'a, Observation>, Vec<Row>) {
    let judge = |observed: &Observed| judge_row(observation, observed, records, stored);
    let mut rows: Vec<Row> = observation.rows.iter().map(judge).collect();
    let Some((asked, at)) = require_confirmation(observation, &rows) else {
        return (Cow::Borrowed(observation), rows);
    };
    let row = judge(&asked.rows[at]);
    match asked.rows.len() == rows.len() {
        true => rows[at] = row,
        false => rows.insert(at, row),
    }
    (Cow::Owned(asked), rows)
}

fn judge_row(
    observation: &Observation,
    observed: &Observed,
    records: &[Record],
    stored: StoredLists<'_>,
) -> Row {
    let mut row = judge_observed(observation, observed, records, stored);
    if let Some(found) = current_record(observation, observed, records)
        && observed.source == Source::Command
    {
        let now = &found.record.1;
        if row.verdict == Verdict::Failed
            && let Some(told) = tell_of_base(observation, observed, records)
        {
            row.reason = Some(format!("{}; {told}", row.reason.as_deref().unwrap_or("it failed")));
        }
        row.cases = compare_with_base(observation, observed, records, stored, now);
        row.judge_changed |=
            row.verdict == Verdict::Passed && row.cases.as_ref().is_some_and(|cases| cases.gone.count > 0);
        row.strength = strength_of(observation, observed, &row, (records, stored, now));
    }
    row
}

/// What `verify` has to run so that no row lacks evidence that a run could give. A row that was shown and
/// failed is tried again.
pub fn missing_jobs(observation: &Observation, records: &[Record], stored: StoredLists<'_>) -> Vec<Job> {
    let mut jobs: Vec<Job> = Vec::new();
    for on in [On::Base, On::BaseWithCase, On::BaseWithoutCase, On::Candidate] {
        for (at, observed) in observation.rows.iter().enumerate() {
            if !is_wanted(observation, observed, (records, stored), on) {
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

fn is_wanted(
    observation: &Observation,
    observed: &Observed,
    (records, stored): (&[Record], StoredLists<'_>),
    on: On,
) -> bool {
    let found = current_record(observation, observed, records);
    match (&observed.source, on) {
        (Source::Command | Source::Builtin, On::Candidate) => {
            observed.reuse == Reuse::Never
                || found.is_none_or(|found| found.verdict != Verdict::Passed || found.flaky)
        }
        (Source::Command, on) => {
            let now = found.map(|found| &found.record.1);
            wants_base_run(observation, observed, (records, stored), (on, now))
        }
        _ => false,
    }
}

fn judge_observed(
    observation: &Observation,
    observed: &Observed,
    records: &[Record],
    stored: StoredLists<'_>,
) -> Row {
    let not_run = |reason: String| blank_row(observed, Verdict::NotRun, Some(reason));
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
        Source::Manual | Source::Protected { .. } => judge_attested(observation, observed, records),
        Source::Command | Source::Builtin => shown_by_runs(observation, observed, records, stored),
    }
}

fn blank_row(observed: &Observed, verdict: Verdict, reason: Option<String>) -> Row {
    Row {
        title: observed.title.clone(),
        required: observed.clause.required,
        judge_changed: observed.judge_changed,
        outside_key: observed.identity.as_ref().map(Identity::not_in_key).unwrap_or_default(),
        dead_inputs: observed.dead_inputs.clone(),
        ..Row::without_run(&observed.clause.id, &observed.clause.verifier, verdict, reason)
    }
}

fn judge_attested(observation: &Observation, observed: &Observed, records: &[Record]) -> Row {
    let words = |(_, e): &&Record| {
        e.kind == EvidenceKind::Attestation
            && e.requirement == observed.clause.id
            && e.task == observation.task
    };
    let fresh = records.iter().rev().filter(words).find(|(_, e)| observed.key.as_ref() == Some(&e.key));
    let Some((digest, evidence)) = fresh else {
        let earlier = records.iter().any(|record| words(&record));
        let other = "attested for other bytes or other words, not for this candidate";
        let reason = match (&observed.source, earlier) {
            (Source::Protected { why }, _) => {
                let before = if earlier { format!("{other}; ") } else { String::new() };
                format!("{before}{}: a person has to confirm", some_of(why, "protected paths are touched"))
            }
            (_, true) => other.to_owned(),
            (_, false) => "a person has to attest it for this candidate".to_owned(),
        };
        return blank_row(observed, Verdict::NeedsConfirmation, Some(reason));
    };
    let said = evidence.attestation.as_ref().map(|a| a.message.clone());
    let (verdict, reason) = match evidence.outcome {
        Verdict::Passed => (Verdict::Passed, None),
        _ => (Verdict::Failed, Some(format!("attested as failed: {}", said.unwrap_or_default()))),
    };
    let mut row = blank_row(observed, verdict, reason);
    row.evidence = Some(shown_digest(digest));
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
pub fn records_disagree<'a>(fresh: impl Iterator<Item = &'a Evidence>) -> bool {
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
    let found = job.rows.iter().filter_map(|at| current_record(observation, &observation.rows[*at], records));
    job.on == On::Candidate
        && found.into_iter().any(|found| found.flaky && found.record.1.outcome == Verdict::Passed)
}

/// Only the last run with exactly this key speaks; that another one disagreed makes the row flaky.
fn current_record<'a>(
    observation: &Observation,
    observed: &Observed,
    records: &'a [Record],
) -> Option<Current<'a>> {
    let fresh: Vec<&Record> = records.iter().filter(|(_, e)| is_fresh(observation, observed, e)).collect();
    let record = *fresh.last()?;
    let flaky = records_disagree(fresh.iter().map(|(_, e)| e)) && !is_cleared(&fresh);
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
    stored: StoredLists<'_>,
) -> Row {
    if let Some(found) = current_record(observation, observed, records) {
        let (digest, evidence) = found.record;
        let mut row = blank_row(observed, found.verdict, found.reason);
        row.evidence = Some(shown_digest(digest));
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
        return blank_row(observed, Verdict::NotRun, Some(NEVER_RUN.to_owned()));
    };
    let mut row = blank_row(observed, Verdict::Stale, Some(stale_reason(observed, evidence, stored)));
    row.evidence = Some(shown_digest(digest));
    row
}

/// Names the part of the key that is another one.
fn stale_reason(observed: &Observed, before: &Evidence, stored: StoredLists<'_>) -> String {
    let Some(key) = &observed.key else { return "nothing can be shown now".to_owned() };
    let mut found = Vec::new();
    if key.requirement != before.key.requirement {
        found.push("the requirement's text changed".to_owned());
    }
    if key.verifier != before.key.verifier {
        let parts =
            observed.identity.as_ref().map(|now| now.differences_from(&before.identity)).unwrap_or_default();
        found.push(some_of(&parts, "the verifier changed"));
    }
    if key.inputs != before.key.inputs {
        let files = |listing: Option<Sha256>| listing.and_then(|digest| (stored.files)(&digest));
        let named = match (files(before.listing), files(observed.listing)) {
            (Some(old), Some(new)) if old == new && flat_listing_digest(&old) == before.key.inputs => {
                vec!["an earlier version made it, which digests the same inputs otherwise".to_owned()]
            }
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

fn strength_of(
    observation: &Observation,
    observed: &Observed,
    row: &Row,
    (records, stored, now): (&[Record], StoredLists<'_>, &Evidence),
) -> Strength {
    let on = if observation.kind == Kind::Repair { On::BaseWithCase } else { On::Base };
    let base = find_on_base(observation, observed, records, on).filter(|base| !base.flaky);
    let Some(base) = base.filter(|_| row.verdict == Verdict::Passed) else { return Strength::Unmeasured };
    let mended = || match (observation.kind, &row.cases) {
        (Kind::Repair, _) => {
            find_reproduction(observation, observed, records, stored, now) == Reproduction::Fixed
        }
        (_, Some(cases)) => cases.fixed.count > 0,
        (_, None) => base.checks.is_none_or(|checks| checks.failed > 0),
    };
    match base.outcome {
        Verdict::Passed => Strength::NoRegression,
        Verdict::Failed if mended() => Strength::Fixed,
        _ => Strength::Unmeasured,
    }
}

/// A repair has to show that something failed before. Where no required row does, none that counts cases may
/// pass; where no required one counts, none of the required ones.
fn refuse_what_was_not_reproduced(
    observation: &Observation,
    records: &[Record],
    stored: StoredLists<'_>,
    rows: &mut [Row],
) {
    if rows.iter().any(|row| row.required && row.strength == Strength::Fixed) {
        return;
    }
    let counts = |observed: &Observed| {
        observed.clause.required && observed.counts && observed.source == Source::Command
    };
    let counting = observation.rows.iter().any(counts);
    for observed in &observation.rows {
        let Some(row) = rows.iter_mut().find(|row| row.id == observed.clause.id) else { continue };
        let affected = observed.counts || (row.required && !counting);
        if row.verdict != Verdict::Passed || !affected {
            continue;
        }
        let now = current_record(observation, observed, records).map(|found| &found.record.1);
        let why = match now.filter(|_| observed.counts) {
            None => "no required verifier that counts cases ran on the base".to_owned(),
            Some(now) => match find_reproduction(observation, observed, records, stored, now) {
                Reproduction::Fixed => "only a row that is not required shows it".to_owned(),
                Reproduction::Missing { why } => why.to_owned(),
                Reproduction::Undecided { case } => format!("nothing tells whether {case} lies in `case`"),
            },
        };
        row.verdict = Verdict::Failed;
        row.reason = Some(format!("not reproduced: {why}"));
        row.strength = Strength::Unmeasured;
    }
}

/// Marks as reused every pass that rests on a record which is not among those just made.
pub fn mark_reused(rows: &mut [Row], made: &[Sha256]) {
    let made: Vec<String> = made.iter().map(shown_digest).collect();
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
