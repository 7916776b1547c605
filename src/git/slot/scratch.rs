//! Kept scratch: what a run on a base commit left in a slot, and the copies of it that later runs begin with.
//!
//! What is kept is moved out of the slot's tree as it is and never written again, so that the stamps of its
//! entries tell whether somebody touched it since. Each run gets a copy with the same times: a tool that goes
//! by them finds what it built to be newer than the files that it was built from, and older than those that
//! came later. A copy shares the blocks where the file system can do that, and is laid but
//! once where a run left it alone ([`super::laid`]).

use super::super::beneath::{
    Folder, Stamp, file_type, path_operation_failed, remove_content, shares_blocks, timestamps_of,
    walk_folder,
};
use super::super::materialise::{HeldFile, pass_tick};
use super::laid::LaidScratch;
use crate::domain::value::digest::Sha256;
use crate::error::Result;
use rustix::fs::{FileType, Stat};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// How many bytes are copied where the file system cannot share them; a run begins cold beyond that.
const MOST_COPIED: u64 = 4 << 30;

/// What is known of a slot's kept scratch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum KeptScratch {
    /// The base's run went wrong, so that there is nothing to trust; it is not tried again for each run.
    Nothing,
    /// A base's run left it.
    Kept {
        /// The digest of all its entries' stamps.
        stamps: Sha256,
        /// The latest time of a write in it, in nanoseconds.
        latest: i64,
        /// What its setup was made from.
        setup: Option<Sha256>,
    },
}

impl KeptScratch {
    /// Waits until what is written from now on is later than everything in it. False where the clock went
    /// back behind it.
    pub(super) fn is_past(&self) -> bool {
        match self {
            Self::Nothing => true,
            Self::Kept { latest, .. } => pass_tick(*latest),
        }
    }
}

/// Moves what lies in a slot's tree and is not ours to the folder of kept scratch, in place of what that
/// holds. `None` where it has times that are still to come: nothing could be later than those.
pub(super) fn keep_scratch<'o>(
    tree: &Path,
    kept: &Path,
    setup: Option<Sha256>,
    whose: &dyn Fn(&[u8]) -> Ours<'o>,
) -> Result<Option<KeptScratch>> {
    let target = Folder::open_path(kept)?;
    remove_content(&target)?;
    walk_folder(&Folder::open_path(tree)?, &mut |parent, path, _| match whose(path) {
        // Ours is too the git directory that the slot has.
        _ if path == b".git" => Ok(false),
        Ours::File(_) => Ok(false),
        Ours::Folder => Ok(true),
        Ours::Not => {
            let moved = || -> io::Result<()> {
                let mut place = Folder::open_path(kept).map_err(|e| io::Error::other(e.to_string()))?;
                let mut names: Vec<&[u8]> = path.split(|b| *b == b'/').collect();
                let name = names.pop().unwrap_or(path);
                for above in names {
                    place = place.make_subfolder(above)?;
                }
                parent.move_to(name, &place, name)
            };
            moved().map_err(|e| path_operation_failed("keep", path, e))?;
            Ok(false)
        }
    })?;
    let mut seen = SeenEntries::default();
    walk_folder(&target, &mut |_, path, stat| {
        seen.add_entry(path, stat);
        Ok(true)
    })?;
    let (stamps, latest) = seen.digest();
    Ok(pass_tick(latest).then_some(KeptScratch::Kept { stamps, latest, setup }))
}

/// Whose an entry of a slot's tree is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Ours<'o> {
    File(&'o HeldFile),
    Folder,
    Not,
}

/// Copies kept scratch into a slot's tree, but for what of an earlier copy lies there as it was laid. `None`
/// where it is not what was kept, is too much, or does not fit what lies there; the tree then holds a part of
/// it.
pub(super) fn lay_scratch(
    kept: &Path,
    tree: &Path,
    stamps: Sha256,
    before: &LaidScratch,
) -> Result<Option<LaidScratch>> {
    let mut copy =
        ScratchCopy { before, laid: LaidScratch::copy_of(stamps), seen: SeenEntries::default(), copied: 0 };
    let (from, to) = (Folder::open_path(kept)?, Folder::open_path(tree)?);
    let is_whole = copy.copy_folder(&from, &to, &mut Vec::new()).is_ok() && copy.seen.digest().0 == stamps;
    // What is written from now on has another time than what was laid.
    Ok((is_whole && pass_tick(copy.laid.latest)).then_some(copy.laid))
}

/// The stamps of entries, in the order of a walk.
#[derive(Default)]
struct SeenEntries {
    bytes: Vec<u8>,
    latest: i64,
}

impl SeenEntries {
    fn add_entry(&mut self, path: &[u8], stat: &Stat) {
        let stamp = Stamp::of_stat(stat);
        self.latest = self.latest.max(stamp.mtime);
        self.bytes.extend(path);
        self.bytes.push(0);
        for number in [stamp.ino, stamp.size, u64::from(stat.st_mode)] {
            self.bytes.extend(number.to_le_bytes());
        }
        for time in [stamp.mtime, stamp.ctime] {
            self.bytes.extend(time.to_le_bytes());
        }
    }

    fn digest(&self) -> (Sha256, i64) {
        (Sha256::of(&self.bytes), self.latest)
    }
}

struct ScratchCopy<'b> {
    before: &'b LaidScratch,
    laid: LaidScratch,
    seen: SeenEntries,
    copied: u64,
}

impl ScratchCopy<'_> {
    /// The entries are seen in the order in which [`walk_folder`] visits them.
    fn copy_folder(&mut self, from: &Folder, to: &Folder, path: &mut Vec<u8>) -> io::Result<()> {
        let length = path.len();
        for name in from.sorted_names()? {
            if length > 0 {
                path.push(b'/');
            }
            path.extend(&name);
            let stat = from.stat(&name)?;
            self.seen.add_entry(path, &stat);
            let left = || to.stat(&name).is_ok_and(|there| self.before.is_as_laid(to, path, &there));
            match file_type(&stat) {
                FileType::Directory => {
                    let (below, copy) = (from.open_subfolder(&name)?, to.make_subfolder(&name)?);
                    self.copy_folder(&below, &copy, path)?;
                    to.set_times(&name, &timestamps_of(&stat))?;
                }
                FileType::RegularFile | FileType::Symlink if left() => {}
                FileType::RegularFile => self.copy_file(from, to, &name, &stat)?,
                FileType::Symlink => {
                    to.create_link(&name, &from.read_link(&name)?)?;
                    to.set_times(&name, &timestamps_of(&stat))?;
                }
                _ => {
                    path.truncate(length);
                    continue;
                }
            }
            self.laid.note_entry(path, &to.stat(&name)?);
            path.truncate(length);
        }
        Ok(())
    }

    fn copy_file(&mut self, from: &Folder, to: &Folder, name: &[u8], stat: &Stat) -> io::Result<()> {
        let mut source = from.open_file(name)?;
        let mut target = to.create_file(name, stat.st_mode & 0o777)?;
        if !shares_blocks(&target, &source) {
            self.copied = self.copied.saturating_add(Stamp::of_stat(stat).size);
            if self.copied > MOST_COPIED {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            io::copy(&mut source, &mut target)?;
        }
        to.set_times(name, &timestamps_of(stat))
    }
}
