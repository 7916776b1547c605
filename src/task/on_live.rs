//! What there is to tell right after a delivery: what the live tree has of the files that the verifiers saw,
//! newer rules at HEAD, and work that was left in the worktree. It refuses nothing, nor does it where nobody
//! can look: the delivery has taken place.

use super::held::TaskWrite;
use super::live_ground::LiveGround;
use super::newer_rules::compare_rules_of_head;
use super::observation::{Judged, with_subject};
use super::{budget, candidate};
use crate::domain::change::patch::Change;
use crate::domain::contract::policy::LiveRule;
use crate::domain::ledger::record::Record;
use crate::domain::proof::on_live::{LiveInputs, OnLive, SeenAfterDelivery};
use crate::domain::proof::verdict::Row;
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Code, Result};
use crate::git::limits::CandidateLimits;
use crate::git::live_difference::{LiveDifference, compare_live_tree};
use crate::verifier::depends_on;
use serde_json::json;
use std::collections::HashSet;

/// How many paths are named for each requirement.
const FIRST: usize = 10;

/// Looks at the live tree and at what was left behind, and records what there is to tell, so that the report
/// says it too.
///
/// `ground` is the live tree that the rows were shown on before, where they had to be.
pub fn look_after_delivery(
    task: &mut TaskWrite<'_>,
    rows: &[Row],
    ground: Option<&LiveGround>,
) -> SeenAfterDelivery {
    let mut seen = SeenAfterDelivery { proven: ground.is_some(), ..SeenAfterDelivery::default() };
    let Ok(live) = task.view.opened_terms().map(|opened| opened.effective.live) else { return seen };
    // A branch is not what lies in the live tree.
    if !task.view.publishes() {
        seen.rows = match ground {
            Some(ground) => compare_with_ground(task, rows, ground).unwrap_or_default(),
            None if live == LiveRule::Off => Vec::new(),
            None => compare_live_inputs(task, rows).unwrap_or_default(),
        };
        // Who judged by the rules of HEAD has nothing newer to tell of.
        if ground.is_none() {
            seen.told = compare_rules_of_head(task, rows).unwrap_or_default();
        }
    }
    // It looks at every file of the worktree, as the look at the live tree does there.
    if live != LiveRule::Off {
        seen.told.extend(find_uncaptured_work(task));
    }
    if seen.proven || !seen.risks().is_empty() {
        let record = Record::SeenOnLive(seen.clone());
        task.note_look("live-inputs", &json!({}), &record).ok();
    }
    seen
}

/// Work in the task's worktree that is in no candidate, as a sentence; ignored files are no work.
fn find_uncaptured_work(task: &TaskWrite<'_>) -> Option<String> {
    let most = budget::artifact_bytes(&task.view);
    let limits = CandidateLimits { allowed: &|_| true, scope: &[], artifact_bytes: Some(most) };
    let captured = match candidate::worktree(task, limits) {
        Ok(captured) => captured,
        Err(failure) if failure.code() == Code::NotFound => return None,
        Err(failure) => {
            return Some(format!("the task's worktree holds what is in no candidate: {}", failure.message()));
        }
    };
    if task.view.is_known(&captured.tree) {
        return None;
    }
    let known = |change: &&Change| {
        let candidates = task.view.candidates.iter().flat_map(|candidate| &candidate.value.changes);
        !candidates.into_iter().any(|known| known.path == change.path && known.new == change.new)
    };
    let left: Vec<&RepoPath> = captured.changes.iter().filter(known).map(|change| &change.path).collect();
    let (first, more) = (left.first()?, left.len() - 1);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    Some(format!("work in the task's worktree is in no candidate, and was not delivered: {first}{more}"))
}

fn compare_live_inputs(task: &TaskWrite<'_>, rows: &[Row]) -> Result<Vec<LiveInputs>> {
    let candidate = task.view.last_candidate()?.value.clone();
    let home = task.session.live_repository(task.view.opened_terms()?)?;
    let quarantine = task.session.quarantine(&task.view.id);
    let mut difference = compare_live_tree(&home, &quarantine, &candidate.tree)?;
    // Just written as the candidate has them; an index that did not follow knows nothing of it.
    let written: HashSet<_> = candidate.changes.iter().map(|change| &change.path).collect();
    difference.differs.retain(|path| !written.contains(path));
    difference.unknown.retain(|path| !written.contains(path));
    let judged = Judged { opened: task.view.opened_terms()?, candidate: &candidate };
    inputs_of_rows(task, judged, rows, &difference, &|_| OnLive::Same)
}

/// The live tree has the delivery by now; whatever else is not as it was when the rows were shown on it came
/// later.
fn compare_with_ground(task: &TaskWrite<'_>, rows: &[Row], ground: &LiveGround) -> Result<Vec<LiveInputs>> {
    let home = task.session.live_repository(&ground.opened)?;
    let quarantine = task.session.quarantine(&task.view.id);
    let mut difference = compare_live_tree(&home, &quarantine, &ground.candidate.tree)?;
    // The content of what git does not track was looked at just now.
    difference.unknown.clear();
    let by_itself = task.view.observation.as_ref().map(|known| &known.value);
    let shown = |row: &Row| match by_itself.is_some_and(|own| ground.is_apart(&row.id, own)) {
        true => OnLive::Proven,
        false => OnLive::Same,
    };
    inputs_of_rows(task, ground.judged(), rows, &difference, &shown)
}

fn inputs_of_rows(
    task: &TaskWrite<'_>,
    judged: Judged<'_>,
    rows: &[Row],
    difference: &LiveDifference,
    shown: &dyn Fn(&Row) -> OnLive,
) -> Result<Vec<LiveInputs>> {
    let watch = |_| None;
    with_subject(task, judged, (&watch, None), |_, verifiers, _| {
        let one = |row: &Row| {
            let depends = depends_on(verifiers, &row.verifier)?;
            Some(inputs_of(row, difference, &*depends, shown(row)))
        };
        Ok(rows.iter().filter_map(one).collect())
    })
}

fn inputs_of(
    row: &Row,
    difference: &LiveDifference,
    depends: &dyn Fn(&RepoPath) -> bool,
    shown: OnLive,
) -> LiveInputs {
    let differs: Vec<_> =
        difference.differs.iter().filter(|path| depends(path)).take(FIRST).cloned().collect();
    let on_live = match differs.is_empty() {
        false => Some(OnLive::Differs),
        true if difference.unknown.iter().any(depends) => None,
        true => Some(shown),
    };
    LiveInputs { id: row.id.clone(), verifier: row.verifier.clone(), on_live, differs }
}
