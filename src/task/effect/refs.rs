//! Deliveries that move a ref: `branch` and `push`, their reversal, and what becomes of one whose answer was
//! lost.
//!
//! The plan is in the ledger before anything happens, with all that a retry or recovery needs. A ref moves
//! only from what we delivered there last. An answer that did not come is never taken for a refusal: the ref
//! is looked at, and where nobody can be asked the action stays unknown, and nothing is sent again until
//! somebody knows.

mod remote;

use crate::domain::change::patch::{Candidate, manifest_sha256};
use crate::domain::contract::Contract;
use crate::domain::contract::terms::{default_branch, message_of_goal};
use crate::domain::delivery::Clearance;
use crate::domain::delivery::publication::{CommitPlan, Identity, LEDGER_TRAILER, Publication, Standing};
use crate::domain::delivery::publishing::Publishing;
use crate::domain::delivery::receipt::{Outcome, Receipt};
use crate::domain::ledger::action::ActionState;
use crate::domain::ledger::entry::Entry;
use crate::domain::ledger::objects::RecoveryOutcome;
use crate::domain::ledger::record::{Opened, Record};
use crate::domain::ledger::report::DeliveryObject;
use crate::domain::ledger::task::TaskState;
use crate::domain::value::digest::{ObjectId, Sha256};
use crate::error::{Code, Failure, Result};
use crate::git::command::STDERR;
use crate::git::push::PushTarget;
use crate::git::{Repository, branch, keep};
use crate::store::Ledger;
use crate::store::lock::LockGuard;
use crate::task::action::RunningAction;
use crate::task::effect::{CutOff, Write, choice_lines};
use crate::task::held::TaskWrite;
use crate::task::{Session, view};
use remote::Asked;

/// What has to be known before a task is opened that will move a ref: who commits, and that there is a
/// remote.
pub fn before_opening(repository: &Repository, contract: &Contract) -> Result<Option<Identity>> {
    if !contract.delivery.publishes() {
        return Ok(None);
    }
    if contract.delivery.needs_remote() {
        PushTarget::find_remote(repository, contract.terms.remote.as_deref())?;
    }
    let known = branch::committer_identity(repository)?;
    known.map(Some).ok_or_else(|| {
        let mode = contract.delivery.as_str();
        Failure::new(
            Code::NotFound,
            format!("git knows neither a name nor an address for the commit of the mode `{mode}`"),
        )
        .subject("user.name")
        .remedy(
            "Set user.name and user.email, then open the task.",
            ["git", "config", "user.name", "Your Name"],
        )
    })
}

/// What came of moving a ref.
#[derive(Debug)]
enum Moved {
    /// It took place; what else to know.
    Done(Vec<String>),
    /// It was refused, so that nothing changed.
    Refused(Failure),
    /// The answer was lost, and the ref was looked at: it has not arrived. What was sent may still be under
    /// way.
    Nothing(Failure),
    Unknown(Failure),
}

/// Delivers a cleared candidate onto a branch, here or on a remote. `action` is dispatched.
pub fn carry_out(
    task: &mut TaskWrite<'_>,
    mut action: RunningAction,
    clearance: &Clearance,
    evidence: Vec<String>,
    write: Write,
) -> Result<DeliveryObject> {
    let publishing = match plan(task, clearance, evidence, write) {
        Ok(publishing) => publishing,
        Err(failure) => return Err(action.fail(&mut task.ledger, failure)),
    };
    let id = task.view.id.clone();
    if write == Write::DryRun {
        if let Err(failure) = would_move(task, &publishing) {
            return Err(action.fail(&mut task.ledger, failure));
        }
        return end_preview(task, action, publishing);
    }
    let mode = publishing.publication.mode;
    let receipt = publish(task, action, publishing)?;
    Ok(DeliveryObject::new(&id, TaskState::Completed, mode, &receipt))
}

