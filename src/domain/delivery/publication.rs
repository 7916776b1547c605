//! Deliveries that leave the working tree alone: a commit on a branch of this repository, or one that is
//! pushed to a remote.
//!
//! What is decided here is pure: which names are allowed, what goes into the plan, and what a ref that was
//! looked at afterwards says about an effect whose answer was lost. A ref is only ever moved from the value
//! that we delivered there last; any other value belongs to somebody else.

use crate::domain::contract::DeliveryMode;
use crate::domain::delivery::receipt::Receipt;
use crate::domain::ledger::entry::Entry;
use crate::domain::ledger::task::{Decision, Delivered, Record};
use crate::domain::value::digest::{ObjectId, Sha256};
use crate::error::{Code, Failure};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// What a contract says beside the mode `branch` or `push`; what it leaves out is filled in at the delivery.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Terms {
    /// The branch, without `refs/heads/`.
    pub branch: Option<String>,
    /// The name of a configured remote.
    pub remote: Option<String>,
    /// Options for the server, in order.
    pub push_options: Vec<String>,
    pub message: Option<String>,
}

impl Terms {
    /// True where the contract says nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Who a commit is by.
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

impl CommitPlan {
    /// True where the two differ in nothing but the time.
    pub fn same_but_for_the_date(&self, other: &Self) -> bool {
        Self { date: other.date.clone(), ..self.clone() } == *other
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

/// Where a ref was moved to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Publication {
    /// `branch` or `push`.
    pub mode: DeliveryMode,
    /// The branch, without `refs/heads/`.
    pub branch: String,
    /// The remote; `None` for a branch of this repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<Remote>,
    /// What the ref names afterwards; `None`: it is gone.
    pub new: Option<ObjectId>,
    /// What it must name before, which is what we delivered there last; `None`: nothing.
    pub old: Option<ObjectId>,
    /// What else to know, as sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Publication {
    /// The full name of the ref.
    pub fn reference(&self) -> String {
        format!("refs/heads/{}", self.branch)
    }

    /// By which the last delivery to the same place is found in the ledger. A remote that was given another
    /// address is another place.
    pub fn key(&self) -> Sha256 {
        let remote = &self.remote;
        Sha256::of_json(
            &json!({ "publication": self.mode.as_str(), "remote": remote, "branch": self.branch }),
        )
    }

    pub fn place(&self) -> String {
        match &self.remote {
            Some(remote) => format!("the branch {} of {}", self.branch, remote.name),
            None => format!("the branch {}", self.branch),
        }
    }

    pub fn reversed(&self) -> Self {
        Self { new: self.old.clone(), old: self.new.clone(), notes: Vec::new(), ..self.clone() }
    }

    /// What a ref that names `there` says about whether this took place.
    pub fn standing(&self, there: Option<&ObjectId>) -> Standing {
        if there == self.new.as_ref() {
            Standing::Arrived
        } else if there == self.old.as_ref() {
            Standing::Unchanged
        } else {
            Standing::Foreign
        }
    }

    /// The refusal to move a ref that somebody else has moved.
    pub fn conflict(&self, actual: Option<&ObjectId>, task: &str) -> Failure {
        let id = |id: Option<&ObjectId>| id.map_or("nothing".to_owned(), ToString::to_string);
        let (place, expected) = (self.place(), id(self.old.as_ref()));
        let code = if self.remote.is_some() { Code::PushConflict } else { Code::DeliveryConflict };
        let message =
            format!("{place} names {}, and not what was delivered there last: {expected}", id(actual));
        let failure = Failure::new(code, message)
            .subject(self.reference())
            .expected(self.old.as_ref(), actual)
            .detail("ref", self.reference());
        let failure = match &self.remote {
            Some(remote) => failure.detail("remote", &remote.name),
            None => failure.detail("reason", "moved"),
        };
        let text = "Somebody else's commit is never overwritten: take it into account, or deliver to another branch.";
        failure.remedy(text, ["git", "tender", "diff", task])
    }
}

/// What a look at a ref says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It names what was to be there.
    Arrived,
    /// It names what was there before.
    Unchanged,
    Foreign,
}

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
    /// What a row announces, where it is of that kind.
    pub fn of(entry: &Entry) -> Option<Box<Self>> {
        if entry.result.get("record").and_then(|record| record.as_str()) != Some("publishing") {
            return None;
        }
        match serde_json::from_value(entry.result.clone()) {
            Ok(Record::Publishing(publishing)) => Some(publishing),
            _ => None,
        }
    }

    /// The receipt of its end.
    pub fn finished(&self) -> Receipt {
        Receipt { publication: Some(Box::new(self.publication.clone())), ..self.receipt.clone() }
    }

    /// The record of its end.
    pub fn done(&self) -> Record {
        let receipt = self.finished();
        if self.undoes {
            return Record::Undone(Box::new(receipt));
        }
        let evidence = self.evidence.clone();
        Record::Delivered(Box::new(Delivered { receipt, head: None, evidence, said_by_person: false }))
    }

