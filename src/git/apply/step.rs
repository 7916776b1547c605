//! One path on its way forward: the change of names and the look at what came out.
//!
//! Every change of a name is an exchange or a move to a free name, so none of them can destroy anything. The
//! only thing that is ever unlinked is what was looked at under a name that nobody else uses: our own object
//! unchanged, or an old one whose bytes are stored.

use super::dispose::Stored;
use super::look::{ObjectLook, WriterWait, look_at_object};
use super::names::StepNames;
use super::run::{DeliveryRun, StepStop, operation_failed};
use crate::domain::delivery::receipt::{Inode, Note, Raw};
use crate::domain::delivery::recovery::Act;
use crate::domain::delivery::{Reason, Step};
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Failure, Result};
use crate::git::beneath::{Barred, Folder, or_absent};
use std::io::{self, ErrorKind};

/// From this number of objects on, one sync of the file system is cheaper than one of each.
const MANY: usize = 20;

impl<'a> DeliveryRun<'a> {
    /// Carries out what is left, and looks at all of it once more.
    pub(super) fn commit_all(&mut self, acts: &[Act]) -> std::result::Result<(), StepStop> {
        for (at, _) in acts.iter().enumerate().filter(|(_, act)| **act == Act::Commit) {
            self.commit_step(at)?;
        }
        self.sync_names()?;
        let looked_at = |act: &Act| matches!(act, Act::Commit | Act::Finish);
        for (at, _) in acts.iter().enumerate().filter(|(_, act)| looked_at(act)) {
            self.confirm_step(at)?;
        }
        Ok(())
    }

    /// Carries out a step. Where it meets something else than expected, the path is as it was when this
    /// returns, or the user's.
    fn commit_step(&mut self, at: usize) -> std::result::Result<(), StepStop> {
        let step = self.planned_step(at);
        if step.step == Step::Create {
            self.make_folders(&step.change.path).map_err(|stop| stop.at_step(at))?;
        }
        if let Err(barred) = self.top.open_folder(step.change.path.parent().as_ref()) {
            return Err(barred_by(barred, &step.change.path).at_step(at));
        }
        let names = self.step_names(at)?;
        let done = match step.step {
            Step::Create => self.create_path(&names),
            Step::Replace => self.replace_path(at, &names),
            Step::Delete => self.remove_path(&names),
            Step::Already => return Ok(()),
        };
        done.map_err(|stop| stop.at_step(at))?;
        let stop = match &step.before {
            Some(before) => self.look_at_held(at, &names.room, before)?,
            None => None,
        };
        match stop.or_else(|| self.moved_away(&names)) {
            None => Ok(()),
            Some(stop) => {
                self.swap_back(at, &names)?;
                Err(stop.at_step(at))
            }
        }
    }

