//! Which records count for a row, and on which tree each was made.

use super::cases::CaseList;
use super::evidence::{Evidence, EvidenceKey, EvidenceKind, Observation, Observed};
use super::listing::InputFile;
use super::verdict::Verdict;
use crate::domain::value::digest::Sha256;

/// A record with its digest. Records come in the order of the ledger.
pub type Record = (Sha256, Evidence);

/// The tree that a verifier runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    Candidate,
    Base,
    /// The base with what a repair's candidate has under `case`, and nothing else of it.
    BaseWithCase,
    /// The base without any file under a repair's `case`.
    BaseWithoutCase,
}

/// Reads what is stored beside the ledger.
#[derive(Clone, Copy)]
pub struct StoredLists<'a> {
    /// The files of a listing, to name what changed and where cases lie; asked only where that is needed.
    pub files: &'a dyn Fn(&Sha256) -> Option<Vec<InputFile>>,
    /// The cases of a run.
    pub cases: &'a dyn Fn(&Sha256) -> Option<CaseList>,
}

/// What a candidate left in the scratch can have judged the next one; the key does not cover it, so such a
/// run counts for its own task only.
pub(super) fn counts_here(observation: &Observation, evidence: &Evidence) -> bool {
    !evidence.warm || evidence.task == observation.task
}

/// The key knows a requirement by its words alone. Where two of one verifier have the same, each record
/// speaks for its own: a run may say one thing of the first and another of the second.
pub(super) fn is_of(observation: &Observation, observed: &Observed, evidence: &Evidence) -> bool {
    let (clause, id) = (&observed.clause, &evidence.requirement);
    let is_twin = |other: &Observed| {
        other.clause.id == *id && other.clause.text == clause.text && other.clause.verifier == clause.verifier
    };
    clause.id == *id || !observation.rows.iter().any(is_twin)
}

impl Observed {
    /// The key of a run on one of the trees; `None` where no such run can be.
    pub fn key_on(&self, on: On) -> Option<&EvidenceKey> {
        let repair = self.repair_keys.as_ref();
        match on {
            On::Candidate => self.key.as_ref(),
            On::Base => repair.map(|keys| &keys.base).or(self.base_key.as_ref()),
            On::BaseWithCase => self.base_key.as_ref(),
            On::BaseWithoutCase => repair.map(|keys| &keys.without_case),
        }
    }

    /// The keys under which records may lie that speak for the row.
    pub fn keys_to_look_up(&self) -> Vec<EvidenceKey> {
        let mut keys: Vec<EvidenceKey> = self.key.iter().cloned().collect();
        for key in
            [On::Base, On::BaseWithCase, On::BaseWithoutCase].into_iter().filter_map(|on| self.key_on(on))
        {
            let own = EvidenceKey { requirement: self.clause.digest(), ..key.clone() };
            for key in [own, key.clone()] {
                if !keys.contains(&key) {
                    keys.push(key);
                }
            }
        }
        keys
    }
}

/// The last run of the same verifier on one of the base's trees. An error says nothing.
pub(super) fn find_on_base<'a>(
    observation: &Observation,
    observed: &Observed,
    records: &'a [Record],
    on: On,
) -> Option<&'a Evidence> {
    let key = observed.key_on(on)?;
    let mut made = records.iter().rev().map(|(_, evidence)| evidence);
    made.find(|e| {
        e.kind != EvidenceKind::Attestation
            && e.key.is_same_run(key)
            && [key.requirement, observed.clause.digest()].contains(&e.key.requirement)
            && is_of(observation, observed, e)
            && counts_here(observation, e)
            && matches!(e.outcome, Verdict::Passed | Verdict::Failed | Verdict::NotRun)
    })
}
