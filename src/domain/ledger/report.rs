//! The report: a projection of the ledger that says nothing the ledger does not hold.

use crate::domain::change::patch::{Candidate, Change};
use crate::domain::contract::DeliveryMode;
use crate::domain::delivery::publication::Publication;
use crate::domain::delivery::receipt::{Outcome, Receipt};
use crate::domain::ledger::brought::BroughtObject;
use crate::domain::ledger::calls::Counts;
use crate::domain::ledger::entry::Recorded;
use crate::domain::ledger::inquiries::{AmendmentObject, QuestionObject};
use crate::domain::ledger::record::{BaseState, Lacks, Opened, Seal};
use crate::domain::ledger::risk::{Known, Risk};
use crate::domain::ledger::task::{TaskState, TaskView, Unfinished};
use crate::domain::proof::on_live::DeliveredRow;
use crate::domain::proof::run::Run;
use crate::domain::proof::verdict::{Row, Verdict};
use crate::domain::value::digest::{ObjectId, Sha256};
use crate::domain::value::outside::Speaker;
use crate::domain::value::repo_path::RepoPath;
use crate::domain::worker::finding;
use crate::domain::worker::finding::{Finding, Reference};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// What `open` shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskObject {
    /// `git-tender/task/v1`
    pub schema: String,
    pub task_id: String,
    /// `edit`, `repair` or `explore`.
    pub kind: String,
    pub state: TaskState,
    pub contract: Seal,
    /// Commit and tree it starts from.
    pub base: BaseState,
    pub worktree: String,
    pub lacks: Lacks,
    /// What the worktree got beside the files of its base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brought: Option<BroughtObject>,
    /// One sentence for each thing that the policy took away.
    pub narrowed: Vec<String>,
    /// Requirements that only a person can attest.
    pub manual: Vec<String>,
    /// Notes for the one who opened it.
    pub notes: Vec<String>,
}

/// What `submit` shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CandidateObject {
    /// `git-tender/candidate/v1`
    pub schema: String,
    pub task_id: String,
    pub candidate: u32,
    /// The tree it was made against.
    pub base_tree: ObjectId,
    pub tree: ObjectId,
    pub patch: PatchObject,
    pub changes: Vec<Change>,
    /// Of a part of what the worktree changes: the paths of which anything was left there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<Vec<RepoPath>>,
}

/// The patch of a candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PatchObject {
    pub manifest_sha256: Sha256,
    pub sha256: Sha256,
    pub bytes: u64,
    pub path: String,
}

impl CandidateObject {
    /// From a candidate and the place of its patch text.
    pub fn new(task: &str, candidate: &Candidate, path: String) -> Self {
        Self {
            schema: "git-tender/candidate/v1".to_owned(),
            task_id: task.to_owned(),
            candidate: candidate.candidate,
            base_tree: candidate.base_tree.clone(),
            tree: candidate.tree.clone(),
            patch: PatchObject {
                manifest_sha256: candidate.patch.manifest_sha256,
                sha256: candidate.patch.sha256,
                bytes: candidate.patch.bytes,
                path,
            },
            changes: candidate.changes.clone(),
            left: None,
        }
    }
}

/// What `verify` shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VerificationObject {
    /// `git-tender/verification/v1`
    pub schema: String,
    /// `None` where it speaks of no task, but of what `check` looked at.
    pub task_id: Option<String>,
    /// The candidate it speaks of.
    pub candidate: Option<u32>,
    pub requirements: Vec<Row>,
    /// The runs that rows rest on and that are no pass, with first error and logs.
    #[serde(default)]
    pub runs: Vec<Run>,
    /// With `--explain`: a sentence for each row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanations: Option<Vec<Explanation>>,
    /// What `check` looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked: Option<CheckedTree>,
}

impl VerificationObject {
    /// Of what is neither a task nor a check yet.
    pub fn of_rows(requirements: Vec<Row>, runs: Vec<Run>) -> Self {
        Self {
            schema: "git-tender/verification/v1".to_owned(),
            task_id: None,
            candidate: None,
            requirements,
            runs,
            explanations: None,
            checked: None,
        }
    }
}

/// What a check without a task looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckedTree {
    /// `staged`, `rev`, `live` or `all`.
    pub what: String,
    /// The tree whose rules judge; the empty tree before the first commit.
    pub base_tree: ObjectId,
    pub tree: ObjectId,
    /// How many paths differ between the two.
    pub changes: u64,
    /// What a reader should know beside the rows.
    pub notes: Vec<String>,
    /// What was changed to come to this tree, with `--fix`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<FixObject>,
}

/// A fix that verifiers made and that was written to the user's files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FixObject {
    /// The action that wrote it.
    pub action: String,
    pub patch: PatchObject,
    pub paths: Vec<DeliveredPath>,
}

