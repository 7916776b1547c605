//! Everything a user can see of a repository, to be compared before and after.

use super::Repo;
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// One entry of a tree on disk: permission bits and bytes (or a link's target, or nothing for a directory).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    File { mode: u32, bytes: Vec<u8> },
    Link(Vec<u8>),
    Directory { mode: u32 },
    Other,
}

pub type Tree = BTreeMap<String, Entry>;

/// The visible state: files, index, stash, branches. Refs of our own are left out.
#[derive(Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub files: Tree,
    pub index: String,
    pub flags: String,
    pub stash: String,
    pub refs: String,
    pub head: String,
}

impl Snapshot {
    pub fn of(repo: &Repo<'_>) -> Self {
        let refs = repo.git_out(&["for-each-ref"]).text();
        Self {
            files: tree(&repo.path),
            index: repo.git_out(&["ls-files", "-s", "-z"]).text(),
            flags: repo.git_out(&["ls-files", "-v", "-z"]).text(),
            stash: repo.git_out(&["stash", "list"]).text(),
            refs: refs.lines().filter(|line| !line.contains("refs/tender/")).collect::<Vec<_>>().join("\n"),
            head: format!(
                "{} {}",
                repo.git_out(&["symbolic-ref", "-q", "HEAD"]).text(),
                repo.git_out(&["rev-parse", "-q", "--verify", "HEAD"]).text()
            ),
        }
    }

    /// Fails with the first difference, not with the whole content.
    #[track_caller]
    pub fn same(&self, after: &Self) {
        assert_eq!(self.index, after.index, "the index changed");
        assert_eq!(self.flags, after.flags, "the index flags changed");
        assert_eq!(self.stash, after.stash, "the stash list changed");
        assert_eq!(self.refs, after.refs, "the refs changed");
        assert_eq!(self.head, after.head, "HEAD changed");
        same_tree(&self.files, &after.files);
    }
}

/// Fails naming the first path that differs.
#[track_caller]
pub fn same_tree(expected: &Tree, actual: &Tree) {
    for path in expected.keys().chain(actual.keys()) {
        let (one, two) = (expected.get(path), actual.get(path));
        assert!(one == two, "{path}: expected {}, found {}", brief(one), brief(two));
    }
}

fn brief(entry: Option<&Entry>) -> String {
    match entry {
        None => "nothing".to_owned(),
        Some(Entry::File { mode, bytes }) => {
            let text = String::from_utf8_lossy(&bytes[..bytes.len().min(400)]).into_owned();
            format!("file {mode:o} of {} bytes {text:?}", bytes.len())
        }
        Some(other) => format!("{other:?}"),
    }
}

/// All entries beneath a directory, but for its own `.git`.
pub fn tree(top: &Path) -> Tree {
    let mut all = Tree::new();
    walk(top, top, &mut all);
    all
}

fn walk(top: &Path, dir: &Path, all: &mut Tree) {
    let mut entries: Vec<_> = std::fs::read_dir(dir)
        .unwrap_or_else(|error| panic!("{}: {error}", dir.display()))
        .map(|entry| entry.expect("reads the entry").path())
        .collect();
    entries.sort();
    for path in entries {
        if dir == top && path.file_name().is_some_and(|name| name == ".git") {
            continue;
        }
        let relative = path.strip_prefix(top).expect("beneath");
        let name = String::from_utf8(relative.as_os_str().as_bytes().to_vec())
            .unwrap_or_else(|_| format!("{:?}", relative.as_os_str()));
        let meta = std::fs::symlink_metadata(&path).expect("stats");
        let mode = meta.permissions().mode() & 0o7777;
        let entry = if meta.is_symlink() {
            Entry::Link(std::fs::read_link(&path).expect("reads the link").as_os_str().as_bytes().to_vec())
        } else if meta.is_dir() {
            walk(top, &path, all);
            Entry::Directory { mode }
        } else if meta.is_file() {
            Entry::File { mode, bytes: std::fs::read(&path).expect("reads") }
        } else {
            Entry::Other
        };
        all.insert(name, entry);
    }
}
