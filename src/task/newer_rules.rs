//! What HEAD of the live tree has of newer rules than the base that a task was judged by: policy, required
//! verifiers, verifiers and what belongs to them. They are told by name; the delivery has taken place.

use super::held::TaskWrite;
use super::terms::{read_configuration, read_terms, verifiers_of_base};
use crate::domain::change::patch::Change;
use crate::domain::contract::policy::Effective;
use crate::domain::ledger::record::{BaseState, Opened};
use crate::domain::proof::listing::listing_differences;
use crate::domain::proof::verdict::Row;
use crate::domain::value::repo_path::RepoPath;
use crate::error::Result;
use crate::git::Repository;
use crate::verifier::Verifiers;
use crate::verifier::inputs::inputs_of;
use crate::verifier::load::Verifier;
use std::collections::BTreeSet;

/// How many names a sentence has.
const FIRST: usize = 3;

/// Compares the rules of HEAD with those that the rows were shown by; a sentence for each difference.
pub(super) fn compare_rules_of_head(task: &TaskWrite<'_>, rows: &[Row]) -> Result<Vec<String>> {
    let opened = task.view.opened_terms()?;
    let home = task.session.live_repository(opened)?;
    let Some(head) = read_head(&home)?.filter(|head| head.commit_tree != opened.base.commit_tree) else {
        return Ok(Vec::new());
    };
    let changes = &task.view.last_candidate()?.value.changes;
    let before = verifiers_of_base(task.session, opened)?;
    let now = match read_terms(task.session, &opened.contract, head.commit_tree()) {
        Ok(now) => now,
        Err(failure) => {
            return Ok(vec![format!("the rules at HEAD would refuse this task: {}", failure.message())]);
        }
    };
    let mut told = Vec::from_iter(compare_policies(task, opened, &head)?);
    told.extend(compare_effects(opened, &now.effective, changes, rows));
    told.extend(compare_verifiers(&before, &now.verifiers, rows));
    told.extend(find_new_verifiers(&before, &now.verifiers, changes, rows));
    Ok(told)
}

/// HEAD as a base; `None` where there is no commit.
pub(super) fn read_head(home: &Repository) -> Result<Option<BaseState>> {
    let Some(commit) = home.resolve_revision("HEAD", "commit")? else { return Ok(None) };
    let Some(tree) = home.resolve_revision(commit.as_str(), "tree")? else { return Ok(None) };
    Ok(Some(BaseState { commit, commit_tree: tree.clone(), tree, live: false }))
}

fn compare_policies(task: &TaskWrite<'_>, opened: &Opened, head: &BaseState) -> Result<Option<String>> {
    let policy =
        |base: &BaseState| read_configuration(task.session, base.commit_tree()).map(|config| config.policy);
    let keys = policy(&opened.base)?.differing_keys(&policy(head)?);
    let told = || format!("the policy at HEAD is another than the base's, which judged: {}", keys.join(", "));
    Ok((!keys.is_empty()).then(told))
}

/// What the policy and the verifiers at HEAD would have asked for beside what the rows show.
fn compare_effects(opened: &Opened, now: &Effective, changes: &[Change], rows: &[Row]) -> Vec<String> {
    let paths = || changes.iter().map(|change| &change.path);
    let shown = |id: &String| rows.iter().any(|row| row.required && row.verifier == *id);
    let mut told: Vec<String> = now
        .floor_for(paths())
        .into_iter()
        .filter(|id| !shown(id))
        .map(|id| {
            format!("the policy at HEAD requires the verifier {id} for what was changed; the base's did not")
        })
        .collect();
    let own = |path: &&RepoPath| now.is_protected(path) && !opened.effective.is_protected(path);
    let barred = |path: &&RepoPath| !now.write_allows(path);
    let both = [
        ("is protected at HEAD, and no person confirmed its change", paths().filter(own).collect::<Vec<_>>()),
        ("may not change by the policy at HEAD", paths().filter(barred).collect()),
    ];
    told.extend(both.into_iter().filter(|(_, paths)| !paths.is_empty()).map(|(what, paths)| {
        let names: Vec<String> = paths.iter().map(ToString::to_string).collect();
        format!("{} {what}", list_names(&names))
    }));
    told
}

/// The verifiers that showed a row, where HEAD has another one.
fn compare_verifiers(before: &Verifiers, now: &Verifiers, rows: &[Row]) -> Vec<String> {
    let ids: BTreeSet<&str> = rows.iter().map(|row| row.verifier.as_str()).collect();
    let compare = |id: &str| match (before.get(id), now.get(id)) {
        (_, Err(failure)) => Some(format!("the verifier {id} at HEAD cannot be used: {}", failure.message())),
        (Ok(Some(_)), Ok(None)) => Some(format!("the verifier {id} is not at HEAD any more")),
        (Ok(None) | Err(_), Ok(Some(_))) => {
            Some(format!("HEAD has a verifier {id} of its own; the base, which judged, had not"))
        }
        (Ok(Some(old)), Ok(Some(new))) => {
            let files = |verifier: &Verifier| -> Vec<_> {
                verifier.closure.iter().map(|file| file.file.clone()).collect()
            };
            let changed = listing_differences(&files(old), &files(new));
            let told = || format!("the verifier {id} is another at HEAD: {}", list_names(&changed));
            (!changed.is_empty()).then(told)
        }
        (_, Ok(None)) => None,
    };
    ids.into_iter().filter_map(compare).collect()
}

/// Verifiers that only HEAD has, that depend on what was changed, and that showed nothing.
fn find_new_verifiers(before: &Verifiers, now: &Verifiers, changes: &[Change], rows: &[Row]) -> Vec<String> {
    let is_new =
        |id: &str| before.all().all(|(known, _)| known != id) && rows.iter().all(|row| row.verifier != id);
    let depends = |verifier: &Verifier| {
        changes
            .iter()
            .any(|change| inputs_of(verifier).is_none_or(|inputs| inputs.matches_path(&change.path)))
    };
    let new = now.committed().filter(|(id, verifier)| is_new(id) && verifier.is_ok_and(depends));
    new.map(|(id, _)| {
        format!("HEAD has a verifier {id} for what was changed; the base had not, and it was not asked")
    })
    .collect()
}

fn list_names(names: &[String]) -> String {
    match names.len() {
        0..=FIRST => names.join(", "),
        more => format!("{}, and {} more", names[..FIRST].join(", "), more - FIRST),
    }
}
