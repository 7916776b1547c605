//! Deliveries that leave the working tree alone: a commit on a branch of this repository, or one that is
//! pushed to a remote.
//!
//! This is pure: the plan of the commit, and what a ref that was looked at afterwards says about an effect
//! whose answer was lost. A ref is only ever moved from the value that we delivered there last; any other
//! value belongs to somebody else.

use crate::domain::contract::DeliveryMode;
use crate::domain::value::digest::{ObjectId, Sha256};
use crate::error::{Code, Failure};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The author of a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub name: String,
    pub email: String,
}

/// Everything that a commit's id follows from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitPlan {
    /// Its tree: the candidate's.
    pub tree: ObjectId,
    /// Its parent: the base commit.
    pub parent: ObjectId,
    pub author: Identity,
    /// The time, RFC 3339 in UTC to the second.
    pub date: String,
    /// The message with its trailers.
    pub message: String,
}

/// The trailer with the head of the ledger before the delivery. It goes where the commit goes, so that a
/// ledger that was set back can be compared with it.
pub const LEDGER_TRAILER: &str = "Tender-Ledger";

impl CommitPlan {
    /// True where the two differ in nothing but the time and how long the ledger was.
    pub fn means_same_commit(&self, other: &Self) -> bool {
        self.without_moment() == other.without_moment()
    }

    fn without_moment(&self) -> Self {
        let is_head = |line: &&str| line.split_once(": ").is_some_and(|(key, _)| key == LEDGER_TRAILER);
        let message = self.message.split_inclusive('\n').filter(|line| !is_head(line)).collect();
        Self { date: String::new(), message, ..self.clone() }
    }
}

/// A remote as it is recorded: without the secrets that its address may hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remote {
    /// The name in the configuration.
    pub name: String,
    /// The address that is pushed to; what is secret in it is replaced.
    pub url: String,
}

/// A ref that was moved, or is to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Publication {
    /// `branch` or `push`.
    pub mode: DeliveryMode,
    /// The branch, without `refs/heads/`.
    pub branch: String,
    /// The remote; `None` for a branch of this repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<Remote>,
    /// The object that the ref names afterwards; `None`: it is gone.
    pub new: Option<ObjectId>,
    /// The object that it must name before: the one that we delivered there last; `None`: nothing.
    pub old: Option<ObjectId>,
    /// Notes for the reader, as sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Publication {
    /// The full name of the ref.
    pub fn ref_name(&self) -> String {
        format!("refs/heads/{}", self.branch)
    }

    /// By which the last delivery to the same place is found in the ledger. A remote that was given another
    /// address is another place.
    pub fn target_key(&self) -> Sha256 {
        let remote = &self.remote;
        Sha256::of_json(
            &json!({ "publication": self.mode.as_str(), "remote": remote, "branch": self.branch }),
        )
    }

    pub fn place_name(&self) -> String {
        match &self.remote {
            Some(remote) => format!("the branch {} of {}", self.branch, remote.name),
            None => format!("the branch {}", self.branch),
        }
    }

    pub fn reverse_publication(&self) -> Self {
        Self { new: self.old.clone(), old: self.new.clone(), notes: Vec::new(), ..self.clone() }
    }

    /// Compares a ref that names `there` with both sides of this publication.
    pub fn compare_ref(&self, there: Option<&ObjectId>) -> Standing {
        if there == self.new.as_ref() {
            Standing::Arrived
        } else if there == self.old.as_ref() {
            Standing::Unchanged
        } else {
            Standing::Foreign
        }
    }

    /// The refusal to move a ref that somebody else has moved.
    pub fn ref_conflict(&self, actual: Option<&ObjectId>, task: &str) -> Failure {
        let id = |id: Option<&ObjectId>| id.map_or("nothing".to_owned(), ToString::to_string);
        let (place, expected) = (self.place_name(), id(self.old.as_ref()));
        let code = if self.remote.is_some() { Code::PushConflict } else { Code::DeliveryConflict };
        let message =
            format!("{place} names {}, and not what was delivered there last: {expected}", id(actual));
        let failure = Failure::new(code, message)
            .subject(self.ref_name())
            .expected(self.old.as_ref(), actual)
            .detail("ref", self.ref_name());
        let failure = match &self.remote {
            Some(remote) => failure.detail("remote", &remote.name),
            None => failure.detail("reason", "moved"),
        };
        let text = "Somebody else's commit is never overwritten: take it into account, or deliver to another branch.";
        failure.remedy(text, ["git", "tender", "diff", task])
    }
}

/// The result of a look at a ref.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It names what was to be there.
    Arrived,
    /// It names what was there before.
    Unchanged,
    Foreign,
}

#[cfg(test)]
mod tests {
    use crate::domain::delivery::publication::*;

    fn object_id(letter: char) -> ObjectId {
        letter.to_string().repeat(40).parse().expect("an id")
    }

    fn publication_from(old: Option<ObjectId>) -> Publication {
        let remote = Some(Remote { name: "origin".into(), url: "u".into() });
        Publication {
            mode: DeliveryMode::Push,
            branch: "tender/t1".into(),
            remote,
            new: Some(object_id('a')),
            old,
            notes: Vec::new(),
        }
    }

    #[test]
    fn a_ref_tells_what_took_place() {
        let new = publication_from(None);
        assert_eq!(new.compare_ref(Some(&object_id('a'))), Standing::Arrived);
        assert_eq!(new.compare_ref(None), Standing::Unchanged);
        assert_eq!(new.compare_ref(Some(&object_id('b'))), Standing::Foreign);
        let moved = publication_from(Some(object_id('b')));
        assert_eq!(moved.compare_ref(None), Standing::Foreign);
        assert_eq!(moved.compare_ref(Some(&object_id('b'))), Standing::Unchanged);
        let back = moved.reverse_publication();
        assert_eq!(back.compare_ref(Some(&object_id('b'))), Standing::Arrived);
        assert_eq!(back.compare_ref(Some(&object_id('a'))), Standing::Unchanged);
        assert_eq!(new.reverse_publication().compare_ref(None), Standing::Arrived);
    }

    #[test]
    fn the_key_names_the_place_and_nothing_else() {
        let one = publication_from(None);
        assert_eq!(one.target_key(), publication_from(Some(object_id('b'))).target_key());
        let elsewhere = Some(Remote { name: "origin".into(), url: "v".into() });
        assert_ne!(one.target_key(), Publication { remote: elsewhere, ..one.clone() }.target_key());
        assert_ne!(one.target_key(), Publication { branch: "other".into(), ..one.clone() }.target_key());
        assert_ne!(
            one.target_key(),
            Publication { mode: DeliveryMode::Branch, remote: None, ..one.clone() }.target_key()
        );
    }
}
