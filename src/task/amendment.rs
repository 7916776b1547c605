//! Amendments: a worker's wish for another contract, checked and recorded; and what follows once a person
//! agrees to it.
//!
//! The new version is held to everything that `open` holds a contract to: the policy of the base commit and
//! the parent's limits. The base, the worktree and the live tree stay what they are.

use crate::domain::change::patch::Candidate;
use crate::domain::contract::amendment::Proposal;
use crate::domain::contract::budget::Limits as Budget;
use crate::domain::contract::{Contract, family};
use crate::domain::ledger::record::{Amended, Opened, Record, Seal};
use crate::domain::proof::evidence::Observation;
use crate::error::{Code, Failure, Result};
use crate::git::limits::{CandidateLimits, find_violations};
use crate::task::effect::refs;
use crate::task::family::{attach, children};
use crate::task::held::TaskWrite;
use crate::task::observation::Judged;
use crate::task::session::redacted;
use crate::task::terms::read_terms;
use crate::task::view::load;
use crate::task::{budget, observation};
use serde_json::{Map, Value};

/// The wish as it is recorded. Changes nothing: refused where what would come of it is no contract.
pub fn check_proposal(task: &TaskWrite<'_>, change: &Map<String, Value>, reason: &str) -> Result<Proposal> {
    task.require_active()?;
    task.view.require_room(task.view.inquiries.open_proposals().count(), "amendments")?;
    let text = Value::Object(change.clone()).to_string();
    // Refused rather than blackened when it is written: what is agreed to has to be the wish, letter by
    // letter.
    if redacted(task.session, &text) != text {
        let why = "`change` holds a value that must be seen nowhere, such as a token of the environment";
        return Err(Failure::new(Code::ArgumentsInvalid, why).subject("change"));
    }
    let version = task.view.opened_terms()?.seal.version;
    let proposal = Proposal::new(&document(task)?, change, reason)?;
    Ok(Proposal { version, ..proposal })
}

/// What a wish would change in the contract that is in force now, as lines for whoever decides.
pub fn differences(task: &TaskWrite<'_>, proposal: &Proposal) -> Result<Vec<String>> {
    let mut lines = proposal.field_differences(&document(task)?)?;
    let now = task.view.opened_terms()?.seal.version;
    if proposal.version != 0 && proposal.version != now {
        lines.push(format!(
            "it was proposed for version {} of the contract; version {now} is in force",
            proposal.version
        ));
    }
    Ok(lines)
}

/// The document of the contract's present version, as it was given.
fn document(task: &TaskWrite<'_>) -> Result<Vec<u8>> {
    task.session.blobs().get(&task.view.opened_terms()?.seal.sha256)
}

/// The next version of a contract, and what it will come to.
#[derive(Debug)]
pub struct Version {
    document: Vec<u8>,
    pub opened: Opened,
}

/// Works out the version that a wish leads to, within the policy and the parent's limits. Nothing is changed
/// yet.
pub fn next_version(task: &TaskWrite<'_>, proposal: &Proposal) -> Result<Version> {
    let session = task.session;
    let old = task.view.opened_terms()?.clone();
    let (document, contract) = proposal.merge_into(&document(task)?)?;
    let terms = read_terms(session, &contract, old.base.commit_tree())?;
    let author = refs::before_opening(&session.repository, &contract)?;
    parts_stay_within(task, &contract, &terms.effective.limits)?;
    let opened = Opened {
        seal: Seal { version: old.seal.version + 1, sha256: Contract::seal_document(&document) },
        contract,
        author,
        ..terms.apply(old)
    };
    Ok(Version { document, opened })
}

/// A part of the task may do nothing that the task itself may not do any more.
fn parts_stay_within(task: &TaskWrite<'_>, contract: &Contract, limits: &Budget) -> Result<()> {
    let mut found = Vec::new();
    for id in children(&task.ledger, &task.view.id)? {
        let Some(part) = load(&task.ledger, &id)?.filter(|part| !part.has_ended()) else { continue };
        let beyond = family::find_excess(&part.opened_terms()?.contract, contract, limits);
        found.extend(beyond.into_iter().map(|failure| {
            failure.detail("task", &id).remedy(
                "End that part first, or amend it: it would go beyond what is left of the whole.",
                ["git", "tender", "cancel", &id],
            )
        }));
    }
    Failure::first_of(found).map_or(Ok(()), Err)
}

/// What an accepted amendment came to.
#[derive(Debug)]
pub struct Accepted {
    pub record: Record,
    /// What else to know, as sentences.
    pub notes: Vec<String>,
}

/// Takes the last candidate over to the new version, where it is within that one's limits, with its digests
/// taken anew: evidence whose requirement changed does not count any more. `to` is the action that wished
/// for it. From here on the view has the new version.
pub fn agree_to(task: &mut TaskWrite<'_>, to: &str, version: Version) -> Result<Accepted> {
    task.session.blobs().put(&version.document)?;
    let opened = version.opened;
    let before = task.view.current_candidate().map(|last| last.value.clone());
    if let Some(known) = &mut task.view.opened {
        known.value = opened.clone();
    }
    attach(&task.ledger, &mut task.view)?;
    let mut notes = opened.narrowed.clone();
    let captured = match before {
        None => None,
        Some(candidate) => match beyond(task, &opened, &candidate)? {
            Some(failure) => {
                notes.push(format!(
                    "candidate {} is not within the new version, and cannot be delivered: {}",
                    candidate.candidate,
                    failure.message()
                ));
                None
            }
            None => Some(carry_over(task, &opened, candidate)?),
        },
    };
    let to = to.to_owned();
    Ok(Accepted { record: Record::Amended(Box::new(Amended { to, opened, captured })), notes })
}

/// What of a candidate the new version does not allow.
fn beyond(task: &TaskWrite<'_>, opened: &Opened, candidate: &Candidate) -> Result<Option<Failure>> {
    let quarantine = task.session.quarantine(&task.view.id);
    let objects = task.session.repository.object_reader(Some(&quarantine))?;
    let limits = CandidateLimits {
        allowed: &|path| opened.effective.write_allows(path),
        scope: &opened.effective.write_patterns(),
        artifact_bytes: Some(budget::artifact_bytes(&task.view)),
    };
    Ok(Failure::first_of(find_violations(&objects, &candidate.base_tree, &candidate.tree, &limits)?))
}

/// The same bytes under another version of the contract are another candidate.
fn carry_over(
    task: &TaskWrite<'_>,
    opened: &Opened,
    candidate: Candidate,
) -> Result<(Candidate, Observation)> {
    let version = opened.seal.version;
    let candidate = Candidate {
        candidate: task.view.candidate_number(&candidate.tree, &candidate.base_tree, version),
        contract_version: version,
        ..candidate
    };
    let observation = observation::take_observation(task, Judged { opened, candidate: &candidate })?;
    Ok((candidate, observation))
}
