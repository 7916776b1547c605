//! What of a worktree no capture takes, because git ignores it.

use super::CaptureRequest;
use crate::domain::value::digest::ObjectId;
use crate::domain::value::repo_path::RepoPath;
use crate::error::Result;
use crate::git::command::Quarantine;
use crate::git::private_index::PrivateIndex;
use crate::git::repository::Repository;
use std::collections::BTreeSet;
use std::path::Path;

/// What the worktree holds although no capture ever takes it: the ignored files, a directory for all that is
/// in it.
pub fn never_captured(
    repository: &Repository,
    quarantine: &Quarantine,
    worktree: &Path,
    base_tree: &ObjectId,
) -> Result<Vec<RepoPath>> {
    let index = PrivateIndex::holding_tree(repository, quarantine, base_tree)?;
    let listed = ignored_paths(&index, worktree)?;
    listed.iter().map(|path| RepoPath::new(path.strip_suffix(b"/").unwrap_or(path))).collect()
}

/// What git ignores in a worktree, beyond what the base and the last candidate have.
pub(super) fn ignored_by_git(
    request: &CaptureRequest<'_>,
    index: &PrivateIndex,
) -> Result<BTreeSet<Vec<u8>>> {
    if request.added.is_empty() {
        return ignored_paths(index, request.worktree);
    }
    // An index of its own: in the candidate's they would stay although the worker has removed them.
    let listing = PrivateIndex::holding_tree(request.repository, request.quarantine, request.base_tree)?;
    listing.update_entries(request.added)?;
    ignored_paths(&listing, request.worktree)
}

/// What git ignores and the base does not track; a directory ends in a slash.
fn ignored_paths(index: &PrivateIndex, worktree: &Path) -> Result<BTreeSet<Vec<u8>>> {
    let listing = index
        .git_on(worktree)?
        .args(["ls-files", "-z", "-o", "-i", "--exclude-standard", "--directory"])
        .run_for_stdout()?;
    Ok(listing.split(|b| *b == 0).filter(|p| !p.is_empty()).map(<[u8]>::to_vec).collect())
}