/// The reason why a row's evidence is fresh or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    pub id: String,
    pub text: String,
}

/// What `deliver` and `undo` show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryObject {
    /// `git-tender/delivery/v1`
    pub schema: String,
    pub task_id: String,
    pub state: TaskState,
    pub mode: String,
    /// The outcome at each path.
    pub paths: Vec<DeliveredPath>,
    /// The branch that was moved, for the modes `branch` and `push`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The commit that was delivered there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<ObjectId>,
    /// The remote that has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// The rows of `deliver` alone, each with what the live tree has of its inputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requirements: Vec<DeliveredRow>,
    /// What a reader of `deliver` should know beside its rows; a report has them among its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risks: Option<Vec<Risk>>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// One path of a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveredPath {
    pub path: RepoPath,
    pub outcome: Outcome,
}

impl DeliveryObject {
    pub fn new(task: &str, state: TaskState, mode: DeliveryMode, receipt: &Receipt) -> Self {
        Self {
            schema: "git-tender/delivery/v1".to_owned(),
            task_id: task.to_owned(),
            state,
            mode: mode.as_str().to_owned(),
            paths: receipt
                .paths
                .iter()
                .map(|p| DeliveredPath { path: p.change.path.clone(), outcome: p.outcome })
                .collect(),
            branch: None,
            commit: None,
            remote: None,
            requirements: Vec::new(),
            risks: None,
            notes: receipt.note_sentences(),
        }
        .with_publication(receipt.publication.as_deref())
    }

    /// With the ref that was moved, or would be.
    pub fn with_publication(mut self, publication: Option<&Publication>) -> Self {
        let Some(publication) = publication else { return self };
        self.branch = Some(publication.branch.clone());
        self.commit = match self.state {
            TaskState::Undone => publication.old.clone(),
            _ => publication.new.clone(),
        };
        self.remote = publication.remote.as_ref().map(|remote| remote.name.clone());
        self
    }

    /// The delivery that would take place (`--dry-run`).
    pub fn previewed_delivery(task: &str, mode: DeliveryMode, paths: Vec<(RepoPath, Outcome)>) -> Self {
        Self {
            schema: "git-tender/delivery/v1".to_owned(),
            task_id: task.to_owned(),
            state: TaskState::Verified,
            mode: mode.as_str().to_owned(),
            paths: paths.into_iter().map(|(path, outcome)| DeliveredPath { path, outcome }).collect(),
            branch: None,
            commit: None,
            remote: None,
            requirements: Vec::new(),
            risks: None,
            notes: Vec::new(),
        }
    }

    /// The receipt of a delivery that took place before: nothing was written now.
    pub fn mark_already(mut self) -> Self {
        for path in &mut self.paths {
            path.outcome = Outcome::Already;
        }
        self
    }
}

/// Number of rows by their verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// `passed`
    pub passed: u64,
    /// `failed`
    pub failed: u64,
    /// `not_run`
    pub not_run: u64,
    /// `stale`
    pub stale: u64,
    /// `needs_confirmation`
    pub needs_confirmation: u64,
    /// `error`
    pub error: u64,
}

impl Summary {
    pub fn count_rows(rows: &[Row]) -> Self {
        let mut summary = Self::default();
        for row in rows {
            let slot = match row.verdict {
                Verdict::Passed => &mut summary.passed,
                Verdict::Failed => &mut summary.failed,
                Verdict::NotRun => &mut summary.not_run,
                Verdict::Stale => &mut summary.stale,
                Verdict::NeedsConfirmation => &mut summary.needs_confirmation,
                Verdict::Error => &mut summary.error,
            };
            *slot += 1;
        }
        summary
    }
}

/// Confinement: what was asked for and what was in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxObject {
    /// `required` or `optional`.
    pub requested: String,
    /// `full`, `partial` or `none`.
    pub enforced: String,
}

/// What `report` shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// `git-tender/report/v1`
    pub schema: String,
    pub task_id: String,
    pub state: TaskState,
    /// `edit`, `repair` or `explore`.
    pub kind: String,
    pub goal: String,
    /// Number of the last candidate; `None` where there is none.
    pub candidate: Option<u32>,
    pub summary: Summary,
    pub requirements: Vec<Row>,
    /// The runs that rows rest on and that are no pass, with first error and logs.
    #[serde(default)]
    pub runs: Vec<Run>,
    /// The manifest of the last candidate.
    pub changes: Vec<Change>,
    /// The worker's findings; an `explore` delivers these.
    pub findings: Vec<FindingObject>,
    /// Limits of what was looked at.
    pub limits: Vec<String>,
    /// The worker's questions to a person, with the answers.
    pub questions: Vec<QuestionObject>,
    /// The worker's proposed amendments, with the decisions.
    pub amendments: Vec<AmendmentObject>,
    pub risks: Vec<Risk>,
    /// Used and limit, by budget key.
    pub budget: Value,
    pub sandbox: SandboxObject,
    /// The delivery, once there was one.
    pub delivery: Option<DeliveryObject>,
    pub contract: Seal,
    /// One line for each thing that the policy, or the kind of the task, took away of it.
    #[serde(default)]
    pub narrowed: Vec<String>,
    /// The calls of workers by their ends, where there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<Counts>,
    /// Actions without an end: they run at this moment, or a crash cut them off.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unfinished: Vec<Unfinished>,
}