/// Ends an action that only compared.
fn end_preview(
    task: &mut TaskWrite<'_>,
    mut action: RunningAction,
    publishing: Publishing,
) -> Result<DeliveryObject> {
    let text = "compared with the branch; nothing was written".to_owned();
    action.succeed(&mut task.ledger, &Record::Done { text })?;
    let paths = publishing.receipt.paths.into_iter();
    let paths = paths.map(|path| (path.change.path, Outcome::WouldApply)).collect();
    Ok(DeliveryObject::previewed_delivery(&task.view.id, publishing.publication.mode, paths)
        .with_publication(Some(&publishing.publication)))
}

/// Reverses what a receipt says was published: the ref goes back to what it named before, or away. `action`
/// is dispatched.
pub fn undo(
    task: &mut TaskWrite<'_>,
    mut action: RunningAction,
    receipt: &Receipt,
    write: Write,
) -> Result<DeliveryObject> {
    let id = task.view.id.clone();
    let published = receipt.publication.as_deref();
    let published = published.ok_or_else(|| Failure::internal("a receipt without the ref that was moved"))?;
    let changes = receipt.reversed_changes();
    let publishing = Publishing {
        publication: published.reverse_publication(),
        commit: None,
        push_options: Vec::new(),
        receipt: Receipt::of_changes(&id, manifest_sha256(&changes), &changes, Outcome::Reverted),
        evidence: Vec::new(),
        undoes: true,
    };
    if !publishing.is_sent()
        && let Err(failure) = may_move(&task.session.repository, &publishing.publication, &id)
    {
        return Err(action.fail(&mut task.ledger, failure));
    }
    if write == Write::DryRun {
        let preview = end_preview(task, action, publishing)?;
        return Ok(DeliveryObject { state: TaskState::Completed, ..preview });
    }
    let mode = publishing.publication.mode;
    let receipt = publish(task, action, publishing)?;
    Ok(DeliveryObject::new(&id, TaskState::Undone, mode, &receipt))
}

/// Everything that can be known and refused before anything is moved. The commit is made in the quarantine,
/// but for a dry run.
fn plan(
    task: &TaskWrite<'_>,
    clearance: &Clearance,
    evidence: Vec<String>,
    write: Write,
) -> Result<Publishing> {
    let (session, id) = (task.session, task.view.id.as_str());
    let opened = task.view.opened_terms()?;
    let candidate = &task.view.last_candidate()?.value;
    clearance.require_manifest(candidate.patch.manifest_sha256)?;
    let terms = &opened.contract.terms;
    let mode = opened.contract.delivery;
    let target = || PushTarget::find_remote(&session.repository, terms.remote.as_deref());
    let remote = if mode.needs_remote() { Some(target()?.remote) } else { None };
    let branch = terms.branch.clone().unwrap_or_else(|| default_branch(id));
    let mut publication = Publication { mode, branch, remote, new: None, old: None, notes: Vec::new() };
    nobody_else_is_at_it(session, &task.ledger, id, &publication)?;
    place_lease(task, &mut publication)?;
    if publication.remote.is_none() {
        may_move(&session.repository, &publication, id)?;
    }
    let commit = commit_plan(task, opened, candidate, &evidence)?;
    if write == Write::Yes {
        publication.new = Some(branch::make_commit(&session.repository, &session.quarantine(id), &commit)?);
    }
    let manifest = candidate.patch.manifest_sha256;
    Ok(Publishing {
        publication,
        commit: Some(commit),
        push_options: terms.push_options.clone(),
        receipt: Receipt::of_changes(id, manifest, &candidate.changes, Outcome::Applied),
        evidence,
        undoes: false,
    })
}

