//! After a repository was moved or copied: where its task worktrees are now, and git's two links between a
//! worktree and its record, made to fit.
//!
//! A folder of worktrees belongs to the repository that its note names. Where that one is gone, or has no
//! record of a worktree in there, the folder goes with us.

use super::anchor::{record_folders, worktree_of_record};
use super::registration::admin_of;
use super::repository::Repository;
use super::worktree::{NOTE, worktree_root};
use crate::error::presence::{is_folder, is_present, means_absent};
use crate::error::{Failure, Result};
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A path that may have moved together with a git directory.
pub fn relocate_path(path: &Path, from: &Path, to: &Path) -> PathBuf {
    replace_prefix(path, main_folder(from), main_folder(to)).unwrap_or_else(|| path.to_path_buf())
}

/// True where git has a record of a worktree whose folder has this name.
pub fn has_record_named(repository: &Repository, task: &str) -> Result<bool> {
    let records = record_folders(repository.common_dir())?;
    Ok(records
        .iter()
        .filter_map(|record| worktree_of_record(record))
        .any(|top| top.file_name() == Some(OsStr::new(task))))
}

/// Where a task's worktree is now that the git directory is no longer at `from`; it may be that nothing is
/// there. Git's record and the worktree name each other afterwards.
pub fn relocate_worktree(repository: &Repository, old: &Path, from: &Path) -> Result<PathBuf> {
    let now = present_worktree(repository, old, from)?;
    if let Some(admin) = admin_of(repository, old)? {
        let dot_git = now.join(".git");
        replace_file(&admin.join("gitdir"), dot_git.as_os_str().as_bytes())?;
        if is_folder(&now)? && !is_folder(&dot_git)? {
            replace_file(&dot_git, &[b"gitdir: ", admin.as_os_str().as_bytes()].concat())?;
        }
    }
    Ok(now)
}

fn present_worktree(repository: &Repository, old: &Path, from: &Path) -> Result<PathBuf> {
    let name = old.file_name().unwrap_or_default();
    let root = old.parent().unwrap_or(old);
    let parents = main_folder(from).parent().zip(main_folder(repository.common_dir()).parent());
    let beside = parents.and_then(|(from, to)| replace_prefix(root, from, to));
    for root in [Some(root.to_path_buf()), beside].into_iter().flatten() {
        if take_root_over(repository, &root, from)? {
            return Ok(root.join(name));
        }
    }
    Ok(worktree_root(repository)?.join(name))
}

/// Makes a folder of worktrees ours that was ours under another name. False: it is somebody else's.
fn take_root_over(repository: &Repository, root: &Path, from: &Path) -> Result<bool> {
    let (note, here) = (root.join(NOTE), repository.common_dir());
    let owner = match std::fs::read(&note) {
        Ok(bytes) => PathBuf::from(OsStr::from_bytes(bytes.trim_ascii_end())),
        Err(e) if means_absent(&e) => return Ok(false),
        Err(e) => return Err(Failure::io_of_ours("read", &note, &e)),
    };
    if owner == here {
        return Ok(true);
    }
    let is_left = owner == from && (!is_present(from)? || !has_record_in(from, root)?);
    if is_left {
        replace_file(&note, here.as_os_str().as_bytes())?;
    }
    Ok(is_left)
}

/// True where that repository has a record of a worktree in this folder.
fn has_record_in(common_dir: &Path, root: &Path) -> Result<bool> {
    let records = record_folders(common_dir)?;
    Ok(records.iter().filter_map(|record| worktree_of_record(record)).any(|top| top.parent() == Some(root)))
}

/// The folder that is moved when somebody moves the repository.
fn main_folder(common_dir: &Path) -> &Path {
    match common_dir.file_name() {
        Some(name) if name == ".git" => common_dir.parent().unwrap_or(common_dir),
        _ => common_dir,
    }
}

fn replace_prefix(path: &Path, from: &Path, to: &Path) -> Option<PathBuf> {
    let rest = path.strip_prefix(from).ok()?;
    Some(if rest.as_os_str().is_empty() { to.to_path_buf() } else { to.join(rest) })
}

fn replace_file(path: &Path, line: &[u8]) -> Result<()> {
    let failed = |e: std::io::Error| Failure::io_of_ours("write", path, &e);
    let folder = path.parent().unwrap_or(path);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    let mut file =
        tempfile::Builder::new().prefix(".new-").permissions(mode).tempfile_in(folder).map_err(failed)?;
    file.write_all(line).and_then(|()| file.write_all(b"\n")).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    file.persist(path).map(drop).map_err(|e| failed(e.error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_in_the_moved_folder_moves_with_it_and_nothing_else() {
        let moved =
            |path: &str| relocate_path(Path::new(path), Path::new("/a/r/.git"), Path::new("/b/q/.git"));
        assert_eq!(moved("/a/r"), Path::new("/b/q"));
        assert_eq!(moved("/a/r/.git/worktrees/x"), Path::new("/b/q/.git/worktrees/x"));
        assert_eq!(moved("/a/r2"), Path::new("/a/r2"));
        let bare =
            relocate_path(Path::new("/a/r.git/worktrees/x"), Path::new("/a/r.git"), Path::new("/b/r.git"));
        assert_eq!(bare, Path::new("/b/r.git/worktrees/x"));
    }
}
