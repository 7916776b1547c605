//! How far the tools of a task reach: which of them its worker may call, and what they may read and write.

use crate::domain::contract::tool::WorkerTool;
use crate::domain::ledger::task::TaskView;
use crate::domain::value::repo_path::RepoPath;
use crate::error::Result;
use crate::git::limits::CandidateLimits;
use crate::task::effect::patch;
use crate::task::held::TaskWrite;
use crate::tools::place::{Place, require_readable};
use std::path::Path;

/// The tools that a task's worker may call, by name.
pub fn allowed_tools(view: &TaskView) -> Result<Vec<WorkerTool>> {
    let named = &view.opened_terms()?.contract.allowed_tools;
    let is_allowed = |tool: &WorkerTool| {
        tool.is_always_allowed() || *tool != WorkerTool::Shell && named.iter().any(|name| name == tool.name())
    };
    let mut tools: Vec<WorkerTool> = WorkerTool::ALL.into_iter().filter(is_allowed).collect();
    tools.sort_by_key(|tool| tool.name());
    Ok(tools)
}

/// The worktree as the task's tools reach it.
pub fn worktree_of<'a>(task: &'a TaskWrite<'_>) -> Result<Place<'a>> {
    let opened = task.view.opened_terms()?;
    Ok(Place {
        top: Path::new(&opened.worktree),
        read: opened.contract.read_scope.as_ref(),
        format: task.session.repository.format(),
    })
}

/// Lends what one worker may read and write, and what it knows.
pub fn with_reach<T>(view: &TaskView, worker: &str, work: impl FnOnce(patch::Allowed<'_>) -> T) -> Result<T> {
    let opened = view.opened_terms()?;
    let (contract, effective) = (&opened.contract, &opened.effective);
    let read = |path: &RepoPath| require_readable(contract.read_scope.as_ref(), path);
    let limits = CandidateLimits {
        allowed: &|path| effective.write_allows(path) || contract.scratch.matches_path(path),
        scope: &effective.write_patterns(),
        artifact_bytes: None,
    };
    let write = |path: &RepoPath| limits.refuse_outside(path).map_or(Ok(()), Err);
    let known = |path: &RepoPath| view.known_to(worker, path);
    Ok(work(patch::Allowed { read: &read, write: &write, known: &known }))
}
