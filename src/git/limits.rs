//! What a candidate may be, whatever way it came: inside the scope, no submodule changed, no link out of the
//! tree.

use super::objects::Objects;
use super::tree::{self, TreeDifference, TreeFile};
use crate::domain::value::digest::{Mode, ObjectId, TreeObject};
use crate::domain::value::link;
use crate::domain::value::repo_path::{RULE, RepoPath};
use crate::error::{Code, DetailKey, Failure, Result};
use std::collections::BTreeMap;

/// The patterns of what may change.
pub const ALLOWED: DetailKey<Vec<String>> = DetailKey::new("allowed");

/// What the contract and the policy allow.
#[derive(Clone, Copy)]
pub struct CandidateLimits<'a> {
    /// Whether a path may change.
    pub allowed: &'a dyn Fn(&RepoPath) -> bool,
    /// The patterns behind `allowed`, for messages.
    pub scope: &'a [String],
    /// The most bytes that all added and modified files together may have.
    pub artifact_bytes: Option<u64>,
}

impl std::fmt::Debug for CandidateLimits<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Limits").field("scope", &self.scope).finish_non_exhaustive()
    }
}

impl CandidateLimits<'_> {
    /// The refusal of a path outside the scope.
    pub fn refuse_outside(&self, path: &RepoPath) -> Option<Failure> {
        if (self.allowed)(path) {
            return None;
        }
        Some(
            Failure::new(
                Code::ScopeViolation,
                format!("{path} is outside what the contract allows to change"),
            )
            .subject(path.to_string())
            .with_detail(&RULE, "outside the write scope")
            .with_detail(&ALLOWED, self.scope)
            .remedy(
                "Undo the change of this path, or ask for a wider writeScope; what the policy or the kind of the task narrowed stands in the report.",
                ["git", "tender", "report"],
            ),
        )
    }

    /// The refusal of too many bytes.
    pub fn too_much(&self, path: &RepoPath, bytes: u64) -> Option<Failure> {
        let limit = self.artifact_bytes?;
        (bytes > limit).then(|| {
            Failure::new(
                Code::BudgetExhausted,
                format!(
                    "with {path} the changed files come to {bytes} bytes; the artifact budget is {limit}"
                ),
            )
            .subject(path.to_string())
            .expected(limit, bytes)
            .detail("budget", "artifactBytes")
        })
    }
}

/// A refusal that rests on a rule, not on the scope's patterns.
pub fn refuse_by_rule(path: &str, rule: &str) -> Failure {
    Failure::new(Code::ScopeViolation, format!("{path} is refused: {rule}"))
        .subject(path)
        .with_detail(&RULE, rule)
}

/// Everything in the difference of two trees that is not allowed.
pub fn find_violations(
    objects: &Objects,
    base: &ObjectId,
    tree: &ObjectId,
    limits: &CandidateLimits,
) -> Result<Vec<Failure>> {
    let changed = tree::list_differences(objects, base, tree)?;
    let mut found: Vec<Failure> = changed.iter().filter_map(|d| limits.refuse_outside(&d.path)).collect();
    let is = |side: &Option<TreeObject>, mode: Mode| side.as_ref().is_some_and(|object| object.mode == mode);
    for d in &changed {
        if is(&d.new, Mode::Symlink)
            && let Some(rule) = d.path.refused_as_link()
        {
            found.push(refuse_by_rule(&d.path.to_string(), rule));
        }
        if is(&d.old, Mode::Gitlink) || is(&d.new, Mode::Gitlink) {
            found.push(refuse_by_rule(
                &d.path.to_string(),
                "a submodule cannot be added, changed or removed by a task",
            ));
        }
    }
    if changed.iter().any(|d| is(&d.new, Mode::Symlink) || is(&d.old, Mode::Symlink)) {
        found.extend(escaping_links(objects, base, tree, &changed)?);
    }
    Ok(found)
}

/// Links that leave the tree now, and did not before.
fn escaping_links(
    objects: &Objects,
    base: &ObjectId,
    tree: &ObjectId,
    changed: &[TreeDifference],
) -> Result<Vec<Failure>> {
    let (before, after) = (links_in_tree(objects, base)?, links_in_tree(objects, tree)?);
    let mut found = Vec::new();
    for (path, target) in &after {
        let Some(why) = link::find_escape(path, target, &|at| target_at(&after, at)) else { continue };
        let changed_itself = changed.iter().any(|d| d.path == *path);
        let before_too = before
            .get(path)
            .is_some_and(|target| link::find_escape(path, target, &|at| target_at(&before, at)).is_some());
        if changed_itself || !before_too {
            found.push(
                refuse_by_rule(&path.to_string(), &format!("it is a link, and {why}"))
                    .detail("target", String::from_utf8_lossy(target)),
            );
        }
    }
    Ok(found)
}

fn target_at(links: &BTreeMap<RepoPath, Vec<u8>>, at: &[u8]) -> Option<Vec<u8>> {
    RepoPath::new(at).ok().and_then(|path| links.get(&path)).cloned()
}

fn links_in_tree(objects: &Objects, tree: &ObjectId) -> Result<BTreeMap<RepoPath, Vec<u8>>> {
    let is_link = |file: &TreeFile| file.mode == Mode::Symlink;
    tree::list_files(objects, tree)?
        .into_iter()
        .filter(is_link)
        .map(|file| Ok((file.path, objects.read_blob(&file.id)?)))
        .collect()
}
