//! A submodule that somebody checked out in a task's worktree: is it as the base has it, and is there work in
//! it that is nowhere else?
//!
//! It is looked at in process, by the records in its own git directory, which the worker can write to: no
//! filter, hook or monitor runs. Who bends those records hides work of their own, and nobody else's.

use super::limits::refuse_by_rule;
use crate::domain::value::digest::ObjectId;
use crate::domain::value::repo_path::{RepoPath, display_bytes};
use crate::error::Failure;
use std::path::{Path, PathBuf};

/// Why the folder of a submodule cannot be passed over, if anything in it is not what the base records.
pub(super) fn refuse_changed_submodule(
    worktree: &Path,
    path: &RepoPath,
    recorded: &ObjectId,
) -> Option<Failure> {
    let folder = worktree.join(path.as_path());
    let named = path.to_string();
    let place = |path: &Path| path.display().to_string();
    let Some(repository) = open_at(&folder) else {
        let rule = "it is a submodule's directory, and holds files though no submodule is checked out there";
        let command = ["git", "-C", &place(worktree), "status", "--short", "--", &named];
        return Some(refuse_by_rule(&named, rule).remedy("Move the files out of that folder.", command));
    };
    match first_edit(&repository) {
        None => {
            let rule = "it is a submodule's directory, and cannot be looked at";
            let command = ["git", "-C", &place(&folder), "status"];
            return Some(refuse_by_rule(&named, rule).remedy("See what is wrong there.", command));
        }
        Some(Some(edited)) => {
            let rule =
                format!("it is a submodule with changes of its own ({edited}), which no task can have");
            let command = ["git", "-C", &place(&folder), "stash", "push", "--include-untracked"];
            let text = "Bring them into the submodule's own repository, then set them aside here.";
            return Some(refuse_by_rule(&named, &rule).remedy(text, command));
        }
        Some(None) => {}
    }
    let head = repository.head().ok().and_then(|head| head.peel_to_commit().ok()).map(|c| c.id().to_string());
    if head.as_deref() == Some(recorded.as_str()) {
        return None;
    }
    let rule = "it is a submodule at another commit than the base records, which no task can change";
    let command = ["git", "-C", &place(worktree), "submodule", "update", "--checkout", "--", &named];
    let failure = refuse_by_rule(&named, rule).expected(recorded, head);
    Some(failure.remedy("Bring the commit into the submodule's own repository, then go back here.", command))
}

/// Its own git directory, with this folder as its tree whatever its configuration says.
fn open_at(folder: &Path) -> Option<git2::Repository> {
    let repository = git2::Repository::open(folder).ok()?;
    repository.set_workdir(folder, false).ok()?;
    Some(repository)
}

/// The first path that differs from the index or HEAD, or is untracked; `None` where nobody can say.
fn first_edit(repository: &git2::Repository) -> Option<Option<String>> {
    let mut options = git2::StatusOptions::new();
    options.include_untracked(true).include_ignored(false).exclude_submodules(false).update_index(false);
    let statuses = repository.statuses(Some(&mut options)).ok()?;
    Some(statuses.iter().next().map(|entry| display_bytes(entry.path_bytes())))
}

/// The first of the submodules' git directories in a worktree's record that holds commits which no remote has
/// and the base does not name.
pub fn module_with_own_commits(admin: &Path, recorded: &[ObjectId]) -> Option<PathBuf> {
    git_dirs_beneath(&admin.join("modules"))
        .into_iter()
        .find(|module| !all_commits_known(module, recorded).unwrap_or(false))
}

/// A module's name may have slashes, and modules may have modules.
fn git_dirs_beneath(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let folders = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders
        .flat_map(|entry| {
            let path = entry.path();
            if !path.join("objects").is_dir() {
                return git_dirs_beneath(&path);
            }
            let below = git_dirs_beneath(&path.join("modules"));
            std::iter::once(path).chain(below).collect()
        })
        .collect()
}

/// `None` where it cannot be found out.
fn all_commits_known(module: &Path, recorded: &[ObjectId]) -> Option<bool> {
    let repository = git2::Repository::open_bare(module).ok()?;
    let mut walk = repository.revwalk().ok()?;
    let known = |name: &[u8]| name.starts_with(b"refs/remotes/") || name.starts_with(b"refs/tags/");
    for reference in repository.references().ok()? {
        let reference = reference.ok()?;
        let Ok(commit) = reference.peel_to_commit() else { continue };
        match known(reference.name_bytes()) {
            true => walk.hide(commit.id()).ok()?,
            false => walk.push(commit.id()).ok()?,
        }
    }
    if let Ok(head) = repository.head().and_then(|head| head.peel_to_commit()) {
        walk.push(head.id()).ok()?;
    }
    let recorded = recorded.iter().filter_map(|id| git2::Oid::from_str(id.as_str()).ok());
    for id in recorded.filter(|id| repository.find_commit(*id).is_ok()) {
        walk.hide(id).ok()?;
    }
    Some(walk.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::testing::TestRepository;

    #[test]
    fn work_in_a_submodule_is_seen_and_a_clean_one_is_none() {
        let home = TestRepository::new();
        home.write_file("sub/a", b"1\n");
        home.init_at(&home.top().join("sub"), &[]);
        let inside = |args: &[&str]| {
            let git = crate::git::Git::new(home.environment(), None).cwd(&home.top().join("sub"));
            let settings = ["-c", "user.name=u", "-c", "user.email=u"];
            let output = git.args(settings).args(args).run().expect("git starts");
            assert!(output.success(), "{}", output.stderr);
            output.first_text()
        };
        inside(&["add", "-A"]);
        inside(&["commit", "-qm", "one"]);
        let recorded: ObjectId = inside(&["rev-parse", "HEAD"]).parse().expect("an id");
        let path = RepoPath::new("sub").expect("a path");
        let look = || refuse_changed_submodule(&home.top(), &path, &recorded);
        assert_eq!(look(), None);
        let mark = home.outside().join("ran");
        inside(&["config", "core.fsmonitor", &format!("touch {}", mark.display())]);
        home.write_file("sub/a", b"2\n");
        let refused = look().expect("edited");
        assert!(refused.message().contains("changes of its own (a)"), "{refused}");
        assert!(!mark.exists());
        inside(&["config", "--unset", "core.fsmonitor"]);
        inside(&["commit", "-qam", "two"]);
        let moved: ObjectId = inside(&["rev-parse", "HEAD"]).parse().expect("an id");
        let refused = look().expect("moved");
        assert_eq!(refused.details()["expected"], recorded.as_str());
        let modules = home.outside().join("admin/modules/group");
        std::fs::create_dir_all(&modules).expect("made");
        std::fs::rename(home.top().join("sub/.git"), modules.join("sub")).expect("moves");
        let admin = home.outside().join("admin");
        assert_eq!(
            module_with_own_commits(&admin, std::slice::from_ref(&recorded)),
            Some(modules.join("sub"))
        );
        assert_eq!(module_with_own_commits(&admin, &[moved]), None);
        assert!(look().expect("files alone").message().contains("no submodule is checked out"));
    }
}
