//! A commit made without a checkout, and a branch that is moved only from where we left it.
//!
//! The commit's objects are made in the task's quarantine; `keep` brings them into the repository once the
//! ledger says what for. HEAD, the index and every working tree stay as they are: a branch that somebody
//! works on is never moved.

use super::command::Quarantine;
use super::command::{Environment, Git};
use super::repository::Repository;
use crate::domain::delivery::publication::{CommitPlan, Identity};
use crate::domain::value::digest::ObjectId;
use crate::error::{Failure, Result};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Who commits here by git's configuration and environment; `None` where git would have to guess.
pub fn committer_identity(repository: &Repository) -> Result<Option<Identity>> {
    let output = repository
        .git_call()
        .with_setting("user.useConfigOnly=true")
        .args(["var", "GIT_AUTHOR_IDENT"])
        .run()?;
    if !output.success() {
        return Ok(None);
    }
    // `Name <address> seconds zone`
    let line = output.first_text();
    let Some((name, rest)) = line.split_once(" <") else { return Ok(None) };
    let Some((email, _)) = rest.rsplit_once("> ") else { return Ok(None) };
    Ok(Some(Identity { name: name.to_owned(), email: email.to_owned() }))
}

/// A message with trailers below it, in the block of trailers that it has or in one of its own.
pub fn message_with_trailers(environment: &Environment, text: &str, trailers: &[String]) -> Result<String> {
    // Without any configuration: it could name separators, places and programs of its own.
    let mut git = Git::new(environment, None)
        .without_config_of_the_environment()
        .cwd(Path::new("/"))
        .env("GIT_DIR", "/dev/null")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .args(["interpret-trailers", "--no-divider", "--where=end", "--if-exists=add", "--if-missing=add"]);
    for trailer in trailers {
        git = git.arg("--trailer").arg(trailer);
    }
    let said = git.stdin(format!("{}\n", text.trim_end()).into_bytes()).run_for_stdout()?;
    Ok(String::from_utf8_lossy(&said).into_owned())
}

/// Makes the commit in the quarantine. The same plan gives the same commit.
pub fn make_commit(repository: &Repository, quarantine: &Quarantine, plan: &CommitPlan) -> Result<ObjectId> {
    let mut git = repository.git_call().with_quarantine(quarantine).with_setting("i18n.commitEncoding=UTF-8");
    for role in ["AUTHOR", "COMMITTER"] {
        git = git
            .env(&format!("GIT_{role}_NAME"), &plan.author.name)
            .env(&format!("GIT_{role}_EMAIL"), &plan.author.email)
            .env(&format!("GIT_{role}_DATE"), &plan.date);
    }
    let made = git
        .args(["commit-tree", "--no-gpg-sign", "-p", plan.parent.as_str(), "-F", "-", plan.tree.as_str()])
        .stdin(plan.message.clone().into_bytes())
        .run()?;
    if made.success() { made.first_text().parse() } else { Err(made.to_failure()) }
}

pub fn resolve_commit(repository: &Repository, reference: &str) -> Result<Option<ObjectId>> {
    repository.resolve_revision(reference, "commit")
}

/// True where one commit is in the history of another; `None` where that cannot be told.
pub fn is_ancestor(
    repository: &Repository,
    quarantine: Option<&Quarantine>,
    old: &ObjectId,
    new: &ObjectId,
) -> Result<Option<bool>> {
    let git = match quarantine {
        Some(quarantine) => repository.git_call().with_quarantine(quarantine),
        None => repository.git_call(),
    };
    let output = git.args(["merge-base", "--is-ancestor", old.as_str(), new.as_str()]).run()?;
    Ok(match output.code {
        Some(0) => Some(true),
        Some(1) => Some(false),
        _ => None,
    })
}

/// Why a branch must not be moved, whatever it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BranchHold {
    /// Somebody works on it in this working tree; a branch that a rebase or bisect will come back to counts
    /// too.
    In(PathBuf),
    /// It stands for another ref.
    Symbolic(String),
}

/// Whether a branch must not be moved.
pub fn find_hold(repository: &Repository, reference: &str) -> Result<Option<BranchHold>> {
    let link = repository.git_call().args(["symbolic-ref", "--quiet", reference]).run()?;
    if link.success() {
        return Ok(Some(BranchHold::Symbolic(link.first_text())));
    }
    let listed = repository.git_call().args(["worktree", "list", "--porcelain", "-z"]).run_for_stdout()?;
    let mut worktree = PathBuf::new();
    for line in listed.split(|byte| *byte == 0) {
        if let Some(path) = line.strip_prefix(b"worktree ") {
            worktree = PathBuf::from(OsStr::from_bytes(path));
        } else if line.strip_prefix(b"branch ") == Some(reference.as_bytes()) {
            return Ok(Some(BranchHold::In(worktree)));
        }
    }
    Ok(interrupted_worktree(repository.common_dir(), reference).map(BranchHold::In))
}

