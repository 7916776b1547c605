//! A publication on its way: announced before the ref is moved, so that a crash leaves what recovery needs.

use crate::domain::delivery::decision::{CHOICES, Decision};
use crate::domain::delivery::publication::{CommitPlan, Publication};
use crate::domain::delivery::receipt::Receipt;
use crate::error::{Code, Failure};
use serde::{Deserialize, Serialize};

/// A publication that is about to take place: what its end will say, and what recovery needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Publishing {
    pub publication: Publication,
    /// The commit; `None` where a delivery is reversed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitPlan>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub push_options: Vec<String>,
    /// The receipt of its end, without the publication.
    pub receipt: Receipt,
    /// `sha256:…` of the evidence that it rests on.
    pub evidence: Vec<String>,
    /// True where it reverses a delivery.
    pub undoes: bool,
}

impl Publishing {
    /// The receipt of its end.
    pub fn final_receipt(&self) -> Receipt {
        Receipt { publication: Some(Box::new(self.publication.clone())), ..self.receipt.clone() }
    }

    /// The open effect as a sentence.
    pub fn effect_sentence(&self) -> String {
        let place = self.publication.place_name();
        match &self.publication.new {
            Some(id) => format!("it is not known whether {place} names the commit {id} by now"),
            None => format!("it is not known whether {place} was deleted"),
        }
    }

    /// True where it goes over a connection to somebody else.
    pub fn is_sent(&self) -> bool {
        self.publication.remote.is_some()
    }

    /// The effect that a look did not find, and that may still happen, as a sentence.
    pub fn late_effect(&self) -> String {
        let place = self.publication.place_name();
        match &self.publication.new {
            Some(id) => format!(
                "the commit {id} had not arrived at {place} when it was asked for; a slow server may have it yet: it may still arrive"
            ),
            None => format!("{place} was still there when it was asked for; its deletion may still arrive"),
        }
    }

    /// The refusal to go on while it is not known what happened. `why` says why nobody could be asked.
    pub fn outcome_unknown(&self, why: &str) -> Failure {
        let publication = &self.publication;
        let failure = Failure::new(Code::OutcomeUnknown, format!("{}: {why}", self.effect_sentence()))
            .subject(publication.ref_name())
            .detail("ref", publication.ref_name())
            .detail("commit", &publication.new)
            .detail("lease", &publication.old)
            .with_detail(&CHOICES, &self.ask_person(why).choices);
        let failure = match &publication.remote {
            Some(remote) => failure.detail("remote", &remote.name).detail("url", &remote.url),
            None => failure,
        };
        let text =
            "Nothing is pushed again while this is open. Once the remote can be reached, recovery asks it.";
        failure.remedy(text, ["git", "tender", "recover"])
    }

    /// The question to a person where no remote can be asked.
    pub fn ask_person(&self, because: &str) -> Decision {
        let end = if self.undoes { "undone" } else { "completed" };
        Decision::new(
            self.effect_sentence(),
            &format!("it does: the task is {end}, and nothing is sent again"),
            "it never got there: it may be repeated, with the same commit and the same lease, so that a late arrival does no harm",
            because.to_owned(),
        )
    }
}
