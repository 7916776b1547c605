//! What a check asks for: the verifiers that the change concerns, what the policy requires, and the hooks of
//! other tools that are there without a file of ours.

use super::{CheckTarget, TreePair};
use crate::domain::change::patch::Change;
use crate::domain::contract::{Contract, PROTECTED};
use crate::domain::proof::verdict::{Row, Verdict};
use crate::domain::value::digest::Sha256;
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Failure, Result};
use crate::process::helper::find_program;
use crate::task::Session;
use crate::task::terms::{Terms, read_terms};
use crate::verifier::Verifiers;
use crate::verifier::hook_config::{CONFIG, HookPlan};
use crate::verifier::inputs::inputs_of;
use crate::verifier::load::{FOLDER, manifest_place};
use crate::verifier::manifest::VerifierKind;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::path::Path;

/// What has to be shown, and by which rules.
pub(super) struct AskedCheck {
    pub(super) contract: Contract,
    pub(super) contract_sha256: Sha256,
    pub(super) terms: Terms,
    /// True where any row is asked for that runs may show.
    pub(super) has_any: bool,
    /// Rows that no run can show.
    pub(super) settled: Vec<Row>,
    pub(super) notes: Vec<String>,
}

/// Every verifier of the base and the private layer that runs a command, and what the policy requires.
/// Manifests that are only in the tree that is looked at, or only in the live tree, are told and do not
/// count.
pub(super) fn ask_for_concerned(
    session: &Session,
    trees: &TreePair,
    changes: &[Change],
    target: &CheckTarget,
) -> Result<AskedCheck> {
    let bare = json!({
        "taskId": "check", "goal": "check", "writeScope": ["**"], "allowedTools": [], "sandbox": "optional",
    });
    let mut terms =
        read_terms(session, &Contract::parse_document(bare.to_string().as_bytes())?, &trees.base)?;
    let mut asked = AskedRows::default();
    add_hooks(session, trees, (changes, target), &mut terms.verifiers, &mut asked)?;
    let skipped = skipped_hooks(session);
    for (id, verifier) in terms.verifiers.all() {
        match verifier {
            Err(failure) => asked.settled.push(broken_row(id, failure, changes)),
            Ok(_) if skipped.iter().any(|hook| id == format!("hook.{hook}")) => {
                let reason = Some("SKIP names it".to_owned());
                asked.settled.push(Row::without_run(id, id, Verdict::NotRun, reason));
            }
            Ok(verifier) if verifier.manifest.kind == VerifierKind::Command => {
                let inputs = inputs_of(verifier).filter(|_| *target != CheckTarget::All);
                let mut requirement = json!({ "id": id, "text": id, "verifier": id });
                if let Some(inputs) = inputs {
                    requirement["paths"] = json!(inputs.patterns());
                }
                asked.requirements.push(requirement);
            }
            Ok(_) => {}
        }
    }
    for id in ids_without_weight(&terms.verifiers, changes) {
        asked.requirements.push(json!({ "id": id, "text": id, "verifier": id, "required": false }));
    }
    let floor = terms.effective.floor_for(changes.iter().map(|change| &change.path));
    if changes.is_empty() && *target != CheckTarget::All {
        asked.requirements.clear();
    } else if asked.requirements.is_empty() && asked.settled.is_empty() && floor.is_empty() {
        let text = "no verifier is committed here, and none is in the private layer; \
                    `git tender init --private` writes those that fit";
        asked.notes.push(text.to_owned());
    }
    let has_any = !floor.is_empty() || !asked.requirements.is_empty();
    let mut document = bare;
    document["requirements"] = Value::Array(asked.requirements);
    let document = document.to_string();
    Ok(AskedCheck {
        has_any,
        contract: Contract::parse_document(document.as_bytes())?,
        contract_sha256: Contract::seal_document(document.as_bytes()),
        terms,
        settled: asked.settled,
        notes: asked.notes,
    })
}

#[derive(Default)]
struct AskedRows {
    requirements: Vec<Value>,
    settled: Vec<Row>,
    notes: Vec<String>,
}

/// Ids whose manifest the change adds, or that lies in the live tree alone.
fn ids_without_weight(verifiers: &Verifiers, changes: &[Change]) -> Vec<String> {
    let mut ids: Vec<String> = verifiers.only_live().map(str::to_owned).collect();
    for path in changes.iter().filter(|change| change.new.is_some()).map(|change| &change.path) {
        let text = path.to_string();
        let id =
            text.strip_prefix(&format!("{FOLDER}/")).and_then(|rest| rest.strip_suffix("/verifier.toml"));
        let Some(id) = id.filter(|id| !id.contains('/') && *id != PROTECTED) else { continue };
        let counts = verifiers.get(id).map_or(true, |known| known.is_some());
        if !counts && !ids.iter().any(|known| known == id) {
            ids.push(id.to_owned());
        }
    }
    ids
}

/// A manifest that cannot be used: it blocks, unless the change is at work on it.
fn broken_row(id: &str, failure: &Failure, changes: &[Change]) -> Row {
    let own = RepoPath::new(manifest_place(id));
    let is_mended = own.is_ok_and(|own| changes.iter().any(|change| change.path == own));
    let reason = Some(format!("its manifest cannot be used: {}", failure.message()));
    let row = Row::without_run(id, id, Verdict::Error, reason);
    Row { required: !is_mended, judge_changed: is_mended, ..row }
}

/// The hooks of pre-commit's configuration, where the base has one: they need no file of ours. None inside of
/// such a hook, which is one of them.
fn add_hooks(
    session: &Session,
    trees: &TreePair,
    (changes, target): (&[Change], &CheckTarget),
    verifiers: &mut Verifiers,
    asked: &mut AskedRows,
) -> Result<()> {
    if variable(session, "PRE_COMMIT").is_some() {
        return Ok(());
    }
    let path = variable(session, "PATH");
    let is_there = |tool: &&str| find_program(OsStr::new(tool), Path::new("/"), path).is_ok();
    let tool = ["prek", "pre-commit"].into_iter().find(is_there).unwrap_or("prek");
    let plan = match target {
        CheckTarget::All => HookPlan { tool, files: None },
        _ => {
            let there = changes.iter().filter(|change| change.new.is_some());
            let name = |change: &Change| String::from_utf8(change.path.as_bytes().to_vec()).ok();
            HookPlan::for_files(tool, there.map(name))
        }
    };
    let (added, elsewhere) = verifiers.add_hooks(&session.repository, &trees.base, &plan)?;
    asked.settled.extend(elsewhere.into_iter().map(|hook| {
        let reason = format!("it runs at {}, and not before a commit", hook.stages);
        Row::without_run(&hook.id, &hook.id, Verdict::NotRun, Some(reason))
    }));
    match added {
        0 => {}
        1 => asked.notes.push(format!("{CONFIG} has a hook, run by {tool}")),
        many => asked.notes.push(format!("{CONFIG} has {many} hooks, run by {tool}")),
    }
    Ok(())
}

/// The hooks that whoever calls wants left out, as pre-commit reads it.
fn skipped_hooks(session: &Session) -> Vec<String> {
    let named = variable(session, "SKIP").map(|value| value.to_string_lossy().into_owned());
    let named = named.unwrap_or_default();
    named.split(',').map(str::trim).filter(|id| !id.is_empty()).map(str::to_owned).collect()
}

fn variable<'a>(session: &'a Session, name: &str) -> Option<&'a OsStr> {
    session.machine.vars.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_os_str())
}
