//! What the result of a ledger row holds: a [`Record`], and the parts that it is made of.
//!
//! These are stored for good. A field that comes later has a default, so that the rows of an older program
//! stay readable.

use crate::domain::change::patch::Candidate;
use crate::domain::contract::Contract;
use crate::domain::contract::budget::{Addition, Cost, Reservation};
use crate::domain::contract::hook::Hook;
use crate::domain::contract::policy::Effective;
use crate::domain::delivery::IndexState;
use crate::domain::delivery::decision::Decision;
use crate::domain::delivery::publication::{Identity, Publication};
use crate::domain::delivery::publishing::Publishing;
use crate::domain::delivery::receipt::{DeliveryPlan, Receipt, Staged};
use crate::domain::ledger::brought::Brought;
use crate::domain::ledger::entry::Entry;
use crate::domain::ledger::head::LostHead;
use crate::domain::ledger::row_json::RowJson;
use crate::domain::proof::evidence::{Evidence, Observation};
use crate::domain::proof::on_live::SeenAfterDelivery;
use crate::domain::proof::tripwire::Tripped;
use crate::domain::value::digest::{ObjectId, Sha256};
use crate::domain::value::repo_path::RepoPath;
use crate::domain::worker::call::{Arrived, Called};
use crate::domain::worker::inquiry::{Hint, Reply};
use crate::error::{Code, Failure, Result};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A sealed version of the contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal {
    pub version: u32,
    /// sha256 of the document as given; the text is kept as a blob.
    pub sha256: Sha256,
}

/// The state that the task was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaseState {
    pub commit: ObjectId,
    /// The base tree; for `live` it holds the uncommitted work too.
    pub tree: ObjectId,
    /// The commit's own tree: where policy and verifiers are read from.
    #[serde(rename = "commitTree")]
    pub commit_tree: ObjectId,
    /// True where the base is a capture of live work.
    pub live: bool,
}

impl BaseState {
    /// The tree that judges: the base commit's own.
    pub fn commit_tree(&self) -> &ObjectId {
        &self.commit_tree
    }
}

/// The working tree that the task was opened from, to which the change is delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Home {
    /// Top of the live tree.
    pub top: String,
    /// Its git directory (a linked worktree has its own).
    pub git_dir: String,
    /// The branch that was checked out; `None` where HEAD was detached.
    pub branch: Option<String>,
}

/// Paths of the live tree that the worktree does not have, sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lacks {
    pub dirty: Vec<RepoPath>,
    /// Ignored files; directories end in `/`.
    pub ignored: Vec<RepoPath>,
    pub submodules: Vec<RepoPath>,
    /// Files whose content is in LFS.
    pub lfs: Vec<RepoPath>,
    /// Why the uncommitted work could not be looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unseen: Option<String>,
}

/// A path whose index entry was not the base's when the base was fixed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexDifference {
    pub path: RepoPath,
    pub state: IndexState,
}

/// The terms that `open` fixed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Opened {
    /// The seal of the contract.
    pub seal: Seal,
    pub contract: Contract,
    /// The part of it that is in force within the policy.
    pub effective: Effective,
    /// Filter drivers that run while a slot is filled.
    pub filters: Vec<String>,
    /// One sentence for each thing that the policy took away.
    pub narrowed: Vec<String>,
    pub base: BaseState,
    pub worktree: String,
    pub home: Home,
    pub lacks: Lacks,
    /// Blob with the list of [`IndexDifference`], as JSON.
    pub index: Sha256,
    /// Whoever opened it, where the delivery makes a commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<Identity>,
    /// Blob with what the shared settings and branches were: [`crate::domain::proof::tripwire::Sight`].
    #[serde(default)]
    pub sight: Option<Sha256>,
    /// The hooks of its base commit and of the user's own configuration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<Hook>,
    /// What the worktree got beside the files of its base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brought: Option<Brought>,
}

