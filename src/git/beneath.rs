//! Files beneath a directory, reached by descriptors only. No call here follows a link, and none leaves the
//! directory that it was opened on, whatever someone else does to the tree meanwhile.

use crate::domain::value::repo_path::{RepoPath, display};
use crate::error::{Code, Failure, Result};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What tells one version of a file from another without reading it. Any write changes the last field, and
/// nobody can set that one.
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
    pub fn of(stat: &Stat) -> Self {
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

#[derive(Debug)]
pub struct Dir(OwnedFd);

impl Dir {
    /// Opens a directory by its full path. Links above it are the user's own and are followed; itself it must
    /// be a directory.
    pub fn open(path: &Path) -> Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        rustix::fs::open(path, flags, Mode::empty())
            .map(Self)
            .map_err(|e| Failure::io("open the directory", path, &e.into()))
    }

    pub fn fd(&self) -> &OwnedFd {
        &self.0
    }

    /// A directory in it; a link in its place is an error.
    pub fn child(&self, name: &[u8]) -> rustix::io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        rustix::fs::openat(&self.0, OsStr::from_bytes(name), flags, Mode::empty()).map(Self)
    }

    /// Likewise, made where it is missing.
    pub fn make_child(&self, name: &[u8]) -> rustix::io::Result<Self> {
        match rustix::fs::mkdirat(&self.0, OsStr::from_bytes(name), Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => self.child(name),
            Err(e) => Err(e),
        }
    }

    /// What an entry is; a link is not followed.
    pub fn stat(&self, name: &[u8]) -> rustix::io::Result<Stat> {
        rustix::fs::statat(&self.0, OsStr::from_bytes(name), AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Opens a file for reading; neither a link nor a device or pipe makes it wait or run.
    pub fn open_file(&self, name: &[u8]) -> rustix::io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        rustix::fs::openat(&self.0, OsStr::from_bytes(name), flags, Mode::empty()).map(File::from)
    }

    /// Makes a new file; one that is there already is an error.
    pub fn create_file(&self, name: &[u8], mode: u32) -> rustix::io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        rustix::fs::openat(&self.0, OsStr::from_bytes(name), flags, Mode::from_raw_mode(mode)).map(File::from)
    }

    pub fn create_link(&self, name: &[u8], target: &[u8]) -> rustix::io::Result<()> {
        rustix::fs::symlinkat(OsStr::from_bytes(target), &self.0, OsStr::from_bytes(name))
    }

    /// Where a link points, as written.
    pub fn read_link(&self, name: &[u8]) -> rustix::io::Result<Vec<u8>> {
        rustix::fs::readlinkat(&self.0, OsStr::from_bytes(name), Vec::new()).map(|target| target.into_bytes())
    }

    /// Removes an entry that is no directory.
    pub fn unlink(&self, name: &[u8]) -> rustix::io::Result<()> {
        rustix::fs::unlinkat(&self.0, OsStr::from_bytes(name), AtFlags::empty())
    }

    pub fn remove_child(&self, name: &[u8]) -> rustix::io::Result<()> {
        rustix::fs::unlinkat(&self.0, OsStr::from_bytes(name), AtFlags::REMOVEDIR)
    }

    /// The names in it, sorted by bytes.
    pub fn names(&self) -> rustix::io::Result<Vec<Vec<u8>>> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.0)? {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }
}

/// Walks along sorted paths and keeps the directories on the way open, so that neighbours cost one open each.
#[derive(Debug)]
pub struct Cursor {
    root: Dir,
    open: Vec<(Vec<u8>, Dir)>,
}

impl Cursor {
    pub fn new(root: &Path) -> Result<Self> {
        Ok(Self { root: Dir::open(root)?, open: Vec::new() })
    }

    /// The directory that holds `path`; `None` where it is missing and not to be made, or where something
    /// else is in the way of it.
    pub fn folder(&mut self, path: &RepoPath) -> Result<Option<&Dir>> {
        self.go(path, false)
    }

