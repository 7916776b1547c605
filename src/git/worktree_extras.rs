//! What git ignores in the user's tree, brought into a task's worktree: copies, links, submodules.
//!
//! Only ignored files are brought, only to places where the worktree has nothing and where its own rules
//! ignore them too, and no link is followed on either side. The user's tree is only read.

mod copy;
mod modules;
mod select;

pub use copy::is_as_brought;
pub use modules::check_out_submodules;

use super::beneath::{Folder, FolderCursor, Stamp, remove_content, walk_what_can_be_seen};
use super::command::Git;
use super::command::Quarantine;
use super::repository::Repository;
use super::{capture, tree};
use crate::domain::contract::worktree_rules::WorktreeRules;
use crate::domain::ledger::brought::{BroughtEntry, BroughtKind, BroughtPlaces, LeftOut};
use crate::domain::value::digest::{ObjectId, Sha256};
use crate::domain::value::repo_path::RepoPath;
use crate::error::presence::is_present;
use crate::error::{Failure, Result};
use copy::ExtraCopy;
use select::{Selection, find_ignored, select_wanted};
use std::path::Path;

/// Names what is to be copied in git's own syntax for ignored files.
pub const INCLUDE_FILE: &str = ".worktreeinclude";

/// A worktree that was filled and is to get more.
#[derive(Debug, Clone, Copy)]
pub struct ExtrasJob<'a> {
    pub repository: &'a Repository,
    pub quarantine: &'a Quarantine,
    pub worktree: &'a Path,
    /// What the worktree holds.
    pub tree: &'a ObjectId,
    /// The tree of the base commit, whose `.worktreeinclude` counts.
    pub commit_tree: &'a ObjectId,
}

/// What was brought.
#[derive(Debug, Default)]
pub struct BroughtExtras {
    pub entries: Vec<BroughtEntry>,
    pub copied: u64,
    pub linked: u64,
    pub bytes: u64,
    pub shared: u64,
    pub left: Vec<LeftOut>,
}

impl BroughtExtras {
    fn leave_out(&mut self, path: &RepoPath, why: impl Into<String>) {
        self.left.push(LeftOut { path: path.clone(), why: why.into() });
    }

    /// The places, to be looked up.
    pub fn places(&self) -> BroughtPlaces {
        BroughtPlaces(self.entries.clone())
    }
}

/// Copies and links what the rules and the base's `.worktreeinclude` name, but for what is `made` otherwise.
pub fn bring_extras(
    job: ExtrasJob<'_>,
    rules: &WorktreeRules,
    made: &BroughtPlaces,
    progress: &dyn Fn(u64, u64),
) -> Result<BroughtExtras> {
    let mut brought = BroughtExtras::default();
    let include = read_include_file(job)?;
    let Ok(top) = job.repository.top() else { return Ok(brought) };
    if rules.brings_nothing() && include.is_none() {
        return Ok(brought);
    }
    let ignored = find_ignored(job.repository)?;
    for path in &rules.link {
        link_path(job, top, path, &ignored, &mut brought)?;
    }
    let selection = Selection::new(job, &rules.copy, include.as_deref())?;
    let wanted = select_wanted(top, &ignored, &selection)?;
    let wanted = wanted.into_iter().filter(|path| !brought.places().hold(path) && !made.hold(path)).collect();
    copy_paths(top, job.worktree, wanted, &mut brought, progress)?;
    take_back_captured(job, &mut brought)?;
    Ok(brought)
}

/// Copies places of one folder into another.
pub fn copy_paths(
    from: &Path,
    to: &Path,
    paths: Vec<RepoPath>,
    brought: &mut BroughtExtras,
    progress: &dyn Fn(u64, u64),
) -> Result<()> {
    let mut copy = ExtraCopy::new(from, to, progress)?;
    for path in paths {
        copy.copy_place(&path, brought)?;
    }
    Ok(())
}

/// The base's `.worktreeinclude`.
fn read_include_file(job: ExtrasJob<'_>) -> Result<Option<Vec<u8>>> {
    let objects = job.repository.object_reader(None)?;
    match tree::find_entry(&objects, job.commit_tree, &RepoPath::new(INCLUDE_FILE)?)? {
        Some(file) if file.mode.is_regular() => objects.read_blob(&file.id).map(Some),
        _ => Ok(None),
    }
}

