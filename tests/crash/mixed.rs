//! A delivery with a bit of everything, and what it may look like afterwards.

use crate::support::snapshot::{Entry, Tree, tree};
use crate::support::{Contract, Lab, Repo};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Where a task `t1` is ready to be delivered (or undone), and a task `t2` has an edit that was not
/// submitted. The state is kept aside and can be had again, at the same paths, as often as wanted.
pub struct Stage<'l> {
    pub repo: Repo<'l>,
    pub before: Tree,
    pub after: Tree,
    /// What the index holds before and after.
    pub indexes: [String; 2],
}

/// The paths that the delivery touches.
pub const TOUCHED: &[&str] = &["a", "b", "m", "f", "f/g/h", "d", "d/x", "l", "s", "n/o", "e/only"];

pub fn change(task: &crate::support::Task) {
    task.write("a", "A\n");
    task.rm("b");
    task.chmod("m", 0o755);
    task.rm("f");
    task.write("f/g/h", "new, where a file was\n");
    task.rm("d");
    task.write("d", "a file, where a directory was\n");
    task.link("l", "a");
    task.rm("s");
    task.link("s", "keep.txt");
    task.write("n/o", "new\n");
    task.rm("e");
}

pub fn repository(lab: &Lab) -> Repo<'_> {
    let repo = lab.empty_repo("app");
    for (path, text) in [
        ("a", "a\n"),
        ("b", "b\n"),
        ("m", "m\n"),
        ("f", "f\n"),
        ("d/x", "x\n"),
        ("e/only", "e\n"),
        ("keep.txt", "keep\n"),
    ] {
        repo.write(path, text);
    }
    repo.link("s", "a");
    repo.commit("base");
    repo.write("keep.txt", "work in progress\n");
    repo
}

impl<'l> Stage<'l> {
    /// Before a delivery.
    pub fn delivery(lab: &'l Lab) -> Self {
        let repo = repository(lab);
        repo.submitted(&Contract::new("t1"), change);
        let other = repo.open(&Contract::new("t2"));
        other.write("other.txt", "of another task\n");
        Self::keep(repo, "deliver")
    }

    /// Before a delivery into files and index together.
    pub fn staged(lab: &'l Lab) -> Self {
        let repo = repository(lab);
        let contract = Contract::new("t1").set("delivery", "staged".into());
        repo.submitted(&contract, change);
        repo.open(&Contract::new("t2")).write("other.txt", "of another task\n");
        repo.write("mine", "staged by the user\n");
        repo.git(&["add", "mine"]);
        Self::keep(repo, "deliver")
    }

    /// Before an undo.
    pub fn undo(lab: &'l Lab) -> Self {
        let repo = repository(lab);
        repo.submitted(&Contract::new("t1"), change);
        let other = repo.open(&Contract::new("t2"));
        other.write("other.txt", "of another task\n");
        repo.json(&["deliver", "t1"]).ok();
        Self::keep(repo, "undo")
    }

    fn keep(repo: Repo<'l>, command: &str) -> Self {
        let before = tree(&repo.path);
        let index = |repo: &Repo<'_>| repo.git(&["ls-files", "--stage"]);
        let index_before = index(&repo);
        // Else the first blob of a new name would make a folder more, and calls would be counted differently
        // from run to run.
        for prefix in 0..=255 {
            let folder = repo.store().join(format!("blobs/sha256/{prefix:02x}"));
            std::fs::create_dir_all(folder).expect("creates");
        }
        copy(repo.lab, &["app", "app.tender"], "", "kept");
        repo.json(&[command, "t1"]).ok();
        let after = tree(&repo.path);
        let indexes = [index_before, index(&repo)];
        let stage = Self { repo, before, after, indexes };
        stage.again();
        stage
    }

    /// Everything as it was.
    pub fn again(&self) {
        for name in ["app", "app.tender"] {
            std::fs::remove_dir_all(self.repo.lab.path(name)).expect("removes");
        }
        copy(self.repo.lab, &["app", "app.tender"], "kept", "");
    }
}

