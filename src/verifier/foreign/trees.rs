//! The trees that a run has no business in, and what in them is code of theirs.
//!
//! A file counts that is tracked there, or untracked and not ignored. What is ignored is environment
//! (`.venv`, `node_modules`), unless it was built from that tree and the verifier's `read` does not name it.

use super::planned::{Lead, Use};
use crate::error::Result;
use crate::git::{Git, Repository};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What lies in a folder into which a tool builds.
const BUILT: &[&str] = &["CMakeCache.txt", ".rustc_info.json", "build.ninja", "meson-private", ".ninja_log"];

/// Whose files a folder holds.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Holder {
    Live,
    Worktree,
    /// The folder that holds task worktrees and slots.
    Root,
    /// This run's own slot, and what is made for it.
    Own,
}

#[derive(Debug)]
struct OtherTree {
    folder: PathBuf,
    holder: Holder,
    git_dir: Option<PathBuf>,
}

/// What a run finds around it.
pub(super) struct Surroundings<'a> {
    /// The folder of all slots, in the folder of the task worktrees.
    pub(super) slots: &'a Path,
    pub(super) own_slot: &'a Path,
    pub(super) home: Option<&'a Path>,
    /// What the manifest lets it read.
    pub(super) read: &'a [String],
}

/// All working trees of the repository, and all slots, seen from one slot.
#[derive(Debug)]
pub(super) struct OtherTrees<'a> {
    repository: &'a Repository,
    trees: Vec<OtherTree>,
    read: Vec<PathBuf>,
    /// Whether a path of one of them holds code, where git was asked.
    known: RefCell<HashMap<PathBuf, bool>>,
}

impl<'a> OtherTrees<'a> {
    pub(super) fn around(repository: &'a Repository, surroundings: &Surroundings<'_>) -> Self {
        let mut all = Self { repository, trees: Vec::new(), read: Vec::new(), known: RefCell::default() };
        let common = repository.common_dir();
        if let Ok(top) = repository.top() {
            all.add(top, Holder::Live, Some(repository.git_dir()));
        }
        // Called from a linked worktree, the live tree is that one, and the main one is another.
        if let Some(main) = common.parent().filter(|_| common.ends_with(".git")) {
            all.add(main, Holder::Worktree, Some(common));
        }
        for (admin, folder) in linked_worktrees(common) {
            all.add(&folder, Holder::Worktree, Some(&admin));
        }
        if let Some(root) = surroundings.slots.parent() {
            all.add(root, Holder::Root, None);
        }
        all.add(surroundings.own_slot, Holder::Own, None);
        all.add(&surroundings.slots.join(".runs"), Holder::Own, None);
        let real = |entry: &String| match entry.strip_prefix("~/") {
            Some(below) => surroundings.home.map(|home| home.join(below)),
            None => Some(PathBuf::from(entry)),
        };
        all.read = surroundings.read.iter().filter_map(real).filter_map(|p| p.canonicalize().ok()).collect();
        all
    }

    fn add(&mut self, folder: &Path, holder: Holder, git_dir: Option<&Path>) {
        let Ok(folder) = folder.canonicalize() else { return };
        if !self.trees.iter().any(|tree| tree.folder == folder) {
            self.trees.push(OtherTree { folder, holder, git_dir: git_dir.map(Path::to_path_buf) });
        }
    }

    /// The first lead that ends at code of another tree, in a sentence with its cure.
    pub(super) fn first_hit(&self, leads: &[Lead]) -> Result<Option<String>> {
        for lead in leads {
            let Ok(real) = lead.to.canonicalize() else { continue };
            if let Some(whose) = self.whose_code(&real, lead.used)? {
                return Ok(Some(format!("{} leads to {}{whose}; {}", lead.from, real.display(), lead.cure)));
            }
        }
        Ok(None)
    }

