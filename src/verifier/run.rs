//! One run: from a job to the records that it gives. What a record says is decided in `outcome`; here is what
//! surrounds it: who runs, on which files, how often, and how it is written down.

use super::load::{Verifier, Verifiers};
use super::outcome::{RowOutcome, RunOutcome};
use super::{Host, Ticket, VerificationSubject, attempt, builtin};
use crate::domain::contract::ARTIFACTS;
use crate::domain::proof::evidence::{
    Attempt, Evidence, EvidenceKind, MOST_FINDINGS, Observation, Observed, SCHEMA, Source, Subject as Spoken,
};
use crate::domain::proof::judge::Job;
use crate::domain::proof::records::On;
use crate::domain::proof::verdict::Verdict;
use crate::error::{Failure, Result};
use crate::git::slot::MendedFile;
use crate::process::SandboxLayer;
use crate::store::ledger::now;
use std::collections::BTreeMap;

/// Runs what a job names and gives one record for each of its rows. That a verifier fails, or that its run
/// goes wrong, is a record and no error.
///
/// # Errors
/// `io`, `store.busy` and the like, where the run could not even be prepared; `config.invalid` where a
/// manifest cannot be used.
pub fn run(
    subject: &VerificationSubject<'_>,
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
    let sandbox = match first.source {
        Source::Command => host.sandbox.as_str(),
        _ => SandboxLayer::None.as_str(),
    };
    let around = (started_at.as_str(), finished_at.as_str(), sandbox);
    rows.iter().map(|row| record(subject, row, job.on, ticket, &made, around)).collect()
}

/// Lets the verifier of these rows change the files that it looks at, in a slot, and gives those that it
/// changed. Nothing of it is evidence.
///
/// # Errors
/// As for [`run`].
pub fn mend(
    subject: &VerificationSubject<'_>,
    verifiers: &Verifiers,
    host: &Host<'_>,
    rows: &[&Observed],
    ticket: &Ticket,
) -> Result<Vec<MendedFile>> {
    let Some(first) = rows.first() else { return Ok(Vec::new()) };
    match (&first.source, verifiers.get(&first.clause.verifier)?) {
        (Source::Command, Some(verifier)) => {
            attempt::Runner::prepare(subject, verifier, host, rows, On::Candidate, ticket)?.mend_files()
        }
        _ => Ok(Vec::new()),
    }
}

fn command(
    subject: &VerificationSubject<'_>,
    verifier: &Verifier,
    host: &Host<'_>,
    rows: &[&Observed],
    on: On,
    ticket: &Ticket,
) -> Result<RunOutcome> {
    let prepare = |on| attempt::Runner::prepare(subject, verifier, host, rows, on, ticket);
    let mut runner = prepare(on)?;
    if runner.lacks_scratch() {
        // The first run of all pays for what the later ones begin with, and for itself no more than the
        // difference.
        runner.finish()?;
        let mut on_base = prepare(On::Base)?;
        if on_base.before_first_attempt()?.is_none() {
            on_base.attempt()?;
        }
        on_base.finish()?;
        runner = prepare(on)?;
    }
    let mut made = match runner.before_first_attempt()? {
        Some(outcome) => outcome,
        None => tried(verifier.manifest.attempts, || runner.attempt())?,
    };
    runner.finish()?;
    if on == On::Candidate && made.needs_base() {
        let mut on_base = prepare(On::Base)?;
        let base = match on_base.before_first_attempt()? {
            Some(outcome) => outcome,
            None => on_base.attempt()?,
        };
        on_base.finish()?;
        made.decide_by_base(&base);
    }
    made.findings.truncate(MOST_FINDINGS);
    Ok(made)
}

/// Tries until nothing failed, or the attempts are used up. Only a failure is tried again. The last attempt
/// speaks; a row that was judged otherwise before is flaky, whatever became of the others.
fn tried(most: u64, mut attempt: impl FnMut() -> Result<RunOutcome>) -> Result<RunOutcome> {
    let mut attempts: Vec<Attempt> = Vec::new();
    let mut earlier: BTreeMap<String, RowHistory> = BTreeMap::new();
    for number in 1.. {
        let mut made = attempt()?;
        attempts.append(&mut made.attempts);
        for (id, row) in &mut made.rows {
            let history = earlier.entry(id.clone()).or_default();
            history.add(row);
            row.flaky = history.is_flaky();
        }
        let failed = made.rows.values().any(|row| row.said.0 == Verdict::Failed);
        if failed && number < most {
            continue;
        }
        made.attempts = attempts;
        return Ok(made);
    }
    Err(Failure::internal("a verifier was never tried"))
}

/// What the attempts of one run said of a row.
#[derive(Debug, Default)]
struct RowHistory {
    passed: bool,
    failed: bool,
    flaky: bool,
}

