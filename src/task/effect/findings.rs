//! The end of an `explore`, whose delivery is its report: no file is written, and nothing can be undone.

use super::Write;
use crate::domain::contract::Kind;
use crate::domain::delivery::Clearance;
use crate::domain::delivery::receipt::{Outcome, Receipt};
use crate::domain::ledger::record::{Delivered, Record};
use crate::domain::ledger::report::DeliveryObject;
use crate::domain::ledger::task::TaskState;
use crate::domain::proof::verdict::{REQUIREMENTS, Row};
use crate::error::{Code, Failure, Result};
use crate::task::action::{RunningAction, fresh_id};
use crate::task::held::TaskWrite;
use crate::task::hooks;

/// Refuses the delivery of an exploration that found nothing, not even a limit.
pub fn require_something(task: &TaskWrite<'_>, rows: &[Row]) -> Result<()> {
    if !task.view.findings.is_empty() {
        return Ok(());
    }
    let id = &task.view.id;
    Err(Failure::new(
        Code::VerificationFailed,
        format!(
            "the exploration {id} has noted nothing: it needs a finding, or a limit of what was looked at"
        ),
    )
    .subject("findings")
    .expected("at least one finding or limit", 0)
    .with_detail(&REQUIREMENTS, rows)
    .remedy(
        "Let the worker note what it found (note_finding), then deliver.",
        ["git", "tender", "report", id],
    ))
}

/// True for tasks whose delivery is their report.
pub fn is_meant(task: &TaskWrite<'_>) -> bool {
    task.view.opened.as_ref().is_some_and(|opened| opened.value.contract.kind == Kind::Explore)
}

/// Completes an exploration: its report is what is delivered, and no file is written.
pub fn carry_out(
    task: &mut TaskWrite<'_>,
    mut action: RunningAction,
    _clearance: &Clearance,
    evidence: Vec<String>,
    write: Write,
) -> Result<DeliveryObject> {
    let (id, mode) = (task.view.id.clone(), task.view.opened_terms()?.effective.delivery);
    if write == Write::DryRun {
        let text = "the report would be delivered; no file is written".to_owned();
        action.succeed(&mut task.ledger, &Record::Done { text })?;
        return Ok(DeliveryObject::previewed_delivery(&id, mode, Vec::new()));
    }
    let manifest = task.view.last_candidate()?.value.patch.manifest_sha256;
    let receipt = Receipt::of_changes(&fresh_id("d"), manifest, &[], Outcome::Applied);
    // Whether the live tree has moved on is worth knowing, and nothing hangs on it.
    let head = task
        .session
        .live_repository(task.view.opened_terms()?)
        .and_then(|home| home.resolve_revision("HEAD", "commit"));
    let head = head.ok().flatten();
    let delivered = Delivered { receipt: receipt.clone(), head, evidence, said_by_person: false };
    task.finish(action, &Record::Delivered(Box::new(delivered)))?;
    hooks::after_task(task.session, &task.ledger, &task.view);
    Ok(DeliveryObject::new(&id, TaskState::Completed, mode, &receipt))
}

/// Refuses to undo what wrote nothing.
pub fn refuse_undo(task: &TaskWrite<'_>) -> Result<()> {
    if !is_meant(task) {
        return Ok(());
    }
    let id = &task.view.id;
    Err(Failure::new(
        Code::StateInvalid,
        format!("the task {id} is an exploration: what it delivered is its report, no file was written, and so there is nothing to undo"),
    )
    .subject(id.clone())
    .expected("a delivery that wrote something", "an exploration's report")
    .remedy("See what it found.", ["git", "tender", "report", id]))
}
