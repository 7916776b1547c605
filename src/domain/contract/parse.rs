//! From the document to a [`Contract`]: one reader a field, then the defaults.
//!
//! Nothing stops at the first problem: whoever writes a contract gets all that is wrong with it at once.

use super::{
    Artifact, Base, Contract, DeliveryMode, Kind, Network, Requirement, SCHEMA, SandboxWish, Verification,
    check, later,
};
use crate::domain::contract::budget::Key;
use crate::domain::contract::draft::Draft;
use crate::domain::contract::policy::BaseRuns;
use crate::domain::contract::tool::WorkerTool;
use crate::domain::value::document::{Node, Problems, quote_clipped, read_json};
use crate::domain::value::repo_path::{RULE, RepoPath};
use crate::error::{Code, Failure, Result};

/// The fields of a contract.
pub const CONTRACT_FIELDS: [&str; 22] = [
    "$schema",
    "schema",
    "taskId",
    "parent",
    "kind",
    "case",
    "goal",
    "base",
    "writeScope",
    "readScope",
    "allowedTools",
    "scratch",
    "commands",
    "network",
    "sandbox",
    "verification",
    "requirements",
    "artifacts",
    "budget",
    "env",
    "delivery",
    "commitAllowed",
];

pub(super) fn parse_contract(bytes: &[u8]) -> Result<Contract> {
    let document = read_json("the contract", Code::ContractInvalid, bytes)?;
    let mut problems = Problems::new("the contract", Code::ContractInvalid);
    let mut draft = Draft::default();
    problems.read_object("", &document, &CONTRACT_FIELDS, |problems, key, field, node| {
        read_field(problems, &mut draft, key, field, node);
        draft.present.push(field.to_owned());
    });
    // A document that is no object misses nothing in particular.
    if matches!(document, Node::Object(_)) {
        check::check_missing(&mut problems, &draft);
    }
    check::check_contradictions(&mut problems, &draft);
    problems.into_result()?;
    fill_contract(draft)
        .ok_or_else(|| Failure::internal("a contract without a problem lacks a required field"))
}

fn read_field(problems: &mut Problems, draft: &mut Draft, key: &str, field: &str, node: &Node) {
    match key {
        // For editors.
        "$schema" => drop(problems.read_text(field, node)),
        "schema" => {
            problems.read_choice(field, node, &[(SCHEMA, ())]);
        }
        "taskId" => draft.task_id = problems.read_id(field, node),
        "parent" => draft.parent = problems.read_id(field, node),
        "kind" => draft.kind = read_kind(problems, field, node),
        "case" => draft.case = problems.read_scope(field, node),
        "goal" => draft.goal = problems.read_text(field, node),
        "base" => draft.base = read_base(problems, field, node),
        "writeScope" => draft.write_scope = problems.read_scope(field, node),
        "readScope" => draft.read_scope = problems.read_scope(field, node),
        "allowedTools" => draft.allowed_tools = read_tools(problems, field, node),
        "scratch" => draft.scratch = problems.read_scope(field, node),
        "sandbox" => {
            let words = [("required", SandboxWish::Required), ("optional", SandboxWish::Optional)];
            draft.sandbox = problems.read_choice(field, node, &words);
        }
        "verification" => read_verification(problems, draft, field, node),
        "requirements" => draft.requirements = read_requirements(problems, field, node),
        "artifacts" => draft.artifacts = read_artifacts(problems, field, node),
        "budget" => read_budget(problems, draft, field, node),
        "delivery" => draft.delivery = later::read_delivery(problems, &mut draft.terms, field, node),
        "commitAllowed" => draft.commit_allowed = problems.read_boolean(field, node),
        _ => later::check_field(problems, key, field, node),
    }
}

fn read_kind(problems: &mut Problems, field: &str, node: &Node) -> Option<Kind> {
    problems.read_choice(field, node, &Kind::ALL)
}

