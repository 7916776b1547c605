//! Runs what lacks evidence, reuses what is fresh, and says of each requirement what is known for exactly
//! these bytes.

use crate::domain::change::patch::Candidate;
use crate::domain::contract::budget::Cost;
use crate::domain::contract::policy::BaseRuns;
use crate::domain::contract::{Kind, SandboxWish};
use crate::domain::delivery::Clearance;
use crate::domain::ledger::action::Actor;
use crate::domain::ledger::record;
use crate::domain::ledger::report::{Explanation, VerificationObject};
use crate::domain::proof::evidence::Observation;
use crate::domain::proof::judge;
use crate::domain::proof::judge::{FLAKY, Job, NOT_COMMITTED};
use crate::domain::proof::records::{On, Record};
use crate::domain::proof::run::Run;
use crate::domain::proof::verdict::{Row, Verdict};
use crate::domain::value::digest::{Sha256, canonical_json};
use crate::error::{Code, Failure, Result};
use crate::task::action::RunningAction;
use crate::task::held::TaskWrite;
use crate::task::meter::Bound;
use crate::task::observation::{Judged, take_observation, with_subject};
use crate::task::session::Progress;
use crate::task::{budget, evidence, meter, runs, tripwire};
use crate::verifier::{self, Host, VerificationSubject, Verifiers};
use serde_json::json;

/// What to verify and how.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options<'a> {
    /// Only these verifiers; all where it is empty.
    pub only: &'a [String],
    pub explain: Explain,
    pub flaky: FlakyRows,
    pub sandbox: Sandbox,
}

/// Whether to say why each requirement's evidence is fresh or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Explain {
    Yes,
    #[default]
    No,
}

/// What to do about a row that failed and passed on the same bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FlakyRows {
    /// Run it once more, as anything that has not passed.
    #[default]
    RunOnce,
    /// Run it until it passed often enough in a row to be cleared, or fails.
    Clear,
}

/// Which confinement the caller wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sandbox {
    #[default]
    AsContracted,
    /// None, where the contract lets that through.
    Without,
}

/// Produces the missing evidence for the last candidate of a task that may still be worked on.
pub fn produce_evidence(
    task: &mut TaskWrite<'_>,
    options: &Options<'_>,
    progress: Progress<'_>,
) -> Result<VerificationObject> {
    let candidate = task.view.last_candidate()?.value.clone();
    require_allowed(task, options)?;
    tripwire::look_at_surroundings(task)?;
    let judged = Judged { opened: task.view.opened_terms()?, candidate: &candidate };
    let observation = take_observation(task, judged)?;
    require_known_ids(&observation, options.only)?;
    let params = json!({ "candidate": candidate.candidate, "only": options.only });
    task.note_look("verify", &params, &record::Record::Observed(Box::new(observation.clone())))?;
    complete(task, &candidate, &observation, options, progress)
}

/// The same where the candidate was captured under the lock that is held: what was looked at then is still
/// so.
pub fn produce_for_captured(
    task: &mut TaskWrite<'_>,
    candidate: &Candidate,
    options: &Options<'_>,
    progress: Progress<'_>,
) -> Result<VerificationObject> {
    let observed = task.view.observation.as_ref().map(|observed| observed.value.clone());
    let observation = observed
        .filter(|observed| observed.candidate == candidate.candidate)
        .ok_or_else(|| Failure::internal("a capture without an observation"))?;
    require_allowed(task, options)?;
    require_known_ids(&observation, options.only)?;
    complete(task, candidate, &observation, options, progress)
}

/// Runs what is missing for what was observed, and judges all of it.
fn complete(
    task: &mut TaskWrite<'_>,
    candidate: &Candidate,
    observation: &Observation,
    options: &Options<'_>,
    progress: Progress<'_>,
) -> Result<VerificationObject> {
    let session = task.session;
    let opened = task.view.opened_terms()?.clone();
    let judged = Judged { opened: &opened, candidate };
    let mut made = run_missing(task, judged, observation, options, progress, |_, _| true)?;
    let on_failure = |at: &usize| observation.rows[*at].base_runs == BaseRuns::OnFailure;
    if observation.kind == Kind::Repair || !made.is_empty() {
        // Where a case lies is asked only after it was seen to be mended, and some are tried on the base only
        // where they fail.
        let comes_after = |job: &Job, _: &[Record]| match job.on {
            On::BaseWithoutCase => true,
            On::Base => job.rows.iter().any(on_failure),
            _ => false,
        };
        made.extend(run_missing(task, judged, observation, options, progress, comes_after)?);
    }
    if options.flaky == FlakyRows::Clear {
        let clears = |job: &Job, records: &[Record]| judge::has_to_clear(observation, job, records);
        for _ in 1..judge::CLEARING_RUNS {
            made.extend(run_missing(task, judged, observation, options, progress, clears)?);
        }
    }
    let evidence = evidence::counting_for(&task.ledger, &task.view)?;
    let mut rows = evidence::judge(&session.blobs(), observation, &evidence);
    budget::explain(&task.view, &mut rows);
    judge::mark_reused(&mut rows, &made);
    let runs = runs::of_rows(&session.blobs(), &evidence, &rows);
    let mut object = verification_object(&task.view.id, observation.candidate, rows, runs);
    if options.explain == Explain::Yes {
        object.explanations = Some(object.requirements.iter().map(explain).collect());
    }
    Ok(object)
}

