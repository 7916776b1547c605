//! Cases that ran on the base and do not run any more: what they passed for is shown no longer, so a person
//! confirms that they are gone. What is confirmed are these cases of this candidate and no others.

use super::evidence::{EvidenceKey, Identity, Observation, Observed, Reuse, Source};
use super::verdict::{Row, Verdict};
use crate::domain::contract::PROTECTED;
use crate::domain::contract::clause::{Clause, Origin, Permission};
use crate::domain::contract::policy::{BaseRuns, GoneCases};
use crate::domain::value::digest::Sha256;
use serde_json::json;
use std::collections::BTreeSet;

/// How many of the gone cases a sentence names.
const NAMED: usize = 20;

/// The names of the cases that are gone in what passed.
pub(super) fn collect_gone_cases(rows: &[Row]) -> BTreeSet<&str> {
    let passed = rows.iter().filter(|row| row.verdict == Verdict::Passed);
    passed
        .flat_map(|row| row.cases.iter().flat_map(|cases| cases.all_gone.iter().map(String::as_str)))
        .collect()
}

/// The sentence about them.
pub fn tell_gone_cases(rows: &[Row]) -> Option<String> {
    let gone = collect_gone_cases(rows);
    let names: Vec<&str> = gone.iter().take(NAMED).copied().collect();
    let more = match gone.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let cases = if gone.len() == 1 { "case of the base does" } else { "cases of the base do" };
    (!gone.is_empty()).then(|| format!("{} {cases} not run any more: {}{more}", gone.len(), names.join(", ")))
}

/// Has a person confirm the cases that are gone, where the policy wants that: by the row for protected paths,
/// which is added where it is missing. Gives what is observed then, and the row's position in it.
pub(super) fn require_confirmation(observation: &Observation, rows: &[Row]) -> Option<(Observation, usize)> {
    let sentence = tell_gone_cases(rows).filter(|_| observation.gone_cases == GoneCases::Person)?;
    let mut observation = observation.clone();
    let protects = |row: &Observed| matches!(row.source, Source::Protected { .. });
    let at = match observation.rows.iter().position(protects) {
        Some(at) => at,
        None => {
            let optional = |row: &Observed| matches!(row.clause.origin, Origin::Allowed | Origin::Forbidden);
            let at = observation.rows.iter().position(optional).unwrap_or(observation.rows.len());
            let row = confirmation_row(&observation)?;
            observation.rows.insert(at, row);
            at
        }
    };
    let row = &mut observation.rows[at];
    if let Source::Protected { why } = &mut row.source {
        why.push(sentence);
    }
    let gone = collect_gone_cases(rows);
    let confirmed = json!({"manifestSha256": observation.manifest_sha256, "gone": gone});
    row.key.as_mut()?.inputs = Sha256::of_json(&confirmed);
    Some((observation, at))
}

/// A row for a person, of the same program as the others.
fn confirmation_row(observation: &Observation) -> Option<Observed> {
    let clause = Clause {
        id: PROTECTED.to_owned(),
        text: "a person confirms the cases that are gone".to_owned(),
        verifier: PROTECTED.to_owned(),
        required: true,
        origin: Origin::Protected,
        permission: Permission::Allowed,
    };
    let of = observation.rows.iter().find_map(|row| row.identity.as_ref())?;
    let identity = Identity::by_hand(Sha256::of(PROTECTED.as_bytes()), &of.sandbox, &of.tender_version);
    let key = EvidenceKey {
        requirement: clause.digest(),
        verifier: identity.digest(),
        inputs: observation.manifest_sha256,
        platform: super::evidence::ANY_PLATFORM.to_owned(),
    };
    Some(Observed {
        clause,
        title: None,
        source: Source::Protected { why: Vec::new() },
        key: Some(key),
        identity: Some(identity),
        listing: None,
        base_key: None,
        repair_keys: None,
        base_runs: BaseRuns::Reuse,
        compares_cases: false,
        counts: false,
        reuse: Reuse::SameInputs,
        judge_changed: false,
        dead_inputs: Vec::new(),
    })
}
