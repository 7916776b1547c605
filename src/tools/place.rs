//! The worktree as a worker's tools reach it: by descriptors from its top down, never through a link, within
//! the task's scopes.
//!
//! What a path leads to is found out anew each time, from one open directory to the next. So whoever swaps a
//! directory for a link while a call runs gains nothing: a link is never followed, and an open directory
//! stays the one that was looked at.

use crate::domain::value::digest::{ObjectFormat, ObjectId};
use crate::domain::value::repo_path::RepoPath;
use crate::domain::value::scope::Scope;
use crate::error::{Code, Failure, Result};
use crate::git::beneath::{Barred, Folder, TreeTop, file_type, path_operation_failed};
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The largest file that a tool reads is the largest that can be edited: its ids are taken of all of it.
pub use crate::git::edit::LARGEST;

/// The longest path within the worktree, in bytes.
const LONGEST_PATH: usize = 2_000;
/// The longest name of a file or directory, in bytes.
const LONGEST_NAME: usize = 255;

/// A worktree with what may be read there.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    pub top: &'a Path,
    /// What may be read; `None` is everything.
    pub read: Option<&'a Scope>,
    /// How object ids are made.
    pub format: ObjectFormat,
}

impl Place<'_> {
    /// Checks a path as a worker wrote it.
    pub fn check_path(text: &str) -> Result<RepoPath> {
        let path = RepoPath::new(as_written(text.as_bytes()))?;
        refuse_too_long(&path, Code::ArgumentsInvalid).map(|()| path)
    }

    /// Checks the path of a directory: `None` is the top.
    pub fn folder_path(text: Option<&str>) -> Result<Option<RepoPath>> {
        let Some(text) = text else { return Ok(None) };
        let without_end = text.strip_suffix('/').filter(|rest| !rest.is_empty()).unwrap_or(text);
        match as_written(without_end.as_bytes()) {
            b"" | b"." => Ok(None),
            _ => Self::check_path(without_end).map(Some),
        }
    }

    /// True where the path may be read.
    pub fn may_read(&self, path: &RepoPath) -> bool {
        self.require_readable(path).is_ok()
    }

    /// False where certainly nothing beneath a directory may be read.
    pub fn may_hold(&self, dir: &RepoPath) -> bool {
        self.read.is_none_or(|scope| scope.may_hold(dir))
    }

    /// Refuses a path that may not be read.
    pub fn require_readable(&self, path: &RepoPath) -> Result<()> {
        require_readable(self.read, path)
    }

    /// The open directory that holds a path; `None` where there is none.
    pub fn folder_of(&self, path: &RepoPath) -> Result<Option<Folder>> {
        self.open_folder(path.parent().as_ref())
    }

    /// An open directory; `None` where there is none. A link on the way is refused.
    pub fn open_folder(&self, path: Option<&RepoPath>) -> Result<Option<Folder>> {
        let top = Folder::open_path(self.top)?;
        let Some(path) = path else { return Ok(Some(top)) };
        match TreeTop::from(top).resolve_folder(Some(path)) {
            Ok(folder) => Ok(Some(folder)),
            Err(Barred::Missing | Barred::NotFolder(_)) => Ok(None),
            Err(Barred::Link(_)) => Err(link_refused(path)),
            Err(Barred::Error(e)) => Err(path_operation_failed("open the directory", path.as_bytes(), e)),
        }
    }

    /// Opens a regular file; `None` where there is nothing. Refused (`scope.violation`) where it is a link or
    /// has a second name, and (`arguments.invalid`) where it is no file.
    pub fn open_file(&self, path: &RepoPath) -> Result<Option<(File, Stat)>> {
        let Some(dir) = self.folder_of(path)? else { return Ok(None) };
        let file = match dir.open_file(path.file_name()) {
            Ok(file) => file,
            Err(e) => {
                return match Errno::from_io_error(&e) {
                    Some(Errno::NOENT) => Ok(None),
                    Some(Errno::LOOP | Errno::MLINK) => Err(link_refused(path)),
                    Some(Errno::NXIO | Errno::NODEV) => Err(no_file(path, "a device or socket")),
                    _ => Err(path_operation_failed("open", path.as_bytes(), e)),
                };
            }
        };
        let stat = rustix::fs::fstat(&file)
            .map_err(|e| path_operation_failed("look at", path.as_bytes(), e.into()))?;
        match file_type(&stat) {
            FileType::RegularFile if stat.st_nlink > 1 => Err(Failure::new(
                Code::ScopeViolation,
                format!("{path} is a hard link: the same bytes have another name, which may be outside"),
            )
            .subject(path.to_string())
            .expected("one name", stat.st_nlink)),
            FileType::RegularFile => Ok(Some((file, stat))),
            FileType::Directory => Err(no_file(path, "a directory")),
            FileType::Fifo => Err(no_file(path, "a pipe")),
            _ => Err(no_file(path, "a device or socket")),
        }
    }

    /// All bytes of a file, which has to be there and within [`LARGEST`].
    pub fn read_bytes(&self, path: &RepoPath) -> Result<Vec<u8>> {
        let (file, stat) = self.open_file(path)?.ok_or_else(|| file_missing(path))?;
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        let mut bytes = Vec::with_capacity(usize::try_from(size.min(LARGEST)).unwrap_or(0));
        let read = if size > LARGEST { Ok(0) } else { file.take(LARGEST + 1).read_to_end(&mut bytes) };
        read.map_err(|e| Failure::io("read", path.as_path(), &e))?;
        refuse_too_large(path, size.max(bytes.len() as u64))?;
        Ok(bytes)
    }

    /// Git's id of bytes as they are on disk.
    pub fn blob_id(&self, bytes: &[u8]) -> Result<ObjectId> {
        self.format.blob_id(bytes)
    }
}

