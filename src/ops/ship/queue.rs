//! `ship --all`, also called `queue`: what is verified is delivered, one task after the other, in the order
//! in which the tasks were opened.
//!
//! Where the one before moved the ground, and the next can be merged with what is there now, it is carried
//! over, and what that made stale is shown again. Whatever stands in a task's way skips that one: it is told,
//! and stays as it was. No lock is held from one task to the next, nor while verifiers run.

use super::{Options, Session};
use crate::domain::ledger::objects::{QueueObject, QueueOutcome, QueueRow};
use crate::domain::ledger::report::DeliveryObject;
use crate::domain::ledger::task::TaskState;
use crate::error::{Code, Failure, Result};
use crate::ops::deliver;
use crate::task::effect::Write;
use crate::task::evidence;
use crate::task::family::attach;
use crate::task::session::Progress;
use crate::task::view::load;

/// What became of each task, and the failure that the exit code is of.
#[derive(Debug)]
pub struct ShippedQueue {
    pub object: QueueObject,
    pub refused: Option<Failure>,
}

/// Delivers every verified task. `told` hears of each as it ends.
pub fn ship_all(
    session: &Session,
    options: Options,
    progress: Progress<'_>,
    told: &dyn Fn(&QueueRow),
) -> Result<ShippedQueue> {
    let (verified, waiting) = list_verified(session)?;
    let how = deliver::Options { write: options.write, proof: options.proof, ..Default::default() };
    let (mut tasks, mut failures) = (Vec::new(), Vec::new());
    for id in verified {
        let row = match deliver::merge(session, Some(&id), &how, progress) {
            Ok(delivered) => QueueRow::of_delivery(delivered, options.write == Write::DryRun),
            Err(failure) => {
                failures.push(failure.clone());
                QueueRow::skipped(id, failure)
            }
        };
        told(&row);
        tasks.push(row);
    }
    let object = QueueObject { schema: "git-tender/queue/v1".to_owned(), tasks, waiting };
    Ok(ShippedQueue { object, refused: Failure::first_of(failures) })
}

/// The tasks that are verified now, and those that have not ended and are not.
fn list_verified(session: &Session) -> Result<(Vec<String>, Vec<String>)> {
    let (mut verified, mut waiting) = (Vec::new(), Vec::new());
    let Some(ledger) = session.ledger()? else { return Ok((verified, waiting)) };
    for id in ledger.open_tasks()? {
        let Some(mut view) = load(&ledger, &id)? else { continue };
        attach(&ledger, &mut view)?;
        let shown = evidence::counting_for(&ledger, &view)?;
        let rows = evidence::current_rows(&session.blobs(), &view, &shown)?;
        let is_verified = view.state_with(&rows) == TaskState::Verified;
        if is_verified { verified.push(id) } else { waiting.push(id) }
    }
    Ok((verified, waiting))
}

impl QueueRow {
    fn of_delivery(delivery: DeliveryObject, previewed: bool) -> Self {
        let outcome = if previewed { QueueOutcome::WouldDeliver } else { QueueOutcome::Delivered };
        Self { task_id: delivery.task_id.clone(), outcome, delivery: Some(delivery), error: None }
    }

    fn skipped(task_id: String, failure: Failure) -> Self {
        let outcome = match failure.code() {
            Code::DeliveryConflict | Code::VersionConflict | Code::PushConflict => QueueOutcome::Conflict,
            _ => QueueOutcome::Skipped,
        };
        Self { task_id, outcome, delivery: None, error: Some(failure) }
    }
}
