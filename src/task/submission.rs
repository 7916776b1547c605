//! A candidate, captured from the worktree or from a patch. What was captured is bound to the blobs it was
//! made against and kept.

use super::Session;
use crate::domain::change::patch::Candidate;
use crate::domain::ledger::entry::Entry;
use crate::domain::ledger::record::{Opened, Record};
use crate::domain::ledger::task::TaskView;
use crate::domain::value::digest::Sha256;
use crate::domain::value::repo_path::RepoPath;
use crate::error::presence::is_present;
use crate::error::{Code, Failure, Result};
use crate::git::capture::Capture;
use crate::git::limits::{ALLOWED, CandidateLimits};
use crate::git::{Quarantine, patch_intake};
use crate::store::Ledger;
use crate::task::candidate::{SET_ASIDE, bind, keep_last};
use crate::task::held::TaskWrite;
use crate::task::observation::Judged;
use crate::task::part::{self, ChoosePart};
use crate::task::{budget, candidate, observation, tripwire};
use serde_json::{Value, json};
use std::path::Path;

/// Captures a candidate of a task that may still be worked on.
pub fn capture_candidate(task: &mut TaskWrite<'_>, patch: Option<&[u8]>) -> Result<Candidate> {
    keep_candidate(task, &params(patch), |task, opened, most| {
        if patch.is_none() {
            require_decided(task, opened)?;
        }
        capture(task, opened, patch, most)
    })
}

/// The same of a part of what the worktree changes: from `whole`, what `choose` takes. Gives also the paths
/// of which anything was left. `asked` tells what was asked for.
pub fn capture_chosen(
    task: &mut TaskWrite<'_>,
    asked: &Value,
    whole: &Capture,
    choose: ChoosePart<'_>,
) -> Result<(Candidate, Vec<RepoPath>)> {
    let mut left = Vec::new();
    let candidate = keep_candidate(task, asked, |task, opened, most| {
        require_decided(task, opened)?;
        let limits = CandidateLimits {
            allowed: &|path| opened.effective.write_allows(path),
            scope: &opened.effective.write_patterns(),
            artifact_bytes: Some(most),
        };
        let chosen = part::capture_part(task, opened, whole, choose, &limits);
        let (captured, rest) = chosen.map_err(|failure| with_report(failure, &task.view.id))?;
        left = rest;
        Ok(captured)
    })?;
    Ok((candidate, left))
}

