//! `start`: makes a contract from a wish and opens it.
//!
//! Without a word on verifiers it asks for every committed one that the change could concern: a change that
//! nothing was asked of must be somebody's wish, not what happens by default.

use super::Session;
use super::open::{base_of, open_named, paths_of};
use crate::domain::contract::Contract;
use crate::domain::contract::policy::BaseRuns;
use crate::domain::contract::tool::WorkerTool;
use crate::domain::ledger::record::BaseState;
use crate::domain::ledger::report::TaskObject;
use crate::domain::value::document::nearest_name;
use crate::domain::value::scope::Scope;
use crate::error::{Code, Failure, Result};
use crate::git::worktree::worktree_root;
use crate::store::lock::LockGuard;
use crate::task::enter::require_own_store;
use crate::task::session::{Progress, typed_scope};
use crate::verifier::Verifiers;
use crate::verifier::inputs::{can_meet, inputs_of, unknown_ids};
use crate::verifier::manifest::VerifierKind;
use serde_json::{Value, json};
use std::path::Path;

/// The word that asks for no verifier at all.
const NONE: &str = "none";

/// What `start` makes a contract from.
#[derive(Debug)]
pub struct Wish<'a> {
    pub goal: &'a str,
    /// Paths as they were typed, in `folder`.
    pub scope: &'a [String],
    /// The current folder of whoever wishes.
    pub folder: &'a Path,
    pub verify: &'a [String],
    /// Ids that a person attests.
    pub manual: &'a [String],
    pub base: &'a str,
}

/// Makes a contract from a wish, under the first free task id, and opens it.
pub fn start(session: &Session, wish: &Wish<'_>, progress: Progress<'_>) -> Result<TaskObject> {
    require_own_store(session)?;
    let naming = LockGuard::acquire(&session.layout.start_lock())?;
    let taken = match session.ledger()? {
        Some(ledger) => ledger.tasks()?,
        None => Vec::new(),
    };
    // A ledger that was set back, and is gone on with, does not know every folder that is there.
    let root = worktree_root(&session.repository)?;
    let is_free = |id: &String| !taken.contains(id) && root.join(id).symlink_metadata().is_err();
    let id = (1u32..).map(|n| format!("t{n}")).find(is_free).unwrap_or_default();
    let tools = WorkerTool::ALL.into_iter().filter(|tool| *tool != WorkerTool::Shell);
    let tools: Vec<&str> = tools.map(WorkerTool::name).collect();
    let scope = typed_scope(session, wish.scope, wish.folder)?;
    let mut document = json!({
        "taskId": id, "goal": wish.goal, "base": wish.base, "writeScope": scope, "allowedTools": tools,
    });
    let AskedVerifiers { allowed, requirements, notes } = ask_for_verifiers(session, wish, &document)?;
    if !allowed.is_empty() {
        document["verification"] = json!({ "allowed": allowed });
        document["requirements"] = Value::Array(requirements);
    }
    let mut object = open_named(session, document.to_string().as_bytes(), Some(naming), progress)?;
    object.notes.extend(notes);
    object.notes.extend(tell_dead_scopes(session, scope, &object.base)?);
    Ok(object)
}

/// A pattern that names nothing is a slip more often than a wish for new files; both are told the same.
fn tell_dead_scopes(session: &Session, patterns: Vec<String>, base: &BaseState) -> Result<Vec<String>> {
    // What a live base holds beside its commit is no list to look through twice.
    if base.live {
        return Ok(Vec::new());
    }
    let files = paths_of(session, base.commit_tree())?;
    let mut notes = Vec::new();
    for pattern in patterns {
        let scope = Scope::new(vec![pattern.clone()])?;
        if !files.iter().any(|path| scope.matches_path(path)) {
            notes.push(format!(
                "the scope `{pattern}` names no file that is there: only new ones can be made in it"
            ));
        }
    }
    Ok(notes)
}

/// The verifiers that a contract asks for.
#[derive(Default)]
struct AskedVerifiers {
    allowed: Vec<String>,
    requirements: Vec<Value>,
    /// Those that were left out, and why.
    notes: Vec<String>,
}

