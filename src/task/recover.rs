//! Recovery: what a crash left unfinished is looked at and brought to an end, forward or back, and the ledger
//! says which.
//!
//! Whoever holds an action's locks is alive; an unfinished action whose locks are free belongs to nobody any
//! more. Every command that writes does this first; `recover` does it on demand.

use crate::domain::delivery::decision::{Decision, Word};
use crate::domain::delivery::receipt::{Outcome, Receipt, Staged};
use crate::domain::ledger::action::{ActionState, Actor, writes_live_tree};
use crate::domain::ledger::entry::Entry;
use crate::domain::ledger::objects::{Reconciled, RecoveryOutcome};
use crate::domain::ledger::record::{Planned, Rebased, Record};
use crate::domain::ledger::task::TaskView;
use crate::error::presence::is_folder;
use crate::error::{Code, Failure, Result};
use crate::git::apply::recover::{Reached, Recovered, UnfinishedDelivery, recover_delivery};
use crate::store::Ledger;
use crate::store::lock::LockGuard;
use crate::task::action::RunningAction;
use crate::task::effect::refs;
use crate::task::journal::{DeliveryFacts, LedgerJournal, WriteEnd};
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
    for (action, of, tool) in unfinished {
        if of.as_deref() == Some(task) && moves_a_ref(&ledger, &action)? {
            let (reconciled, open) = refs::settle(session, &action)?;
            tell(session, &reconciled);
            unknown = unknown.or(open);
        } else {
            match settle(session, task, delivery.is_some(), (&action, of.as_deref(), &tool)) {
                Err(failure) if failure.code() == Code::DecisionRequired => {
                    unknown = unknown.or(Some(failure))
                }
                other => other?,
            }
        }
    }
    Ok(unknown)
}

/// True for an action that moves a ref: it needs no lock but its task's, and it may have to ask others.
pub fn moves_a_ref(ledger: &Ledger, action: &str) -> Result<bool> {
    Ok(refs::planned(&ledger.action(action)?).is_some())
}

/// Before a command writes to the live tree: it holds the delivery lock and its task's.
pub fn before_delivering(session: &Session, task: &str, _delivery: &LockGuard) -> Result<()> {
    let Some(ledger) = session.ledger()? else { return Ok(()) };
    for (action, of, tool) in ledger.unfinished()? {
        settle(session, task, true, (&action, of.as_deref(), &tool))?;
    }
    Ok(())
}

/// Before the live tree is taken as a base: what a crashed delivery left in it is no work of the user's.
/// Other actions are left alone.
pub fn before_capturing(session: &Session, _delivery: &LockGuard) -> Result<()> {
    let Some(ledger) = session.ledger()? else { return Ok(()) };
    for (action, of, tool) in ledger.unfinished()?.into_iter().filter(|(.., tool)| writes_live_tree(tool)) {
        let nobody = "";
        settle(session, nobody, true, (&action, of.as_deref(), &tool))?;
    }
    Ok(())
}

/// Reconciles one unfinished action if it is nobody's: a delivery of whichever task, anything else of the own
/// task only.
fn settle(
    session: &Session,
    own: &str,
    delivery_is_ours: bool,
    (action, task, tool): (&str, Option<&str>, &str),
) -> Result<()> {
    // What moves a ref is its own task's alone: others do not wait until a remote answers.
    if session.ledger()?.is_some_and(|ledger| moves_a_ref(&ledger, action).unwrap_or(false)) {
        return Ok(());
    }
    let mine = task == Some(own);
    let other = match task {
        Some(task) if !mine && writes_live_tree(tool) => {
            LockGuard::try_acquire(&session.layout.task_lock(task))?
        }
        _ => None,
    };
    let live = writes_live_tree(tool) && delivery_is_ours && (mine || other.is_some());
    if !live && (!mine || writes_live_tree(tool)) {
        return Ok(());
    }
    match reconcile(session, action) {
        // What cannot be put in order, or waits for a person, stops its own task and no other. Only whoever
        // takes the live tree as a base would take a half written delivery for somebody's work.
        Err(failure) if !mine && (!own.is_empty() || failure.code() == Code::DecisionRequired) => Ok(()),
        other => other.map(|_| ()),
    }
}

