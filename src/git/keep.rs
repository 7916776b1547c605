//! The two refs of a task: its base, where that is a capture of live work, and its last state, as
//! commits in the repository's own objects, so that git's gc keeps them and fsck finds them whole.
//!
//! Few objects come in as files, many as one pack that is marked as kept until the ref points at it;
//! so a gc that runs at the same moment takes nothing away.

use super::command::Quarantine;
use super::object_store::KeptTarget;
use super::repository::Repository;
use crate::domain::contract::terms::ref_component;
use crate::domain::value::digest::ObjectId;
use crate::error::{Code, Failure, Result};

const MESSAGE: &str = "git-tender: state of a task";

/// Which of a task's refs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptRef {
    /// What the task started from.
    Base,
    Last,
}

impl KeptRef {
    fn name(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Last => "last",
        }
    }
}

/// The name of a task's ref.
pub fn task_ref(task: &str, kept: KeptRef) -> String {
    format!("refs/tender/tasks/{}/{}", ref_component(task), kept.name())
}

/// A commit that a task's ref points at.
#[derive(Debug)]
pub struct RefCommit {
    pub commit: ObjectId,
    /// The device that was waited for as a whole.
    pub synced: Option<u64>,
}

/// Copies a tree from the quarantine into the repository and points the task's ref at a commit of it;
/// gives the commit. The same tree with the same parent gives the same commit.
pub fn copy_into_repository(
    repository: &Repository,
    quarantine: &Quarantine,
    task: &str,
    kept: KeptRef,
    tree: &ObjectId,
    parent: Option<&ObjectId>,
) -> Result<RefCommit> {
    let commit = make_commit(repository, quarantine, tree, parent)?;
    let synced = bring_in(repository, quarantine, task, kept, &commit)?;
    Ok(RefCommit { commit, synced })
}

/// Copies a commit from the quarantine into the repository, with all that it needs, and points the
/// task's ref at it. The objects are on the disk before that: one sync for all of them, and for
/// whatever else was written to that device, which it gives.
pub fn bring_in(
    repository: &Repository,
    quarantine: &Quarantine,
    task: &str,
    kept: KeptRef,
    commit: &ObjectId,
) -> Result<Option<u64>> {
    let synced =
        quarantine.sync_objects().map_err(|e| Failure::io_of_ours("sync", &quarantine.objects, &e))?;
    let reference = task_ref(task, kept);
    let objects = repository.objects_dir();
    let folder = quarantine.objects.parent().unwrap_or(&quarantine.objects);
    let target = KeptTarget {
        git_dir: repository.common_dir(),
        objects: &objects,
        reference: &reference,
        lock: &folder.join("ref-lock"),
    };
    let store = repository.object_store(quarantine);
    if store.as_ref().and_then(|store| store.keep_commit(&target, commit)).is_some() {
        return Ok(synced);
    }
    let git = || repository.git_call().with_quarantine(quarantine);
    let reach = ["rev-list", "--objects", "--no-object-names", commit.as_str(), "--not", "--all"];
    let new = git().args(reach).run_for_stdout()?;
    let pack =
        git().args(["pack-objects", "--stdout", "-q", "--delta-base-offset"]).stdin(new).run_for_stdout()?;
    let keep_file = if pack.get(8..12) == Some(&[0; 4]) { None } else { Some(take_in(repository, &pack)?) };
    let pointed = store.is_some_and(|store| store.point_ref(&target, commit.as_str()).is_ok());
    let update = ["update-ref", "-m", "git-tender", &reference, commit.as_str()];
    let updated = match pointed {
        true => Ok(()),
        false => repository.git_call().args(update).run_for_stdout().map(drop),
    };
    if let Some(file) = keep_file {
        std::fs::remove_file(&file).map_err(|e| Failure::io("remove", &file, &e))?;
    }
    updated.map(|()| synced)
}

/// Points a ref of its own at a commit that a worker made in the worktree, so that it outlives that.
/// Gives the name.
pub fn keep_worker_commit(repository: &Repository, task: &str, commit: &ObjectId) -> Result<String> {
    let reference = format!("refs/tender/kept/{}", ref_component(task));
    let update = ["update-ref", "-m", "git-tender", &reference, commit.as_str()];
    repository.git_call().args(update).run_for_stdout()?;
    Ok(reference)
}

/// Removes a task's refs; those that are not there are no error.
pub fn drop_refs(repository: &Repository, task: &str) -> Result<()> {
    for kept in [KeptRef::Base, KeptRef::Last] {
        repository.git_call().args(["update-ref", "-d", &task_ref(task, kept)]).run_for_stdout()?;
    }
    Ok(())
}

