//! `path`: where a task's worktree lies, and nothing else, for scripts and shells.

use super::Session;
use crate::domain::ledger::objects::WorktreePath;
use crate::error::{Code, Failure, Result};
use std::path::Path;

/// Where the worktree of a task lies. One that was removed is `not_found`.
pub fn find_worktree(session: &Session, named: Option<&str>) -> Result<WorktreePath> {
    let (_, view) = session.view(named)?;
    let worktree = view.opened_terms()?.worktree.clone();
    if Path::new(&worktree).is_dir() {
        return Ok(WorktreePath { schema: "git-tender/path/v1", task_id: view.id, worktree });
    }
    Err(Failure::new(Code::NotFound, format!("the worktree {worktree} of {} is gone", view.id))
        .subject(worktree)
        .remedy("See what is known of the task.", ["git", "tender", "report", &view.id]))
}
