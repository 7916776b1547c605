//! What is known of a task: the projection of its ledger rows, and its state.
//!
//! A [`Record`] is what the result of a row holds. [`TaskView::apply_row`] is the only place where records
//! become knowledge. The states between `candidate` and `verified` are never stored; they follow from the
//! requirement rows.

mod effects;
mod places;
mod stops;

use crate::domain::change::patch::Candidate;
use crate::domain::delivery::publishing::Publishing;
use crate::domain::delivery::receipt::Receipt;
use crate::domain::ledger::action::{ActionState, writes_live_tree};
use crate::domain::ledger::calls::Calls;
use crate::domain::ledger::charges::{Charges, Standing};
use crate::domain::ledger::entry::{Entry, Recorded};
use crate::domain::ledger::inquiries::Inquiries;
use crate::domain::ledger::record::{Amended, Delivered, Opened, Rebased, Record};
use crate::domain::proof::evidence::{Evidence, Observation};
use crate::domain::proof::on_live::SeenAfterDelivery;
use crate::domain::proof::tripwire::Tripped;
use crate::domain::proof::verdict::{Row, Verdict};
use crate::domain::value::digest::{ObjectId, Sha256};
use crate::domain::value::repo_path::RepoPath;
use crate::domain::worker::call::{Called, Effect, Seen};
use crate::domain::worker::finding::Finding;
use crate::error::{Code, Failure, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// Opened; no candidate yet.
    Open,
    /// A worker is at it: what it did since the last capture is in no candidate.
    Working,
    /// A candidate whose required rows are not all decided.
    Candidate,
    /// A required row failed or is in error.
    VerificationFailed,
    Verified,
    /// A delivery is under way, or a crash left one unfinished.
    Delivering,
    /// Delivered: an end.
    Completed,
    /// Cancelled: an end.
    Cancelled,
    /// It is not known whether an effect took place.
    OutcomeUnknown,
    /// Its budget, or that of a task above it, is spent: it waits for a person to add to it.
    Incomplete,
    /// A question of the worker's waits for a person's answer.
    WaitingInput,
    /// The delivery was reversed: an end.
    Undone,
}

/// An action that has no end in the ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Unfinished {
    pub action: String,
    /// The tool's or command's name.
    pub tool: String,
    pub state: ActionState,
    /// The ref that it is about to move, where it is of that kind.
    pub publishing: Option<Box<Publishing>>,
}

/// The knowledge of a task, folded from its rows.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskView {
    pub id: String,
    /// Position of the last row that was taken in.
    pub upto: i64,
    /// The terms that `open` fixed, and rebases and amendments changed; `None` before.
    pub opened: Option<Recorded<Opened>>,
    /// The digest of every version of the contract, in their order.
    pub sealed: Vec<Sha256>,
    /// The candidates in the order of their capture.
    pub candidates: Vec<Recorded<Candidate>>,
    /// The trees that rebases left in the worktree.
    pub rebased: Vec<ObjectId>,
    /// Paths that the last rebase left with conflict markers.
    pub marked: Vec<RepoPath>,
    /// True where the last rebase has set versions aside that no markers could show.
    pub set_aside: bool,
    /// The digests taken last, for the last candidate.
    pub observation: Option<Recorded<Observation>>,
    /// All evidence that this task's own actions made.
    pub evidence: Vec<Recorded<Evidence>>,
    pub delivered: Option<Recorded<Delivered>>,
    pub undone: Option<Recorded<Receipt>>,
    /// The action that cancelled it.
    pub cancelled: Option<String>,
    /// True once its files were removed.
    pub collected: bool,
    pub unfinished: Vec<Unfinished>,
    /// Folders of the task that moved with the repository: from where to where, in their order.
    pub moved: Vec<(String, String)>,
    /// The blob that each worker read or wrote last at each path.
    pub seen: BTreeMap<RepoPath, Vec<(String, Option<ObjectId>)>>,
    pub calls: Calls,
    /// The last row by which a worker came, or changed a file once there was a candidate.
    pub worked: Option<i64>,
    /// The use of its own actions.
    pub charges: Charges,
    /// Where it stands within its budget and its family's; `None` until the family was looked up.
    pub standing: Option<Standing>,
    /// Changes around it, each time with what was seen then.
    pub tripped: Vec<Recorded<Tripped>>,
    /// What there was to tell after the delivery.
    pub seen_after: Option<Recorded<SeenAfterDelivery>>,
    /// Pushes that had not arrived when they were asked for, with their actions: a server that is slow may
    /// still be at them.
    pub late: Vec<(String, Box<Publishing>)>,
    /// The worker's questions and wishes to a person, with the answers.
    pub inquiries: Inquiries,
    pub findings: Vec<Recorded<Finding>>,
}

