//! The trees that a run has no business in, and what in them is code of theirs.
//!
//! A file counts that is tracked there, or untracked and not ignored. What is ignored is environment
//! (`.venv`, `node_modules`), unless it was built from that tree and the verifier's `read` does not name it.

use super::planned::{Lead, LeadUse, ModulePlace};
use super::shadow::first_reachable;
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
    /// The folder that holds task worktrees.
    Root,
    /// The folder of all slots.
    Slots,
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
pub(super) struct RunSurroundings<'a> {
    /// The folder of all slots; in the folder of the task worktrees, unless a project lies above that.
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
    /// What is at or below a path of one of them, where git was asked.
    known: RefCell<HashMap<PathBuf, Vec<PathBuf>>>,
}

impl<'a> OtherTrees<'a> {
    pub(super) fn around_run(repository: &'a Repository, surroundings: &RunSurroundings<'_>) -> Self {
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
        if let Some(root) = surroundings.slots.parent().filter(|_| surroundings.slots.ends_with(".slots")) {
            all.add(root, Holder::Root, None);
        }
        all.add(surroundings.slots, Holder::Slots, None);
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
            if let Some((place, whose)) = self.code_at(real, &lead.used)? {
                return Ok(Some(format!("{} leads to {}{whose}; {}", lead.from, place.display(), lead.cure)));
            }
        }
        Ok(None)
    }

    /// The code at a resolved path, and whose it is, in words that follow it; `None` where there is none of
    /// another tree.
    fn code_at(&self, path: PathBuf, used: &LeadUse) -> Result<Option<(PathBuf, String)>> {
        let inside = self.trees.iter().filter(|tree| path.starts_with(&tree.folder));
        let Some(tree) = inside.max_by_key(|tree| tree.folder.components().count()) else { return Ok(None) };
        let below = path.strip_prefix(&tree.folder).unwrap_or(&path);
        let whose = match tree.holder {
            Holder::Own => return Ok(None),
            Holder::Live => String::new(),
            Holder::Worktree => match self.task_of(&tree.folder) {
                Some(task) => format!(" (the worktree of the task {task})"),
                None => format!(" (the worktree {})", tree.folder.display()),
            },
            Holder::Root | Holder::Slots => {
                let Some(name) = below.iter().next() else { return Ok(None) };
                let name = name.to_string_lossy();
                let whose = match tree.holder {
                    Holder::Slots => format!(" (another slot, {name})"),
                    _ => format!(" (the worktree of the task {name})"),
                };
                return Ok(Some((path, whose)));
            }
        };
        if below.iter().any(|name| name == ".git") {
            return Ok(None);
        }
        if *used == LeadUse::Builds || self.was_built(tree, &path) {
            return Ok(Some((path, whose)));
        }
        let files = self.code_below(tree, below)?;
        Ok(match used {
            _ if files.is_empty() => None,
            LeadUse::Imports { after, modules } => {
                let from = match modules {
                    ModulePlace::Within => path.as_path(),
                    ModulePlace::Itself => path.parent().unwrap_or(&path),
                };
                let own =
                    |file: &PathBuf| Some(tree.folder.join(file).strip_prefix(from).ok()?.to_path_buf());
                let modules: Vec<PathBuf> = files.iter().filter_map(own).collect();
                first_reachable(&modules, after).map(|file| (from.join(file), whose))
            }
            _ => Some((path, whose)),
        })
    }

    /// The task that a worktree in our folder is for.
    fn task_of(&self, worktree: &Path) -> Option<String> {
        let root = self.trees.iter().find(|tree| tree.holder == Holder::Root)?;
        let below = worktree.strip_prefix(&root.folder).ok()?;
        below.iter().next().map(|name| name.to_string_lossy().into_owned())
    }

    /// What at or below a path of the tree is tracked, or untracked and not ignored, by its path in the tree.
    fn code_below(&self, tree: &OtherTree, below: &Path) -> Result<Vec<PathBuf>> {
        // An ignored folder at the top answers for everything in it, with one question.
        let first: PathBuf = below.iter().take(1).collect();
        if first != below && self.listed(tree, &first)?.is_empty() {
            return Ok(Vec::new());
        }
        self.listed(tree, &inside_which_repository(&tree.folder, below))
    }

    fn listed(&self, tree: &OtherTree, below: &Path) -> Result<Vec<PathBuf>> {
        let place = tree.folder.join(below);
        if let Some(known) = self.known.borrow().get(&place) {
            return Ok(known.clone());
        }
        let git_dir = tree.git_dir.as_deref().unwrap_or(self.repository.git_dir());
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
            .run_for_stdout()?;
        let names = listed.split(|b| *b == 0).filter(|name| !name.is_empty());
        let files: Vec<PathBuf> = names.map(|name| PathBuf::from(OsStr::from_bytes(name))).collect();
        // The index also has what is gone from the folder.
        let files: Vec<PathBuf> =
            files.into_iter().filter(|file| tree.folder.join(file).symlink_metadata().is_ok()).collect();
        self.known.borrow_mut().insert(place, files.clone());
        Ok(files)
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
