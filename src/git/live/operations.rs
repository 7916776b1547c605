//! Merges, rebases and the like that the user has not finished.
//!
//! What touches a path: for a merge, cherry-pick, revert or `am`, that the index no longer has what HEAD has
//! (that is how their result lies there); for a rebase or bisect, that HEAD has another version than the
//! place where the user comes from and will return to.

use super::index::Index;
use crate::domain::change::patch::Change;
use crate::domain::delivery::IndexState;
use crate::domain::value::digest::ObjectId;
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Code, Failure, Result};
use crate::git::{Objects, Repository, tree};

/// File in the git directory, name for people, and the file that says where the user comes from.
const OPERATIONS: &[(&str, &str, Option<&str>)] = &[
    ("MERGE_HEAD", "merge", None),
    ("CHERRY_PICK_HEAD", "cherry-pick", None),
    ("REVERT_HEAD", "revert", None),
    ("rebase-merge", "rebase", Some("rebase-merge/orig-head")),
    ("rebase-apply", "rebase", Some("rebase-apply/orig-head")),
    ("BISECT_LOG", "bisect", Some("BISECT_START")),
];

/// Refuses where an unfinished operation touches one of the paths; the failure names both.
pub fn refuse_unfinished(repository: &Repository, changes: &[Change], index: &Index) -> Result<()> {
    let git_dir = repository.git_dir();
    let under_way: Vec<_> = OPERATIONS.iter().filter(|(file, ..)| git_dir.join(file).exists()).collect();
    if under_way.is_empty() {
        return Ok(());
    }
    let objects = repository.object_reader(None)?;
    let head = repository.resolve_revision("HEAD", "tree")?;
    for (_, name, origin) in under_way {
        let origin = match origin.and_then(|file| std::fs::read_to_string(git_dir.join(file)).ok()) {
            Some(revision) => repository.resolve_revision(revision.trim(), "tree")?,
            None => None,
        };
        let mut touched = Vec::new();
        for change in changes {
            let at_head = tree_entry_state(&objects, head.as_ref(), &change.path)?;
            let moved = match &origin {
                Some(origin) => tree_entry_state(&objects, Some(origin), &change.path)? != at_head,
                None => false,
            };
            if moved || index.entry_at(&change.path).state != at_head {
                touched.push(change.path.clone());
            }
        }
        if !touched.is_empty() {
            return Err(operation_unfinished(name, &touched));
        }
    }
    Ok(())
}

fn tree_entry_state(objects: &Objects, of: Option<&ObjectId>, path: &RepoPath) -> Result<IndexState> {
    let found = of.map(|of| tree::find_entry(objects, of, path)).transpose()?.flatten();
    Ok(found
        .map_or(IndexState::Absent, |object| IndexState::Entry { mode: object.mode, git_blob: object.id }))
}

fn operation_unfinished(name: &str, touched: &[RepoPath]) -> Failure {
    let first = touched.first().map(ToString::to_string).unwrap_or_default();
    let message =
        format!("nothing was written: an unfinished {name} touches {first}, which the change touches too");
    Failure::new(Code::DeliveryConflict, message)
        .subject(first)
        .detail("operation", name)
        .detail("paths", touched)
        .remedy(format!("Finish or abort the {name}, then deliver again."), ["git", "status"])
}
