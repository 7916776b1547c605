//! A part of what a worktree changes, as a candidate of its own. What was not taken stays where it is.

use super::held::TaskWrite;
use crate::domain::change::patch::Change;
use crate::domain::ledger::record::Opened;
use crate::domain::value::digest::{Mode, ObjectId, TreeObject};
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Code, Failure, Result};
use crate::git::Objects;
use crate::git::capture::Capture;
use crate::git::convert::write_blob;
use crate::git::limits::{CandidateLimits, find_violations};
use crate::git::private_index::{PrivateIndex, PrivateIndexEntry};
use crate::git::tree;
use crate::task::candidate;

/// What is taken of one changed path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    Nothing,
    Whole,
    /// A version between the two.
    Version {
        bytes: Vec<u8>,
        mode: Mode,
    },
}

/// Says of each change, in order, what is taken of it.
pub type ChoosePart<'a> = &'a dyn Fn(&[Change], &Objects) -> Result<Vec<Taken>>;

/// All that the worktree changes, whether the scope allows it or not: what is not taken is held to nothing.
pub fn whole_change(task: &TaskWrite<'_>) -> Result<Capture> {
    candidate::worktree(task, CandidateLimits { allowed: &|_| true, scope: &[], artifact_bytes: None })
}

/// The part of `whole` that is chosen, within the limits; and the paths of which anything was left.
pub fn capture_part(
    task: &TaskWrite<'_>,
    opened: &Opened,
    whole: &Capture,
    choose: ChoosePart<'_>,
    limits: &CandidateLimits<'_>,
) -> Result<(Capture, Vec<RepoPath>)> {
    let session = task.session;
    let quarantine = session.quarantine(&task.view.id);
    let base = &opened.base.tree;
    let index = PrivateIndex::holding_tree(&session.repository, &quarantine, base)?;
    let objects = index.object_reader()?;
    let taken = choose(&whole.changes, &objects)?;
    let mut entries: Vec<PrivateIndexEntry> = Vec::new();
    for (change, taken) in whole.changes.iter().zip(taken) {
        let object = match taken {
            Taken::Nothing => continue,
            Taken::Whole => change.new.as_ref().map(|new| new.tree_object()),
            Taken::Version { bytes, mode } => {
                Some(TreeObject { mode, id: write_blob(&index.conversions(), bytes)? })
            }
        };
        entries.push((change.path.clone(), object));
    }
    index.update_entries(&entries)?;
    let tree = index.write_tree()?;
    let objects = index.object_reader()?;
    let changes = tree::changes_between(&objects, base, &tree)?;
    refuse_torn_apart(&entries, &changes)?;
    if let Some(failure) = Failure::first_of(find_violations(&objects, base, &tree, limits)?) {
        return Err(failure);
    }
    refuse_too_much(&objects, &changes, limits)?;
    let left = whole.changes.iter().filter(|change| !changes.contains(change));
    Ok((Capture { tree, changes: changes.clone() }, left.map(|change| change.path.clone()).collect()))
}

/// A file where a folder was can only come with the folder's end, and the other way round: git would let go
/// of what nobody has named.
fn refuse_torn_apart(entries: &[PrivateIndexEntry], changes: &[Change]) -> Result<()> {
    let is_named = |change: &&Change| entries.iter().any(|(path, _)| *path == change.path);
    let Some(lost) = changes.iter().find(|change| !is_named(change)) else { return Ok(()) };
    let text = format!("{} would go with what was named: a file and a folder have the same name", lost.path);
    Err(Failure::new(Code::ArgumentsInvalid, text)
        .subject(lost.path.to_string())
        .advice("Name both, or neither."))
}

fn refuse_too_much(objects: &Objects, changes: &[Change], limits: &CandidateLimits<'_>) -> Result<()> {
    let mut bytes = 0u64;
    for change in changes {
        let Some(new) = change.new.as_ref().filter(|new| new.mode != Mode::Gitlink) else { continue };
        bytes = bytes.saturating_add(objects.blob_size(&new.git_blob)?);
        if let Some(failure) = limits.too_much(&change.path, bytes) {
            return Err(failure);
        }
    }
    Ok(())
}

/// Refuses where the worktree is not what somebody has chosen from.
pub fn require_same_tree(whole: &Capture, chosen_from: &ObjectId) -> Result<()> {
    if whole.tree == *chosen_from {
        return Ok(());
    }
    Err(Failure::new(
        Code::StateInvalid,
        "the worktree changed while its hunks were chosen; nothing was captured",
    )
    .expected(chosen_from, &whole.tree)
    .advice("Choose again."))
}
