//! The live tree that a task belongs to: a delivery into it, its reversal, and what becomes of one that was
//! cut off.

use crate::domain::change::patch::{Candidate, Change};
use crate::domain::contract::DeliveryMode;
use crate::domain::delivery::conflict::{CONFLICTS, EDITED_MEANWHILE};
use crate::domain::delivery::decision::Decision;
use crate::domain::delivery::receipt::{Outcome, Receipt, Staged};
use crate::domain::delivery::remedy::{Tried, advise_on_conflicts};
use crate::domain::delivery::{
    Clearance, IndexRule, IndexState, IndexStep, Plan, plan_delivery, refuse_delivery,
};
use crate::domain::ledger::objects::RecoveryOutcome;
use crate::domain::ledger::record::{IndexDifference, Opened, Planned, Record};
use crate::domain::ledger::report::DeliveryObject;
use crate::domain::ledger::task::{TaskState, TaskView};
use crate::domain::value::digest::ObjectId;
use crate::domain::value::repo_path::RepoPath;
use crate::error::presence::is_folder;
use crate::error::{Code, Failure, Remedy, Result};
use crate::git::apply::recover::{Reached, Recovered, UnfinishedDelivery, recover_delivery};
use crate::git::apply::{self, Delivery};
use crate::git::{Quarantine, Repository, live};
use crate::store::{Blobs, Ledger};
use crate::task::Session;
use crate::task::action::RunningAction;
use crate::task::effect::{CutOff, Write, choice_lines};
use crate::task::held::TaskWrite;
use crate::task::journal::{DeliveryFacts, LedgerJournal, WriteEnd};
use std::collections::HashMap;
use std::path::Path;

/// What the index said of each of these paths when the base was fixed: what `open` recorded, or the base's
/// own state where that did not differ.
pub fn read_index_at_base(
    blobs: &Blobs,
    opened: &Opened,
    candidate: &Candidate,
    changes: &[Change],
) -> Result<Vec<IndexState>> {
    let stored: Vec<IndexDifference> = serde_json::from_slice(&blobs.get(&opened.index)?)
        .map_err(|e| Failure::new(Code::StoreCorrupt, format!("the recorded index cannot be read: {e}")))?;
    let differing: HashMap<&RepoPath, &IndexState> =
        stored.iter().map(|difference| (&difference.path, &difference.state)).collect();
    let base: HashMap<&RepoPath, &Change> =
        candidate.changes.iter().map(|change| (&change.path, change)).collect();
    let state = |path| match (base.get(path), differing.get(path)) {
        (None, _) => IndexState::Absent,
        (_, Some(state)) => (*state).clone(),
        (Some(change), None) => IndexState::from_tree_state(change.old.as_ref()),
    };
    Ok(changes.iter().map(|change| state(&change.path)).collect())
}

/// Whether the index changes with the files.
pub fn index_rule(opened: &Opened) -> IndexRule {
    if opened.effective.delivery.index_follows() { IndexRule::Follows } else { IndexRule::Stays }
}

/// A write to the live tree: from one tree of a candidate to the other.
#[derive(Debug)]
struct TreeWrite<'a> {
    session: &'a Session,
    /// The task, as it was opened.
    opened: &'a Opened,
    candidate: &'a Candidate,
    /// What changes, from what lies there to what will.
    changes: &'a [Change],
    /// The tree whose attributes count for what lies there.
    before_tree: &'a ObjectId,
    /// The tree whose attributes count for what is written.
    after_tree: &'a ObjectId,
    /// What the delivery that is undone found and wrote.
    former: Option<&'a live::FormerFiles>,
    /// What the delivery that is undone changed in the index.
    staged: Option<&'a [IndexStep]>,
    /// How the receipt calls a written path.
    outcome: Outcome,
}

/// The live tree as it was looked at, and the plan that fits it.
struct Compared<'a> {
    terms: live::LiveTerms<'a>,
    survey: live::LiveSurvey,
    plan: Plan,
}

/// Compares the last candidate with the live tree and gives what would be written. All conflicts are in the
/// failure.
pub fn plan(task: &TaskWrite<'_>) -> Result<Vec<(RepoPath, Outcome)>> {
    let (opened, candidate) = (task.view.opened_terms()?, &task.view.last_candidate()?.value);
    TreeWrite::delivering(task.session, opened, candidate).preview(&task.view.id)
}

/// Whether the last candidate conflicts with the live tree at this moment; `None` where nothing would be
/// written there, or where it cannot be looked at.
pub fn conflicts_with_live_tree(session: &Session, view: &TaskView) -> Option<bool> {
    let (opened, candidate) = (view.opened_terms().ok()?, &view.last_candidate().ok()?.value);
    if view.publishes() || view.has_ended() {
        return None;
    }
    match TreeWrite::delivering(session, opened, candidate).preview(&view.id) {
        Ok(_) => Some(false),
        Err(failure) => (failure.code() == Code::DeliveryConflict).then_some(true),
    }
}