/// Fixes what the ref has to name: what was delivered there last. A ref that is gone since is nobody's, and
/// made anew; an earlier attempt that arrived after all is ours.
fn place_lease(task: &TaskWrite<'_>, publication: &mut Publication) -> Result<()> {
    let key = publication.target_key();
    let former = delivered_last(&task.ledger, &key)?;
    let late =
        task.view.late.iter().map(|(_, sent)| &sent.publication).filter(|sent| sent.target_key() == key);
    let late: Vec<&ObjectId> = late.filter_map(|sent| sent.new.as_ref()).collect();
    if former.is_none() && late.is_empty() {
        return Ok(());
    }
    let there = match &publication.remote {
        None => branch::resolve_commit(&task.session.repository, &publication.ref_name())?,
        // Where it cannot be asked the push will find out.
        Some(_) => remote::object_there(task.session, task.view.opened_terms()?, publication)
            .unwrap_or_else(|_| former.clone()),
    };
    match (there, former) {
        (Some(there), _) if late.contains(&&there) => publication.old = Some(there),
        (Some(_), former) => publication.old = former,
        (None, None) => {}
        (None, Some(former)) => {
            let place = publication.place_name();
            let note =
                format!("{place} had been deleted since {former} was delivered there; it was made anew");
            publication.notes.push(note);
        }
    }
    Ok(())
}

/// What the last of our deliveries to a place, or its reversal, left there.
fn delivered_last(ledger: &Ledger, key: &Sha256) -> Result<Option<ObjectId>> {
    let last = ledger.entries_with_key(key)?.pop();
    let record = last.and_then(|entry| Record::from_row(&entry).ok());
    let receipt = match record {
        Some(Record::Delivered(delivered)) => delivered.receipt,
        Some(Record::Undone(receipt)) => *receipt,
        _ => return Ok(None),
    };
    Ok(receipt.publication.and_then(|publication| publication.new))
}

/// While another task's delivery to the same place has no known end, a second one would blur both.
fn nobody_else_is_at_it(session: &Session, ledger: &Ledger, own: &str, wanted: &Publication) -> Result<()> {
    for row in ledger.unfinished()? {
        let Some(task) = row.task.filter(|task| task != own) else { continue };
        let is_there = |publishing: &Publishing| publishing.publication.target_key() == wanted.target_key();
        if !planned(&ledger.action(&row.action)?).is_some_and(|publishing| is_there(&publishing)) {
            continue;
        }
        let Some(_lock) = LockGuard::try_acquire(&session.layout.task_lock(&task))? else {
            let place = wanted.place_name();
            return Err(Failure::new(Code::StoreBusy, format!("the task {task} is delivering to {place}"))
                .subject(task));
        };
        let Some((mut cut, rows)) = CutOff::take_up(session, &row.action)? else { continue };
        let Some(publishing) = planned(&rows) else { continue };
        if let Some(failure) = resume(&mut cut, *publishing)? {
            return Err(failure.detail("task", task));
        }
    }
    Ok(())
}

/// The commit. Where an earlier attempt meant the same one it is that one, with its date and its id.
fn commit_plan(
    task: &TaskWrite<'_>,
    opened: &Opened,
    candidate: &Candidate,
    evidence: &[String],
) -> Result<CommitPlan> {
    let id = &task.view.id;
    let author = opened.author.clone().ok_or_else(|| {
        Failure::new(Code::StateInvalid, format!("the task {id} does not say who opened it"))
    })?;
    let mut trailers = vec![format!("Tender-Task: {id}"), format!("Tender-Contract: {}", opened.seal.sha256)];
    for record in evidence {
        let trailer = format!("Tender-Evidence: {record}");
        if !trailers.contains(&trailer) {
            trailers.push(trailer);
        }
    }
    trailers.extend(task.ledger.head()?.map(|head| format!("{LEDGER_TRAILER}: {head}")));
    let contract = &opened.contract;
    let text = contract.terms.message.clone().unwrap_or_else(|| message_of_goal(&contract.goal));
    let plan = CommitPlan {
        tree: candidate.tree.clone(),
        parent: opened.base.commit.clone(),
        author,
        date: now_to_the_second(),
        message: branch::message_with_trailers(task.session.repository.environment(), &text, &trailers)?,
    };
    let attempts = task.ledger.entries(Some(id))?;
    let mut attempts =
        attempts.iter().rev().filter_map(Publishing::from_entry).filter_map(|earlier| earlier.commit);
    Ok(attempts.find(|earlier| plan.means_same_commit(earlier)).unwrap_or(plan))
}

