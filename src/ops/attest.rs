//! `attest`: a person's own verdict on a manual requirement or on `protected`, bound to the candidate.

use super::Session;
use crate::domain::ledger::record::Record;
use crate::domain::ledger::report::VerificationObject;
use crate::domain::proof::evidence::{
    Attestation, Evidence, EvidenceKind, Observation, Observed, SCHEMA, Source, Subject,
};
use crate::domain::proof::judge;
use crate::domain::proof::verdict::Verdict;
use crate::domain::value::outside::plain_line;
use crate::error::{Code, Failure, Result};
use crate::task::action::RunningAction;
use crate::task::evidence::with_stored_lists;
use crate::task::session::unconfirmed;
use crate::task::verification::verification_object;
use crate::task::{evidence, observation, runs};
use serde_json::json;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    Pass,
    Fail,
}

/// Asks the person, then records what they say. Refused (`permission.denied`) where no person can be reached.
pub fn attest(
    session: &Session,
    named: Option<&str>,
    requirement: &str,
    word: Word,
    message: &str,
) -> Result<VerificationObject> {
    let mut task = session.write(named)?;
    task.require_active()?;
    if message.trim().is_empty() {
        return Err(Failure::new(
            Code::ArgumentsInvalid,
            "an attestation needs words: what was looked at, and why it holds",
        )
        .subject("-m"));
    }
    let observation = observation::observe(&mut task)?;
    let known = evidence::in_order(&evidence::counting_for(&task.ledger, &task.view)?);
    let blobs = session.blobs();
    let (asked, rows) =
        with_stored_lists(&blobs, |stored| judge::with_confirmation(&observation, &known, stored));
    let observed = manual_row(&task.view.id, &asked, requirement)?.clone();
    let params = json!({"requirement": requirement, "pass": word == Word::Pass, "message": message, "manifestSha256": observation.manifest_sha256});
    let mut action = task.action("attest", &params);
    let verb = if word == Word::Pass { "passes" } else { "fails" };
    let changes = task.view.last_candidate()?.value.changes.len();
    let row =
        rows.iter().find(|row| row.id == requirement && matches!(observed.source, Source::Protected { .. }));
    let why = row.and_then(|row| row.reason.as_ref()).map(|why| format!("{}. ", plain_line(why, usize::MAX)));
    let question = format!(
        "{}Attest that {requirement:?} {verb} for candidate {} of {} ({changes} changed paths)?",
        why.unwrap_or_default(),
        observation.candidate,
        task.view.id
    );
    if session.person.confirm(&question) != Some(true) {
        return Err(denied(&task.view.id, requirement, action, &mut task.ledger));
    }
    action.dispatch(&mut task.ledger)?;
    let record = record(session, &task.view, &observation, &observed, action.id(), word, message)?;
    session.blobs().put(&crate::domain::value::digest::canonical_json(&record))?;
    task.finish(action, &Record::Evidence(Box::new(record)))?;
    let evidence = evidence::counting_for(&task.ledger, &task.view)?;
    let rows = evidence::judge(&session.blobs(), &observation, &evidence);
    let runs = runs::of_rows(&session.blobs(), &evidence, &rows);
    Ok(verification_object(&task.view.id, observation.candidate, rows, runs))
}

fn manual_row<'a>(task: &str, observation: &'a Observation, requirement: &str) -> Result<&'a Observed> {
    let rows = &observation.rows;
    let manual = |row: &&Observed| matches!(row.source, Source::Manual | Source::Protected { .. });
    let names: Vec<&str> = rows.iter().filter(manual).map(|row| row.clause.id.as_str()).collect();
    match rows.iter().find(|row| row.clause.id == requirement) {
        Some(row) if manual(&row) => Ok(row),
        Some(_) => Err(Failure::new(
            Code::PermissionDenied,
            format!("{requirement:?} is shown by a verifier; nobody's word can take its place"),
        )
        .subject(requirement)
        .expected(names, requirement)
        .remedy("Let the verifier show it.", ["git", "tender", "verify", task])),
        None => {
            Err(Failure::new(Code::NotFound, format!("the task {task} has no requirement {requirement:?}"))
                .subject(requirement)
                .detail("manual", names)
                .remedy("See its requirements.", ["git", "tender", "report", task]))
        }
    }
}

fn denied(
    task: &str,
    requirement: &str,
    mut action: RunningAction,
    ledger: &mut crate::store::Ledger,
) -> Failure {
    let failure = unconfirmed(
        &format!("attesting {requirement:?} is a person's call"),
        requirement,
        ["git", "tender", "attest", task, requirement, "--pass", "-m", "TEXT"],
    );
    action.deny(ledger, failure)
}

fn record(
    session: &Session,
    view: &crate::domain::ledger::task::TaskView,
    observation: &Observation,
    observed: &Observed,
    run: &str,
    word: Word,
    message: &str,
) -> Result<Evidence> {
    let candidate = &view.last_candidate()?.value;
    let missing = || Failure::internal(format!("the row {} has no key to attest", observed.clause.id));
    let now = crate::store::ledger::now();
    Ok(Evidence {
        schema: SCHEMA.to_owned(),
        kind: EvidenceKind::Attestation,
        run: run.to_owned(),
        nonce: crate::task::action::random_hex(16),
        task: view.id.clone(),
        candidate: observation.candidate,
        contract_version: observation.contract_version,
        requirement: observed.clause.id.clone(),
        verifier: observed.clause.verifier.clone(),
        subject: Subject {
            tree: candidate.tree.clone(),
            base_tree: candidate.base_tree.clone(),
            manifest_sha256: candidate.patch.manifest_sha256,
        },
        key: observed.key.clone().ok_or_else(missing)?,
        identity: observed.identity.clone().ok_or_else(missing)?,
        listing: observed.listing,
        outcome: if word == Word::Pass { Verdict::Passed } else { Verdict::Failed },
        reason: (word == Word::Fail).then(|| message.to_owned()),
        checks: None,
        cases: None,
        flaky: false,
        warm: false,
        clearing: false,
        attempts: Vec::new(),
        outputs: Vec::new(),
        findings: Vec::new(),
        started_at: now.clone(),
        finished_at: now,
        sandbox: "none".to_owned(),
        attestation: Some(Attestation { person: person(session)?, message: message.to_owned() }),
    })
}

/// The person as git knows them.
fn person(session: &Session) -> Result<String> {
    let name = session.repository.config_value("user.name")?.unwrap_or_else(|| "unknown".to_owned());
    let mail =
        session.repository.config_value("user.email")?.map(|mail| format!(" <{mail}>")).unwrap_or_default();
    Ok(format!("{name}{mail}"))
}
