//! Files beneath a directory, reached by descriptors only: the one set of primitives for worktrees, slots and
//! the user's live tree.
//!
//! A path is never handed to the kernel as a whole: every call is relative to a [`Folder`] that was opened
//! beneath the top without following a link, so a directory that is replaced by a link meanwhile cannot lead
//! a call out of the tree. Names are changed by `renameat2` with a flag that never overwrites. Where a file
//! system knows no such flag, linking (which never overwrites either) takes its place.
//!
//! [`TreeTop`] and [`FolderCursor`] lead from a path to its folder, [`walk_folder()`] visits all that there
//! is.

mod copy;
#[cfg(test)]
pub mod fault;
mod resolve;
mod walk;

pub use copy::{CopyCost, copy_file, shares_blocks, timestamps_of};
pub use resolve::{Barred, FolderCursor, TreeTop, or_absent};
pub use walk::{DeepVisit, remove_content, walk_at_any_depth, walk_folder, walk_what_can_be_seen};

use crate::domain::delivery::receipt::Inode;
use crate::domain::value::repo_path::display_bytes;
use crate::error::{Code, Failure, Result};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, Stat, Timestamps};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A directory, open.
#[derive(Debug)]
pub struct Folder {
    file: File,
    pub inode: Inode,
}

/// What lies under a name, without looking into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FolderEntry {
    pub inode: Inode,
    pub kind: FileType,
    pub permissions: u32,
    pub links: u64,
    pub owner: (u32, u32),
}

/// An object that stays in being, whatever becomes of its names.
#[derive(Debug)]
pub struct HeldObject {
    pub inode: Inode,
    _open: OwnedFd,
}

/// Tells one version of a file from another without reading it. Any write changes the last field, and nobody
/// can set that one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    pub ino: u64,
    pub size: u64,
    /// Time of the last write, nanoseconds since the epoch.
    pub mtime: i64,
    /// Time of the last change of content or metadata, nanoseconds since the epoch.
    pub ctime: i64,
}

