//! What `deliver` and `undo` have in common: the live tree that a task belongs to, and the journal of a write
//! to it.

use crate::domain::change::patch::{Candidate, Change};
use crate::domain::delivery::conflict::{CONFLICTS, EDITED_MEANWHILE};
use crate::domain::delivery::receipt::{Outcome, Receipt};
use crate::domain::delivery::{
    Clearance, IndexRule, IndexState, IndexStep, Plan, Reason, plan_delivery, refuse_delivery,
};
use crate::domain::ledger::record::{IndexDifference, Opened};
use crate::domain::value::digest::ObjectId;
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Code, Failure, Result};
use crate::git::apply::{self, Delivery};
use crate::git::{Quarantine, Repository, live};
use crate::store::Blobs;
use crate::task::Session;
use crate::task::journal::LedgerJournal;
use std::collections::HashMap;
use std::path::Path;

/// What the index said of each path when the base was fixed.
#[derive(Debug)]
pub struct IndexAtBase(HashMap<RepoPath, IndexState>);

impl IndexAtBase {
    /// From what `open` recorded, for the paths of a change. A path that did not differ had the base's state.
    pub fn read(blobs: &Blobs, opened: &Opened, base: &[Change]) -> Result<Self> {
        let mut states: HashMap<RepoPath, IndexState> = base
            .iter()
            .map(|change| {
                let state = change.old.as_ref().map_or(IndexState::Absent, |old| IndexState::Entry {
                    mode: old.mode,
                    git_blob: old.git_blob.clone(),
                });
                (change.path.clone(), state)
            })
            .collect();
        let stored: Vec<IndexDifference> =
            serde_json::from_slice(&blobs.get(&opened.index)?).map_err(|e| {
                Failure::new(Code::StoreCorrupt, format!("the recorded index cannot be read: {e}"))
            })?;
        for difference in stored {
            if let Some(state) = states.get_mut(&difference.path) {
                *state = difference.state;
            }
        }
        Ok(Self(states))
    }

    /// The state of a path.
    pub fn of(&self, path: &RepoPath) -> IndexState {
        self.0.get(path).cloned().unwrap_or(IndexState::Absent)
    }
}

/// Whether the index changes with the files.
pub fn index_rule(opened: &Opened) -> IndexRule {
    if opened.effective.delivery.index_follows() { IndexRule::Follows } else { IndexRule::Stays }
}

/// A write to the live tree: from one tree of a candidate to the other.
#[derive(Debug)]
pub struct Write<'a> {
    pub session: &'a Session,
    /// The task, as it was opened.
    pub opened: &'a Opened,
    pub candidate: &'a Candidate,
    /// What changes, from what lies there to what will.
    pub changes: &'a [Change],
    /// The tree whose attributes count for what lies there.
    pub before_tree: &'a ObjectId,
    /// The tree whose attributes count for what is written.
    pub after_tree: &'a ObjectId,
    /// What the delivery that is undone found and wrote.
    pub former: Option<&'a live::FormerFiles>,
    /// What the delivery that is undone changed in the index.
    pub staged: Option<&'a [IndexStep]>,
    /// How the receipt calls a written path.
    pub outcome: Outcome,
}

/// The live tree as it was looked at, and the plan that fits it.
struct Compared<'a> {
    terms: live::LiveTerms<'a>,
    survey: live::LiveSurvey,
    plan: Plan,
}

impl Write<'_> {
    /// Compares with the live tree and gives what would be written. All conflicts are in the failure.
    pub fn preview(&self, home: &Repository) -> Result<Vec<(RepoPath, Outcome)>> {
        let quarantine = self.session.quarantine(&self.opened.contract.task_id);
        Ok(apply::preview_receipt(&self.compare(home, &quarantine)?.plan))
    }

    /// Compares with the live tree and writes. All conflicts are in the failure.
    pub fn run(
        &self,
        home: &Repository,
        clearance: &Clearance,
        journal: &mut LedgerJournal<'_>,
    ) -> Result<Receipt> {
        let id = &self.opened.contract.task_id;
        let quarantine = self.session.quarantine(id);
        let Compared { terms, survey, plan } = self.compare(home, &quarantine)?;
        let materials = live::prepare_materials(&terms, survey, &plan)?;
        let delivery = Delivery { id, top: terms.top, outcome: self.outcome, repository: home };
        let cleared = plan.clear_with(clearance)?;
        self.session.with_keeper(|keeper| apply::execute_plan(cleared, materials, delivery, journal, keeper))
    }

    fn compare<'w>(&'w self, home: &'w Repository, quarantine: &'w Quarantine) -> Result<Compared<'w>> {
        let index = IndexAtBase::read(&self.session.blobs(), self.opened, &self.candidate.changes)?;
        let terms = live::LiveTerms {
            repository: home,
            quarantine: Some(quarantine),
            top: Path::new(&self.opened.home.top),
            changes: self.changes,
            before_tree: self.before_tree,
            after_tree: self.after_tree,
            drivers: &self.candidate.base_tree,
            former: self.former,
            settings: live::Settings::read_settings(home)?,
        };
        let survey = live::survey_paths(&terms)?;
        let mut plan =
            plan_delivery(self.changes, &survey.facts, index_rule(self.opened), &|path| index.of(path))
                .map_err(|conflicts| refuse_delivery(&conflicts))?;
        if let Some(staged) = self.staged {
            plan = plan.taking_index_back(staged);
        }
        Ok(Compared { terms, survey, plan })
    }
}

/// A conflict gets the command that solves it, where it has none of its own.
pub fn explained(task: &str, failure: Failure, next: Next) -> Failure {
    if failure.code() != Code::DeliveryConflict || failure.has_remedy() {
        return failure;
    }
    let conflicts = failure.read_detail(&CONFLICTS).unwrap_or_default();
    let nothing = if failure.has_detail(&EDITED_MEANWHILE) { "" } else { "Nothing was written. " };
    // What lies in the index no rebase changes.
    let staged = conflicts.iter().find(|conflict| conflict.reason == Reason::IndexChanged);
    if let Some(first) = staged.filter(|_| next == Next::Stage) {
        let text = format!(
            "{nothing}The index has a version of its own: stage what lies in the tree, or restore it there."
        );
        return failure
            .remedy(text, ["git".to_owned(), "add".to_owned(), "--".to_owned(), first.path.to_string()]);
    }
    let (text, command) = match next {
        Next::Rebase | Next::Stage => {
            ("Carry the change over to what is there now, in the task's worktree.", "rebase")
        }
        Next::Look => ("Look at what was delivered.", "diff"),
    };
    failure.remedy(format!("{nothing}{text}"), ["git", "tender", command, task])
}

/// What can be done about a conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    Rebase,
    /// The same, where the index follows.
    Stage,
    Look,
}
