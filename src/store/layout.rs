//! Every path that we own, in one place.
//!
//! Under the repository's common git directory, so that all worktrees share it and nobody commits it.
//! Everything is private to the user (0700 and 0600). A command that only looks creates none of it.

use super::spare::SpareConnection;
use super::unsynced::UnsyncedBlobs;
use crate::error::presence::{is_filled_file, means_absent};
use crate::error::{Failure, Result};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The places under `<git-common-dir>/tender/`.
#[derive(Debug, Clone)]
pub struct Layout {
    root: PathBuf,
    /// What is open of the ledger that lies there.
    pub(super) spare: SpareConnection,
    /// Blobs that have to be on the disk before a row names them.
    pub(super) unsynced: UnsyncedBlobs,
}

impl Layout {
    /// For a repository's common git directory.
    pub fn new(common_dir: &Path) -> Self {
        let root = common_dir.join("tender");
        Self { root, spare: SpareConnection::default(), unsynced: UnsyncedBlobs::default() }
    }

    /// What only a store that had a ledger can hold: blobs, tasks' files, or rows that are not yet in the
    /// database. The folders alone say nothing, since a first writer makes them before the ledger.
    pub fn remains(&self) -> Result<Option<PathBuf>> {
        for folder in [self.blobs(), self.root.join("tasks")] {
            match std::fs::read_dir(&folder).map(|mut names| names.next().is_some()) {
                Ok(true) => return Ok(Some(folder)),
                Err(e) if !means_absent(&e) => return Err(Failure::io_of_ours("list", &folder, &e)),
                _ => {}
            }
        }
        let log = beside(&self.ledger(), "-wal");
        Ok(if is_filled_file(&log)? { Some(log) } else { None })
    }

    pub fn ledger(&self) -> PathBuf {
        self.root.join("ledger.db")
    }

    /// Content-addressed files: patches, logs, preimages, listings.
    pub fn blobs(&self) -> PathBuf {
        self.root.join("blobs").join("sha256")
    }

    /// The tasks that have a folder, sorted.
    pub fn task_ids(&self) -> Result<Vec<String>> {
        let folder = self.root.join("tasks");
        let mut ids: Vec<String> = match std::fs::read_dir(&folder) {
            Ok(entries) => {
                entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect()
            }
            Err(e) if means_absent(&e) => Vec::new(),
            Err(e) => return Err(Failure::io_of_ours("list", &folder, &e)),
        };
        ids.sort();
        Ok(ids)
    }

    /// The private files of a task, or of a room that stands for one.
    pub fn task(&self, id: &str) -> PathBuf {
        let kind = if id.starts_with('@') { "checks" } else { "tasks" };
        self.root.join(kind).join(id)
    }

    pub fn task_objects(&self, id: &str) -> PathBuf {
        self.task(id).join("objects")
    }

    /// What a task's worktree held when we wrote it last: the stat cache of its capture.
    pub fn task_held(&self, id: &str) -> PathBuf {
        self.task(id).join("held.json")
    }

    /// The lock around git's registry of worktrees.
    pub fn worktrees_lock(&self) -> PathBuf {
        self.root.join("locks").join("worktrees")
    }

    /// The lock under which `start` finds a free task id.
    pub fn start_lock(&self) -> PathBuf {
        self.root.join("locks").join("start")
    }

    /// Digests that are kept because they are dear to take.
    pub fn digests(&self) -> PathBuf {
        self.root.join("cache")
    }

    /// What is known of slots.
    pub fn slots(&self) -> PathBuf {
        self.root.join("slots")
    }

    /// The user's own configuration and verifiers, for a repository whose owners have none.
    pub fn local(&self) -> PathBuf {
        self.root.join("local")
    }

    /// What the set-ups of worktrees made.
    pub fn setups(&self) -> PathBuf {
        self.root.join("setups")
    }

    /// The places of files whose values no log may show.
    pub fn secret_files(&self) -> PathBuf {
        self.root.join("secret-files")
    }

