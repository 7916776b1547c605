//! `recover`: brings everything unfinished to its end, and checks the whole chain of the ledger.

use super::Session;
use crate::domain::ledger::action::writes_live_tree;
use crate::domain::ledger::objects::{Reconciled, Recovery, RecoveryOutcome};
use crate::error::{Code, Result};
use crate::store::lock::LockGuard;
use crate::task::effect::choice_lines;
use crate::task::home::{adopt_store, require_home};
use crate::task::recover::{moves_a_ref, reconcile};
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
    for (action, task, tool) in ledger.unfinished()? {
        let busy = || Reconciled {
            action: action.clone(),
            task: task.clone(),
            tool: tool.clone(),
            outcome: RecoveryOutcome::Busy,
            kept: Vec::new(),
            notes: Vec::new(),
        };
        let free = !writes_live_tree(&tool) || delivery.is_some() || moves_a_ref(&ledger, &action)?;
        let lock = match &task {
            Some(task) => LockGuard::try_acquire(&session.layout.task_lock(task))?,
            None => None,
        };
        let may = free && (lock.is_some() || task.is_none());
        let reconciled = match may {
            false => busy(),
            true => match reconcile(session, &action) {
                Ok(None) => continue,
                Ok(Some(reconciled)) => reconciled,
                Err(failure) if failure.code() == Code::DecisionRequired => Reconciled {
                    outcome: RecoveryOutcome::NeedsHumanDecision,
                    notes: choice_lines(&failure),
                    ..busy()
                },
                // One that cannot be settled keeps nobody from settling the others.
                Err(failure) => {
                    let notes = vec![failure.message().to_owned()];
                    failed.get_or_insert(failure);
                    Reconciled { outcome: RecoveryOutcome::Failed, notes, ..busy() }
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
