//! `recover`: brings everything unfinished to its end, and checks the whole chain of the ledger.

use super::Session;
use crate::domain::ledger::objects::{Reconciled, Recovery, RecoveryOutcome};
use crate::error::Result;
use crate::store::lock::LockGuard;
use crate::task::effect::cut_off::Ground;
use crate::task::home::{adopt_store, require_home};
use crate::task::recover::reconcile;
use crate::task::rollback::{accept_rollback, refuse_rollback};

/// What a person has said beforehand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    Nothing,
    /// To go on with a ledger that was set back, without what is missing.
    Rollback,
    /// To let the store go on in the repository where it is, which may be a copy.
    Adoption,
}

/// Brings everything unfinished to its end. Where that fails for one action the others are settled all the
/// same, and the failure lists all.
pub fn recover(session: &Session, consent: Consent) -> Result<Recovery> {
    let schema = "git-tender/recovery/v1";
    let mut recovery = Recovery { schema, rows: 0, accepted: Vec::new(), adopted: None, actions: Vec::new() };
    if let Some(ledger) = session.ledger()? {
        ledger.check_chain()?;
    }
    match consent {
        Consent::Rollback => recovery.accepted = accept_rollback(session)?,
        _ => refuse_rollback(session)?,
    }
    match consent {
        Consent::Adoption => recovery.adopted = adopt_store(session)?,
        _ => require_home(session)?,
    }
    let Some(ledger) = session.ledger()? else { return Ok(recovery) };
    recovery.rows = ledger.check_chain()?;
    let mut failed = None;
    let delivery = LockGuard::try_acquire(&session.layout.delivery_lock())?;
    for row in ledger.unfinished()? {
        let ended = |outcome, notes| Reconciled {
            action: row.action.clone(),
            task: row.task.clone(),
            tool: row.tool.clone(),
            outcome,
            kept: Vec::new(),
            notes,
        };
        let free = delivery.is_some() || Ground::of_action(&ledger, &row) != Ground::LiveTree;
        let lock = match &row.task {
            Some(task) => LockGuard::try_acquire(&session.layout.task_lock(task))?,
            None => None,
        };
        let may = free && (lock.is_some() || row.task.is_none());
        let reconciled = match may {
            false => ended(RecoveryOutcome::Busy, Vec::new()),
            true => match reconcile(session, &row.action) {
                Ok(None) => continue,
                Ok(Some((reconciled, _))) => reconciled,
                // One that cannot be settled keeps nobody from settling the others.
                Err(failure) => {
                    let notes = vec![failure.message().to_owned()];
                    failed.get_or_insert(failure);
                    ended(RecoveryOutcome::Failed, notes)
                }
            },
        };
        recovery.actions.push(reconciled);
    }
    match failed {
        None => Ok(recovery),
        Some(failure) => Err(failure.detail("actions", &recovery.actions)),
    }
}
