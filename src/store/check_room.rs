//! Rooms in which trees are checked that belong to no task: each has the objects of what it looks at, and
//! what was noted of them.
//!
//! A room is its holder's alone while the lock is held, so that several checks go on at once. Everything in
//! it can be made anew: what a killed check left is removed by the next holder, and a room that has grown is
//! emptied.

use super::layout::{Layout, create_private_dir, replace_unsynced};
use super::lock::LockGuard;
use crate::domain::value::digest::Sha256;
use crate::error::{Failure, Result};
use std::path::{Path, PathBuf};

/// How many checks have a room of their own.
const MOST: usize = 16;

/// From how many notes on a room is emptied.
const MOST_NOTES: usize = 256;

/// What stays in a room from one check to the next.
const KEPT: [&str; 3] = ["objects", "seen", "trees"];

/// A room that is held.
#[derive(Debug)]
#[must_use = "the room is free again when this is dropped"]
pub struct CheckRoom {
    id: String,
    folder: PathBuf,
    _lock: LockGuard,
}

impl CheckRoom {
    /// Takes a free room. Where all are in use it waits for the first, at most as long as for any lock.
    pub fn take_free(layout: &Layout) -> Result<Self> {
        // No task has such a name.
        let name = |n: usize| format!("@check-{n}");
        for n in 0..MOST {
            if let Some(lock) = LockGuard::try_acquire(&layout.task_lock(&name(n)))? {
                return Self::open_locked(layout, name(n), lock);
            }
        }
        let lock = LockGuard::acquire(&layout.task_lock(&name(0)))?;
        Self::open_locked(layout, name(0), lock)
    }

    fn open_locked(layout: &Layout, id: String, lock: LockGuard) -> Result<Self> {
        let room = Self { folder: layout.task(&id), id, _lock: lock };
        room.remove_leftovers()?;
        create_private_dir(&layout.task_objects(&room.id))?;
        Ok(room)
    }

    /// The name that stands where a task's would.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The tree that an index with these bytes stands for, where it was written here already.
    pub fn find_tree(&self, index: &Sha256) -> Option<String> {
        std::fs::read_to_string(self.tree_note(index)).ok()
    }

    /// Notes the tree. Losing the note is no harm, so a failure is none.
    pub fn note_tree(&self, index: &Sha256, tree: &str) {
        let note = self.tree_note(index);
        let folder = note.parent().unwrap_or(&self.folder);
        drop(create_private_dir(folder).and_then(|()| replace_unsynced(&note, tree.as_bytes())));
    }

    fn tree_note(&self, index: &Sha256) -> PathBuf {
        self.folder.join("trees").join(index.to_string())
    }

    fn remove_leftovers(&self) -> Result<()> {
        let full = KEPT[1..].iter().any(|name| count_entries(&self.folder.join(name)) > MOST_NOTES);
        for entry in std::fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let kept = !full && KEPT.iter().any(|name| entry.file_name() == *name);
            if !kept {
                remove_whole(&entry.path())?;
            }
        }
        Ok(())
    }
}

fn count_entries(folder: &Path) -> usize {
    std::fs::read_dir(folder).map_or(0, Iterator::count)
}

fn remove_whole(path: &Path) -> Result<()> {
    let folder = path.symlink_metadata().is_ok_and(|found| found.is_dir());
    let removed = if folder { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    removed.map_err(|e| Failure::io_of_ours("remove", path, &e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_is_its_holders_and_grows_no_further_than_its_bound() {
        let place = tempfile::tempdir().expect("a directory");
        let layout = Layout::new(place.path());
        let (first, second) = (CheckRoom::take_free(&layout), CheckRoom::take_free(&layout));
        let (first, second) = (first.expect("free"), second.expect("free"));
        assert_ne!(first.id(), second.id());
        assert_eq!(layout.remains().expect("looks"), None, "a room is no task");
        let digest = Sha256::of(b"index");
        first.note_tree(&digest, "tree");
        std::fs::create_dir(first.folder.join("index-left")).expect("made");
        drop(first);
        let again = CheckRoom::take_free(&layout).expect("free");
        assert_eq!(again.find_tree(&digest).as_deref(), Some("tree"));
        assert!(!again.folder.join("index-left").exists(), "what a killed check left goes");
        for n in 0..=MOST_NOTES {
            again.note_tree(&Sha256::of(n.to_string().as_bytes()), "tree");
        }
        drop(again);
        let emptied = CheckRoom::take_free(&layout).expect("free");
        assert_eq!(emptied.find_tree(&digest), None);
        assert!(layout.task_objects(emptied.id()).is_dir());
    }
}
