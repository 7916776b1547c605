//! Which runs on the base a row needs, and what the cases of the base became.

use super::case_changes::{CaseChanges, compare_cases};
use super::cases::CaseList;
use super::evidence::{Evidence, EvidenceKey, EvidenceKind, Observation, Observed, Source};
use super::records::{On, Record, StoredLists, find_on_base};
use super::reproduction::{Reproduction, find_reproduction};
use super::verdict::Verdict;
use crate::domain::contract::Kind;
use crate::domain::contract::policy::BaseRuns;

/// True where a run on this tree of the base is asked for and not made yet. `now` is the record that speaks
/// for the candidate.
pub(super) fn wants_base_run(
    observation: &Observation,
    observed: &Observed,
    (records, stored): (&[Record], StoredLists<'_>),
    (on, now): (On, Option<&Evidence>),
) -> bool {
    let repair = observation.kind == Kind::Repair && observed.counts;
    let is_other = |key: &&EvidenceKey| observed.key.as_ref().is_none_or(|now| !now.is_same_run(key));
    let Some(key) = observed.key_on(on).filter(is_other) else { return false };
    let asked = match on {
        On::Candidate => false,
        On::BaseWithCase => repair,
        On::Base => {
            let is_with_case = repair && observed.base_key.as_ref() == Some(key);
            let failed = now.is_some_and(|now| now.outcome == Verdict::Failed);
            let wanted = match observed.base_runs {
                BaseRuns::Reuse => repair,
                BaseRuns::OnFailure => repair || failed,
                BaseRuns::Always => true,
            };
            wanted && !is_with_case
        }
        On::BaseWithoutCase => {
            let tried = |(_, e): &Record| e.kind == EvidenceKind::BaseRun && e.key == *key;
            let undecided = || match now {
                Some(now) => matches!(
                    find_reproduction(observation, observed, records, stored, now),
                    Reproduction::Undecided { .. }
                ),
                None => false,
            };
            repair && !records.iter().any(tried) && undecided()
        }
    };
    observed.source == Source::Command && asked && find_on_base(observation, observed, records, on).is_none()
}

/// Whether a row that failed does so on the base too, in words, where that was tried.
pub(super) fn tell_of_base(
    observation: &Observation,
    observed: &Observed,
    records: &[Record],
) -> Option<&'static str> {
    if observed.base_runs != BaseRuns::OnFailure {
        return None;
    }
    Some(match find_on_base(observation, observed, records, On::Base)?.outcome {
        Verdict::Failed => "it fails on the base too",
        Verdict::Passed => "it passes on the base",
        _ => "on the base no case runs",
    })
}

/// The cases of a candidate's run against those of the base; `None` where nothing is compared.
pub(super) fn compare_with_base(
    observation: &Observation,
    observed: &Observed,
    records: &[Record],
    stored: StoredLists<'_>,
    now: &Evidence,
) -> Option<CaseChanges> {
    if !observed.compares_cases {
        return None;
    }
    let list_on = |on| find_on_base(observation, observed, records, on).and_then(|base| base.cases);
    let (base, with_case) = (list_on(On::Base), list_on(On::BaseWithCase));
    let (base, now) = (base.or(with_case)?, now.cases?);
    let with_case = with_case.unwrap_or(base);
    if base == now && with_case == now {
        return Some(CaseChanges::default());
    }
    let read = |digest| (stored.cases)(digest);
    let now: CaseList = read(&now)?;
    let mut found = compare_cases(&read(&base)?, &now);
    if with_case != base {
        // What a repair mends, its case shows.
        let repaired = compare_cases(&read(&with_case)?, &now);
        (found.fixed, found.broken) = (repaired.fixed, repaired.broken);
    }
    Some(found)
}
