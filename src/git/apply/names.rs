//! The two names of a step: the path, and the temporary name beside it that its object comes from or goes
//! to.

use super::run::{DeliveryRun, operation_failed, require_folder};
use crate::domain::delivery::receipt::Note;
use crate::domain::value::repo_path::RepoPath;
use crate::error::Result;
use crate::git::beneath::{Folder, or_absent};
use std::io::{self, ErrorKind};
use std::rc::Rc;

/// A step's two names, in open directories.
pub(super) struct StepNames<'a> {
    pub(super) path: &'a RepoPath,
    pub(super) folder: Rc<Folder>,
    pub(super) room: Rc<Folder>,
    pub(super) temporary: &'a [u8],
}

impl StepNames<'_> {
    pub(super) fn name(&self) -> &[u8] {
        self.path.file_name()
    }
}

impl<'a> DeliveryRun<'a> {
    pub(super) fn step_names(&self, at: usize) -> Result<StepNames<'a>> {
        let path = &self.planned_step(at).change.path;
        let spot = self.temporary_spot(at)?;
        Ok(StepNames {
            path,
            folder: require_folder(self.top, path.parent().as_ref())?,
            room: require_folder(self.top, spot.folder.as_ref())?,
            temporary: spot.name.as_bytes(),
        })
    }

    /// The same; `None` where one of the directories is not there.
    pub(super) fn find_step_names(&self, at: usize) -> Result<Option<StepNames<'a>>> {
        let path = &self.planned_step(at).change.path;
        let spot = self.temporary_spot(at)?;
        let find = |folder: Option<&RepoPath>| {
            or_absent(self.top.open_folder(folder))
                .map_err(|e| operation_failed("enter the directory of", path, &e))
        };
        let (folder, room) = (find(path.parent().as_ref())?, find(spot.folder.as_ref())?);
        let names = |(folder, room)| StepNames { path, folder, room, temporary: spot.name.as_bytes() };
        Ok(folder.zip(room).map(names))
    }

    /// The directory of a step's temporary name. The path's own may have made room for a file by now.
    pub(super) fn temporary_room(&self, at: usize) -> Result<Rc<Folder>> {
        require_folder(self.top, self.temporary_spot(at)?.folder.as_ref())
    }

    /// Lets path and temporary name change places. Where the file system has no exchange, by three moves that
    /// cannot overwrite; the path is absent for a moment, which the receipt says, but a save that falls into
    /// it is not lost: it stays (`AlreadyExists`), and [`DeliveryRun::tidy_step`] puts the three names in
    /// order.
    pub(super) fn exchange_objects(&mut self, at: usize, names: &StepNames<'_>) -> io::Result<()> {
        match names.folder.exchange_names(names.temporary, &names.folder, names.name()) {
            Err(e) if e.kind() == ErrorKind::Unsupported => {}
            other => return other,
        }
        self.note_outcome(at, Note::NotExchanged);
        let (folder, aside) = (&names.folder, aside_name(names.temporary));
        folder.take_away(names.name(), folder, &aside)?;
        folder.move_to(names.temporary, folder, names.name())?;
        folder.take_away(&aside, folder, names.temporary)
    }

    pub(super) fn shown_temporary(&self, at: usize) -> String {
        let name = self.planned_step(at).temporary.as_ref().map(|spot| spot.name.clone()).unwrap_or_default();
        self.shown_as(at, name.as_bytes())
    }

    pub(super) fn shown_as(&self, at: usize, name: &[u8]) -> String {
        let folder = self.planned_step(at).temporary.as_ref().and_then(|spot| spot.folder.as_ref());
        let prefix = folder.map(|f| format!("{f}/")).unwrap_or_default();
        format!("{prefix}{}", String::from_utf8_lossy(name))
    }
}

/// The third name of an exchange by moves.
pub(super) fn aside_name(temporary: &[u8]) -> Vec<u8> {
    [temporary, b"-aside"].concat()
}

/// The second name of an object that shows what a mount can do.
pub(super) fn trial_name(temporary: &[u8]) -> Vec<u8> {
    [temporary, b"-trial"].concat()
}

/// The name of an object that is being made, and is not complete.
pub(super) fn unready_name(temporary: &[u8]) -> Vec<u8> {
    [temporary, b"-unready"].concat()
}
