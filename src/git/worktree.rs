//! Task worktrees: where they lie, how one is made and removed.
//!
//! They lie outside the repository, beside each other, with a `.repository` file that names the git directory
//! they belong to: the way back that a worker cannot bend. `git worktree add` registers one without a
//! checkout, and our own writer fills it, so nothing of the tree runs. A marker in the task's directory lasts
//! from before the first byte to after the last: what a crash left half-made is known and cleared.

use super::beneath::{Folder, remove_content};
use super::command::Quarantine;
use super::command::{Git, join_absolute};
use super::convert::{Conversions, Drivers};
use super::drivers::runnable_drivers;
use super::keep::{KeptRef, copy_into_repository};
use super::materialise::{AttributeTrees, FillPermissions, HeldFiles, materialise_files};
use super::registration::{admin_of, register_worktree};
use super::repository::Repository;
use super::{index_file, tree};
use crate::domain::value::digest::ObjectId;
use crate::error::presence::{is_present, means_absent};
use crate::error::{Code, Failure, Result};
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

pub(super) const NOTE: &str = ".repository";
const MARKER: &str = "making-worktree";

/// The folder of this repository's task worktrees: the one that is there, or the one that [`make_root`] would
/// make.
pub fn worktree_root(repository: &Repository) -> Result<PathBuf> {
    let (folder, name) = wanted_root(repository)?;
    for number in 1u32.. {
        let suffix = if number == 1 { String::new() } else { format!("-{number}") };
        let mut file_name = name.clone();
        file_name.push(format!("{suffix}.tender"));
        let root = folder.join(file_name);
        if is_usable(&root, repository.common_dir())? {
            return Ok(root);
        }
    }
    Err(Failure::internal("no name for the worktree folder is free"))
}

pub fn make_root(repository: &Repository) -> Result<PathBuf> {
    for _ in 0..100 {
        let root = worktree_root(repository)?;
        std::fs::create_dir_all(&root).map_err(|e| Failure::io("create the directory", &root, &e))?;
        let note = root.join(NOTE);
        if is_present(&note)? {
            return Ok(root);
        }
        let failed = |e: std::io::Error| Failure::io("write", &note, &e);
        let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(&root).map_err(failed)?;
        file.write_all(repository.common_dir().as_os_str().as_bytes()).map_err(failed)?;
        file.write_all(b"\n").and_then(|()| file.as_file().sync_all()).map_err(failed)?;
        match file.persist_noclobber(&note) {
            Ok(_) => return Ok(root),
            // Another process was first; perhaps for another repository of the same name.
            Err(e) if e.error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(failed(e.error)),
        }
    }
    Err(Failure::internal("the worktree folder changes hands all the time"))
}

fn wanted_root(repository: &Repository) -> Result<(PathBuf, OsString)> {
    let common = repository.common_dir();
    let main = match common.file_name() {
        Some(name) if name == ".git" => common.parent().unwrap_or(common),
        _ => common,
    };
    let name = main.file_name().unwrap_or(OsStr::new("repository")).as_bytes();
    let name =
        OsStr::from_bytes(name.strip_suffix(b".git").filter(|n| !n.is_empty()).unwrap_or(name)).to_owned();
    if repository.config_value("tender.worktreeRoot")?.is_some() {
        // Git reads it as a path: `~` is the home directory.
        let configured =
            repository.git_call().args(["config", "--type=path", "--get", "tender.worktreeRoot"]).run()?;
        if !configured.success() {
            return Err(configured.to_failure());
        }
        return Ok((join_absolute(main, Path::new(&configured.first_text())), name));
    }
    let parent = main.parent().unwrap_or(main);
    // A submodule's git directory lies inside its superproject's; worktrees do not belong there.
    let inside = parent.components().any(|c| c.as_os_str() == ".git");
    let writable = rustix::fs::access(parent, rustix::fs::Access::WRITE_OK).is_ok();
    if !inside && writable {
        return Ok((parent.to_path_buf(), name));
    }
    let environment = repository.environment();
    let absolute_value = |name: &str| environment.get(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let cache =
        absolute_value("XDG_CACHE_HOME").or_else(|| absolute_value("HOME").map(|home| home.join(".cache")));
    cache.map(|cache| (cache.join("git-tender"), name)).ok_or_else(|| {
        Failure::new(
            Code::Io,
            format!(
                "{} cannot be written, and neither HOME nor XDG_CACHE_HOME names a place instead",
                parent.display()
            ),
        )
        .subject(parent.display().to_string())
        .remedy(
            "Name a folder for task worktrees.",
            ["git", "config", "tender.worktreeRoot", "/path/to/folder"],
        )
    })
}

fn is_usable(root: &Path, common_dir: &Path) -> Result<bool> {
    match std::fs::read(root.join(NOTE)) {
        Ok(note) => Ok(note.trim_ascii_end() == common_dir.as_os_str().as_bytes()),
        Err(e) if means_absent(&e) => {
            if root.symlink_metadata().is_err() {
                return Ok(true);
            }
            // A crash may have left it without its note; someone's folder with other things in it is left
            // alone.
            let entries = std::fs::read_dir(root);
            Ok(entries.is_ok_and(|mut all| {
                all.all(|e| e.is_ok_and(|e| e.file_name().as_bytes().starts_with(b".new-")))
            }))
        }
        Err(e) => Err(Failure::io("read", &root.join(NOTE), &e)),
    }
}

/// What a worktree is made of.
#[derive(Debug, Clone, Copy)]
pub struct Opening<'a> {
    pub repository: &'a Repository,
    /// The task's quarantine; it lies in the task's directory.
    pub quarantine: &'a Quarantine,
    pub task: &'a str,
    /// Where the worktree goes: the root and the task's id.
    pub path: &'a Path,
    /// The commit that its HEAD is detached at; `None` in a repository without any.
    pub base_commit: Option<&'a ObjectId>,
    /// What it holds. Where that is not the commit's tree, it is copied into the repository under the task's
    /// `base` ref.
    pub tree: &'a ObjectId,
}

