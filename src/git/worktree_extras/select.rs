//! Which of the ignored files are wanted. What git ignores is asked of git, and so is what a
//! `.worktreeinclude` names: its syntax is git's own.

use super::ExtrasJob;
use crate::domain::value::repo_path::RepoPath;
use crate::domain::value::scope::{Fit, Scope};
use crate::error::{Failure, Result};
use crate::git::beneath::{Folder, file_type, walk_what_can_be_seen};
use crate::git::repository::Repository;
use rustix::fs::FileType;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

/// What git ignores in a tree: files, and folders that are ignored as a whole.
#[derive(Debug, Default)]
pub(super) struct IgnoredPaths {
    files: BTreeSet<RepoPath>,
    folders: BTreeSet<RepoPath>,
}

impl IgnoredPaths {
    /// True where git ignores what lies at this path.
    pub(super) fn cover(&self, path: &RepoPath) -> bool {
        self.files.contains(path) || self.has_folder(path)
    }

    fn has_folder(&self, path: &RepoPath) -> bool {
        self.folders.contains(path) || path.ancestors().iter().any(|above| self.folders.contains(above))
    }

    fn from_listing(listing: &[u8]) -> Self {
        let mut found = Self::default();
        for entry in listing.split(|b| *b == 0).filter(|entry| !entry.is_empty()) {
            let (path, folder) = match entry.strip_suffix(b"/") {
                Some(path) => (path, true),
                None => (entry, false),
            };
            let Ok(path) = RepoPath::new(path) else { continue };
            if folder {
                found.folders.insert(path)
            } else {
                found.files.insert(path)
            };
        }
        found
    }
}

/// What git ignores in the live tree. A folder that merely holds nothing else is none that git ignores: what
/// is made in it later is not.
pub(super) fn find_ignored(repository: &Repository) -> Result<IgnoredPaths> {
    let mut found = IgnoredPaths::from_listing(&list_others(repository, &["--exclude-standard"])?);
    let listed_above: BTreeSet<RepoPath> =
        found.files.iter().chain(&found.folders).flat_map(RepoPath::ancestors).collect();
    found.folders.retain(|folder| !listed_above.contains(folder));
    Ok(found)
}

fn list_others(repository: &Repository, rules: &[&str]) -> Result<Vec<u8>> {
    let git = repository.git_in_top()?;
    git.args(["ls-files", "-z", "-o", "-i", "--directory"]).args(rules).run_for_stdout()
}

/// What is wanted of them.
pub(super) struct Selection<'a> {
    scope: &'a Scope,
    included: IgnoredPaths,
}

impl<'a> Selection<'a> {
    pub(super) fn new(job: ExtrasJob<'_>, scope: &'a Scope, include: Option<&[u8]>) -> Result<Self> {
        let included = match include {
            None => IgnoredPaths::default(),
            Some(rules) => {
                let folder = job.quarantine.objects.parent().unwrap_or(&job.quarantine.objects);
                let failed = |e: std::io::Error| Failure::io("write a list of patterns in", folder, &e);
                let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
                file.write_all(rules).map_err(failed)?;
                let name = format!("--exclude-from={}", file.path().display());
                IgnoredPaths::from_listing(&list_others(job.repository, &[&name])?)
            }
        };
        Ok(Self { scope, included })
    }

    fn wants_file(&self, path: &RepoPath) -> bool {
        self.included.cover(path) || self.scope.matches_path(path)
    }

    /// True where all that is in a folder is wanted.
    fn wants_folder(&self, path: &RepoPath) -> bool {
        // No pattern names such files but one that takes everything beneath.
        let anything = [path.as_bytes(), b"/\x01/\x01"].concat();
        self.included.has_folder(path) || self.scope.matches_path(path) || self.scope.matches_bytes(&anything)
    }

    /// False where nothing that is in a folder can be wanted.
    fn reaches_beneath(&self, path: &RepoPath) -> bool {
        let beneath = |other: &RepoPath| other.ancestors().contains(path);
        if self.included.files.iter().chain(&self.included.folders).any(beneath) {
            return true;
        }
        let Ok(folder) = Scope::new(vec![format!("{path}/")]) else { return true };
        self.scope.fit_patterns(&folder).iter().any(|(_, fit)| *fit != Fit::Outside)
    }
}

/// The wanted places among the ignored ones: files, and folders of which all is wanted.
pub(super) fn select_wanted(
    top: &Path,
    ignored: &IgnoredPaths,
    selection: &Selection<'_>,
) -> Result<Vec<RepoPath>> {
    let mut wanted: Vec<RepoPath> =
        ignored.files.iter().filter(|path| selection.wants_file(path)).cloned().collect();
    for folder in &ignored.folders {
        if selection.wants_folder(folder) {
            wanted.push(folder.clone());
        } else if selection.reaches_beneath(folder) {
            let Ok(root) = Folder::open_path(&top.join(folder.as_path())) else { continue };
            walk_what_can_be_seen(&root, &mut |_, below, stat| {
                let Ok(path) = folder.join_below(below) else { return Ok(false) };
                if file_type(stat) == FileType::Directory {
                    let whole = selection.wants_folder(&path);
                    if whole {
                        wanted.push(path);
                    }
                    return Ok(!whole);
                }
                if selection.wants_file(&path) {
                    wanted.push(path);
                }
                Ok(false)
            })?;
        }
    }
    Ok(wanted)
}
