//! The report and the views beside it: read from the ledger and the blobs alone, so that a copy of
//! them gives the same bytes.

use super::Session;
use crate::domain::ledger::brief::Brief;
use crate::domain::ledger::objects::{
    CandidateDiff, EvidenceWithLogs, Referenced, TaskList, TaskListRow, UnfinishedRow,
};
use crate::domain::ledger::report::Report;
use crate::domain::ledger::turn::next_turn;
use crate::domain::proof::evidence::Evidence;
use crate::error::{Code, Failure, Result};
use crate::store::Ledger;
use crate::task::effect::tree::conflicts_with_live_tree;
pub use crate::task::home::{describe_copy, describe_move};
use crate::task::report::{brief_of_view, report_of_view};
pub use crate::task::rollback::{find_lost_heads, refuse_rollback};
use crate::task::view::load;
use crate::task::{evidence, family};

/// The report of a task.
pub fn report(session: &Session, named: Option<&str>) -> Result<Report> {
    let (ledger, view) = session.view(Some(&session.task_id_to_show(named)?))?;
    report_of_view(session, &ledger, &view)
}

/// The report in brief, for a worker.
pub fn brief(session: &Session, named: Option<&str>) -> Result<Brief> {
    let (ledger, view) = session.view(named)?;
    brief_of_view(session, &ledger, &view)
}

/// What a list of the tasks has beyond those that have not ended, and what of each.
#[derive(Debug, Clone, Copy, Default)]
pub struct StatusWishes {
    pub all: bool,
    /// Costs a look at every file of a task.
    pub size: bool,
    /// Costs a look at every path of a candidate.
    pub live: bool,
}

/// Lists the tasks. Writes nothing, and makes no store where there is none. Only the rows of tasks
/// that are listed are read.
pub fn status(session: &Session, wishes: StatusWishes) -> Result<TaskList> {
    let (tasks, unfinished, rolled_back) = (Vec::new(), Vec::new(), find_lost_heads(session)?);
    let mut status = TaskList { schema: "git-tender/status/v2", tasks, unfinished, rolled_back };
    let Some(ledger) = session.ledger()? else { return Ok(status) };
    status.unfinished = unfinished_rows(&ledger, None)?;
    let mut ids = if wishes.all { ledger.tasks()? } else { ledger.open_tasks()? };
    // What is at work on one that has ended, as an undo, keeps it in the list.
    for id in status.unfinished.iter().filter_map(|row| row.task.as_ref()) {
        if !ids.contains(id) {
            ids.push(id.clone());
        }
    }
    for id in ids {
        status.tasks.extend(list_row(session, &ledger, &id, wishes)?);
    }
    Ok(status)
}

fn list_row(
    session: &Session,
    ledger: &Ledger,
    id: &str,
    wishes: StatusWishes,
) -> Result<Option<TaskListRow>> {
    let Some(mut view) = load(ledger, id)? else { return Ok(None) };
    family::attach(ledger, &mut view)?;
    let rows = evidence::current_rows(&session.blobs(), &view, &evidence::counting_for(ledger, &view)?)?;
    let opened = view.opened.as_ref().ok_or_else(|| Failure::internal("a task that nobody opened"))?;
    let (created_at, terms) = (opened.at.clone(), &opened.value);
    let place = std::path::Path::new(&terms.worktree);
    let state = view.state_with(&rows);
    let (turn, next) = next_turn(id, state, &rows).unzip();
    Ok(Some(TaskListRow {
        task_id: id.to_owned(),
        state,
        worktree: terms.worktree.clone(),
        bytes: wishes.size.then(|| folder_size(place) + folder_size(&session.layout.task(id))),
        goal: terms.contract.goal.clone(),
        age: seconds_since(&created_at),
        created_at,
        turn,
        next,
        live_conflict: if wishes.live { conflicts_with_live_tree(session, &view) } else { None },
        has_worktree: place.exists(),
    }))
}

fn seconds_since(moment: &str) -> i64 {
    let parse = |text: &str| text.parse::<jiff::Timestamp>().ok();
    let now = parse(&crate::store::ledger::now());
    now.zip(parse(moment)).map_or(0, |(now, then)| now.as_second() - then.as_second())
}

/// Actions without an end, of one task or all: they run at this moment, or a crash cut them off.
pub fn unfinished(session: &Session, task: Option<&str>) -> Result<Vec<UnfinishedRow>> {
    session.ledger()?.map_or(Ok(Vec::new()), |ledger| unfinished_rows(&ledger, task))
}

fn unfinished_rows(ledger: &Ledger, task: Option<&str>) -> Result<Vec<UnfinishedRow>> {
    let mut all = ledger.unfinished()?;
    all.retain(|row| task.is_none() || row.task.as_deref() == task);
    Ok(all)
}

/// The sizes of all regular files beneath a folder; what cannot be read counts as nothing.
fn folder_size(folder: &std::path::Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => folder_size(&entry.path()),
            Ok(meta) if meta.is_file() => meta.len(),
            _ => 0,
        })
        .sum()
}

/// The entries of the ledger, of one task or all, after the whole chain was checked.
pub fn log(session: &Session, named: Option<&str>) -> Result<Vec<crate::domain::ledger::entry::Entry>> {
    let Some(ledger) = session.ledger()? else {
        refuse_rollback(session)?;
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
        refuse_rollback(session)?;
        return Err(Failure::new(Code::NotFound, format!("there is no task {id:?} in this repository"))
            .subject(id)
            .remedy("See which tasks there are.", ["git", "tender", "status"]));
    }
    Ok(entries)
}

/// The patch of the last candidate.
pub fn diff(session: &Session, named: Option<&str>) -> Result<CandidateDiff> {
    let (_, view) = session.view(Some(&session.task_id_to_show(named)?))?;
    let candidate = &view.last_candidate()?.value;
    let patch = session.blobs().get(&candidate.patch.sha256)?;
    Ok(CandidateDiff::new(&view.id, candidate.candidate, candidate.patch.sha256, patch))
}

/// Finds what a reference names: an action, or a stored blob.
pub fn show(session: &Session, reference: &str) -> Result<Referenced> {
    let unknown = || {
        Failure::new(Code::NotFound, format!("{reference:?} names no action and no stored file here"))
            .subject(reference)
            .remedy("Actions and records are named in the log.", ["git", "tender", "log"])
    };
    let ledger = session.ledger()?.ok_or_else(unknown)?;
    if let Some(digest) = reference.strip_prefix("sha256:").or((reference.len() == 64).then_some(reference)) {
        let bytes = session.blobs().get(&digest.parse().map_err(|_| unknown())?)?;
        return Ok(Referenced::from_blob(reference, bytes));
    }
    let entries = ledger.action(reference)?;
    if entries.is_empty() {
        Err(unknown())
    } else {
        Ok(Referenced::Action { action: reference.to_owned(), entries })
    }
}

/// Reads the logs of a record; `None` where the bytes are no record.
pub fn read_logs(session: &Session, bytes: &[u8]) -> Result<Option<EvidenceWithLogs>> {
    let Ok(evidence) = serde_json::from_slice::<Evidence>(bytes) else { return Ok(None) };
    let mut logs = Vec::new();
    for attempt in &evidence.attempts {
        for (name, log) in [("stdout", attempt.stdout), ("stderr", attempt.stderr)] {
            if let Some(digest) = log {
                logs.push((name, session.blobs().get(&digest)?));
            }
        }
    }
    Ok(Some(EvidenceWithLogs { evidence, logs }))
}
