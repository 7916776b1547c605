//! Drops an object that has lost its place: its bytes are stored before its last name goes, and what cannot
//! be stored stays and is named.

use super::look::{WriterWait, ask_for_writers, is_barred, only_folders};
use super::run::{DeliveryRun, operation_failed};
use crate::domain::delivery::receipt::{Note, Raw};
use crate::domain::value::digest::Sha256;
use crate::error::Result;
use crate::git::beneath::{DeepVisit, Folder, walk_at_any_depth};
use crate::git::lease::LeaseAnswer;
use rustix::fs::FileType;
use std::io::{self, Read};

/// Whether the bytes of an old object are in the receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stored {
    /// They are, if they are the preimage's.
    AsPreimage,
    /// They are not: somebody has to be told where they are now.
    No,
}

impl DeliveryRun<'_> {
    /// Drops an object that has lost its place. Bytes that are not stored yet are stored first; what somebody
    /// is still writing into, what cannot be read, or what is no file and not empty, is left and named.
    pub(super) fn dispose_of(&mut self, at: usize, room: &Folder, name: &[u8], stored: Stored) -> Result<()> {
        let path = &self.planned_step(at).change.path;
        let fail = |e: io::Error| operation_failed("drop the old version of", path, &e);
        let Some(entry) = room.look_up(name).map_err(fail)? else { return Ok(()) };
        let gone = match entry.kind {
            FileType::RegularFile => {
                let mut file = match room.open_file(name) {
                    Err(e) if is_barred(&e) => {
                        self.note_outcome(at, Note::LeftAt(self.shown_as(at, name)));
                        return Ok(());
                    }
                    file => file.map_err(fail)?,
                };
                let asked = ask_for_writers(&file, WriterWait::Long);
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes).map_err(fail)?;
                let free = match &asked {
                    LeaseAnswer::Held(lease) => lease.is_undisturbed(),
                    LeaseAnswer::CannotAsk => true,
                    LeaseAnswer::Writing => false,
                };
                if free {
                    self.store_bytes(at, &bytes, stored)?;
                }
                free
            }
            FileType::Symlink => {
                let target = room.read_link(name).map_err(fail)?;
                self.store_bytes(at, &target, stored)?;
                true
            }
            FileType::Directory => {
                let inner = room.open_subfolder(name).map_err(fail)?;
                if only_folders(&inner).map_err(fail)? {
                    remove_folders_in(&inner).map_err(fail)?;
                }
                if room.remove_empty_folder(name).map_err(fail)? {
                    return Ok(());
                }
                false
            }
            _ => false,
        };
        if gone {
            return room.unlink(name).map_err(fail);
        }
        self.note_outcome(at, Note::LeftAt(self.shown_as(at, name)));
        Ok(())
    }

    fn store_bytes(&mut self, at: usize, bytes: &[u8], stored: Stored) -> Result<()> {
        let digest = Sha256::of(bytes);
        let step = self.planned_step(at);
        let known = |raw: &Option<Raw>| matches!(raw, Some(Raw::File { sha256, .. } | Raw::Link { sha256 }) if *sha256 == digest);
        if known(&step.after) || (stored == Stored::AsPreimage && known(&step.before)) {
            return Ok(());
        }
        self.keeper.put(bytes)?;
        self.note_outcome(at, Note::EarlierEditStored(digest));
        Ok(())
    }
}

/// Removes the directories in one, as far as they are empty but for directories.
fn remove_folders_in(folder: &Folder) -> io::Result<()> {
    let visit = &mut |folder: &Folder, name: &[u8], _: &[u8]| {
        let enter = folder.enter_if_folder(name)?;
        Ok(if enter.is_some() { DeepVisit::Enter } else { DeepVisit::Pass })
    };
    walk_at_any_depth(folder, visit, &mut |above, name| above.remove_empty_folder(name).map(drop)).map(drop)
}
