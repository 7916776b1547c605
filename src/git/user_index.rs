//! The user's index, read only: which entries are not what a tree says.

use super::command::Quarantine;
use super::repository::Repository;
use crate::domain::delivery::IndexState;
use crate::domain::ledger::record::IndexDifference;
use crate::domain::value::digest::{Mode, ObjectId};
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Failure, Result};

/// The entries of the live tree's index that differ from `tree`, which may lie in the quarantine, sorted by
/// path bytes. Entries that are only intended to be added do not count as entries.
pub fn index_differences(
    repository: &Repository,
    quarantine: &Quarantine,
    tree: &ObjectId,
) -> Result<Vec<IndexDifference>> {
    let raw = repository
        .git_in_top()?
        .with_quarantine(quarantine)
        .args([
            "diff-index",
            "--cached",
            "--raw",
            "-z",
            "--no-renames",
            "--no-abbrev",
            "--ignore-submodules=none",
            tree.as_str(),
            "--",
        ])
        .run_for_stdout()?;
    let damaged = || Failure::internal("git diff-index answered in a form that is not known");
    let mut fields = raw.split(|b| *b == 0).filter(|field| !field.is_empty());
    let mut found = Vec::new();
    while let (Some(head), Some(path)) = (fields.next(), fields.next()) {
        let head = std::str::from_utf8(head).map_err(|_| damaged())?;
        let words: Vec<&str> = head.split(' ').collect();
        let [_, mode, _, id, status] = words.as_slice() else { return Err(damaged()) };
        found.push(IndexDifference {
            path: RepoPath::new(path)?,
            state: parse_index_state(mode, id, status)?,
        });
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found.dedup_by(|later, first| later.path == first.path);
    Ok(found)
}

fn parse_index_state(mode: &str, id: &str, status: &str) -> Result<IndexState> {
    if status.starts_with('U') {
        return Ok(IndexState::Unmerged);
    }
    let git_blob: ObjectId = id.parse()?;
    if git_blob.is_zero() {
        return Ok(IndexState::Absent);
    }
    Ok(IndexState::Entry { mode: mode.parse::<Mode>()?, git_blob })
}