fn link_path(
    job: ExtrasJob<'_>,
    top: &Path,
    path: &RepoPath,
    ignored: &select::IgnoredPaths,
    brought: &mut BroughtExtras,
) -> Result<()> {
    let mut live = FolderCursor::new(top)?;
    let there = match live.folder_of(path)? {
        Some(folder) => folder.look_up(path.file_name()).map_err(|e| failed("look at", path, e))?,
        None => None,
    };
    if there.is_none() {
        brought.leave_out(path, "it is not there");
        return Ok(());
    }
    if !ignored.cover(path) {
        brought.leave_out(path, "git does not ignore it");
        return Ok(());
    }
    let mut target = FolderCursor::new(job.worktree)?;
    let Ok(folder) = target.made_folder(path) else {
        brought.leave_out(path, "the base has something else in its place");
        return Ok(());
    };
    let aim = top.join(path.as_path());
    match folder.create_link(path.file_name(), aim.as_os_str().as_encoded_bytes()) {
        Ok(()) => {
            brought.linked += 1;
            brought.entries.push(BroughtEntry { path: path.clone(), kind: BroughtKind::Link });
        }
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
            brought.leave_out(path, "the base has it");
        }
        Err(e) => return Err(failed("link", path, e)),
    }
    Ok(())
}

fn failed(doing: &str, path: &RepoPath, error: std::io::Error) -> Failure {
    super::beneath::path_operation_failed(doing, path.as_bytes(), error)
}

/// What the worktree's own rules do not ignore would look like work: it is taken away again.
fn take_back_captured(job: ExtrasJob<'_>, brought: &mut BroughtExtras) -> Result<()> {
    if brought.entries.iter().all(|entry| entry.kind == BroughtKind::Link) {
        return Ok(());
    }
    let ignored = ignored_in_worktree(job)?;
    let is_safe = |entry: &BroughtEntry| {
        let path = &entry.path;
        entry.kind == BroughtKind::Link
            || ignored.contains(path)
            || path.ancestors().iter().any(|above| ignored.contains(above))
    };
    let (kept, rest): (Vec<_>, Vec<_>) = brought.entries.drain(..).partition(is_safe);
    brought.entries = kept;
    for entry in rest {
        remove_place(job.worktree, &entry.path)?;
        brought.leave_out(&entry.path, "the base does not ignore it");
    }
    Ok(())
}

/// What git ignores in the worktree, a folder for all that is in it.
pub fn ignored_in_worktree(job: ExtrasJob<'_>) -> Result<std::collections::BTreeSet<RepoPath>> {
    let listed = capture::never_captured(job.repository, job.quarantine, job.worktree, job.tree)?;
    Ok(listed.into_iter().collect())
}

fn remove_place(worktree: &Path, path: &RepoPath) -> Result<()> {
    let mut cursor = FolderCursor::new(worktree)?;
    let Some(folder) = cursor.folder_of(path)? else { return Ok(()) };
    let place = worktree.join(path.as_path());
    if is_present(&place)? {
        let removed = if place.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            remove_content(&Folder::open_path(&place)?)?;
            folder.remove_folder(path.file_name())
        } else {
            folder.unlink(path.file_name())
        };
        removed.map_err(|e| failed("remove", path, e))?;
    }
    cursor.remove_empty_folders(path)
}

/// For each folder, what tells whether anything in it was touched since.
pub fn digest_places(worktree: &Path, folders: &[RepoPath]) -> Result<Vec<Sha256>> {
    let digest = |folder: &RepoPath| {
        let mut seen = Vec::new();
        let place = worktree.join(folder.as_path());
        if !place.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            return Ok(Sha256::of(b""));
        }
        walk_what_can_be_seen(&Folder::open_path(&place)?, &mut |_, path, stat| {
            let stamp = Stamp::of_stat(stat);
            seen.extend_from_slice(path);
            seen.push(0);
            seen.extend(stamp.ino.to_le_bytes());
            seen.extend(stamp.mtime.to_le_bytes());
            seen.extend(stamp.ctime.to_le_bytes());
            Ok(true)
        })?;
        Ok(Sha256::of(&seen))
    };
    folders.iter().map(digest).collect()
}

/// Files of the base that are not as they were, and new ones that git does not ignore.
pub fn find_changed_files(job: ExtrasJob<'_>) -> Result<Vec<RepoPath>> {
    let git = Git::new(job.repository.environment(), None).cwd(job.worktree);
    let answer = git
        .args(["status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all"])
        .arg("--ignore-submodules=dirty")
        .run_for_stdout()?;
    let paths = answer.split(|b| *b == 0).filter_map(|line| line.get(3..));
    Ok(paths.filter_map(|path| RepoPath::new(path).ok()).collect())
}