/// Refuses what is longer than a tool reads, wherever it lies.
pub fn refuse_too_large(path: &RepoPath, size: u64) -> Result<()> {
    if size <= LARGEST {
        return Ok(());
    }
    Err(Failure::new(Code::ArgumentsInvalid, format!("{path} has {size} bytes; at most {LARGEST} are read"))
        .subject(path.to_string())
        .expected(LARGEST, size)
        .advice("Search in smaller files, or have a verifier look at it."))
}

/// A path as workers write it: `./` at its beginning, however often, says nothing.
pub fn as_written(mut name: &[u8]) -> &[u8] {
    while let Some(rest) = name.strip_prefix(b"./") {
        name = rest;
    }
    name
}

/// Refuses what no file system takes, or only far from its top: slots of verifiers lie deeper than the
/// worktree.
pub fn refuse_too_long(path: &RepoPath, code: Code) -> Result<()> {
    let longest = path.components().map(<[u8]>::len).max().unwrap_or(0);
    let (what, most, actual) = match path.as_bytes().len() {
        length if length > LONGEST_PATH => ("the path", LONGEST_PATH, length),
        _ if longest > LONGEST_NAME => ("a name in the path", LONGEST_NAME, longest),
        _ => return Ok(()),
    };
    let shown: String = path.to_string().chars().take(80).collect();
    Err(Failure::new(code, format!("{what} {shown}… has {actual} bytes; at most {most} can be written"))
        .subject(shown)
        .expected(most, actual)
        .advice("Choose a shorter name."))
}

/// Refuses a path outside of what may be read; `None` is everything.
pub fn require_readable(scope: Option<&Scope>, path: &RepoPath) -> Result<()> {
    match scope {
        Some(scope) if !scope.matches_path(path) => {
            Err(Failure::new(Code::ScopeViolation, format!("{path} is outside of what this task may read"))
                .subject(path.to_string())
                .expected(scope.patterns(), path)
                .advice("Read within the scope, or propose an amendment of readScope."))
        }
        _ => Ok(()),
    }
}

/// There is no such file.
pub fn file_missing(path: &RepoPath) -> Failure {
    Failure::new(Code::NotFound, format!("the worktree has no file {path}"))
        .subject(path.to_string())
        .advice("List the files that are there.")
}

fn link_refused(path: &RepoPath) -> Failure {
    Failure::new(
        Code::ScopeViolation,
        format!("{path} is or goes through a symbolic link, which is not followed"),
    )
    .subject(path.to_string())
    .expected("a path without links", "a symbolic link")
}

fn no_file(path: &RepoPath, what: &str) -> Failure {
    Failure::new(Code::ArgumentsInvalid, format!("{path} is {what}, not a file"))
        .subject(path.to_string())
        .expected("a regular file", what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::patch_formats;

    #[test]
    fn a_dot_before_a_path_says_nothing_to_any_tool() {
        for text in ["a/b", "./a/b", "././a/b", "./././a/b"] {
            assert_eq!(Place::check_path(text).expect(text).as_bytes(), b"a/b");
            assert_eq!(patch_formats::parse_written_path(text).expect(text).as_bytes(), b"a/b");
            assert_eq!(
                Place::folder_path(Some(&format!("{text}/"))).expect(text),
                Some(RepoPath::new("a/b").expect("a path"))
            );
        }
        for top in [".", "./", "././", ""] {
            assert_eq!(Place::folder_path(Some(top)).expect("the top"), None, "{top:?}");
        }
        for wrong in ["/a", ".//a", "./../a", "a/./b", "/"] {
            assert!(
                Place::check_path(wrong).is_err() && patch_formats::parse_written_path(wrong).is_err(),
                "{wrong:?}"
            );
            assert!(Place::folder_path(Some(wrong)).is_err(), "{wrong:?}");
        }
    }
}