    /// The directory that holds `path`, made where it is missing.
    pub fn made_folder(&mut self, path: &RepoPath) -> Result<&Dir> {
        self.go(path, true)?.ok_or_else(|| Failure::internal("a directory that was just made is missing"))
    }

    fn go(&mut self, path: &RepoPath, make: bool) -> Result<Option<&Dir>> {
        let mut names: Vec<&[u8]> = path.components().collect();
        names.pop();
        let common = self.open.iter().zip(&names).take_while(|((have, _), want)| have == *want).count();
        self.open.truncate(common);
        for name in &names[common..] {
            let here = self.open.last().map_or(&self.root, |(_, dir)| dir);
            let next = if make { here.make_child(name) } else { here.child(name) };
            match next {
                Ok(dir) => self.open.push((name.to_vec(), dir)),
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if !make => return Ok(None),
                Err(e) => return Err(failed("open the directory of", path.as_bytes(), e)),
            }
        }
        Ok(Some(self.open.last().map_or(&self.root, |(_, dir)| dir)))
    }

    /// Removes the directory that holds `path`, and those above it, as far as they are empty.
    pub fn remove_empty_folders(&mut self, path: &RepoPath) -> Result<()> {
        for folder in path.ancestors().iter().rev() {
            let Some(above) = self.folder(folder)? else { continue };
            if above.remove_child(folder.file_name()).is_err() {
                break;
            }
            self.open.clear();
        }
        Ok(())
    }
}

/// A failure of an operation on a path of the tree.
pub fn failed(doing: &str, path: &[u8], error: Errno) -> Failure {
    let path = display(path);
    Failure::new(Code::Io, format!("cannot {doing} {path}: {}", std::io::Error::from(error))).subject(path)
}

/// What [`walk`] calls for each entry: its directory, its path from the top, what it is. True: go in.
pub type Visit<'a> = dyn FnMut(&Dir, &[u8], &Stat) -> Result<bool> + 'a;

/// Visits everything beneath a directory, top down, by sorted names. The visitor says of a directory whether
/// to go in.
pub fn walk(root: &Dir, visit: &mut Visit<'_>) -> Result<()> {
    walk_in(root, &mut Vec::new(), visit, &mut |doing, path, e| Err(failed(doing, path, e)))
}

/// Likewise, for whoever only wants to see: what cannot be looked at is left out, and what was replaced
/// meanwhile is gone. Gives how many directories and files were left out; names of them are not told, since
/// not everything here may be known to everyone.
pub fn walk_what_can_be_seen(root: &Dir, visit: &mut Visit<'_>) -> Result<u64> {
    let mut left_out = 0;
    walk_in(root, &mut Vec::new(), visit, &mut |_, _, e| {
        left_out += u64::from(!matches!(e, Errno::NOENT | Errno::NOTDIR | Errno::LOOP));
        Ok(())
    })?;
    Ok(left_out)
}

/// What is done about something that could not be done: what it was, the path, and why not. Where this is
/// fine, the walk goes on without it.
type Fault<'a> = dyn FnMut(&str, &[u8], Errno) -> Result<()> + 'a;

fn walk_in(dir: &Dir, path: &mut Vec<u8>, visit: &mut Visit<'_>, fault: &mut Fault<'_>) -> Result<()> {
    let length = path.len();
    let names = match dir.names() {
        Ok(names) => names,
        Err(e) => return fault("list", path, e),
    };
    for name in names {
        if length > 0 {
            path.push(b'/');
        }
        path.extend(&name);
        match dir.stat(&name) {
            Ok(stat) => {
                if visit(dir, path, &stat)? && kind(&stat) == FileType::Directory {
                    match dir.child(&name) {
                        Ok(child) => walk_in(&child, path, visit, fault)?,
                        Err(e) => fault("open the directory", path, e)?,
                    }
                }
            }
            // Someone removed it between the listing and the look.
            Err(Errno::NOENT) => {}
            Err(e) => fault("look at", path, e)?,
        }
        path.truncate(length);
    }
    Ok(())
}