/// Copies folders of the laboratory, attributes and all.
pub fn copy(lab: &Lab, names: &[&str], from: &str, to: &str) {
    std::fs::create_dir_all(lab.path(to)).expect("creates");
    for name in names {
        let mut command = lab.command("cp", &lab.path(""));
        command.arg("-a").arg(lab.path(from).join(name)).arg(lab.path(to).join(name));
        crate::support::lab::run(command, None).ok();
    }
}

/// An edit that the user makes while the program is down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edit {
    pub path: &'static str,
    pub by_rename: bool,
}

/// Touched paths, whatever state they are in, and untouched ones: beside them, and in directories that come
/// and go.
pub const EDITS: &[Option<Edit>] = &[
    None,
    Some(Edit { path: "a", by_rename: true }),
    Some(Edit { path: "keep.txt", by_rename: false }),
    Some(Edit { path: "b", by_rename: false }),
    None,
    Some(Edit { path: "n/o", by_rename: true }),
    Some(Edit { path: "e/mine", by_rename: true }),
    Some(Edit { path: "m", by_rename: false }),
    Some(Edit { path: "d/x", by_rename: false }),
    None,
    Some(Edit { path: "n/mine", by_rename: false }),
    Some(Edit { path: "e/only", by_rename: true }),
    Some(Edit { path: "f/g/h", by_rename: false }),
];

pub const SAVED: &[u8] = b"the user was here\n";

impl Edit {
    pub fn is_touched(self) -> bool {
        TOUCHED.contains(&self.path)
    }

    /// Makes it, if the path can be had now; a user who finds a file where a directory was edits something
    /// else.
    pub fn make(self, repo: &Repo<'_>) -> bool {
        let path = repo.join(self.path);
        let parent = path.parent().expect("has one");
        if std::fs::create_dir_all(parent).is_err() || path.is_dir() || path.is_symlink() {
            return false;
        }
        if self.by_rename {
            let swap = parent.join(".swap-of-an-editor");
            std::fs::write(&swap, SAVED).expect("writes");
            std::fs::rename(&swap, &path).expect("renames");
        } else {
            std::fs::write(&path, SAVED).expect("writes");
        }
        true
    }

    /// What a tree looks like with it, and which file had to make way.
    pub fn on(self, tree: &Tree) -> (Tree, Option<(String, Vec<u8>)>) {
        let (mut tree, mut gone) = (tree.clone(), None);
        for above in Path::new(self.path).ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()) {
            let above = above.to_str().expect("text").to_owned();
            if let Some(Entry::File { bytes, .. }) =
                tree.insert(above.clone(), Entry::Directory { mode: 0o755 })
            {
                gone = Some((above, bytes));
            }
        }
        tree.insert(self.path.to_owned(), Entry::File { mode: 0o644, bytes: SAVED.to_vec() });
        (tree, gone)
    }
}

/// The same, but for permissions (an edit in place keeps whichever there were) and for directories that have
/// nothing in them.
pub fn alike(one: &Tree, other: &Tree) -> bool {
    let plain = |tree: &Tree| -> Vec<(String, String)> {
        let kept = tree.iter().filter(|(path, entry)| {
            let inside = format!("{path}/");
            !matches!(entry, Entry::Directory { .. }) || tree.keys().any(|other| other.starts_with(&inside))
        });
        kept.map(|(path, entry)| match entry {
            Entry::File { bytes, .. } if bytes == SAVED => (path.clone(), "saved".to_owned()),
            Entry::Directory { .. } => (path.clone(), "directory".to_owned()),
            other => (path.clone(), format!("{other:?}")),
        })
        .collect()
    };
    plain(one) == plain(other)
}

/// Inode, times and size of everything: whoever writes anything changes it.
pub fn fingerprint(top: &Path) -> Vec<(String, u64, i64, i64, u64)> {
    let paths = tree(top);
    let stat = |path: &String| {
        let meta = std::fs::symlink_metadata(top.join(path)).expect("stats");
        (path.clone(), meta.ino(), meta.mtime_nsec(), meta.ctime_nsec(), meta.size())
    };
    paths.keys().map(stat).collect()
}