impl Stamp {
    /// From what the system says of a file.
    #[must_use]
    #[expect(clippy::allow_attributes, reason = "the field types differ between architectures")]
    #[allow(
        clippy::useless_conversion,
        clippy::unnecessary_cast,
        reason = "the field types differ between architectures"
    )]
    pub fn of_stat(stat: &Stat) -> Self {
        let time = |seconds: i64, nanoseconds: i64| {
            seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
        };
        Self {
            ino: stat.st_ino as u64,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            mtime: time(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            ctime: time(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        }
    }
}

impl Folder {
    fn new(fd: OwnedFd) -> io::Result<Self> {
        let stat = rustix::fs::fstat(&fd)?;
        Ok(Self { file: File::from(fd), inode: Inode { dev: stat.st_dev, ino: stat.st_ino } })
    }

    /// Opens a directory by its full path. Links above it are the user's own and are followed; itself it must
    /// be a directory.
    pub fn open_path(path: &Path) -> Result<Self> {
        let opened = rustix::fs::open(path, FOLDER, Mode::empty()).map_err(io::Error::from);
        opened.and_then(Self::new).map_err(|e| Failure::io("open the directory", path, &e))
    }

    fn clone_handle(&self) -> io::Result<Self> {
        Ok(Self { file: self.file.try_clone()?, inode: self.inode })
    }

    fn open_child(&self, name: &[u8]) -> rustix::io::Result<Self> {
        let fd = rustix::fs::openat(&self.file, name, FOLDER, Mode::empty())?;
        Self::new(fd).map_err(|_| Errno::IO)
    }

    /// The directory of that name in this one; a link in its place is an error.
    pub fn open_subfolder(&self, name: &[u8]) -> io::Result<Self> {
        Ok(self.open_child(name)?)
    }

    /// The same; `None` where something else is there, or nobody lets us in.
    pub fn enter_if_folder(&self, name: &[u8]) -> io::Result<Option<Self>> {
        match self.open_child(name) {
            Ok(inner) => Ok(Some(inner)),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS | Errno::PERM) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// The directory that this one lies in; an error where it lies elsewhere by now.
    fn open_parent(&self, known: Inode) -> io::Result<Self> {
        let parent = self.open_child(b"..")?;
        if parent.inode == known {
            return Ok(parent);
        }
        Err(io::Error::other("the directory was moved while it was looked at"))
    }

    /// Likewise, made where it is missing.
    pub fn make_subfolder(&self, name: &[u8]) -> io::Result<Self> {
        self.make_folder(name)?;
        self.open_subfolder(name)
    }

    /// All that the system says of a name; a link is not followed.
    pub fn stat(&self, name: &[u8]) -> io::Result<Stat> {
        Ok(rustix::fs::statat(&self.file, name, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// The kind of the file system that it lies on, by the system's number for it.
    pub fn file_system(&self) -> Option<i128> {
        rustix::fs::fstatfs(&self.file).ok().map(|found| i128::from(found.f_type))
    }

    /// True where no extended attribute is set, but for the label that the system gives to everything.
    pub fn has_no_attributes(&self) -> bool {
        let mut names = [0u8; 1024];
        match rustix::fs::flistxattr(&self.file, &mut names) {
            Ok(length) => {
                let names = names.get(..length).unwrap_or_default().split(|b| *b == 0);
                names.filter(|name| !name.is_empty()).all(|name| name == b"security.selinux")
            }
            Err(e) => e == Errno::NOTSUP,
        }
    }

    /// What lies under a name; links are not followed.
    pub fn look_up(&self, name: &[u8]) -> io::Result<Option<FolderEntry>> {
        match self.stat(name) {
            Ok(stat) => Ok(Some(FolderEntry::from_stat(&stat))),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Opens a file for reading: no link, and no waiting for a pipe's other end.
    pub fn open_file(&self, name: &[u8]) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        Ok(File::from(rustix::fs::openat(&self.file, name, flags, Mode::empty())?))
    }

    /// Makes a file that must not exist. The mode is narrowed by the umask or by the directory's default ACL.
    pub fn create_file(&self, name: &[u8], permissions: u32) -> io::Result<File> {
        fault::reach_operation("create")?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.file, name, flags, Mode::from_raw_mode(permissions))?;
        fault::reach_operation("created")?;
        Ok(File::from(fd))
    }

    /// Makes a symbolic link that must not exist.
    pub fn create_link(&self, name: &[u8], target: &[u8]) -> io::Result<()> {
        fault::reach_operation("symlink")?;
        Ok(rustix::fs::symlinkat(target, &self.file, name)?)
    }

    /// Where a symbolic link points, as written.
    pub fn read_link(&self, name: &[u8]) -> io::Result<Vec<u8>> {
        Ok(rustix::fs::readlinkat(&self.file, name, Vec::new())?.into_bytes())
    }

    /// Makes a directory. True where it is new, false where one was there.
    pub fn make_folder(&self, name: &[u8]) -> io::Result<bool> {
        fault::reach_operation("mkdir")?;
        match rustix::fs::mkdirat(&self.file, name, Mode::from_raw_mode(0o777)) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }

    /// Removes a directory, which has to be empty.
    pub fn remove_folder(&self, name: &[u8]) -> io::Result<()> {
        fault::reach_operation("rmdir")?;
        Ok(rustix::fs::unlinkat(&self.file, name, AtFlags::REMOVEDIR)?)
    }

    /// Removes a directory if it is empty. False where it is not, or is not there, or no directory.
    pub fn remove_empty_folder(&self, name: &[u8]) -> io::Result<bool> {
        match self.remove_folder(name) {
            Ok(()) => Ok(true),
            Err(e) => match Errno::from_io_error(&e) {
                Some(Errno::NOTEMPTY | Errno::EXIST | Errno::NOENT | Errno::NOTDIR | Errno::BUSY) => {
                    Ok(false)
                }
                _ => Err(e),
            },
        }
    }

    /// Removes a name that is no directory's. The caller has made sure that what lies there is ours or is
    /// kept.
    pub fn unlink(&self, name: &[u8]) -> io::Result<()> {
        fault::reach_operation("unlink")?;
        rustix::fs::unlinkat(&self.file, name, AtFlags::empty())?;
        fault::reach_operation("unlinked")
    }

    /// Lets two names change places, atomically. `Unsupported` where the file system cannot.
    pub fn exchange_names(&self, name: &[u8], other: &Folder, other_name: &[u8]) -> io::Result<()> {
        fault::reach_operation("exchange")?;
        match rename_entry(self, name, other, other_name, RenameFlags::EXCHANGE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Err(io::ErrorKind::Unsupported.into()),
            Err(e) => Err(e.into()),
            Ok(()) => fault::reach_operation("exchanged"),
        }
    }

    /// Gives an object another name, which must be free: `AlreadyExists` otherwise.
    pub fn move_to(&self, name: &[u8], other: &Folder, other_name: &[u8]) -> io::Result<()> {
        fault::reach_operation("move")?;
        match rename_entry(self, name, other, other_name, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => self.link_to(name, other, other_name)?,
            other => other?,
        }
        fault::reach_operation("moved")
    }

    /// Gives whatever lies under a name a name that only we use, and that is free. Unlike [`Folder::move_to`]
    /// this is one step everywhere: a save to `name` in the middle of it could not be told from what was
    /// there before.
    pub fn take_away(&self, name: &[u8], other: &Folder, ours: &[u8]) -> io::Result<()> {
        fault::reach_operation("take")?;
        match rename_entry(self, name, other, ours, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) if other.look_up(ours)?.is_some() => {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                rustix::fs::renameat(&self.file, name, &other.file, ours)?;
            }
            other => other?,
        }
        fault::reach_operation("taken")
    }

    /// Keeps the object under a name in being, so that its inode number names no other one meanwhile. `None`
    /// where there is none.
    pub fn hold_object(&self, name: &[u8]) -> io::Result<Option<HeldObject>> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.file, name, flags, Mode::empty()) {
            Ok(fd) => Ok(Some(HeldObject {
                inode: FolderEntry::from_stat(&rustix::fs::fstat(&fd)?).inode,
                _open: fd,
            })),
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// A move to a free name in two steps. A directory has one name only; it can be moved onto nothing but an
    /// empty directory.
    fn link_to(&self, name: &[u8], other: &Folder, other_name: &[u8]) -> io::Result<()> {
        if self.look_up(name)?.is_some_and(|e| e.kind == FileType::Directory) {
            return Ok(rustix::fs::renameat(&self.file, name, &other.file, other_name)?);
        }
        if fault::without_links() {
            return Err(Errno::PERM.into());
        }
        rustix::fs::linkat(&self.file, name, &other.file, other_name, AtFlags::empty())?;
        fault::reach_operation("linked")?;
        Ok(rustix::fs::unlinkat(&self.file, name, AtFlags::empty())?)
    }

    /// The names in it, sorted by bytes.
    pub fn sorted_names(&self) -> io::Result<Vec<Vec<u8>>> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.file)? {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// Lets its owner list and change it, and nobody else.
    fn let_owner_in(&self) -> io::Result<()> {
        Ok(rustix::fs::fchmod(&self.file, Mode::from_raw_mode(0o700))?)
    }

    /// Sets the times of a name; a link is not followed.
    pub fn set_times(&self, name: &[u8], times: &Timestamps) -> io::Result<()> {
        Ok(rustix::fs::utimensat(&self.file, name, times, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Waits until its names are on disk.
    pub fn sync(&self) -> io::Result<()> {
        fault::reach_operation("sync")?;
        match rustix::fs::fsync(&self.file) {
            // Some file systems sync no directories; others none that is gone by now, with its names.
            Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOENT | Errno::STALE) | Ok(()) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    /// True where a sync of its file system waits for each file of it.
    pub fn syncs_as_whole(&self) -> bool {
        crate::error::presence::syncs_as_whole(&self.file)
    }

    /// Waits until everything of its file system is on disk.
    pub fn sync_file_system(&self) -> io::Result<()> {
        fault::reach_operation("syncfs")?;
        Ok(rustix::fs::syncfs(&self.file)?)
    }
}

impl FolderEntry {
    pub fn from_stat(stat: &Stat) -> Self {
        Self {
            inode: Inode { dev: stat.st_dev, ino: stat.st_ino },
            kind: file_type(stat),
            permissions: stat.st_mode & 0o7777,
            links: stat.st_nlink,
            owner: (stat.st_uid, stat.st_gid),
        }
    }
}

fn rename_entry(
    a: &Folder,
    name: &[u8],
    b: &Folder,
    other: &[u8],
    flags: RenameFlags,
) -> rustix::io::Result<()> {
    if fault::without_flags() {
        return Err(Errno::INVAL);
    }
    rustix::fs::renameat_with(&a.file, name, &b.file, other, flags)
}

/// True where the answer is about what the mount can do, and not about its state: a full disk has room later.
pub fn cannot_be_done(why: &io::Error) -> bool {
    const NEVER: [Errno; 6] =
        [Errno::PERM, Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP, Errno::MLINK, Errno::XDEV];
    why.kind() == io::ErrorKind::Unsupported || Errno::from_io_error(why).is_some_and(|e| NEVER.contains(&e))
}

/// The type of a file.
pub fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// A failure of an operation on a path of the tree.
pub fn path_operation_failed(doing: &str, path: &[u8], error: io::Error) -> Failure {
    let path = display_bytes(path);
    Failure::new(Code::Io, format!("cannot {doing} {path}: {error}")).subject(path)
}

#[cfg(not(test))]
pub mod fault {
    //! Nothing goes wrong on purpose outside of tests.

    #[expect(clippy::unnecessary_wraps, reason = "the tests' version can fail")]
    pub fn reach_operation(_point: &str) -> std::io::Result<()> {
        Ok(())
    }

    pub fn pass_point(_point: &str) {}

    pub fn without_flags() -> bool {
        false
    }

    pub fn without_links() -> bool {
        false
    }
}
