//! The report and the views beside it: read from the ledger and the blobs alone, so that a copy of them gives
//! the same bytes.

mod brief;

pub use brief::{brief, brief_of_view};

use super::session::load;
use super::{Session, runs};
use crate::domain::contract::clause::{Permission, clauses};
use crate::domain::ledger::report::{Known, Report};
use crate::domain::ledger::task::{Opened, Record, Recorded, TaskState, TaskView};
use crate::domain::proof::evidence::{Evidence, InputFile, Listing, Observation};
use crate::domain::proof::verdict;
use crate::domain::proof::verdict::{FORBIDDEN, Row, Strength, Verdict};
use crate::domain::value::digest::Sha256;
use crate::error::{Code, Failure, Result};
use crate::store::{Blobs, Ledger};
use serde::Serialize;

/// The report of a task.
pub fn report(session: &Session, named: Option<&str>) -> Result<Report> {
    let (ledger, view) = session.view(named)?;
    of_view(session, &ledger, &view)
}

/// The report of a task that is known already.
pub fn of_view(session: &Session, ledger: &Ledger, view: &TaskView) -> Result<Report> {
    let evidence = evidence(ledger, view)?;
    let mut rows = rows(&session.blobs(), view, &evidence)?;
    super::budget::explain(view, &mut rows);
    let runs = runs::of_rows(&session.blobs(), &evidence, &rows);
    Ok(Report::new(Known { view, opened: view.opened()?, rows: &rows, evidence: &evidence, runs: &runs }))
}

/// The evidence that may count for a task: its own, and what other tasks made under the same keys.
pub fn evidence(ledger: &Ledger, view: &TaskView) -> Result<Vec<Recorded<Evidence>>> {
    let mut found = view.evidence.clone();
    let Some(observation) = &view.observation else { return Ok(found) };
    for key in observation.value.rows.iter().flat_map(|row| row.key.iter().chain(&row.base_key)) {
        for entry in ledger.entries_with_key(&key.digest())? {
            // By its place in the ledger: one action has a record for each row that its run shows.
            let known =
                entry.task.as_deref() == Some(view.id.as_str()) || found.iter().any(|e| e.seq == entry.seq);
            if let (false, Ok(Record::Evidence(record))) =
                (known, serde_json::from_value(entry.result.clone()))
            {
                found.push(Recorded { seq: entry.seq, action: entry.action, at: entry.at, value: *record });
            }
        }
    }
    Ok(found)
}

/// The rows of the last candidate; of the contract alone where there is none yet.
pub fn rows(blobs: &Blobs, view: &TaskView, evidence: &[Recorded<Evidence>]) -> Result<Vec<Row>> {
    match &view.observation {
        Some(observation) => Ok(judge(blobs, &observation.value, evidence)),
        None => Ok(unproven(view.opened()?)),
    }
}

/// The rows that an observation and the evidence give.
pub fn judge(blobs: &Blobs, observation: &Observation, evidence: &[Recorded<Evidence>]) -> Vec<Row> {
    verdict::rows(observation, &in_order(evidence), &|digest| listing(blobs, digest))
}

/// The records as verdicts are computed from them: in the order of the ledger, each with its digest.
pub fn in_order(evidence: &[Recorded<Evidence>]) -> Vec<verdict::Record> {
    let mut ordered: Vec<&Recorded<Evidence>> = evidence.iter().collect();
    ordered.sort_by_key(|e| e.seq);
    ordered.into_iter().map(|e| (e.value.digest(), e.value.clone())).collect()
}

/// The files of a stored listing.
pub fn listing(blobs: &Blobs, digest: &Sha256) -> Option<Vec<InputFile>> {
    let stored: Listing = serde_json::from_slice(&blobs.get(digest).ok()?).ok()?;
    let other = match &stored.differs_from {
        Some(other) => listing(blobs, other)?,
        None => Vec::new(),
    };
    Some(stored.resolve(other))
}

fn unproven(opened: &Opened) -> Vec<Row> {
    let row = |clause: crate::domain::contract::clause::Clause| Row {
        reason: Some(match clause.permission {
            Permission::Forbidden => FORBIDDEN.to_owned(),
            _ => "no candidate yet".to_owned(),
        }),
        id: clause.id,
        verifier: clause.verifier,
        title: None,
        required: clause.required,
        verdict: Verdict::NotRun,
        reused: false,
        strength: Strength::Unmeasured,
        judge_changed: false,
        evidence: None,
        checks: None,
    };
    clauses(&opened.contract, &[], &[]).into_iter().map(row).collect()
}