impl RowHistory {
    fn add(&mut self, row: &RowOutcome) {
        self.passed |= row.said.0 == Verdict::Passed;
        self.failed |= row.said.0 == Verdict::Failed;
        self.flaky |= row.flaky;
    }

    fn is_flaky(&self) -> bool {
        self.flaky || (self.passed && self.failed)
    }
}

fn built_in(subject: &VerificationSubject<'_>, id: &str, rows: &[&Observed]) -> Result<RunOutcome> {
    let candidate = subject.candidate;
    let (base, tree) = (&candidate.base_tree, &candidate.tree);
    let judged = match id {
        ARTIFACTS => {
            let objects = subject.repository.object_reader(subject.quarantine)?;
            builtin::artifacts::judge(&subject.contract.artifacts, &objects, base, tree)?
        }
        "scope" => builtin::scope::judge(&candidate.changes, subject.effective),
        _ => builtin::whitespace::judge(subject.repository, subject.quarantine, base, tree)?,
    };
    let said = || RowOutcome::from((judged.outcome, judged.reason.clone()));
    let rows = rows.iter().map(|row| (row.clause.id.clone(), said())).collect();
    Ok(RunOutcome { rows, findings: judged.findings, ..RunOutcome::default() })
}

fn record(
    subject: &VerificationSubject<'_>,
    row: &Observed,
    on: On,
    ticket: &Ticket,
    made: &RunOutcome,
    (started_at, finished_at, sandbox): (&str, &str, &str),
) -> Result<Evidence> {
    let incomplete = || Failure::internal(format!("the row {} was run without a key", row.clause.id));
    let judged = made.rows.get(&row.clause.id).ok_or_else(incomplete)?;
    let (outcome, reason) = judged.said.clone();
    let candidate = subject.candidate;
    Ok(Evidence {
        schema: SCHEMA.to_owned(),
        kind: if on == On::Candidate { EvidenceKind::Run } else { EvidenceKind::BaseRun },
        run: ticket.run.clone(),
        nonce: ticket.nonce.clone(),
        task: subject.task.to_owned(),
        candidate: candidate.candidate,
        contract_version: candidate.contract_version,
        requirement: row.clause.id.clone(),
        verifier: row.clause.verifier.clone(),
        subject: Spoken {
            tree: if on == On::Candidate { candidate.tree.clone() } else { candidate.base_tree.clone() },
            base_tree: candidate.base_tree.clone(),
            manifest_sha256: candidate.patch.manifest_sha256,
        },
        key: row.key_on(on).cloned().ok_or_else(incomplete)?,
        identity: row.identity.clone().ok_or_else(incomplete)?,
        listing: if on == On::Candidate { row.listing } else { None },
        outcome,
        reason,
        checks: judged.checks,
        cases: judged.cases,
        flaky: judged.flaky,
        warm: false,
        clearing: ticket.clearing,
        attempts: made.attempts.clone(),
        outputs: made.outputs.clone(),
        findings: made.findings.clone(),
        started_at: started_at.to_owned(),
        finished_at: finished_at.to_owned(),
        sandbox: sandbox.to_owned(),
        attestation: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::{Error, Failed, NotRun, Passed};

    /// The rows `a` and `b` after attempts that say this of them; gives verdict and flakiness of each.
    fn after(attempts: &[[Verdict; 2]], most: u64) -> [(Verdict, bool); 2] {
        let mut left = attempts.iter();
        let made = tried(most, || {
            let said = left.next().expect("no more attempts than that");
            let rows = ["a", "b"].into_iter().zip(said).map(|(id, v)| (id.to_owned(), (*v, None).into()));
            Ok(RunOutcome { rows: rows.collect(), ..RunOutcome::default() })
        });
        assert_eq!(left.len(), 0, "all attempts were made");
        let made = made.expect("is tried");
        ["a", "b"].map(|id| (made.rows[id].said.0, made.rows[id].flaky))
    }

    #[test]
    fn flaky_is_a_row_and_not_its_run() {
        assert_eq!(after(&[[Failed, NotRun], [Passed, NotRun]], 2), [(Passed, true), (NotRun, false)]);
        assert_eq!(after(&[[Failed, Passed], [Passed, Passed]], 2), [(Passed, true), (Passed, false)]);
        assert_eq!(after(&[[Passed, Failed], [Failed, Passed]], 2), [(Failed, true), (Passed, true)]);
        assert_eq!(after(&[[Failed, Failed], [Failed, Error]], 2), [(Failed, false), (Error, false)]);
        assert_eq!(
            after(&[[Error, NotRun]], 2),
            [(Error, false), (NotRun, false)],
            "only a failure is tried again"
        );
        assert_eq!(after(&[[Failed, Passed]], 1), [(Failed, false), (Passed, false)]);
    }
}