impl AskedVerifiers {
    /// Asks for a verifier; gives the requirement, unless it is asked for already.
    fn add(&mut self, id: &str) -> Option<&mut Value> {
        if self.allowed.iter().any(|known| known == id) {
            return None;
        }
        self.allowed.push(id.to_owned());
        self.requirements.push(json!({ "id": id, "text": id, "verifier": id }));
        self.requirements.last_mut()
    }

    /// Asks for one that nobody named: only where the change touches its inputs, and where it fails, whoever
    /// reads that has to know whether it does so without the change too.
    fn add_by_default(&mut self, id: &str, inputs: Option<&Scope>) {
        let Some(requirement) = self.add(id) else { return };
        requirement["base"] = json!(BaseRuns::OnFailure);
        if let Some(inputs) = inputs {
            requirement["paths"] = json!(inputs.patterns());
        }
    }
}

fn ask_for_verifiers(session: &Session, wish: &Wish<'_>, document: &Value) -> Result<AskedVerifiers> {
    // Its goal, scope and base have to be right before anything is looked up by them.
    let contract = Contract::parse_document(document.to_string().as_bytes())?;
    let mut asked = AskedVerifiers::default();
    if wish.verify == [NONE] && wish.manual.is_empty() {
        return Ok(asked);
    }
    session.repository.top()?;
    let base = base_of(session, &contract)?;
    let local = session.layout.local();
    let verifiers = Verifiers::load(&session.repository, base.commit_tree(), &local, &contract.case)?;
    if wish.verify.is_empty() {
        ask_for_concerned(&verifiers, &contract, &mut asked);
    } else if wish.verify != [NONE] {
        refuse_unknown(&verifiers, wish)?;
        for id in wish.verify {
            asked.add(id);
        }
    }
    for id in wish.manual {
        asked.add(id);
    }
    Ok(asked)
}

/// Every valid committed verifier that runs a command and may depend on what the task may change.
fn ask_for_concerned(verifiers: &Verifiers, contract: &Contract, asked: &mut AskedVerifiers) {
    let mut left_out = Vec::new();
    for (id, verifier) in verifiers.committed() {
        match verifier {
            Err(failure) => left_out.push(format!("{id} (cannot be used: {})", failure.message())),
            Ok(verifier) if verifier.manifest.kind != VerifierKind::Command => {
                left_out.push(format!("{id} (a person attests it: --manual {id})"));
            }
            Ok(verifier) => match inputs_of(verifier) {
                Some(inputs) if !can_meet(inputs, &contract.write_scope) => {
                    left_out.push(format!("{id} (its inputs lie outside the scope)"));
                }
                inputs => asked.add_by_default(id, inputs),
            },
        }
    }
    if !asked.allowed.is_empty() {
        asked.notes.push(format!("asked for by default: {}", asked.allowed.join(", ")));
    }
    if !left_out.is_empty() {
        asked.notes.push(format!("verifiers left out: {}", left_out.join(", ")));
    }
}

/// An id that is nowhere would be a person's to attest, which nobody means who mistypes one.
fn refuse_unknown(verifiers: &Verifiers, wish: &Wish<'_>) -> Result<()> {
    let unknown = unknown_ids(verifiers, wish.verify)?;
    let Some(first) = unknown.iter().find(|id| !wish.manual.contains(id)) else { return Ok(()) };
    let known: Vec<&str> = verifiers.all().map(|(id, _)| id).chain(crate::verifier::builtin::NAMES).collect();
    let failure = Failure::new(Code::NotFound, format!("there is no verifier {first:?} in the base commit"))
        .subject(first.as_str())
        .expected(&known, first.as_str());
    let failure = match nearest_name(first, &known) {
        Some(near) => failure.detail("nearest", near),
        None => failure,
    };
    Err(failure.remedy(
        "Name one that is there, or say --manual where a person is to attest it.",
        ["git", "tender", "doctor"],
    ))
}
