//! The live tree by descriptors: everything happens relative to a directory that was opened beneath the top
//! without following a link.
//!
//! A path is never handed to the kernel as a whole from anywhere else, so a directory that is replaced by a
//! link meanwhile cannot lead a write out of the tree. Names are changed by `renameat2` with a flag that
//! never overwrites. Where a file system knows no such flag, linking (which never overwrites either) takes
//! its place.

use crate::domain::delivery::receipt::Inode;
use crate::domain::value::repo_path::RepoPath;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, ResolveFlags};
use rustix::io::Errno;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::rc::Rc;

/// Open directories are kept up to this number.
const OPEN_FOLDERS: usize = 200;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The top of a tree, open.
#[derive(Debug)]
pub struct Top {
    root: Rc<Folder>,
    open: RefCell<HashMap<RepoPath, Rc<Folder>>>,
}

/// A directory of the tree, open.
#[derive(Debug)]
pub struct Folder {
    file: File,
    pub inode: Inode,
}

/// Why a directory cannot be entered.
#[derive(Debug)]
pub enum Barred {
    /// This component does not exist.
    Missing,
    /// This component is a symbolic link.
    Link(RepoPath),
    /// This component is no directory.
    NotFolder(RepoPath),
    Error(io::Error),
}

/// What lies under a name, without looking into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    pub inode: Inode,
    pub kind: FileType,
    pub permissions: u32,
    pub links: u64,
    pub owner: (u32, u32),
}

/// An object that stays in being, whatever becomes of its names.
#[derive(Debug)]
pub struct Held {
    pub inode: Inode,
    _open: OwnedFd,
}

impl Top {
    /// Opens the top. Links on the way to it are the user's own business.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = Rc::new(Folder::new(rustix::fs::open(path, flags, Mode::empty())?)?);
        Ok(Self { root, open: RefCell::default() })
    }

    /// The directory of that name, as found before or newly opened.
    pub fn folder(&self, path: Option<&RepoPath>) -> Result<Rc<Folder>, Barred> {
        let Some(path) = path else { return Ok(Rc::clone(&self.root)) };
        if let Some(folder) = self.open.borrow().get(path) {
            return Ok(Rc::clone(folder));
        }
        let folder = Rc::new(self.resolve(Some(path))?);
        let mut open = self.open.borrow_mut();
        if open.len() >= OPEN_FOLDERS {
            open.clear();
        }
        open.insert(path.clone(), Rc::clone(&folder));
        Ok(folder)
    }

    /// The directory of that name, resolved now from the top.
    pub fn resolve(&self, path: Option<&RepoPath>) -> Result<Folder, Barred> {
        let Some(path) = path else { return self.root.again().map_err(Barred::Error) };
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(&self.root.file, path.as_path(), FOLDER, Mode::empty(), beneath) {
            Ok(fd) => Folder::new(fd).map_err(Barred::Error),
            Err(_) => self.walk(path),
        }
    }

    /// Component by component: where `openat2` does not exist, and to find out which component bars the way.
    fn walk(&self, path: &RepoPath) -> Result<Folder, Barred> {
        let mut at = self.root.again().map_err(Barred::Error)?;
        for step in path.ancestors().into_iter().chain([path.clone()]) {
            at = match at.enter(step.file_name()) {
                Ok(next) => next,
                Err(Errno::NOENT) => return Err(Barred::Missing),
                Err(Errno::LOOP | Errno::NOTDIR) => {
                    let link = at.entry(step.file_name()).ok().flatten();
                    let is_link = link.is_some_and(|e| e.kind == FileType::Symlink);
                    return Err(if is_link { Barred::Link(step) } else { Barred::NotFolder(step) });
                }
                Err(e) => return Err(Barred::Error(e.into())),
            };
        }
        Ok(at)
    }
}

impl Folder {
    fn new(fd: OwnedFd) -> io::Result<Self> {
        let stat = rustix::fs::fstat(&fd)?;
        Ok(Self { file: File::from(fd), inode: Inode { dev: stat.st_dev, ino: stat.st_ino } })
    }

    fn again(&self) -> io::Result<Self> {
        Ok(Self { file: self.file.try_clone()?, inode: self.inode })
    }

    fn enter(&self, name: &[u8]) -> Result<Self, Errno> {
        let fd = rustix::fs::openat(&self.file, name, FOLDER, Mode::empty())?;
        Self::new(fd).map_err(|_| Errno::IO)
    }

