//! Content-addressed files: what is too large for a ledger row. Found by sha256, checked whenever they
//! are read.
//!
//! A blob counts once a row names it. So storing one does not wait for the disk; the ledger does, once
//! for all of them, before it commits the rows.

use super::layout::{Layout, create_private_dir, replace_private_unsynced};
use super::unsynced::UnsyncedBlobs;
use crate::domain::value::digest::Sha256;
use crate::error::{Code, Failure, Result};
use std::path::PathBuf;

/// The blob store of a repository.
#[derive(Debug, Clone)]
pub struct Blobs {
    root: PathBuf,
    unsynced: UnsyncedBlobs,
}

impl Blobs {
    /// The store of a layout.
    pub fn new(layout: &Layout) -> Self {
        Self { root: layout.blobs(), unsynced: layout.unsynced.clone() }
    }

    /// Where a blob lies or would lie.
    pub fn path(&self, digest: &Sha256) -> PathBuf {
        let hex = digest.to_string();
        self.root.join(&hex[..2]).join(&hex[2..])
    }

    /// Stores bytes; storing them again changes nothing. They are on the disk before the next row is.
    pub fn put(&self, bytes: &[u8]) -> Result<Sha256> {
        let digest = Sha256::of(bytes);
        let path = self.path(&digest);
        if self.get(&digest).is_err() {
            if let Some(folder) = path.parent() {
                create_private_dir(folder)?;
            }
            replace_private_unsynced(&path, bytes)?;
        }
        // Whoever stored it before may not have waited for the disk either.
        self.unsynced.add_file(&path);
        Ok(digest)
    }

    /// Tells that all of this file system is on the disk now: blobs on it need no wait of their own.
    pub fn note_synced(&self, device: u64) {
        use std::os::unix::fs::MetadataExt;
        if std::fs::metadata(&self.root).is_ok_and(|root| root.dev() == device) {
            self.unsynced.forget_all();
        }
    }

    /// The bytes of a blob; `store.corrupt` where they are not what the digest says.
    pub fn get(&self, digest: &Sha256) -> Result<Vec<u8>> {
        let path = self.path(digest);
        let bytes = std::fs::read(&path).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => {
                Failure::new(Code::NotFound, format!("there is no stored blob {digest}"))
                    .subject(digest.to_string())
            }
            _ => Failure::io_of_ours("read", &path, &e),
        })?;
        let actual = Sha256::of(&bytes);
        if actual == *digest {
            return Ok(bytes);
        }
        Err(Failure::new(
            Code::StoreCorrupt,
            format!("the stored blob {} was changed on disk", path.display()),
        )
        .subject(digest.to_string())
        .expected(digest, actual)
        .remedy(
            "Remove the damaged file; what it proved has to be shown again.",
            ["git", "tender", "recover"],
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blobs_wait_for_the_row_that_names_them() {
        let dir = tempfile::tempdir().expect("a directory");
        let layout = Layout::new(dir.path());
        layout.create().expect("creates");
        let blobs = Blobs::new(&layout);
        let digest = blobs.put(b"one").expect("stores");
        std::fs::remove_file(blobs.path(&digest)).expect("removes");
        assert!(layout.unsynced.sync_all().is_err(), "what is gone cannot be waited for");
        blobs.put(b"one").expect("stores");
        assert!(layout.unsynced.sync_all().is_ok());
        std::fs::remove_file(blobs.path(&digest)).expect("removes");
        assert!(layout.unsynced.sync_all().is_ok(), "once is enough");
    }

    #[test]
    fn a_changed_blob_is_noticed() {
        let dir = tempfile::tempdir().expect("a directory");
        let layout = Layout::new(dir.path());
        layout.create().expect("creates");
        let blobs = Blobs::new(&layout);
        let digest = blobs.put(b"one").expect("stores");
        assert_eq!(blobs.get(&digest).expect("reads"), b"one");
        super::super::layout::write_private(&blobs.path(&digest), b"two").expect("writes");
        assert_eq!(blobs.get(&digest).expect_err("damaged").code(), Code::StoreCorrupt);
        assert_eq!(blobs.put(b"one").expect("heals"), digest);
        assert_eq!(blobs.get(&digest).expect("reads"), b"one");
    }
}
