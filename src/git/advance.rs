//! A task's worktree on its way to another base: what a capture holds of it is replaced by another tree, by
//! the same careful writer that delivers into a user's tree. All of it or none; what the worker changed
//! meanwhile is a conflict and stays.

use super::command::Git;
use super::command::Quarantine;
use super::live::{self, Materials};
use super::registration::admin_of;
use super::repository::Repository;
use super::tree;
use crate::domain::change::patch::{Change, manifest_sha256};
use crate::domain::delivery::{
    Clearance, ClearedPlan, IndexRule, IndexState, plan_delivery, refuse_delivery,
};
use crate::domain::value::digest::ObjectId;
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Code, Failure, Result};
use std::path::Path;

/// A worktree on its way to another base.
#[derive(Debug, Clone, Copy)]
pub struct Move<'a> {
    pub repository: &'a Repository,
    pub quarantine: &'a Quarantine,
    pub worktree: &'a Path,
    pub from: &'a ObjectId,
    pub to: &'a ObjectId,
}

impl Move<'_> {
    /// What differs between the two.
    pub fn differing_changes(&self) -> Result<Vec<Change>> {
        tree::changes_between(&self.repository.object_reader(Some(self.quarantine))?, self.from, self.to)
    }

    pub fn touched_paths(&self) -> Result<Vec<RepoPath>> {
        let objects = self.repository.object_reader(Some(self.quarantine))?;
        Ok(tree::list_differences(&objects, self.from, self.to)?.into_iter().map(|one| one.path).collect())
    }

    /// Compares, and makes all bytes that will be written. Refused where anything lies in the way; nothing
    /// was touched then.
    pub fn prepare_move(&self, changes: &[Change]) -> Result<(ClearedPlan, Materials)> {
        let terms = live::LiveTerms {
            repository: self.repository,
            quarantine: Some(self.quarantine),
            top: self.worktree,
            changes,
            before_tree: self.from,
            after_tree: self.to,
            drivers: self.from,
            former: None,
            settings: live::Settings::read_settings(self.repository)?,
        };
        let mut survey = live::survey_paths(&terms)?;
        for fact in &mut survey.facts {
            // What the worker did to git in there does not count, nor does the user's index, which is of
            // another tree.
            fact.index = IndexState::Absent;
            fact.outside_sparse = false;
        }
        let plan = plan_delivery(changes, &survey.facts, IndexRule::Stays, &[])
            .map_err(|conflicts| in_the_way(self.worktree, refuse_delivery(&conflicts)))?;
        let materials = live::prepare_materials(&terms, survey, &plan)?;
        Ok((plan.clear_with(&Clearance::for_a_worktree(manifest_sha256(changes)))?, materials))
    }

    /// Git's own view from inside: HEAD at the new commit, the new base in the index, so that `git diff`
    /// shows the change. Nothing of ours rests on it, so that whatever the worker did to git there is no
    /// failure.
    pub fn tell_git(&self, commit: &ObjectId, base: &ObjectId) {
        let Ok(Some(admin)) = admin_of(self.repository, self.worktree) else { return };
        let git = || Git::new(self.repository.environment(), Some(&admin)).work_tree(self.worktree);
        let head = ["update-ref", "--no-deref", "-m", "git-tender: rebase", "HEAD", commit.as_str()];
        let told = git()
            .args(head)
            .run_for_stdout()
            .and_then(|_| git().args(["read-tree", base.as_str()]).run_for_stdout());
        drop(told);
    }
}

fn in_the_way(worktree: &Path, failure: Failure) -> Failure {
    let subject = failure.subject_text().unwrap_or_default().to_owned();
    Failure::new(
        Code::StateInvalid,
        format!("{subject} in the worktree {} is in the way of the new base", worktree.display()),
    )
    .subject(subject)
    .details_of(&failure)
    .remedy("Move it away, then rebase again.", ["git", "tender", "status"])
}
