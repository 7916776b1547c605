//! Recovery: what a crash left unfinished is looked at and brought to an end, forward or back, and the ledger
//! says which. Here is decided whose turn it is; what becomes of an effect is said in
//! [`cut_off`](crate::task::effect::cut_off).
//!
//! Whoever holds an action's locks is alive; an unfinished action whose locks are free belongs to nobody any
//! more. Every command that writes does this first; `recover` does it on demand.

use crate::domain::delivery::decision::Word;
use crate::domain::ledger::action::{ActionState, Actor};
use crate::domain::ledger::objects::{Reconciled, RecoveryOutcome, UnfinishedRow};
use crate::domain::ledger::record::Record;
use crate::error::{Code, Failure, Result};
use crate::store::Ledger;
use crate::store::lock::LockGuard;
use crate::task::action::RunningAction;
use crate::task::effect::CutOff;
use crate::task::effect::cut_off::{Ground, UnfinishedEffect};
use crate::task::view::load;
use crate::task::{Session, hooks};

/// Before a command changes a task, whose lock it holds. Refused while it is not known what became of an
/// effect of that task.
pub fn before_writing(session: &Session, task: &str) -> Result<()> {
    as_far_as_known(session, task)?.map_or(Ok(()), Err)
}

/// Likewise, but what stays unknown is given back and refuses nothing.
pub fn as_far_as_known(session: &Session, task: &str) -> Result<Option<Failure>> {
    let Some(ledger) = session.ledger()? else { return Ok(None) };
    let unfinished = ledger.unfinished()?;
    if unfinished.is_empty() {
        return Ok(None);
    }
    let delivery = LockGuard::try_acquire(&session.layout.delivery_lock())?;
    let mut unknown = None;
    for row in unfinished {
        let open = match Ground::of_action(&ledger, &row) {
            Ground::Ref if row.task.as_deref() == Some(task) => {
                reconcile(session, &row.action)?.and_then(|(_, open)| open)
            }
            ground => settle(session, task, delivery.is_some(), (&row, ground))?,
        };
        unknown = unknown.or(open);
    }
    Ok(unknown)
}

/// Before a command writes to the live tree: it holds the delivery lock and its task's.
pub fn before_delivering(session: &Session, task: &str, _delivery: &LockGuard) -> Result<()> {
    let Some(ledger) = session.ledger()? else { return Ok(()) };
    for row in ledger.unfinished()? {
        let ground = Ground::of_action(&ledger, &row);
        settle(session, task, true, (&row, ground))?.map_or(Ok(()), Err)?;
    }
    Ok(())
}

/// Before the live tree is taken as a base: what a crashed delivery left in it is no work of the user's.
/// Other actions are left alone.
pub fn before_capturing(session: &Session, delivery: &LockGuard) -> Result<()> {
    let nobody = "";
    before_delivering(session, nobody, delivery)
}

/// Reconciles one unfinished action if it is nobody's: a delivery of whichever task, anything else of the own
/// task only. The failure: it is the own task's, and nobody can say what became of it.
fn settle(
    session: &Session,
    own: &str,
    delivery_is_ours: bool,
    (row, ground): (&UnfinishedRow, Ground),
) -> Result<Option<Failure>> {
    let mine = row.task.as_deref() == Some(own);
    let _lock = match (ground, &row.task) {
        // What moves a ref is its own task's alone: others do not wait until a remote answers.
        (Ground::Ref, _) => return Ok(None),
        (Ground::OwnTask, _) if mine => None,
        (Ground::LiveTree, _) if mine && delivery_is_ours => None,
        // It belongs to no task.
        (Ground::LiveTree, None) if delivery_is_ours => None,
        (Ground::LiveTree, Some(task)) if !mine && delivery_is_ours => {
            let Some(lock) = LockGuard::try_acquire(&session.layout.task_lock(task))? else {
                return Ok(None);
            };
            Some(lock)
        }
        (Ground::OwnTask | Ground::LiveTree, _) => return Ok(None),
    };
    match reconcile(session, &row.action) {
        // What cannot be put in order stops its own task and no other. Only whoever takes the live tree as a
        // base would take a half written delivery for somebody's work.
        Err(_) if !mine && !own.is_empty() => Ok(None),
        // What a person has to say of another task keeps nobody from working on this one.
        found => Ok(found?.and_then(|(_, open)| open).filter(|_| mine)),
    }
}

