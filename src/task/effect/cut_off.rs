//! An action that was cut off: which effect it was about, told from the records that it has left, and the one
//! place that says who brings it to an end.
//!
//! The records say what was under way, and not the word that the action was asked for with: a new effect has
//! a record of its own, and the compiler asks here what becomes of it.

use super::advance::UnfinishedMove;
use super::patch::UnfinishedPatch;
use super::tree::UnfinishedTree;
use super::{CutOff, advance, patch, refs, tree};
use crate::domain::delivery::publishing::Publishing;
use crate::domain::delivery::receipt::{Outcome, Staged};
use crate::domain::ledger::entry::Entry;
use crate::domain::ledger::objects::UnfinishedRow;
use crate::domain::ledger::record::{Planned, Rebased, Record};
use crate::domain::ledger::task::TaskView;
use crate::error::{Failure, Result};
use crate::git::apply::recover::{Reached, UnfinishedDelivery};
use crate::store::Ledger;

/// What an unfinished action holds beside its task, as far as it is known yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ground {
    /// Nothing: its task's lock is all that it needs.
    OwnTask,
    /// The live tree, which many tasks share: whoever settles it holds the delivery lock.
    LiveTree,
    /// A ref: it needs no lock but its task's, and it may have to ask others.
    Ref,
}

impl Ground {
    /// Where the rows cannot be read, the tool counts: whoever settles the action will say what is wrong.
    pub fn of_action(ledger: &Ledger, row: &UnfinishedRow) -> Self {
        let moves_ref = ledger.action(&row.action).is_ok_and(|rows| refs::planned(&rows).is_some());
        match (moves_ref, row.writes_live_tree()) {
            (true, _) => Self::Ref,
            (false, true) => Self::LiveTree,
            (false, false) => Self::OwnTask,
        }
    }
}

/// The effect of an action that has no end yet.
#[derive(Debug)]
pub enum UnfinishedEffect {
    /// Nothing was begun that outlives the action. An exploration's report is here too: it is one row.
    Nothing,
    /// A delivery into the live tree, or its reversal.
    Tree(UnfinishedTree),
    /// A ref, here or on a remote.
    Refs(Box<Publishing>),
    /// A worker's edit in the task's worktree.
    Patch(UnfinishedPatch),
    /// The move of the worktree to another base.
    Move(UnfinishedMove),
}

impl UnfinishedEffect {
    /// From an action's rows; `view`, where places have to be those of now.
    pub fn read_rows(entries: &[Entry], view: Option<&TaskView>) -> Result<Self> {
        if let Some(publishing) = refs::planned(entries) {
            return Ok(Self::Refs(publishing));
        }
        let records = Records::read(entries, view)?;
        Ok(match (records.rebasing, records.written, records.worker) {
            (Some(rebased), write, _) => {
                Self::Move(UnfinishedMove { rebased, write: write.map(|(_, write)| write) })
            }
            (None, None, _) => Self::Nothing,
            (None, Some((_, write)), Some(worker)) => Self::Patch(UnfinishedPatch { worker, write }),
            (None, Some((planned, write)), None) => Self::Tree(UnfinishedTree { planned, write }),
        })
    }

    /// True where its end is the end of a delivery, or of one that is taken back.
    pub fn is_delivery(&self) -> bool {
        match self {
            Self::Tree(_) | Self::Refs(_) => true,
            Self::Nothing | Self::Patch(_) | Self::Move(_) => false,
        }
    }

    /// Brings it to its end, forward or back. The failure that is given back: nobody can tell what became of
    /// it.
    pub fn resume(self, cut: &mut CutOff<'_>) -> Result<Option<Failure>> {
        match self {
            Self::Nothing => cut.end_untouched("it was cut off and had no effect of its own").map(|()| None),
            Self::Tree(unfinished) => tree::resume(cut, unfinished),
            Self::Refs(publishing) => refs::resume(cut, *publishing),
            Self::Patch(unfinished) => patch::resume(cut, unfinished).map(|()| None),
            Self::Move(unfinished) => advance::resume(cut, unfinished).map(|()| None),
        }
    }

    /// The record of its end, where a person says that it took place.
    pub fn decide(self, action: &str) -> Result<Record> {
        match self {
            Self::Tree(unfinished) => Ok(tree::decide(unfinished)),
            Self::Refs(publishing) => Ok(refs::decide(&publishing)),
            Self::Nothing | Self::Patch(_) | Self::Move(_) => {
                Err(Failure::internal(format!("nothing about the action {action} can be decided")))
            }
        }
    }
}

/// What an action's records say, as far as recovery asks.
#[derive(Default)]
struct Records {
    /// The worker whose call it is.
    worker: Option<String>,
    rebasing: Option<Box<Rebased>>,
    written: Option<(Box<Planned>, UnfinishedDelivery)>,
}

impl Records {
    fn read(entries: &[Entry], view: Option<&TaskView>) -> Result<Self> {
        let mut found = Self::default();
        for entry in entries.iter().filter(|entry| entry.result.record_kind().is_some()) {
            found.take_in(Record::from_row(entry)?);
        }
        let Some(view) = view else { return Ok(found) };
        if let Some((_, write)) = &mut found.written {
            view.bring_plan_up_to_date(&mut write.plan);
        }
        if let Some(rebased) = &mut found.rebasing {
            rebased.opened = view.bring_up_to_date(rebased.opened.clone());
        }
        Ok(found)
    }

    fn take_in(&mut self, record: Record) {
        match record {
            Record::Call(arrived) => self.worker = Some(arrived.worker),
            Record::Rebasing(rebased) => self.rebasing = Some(rebased),
            Record::Planned(planned) => {
                let outcome = if planned.undoes { Outcome::Reverted } else { Outcome::Applied };
                let plan = planned.plan.clone();
                let write = UnfinishedDelivery { plan, staged: None, reached: Reached::Begun, outcome };
                self.written = Some((planned, write));
            }
            Record::Staged(found) => self.note_staged(*found),
            Record::InPlace => self.note_reached(Reached::InPlace),
            Record::TakingBack => self.note_reached(Reached::TakingBack),
            Record::TakenBack { later } => self.note_reached(Reached::TakenBack(later)),
            // The last note of a change of the worktree; of anything else it is the end of the action, which
            // is not unfinished then.
            Record::Done { .. } => self.note_reached(Reached::Done),
            _ => {}
        }
    }

    fn note_staged(&mut self, staged: Staged) {
        if let Some((_, write)) = &mut self.written {
            write.staged = Some(staged);
        }
    }

    fn note_reached(&mut self, reached: Reached) {
        if let Some((_, write)) = &mut self.written {
            write.reached = reached;
        }
    }
}
