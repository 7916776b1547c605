//! One path: the change itself, the look at what came out, and the way back.
//!
//! Every change of a name is an exchange or a move to a free name, so none of them can destroy anything. The only thing that is ever
//! unlinked is what was looked at under a name that nobody else uses: our own object unchanged, or an old one whose bytes are stored.

use super::look::{Look, Wait, ask, look, only_folders, ours};
use super::{MANY, Run, Stop, failed, folder};
use crate::domain::delivery::{Reason, Step};
use crate::domain::digest::Sha256;
use crate::domain::receipt::{Inode, Note, Raw};
use crate::domain::recovery::Act;
use crate::domain::repo_path::RepoPath;
use crate::error::{Failure, Result};
use crate::git::fsops::{Barred, Folder};
use crate::git::lease::Asked;
use rustix::fs::FileType;
use std::io::{self, ErrorKind, Read};
use std::rc::Rc;

/// How often a path is tried again while somebody else keeps changing it.
const PATIENCE: usize = 100;

/// A step's two names, in open directories.
struct Names<'a> {
    path: &'a RepoPath,
    folder: Rc<Folder>,
    room: Rc<Folder>,
    temporary: &'a [u8],
}

impl Names<'_> {
    fn name(&self) -> &[u8] {
        self.path.file_name()
    }
}