/// Delivers a cleared candidate into the live tree. All conflicts are in the failure. `action` is dispatched.
pub fn carry_out(
    task: &mut TaskWrite<'_>,
    action: RunningAction,
    clearance: &Clearance,
    evidence: Vec<String>,
    write: Write,
) -> Result<DeliveryObject> {
    let opened = task.view.opened_terms()?.clone();
    let candidate = task.view.last_candidate()?.value.clone();
    let (id, mode) = (task.view.id.clone(), opened.effective.delivery);
    if write == Write::Yes {
        let delivery = TreeWrite::delivering(task.session, &opened, &candidate);
        let receipt = delivery.compare_and_write(&mut task.ledger, action, clearance, evidence)?;
        return Ok(DeliveryObject::new(&id, TaskState::Completed, mode, &receipt));
    }
    let paths = plan(task);
    end_preview(task, action, mode, paths)
}

/// Ends an action that only compared.
fn end_preview(
    task: &mut TaskWrite<'_>,
    mut action: RunningAction,
    mode: DeliveryMode,
    paths: Result<Vec<(RepoPath, Outcome)>>,
) -> Result<DeliveryObject> {
    let paths = match paths {
        Ok(paths) => paths,
        Err(failure) => return Err(action.fail(&mut task.ledger, failure)),
    };
    let text = "compared with the live tree; nothing was written".to_owned();
    action.succeed(&mut task.ledger, &Record::Done { text })?;
    Ok(DeliveryObject::previewed_delivery(&task.view.id, mode, paths))
}

/// Reverses what a receipt says was written. All conflicts are in the failure. `action` is dispatched.
pub fn undo(
    task: &mut TaskWrite<'_>,
    mut action: RunningAction,
    receipt: &Receipt,
    write: Write,
) -> Result<DeliveryObject> {
    let opened = task.view.opened_terms()?.clone();
    let candidate = task.view.last_candidate()?.value.clone();
    let blobs = task.session.blobs();
    let former = match live::FormerFiles::from_receipt(receipt, &|digest| blobs.get(digest)) {
        Ok(former) => former,
        Err(failure) => return Err(action.fail(&mut task.ledger, failure)),
    };
    let reversal = TreeWrite {
        session: task.session,
        opened: &opened,
        candidate: &candidate,
        changes: &receipt.reversed_changes(),
        before_tree: &candidate.tree,
        after_tree: &candidate.base_tree,
        former: Some(&former),
        staged: Some(&receipt.index),
        outcome: Outcome::Reverted,
    };
    if write == Write::DryRun {
        let paths = reversal.preview(&task.view.id);
        let preview = end_preview(task, action, opened.effective.delivery, paths)?;
        return Ok(DeliveryObject { state: TaskState::Completed, ..preview });
    }
    let clearance = Clearance::to_undo(receipt);
    let reverted = reversal.compare_and_write(&mut task.ledger, action, &clearance, Vec::new())?;
    Ok(DeliveryObject::new(&task.view.id, TaskState::Undone, opened.effective.delivery, &reverted))
}

impl<'a> TreeWrite<'a> {
    fn delivering(session: &'a Session, opened: &'a Opened, candidate: &'a Candidate) -> Self {
        Self {
            session,
            opened,
            candidate,
            changes: &candidate.changes,
            before_tree: &candidate.base_tree,
            after_tree: &candidate.tree,
            former: None,
            staged: None,
            outcome: Outcome::Applied,
        }
    }

    /// What would be written.
    fn preview(&self, task: &str) -> Result<Vec<(RepoPath, Outcome)>> {
        let home = self.session.live_repository(self.opened)?;
        let quarantine = self.session.quarantine(task);
        let compared = self.compare(&home, &quarantine);
        compared.map(|found| apply::preview_receipt(&found.plan)).map_err(|failure| self.explain(failure))
    }

    /// Compares with the live tree and writes, under an action that was dispatched, and ends that.
    fn compare_and_write(
        &self,
        ledger: &mut Ledger,
        mut action: RunningAction,
        clearance: &Clearance,
        evidence: Vec<String>,
    ) -> Result<Receipt> {
        let found = self.session.live_repository(self.opened).and_then(|home| {
            let head = home.resolve_revision("HEAD", "commit")?;
            Ok((home, head))
        });
        let (home, head) = match found {
            Ok(found) => found,
            Err(failure) => return Err(action.fail(ledger, self.explain(failure))),
        };
        let facts = DeliveryFacts { head, evidence, undoes: self.outcome == Outcome::Reverted };
        let end = WriteEnd::Delivery { facts, planned: None };
        let mut journal = LedgerJournal { ledger, action: &mut action, end, open: false };
        self.write(&home, clearance, &mut journal)
            .map_err(|failure| journal.end_failed(self.explain(failure)))
    }

    fn write(
        &self,
        home: &Repository,
        clearance: &Clearance,
        journal: &mut LedgerJournal<'_>,
    ) -> Result<Receipt> {
        let id = &self.opened.contract.task_id;
        let quarantine = self.session.quarantine(id);
        let Compared { terms, survey, plan } = self.compare(home, &quarantine)?;
        let materials = live::prepare_materials(&terms, survey, &plan)?;
        let delivery = Delivery { id, top: terms.top, outcome: self.outcome, repository: home };
        let cleared = plan.clear_with(clearance)?;
        apply::execute_plan(cleared, materials, delivery, journal, &self.session.blobs())
    }