/// The type of a file.
pub fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Removes a directory's content: links are unlinked and never followed, another file system stays and is an
/// error.
pub fn remove_content(dir: &Dir) -> Result<()> {
    let device = rustix::fs::fstat(dir.fd()).map_err(|e| failed("look at", b".", e))?.st_dev;
    remove_in(dir, device, &mut Vec::new())
}

fn remove_in(dir: &Dir, device: u64, path: &mut Vec<u8>) -> Result<()> {
    let length = path.len();
    for name in dir.names().map_err(|e| failed("list", path, e))? {
        if length > 0 {
            path.push(b'/');
        }
        path.extend(&name);
        let stat = dir.stat(&name).map_err(|e| failed("look at", path, e))?;
        if kind(&stat) == FileType::Directory {
            if stat.st_dev != device {
                return Err(failed(
                    "remove, because another file system is mounted there,",
                    path,
                    Errno::XDEV,
                ));
            }
            let child = dir.child(&name).map_err(|e| failed("open the directory", path, e))?;
            // What a worker made unreadable for itself is still ours to remove.
            let _ = rustix::fs::fchmod(child.fd(), Mode::from_raw_mode(0o700));
            remove_in(&child, device, path)?;
            dir.remove_child(&name).map_err(|e| failed("remove the directory", path, e))?;
        } else {
            dir.unlink(&name).map_err(|e| failed("remove", path, e))?;
        }
        path.truncate(length);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test plays the worker")]
    fn what_cannot_be_seen_is_left_out_and_counted_and_breaks_nothing_else() {
        let home = tempfile::tempdir().expect("a directory");
        for name in ["a", "closed", "swapped", "z"] {
            std::fs::create_dir(home.path().join(name)).expect("made");
            std::fs::write(home.path().join(name).join("file"), "x").expect("written");
        }
        let closed = home.path().join("closed");
        let mode = |mode| std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(&closed, mode(0o000)).expect("closed");
        let root = Dir::open(home.path()).expect("opens");
        let see = || {
            let mut seen = Vec::new();
            let left_out = walk_what_can_be_seen(&root, &mut |_, path, _| {
                seen.push(display(path));
                if path == b"swapped" && home.path().join("swapped").is_dir() {
                    std::fs::rename(home.path().join("swapped"), home.path().join("b")).expect("moved");
                    std::os::unix::fs::symlink("b", home.path().join("swapped")).expect("linked");
                }
                Ok(true)
            });
            (left_out.expect("walks"), seen)
        };
        let (left_out, seen) = see();
        let strict = walk(&root, &mut |_, _, _| Ok(true));
        // Nothing is closed to root.
        if rustix::process::geteuid().is_root() {
            assert_eq!(
                (left_out, seen.join(" ").as_str()),
                (0, "a a/file closed closed/file swapped z z/file")
            );
        } else {
            assert_eq!((left_out, seen.join(" ").as_str()), (1, "a a/file closed swapped z z/file"));
            assert_eq!(strict.expect_err("who captures must see all").subject_text(), Some("closed"));
        }
        std::fs::set_permissions(&closed, mode(0o700)).expect("opened");
    }

    #[test]
    fn a_link_is_never_entered() {
        let home = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(home.path().join("real")).expect("made");
        std::fs::create_dir(home.path().join("top")).expect("made");
        std::os::unix::fs::symlink("../real", home.path().join("top/link")).expect("made");
        let mut cursor = Cursor::new(&home.path().join("top")).expect("opens");
        let path = RepoPath::new("link/file").expect("a path");
        assert!(cursor.folder(&path).expect("looks").is_none());
        cursor.made_folder(&path).expect_err("a link is in the way");
        remove_content(&Dir::open(&home.path().join("top")).expect("opens")).expect("removes");
        assert!(home.path().join("real").is_dir() && !home.path().join("top/link").is_symlink());
    }
}
