//! A task that was cancelled.

use crate::domain::ledger::objects::Cancelled;

pub fn cancel_text(cancelled: &Cancelled) -> String {
    let mut out = format!(
        "task {} is cancelled; its worktree {} stays until gc\n",
        cancelled.task_id, cancelled.worktree
    );
    for part in &cancelled.parts {
        out.push_str(&format!("with it {part}, which was a part of it\n"));
    }
    for effect in &cancelled.effects {
        out.push_str(&format!("{effect}\n"));
    }
    out
}