/// Makes a task's worktree and gives what it holds. `lock` is taken around the changes of git's worktree
/// registry.
///
/// What an interrupted call left is cleared first. Something else at `path` is `state.invalid`. The mark that
/// it is half made stays until [`mark_made`]: whoever is cut off before the ledger names the worktree finds
/// its own again.
pub fn create_worktree<G>(
    opening: &Opening,
    lock: impl Fn() -> Result<G>,
    progress: &dyn Fn(u64, u64),
) -> Result<HeldFiles> {
    let repository = opening.repository;
    let marker = half_made_mark(opening.quarantine);
    let tree_of_commit = match opening.base_commit {
        Some(commit) => repository.resolve_revision(commit.as_str(), "tree")?,
        None => None,
    };
    let head = match opening.base_commit {
        Some(commit) if tree_of_commit.as_ref() == Some(opening.tree) => commit.clone(),
        other => {
            let kept = copy_into_repository(
                repository,
                opening.quarantine,
                opening.task,
                KeptRef::Base,
                opening.tree,
                other,
            )?;
            other.cloned().unwrap_or(kept.commit)
        }
    };
    let admin = {
        let _guard = lock()?;
        clear_half_made(repository, opening.path, &marker)?;
        write_marker(&marker, opening.path)?;
        register_worktree(repository, opening.path, &head)?
    };
    if !repository.is_ordinary() || index_file::write_index_of_tree(&admin, opening.tree).is_none() {
        let git = Git::new(repository.environment(), Some(&admin)).work_tree(opening.path);
        git.args(["read-tree", opening.tree.as_str()]).run_for_stdout()?;
    }
    let drivers = runnable_drivers(repository)?;
    let conversions = Conversions { repository, quarantine: Some(opening.quarantine) };
    let files = tree::list_files(&repository.object_reader(Some(opening.quarantine))?, opening.tree)?;
    let held = materialise_files(
        &conversions,
        AttributeTrees::all_of(opening.tree),
        &Drivers::Named(&drivers),
        opening.path,
        HeldFiles::default(),
        &files,
        FillPermissions::Writable,
        progress,
    )?;
    Ok(held)
}

/// The ledger names the worktree by now: it is no longer half made.
pub fn mark_made(quarantine: &Quarantine) -> Result<()> {
    let marker = half_made_mark(quarantine);
    match std::fs::remove_file(&marker) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Failure::io("remove", &marker, &e)),
        _ => Ok(()),
    }
}

/// True between the first byte of a worktree and the ledger's row that names it.
pub fn is_half_made(quarantine: &Quarantine) -> Result<bool> {
    is_present(&half_made_mark(quarantine))
}

/// Takes away what a call made that did not come to its end, and git's record of it; nothing where it made
/// none.
pub fn take_back_worktree<G>(
    repository: &Repository,
    quarantine: &Quarantine,
    lock: impl Fn() -> Result<G>,
) -> Result<()> {
    let marker = half_made_mark(quarantine);
    let path = match std::fs::read(&marker) {
        Ok(noted) => PathBuf::from(OsStr::from_bytes(&noted)),
        Err(e) if means_absent(&e) => return Ok(()),
        Err(e) => return Err(Failure::io_of_ours("read", &marker, &e)),
    };
    let _guard = lock()?;
    clear_half_made(repository, &path, &marker).map_err(|failure| {
        let named = path.display().to_string();
        failure.remedy("Remove it by hand.", ["git", "worktree", "remove", "--force", &named])
    })?;
    mark_made(quarantine)
}