    /// Whose code a resolved path holds, in words that follow it; `None` where it may be used.
    fn whose_code(&self, path: &Path, used: Use) -> Result<Option<String>> {
        let inside = self.trees.iter().filter(|tree| path.starts_with(&tree.folder));
        let Some(tree) = inside.max_by_key(|tree| tree.folder.components().count()) else { return Ok(None) };
        let below = path.strip_prefix(&tree.folder).unwrap_or(path);
        let whose = match tree.holder {
            Holder::Own => return Ok(None),
            Holder::Live => String::new(),
            Holder::Worktree => match self.task_of(&tree.folder) {
                Some(task) => format!(" (the worktree of the task {task})"),
                None => format!(" (the worktree {})", tree.folder.display()),
            },
            Holder::Root => {
                let names: Vec<String> =
                    below.iter().take(2).map(|name| name.to_string_lossy().into_owned()).collect();
                match names.as_slice() {
                    [slots, name] if slots == ".slots" => {
                        return Ok(Some(format!(" (another slot, {name})")));
                    }
                    [name, ..] if name != ".slots" => format!(" (the worktree of the task {name})"),
                    _ => return Ok(None),
                }
            }
        };
        let own_matter = below.iter().any(|name| name == ".git");
        if own_matter {
            return Ok(None);
        }
        let counts = used == Use::Builds || self.holds_code(tree, below)? || self.was_built(tree, path);
        Ok(counts.then_some(whose))
    }

    /// The task that a worktree in our folder is for.
    fn task_of(&self, worktree: &Path) -> Option<String> {
        let root = self.trees.iter().find(|tree| tree.holder == Holder::Root)?;
        let below = worktree.strip_prefix(&root.folder).ok()?;
        below.iter().next().map(|name| name.to_string_lossy().into_owned())
    }

    /// True where something at or below a path of the tree is tracked, or untracked and not ignored.
    fn holds_code(&self, tree: &OtherTree, below: &Path) -> Result<bool> {
        // An ignored folder at the top answers for everything in it, with one question.
        let first: PathBuf = below.iter().take(1).collect();
        if first != below && !self.is_listed(tree, &first)? {
            return Ok(false);
        }
        self.is_listed(tree, &inside_which_repository(&tree.folder, below))
    }

    fn is_listed(&self, tree: &OtherTree, below: &Path) -> Result<bool> {
        let place = tree.folder.join(below);
        if let Some(known) = self.known.borrow().get(&place) {
            return Ok(*known);
        }
        // A worktree that git does not know cannot be asked, and then everything in it counts.
        let Some(git_dir) = &tree.git_dir else { return Ok(true) };
        let pathspec = if below.as_os_str().is_empty() { Path::new(".") } else { below };
        let git = Git::new(self.repository.environment(), Some(git_dir)).work_tree(&tree.folder);
        let listed = git
            .args([
                "--literal-pathspecs",
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
                "--",
            ])
            .arg(pathspec)
            .ok()?;
        self.known.borrow_mut().insert(place, !listed.is_empty());
        Ok(!listed.is_empty())
    }

    /// True for what a tool built within the tree, unless the manifest names it as environment.
    fn was_built(&self, tree: &OtherTree, path: &Path) -> bool {
        let within = path.ancestors().take_while(|folder| *folder != tree.folder);
        let built = within.into_iter().any(|folder| BUILT.iter().any(|mark| folder.join(mark).exists()));
        built && !self.read.iter().any(|read| path.starts_with(read))
    }
}

/// A path, or the outermost repository in the tree that it lies in: git speaks of that as one thing.
fn inside_which_repository(tree: &Path, below: &Path) -> PathBuf {
    let mut at = PathBuf::new();
    for name in below {
        at.push(name);
        if tree.join(&at).join(".git").symlink_metadata().is_ok() {
            return at;
        }
    }
    below.to_path_buf()
}

/// The linked worktrees that git has on record: the administration folder and the working tree of each.
fn linked_worktrees(common_dir: &Path) -> Vec<(PathBuf, PathBuf)> {
    let Ok(entries) = std::fs::read_dir(common_dir.join("worktrees")) else { return Vec::new() };
    let of = |entry: std::fs::DirEntry| {
        let admin = entry.path();
        let link = std::fs::read(admin.join("gitdir")).ok()?;
        let link = admin.join(Path::new(OsStr::from_bytes(link.trim_ascii_end())));
        Some((admin, link.parent()?.to_path_buf()))
    };
    entries.flatten().filter_map(of).collect()
}