/// The caller holds the locks of the action. `None` where whoever had them before has ended it meanwhile: the
/// list of the unfinished was read without them.
pub fn reconcile(session: &Session, action: &str) -> Result<Option<Reconciled>> {
    let mut ledger = Ledger::create(&session.layout)?;
    let entries = ledger.action(action)?;
    let no_rows = || {
        let message = format!("the ledger is damaged: the unfinished action {action} has no rows");
        Failure::new(Code::StoreCorrupt, message).subject(action)
    };
    let last = entries.last().ok_or_else(no_rows)?.clone();
    if last.state.is_final() {
        return Ok(None);
    }
    if refs::planned(&entries).is_some() {
        let (reconciled, _) = refs::settle(session, action)?;
        tell(session, &reconciled);
        return Ok(Some(reconciled));
    }
    let mut resumed = RunningAction::resume(&last);
    let mut reconciled = Reconciled::new(&last);
    let view = last.task.as_deref().map(|task| load(&ledger, task)).transpose()?.flatten();
    let (planned, mut unfinished) = unfinished(&entries)?;
    if let (Some(view), Some(unfinished)) = (&view, &mut unfinished) {
        view.bring_plan_up_to_date(&mut unfinished.plan);
    }
    let rebasing = planned_rebase(&entries, view.as_ref())?;
    resumed.reconcile(&mut ledger)?;
    match (unfinished, rebasing) {
        (unfinished, Some(rebased)) => {
            let rebase = super::effect::advance::resume;
            if rebase(session, &mut ledger, &mut resumed, rebased, unfinished.as_ref())? {
                reconciled.outcome = RecoveryOutcome::Completed;
            }
        }
        (None, None) => {
            let text = "it was cut off and had no effect of its own".to_owned();
            resumed.safe_to_retry(&mut ledger, &Record::Done { text })?;
        }
        (Some(unfinished), None) if last.tool == crate::tools::apply_patch::NAME => {
            let resume = crate::task::effect::patch::resume;
            let worker = entries[0].result.get("worker").and_then(|worker| worker.as_str());
            let worker = worker.unwrap_or_default().to_owned();
            (reconciled.outcome, reconciled.kept) =
                resume(session, &mut ledger, &mut resumed, &unfinished, worker)?;
        }
        (Some(unfinished), _) if !is_folder(&unfinished.plan.top)? => {
            let decision = whether_delivered(&last.tool, &unfinished);
            resumed.need_decision(&mut ledger, &decision)?;
            return Err(decision.require_answer(last.task.as_deref().unwrap_or_default(), action));
        }
        (Some(mut unfinished), _) => {
            if unfinished.reached == Reached::Begun && is_elsewhere(session, &ledger, last.task.as_deref())? {
                unfinished.reached = Reached::TakingBack;
            }
            finish(session, &mut ledger, &mut resumed, planned, &unfinished, &mut reconciled)?
        }
    }
    tell(session, &reconciled);
    Ok(Some(reconciled))
}

/// What a rebase was about to do, with places where the repository is now.
fn planned_rebase(entries: &[Entry], view: Option<&TaskView>) -> Result<Option<Rebased>> {
    let rebasing = records(entries)?.into_iter().find_map(|record| match record {
        Record::Rebasing(rebased) => Some(*rebased),
        _ => None,
    });
    Ok(rebasing.map(|rebased| match view {
        Some(view) => Rebased { opened: view.bring_up_to_date(rebased.opened.clone()), ..rebased },
        None => rebased,
    }))
}

/// True where another branch is checked out than the task was opened on: nobody has agreed to a change of
/// that one, so that nothing goes on there.
fn is_elsewhere(session: &Session, ledger: &Ledger, task: Option<&str>) -> Result<bool> {
    let Some(view) = task.map(|task| load(ledger, task)).transpose()?.flatten() else { return Ok(false) };
    let opened = view.opened_terms()?;
    Ok(session.live_repository(opened)?.current_branch()? != opened.home.branch)
}

