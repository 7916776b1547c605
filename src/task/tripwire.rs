//! Tripwires around a task: what lay around it is looked at when it is opened, and again by `submit`,
//! `verify` and `deliver`. A change is recorded once, and is a risk in the report. It refuses nothing, nor
//! does it when it cannot be looked.

use crate::domain::ledger::record::{Opened, Record};
use crate::domain::proof::tripwire::{Sight, Tripped, changes_since};
use crate::domain::value::digest::Sha256;
use crate::error::{Code, Failure, Result};
use crate::git::tripwire::{WatchedPlace, take_sight as see};
use crate::task::Session;
use crate::task::held::TaskWrite;
use serde_json::json;

/// What lies around a task that is being opened: stored, and found by this digest.
pub fn first_look(session: &Session, opened: &Opened) -> Result<Sha256> {
    let quarantine = session.quarantine(&opened.contract.task_id);
    let place = WatchedPlace { home: &session.repository, quarantine: &quarantine, base: &opened.base.tree };
    keep(session, &see(&place, None)?)
}

/// Looks again, and records what is not as it was at the last look.
pub fn look_at_surroundings(task: &mut TaskWrite<'_>) -> Result<()> {
    let session = task.session;
    let opened = task.view.opened_terms()?;
    let last = task.view.tripped.last();
    let Some(known) = last.map(|seen| seen.value.sight).or(opened.sight) else { return Ok(()) };
    let (sight, found) = match compare(task, opened, &known) {
        Ok((_, found)) if found.is_empty() => return Ok(()),
        Ok((sight, found)) => (keep(session, &sight)?, found),
        Err(failure) => {
            let text = format!("what lies around the task could not be looked at: {failure}");
            if last.is_some_and(|seen| seen.value.changes.contains(&text)) {
                return Ok(());
            }
            (known, vec![text])
        }
    };
    let params = json!({ "before": known, "sight": sight });
    task.note_look("tripwire", &params, &Record::Tripped(Tripped { sight, changes: found }))
}

fn compare(task: &TaskWrite<'_>, opened: &Opened, known: &Sha256) -> Result<(Sight, Vec<String>)> {
    let session = task.session;
    let before: Sight = serde_json::from_slice(&session.blobs().get(known)?)
        .map_err(|e| Failure::new(Code::StoreCorrupt, format!("a kept look cannot be read: {e}")))?;
    let home = session.live_repository(opened)?;
    let quarantine = session.quarantine(&task.view.id);
    let place = WatchedPlace { home: &home, quarantine: &quarantine, base: &opened.base.tree };
    let now = see(&place, Some(&before))?;
    // A ledger that cannot be asked claims nothing for us.
    let ours = |id: &str| task.ledger.delivered_names(id).unwrap_or(false);
    let found = changes_since(&before, &now, &ours);
    Ok((now, found))
}

fn keep(session: &Session, sight: &Sight) -> Result<Sha256> {
    let bytes = serde_json::to_vec(sight)
        .map_err(|e| Failure::internal(format!("what was seen cannot be written: {e}")))?;
    session.blobs().put(&bytes)
}
