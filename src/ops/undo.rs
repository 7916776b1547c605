//! `undo`: a delivery reversed by the same rules. A path that was edited since is refused, and then nothing is written.

use super::Session;
use super::live::{Facts, IndexAtBase, LedgerJournal, home};
use super::session::{RunningAction, TaskWrite};
use crate::domain::delivery::{Clearance, plan, refused};
use crate::domain::receipt::{Outcome, Receipt};
use crate::domain::report::DeliveryObject;
use crate::domain::task::TaskState;
use crate::error::{Code, Failure, Result};
use crate::git::apply::{self, Delivery, Keeper};
use crate::git::live;
use serde_json::json;
use std::path::Path;

/// Reverses the delivery of a completed task.
pub fn undo(session: &Session, named: Option<&str>) -> Result<DeliveryObject> {
    let mut task = session.write_live(named)?;
    let receipt = delivered(&task)?.clone();
    let params = json!({ "delivery": receipt.id, "manifestSha256": receipt.manifest_sha256 });
    let mut action = RunningAction::new(session.actor, Some(&task.view.id), "undo", &params, task.view.basis());
    action.dispatch(&mut task.ledger)?;
    let id = task.view.id.clone();
    let opened = task.view.opened()?.clone();
    let candidate = task.view.last_candidate()?.value.clone();
    let facts = Facts { head: None, evidence: Vec::new(), undoes: true };
    let mut journal = LedgerJournal { ledger: &mut task.ledger, action: &mut action, planned: None, facts, open: false };
    let outcome = (|| {
        let home = home(session.repository.environment(), &opened)?;
        let blobs = session.blobs();
        let changes = receipt.reversed();
        let former = live::Former::of(&receipt, &|digest| blobs.get(digest))?;
        let quarantine = session.quarantine(&id);
        let index = IndexAtBase::read(&blobs, &opened, &candidate.changes)?;
        let top = Path::new(&opened.home.top);
        let terms = live::Terms {
            repository: &home,
            quarantine: Some(&quarantine),
            top,
            changes: &changes,
            before_tree: &candidate.tree,
            after_tree: &candidate.base_tree,
            drivers: &candidate.base_tree,
            former: Some(&former),
            settings: live::Settings::read(&home)?,
        };
        let survey = live::survey(&terms)?;
        let plan = plan(&changes, &survey.facts, &|path| index.of(path)).map_err(|conflicts| refused(&conflicts))?;
        let materials = live::prepare(&terms, survey, &plan)?;
        let cleared = plan.clear(&Clearance::to_undo(&receipt))?;
        let delivery = Delivery { id: &id, top, outcome: Outcome::Reverted };
        let keeper = Keeper { put: &|bytes| blobs.put(bytes), get: &|digest| blobs.get(digest) };
        apply::execute(cleared, materials, delivery, &mut journal, keeper)
    })();
    match outcome {
        Ok(reverted) => Ok(DeliveryObject::new(&id, TaskState::Undone, &reverted)),
        Err(failure) => Err(journal.failed(explained(&id, failure))),
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

fn explained(task: &str, failure: Failure) -> Failure {
    if failure.code() == Code::DeliveryConflict && !failure.has_remedy() {
        return failure.remedy("Nothing was written. See what the delivery changed, and reverse it by hand.", ["git", "tender", "diff", task]);
    }
    failure
}