    /// Which repository the store belongs to.
    pub fn home(&self) -> PathBuf {
        self.root.join("home.json")
    }

    /// The lock under which the store is created.
    pub fn lock(&self) -> PathBuf {
        self.root.join("lock")
    }

    /// The lock that a delivery to the live tree holds.
    pub fn delivery_lock(&self) -> PathBuf {
        self.root.join("delivery.lock")
    }

    /// The lock that a change of a task holds. Not inside the task's directory, so that it can be taken
    /// before that exists.
    pub fn task_lock(&self, id: &str) -> PathBuf {
        self.root.join("locks").join(format!("{id}.lock"))
    }

    /// A request to stop, to whoever holds the task's lock; beside the lock, for the same reason.
    pub fn stop_request(&self, id: &str) -> PathBuf {
        self.root.join("locks").join(format!("{id}.stop"))
    }

    /// Makes the directories that every writer needs.
    pub fn create(&self) -> Result<()> {
        let [tasks, locks] = ["tasks", "locks"].map(|name| self.root.join(name));
        for folder in [self.root.clone(), self.blobs(), tasks, locks, self.slots(), self.digests()] {
            create_private_dir(&folder)?;
        }
        Ok(())
    }
}

/// The file that SQLite keeps beside a database.
pub(super) fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Makes a directory and its parents, readable by the user only.
pub fn create_private_dir(path: &Path) -> Result<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|e| Failure::io_of_ours("create the directory", path, &e))
}

/// Writes a file of ours so that it is whole or absent after a crash: temporary file, sync, rename. Mode
/// 0600.
pub fn write_private(path: &Path, bytes: &[u8]) -> Result<()> {
    write_with_mode(path, bytes, 0o600)
}

/// The same for a file that others may read: mode 0644.
pub fn write_shared(path: &Path, bytes: &[u8]) -> Result<()> {
    write_with_mode(path, bytes, 0o644)
}

/// The same for a program: mode 0755.
pub fn write_executable(path: &Path, bytes: &[u8]) -> Result<()> {
    write_with_mode(path, bytes, 0o755)
}

/// Replaces a file that others may read, without waiting for the disk: whole for every reader, but a power
/// cut may take it.
pub fn replace_unsynced(path: &Path, bytes: &[u8]) -> Result<()> {
    replace_with_mode(path, bytes, 0o644).map(drop)
}

/// The same for a file that only the user may read: one that whoever reads it checks, and can do without.
pub fn replace_private_unsynced(path: &Path, bytes: &[u8]) -> Result<()> {
    replace_with_mode(path, bytes, 0o600).map(drop)
}

fn replace_with_mode(path: &Path, bytes: &[u8], mode: u32) -> Result<std::fs::File> {
    use std::io::Write;
    let failed = |e: std::io::Error| Failure::io_of_ours("write", path, &e);
    let folder = path.parent().unwrap_or(path);
    let mode = std::fs::Permissions::from_mode(mode);
    let mut file =
        tempfile::Builder::new().prefix(".new-").permissions(mode).tempfile_in(folder).map_err(failed)?;
    file.write_all(bytes).map_err(failed)?;
    file.persist(path).map_err(|e| Failure::io("put in place", path, &e.error))
}

fn write_with_mode(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    use std::io::Write;
    let folder =
        path.parent().ok_or_else(|| Failure::internal(format!("{} has no parent", path.display())))?;
    let failed = |e: std::io::Error| Failure::io_of_ours("write", path, &e);
    let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(folder).map_err(failed)?;
    file.as_file().set_permissions(std::fs::Permissions::from_mode(mode)).map_err(failed)?;
    file.write_all(bytes).and_then(|()| file.as_file().sync_all()).map_err(failed)?;
    file.persist(path).map_err(|e| Failure::io("put in place", path, &e.error))?;
    std::fs::File::open(folder).and_then(|f| f.sync_all()).map_err(failed)
}
