//! Looking at an object: is it what it should be, and is nobody writing into it?

use super::run::{DeliveryRun, operation_failed};
use crate::domain::change::patch::Change;
use crate::domain::delivery::receipt::{PlannedStep, Raw};
use crate::domain::delivery::recovery::{Live, Sight, Temporary};
use crate::domain::delivery::{Reason, Step};
use crate::domain::value::digest::{Mode, ObjectFormat, Sha256, TreeObject};
use crate::error::Result;
use crate::git::beneath::{DeepVisit, Folder, FolderEntry, TreeTop, fault, or_absent, walk_at_any_depth};
use crate::git::lease::{self, LeaseAnswer};
use rustix::fs::FileType;
use rustix::io::Errno;
use sha2::Digest;
use std::fs::File;
use std::io::{self, Read};

#[derive(Debug, PartialEq, Eq)]
pub(super) enum ObjectLook {
    /// As expected, and nobody writes.
    Same,
    /// As expected; whether somebody writes could not be asked.
    SameUnasked,
    Other(Reason),
}

impl ObjectLook {
    pub(super) fn is_same(&self) -> bool {
        matches!(self, Self::Same | Self::SameUnasked)
    }
}

/// How long to wait for somebody who has the file open for writing. A program that is just being started
/// holds the descriptors of its parent for a moment, so one answer is not enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriterWait {
    /// While the user's bytes are away from their path.
    Little,
    /// Before our own object at a path is taken for the user's, because somebody has it open.
    Long,
}

impl WriterWait {
    fn milliseconds(self) -> u32 {
        match self {
            Self::Little => 10,
            Self::Long => 500,
        }
    }
}

/// Compares what lies under a name with what should.
pub(super) fn look_at_object(
    folder: &Folder,
    name: &[u8],
    expected: &Raw,
    wait: WriterWait,
) -> io::Result<ObjectLook> {
    match look_at_readable(folder, name, expected, wait) {
        Err(e) if is_barred(&e) => Ok(ObjectLook::Other(Reason::ModeChanged)),
        other => other,
    }
}

/// The same, but what cannot be read is a failure.
fn look_at_readable(
    folder: &Folder,
    name: &[u8],
    expected: &Raw,
    wait: WriterWait,
) -> io::Result<ObjectLook> {
    match compare_object(folder, name, expected, wait) {
        // It made way for something else between one call and the next.
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(ObjectLook::Other(Reason::Missing)),
        Err(e) if changed_its_type(&e) => Ok(ObjectLook::Other(Reason::TypeChanged)),
        other => other,
    }
}

/// A link where a file is opened, a file where a directory is, no link where a target is read.
fn changed_its_type(e: &io::Error) -> bool {
    matches!(Errno::from_io_error(e), Some(Errno::LOOP | Errno::NOTDIR | Errno::INVAL | Errno::NXIO))
}

/// It is gone, or is something else by now.
pub(super) fn made_way(e: &io::Error) -> bool {
    e.kind() == io::ErrorKind::NotFound || changed_its_type(e)
}

/// What cannot be read any more, though it could be when the plan was made. (`WOULDBLOCK`: another program
/// has a lease on it.)
pub(super) fn is_barred(e: &io::Error) -> bool {
    matches!(Errno::from_io_error(e), Some(Errno::ACCESS | Errno::PERM | Errno::WOULDBLOCK))
}

fn compare_object(folder: &Folder, name: &[u8], expected: &Raw, wait: WriterWait) -> io::Result<ObjectLook> {
    fault::pass_point("look");
    let Some(entry) = folder.look_up(name)? else { return Ok(ObjectLook::Other(Reason::Missing)) };
    fault::pass_point("looked");
    match (expected, entry.kind) {
        (Raw::File { sha256, permissions }, FileType::RegularFile) => {
            if permissions.is_some_and(|p| p != entry.permissions) {
                return Ok(ObjectLook::Other(Reason::ModeChanged));
            }
            look_into(&folder.open_file(name)?, &entry, *sha256, wait)
        }
        (Raw::Link { sha256 }, FileType::Symlink) => {
            let same = Sha256::of(&folder.read_link(name)?) == *sha256;
            Ok(if same { ObjectLook::Same } else { ObjectLook::Other(Reason::Edited) })
        }
        (Raw::Directory, FileType::Directory) => {
            let bare = only_folders(&folder.open_subfolder(name)?)?;
            Ok(if bare { ObjectLook::Same } else { ObjectLook::Other(Reason::Appeared) })
        }
        _ => Ok(ObjectLook::Other(Reason::TypeChanged)),
    }
}

/// What a file or a link holds now, whatever its permissions; `None` for anything else, and for a file that
/// cannot be read.
pub(super) fn read_content(folder: &Folder, name: &[u8]) -> io::Result<Option<Raw>> {
    Ok(match folder.look_up(name)?.map(|entry| entry.kind) {
        Some(FileType::RegularFile) => {
            fault::pass_point("content");
            match folder.open_file(name) {
                Err(e) if is_barred(&e) => None,
                file => Some(Raw::File { sha256: digest_file(&file?)?, permissions: None }),
            }
        }
        Some(FileType::Symlink) => Some(Raw::Link { sha256: Sha256::of(&folder.read_link(name)?) }),
        _ => None,
    })
}

