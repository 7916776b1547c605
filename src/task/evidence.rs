//! The evidence that counts for a task, and the rows that it gives.

use crate::domain::contract::clause::{Clause, Permission, clauses_of};
use crate::domain::ledger;
use crate::domain::ledger::entry::Recorded;
use crate::domain::ledger::record::Opened;
use crate::domain::ledger::task::TaskView;
use crate::domain::proof::evidence::{Evidence, Observation, Observed};
use crate::domain::proof::judge;
use crate::domain::proof::judge::FORBIDDEN;
use crate::domain::proof::listing::{InputFile, Listing};
use crate::domain::proof::records::{Record, StoredLists};
use crate::domain::proof::verdict::{Row, Verdict};
use crate::domain::value::digest::Sha256;
use crate::error::Result;
use crate::store::{Blobs, Ledger};

/// The evidence that may count for a task: its own, and what other tasks made under the same keys.
pub fn counting_for(ledger: &Ledger, view: &TaskView) -> Result<Vec<Recorded<Evidence>>> {
    match &view.observation {
        Some(observation) => counting_under(ledger, view, &observation.value),
        None => Ok(view.evidence.clone()),
    }
}

/// Likewise for other keys than the task's last ones.
pub fn counting_under(
    ledger: &Ledger,
    view: &TaskView,
    observation: &Observation,
) -> Result<Vec<Recorded<Evidence>>> {
    let mut found = view.evidence.clone();
    add_recorded(ledger, observation, Some(&view.id), &mut found)?;
    Ok(found)
}

/// The evidence that may count where no task is: what was made under the same keys, for whatever it was.
pub fn recorded_under(ledger: &Ledger, observation: &Observation) -> Result<Vec<Recorded<Evidence>>> {
    let mut found = Vec::new();
    add_recorded(ledger, observation, None, &mut found)?;
    Ok(found)
}

/// Adds what others than `own` have made.
fn add_recorded(
    ledger: &Ledger,
    observation: &Observation,
    own: Option<&str>,
    found: &mut Vec<Recorded<Evidence>>,
) -> Result<()> {
    for key in observation.rows.iter().flat_map(Observed::keys_to_look_up) {
        for entry in ledger.entries_with_key(&key.digest())? {
            // By its place in the ledger: one action has a record for each row that its run shows.
            let known =
                (own.is_some() && entry.task.as_deref() == own) || found.iter().any(|e| e.seq == entry.seq);
            if let (false, Ok(ledger::record::Record::Evidence(record))) =
                (known, ledger::record::Record::from_row(&entry))
            {
                found.push(Recorded::new(&entry, *record));
            }
        }
    }
    Ok(())
}

/// The rows of the last candidate; of the contract alone where there is none yet.
pub fn current_rows(blobs: &Blobs, view: &TaskView, evidence: &[Recorded<Evidence>]) -> Result<Vec<Row>> {
    match &view.observation {
        Some(observation) => Ok(judge(blobs, &observation.value, evidence)),
        None => Ok(unproven(view.opened_terms()?)),
    }
}

/// The rows that an observation and the evidence give.
pub fn judge(blobs: &Blobs, observation: &Observation, evidence: &[Recorded<Evidence>]) -> Vec<Row> {
    with_stored_lists(blobs, |stored| judge::judge_rows(observation, &in_order(evidence), stored))
}

/// Lends what is stored beside the records.
pub fn with_stored_lists<T>(blobs: &Blobs, work: impl FnOnce(StoredLists<'_>) -> T) -> T {
    let files = |digest: &Sha256| listing(blobs, digest);
    let cases = |digest: &Sha256| serde_json::from_slice(&blobs.get(digest).ok()?).ok();
    work(StoredLists { files: &files, cases: &cases })
}

/// The records as verdicts are computed from them: in the order of the ledger, each with its digest.
pub fn in_order(evidence: &[Recorded<Evidence>]) -> Vec<Record> {
    let mut ordered: Vec<&Recorded<Evidence>> = evidence.iter().collect();
    ordered.sort_by_key(|e| e.seq);
    ordered.into_iter().map(|e| (e.value.digest(), e.value.clone())).collect()
}

/// The files of a stored listing.
pub fn listing(blobs: &Blobs, digest: &Sha256) -> Option<Vec<InputFile>> {
    let stored: Listing = serde_json::from_slice(&blobs.get(digest).ok()?).ok()?;
    let other = match &stored.differs_from {
        Some(other) => listing(blobs, other)?,
        None => Vec::new(),
    };
    Some(stored.resolve_with(other))
}

fn unproven(opened: &Opened) -> Vec<Row> {
    let row = |clause: Clause| {
        let reason = match clause.permission {
            Permission::Forbidden => FORBIDDEN,
            _ => "no candidate yet",
        };
        let row = Row::without_run(&clause.id, &clause.verifier, Verdict::NotRun, Some(reason.to_owned()));
        Row { required: clause.required, ..row }
    };
    clauses_of(&opened.contract, &[], &[]).into_iter().map(row).collect()
}
