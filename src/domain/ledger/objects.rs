//! What commands show beside the report: one plain object a command.

use crate::domain::ledger::action::writes_live_tree;
use crate::domain::ledger::entry::Entry;
use crate::domain::ledger::head::LostHead;
use crate::domain::ledger::record::{Relocation, Seal};
use crate::domain::ledger::report::DeliveryObject;
use crate::domain::ledger::task::TaskState;
use crate::domain::ledger::turn::WhoseTurn;
use crate::domain::proof::evidence::Evidence;
use crate::domain::value::bytes::{decode_base64, encode_base64};
use crate::domain::value::digest::ObjectId;
use crate::domain::value::digest::Sha256;
use crate::domain::value::repo_path::RepoPath;
use crate::error::Failure;
use serde::Serialize;

/// What `demo` shows.
#[derive(Debug, Serialize)]
pub struct Demo {
    pub schema: &'static str,
    pub repository: String,
    /// One a step: the command and what came of it.
    pub steps: Vec<DemoStep>,
}

/// One step of the walk.
#[derive(Debug, Serialize)]
pub struct DemoStep {
    /// The command that does the same.
    pub command: String,
    pub outcome: String,
}

/// What `init` shows.
#[derive(Debug, Serialize)]
pub struct Initialised {
    pub schema: &'static str,
    /// `committed` or `private`.
    pub layer: &'static str,
    pub dir: String,
    /// Files that were written, as paths from the top of the repository or of the git directory.
    pub written: Vec<String>,
    /// Files that were there and stay as they are.
    pub kept: Vec<String>,
    /// Verifiers that fit what was found.
    pub verifiers: Vec<&'static str>,
    /// The hook that was asked for, or was to go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hook: Option<HookChange>,
}

/// What became of the hook of git's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HookChange {
    pub path: String,
    pub state: HookState,
}

/// The state of the hook afterwards, and how it came to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HookState {
    Installed,
    /// It was there already.
    Kept,
    Removed,
    /// There was none to remove.
    Absent,
}

/// What `answer` shows.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answered {
    pub schema: &'static str,
    pub task_id: String,
    pub state: TaskState,
    /// `question`, `amendment` or `decision`.
    pub kind: &'static str,
    /// The action that was answered to.
    pub action: String,
    pub answer: String,
    /// Of a decision `succeeded` or `safe_to_retry`, of an amendment `amended` or `refused`, of a question
    /// `answered`.
    pub outcome: &'static str,
    /// The contract that is in force now.
    pub contract: Seal,
    /// Sentences on what the policy took away of an amendment, and on the candidate's fate.
    pub notes: Vec<String>,
}

/// What `cancel` shows.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cancelled {
    pub schema: &'static str,
    pub task_id: String,
    pub state: &'static str,
    /// Its worktree, with whatever is in it.
    pub worktree: String,
    /// Effects that may still happen although it was cancelled, one sentence each.
    pub effects: Vec<String>,
    /// Tasks that were parts of it, and were cancelled with it.
    pub parts: Vec<String>,
}

/// What `path` shows.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorktreePath {
    pub schema: &'static str,
    pub task_id: String,
    pub worktree: String,
}

/// What `gc` shows.
#[derive(Debug, Serialize)]
pub struct Collection {
    pub schema: &'static str,
    /// Tasks whose worktree and private files were removed.
    pub removed: Vec<String>,
    pub kept: Vec<KeptTask>,
    /// Commits that a worker had made in a worktree that was removed.
    pub commits: Vec<KeptCommit>,
    /// How many results of worktrees' set-ups were removed because nobody uses them.
    pub setups: u64,
}

/// A worker's commit, which a ref keeps.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeptCommit {
    pub task_id: String,
    pub commit: ObjectId,
    #[serde(rename = "ref")]
    pub reference: String,
}

/// A task whose files stay.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeptTask {
    pub task_id: String,
    pub reason: String,
}

/// What `doctor` shows.
#[derive(Debug, Serialize)]
pub struct Diagnosis {
    pub schema: &'static str,
    /// True where nothing that a task needs is missing.
    pub ok: bool,
    pub checks: Vec<DoctorCheck>,
    /// The verifiers that a task started at HEAD would have, the built-in ones left out.
    pub verifiers: Vec<KnownVerifier>,
}

