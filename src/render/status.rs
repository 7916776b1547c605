//! The tasks of a repository.

use super::style::spaced_word;
use crate::domain::ledger::head::LostHead;
use crate::domain::ledger::objects::{TaskList, UnfinishedRow};
use std::fmt::Write;

pub fn status_text(status: &TaskList) -> String {
    let mut out = String::new();
    if status.tasks.is_empty() {
        out.push_str("no tasks; begin with `git tender start`, or look at `git tender demo`\n");
    }
    for task in &status.tasks {
        let place = if task.has_worktree { task.worktree.as_str() } else { "(removed)" };
        let size = task.bytes.map(|bytes| format!("{:>9} KiB  ", bytes.div_ceil(1024))).unwrap_or_default();
        let _ = writeln!(out, "{:<20} {:<20} {size}{place}", task.task_id, spaced_word(&task.state));
    }
    for left in &status.unfinished {
        let _ = writeln!(out, "{}", unfinished_line(left));
    }
    for lost in &status.rolled_back {
        let _ = writeln!(out, "{}", lost_head_line(lost));
    }
    out
}

pub fn lost_head_line(lost: &LostHead) -> String {
    let what = lost.clause();
    format!("the ledger was set back: {what}; nothing is written to it, and `git tender recover` says more")
}

pub fn unfinished_line(left: &UnfinishedRow) -> String {
    let (tool, action) = (&left.tool, &left.action);
    let task = left.task.as_deref().unwrap_or("-");
    format!(
        "unfinished: {tool} of {task} ({action}); where it was cut off, `git tender recover` brings it to an end"
    )
}