/// The caller holds the locks of the action. Gives what was found out, and the failure where nobody can tell;
/// `None` where the action has ended meanwhile.
pub fn reconcile(session: &Session, action: &str) -> Result<Option<(Reconciled, Option<Failure>)>> {
    let Some((mut cut, rows)) = CutOff::take_up(session, action)? else { return Ok(None) };
    let effect = UnfinishedEffect::read_rows(&rows, cut.view())?;
    let is_delivery = effect.is_delivery();
    let unknown = effect.resume(&mut cut)?;
    // A delivery, or its reversal, that was brought to its end here ends its task as any other.
    let completed = is_delivery && cut.found.outcome == RecoveryOutcome::Completed;
    if let Some(task) = cut.found.task.as_ref().filter(|_| completed) {
        let ledger = session.ledger().ok().flatten();
        let view = ledger.as_ref().and_then(|ledger| load(ledger, task).ok().flatten());
        if let (Some(ledger), Some(view)) = (ledger, view) {
            hooks::after_task(session, &ledger, &view);
        }
    }
    Ok(Some((cut.found, unknown)))
}

/// For whoever must not write: refuses (`outcome.unknown`) where a delivery is unfinished, so that nobody
/// knows what the live tree holds.
pub fn refuse_unfinished(session: &Session) -> Result<()> {
    let Some(ledger) = session.ledger()? else { return Ok(()) };
    // What moves a ref writes no tree, and is asked about where it is asked for.
    let writes_a_tree = |row: &UnfinishedRow| Ground::of_action(&ledger, row) == Ground::LiveTree;
    let Some(UnfinishedRow { action, task, tool }) = ledger.unfinished()?.into_iter().find(writes_a_tree)
    else {
        return Ok(());
    };
    let task = task.unwrap_or_default();
    let text =
        format!("`{tool}` of {task} was cut off, or is under way: what the live tree holds is not known yet");
    Err(Failure::new(Code::OutcomeUnknown, text)
        .subject(task)
        .reference(action)
        .remedy("Put it in order, then ask again.", ["git", "tender", "recover"]))
}

/// Ends an effect that nobody can find out about, on a person's word. The caller has made sure that it is a
/// person's.
pub fn decide_by_person(ledger: &mut Ledger, person: Actor, action: &str, word: Word) -> Result<()> {
    let entries = ledger.action(action)?;
    let last = entries.last().ok_or_else(|| Failure::internal("an action without rows"))?;
    let done = UnfinishedEffect::read_rows(&entries, None)?.decide(action)?;
    let (end, record) = match word {
        Word::Yes => (ActionState::Succeeded, done.on_a_persons_word()),
        Word::No => {
            let text = "a person said that it did not take place".to_owned();
            (ActionState::SafeToRetry, Record::Done { text })
        }
    };
    RunningAction::resume(last).decided(ledger, person, end, &record).map(|_| ())
}

#[cfg(test)]
mod tests {
    use crate::task::effect::patch::tests::Place;
    use crate::task::recover::*;

    /// The list of the unfinished is read before the locks are had.
    #[test]
    fn an_action_that_its_owner_ended_meanwhile_is_left_alone() {
        let place = Place::new();
        let rows = || place.session.ledger().expect("opens").expect("there").entries(None).expect("reads");
        let before = rows();
        let ended = before.last().expect("the task was opened");
        assert!(ended.state.is_final());
        assert!(reconcile(&place.session, &ended.action).expect("no failure").is_none());
        assert_eq!(rows().len(), before.len());
    }
}