    fn create_path(&mut self, names: &StepNames<'_>) -> std::result::Result<(), Halt> {
        match names.room.move_to(names.temporary, &names.folder, names.name()) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => Err(Halt::Conflict(Reason::Appeared)),
            other => Ok(other.map_err(|e| operation_failed("create", names.path, &e))?),
        }
    }

    fn remove_path(&mut self, names: &StepNames<'_>) -> std::result::Result<(), Halt> {
        match names.folder.take_away(names.name(), &names.room, names.temporary) {
            Err(e) if e.kind() == ErrorKind::NotFound => Err(Halt::Conflict(Reason::Missing)),
            other => Ok(other.map_err(|e| operation_failed("delete", names.path, &e))?),
        }
    }

    fn replace_path(&mut self, at: usize, names: &StepNames<'_>) -> std::result::Result<(), Halt> {
        let staged =
            names.folder.look_up(names.temporary).map_err(|e| operation_failed("find", names.path, &e))?;
        let is_there = staged.is_some_and(|entry| self.is_staged(at, &entry));
        if !is_there || self.after_a_crash && !self.is_pristine(at, names)? {
            let message = format!("the staged version of {} is gone", names.path);
            return Err(Failure::new(crate::error::Code::Io, message).subject(names.path.to_string()).into());
        }
        match self.exchange_objects(at, names) {
            Err(e) if e.kind() == ErrorKind::NotFound => Err(Halt::Conflict(Reason::Missing)),
            // Saved while the path was absent.
            Err(e) if e.kind() == ErrorKind::AlreadyExists => Err(Halt::Conflict(Reason::Edited)),
            other => Ok(other.map_err(|e| operation_failed("replace", names.path, &e))?),
        }
    }

    /// Looks at what came out. `None`: as expected. What cannot be looked at is a failure, and goes back like
    /// a conflict: the way back does not need to read it.
    fn look_at_held(&mut self, at: usize, room: &Folder, before: &Raw) -> Result<Option<Halt>> {
        match look_at_object(room, self.temporary_spot(at)?.name.as_bytes(), before, WriterWait::Little) {
            Ok(ObjectLook::Same) => Ok(None),
            Ok(ObjectLook::SameUnasked) => {
                self.note_outcome(at, Note::LeaseNotChecked);
                Ok(None)
            }
            Ok(ObjectLook::Other(reason)) => Ok(Some(Halt::Conflict(reason))),
            Err(e) => {
                let path = &self.planned_step(at).change.path;
                Ok(Some(operation_failed("look at what was replaced at", path, &e).into()))
            }
        }
    }

    /// A directory that the user moved meanwhile took our change with it; seen by resolving the path anew.
    fn moved_away(&self, names: &StepNames<'_>) -> Option<Halt> {
        match self.top.resolve_folder(names.path.parent().as_ref()) {
            Ok(now) if now.inode == names.folder.inode => None,
            Ok(_) => Some(Halt::Conflict(Reason::Missing)),
            Err(barred) => Some(barred_by(barred, names.path)),
        }
    }

    /// The last look, when everything is in place: whoever had got hold of an old object before it lost its
    /// name had time to write.
    fn confirm_step(&mut self, at: usize) -> std::result::Result<(), StepStop> {
        let Some(before) = &self.planned_step(at).before else { return Ok(()) };
        let room = self.temporary_room(at)?;
        match self.look_at_held(at, &room, before)? {
            None => Ok(()),
            Some(stop) => Err(stop.at_step(at)),
        }
    }

    fn make_folders(&self, path: &RepoPath) -> std::result::Result<(), Halt> {
        for above in path.ancestors().iter().filter(|above| self.plan.folders.contains(above)) {
            let parent =
                self.top.open_folder(above.parent().as_ref()).map_err(|barred| barred_by(barred, above))?;
            parent
                .make_folder(above.file_name())
                .map_err(|e| operation_failed("make the directory", above, &e))?;
        }
        Ok(())
    }

    /// Everything is in place and confirmed: drops what came out, and directories that were emptied.
    pub(super) fn drop_held(&mut self, acts: &[Act]) -> Result<()> {
        for (at, act) in acts.iter().enumerate() {
            match (act, &self.planned_step(at).before) {
                (Act::Commit | Act::Finish, Some(_)) => {
                    let room = self.temporary_room(at)?;
                    self.dispose_of(at, &room, self.temporary_spot(at)?.name.as_bytes(), Stored::AsPreimage)?;
                }
                (Act::KeepLater, _) => self.keep_later(at)?,
                (Act::DropStaged, _) => self.drop_staged(at)?,
                _ => {}
            }
        }
        self.remove_emptied()
    }

    /// Directories that deletions left empty, upwards; as git does.
    fn remove_emptied(&self) -> Result<()> {
        for step in self.plan.steps.iter().filter(|s| s.step == Step::Delete) {
            for above in step.change.path.ancestors().iter().rev() {
                let fail = |e: io::Error| operation_failed("remove the empty directory", above, &e);
                let parent = or_absent(self.top.resolve_folder(above.parent().as_ref())).map_err(fail)?;
                let Some(parent) = parent else { break };
                if !parent.remove_empty_folder(above.file_name()).map_err(fail)? {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Waits until the changed names are on disk.
    pub(super) fn sync_names(&self) -> Result<()> {
        self.sync_folders().map_err(|e| Failure::io("sync", &self.plan.top, &e))
    }

    fn sync_folders(&self) -> io::Result<()> {
        let mut done: Vec<Inode> = Vec::new();
        let written = self.plan.steps.iter().filter(|s| s.step != Step::Already);
        let parents: std::collections::BTreeSet<Option<RepoPath>> = written
            .flat_map(|s| [s.change.path.parent(), s.temporary.as_ref().and_then(|t| t.folder.clone())])
            .collect();
        let each = parents.len() < MANY;
        for parent in parents {
            let Some(folder) = or_absent(self.top.open_folder(parent.as_ref()))? else { continue };
            let known = |i: &Inode| if each { *i == folder.inode } else { i.dev == folder.inode.dev };
            if !done.iter().any(known) {
                if each {
                    folder.sync()?
                } else {
                    folder.sync_file_system()?
                }
                done.push(folder.inode);
            }
        }
        Ok(())
    }
}

/// Why a change of names did not take place; the step is known to the caller.
enum Halt {
    Conflict(Reason),
    Failed(Failure),
}

impl Halt {
    fn at_step(self, at: usize) -> StepStop {
        match self {
            Self::Conflict(reason) => StepStop::Conflict(at, reason),
            Self::Failed(failure) => StepStop::Failed(failure),
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
        Barred::Error(e) => Halt::Failed(operation_failed("enter the directory of", path, &e)),
    }
}