fn now_to_the_second() -> String {
    let now = crate::store::ledger::now();
    format!("{}Z", now.split(['.', 'Z']).next().unwrap_or_default())
}

/// A branch of this repository that is somebody's, or that somebody works on, stays.
fn may_move(repository: &Repository, publication: &Publication, task: &str) -> Result<()> {
    let reference = publication.ref_name();
    let there = branch::resolve_commit(repository, &reference)?;
    if publication.compare_ref(there.as_ref()) == Standing::Arrived
        && publication.new.is_none()
        && publication.old.is_some()
    {
        return Ok(());
    }
    if there != publication.old {
        return Err(publication.ref_conflict(there.as_ref(), task));
    }
    let Some(held) = branch::find_hold(repository, &reference)? else { return Ok(()) };
    let (reason, what) = match held {
        branch::BranchHold::In(place) => ("checked_out", format!("is checked out in {}", place.display())),
        branch::BranchHold::Symbolic(target) => ("symbolic", format!("stands for {target}")),
    };
    Err(Failure::new(
        Code::DeliveryConflict,
        format!("{} {what}, so it is not moved", publication.place_name()),
    )
    .subject(reference.clone())
    .expected("a branch that nobody works on", what)
    .detail("ref", reference)
    .detail("reason", reason)
    .remedy("Check another branch out there, then deliver again.", ["git", "worktree", "list"]))
}

/// What `deliver --dry-run` looks at.
fn would_move(task: &TaskWrite<'_>, publishing: &Publishing) -> Result<()> {
    let publication = &publishing.publication;
    if publication.remote.is_none() {
        return Ok(());
    }
    let there = remote::object_there(task.session, task.view.opened_terms()?, publication)?;
    if there == publication.old {
        Ok(())
    } else {
        Err(publication.ref_conflict(there.as_ref(), &task.view.id))
    }
}

/// Writes the plan down, brings the objects in, moves the ref, and writes down what came of it.
fn publish(
    task: &mut TaskWrite<'_>,
    mut action: RunningAction,
    mut publishing: Publishing,
) -> Result<Receipt> {
    let (session, id) = (task.session, task.view.id.clone());
    let opened = task.view.opened_terms()?.clone();
    action.note(&mut task.ledger, &Record::Publishing(Box::new(publishing.clone())))?;
    let new = publishing.publication.new.as_ref().filter(|_| !publishing.undoes);
    let brought = new.map_or(Ok(()), |new| {
        let quarantine = session.quarantine(&id);
        keep::bring_in(&session.repository, &quarantine, &id, keep::KeptRef::Last, new).map(drop)
    });
    let moved = match brought {
        Err(failure) => Moved::Refused(failure),
        Ok(()) if !publishing.is_sent() => move_branch(session, &id, &publishing),
        Ok(()) => remote::send(session, &opened, &publishing, &|| task.require_wanted().is_ok()),
    };
    match moved {
        Moved::Done(notes) => {
            publishing.publication.notes.extend(notes);
            action.succeed(&mut task.ledger, &publishing.end_record())?;
            view::catch_up(&task.ledger, &mut task.view)?;
            Ok(publishing.final_receipt())
        }
        Moved::Refused(failure) => Err(action.fail(&mut task.ledger, failure)),
        Moved::Nothing(failure) => {
            let failure = failure.reference(action.id());
            action.reconcile(&mut task.ledger)?;
            action
                .safe_to_retry(&mut task.ledger, &Record::Failure { failure: failure.clone(), cost: None })?;
            Err(failure)
        }
        Moved::Unknown(failure) => Err(action.lose(&mut task.ledger, failure)),
    }
}

