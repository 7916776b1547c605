//! One copy of ignored files, place by place, from one folder to another.

use super::BroughtExtras;
use crate::domain::ledger::brought::{BroughtEntry, BroughtKind};
use crate::domain::value::digest::Sha256;
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Code, Failure, Result};
use crate::git::beneath::{
    CopyCost, Folder, FolderCursor, Stamp, copy_file, file_type, path_operation_failed,
};
use rustix::fs::{FileType, Stat};
use std::io::{self, Read};
use std::path::Path;

/// A file of this size at most is known by its content afterwards.
const LARGEST_KNOWN: u64 = 1 << 20;

/// How many levels of folders are copied.
const DEEPEST: usize = 500;

pub(super) struct ExtraCopy<'a> {
    from: FolderCursor,
    to: FolderCursor,
    progress: &'a dyn Fn(u64, u64),
}

impl<'a> ExtraCopy<'a> {
    pub(super) fn new(from: &Path, to: &Path, progress: &'a dyn Fn(u64, u64)) -> Result<Self> {
        Ok(Self { from: FolderCursor::new(from)?, to: FolderCursor::new(to)?, progress })
    }

    /// Copies a file, a link, or a folder with all that is in it; nothing that is there is replaced.
    pub(super) fn copy_place(&mut self, path: &RepoPath, brought: &mut BroughtExtras) -> Result<()> {
        // Where it is gone by now, there is nothing to bring.
        let Some(from) = self.from.folder_of(path)? else { return Ok(()) };
        let Ok(stat) = from.stat(path.file_name()) else { return Ok(()) };
        let Ok(to) = self.to.made_folder(path) else {
            brought.leave_out(path, "the base has something else in its place");
            return Ok(());
        };
        copy_entry(from, to, path, &stat, &mut Destination { brought, progress: self.progress, depth: 0 })
    }
}

struct Destination<'b, 'p> {
    brought: &'b mut BroughtExtras,
    progress: &'p dyn Fn(u64, u64),
    depth: usize,
}

impl Destination<'_, '_> {
    fn note_entry(&mut self, path: &RepoPath, kind: BroughtKind) {
        self.brought.entries.push(BroughtEntry { path: path.clone(), kind });
    }

    fn count_copy(&mut self) {
        self.brought.copied += 1;
        (self.progress)(self.brought.copied, 0);
    }
}

/// Copies what lies under a path; it becomes a place of its own.
fn copy_entry(
    from: &Folder,
    to: &Folder,
    path: &RepoPath,
    stat: &Stat,
    into: &mut Destination<'_, '_>,
) -> Result<()> {
    let name = path.file_name();
    let done = match file_type(stat) {
        FileType::Directory => return copy_folder_place(from, to, path, into),
        FileType::RegularFile => copy_regular(from, to, name, stat, into)
            .and_then(|()| content_of(to, name, stat))
            .map(|sha256| into.note_entry(path, BroughtKind::File(sha256))),
        FileType::Symlink => copy_link(from, to, path, into).map(|is_made| {
            if is_made {
                into.note_entry(path, BroughtKind::Link);
            }
        }),
        _ => return Ok(()),
    };
    tell_what_stopped(path, done, into)
}

/// What cannot be read is left out; a full disk is a failure.
fn tell_what_stopped(path: &RepoPath, done: io::Result<()>, into: &mut Destination<'_, '_>) -> Result<()> {
    match done {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
            into.brought.leave_out(path, "the base has it");
            Ok(())
        }
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
            into.brought.leave_out(path, e.to_string());
            Ok(())
        }
        Err(e) => Err(path_operation_failed("copy", path.as_bytes(), e)),
    }
}

/// A folder that is new in the worktree is one place; in one that the base has, each entry is.
fn copy_folder_place(
    from: &Folder,
    to: &Folder,
    path: &RepoPath,
    into: &mut Destination<'_, '_>,
) -> Result<()> {
    let failed = |e: io::Error| path_operation_failed("copy", path.as_bytes(), e);
    if into.depth >= DEEPEST {
        return Err(Failure::new(Code::Io, format!("{path} lies more than {DEEPEST} folders deep")));
    }
    let source = match from.open_subfolder(path.file_name()) {
        Ok(source) => source,
        Err(e) => return tell_what_stopped(path, Err(e), into),
    };
    let is_new = match to.look_up(path.file_name()).map_err(failed)? {
        None => to.make_folder(path.file_name()).map_err(failed)?,
        Some(_) => false,
    };
    let Ok(target) = to.open_subfolder(path.file_name()) else {
        into.brought.leave_out(path, "the base has something else in its place");
        return Ok(());
    };
    if is_new {
        into.note_entry(path, BroughtKind::Folder);
        return copy_content(&source, &target, path, into);
    }
    into.depth += 1;
    for name in source.sorted_names().map_err(failed)? {
        let (Ok(below), Ok(stat)) = (path.join_below(&name), source.stat(&name)) else { continue };
        copy_entry(&source, &target, &below, &stat, into)?;
    }
    into.depth -= 1;
    Ok(())
}