/// A verifier of the repository.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KnownVerifier {
    pub id: String,
    /// The title in its manifest; `None` where the manifest gives none, or cannot be read.
    pub title: Option<String>,
    /// The reason why it cannot be used; `None` where it can.
    pub problem: Option<String>,
    /// True where HEAD has it.
    pub committed: bool,
    /// True where it comes from the user's private layer.
    pub private: bool,
    /// The programs that it needs.
    pub tools: Vec<NeededTool>,
    /// What it may read and is not on this machine; it runs without.
    pub absent_reads: Vec<String>,
    /// Those patterns of its inputs that name no file of HEAD.
    pub dead_inputs: Vec<String>,
}

impl KnownVerifier {
    /// True where it could be run here and now.
    pub fn is_ready(&self) -> bool {
        self.problem.is_none() && self.tools.iter().all(|tool| tool.problem.is_none())
    }
}

/// A program that a verifier needs.
#[derive(Debug, Serialize)]
pub struct NeededTool {
    pub name: String,
    /// What is wrong with it; `None` where it is there and answers.
    pub problem: Option<String>,
}

/// One question and its answer.
#[derive(Debug, Serialize)]
pub struct DoctorCheck {
    pub id: &'static str,
    /// True where it is as needed.
    pub ok: bool,
    pub text: String,
    /// The way to get it; empty where nothing is missing.
    pub remedy: String,
}

impl DoctorCheck {
    pub fn new(id: &'static str, answer: Result<String, (String, &str)>) -> Self {
        match answer {
            Ok(text) => Self { id, ok: true, text, remedy: String::new() },
            Err((text, remedy)) => Self { id, ok: false, text, remedy: remedy.to_owned() },
        }
    }
}

/// What `recover` shows.
#[derive(Debug, Serialize)]
pub struct Recovery {
    pub schema: &'static str,
    /// Rows of the ledger; its whole chain was checked.
    pub rows: u64,
    /// Heads that the ledger had lost, and that it goes on without on a person's word.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub accepted: Vec<LostHead>,
    /// The move that the store has made on a person's word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adopted: Option<Relocation>,
    /// One an action that was unfinished.
    pub actions: Vec<Reconciled>,
}

/// The end to which recovery brought an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RecoveryOutcome {
    Completed,
    /// It had begun, and was undone.
    TakenBack,
    /// It has changed nothing.
    SafeToRetry,
    /// Nobody can say now whether it took place; the next look may.
    Unknown,
    /// Only a person can say.
    NeedsHumanDecision,
    /// It could not be settled.
    Failed,
    /// It is still running.
    Busy,
}

/// An action that was unfinished.
#[derive(Debug, Serialize)]
pub struct Reconciled {
    pub action: String,
    pub task: Option<String>,
    pub tool: String,
    pub outcome: RecoveryOutcome,
    /// Paths that the user edited meanwhile; they were kept.
    pub kept: Vec<RepoPath>,
    pub notes: Vec<String>,
}

impl Reconciled {
    /// Of an action that changed nothing, until something else is found. `last` is its last row.
    pub fn new(last: &Entry) -> Self {
        Self {
            action: last.action.clone(),
            task: last.task.clone(),
            tool: last.tool.clone(),
            outcome: RecoveryOutcome::SafeToRetry,
            kept: Vec::new(),
            notes: Vec::new(),
        }
    }
}

/// The tasks of a repository.
#[derive(Debug, Serialize)]
pub struct TaskList {
    pub schema: &'static str,
    /// One a task, in the order in which they were opened; those that have ended only where they were asked
    /// for.
    pub tasks: Vec<TaskListRow>,
    /// Actions that a crash left without an end; the next command that writes, or `recover`, takes care of
    /// them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unfinished: Vec<UnfinishedRow>,
    /// Heads that the ledger has lost: it was set back, and nothing is written to it.
    #[serde(rename = "rolledBack", skip_serializing_if = "Vec::is_empty")]
    pub rolled_back: Vec<LostHead>,
}

/// One task in the list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskListRow {
    pub task_id: String,
    pub state: TaskState,
    pub worktree: String,
    /// Size of its worktree and private files, in bytes; `None` where it was not asked for: it costs a look
    /// at every file.
    pub bytes: Option<u64>,
    pub goal: String,
    /// When it was opened, RFC 3339 in UTC.
    pub created_at: String,
    /// Whose turn it is; `None` where it has ended.
    pub turn: Option<WhoseTurn>,
    /// The command that goes on with it.
    pub next: Option<Vec<String>>,
    /// Whether its last candidate conflicts with the live tree at this moment; `None` where it was not asked
    /// for, or cannot be said.
    pub live_conflict: Option<bool>,
    /// How long ago it was opened, in seconds.
    #[serde(skip)]
    pub age: i64,
    /// False where its worktree was removed.
    #[serde(skip)]
    pub has_worktree: bool,
}