/// Runs every job that is missing, is of these verifiers and that `asked` lets through. Gives the digests of
/// the records; fewer where the budget leaves nothing for the rest.
pub fn run_missing(
    task: &mut TaskWrite<'_>,
    judged: Judged<'_>,
    observation: &Observation,
    options: &Options<'_>,
    progress: Progress<'_>,
    asked: impl Fn(&Job, &[Record]) -> bool,
) -> Result<Vec<Sha256>> {
    let before = evidence::in_order(&evidence::counting_under(&task.ledger, &task.view, observation)?);
    let blobs = task.session.blobs();
    let mut jobs =
        evidence::with_stored_lists(&blobs, |stored| judge::missing_jobs(observation, &before, stored));
    jobs.retain(|job| is_wanted(observation, job, options.only) && asked(job, &before));
    let total = jobs.len() as u64;
    let bound = Bound::of(task);
    let mut made = Vec::new();
    for (done, job) in (0u64..).zip(&jobs) {
        progress(done, total);
        match run_job(task, judged, observation, job, (bound, options.flaky))? {
            Some(records) => made.extend(records),
            None => break,
        }
    }
    Ok(made)
}

/// The object that `verify` and `attest` show.
pub fn verification_object(
    task: &str,
    candidate: u32,
    requirements: Vec<Row>,
    runs: Vec<Run>,
) -> VerificationObject {
    let object = VerificationObject::of_rows(requirements, runs);
    VerificationObject { task_id: Some(task.to_owned()), candidate: Some(candidate), ..object }
}

/// What keeps a delivery from being cleared by these rows: every required one that has not passed.
pub fn refusal_of_rows(task: &str, rows: &[Row]) -> Option<Failure> {
    Clearance::from_rows(Sha256::of(b""), rows).err().map(|failure| with_next_step(task, rows, failure))
}

/// Adds the command that comes next.
pub fn with_next_step(task: &str, rows: &[Row], failure: Failure) -> Failure {
    let waiting = |row: &&Row| row.required && row.verdict == Verdict::NeedsConfirmation;
    let failing = |row: &&Row| row.required && matches!(row.verdict, Verdict::Failed | Verdict::Error);
    let flaky = |row: &Row| row.reason.as_deref() == Some(FLAKY);
    let only_flaky = rows.iter().filter(failing).all(flaky);
    let failing = rows.iter().filter(failing).find_map(|row| row.evidence.as_deref());
    match (failure.code(), rows.iter().find(waiting)) {
        (Code::ConfirmationRequired, Some(row)) => failure.remedy(
            "A person has to look at it and attest.",
            ["git", "tender", "attest", task, &row.id, "--pass", "-m", "TEXT"],
        ),
        (Code::VerificationFailed, _) if failing.is_some() && only_flaky => failure.remedy(
            "Where what failed was around the change, show that it passes three times in a row; else mend the change.",
            ["git", "tender", "verify", task, "--again"],
        ),
        (Code::VerificationFailed | Code::VerifierProtocol, _) if failing.is_some() => {
            failure.remedy("Read what the verifier said, mend the change, submit it again.", ["git", "tender", "show", failing.unwrap_or_default()])
        }
        (Code::VerificationFailed, _) => failure.remedy("Read what the verifier said, mend the change, submit it again.", ["git", "tender", "report", task]),
        (Code::EvidenceMissing, _) if rows.iter().any(|row| row.required && is_not_committed(row)) => failure.remedy(
            "Commit the verifier, then start a task anew: this one keeps the base that it was opened with.",
            ["git", "add", ".tender"],
        ),
        _ => failure.remedy("Run the verifiers for what is there now.", ["git", "tender", "verify", task, "--explain"]),
    }
}

fn is_not_committed(row: &Row) -> bool {
    row.verdict == Verdict::NotRun
        && row.reason.as_deref().is_some_and(|reason| reason.contains(NOT_COMMITTED))
}

