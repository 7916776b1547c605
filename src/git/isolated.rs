//! A private git directory with a private index, for what must come out the same everywhere: writing and applying patches.
//!
//! It has no configuration, no attributes, no hooks and no refs; the user's and the system's are switched off for it. Objects
//! come from the quarantine and the repository behind it, and new ones go to the quarantine. Only filling the index runs in the repository
//! itself, because a partial clone may have to fetch trees for it.

use super::command::Git;
use super::objects::Quarantine;
use super::repository::Repository;
use crate::domain::digest::{ObjectFormat, ObjectId};
use crate::error::{Code, Failure, Result};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The directory goes when this is dropped.
#[derive(Debug)]
pub struct Isolated<'a> {
    repository: &'a Repository,
    quarantine: &'a Quarantine,
    folder: tempfile::TempDir,
}

impl<'a> Isolated<'a> {
    /// Makes the directory beside the quarantine's objects.
    pub fn new(repository: &'a Repository, quarantine: &'a Quarantine) -> Result<Self> {
        let beside = quarantine.objects.parent().filter(|p| p.is_dir()).unwrap_or(&quarantine.objects);
        let failed = |e: std::io::Error| Failure::io("make a private git directory in", beside, &e);
        let folder = tempfile::Builder::new().prefix("patch-").tempdir_in(beside).map_err(failed)?;
        for name in ["objects", "refs", "work"] {
            std::fs::create_dir(folder.path().join(name)).map_err(failed)?;
        }
        let config = match repository.format() {
            ObjectFormat::Sha1 => "[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
            ObjectFormat::Sha256 => {
                "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tobjectformat = sha256\n"
            }
        };
        put(folder.path(), "HEAD", b"ref: refs/heads/none\n").map_err(failed)?;
        put(folder.path(), "config", config.as_bytes()).map_err(failed)?;
        Ok(Self { repository, quarantine, folder })
    }

    /// A folder for temporary files.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    fn index(&self) -> PathBuf {
        self.folder.path().join("index")
    }

    /// A git call that no configuration and no attributes reach.
    #[must_use]
    pub fn git(&self) -> Git {
        Git::new(self.repository.environment(), Some(self.folder.path()))
            .cwd(self.folder.path())
            .index(&self.index())
            .objects(self.quarantine)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_COUNT", "0")
            .env("GIT_CONFIG_PARAMETERS", "")
            .env("GIT_ATTR_NOSYSTEM", "1")
            .setting("core.attributesFile=/dev/null")
            .attributes(self.repository.empty_tree())
    }

    /// Fills the index with a tree.
    pub fn read(&self, tree: &ObjectId) -> Result<()> {
        let mut git =
            self.repository.git().work_tree(&self.folder()).index(&self.index()).objects(self.quarantine);
        for setting in ["core.splitIndex=false", "core.sparseCheckout=false", "index.sparse=false"] {
            git = git.setting(setting);
        }
        git.args(["read-tree", tree.as_str()]).ok().map(|_| ())
    }

    /// Applies a patch to the index. The failure, with git's words, is the inner one.
    pub fn apply(&self, patch: &[u8], strip: &str) -> Result<std::result::Result<(), String>> {
        let git = self.git().setting("apply.ignoreWhitespace=no").args(["apply", "--cached", "--binary"]);
        let git = git.args(["--whitespace=nowarn", strip, "-"]).stdin(patch.to_vec());
        let output = git.run()?;
        if output.success() { Ok(Ok(())) } else { Ok(Err(output.stderr.trim().to_owned())) }
    }

    /// The tree of the index.
    pub fn write(&self) -> Result<ObjectId> {
        // Everything in it comes from the base or was just written, so that git need not look for every blob.
        let output = self.git().args(["write-tree", "--missing-ok"]).run()?;
        let line = output.line();
        output.ok()?;
        line.parse().map_err(|_| Failure::new(Code::Io, format!("git write-tree answered {line:?}")))
    }
}

/// A file of the private directory, made anew.
fn put(folder: &Path, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    std::fs::File::create_new(folder.join(name))?.write_all(bytes)
}
