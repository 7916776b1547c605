//! The tasks of a repository.

use super::style::spaced_word;
use crate::domain::ledger::head::LostHead;
use crate::domain::ledger::objects::{TaskList, TaskListRow, UnfinishedRow};
use crate::domain::ledger::turn::WhoseTurn;
use crate::domain::value::outside::plain_line;
use std::fmt::Write;

/// How many characters of a goal are shown.
const GOAL: usize = 72;

pub fn status_text(status: &TaskList) -> String {
    let mut out = String::new();
    if status.tasks.is_empty() {
        out.push_str("no open tasks; begin with `git tender start`, or look at `git tender demo`\n");
    }
    for task in &status.tasks {
        let place = if task.has_worktree { task.worktree.as_str() } else { "(removed)" };
        let size = task.bytes.map(|bytes| format!("{:>9} KiB  ", bytes.div_ceil(1024))).unwrap_or_default();
        let _ = writeln!(out, "{:<20} {:<20} {size}{place}", task.task_id, spaced_word(&task.state));
        let _ = writeln!(
            out,
            "  {}, {} ago{}",
            plain_line(&task.goal, GOAL),
            age_words(task.age),
            turn_words(task)
        );
    }
    for left in &status.unfinished {
        let _ = writeln!(out, "{}", unfinished_line(left));
    }
    for lost in &status.rolled_back {
        let _ = writeln!(out, "{}", lost_head_line(lost));
    }
    out
}

fn turn_words(task: &TaskListRow) -> String {
    let conflict = match task.live_conflict {
        Some(true) => "; it conflicts with the live tree now",
        Some(false) => "; it fits the live tree now",
        None => "",
    };
    let whose = match task.turn {
        Some(WhoseTurn::Worker) => "the worker's turn",
        Some(WhoseTurn::Person) => "your turn",
        None => return conflict.to_owned(),
    };
    let next = task.next.as_deref().unwrap_or_default().join(" ");
    format!("{conflict}; {whose}: {next}")
}

fn age_words(seconds: i64) -> String {
    match seconds {
        ..60 => "a moment".to_owned(),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
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