/// The tasks of a repository.
#[derive(Debug, Serialize)]
pub struct Status {
    schema: &'static str,
    /// One a task, in the order in which they were opened.
    pub tasks: Vec<StatusRow>,
    /// Actions that a crash left without an end; the next command that writes, or `recover`, takes care of
    /// them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unfinished: Vec<UnfinishedRow>,
}

/// One task in the list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusRow {
    pub task_id: String,
    pub state: TaskState,
    pub worktree: String,
    /// What its worktree and private files take, in bytes.
    pub bytes: u64,
}

/// An action without an end.
#[derive(Debug, Clone, Serialize)]
pub struct UnfinishedRow {
    pub action: String,
    pub task: Option<String>,
    pub tool: String,
}

impl UnfinishedRow {
    pub fn text(&self) -> String {
        let (tool, action) = (&self.tool, &self.action);
        let task = self.task.as_deref().unwrap_or("-");
        format!(
            "unfinished: {tool} of {task} ({action}); where it was cut off, `git tender recover` brings it to an end"
        )
    }
}

/// Lists the tasks. Writes nothing, and makes no store where there is none.
pub fn status(session: &Session) -> Result<Status> {
    let mut status = Status { schema: "git-tender/status/v1", tasks: Vec::new(), unfinished: Vec::new() };
    let Some(ledger) = session.ledger()? else { return Ok(status) };
    for id in ledger.tasks()? {
        let Some(mut view) = load(&ledger, &id)? else { continue };
        super::budget::attach(&ledger, &mut view)?;
        let rows = rows(&session.blobs(), &view, &evidence(&ledger, &view)?)?;
        let worktree = view.opened()?.worktree.clone();
        let bytes = size(std::path::Path::new(&worktree)) + size(&session.layout.task(&id));
        status.tasks.push(StatusRow { state: view.state(&rows), task_id: id, worktree, bytes });
    }
    status.unfinished = unfinished(session, None)?;
    Ok(status)
}

/// Actions without an end, of one task or all: they run at this moment, or a crash cut them off.
pub fn unfinished(session: &Session, task: Option<&str>) -> Result<Vec<UnfinishedRow>> {
    let Some(ledger) = session.ledger()? else { return Ok(Vec::new()) };
    let all = ledger.unfinished()?.into_iter();
    let of_task = all.filter(|(_, of, _)| task.is_none() || of.as_deref() == task);
    Ok(of_task.map(|(action, task, tool)| UnfinishedRow { action, task, tool }).collect())
}

/// The sizes of all regular files beneath a folder; what cannot be read counts as nothing.
fn size(folder: &std::path::Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => size(&entry.path()),
            Ok(meta) if meta.is_file() => meta.len(),
            _ => 0,
        })
        .sum()
}

/// The entries of the ledger, of one task or all, after the whole chain was checked.
pub fn log(session: &Session, named: Option<&str>) -> Result<Vec<crate::domain::ledger::entry::Entry>> {
    let Some(ledger) = session.ledger()? else {
        return match named {
            Some(id) => {
                Err(Failure::new(Code::NotFound, format!("there is no task {id:?} in this repository"))
                    .subject(id))
            }
            None => Ok(Vec::new()),
        };
    };
    ledger.check_chain()?;
    let entries = ledger.entries(named)?;
    if let (Some(id), true) = (named, entries.is_empty()) {
        return Err(Failure::new(Code::NotFound, format!("there is no task {id:?} in this repository"))
            .subject(id)
            .remedy("See which tasks there are.", ["git", "tender", "status"]));
    }
    Ok(entries)
}

#[derive(Debug, Serialize)]
#[serde(tag = "schema")]
pub enum Shown {
    #[serde(rename = "git-tender/action/v1")]
    Action { action: String, entries: Vec<crate::domain::ledger::entry::Entry> },
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

/// The patch of a candidate, as `diff` shows it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Diff {
    schema: &'static str,
    task_id: String,
    candidate: u32,
    sha256: Sha256,
    /// The text, where it is UTF-8.
    text: Option<String>,
    /// Its bytes in base64, where it is not.
    base64: Option<String>,
    #[serde(skip)]
    pub patch: Vec<u8>,
}