fn half_made_mark(quarantine: &Quarantine) -> PathBuf {
    quarantine.objects.parent().unwrap_or(&quarantine.objects).join(MARKER)
}

fn write_marker(marker: &Path, path: &Path) -> Result<()> {
    let failed = |e: std::io::Error| Failure::io("write", marker, &e);
    let mut file = std::fs::File::create(marker).map_err(failed)?;
    file.write_all(path.as_os_str().as_bytes()).and_then(|()| file.sync_all()).map_err(failed)
}

/// Removes what an earlier, interrupted call made at this place, and only that.
fn clear_half_made(repository: &Repository, path: &Path, marker: &Path) -> Result<()> {
    let ours = std::fs::read(marker).is_ok_and(|noted| noted == path.as_os_str().as_bytes());
    let empty = std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    let there = is_present(path)?;
    if !ours && !empty && there {
        return Err(Failure::new(
            Code::StateInvalid,
            format!("{} is there already, and git-tender did not make it for this task", path.display()),
        )
        .subject(path.display().to_string())
        .remedy("Move it away, or use another task id.", ["git", "worktree", "list"]));
    }
    if ours {
        remove_files(path)?;
    }
    match admin_of(repository, path)? {
        Some(admin) if ours || empty || !there => remove_admin(&admin),
        _ => Ok(()),
    }
}

/// The commit that a worktree's HEAD is at, by git's own record of it; `None` where there is no record or no
/// commit.
pub fn worktree_head(repository: &Repository, path: &Path) -> Result<Option<ObjectId>> {
    let Some(admin) = admin_of(repository, path)? else { return Ok(None) };
    let git = Git::new(repository.environment(), Some(&admin)).work_tree(path);
    let output = git.args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).run()?;
    if output.success() { output.first_text().parse().map(Some) } else { Ok(None) }
}

/// Removes a task's worktree and git's record of it. Nothing is followed, another file system stays, and a
/// failure keeps the rest.
///
/// The folder loses its name before it loses its first file: a half removed tree under the old name would
/// look, after a crash, like work that was never captured. What a crash left under the other name is removed
/// the next time.
///
/// The caller has shown that it is ours and sealed; the main worktree and one that someone locked are refused
/// here all the same.
pub fn remove_worktree<G>(repository: &Repository, path: &Path, lock: impl Fn() -> Result<G>) -> Result<()> {
    let refused = |why: &str| {
        Failure::new(Code::StateInvalid, format!("{} is not removed: {why}", path.display()))
            .subject(path.display().to_string())
    };
    if !is_in_root(repository, path) {
        return Err(refused("it does not lie in this repository's folder of task worktrees"));
    }
    let _guard = lock()?;
    let admin = admin_of(repository, path)?;
    if admin.as_ref().map_or(Ok(false), |admin| is_present(&admin.join("locked")))? {
        return Err(refused("it is locked").remedy("Unlock it first.", ["git", "worktree", "unlock"]));
    }
    remove_files(&name_while_removed(path))?;
    if is_present(path)? {
        let renamed = |from: &Path, to: &Path| {
            std::fs::rename(from, to).map_err(|e| Failure::io("rename for its removal", from, &e))
        };
        renamed(path, &name_while_removed(path))?;
        if let Err(failure) = remove_files(&name_while_removed(path)) {
            return Err(failure.also(renamed(&name_while_removed(path), path).err()));
        }
    }
    admin.map_or(Ok(()), |admin| remove_admin(&admin))
}

/// True for a folder beside the note that says whose task worktrees lie there, where that is this repository.
pub(super) fn is_in_root(repository: &Repository, path: &Path) -> bool {
    let note = path.parent().and_then(|root| std::fs::read(root.join(NOTE)).ok());
    note.is_some_and(|note| note.trim_ascii_end() == repository.common_dir().as_os_str().as_bytes())
}

/// Where a worktree lies while it is removed.
fn name_while_removed(path: &Path) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    path.with_file_name(format!(".removing-{name}"))
}

fn remove_files(path: &Path) -> Result<()> {
    if !is_present(path)? {
        return Ok(());
    }
    remove_content(&Folder::open_path(path)?)?;
    std::fs::remove_dir(path).map_err(|e| Failure::io("remove the directory", path, &e))
}

