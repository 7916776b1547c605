//! Blobs that were written and are perhaps not on the disk. The ledger waits for them before it
//! commits a row, so that no row names what a power cut takes: one file by a sync of its own, several
//! by one of their file system, which is one wait instead of two for each.

use crate::error::presence::syncs_as_whole;
use crate::error::{Failure, Result};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Shared by everyone who has the same layout.
#[derive(Debug, Clone, Default)]
pub(super) struct UnsyncedBlobs(Arc<Mutex<Vec<PathBuf>>>);

impl UnsyncedBlobs {
    pub(super) fn add_file(&self, path: &Path) {
        let mut files = self.files();
        if !files.iter().any(|known| known == path) {
            files.push(path.to_owned());
        }
    }

    pub(super) fn forget_all(&self) {
        self.files().clear();
    }

    /// Waits until all of them, and their names, are on the disk.
    pub(super) fn sync_all(&self) -> Result<()> {
        let mut files = self.files();
        let as_whole = |path: &Path| File::open(path).is_ok_and(|file| syncs_as_whole(&file));
        match files.as_slice() {
            [first, _, ..] if as_whole(first) => sync_path(first, |file| Ok(rustix::fs::syncfs(file)?))?,
            files => {
                for file in files {
                    sync_path(file, File::sync_all)?;
                    file.parent().map_or(Ok(()), |folder| sync_path(folder, File::sync_all))?;
                }
            }
        }
        files.clear();
        Ok(())
    }

    fn files(&self) -> MutexGuard<'_, Vec<PathBuf>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn sync_path(path: &Path, sync: impl FnOnce(&File) -> std::io::Result<()>) -> Result<()> {
    File::open(path).and_then(|file| sync(&file)).map_err(|e| Failure::io_of_ours("sync", path, &e))
}
