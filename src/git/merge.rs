//! A candidate carried over to another base: three-way, path by path, in memory, and only for the paths that
//! it changes.
//!
//! Renames are not guessed: a change lands in the file that it was made for or nowhere. Lines are merged as
//! git merges them; a file that its owners declared unmergeable (`-merge`, `binary`, a merge driver of their
//! own) is a conflict where both sides changed it.

use super::command::Git;
use super::convert::Conversions;
use super::objects::Objects;
use super::private_index::{PrivateIndex, PrivateIndexEntry};
use super::repository::Repository;
use super::tree;
use crate::domain::change::patch::Change;
use crate::domain::value::digest::{FileState, ObjectId, TreeObject};
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Failure, Result};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

/// How the sides are called in conflict markers.
#[derive(Debug, Clone, Copy)]
pub struct Labels<'a> {
    pub theirs: &'a str,
    pub ours: &'a str,
}

/// Lines of three versions put together.
#[derive(Debug)]
pub struct Merged {
    /// The result; with conflict markers where it is not clean.
    pub bytes: Vec<u8>,
    /// True where no line was changed on both sides.
    pub clean: bool,
}

/// What came of the candidate on the new base.
#[derive(Debug)]
pub struct MergeOutcome {
    /// The new base with everything that could be carried over; conflicts are in it with markers.
    pub tree: ObjectId,
    /// Paths that could not be carried over, sorted.
    pub conflicts: Vec<MergeConflict>,
}

/// A path where both sides changed the same thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeConflict {
    pub path: RepoPath,
    /// What the new base has there.
    pub theirs: Option<TreeObject>,
    /// True where the tree holds the file with conflict markers.
    pub marked: bool,
}

/// Merges lines as git does; `None` where one of the versions is no text. `folder` is a private place for
/// what git reads.
pub fn merge_lines(
    repository: &Repository,
    folder: &Path,
    [base, ours, theirs]: [&[u8]; 3],
    labels: Labels<'_>,
) -> Result<Option<Merged>> {
    if [base, ours, theirs].iter().any(|text| text.contains(&0)) {
        return Ok(None);
    }
    let place = tempfile::Builder::new().prefix("merge-").tempdir_in(folder);
    let place = place.map_err(|e| Failure::io("make a temporary directory in", folder, &e))?;
    for (name, text) in [("theirs", theirs), ("base", base), ("ours", ours)] {
        let file = place.path().join(name);
        std::fs::File::create_new(&file)
            .and_then(|mut file| file.write_all(text))
            .map_err(|e| Failure::io("write", &file, &e))?;
    }
    // The order of the markers is git's: what is there first, then what comes.
    let labels = ["-L", labels.theirs, "-L", "base", "-L", labels.ours];
    let call = Git::new(repository.environment(), None).cwd(place.path());
    let call = call.with_setting("merge.conflictStyle=merge").args(["merge-file", "-p", "-q"]);
    let merged = call.args(labels).args(["theirs", "base", "ours"]).run()?;
    match merged.code {
        // The number of conflicts; git counts up to 127.
        Some(conflicts @ 0..=127) => Ok(Some(Merged { bytes: merged.stdout, clean: conflicts == 0 })),
        _ => Err(merged.to_failure()),
    }
}

/// Carries the changes of a candidate over to `index`, which holds the new base.
pub fn carry_over(
    index: &PrivateIndex<'_>,
    attributes: &ObjectId,
    changes: &[Change],
    onto: &ObjectId,
    labels: Labels<'_>,
) -> Result<MergeOutcome> {
    let objects = index.object_reader()?;
    let conversions = index.conversions();
    let paths: Vec<RepoPath> = changes.iter().map(|change| change.path.clone()).collect();
    let unmergeable = conversions.unmergeable_paths(attributes, &paths)?;
    let deleted = paths_making_room(&objects, onto, changes)?;
    let work = MergeWork { objects, conversions, folder: index.folder(), onto, labels, deleted };
    let (mut entries, mut conflicts): (Vec<PrivateIndexEntry>, Vec<MergeConflict>) = (Vec::new(), Vec::new());
    for (change, unmergeable) in changes.iter().zip(unmergeable) {
        match work.carry_path(change, unmergeable)? {
            Carried::Entry(entry) => entries.push((change.path.clone(), entry)),
            Carried::Same => {}
            Carried::Conflict { theirs, marked } => {
                let path = change.path.clone();
                conflicts.push(MergeConflict { path: path.clone(), theirs, marked: marked.is_some() });
                entries.extend(marked.map(|entry| (path, Some(entry))));
            }
        }
    }
    index.update_entries(&entries)?;
    Ok(MergeOutcome { tree: index.write_tree()?, conflicts })
}

