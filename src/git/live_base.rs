//! The live tree as a starting point: its uncommitted work as a tree, and what a task's worktree will lack of
//! it.
//!
//! The user's index is copied, never written; objects go to the quarantine. The user's own filters run, as
//! with `git add`.

use super::command::Git;
use super::command::Quarantine;
use super::convert::Conversions;
use super::repository::Repository;
use super::tree::{self, TreeFile};
use crate::domain::ledger::record::Lacks;
use crate::domain::value::digest::{Mode, ObjectId};
use crate::domain::value::repo_path::{RepoPath, display_bytes};
use crate::error::{Code, Failure, Result};
use std::collections::BTreeMap;
use std::path::Path;

/// What a worktree of this tree lacks. `live` is true where the tree is a capture of the live work.
pub fn find_lacks(repository: &Repository, base: &ObjectId, live: bool) -> Result<Lacks> {
    let files = tree::list_files(&repository.object_reader(None)?, base)?;
    let submodules = files.iter().filter(|f| f.mode == Mode::Gitlink).map(|f| f.path.clone()).collect();
    let lfs = lfs_files(&Conversions { repository, quarantine: None }, base, &files)?;
    let Ok(git) = repository.git_in_top() else {
        return Ok(Lacks { submodules, lfs, ..Lacks::default() });
    };
    let ignored =
        git.args(["ls-files", "-z", "-o", "-i", "--exclude-standard", "--directory"]).run_for_stdout()?;
    let (dirty, unseen) = match if live { Ok(Vec::new()) } else { uncommitted_paths(repository) } {
        Ok(dirty) => (dirty, None),
        // Such as the filter of a file that the task may have nothing to do with.
        Err(failure) if failure.code() == Code::Io => {
            (Vec::new(), failure.message().lines().next().map(str::to_owned))
        }
        Err(failure) => return Err(failure),
    };
    Ok(Lacks { dirty, ignored: parse_paths(&ignored), submodules, lfs, unseen })
}

fn uncommitted_paths(repository: &Repository) -> Result<Vec<RepoPath>> {
    let answer = repository
        .git_in_top()?
        .args([
            "status",
            "--porcelain=v1",
            "-z",
            "--no-renames",
            "--untracked-files=normal",
            "--ignore-submodules=dirty",
        ])
        .run_for_stdout()?;
    let mut found: Vec<RepoPath> = answer
        .split(|b| *b == 0)
        .filter_map(|line| line.get(3..))
        .filter_map(|path| RepoPath::new(path.strip_suffix(b"/").unwrap_or(path)).ok())
        .collect();
    found.sort();
    Ok(found)
}

fn lfs_files(conversions: &Conversions, base: &ObjectId, files: &[TreeFile]) -> Result<Vec<RepoPath>> {
    let regular: Vec<RepoPath> =
        files.iter().filter(|f| f.mode.is_regular()).map(|f| f.path.clone()).collect();
    let attributes = conversions.attributes_of_paths(base, &regular)?;
    Ok(regular
        .into_iter()
        .zip(attributes)
        .filter(|(_, a)| a.filter.as_deref() == Some("lfs"))
        .map(|(p, _)| p)
        .collect())
}

pub(super) fn parse_paths(listing: &[u8]) -> Vec<RepoPath> {
    let mut found: Vec<RepoPath> = listing
        .split(|b| *b == 0)
        .filter_map(|path| RepoPath::new(path.strip_suffix(b"/").unwrap_or(path)).ok())
        .collect();
    found.sort();
    found
}

/// The live work as a tree: what is tracked, as it lies there, and what is untracked and not ignored.
///
/// Submodules stay at HEAD's commit, nested repositories are left out. An unmerged index is `state.invalid`.
pub fn capture_live(repository: &Repository, quarantine: &Quarantine) -> Result<ObjectId> {
    let top = repository.top()?;
    let folder = quarantine.objects.parent().unwrap_or(&quarantine.objects);
    let place = tempfile::Builder::new()
        .prefix("live-")
        .tempdir_in(folder)
        .map_err(|e| Failure::io("make a temporary directory in", folder, &e))?;
    let index = place.path().join("index");
    let work = LiveCapture { repository, quarantine, top, index: &index };
    let real = repository.git_dir().join("index");
    match copy_index(&real, &index) {
        Ok(()) => {}
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
        Err(e) => return Err(Failure::io("copy the index", &real, &e)),
    }
    work.refuse_unmerged()?;
    work.look_at_everything()?;
    work.add_patiently()?;
    work.put_submodules_back()?;
    let output = work.git_on_capture().arg("write-tree").run()?;
    if output.success() { output.first_text().parse() } else { Err(output.to_failure()) }
}

/// Copies an index with its time of modification: git tells by it which entries are too fresh to be trusted.
pub(super) fn copy_index(from: &Path, to: &Path) -> std::io::Result<()> {
    let modified = std::fs::metadata(from)?.modified()?;
    std::fs::copy(from, to)?;
    let file = std::fs::File::options().write(true).open(to)?;
    file.set_times(std::fs::FileTimes::new().set_modified(modified))
}

/// How often the live tree is read anew because it changed while it was read.
const PATIENCE: usize = 5;

struct LiveCapture<'a> {
    repository: &'a Repository,
    quarantine: &'a Quarantine,
    top: &'a Path,
    index: &'a Path,
}

