//! The sha256 of programs' files by inode, size and times: dear to take, and the same as long as those are. A
//! cache only saves reading; a damaged or missing one costs time and nothing else.

use crate::domain::value::digest::Sha256;
use crate::store::layout::{create_private_dir, replace_private_unsynced};
use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What the file system says of a file: another one, or other bytes, is told otherwise.
pub(super) fn stamp_of(m: &std::fs::Metadata) -> String {
    let (ino, size) = (m.ino(), m.size());
    let (mtime, ctime) = ((m.mtime(), m.mtime_nsec()), (m.ctime(), m.ctime_nsec()));
    format!("{}:{ino}:{size}:{}.{}:{}.{}", m.dev(), mtime.0, mtime.1, ctime.0, ctime.1)
}

/// The sha256 of programs' files, by what the file system says of them.
pub(super) struct FileDigests {
    file: PathBuf,
    known: BTreeMap<String, Sha256>,
    changed: bool,
}

impl FileDigests {
    pub(super) fn open(folder: &Path) -> Self {
        let file = folder.join("programs.json");
        let known = std::fs::read(&file)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        Self { file, known, changed: false }
    }

    /// The digest of a file's bytes; links are followed.
    pub(super) fn of(&mut self, path: &Path) -> std::io::Result<Sha256> {
        let mut file = std::fs::File::open(path)?;
        let name = stamp_of(&file.metadata()?);
        if let Some(known) = self.known.get(&name) {
            return Ok(*known);
        }
        let mut hasher = sha2::Sha256::default();
        let mut piece = vec![0u8; 1 << 16];
        loop {
            match file.read(&mut piece)? {
                0 => break,
                n => sha2::Digest::update(&mut hasher, &piece[..n]),
            }
        }
        let sha256 = Sha256::from_hasher(hasher);
        self.learn(name, sha256);
        Ok(sha256)
    }

    /// What is known under a name of another kind than a file's stamp.
    pub(super) fn known(&self, name: &str) -> Option<Sha256> {
        self.known.get(name).copied()
    }

    pub(super) fn learn(&mut self, name: String, sha256: Sha256) {
        self.changed = true;
        self.known.insert(name, sha256);
    }

    /// Keeps what is new. Losing it is no harm, so a failure is none.
    pub(super) fn save(&self) {
        let Some(folder) = self.file.parent().filter(|_| self.changed) else { return };
        let bytes = serde_json::to_vec(&self.known).unwrap_or_default();
        drop(create_private_dir(folder).and_then(|()| replace_private_unsynced(&self.file, &bytes)));
    }
}
