//! Content-addressed files: what is too large for a ledger row. Found by sha256, checked whenever they are
//! read.

use super::layout::{Layout, create_private_dir, write_private};
use crate::domain::value::digest::Sha256;
use crate::error::{Code, Failure, Result};
use std::path::PathBuf;

/// The blob store of a repository.
#[derive(Debug, Clone)]
pub struct Blobs {
    root: PathBuf,
}

impl Blobs {
    /// The store of a layout.
    pub fn new(layout: &Layout) -> Self {
        Self { root: layout.blobs() }
    }

    /// Where a blob lies or would lie.
    pub fn path(&self, digest: &Sha256) -> PathBuf {
        let hex = digest.to_string();
        self.root.join(&hex[..2]).join(&hex[2..])
    }

    /// Stores bytes, durably; storing them again changes nothing.
    pub fn put(&self, bytes: &[u8]) -> Result<Sha256> {
        let digest = Sha256::of(bytes);
        let path = self.path(&digest);
        if self.get(&digest).is_ok() {
            return Ok(digest);
        }
        if let Some(folder) = path.parent() {
            create_private_dir(folder)?;
        }
        write_private(&path, bytes)?;
        Ok(digest)
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
    fn a_changed_blob_is_noticed() {
        let dir = tempfile::tempdir().expect("a directory");
        let layout = Layout::new(dir.path());
        layout.create().expect("creates");
        let blobs = Blobs::new(&layout);
        let digest = blobs.put(b"one").expect("stores");
        assert_eq!(blobs.get(&digest).expect("reads"), b"one");
        write_private(&blobs.path(&digest), b"two").expect("writes");
        assert_eq!(blobs.get(&digest).expect_err("damaged").code(), Code::StoreCorrupt);
        assert_eq!(blobs.put(b"one").expect("heals"), digest);
        assert_eq!(blobs.get(&digest).expect("reads"), b"one");
    }
}
