//! A private index: a tree is read into it, changed, and written out as another tree. Nobody else sees it.

use super::command::Git;
use super::command::Quarantine;
use super::convert::Conversions;
use super::laid_tree::{LaidTree, ReadTrees};
use super::object_store::{ObjectStore, change_index};
use super::objects::Objects;
use super::repository::Repository;
use crate::domain::value::digest::{ObjectFormat, ObjectId, TreeObject};
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Failure, Result};
use std::cell::RefCell;
use std::io::Write;
use std::path::{Path, PathBuf};

/// One change of an index: `None` removes the path.
pub type PrivateIndexEntry = (RepoPath, Option<TreeObject>);

/// Changes in the form of `update-index -z --index-info`; removals come first, so that a file can become a
/// directory.
pub fn index_info(format: ObjectFormat, entries: &[PrivateIndexEntry]) -> Vec<u8> {
    let zero = "0".repeat(format.hex_len());
    let mut input = Vec::new();
    for (path, _) in entries.iter().filter(|(_, new)| new.is_none()) {
        input.extend([format!("0 {zero}\t").as_bytes(), path.as_bytes(), b"\0"].concat());
    }
    for (path, new) in entries {
        if let Some(TreeObject { mode, id }) = new {
            input.extend([format!("{mode} {id}\t").as_bytes(), path.as_bytes(), b"\0"].concat());
        }
    }
    input
}

/// What an index holds of which no file was made yet.
#[derive(Debug, Clone)]
struct HeldTree {
    tree: ObjectId,
    /// Laid over it, all at once.
    entries: Vec<PrivateIndexEntry>,
}

/// The index file lies in a temporary directory of the task and goes with this value. It is made when git
/// needs it: until then only the folders that change are looked at.
#[derive(Debug)]
pub struct PrivateIndex<'a> {
    repository: &'a Repository,
    quarantine: &'a Quarantine,
    folder: tempfile::TempDir,
    /// A git directory of our own in place of the repository's.
    room: Option<PathBuf>,
    /// Does in process what it can.
    store: Option<ObjectStore>,
    /// `None` once there is a file.
    held: RefCell<Option<HeldTree>>,
}

impl<'a> PrivateIndex<'a> {
    /// An index that holds a tree.
    pub fn holding_tree(
        repository: &'a Repository,
        quarantine: &'a Quarantine,
        tree: &ObjectId,
    ) -> Result<Self> {
        let index = Self::empty_index(repository, quarantine)?;
        index.read_tree(tree)?;
        Ok(index)
    }

    /// Likewise, in a git directory of our own, where neither configuration nor attributes of the user, the
    /// system or the repository are seen: what git writes or accepts there depends on the objects alone.
    pub fn isolated_tree(
        repository: &'a Repository,
        quarantine: &'a Quarantine,
        tree: &ObjectId,
    ) -> Result<Self> {
        let index = Self::isolated_empty(repository, quarantine)?;
        index.read_tree(tree)?;
        Ok(index)
    }

    /// The same without anything in it.
    pub fn isolated_empty(repository: &'a Repository, quarantine: &'a Quarantine) -> Result<Self> {
        let mut index = Self::empty_index(repository, quarantine)?;
        let room = index.folder.path().join("git");
        let failed = |e: std::io::Error| Failure::io("make a private git directory at", &room, &e);
        for folder in ["objects", "refs"] {
            std::fs::create_dir_all(room.join(folder)).map_err(failed)?;
        }
        let config = match repository.format() {
            ObjectFormat::Sha1 => "[core]\n\trepositoryformatversion = 0\n",
            ObjectFormat::Sha256 => {
                "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = sha256\n"
            }
        };
        for (name, text) in [("HEAD", "ref: refs/heads/none\n"), ("config", config)] {
            let mut file = std::fs::File::create_new(room.join(name)).map_err(failed)?;
            file.write_all(text.as_bytes()).map_err(failed)?;
        }
        index.room = Some(room);
        Ok(index)
    }

    /// True where the repository is one that is read without git.
    pub fn is_in_process(&self) -> bool {
        self.store.is_some()
    }

    /// An index of these bytes.
    pub fn copy_of(repository: &'a Repository, quarantine: &'a Quarantine, bytes: &[u8]) -> Result<Self> {
        let index = Self::empty_index(repository, quarantine)?;
        let copy = index.index_file();
        std::fs::File::create_new(&copy)
            .and_then(|mut file| file.write_all(bytes))
            .map_err(|e| Failure::io("copy the index to", &copy, &e))?;
        Ok(index)
    }

    fn read_tree(&self, tree: &ObjectId) -> Result<()> {
        *self.held.borrow_mut() = Some(HeldTree { tree: tree.clone(), entries: Vec::new() });
        if self.store.is_none() { self.make_file() } else { Ok(()) }
    }

    /// Makes the file of what is held.
    fn make_file(&self) -> Result<()> {
        let Some(HeldTree { tree, entries }) = self.held.take() else { return Ok(()) };
        let written = self.store.as_ref().and_then(|store| store.write_index(&self.index_file(), &tree));
        if written.is_none() {
            self.git_on_file(&self.empty_folder()).args(["read-tree", tree.as_str()]).run_for_stdout()?;
        }
        self.change_file(&entries)
    }