impl<'a> Run<'a> {
    fn names(&self, at: usize) -> Result<Names<'a>> {
        let path = &self.step(at).change.path;
        let spot = self.temporary(at)?;
        Ok(Names {
            path,
            folder: folder(self.top, path.parent().as_ref())?,
            room: folder(self.top, spot.folder.as_ref())?,
            temporary: spot.name.as_bytes(),
        })
    }

    /// The directory of a step's temporary name. The path's own may have made room for a file by now.
    fn room(&self, at: usize) -> Result<Rc<Folder>> {
        folder(self.top, self.temporary(at)?.folder.as_ref())
    }

    /// Carries out a step. Where it meets something else than expected, the path is as it was when this returns, or the user's.
    pub(super) fn commit(&mut self, at: usize) -> std::result::Result<(), Stop> {
        let step = self.step(at);
        if step.step == Step::Create {
            self.make_folders(&step.change.path).map_err(|stop| stop.at(at))?;
        }
        if let Err(barred) = self.top.folder(step.change.path.parent().as_ref()) {
            return Err(barred_by(barred, &step.change.path).at(at));
        }
        let names = self.names(at)?;
        let done = match step.step {
            Step::Create => self.create(&names),
            Step::Replace => self.replace(at, &names),
            Step::Delete => self.remove(&names),
            Step::Already => return Ok(()),
        };
        done.map_err(|stop| stop.at(at))?;
        let seen = match &step.before {
            Some(before) => self.look_at_held(at, &names.room, before)?,
            None => None,
        };
        let reason = match seen {
            Some(reason) => Some(reason),
            None => self.moved_away(&names),
        };
        match reason {
            None => Ok(()),
            Some(reason) => {
                self.swap_back(at, &names)?;
                Err(Stop::Conflict(at, reason))
            }
        }
    }

    fn create(&mut self, names: &Names<'_>) -> std::result::Result<(), Halt> {
        match names.room.move_to(names.temporary, &names.folder, names.name()) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => Err(Halt::Conflict(Reason::Appeared)),
            other => Ok(other.map_err(|e| failed("create", names.path, &e))?),
        }
    }

    fn remove(&mut self, names: &Names<'_>) -> std::result::Result<(), Halt> {
        match names.folder.move_to(names.name(), &names.room, names.temporary) {
            Err(e) if e.kind() == ErrorKind::NotFound => Err(Halt::Conflict(Reason::Missing)),
            other => Ok(other.map_err(|e| failed("delete", names.path, &e))?),
        }
    }

    fn replace(&mut self, at: usize, names: &Names<'_>) -> std::result::Result<(), Halt> {
        let staged = names.folder.entry(names.temporary).map_err(|e| failed("find", names.path, &e))?;
        if !staged.is_some_and(|entry| self.is_staged(at, &entry)) {
            let message = format!("the staged version of {} is gone", names.path);
            return Err(Failure::new(crate::error::Code::Io, message).subject(names.path.to_string()).into());
        }
        match self.exchange(at, names) {
            Err(e) if e.kind() == ErrorKind::NotFound => Err(Halt::Conflict(Reason::Missing)),
            other => Ok(other.map_err(|e| failed("replace", names.path, &e))?),
        }
    }

    /// Lets path and temporary name change places. Where the file system has no exchange, by three moves that cannot overwrite; the path is absent
    /// for a moment, which the receipt says, but a save that falls into it is not lost.
    fn exchange(&mut self, at: usize, names: &Names<'_>) -> io::Result<()> {
        match names.folder.exchange(names.temporary, &names.folder, names.name()) {
            Err(e) if e.kind() == ErrorKind::Unsupported => {}
            other => return other,
        }
        self.note(at, Note::NotExchanged);
        let (folder, aside) = (&names.folder, aside(names.temporary));
        folder.move_to(names.name(), folder, &aside)?;
        folder.move_to(names.temporary, folder, names.name())?;
        folder.move_to(&aside, folder, names.temporary)
    }

    /// Puts in order what a file system without exchange and without moves to a free name can leave behind: an object with two names in
    /// the middle of a move (the name that only we use goes), and an exchange by moves that was cut off (it is undone or completed).
    pub(super) fn tidy(&mut self, at: usize) -> Result<()> {
        let Ok(names) = self.names(at) else { return Ok(()) };
        let aside = aside(names.temporary);
        let fail = |e: io::Error| failed("put in order", names.path, &e);
        let inode = |folder: &Folder, name: &[u8]| -> Result<Option<Inode>> {
            Ok(folder.entry(name).map_err(fail)?.map(|e| e.inode))
        };
        let live = inode(&names.folder, names.name())?;
        let mut temporary = inode(&names.room, names.temporary)?;
        let mut spare = inode(&names.room, &aside)?;
        if spare.is_some() && (spare == live || spare == temporary) {
            names.room.unlink(&aside).map_err(fail)?;
            spare = None;
        }
        if temporary.is_some() && temporary == live {
            names.room.unlink(names.temporary).map_err(fail)?;
            temporary = None;
        }
        match (spare, live, temporary) {
            (None, ..) => Ok(()),
            (_, None, _) => names.room.move_to(&aside, &names.folder, names.name()).map_err(fail),
            (_, _, None) => names.room.move_to(&aside, &names.room, names.temporary).map_err(fail),
            _ => self.dispose(at, &names.room, &aside, Stored::No),
        }
    }

    /// Looks at what came out. `None`: as expected.
    fn look_at_held(&mut self, at: usize, room: &Folder, before: &Raw) -> Result<Option<Reason>> {
        match look(room, self.temporary(at)?.name.as_bytes(), before, Wait::Little) {
            Ok(Look::Same) => Ok(None),
            Ok(Look::SameUnasked) => {
                self.note(at, Note::LeaseNotChecked);
                Ok(None)
            }
            Ok(Look::Other(reason)) => Ok(Some(reason)),
            // What cannot be looked at is not as expected; the way back does not need to read it.
            Err(_) => Ok(Some(Reason::Edited)),
        }
    }

    /// A directory that the user moved meanwhile took our change with it; seen by resolving the path anew.
    fn moved_away(&self, names: &Names<'_>) -> Option<Reason> {
        match self.top.resolve(names.path.parent().as_ref()) {
            Ok(now) if now.inode == names.folder.inode => None,
            Ok(_) | Err(Barred::Missing | Barred::Error(_)) => Some(Reason::Missing),
            Err(Barred::Link(_)) => Some(Reason::ParentIsLink),
            Err(Barred::NotFolder(_)) => Some(Reason::ParentIsFile),
        }
    }

    /// The last look, when everything is in place: whoever had got hold of an old object before it lost its name had time to write.
    pub(super) fn confirm(&mut self, at: usize) -> std::result::Result<(), Stop> {
        let Some(before) = &self.step(at).before else { return Ok(()) };
        let room = self.room(at)?;
        match self.look_at_held(at, &room, before)? {
            None => Ok(()),
            Some(reason) => Err(Stop::Conflict(at, reason)),
        }
    }

    fn make_folders(&self, path: &RepoPath) -> std::result::Result<(), Halt> {
        for above in path.ancestors().iter().filter(|above| self.plan.folders.contains(above)) {
            let parent =
                self.top.folder(above.parent().as_ref()).map_err(|barred| barred_by(barred, above))?;
            parent.make_folder(above.file_name()).map_err(|e| failed("make the directory", above, &e))?;
        }
        Ok(())
    }

    /// Undoes the change of names of a step that was just carried out. The staged object keeps its temporary name.
    fn swap_back(&mut self, at: usize, names: &Names<'_>) -> Result<()> {
        let fail = |e: io::Error| failed("put back", names.path, &e);
        match self.step(at).step {
            Step::Replace => self.exchange_back(at, names),
            Step::Create => match names.folder.move_to(names.name(), &names.room, names.temporary) {
                Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
                Err(e) => Err(fail(e)),
                Ok(()) if self.is_pristine(at, names)? => Ok(()),
                // What we took was changed, or another's: it goes back and stays.
                Ok(()) => {
                    self.note(at, Note::LaterEditKept);
                    self.give_back(at, names)
                }
            },
            Step::Delete => self.give_back(at, names),
            Step::Already => Ok(()),
        }
    }

    /// Moves what is held to the path, if that is free. If not, the user has a later version there: that one stays.
    fn give_back(&mut self, at: usize, names: &Names<'_>) -> Result<()> {
        if self.plan.folders.contains(names.path) {
            self.remove_folders()?;
        }
        match names.room.move_to(names.temporary, &names.folder, names.name()) {
            Ok(()) => Ok(()),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {
                self.note(at, Note::LaterEditKept);
                self.dispose(at, &names.room, names.temporary, Stored::No)
            }
            Err(e) => Err(failed("put back", names.path, &e)),
        }
    }

    /// Exchanges until the staged object, untouched, is under the temporary name; or until the user's latest version is at the
    /// path, and the one before it, which they replaced themselves, is what remains.
    fn exchange_back(&mut self, at: usize, names: &Names<'_>) -> Result<()> {
        let fail = |e: io::Error| failed("put back", names.path, &e);
        let inode = |name: &[u8]| -> Result<Option<Inode>> {
            Ok(names.folder.entry(name).map_err(fail)?.map(|e| e.inode))
        };
        let held = inode(names.temporary)?;
        for _ in 0..PATIENCE {
            if self.path_is_pristine(at, names)? {
                match self.exchange(at, names) {
                    Ok(()) if self.is_pristine(at, names)? => return Ok(()),
                    Ok(()) => self.return_the_later(at, names, held)?,
                    Err(e) if e.kind() == ErrorKind::NotFound => {}
                    Err(e) => return Err(fail(e)),
                }
            } else if inode(names.name())?.is_none() {
                match names.folder.move_to(names.temporary, &names.folder, names.name()) {
                    Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                    other => return other.map_err(fail),
                }
            } else {
                self.note(at, Note::LaterEditKept);
                return self.dispose(at, &names.folder, names.temporary, Stored::No);
            }
        }
        Err(fail(ErrorKind::ResourceBusy.into()))
    }

    /// An exchange brought out something later than what was staged: it goes to the path again.
    fn return_the_later(&mut self, at: usize, names: &Names<'_>, held: Option<Inode>) -> Result<()> {
        let fail = |e: io::Error| failed("put back", names.path, &e);
        for _ in 0..PATIENCE {
            match self.exchange(at, names) {
                Ok(()) => {}
                Err(e) if e.kind() == ErrorKind::NotFound => return self.give_back(at, names),
                Err(e) => return Err(fail(e)),
            }
            let out = names.folder.entry(names.temporary).map_err(fail)?;
            if out.map(|e| e.inode) == held {
                return Ok(());
            }
        }
        Err(fail(ErrorKind::ResourceBusy.into()))
    }

    fn path_is_pristine(&self, at: usize, names: &Names<'_>) -> Result<bool> {
        self.holds_pristine(at, &names.folder, names.name(), names.path)
    }

    fn is_pristine(&self, at: usize, names: &Names<'_>) -> Result<bool> {
        self.holds_pristine(at, &names.room, names.temporary, names.path)
    }

    /// True where a name holds the staged object, and nobody has changed it or is about to.
    fn holds_pristine(&self, at: usize, folder: &Folder, name: &[u8], path: &RepoPath) -> Result<bool> {
        let fail = |e: io::Error| failed("look at", path, &e);
        let Some(after) = &self.step(at).after else { return Ok(false) };
        let staged = folder.entry(name).map_err(fail)?.is_some_and(|entry| self.is_staged(at, &entry));
        match look(folder, name, &ours(after), Wait::Long) {
            Ok(seen) => Ok(staged && seen.is_same()),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
            Err(e) => Err(fail(e)),
        }
    }

    /// Takes one step back, as decided from what was seen of it.
    pub(super) fn undo(&mut self, at: usize, act: Act) -> Result<()> {
        match act {
            Act::Nothing | Act::Commit | Act::Finish => Ok(()),
            Act::DropStaged => self.drop_staged(at),
            Act::KeepLater => self.keep_later(at),
            Act::Remake => {
                self.remake(at)?;
                self.put_back(at)
            }
            Act::PutBack => self.put_back(at),
        }
    }

    fn put_back(&mut self, at: usize) -> Result<()> {
        let names = self.names(at)?;
        self.swap_back(at, &names)?;
        self.drop_staged(at)
    }

    pub(super) fn keep_later(&mut self, at: usize) -> Result<()> {
        self.note(at, Note::LaterEditKept);
        let room = self.room(at)?;
        self.dispose(at, &room, self.temporary(at)?.name.as_bytes(), Stored::No)
    }

    /// The old object has lost its temporary name (somebody tidied up): its stored bytes take its place.
    fn remake(&mut self, at: usize) -> Result<()> {
        use std::io::Write;
        let names = self.names(at)?;
        let fail = |e: io::Error| failed("restore", names.path, &e);
        let lost = || Failure::internal(format!("the old bytes of {} were not stored", names.path));
        let kept = self.staged.kept.get(at).cloned().flatten().ok_or_else(lost)?;
        let bytes = crate::git::live::part(&(self.keeper.get)(&kept.blob)?, &kept).ok_or_else(lost)?;
        match &self.step(at).before {
            Some(Raw::Link { .. }) => names.room.symlink(names.temporary, &bytes).map_err(fail),
            Some(Raw::File { permissions, .. }) => {
                let mut file = names.room.create(names.temporary, 0o600).map_err(fail)?;
                file.write_all(&bytes).map_err(fail)?;
                if let Ok(now) = names.folder.open(names.name()) {
                    super::attributes::carry_over(&now, &file).map_err(fail)?;
                }
                let bits = rustix::fs::Mode::from_raw_mode(permissions.unwrap_or(0o600));
                rustix::fs::fchmod(&file, bits).map_err(|e| fail(e.into()))?;
                file.sync_all().map_err(fail)
            }
            _ => Err(lost()),
        }
    }

    /// Removes a staged object that is not in use.
    pub(super) fn drop_staged(&mut self, at: usize) -> Result<()> {
        let Some(spot) = &self.step(at).temporary else { return Ok(()) };
        let room = match self.top.folder(spot.folder.as_ref()) {
            Ok(room) => room,
            Err(_) => {
                self.note(at, Note::LeftAt(self.shown(at)));
                return Ok(());
            }
        };
        let fail = |e: io::Error| failed("remove the staged version of", &self.step(at).change.path, &e);
        let Some(entry) = room.entry(spot.name.as_bytes()).map_err(fail)? else { return Ok(()) };
        // Before the inode numbers were recorded nothing had been exchanged yet: then the name alone says that it is ours.
        let recorded = self.staged.objects.get(at).copied().flatten().is_some();
        if recorded && !self.is_staged(at, &entry) {
            return Ok(());
        }
        room.unlink(spot.name.as_bytes()).map_err(fail)
    }

    pub(super) fn drop_all_staged(&mut self) -> Result<()> {
        let mut all = Ok(());
        for at in 0..self.plan.steps.len() {
            if self.step(at).after.is_some() {
                all = all.and(self.drop_staged(at));
            }
        }
        all
    }

    /// Everything is in place and confirmed: drops what came out, and directories that were emptied.
    pub(super) fn drop_held(&mut self, acts: &[Act]) -> Result<()> {
        for (at, act) in acts.iter().enumerate() {
            match (act, &self.step(at).before) {
                (Act::Commit | Act::Finish, Some(_)) => {
                    let room = self.room(at)?;
                    self.dispose(at, &room, self.temporary(at)?.name.as_bytes(), Stored::AsPreimage)?;
                }
                (Act::KeepLater, _) => self.keep_later(at)?,
                (Act::DropStaged, _) => self.drop_staged(at)?,
                _ => {}
            }
        }
        self.remove_emptied()?;
        self.sync_folders().map_err(|e| Failure::io("sync", &self.plan.top, &e))
    }

    /// Drops an object that has lost its place. Bytes that are not stored yet are stored first; what somebody is still writing into,
    /// or what is no file and not empty, is left and named.
    fn dispose(&mut self, at: usize, room: &Folder, name: &[u8], stored: Stored) -> Result<()> {
        let path = &self.step(at).change.path;
        let fail = |e: io::Error| failed("drop the old version of", path, &e);
        let Some(entry) = room.entry(name).map_err(fail)? else { return Ok(()) };
        let gone = match entry.kind {
            FileType::RegularFile => {
                let mut file = room.open(name).map_err(fail)?;
                let asked = ask(&file, Wait::Long);
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes).map_err(fail)?;
                let free = match &asked {
                    Asked::Held(lease) => lease.undisturbed(),
                    Asked::CannotAsk(_) => true,
                    Asked::Writing => false,
                };
                if free {
                    self.store(at, &bytes, stored)?;
                }
                free
            }
            FileType::Symlink => {
                let target = room.target(name).map_err(fail)?;
                self.store(at, &target, stored)?;
                true
            }
            FileType::Directory => {
                let inner = room.subfolder(name).map_err(fail)?;
                if only_folders(&inner).map_err(fail)? {
                    remove_folders_in(&inner).map_err(fail)?;
                }
                if room.remove_folder(name).map_err(fail)? {
                    return Ok(());
                }
                false
            }
            _ => false,
        };
        if gone {
            return room.unlink(name).map_err(fail);
        }
        self.note(at, Note::LeftAt(self.shown_as(at, name)));
        Ok(())
    }

    fn store(&mut self, at: usize, bytes: &[u8], stored: Stored) -> Result<()> {
        let digest = Sha256::of(bytes);
        let step = self.step(at);
        let known = |raw: &Option<Raw>| {
            matches!(raw, Some(Raw::File { sha256, .. } | Raw::Link { sha256 }) if *sha256 == digest)
        };
        if known(&step.after) || (stored == Stored::AsPreimage && known(&step.before)) {
            return Ok(());
        }
        (self.keeper.put)(bytes)?;
        self.note(at, Note::EarlierEditStored(digest));
        Ok(())
    }

    pub(super) fn shown(&self, at: usize) -> String {
        let name = self.step(at).temporary.as_ref().map(|spot| spot.name.clone()).unwrap_or_default();
        self.shown_as(at, name.as_bytes())
    }

    fn shown_as(&self, at: usize, name: &[u8]) -> String {
        let folder = self.step(at).temporary.as_ref().and_then(|spot| spot.folder.as_ref());
        let prefix = folder.map(|f| format!("{f}/")).unwrap_or_default();
        format!("{prefix}{}", String::from_utf8_lossy(name))
    }

    /// Directories that deletions left empty, upwards; as git does.
    fn remove_emptied(&self) -> Result<()> {
        for step in self.plan.steps.iter().filter(|s| s.step == Step::Delete) {
            for above in step.change.path.ancestors().iter().rev() {
                let Ok(parent) = self.top.resolve(above.parent().as_ref()) else { break };
                let removed = parent.remove_folder(above.file_name());
                if !removed.map_err(|e| failed("remove the empty directory", above, &e))? {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Directories that were made for the delivery, if nothing came into them meanwhile.
    pub(super) fn remove_folders(&self) -> Result<()> {
        for made in self.plan.folders.iter().rev() {
            if let Ok(parent) = self.top.resolve(made.parent().as_ref()) {
                let removed = parent.remove_folder(made.file_name());
                removed.map_err(|e| failed("remove the directory", made, &e))?;
            }
        }
        Ok(())
    }

    /// Waits until the changed names are on disk.
    pub(super) fn sync(&self) -> Result<()> {
        self.sync_folders().map_err(|e| Failure::io("sync", &self.plan.top, &e))
    }

    fn sync_folders(&self) -> io::Result<()> {
        let mut done: Vec<Inode> = Vec::new();
        let written = self.plan.steps.iter().filter(|s| s.step != Step::Already);
        let parents: std::collections::BTreeSet<Option<RepoPath>> =
            written.flat_map(|s| [s.change.path.parent(), s.temporary.as_ref().and_then(|t| t.folder.clone())]).collect();
        let each = parents.len() < MANY;
        for parent in parents {
            let Ok(folder) = self.top.folder(parent.as_ref()) else { continue };
            let known = |i: &Inode| if each { *i == folder.inode } else { i.dev == folder.inode.dev };
            if !done.iter().any(known) {
                if each { folder.sync()? } else { folder.sync_file_system()? }
                done.push(folder.inode);
            }
        }
        Ok(())
    }
}

/// Whether the bytes of an old object are in the receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stored {
    /// They are, if they are the preimage's.
    AsPreimage,
    /// They are not: somebody has to be told where they are now.
    No,
}

/// Why a change of names did not take place; the step is known to the caller.
enum Halt {
    Conflict(Reason),
    Failed(Failure),
}

impl Halt {
    fn at(self, at: usize) -> Stop {
        match self {
            Self::Conflict(reason) => Stop::Conflict(at, reason),
            Self::Failed(failure) => Stop::Failed(failure),
        }
    }
}

impl From<Failure> for Halt {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

fn barred_by(barred: Barred, path: &RepoPath) -> Halt {
    match barred {
        Barred::Missing => Halt::Conflict(Reason::Missing),
        Barred::Link(_) => Halt::Conflict(Reason::ParentIsLink),
        Barred::NotFolder(_) => Halt::Conflict(Reason::ParentIsFile),
        Barred::Error(e) => Halt::Failed(failed("enter the directory of", path, &e)),
    }
}

/// The third name of an exchange by moves.
fn aside(temporary: &[u8]) -> Vec<u8> {
    [temporary, b"-aside"].concat()
}

fn remove_folders_in(folder: &Folder) -> io::Result<()> {
    for name in folder.names()? {
        if let Ok(inner) = folder.subfolder(&name) {
            remove_folders_in(&inner)?;
            folder.remove_folder(&name)?;
        }
    }
    Ok(())
}
