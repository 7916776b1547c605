//! What of a worktree's ignored files may go with it: what was brought and is as it was, or lies in a folder
//! that was brought as a whole.

use crate::domain::ledger::brought::{BroughtKind, BroughtPlaces};
use crate::domain::value::repo_path::RepoPath;
use crate::error::Result;
use crate::git::beneath::{Folder, file_type, walk_folder};
use crate::git::worktree_extras::is_as_brought;
use rustix::fs::FileType;
use std::path::Path;

/// The first file at or beneath a path that nobody else has; `None` where there is none.
pub fn find_unbrought(worktree: &Path, path: &RepoPath, places: &BroughtPlaces) -> Result<Option<RepoPath>> {
    let place = worktree.join(path.as_path());
    let is_folder = place.symlink_metadata().is_ok_and(|found| found.is_dir());
    if !is_folder || places.hold(path) {
        return Ok((!may_go(worktree, path, places)).then(|| path.clone()));
    }
    let mut found = None;
    walk_folder(&Folder::open_path(&place)?, &mut |_, below, stat| {
        let Ok(below) = path.join_below(below) else {
            found.get_or_insert(path.clone());
            return Ok(false);
        };
        if found.is_some() {
            return Ok(false);
        }
        if file_type(stat) == FileType::Directory && !places.hold(&below) {
            return Ok(true);
        }
        if !may_go(worktree, &below, places) {
            found = Some(below);
        }
        Ok(false)
    })?;
    Ok(found)
}

fn may_go(worktree: &Path, path: &RepoPath, places: &BroughtPlaces) -> bool {
    match places.entry_at(path.as_bytes()).map(|entry| entry.kind) {
        Some(BroughtKind::File(known)) => is_as_brought(&worktree.join(path.as_path()), known),
        _ => places.hold(path),
    }
}