    /// A conflict gets the command that solves it.
    fn explain(&self, failure: Failure) -> Failure {
        let tried = match self.outcome {
            Outcome::Reverted => Tried::Undo,
            _ if self.opened.effective.delivery.index_follows() => Tried::Staging,
            _ => Tried::Delivery,
        };
        explained(&self.opened.contract.task_id, failure, tried)
    }

    fn compare<'w>(&'w self, home: &'w Repository, quarantine: &'w Quarantine) -> Result<Compared<'w>> {
        let blobs = self.session.blobs();
        let index = read_index_at_base(&blobs, self.opened, self.candidate, self.changes)?;
        let terms = live::LiveTerms {
            repository: home,
            quarantine: Some(quarantine),
            top: Path::new(&self.opened.home.top),
            changes: self.changes,
            before_tree: self.before_tree,
            after_tree: self.after_tree,
            drivers: &self.candidate.base_tree,
            former: self.former,
            settings: live::Settings::read_settings(home)?,
        };
        let survey = live::survey_paths(&terms)?;
        let mut plan = plan_delivery(self.changes, &survey.facts, index_rule(self.opened), &index)
            .map_err(|conflicts| refuse_delivery(&conflicts))?;
        if let Some(staged) = self.staged {
            plan = plan.taking_index_back(staged);
        }
        Ok(Compared { terms, survey, plan })
    }
}

/// A conflict gets the command that solves it, where it has none of its own.
fn explained(task: &str, failure: Failure, tried: Tried) -> Failure {
    if failure.code() != Code::DeliveryConflict || failure.has_remedy() {
        return failure;
    }
    let conflicts = failure.read_detail(&CONFLICTS).unwrap_or_default();
    let nothing = if failure.has_detail(&EDITED_MEANWHILE) { "" } else { "Nothing was written. " };
    let Remedy { text, command } = advise_on_conflicts(task, tried, &conflicts);
    failure.remedy(format!("{nothing}{text}"), command)
}

/// A delivery into the live tree, or its reversal, that did not end.
#[derive(Debug)]
pub struct UnfinishedTree {
    /// What it had planned.
    pub planned: Box<Planned>,
    /// How far it came.
    pub write: UnfinishedDelivery,
}

/// Brings it to its end, or back. The failure: the tree is gone, so that only a person can say.
pub fn resume(cut: &mut CutOff<'_>, unfinished: UnfinishedTree) -> Result<Option<Failure>> {
    let UnfinishedTree { planned, mut write } = unfinished;
    cut.action.reconcile(&mut cut.ledger)?;
    if !is_folder(&write.plan.top)? {
        let decision = whether_delivered(&cut.found.tool, &write);
        cut.action.need_decision(&mut cut.ledger, &decision)?;
        let failure =
            decision.require_answer(cut.found.task.as_deref().unwrap_or_default(), &cut.found.action);
        cut.found.outcome = RecoveryOutcome::NeedsHumanDecision;
        cut.found.notes = choice_lines(&failure);
        return Ok(Some(failure));
    }
    if write.reached == Reached::Begun && is_elsewhere(cut)? {
        write.reached = Reached::TakingBack;
    }
    let end = WriteEnd::Delivery { facts: DeliveryFacts::default(), planned: Some(planned) };
    let mut journal = LedgerJournal { ledger: &mut cut.ledger, action: &mut cut.action, end, open: true };
    let environment = cut.session.repository.environment();
    match recover_delivery(environment, &write, &mut journal, &cut.session.blobs())? {
        Recovered::Completed { receipt, later } => {
            cut.found.outcome = RecoveryOutcome::Completed;
            cut.found.kept = later;
            cut.found.notes = receipt.note_sentences();
        }
        Recovered::TakenBack { later, notes, because } => {
            cut.found.outcome = RecoveryOutcome::TakenBack;
            cut.found.notes = notes
                .iter()
                .flat_map(|(path, notes)| notes.iter().map(move |note| note.sentence_about(path)))
                .collect();
            cut.found.notes.extend(because.map(|failure| failure.message().to_owned()));
            cut.found.kept.clone_from(&later);
            cut.action.safe_to_retry(&mut cut.ledger, &Record::TakenBack { later })?;
        }
    }
    Ok(None)
}

/// True where another branch is checked out than the task was opened on: nobody has agreed to a change of
/// that one, so that nothing goes on there.
fn is_elsewhere(cut: &CutOff<'_>) -> Result<bool> {
    let Some(view) = &cut.view else { return Ok(false) };
    let opened = view.opened_terms()?;
    Ok(cut.session.live_repository(opened)?.current_branch()? != opened.home.branch)
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

/// The record of its end, where a person says that it took place.
pub fn decide(unfinished: UnfinishedTree) -> Record {
    let UnfinishedTree { planned, write } = unfinished;
    let staged = write.staged.unwrap_or_else(Staged::nothing_staged);
    planned.end_record(Receipt::new(&write.plan, &staged, &[], write.outcome))
}
