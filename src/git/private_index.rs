//! A private index: a tree is read into it, changed, and written out as another tree. Nobody else sees it.

use super::command::Git;
use super::convert::Conversions;
use super::objects::Quarantine;
use super::repository::Repository;
use crate::domain::digest::{Mode, ObjectId};
use crate::domain::repo_path::RepoPath;
use crate::error::{Failure, Result};
use std::path::{Path, PathBuf};

/// One change of an index: `None` removes the path.
pub type Entry = (RepoPath, Option<(Mode, ObjectId)>);

/// The index file lies in a temporary directory of the task and goes with this value.
#[derive(Debug)]
pub struct PrivateIndex<'a> {
    repository: &'a Repository,
    quarantine: &'a Quarantine,
    folder: tempfile::TempDir,
}

impl<'a> PrivateIndex<'a> {
    /// An index that holds a tree.
    pub fn of(repository: &'a Repository, quarantine: &'a Quarantine, tree: &ObjectId) -> Result<Self> {
        let parent = quarantine.objects.parent().unwrap_or(&quarantine.objects);
        let folder = tempfile::Builder::new()
            .prefix("index-")
            .tempdir_in(parent)
            .map_err(|e| Failure::io("make a temporary directory in", parent, &e))?;
        let index = Self { repository, quarantine, folder };
        index.git().args(["read-tree", tree.as_str()]).ok()?;
        Ok(index)
    }

    /// A call on it. The work tree is an empty directory.
    #[must_use]
    pub fn git(&self) -> Git {
        self.git_on(self.folder.path())
    }

    /// A call on it with a work tree.
    #[must_use]
    pub fn git_on(&self, work_tree: &Path) -> Git {
        self.repository
            .git()
            .work_tree(work_tree)
            .index(&self.file())
            .objects(self.quarantine)
            .setting("core.splitIndex=false")
            .setting("core.sparseCheckout=false")
            .setting("index.sparse=false")
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("index")
    }

    /// Changes entries; removals come first, so that a file can become a directory.
    pub fn update(&self, entries: &[Entry]) -> Result<()> {
        if entries.is_empty() {
            return Ok(());
        }
        let zero = "0".repeat(self.repository.format().hex_len());
        let mut input = Vec::new();
        for (path, _) in entries.iter().filter(|(_, new)| new.is_none()) {
            input.extend([format!("0 {zero}\t").as_bytes(), path.as_bytes(), b"\0"].concat());
        }
        for (path, new) in entries {
            if let Some((mode, id)) = new {
                input.extend([format!("{mode} {id}\t").as_bytes(), path.as_bytes(), b"\0"].concat());
            }
        }
        let update = ["update-index", "--add", "--replace", "-z", "--index-info"];
        self.git().args(update).stdin(input).ok().map(|_| ())
    }

    /// The tree of what it holds, written to the quarantine.
    pub fn write_tree(&self) -> Result<ObjectId> {
        let output = self.git().arg("write-tree").run()?;
        if output.success() { output.line().parse() } else { Err(output.failure()) }
    }

    /// Conversions on the same repository and quarantine.
    #[must_use]
    pub fn conversions(&self) -> Conversions<'a> {
        Conversions { repository: self.repository, quarantine: Some(self.quarantine) }
    }
}
