//! Compares a live tree with a tree of ours without starting git: by the index's stamps, and by content only
//! where they do not fit.

use super::convert::{Conversions, Drivers};
use super::index_file::{EntryStamps, FileEntry};
use super::live::Settings;
use super::{Quarantine, Repository, tree};
use crate::domain::value::digest::{Mode, ObjectId, TreeObject};
use crate::domain::value::repo_path::RepoPath;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Of an entry: git is told not to look at the file.
const ASSUME_VALID: u64 = 1 << 15;
const INTENT_TO_ADD: u64 = 1 << 29;
const SKIP_WORKTREE: u64 = 1 << 30;
/// The type of a commit of another repository.
const GITLINK: u32 = 0o160_000;

/// What differs, and what is there without being tracked.
pub(super) struct WalkedTree {
    pub changed: BTreeSet<RepoPath>,
    pub untracked: BTreeSet<RepoPath>,
}

/// Which part of a live tree is compared with what.
#[derive(Clone, Copy)]
pub(super) struct WalkedPart<'a> {
    pub home: &'a Repository,
    /// Where objects of the tree may lie, too.
    pub quarantine: Option<&'a Quarantine>,
    pub tree: &'a ObjectId,
    /// The folder beneath which it is compared; `None` for all of it.
    pub folder: Option<&'a RepoPath>,
}

impl WalkedPart<'_> {
    fn has(&self, path: &[u8]) -> bool {
        self.folder.is_none_or(|folder| {
            path.strip_prefix(folder.as_bytes()).is_some_and(|below| below.starts_with(b"/"))
        })
    }
}

/// `None` where git has to be asked.
pub(super) fn walk_live_tree(part: WalkedPart<'_>) -> Option<WalkedTree> {
    let home = part.home;
    let index = home.index_in_process()?;
    let entries: Vec<FileEntry<'_>> = index.entries().filter(|entry| part.has(entry.path)).collect();
    // What a submodule has is another repository's matter.
    if entries.iter().any(|entry| entry.mode == GITLINK) {
        return None;
    }
    let names: HashSet<&[u8]> = entries.iter().map(|entry| entry.path).collect();
    let found = list_live_files(part, &names)?;
    let objects = home.object_reader(part.quarantine).ok()?;
    let wanted: BTreeMap<RepoPath, TreeObject> = match part.folder {
        Some(folder) => tree::files_beneath(&objects, part.tree, folder),
        None => tree::list_files(&objects, part.tree),
    }
    .ok()?
    .into_iter()
    .map(|file| (file.path, TreeObject { mode: file.mode, id: file.id }))
    .collect();
    let compared =
        Comparison { part, settings: Settings::read_settings(home).ok()?, index_written: index_time(home) };
    let mut changed = BTreeSet::new();
    let mut seen = HashSet::new();
    for entry in &entries {
        let path = RepoPath::new(entry.path).ok()?;
        let live = found.tracked.get(entry.path);
        let is_same = compared.is_as_wanted(entry, &path, live, wanted.get(&path))?;
        if !is_same {
            changed.insert(path.clone());
        }
        seen.insert(path);
    }
    changed.extend(wanted.into_keys().filter(|path| !seen.contains(path)));
    Some(WalkedTree { changed, untracked: found.untracked })
}

struct LiveFiles {
    tracked: HashMap<Vec<u8>, Metadata>,
    untracked: BTreeSet<RepoPath>,
}

