//! The way back of one path, and what becomes of objects that have lost their place.
//!
//! Going back meets a user who may have gone on working. Three things can be at a path: our object untouched,
//! which makes room again; nothing; or something of the user's, which is later than anything we hold and
//! stays. What we hold then is stored and named, never just dropped.

use super::dispose::Stored;
use super::look::{WriterWait, look_at_object, read_content, without_permissions};
use super::names::{StepNames, aside_name, trial_name, unready_name};
use super::run::{DeliveryRun, operation_failed};
use crate::domain::delivery::Step;
use crate::domain::delivery::receipt::{Inode, Note, Raw};
use crate::domain::delivery::recovery::Act;
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Failure, Result};
use crate::git::beneath::{Folder, HeldObject, or_absent};
use std::io::{self, ErrorKind};

/// How often a path is tried again while somebody else keeps changing it.
const PATIENCE: usize = 400;

/// After a few tries each waits a little, and never as long as the one before: two programs that change the
/// same names as fast as they can fall into step otherwise, and one of them is always the second.
fn step_aside(tries: usize) {
    if tries > 8 {
        let micros = u64::try_from(tries % 7).unwrap_or(0) * 137 + 50;
        std::thread::sleep(std::time::Duration::from_micros(micros));
    }
}

impl DeliveryRun<'_> {
    /// Puts in order what a file system without exchange and without moves to a free name can leave behind:
    /// an object with two names in the middle of a move (the name that only we use goes), and an exchange by
    /// moves that was cut off (it is undone or completed).
    pub(super) fn tidy_step(&mut self, at: usize) -> Result<()> {
        let Some(names) = self.find_step_names(at)? else { return Ok(()) };
        let aside = aside_name(names.temporary);
        let fail = |e: io::Error| operation_failed("put in order", names.path, &e);
        let inode = |folder: &Folder, name: &[u8]| -> Result<Option<Inode>> {
            Ok(folder.look_up(name).map_err(fail)?.map(|e| e.inode))
        };
        let live = inode(&names.folder, names.name())?;
        let mut temporary = inode(&names.room, names.temporary)?;
        let mut spare = inode(&names.room, &aside)?;
        for ours in [unready_name(names.temporary), trial_name(names.temporary)] {
            names.room.unlink(&ours).or_else(accept_absence).map_err(fail)?;
        }
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
            (_, _, None) => names.room.take_away(&aside, &names.room, names.temporary).map_err(fail),
            _ => self.dispose_of(at, &names.room, &aside, Stored::No),
        }
    }

    /// Undoes the change of names of a step that was just carried out. The staged object keeps its temporary
    /// name.
    pub(super) fn swap_back(&mut self, at: usize, names: &StepNames<'_>) -> Result<()> {
        let fail = |e: io::Error| operation_failed("put back", names.path, &e);
        match self.planned_step(at).step {
            Step::Replace => self.exchange_back(at, names),
            Step::Create => match names.folder.take_away(names.name(), &names.room, names.temporary) {
                Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
                Err(e) => Err(fail(e)),
                Ok(()) if self.is_pristine(at, names)? => Ok(()),
                // What we took was changed, or another's: it goes back and stays.
                Ok(()) => {
                    self.note_outcome(at, Note::LaterEditKept);
                    self.give_back(at, names)
                }
            },
            Step::Delete => self.give_back(at, names),
            Step::Already => Ok(()),
        }
    }

    /// Moves what is held to the path, if that is free. If not, the user has a later version there: that one
    /// stays.
    fn give_back(&mut self, at: usize, names: &StepNames<'_>) -> Result<()> {
        if self.plan.folders.contains(names.path) {
            self.remove_folders()?;
        }
        match names.room.move_to(names.temporary, &names.folder, names.name()) {
            Ok(()) => Ok(()),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {
                self.note_outcome(at, Note::LaterEditKept);
                self.dispose_of(at, &names.room, names.temporary, Stored::No)
            }
            Err(e) => Err(operation_failed("put back", names.path, &e)),
        }
    }

    /// Exchanges until the staged object, untouched, is under the temporary name; or until the user's latest
    /// version is at the path, and the one before it, which they replaced themselves, is what remains.
    fn exchange_back(&mut self, at: usize, names: &StepNames<'_>) -> Result<()> {
        let fail = |e: io::Error| operation_failed("put back", names.path, &e);
        for tries in 0..PATIENCE {
            step_aside(tries);
            let former = FormerObject::of_name(&names.folder, names.temporary).map_err(fail)?;
            if self.path_is_pristine(at, names)? {
                match self.exchange_objects(at, names) {
                    Ok(()) if self.is_pristine(at, names)? => return Ok(()),
                    Ok(()) => self.return_the_later(at, names, former)?,
                    Err(e) if e.kind() == ErrorKind::NotFound => {}
                    Err(e) if e.kind() == ErrorKind::AlreadyExists => self.tidy_step(at)?,
                    Err(e) => return Err(fail(e)),
                }
            } else if names.folder.look_up(names.name()).map_err(fail)?.is_none() {
                match names.folder.move_to(names.temporary, &names.folder, names.name()) {
                    Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                    other => return other.map_err(fail),
                }
            } else {
                self.note_outcome(at, Note::LaterEditKept);
                return self.dispose_of(at, &names.folder, names.temporary, Stored::No);
            }
        }
        Err(fail(ErrorKind::ResourceBusy.into()))
    }

    /// An exchange put `former` at the path and brought out something later: that goes to the path again.
    /// What comes out then is what was put there, or a save that is later still and goes to the path in its
    /// turn.
    fn return_the_later(&mut self, at: usize, names: &StepNames<'_>, mut former: FormerObject) -> Result<()> {
        let fail = |e: io::Error| operation_failed("put back", names.path, &e);
        for tries in 0..PATIENCE {
            step_aside(tries);
            let later = FormerObject::of_name(&names.folder, names.temporary).map_err(fail)?;
            match self.exchange_objects(at, names) {
                Ok(()) => {}
                Err(e) if e.kind() == ErrorKind::NotFound => return self.give_back(at, names),
                Err(e) if e.kind() == ErrorKind::AlreadyExists => return self.tidy_step(at),
                Err(e) => return Err(fail(e)),
            }
            if former.is_still(&names.folder, names.temporary).map_err(fail)? {
                return Ok(());
            }
            former = later;
        }
        Err(fail(ErrorKind::ResourceBusy.into()))
    }

    fn path_is_pristine(&self, at: usize, names: &StepNames<'_>) -> Result<bool> {
        self.holds_pristine(at, &names.folder, names.name(), names.path)
    }

    pub(super) fn is_pristine(&self, at: usize, names: &StepNames<'_>) -> Result<bool> {
        self.holds_pristine(at, &names.room, names.temporary, names.path)
    }

    /// True where a name holds the staged object, and nobody has changed it or is about to.
    fn holds_pristine(&self, at: usize, folder: &Folder, name: &[u8], path: &RepoPath) -> Result<bool> {
        let fail = |e: io::Error| operation_failed("look at", path, &e);
        let Some(after) = &self.planned_step(at).after else { return Ok(false) };
        let staged = folder.look_up(name).map_err(fail)?.is_some_and(|entry| self.is_staged(at, &entry));
        match look_at_object(folder, name, &without_permissions(after), WriterWait::Long) {
            Ok(seen) => Ok(staged && seen.is_same()),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
            Err(e) => Err(fail(e)),
        }
    }

    /// Takes one step back, as decided from what was seen of it.
    pub(super) fn undo_act(&mut self, at: usize, act: Act) -> Result<()> {
        match act {
            Act::Nothing | Act::Commit | Act::Finish => Ok(()),
            Act::DropStaged => self.drop_staged(at),
            Act::KeepLater => self.keep_later(at),
            Act::GiveBack => {
                self.note_outcome(at, Note::LaterEditKept);
                if !self.stand_above(at)? {
                    return self.keep_later(at);
                }
                let names = self.step_names(at)?;
                self.give_back(at, &names)
            }
            Act::Remake => {
                if !self.stand_above(at)? {
                    return Ok(());
                }
                self.remake_former(at)?;
                self.put_back(at)
            }
            Act::PutBack => {
                if !self.stand_above(at)? {
                    return self.keep_later(at);
                }
                self.put_back(at)
            }
        }
    }

    /// The directories above a path that comes back, where somebody has removed them. False where something
    /// else lies in their place: then there is no place for it any more.
    fn stand_above(&self, at: usize) -> Result<bool> {
        let path = &self.planned_step(at).change.path;
        let is_there = || {
            let found = or_absent(self.top.open_folder(path.parent().as_ref()));
            found
                .map(|found| found.is_some())
                .map_err(|e| operation_failed("enter the directory of", path, &e))
        };
        if is_there()? {
            return Ok(true);
        }
        for above in path.ancestors() {
            let fail = |e: io::Error| operation_failed("make the directory", &above, &e);
            let parent = or_absent(self.top.resolve_folder(above.parent().as_ref())).map_err(fail)?;
            let Some(parent) = parent else { return Ok(false) };
            parent.make_folder(above.file_name()).map_err(fail)?;
        }
        is_there()
    }

    fn put_back(&mut self, at: usize) -> Result<()> {
        let names = self.step_names(at)?;
        self.swap_back(at, &names)?;
        self.drop_staged(at)
    }

    pub(super) fn keep_later(&mut self, at: usize) -> Result<()> {
        self.note_outcome(at, Note::LaterEditKept);
        let room = self.temporary_room(at)?;
        self.dispose_of(at, &room, self.temporary_spot(at)?.name.as_bytes(), Stored::No)
    }

    /// The old object has lost its temporary name (somebody tidied up): its stored bytes take its place. They
    /// get that name when they are complete, since whatever has it may go to the path.
    fn remake_former(&mut self, at: usize) -> Result<()> {
        use std::io::Write;
        let names = self.step_names(at)?;
        let fail = |e: io::Error| operation_failed("restore", names.path, &e);
        let lost = || Failure::internal(format!("the old bytes of {} were not stored", names.path));
        let kept = self.staged.kept.get(at).cloned().flatten().ok_or_else(lost)?;
        let bytes =
            crate::git::live::slice_preimage(&self.keeper.get(&kept.blob)?, &kept).ok_or_else(lost)?;
        match &self.planned_step(at).before {
            Some(Raw::Link { .. }) => names.room.create_link(names.temporary, &bytes).map_err(fail),
            Some(Raw::File { permissions, .. }) => {
                let unready = unready_name(names.temporary);
                names.room.unlink(&unready).or_else(accept_absence).map_err(fail)?;
                let mut file = names.room.create_file(&unready, 0o600).map_err(fail)?;
                file.write_all(&bytes).map_err(fail)?;
                if let Ok(now) = names.folder.open_file(names.name()) {
                    super::attributes::carry_over(&now, &file).map_err(fail)?;
                } else if let Some(former) = &kept.attributes {
                    super::attributes::restore_attributes(former, &file).map_err(fail)?;
                }
                let bits = rustix::fs::Mode::from_raw_mode(permissions.unwrap_or(0o600));
                rustix::fs::fchmod(&file, bits).map_err(|e| fail(e.into()))?;
                file.sync_all().map_err(fail)?;
                names.room.move_to(&unready, &names.room, names.temporary).map_err(fail)
            }
            _ => Err(lost()),
        }
    }

    /// Removes a staged object that is not in use. What somebody got hold of while it was at its path, and
    /// wrote into, is stored.
    pub(super) fn drop_staged(&mut self, at: usize) -> Result<()> {
        let step = self.planned_step(at);
        let (Some(spot), Some(after)) = (&step.temporary, &step.after) else { return Ok(()) };
        let fail = |e: io::Error| operation_failed("remove the staged version of", &step.change.path, &e);
        let Some(room) = or_absent(self.top.open_folder(spot.folder.as_ref())).map_err(fail)? else {
            self.note_outcome(at, Note::NotFound(self.shown_temporary(at)));
            return Ok(());
        };
        let Some(entry) = room.look_up(spot.name.as_bytes()).map_err(fail)? else { return Ok(()) };
        // Before the inode numbers were recorded nothing had been exchanged yet: then the name alone says
        // that it is ours.
        let recorded = self.staged.objects.get(at).copied().flatten().is_some();
        if recorded && !self.is_staged(at, &entry) {
            return Ok(());
        }
        // Should the ledger have lost what came after the plan, the old object is never dropped for the new
        // one.
        if let (false, Some(before)) =
            (recorded, step.before.as_ref().filter(|b| without_permissions(b) != without_permissions(after)))
            && look_at_object(&room, spot.name.as_bytes(), &without_permissions(before), WriterWait::Little)
                .map_err(fail)?
                .is_same()
        {
            self.note_outcome(at, Note::LeftAt(self.shown_temporary(at)));
            return Ok(());
        }
        if recorded {
            return self.dispose_of(at, &room, spot.name.as_bytes(), Stored::No);
        }
        room.unlink(spot.name.as_bytes()).map_err(fail)
    }

    pub(super) fn drop_all_staged(&mut self) -> Result<()> {
        let mut all = Ok(());
        for at in 0..self.plan.steps.len() {
            if self.planned_step(at).after.is_some() {
                all = all.and(self.drop_staged(at));
            }
        }
        all
    }

    /// Directories that were made for the delivery, if nothing came into them meanwhile.
    pub(super) fn remove_folders(&self) -> Result<()> {
        for made in self.plan.folders.iter().rev() {
            let fail = |e: io::Error| operation_failed("remove the directory", made, &e);
            if let Some(parent) = or_absent(self.top.resolve_folder(made.parent().as_ref())).map_err(fail)? {
                parent.remove_empty_folder(made.file_name()).map_err(fail)?;
            }
        }
        Ok(())
    }
}

pub(super) fn accept_absence(error: io::Error) -> io::Result<()> {
    if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

/// An object as it was before it went to the path for a moment. Of one that cannot be read only its identity
/// is known.
struct FormerObject {
    held: Option<HeldObject>,
    content: Option<Raw>,
}

impl FormerObject {
    fn of_name(folder: &Folder, name: &[u8]) -> io::Result<Self> {
        Ok(Self { held: folder.hold_object(name)?, content: read_content(folder, name)? })
    }

    /// True where the object is under that name again, and nobody saved into it while it was at the path, or
    /// is about to.
    fn is_still(&self, folder: &Folder, name: &[u8]) -> io::Result<bool> {
        let same =
            folder.look_up(name)?.map(|entry| entry.inode) == self.held.as_ref().map(|held| held.inode);
        let unchanged = |content| {
            Ok::<_, io::Error>(look_at_object(folder, name, content, WriterWait::Little)?.is_same())
        };
        Ok(same && self.content.as_ref().map_or(Ok(true), unchanged)?)
    }
}
