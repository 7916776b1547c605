//! Budgets in force: where a task stands within its family, who is refused once one is spent, and the meter
//! of a run.
//!
//! The meter reserves what a run may use slice by slice, each in one transaction with the look at the whole
//! family, and stops the run where there is no further slice. So runs of several sub-tasks side by side
//! cannot use the same rest twice, and what a crash cuts off is known to a slice.

use crate::domain::ledger::action::Actor;
use crate::domain::ledger::charges::{Spent, Standing};
use crate::domain::ledger::record::Record;
use crate::domain::ledger::report::word_of;
use crate::domain::ledger::task::{TaskView, candidate_state};
use crate::domain::proof::judge::NEVER_RUN;
use crate::domain::proof::verdict::{Row, Verdict};
use crate::error::{Code, Failure, Result};
use crate::store::Ledger;
use crate::task::family::attach;
use crate::task::held::TaskWrite;
use crate::task::view::load;
use crate::task::{Session, evidence};

/// Refuses whoever is no person once the budget is spent, and anybody once the task is being cancelled.
pub fn require_left(task: &TaskWrite<'_>) -> Result<()> {
    task.require_wanted()?;
    if is_a_person(task.session) {
        return Ok(());
    }
    if let Some(repeated) = task.view.refuse_repetition() {
        return Err(repeated);
    }
    task.view.spent_budget().map_or(Ok(()), |spent| Err(exhausted(task, &spent)?))
}

/// The same for a call that was charged on arrival: whoever has asked for more since then takes nothing of it
/// away.
pub fn require_left_for_charged(task: &TaskWrite<'_>) -> Result<()> {
    match task.view.refuse_repetition() {
        Some(repeated) => Err(repeated),
        None => task.view.spent_for_runs().map_or(Ok(()), |spent| Err(exhausted(task, &spent)?)),
    }
}

/// The refusal of everything that would use more, with the candidate that is kept.
pub fn exhausted(task: &TaskWrite<'_>, spent: &Spent) -> Result<Failure> {
    let Some(last) = task.view.candidates.last() else {
        return Ok(spent.refuse_more("there is no candidate yet"));
    };
    let evidence = evidence::counting_for(&task.ledger, &task.view)?;
    let state =
        word_of(&candidate_state(&evidence::current_rows(&task.session.blobs(), &task.view, &evidence)?));
    let number = last.value.candidate;
    let refusal = spent.refuse_more(&format!("candidate {number} is kept ({})", state.replace('_', " ")));
    Ok(refusal.detail("candidate", number).detail("candidateState", state))
}

/// Somebody at a terminal, or the standing consent of the repository's owner.
pub fn is_a_person(session: &Session) -> bool {
    session.actor == Actor::User || session.person.has_consented()
}

/// The most bytes that the task's next candidate may have.
pub fn artifact_bytes(view: &TaskView) -> u64 {
    view.standing.as_ref().map_or(0, Standing::artifact_bytes)
}

/// Whether a candidate still fits beside those of the family, within the transaction that records it: others
/// may have captured meanwhile.
pub fn still_fits(ledger: &Ledger, task: &str, record: &Record) -> Result<()> {
    let (Record::Captured { candidate, .. }, Some(mut view)) = (record, load(ledger, task)?) else {
        return Ok(());
    };
    attach(ledger, &mut view)?;
    let (most, bytes) = (artifact_bytes(&view), candidate.artifact_bytes);
    if bytes <= most {
        return Ok(());
    }
    let text = format!(
        "the changed files come to {bytes} bytes; beside the candidates of its family {most} are left"
    );
    Err(Failure::new(Code::BudgetExhausted, text)
        .subject(task)
        .expected(most, bytes)
        .detail("budget", "artifactBytes"))
}

/// Says of rows for which nothing ran that the budget is why.
pub fn explain(view: &TaskView, rows: &mut [Row]) {
    let Some(spent) = view.spent_budget() else { return };
    for row in rows.iter_mut().filter(|row| row.verdict == Verdict::NotRun) {
        if row.reason.as_deref() == Some(NEVER_RUN) {
            row.reason = Some(format!("not run: {}", spent.budget_sentence()));
        }
    }
}