fn read_base(problems: &mut Problems, field: &str, node: &Node) -> Option<Base> {
    let text = problems.read_text(field, node)?;
    if text == "live" {
        return Some(Base::Live);
    }
    if text.starts_with('-') || text.chars().any(|c| c.is_control() || c == ' ') {
        let right = "`HEAD`, a revision, or `live`";
        problems.report_fault(
            field,
            &format!("must be {right}, but is {}", quote_clipped(&text)),
            right,
            text,
        );
        return None;
    }
    Some(Base::Revision(text))
}

fn read_tools(problems: &mut Problems, field: &str, node: &Node) -> Option<Vec<String>> {
    let items = problems.read_list(field, node, "tool names")?;
    let mut tools: Vec<String> = Vec::new();
    for (name, item) in &items {
        let Some(tool) = problems.read_text(name, item) else { continue };
        if WorkerTool::from_name(&tool).is_none() {
            problems.unknown_value(name, &tool, &WorkerTool::all_names());
        } else if problems.require_once(name, &tool, &tools) {
            tools.push(tool);
        }
    }
    Some(tools)
}

fn read_verification(problems: &mut Problems, draft: &mut Draft, field: &str, node: &Node) {
    problems.read_object(field, node, &["allowed", "forbidden"], |problems, key, name, value| {
        let ids = problems.read_ids(name, value);
        check::check_reserved(problems, name, ids.as_deref().unwrap_or_default());
        let other = if key == "allowed" { Some(&draft.forbidden) } else { draft.allowed.as_ref() };
        for id in ids.iter().flatten().filter(|id| other.is_some_and(|other| other.contains(*id))) {
            problems.report_fault(
                name,
                &format!("holds {id:?}, which is both allowed and forbidden"),
                "one of both",
                id,
            );
        }
        match key {
            "allowed" => draft.allowed = Some(ids.unwrap_or_default()),
            _ => draft.forbidden = ids.unwrap_or_default(),
        }
    });
}

fn read_requirements(problems: &mut Problems, field: &str, node: &Node) -> Option<Vec<Requirement>> {
    let items = problems.read_list(field, node, "objects")?;
    let mut seen: Vec<String> = Vec::new();
    let mut all = Vec::new();
    for (name, item) in &items {
        let Some(requirement) = read_requirement(problems, name, item) else { continue };
        if problems.require_once(&format!("{name}.id"), &requirement.id, &seen) {
            seen.push(requirement.id.clone());
            all.push(requirement);
        }
    }
    Some(all)
}

fn read_requirement(problems: &mut Problems, field: &str, node: &Node) -> Option<Requirement> {
    let (mut id, mut text, mut verifier, mut paths, mut required) = (None, None, None, None, true);
    let mut base = BaseRuns::default();
    problems.read_object(
        field,
        node,
        &["id", "text", "verifier", "paths", "required", "base"],
        |problems, key, name, value| match key {
            "id" => id = problems.read_id(name, value),
            "text" => text = problems.read_text(name, value),
            "verifier" => verifier = problems.read_id(name, value),
            "paths" => paths = problems.read_scope(name, value),
            "base" => base = problems.read_choice(name, value, &BaseRuns::ALL).unwrap_or_default(),
            _ => required = problems.read_boolean(name, value).unwrap_or(true),
        },
    );
    for (key, what) in
        [("id", "an id"), ("text", "what must hold, in words"), ("verifier", "the id of a verifier")]
    {
        problems.require_key(field, node, key, what);
    }
    let requirement = Requirement { id: id?, text: text?, verifier: verifier?, paths, required, base };
    check::reserved_in_requirement(problems, field, &requirement);
    Some(requirement)
}

fn read_artifacts(problems: &mut Problems, field: &str, node: &Node) -> Vec<Artifact> {
    let mut seen: Vec<String> = Vec::new();
    let mut all = Vec::new();
    for (name, item) in problems.read_list(field, node, "objects").unwrap_or_default() {
        let Some(artifact) = read_artifact(problems, &name, item) else { continue };
        if problems.require_once(&format!("{name}.path"), &artifact.path, &seen) {
            seen.push(artifact.path.clone());
            all.push(artifact);
        }
    }
    all
}

