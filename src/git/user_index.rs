//! The user's index, read only: which entries are not what a tree says.

use super::command::Quarantine;
use super::repository::Repository;
use super::{live, tree};
use crate::domain::delivery::IndexState;
use crate::domain::ledger::record::IndexDifference;
use crate::domain::value::digest::{Mode, ObjectId};
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Code, Failure, Result};
use std::collections::{BTreeMap, HashMap};

/// The entries of the live tree's index that differ from `tree`, which may lie in the quarantine, sorted by
/// path bytes. Entries that are only intended to be added do not count as entries.
pub fn index_differences(
    repository: &Repository,
    quarantine: &Quarantine,
    tree: &ObjectId,
) -> Result<Vec<IndexDifference>> {
    if let Some(found) = differences_in_process(repository, quarantine, tree) {
        return Ok(found);
    }
    differences_by_git(repository, quarantine, tree)
}

/// `None` where git has to be asked.
fn differences_in_process(
    repository: &Repository,
    quarantine: &Quarantine,
    tree: &ObjectId,
) -> Option<Vec<IndexDifference>> {
    let index = repository.index_in_process()?;
    let files = tree::list_files(&repository.object_reader(Some(quarantine)).ok()?, tree).ok()?;
    let mut wanted: HashMap<RepoPath, IndexState> = files
        .into_iter()
        .map(|file| (file.path, IndexState::Entry { mode: file.mode, git_blob: file.id }))
        .collect();
    let mut found = BTreeMap::new();
    for entry in index.entries() {
        let path = RepoPath::new(entry.path).ok()?;
        let state = live::state_of(entry).ok()?;
        if state != IndexState::IntentToAdd && wanted.remove(&path) != Some(state.clone()) {
            found.insert(path, state);
        }
    }
    let absent = wanted.into_keys().filter(|path| !found.contains_key(path)).collect::<Vec<_>>();
    found.extend(absent.into_iter().map(|path| (path, IndexState::Absent)));
    Some(found.into_iter().map(|(path, state)| IndexDifference { path, state }).collect())
}

fn differences_by_git(
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
    let damaged = || Failure::new(Code::Io, "git diff-index answered in a form that is not known");
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::testing::TestRepository;

    #[test]
    fn both_ways_find_the_same_differences() {
        let home = TestRepository::new();
        for name in ["a", "b", "run", "sub/c", "sub/d", "gone"] {
            home.write_file(name, name.as_bytes());
        }
        let first = home.commit_all("first");
        home.run_git(["checkout", "-q", "-b", "other"]);
        home.write_file("b", b"theirs");
        home.commit_all("theirs");
        home.run_git(["checkout", "-q", "main"]);
        home.write_file("b", b"ours");
        let second = home.commit_all("ours");
        let merge = home.git_call().args(["merge", "-q", "other"]).run().expect("git starts");
        assert!(!merge.success(), "a conflict is wanted");
        home.write_file("a", b"staged");
        home.write_file("new", b"new");
        home.write_file("meant", b"meant");
        home.run_git(["add", "a", "new"]);
        home.run_git(["add", "-N", "meant"]);
        home.run_git(["rm", "-q", "--cached", "gone"]);
        home.run_git(["update-index", "--chmod=+x", "run"]);
        let (repository, quarantine) = (home.repository(), home.quarantine());
        for tree in [first, second] {
            let known = differences_in_process(&repository, &quarantine, &tree).expect("in process");
            let mut asked = differences_by_git(&repository, &quarantine, &tree).expect("asks git");
            // Some versions of git take what is only intended for an empty file.
            asked.retain(|one| one.path.as_bytes() != b"meant");
            assert_eq!(known, asked);
            assert!(known.len() >= 5, "{known:?}");
        }
    }
}
