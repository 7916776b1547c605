//! Carries a call out that the gate has let through, and makes the worker's answer of what came of it.

use super::super::session::{RunningAction, TaskWrite};
use super::super::{edit, report};
use super::{Line, authorize, checks};
use crate::domain::value::outside::Origin;
use crate::domain::worker::call::{Effect, Seen};
use crate::error::{Failure, Result};
use crate::tools::place::Place;
use crate::tools::read_file::Target;
use crate::tools::requests::{Asked, Noted, Proposed};
use crate::tools::{Call, apply_patch, list_files, read_file, search_text};
use serde::Serialize;
use serde_json::Value;
use std::path::Path;

/// What came of a call.
#[derive(Debug)]
pub struct Outcome {
    pub value: Value,
    /// The part of it that tells a new result from an old one; `None` for all of it.
    pub novelty: Option<Value>,
    /// Where its content came from.
    pub origin: Option<Origin>,
    /// The blobs that the worker knows of by it.
    pub seen: Vec<Seen>,
    pub effect: Option<Effect>,
}

/// Why a call has no result.
#[derive(Debug)]
pub enum Stopped {
    WithoutEffect(Failure),
    /// It cannot be said what was changed; recovery will look.
    Open(Failure),
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Self::WithoutEffect(failure)
    }
}

impl Outcome {
    /// An answer that changes nothing.
    pub fn of(answer: &impl Serialize) -> Result<Self> {
        let value = serde_json::to_value(answer)
            .map_err(|e| Failure::internal(format!("an answer cannot be written: {e}")))?;
        Ok(Self { value, novelty: None, origin: None, seen: Vec::new(), effect: None })
    }

    /// With what it brought about. The id that it got says nothing new.
    fn bringing(self, effect: Effect) -> Self {
        Self { effect: Some(effect), novelty: Some(Value::Null), ..self }
    }

    /// Content that is not the harness's own.
    fn of_outside(self, origin: Origin) -> Self {
        Self { origin: Some(origin), ..self }
    }
}

/// Runs one call. `noted`: what [`authorize::authorize`] made of one that only leaves a note.
pub fn run(
    task: &mut TaskWrite<'_>,
    action: &RunningAction,
    call: &Call,
    noted: Option<Effect>,
    (worker, line): (&str, &Line<'_>),
) -> std::result::Result<Outcome, Stopped> {
    Ok(match call {
        Call::ReadFile(arguments) => read(task, arguments)?,
        Call::ListFiles(arguments) => {
            let path = Place::folder_path(arguments.path.as_deref())?;
            let answer = list_files::list(&authorize::place(task)?, path.as_ref())?;
            Outcome::of(&answer)?.of_outside(answer.origin)
        }
        Call::SearchText(arguments) => {
            let (path, regex) = (Place::folder_path(arguments.path.as_deref())?, arguments.regex()?);
            let answer = search_text::search(&authorize::place(task)?, path.as_ref(), &regex, &|| {
                task.require_wanted()
            })?;
            Outcome::of(&answer)?.of_outside(answer.origin)
        }
        Call::ApplyPatch(arguments) => apply(task, action, arguments, worker)?,
        Call::RunCheck(arguments) => checks::run_check(task, &arguments.id, line)?,
        Call::Finish => checks::finish(task, line)?,
        Call::TaskStatus => {
            let brief = report::brief_of_view(task.session, &task.ledger, &task.view)?;
            Outcome { novelty: Some(brief.novelty()), ..Outcome::of(&brief)? }
        }
        Call::NoteFinding(_) | Call::RequestInput(_) | Call::ProposeAmendment(_) => {
            let effect = noted.ok_or_else(|| Failure::internal("what is to be noted was not looked at"))?;
            told(action.id(), &effect)?.bringing(effect)
        }
    })
}

/// The answer to a call whose whole effect is that it stands in the ledger.
fn told(id: &str, effect: &Effect) -> Result<Outcome> {
    match effect {
        Effect::Noted(finding) => Outcome::of(&Noted { id: id.to_owned(), verified: finding.is_verified() }),
        Effect::Asked(_) => Outcome::of(&Asked::of(id)),
        Effect::Proposed(_) => Outcome::of(&Proposed::of(id)),
        Effect::Patched { .. } => Err(Failure::internal("a patch was to be noted only")),
    }
}

fn apply(
    task: &mut TaskWrite<'_>,
    action: &RunningAction,
    arguments: &apply_patch::Arguments,
    worker: &str,
) -> std::result::Result<Outcome, Stopped> {
    let TaskWrite { session, ledger, view, .. } = task;
    let worktree = Path::new(&view.opened()?.worktree);
    let applied = match authorize::with_reach(view, worker, |allowed| {
        edit::apply(session, (ledger, action), worktree, arguments, allowed)
    })? {
        Ok(applied) => applied,
        Err(edit::Unapplied::Unchanged(failure)) => return Err(Stopped::WithoutEffect(failure)),
        Err(edit::Unapplied::Unknown(failure)) => return Err(Stopped::Open(failure)),
    };
    let outcome = Outcome::of(&applied)?;
    let seen = edit::seen(&applied.changes);
    Ok(Outcome { seen, effect: Some(Effect::Patched { changes: applied.changes }), ..outcome })
}

fn read(task: &TaskWrite<'_>, arguments: &read_file::Arguments) -> Result<Outcome> {
    match arguments.target()? {
        Target::File(path) => {
            let answer = read_file::file(&authorize::place(task)?, &path, arguments)?;
            let git_blob = answer.git_blob.as_deref().map(str::parse).transpose()?;
            let outcome = Outcome::of(&answer)?.of_outside(answer.origin);
            Ok(Outcome { seen: vec![Seen { path, git_blob }], ..outcome })
        }
        Target::Stored(digest) => {
            let bytes = task.session.blobs().get(&digest)?;
            let answer = read_file::stored(&bytes, &digest, arguments)?;
            Ok(Outcome::of(&answer)?.of_outside(answer.origin))
        }
    }
}