/// The lease is asked for before the bytes are read and kept while they are: a writer either has the file
/// open by now and is seen, or has to wait and is seen afterwards.
fn look_into(file: &File, entry: &FolderEntry, expected: Sha256, wait: WriterWait) -> io::Result<ObjectLook> {
    if FolderEntry::from_stat(&rustix::fs::fstat(file)?).inode != entry.inode {
        return Ok(ObjectLook::Other(Reason::Edited));
    }
    let asked = ask_for_writers(file, wait);
    if matches!(asked, LeaseAnswer::Writing) {
        return Ok(ObjectLook::Other(Reason::OpenForWriting));
    }
    if digest_file(file)? != expected {
        return Ok(ObjectLook::Other(Reason::Edited));
    }
    Ok(match asked {
        LeaseAnswer::Held(lease) if lease.is_undisturbed() => ObjectLook::Same,
        LeaseAnswer::Held(_) | LeaseAnswer::Writing => ObjectLook::Other(Reason::OpenForWriting),
        LeaseAnswer::CannotAsk => ObjectLook::SameUnasked,
    })
}

/// Asks until nobody writes, or the time is over.
pub(super) fn ask_for_writers(file: &File, wait: WriterWait) -> LeaseAnswer {
    for _ in 0..wait.milliseconds() {
        match lease::ask_for_lease(file) {
            LeaseAnswer::Writing => std::thread::sleep(std::time::Duration::from_millis(1)),
            other => return other,
        }
    }
    lease::ask_for_lease(file)
}

fn digest_file(mut file: &File) -> io::Result<Sha256> {
    let mut hasher = sha2::Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(Sha256::from_hasher(hasher)),
            n => hasher.update(&buffer[..n]),
        }
    }
}

/// True where a directory holds nothing but directories.
pub(super) fn only_folders(folder: &Folder) -> io::Result<bool> {
    only_folders_and(folder, b"", &|_| false)
}

/// True where a directory holds nothing but directories and files of certain paths.
fn only_folders_and(folder: &Folder, path: &[u8], allowed: &dyn Fn(&[u8]) -> bool) -> io::Result<bool> {
    walk_at_any_depth(
        folder,
        &mut |folder, name, inner| {
            Ok(match folder.look_up(name)?.map(|e| e.kind) {
                None => DeepVisit::Pass,
                Some(FileType::Directory) => DeepVisit::Enter,
                Some(_) if allowed(&[path, b"/", inner].concat()) => DeepVisit::Pass,
                Some(_) => DeepVisit::Stop,
            })
        },
        &mut |_, _| Ok(()),
    )
}

/// What git would say of a path, without conversions.
pub(super) fn read_side(top: &TreeTop, change: &Change) -> Option<TreeObject> {
    let folder = top.resolve_folder(change.path.parent().as_ref()).ok()?;
    let name = change.path.file_name();
    let entry = folder.look_up(name).ok()??;
    let known = change.old.as_ref().or(change.new.as_ref())?;
    let format = if known.git_blob.as_str().len() == 40 { ObjectFormat::Sha1 } else { ObjectFormat::Sha256 };
    let (mode, bytes) = match entry.kind {
        FileType::Symlink => (Mode::Symlink, folder.read_link(name).ok()?),
        FileType::RegularFile => {
            let mut bytes = Vec::new();
            folder.open_file(name).ok()?.read_to_end(&mut bytes).ok()?;
            (if entry.permissions & 0o100 == 0 { Mode::File } else { Mode::Executable }, bytes)
        }
        _ => return None,
    };
    Some(TreeObject { mode, id: format.blob_id(&bytes).ok()? })
}

/// What we put there, whatever its permissions are by now.
pub(super) fn without_permissions(after: &Raw) -> Raw {
    match after {
        Raw::File { sha256, .. } => Raw::File { sha256: *sha256, permissions: None },
        other => other.clone(),
    }
}

