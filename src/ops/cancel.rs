//! `cancel`: an end without a delivery. The worktree stays until `gc`.
//!
//! A command that is at work on the task is asked to stop, ends all that it has started, records that, and
//! lets the task go; then it is cancelled. What is a part of the task ends with it. Two tasks' locks are
//! never held at once here: the parent's is given back first.

use super::Session;
use crate::domain::ledger::objects::Cancelled;
use crate::domain::ledger::record::Record;
use crate::domain::ledger::task::TaskView;
use crate::error::{Code, Result};
use crate::task::held::TaskWrite;
use crate::task::{family, hooks};
use serde_json::json;

/// Ends a task. Cancelling it again changes nothing; a completed one is `state.invalid`.
pub fn cancel(session: &Session, named: Option<&str>) -> Result<Cancelled> {
    let mut task = session.write_stopping(named)?;
    end(&mut task)?;
    let id = task.view.id.clone();
    let worktree = task.view.opened_terms()?.worktree.clone();
    let mut effects = effects(&task.view);
    drop(task);
    let mut parts = Vec::new();
    end_parts(session, &id, &mut parts, &mut effects)?;
    Ok(Cancelled {
        schema: "git-tender/cancelled/v1",
        task_id: id,
        state: "cancelled",
        worktree,
        effects,
        parts,
    })
}

fn end(task: &mut TaskWrite<'_>) -> Result<()> {
    if task.view.cancelled.is_some() {
        return Ok(());
    }
    task.require_active()?;
    task.act("cancel", &json!({}), |_| Ok((Record::Cancelled, ())))?;
    hooks::after_task(task.session, &task.ledger, &task.view);
    Ok(())
}

/// Ends what is a part of the task. One that was delivered or cancelled before stays what it is.
fn end_parts(session: &Session, id: &str, parts: &mut Vec<String>, effects: &mut Vec<String>) -> Result<()> {
    let Some(ledger) = session.ledger()? else { return Ok(()) };
    for part in family::children(&ledger, id)? {
        let mut task = session.write_stopping(Some(&part))?;
        let ended_before = task.view.has_ended();
        match end(&mut task) {
            Err(failure) if failure.code() != Code::StateInvalid => return Err(failure),
            _ => {}
        }
        effects.extend(self::effects(&task.view));
        drop(task);
        if !ended_before {
            parts.push(part.clone());
        }
        end_parts(session, &part, parts, effects)?;
    }
    Ok(())
}

/// What may still happen: outside, and by actions of which nobody knows whether they took effect.
fn effects(view: &TaskView) -> Vec<String> {
    let outside = view.outside_effects().into_iter().map(|(effect, action)| format!("{effect} ({action})"));
    let local = view.unfinished.iter().filter(|one| one.state.is_unknown() && one.publishing.is_none());
    let local = local.map(|one| {
        format!("the {} of {} ({}) may have taken effect, or still take it", one.tool, view.id, one.action)
    });
    outside.chain(local).collect()
}