    /// What may still happen, as a sentence.
    pub fn effect(&self) -> String {
        let place = self.publication.place();
        match &self.publication.new {
            Some(id) => format!("it is not known whether {place} names the commit {id} by now"),
            None => format!("it is not known whether {place} was deleted"),
        }
    }

    /// True where it goes over a connection to somebody else.
    pub fn is_sent(&self) -> bool {
        self.publication.remote.is_some()
    }

    /// What may still happen after a look that did not find it, as a sentence.
    pub fn late_effect(&self) -> String {
        let place = self.publication.place();
        match &self.publication.new {
            Some(id) => format!(
                "the commit {id} had not arrived at {place} when it was asked for; a slow server may have it yet: it may still arrive"
            ),
            None => format!("{place} was still there when it was asked for; its deletion may still arrive"),
        }
    }

    /// The refusal to go on while it is not known what happened. `why` says why nobody could be asked.
    pub fn unknown(&self, why: &str) -> Failure {
        let publication = &self.publication;
        let failure = Failure::new(Code::OutcomeUnknown, format!("{}: {why}", self.effect()))
            .subject(publication.reference())
            .detail("ref", publication.reference())
            .detail("commit", &publication.new)
            .detail("lease", &publication.old)
            .detail("choices", self.decision(why).choices);
        let failure = match &publication.remote {
            Some(remote) => failure.detail("remote", &remote.name).detail("url", &remote.url),
            None => failure,
        };
        let text =
            "Nothing is pushed again while this is open. Once the remote can be reached, recovery asks it.";
        failure.remedy(text, ["git", "tender", "recover"])
    }

    /// What a person can decide where nobody can be asked.
    pub fn decision(&self, because: &str) -> Decision {
        let end = if self.undoes { "undone" } else { "completed" };
        Decision::new(
            self.effect(),
            &format!("it does: the task is {end}, and nothing is sent again"),
            "it never got there: it may be repeated, with the same commit and the same lease, so that a late arrival does no harm",
            because.to_owned(),
        )
    }
}

/// A task's id as a component of a ref's name. A task id may hold what a ref may not (`a..b`, `x.lock`); its
/// dots are then escaped.
pub fn ref_component(task: &str) -> String {
    let bad = task.contains("..") || task.ends_with('.') || task.ends_with(".lock");
    if bad { task.replace('.', "%2e") } else { task.to_owned() }
}

/// The branch of a task whose contract names none.
pub fn default_branch(task: &str) -> String {
    format!("tender/{}", ref_component(task))
}

/// Longest component of a branch's name, in bytes: a file system's 255 less what git's lock file adds
/// (`.lock`).
const LONGEST_COMPONENT: usize = 250;
/// Longest name of a branch, in bytes, so that its path remains one.
const LONGEST_BRANCH: usize = 1_000;

/// The rule that a name breaks, of those that git has for branches; `None` where it is right.
pub fn branch_fault(name: &str) -> Option<&'static str> {
    let component = |part: &str| part.is_empty() || part.starts_with('.') || part.ends_with(".lock");
    let forbidden = |c: char| c.is_control() || " ~^:?*[\\".contains(c);
    if name.starts_with('-') {
        Some("begins with a dash")
    } else if name.starts_with("refs/") {
        Some("is a full ref name; the name of a branch stands without `refs/heads/`")
    } else if name == "HEAD" || name == "@" {
        Some("is a name that git keeps for itself")
    } else if name.chars().any(forbidden) {
        Some("holds a character that no ref may have")
    } else if name.contains("..")
        || name.contains("@{")
        || name.ends_with('.')
        || name.split('/').any(component)
    {
        Some("is no valid name of a ref")
    } else if name.len() > LONGEST_BRANCH || name.split('/').any(|part| part.len() > LONGEST_COMPONENT) {
        Some("is longer than a name in a file system may be")
    } else {
        None
    }
}

/// The rule that the name of a remote breaks.
pub fn remote_fault(name: &str) -> Option<&'static str> {
    if name.starts_with('-') {
        Some("begins with a dash")
    } else if name.chars().any(|c| c.is_control() || c.is_whitespace()) {
        Some("holds a character that no remote's name may have")
    } else {
        None
    }
}

/// The rule that a message breaks.
pub fn message_fault(message: &str) -> Option<&'static str> {
    if message.contains('\0') {
        Some("holds NUL, which no commit's message may have")
    } else if message.lines().any(is_ours) {
        Some("has a line that begins as ours do (`Tender-…:`), which say where a commit comes from")
    } else {
        None
    }
}

/// True for a line that could be taken for one of the trailers that a delivery adds. git does not mind their
/// case.
fn is_ours(line: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let key = line.bytes().take_while(|byte| word(*byte)).count();
    let begins = line[..key].to_ascii_lowercase().starts_with("tender-");
    begins && line[key..].trim_start().starts_with([':', '=', '#'])
}