/// The paths that the candidate deletes and the new base still has unchanged: what is in conflict stays and
/// makes no room.
fn paths_making_room<'c>(
    objects: &Objects,
    onto: &ObjectId,
    changes: &'c [Change],
) -> Result<BTreeSet<&'c RepoPath>> {
    let mut gone = BTreeSet::new();
    for change in changes.iter().filter(|change| change.new.is_none()) {
        let theirs = tree::find_entry(objects, onto, &change.path)?;
        if theirs.is_none() || theirs == change.old.as_ref().map(FileState::tree_object) {
            gone.insert(&change.path);
        }
    }
    Ok(gone)
}

enum Carried {
    Entry(Option<TreeObject>),
    Same,
    Conflict { theirs: Option<TreeObject>, marked: Option<TreeObject> },
}

struct MergeWork<'a> {
    objects: Objects,
    conversions: Conversions<'a>,
    folder: &'a Path,
    onto: &'a ObjectId,
    labels: Labels<'a>,
    deleted: BTreeSet<&'a RepoPath>,
}

impl MergeWork<'_> {
    fn carry_path(&self, change: &Change, unmergeable: bool) -> Result<Carried> {
        let theirs = tree::find_entry(&self.objects, self.onto, &change.path)?;
        let (old, new) = (
            change.old.as_ref().map(FileState::tree_object),
            change.new.as_ref().map(FileState::tree_object),
        );
        if theirs == new {
            return Ok(Carried::Same);
        }
        if theirs == old {
            return Ok(match new.is_some() && self.is_in_the_way(&change.path)? {
                true => Carried::Conflict { theirs, marked: None },
                false => Carried::Entry(new),
            });
        }
        match (&old, &new, &theirs) {
            (Some(old), Some(new), Some(their))
                if [old, new, their].iter().all(|v| v.mode.is_regular()) && !unmergeable =>
            {
                self.merge_content(old, new, their)
            }
            // What the other side removed stays visible as the candidate has it.
            (Some(_), Some(new), None) => Ok(Carried::Conflict { theirs, marked: Some(new.clone()) }),
            _ => Ok(Carried::Conflict { theirs, marked: None }),
        }
    }

    fn merge_content(&self, old: &TreeObject, new: &TreeObject, theirs: &TreeObject) -> Result<Carried> {
        let Some(mode) = one_of(&old.mode, &new.mode, &theirs.mode) else {
            return Ok(Carried::Conflict { theirs: Some(theirs.clone()), marked: None });
        };
        let id = match one_of(&old.id, &new.id, &theirs.id) {
            Some(id) => id.clone(),
            None => {
                let read = |version: &TreeObject| self.objects.read_blob(&version.id);
                let (old, new, their) = (read(old)?, read(new)?, read(theirs)?);
                let Some(merged) =
                    merge_lines(self.conversions.repository, self.folder, [&old, &new, &their], self.labels)?
                else {
                    return Ok(Carried::Conflict { theirs: Some(theirs.clone()), marked: None });
                };
                let id = super::convert::write_blob(&self.conversions, merged.bytes)?;
                if !merged.clean {
                    return Ok(Carried::Conflict {
                        theirs: Some(theirs.clone()),
                        marked: Some(TreeObject { mode: *mode, id }),
                    });
                }
                id
            }
        };
        Ok(Carried::Entry(Some(TreeObject { mode: *mode, id })))
    }

    /// True where the new base has a directory at the path, or a file where one of its directories has to be,
    /// that the candidate does not remove.
    fn is_in_the_way(&self, path: &RepoPath) -> Result<bool> {
        for above in path.ancestors() {
            if tree::find_entry(&self.objects, self.onto, &above)?.is_some() && !self.deleted.contains(&above)
            {
                return Ok(true);
            }
        }
        let beneath = tree::files_beneath(&self.objects, self.onto, path)?;
        Ok(beneath.iter().any(|file| !self.deleted.contains(&file.path)))
    }
}

/// The side that changed, or either where both are the same.
fn one_of<'v, T: PartialEq>(old: &T, ours: &'v T, theirs: &'v T) -> Option<&'v T> {
    if theirs == old || ours == theirs {
        return Some(ours);
    }
    (ours == old).then_some(theirs)
}
