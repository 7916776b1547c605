//! Authorization on the real target: where a path leads to in the worktree at this moment, and what the
//! contract's lists name.
//!
//! Looking now does not make it safe to use the path later; the tools look again, by descriptors, when they
//! use it.

use super::super::session::TaskWrite;
use super::super::{amend, edit, explore, inquiry};
use super::reference;
use crate::domain::ledger::task::TaskView;
use crate::domain::value::repo_path::RepoPath;
use crate::domain::worker::call::Effect;
use crate::error::{Code, Failure, Result};
use crate::git::limits::Limits;
use crate::tools::place::{Place, require_readable};
use crate::tools::read_file::Target;
use crate::tools::{Call, apply_patch, requests};

/// Refuses a call on something that the task may not reach. What only has to be checked to be noted comes
/// back as it will stand in the ledger.
pub fn authorize(task: &TaskWrite<'_>, call: &Call, worker: &str) -> Result<Option<Effect>> {
    let place = place(task)?;
    let noted = match call {
        Call::NoteFinding(note) => {
            Some(Effect::Noted(explore::note(task, &note.text, &note.refs, note.kind)?))
        }
        Call::RequestInput(asked) => Some(Effect::Asked(inquiry::ask(task, &asked.question)?)),
        Call::ProposeAmendment(wish) => {
            Some(Effect::Proposed(amend::propose(task, &wish.change, &wish.reason)?))
        }
        _ => reachable(task, &place, call, worker).map(|()| None)?,
    };
    Ok(noted)
}

fn reachable(task: &TaskWrite<'_>, place: &Place<'_>, call: &Call, worker: &str) -> Result<()> {
    match call {
        Call::ReadFile(arguments) => {
            arguments.range()?;
            match arguments.target()? {
                Target::File(path) => readable(place, &path),
                Target::Stored(digest) => reference::require_own(task, &digest),
            }
        }
        Call::ListFiles(arguments) => beneath(place, arguments.path.as_deref()).map(drop),
        Call::SearchText(arguments) => {
            arguments.regex()?;
            beneath(place, arguments.path.as_deref()).map(drop)
        }
        Call::ApplyPatch(arguments) => with_reach(&task.view, worker, |allowed| {
            apply_patch::authorize(arguments, allowed.ground(&task.session.repository, place.top))
        })?,
        Call::RunCheck(arguments) => check(task, arguments),
        Call::Finish => task.view.require_answered(),
        Call::NoteFinding(_) | Call::RequestInput(_) | Call::ProposeAmendment(_) | Call::TaskStatus => Ok(()),
    }
}

/// The worktree as the task's tools reach it.
pub fn place<'a>(task: &'a TaskWrite<'_>) -> Result<Place<'a>> {
    let opened = task.view.opened()?;
    Ok(Place {
        top: std::path::Path::new(&opened.worktree),
        read: opened.contract.read_scope.as_ref(),
        format: task.session.repository.format(),
    })
}

fn readable(place: &Place<'_>, path: &RepoPath) -> Result<()> {
    place.require_readable(path)?;
    match place.open(path) {
        // What is no file is a wrong argument, which the tool itself says.
        Err(failure) if failure.code() == Code::ScopeViolation => Err(failure),
        _ => Ok(()),
    }
}

/// Lends what one worker may read and write, and what it knows.
pub fn with_reach<T>(view: &TaskView, worker: &str, work: impl FnOnce(edit::Allowed<'_>) -> T) -> Result<T> {
    let opened = view.opened()?;
    let (contract, effective) = (&opened.contract, &opened.effective);
    let read = |path: &RepoPath| require_readable(contract.read_scope.as_ref(), path);
    let limits = Limits {
        allowed: &|path| effective.write_allows(path) || contract.scratch.matches(path),
        scope: &effective.write_patterns(),
        artifact_bytes: None,
    };
    let write = |path: &RepoPath| limits.outside(path).map_or(Ok(()), Err);
    let known = |path: &RepoPath| view.known_to(worker, path);
    Ok(work(edit::Allowed { read: &read, write: &write, known: &known }))
}

/// A directory (or file) within the worktree; that it may be read is asked of each file in it.
fn beneath(place: &Place<'_>, path: Option<&str>) -> Result<Option<RepoPath>> {
    let path = Place::folder_path(path)?;
    place.open_folder(path.as_ref())?;
    Ok(path)
}

/// Only what the contract's own list allows may be run by a worker, whatever other verifiers there are.
fn check(task: &TaskWrite<'_>, arguments: &requests::RunCheck) -> Result<()> {
    let contract = &task.view.opened()?.contract;
    let (lists, id) = (&contract.verification, &arguments.id);
    let required = contract.requirements.iter().any(|requirement| requirement.verifier == *id);
    let forbidden = lists.forbidden.contains(id);
    if !forbidden && (required || lists.allowed.contains(id)) {
        return Ok(());
    }
    let why = if forbidden { "forbids" } else { "does not allow" };
    Err(Failure::new(Code::CheckForbidden, format!("the contract {why} the verifier {id:?}"))
        .subject(id.clone())
        .expected(&lists.allowed, id)
        .detail("allowed", &lists.allowed)
        .detail("forbidden", &lists.forbidden)
        .advice("Run one that is allowed. What does not run is reported as not run."))
}
