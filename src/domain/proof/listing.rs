//! Listings: the files that a verdict depends on, how they are digested and stored, and what differs between
//! two.

use crate::domain::value::digest::{Mode, ObjectId, Sha256};
use crate::domain::value::repo_path::RepoPath;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One file that a verdict depends on. The fields stand in the order of canonical JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InputFile {
    /// Git's id of its bytes.
    pub git_blob: ObjectId,
    pub mode: Mode,
    pub path: RepoPath,
    /// The sha256 of its bytes.
    pub sha256: Sha256,
}

/// The digest of a listing: sha256 over the canonical JSON of the files, sorted by path bytes.
pub fn listing_digest(sorted: &[InputFile]) -> Sha256 {
    // The fields are declared in canonical order and all values are strings, so that the plain serialization
    // is the canonical one; it is made without a copy, because a listing may hold 100,000 files.
    struct Sink(sha2::Sha256);
    impl std::io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            sha2::Digest::update(&mut self.0, bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut sink = std::io::BufWriter::with_capacity(1 << 16, Sink(sha2::Digest::new()));
    let written = serde_json::to_writer(&mut sink, sorted).is_ok();
    match sink.into_inner() {
        Ok(Sink(hasher)) if written => Sha256::from_hasher(hasher),
        _ => Sha256::of_json(&sorted),
    }
}

/// A listing as it is stored: whole, or as what differs from another one. The candidate of a large repository
/// costs the size of its change that way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Listing {
    /// The stored listing that this one differs from; `None` where it is whole.
    pub differs_from: Option<Sha256>,
    /// Paths of that one that are not in this one.
    pub without: Vec<RepoPath>,
    /// Files that are only in this one, or are different there; all files where it is whole.
    pub files: Vec<InputFile>,
}

impl Listing {
    /// A whole listing of sorted files.
    pub fn whole_listing(files: Vec<InputFile>) -> Self {
        Self { differs_from: None, without: Vec::new(), files }
    }

    /// `files` told by what differs from `other`, which is stored as the blob `at`. Both are sorted.
    pub fn listing_against(at: Sha256, other: &[InputFile], files: &[InputFile]) -> Self {
        let known: BTreeMap<&RepoPath, &InputFile> = other.iter().map(|file| (&file.path, file)).collect();
        let now: std::collections::BTreeSet<&RepoPath> = files.iter().map(|file| &file.path).collect();
        Self {
            differs_from: Some(at),
            without: known.keys().filter(|path| !now.contains(*path)).map(|path| (*path).clone()).collect(),
            files: files.iter().filter(|file| known.get(&file.path) != Some(file)).cloned().collect(),
        }
    }

    /// The sorted files, given those of the listing that this one differs from.
    pub fn resolve_with(self, other: Vec<InputFile>) -> Vec<InputFile> {
        let mut all: BTreeMap<RepoPath, InputFile> =
            other.into_iter().map(|file| (file.path.clone(), file)).collect();
        self.without.iter().for_each(|path| drop(all.remove(path)));
        all.extend(self.files.into_iter().map(|file| (file.path.clone(), file)));
        all.into_values().collect()
    }
}

/// The differences of two listings, each in a few words, in path order.
pub fn listing_differences(before: &[InputFile], now: &[InputFile]) -> Vec<String> {
    let old: BTreeMap<&RepoPath, &InputFile> = before.iter().map(|file| (&file.path, file)).collect();
    let new: BTreeMap<&RepoPath, &InputFile> = now.iter().map(|file| (&file.path, file)).collect();
    let paths: std::collections::BTreeSet<&&RepoPath> = old.keys().chain(new.keys()).collect();
    paths
        .into_iter()
        .filter_map(|path| match (old.get(*path), new.get(*path)) {
            (Some(a), Some(b)) if a == b => None,
            (Some(a), Some(b)) if a.mode != b.mode && a.sha256 == b.sha256 => {
                Some(format!("{path} changed its mode from {} to {}", a.mode, b.mode))
            }
            (Some(_), Some(_)) => Some(format!("{path} changed")),
            (None, _) => Some(format!("{path} was added")),
            (_, None) => Some(format!("{path} was removed")),
        })
        .collect()
}
