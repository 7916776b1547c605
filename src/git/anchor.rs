//! The file in a task worktree's own git directory that holds the head of the ledger.
//!
//! It lies outside the store, so that a store that was set back can be told. It goes with the worktree, and
//! comes back with a copy of the whole repository.

use super::boot::boot_id;
use super::command::join_absolute;
use super::repository::Repository;
use super::worktree::is_in_root;
use crate::domain::ledger::head::HeadAnchor;
use crate::error::presence::means_absent;
use crate::error::{Failure, Result};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const NAME: &str = "tender-ledger";

/// An anchor as it was found.
#[derive(Debug)]
pub struct FoundAnchor {
    pub place: HeadAnchor,
    pub worktree: PathBuf,
    pub text: String,
}

/// Where the anchor of a task lies; `None` where git has no record of its worktree.
pub fn anchor_of_task(repository: &Repository, task: &str) -> Result<Option<HeadAnchor>> {
    let path = anchor_file(repository, task)?;
    Ok(path.map(|path| HeadAnchor { path, boot: boot_id() }))
}

fn anchor_file(repository: &Repository, task: &str) -> Result<Option<PathBuf>> {
    let records = repository.common_dir().join("worktrees");
    let is_of_task = |admin: &Path| {
        worktree_of_record(admin)
            .is_some_and(|top| top.file_name() == Some(OsStr::new(task)) && is_in_root(repository, &top))
    };
    // Git names the record after the folder, unless that name was taken.
    let usual = records.join(task);
    if is_of_task(&usual) {
        return Ok(Some(usual.join(NAME)));
    }
    let admin = record_folders(repository.common_dir())?.into_iter().find(|admin| is_of_task(admin));
    Ok(admin.map(|admin| admin.join(NAME)))
}

/// The anchors of all worktrees.
pub fn find_anchors(repository: &Repository) -> Result<Vec<FoundAnchor>> {
    let (mut found, boot) = (Vec::new(), boot_id());
    for admin in record_folders(repository.common_dir())? {
        let path = admin.join(NAME);
        let text = match std::fs::read(&path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(e) if means_absent(&e) => continue,
            Err(e) => return Err(Failure::io_of_ours("read", &path, &e)),
        };
        let worktree = worktree_of_record(&admin).unwrap_or_else(|| admin.clone());
        found.push(FoundAnchor { place: HeadAnchor { path, boot: boot.clone() }, worktree, text });
    }
    found.sort_by(|one, other| one.place.path.cmp(&other.place.path));
    Ok(found)
}

/// Git's records of all linked worktrees.
pub(super) fn record_folders(common_dir: &Path) -> Result<Vec<PathBuf>> {
    let records = common_dir.join("worktrees");
    let failed = |e: std::io::Error| Failure::io_of_ours("list", &records, &e);
    match std::fs::read_dir(&records) {
        Ok(entries) => entries.map(|entry| entry.map(|entry| entry.path()).map_err(failed)).collect(),
        Err(e) if means_absent(&e) => Ok(Vec::new()),
        Err(e) => Err(failed(e)),
    }
}

/// The worktree that a record of git's is about.
pub(super) fn worktree_of_record(admin: &Path) -> Option<PathBuf> {
    let link = std::fs::read(admin.join("gitdir")).ok()?;
    let link = join_absolute(admin, Path::new(OsStr::from_bytes(link.trim_ascii_end())));
    link.parent().map(Path::to_path_buf)
}
