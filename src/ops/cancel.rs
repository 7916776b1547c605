//! `cancel`: an end without a delivery. The worktree stays until `gc`.

use super::Session;
use crate::domain::task::Record;
use crate::error::Result;
use serde::Serialize;

/// What `cancel` shows.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cancelled {
    schema: &'static str,
    /// The task.
    pub task_id: String,
    state: &'static str,
    /// Its worktree, with whatever is in it.
    pub worktree: String,
    /// What may still happen because of it, as sentences.
    #[serde(rename = "effects", skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<String>,
}

/// Ends a task. Cancelling it again changes nothing; a completed one is `state.invalid`.
pub fn cancel(session: &Session, named: Option<&str>) -> Result<Cancelled> {
    let mut task = session.write_while_unknown(named)?;
    if task.view.cancelled.is_none() {
        task.require_active()?;
        task.act("cancel", &serde_json::json!({}), |_| Ok((Record::Cancelled, ())))?;
    }
    let worktree = task.view.opened()?.worktree.clone();
    Ok(Cancelled {
        schema: "git-tender/cancelled/v1",
        task_id: task.view.id.clone(),
        state: "cancelled",
        worktree,
        effects: super::publish::open_effects(&task),
    })
}