fn keep_candidate(
    task: &mut TaskWrite<'_>,
    asked: &Value,
    take: impl FnOnce(&TaskWrite<'_>, &Opened, u64) -> Result<Capture>,
) -> Result<Candidate> {
    tripwire::look_at_surroundings(task)?;
    task.act_if("submit", asked, budget::still_fits, |task| {
        let candidate = capture_and_bind(task, take)?;
        let opened = task.view.opened_terms()?;
        let judged = Judged { opened, candidate: &candidate };
        let observation = observation::take_observation(task, judged)?;
        task.require_wanted()?;
        // Last, since it waits for the disk, and then for all that was written until here.
        let quarantine = task.session.quarantine(&task.view.id);
        keep_last(task.session, &task.view.id, opened, &quarantine, &candidate.tree)?;
        let record =
            Record::Captured { candidate: Box::new(candidate.clone()), observation: Box::new(observation) };
        Ok((record, candidate))
    })
}

fn params(patch: Option<&[u8]>) -> Value {
    json!({ "patchSha256": patch.map(Sha256::of) })
}

/// True where no capture of the worktree gave this candidate.
pub fn came_from_patch(task: &TaskWrite<'_>, number: u32) -> Result<bool> {
    let of_worktree = Sha256::of_json(&params(None));
    let other = |row: &Entry| row.tool != "submit" || row.params_sha256 == of_worktree;
    Ok(!was_captured_by(&task.ledger, &task.view, number, other)?)
}

/// True where a row of an action that captured this candidate is of this kind: what was captured again is the
/// same candidate, by another action.
fn was_captured_by(
    ledger: &Ledger,
    view: &TaskView,
    number: u32,
    is_of_kind: impl Fn(&Entry) -> bool,
) -> Result<bool> {
    for captured in view.candidates.iter().filter(|one| one.value.candidate == number) {
        if ledger.action(&captured.action)?.iter().any(&is_of_kind) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// True where the worktree is what the task started from.
pub fn is_untouched(task: &TaskWrite<'_>) -> Result<bool> {
    Ok(part::whole_change(task)?.tree == task.view.opened_terms()?.base.tree)
}

/// True where the last candidate was captured from this patch.
pub fn is_last_patch(session: &Session, view: &TaskView, patch: &[u8]) -> Result<bool> {
    let (Some(ledger), Some(last)) = (session.ledger()?, view.candidates.last()) else { return Ok(false) };
    let digest = Sha256::of_json(&params(Some(patch)));
    was_captured_by(&ledger, view, last.value.candidate, |row| row.params_sha256 == digest)
}

fn capture_and_bind(
    task: &mut TaskWrite<'_>,
    take: impl FnOnce(&TaskWrite<'_>, &Opened, u64) -> Result<Capture>,
) -> Result<Candidate> {
    let session = task.session;
    let opened = task.view.opened_terms()?.clone();
    let quarantine = session.quarantine(&task.view.id);
    let most = budget::artifact_bytes(&task.view);
    let captured = take(task, &opened, most)?;
    require_resolved(task, &quarantine, &captured)?;
    bind(task, &opened, captured)
}

/// A rebase has set versions aside that no markers could show: as long as the folder is there, nobody has
/// decided between them.
fn require_decided(task: &TaskWrite<'_>, opened: &Opened) -> Result<()> {
    let folder = Path::new(&opened.worktree).join(SET_ASIDE);
    if !task.view.set_aside || !is_present(&folder)? {
        return Ok(());
    }
    Err(Failure::new(
        Code::StateInvalid,
        format!("{} holds what the rebase has set aside: nobody has decided about it", folder.display()),
    )
    .subject(SET_ASIDE)
    .expected("no such folder", folder.display().to_string())
    .remedy(
        "Bring the files to what they should say, remove that folder, then submit again.",
        ["git", "tender", "submit", &task.view.id],
    ))
}

/// A rebase left conflict markers: as long as they are there, nobody has decided what the file should say.
fn require_resolved(task: &TaskWrite<'_>, quarantine: &Quarantine, captured: &Capture) -> Result<()> {
    if task.view.marked.is_empty() {
        return Ok(());
    }
    let objects = task.session.repository.object_reader(Some(quarantine))?;
    let mut open = Vec::new();
    for change in captured.changes.iter().filter(|change| task.view.marked.contains(&change.path)) {
        let Some(new) = change.new.as_ref().filter(|new| new.mode.is_regular()) else { continue };
        let bytes = objects.read_blob(&new.git_blob)?;
        let line = |start: &[u8]| bytes.split(|b| *b == b'\n').any(|line| line.starts_with(start));
        if line(b"<<<<<<< ") || line(b">>>>>>> ") {
            open.push(change.path.clone());
        }
    }
    let Some(first) = open.first() else { return Ok(()) };
    Err(Failure::new(
        Code::StateInvalid,
        format!("{first} still has the conflict markers that the rebase left: nobody has resolved them"),
    )
    .subject(first.to_string())
    .detail("unresolved", &open)
    .expected("a file without conflict markers", "<<<<<<< … >>>>>>>")
    .remedy(
        "Edit the file in the task's worktree until it says what it should, then submit again.",
        ["git", "tender", "submit", &task.view.id],
    ))
}

/// The content of a candidate, within what the contract and the policy allow.
fn capture(task: &TaskWrite<'_>, opened: &Opened, patch: Option<&[u8]>, most: u64) -> Result<Capture> {
    let (session, id) = (task.session, task.view.id.as_str());
    let limits = CandidateLimits {
        allowed: &|path| opened.effective.write_allows(path),
        scope: &opened.effective.write_patterns(),
        artifact_bytes: Some(most),
    };
    let quarantine = session.quarantine(id);
    let captured = match patch {
        Some(patch) => {
            patch_intake::take_patch(&session.repository, &quarantine, &opened.base.tree, patch, &limits)
        }
        None => candidate::worktree(task, limits),
    };
    captured.map_err(|failure| with_report(failure, id))
}

/// Where the scope is looked at, the task's name is not known.
fn with_report(failure: Failure, id: &str) -> Failure {
    match failure.code() {
        Code::ScopeViolation if !failure.has_remedy() || failure.has_detail(&ALLOWED) => {
            let text = failure.next_step().text;
            failure.remedy(text, ["git", "tender", "report", "--brief", id])
        }
        _ => failure,
    }
}
