//! A task as the object that whoever opened it gets, and gets again.

use super::terms::verifiers_of_base;
use super::{Session, evidence};
use crate::domain::contract::Contract;
use crate::domain::ledger::brought::Brought;
use crate::domain::ledger::record::Opened;
use crate::domain::ledger::report::TaskObject;
use crate::domain::ledger::task::TaskState;
use crate::error::Result;
use crate::verifier::Verifiers;

/// A task that is there already, as it was shown when it was opened.
pub fn known_task_object(session: &Session, task: &str) -> Result<TaskObject> {
    let (ledger, view) = session.view(Some(task))?;
    let opened = view.opened_terms()?;
    let evidence = evidence::counting_for(&ledger, &view)?;
    let rows = evidence::current_rows(&session.blobs(), &view, &evidence)?;
    let manual = manual_requirements(&opened.contract, &verifiers_of_base(session, opened)?);
    Ok(task_object(&view.id, view.state_with(&rows), opened, manual, Vec::new()))
}

/// The object that a task is shown as.
pub fn task_object(
    task: &str,
    state: TaskState,
    opened: &Opened,
    manual: Vec<String>,
    notes: Vec<String>,
) -> TaskObject {
    TaskObject {
        schema: "git-tender/task/v1".to_owned(),
        task_id: task.to_owned(),
        kind: opened.contract.kind.as_str().to_owned(),
        state,
        contract: opened.seal.clone(),
        base: opened.base.clone(),
        worktree: opened.worktree.clone(),
        lacks: opened.lacks.clone(),
        brought: opened.brought.as_ref().map(Brought::shown_object),
        narrowed: opened.narrowed.clone(),
        manual,
        notes,
    }
}

/// Requirements that only a person can attest, because nobody has a verifier for them.
pub fn manual_requirements(contract: &Contract, verifiers: &Verifiers) -> Vec<String> {
    let forbidden = &contract.verification.forbidden;
    let by_hand = |id: &String| verifiers.is_manual(id) && !forbidden.contains(id);
    contract.requirements.iter().filter(|r| by_hand(&r.verifier)).map(|r| r.id.clone()).collect()
}