impl DeliveryRun<'_> {
    /// What is seen of a step now. Where a directory was, something else may be: then nothing of ours is
    /// there. One that could not be looked at is a failure.
    pub(super) fn look_at_step(&mut self, at: usize) -> Result<Sight> {
        let step = self.planned_step(at);
        if step.step == Step::Already {
            return Ok(Sight { live: Live::After, temporary: Temporary::Absent });
        }
        self.tidy_step(at)?;
        Ok(Sight { live: self.sight_of_path(at)?, temporary: self.sight_of_temporary(at)? })
    }

    fn sight_of_path(&self, at: usize) -> Result<Live> {
        let step = self.planned_step(at);
        let path = &step.change.path;
        let nothing_is = |state: &Option<Raw>| state.is_none();
        let failed = |e: io::Error| operation_failed("look at", path, &e);
        let Some(folder) = or_absent(self.top.open_folder(path.parent().as_ref())).map_err(failed)? else {
            return Ok(match step.step {
                Step::Create => Live::Before,
                Step::Delete => Live::After,
                _ => Live::Foreign,
            });
        };
        let entry = folder.look_up(path.file_name()).map_err(failed)?;
        let Some(entry) = entry else {
            return Ok(match () {
                () if nothing_is(&step.before) => Live::Before,
                // Git keeps no empty directories: whoever had it put everything away and back has lost one
                // that was to make room.
                () if self.after_a_crash && step.before == Some(Raw::Directory) => Live::Before,
                () if nothing_is(&step.after) => Live::After,
                () => Live::Foreign,
            });
        };
        let is_before = |wait| -> Result<bool> {
            let Some(before) = &step.before else { return Ok(false) };
            Ok(look_at_object(&folder, path.file_name(), before, wait).map_err(failed)?.is_same())
        };
        if self.changes_bits_alone(at) && is_before(WriterWait::Little)? {
            return Ok(Live::Before);
        }
        // The number alone says nothing: what the user puts there after ours has gone may get it again.
        if let Some(after) = &step.after
            && self.is_staged(at, &entry)
            && self.look_at_ours(at, &folder, path.file_name(), (&entry, after)).map_err(failed)?.is_same()
        {
            return Ok(Live::After);
        }
        if entry.kind == FileType::Directory {
            return self.sight_of_folder(step, &folder).map_err(failed);
        }
        Ok(if is_before(WriterWait::Little)? { Live::Before } else { Live::Foreign })
    }

    /// A directory at the path: it may be waiting to make room for a file, or have been made by us where a
    /// file was.
    fn sight_of_folder(&self, step: &PlannedStep, folder: &Folder) -> io::Result<Live> {
        let path = &step.change.path;
        if step.step == Step::Delete && self.plan.folders.contains(path) {
            return Ok(Live::After);
        }
        let deleted = |inner: &[u8]| {
            self.plan.steps.iter().any(|s| s.step == Step::Delete && s.change.path.as_bytes() == inner)
        };
        let waits = step.before == Some(Raw::Directory)
            && only_folders_and(&folder.open_subfolder(path.file_name())?, path.as_bytes(), &deleted)?;
        Ok(if waits { Live::Before } else { Live::Foreign })
    }

    fn sight_of_temporary(&self, at: usize) -> Result<Temporary> {
        let spot = self.temporary_spot(at)?;
        let failed = |e: io::Error| operation_failed("look at", &self.planned_step(at).change.path, &e);
        let Some(folder) = or_absent(self.top.open_folder(spot.folder.as_ref())).map_err(failed)? else {
            return Ok(Temporary::Absent);
        };
        let Some(entry) = folder.look_up(spot.name.as_bytes()).map_err(failed)? else {
            return Ok(Temporary::Absent);
        };
        let name = spot.name.as_bytes();
        let is = |expected: &Raw, wait| -> Result<bool> {
            Ok(look_at_object(&folder, name, expected, wait).map_err(failed)?.is_same())
        };
        let PlannedStep { before, after, .. } = self.planned_step(at);
        let held = |wait| before.as_ref().map_or(Ok(false), |before| is(before, wait));
        if self.changes_bits_alone(at) && !self.has_its_number(at, &entry) && held(WriterWait::Little)? {
            return Ok(Temporary::Held);
        }
        if let Some(after) = after
            && self.is_staged(at, &entry)
            && self.look_at_ours(at, &folder, name, (&entry, after)).map_err(failed)?.is_same()
        {
            return Ok(Temporary::Staged);
        }
        Ok(if held(WriterWait::Little)? { Temporary::Held } else { Temporary::HeldForeign })
    }

    /// Looks at what may be the object that we put there. After a crash one look decides: what has our
    /// object's number and cannot be read just now is not taken for the user's.
    fn look_at_ours(
        &self,
        at: usize,
        folder: &Folder,
        name: &[u8],
        (entry, after): (&FolderEntry, &Raw),
    ) -> io::Result<ObjectLook> {
        let expected = without_permissions(after);
        if self.after_a_crash && self.has_its_number(at, entry) {
            return look_at_readable(folder, name, &expected, WriterWait::Long);
        }
        look_at_object(folder, name, &expected, WriterWait::Long)
    }

    /// True where before and after are told apart by the permission bits alone.
    fn changes_bits_alone(&self, at: usize) -> bool {
        let step = self.planned_step(at);
        matches!((&step.before, &step.after), (Some(before), Some(after)) if without_permissions(before) == without_permissions(after))
    }

    /// True for what may be the object that was staged for a step; its content has to be looked at as well.
    /// After a crash the content alone tells: a tree that was restored from a copy, or left and come back to
    /// by git, has the same bytes under other numbers.
    pub(super) fn is_staged(&self, at: usize, entry: &FolderEntry) -> bool {
        self.after_a_crash || self.has_its_number(at, entry)
    }

    /// By inode number: a device number may change with a restart.
    fn has_its_number(&self, at: usize, entry: &FolderEntry) -> bool {
        self.staged.objects.get(at).copied().flatten().is_some_and(|inode| inode.ino == entry.inode.ino)
    }
}
