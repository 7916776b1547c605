//! A candidate from a patch that somebody brings: a git patch, a mailbox, or a plain unified diff, applied to the base tree and to
//! nothing else.
//!
//! What holds: the patch was made for this very base. The ids on its `index` lines are those of the base, and every hunk stands at the
//! very line that it names. Git applies it on a private index, this module applies it on its own, and both must come to the same
//! tree; so a text that two readers understand differently is refused. Sections are taken in the order of the text: where a path comes
//! up again, in the next mail or in the same text, the earlier sections make the state that the later ones are held against.
//!
//! A patch that is sound but changes nothing gives a capture without changes, as an untouched worktree does.

mod check;
mod group;
mod mail;
mod read;
mod view;

pub use check::check_tree_changes;

use super::isolated::Isolated;
use super::objects::Quarantine;
use super::repository::Repository;
use super::tree;
use crate::domain::digest::ObjectId;
use crate::domain::patch::Change;
use crate::domain::repo_path::RepoPath;
use crate::error::{Code, Failure, Result};
use view::TreeView;

/// A tree, and what it changes against the base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    /// The candidate's tree; its objects lie in the quarantine.
    pub tree: ObjectId,
    /// Sorted by path bytes; empty where nothing changed.
    pub changes: Vec<Change>,
}

/// What the contract allows.
pub struct Rules<'a> {
    /// Whether a path may be touched.
    pub in_scope: &'a dyn Fn(&RepoPath) -> bool,
    /// The scope as the contract has it, for messages.
    pub scope_patterns: Vec<String>,
    /// How many bytes of new content a candidate may bring.
    pub artifact_bytes: u64,
}

impl std::fmt::Debug for Rules<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rules").field("scope_patterns", &self.scope_patterns).finish_non_exhaustive()
    }
}

/// Applies a patch to the base tree. The objects that it makes go to the quarantine.
///
/// Refusals: `patch.invalid` (it cannot be read, or does not apply exactly), `version.conflict` (it was made for another base),
/// `scope.violation` (a path, link or mode that is not allowed), `budget.exhausted`.
pub fn take(
    repository: &Repository,
    quarantine: &Quarantine,
    base_tree: &ObjectId,
    patch: &[u8],
    rules: &Rules,
) -> Result<Capture> {
    apply(repository, quarantine, base_tree, patch, rules).map_err(|failure| advised(failure, base_tree))
}

fn apply(
    repository: &Repository,
    quarantine: &Quarantine,
    base: &ObjectId,
    patch: &[u8],
    rules: &Rules,
) -> Result<Capture> {
    let isolated = Isolated::new(repository, quarantine)?;
    let objects = repository.objects(Some(quarantine))?;
    let parts = mail::parts(&isolated, patch)?;
    let mut tree = base.clone();
    let items = read::items(&TreeView::new(&objects, base), &parts, rules)?;
    if items.is_empty() {
        let what =
            if patch.trim_ascii().is_empty() { "the patch is empty" } else { "the text holds no diff" };
        return Err(Failure::new(Code::PatchInvalid, what).detail("bytes", patch.len()));
    }
    isolated.read(base)?;
    let mut late = Vec::new();
    let mut rest = items.as_slice();
    while !rest.is_empty() {
        let view = TreeView::new(&objects, &tree);
        let (now, later) = rest.split_at(group::first(&view, rest)?);
        let mut group = group::Group::new(&isolated, &objects, &view, now);
        tree = group.apply()?;
        late.append(&mut group.late);
        rest = later;
    }
    let changes = tree::changes(&objects, base, &tree)?;
    check_tree_changes(&objects, &tree, &changes, rules)?;
    Failure::first_of(late).map_or(Ok(Capture { tree, changes }), Err)
}

/// Adds the next step where the failure has none.
fn advised(failure: Failure, base: &ObjectId) -> Failure {
    let again = ["git", "diff", "--full-index", "--binary", base.as_str()];
    let text = match failure.code() {
        _ if failure.next_step().is_some() => return failure,
        Code::PatchInvalid if failure.details().contains_key("lineEnds") => {
            "Bring the patch over unchanged, for example as an attachment, or make it again from the base."
        }
        Code::PatchInvalid | Code::VersionConflict => "Make the patch again from the base.",
        _ => return failure,
    };
    failure.remedy(text, again)
}

#[cfg(test)]
mod tests;
