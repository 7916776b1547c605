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
}

/// Ends a task. Cancelling it again changes nothing; a completed one is `state.invalid`.
pub fn cancel(session: &Session, named: Option<&str>) -> Result<Cancelled> {
    let mut task = session.write(named)?;
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
    })
}
