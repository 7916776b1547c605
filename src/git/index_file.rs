//! The entries of an index, read without git: versions 2 to 4, in one file. A split or sparse index,
//! and whatever else is not understood, is git's to read.

use super::object_store::index_entry;
use super::tree::TreeFile;
use crate::domain::value::digest::{ObjectId, TreeObject};
use std::ops::Range;
use std::path::Path;

/// Length of an entry before its extended flags and its path: stamps, mode, id and flags.
const FIXED: usize = 62;
const ID_LENGTH: usize = 20;
/// Of the first 16 flags.
const EXTENDED: u16 = 1 << 14;
/// What the file ends with.
const CHECKSUM: usize = 20;

/// An index that was read at once.
#[derive(Debug, Default)]
pub(super) struct IndexFile {
    bytes: Vec<u8>,
    /// The paths of all entries, one behind the other.
    names: Vec<u8>,
    entries: Vec<EntryPlace>,
}

#[derive(Debug)]
struct EntryPlace {
    at: usize,
    flags: u64,
    name: Range<usize>,
}

/// One entry, as it stands in the file.
pub(super) struct FileEntry<'a> {
    pub path: &'a [u8],
    pub mode: u32,
    /// Raw, 20 bytes.
    pub id: &'a [u8],
    pub stage: u8,
    /// As `git ls-files --debug` tells them: the extended ones from bit 16 on.
    pub flags: u64,
    pub stamps: EntryStamps,
}

/// What the file system said of a file when git looked last; all cut to 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EntryStamps {
    pub ctime: (u32, u32),
    pub mtime: (u32, u32),
    pub ino: u32,
    pub size: u32,
}

impl IndexFile {
    /// The index of a git directory; an absent one is empty. `None` where git has to be asked.
    pub fn of(git_dir: &Path) -> Option<Self> {
        match std::fs::read(git_dir.join("index")) {
            Ok(bytes) => Self::parse(bytes),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Some(Self::default()),
            Err(_) => None,
        }
    }

    pub fn entries(&self) -> impl Iterator<Item = FileEntry<'_>> {
        self.entries.iter().map(|place| {
            let word = |at: usize| {
                let bytes: [u8; 4] =
                    self.bytes[place.at + at..place.at + at + 4].try_into().unwrap_or_default();
                u32::from_be_bytes(bytes)
            };
            FileEntry {
                path: &self.names[place.name.clone()],
                mode: word(24),
                id: &self.bytes[place.at + 40..place.at + 40 + ID_LENGTH],
                stage: u8::try_from(place.flags >> 12 & 3).unwrap_or_default(),
                flags: place.flags,
                stamps: EntryStamps {
                    ctime: (word(0), word(4)),
                    mtime: (word(8), word(12)),
                    ino: word(20),
                    size: word(36),
                },
            }
        })
    }

    /// `None` for anything that is not understood to its end.
    pub fn parse(bytes: Vec<u8>) -> Option<Self> {
        let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let version = number(4).filter(|version| bytes.starts_with(b"DIRC") && (2..=4).contains(version))?;
        let end = bytes.len().checked_sub(CHECKSUM)?;
        let count = usize::try_from(number(8)?).ok().filter(|count| *count <= end / FIXED)?;
        let (mut names, mut entries) = (Vec::new(), Vec::with_capacity(count));
        let mut at = 12;
        let mut before = 0..0;
        for _ in 0..count {
            let fixed = bytes.get(at..(at + FIXED).min(end))?;
            let low = u16::from_be_bytes(fixed.get(FIXED - 2..)?.try_into().ok()?);
            let mut path_at = at + FIXED;
            let mut flags = u64::from(low);
            if low & EXTENDED != 0 {
                let high = u16::from_be_bytes(bytes.get(path_at..path_at + 2)?.try_into().ok()?);
                flags |= u64::from(high) << 16;
                path_at += 2;
            }
            let start = names.len();
            if version == 4 {
                let (removed, used) = removed_length(bytes.get(path_at..end)?)?;
                path_at += used;
                let kept = before.len().checked_sub(removed)?;
                names.extend_from_within(before.start..before.start + kept);
            }
            let path = bytes.get(path_at..end)?;
            let length = path.iter().position(|b| *b == 0)?;
            names.extend_from_slice(&path[..length]);
            entries.push(EntryPlace { at, flags, name: start..names.len() });
            before = start..names.len();
            at = match version {
                4 => path_at + length + 1,
                // Filled up with NULs to a multiple of eight.
                _ => at + (path_at + length - at + 8) / 8 * 8,
            };
        }
        has_plain_extensions(bytes.get(at..end)?).then_some(Self { bytes, names, entries })
    }
}

/// Writes the index of a working tree that holds this tree and was not looked at yet. `None` where git has to
/// write it.
pub(super) fn write_index_of_tree(git_dir: &Path, tree: &ObjectId) -> Option<()> {
    let repository = git2::Repository::open(git_dir).ok()?;
    let tree = repository.find_tree(git2::Oid::from_str(tree.as_str()).ok()?).ok()?;
    let mut index = repository.index().ok()?;
    index.read_tree(&tree).ok()?;
    index.write().ok()
}

