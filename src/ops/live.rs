//! What `deliver` and `undo` have in common: the live tree that a task belongs to, and the journal of a write to it.

use super::session::RunningAction;
use crate::domain::delivery::IndexState;
use crate::domain::patch::Change;
use crate::domain::repo_path::RepoPath;
use crate::domain::task::{IndexDifference, Opened, Planned, Record};
use crate::error::{Code, Failure, Result};
use crate::git::apply::{self, Journal};
use crate::git::{Environment, Repository};
use crate::store::{Blobs, Ledger};
use std::collections::HashMap;
use std::path::Path;

/// The repository as seen from the live tree that the task was opened from.
pub fn home(environment: &Environment, opened: &Opened) -> Result<Repository> {
    let top = Path::new(&opened.home.top);
    if !top.is_dir() {
        return Err(Failure::new(Code::NotFound, format!("the live tree {} is gone", top.display()))
            .subject(opened.home.top.clone())
            .remedy(
                "Put it back, or take the patch elsewhere.",
                ["git", "tender", "diff", &opened.contract.task_id],
            ));
    }
    Repository::at(environment, Path::new(&opened.home.git_dir), top, None)
}

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
    #[must_use]
    pub fn of(&self, path: &RepoPath) -> IndexState {
        self.0.get(path).cloned().unwrap_or(IndexState::Absent)
    }
}

/// Writes the steps of a delivery to the ledger.
#[derive(Debug)]
pub struct LedgerJournal<'a> {
    /// The ledger.
    pub ledger: &'a mut Ledger,
    /// The action that the steps belong to.
    pub action: &'a mut RunningAction,
    /// What its end will say. The plan in it is the one that was recorded.
    pub planned: Option<Planned>,
    /// HEAD, evidence and direction, for the plan's record.
    pub facts: Facts,
    /// True while paths may have been changed and not taken back.
    pub open: bool,
}

/// What a delivery rests on.
#[derive(Debug, Clone)]
pub struct Facts {
    /// HEAD of the live tree.
    pub head: Option<crate::domain::digest::ObjectId>,
    /// `sha256:…` of the evidence.
    pub evidence: Vec<String>,
    /// True where it reverses a delivery.
    pub undoes: bool,
}

impl Journal for LedgerJournal<'_> {
    fn record(&mut self, record: &apply::Record<'_>) -> Result<()> {
        match record {
            apply::Record::Planned(plan) => {
                let Facts { head, evidence, undoes } = self.facts.clone();
                let planned = Planned { plan: (*plan).clone(), head, evidence, undoes };
                self.action.note(self.ledger, &Record::Planned(Box::new(planned.clone())))?;
                self.planned = Some(planned);
                self.open = true;
                Ok(())
            }
            apply::Record::Staged(staged) => {
                self.action.note(self.ledger, &Record::Staged(Box::new((*staged).clone())))
            }
            apply::Record::TakingBack => self.action.note(self.ledger, &Record::TakingBack),
            apply::Record::TakenBack(later) => {
                self.action.note(self.ledger, &Record::TakenBack { later: later.to_vec() })?;
                self.open = false;
                Ok(())
            }
            apply::Record::Done(receipt) => {
                let planned = self
                    .planned
                    .as_ref()
                    .ok_or_else(|| Failure::internal("a delivery ended that was never planned"))?;
                self.action.succeed(self.ledger, &planned.done((*receipt).clone()))?;
                self.open = false;
                Ok(())
            }
        }
    }
}

impl LedgerJournal<'_> {
    /// Ends the action after a failed write: without effect where everything was taken back, unknown otherwise.
    pub fn failed(&mut self, failure: Failure) -> Failure {
        if self.open {
            self.action.lose(self.ledger, failure)
        } else {
            self.action.fail(self.ledger, failure)
        }
    }
}
