//! A candidate from a patch that somebody brings: a git patch, a mailbox, or a plain unified diff, applied to
//! the base tree and to nothing else.
//!
//! What holds: the patch was made for this very base. The ids on its `index` lines are those of the base, and
//! every hunk stands at the very line that it names. Git applies it on a private index, this module applies
//! it on its own, and both must come to the same tree; so a text that two readers understand differently is
//! refused. Sections are taken in the order of the text: where a path comes up again, in the next mail or in
//! the same text, the earlier sections make the state that the later ones are held against.
//!
//! A patch that is sound but changes nothing gives a capture without changes, as an untouched worktree does.

mod group;
mod mail;
mod read;
mod view;

use super::capture::Capture;
use super::command::Quarantine;
use super::limits::{CandidateLimits, find_violations};
use super::private_index::PrivateIndex;
use super::repository::Repository;
use super::tree;
use crate::domain::change::patch_text::LINE_ENDS;
use crate::domain::value::digest::{Mode, ObjectId};
use crate::error::{Code, Failure, Result};
use view::TreeView;

/// Applies a patch to the base tree. The objects that it makes go to the quarantine.
///
/// Refusals: `patch.invalid` (it cannot be read, or does not apply exactly), `version.conflict` (it was made
/// for another base), `scope.violation` (a path, link or mode that is not allowed), `budget.exhausted`.
pub fn take_patch(
    repository: &Repository,
    quarantine: &Quarantine,
    base_tree: &ObjectId,
    patch: &[u8],
    limits: &CandidateLimits,
) -> Result<Capture> {
    apply_to_index(repository, quarantine, base_tree, patch, limits)
        .map_err(|failure| advise_fresh_patch(failure, base_tree))
}

fn apply_to_index(
    repository: &Repository,
    quarantine: &Quarantine,
    base: &ObjectId,
    patch: &[u8],
    limits: &CandidateLimits,
) -> Result<Capture> {
    let index = PrivateIndex::isolated_tree(repository, quarantine, base)?;
    let objects = repository.object_reader(Some(quarantine))?;
    let parts = mail::split_mails(&index, patch)?;
    let mut tree = base.clone();
    let items = read::read_items(&TreeView::new(&objects, base), &parts, limits)?;
    if items.is_empty() {
        let what = if patch.trim_ascii().is_empty() {
            "the patch is empty: it holds no change"
        } else {
            "the text holds no diff, and so no change"
        };
        return Err(Failure::new(Code::PatchInvalid, what).detail("bytes", patch.len()));
    }
    let mut late = Vec::new();
    let mut rest = items.as_slice();
    while !rest.is_empty() {
        let view = TreeView::new(&objects, &tree);
        let (now, later) = rest.split_at(group::first_group_length(&view, rest)?);
        let mut group = group::Group::new(&index, &objects, &view, now);
        tree = group.check_and_apply()?;
        late.append(&mut group.late);
        rest = later;
    }
    let changes = tree::changes_between(&objects, base, &tree)?;
    let mut failures = find_violations(&objects, base, &tree, limits)?;
    let mut total = 0u64;
    for (path, new) in changes.iter().filter_map(|change| Some((&change.path, change.new.as_ref()?))) {
        if new.mode != Mode::Gitlink {
            total = total.saturating_add(objects.blob_size(&new.git_blob)?);
        }
        if let Some(failure) = limits.too_much(path, total) {
            failures.push(failure);
            break;
        }
    }
    if let Some(failure) = Failure::first_of(failures) {
        return Err(failure);
    }
    Failure::first_of(late).map_or(Ok(Capture { tree, changes }), Err)
}

/// Adds the next step where the failure has none.
fn advise_fresh_patch(failure: Failure, base: &ObjectId) -> Failure {
    let again = ["git", "diff", "--full-index", "--binary", "--default-prefix", base.as_str()];
    let text = match failure.code() {
        _ if failure.has_remedy() => return failure,
        Code::PatchInvalid if failure.has_detail(&LINE_ENDS) => {
            "Bring the patch over unchanged, for example as an attachment, or make it again from the base."
        }
        Code::PatchInvalid | Code::VersionConflict => "Make the patch again from the base.",
        _ => return failure,
    };
    failure.remedy(text, again)
}

#[cfg(test)]
mod tests;
