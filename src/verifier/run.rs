//! One run: from a job to the records that it gives. What a record says is decided in `outcome`; here is what
//! surrounds it: who runs, on which files, how often, and how it is written down.

use super::load::{Verifier, Verifiers};
use super::outcome::Said;
use super::{Host, Subject, attempt, builtin};
use crate::domain::contract::ARTIFACTS;
use crate::domain::evidence::{
    Attempt, Evidence, EvidenceKind, Finding, MOST_FINDINGS, Observation, Observed, Produced, SCHEMA, Source,
    Subject as Spoken,
};
use crate::domain::verdict::{Checks, Job, On, Verdict};
use crate::error::{Failure, Result};
use crate::process::Sandbox;
use crate::store::ledger::now;
use std::collections::BTreeMap;

/// What names a run.
#[derive(Debug, Clone)]
pub struct Ticket {
    /// Its id: the id of the action that it is.
    pub run: String,
    /// Random; ties outputs to this run.
    pub nonce: String,
}

/// What a run gave.
#[derive(Debug, Default)]
pub(super) struct Made {
    /// What it says of each row, by the row's id.
    pub(super) said: BTreeMap<String, Said>,
    pub(super) checks: Option<Checks>,
    pub(super) flaky: bool,
    pub(super) warm: bool,
    pub(super) attempts: Vec<Attempt>,
    pub(super) outputs: Vec<Produced>,
    pub(super) findings: Vec<Finding>,
}

/// Runs what a job names and gives one record for each of its rows. That a verifier fails, or that its run goes wrong,
/// is a record and no error.
///
/// # Errors
/// `io`, `store.busy` and the like, where the run could not even be prepared; `config.invalid` where a manifest cannot be used.
pub fn run(
    subject: &Subject<'_>,
    verifiers: &Verifiers,
    host: &Host<'_>,
    observation: &Observation,
    job: &Job,
    ticket: &Ticket,
) -> Result<Vec<Evidence>> {
    let rows: Vec<&Observed> = job.rows.iter().filter_map(|at| observation.rows.get(*at)).collect();
    let Some(first) = rows.first() else { return Ok(Vec::new()) };
    let started_at = now();
    let id = first.clause.verifier.as_str();
    let made = match (&first.source, verifiers.get(id)?) {
        (Source::Builtin, _) => built_in(subject, id, &rows)?,
        (Source::Command, Some(verifier)) => command(subject, verifier, host, &rows, job.on, ticket)?,
        _ => return Err(Failure::internal(format!("{id} was to be run, but nothing can run it"))),
    };
    let finished_at = now();
    rows.iter().map(|row| record(subject, row, job.on, ticket, &made, (&started_at, &finished_at))).collect()
}

fn command(
    subject: &Subject<'_>,
    verifier: &Verifier,
    host: &Host<'_>,
    rows: &[&Observed],
    on: On,
    ticket: &Ticket,
) -> Result<Made> {
    let mut runner = attempt::Runner::prepare(subject, verifier, host, rows, on, ticket)?;
    let mut made = match runner.set_up()? {
        Some(failed) => failed,
        None => tried(&mut runner, verifier.manifest.attempts)?,
    };
    made.warm = runner.warm();
    runner.finish()?;
    made.findings.truncate(MOST_FINDINGS);
    Ok(made)
}

/// Tries until nothing failed, or the attempts are used up. Only a failure is tried again.
fn tried(runner: &mut attempt::Runner<'_>, most: u64) -> Result<Made> {
    let mut earlier: Vec<Attempt> = Vec::new();
    for number in 1.. {
        let mut made = runner.attempt()?;
        let failed = made.said.values().any(|(verdict, _)| *verdict == Verdict::Failed);
        if failed && number < most {
            earlier.append(&mut made.attempts);
            continue;
        }
        let passed = made.said.values().all(|(verdict, _)| *verdict == Verdict::Passed);
        made.flaky |= passed && !earlier.is_empty();
        earlier.append(&mut made.attempts);
        made.attempts = earlier;
        return Ok(made);
    }
    Err(Failure::internal("a verifier was never tried"))
}

fn built_in(subject: &Subject<'_>, id: &str, rows: &[&Observed]) -> Result<Made> {
    let candidate = subject.candidate;
    let (base, tree) = (&candidate.base_tree, &candidate.tree);
    let judged = match id {
        ARTIFACTS => {
            let objects = subject.repository.objects(subject.quarantine)?;
            builtin::artifacts::judge(&subject.contract.artifacts, &objects, base, tree)?
        }
        "scope" => builtin::scope::judge(&candidate.changes, subject.effective),
        _ => builtin::whitespace::judge(subject.repository, subject.quarantine, base, tree)?,
    };
    let said =
        rows.iter().map(|row| (row.clause.id.clone(), (judged.outcome, judged.reason.clone()))).collect();
    Ok(Made { said, findings: judged.findings, ..Made::default() })
}

fn record(
    subject: &Subject<'_>,
    row: &Observed,
    on: On,
    ticket: &Ticket,
    made: &Made,
    (started_at, finished_at): (&str, &str),
) -> Result<Evidence> {
    let key = match on {
        On::Candidate => &row.key,
        On::Base => &row.base_key,
    };
    let incomplete = || Failure::internal(format!("the row {} was run without a key", row.clause.id));
    let (outcome, reason) = made.said.get(&row.clause.id).cloned().ok_or_else(incomplete)?;
    let candidate = subject.candidate;
    Ok(Evidence {
        schema: SCHEMA.to_owned(),
        kind: if on == On::Base { EvidenceKind::BaseRun } else { EvidenceKind::Run },
        run: ticket.run.clone(),
        nonce: ticket.nonce.clone(),
        task: subject.task.to_owned(),
        candidate: candidate.candidate,
        contract_version: candidate.contract_version,
        requirement: row.clause.id.clone(),
        verifier: row.clause.verifier.clone(),
        subject: Spoken {
            tree: if on == On::Base { candidate.base_tree.clone() } else { candidate.tree.clone() },
            base_tree: candidate.base_tree.clone(),
            manifest_sha256: candidate.patch.manifest_sha256,
        },
        key: key.clone().ok_or_else(incomplete)?,
        identity: row.identity.clone().ok_or_else(incomplete)?,
        listing: if on == On::Candidate { row.listing } else { None },
        outcome,
        reason,
        checks: made.checks,
        flaky: made.flaky,
        warm: made.warm,
        attempts: made.attempts.clone(),
        outputs: made.outputs.clone(),
        findings: made.findings.clone(),
        started_at: started_at.to_owned(),
        finished_at: finished_at.to_owned(),
        sandbox: Sandbox::None.as_str().to_owned(),
        attestation: None,
    })
}