/// Every tracked file that is there, and every other that is not ignored. No link is followed; another
/// repository counts as one untracked path, as with git.
fn list_live_files(part: WalkedPart<'_>, names: &HashSet<&[u8]>) -> Option<LiveFiles> {
    let top = part.home.top().ok()?;
    let rules = git2::Repository::open(part.home.git_dir()).ok()?;
    let folders: HashSet<&[u8]> = names.iter().flat_map(|name| folders_above(name)).collect();
    let mut files = LiveFiles { tracked: HashMap::new(), untracked: BTreeSet::new() };
    let start = part.folder.map(|folder| folder.as_bytes().to_vec()).unwrap_or_default();
    let is_there = top.join(as_path(&start)).symlink_metadata().is_ok_and(|found| found.is_dir());
    let mut waiting = if is_there { vec![start] } else { Vec::new() };
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(top.join(as_path(&folder))).ok()? {
            let entry = entry.ok()?;
            let name = entry.file_name().into_vec();
            if name == b".git" {
                continue;
            }
            let path = if folder.is_empty() { name } else { [&folder, &b"/"[..], &name].concat() };
            let kind = entry.file_type().ok()?;
            if kind.is_dir() {
                let as_folder = [&path, &b"/"[..]].concat();
                if folders.contains(path.as_slice()) {
                    waiting.push(path);
                } else if rules.is_path_ignored(as_path(&as_folder)).ok()? {
                    continue;
                } else if entry.path().join(".git").symlink_metadata().is_ok() {
                    files.untracked.insert(RepoPath::new(path).ok()?);
                } else {
                    waiting.push(path);
                }
            } else if names.contains(path.as_slice()) {
                files.tracked.insert(path, entry.metadata().ok()?);
            } else if (kind.is_file() || kind.is_symlink()) && !rules.is_path_ignored(as_path(&path)).ok()? {
                files.untracked.insert(RepoPath::new(path).ok()?);
            }
        }
    }
    Some(files)
}

fn folders_above(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    name.iter().enumerate().filter(|(_, b)| **b == b'/').map(|(at, _)| &name[..at])
}

fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// When the index was written, as its stamps count time.
fn index_time(home: &Repository) -> Option<(u32, u32)> {
    std::fs::metadata(home.git_dir().join("index")).ok().map(|known| time(known.mtime(), known.mtime_nsec()))
}

/// Cut to 32 bits, as the index keeps it.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the index keeps these bits")]
fn time(seconds: i64, nanoseconds: i64) -> (u32, u32) {
    (seconds as u32, nanoseconds as u32)
}

struct Comparison<'a> {
    part: WalkedPart<'a>,
    settings: Settings,
    index_written: Option<(u32, u32)>,
}