impl Report {
    pub fn new(known: Known<'_>) -> Self {
        let Known { view, opened, rows, .. } = known;
        let state = view.state_with(rows);
        let candidate = view.current_candidate().map(|c| &c.value);
        let delivered = view.delivered.as_ref().map(|d| &d.value.receipt);
        let receipt = view.undone.as_ref().map(|u| &u.value).or(delivered);
        Self {
            schema: "git-tender/report/v1".to_owned(),
            task_id: view.id.clone(),
            state,
            kind: opened.contract.kind.as_str().to_owned(),
            goal: opened.contract.goal.clone(),
            candidate: candidate.map(|c| c.candidate),
            summary: Summary::count_rows(rows),
            requirements: rows.to_vec(),
            runs: known.runs.to_vec(),
            changes: candidate.map(|c| c.changes.clone()).unwrap_or_default(),
            findings: finding_objects(view),
            limits: known_limits(view, opened),
            questions: view.inquiries.question_objects(),
            amendments: view.inquiries.amendment_objects(),
            risks: crate::domain::ledger::risk::all_risks(known),
            budget: view
                .standing
                .as_ref()
                .map_or(Value::Null, crate::domain::ledger::charges::Standing::shares_object),
            sandbox: SandboxObject {
                requested: word_of(&opened.contract.sandbox),
                enforced: crate::domain::ledger::risk::enforced_sandbox(known).to_owned(),
            },
            delivery: receipt.map(|r| DeliveryObject::new(&view.id, state, opened.effective.delivery, r)),
            contract: opened.seal.clone(),
            narrowed: opened.narrowed.clone(),
            calls: (!view.calls.is_empty()).then(|| view.calls.count_ends()),
            unfinished: view.unfinished.clone(),
        }
    }
}

/// The word that a value is in objects, such as `needs_confirmation`.
pub fn word_of(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(text)) => text,
        _ => String::new(),
    }
}

/// A finding, in a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FindingObject {
    /// The action that noted it.
    pub id: String,
    /// In the worker's words.
    pub text: String,
    /// Its references: `path`, `path:line`, `path:first-last`, an action, or `sha256:…`.
    pub refs: Vec<String>,
    /// By path, git's id of the bytes that were there.
    pub blobs: BTreeMap<String, ObjectId>,
    /// False where it has no references.
    pub verified: bool,
    /// Who says so.
    pub origin: Speaker,
    /// True: the words are nobody's whom the harness trusts.
    pub untrusted: bool,
    /// When, RFC 3339.
    pub noted_at: String,
}

impl FindingObject {
    /// Of a note.
    pub fn new(noted: &Recorded<Finding>) -> Self {
        let refs = &noted.value.refs;
        let blob = |reference: &Reference| match reference {
            Reference::File { path, blob, .. } => Some((path.to_string(), blob.clone())),
            Reference::Ledger { .. } => None,
        };
        Self {
            id: noted.action.clone(),
            text: noted.value.text.clone(),
            refs: refs.iter().map(ToString::to_string).collect(),
            blobs: refs.iter().filter_map(blob).collect(),
            verified: noted.value.is_verified(),
            origin: Speaker::Worker,
            untrusted: true,
            noted_at: noted.at.clone(),
        }
    }
}

/// The worker's notes of the kind `finding`.
pub fn finding_objects(view: &TaskView) -> Vec<FindingObject> {
    let found = view.findings.iter().filter(|noted| noted.value.kind == finding::Kind::Finding);
    found.map(FindingObject::new).collect()
}

fn known_limits(view: &TaskView, opened: &Opened) -> Vec<String> {
    let missing = [
        (&opened.lacks.submodules, "submodules were not checked out"),
        (&opened.lacks.lfs, "files in LFS were present as pointers only"),
    ];
    let noted = view.findings.iter().filter(|noted| noted.value.kind == finding::Kind::Limit);
    missing
        .into_iter()
        .filter(|(paths, _)| !paths.is_empty())
        .map(|(paths, what)| format!("{what}: {} of them, the first is {}", paths.len(), paths[0]))
        .chain(opened.lacks.unseen.iter().map(|why| format!("uncommitted work was not looked for: {why}")))
        .chain(noted.map(|noted| noted.value.text.clone()))
        .collect()
}
