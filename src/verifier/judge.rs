//! What one verifier contributes to the keys of its rows.

use crate::domain::contract::clause::Clause;
use crate::domain::contract::policy::BaseRuns;
use crate::domain::proof::evidence::{
    ANY_PLATFORM, EvidenceKey, Identity, Observed, RepairKeys, Reuse, Source,
};
use crate::domain::value::digest::Sha256;

/// Who shows a row, and on what.
#[derive(Clone)]
pub(super) struct Judge {
    pub(super) source: Source,
    pub(super) identity: Option<Identity>,
    pub(super) inputs: Option<Sha256>,
    pub(super) listing: Option<Sha256>,
    pub(super) base_inputs: Option<BaseInputs>,
    pub(super) platform: String,
    pub(super) base_runs: BaseRuns,
    pub(super) compares_cases: bool,
    pub(super) counts: bool,
    pub(super) reuse: Reuse,
    pub(super) judge_changed: bool,
    pub(super) dead_inputs: Vec<String>,
}

impl Judge {
    pub(super) fn none(source: Source) -> Self {
        Self {
            source,
            identity: None,
            inputs: None,
            listing: None,
            base_inputs: None,
            platform: ANY_PLATFORM.to_owned(),
            base_runs: BaseRuns::Reuse,
            compares_cases: false,
            counts: false,
            reuse: Reuse::SameInputs,
            judge_changed: false,
            dead_inputs: Vec::new(),
        }
    }

    pub(super) fn observed(self, clause: Clause, title: Option<String>) -> Observed {
        let key = |inputs: Option<Sha256>| {
            let (inputs, identity) = (inputs?, self.identity.as_ref()?);
            let platform = self.platform.clone();
            Some(EvidenceKey { requirement: clause.digest(), verifier: identity.digest(), inputs, platform })
        };
        let base = self.base_inputs.as_ref();
        let base_key = |inputs| match (key(inputs), base?.told_requirement) {
            (Some(key), false) => Some(key.for_any_requirement()),
            (key, _) => key,
        };
        let repair_keys = base.and_then(|base| {
            let (plain, without_case) = base.of_repair?;
            Some(RepairKeys { base: base_key(Some(plain))?, without_case: base_key(Some(without_case))? })
        });
        Observed {
            key: key(self.inputs),
            base_key: base_key(base.map(|base| base.with_case)),
            repair_keys,
            base_runs: self.base_runs,
            compares_cases: self.compares_cases,
            clause,
            title,
            source: self.source,
            identity: self.identity,
            listing: self.listing,
            counts: self.counts,
            reuse: self.reuse,
            judge_changed: self.judge_changed,
            dead_inputs: self.dead_inputs,
        }
    }
}

/// What a verifier depends on in runs on the base.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub(super) struct BaseInputs {
    /// With the case of a repair; where there is none, of the base as it is.
    pub(super) with_case: Sha256,
    /// Of a repair: of the base as it is, and of the base without any file of the case.
    pub(super) of_repair: Option<(Sha256, Sha256)>,
    /// The verifier is told which requirements to judge.
    pub(super) told_requirement: bool,
}
