//! The submodules of a task's worktree, checked out from what the repository has of them: no network, and no
//! change of the repository's own configuration.

use crate::domain::ledger::brought::LeftOut;
use crate::domain::value::digest::{Mode, ObjectId};
use crate::domain::value::repo_path::{RepoPath, is_dot_git};
use crate::error::Result;
use crate::git::command::Git;
use crate::git::repository::Repository;
use crate::git::tree;
use std::path::{Path, PathBuf};

/// A submodule of a tree with a git directory in the repository.
struct LocalModule {
    name: String,
    path: RepoPath,
    /// The commit that the tree records.
    commit: ObjectId,
    git_dir: PathBuf,
}

/// Checks out those submodules whose commit the repository has. Gives their paths, and those that were left
/// out although they are there.
pub fn check_out_submodules(
    repository: &Repository,
    worktree: &Path,
    tree: &ObjectId,
) -> Result<(Vec<RepoPath>, Vec<LeftOut>)> {
    let (mut done, mut left) = (Vec::new(), Vec::new());
    for module in find_local_modules(repository, tree)? {
        match check_out_module(repository, worktree, &module)? {
            None => done.push(module.path),
            Some(why) => left.push(LeftOut { path: module.path, why }),
        }
    }
    Ok((done, left))
}

fn find_local_modules(repository: &Repository, tree: &ObjectId) -> Result<Vec<LocalModule>> {
    let modules = repository.common_dir().join("modules");
    if !modules.is_dir() {
        return Ok(Vec::new());
    }
    let objects = repository.object_reader(None)?;
    let Some(listing) = tree::find_entry(&objects, tree, &RepoPath::new(".gitmodules")?)? else {
        return Ok(Vec::new());
    };
    let answer = repository
        .git_call()
        .args(["config", "--blob", listing.id.as_str(), "-z", "--get-regexp", r"^submodule\..*\.path$"])
        .run()?;
    let mut found = Vec::new();
    for entry in String::from_utf8_lossy(&answer.stdout).split('\0') {
        let Some((key, path)) = entry.split_once('\n') else { continue };
        let name = key.strip_prefix("submodule.").and_then(|key| key.strip_suffix(".path"));
        let (Some(name), Ok(path)) = (name.filter(|name| is_plain_name(name)), RepoPath::new(path)) else {
            continue;
        };
        let git_dir = modules.join(name);
        let commit = match tree::find_entry(&objects, tree, &path)? {
            Some(entry) if entry.mode == Mode::Gitlink => entry.id,
            _ => continue,
        };
        if has_commit(&git_dir, &commit) {
            found.push(LocalModule { name: name.to_owned(), path, commit, git_dir });
        }
    }
    Ok(found)
}

/// A name that leads nowhere else, and that a setting can hold.
fn is_plain_name(name: &str) -> bool {
    !name.is_empty()
        && !name.contains(['=', '\n', '\\'])
        && name.split('/').all(|part| !["", ".", ".."].contains(&part) && !is_dot_git(part.as_bytes()))
}

fn has_commit(git_dir: &Path, commit: &ObjectId) -> bool {
    let Ok(repository) = git2::Repository::open_bare(git_dir) else { return false };
    git2::Oid::from_str(commit.as_str()).is_ok_and(|id| repository.find_commit(id).is_ok())
}

/// `None` where it is checked out; else why not.
fn check_out_module(
    repository: &Repository,
    worktree: &Path,
    module: &LocalModule,
) -> Result<Option<String>> {
    let key = |key: &str| format!("submodule.{}.{key}", module.name);
    let Some(place) = module.git_dir.to_str() else { return Ok(Some("its place is no UTF-8".to_owned())) };
    let git = Git::new(repository.environment(), None)
        .cwd(worktree)
        .with_setting("protocol.file.allow=always")
        .setting_from(&key("url"), "GIT_TENDER_MODULE", place)
        .setting_from(&key("update"), "GIT_TENDER_UPDATE", "checkout");
    let path = module.path.as_path();
    let output = git.args(["submodule", "--quiet", "update", "--"]).arg(path).run()?;
    if !output.success() {
        let said = output.stderr.lines().next_back().unwrap_or("git could not check it out");
        return Ok(Some(said.to_owned()));
    }
    let inside = || Git::new(repository.environment(), None).cwd(&worktree.join(path));
    if inside().args(["rev-parse", "HEAD"]).run()?.first_text() != module.commit.as_str() {
        return Ok(Some("git has not checked it out".to_owned()));
    }
    // Whoever works there finds the same remote as in the user's own checkout.
    let source = Git::new(repository.environment(), Some(&module.git_dir));
    let url = source.args(["config", "--get", "remote.origin.url"]).run()?;
    if url.success() && !url.first_text().is_empty() {
        inside().args(["config", "remote.origin.url", &url.first_text()]).run()?;
    }
    Ok(None)
}