    fn empty_index(repository: &'a Repository, quarantine: &'a Quarantine) -> Result<Self> {
        let parent = quarantine.objects.parent().unwrap_or(&quarantine.objects);
        let folder = tempfile::Builder::new()
            .prefix("index-")
            .tempdir_in(parent)
            .map_err(|e| Failure::io("make a temporary directory in", parent, &e))?;
        std::fs::create_dir(folder.path().join("empty"))
            .map_err(|e| Failure::io("make a directory in", folder.path(), &e))?;
        let store = repository.object_store(quarantine);
        Ok(Self { repository, quarantine, folder, room: None, store, held: RefCell::new(None) })
    }

    /// A call on it. The work tree is an empty directory.
    pub fn git_on_index(&self) -> Result<Git> {
        self.git_on(&self.empty_folder())
    }

    /// A call on it with a work tree.
    pub fn git_on(&self, work_tree: &Path) -> Result<Git> {
        self.make_file()?;
        Ok(self.git_on_file(work_tree))
    }

    fn git_on_file(&self, work_tree: &Path) -> Git {
        let git = match &self.room {
            None => self.repository.git_call(),
            Some(room) => Git::new(self.repository.environment(), Some(room))
                .without_config_of_the_environment()
                .env("GIT_CONFIG_GLOBAL", "/dev/null")
                .env("GIT_CONFIG_NOSYSTEM", "1")
                .env("GIT_ATTR_NOSYSTEM", "1")
                // Where `core.attributesFile` is not set, the one under XDG_CONFIG_HOME or HOME counts.
                .with_setting("core.attributesFile=/dev/null")
                .attributes_from(self.repository.empty_tree()),
        };
        git.work_tree(work_tree)
            .with_index(&self.index_file())
            .with_quarantine(self.quarantine)
            .with_setting("core.splitIndex=false")
            .with_setting("core.sparseCheckout=false")
            .with_setting("index.sparse=false")
    }

    /// A private directory for files that belong to this work.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A reader that sees what was written up to now.
    pub fn object_reader(&self) -> Result<Objects> {
        self.repository.object_reader(Some(self.quarantine))
    }

    fn index_file(&self) -> PathBuf {
        self.folder.path().join("index")
    }

    fn empty_folder(&self) -> PathBuf {
        self.folder.path().join("empty")
    }

    /// Removes come before everything else, and what is added takes the place of whatever is in its way.
    pub fn update_entries(&self, entries: &[PrivateIndexEntry]) -> Result<()> {
        if entries.is_empty() {
            return Ok(());
        }
        // What is laid over it must be all at once: an entry may take the place of an earlier one.
        if self.held.borrow().as_ref().is_some_and(|held| !held.entries.is_empty()) {
            self.write_tree()?;
        }
        if let Some(held) = self.held.borrow_mut().as_mut() {
            held.entries = entries.to_vec();
            return Ok(());
        }
        self.change_file(entries)
    }

    fn change_file(&self, entries: &[PrivateIndexEntry]) -> Result<()> {
        if entries.is_empty() {
            return Ok(());
        }
        if self.store.is_some() && change_index(&self.index_file(), entries).is_some() {
            return Ok(());
        }
        let input = index_info(self.repository.format(), entries);
        let update = ["update-index", "--add", "--replace", "-z", "--index-info"];
        self.git_on_file(&self.empty_folder()).args(update).stdin(input).run_for_stdout().map(|_| ())
    }

    /// The tree of what it holds, written to the quarantine.
    pub fn write_tree(&self) -> Result<ObjectId> {
        let held = self.held.borrow().clone();
        if let Some(held) = held
            && let Some(tree) = self.write_held(&held)?
        {
            *self.held.borrow_mut() = Some(HeldTree { tree: tree.clone(), entries: Vec::new() });
            return Ok(tree);
        }
        self.make_file()?;
        if let Some(tree) = self.store.as_ref().and_then(|store| store.write_tree(&self.index_file())) {
            return Ok(tree);
        }
        self.write_by_git()
    }

    /// The same by git, which looks whether each tree that the index knows is there.
    pub fn write_by_git(&self) -> Result<ObjectId> {
        let output = self.git_on_index()?.arg("write-tree").run()?;
        if output.success() { output.first_text().parse() } else { Err(output.to_failure()) }
    }

    /// The folders that change, as trees; `None` where one entry lies in the way of another, which an index
    /// sorts out.
    fn write_held(&self, held: &HeldTree) -> Result<Option<ObjectId>> {
        let Some(store) = &self.store else { return Ok(None) };
        if held.entries.is_empty() {
            return Ok(Some(held.tree.clone()));
        }
        let objects = self.object_reader()?;
        let trees = ReadTrees::new(&objects);
        let (gone, there): (Vec<_>, Vec<_>) =
            held.entries.iter().cloned().partition(|(_, new)| new.is_none());
        let laid = LaidTree::new(&trees, &held.tree, gone.into_iter().chain(there.iter().cloned()));
        for (path, new) in &there {
            let found = laid.file_at(path)?.map(|file| TreeObject { mode: file.mode, id: file.id });
            if found != *new {
                return Ok(None);
            }
        }
        Ok(store.write_laid_tree(&laid))
    }

    /// Conversions on the same repository and quarantine.
    pub fn conversions(&self) -> Conversions<'a> {
        Conversions { repository: self.repository, quarantine: Some(self.quarantine) }
    }
}
