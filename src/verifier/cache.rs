//! What is expensive to digest and cannot change under its name: the sha256 of a git blob (by its id), and of
//! a program's file (by inode, size and times). A cache only saves reading; a damaged or missing one costs
//! time and nothing else.

use crate::domain::value::digest::{Mode, ObjectId, Sha256};
use crate::error::{Failure, Result};
use crate::git::Objects;
use crate::store::layout::{create_private_dir, replace_private_unsynced};
use crate::store::lock::LockGuard;
use std::collections::{BTreeMap, HashMap};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// One record: git's id padded to 32 bytes, the sha256, and the first 8 bytes of the digest of both.
const RECORD: usize = 72;

/// The sha256 of blobs by their git ids.
pub(super) struct BlobDigests {
    file: PathBuf,
    /// Read at the first use: most looks need none of it.
    known: Option<HashMap<[u8; 32], Sha256>>,
    fresh: Vec<([u8; 32], Sha256)>,
}

impl BlobDigests {
    /// What is known in a folder; nothing where there is no cache.
    pub(super) fn open(folder: &Path) -> Self {
        Self { file: folder.join("blob-digests"), known: None, fresh: Vec::new() }
    }

    fn known_digests(&mut self) -> &mut HashMap<[u8; 32], Sha256> {
        self.known.get_or_insert_with(|| {
            let bytes = std::fs::read(&self.file).unwrap_or_default();
            bytes.chunks_exact(RECORD).filter_map(record).collect()
        })
    }

    /// Takes over what is known from elsewhere.
    pub(super) fn learn(&mut self, id: &ObjectId, sha256: Sha256) {
        if let Some(id) = padded(id)
            && self.known_digests().insert(id, sha256).is_none()
        {
            self.fresh.push((id, sha256));
        }
    }

    /// The sha256 of an entry's bytes; of its id's text where it is a commit of another repository.
    pub(super) fn of(&mut self, objects: &Objects, mode: Mode, id: &ObjectId) -> Result<Sha256> {
        if mode == Mode::Gitlink {
            return Ok(Sha256::of(id.as_str().as_bytes()));
        }
        if let Some(known) = padded(id).and_then(|id| self.known_digests().get(&id).copied()) {
            return Ok(known);
        }
        let sha256 = Sha256::of(&objects.read_blob(id)?);
        self.learn(id, sha256);
        Ok(sha256)
    }

    /// Keeps what is new. Losing it is no harm, so a failure is none.
    pub(super) fn save(&self) {
        let append = || -> Result<()> {
            let folder = self.file.parent().unwrap_or(Path::new("."));
            create_private_dir(folder)?;
            let _lock = LockGuard::acquire(&folder.join("lock"))?;
            let failed = |e: std::io::Error| Failure::io("write", &self.file, &e);
            let mut file =
                std::fs::File::options().create(true).append(true).open(&self.file).map_err(failed)?;
            // A record that a crash cut short must not shift those that follow.
            let torn = file.metadata().map_err(failed)?.len() % RECORD as u64;
            let mut bytes =
                vec![0u8; if torn == 0 { 0 } else { RECORD - usize::try_from(torn).unwrap_or(0) }];
            for (id, sha256) in &self.fresh {
                bytes.extend(encoded(id, sha256));
            }
            file.write_all(&bytes).map_err(failed)
        };
        if !self.fresh.is_empty() {
            drop(append());
        }
    }
}

fn padded(id: &ObjectId) -> Option<[u8; 32]> {
    let mut out = [0u8; 32];
    for (at, pair) in id.as_str().as_bytes().chunks_exact(2).enumerate() {
        *out.get_mut(at)? = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(out)
}

fn raw(sha256: &Sha256) -> [u8; 32] {
    sha256.to_string().parse::<ObjectId>().ok().and_then(|id| padded(&id)).unwrap_or_default()
}

fn encoded(id: &[u8; 32], sha256: &Sha256) -> Vec<u8> {
    let mut bytes = [id.as_slice(), &raw(sha256)].concat();
    let check = raw(&Sha256::of(&bytes));
    bytes.extend(&check[..8]);
    bytes
}

fn record(bytes: &[u8]) -> Option<([u8; 32], Sha256)> {
    let id: [u8; 32] = bytes.get(..32)?.try_into().ok()?;
    let hex: String = bytes.get(32..64)?.iter().map(|b| format!("{b:02x}")).collect();
    let sha256: Sha256 = hex.parse().ok()?;
    (encoded(&id, &sha256) == bytes).then_some((id, sha256))
}

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

    /// Keeps what is new, as [`BlobDigests::save`] does.
    pub(super) fn save(&self) {
        let Some(folder) = self.file.parent().filter(|_| self.changed) else { return };
        let bytes = serde_json::to_vec(&self.known).unwrap_or_default();
        drop(create_private_dir(folder).and_then(|()| replace_private_unsynced(&self.file, &bytes)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::value::digest::ObjectFormat;
    use crate::git::testing::TestRepository;

    #[test]
    fn digests_are_kept_and_a_torn_or_forged_record_is_not_believed() {
        let home = TestRepository::new();
        home.write_file("a", b"one\n");
        home.commit_all("a");
        let folder = home.outside().join("cache");
        let objects = home.repository().object_reader(None).expect("opens");
        let id = ObjectFormat::Sha1.blob_id(b"one\n").expect("hashes");
        let mut first = BlobDigests::open(&folder);
        assert_eq!(first.of(&objects, Mode::File, &id).expect("reads"), Sha256::of(b"one\n"));
        first.save();
        let mut again = BlobDigests::open(&folder);
        assert_eq!(again.known_digests().len(), 1);
        let other = ObjectFormat::Sha1.blob_id(b"two\n").expect("hashes");
        again.learn(&other, Sha256::of(b"two\n"));
        let file = std::fs::File::options().write(true).open(folder.join("blob-digests")).expect("opens");
        file.set_len(40).expect("cut");
        again.save();
        let mut known = BlobDigests::open(&folder);
        assert_eq!(known.known_digests().values().collect::<Vec<_>>(), [&Sha256::of(b"two\n")]);
        let mut forged = encoded(&padded(&id).expect("an id"), &Sha256::of(b"x"));
        forged[40] ^= 1;
        assert!(record(&forged).is_none());
    }
}
