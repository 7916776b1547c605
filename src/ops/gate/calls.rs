//! Each tool at the gate: what its call is held to before it is let through, and how it is carried out then.
//!
//! A call is authorized on its real target: where a path leads to in the worktree at this moment, and what
//! the contract's lists name. Looking now does not make it safe to use the path later; the tools look again,
//! by descriptors, when they use it. [`AuthorizedCall`] holds what was read and checked, so that nothing runs
//! which was not.

use super::outcome::{CallFailure, CallOutcome};
use super::{CallControl, checks};
use crate::domain::contract::amendment::Proposal;
use crate::domain::value::repo_path::RepoPath;
use crate::domain::worker::call::{Effect, Seen};
use crate::domain::worker::finding::Finding;
use crate::domain::worker::inquiry::Question;
use crate::error::{Code, Failure, Result};
use crate::task::action::RunningAction;
use crate::task::amendment::check_proposal;
use crate::task::effect::patch;
use crate::task::finding::check_finding;
use crate::task::held::TaskWrite;
use crate::task::inquiry::check_question;
use crate::task::reach::{with_reach, worktree_of};
use crate::task::reference::require_own;
use crate::task::report::brief_of_view;
use crate::tools::apply_patch::{self, ApplyPatchArguments};
use crate::tools::place::Place;
use crate::tools::read_file::{self, ReadFileArguments, ReadTarget};
use crate::tools::table::{NoteFindingAnswer, ProposeAmendmentAnswer, RequestInputAnswer};
use crate::tools::{ToolCall, list_files, search_text};
use regex::Regex;
use std::path::Path;

/// A call whose target was looked at. What is only noted stands here as the ledger will have it.
#[derive(Debug)]
pub enum AuthorizedCall {
    ReadFile(ReadTarget, ReadFileArguments),
    ListFiles(Option<RepoPath>),
    SearchText(Option<RepoPath>, Regex),
    ApplyPatch(ApplyPatchArguments),
    RunCheck(String),
    NoteFinding(Finding),
    RequestInput(Question),
    ProposeAmendment(Proposal),
    TaskStatus,
    Finish,
}

/// Refuses a call on something that the task may not reach.
pub fn authorize_call(task: &TaskWrite<'_>, call: ToolCall, worker: &str) -> Result<AuthorizedCall> {
    let place = worktree_of(task)?;
    Ok(match call {
        ToolCall::ReadFile(arguments) => {
            arguments.wanted_part()?;
            let target = arguments.read_target()?;
            match &target {
                ReadTarget::File(path) => require_readable_file(&place, path)?,
                ReadTarget::Stored(digest) => require_own(task, digest)?,
            }
            AuthorizedCall::ReadFile(target, arguments)
        }
        ToolCall::ListFiles(arguments) => {
            AuthorizedCall::ListFiles(folder_within(&place, arguments.path.as_deref())?)
        }
        ToolCall::SearchText(arguments) => {
            let regex = arguments.compile_pattern()?;
            AuthorizedCall::SearchText(folder_within(&place, arguments.path.as_deref())?, regex)
        }
        ToolCall::ApplyPatch(arguments) => {
            with_reach(&task.view, worker, |allowed| {
                apply_patch::authorize_patch(&arguments, allowed.ground(&task.session.repository, place.top))
            })??;
            AuthorizedCall::ApplyPatch(arguments)
        }
        ToolCall::RunCheck(arguments) => {
            require_allowed_check(task, &arguments.id)?;
            AuthorizedCall::RunCheck(arguments.id)
        }
        ToolCall::NoteFinding(note) => {
            AuthorizedCall::NoteFinding(check_finding(task, &note.text, &note.refs, note.kind)?)
        }
        ToolCall::RequestInput(asked) => AuthorizedCall::RequestInput(check_question(task, &asked.question)?),
        ToolCall::ProposeAmendment(wish) => {
            AuthorizedCall::ProposeAmendment(check_proposal(task, &wish.change, &wish.reason)?)
        }
        ToolCall::TaskStatus => AuthorizedCall::TaskStatus,
        ToolCall::Finish => {
            task.view.require_answered()?;
            AuthorizedCall::Finish
        }
    })
}