/// An action without an end.
#[derive(Debug, Clone, Serialize)]
pub struct UnfinishedRow {
    pub action: String,
    pub task: Option<String>,
    pub tool: String,
}

impl UnfinishedRow {
    /// True where its tool may write to the live tree.
    pub fn writes_live_tree(&self) -> bool {
        writes_live_tree(&self.tool)
    }
}

/// The thing that a reference names.
#[derive(Debug, Serialize)]
#[serde(tag = "schema")]
pub enum Referenced {
    #[serde(rename = "git-tender/action/v1")]
    Action { action: String, entries: Vec<Entry> },
    /// A stored blob: a record, a log, a patch.
    #[serde(rename = "git-tender/blob/v1")]
    Blob {
        /// `sha256:…`
        #[serde(rename = "ref")]
        reference: String,
        bytes: usize,
        /// Its text, where it is UTF-8.
        text: Option<String>,
        /// Its bytes in base64, where it is not.
        base64: Option<String>,
    },
}

impl Referenced {
    /// The bytes of a blob; `None` for an action.
    pub fn raw_bytes(&self) -> Option<Vec<u8>> {
        match self {
            Self::Blob { text: Some(text), .. } => Some(text.clone().into_bytes()),
            Self::Blob { base64: Some(code), .. } => decode_base64(code).ok(),
            _ => None,
        }
    }

    /// A stored blob under the reference that named it.
    pub fn from_blob(reference: &str, bytes: Vec<u8>) -> Self {
        let length = bytes.len();
        let (text, base64) = text_or_base64(bytes);
        let digest = reference.trim_start_matches("sha256:");
        Self::Blob { reference: format!("sha256:{digest}"), bytes: length, text, base64 }
    }
}

fn text_or_base64(bytes: Vec<u8>) -> (Option<String>, Option<String>) {
    match String::from_utf8(bytes) {
        Ok(text) => (Some(text), None),
        Err(e) => (None, Some(encode_base64(e.as_bytes()))),
    }
}

/// The patch of a candidate, as `diff` shows it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CandidateDiff {
    pub schema: &'static str,
    pub task_id: String,
    pub candidate: u32,
    pub sha256: Sha256,
    /// The text, where it is UTF-8.
    pub text: Option<String>,
    /// Its bytes in base64, where it is not.
    pub base64: Option<String>,
    #[serde(skip)]
    pub patch: Vec<u8>,
}

impl CandidateDiff {
    pub fn new(task: &str, candidate: u32, sha256: Sha256, patch: Vec<u8>) -> Self {
        let (text, base64) = text_or_base64(patch.clone());
        Self {
            schema: "git-tender/diff/v1",
            task_id: task.to_owned(),
            candidate,
            sha256,
            text,
            base64,
            patch,
        }
    }
}

/// A record of evidence with the logs that it names.
#[derive(Debug)]
pub struct EvidenceWithLogs {
    pub evidence: Evidence,
    /// Per log its name (`stdout` or `stderr`) and what the verifier wrote.
    pub logs: Vec<(&'static str, Vec<u8>)>,
}

/// The pages that were written.
#[derive(Debug, Serialize)]
pub struct ManualPages {
    pub schema: &'static str,
    /// Where.
    pub dir: String,
    /// Their file names.
    pub pages: Vec<String>,
}

/// What `ship --all` shows.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueObject {
    /// `git-tender/queue/v1`
    pub schema: String,
    /// What became of each task that was verified, in the order in which they were taken.
    pub tasks: Vec<QueueRow>,
    /// Tasks that have not ended and were not verified: nothing was done with them.
    pub waiting: Vec<String>,
}

/// One task of the queue.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueRow {
    pub task_id: String,
    pub outcome: QueueOutcome,
    /// As `deliver` shows it.
    pub delivery: Option<DeliveryObject>,
    /// Why it was skipped.
    pub error: Option<Failure>,
}

/// What became of a task of the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueOutcome {
    Delivered,
    WouldDeliver,
    /// Somebody else changed the same.
    Conflict,
    /// Something else stood in its way.
    Skipped,
}