fn require_allowed(task: &TaskWrite<'_>, options: &Options<'_>) -> Result<()> {
    let contract = &task.view.opened_terms()?.contract;
    if options.sandbox == Sandbox::Without && contract.sandbox == SandboxWish::Required {
        return Err(Failure::new(
            Code::PermissionDenied,
            "the contract requires the sandbox, so --no-sandbox is not let through",
        )
        .subject("--no-sandbox")
        .expected("sandbox: optional", "sandbox: required")
        .remedy("Leave the option out.", ["git", "tender", "verify", &task.view.id]));
    }
    let forbidden = &contract.verification.forbidden;
    match options.only.iter().find(|id| forbidden.contains(id)) {
        None => Ok(()),
        Some(id) => {
            Err(Failure::new(Code::CheckForbidden, format!("the contract forbids the verifier {id:?}"))
                .subject(id.clone())
                .detail("forbidden", forbidden)
                .remedy("Leave it out.", ["git", "tender", "verify", &task.view.id]))
        }
    }
}

fn require_known_ids(observation: &Observation, only: &[String]) -> Result<()> {
    let known = |id: &&String| {
        observation.rows.iter().any(|row| row.clause.verifier == **id || row.clause.id == **id)
    };
    match only.iter().find(|id| !known(id)) {
        None => Ok(()),
        Some(id) => {
            let ids: Vec<&str> = observation.rows.iter().map(|row| row.clause.verifier.as_str()).collect();
            Err(Failure::new(Code::NotFound, format!("no requirement of this task is shown by {id:?}"))
                .subject(id.clone())
                .detail("verifiers", ids)
                .remedy("See the requirements.", ["git", "tender", "report", &observation.task]))
        }
    }
}

fn is_wanted(observation: &Observation, job: &Job, only: &[String]) -> bool {
    let named = |at: &usize| {
        let clause = &observation.rows[*at].clause;
        only.contains(&clause.verifier) || only.contains(&clause.id)
    };
    only.is_empty() || job.rows.iter().any(named)
}

/// One run of one verifier, as an action of the harness. Gives the digests of the records that it made;
/// `None` where the budget leaves nothing for it.
fn run_job(
    task: &mut TaskWrite<'_>,
    judged: Judged<'_>,
    observation: &Observation,
    job: &Job,
    (bound, flaky): (Bound, FlakyRows),
) -> Result<Option<Vec<Sha256>>> {
    let rows: Vec<&str> = job.rows.iter().map(|at| observation.rows[*at].clause.id.as_str()).collect();
    let verifier_id = observation.rows[job.rows[0]].clause.verifier.clone();
    let params = json!({ "verifier": verifier_id, "requirements": rows, "manifestSha256": observation.manifest_sha256 });
    let mut action = task.session.action(
        Actor::Harness,
        &task.view.id,
        "verifier",
        &params,
        task.view.authorization_basis(),
    );
    let ticket = verifier::Ticket {
        run: action.id().to_owned(),
        nonce: crate::task::action::random_hex(16),
        clearing: flaky == FlakyRows::Clear,
    };
    // While it runs, its meter has the ledger.
    task.ledger.set_aside();
    let ran = run_metered(task, judged, (&mut action, bound), |subject, verifiers, host| {
        verifier::run(subject, verifiers, host, observation, job, &ticket)
    });
    task.ledger.take_up(&task.session.layout)?;
    let Some((cost, ran)) = ran? else { return Ok(None) };
    let made = match ran {
        Ok(made) => made,
        Err(failure) => return Err(action.fail_charged(&mut task.ledger, cost, failure)),
    };
    let blobs = task.session.blobs();
    let mut digests = Vec::new();
    for record in &made {
        digests.push(blobs.put(&canonical_json(record))?);
    }
    let records = made.into_iter().map(|record| record::Record::Evidence(Box::new(record)));
    action
        .succeed_with(&mut task.ledger, std::iter::once(record::Record::Charged { cost }).chain(records))?;
    task.refresh()?;
    Ok(Some(digests))
}

/// Does some work of a run while what it takes is measured; `None` where the budget leaves nothing for it.
fn run_metered<T>(
    task: &TaskWrite<'_>,
    judged: Judged<'_>,
    (action, bound): (&mut RunningAction, Bound),
    work: impl FnOnce(&VerificationSubject<'_>, &Verifiers, &Host<'_>) -> Result<T>,
) -> Result<Option<(Cost, Result<T>)>> {
    let Some(meter) = meter::begin(task, action, bound)? else { return Ok(None) };
    let watch = |printed| meter.watch(printed);
    let ran = with_subject(task, judged, (&watch, meter.most()), work);
    Ok(Some((meter.cost(), ran)))
}

/// Why a row is as it is, in a sentence.
fn explain(row: &Row) -> Explanation {
    let evidence = row.evidence.as_deref().unwrap_or("no record");
    let reason = row.reason.as_deref().unwrap_or("no reason recorded");
    let text = match row.verdict {
        Verdict::Passed if row.reused => {
            format!("fresh: every digest is as it was when {evidence} was made; nothing ran")
        }
        Verdict::Passed => format!("ran now: {evidence}"),
        Verdict::Stale => format!("not fresh: {reason}"),
        _ => format!("{reason} ({evidence})"),
    };
    Explanation { id: row.id.clone(), text }
}
