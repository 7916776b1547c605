//! Where the steps of a write are written down: as notes of the action that they belong to. The end of a
//! delivery is the end of its action; that of a change of a worktree is one more note. The user's bytes are
//! kept as blobs.

use crate::domain::delivery::receipt::{DeliveryPlan, Receipt};
use crate::domain::ledger::record::{Planned, Record};
use crate::domain::value::digest::{ObjectId, Sha256};
use crate::error::{Failure, Result};
use crate::git::apply::{self, Journal, Keeper};
use crate::store::{Blobs, Ledger};
use crate::task::action::RunningAction;

/// Writes the steps of a write to the ledger.
#[derive(Debug)]
pub struct LedgerJournal<'a> {
    pub ledger: &'a mut Ledger,
    /// The action that the steps belong to.
    pub action: &'a mut RunningAction,
    pub end: WriteEnd,
    /// True while paths may have been changed and not taken back.
    pub open: bool,
}

/// What the end of a write is for the action that it belongs to.
#[derive(Debug)]
pub enum WriteEnd {
    /// Its success.
    Delivery { facts: DeliveryFacts, planned: Option<Box<Planned>> },
    /// A note with this text.
    Note(&'static str),
}

/// What a delivery rests on.
#[derive(Debug, Clone, Default)]
pub struct DeliveryFacts {
    /// HEAD of the live tree.
    pub head: Option<ObjectId>,
    /// `sha256:…` of the evidence.
    pub evidence: Vec<String>,
    /// True where it reverses a delivery.
    pub undoes: bool,
}

impl Keeper for Blobs {
    fn put(&self, bytes: &[u8]) -> Result<Sha256> {
        self.put(bytes)
    }

    fn get(&self, digest: &Sha256) -> Result<Vec<u8>> {
        self.get(digest)
    }

    fn note_synced(&self, device: u64) {
        self.note_synced(device);
    }
}

impl Journal for LedgerJournal<'_> {
    fn record(&mut self, record: &apply::Record<'_>) -> Result<()> {
        match record {
            apply::Record::Planned(plan) => {
                let noted = self.end.planned((*plan).clone());
                self.write_note(&Record::Planned(noted))?;
                self.open = true;
            }
            apply::Record::Staged(staged) => self.write_note(&Record::Staged(Box::new((*staged).clone())))?,
            apply::Record::InPlace => self.write_note(&Record::InPlace)?,
            apply::Record::TakingBack => self.write_note(&Record::TakingBack)?,
            apply::Record::TakenBack(later) => {
                self.write_note(&Record::TakenBack { later: later.to_vec() })?;
                self.open = false;
            }
            apply::Record::Done(receipt) => {
                self.write_end(receipt)?;
                self.open = false;
            }
        }
        Ok(())
    }
}

impl WriteEnd {
    /// What the ledger says of a plan.
    fn planned(&mut self, plan: DeliveryPlan) -> Box<Planned> {
        match self {
            Self::Note(_) => Box::new(Planned { plan, head: None, evidence: Vec::new(), undoes: false }),
            Self::Delivery { facts, planned } => {
                let DeliveryFacts { head, evidence, undoes } = facts.clone();
                planned.insert(Box::new(Planned { plan, head, evidence, undoes })).clone()
            }
        }
    }
}

impl LedgerJournal<'_> {
    fn write_note(&mut self, record: &Record) -> Result<()> {
        self.action.note(self.ledger, record)
    }

    /// Nobody waits until it is on the disk: recovery would come to the same end.
    fn write_end(&mut self, receipt: &Receipt) -> Result<()> {
        let record = match &self.end {
            WriteEnd::Note(text) => Record::Done { text: (*text).to_owned() },
            WriteEnd::Delivery { planned, .. } => {
                let never_planned = || Failure::internal("a delivery ended that was never planned");
                planned.as_ref().ok_or_else(never_planned)?.end_record(receipt.clone())
            }
        };
        let ends = matches!(self.end, WriteEnd::Delivery { .. });
        self.action.unawaited(self.ledger, |action, ledger| match ends {
            true => action.succeed(ledger, &record).map(|_| ()),
            false => action.note(ledger, &record),
        })
    }

    /// Ends the action after a failed write: without effect where everything was taken back, unknown
    /// otherwise.
    pub fn end_failed(&mut self, failure: Failure) -> Failure {
        if self.open {
            self.action.lose(self.ledger, failure)
        } else {
            self.action.fail(self.ledger, failure)
        }
    }
}