/// A delivery that is about to write: everything that its end will say and that recovery needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Planned {
    pub plan: DeliveryPlan,
    /// HEAD of the live tree.
    pub head: Option<ObjectId>,
    /// `sha256:…` of the evidence that it rests on.
    pub evidence: Vec<String>,
    /// True where it reverses a delivery.
    pub undoes: bool,
}

impl Planned {
    /// The record of its end.
    pub fn end_record(&self, receipt: Receipt) -> Record {
        if self.undoes {
            return Record::Undone(Box::new(receipt));
        }
        let (head, evidence) = (self.head.clone(), self.evidence.clone());
        Record::Delivered(Box::new(Delivered { receipt, head, evidence, said_by_person: false }))
    }
}

impl Publishing {
    /// The publication that a row announces, where it is of that kind.
    pub fn from_entry(entry: &Entry) -> Option<Box<Self>> {
        if entry.result.record_kind().as_deref() != Some("publishing") {
            return None;
        }
        match Record::from_row(entry) {
            Ok(Record::Publishing(publishing)) => Some(publishing),
            _ => None,
        }
    }

    /// The record of its end.
    pub fn end_record(&self) -> Record {
        let receipt = self.final_receipt();
        if self.undoes {
            return Record::Undone(Box::new(receipt));
        }
        let evidence = self.evidence.clone();
        Record::Delivered(Box::new(Delivered { receipt, head: None, evidence, said_by_person: false }))
    }
}

/// A delivery that took place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Delivered {
    /// The receipt, path by path.
    pub receipt: Receipt,
    /// HEAD of the live tree then.
    pub head: Option<ObjectId>,
    /// `sha256:…` of the evidence that it rested on.
    pub evidence: Vec<String>,
    /// True where nobody saw it take place: a person said so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub said_by_person: bool,
}

/// A candidate carried over to another base, with everything that a crash in the middle needs to go on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rebased {
    /// The task as it is on the new base.
    pub opened: Opened,
    pub from: ObjectId,
    pub to: ObjectId,
    /// The candidate and its digests; `None` where something has to be resolved first.
    pub captured: Option<(Candidate, Observation)>,
    /// Paths whose conflict markers a worker has to resolve.
    pub marked: Vec<RepoPath>,
    /// True where the worktree has a folder with the candidate's versions that no markers could show.
    #[serde(default)]
    pub set_aside: bool,
}

/// The repository was moved, or a person lets a copy go on: the store goes on where it is now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relocation {
    /// The git directory that it belonged to.
    pub from: String,
    /// The one that it belongs to now.
    pub to: String,
    /// Of a task: its worktree and its live tree, as they are now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<(String, Home)>,
}

/// A wish that a person agreed to, with everything that follows from it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Amended {
    /// The action that proposed it.
    pub to: String,
    /// The task under the new version.
    pub opened: Opened,
    /// The last candidate under the new version, with its digests; `None` where there was none, or where it
    /// is not within the new version's limits.
    pub captured: Option<(Candidate, Observation)>,
}

