//! A candidate, and the list of the paths that a change touches.

use super::style::{BOLD, OPEN, SHOWN, short_id, style_text};
use crate::domain::change::patch::{Change, Status};
use crate::domain::ledger::report::CandidateObject;
use crate::domain::value::repo_path::RepoPath;
use std::fmt::Write;

pub fn candidate_text(candidate: &CandidateObject) -> String {
    let mut out =
        format!("candidate {} of task {}\n", candidate.candidate, style_text(BOLD, &candidate.task_id));
    write_changes(&mut out, &candidate.changes);
    if let Some(left) = &candidate.left {
        write_left(&mut out, left);
    }
    let _ = writeln!(out, "  patch     {}", candidate.patch.path);
    let _ = writeln!(out, "  manifest  sha256 {}", short_id(&candidate.patch.manifest_sha256.to_string()));
    out
}

/// What was not taken, and where it is.
fn write_left(out: &mut String, left: &[RepoPath]) {
    let names: Vec<String> = left.iter().take(SHOWN).map(ToString::to_string).collect();
    let more = match left.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let all = if left.is_empty() { "nothing".to_owned() } else { names.join(", ") };
    let _ = writeln!(out, "  left in the worktree: {all}{more}");
}

/// A file that becomes a program, a link or the other way round looks like any other change otherwise.
fn mode_change(change: &Change) -> String {
    match (&change.old, &change.new) {
        (Some(old), Some(new)) if old.mode != new.mode => format!(" (mode {} -> {})", old.mode, new.mode),
        _ => String::new(),
    }
}

pub(super) fn write_changes(out: &mut String, changes: &[Change]) {
    if changes.is_empty() {
        let _ = writeln!(out, "  {}", style_text(OPEN, "no changes: nothing was done"));
    }
    for change in changes.iter().take(SHOWN * 5) {
        let letter = match change.status {
            Status::Added => "A",
            Status::Deleted => "D",
            Status::Modified => "M",
        };
        let _ = writeln!(out, "  {letter} {}{}", change.path, mode_change(change));
    }
    if changes.len() > SHOWN * 5 {
        let _ = writeln!(out, "  … and {} more", changes.len() - SHOWN * 5);
    }
}
