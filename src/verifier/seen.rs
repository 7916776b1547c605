//! What a candidate's tree and its base's show of a verifier's inputs, kept with the task: a tree never
//! changes under its id, so that looking again costs the same for a hundred files and a hundred thousand.
//!
//! A damaged or missing note costs another look and nothing else.

use super::judge::BaseInputs;
use super::load::Verifier;
use super::watched::ChangedJudge;
use super::{VerificationSubject, protocol};
use crate::domain::proof::records::On;
use crate::domain::value::digest::Sha256;
use crate::store::layout::{Layout, create_private_dir, replace_unsynced};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::path::PathBuf;

/// What is seen of one verifier.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct SeenTrees {
    /// Whether the candidate, and whether the base, has a file among its inputs.
    pub(super) has_inputs: bool,
    pub(super) had_inputs: bool,
    /// Those patterns of its inputs that name no file of the candidate.
    pub(super) dead_inputs: Vec<String>,
    /// What the change tells it otherwise.
    pub(super) changed: Vec<ChangedJudge>,
    /// Of a verifier that runs a command: its inputs, or which program its slot would not have.
    pub(super) command: Option<Result<SeenInputs, String>>,
}

/// The digests of the files that a run sees.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct SeenInputs {
    /// The blob that lists them.
    pub(super) listing: Sha256,
    pub(super) inputs: Sha256,
    pub(super) base_inputs: BaseInputs,
}

/// The note on a verifier and two trees.
pub(super) struct SeenNote(PathBuf);

impl SeenNote {
    /// Named by everything that decides what is seen.
    pub(super) fn of(layout: &Layout, subject: &VerificationSubject<'_>, verifier: &Verifier) -> Self {
        let candidate = subject.candidate;
        let told = [On::Candidate, On::Base, On::BaseWithCase, On::BaseWithoutCase]
            .map(|on| protocol::told_to_verifier(subject, on));
        let decides = Sha256::of_json(&json!({
            "version": env!("CARGO_PKG_VERSION"),
            "trees": [&candidate.tree, &candidate.base_tree, subject.base_commit_tree],
            "changes": candidate.patch.manifest_sha256,
            "manifest": verifier.manifest_sha256,
            "closure": verifier.closure.iter().map(|file| &file.file).collect::<Vec<_>>(),
            "scope": verifier.scope.patterns(),
            "kind": subject.contract.kind,
            "case": subject.contract.case,
            "told": told,
        }));
        Self(layout.task(subject.task).join("seen").join(decides.to_string()))
    }

    /// What was seen, where its listing is there still.
    pub(super) fn read_seen(&self, is_stored: impl Fn(&Sha256) -> bool) -> Option<SeenTrees> {
        let seen: SeenTrees = serde_json::from_slice(&std::fs::read(&self.0).ok()?).ok()?;
        let listed = match &seen.command {
            Some(Ok(inputs)) => is_stored(&inputs.listing),
            _ => true,
        };
        listed.then_some(seen)
    }

    /// Keeps what was seen. Losing it is no harm, so a failure is none.
    pub(super) fn keep_seen(&self, seen: &SeenTrees) {
        let (Some(folder), Ok(bytes)) = (self.0.parent(), serde_json::to_vec(seen)) else { return };
        drop(create_private_dir(folder).and_then(|()| replace_unsynced(&self.0, &bytes)));
    }
}