/// The working tree whose rebase or bisect will come back to a branch.
fn interrupted_worktree(common_dir: &Path, reference: &str) -> Option<PathBuf> {
    let linked = std::fs::read_dir(common_dir.join("worktrees")).into_iter().flatten().flatten();
    let folders = linked.map(|entry| entry.path()).chain([common_dir.to_path_buf()]);
    folders.into_iter().find(|folder| {
        ["rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START"].iter().any(|name| {
            std::fs::read_to_string(folder.join(name)).is_ok_and(|text| {
                let text = text.trim_end();
                text == reference || reference.strip_prefix("refs/heads/") == Some(text)
            })
        })
    })
}

/// Moves, creates or deletes a branch, only if it names `old` (`None`: nothing) at that moment. False: it did
/// not, or git refused.
pub fn update_branch(
    repository: &Repository,
    reference: &str,
    old: Option<&ObjectId>,
    new: Option<&ObjectId>,
    why: &str,
) -> Result<std::result::Result<(), Failure>> {
    let zeros = "0".repeat(repository.format().hex_len());
    let old = old.map_or(zeros.as_str(), ObjectId::as_str);
    let git = repository.git_call().args(["update-ref", "--no-deref", "-m", why]);
    let output = match new {
        Some(new) => git.args([reference, new.as_str(), old]).run()?,
        None => git.args(["-d", reference, old]).run()?,
    };
    Ok(if output.success() { Ok(()) } else { Err(output.to_failure()) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::testing::TestRepository;

    fn message_text(text: &str, trailers: &[&str]) -> String {
        let environment = Environment::scrub_variables(std::env::vars_os());
        let trailers: Vec<String> = trailers.iter().map(|t| (*t).to_owned()).collect();
        message_with_trailers(&environment, text, &trailers).expect("made")
    }

    #[test]
    fn trailers_go_into_the_block_that_is_there() {
        let two = ["Tender-Task: t1", "Tender-Contract: ab"];
        assert_eq!(message_text("Fix it", &two), "Fix it\n\nTender-Task: t1\nTender-Contract: ab\n");
        assert_eq!(
            message_text("Fix it\n\nWhy.\n\nSigned-off-by: A <a@b>\n", &two),
            "Fix it\n\nWhy.\n\nSigned-off-by: A <a@b>\nTender-Task: t1\nTender-Contract: ab\n"
        );
        assert_eq!(
            message_text("fix: it\n\nA line.\n---\nb\n\n", &two[..1]),
            "fix: it\n\nA line.\n---\nb\n\nTender-Task: t1\n"
        );
        assert_eq!(
            message_text("x\n\nTender-Task: t1", &two[..1]),
            "x\n\nTender-Task: t1\nTender-Task: t1\n"
        );
    }

    #[test]
    fn a_branch_moves_only_from_where_it_is_said_to_be() {
        for format in ["sha1", "sha256"] {
            let home = TestRepository::with_format(format);
            home.write_file("a", b"1\n");
            let tree = home.commit_all("one");
            let repository = home.repository();
            let head = resolve_commit(&repository, "HEAD").expect("asked").expect("there");
            let plan = CommitPlan {
                tree,
                parent: head.clone(),
                author: Identity { name: "A B".into(), email: "a@b".into() },
                date: "2024-01-02T03:04:05Z".into(),
                message: "m\n".into(),
            };
            let quarantine = home.quarantine();
            let made = make_commit(&repository, &quarantine, &plan).expect("made");
            assert_eq!(make_commit(&repository, &quarantine, &plan).expect("again"), made);
            assert!(
                resolve_commit(&repository, made.as_str()).expect("asked").is_none(),
                "not in the repository"
            );
            super::super::keep::bring_in(
                &repository,
                &quarantine,
                "t1",
                super::super::keep::KeptRef::Last,
                &made,
            )
            .expect("copied");
            let name = "refs/heads/x/y";
            let to = |old: Option<&ObjectId>, new: Option<&ObjectId>| {
                update_branch(&repository, name, old, new, "why").expect("ran").is_ok()
            };
            assert!(!to(Some(&head), Some(&made)) && to(None, Some(&made)) && !to(None, Some(&head)));
            assert_eq!(resolve_commit(&repository, name).expect("asked"), Some(made.clone()));
            assert_eq!(is_ancestor(&repository, None, &head, &made).expect("asked"), Some(true));
            assert_eq!(is_ancestor(&repository, None, &made, &head).expect("asked"), Some(false));
            assert!(!to(Some(&head), None) && to(Some(&made), None));
            assert_eq!(resolve_commit(&repository, name).expect("asked"), None);
            let branch = repository.current_branch().expect("asked").expect("on a branch");
            assert!(matches!(find_hold(&repository, &branch), Ok(Some(BranchHold::In(_)))));
            assert_eq!(find_hold(&repository, name).expect("asked"), None);
        }
    }
}