fn make_commit(
    repository: &Repository,
    quarantine: &Quarantine,
    tree: &ObjectId,
    parent: Option<&ObjectId>,
) -> Result<ObjectId> {
    let written = repository
        .object_store(quarantine)
        .and_then(|store| store.write_commit(tree, parent, &format!("{MESSAGE}\n")));
    if let Some(commit) = written {
        return Ok(commit);
    }
    let date = match parent {
        Some(parent) => {
            let shown = repository
                .git_call()
                .args(["log", "-1", "--no-show-signature", "--format=%ct", parent.as_str()])
                .run()?;
            if !shown.success() {
                return Err(shown.to_failure());
            }
            format!("@{} +0000", shown.first_text())
        }
        None => "@0 +0000".to_owned(),
    };
    let mut git = repository.git_call().with_quarantine(quarantine).with_setting("i18n.commitEncoding=UTF-8");
    for role in ["AUTHOR", "COMMITTER"] {
        git = git
            .env(&format!("GIT_{role}_NAME"), "git-tender")
            .env(&format!("GIT_{role}_EMAIL"), "git-tender@localhost")
            .env(&format!("GIT_{role}_DATE"), &date);
    }
    let mut git = git.args(["commit-tree", tree.as_str(), "-m", MESSAGE]);
    if let Some(parent) = parent {
        git = git.args(["-p", parent.as_str()]);
    }
    let output = git.run()?;
    if output.success() { output.first_text().parse() } else { Err(output.to_failure()) }
}

/// How often a pack is written anew that somebody's gc has swept away.
const RETRIES: usize = 10;

/// Stores a pack that gc must leave alone; gives the file whose removal ends that.
fn take_in(repository: &Repository, pack: &[u8]) -> Result<std::path::PathBuf> {
    let index = || {
        let git = repository.git_call().args(["index-pack", "--stdin", "--fix-thin", "--keep=git-tender"]);
        git.stdin(pack.to_vec()).run()
    };
    let mut output = index()?;
    // `git gc --prune=now` sweeps away the temporary files of whoever writes a pack at that moment.
    for _ in 0..RETRIES {
        if output.success() || !output.stderr.contains("No such file or directory") {
            break;
        }
        output = index()?;
    }
    if !output.success() {
        return Err(output.to_failure());
    }
    let line = output.first_text();
    let name = line
        .strip_prefix("keep\t")
        .or_else(|| line.strip_prefix("pack\t"))
        .ok_or_else(|| Failure::new(Code::Io, format!("git index-pack answered {line:?}")))?;
    Ok(repository.objects_dir().join("pack").join(format!("pack-{name}.keep")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::value::digest::{Mode, TreeObject};
    use crate::domain::value::repo_path::RepoPath;
    use crate::git::convert::{Conversions, write_blob};
    use crate::git::private_index::PrivateIndex;
    use crate::git::testing::TestRepository;

    /// A tree in the quarantine with `number` files more than HEAD's.
    fn tree_with(home: &TestRepository, number: usize) -> ObjectId {
        let (repository, quarantine) = (home.repository(), home.quarantine());
        let index =
            PrivateIndex::holding_tree(&repository, &quarantine, &home.tree_of("HEAD")).expect("reads");
        let conversions = Conversions { repository: &repository, quarantine: Some(&quarantine) };
        let entry = |at: usize| {
            let id = write_blob(&conversions, format!("{at}\n").into_bytes()).expect("writes");
            let path = RepoPath::new(format!("deep/er/{at}")).expect("a path");
            (path, Some(TreeObject { mode: Mode::File, id }))
        };
        index.update_entries(&(0..number).map(entry).collect::<Vec<_>>()).expect("updates");
        index.write_tree().expect("writes")
    }

    fn packs(home: &TestRepository) -> usize {
        let folder = std::fs::read_dir(home.top().join(".git/objects/pack"));
        folder.map_or(0, |files| {
            files.flatten().filter(|f| f.path().extension().is_some_and(|e| e == "pack")).count()
        })
    }

    /// The same commit whoever makes it, whole for git, and no pack a time.
    #[test]
    fn a_small_change_is_kept_without_a_pack_and_a_large_one_in_one() {
        let home = TestRepository::new();
        home.write_file("a", b"1\n");
        home.write_file("deep/er/b", b"1\n");
        home.commit_all("first");
        let head: ObjectId = home.run_git(["rev-parse", "HEAD"]).parse().expect("an id");
        let (repository, quarantine) = (home.repository(), home.quarantine());
        for (number, count) in [(1, 0), (5, 0), (200, 1)] {
            let tree = tree_with(&home, number);
            let commit =
                copy_into_repository(&repository, &quarantine, "t", KeptRef::Last, &tree, Some(&head))
                    .expect("keeps")
                    .commit;
            assert_eq!(packs(&home), count, "{number} files");
            assert_eq!(home.run_git(["rev-parse", "refs/tender/tasks/t/last"]), commit.as_str());
            assert_eq!(home.run_git(["rev-parse", "refs/tender/tasks/t/last^{tree}"]), tree.as_str());
            home.run_git(["fsck", "--strict"]);
            let date = format!("@{} +0000", home.run_git(["log", "-1", "--format=%ct", "HEAD"]));
            let mut git = home.git_call();
            for role in ["AUTHOR", "COMMITTER"] {
                git = git
                    .env(&format!("GIT_{role}_NAME"), "git-tender")
                    .env(&format!("GIT_{role}_EMAIL"), "git-tender@localhost")
                    .env(&format!("GIT_{role}_DATE"), &date);
            }
            let made = git.args(["commit-tree", tree.as_str(), "-m", MESSAGE, "-p", head.as_str()]);
            assert_eq!(made.run().expect("git starts").first_text(), commit.as_str());
        }
        home.run_git(["gc", "-q", "--prune=now"]);
        home.run_git(["fsck", "--strict"]);
    }
}
