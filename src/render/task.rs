//! A task that was opened.

use super::style::{BOLD, OPEN, SHOWN, short_id, spaced_word, style_text};
use crate::domain::contract::Kind;
use crate::domain::ledger::brought::{BroughtObject, SetupEnd};
use crate::domain::ledger::report::TaskObject;
use crate::domain::ledger::task::TaskState;
use crate::domain::value::repo_path::RepoPath;
use std::fmt::Write;

pub fn task_text(task: &TaskObject) -> String {
    let mut out = format!("task {} is {}\n", style_text(BOLD, &task.task_id), spaced_word(&task.state));
    let base = short_id(task.base.commit.as_str());
    let live = if task.base.live { " with your uncommitted work" } else { "" };
    let _ = writeln!(out, "  base      {base}{live}");
    let _ = writeln!(out, "  worktree  {}", task.worktree);
    let _ = writeln!(
        out,
        "  contract  version {}, sha256 {}",
        task.contract.version,
        short_id(&task.contract.sha256.to_string())
    );
    for line in &task.narrowed {
        let _ = writeln!(out, "  {} {line}", style_text(OPEN, "narrowed:"));
    }
    for id in &task.manual {
        let _ = writeln!(
            out,
            "  {} {id} has no verifier here; a person has to attest it",
            style_text(OPEN, "manual:")
        );
    }
    if let Some(brought) = &task.brought {
        out.push_str(&brought_text(brought));
    }
    for (what, paths) in [
        ("uncommitted work", &task.lacks.dirty),
        ("ignored files", &task.lacks.ignored),
        ("submodules", &task.lacks.submodules),
        ("LFS content", &task.lacks.lfs),
    ] {
        if !paths.is_empty() {
            let _ = writeln!(out, "  the worktree lacks {what}: {}", path_list(paths));
        }
    }
    if let Some(why) = &task.lacks.unseen {
        let _ = writeln!(out, "  the worktree may lack uncommitted work, which cannot be looked for: {why}");
    }
    for note in &task.notes {
        let _ = writeln!(out, "  {} {note}", style_text(OPEN, "note:"));
    }
    if task.state == TaskState::Open {
        let _ = writeln!(
            out,
            "  next      {}, then: git tender ship {}",
            if task.kind == Kind::Explore.as_str() {
                format!("let a worker explore over git tender mcp {}", task.task_id)
            } else {
                "make the change in the worktree".to_owned()
            },
            task.task_id
        );
    }
    out
}

/// What the worktree got beside the files of its base, and what it did not get.
fn brought_text(brought: &BroughtObject) -> String {
    let counted = |count: u64, one: &str, many: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        count => Some(format!("{count} {many}")),
    };
    let submodules = brought.submodules.len() as u64;
    let mut parts: Vec<String> = [
        counted(brought.copied, "ignored file copied", "ignored files copied"),
        counted(brought.linked, "link to your own", "links to your own"),
        counted(submodules, "submodule checked out", "submodules checked out"),
    ]
    .into_iter()
    .flatten()
    .collect();
    parts.extend(brought.setup.map(|end| match end {
        SetupEnd::Ran => "setup ran".to_owned(),
        SetupEnd::Cached => "setup taken from an earlier run".to_owned(),
        SetupEnd::Failed => style_text(OPEN, "setup failed"),
    }));
    if let (Some(bytes), Some(shared)) = (brought.bytes, brought.shared) {
        parts.push(format!("{bytes} bytes written, {shared} shared with your files"));
    }
    let mut out = String::new();
    if !parts.is_empty() {
        let _ = writeln!(out, "  brought   {}", parts.join(", "));
    }
    for left in brought.left.iter().take(SHOWN) {
        let _ = writeln!(out, "  {} {} was not brought: {}", style_text(OPEN, "note:"), left.path, left.why);
    }
    let rest = brought.left.len().saturating_sub(SHOWN);
    if rest > 0 {
        let _ = writeln!(out, "  {} and {rest} more were not brought", style_text(OPEN, "note:"));
    }
    out
}

fn path_list(paths: &[RepoPath]) -> String {
    let shown: Vec<String> = paths.iter().take(SHOWN).map(ToString::to_string).collect();
    let rest = paths.len().saturating_sub(SHOWN);
    if rest == 0 { shown.join(", ") } else { format!("{} and {rest} more", shown.join(", ")) }
}
