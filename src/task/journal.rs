//! Where the steps of a write are written down: those of a delivery end its action, those of a change of a
//! worktree are notes of the action that it belongs to.

use crate::domain::ledger::record::{Planned, Record};
use crate::domain::value::digest::ObjectId;
use crate::error::{Failure, Result};
use crate::git::apply::{self, Journal};
use crate::store::Ledger;
use crate::task::action::RunningAction;

/// Writes the steps of a delivery to the ledger.
#[derive(Debug)]
pub struct LedgerJournal<'a> {
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
    pub head: Option<ObjectId>,
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
            apply::Record::InPlace => self.action.note(self.ledger, &Record::InPlace),
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
                self.action.succeed(self.ledger, &planned.end_record((*receipt).clone()))?;
                self.open = false;
                Ok(())
            }
        }
    }
}

impl LedgerJournal<'_> {
    /// Ends the action after a failed write: without effect where everything was taken back, unknown
    /// otherwise.
    pub fn failed(&mut self, failure: Failure) -> Failure {
        if self.open {
            self.action.lose(self.ledger, failure)
        } else {
            self.action.fail(self.ledger, failure)
        }
    }
}

/// Writes the steps of a change of the worktree to the ledger, as notes of the action that it belongs to.
pub(super) struct Moving<'a> {
    pub(super) ledger: &'a mut Ledger,
    pub(super) action: &'a RunningAction,
    /// Something may have been written, and is neither complete nor taken back.
    pub(super) open: bool,
    /// What the ledger says at its end.
    pub(super) done: &'static str,
}

impl Journal for Moving<'_> {
    fn record(&mut self, record: &apply::Record<'_>) -> Result<()> {
        let note = match record {
            apply::Record::Planned(plan) => {
                let (plan, head, evidence) = ((*plan).clone(), None, Vec::new());
                Record::Planned(Box::new(Planned { plan, head, evidence, undoes: false }))
            }
            apply::Record::Staged(staged) => Record::Staged(Box::new((*staged).clone())),
            apply::Record::InPlace => Record::InPlace,
            apply::Record::TakingBack => Record::TakingBack,
            apply::Record::TakenBack(later) => Record::TakenBack { later: later.to_vec() },
            apply::Record::Done(_) => Record::Done { text: self.done.to_owned() },
        };
        self.action.note(self.ledger, &note)?;
        self.open = !matches!(record, apply::Record::TakenBack(_) | apply::Record::Done(_));
        Ok(())
    }
}