impl TaskView {
    pub fn new(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            upto: 0,
            opened: None,
            sealed: Vec::new(),
            candidates: Vec::new(),
            rebased: Vec::new(),
            marked: Vec::new(),
            set_aside: false,
            observation: None,
            evidence: Vec::new(),
            delivered: None,
            undone: None,
            cancelled: None,
            collected: false,
            unfinished: Vec::new(),
            moved: Vec::new(),
            seen: BTreeMap::new(),
            calls: Calls::default(),
            worked: None,
            charges: Charges::default(),
            standing: None,
            tripped: Vec::new(),
            seen_after: None,
            late: Vec::new(),
            inquiries: Inquiries::default(),
            findings: Vec::new(),
        }
    }

    /// Takes the next row of the task in.
    pub fn apply_row(&mut self, entry: &Entry) -> Result<()> {
        self.upto = entry.seq;
        self.charges.take_row(entry);
        self.calls.take_row(entry);
        if self.candidates.is_empty() && !self.calls.is_empty() {
            self.worked = Some(entry.seq);
        }
        let known = self.unfinished.iter().position(|u| u.action == entry.action);
        let known = known.map(|at| self.unfinished.remove(at));
        if !entry.state.is_final() {
            let (action, tool) = (entry.action.clone(), entry.tool.clone());
            let publishing = Publishing::from_entry(entry).or(known.and_then(|known| known.publishing));
            self.unfinished.push(Unfinished { action, tool, state: entry.state, publishing });
            return Ok(());
        }
        if entry.state == ActionState::SafeToRetry {
            let sent = known.and_then(|known| known.publishing);
            self.late.extend(sent.filter(|sent| sent.is_sent()).map(|sent| (entry.action.clone(), sent)));
        }
        if entry.state != ActionState::Succeeded || entry.result.is_null() {
            return Ok(());
        }
        self.take_record(entry, Record::from_row(entry)?);
        Ok(())
    }

    fn take_record(&mut self, entry: &Entry, record: Record) {
        match record {
            Record::Opened(opened) => {
                self.sealed.push(opened.seal.sha256);
                self.opened = Some(Recorded::new(entry, *opened));
            }
            Record::Captured { candidate, observation } => {
                // Capturing the same state again is the same candidate, which becomes the last one.
                self.candidates.retain(|known| known.value.candidate != candidate.candidate);
                self.candidates.push(Recorded::new(entry, *candidate));
                self.observation = Some(Recorded::new(entry, *observation));
            }
            Record::Rebased(rebased) => self.take_rebase(entry, *rebased),
            Record::Answered(reply) => self.inquiries.take_reply(Recorded::new(entry, reply)),
            Record::Hinted(hint) => self.inquiries.take_hint(Recorded::new(entry, hint)),
            Record::Amended(amended) => {
                self.inquiries.take_amendment(&Recorded::new(entry, &*amended));
                self.take_amendment(entry, *amended);
            }
            Record::Observed(observation) => self.observation = Some(Recorded::new(entry, *observation)),
            Record::Evidence(evidence) => self.evidence.push(Recorded::new(entry, *evidence)),
            Record::Delivered(receipt) => {
                // From here on the lease of an earlier one cannot hold.
                self.late.clear();
                self.seen_after = None;
                // It may be one that was undone, delivered again.
                self.undone = None;
                self.delivered = Some(Recorded::new(entry, *receipt));
            }
            Record::Undone(receipt) => self.undone = Some(Recorded::new(entry, *receipt)),
            Record::Cancelled => self.cancelled = Some(entry.action.clone()),
            Record::Collected => self.collected = true,
            Record::Relocated(relocation) => self.take_relocation(*relocation),
            Record::Called(called) => self.take_call(entry, *called),
            Record::SeenOnLive(seen) => self.seen_after = Some(Recorded::new(entry, seen)),
            Record::Tripped(tripped) => self.tripped.push(Recorded::new(entry, tripped)),
            Record::Rebasing(_)
            | Record::Decision(_)
            | Record::Publishing(_)
            | Record::Reserved(_)
            | Record::Charged { .. }
            | Record::Resumed(_)
            | Record::RollbackAccepted { .. }
            | Record::Planned(_)
            | Record::Staged(_)
            | Record::InPlace
            | Record::TakingBack
            | Record::TakenBack { .. }
            | Record::Call(_)
            | Record::Failure { .. }
            | Record::Done { .. } => {}
        }
    }

    fn take_call(&mut self, entry: &Entry, called: Called) {
        for Seen { path, git_blob } in called.seen {
            let by_worker = self.seen.entry(path).or_default();
            by_worker.retain(|(worker, _)| *worker != called.worker);
            by_worker.push((called.worker.clone(), git_blob));
        }
        match called.effect {
            Some(Effect::Patched { changes }) => {
                self.worked = Some(entry.seq);
                self.calls.note_changed_paths(&entry.action, changes.into_iter().map(|change| change.path));
            }
            Some(Effect::Asked(question)) => self.inquiries.take_question(Recorded::new(entry, question)),
            Some(Effect::Proposed(proposal)) => self.inquiries.take_proposal(Recorded::new(entry, proposal)),
            Some(Effect::Noted(finding)) => self.findings.push(Recorded::new(entry, finding)),
            None => {}
        }
    }

    fn take_rebase(&mut self, entry: &Entry, rebased: Rebased) {
        let Rebased { opened, to, captured, marked, set_aside, .. } = rebased;
        let opened = self.bring_up_to_date(opened);
        if let Some(known) = &mut self.opened {
            known.value = opened;
        }
        self.rebased.push(to);
        self.marked = marked;
        self.set_aside = set_aside;
        self.take_anew(entry, captured);
    }

    /// The candidate from before belongs to another version of the contract.
    fn take_amendment(&mut self, entry: &Entry, amended: Amended) {
        self.sealed.push(amended.opened.seal.sha256);
        if let Some(known) = &mut self.opened {
            known.value = amended.opened;
        }
        self.take_anew(entry, amended.captured);
    }

    /// The digests that were taken last are of another base, or of another contract.
    fn take_anew(&mut self, entry: &Entry, captured: Option<(Candidate, Observation)>) {
        self.observation = None;
        if let Some((candidate, observation)) = captured {
            self.take_record(
                entry,
                Record::Captured { candidate: Box::new(candidate), observation: Box::new(observation) },
            );
        }
    }

    /// The blob that a worker has read or written last at a path; of one that has not been there, what any
    /// other has: it may be the one that was started anew after a crash.
    pub fn known_to(&self, worker: &str, path: &RepoPath) -> Option<ObjectId> {
        let by_worker = self.seen.get(path)?;
        let own = by_worker.iter().find(|(who, _)| who == worker);
        own.or(by_worker.last())?.1.clone()
    }

    /// The terms that `open` fixed.
    pub fn opened_terms(&self) -> Result<&Opened> {
        self.opened.as_ref().map(|o| &o.value).ok_or_else(|| {
            Failure::new(Code::NotFound, format!("there is no task {:?}", self.id)).subject(self.id.clone())
        })
    }

    /// The last candidate, if it was made on the base and under the version of the contract that the task has
    /// now.
    pub fn current_candidate(&self) -> Option<&Recorded<Candidate>> {
        let opened = &self.opened.as_ref()?.value;
        self.candidates.last().filter(|last| {
            last.value.base_tree == opened.base.tree && last.value.contract_version == opened.seal.version
        })
    }

    /// True where the content is the base's, a candidate's, or what a rebase left: it can be made again.
    pub fn is_known(&self, tree: &ObjectId) -> bool {
        self.opened.as_ref().is_some_and(|opened| opened.value.base.tree == *tree)
            || self.candidates.iter().any(|candidate| candidate.value.tree == *tree)
            || self.rebased.contains(tree)
    }

    /// The last candidate, or `state.invalid` with the command that makes one.
    pub fn last_candidate(&self) -> Result<&Recorded<Candidate>> {
        self.current_candidate().ok_or_else(|| {
            Failure::new(Code::StateInvalid, format!("the task {} has no candidate yet", self.id))
                .subject(self.id.clone())
                .expected("candidate", "open")
                .remedy("Capture the worktree first.", ["git", "tender", "submit", &self.id])
        })
    }

    /// The number that a capture of `tree` gets: that of the same tree on the same base under the same
    /// contract version, or the next one.
    pub fn candidate_number(&self, tree: &ObjectId, base: &ObjectId, contract_version: u32) -> u32 {
        let same = self.candidates.iter().find(|c| {
            c.value.tree == *tree
                && c.value.base_tree == *base
                && c.value.contract_version == contract_version
        });
        let next = self.candidates.iter().map(|c| c.value.candidate).max().unwrap_or(0) + 1;
        same.map_or(next, |known| known.value.candidate)
    }

    /// The basis that an authorization of this task names.
    pub fn authorization_basis(&self) -> Value {
        self.opened.as_ref().map_or(Value::Null, |opened| {
            json!({
                "contract": opened.value.seal,
                "policySha256": opened.value.effective.policy_sha256,
            })
        })
    }

    /// True once nothing can follow.
    pub fn has_ended(&self) -> bool {
        self.cancelled.is_some() || self.delivered.is_some()
    }

    /// Refuses where the task has ended.
    pub fn require_active(&self) -> Result<()> {
        if self.cancelled.is_some() {
            return Err(Failure::new(Code::Cancelled, format!("the task {} was cancelled", self.id))
                .subject(self.id.clone())
                .remedy("Open a new task.", ["git", "tender", "start", "--help"]));
        }
        if self.has_ended() {
            let state = if self.undone.is_some() { "undone" } else { "completed" };
            return Err(Failure::new(Code::StateInvalid, format!("the task {} is {state}", self.id))
                .subject(self.id.clone())
                .expected("a task that has not ended", state)
                .remedy(
                    "See what it delivered, or open a new task.",
                    ["git", "tender", "report", &self.id],
                ));
        }
        Ok(())
    }

    /// True where a worker has begun, and what it did is in no candidate yet.
    pub fn is_being_worked_on(&self) -> bool {
        let captured = self.candidates.iter().map(|candidate| candidate.seq).max();
        self.worked > captured
    }

    /// The state, given the requirement rows of the last candidate.
    pub fn state_with(&self, rows: &[Row]) -> TaskState {
        let delivering = |u: &Unfinished| writes_live_tree(&u.tool) && u.state == ActionState::Dispatched;
        if self.cancelled.is_some() {
            TaskState::Cancelled
        } else if self.unfinished.iter().any(delivering) {
            TaskState::Delivering
        } else if self.unfinished.iter().any(|u| u.state.is_unknown()) {
            TaskState::OutcomeUnknown
        } else if self.undone.is_some() {
            TaskState::Undone
        } else if self.delivered.is_some() {
            TaskState::Completed
        } else if self.waits_for_input() {
            TaskState::WaitingInput
        } else if self.spent_budget().is_some() || self.refuse_repetition().is_some() {
            TaskState::Incomplete
        } else if self.is_being_worked_on() {
            TaskState::Working
        } else if self.current_candidate().is_none() {
            TaskState::Open
        } else {
            candidate_state(rows)
        }
    }
}

/// The state of a candidate by itself, given its requirement rows.
pub fn candidate_state(rows: &[Row]) -> TaskState {
    let mut required = rows.iter().filter(|row| row.required).map(|row| row.verdict);
    let bad = |verdict: Verdict| matches!(verdict, Verdict::Failed | Verdict::Error);
    if required.clone().any(bad) {
        TaskState::VerificationFailed
    } else if required.all(|verdict| verdict == Verdict::Passed) {
        TaskState::Verified
    } else {
        TaskState::Candidate
    }
}
