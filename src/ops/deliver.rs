//! `deliver`: the gate, the comparison with the live tree, the write. All or nothing; and a second time it
//! writes nothing.

mod clearance;
mod merge;
mod options;
mod prove;

pub use merge::merge;
pub use options::{LiveProof, Options, Place, Turn};

use self::clearance::{clear_delivery, tell_both};
use self::prove::ProofOnLive;
use super::Session;
use crate::domain::ledger::report::DeliveryObject;
use crate::domain::ledger::risk::seen_after_delivery;
use crate::domain::ledger::task::TaskState;
use crate::domain::proof::on_live::{SeenAfterDelivery, add_live_inputs};
use crate::domain::proof::verdict::Row;
use crate::error::Result;
use crate::task::action::RunningAction;
use crate::task::effect::DeliveryEffect;
pub use crate::task::effect::Write;
use crate::task::held::TaskWrite;
use crate::task::on_live::look_after_delivery;
use crate::task::session::Progress;
use crate::task::{budget, evidence, hooks, observation, recover, runs, tripwire};
use serde_json::json;

/// Delivers once more what was delivered and then undone, by the same rules.
pub fn redo(
    session: &Session,
    named: Option<&str>,
    options: &Options,
    progress: Progress<'_>,
) -> Result<DeliveryObject> {
    let id = session.delivered_task_id(named)?;
    deliver(session, Some(&id), &Options { turn: Turn::Again, ..*options }, progress)
}

/// Delivers the last candidate into the live tree that the task was opened from, or onto a branch.
pub fn deliver(
    session: &Session,
    named: Option<&str>,
    options: &Options,
    progress: Progress<'_>,
) -> Result<DeliveryObject> {
    // To put in order what was cut off would be to write.
    if options.write == Write::DryRun {
        recover::refuse_unfinished(session)?;
    }
    let mut task = prove::enter_shown_on_live_tree(session, named, options, progress)?;
    if let (Some(delivered), None) = (&task.view.delivered, &task.view.undone) {
        let (mode, receipt) = (task.view.opened_terms()?.effective.delivery, &delivered.value.receipt);
        let mut again =
            DeliveryObject::new(&task.view.id, TaskState::Completed, mode, receipt).mark_already();
        again.risks = Some(seen_after_delivery(&task.view));
        return Ok(again);
    }
    options.turn.require_turn(&task.view)?;
    if let Err(missing) = task.view.last_candidate() {
        return tell_both(Err(missing), task.view.require_answered());
    }
    budget::require_left(&task)?;
    tripwire::look_at_surroundings(&mut task)?;
    let observation = observation::observe(&mut task)?;
    let evidence = evidence::counting_for(&task.ledger, &task.view)?;
    let rows = evidence::judge(&session.blobs(), &observation, &evidence);
    let params = json!({ "manifestSha256": observation.manifest_sha256, "dryRun": options.write == Write::DryRun, "here": options.place == Place::Here });
    let mut action = task.action("deliver", &params);
    let clearance = match clear_delivery(&task, &rows, options.place) {
        Ok(clearance) => clearance,
        Err(failure) => {
            let failure = action.deny(&mut task.ledger, failure);
            return Err(runs::tell_of_runs(failure, &session.blobs(), &evidence, &rows));
        }
    };
    let proof = match prove::require_proof(&mut task, options) {
        Ok(proof) => proof,
        Err(failure) => return Err(action.deny(&mut task.ledger, failure)),
    };
    // Before the first effect there is a row that is waited for.
    action.unawaited(&mut task.ledger, RunningAction::dispatch)?;
    let evidence = ProofOnLive::evidence(proof.as_ref(), &rows);
    let effect = DeliveryEffect::of_task(&task);
    let mut delivered = effect.carry_out(&mut task, action, &clearance, evidence, options.write)?;
    if effect == DeliveryEffect::Findings {
        return Ok(delivered);
    }
    tell_what_is_seen(&mut task, &mut delivered, &rows, proof.as_ref());
    if delivered.state == TaskState::Completed {
        hooks::after_task(session, &task.ledger, &task.view);
    }
    Ok(delivered)
}

/// Adds to a delivery its rows, and what there is to tell of the live tree and of what was left behind.
fn tell_what_is_seen(
    task: &mut TaskWrite<'_>,
    delivered: &mut DeliveryObject,
    rows: &[Row],
    proof: Option<&ProofOnLive>,
) {
    let rows = ProofOnLive::add_to(proof, rows);
    let seen = match delivered.state == TaskState::Completed {
        true => look_after_delivery(task, &rows, proof.map(|proof| &proof.ground)),
        false => SeenAfterDelivery::default(),
    };
    delivered.requirements = add_live_inputs(&rows, &seen.rows);
    delivered.notes.extend(seen.risks());
    delivered.risks = Some(seen_after_delivery(&task.view));
}
