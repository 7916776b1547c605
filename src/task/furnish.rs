//! A task's worktree is made ready: ignored files, links, submodules, and what a command makes of them.
//!
//! What is to be brought is said by the base commit and the user's private layer. All of it is recorded, so
//! that no capture takes it; the places of files that hold secret values are noted, so that no log shows
//! them.

mod leavings;
mod setup;

pub use leavings::find_unbrought;

use super::Session;
use super::session::Progress;
use crate::domain::contract::worktree_rules::WorktreeRules;
use crate::domain::ledger::brought::{Brought, BroughtEntry, BroughtKind, BroughtPlaces};
use crate::domain::ledger::record::Opened;
use crate::error::{Failure, Result};
use crate::git::worktree_extras::{self, BroughtExtras, ExtrasJob};
use crate::store::secret_files::note_secret_files;
use setup::{SetUp, WorktreeSetupRun};
use std::path::{Path, PathBuf};

/// What was brought, and what a person should know of it.
#[derive(Debug)]
pub struct FurnishedWorktree {
    pub brought: Brought,
    pub notes: Vec<String>,
}

/// Brings what is wished for into a worktree that was just filled; `None` where nothing is.
pub fn furnish_worktree(
    session: &Session,
    opened: &Opened,
    rules: &WorktreeRules,
    progress: Progress<'_>,
) -> Result<Option<FurnishedWorktree>> {
    let quarantine = session.quarantine(&opened.contract.task_id);
    let worktree = Path::new(&opened.worktree);
    let job = ExtrasJob {
        repository: &session.repository,
        quarantine: &quarantine,
        worktree,
        tree: &opened.base.tree,
        commit_tree: opened.base.commit_tree(),
    };
    let run = match &rules.setup {
        Some(setup) => Some(WorktreeSetupRun::prepare(session, job, setup)?),
        None => None,
    };
    let kept = run.as_ref().and_then(WorktreeSetupRun::kept_places).unwrap_or_default();
    let mut extras = worktree_extras::bring_extras(job, rules, &BroughtPlaces(kept), progress)?;
    let (submodules, left) =
        worktree_extras::check_out_submodules(&session.repository, worktree, &opened.base.tree)?;
    extras.left.extend(left);
    let set_up = match &run {
        Some(run) => Some(run.set_up(&mut extras, progress)?),
        None => None,
    };
    if extras.entries.is_empty() && extras.left.is_empty() && submodules.is_empty() && set_up.is_none() {
        return Ok(None);
    }
    note_secrets(session, worktree, &extras)?;
    let (setup, made_from, notes) = match set_up {
        Some(SetUp { end, notes }) => (Some(end), run.map(|run| run.made_from), notes),
        None => (None, None, Vec::new()),
    };
    let BroughtExtras { entries, copied, linked, bytes, shared, left } = extras;
    let entries = session.blobs().put(&serde_json::to_vec(&entries).unwrap_or_default())?;
    let brought = Brought { copied, linked, submodules, setup, made_from, bytes, shared, left, entries };
    Ok(Some(FurnishedWorktree { brought, notes }))
}

/// The places of a task's worktree that were filled beside its base.
pub fn brought_places(session: &Session, opened: &Opened) -> Result<BroughtPlaces> {
    let Some(brought) = &opened.brought else { return Ok(BroughtPlaces::default()) };
    let listed = session.blobs().get(&brought.entries)?;
    let entries: Vec<BroughtEntry> = serde_json::from_slice(&listed)
        .map_err(|e| Failure::internal(format!("the list of what was brought cannot be read: {e}")))?;
    Ok(BroughtPlaces(entries))
}

/// What the worktree lacked and has by now is lacking no more.
pub fn forget_brought_lacks(opened: &mut Opened, places: &BroughtPlaces) {
    let Some(brought) = &opened.brought else { return };
    opened.lacks.ignored.retain(|path| !places.hold(path));
    opened.lacks.submodules.retain(|path| !brought.submodules.contains(path));
}

/// Files, in the worktree and where they came from. What is no list of settings has no such values.
fn note_secrets(session: &Session, worktree: &Path, extras: &BroughtExtras) -> Result<()> {
    let top = session.repository.top()?;
    let files = extras.entries.iter().filter(|entry| entry.kind != BroughtKind::Folder);
    let places: Vec<PathBuf> = files
        .flat_map(|entry| [top, worktree].map(|folder| folder.join(entry.path.as_path())))
        .filter(|place| place.symlink_metadata().is_ok_and(|found| found.is_file()))
        .collect();
    if places.is_empty() { Ok(()) } else { note_secret_files(&session.layout, &places) }
}