impl Comparison<'_> {
    /// `None` where it cannot be said.
    fn is_as_wanted(
        &self,
        entry: &FileEntry<'_>,
        path: &RepoPath,
        live: Option<&Metadata>,
        wanted: Option<&TreeObject>,
    ) -> Option<bool> {
        if entry.stage != 0 {
            return Some(false);
        }
        let is_left_out = entry.flags & SKIP_WORKTREE != 0;
        let indexed = || -> Option<TreeObject> {
            let id: String = entry.id.iter().map(|b| format!("{b:02x}")).collect();
            Some(TreeObject { mode: format!("{:06o}", entry.mode).parse().ok()?, id: id.parse().ok()? })
        };
        if is_left_out || entry.flags & ASSUME_VALID != 0 {
            return Some(wanted == Some(&indexed()?));
        }
        let Some(live) = live else { return Some(wanted.is_none()) };
        let Some(wanted) = wanted else { return Some(false) };
        let mode = self.mode_of(entry, live);
        if mode != Some(wanted.mode) {
            return Some(false);
        }
        if entry.flags & INTENT_TO_ADD == 0 && self.fits(entry.stamps, live) {
            return Some(indexed()?.id == wanted.id);
        }
        Some(self.id_of(path, live)? == wanted.id)
    }

    fn mode_of(&self, entry: &FileEntry<'_>, live: &Metadata) -> Option<Mode> {
        let text = match live.mode() & 0o170_000 {
            0o120_000 => "120000",
            // A file stands for a link, or for what is executable, where the disk cannot hold those.
            0o100_000 if !self.settings.symlinks && entry.mode == 0o120_000 => "120000",
            0o100_000 if !self.settings.file_mode && entry.mode == 0o100_755 => "100755",
            0o100_000 if self.settings.file_mode && live.mode() & 0o100 != 0 => "100755",
            0o100_000 => "100644",
            _ => return None,
        };
        text.parse().ok()
    }

    /// True where the file is the one that the index was told of. One that was written when the index was, or
    /// later, may have been written twice.
    fn fits(&self, stamps: EntryStamps, live: &Metadata) -> bool {
        let mtime = time(live.mtime(), live.mtime_nsec());
        let is_racy = self.index_written.is_none_or(|written| mtime >= written);
        let low = |value: u64| u32::try_from(value & u64::from(u32::MAX)).unwrap_or_default();
        !is_racy
            && stamps.mtime == mtime
            && stamps.ctime == time(live.ctime(), live.ctime_nsec())
            && stamps.ino == low(live.ino())
            && stamps.size == low(live.size())
    }

    /// The blob that git would make of a live file.
    fn id_of(&self, path: &RepoPath, live: &Metadata) -> Option<ObjectId> {
        let place: PathBuf = self.part.home.top().ok()?.join(path.as_path());
        if live.is_symlink() {
            let target = std::fs::read_link(place).ok()?;
            return self.part.home.format().blob_id(target.as_os_str().as_bytes()).ok();
        }
        let bytes = std::fs::read(place).ok()?;
        let WalkedPart { home, quarantine, tree, .. } = self.part;
        let conversions = Conversions { repository: home, quarantine };
        let made = conversions.clean_blobs(tree, &Drivers::SelectedBy(tree), &[(path.clone(), bytes)], false);
        made.ok()?.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::live_difference::compare_by_git;
    use crate::git::testing::TestRepository;

    /// Both ways say the same of the live tree.
    #[track_caller]
    fn agree(home: &TestRepository, of: &ObjectId) -> WalkedTree {
        let (repository, quarantine) = (home.repository(), home.quarantine());
        let part = WalkedPart { home: &repository, quarantine: Some(&quarantine), tree: of, folder: None };
        let walked = walk_live_tree(part).expect("in process");
        let asked = compare_by_git(&repository, &quarantine, of).expect("asks git");
        assert_eq!(walked.changed, asked.changed);
        assert_eq!(walked.untracked, asked.untracked);
        walked
    }

    #[test]
    fn a_live_tree_is_compared_as_git_compares_it() {
        let home = TestRepository::new();
        for name in ["a", "run", "sub/b", "sub/deep/c", "gone", "moved", "link"] {
            home.write_file(name, format!("{name}\n").as_bytes());
        }
        home.write_file(".gitignore", b"*.log\n!keep.log\n/out/\ncache/\n");
        let first = home.commit_all("first");
        assert!(agree(&home, &first).changed.is_empty());
        home.write_file("a", b"edited\n");
        home.run_git(["update-index", "--chmod=+x", "run"]);
        home.remove_file("gone");
        home.remove_file("link");
        std::os::unix::fs::symlink("a", home.top().join("link")).expect("a link");
        for name in ["x.log", "keep.log", "out/y", "sub/cache/z", "sub/new", "new/er/w"] {
            home.write_file(name, b"1\n");
        }
        home.init_at(&home.top().join("sub/other"), &[]);
        home.write_file("sub/other/inside", b"1\n");
        home.write_file("meant", b"1\n");
        home.run_git(["add", "-N", "meant"]);
        home.run_git(["rm", "-q", "--cached", "moved"]);
        let sub = RepoPath::new("sub").expect("a path");
        let repository = home.repository();
        let part = WalkedPart { home: &repository, quarantine: None, tree: &first, folder: Some(&sub) };
        let beneath = walk_live_tree(part).expect("in process");
        assert_eq!((beneath.changed.len(), beneath.untracked.len()), (0, 2), "a new file and a repository");
        let walked = agree(&home, &first);
        assert_eq!((walked.changed.len(), walked.untracked.len()), (5, 5), "{:?}", walked.changed);
        std::fs::remove_dir_all(home.top().join("sub/other")).expect("removes");
        // As another tree has it: what was edited is as wanted then.
        let second = home.commit_all("second");
        agree(&home, &second);
        home.run_git(["checkout", "-q", "HEAD~1"]);
        agree(&home, &second);
    }

    #[test]
    fn conversions_and_settings_count_as_with_git() {
        let home = TestRepository::new();
        home.write_file(".gitattributes", b"*.txt text eol=crlf\n");
        home.write_file("a.txt", b"one\r\ntwo\r\n");
        home.write_file("b.txt", b"one\n");
        home.write_file("script", b"#!/bin/sh\n");
        let of = home.commit_all("first");
        home.write_file("a.txt", b"one\ntwo\n");
        agree(&home, &of);
        home.set_config("core.fileMode", "false");
        std::fs::set_permissions(
            home.top().join("script"),
            std::os::unix::fs::PermissionsExt::from_mode(0o755),
        )
        .expect("changes the mode");
        agree(&home, &of);
        home.set_config("core.fileMode", "true");
        agree(&home, &of);
        home.run_git(["update-index", "--assume-unchanged", "b.txt"]);
        home.write_file("b.txt", b"two\n");
        agree(&home, &of);
    }
}
