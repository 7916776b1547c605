//! The digests of tree and tools that a candidate is judged by, and what verifiers are given of it.

use super::Session;
use super::held::TaskWrite;
use super::sandbox::grant_sandbox;
use super::terms::verifiers_of_base;
use crate::domain::change::patch::Candidate;
use crate::domain::contract::Contract;
use crate::domain::contract::policy::Effective;
use crate::domain::ledger::record::{Opened, Record};
use crate::domain::proof::evidence::Observation;
use crate::domain::value::digest::{ObjectId, Sha256};
use crate::error::Result;
use crate::git::slot::choose_slots_folder;
use crate::git::worktree;
use crate::verifier::{self, Host, VerificationSubject, Verifiers};
use serde_json::json;

/// A candidate with the terms that it is judged by.
#[derive(Debug, Clone, Copy)]
pub struct Judged<'a> {
    pub opened: &'a Opened,
    pub candidate: &'a Candidate,
}

/// Takes the digests of tree and tools anew and records them.
pub fn observe(task: &mut TaskWrite<'_>) -> Result<Observation> {
    let candidate = task.view.last_candidate()?.value.clone();
    let params = json!({ "candidate": candidate.candidate });
    let known = task.view.observation.as_ref().map(|known| known.value.clone());
    let fresh = take_observation(task, Judged { opened: task.view.opened_terms()?, candidate: &candidate })?;
    if known.as_ref() != Some(&fresh) {
        task.note_look("observe", &params, &Record::Observed(Box::new(fresh.clone())))?;
    }
    Ok(fresh)
}

/// Takes the digests of tree and tools.
pub fn take_observation(task: &TaskWrite<'_>, judged: Judged<'_>) -> Result<Observation> {
    let watch = |_| task.require_wanted().err().map(verifier::RunHalt::Unwanted);
    with_subject(task, judged, (&watch, None), verifier::observe)
}

/// Lends a candidate, the verifiers of its base and where they run.
pub fn with_subject<T>(
    task: &TaskWrite<'_>,
    judged: Judged<'_>,
    (watch, most): (verifier::Watch<'_>, Option<std::time::Duration>),
    work: impl FnOnce(&VerificationSubject<'_>, &Verifiers, &Host<'_>) -> Result<T>,
) -> Result<T> {
    let session = task.session;
    let Judged { opened, candidate } = judged;
    let verifiers = verifiers_of_base(session, opened)?;
    let rules = JudgeRules {
        base_commit_tree: opened.base.commit_tree(),
        contract: &opened.contract,
        contract_sha256: opened.seal.sha256,
        effective: &opened.effective,
        filters: &opened.filters,
    };
    let lent = (task.view.id.as_str(), candidate);
    lend_subject(session, lent, rules, (watch, most), |subject, host| work(subject, &verifiers, host))
}

/// What a change is judged by, wherever it comes from.
#[derive(Debug, Clone, Copy)]
pub struct JudgeRules<'a> {
    pub base_commit_tree: &'a ObjectId,
    pub contract: &'a Contract,
    /// The digest that it is sealed with.
    pub contract_sha256: Sha256,
    pub effective: &'a Effective,
    pub filters: &'a [String],
}

/// Lends a candidate whose objects lie with a task, or in what stands for one, and where verifiers run.
pub fn lend_subject<T>(
    session: &Session,
    (task, candidate): (&str, &Candidate),
    rules: JudgeRules<'_>,
    (watch, most): (verifier::Watch<'_>, Option<std::time::Duration>),
    work: impl FnOnce(&VerificationSubject<'_>, &Host<'_>) -> Result<T>,
) -> Result<T> {
    let quarantine = session.quarantine(task);
    let slots = worktree::worktree_root(&session.repository)?.join(".slots");
    let slots = choose_slots_folder(slots, session.machine.cache.as_deref(), session.repository.common_dir());
    let blobs = session.blobs();
    let sandbox = grant_sandbox(session, rules.contract)?;
    let subject = VerificationSubject {
        repository: &session.repository,
        quarantine: Some(&quarantine),
        base_commit_tree: rules.base_commit_tree,
        task,
        candidate,
        contract: rules.contract,
        contract_sha256: rules.contract_sha256,
        effective: rules.effective,
        filters: rules.filters,
    };
    let host = Host {
        program: &session.machine.program,
        vars: &session.machine.vars,
        home: session.machine.home.as_deref(),
        layout: &session.layout,
        blobs: &blobs,
        slots: &slots,
        sandbox: &sandbox,
        progress: &|_, _, _| {},
        watch,
        most,
    };
    work(&subject, &host)
}
