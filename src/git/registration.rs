//! Git's registry of worktrees, written by ourselves in an ordinary repository as git itself writes it; in
//! any other one git is asked.

use super::command::join_absolute;
use super::repository::Repository;
use crate::domain::value::digest::ObjectId;
use crate::error::presence::means_absent;
use crate::error::{Code, Failure, Result};
use std::ffi::OsStr;
use std::io::{ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// How often a new worktree is registered again after git's gc has removed the folder of its records.
const RETRIES: usize = 20;
/// How many names are tried for a record.
const NAMES: u32 = 1000;

/// Registers a worktree whose HEAD is detached at a commit, without a file in it, and gives the folder of
/// git's record of it. The caller holds the lock around the registry.
pub(super) fn register_worktree(repository: &Repository, path: &Path, head: &ObjectId) -> Result<PathBuf> {
    if is_ours_to_write(repository, path)? {
        return write_record(repository, path, head)
            .map_err(|e| Failure::io("register the worktree", path, &e));
    }
    let add = || {
        let git = repository.git_call().cwd(repository.common_dir());
        git.with_setting("core.sparseCheckout=false")
            .with_setting("worktree.guessRemote=false")
            .args(["worktree", "add", "--no-checkout", "--detach", "-q"])
            .arg(path)
            .arg(head.as_str())
            .run()
    };
    let mut output = add()?;
    // Git's gc removes the folder of its records while it is empty, also from under whoever makes the first
    // one.
    for _ in 0..RETRIES {
        if output.success() || !output.stderr.contains("could not create directory of") {
            break;
        }
        output = add()?;
    }
    if !output.success() {
        return Err(output.to_failure().subject(path.display().to_string()));
    }
    admin_of(repository, path)?.ok_or_else(|| Failure::new(Code::Io, "git registered no worktree"))
}

/// Git's own record of a worktree: the directory under `worktrees/` whose `gitdir` names it.
pub fn admin_of(repository: &Repository, path: &Path) -> Result<Option<PathBuf>> {
    let folder = repository.common_dir().join("worktrees");
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Failure::io("list", &folder, &e)),
    };
    let resolved = |p: &Path| p.canonicalize().unwrap_or_else(|_| p.to_path_buf());
    let wanted = resolved(path);
    for entry in entries.flatten() {
        let file = entry.path().join("gitdir");
        let link = match std::fs::read(&file) {
            Ok(link) => link,
            Err(e) if means_absent(&e) => continue,
            Err(e) => return Err(Failure::io_of_ours("read", &file, &e)),
        };
        let link = join_absolute(&entry.path(), Path::new(OsStr::from_bytes(link.trim_ascii_end())));
        if link.parent().is_some_and(|top| top == path || resolved(top) == wanted) {
            return Ok(Some(entry.path()));
        }
    }
    Ok(None)
}

/// Not where git would ask more: who may write what it makes, or which name a record can have.
fn is_ours_to_write(repository: &Repository, path: &Path) -> Result<bool> {
    let is_plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    let has_plain_name = path.file_name().is_some_and(|name| name.as_bytes().iter().all(is_plain));
    let is_one_line = !path.as_os_str().as_bytes().contains(&b'\n');
    Ok(repository.is_ordinary()
        && has_plain_name
        && is_one_line
        && path.is_absolute()
        && repository.config_value("core.sharedRepository")?.is_none())
}

fn write_record(repository: &Repository, path: &Path, head: &ObjectId) -> std::io::Result<PathBuf> {
    let admin = make_record_folder(repository, path)?;
    let dot_git = path.join(".git");
    // That it belongs to this worktree first: without that git takes the record for a leftover.
    write_line(&admin.join("gitdir"), dot_git.as_os_str())?;
    write_line(&admin.join("HEAD"), OsStr::new(head.as_str()))?;
    write_line(&admin.join("commondir"), OsStr::new("../.."))?;
    std::fs::create_dir(admin.join("refs"))?;
    match std::fs::create_dir(path) {
        Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(e),
        _ => {}
    }
    let link = [b"gitdir: ", admin.as_os_str().as_bytes()].concat();
    write_line(&dot_git, OsStr::from_bytes(&link))?;
    Ok(admin)
}

fn make_record_folder(repository: &Repository, path: &Path) -> std::io::Result<PathBuf> {
    let folder = repository.common_dir().join("worktrees");
    let name = path.file_name().unwrap_or_default();
    for number in 0..NAMES {
        let mut name = name.to_owned();
        if number > 0 {
            name.push(number.to_string());
        }
        for _ in 0..RETRIES {
            match std::fs::create_dir(&folder) {
                Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(e),
                _ => {}
            }
            match std::fs::create_dir(folder.join(&name)) {
                Ok(()) => return Ok(folder.join(&name)),
                Err(e) if e.kind() == ErrorKind::AlreadyExists => break,
                // Git's gc removes the folder of all records while it is empty.
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) => return Err(e),
            }
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

fn write_line(file: &Path, line: &OsStr) -> std::io::Result<()> {
    let mut made = std::fs::File::create_new(file)?;
    made.write_all(&[line.as_bytes(), b"\n"].concat())
}
