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

/// An entry of a folder, as its digest is taken: a file, or a folder by its own digest. The fields stand in
/// the order of canonical JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum DigestedEntry {
    Folder {
        files: Sha256,
        name: RepoPath,
    },
    #[serde(rename_all = "camelCase")]
    File {
        git_blob: ObjectId,
        mode: Mode,
        name: RepoPath,
        sha256: Sha256,
    },
}

/// The digest of a folder: sha256 over the canonical JSON of its entries, sorted by the bytes of their names.
/// A folder without a file is no entry. So a folder that is the same in two trees has one digest, and a
/// change costs the folders that it lies in.
pub fn folder_digest(sorted: &[DigestedEntry]) -> Sha256 {
    hash_serialized(&sorted)
}

/// The digest of a listing: that of the top folder of its files, which are sorted by path bytes.
#[cfg(test)]
pub fn listing_digest(sorted: &[InputFile]) -> Sha256 {
    digest_beneath(sorted, 0)
}

/// The digest of files that all lie in one folder, whose path with its slash is `depth` bytes long.
#[cfg(test)]
fn digest_beneath(sorted: &[InputFile], depth: usize) -> Sha256 {
    let below = |file: &InputFile| file.path.as_bytes()[depth..].to_vec();
    let name_of = |file: &InputFile| {
        let below = below(file);
        RepoPath::new(below.split(|b| *b == b'/').next().unwrap_or(&below)).expect("a name")
    };
    let mut named: Vec<(RepoPath, &[InputFile])> =
        sorted.chunk_by(|a, b| name_of(a) == name_of(b)).map(|files| (name_of(&files[0]), files)).collect();
    named.sort_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
    let entries: Vec<DigestedEntry> = named
        .into_iter()
        .map(|(name, files)| match files {
            [file] if file.path.as_bytes()[depth..] == *name.as_bytes() => {
                let (git_blob, mode, sha256) = (file.git_blob.clone(), file.mode, file.sha256);
                DigestedEntry::File { git_blob, mode, name, sha256 }
            }
            _ => DigestedEntry::Folder {
                files: digest_beneath(files, depth + name.as_bytes().len() + 1),
                name,
            },
        })
        .collect();
    folder_digest(&entries)
}

/// The digest that earlier versions took of a listing: over its files in one row. A record that has it is
/// stale once, though nothing changed.
pub fn flat_listing_digest(sorted: &[InputFile]) -> Sha256 {
    hash_serialized(&sorted)
}

/// The fields are declared in canonical order and all values are strings, so that the plain serialization is
/// the canonical one; it is made without a copy, because a listing may hold 100,000 files.
fn hash_serialized(value: &impl Serialize) -> Sha256 {
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
    let mut sink = std::io::BufWriter::with_capacity(1 << 12, Sink(sha2::Digest::new()));
    let written = serde_json::to_writer(&mut sink, value).is_ok();
    match sink.into_inner() {
        Ok(Sink(hasher)) if written => Sha256::from_hasher(hasher),
        _ => Sha256::of_json(value),
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

    /// The listing `at`, with these paths as they are: a file, or none.
    pub fn listing_against(
        at: Sha256,
        differences: impl Iterator<Item = (RepoPath, Option<InputFile>)>,
    ) -> Self {
        let mut listing = Self { differs_from: Some(at), without: Vec::new(), files: Vec::new() };
        for (path, file) in differences {
            match file {
                Some(file) => listing.files.push(file),
                None => listing.without.push(path),
            }
        }
        listing
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

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> InputFile {
        let (git_blob, sha256) = ("a".repeat(40).parse().expect("an id"), Sha256::of(b"x"));
        InputFile { git_blob, mode: Mode::File, path: RepoPath::new(path).expect("a path"), sha256 }
    }

    #[test]
    fn a_listing_is_digested_folder_by_folder() {
        let text = |name: &str| {
            let (blob, sha256) = ("a".repeat(40), Sha256::of(b"x"));
            format!(r#"{{"gitBlob":"{blob}","mode":"100644","name":"{name}","sha256":"{sha256}"}}"#)
        };
        let inner = Sha256::of(format!("[{}]", text("b")).as_bytes());
        // By name: a folder `a` comes before `a-b`, though its paths come after it.
        let whole = format!(r#"[{{"files":"{inner}","name":"a"}},{}]"#, text("a-b"));
        assert_eq!(listing_digest(&[file("a-b"), file("a/b")]), Sha256::of(whole.as_bytes()));
        assert_eq!(listing_digest(&[]), Sha256::of(b"[]"));
        let flat = [file("a-b"), file("a/b")];
        assert_eq!(flat_listing_digest(&flat), Sha256::of_json(&flat));
    }
}
