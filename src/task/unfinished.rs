//! What a task leaves that never came to be, and the private files of one that has ended.

use super::Session;
use crate::error::{Failure, Result};
use crate::git::{keep, worktree};
use crate::store::lock::LockGuard;
use std::path::Path;

/// Takes away all that an `open` made which did not come to its end. The caller holds the task's lock.
pub fn take_back(session: &Session, id: &str) -> Result<()> {
    let lock = || LockGuard::acquire(&session.layout.worktrees_lock());
    worktree::take_back_worktree(&session.repository, &session.quarantine(id), lock)?;
    keep::drop_refs(&session.repository, id)?;
    remove_private(&session.layout.task(id))
}

/// Our own files: nothing in them is a link that is followed (`remove_dir_all` unlinks links).
pub fn remove_private(folder: &Path) -> Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Failure::io("remove", folder, &e)),
        _ => Ok(()),
    }
}
