//! What no candidate may do, however it came about: leave the scope, touch gitlinks, lead out of the tree by a link, or be
//! larger than its budget.

use super::super::objects::Objects;
use super::Rules;
use super::view::{Found, TreeView};
use crate::domain::digest::{Mode, ObjectId};
use crate::domain::patch::Change;
use crate::domain::repo_path::{RepoPath, display, is_dot_git};
use crate::error::{Code, Failure, Result};
use std::collections::HashSet;

/// Checks the changes from a base to `tree`. The failure names every path.
pub fn check_tree_changes(
    objects: &Objects,
    tree: &ObjectId,
    changes: &[Change],
    rules: &Rules,
) -> Result<()> {
    let view = TreeView::new(objects, tree);
    let mut failures = Vec::new();
    for change in changes {
        if !(rules.in_scope)(&change.path) {
            failures.push(out_of_scope(&change.path, rules));
        }
        let modes = [&change.old, &change.new].map(|side| side.as_ref().map(|state| state.mode));
        if modes.contains(&Some(Mode::Gitlink)) {
            failures.push(gitlink(&change.path));
        } else if let Some(new) = change.new.as_ref().filter(|new| new.mode == Mode::Symlink) {
            failures.extend(refused_link(objects, &view, &change.path, &new.git_blob)?);
        }
    }
    failures.extend(over_budget(objects, changes, rules)?);
    Failure::first_of(failures).map_or(Ok(()), Err)
}

/// The path lies outside the contract's scope.
pub(super) fn out_of_scope(path: &RepoPath, rules: &Rules) -> Failure {
    let allowed = rules.scope_patterns.join(", ");
    Failure::new(Code::ScopeViolation, format!("{path} is outside the contract's scope ({allowed})"))
        .subject(path.to_string())
        .detail("path", path)
        .detail("allowed", &rules.scope_patterns)
}

/// The path is, or becomes, a commit of another repository.
pub(super) fn gitlink(path: &RepoPath) -> Failure {
    Failure::new(
        Code::ScopeViolation,
        format!(
            "{path} is a gitlink (mode 160000): a submodule or a nested repository cannot be part of a change"
        ),
    )
    .subject(path.to_string())
    .detail("mode", Mode::Gitlink)
}

fn refused_link(
    objects: &Objects,
    view: &TreeView,
    path: &RepoPath,
    id: &ObjectId,
) -> Result<Option<Failure>> {
    let target = objects.blob(id)?;
    let rule = match path.refused_as_link() {
        Some(rule) => Some(rule.to_owned()),
        None => leaves_the_tree(objects, view, path, &target)?.map(str::to_owned),
    };
    Ok(rule.map(|rule| {
        Failure::new(
            Code::ScopeViolation,
            format!("the link {path} -> {} is refused: {rule}", display(&target)),
        )
        .subject(path.to_string())
        .detail("target", display(&target))
        .detail("rule", rule)
    }))
}

/// As many links as Linux follows on one way.
const LINKS: usize = 40;

/// Follows a link's target through the tree, other links included, and says why that is refused; `None` where it stays inside. A
/// target that does not exist is fine.
fn leaves_the_tree(
    objects: &Objects,
    view: &TreeView,
    path: &RepoPath,
    target: &[u8],
) -> Result<Option<&'static str>> {
    if target.is_empty() || target.len() > 4095 || target.contains(&0) {
        return Ok(Some("no file system can hold this target"));
    }
    let mut at: Vec<Vec<u8>> =
        path.parent().map_or_else(Vec::new, |p| p.components().map(<[u8]>::to_vec).collect());
    let mut ahead: Vec<Vec<u8>> = Vec::new();
    let mut followed = 0;
    let mut next = Some(target.to_vec());
    loop {
        if let Some(target) = next.take() {
            if target.first() == Some(&b'/') {
                return Ok(Some("its target is absolute"));
            }
            ahead.extend(target.split(|b| *b == b'/').rev().map(<[u8]>::to_vec));
        }
        let Some(component) = ahead.pop() else { return Ok(None) };
        match component.as_slice() {
            b"" | b"." => {}
            b".." if at.pop().is_none() => return Ok(Some("its target lies outside the tree")),
            b".." => {}
            name if is_dot_git(name) => return Ok(Some("its target lies in a spelling of `.git`")),
            _ => {
                at.push(component);
                if let Found::File(Mode::Symlink, id) = view.find(&at.join(&b'/'))? {
                    followed += 1;
                    if followed > LINKS {
                        return Ok(None);
                    }
                    at.pop();
                    next = Some(objects.blob(&id)?);
                }
            }
        }
    }
}

/// The bytes that the change brings: every new content that was not there before.
fn over_budget(objects: &Objects, changes: &[Change], rules: &Rules) -> Result<Option<Failure>> {
    let before: HashSet<&ObjectId> =
        changes.iter().filter_map(|c| c.old.as_ref()).map(|old| &old.git_blob).collect();
    let mut total = 0u64;
    for new in changes.iter().filter_map(|change| change.new.as_ref()) {
        if new.mode != Mode::Gitlink && !before.contains(&new.git_blob) {
            total = total.saturating_add(objects.size(&new.git_blob)?);
        }
    }
    Ok((total > rules.artifact_bytes).then(|| budget_exhausted(total, rules)))
}

/// The change is larger than the contract allows.
pub(super) fn budget_exhausted(total: u64, rules: &Rules) -> Failure {
    let limit = rules.artifact_bytes;
    Failure::new(
        Code::BudgetExhausted,
        format!("the change brings {total} bytes, where its budget allows {limit}"),
    )
    .subject("budget.artifactBytes")
    .detail("limit", limit)
    .expected(limit, total)
}
