//! The runs that rows rest on and that are no pass: how each ended, its first error, and its logs.

use crate::domain::ledger::entry::Recorded;
use crate::domain::proof::evidence::{Attempt, Evidence, shown_digest};
use crate::domain::proof::run::{FirstErrorIn, Kind, Log, RUNS, Run};
use crate::domain::proof::verdict::{REQUIREMENTS, Row, Verdict};
use crate::domain::value::digest::Sha256;
use crate::domain::value::outside::Origin;
use crate::error::Failure;
use crate::store::Blobs;
use crate::verifier::logs;
use serde_json::{Map, Value, json};

/// The most findings of a run.
const MOST_FINDINGS: usize = 10;

/// The runs that rows rest on and that are no pass, each once, in the order of the rows.
pub fn of_rows(blobs: &Blobs, evidence: &[Recorded<Evidence>], rows: &[Row]) -> Vec<Run> {
    // A pass for other bytes has no error to tell of.
    let failed = |record: &Evidence| record.outcome != Verdict::Passed;
    runs(blobs, evidence, rows.iter().filter(|row| row.verdict != Verdict::Passed), failed)
}

/// The runs that the rows of one verifier rest on, passes too.
pub fn of_verifier(blobs: &Blobs, evidence: &[Recorded<Evidence>], rows: &[Row], verifier: &str) -> Vec<Run> {
    // What is built in runs no program: a pass of it has nothing to tell.
    let has_run = |record: &Evidence| record.outcome != Verdict::Passed || !record.attempts.is_empty();
    runs(blobs, evidence, rows.iter().filter(|row| row.verifier == verifier), has_run)
}

fn runs<'a>(
    blobs: &Blobs,
    evidence: &[Recorded<Evidence>],
    rows: impl Iterator<Item = &'a Row>,
    is_told: impl Fn(&Evidence) -> bool,
) -> Vec<Run> {
    let mut runs: Vec<(String, Run)> = Vec::new();
    for row in rows {
        let Some(digest) = row.evidence.as_deref() else { continue };
        let Some(record) = evidence.iter().find(|record| shown_digest(&record.value.digest()) == digest)
        else {
            continue;
        };
        let record = &record.value;
        if !is_told(record) {
            continue;
        }
        match runs.iter_mut().find(|(known, _)| *known == record.run) {
            Some((_, run)) => run.requirements.push(row.id.clone()),
            None => runs.push((record.run.clone(), run_of(blobs, record, row))),
        }
    }
    runs.into_iter().map(|(_, run)| run).collect()
}

/// Adds the runs to a refusal that lists rows.
pub fn tell_of_runs(
    failure: Failure,
    blobs: &Blobs,
    evidence: &[Recorded<Evidence>],
    rows: &[Row],
) -> Failure {
    if failure.has_detail(&REQUIREMENTS) {
        failure.with_detail(&RUNS, &of_rows(blobs, evidence, rows))
    } else {
        failure
    }
}

fn run_of(blobs: &Blobs, evidence: &Evidence, row: &Row) -> Run {
    let last = evidence.attempts.last();
    let mut logs = Vec::new();
    for (stream, digest, total) in last.into_iter().flat_map(streams) {
        // What is damaged or gone is said by whoever reads it by its reference; all else stands without it.
        let bytes = blobs.get(&digest);
        let lost = bytes.is_err();
        let bytes = bytes.unwrap_or_default();
        let stored = bytes.len() as u64;
        let log = Log {
            stream: stream.to_owned(),
            reference: shown_digest(&digest),
            bytes: stored,
            truncated: lost || total.is_some(),
            total_bytes: total.unwrap_or(stored),
        };
        logs.push((bytes, log));
    }
    Run {
        verifier: evidence.verifier.clone(),
        requirements: vec![row.id.clone()],
        end: last.map_or_else(|| "nothing ran".to_owned(), end),
        first_error: if evidence.outcome == Verdict::Passed { None } else { first_error(&logs) },
        findings: evidence.findings.iter().take(MOST_FINDINGS).map(object).collect(),
        logs: logs.into_iter().map(|(_, log)| log).collect(),
        origin: Origin::new("verifier", &evidence.verifier),
    }
}

/// Each stored log with how much was written, where that is more than is stored.
fn streams(attempt: &Attempt) -> impl Iterator<Item = (&'static str, Sha256, Option<u64>)> {
    [("stdout", attempt.stdout, attempt.stdout_total), ("stderr", attempt.stderr, attempt.stderr_total)]
        .into_iter()
        .filter_map(|(name, digest, total)| Some((name, digest?, total)))
}

/// Of both streams the one that a tool's own words tell; what only looks like an error comes after, and
/// standard error first. Where nothing was recognised, a stream that speaks of failure, and else standard
/// output: standard error tells of progress, too.
fn first_error(logs: &[(Vec<u8>, Log)]) -> Option<FirstErrorIn> {
    let found = logs.iter().rev().filter_map(|(bytes, log)| {
        let error = logs::find(bytes)?;
        Some(FirstErrorIn { error, reference: log.reference.clone() })
    });
    let streams: Vec<FirstErrorIn> = found.collect();
    let rank = |(at, found): &(usize, FirstErrorIn)| match found.error.kind {
        Kind::Tail if logs::speaks_of_failure(&found.error) => (2, *at),
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

/// A value as a JSON object, for the rows that answers hold.
pub fn object(value: &impl serde::Serialize) -> Map<String, Value> {
    match json!(value) {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use crate::task::runs::*;

    fn chosen(stdout: &str, stderr: &str) -> String {
        let log = |stream: &str, text: &str| {
            let (stream, reference) = (stream.to_owned(), stream.to_owned());
            let log = Log { stream, reference, bytes: 0, truncated: false, total_bytes: 0 };
            (text.as_bytes().to_vec(), log)
        };
        first_error(&[log("stdout", stdout), log("stderr", stderr)])
            .map_or_else(String::new, |found| found.reference)
    }

    #[test]
    fn the_stream_that_tells_of_the_failure_is_chosen() {
        assert_eq!(chosen("all\nwords\n", "progress 100%\n"), "stdout");
        assert_eq!(chosen("all\nwords\n", "disk cannot be written\n"), "stderr");
        assert_eq!(chosen("3 checks have failed\n", "progress 100%\n"), "stdout");
        assert_eq!(chosen("0 failed\n", "it has failed\n"), "stderr");
        assert_eq!(chosen("a.c:1:2: error: x\n", "Error: y\n"), "stdout");
        assert_eq!(chosen("Error: x\n", "Error: y\n"), "stderr");
        assert_eq!(chosen("", "up\n"), "stderr");
        assert_eq!(chosen("", ""), "");
    }
}
