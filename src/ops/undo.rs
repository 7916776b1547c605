//! `undo`: a delivery reversed by the same rules. A path that was edited since is refused, and then nothing
//! is written.

use super::Session;
use crate::domain::delivery::receipt::Receipt;
use crate::domain::ledger::report::DeliveryObject;
use crate::error::{Code, Failure, Result};
use crate::task::effect::{DeliveryEffect, Write};
use crate::task::held::TaskWrite;
use crate::task::{hooks, recover};
use serde_json::json;

/// Reverses the delivery of a completed task.
pub fn undo(session: &Session, named: Option<&str>, write: Write) -> Result<DeliveryObject> {
    // To put in order what was cut off would be to write.
    if write == Write::DryRun {
        recover::refuse_unfinished(session)?;
    }
    let mut task = session.write_live(Some(&session.delivered_task_id(named)?))?;
    let receipt = delivered(&task)?.clone();
    let effect = DeliveryEffect::of_receipt(&task, &receipt)?;
    let mut params = json!({ "delivery": receipt.id, "manifestSha256": receipt.manifest_sha256 });
    if write == Write::DryRun {
        params["dryRun"] = json!(true);
    }
    let action = task.begin_unawaited("undo", &params)?;
    let undone = effect.undo(&mut task, action, &receipt, write)?;
    if write == Write::Yes {
        hooks::after_task(session, &task.ledger, &task.view);
    }
    Ok(undone)
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