/// The message where the contract names none: its goal, none of whose lines can be taken for a trailer of
/// ours.
pub fn message_of_goal(goal: &str) -> String {
    let goal = goal.replace('\0', " ");
    let lines =
        goal.split('\n').map(|line| if is_ours(line) { format!("> {line}") } else { line.to_owned() });
    lines.collect::<Vec<_>>().join("\n")
}

/// The rule that a push option breaks.
pub fn push_option_fault(option: &str) -> Option<&'static str> {
    option.contains(['\n', '\r', '\0']).then_some("holds a line break or NUL, which no push option may have")
}

#[cfg(test)]
mod tests {
    use crate::domain::delivery::publication::*;

    fn id(letter: char) -> ObjectId {
        letter.to_string().repeat(40).parse().expect("an id")
    }

    fn publication(old: Option<ObjectId>) -> Publication {
        let remote = Some(Remote { name: "origin".into(), url: "u".into() });
        Publication {
            mode: DeliveryMode::Push,
            branch: "tender/t1".into(),
            remote,
            new: Some(id('a')),
            old,
            notes: Vec::new(),
        }
    }

    #[test]
    fn names_of_branches_are_judged_as_git_does() {
        for good in ["x", "tender/t1", "a.b/c", "ümläut", "a@b", "@a", "a-", "x.locked", "HEAD/x"] {
            assert_eq!(branch_fault(good), None, "{good}");
        }
        for bad in [
            "",
            "-x",
            "a..b",
            "a b",
            "a~",
            "a^",
            "a:b",
            "a?",
            "a*",
            "a[",
            "a\\b",
            "/a",
            "a/",
            "a//b",
            "a.",
            ".a",
            "a/.b",
            "a.lock",
            "a.lock/b",
            "a@{b",
            "@",
            "HEAD",
            "refs/heads/x",
            "a\nb",
            "a\u{7f}",
        ] {
            assert!(branch_fault(bad).is_some(), "{bad:?}");
        }
        let long = "x".repeat(250);
        assert_eq!(branch_fault(&format!("a/{long}")), None);
        for bad in [format!("a/{long}x"), format!("{}x", "ä".repeat(125)), vec![long; 5].join("/")] {
            assert!(branch_fault(&bad).is_some(), "{bad}");
        }
        for task in ["t1", "a..b", "x.lock", "x.", "a.b"] {
            assert_eq!(branch_fault(&default_branch(task)), None, "{task}");
        }
        assert!(
            remote_fault("-x").is_some() && remote_fault("a b").is_some() && remote_fault("up/x").is_none()
        );
        assert!(
            push_option_fault("a\nb").is_some() && push_option_fault("merge_request.title=ä b").is_none()
        );
    }

    #[test]
    fn no_message_forges_a_trailer_of_ours() {
        for good in
            ["x", "x\n\nTender-hearted, it is: a", "x\n\n Tender-Task: t", "x\n\nSigned-off-by: A <a@b>"]
        {
            assert_eq!(message_fault(good), None, "{good}");
        }
        for bad in ["x\n\nTender-Task: t9", "tender-evidence : x", "x\r\n\r\nTENDER-Contract:y\r\n", "x\0"] {
            assert!(message_fault(bad).is_some(), "{bad:?}");
            assert_eq!(message_fault(&message_of_goal(bad)), None, "{bad:?}");
        }
        assert_eq!(message_of_goal("a\nTender-Task: x\n"), "a\n> Tender-Task: x\n");
    }

    #[test]
    fn a_ref_tells_what_took_place() {
        let new = publication(None);
        assert_eq!(new.standing(Some(&id('a'))), Standing::Arrived);
        assert_eq!(new.standing(None), Standing::Unchanged);
        assert_eq!(new.standing(Some(&id('b'))), Standing::Foreign);
        let moved = publication(Some(id('b')));
        assert_eq!(moved.standing(None), Standing::Foreign);
        assert_eq!(moved.standing(Some(&id('b'))), Standing::Unchanged);
        let back = moved.reversed();
        assert_eq!(back.standing(Some(&id('b'))), Standing::Arrived);
        assert_eq!(back.standing(Some(&id('a'))), Standing::Unchanged);
        assert_eq!(new.reversed().standing(None), Standing::Arrived);
    }

    #[test]
    fn the_key_names_the_place_and_nothing_else() {
        let one = publication(None);
        assert_eq!(one.key(), publication(Some(id('b'))).key());
        let elsewhere = Some(Remote { name: "origin".into(), url: "v".into() });
        assert_ne!(one.key(), Publication { remote: elsewhere, ..one.clone() }.key());
        assert_ne!(one.key(), Publication { branch: "other".into(), ..one.clone() }.key());
        assert_ne!(one.key(), Publication { mode: DeliveryMode::Branch, remote: None, ..one.clone() }.key());
    }
}