/// For whoever must not write: refuses (`outcome.unknown`) where a delivery is unfinished, so that nobody
/// knows what the live tree holds.
pub fn refuse_unfinished(session: &Session) -> Result<()> {
    let Some(ledger) = session.ledger()? else { return Ok(()) };
    // What moves a ref writes no tree, and is asked about where it is asked for.
    let writes_a_tree = |(action, _, tool): &(String, Option<String>, String)| {
        writes_live_tree(tool) && !moves_a_ref(&ledger, action).unwrap_or(false)
    };
    let Some((action, task, tool)) = ledger.unfinished()?.into_iter().find(writes_a_tree) else {
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

/// A delivery, or its reversal, that was brought to its end here ends its task as any other.
fn tell(session: &Session, reconciled: &Reconciled) {
    let completed = reconciled.outcome == RecoveryOutcome::Completed;
    if let Some(task) = reconciled.task.as_ref().filter(|_| completed && writes_live_tree(&reconciled.tool)) {
        let ledger = session.ledger().ok().flatten();
        let view = ledger.as_ref().and_then(|ledger| load(ledger, task).ok().flatten());
        if let (Some(ledger), Some(view)) = (ledger, view) {
            hooks::after_task(session, &ledger, &view);
        }
    }
}

/// The tree that a delivery was writing to is gone, so nobody can look.
fn whether_delivered(tool: &str, unfinished: &UnfinishedDelivery) -> Decision {
    let top = unfinished.plan.top.display();
    Decision::new(
        format!("`{tool}` was cut off while it wrote to {top}: did it take place?"),
        "it counts as done; nothing more is written, and temporary files named .tender-… may be left there",
        "it counts as not done and can be run again; temporary files named .tender-… may be left there",
        format!("{top} is gone; where it comes back, the next command looks for itself"),
    )
}

/// Ends an effect that nobody can find out about, on a person's word. The caller has made sure that it is a
/// person's.
pub fn decide_by_person(ledger: &mut Ledger, person: Actor, action: &str, word: Word) -> Result<()> {
    let entries = ledger.action(action)?;
    let last = entries.last().ok_or_else(|| Failure::internal("an action without rows"))?;
    let done = match (refs::planned(&entries), unfinished(&entries)?) {
        (Some(publishing), _) => publishing.end_record(),
        (None, (Some(planned), Some(unfinished))) => {
            let staged = unfinished.staged.unwrap_or_else(Staged::nothing_staged);
            planned.end_record(Receipt::new(&unfinished.plan, &staged, &[], unfinished.outcome))
        }
        _ => return Err(Failure::internal(format!("nothing about the action {action} can be decided"))),
    };
    let (end, record) = match word {
        Word::Yes => (ActionState::Succeeded, done.on_a_persons_word()),
        Word::No => {
            let text = "a person said that it did not take place".to_owned();
            (ActionState::SafeToRetry, Record::Done { text })
        }
    };
    RunningAction::resume(last).decided(ledger, person, end, &record).map(|_| ())
}

/// What the ledger says of a delivery that did not end; `None` where it had not planned anything.
fn unfinished(entries: &[Entry]) -> Result<(Option<Box<Planned>>, Option<UnfinishedDelivery>)> {
    let (mut planned, mut staged): (Option<Box<Planned>>, _) = (None, None);
    let mut reached = Reached::Begun;
    for record in records(entries)? {
        match record {
            Record::Planned(found) => (planned, staged, reached) = (Some(found), None, Reached::Begun),
            Record::Staged(found) => staged = Some(*found),
            Record::InPlace => reached = Reached::InPlace,
            Record::TakingBack => reached = Reached::TakingBack,
            Record::TakenBack { later } => reached = Reached::TakenBack(later),
            // The last note of a change of the worktree; of anything else it is the end of the action, which
            // is not unfinished then.
            Record::Done { .. } => reached = Reached::Done,
            _ => {}
        }
    }
    let unfinished = planned.as_ref().map(|planned| UnfinishedDelivery {
        plan: planned.plan.clone(),
        staged,
        reached,
        outcome: if planned.undoes { Outcome::Reverted } else { Outcome::Applied },
    });
    Ok((planned, unfinished))
}

fn records(entries: &[Entry]) -> Result<Vec<Record>> {
    let read = |entry: &Entry| {
        serde_json::from_value(entry.result.clone()).map_err(|e| {
            Failure::new(
                Code::StoreCorrupt,
                format!("row {} holds a record that cannot be read: {e}", entry.seq),
            )
        })
    };
    entries.iter().filter(|entry| entry.result.get("record").is_some()).map(read).collect()
}

fn finish(
    session: &Session,
    ledger: &mut Ledger,
    action: &mut RunningAction,
    planned: Option<Box<Planned>>,
    unfinished: &UnfinishedDelivery,
    reconciled: &mut Reconciled,
) -> Result<()> {
    let end = WriteEnd::Delivery { facts: DeliveryFacts::default(), planned };
    let mut journal = LedgerJournal { ledger, action, end, open: true };
    let environment = session.repository.environment();
    match session.with_keeper(|keeper| recover_delivery(environment, unfinished, &mut journal, keeper))? {
        Recovered::Completed { receipt, later } => {
            reconciled.outcome = RecoveryOutcome::Completed;
            reconciled.kept = later;
            reconciled.notes = receipt.note_sentences();
        }
        Recovered::TakenBack { later, notes, because } => {
            reconciled.outcome = RecoveryOutcome::TakenBack;
            reconciled.notes = notes
                .iter()
                .flat_map(|(path, notes)| notes.iter().map(move |note| note.sentence_about(path)))
                .collect();
            reconciled.notes.extend(because.map(|failure| failure.message().to_owned()));
            reconciled.kept.clone_from(&later);
            action.safe_to_retry(ledger, &Record::TakenBack { later })?;
        }
    }
    Ok(())
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