/// The patch of the last candidate.
pub fn diff(session: &Session, named: Option<&str>) -> Result<Diff> {
    let (_, view) = session.view(named)?;
    let candidate = &view.last_candidate()?.value;
    let patch = session.blobs().get(&candidate.patch.sha256)?;
    let (text, base64) = text_or_base64(patch.clone());
    let sha256 = candidate.patch.sha256;
    Ok(Diff {
        schema: "git-tender/diff/v1",
        task_id: view.id.clone(),
        candidate: candidate.candidate,
        sha256,
        text,
        base64,
        patch,
    })
}

/// Finds what a reference names: an action, or a stored blob.
pub fn show(session: &Session, reference: &str) -> Result<Shown> {
    let unknown = || {
        Failure::new(Code::NotFound, format!("{reference:?} names no action and no stored file here"))
            .subject(reference)
            .remedy("Actions and records are named in the log.", ["git", "tender", "log"])
    };
    let ledger = session.ledger()?.ok_or_else(unknown)?;
    if let Some(digest) = reference.strip_prefix("sha256:").or((reference.len() == 64).then_some(reference)) {
        let bytes = session.blobs().get(&digest.parse().map_err(|_| unknown())?)?;
        return Ok(blob(reference, bytes));
    }
    let entries = ledger.action(reference)?;
    if entries.is_empty() {
        Err(unknown())
    } else {
        Ok(Shown::Action { action: reference.to_owned(), entries })
    }
}

/// A record of evidence with the logs that it names.
#[derive(Debug)]
pub struct Told {
    pub evidence: Evidence,
    /// Per log its name (`stdout` or `stderr`) and what the verifier wrote.
    pub logs: Vec<(&'static str, Vec<u8>)>,
}

/// Reads the logs of a record; `None` where the bytes are no record.
pub fn told(session: &Session, bytes: &[u8]) -> Result<Option<Told>> {
    let Ok(evidence) = serde_json::from_slice::<Evidence>(bytes) else { return Ok(None) };
    let mut logs = Vec::new();
    for attempt in &evidence.attempts {
        for (name, log) in [("stdout", attempt.stdout), ("stderr", attempt.stderr)] {
            if let Some(digest) = log {
                logs.push((name, session.blobs().get(&digest)?));
            }
        }
    }
    Ok(Some(Told { evidence, logs }))
}

fn blob(reference: &str, bytes: Vec<u8>) -> Shown {
    let length = bytes.len();
    let (text, base64) = text_or_base64(bytes);
    let digest = reference.trim_start_matches("sha256:");
    Shown::Blob { reference: format!("sha256:{digest}"), bytes: length, text, base64 }
}

fn text_or_base64(bytes: Vec<u8>) -> (Option<String>, Option<String>) {
    use base64::Engine;
    match String::from_utf8(bytes) {
        Ok(text) => (Some(text), None),
        Err(e) => (None, Some(base64::engine::general_purpose::STANDARD.encode(e.into_bytes()))),
    }
}

impl Shown {
    /// The bytes of a blob; `None` for an action.
    pub fn raw(&self) -> Option<Vec<u8>> {
        use base64::Engine;
        match self {
            Self::Blob { text: Some(text), .. } => Some(text.clone().into_bytes()),
            Self::Blob { base64: Some(code), .. } => {
                base64::engine::general_purpose::STANDARD.decode(code).ok()
            }
            _ => None,
        }
    }

    /// An action's rows for people.
    pub fn text(&self) -> String {
        serde_json::to_string_pretty(self).map(|text| text + "\n").unwrap_or_default()
    }
}

impl Status {
    pub fn text(&self) -> String {
        use std::fmt::Write;
        let mut out = String::new();
        if self.tasks.is_empty() {
            out.push_str("no tasks; begin with `git tender start`, or look at `git tender demo`\n");
        }
        for task in &self.tasks {
            let state = serde_json::to_value(task.state)
                .ok()
                .and_then(|v| v.as_str().map(|s| s.replace('_', " ")))
                .unwrap_or_default();
            let place = if task.bytes == 0 { "(removed)" } else { task.worktree.as_str() };
            let _ = writeln!(
                out,
                "{:<20} {:<20} {:>9} KiB  {place}",
                task.task_id,
                state,
                task.bytes.div_ceil(1024)
            );
        }
        for left in &self.unfinished {
            let _ = writeln!(out, "{}", left.text());
        }
        out
    }
}