/// Carries a call out, and makes the worker's answer of what came of it.
pub fn run_call(
    task: &mut TaskWrite<'_>,
    action: &mut RunningAction,
    call: AuthorizedCall,
    (worker, line): (&str, &CallControl<'_>),
) -> std::result::Result<CallOutcome, CallFailure> {
    let id = action.id();
    Ok(match call {
        AuthorizedCall::ReadFile(target, arguments) => run_read_file(task, target, &arguments)?,
        AuthorizedCall::ListFiles(path) => {
            let answer = list_files::list_folder(&worktree_of(task)?, path.as_ref())?;
            CallOutcome::of_content(&answer, answer.origin.clone())?
        }
        AuthorizedCall::SearchText(path, regex) => {
            let answer = search_text::search_files(&worktree_of(task)?, path.as_ref(), &regex, &|| {
                task.require_wanted()
            })?;
            CallOutcome::of_content(&answer, answer.origin.clone())?
        }
        AuthorizedCall::ApplyPatch(arguments) => run_apply_patch(task, action, &arguments, worker)?,
        AuthorizedCall::RunCheck(verifier) => checks::run_check(task, &verifier, line)?,
        AuthorizedCall::NoteFinding(finding) => {
            let answer = NoteFindingAnswer { id: id.to_owned(), verified: finding.is_verified() };
            CallOutcome::of_note(&answer, Effect::Noted(finding))?
        }
        AuthorizedCall::RequestInput(question) => {
            CallOutcome::of_note(&RequestInputAnswer::recorded_as(id), Effect::Asked(question))?
        }
        AuthorizedCall::ProposeAmendment(proposal) => {
            CallOutcome::of_note(&ProposeAmendmentAnswer::recorded_as(id), Effect::Proposed(proposal))?
        }
        AuthorizedCall::TaskStatus => {
            let brief = brief_of_view(task.session, &task.ledger, &task.view)?;
            CallOutcome { novelty: Some(brief.novelty_key()), ..CallOutcome::of_answer(&brief)? }
        }
        AuthorizedCall::Finish => checks::run_finish(task, line)?,
    })
}

fn require_readable_file(place: &Place<'_>, path: &RepoPath) -> Result<()> {
    place.require_readable(path)?;
    match place.open_file(path) {
        // What is no file is a wrong argument, which the tool itself says.
        Err(failure) if failure.code() == Code::ScopeViolation => Err(failure),
        _ => Ok(()),
    }
}

/// A directory (or file) within the worktree; that it may be read is asked of each file in it.
fn folder_within(place: &Place<'_>, path: Option<&str>) -> Result<Option<RepoPath>> {
    let path = Place::folder_path(path)?;
    place.open_folder(path.as_ref())?;
    Ok(path)
}

/// Only what the contract's own list allows may be run by a worker, whatever other verifiers there are.
fn require_allowed_check(task: &TaskWrite<'_>, verifier: &str) -> Result<()> {
    let contract = &task.view.opened_terms()?.contract;
    let lists = &contract.verification;
    let names = |list: &[String]| list.iter().any(|id| id == verifier);
    let required = contract.requirements.iter().any(|requirement| requirement.verifier == verifier);
    let forbidden = names(&lists.forbidden);
    if !forbidden && (required || names(&lists.allowed)) {
        return Ok(());
    }
    let why = if forbidden { "forbids" } else { "does not allow" };
    Err(Failure::new(Code::CheckForbidden, format!("the contract {why} the verifier {verifier:?}"))
        .subject(verifier)
        .expected(&lists.allowed, verifier)
        .detail("allowed", &lists.allowed)
        .detail("forbidden", &lists.forbidden)
        .advice("Run one that is allowed. What does not run is reported as not run."))
}

fn run_apply_patch(
    task: &mut TaskWrite<'_>,
    action: &mut RunningAction,
    arguments: &ApplyPatchArguments,
    worker: &str,
) -> std::result::Result<CallOutcome, CallFailure> {
    let TaskWrite { session, ledger, view, .. } = task;
    let worktree = Path::new(&view.opened_terms()?.worktree);
    let applied = match with_reach(view, worker, |allowed| {
        patch::carry_out(session, (ledger, action), worktree, arguments, allowed)
    })? {
        Ok(applied) => applied,
        Err(patch::Unapplied::Unchanged(failure)) => return Err(CallFailure::WithoutEffect(failure)),
        Err(patch::Unapplied::Unknown(failure)) => return Err(CallFailure::Unknown(failure)),
    };
    let outcome = CallOutcome::of_answer(&applied)?;
    let seen = patch::seen(&applied.changes);
    Ok(CallOutcome { seen, effect: Some(Effect::Patched { changes: applied.changes }), ..outcome })
}

fn run_read_file(
    task: &TaskWrite<'_>,
    target: ReadTarget,
    arguments: &ReadFileArguments,
) -> Result<CallOutcome> {
    match target {
        ReadTarget::File(path) => {
            let answer = read_file::read_worktree_file(&worktree_of(task)?, &path, arguments)?;
            let git_blob = answer.git_blob.as_deref().map(str::parse).transpose()?;
            let outcome = CallOutcome::of_content(&answer, answer.origin.clone())?;
            Ok(CallOutcome { seen: vec![Seen { path, git_blob }], ..outcome })
        }
        ReadTarget::Stored(digest) => {
            let bytes = task.session.blobs().get(&digest)?;
            let answer = read_file::read_stored_log(&bytes, &digest, arguments)?;
            CallOutcome::of_content(&answer, answer.origin.clone())
        }
    }
}