    /// The directory of that name in this one.
    pub fn subfolder(&self, name: &[u8]) -> io::Result<Self> {
        Ok(self.enter(name)?)
    }

    /// What lies under a name; links are not followed.
    pub fn entry(&self, name: &[u8]) -> io::Result<Option<Entry>> {
        match rustix::fs::statat(&self.file, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Entry::of(&stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// Opens a file for reading: no link, and no waiting for a pipe's other end.
    pub fn open(&self, name: &[u8]) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        Ok(File::from(rustix::fs::openat(&self.file, name, flags, Mode::empty())?))
    }

    /// Makes a file that must not exist. The mode is narrowed by the umask or by the directory's default ACL.
    pub fn create(&self, name: &[u8], permissions: u32) -> io::Result<File> {
        fault::reach("create")?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.file, name, flags, Mode::from_raw_mode(permissions))?;
        fault::reach("created")?;
        Ok(File::from(fd))
    }

    /// Makes a symbolic link that must not exist.
    pub fn symlink(&self, name: &[u8], target: &[u8]) -> io::Result<()> {
        fault::reach("symlink")?;
        Ok(rustix::fs::symlinkat(target, &self.file, name)?)
    }

    /// The target of a symbolic link.
    pub fn target(&self, name: &[u8]) -> io::Result<Vec<u8>> {
        Ok(rustix::fs::readlinkat(&self.file, name, Vec::new())?.into_bytes())
    }

    /// Makes a directory. True where it is new, false where one was there.
    pub fn make_folder(&self, name: &[u8]) -> io::Result<bool> {
        fault::reach("mkdir")?;
        match rustix::fs::mkdirat(&self.file, name, Mode::from_raw_mode(0o777)) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }

    /// Removes a directory if it is empty. False where it is not, or is not there, or no directory.
    pub fn remove_folder(&self, name: &[u8]) -> io::Result<bool> {
        fault::reach("rmdir")?;
        match rustix::fs::unlinkat(&self.file, name, AtFlags::REMOVEDIR) {
            Ok(()) => Ok(true),
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOENT | Errno::NOTDIR | Errno::BUSY) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }

    /// Removes a name. The caller has made sure that what lies there is ours or is kept.
    pub fn unlink(&self, name: &[u8]) -> io::Result<()> {
        fault::reach("unlink")?;
        rustix::fs::unlinkat(&self.file, name, AtFlags::empty())?;
        fault::reach("unlinked")
    }

    /// Lets two names change places, atomically. `Unsupported` where the file system cannot.
    pub fn exchange(&self, name: &[u8], other: &Folder, other_name: &[u8]) -> io::Result<()> {
        fault::reach("exchange")?;
        match rename(self, name, other, other_name, RenameFlags::EXCHANGE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Err(io::ErrorKind::Unsupported.into()),
            Err(e) => Err(e.into()),
            Ok(()) => fault::reach("exchanged"),
        }
    }

    /// Gives an object another name, which must be free: `AlreadyExists` otherwise.
    pub fn move_to(&self, name: &[u8], other: &Folder, other_name: &[u8]) -> io::Result<()> {
        fault::reach("move")?;
        match rename(self, name, other, other_name, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => self.link_to(name, other, other_name)?,
            other => other?,
        }
        fault::reach("moved")
    }

    /// Gives whatever lies under a name a name that only we use, and that is free. Unlike [`Folder::move_to`]
    /// this is one step everywhere: a save to `name` in the middle of it could not be told from what was
    /// there before.
    pub fn take_away(&self, name: &[u8], other: &Folder, ours: &[u8]) -> io::Result<()> {
        fault::reach("take")?;
        match rename(self, name, other, ours, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) if other.entry(ours)?.is_some() => {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                rustix::fs::renameat(&self.file, name, &other.file, ours)?;
            }
            other => other?,
        }
        fault::reach("taken")
    }

