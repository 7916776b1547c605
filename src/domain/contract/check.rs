//! What no single field shows: fields that are missing, ids that are reserved, fields that contradict each
//! other.

use super::draft::Draft;
use super::{ARTIFACTS, Base, DeliveryMode, Kind, PROTECTED, Requirement};
use crate::domain::value::document::Problems;
use crate::domain::value::repo_path::RepoPath;
use serde_json::Value;

/// The fields that every contract has.
pub(super) fn check_missing(problems: &mut Problems, draft: &Draft) {
    for (field, what) in [
        ("taskId", "the id of the task"),
        ("goal", "the goal in words"),
        ("writeScope", "a list of paths and globs, or []"),
        ("allowedTools", "a list of tool names"),
    ] {
        if !draft.has_field(field) {
            problems.report_missing(field, what);
        }
    }
}

/// Verifiers may not have the name of a row that is a person's.
pub(super) fn check_reserved(problems: &mut Problems, field: &str, ids: &[String]) {
    if ids.iter().any(|id| id == PROTECTED) {
        let why = format!("holds {PROTECTED:?}, the name of the row for protected paths");
        problems.report_fault(field, &why, "another id", PROTECTED);
    }
}

/// `protected` is never a requirement's; `artifacts` is the id of what the verifier of that name judges.
pub(super) fn reserved_in_requirement(problems: &mut Problems, field: &str, requirement: &Requirement) {
    for (key, id) in [("id", &requirement.id), ("verifier", &requirement.verifier)] {
        if id == PROTECTED {
            let why = format!("is {PROTECTED:?}, the name of the row for protected paths");
            problems.report_fault(&format!("{field}.{key}"), &why, "another id", id);
        }
    }
    if requirement.id == ARTIFACTS && requirement.verifier != ARTIFACTS {
        let why = format!("is {ARTIFACTS:?}, the name of the row for the contract's `artifacts`");
        problems.report_fault(&format!("{field}.id"), &why, "another id", &requirement.id);
    }
}

/// Fields that are each right, but not together.
pub(super) fn check_contradictions(problems: &mut Problems, draft: &Draft) {
    check_case(problems, draft);
    if let Some(id) = draft.parent.as_ref().filter(|parent| draft.task_id.as_ref() == Some(*parent)) {
        problems.report_fault("parent", "names the task itself", "another task, which is open", id);
    }
    for (at, requirement) in draft.requirements.iter().flatten().enumerate() {
        if requirement.required && draft.forbidden.contains(&requirement.verifier) {
            let (id, verifier) = (&requirement.id, &requirement.verifier);
            let why = format!(
                "is {verifier:?}, which `verification.forbidden` forbids, but {id:?} is required; \
                 allow it, or say `\"required\": false`"
            );
            problems.report_fault(
                &format!("requirements[{at}].verifier"),
                &why,
                "a verifier that may run",
                verifier,
            );
        }
    }
    for (at, artifact) in draft.artifacts.iter().enumerate() {
        let Some(scope) = draft.write_scope.as_ref().filter(|_| artifact.must_change) else { continue };
        let inside = RepoPath::new(artifact.path.as_bytes()).is_ok_and(|path| scope.matches_path(&path));
        if !inside {
            let why = format!("must change, but {:?} is outside `writeScope`", artifact.path);
            problems.report_fault(
                &format!("artifacts[{at}].mustChange"),
                &why,
                scope.patterns(),
                &artifact.path,
            );
        }
    }
    if !draft.artifacts.is_empty() && draft.forbidden.iter().any(|id| id == ARTIFACTS) {
        let why = "forbids \"artifacts\", but `artifacts` makes that row required";
        problems.report_fault("verification.forbidden", why, "one of both", ARTIFACTS);
    }
    check_explore(problems, draft);
    let commits = draft.delivery.is_some_and(DeliveryMode::publishes);
    if commits && draft.base == Some(Base::Live) {
        let why = "is `live`, but a commit on top of HEAD would hold your uncommitted work too; \
                   deliver to `local_files`, or commit that work and name the commit";
        problems.report_fault("base", why, "a commit", "live");
    }
    if commits && draft.commit_allowed != Some(true) {
        let modes = DeliveryMode::ALL.iter().filter(|(_, mode)| mode.publishes());
        let modes: Vec<String> = modes.map(|(word, _)| format!("`{word}`")).collect();
        let why = format!("must be true where `delivery` is {}", modes.join(" or "));
        problems.report_fault("commitAllowed", &why, true, draft.commit_allowed);
    }
}

/// An `explore` changes nothing, and what it delivers is its report.
fn check_explore(problems: &mut Problems, draft: &Draft) {
    if draft.kind != Some(Kind::Explore) {
        return;
    }
    if let Some(mode) = draft.delivery.filter(|mode| *mode != DeliveryMode::LocalFiles) {
        let why = format!("is `{}`, but an `explore` delivers its report and no change", mode.as_str());
        problems.report_fault("delivery", &why, DeliveryMode::LocalFiles.as_str(), mode.as_str());
    }
    for (at, artifact) in draft.artifacts.iter().enumerate().filter(|(_, artifact)| artifact.must_change) {
        let why = format!("is true of {:?}, but an `explore` changes nothing", artifact.path);
        problems.report_fault(&format!("artifacts[{at}].mustChange"), &why, false, true);
    }
}

fn check_case(problems: &mut Problems, draft: &Draft) {
    let kind = match draft.kind {
        Some(kind) => kind,
        // A kind that could not be read says nothing about `case`.
        None if draft.has_field("kind") => return,
        None => Kind::Edit,
    };
    let right = "paths and globs of the reproducing test";
    match kind {
        Kind::Repair if !draft.has_field("case") => {
            problems.report_missing("case", "the paths of the reproducing test, since `kind` is `repair`");
        }
        Kind::Repair if draft.case.as_ref().is_some_and(|case| case.is_empty()) => {
            problems.report_fault(
                "case",
                "is empty, but `kind` is `repair`",
                right,
                Value::Array(Vec::new()),
            );
        }
        Kind::Edit | Kind::Explore if draft.has_field("case") => {
            let why = format!("belongs to the kind `repair`, but `kind` is `{}`", kind.as_str());
            problems.report_fault("case", &why, "no `case`, or `\"kind\": \"repair\"`", kind.as_str());
        }
        _ => {}
    }
}
