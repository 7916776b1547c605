//! What the live tree has, after a delivery, of the files that the verifiers saw. It refuses nothing, nor
//! does it when it cannot be looked: the delivery has taken place.

use super::held::TaskWrite;
use super::observation::with_subject;
use crate::domain::ledger::record::Record;
use crate::domain::proof::on_live::{LiveInputs, OnLive};
use crate::domain::proof::verdict::Row;
use crate::error::Result;
use crate::git::live_difference::{LiveDifference, compare_live_tree};
use crate::verifier::depends_on;
use serde_json::json;
use std::collections::HashSet;

/// How many paths are named for each requirement.
const FIRST: usize = 10;

/// Looks at the live tree and records where inputs differ, so that the report says it too.
pub fn look_at_live_inputs(task: &mut TaskWrite<'_>, rows: &[Row]) -> Vec<LiveInputs> {
    let Ok(seen) = compare_live_inputs(task, rows) else { return Vec::new() };
    if seen.iter().any(|inputs| inputs.on_live == Some(OnLive::Differs)) {
        let record = Record::SeenOnLive { rows: seen.clone() };
        task.act("live-inputs", &json!({}), |_| Ok((record, ()))).ok();
    }
    seen
}

fn compare_live_inputs(task: &TaskWrite<'_>, rows: &[Row]) -> Result<Vec<LiveInputs>> {
    let candidate = task.view.last_candidate()?.value.clone();
    let home = task.session.live_repository(task.view.opened()?)?;
    let quarantine = task.session.quarantine(&task.view.id);
    let mut difference = compare_live_tree(&home, &quarantine, &candidate.tree)?;
    // Just written as the candidate has them; an index that did not follow knows nothing of it.
    let written: HashSet<_> = candidate.changes.iter().map(|change| &change.path).collect();
    difference.differs.retain(|path| !written.contains(path));
    difference.unknown.retain(|path| !written.contains(path));
    let watch = |_| None;
    with_subject(task, &candidate, (&watch, None), |_, verifiers, _| {
        let one = |row: &Row| {
            let depends = depends_on(verifiers, &row.verifier)?;
            Some(inputs_of(row, &difference, &*depends))
        };
        Ok(rows.iter().filter_map(one).collect())
    })
}

fn inputs_of(
    row: &Row,
    difference: &LiveDifference,
    depends: &dyn Fn(&crate::domain::value::repo_path::RepoPath) -> bool,
) -> LiveInputs {
    let differs: Vec<_> =
        difference.differs.iter().filter(|path| depends(path)).take(FIRST).cloned().collect();
    let on_live = match differs.is_empty() {
        false => Some(OnLive::Differs),
        true if difference.unknown.iter().any(depends) => None,
        true => Some(OnLive::Same),
    };
    LiveInputs { id: row.id.clone(), verifier: row.verifier.clone(), on_live, differs }
}