/// Writes an index of these files, none of which was looked at yet. `None` where git has to write it.
pub(super) fn write_index_of_files(file: &Path, files: &[TreeFile]) -> Option<()> {
    let mut index = git2::Index::open(file).ok()?;
    for one in files {
        let object = TreeObject { mode: one.mode, id: one.id.clone() };
        index.add(&index_entry(&one.path, &object)?).ok()?;
    }
    index.write().ok()
}

/// How much of the path before an entry is not part of its own (version 4), and the bytes that say it.
fn removed_length(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut value = usize::from(bytes.first()? & 0x7f);
    let mut used = 1;
    while bytes[used - 1] & 0x80 != 0 {
        value = value.checked_add(1)?.checked_mul(128)? | usize::from(bytes.get(used)? & 0x7f);
        used += 1;
    }
    Some((value, used))
}

/// An extension whose name does not begin with a capital changes what the entries mean.
fn has_plain_extensions(mut rest: &[u8]) -> bool {
    while let Some((head, behind)) = rest.split_at_checked(8) {
        let Some(length) = head[4..].try_into().ok().map(u32::from_be_bytes) else { return false };
        let Some(next) = usize::try_from(length).ok().and_then(|length| behind.get(length..)) else {
            return false;
        };
        if !head[0].is_ascii_uppercase() {
            return false;
        }
        rest = next;
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::testing::TestRepository;
    use crate::git::tree;

    fn listed(home: &TestRepository) -> Vec<String> {
        home.run_git(["ls-files", "--stage"]).lines().map(str::to_owned).collect()
    }

    fn read(home: &TestRepository) -> Option<Vec<String>> {
        let file = IndexFile::of(&home.top().join(".git"))?;
        let line = |entry: FileEntry<'_>| {
            let id: String = entry.id.iter().map(|b| format!("{b:02x}")).collect();
            format!("{:06o} {id} {}\t{}", entry.mode, entry.stage, String::from_utf8_lossy(entry.path))
        };
        Some(file.entries().map(line).collect())
    }

    fn repository_with_files() -> TestRepository {
        let home = TestRepository::new();
        for name in ["a", "ab/c", "ab/cd", "ab/cde/f", "b"] {
            home.write_file(name, name.as_bytes());
        }
        home.write_file(&format!("long/{}", "n".repeat(200)), b"");
        home.commit_all("first");
        home
    }

    #[test]
    fn every_version_is_read_as_git_lists_it() {
        let home = repository_with_files();
        for version in ["2", "3", "4"] {
            home.run_git(["update-index", "--index-version", version]);
            assert_eq!(read(&home), Some(listed(&home)), "version {version}");
            home.run_git(["update-index", "--skip-worktree", "b"]);
            assert_eq!(read(&home), Some(listed(&home)), "version {version} with longer flags");
            let file = IndexFile::of(&home.top().join(".git")).expect("an index");
            assert!(file.entries().all(|entry| (entry.flags & 1 << 30 != 0) == (entry.path == b"b")));
            home.run_git(["update-index", "--no-skip-worktree", "b"]);
        }
        home.write_file("new", b"1");
        home.run_git(["add", "-N", "new"]);
        let file = IndexFile::of(&home.top().join(".git")).expect("an index");
        assert!(file.entries().all(|entry| (entry.flags & 1 << 29 != 0) == (entry.path == b"new")));
        std::fs::remove_file(home.top().join(".git/index")).expect("removes");
        assert_eq!(read(&home), Some(Vec::new()));
    }

    #[test]
    fn what_is_written_is_what_git_would_have_written() {
        let home = repository_with_files();
        home.run_git(["update-index", "--chmod=+x", "a"]);
        std::os::unix::fs::symlink("a", home.top().join("link")).expect("a link");
        let tree = home.commit_all("second");
        let files =
            tree::list_files(&home.repository().object_reader(None).expect("objects"), &tree).expect("reads");
        let listed = listed(&home);
        let index = home.top().join(".git/index");
        let by_files = || write_index_of_files(&index, &files);
        let by_tree = || write_index_of_tree(&home.top().join(".git"), &tree);
        for write in [&by_files as &dyn Fn() -> Option<()>, &by_tree] {
            std::fs::remove_file(&index).expect("removes");
            write().expect("is written");
            assert_eq!(self::listed(&home), listed);
            assert_eq!(home.run_git(["status", "--porcelain"]), "");
        }
    }

    #[test]
    fn a_split_or_sparse_index_is_left_to_git() {
        let home = repository_with_files();
        home.run_git(["update-index", "--split-index"]);
        assert_eq!(read(&home), None);
        home.run_git(["update-index", "--no-split-index"]);
        assert_eq!(read(&home), Some(listed(&home)));
        home.run_git(["sparse-checkout", "set", "--cone", "--sparse-index", "long"]);
        assert_eq!(read(&home), None);
    }

    #[test]
    fn fuzz_an_index() {
        let home = repository_with_files();
        let read = || std::fs::read(home.top().join(".git/index")).expect("an index");
        let second = read();
        home.run_git(["update-index", "--index-version", "4"]);
        crate::fuzz::holds(
            &[&second, &read()],
            &[b"DIRC", b"TREE", b"link", b"\0\0\0\x01", b"\xff\xff"],
            |bytes| {
                if let Some(file) = IndexFile::parse(bytes.to_vec()) {
                    assert!(file.entries().count() <= bytes.len());
                }
            },
        );
    }
}