    /// Keeps the object under a name in being, so that its inode number names no other one meanwhile. `None`
    /// where there is none.
    pub fn hold(&self, name: &[u8]) -> io::Result<Option<Held>> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.file, name, flags, Mode::empty()) {
            Ok(fd) => Ok(Some(Held { inode: Entry::of(&rustix::fs::fstat(&fd)?).inode, _open: fd })),
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// A move to a free name in two steps. A directory has one name only; it can be moved onto nothing but an
    /// empty directory.
    fn link_to(&self, name: &[u8], other: &Folder, other_name: &[u8]) -> io::Result<()> {
        if self.entry(name)?.is_some_and(|e| e.kind == FileType::Directory) {
            return Ok(rustix::fs::renameat(&self.file, name, &other.file, other_name)?);
        }
        rustix::fs::linkat(&self.file, name, &other.file, other_name, AtFlags::empty())?;
        fault::reach("linked")?;
        Ok(rustix::fs::unlinkat(&self.file, name, AtFlags::empty())?)
    }

    pub fn names(&self) -> io::Result<Vec<Vec<u8>>> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.file)? {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Waits until its names are on disk.
    pub fn sync(&self) -> io::Result<()> {
        fault::reach("sync")?;
        match rustix::fs::fsync(&self.file) {
            Err(Errno::INVAL | Errno::OPNOTSUPP) | Ok(()) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    /// Waits until everything of its file system is on disk.
    pub fn sync_file_system(&self) -> io::Result<()> {
        fault::reach("syncfs")?;
        Ok(rustix::fs::syncfs(&self.file)?)
    }
}

impl Entry {
    pub fn of(stat: &rustix::fs::Stat) -> Self {
        Self {
            inode: Inode { dev: stat.st_dev, ino: stat.st_ino },
            kind: FileType::from_raw_mode(stat.st_mode),
            permissions: stat.st_mode & 0o7777,
            links: stat.st_nlink,
            owner: (stat.st_uid, stat.st_gid),
        }
    }
}

fn rename(a: &Folder, name: &[u8], b: &Folder, other: &[u8], flags: RenameFlags) -> Result<(), Errno> {
    if fault::without_flags() {
        return Err(Errno::INVAL);
    }
    rustix::fs::renameat_with(&a.file, name, &b.file, other, flags)
}

#[cfg(not(test))]
pub(super) mod fault {
    //! Nothing goes wrong on purpose outside of tests.

    #[expect(clippy::unnecessary_wraps, reason = "the tests' version can fail")]
    pub(in crate::git) fn reach(_point: &str) -> std::io::Result<()> {
        Ok(())
    }

    pub(in crate::git) fn pass(_point: &str) {}

    pub(super) fn without_flags() -> bool {
        false
    }
}

#[cfg(test)]
pub(crate) mod fault {
    //! Lets a file operation fail, or the process "die" (a panic that only the test catches), at a chosen
    //! place.

    use std::cell::{Cell, RefCell};

    /// What happens at the chosen place.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum What {
        Die,
        Fail(i32),
    }

    type Hook = Box<dyn FnMut(&str)>;

    thread_local! {
        static PLAN: Cell<Option<(u32, What)>> = const { Cell::new(None) };
        static SEEN: Cell<u32> = const { Cell::new(0) };
        static PLAIN: Cell<bool> = const { Cell::new(false) };
        static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
    }

    /// The text of the panic that stands for SIGKILL.
    pub(crate) const DEATH: &str = "killed here on purpose";

    /// From now on the `at`th file operation of this thread goes wrong; `None`: none.
    pub(crate) fn arm(at: Option<(u32, What)>) {
        SEEN.set(0);
        PLAN.set(at);
    }

    /// Number of file operations since [`arm`].
    pub(crate) fn seen() -> u32 {
        SEEN.get()
    }

    /// Pretends that the file system knows neither exchange nor no-replace.
    pub(crate) fn plain_file_system(on: bool) {
        PLAIN.set(on);
    }

    pub(crate) fn hook(hook: Option<Hook>) {
        HOOK.with(|h| *h.borrow_mut() = hook);
    }

    /// A place where nothing can fail, but somebody else may do something.
    pub(crate) fn pass(point: &str) {
        let taken = HOOK.with(|h| h.borrow_mut().take());
        if let Some(mut taken) = taken {
            taken(point);
            HOOK.with(|h| *h.borrow_mut() = Some(taken));
        }
    }

    pub(crate) fn reach(point: &str) -> std::io::Result<()> {
        pass(point);
        SEEN.set(SEEN.get() + 1);
        match PLAN.get() {
            Some((at, what)) if at == SEEN.get() => match what {
                What::Die => std::panic::panic_any(DEATH),
                What::Fail(errno) => Err(std::io::Error::from_raw_os_error(errno)),
            },
            _ => Ok(()),
        }
    }

    pub(crate) fn without_flags() -> bool {
        PLAIN.get()
    }
}