fn remove_admin(admin: &Path) -> Result<()> {
    remove_files(admin)?;
    // Git removes the folder of records with the last one, too; others may be there.
    let _ = admin.parent().map(std::fs::remove_dir);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::testing::TestRepository;

    fn no_lock() -> Result<()> {
        Ok(())
    }

    struct Made {
        home: TestRepository,
        repository: Repository,
        quarantine: Quarantine,
        path: PathBuf,
    }

    impl Made {
        fn new(home: TestRepository) -> Self {
            let repository = home.repository();
            let quarantine = home.quarantine();
            let path = make_root(&repository).expect("a root").join("t1");
            Self { home, repository, quarantine, path }
        }

        fn create_worktree(&self, commit: Option<&ObjectId>, tree: &ObjectId) -> Result<HeldFiles> {
            let opening = Opening {
                repository: &self.repository,
                quarantine: &self.quarantine,
                task: "t1",
                path: &self.path,
                base_commit: commit,
                tree,
            };
            create_worktree(&opening, no_lock, &|_, _| {})
        }

        fn head(&self) -> ObjectId {
            self.home.run_git(["rev-parse", "HEAD"]).parse().expect("an id")
        }

        /// git's own view from inside the worktree.
        fn git_inside(&self, args: &[&str]) -> String {
            let git = Git::new(self.home.environment(), None).cwd(&self.path);
            let output = git.args(args).run().expect("git starts");
            assert!(output.success(), "{}", output.stderr);
            output.first_text()
        }

        fn stays_whole(&self) {
            self.home.run_git(["gc", "-q", "--prune=now"]);
            let output = self.home.git_call().args(["fsck", "--full", "--strict"]).run().expect("git starts");
            assert!(output.success() && !output.stderr.contains("missing"), "{}", output.stderr);
        }
    }

    #[test]
    fn a_worktree_is_made_seen_by_git_and_removed() {
        let home = TestRepository::new();
        home.write_file("a/b", b"1\n");
        home.write_file("run.sh", b"x\n");
        let tree = home.commit_all("one");
        let made = Made::new(home);
        assert!(made.path.ends_with("repo.tender/t1"));
        made.create_worktree(Some(&made.head()), &tree).expect("made");
        assert_eq!(made.git_inside(&["status", "--porcelain"]), "");
        assert_eq!(made.git_inside(&["rev-parse", "HEAD"]), made.head().as_str());
        // Until the ledger names it, a crash leaves it half made; then the next call starts anew.
        std::fs::remove_file(made.path.join("a/b")).expect("removed");
        made.create_worktree(Some(&made.head()), &tree).expect("made anew");
        assert_eq!(made.git_inside(&["status", "--porcelain"]), "");
        super::mark_made(&made.quarantine).expect("finished");
        let again = made.create_worktree(Some(&made.head()), &tree).expect_err("it is there");
        assert_eq!(again.code(), Code::StateInvalid);
        made.stays_whole();
        remove_worktree(&made.repository, &made.home.top(), no_lock).expect_err("the main worktree");
        std::os::unix::fs::symlink(made.home.top(), made.path.join("link")).expect("made");
        remove_worktree(&made.repository, &made.path, no_lock).expect("removed");
        assert!(!made.path.exists() && made.home.top().join("a/b").exists());
        assert_eq!(made.home.run_git(["worktree", "list", "--porcelain"]).matches("worktree ").count(), 1);
    }

    #[test]
    fn a_repository_without_commits_and_one_with_the_same_name() {
        let made = Made::new(TestRepository::new());
        let empty: ObjectId = made.repository.empty_tree().parse().expect("an id");
        made.create_worktree(None, &empty).expect("made");
        assert_eq!(made.git_inside(&["status", "--porcelain"]), "");
        made.stays_whole();
        let other = made.home.outside().join("sub").join("repo.git");
        made.home.init_at(&other, &["--bare"]);
        made.home.set_config("tender.worktreeRoot", "~/sub");
        let first = make_root(&made.home.repository()).expect("a root");
        assert_eq!(first, made.home.outside().join("sub/repo.tender"));
        let second = Repository::at_git_dir(made.home.environment(), &other, &other, None).expect("opens");
        assert_eq!(make_root(&second).expect("a root"), made.home.outside().join("sub/repo-2.tender"));
    }

    #[test]
    fn many_are_made_side_by_side() {
        let home = TestRepository::new();
        home.write_file("a", b"1\n");
        let tree = home.commit_all("one");
        let made = Made::new(home);
        let head = made.head();
        let lock = std::sync::Mutex::new(());
        let outcomes: Vec<Result<HeldFiles>> = std::thread::scope(|scope| {
            let started: Vec<_> = (0..24)
                .map(|n| {
                    let (made, head, tree, lock) = (&made, &head, &tree, &lock);
                    scope.spawn(move || {
                        let name = format!("t{n}");
                        let objects = made.home.outside().join(format!("task-{n}")).join("objects");
                        std::fs::create_dir_all(&objects).expect("made");
                        let quarantine = Quarantine { objects, ..made.quarantine.clone() };
                        let opening = Opening {
                            repository: &made.repository,
                            quarantine: &quarantine,
                            task: &name,
                            path: &made.path.with_file_name(&name),
                            base_commit: Some(head),
                            tree,
                        };
                        let guard = || lock.lock().map_err(|_| Failure::internal("poisoned"));
                        create_worktree(&opening, guard, &|_, _| {})
                    })
                })
                .collect();
            started.into_iter().map(|t| t.join().expect("no panic")).collect()
        });
        outcomes.into_iter().for_each(|outcome| drop(outcome.expect("made")));
    }

    #[test]
    fn live_work_is_a_base_and_the_index_stays() {
        use crate::git::live_base::{capture_live, find_lacks};
        let home = TestRepository::new();
        for name in ["kept", "edited", "staged", "removed", "assumed"] {
            home.write_file(name, b"old\n");
        }
        home.write_file(".gitignore", b"ignored/\n");
        let head_tree = home.commit_all("one");
        home.write_file("edited", b"new\n");
        home.write_file("staged", b"staged\n");
        home.run_git(["add", "staged"]);
        home.write_file("staged", b"further\n");
        home.remove_file("removed");
        home.run_git(["update-index", "--assume-unchanged", "assumed"]);
        home.write_file("assumed", b"changed\n");
        home.write_file("un tracked\n*", b"u\n");
        home.write_file("ita", b"i\n");
        home.run_git(["add", "-N", "ita"]);
        home.write_file("ignored/x", b"x\n");
        home.write_file("nested/file", b"x\n");
        home.init_at(&home.top().join("nested"), &[]);
        let index = std::fs::read(home.top().join(".git/index")).expect("reads");
        let made = Made::new(home);
        let tree = capture_live(&made.repository, &made.quarantine).expect("captured");
        assert_eq!(std::fs::read(made.home.top().join(".git/index")).expect("reads"), index);
        let objects = made.repository.object_reader(Some(&made.quarantine)).expect("opens");
        let content = tree::list_files(&objects, &tree).expect("reads").into_iter().map(|file| {
            let bytes = objects.read_blob(&file.id).expect("reads");
            format!("{}={}", file.path, String::from_utf8_lossy(&bytes).trim())
        });
        assert_eq!(
            content.collect::<Vec<_>>(),
            [
                ".gitignore=ignored/",
                "assumed=changed",
                "edited=new",
                "ita=i",
                "kept=old",
                "staged=further",
                "\"un tracked\\n*\"=u"
            ]
        );
        let lacking = find_lacks(&made.repository, &head_tree, false).expect("known");
        let names = |paths: &[crate::domain::value::repo_path::RepoPath]| {
            paths.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(names(&lacking.ignored), ["ignored"]);
        assert_eq!(
            names(&lacking.dirty),
            ["edited", "ita", "nested", "removed", "staged", "\"un tracked\\n*\""]
        );
        made.create_worktree(Some(&made.head()), &tree).expect("made");
        std::fs::remove_dir_all(&made.quarantine.objects).expect("removed");
        made.stays_whole();
        assert_eq!(made.git_inside(&["diff", "--name-only"]), "");
        assert_eq!(made.git_inside(&["write-tree"]), tree.as_str());
    }

    #[test]
    fn an_unmerged_index_is_no_base() {
        let home = TestRepository::new();
        home.write_file("a", b"1\n");
        home.commit_all("one");
        home.run_git(["checkout", "-q", "-b", "side"]);
        home.write_file("a", b"2\n");
        home.commit_all("two");
        home.run_git(["checkout", "-q", "main"]);
        home.write_file("a", b"3\n");
        home.commit_all("three");
        assert!(!home.git_call().args(["merge", "side"]).run().expect("git starts").success());
        let repository = home.repository();
        let refused =
            crate::git::live_base::capture_live(&repository, &home.quarantine()).expect_err("unmerged");
        assert_eq!((refused.code(), refused.subject_text()), (Code::StateInvalid, Some("a")));
    }
}