impl LiveCapture<'_> {
    fn git_on_capture(&self) -> Git {
        let git = self
            .repository
            .git_call()
            .work_tree(self.top)
            .with_index(self.index)
            .with_quarantine(self.quarantine);
        let settings = [
            "core.splitIndex=false",
            "core.safecrlf=false",
            "core.trustctime=true",
            "core.checkStat=default",
        ];
        settings.iter().fold(git, |git, setting| git.with_setting(setting))
    }

    fn refuse_unmerged(&self) -> Result<()> {
        let listing = self.git_on_capture().args(["ls-files", "-z", "-u"]).run_for_stdout()?;
        let mut names: Vec<String> = listing
            .split(|b| *b == 0)
            .filter_map(|line| {
                line.iter().position(|b| *b == b'\t').map(|tab| display_bytes(&line[tab + 1..]))
            })
            .collect();
        names.dedup();
        let Some(first) = names.first().cloned() else { return Ok(()) };
        Err(Failure::new(
            Code::StateInvalid,
            format!(
                "the live tree is in the middle of a merge: {first} has conflicts, so it cannot be a base"
            ),
        )
        .subject(first)
        .detail("unmerged", &names)
        .remedy("Resolve the conflicts and `git add` them, or open the task on HEAD.", ["git", "status"]))
    }

    /// Bits that tell git not to look prove nothing about the content.
    fn look_at_everything(&self) -> Result<()> {
        let listing = self.git_on_capture().args(["ls-files", "-z", "-v"]).run_for_stdout()?;
        let (mut assumed, mut skipped) = (Vec::new(), Vec::new());
        for line in listing.split(|b| *b == 0).filter(|l| l.len() > 2) {
            let path = &line[2..];
            if line[0].is_ascii_lowercase() {
                assumed.extend([path, b"\0"].concat());
            }
            let there = || {
                use std::os::unix::ffi::OsStrExt;
                self.top.join(std::ffi::OsStr::from_bytes(path)).symlink_metadata().is_ok()
            };
            if line[0].eq_ignore_ascii_case(&b's') && there() {
                skipped.extend([path, b"\0"].concat());
            }
        }
        for (option, paths) in [("--no-assume-unchanged", assumed), ("--no-skip-worktree", skipped)] {
            if !paths.is_empty() {
                self.git_on_capture()
                    .args(["update-index", option, "-z", "--stdin"])
                    .stdin(paths)
                    .run_for_stdout()?;
            }
        }
        Ok(())
    }

    /// The user may be saving just now: a file that is cut short or gone while git reads it is listed and
    /// read anew.
    fn add_patiently(&self) -> Result<()> {
        for _ in 0..PATIENCE {
            match self.add_untracked() {
                Err(e) if e.code() == Code::Io => std::thread::sleep(std::time::Duration::from_millis(20)),
                other => return other,
            }
        }
        self.add_untracked()
    }

    fn add_untracked(&self) -> Result<()> {
        let listing =
            self.git_on_capture().args(["ls-files", "-z", "-o", "--exclude-standard"]).run_for_stdout()?;
        // A nested repository is listed with a slash at its end; git would make a gitlink of it.
        let new: Vec<&[u8]> =
            listing.split(|b| *b == 0).filter(|p| !p.is_empty() && !p.ends_with(b"/")).collect();
        let add = self.git_on_capture().arg("--literal-pathspecs").args(["add", "--sparse"]);
        let updated = add.args(["-u", "--", "."]).run()?;
        let added = if new.is_empty() {
            None
        } else {
            let add = self.git_on_capture().arg("--literal-pathspecs").args(["add", "--sparse", "-f"]);
            let input = new.join(&0);
            Some(add.args(["--pathspec-from-file=-", "--pathspec-file-nul"]).stdin(input).run()?)
        };
        for output in std::iter::once(updated).chain(added) {
            if !output.success() || output.stderr.contains("external filter") {
                return Err(output.to_failure());
            }
        }
        Ok(())
    }

    fn put_submodules_back(&self) -> Result<()> {
        let listing = self.git_on_capture().args(["ls-files", "-z", "-s"]).run_for_stdout()?;
        let mut now: BTreeMap<&[u8], &[u8]> = BTreeMap::new();
        for line in listing.split(|b| *b == 0).filter(|l| l.starts_with(b"160000 ")) {
            let fields: Vec<&[u8]> = line.splitn(2, |b| *b == b'\t').collect();
            if let ([head, path], Some(id)) = (fields.as_slice(), line.split(|b| *b == b' ').nth(1)) {
                let _ = head;
                now.insert(path, id);
            }
        }
        let objects = self.repository.object_reader(None)?;
        let files = match self.repository.resolve_revision("HEAD", "tree")? {
            Some(head) => tree::list_files(&objects, &head)?,
            None => Vec::new(),
        };
        let zero = "0".repeat(self.repository.format().hex_len());
        let mut input = Vec::new();
        for file in files.iter().filter(|f| f.mode == Mode::Gitlink) {
            if now.remove(file.path.as_bytes()) != Some(file.id.as_str().as_bytes()) {
                let line = format!("160000 {}\t", file.id);
                input.extend([line.as_bytes(), file.path.as_bytes(), b"\0"].concat());
            }
        }
        for path in now.keys() {
            input.extend([format!("0 {zero}\t").as_bytes(), path, b"\0"].concat());
        }
        if input.is_empty() {
            return Ok(());
        }
        self.git_on_capture()
            .args(["update-index", "-z", "--index-info"])
            .stdin(input)
            .run_for_stdout()
            .map(|_| ())
    }
}