/// All that is in a folder, into one that is new; no git directory.
fn copy_content(from: &Folder, to: &Folder, path: &RepoPath, into: &mut Destination<'_, '_>) -> Result<()> {
    if into.depth >= DEEPEST {
        return Err(Failure::new(Code::Io, format!("{path} lies more than {DEEPEST} folders deep")));
    }
    into.depth += 1;
    let names = from.sorted_names().map_err(|e| path_operation_failed("list", path.as_bytes(), e))?;
    for name in names {
        let (Ok(below), Ok(stat)) = (path.join_below(&name), from.stat(&name)) else { continue };
        let done = match file_type(&stat) {
            FileType::Directory => {
                match from.open_subfolder(&name).and_then(|source| Ok((source, to.make_subfolder(&name)?))) {
                    Ok((source, target)) => {
                        copy_content(&source, &target, &below, into)?;
                        Ok(())
                    }
                    Err(e) => Err(e),
                }
            }
            FileType::RegularFile => copy_regular(from, to, &name, &stat, into),
            FileType::Symlink => copy_link(from, to, &below, into).map(drop),
            _ => Ok(()),
        };
        tell_what_stopped(&below, done, into)?;
    }
    into.depth -= 1;
    Ok(())
}

fn copy_regular(
    from: &Folder,
    to: &Folder,
    name: &[u8],
    stat: &Stat,
    into: &mut Destination<'_, '_>,
) -> io::Result<()> {
    let size = Stamp::of_stat(stat).size;
    match copy_file(from, to, name, stat)? {
        CopyCost::Shared => into.brought.shared += size,
        CopyCost::Written => into.brought.bytes += size,
    }
    into.count_copy();
    Ok(())
}

/// Makes the same link, but for a relative one that leads out of the tree: from the worktree it would lead
/// elsewhere.
fn copy_link(
    from: &Folder,
    to: &Folder,
    path: &RepoPath,
    into: &mut Destination<'_, '_>,
) -> io::Result<bool> {
    let target = from.read_link(path.file_name())?;
    if !target.starts_with(b"/") && leaves_tree(path, &target) {
        into.brought.leave_out(path, "it is a link out of the repository");
        return Ok(false);
    }
    to.create_link(path.file_name(), &target)?;
    into.count_copy();
    Ok(true)
}

/// True where a relative target has more steps up than there are folders above.
fn leaves_tree(path: &RepoPath, target: &[u8]) -> bool {
    let mut depth = path.ancestors().len();
    for step in target.split(|b| *b == b'/') {
        match step {
            b"" | b"." => {}
            b".." if depth == 0 => return true,
            b".." => depth -= 1,
            _ => depth += 1,
        }
    }
    false
}

/// The digest of a file that was just written; of a large one, of its size alone.
fn content_of(folder: &Folder, name: &[u8], stat: &Stat) -> io::Result<Sha256> {
    let size = Stamp::of_stat(stat).size;
    if size > LARGEST_KNOWN {
        return Ok(digest_of_size(size));
    }
    let mut bytes = Vec::new();
    folder.open_file(name)?.read_to_end(&mut bytes)?;
    Ok(Sha256::of(&bytes))
}

fn digest_of_size(size: u64) -> Sha256 {
    Sha256::of(format!("{size} bytes").as_bytes())
}

/// True where a file is as it was brought.
pub fn is_as_brought(file: &Path, known: Sha256) -> bool {
    let Ok(found) = file.symlink_metadata() else { return true };
    if found.len() > LARGEST_KNOWN {
        return digest_of_size(found.len()) == known;
    }
    std::fs::read(file).is_ok_and(|bytes| Sha256::of(&bytes) == known)
}
