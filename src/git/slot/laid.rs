//! The copy of kept scratch that lies in a slot. What a run left of it as it was laid serves the next run
//! too; whatever a run wrote, replaced, added or took away is removed, and laid anew from what is kept.
//!
//! That a file was left alone is told by its stamps, of which no run can set the time of the last change.
//! Where a file system may not give that time to every kind of write, all is laid anew each time.

use super::super::beneath::{Folder, Stamp, file_type};
use crate::domain::value::digest::Sha256;
use rustix::fs::{FileType, Stat};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// File systems that note the time of every write, through a mapping of the file too: ext2 to ext4, XFS,
/// Btrfs, F2FS, bcachefs.
const NOTING_EVERY_WRITE: &[i128] = &[0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0xca45_1a4e];

/// What was laid, entry by entry.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct LaidScratch {
    /// The stamps of what it is a copy of.
    of: Option<Sha256>,
    /// By paths; a path that is no UTF-8 is not noted, and so laid anew each time.
    entries: BTreeMap<String, LaidEntry>,
    /// The latest change of any of them.
    #[serde(skip)]
    pub(super) latest: i64,
}

/// Mode, number of names and stamp.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct LaidEntry(u32, i128, Stamp);

impl LaidEntry {
    fn of_stat(stat: &Stat) -> Self {
        Self(stat.st_mode, i128::from(stat.st_nlink), Stamp::of_stat(stat))
    }
}

impl LaidScratch {
    /// Nothing yet, of what has these stamps.
    pub(super) fn copy_of(kept: Sha256) -> Self {
        Self { of: Some(kept), ..Self::default() }
    }

    /// What was noted in a file of a copy that lies in a tree; nothing where that is none of these stamps, or
    /// cannot be told from what a run made of it.
    pub(super) fn read_note(note: &Path, tree: &Folder, kept: Sha256) -> Self {
        let read = || serde_json::from_slice::<Self>(&std::fs::read(note).ok()?).ok();
        let known = notes_every_write(tree).then(read).flatten();
        known.filter(|laid| laid.of == Some(kept)).unwrap_or_default()
    }

    /// Notes an entry as it lies there now.
    pub(super) fn note_entry(&mut self, path: &[u8], stat: &Stat) {
        let Ok(path) = std::str::from_utf8(path) else { return };
        let entry = LaidEntry::of_stat(stat);
        self.latest = self.latest.max(entry.2.ctime);
        self.entries.insert(path.to_owned(), entry);
    }

    /// True for an entry that is as it was laid. Of a folder that says nothing of what lies in it.
    pub(super) fn is_as_laid(&self, parent: &Folder, path: &[u8], stat: &Stat) -> bool {
        let laid = std::str::from_utf8(path).ok().and_then(|path| self.entries.get(path));
        let (Some(laid), now) = (laid, LaidEntry::of_stat(stat)) else { return false };
        if *laid == now {
            return true;
        }
        // What a run does in a folder changes its times, so its other properties are looked at.
        let name = path.rsplit(|b| *b == b'/').next().unwrap_or(path);
        file_type(stat) == FileType::Directory
            && (laid.0, laid.2.ino) == (now.0, now.2.ino)
            && parent.open_subfolder(name).is_ok_and(|folder| folder.has_no_attributes())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// True where the time of the last change tells of every write.
pub(super) fn notes_every_write(folder: &Folder) -> bool {
    folder.file_system().is_some_and(|kind| NOTING_EVERY_WRITE.contains(&kind))
}