/// The result of a ledger row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    Opened(Box<Opened>),
    /// A candidate was captured, or the same one again.
    Captured {
        candidate: Box<Candidate>,
        /// The digests taken with it.
        observation: Box<Observation>,
    },
    /// Digests of tree and tools were taken anew.
    Observed(Box<Observation>),
    /// A verifier ran, or a person attested.
    Evidence(Box<Evidence>),
    /// A rebase is about to move the worktree.
    Rebasing(Box<Rebased>),
    /// The task has another base.
    Rebased(Box<Rebased>),
    /// A delivery is about to write.
    Planned(Box<Planned>),
    /// Its new content lies beside its targets.
    Staged(Box<Staged>),
    /// A ref is about to be moved.
    Publishing(Box<Publishing>),
    Delivered(Box<Delivered>),
    Undone(Box<Receipt>),
    /// All of a delivery is in place; from here on it only goes forward.
    InPlace,
    /// From here on a delivery only goes back.
    TakingBack,
    /// A delivery was taken back.
    TakenBack {
        /// Paths that the user edited meanwhile; they stay as they are.
        later: Vec<RepoPath>,
    },
    /// It cannot be found out whether an effect took place.
    Decision(Box<Decision>),
    /// A run may use this much: all that was reserved for it so far.
    Reserved(Reservation),
    /// The cost of a run; its records follow.
    Charged {
        cost: Cost,
    },
    /// A person answered a question, or refused an amendment.
    Answered(Reply),
    /// A worker's client gave something back for a question.
    Hinted(Hint),
    /// A person agreed to an amendment: the task has another version of its contract.
    Amended(Box<Amended>),
    /// A person added to the budget.
    Resumed(Addition),
    /// Something around the task is not as it was when it was looked at before.
    Tripped(Tripped),
    /// A person goes on with a ledger that was set back, without what these heads stood for.
    RollbackAccepted {
        lost: Vec<LostHead>,
    },
    /// After a delivery, there was something to tell of the live tree or of the worktree.
    SeenOnLive(SeenAfterDelivery),
    /// The repository, and with it the task, is somewhere else now.
    Relocated(Box<Relocation>),
    Cancelled,
    /// Its worktree and private files were removed.
    Collected,
    /// A worker's call has arrived.
    Call(Arrived),
    Called(Box<Called>),
    Failure {
        failure: Failure,
        /// The cost of a run until then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<Cost>,
    },
    /// An action that is its own record.
    Done {
        text: String,
    },
}

impl Record {
    /// As it is where a person said so, and nobody saw it.
    pub fn on_a_persons_word(self) -> Self {
        match self {
            Self::Delivered(delivered) => {
                Self::Delivered(Box::new(Delivered { said_by_person: true, ..*delivered }))
            }
            other => other,
        }
    }

    /// With what a worker or its client wrote as `kept` leaves it.
    pub fn with_words_kept(&self, kept: &dyn Fn(&str) -> String) -> Cow<'_, Self> {
        match self {
            Self::Called(called) => Cow::Owned(Self::Called(Box::new(called.clone().with_words_kept(kept)))),
            Self::Hinted(hint) => Cow::Owned(Self::Hinted(Hint { text: kept(&hint.text), ..hint.clone() })),
            other => Cow::Borrowed(other),
        }
    }

    /// As the result of a row.
    pub fn to_row(&self) -> Result<RowJson> {
        RowJson::from_serialized(self)
    }

    /// The record that a row holds. Those that can be long are read without the detour through parts that are
    /// only told apart by their tag.
    pub fn from_row(entry: &Entry) -> Result<Self> {
        #[derive(Deserialize)]
        struct CapturedRow {
            candidate: Box<Candidate>,
            observation: Box<Observation>,
        }
        let text = entry.result.as_str();
        let read = || -> serde_json::Result<Self> {
            Ok(match entry.result.record_kind().as_deref() {
                Some("captured") => {
                    let CapturedRow { candidate, observation } = serde_json::from_str(text)?;
                    Self::Captured { candidate, observation }
                }
                Some("planned") => Self::Planned(serde_json::from_str(text)?),
                Some("staged") => Self::Staged(serde_json::from_str(text)?),
                Some("delivered") => Self::Delivered(serde_json::from_str(text)?),
                Some("undone") => Self::Undone(serde_json::from_str(text)?),
                _ => serde_json::from_str(text)?,
            })
        };
        read().map_err(|e| {
            Failure::new(
                Code::StoreCorrupt,
                format!("row {} of the ledger holds a record that cannot be read: {e}", entry.seq),
            )
            .subject(entry.action.clone())
        })
    }

    /// The key by which later tasks find it: evidence, and what was delivered last to a ref.
    pub fn lookup_key(&self) -> Option<Sha256> {
        let of = |receipt: &Receipt| receipt.publication.as_deref().map(Publication::target_key);
        match self {
            Self::Evidence(evidence) => Some(evidence.key.digest()),
            Self::Delivered(delivered) => of(&delivered.receipt),
            Self::Undone(receipt) => of(receipt),
            _ => None,
        }
    }
}
