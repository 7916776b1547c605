//! Where a live tree is not as a tree of ours: its index's stamps decide, content only where they do not fit.

use super::live_walk::{WalkedPart, WalkedTree, walk_live_tree};
use super::{Quarantine, Repository, live_base};
use crate::domain::value::digest::ObjectId;
use crate::domain::value::repo_path::RepoPath;
use crate::error::Result;
use std::collections::BTreeSet;

/// The paths at which a live tree and a tree differ.
#[derive(Debug, Default)]
pub struct LiveDifference {
    /// Other content, or only on one side; what is untracked and not ignored is among them.
    pub differs: BTreeSet<RepoPath>,
    /// In the tree, and untracked in the live tree: the index has no stamp that could tell.
    pub unknown: BTreeSet<RepoPath>,
}

/// Compares a live tree with a tree, whose objects may lie in a quarantine.
pub fn compare_live_tree(
    home: &Repository,
    quarantine: &Quarantine,
    tree: &ObjectId,
) -> Result<LiveDifference> {
    let WalkedTree { changed, untracked } =
        match walk_live_tree(WalkedPart { home, quarantine: Some(quarantine), tree, folder: None }) {
            Some(walked) => walked,
            None => compare_by_git(home, quarantine, tree)?,
        };
    let unknown = &changed & &untracked;
    Ok(LiveDifference { differs: &(&changed | &untracked) - &unknown, unknown })
}

/// How many files beneath a folder are not as HEAD has them, untracked ones included.
pub fn count_uncommitted_beneath(home: &Repository, folder: &RepoPath) -> Result<usize> {
    let head = home.resolve_revision("HEAD", "tree")?;
    let part = head.as_ref().map(|tree| WalkedPart { home, quarantine: None, tree, folder: Some(folder) });
    if let Some(walked) = part.and_then(walk_live_tree) {
        return Ok((&walked.changed | &walked.untracked).len());
    }
    let options = ["status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"];
    let status = home.git_in_top()?.args(options).args(["--ignore-submodules=all", "--"]);
    let raw = status.arg(format!(":(top,literal){folder}")).run_for_stdout()?;
    Ok(raw.split(|b| *b == 0).filter(|entry| !entry.is_empty()).count())
}

/// A whole tree by git itself.
pub(super) fn compare_by_git(
    home: &Repository,
    quarantine: &Quarantine,
    tree: &ObjectId,
) -> Result<WalkedTree> {
    let options = ["diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--ignore-submodules=dirty"];
    let changed =
        home.git_in_top()?.with_quarantine(quarantine).args(options).arg(tree.as_str()).run_for_stdout()?;
    let untracked =
        home.git_in_top()?.args(["ls-files", "-z", "-o", "--exclude-standard"]).run_for_stdout()?;
    let paths = |listing: &[u8]| live_base::parse_paths(listing).into_iter().collect();
    Ok(WalkedTree { changed: paths(&changed), untracked: paths(&untracked) })
}
