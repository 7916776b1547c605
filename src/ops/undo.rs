//! `undo`: a delivery reversed by the same rules. A path that was edited since is refused, and then nothing
//! is written.

use super::Session;
use crate::domain::delivery::Clearance;
use crate::domain::delivery::receipt::{Outcome, Receipt};
use crate::domain::ledger::report::DeliveryObject;
use crate::domain::ledger::task::TaskState;
use crate::error::{Code, Failure, Result};
use crate::git;
use crate::task::effect::tree::explained;
use crate::task::effect::{findings, tree};
use crate::task::held::TaskWrite;
use crate::task::hooks;
use crate::task::journal::{Facts, LedgerJournal};
use serde_json::json;

/// Reverses the delivery of a completed task.
pub fn undo(session: &Session, named: Option<&str>) -> Result<DeliveryObject> {
    let mut task = session.write_live(named)?;
    let receipt = delivered(&task)?.clone();
    findings::refuse_undo(&task)?;
    let params = json!({ "delivery": receipt.id, "manifestSha256": receipt.manifest_sha256 });
    let mut action = task.begin("undo", &params)?;
    if receipt.publication.is_some() {
        let undone = crate::task::effect::refs::undo(&mut task, action, &receipt)?;
        hooks::after_task(session, &task.view.id);
        return Ok(undone);
    }
    let id = task.view.id.clone();
    let opened = task.view.opened_terms()?.clone();
    let candidate = task.view.last_candidate()?.value.clone();
    let facts = Facts { head: None, evidence: Vec::new(), undoes: true };
    let mut journal =
        LedgerJournal { ledger: &mut task.ledger, action: &mut action, planned: None, facts, open: false };
    let written = session.live_repository(&opened).and_then(|home| {
        let blobs = session.blobs();
        let changes = receipt.reversed_changes();
        let former = git::live::FormerFiles::from_receipt(&receipt, &|digest| blobs.get(digest))?;
        let write = tree::Write {
            session,
            opened: &opened,
            candidate: &candidate,
            changes: &changes,
            before_tree: &candidate.tree,
            after_tree: &candidate.base_tree,
            former: Some(&former),
            staged: Some(&receipt.index),
            outcome: Outcome::Reverted,
        };
        write.run(&home, &Clearance::to_undo(&receipt), &mut journal)
    });
    match written {
        Ok(reverted) => {
            hooks::after_task(session, &id);
            Ok(DeliveryObject::new(&id, TaskState::Undone, opened.effective.delivery, &reverted))
        }
        Err(failure) => Err(journal.failed(explained(&id, failure, tree::Next::Look))),
    }
}

fn delivered<'a>(task: &'a TaskWrite<'_>) -> Result<&'a Receipt> {
    let view = &task.view;
    if view.cancelled.is_some() {
        view.require_active()?;
    }
    match (&view.delivered, &view.undone) {
        (Some(delivered), None) if !view.collected => Ok(&delivered.value.receipt),
        (found, undone) => {
            let why = match (found, undone) {
                (Some(_), Some(_)) => "it was undone already",
                (Some(_), None) => "its kept files were removed by gc",
                _ => "it has delivered nothing",
            };
            Err(Failure::new(Code::StateInvalid, format!("the task {} cannot be undone: {why}", view.id))
                .subject(view.id.clone())
                .expected("completed", why)
                .remedy("See what is known of it.", ["git", "tender", "report", &view.id]))
        }
    }
}