fn read_artifact(problems: &mut Problems, field: &str, node: &Node) -> Option<Artifact> {
    let known = ["path", "mustExist", "mustChange", "maxBytes", "mustNotContain"];
    let mut path = None;
    let (mut must_exist, mut must_change, mut max_bytes, mut must_not_contain) =
        (true, false, None, Vec::new());
    problems.read_object(field, node, &known, |problems, key, name, value| match key {
        "path" => path = file_path(problems, name, value),
        "mustExist" => must_exist = problems.read_boolean(name, value).unwrap_or(true),
        "mustChange" => must_change = problems.read_boolean(name, value).unwrap_or(true),
        "maxBytes" => max_bytes = problems.read_count(name, value),
        _ => must_not_contain = problems.read_texts(name, value).unwrap_or_default(),
    });
    problems.require_key(field, node, "path", "the path of a file");
    if !must_exist && !must_change && max_bytes.is_none() && must_not_contain.is_empty() {
        problems.report_fault(
            field,
            "claims nothing",
            "at least one claim about the file",
            serde_json::Value::Null,
        );
    }
    Some(Artifact { path: path?, must_exist, must_change, max_bytes, must_not_contain })
}

fn file_path(problems: &mut Problems, field: &str, node: &Node) -> Option<String> {
    let text = problems.read_text(field, node)?;
    match RepoPath::new(text.as_bytes()) {
        Ok(_) => Some(text),
        Err(failure) => {
            let rule = failure.read_detail(&RULE).unwrap_or_default();
            let right = "a file of the tree, from the top, with `/` between components";
            problems.report_fault(
                field,
                &format!("is {}, which is refused: {rule}", quote_clipped(&text)),
                right,
                text,
            );
            None
        }
    }
}

fn read_budget(problems: &mut Problems, draft: &mut Draft, field: &str, node: &Node) {
    problems.read_object(field, node, &Key::all_words(), |problems, key, name, value| {
        if let (Some(count), Some(key)) = (problems.read_count(name, value), Key::from_word(key)) {
            draft.budget.insert(key, count);
        }
    });
}

/// The contract, once nothing is wrong.
fn fill_contract(draft: Draft) -> Option<Contract> {
    let allowed = draft.allowed.unwrap_or_else(|| {
        let mut named: Vec<String> = Vec::new();
        for requirement in draft.requirements.iter().flatten() {
            if !named.contains(&requirement.verifier) && !draft.forbidden.contains(&requirement.verifier) {
                named.push(requirement.verifier.clone());
            }
        }
        named
    });
    let requirements =
        draft.requirements.unwrap_or_else(|| allowed.iter().map(|id| default_requirement(id)).collect());
    Some(Contract {
        task_id: draft.task_id?,
        kind: draft.kind.unwrap_or(Kind::Edit),
        case: draft.case.unwrap_or_default(),
        goal: draft.goal?,
        base: draft.base.unwrap_or_else(|| Base::Revision("HEAD".to_owned())),
        write_scope: draft.write_scope?,
        read_scope: draft.read_scope,
        allowed_tools: draft.allowed_tools?,
        scratch: draft.scratch.unwrap_or_default(),
        network: Network::Disabled,
        sandbox: draft.sandbox.unwrap_or(SandboxWish::Required),
        sandbox_in_words: draft.sandbox.is_some(),
        verification: Verification { allowed, forbidden: draft.forbidden },
        requirements,
        artifacts: draft.artifacts,
        budget: draft.budget,
        parent: draft.parent,
        delivery: draft.delivery.unwrap_or(DeliveryMode::LocalFiles),
        terms: draft.terms,
        commit_allowed: draft.commit_allowed.unwrap_or(false),
    })
}

fn default_requirement(verifier: &str) -> Requirement {
    Requirement {
        id: verifier.to_owned(),
        text: verifier.to_owned(),
        verifier: verifier.to_owned(),
        paths: None,
        required: true,
        base: BaseRuns::default(),
    }
}