fn move_branch(session: &Session, task: &str, publishing: &Publishing) -> Moved {
    let (repository, publication) = (&session.repository, &publishing.publication);
    let reference = publication.ref_name();
    let why = format!("git-tender: {} {task}", if publishing.undoes { "undo" } else { "deliver" });
    let set = branch::update_branch(
        repository,
        &reference,
        publication.old.as_ref(),
        publication.new.as_ref(),
        &why,
    );
    let refused = match set {
        Ok(Ok(())) => return Moved::Done(Vec::new()),
        Ok(Err(refused)) | Err(refused) => refused,
    };
    match branch::resolve_commit(repository, &reference) {
        Ok(there) => match publication.compare_ref(there.as_ref()) {
            Standing::Arrived => Moved::Done(Vec::new()),
            Standing::Foreign => Moved::Refused(publication.ref_conflict(there.as_ref(), task)),
            // Another branch whose name is a part of this one, or a lock that somebody else holds.
            Standing::Unchanged => Moved::Refused(not_movable(publication, &refused, task)),
        },
        Err(_) => Moved::Unknown(publishing.outcome_unknown(refused.message())),
    }
}

fn not_movable(publication: &Publication, refused: &Failure, task: &str) -> Failure {
    let said = refused.read_detail(&STDERR).unwrap_or_default();
    if !(said.contains("exists; cannot create") || said.contains("cannot lock ref")) {
        return Failure::new(
            Code::Io,
            format!("{} could not be moved: {}", publication.place_name(), refused.message()),
        )
        .subject(publication.ref_name());
    }
    Failure::new(Code::DeliveryConflict, format!("{} could not be moved: {said}", publication.place_name()))
        .subject(publication.ref_name())
        .expected(publication.old.as_ref(), said)
        .detail("ref", publication.ref_name())
        .detail("reason", "in_the_way")
        .remedy(
            "Rename the branch that is in the way, or deliver to another one.",
            ["git", "tender", "diff", task],
        )
}

/// The plan in an action's rows; `None` where it moves no ref, or did not come so far.
pub fn planned(entries: &[Entry]) -> Option<Box<Publishing>> {
    entries.iter().rev().find_map(Publishing::from_entry)
}

/// Looks what became of an unfinished action that moves a ref, and ends it where that can be told. The
/// failure: it cannot.
pub fn resume(cut: &mut CutOff<'_>, mut publishing: Publishing) -> Result<Option<Failure>> {
    let view = cut.view.as_ref();
    let opened =
        view.ok_or_else(|| Failure::internal("an action of a task that was not opened"))?.opened_terms()?;
    match remote::look_at_ref(cut.session, opened, &publishing) {
        Asked::Arrived(notes) => {
            publishing.publication.notes.extend(notes);
            cut.action.reconcile(&mut cut.ledger)?;
            cut.action.succeed(&mut cut.ledger, &publishing.end_record())?;
            cut.found.outcome = RecoveryOutcome::Completed;
            cut.found.notes = publishing.final_receipt().note_sentences();
        }
        Asked::Unchanged => {
            let text = if publishing.is_sent() {
                publishing.late_effect()
            } else {
                let place = publishing.publication.place_name();
                format!("{place} names what it named before: nothing took place")
            };
            cut.end_untouched(&text)?;
            cut.found.notes.push(text);
        }
        Asked::Foreign(there) => {
            let task = cut.found.task.as_deref().unwrap_or_default();
            let failure = publishing.publication.ref_conflict(there.as_ref(), task);
            cut.found.notes.push(failure.message().to_owned());
            cut.action.reconcile(&mut cut.ledger)?;
            cut.action.safe_to_retry(&mut cut.ledger, &Record::Failure { failure, cost: None })?;
        }
        Asked::Unknown(why) => {
            let mut failure = publishing.outcome_unknown(&why).reference(&cut.found.action);
            if cut.state == ActionState::Dispatched {
                failure = cut.action.lose(&mut cut.ledger, failure);
            }
            cut.found.outcome = RecoveryOutcome::Unknown;
            cut.found.notes = choice_lines(&failure);
            return Ok(Some(failure));
        }
    }
    Ok(None)
}

/// The record of its end, where a person says that it took place.
pub fn decide(publishing: &Publishing) -> Record {
    publishing.end_record()
}
