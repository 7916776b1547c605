//! What a delivery writes into the ledger: the plan before the first byte, the staged files before the first
//! exchange, the receipt at the end. Together they are all that recovery and `undo` need.

use crate::domain::change::patch::Change;
use crate::domain::delivery::publication::Publication;
use crate::domain::delivery::{IndexStep, Step};
use crate::domain::value::digest::Sha256;
use crate::domain::value::repo_path::RepoPath;
use serde::{Deserialize, Serialize};

/// An object of a file system, by device and inode number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Inode {
    pub dev: u64,
    pub ino: u64,
}

/// The object under a name, exactly: the bytes as they are on disk, not as git stores them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "type")]
pub enum Raw {
    #[serde(rename_all = "camelCase")]
    File {
        sha256: Sha256,
        /// The 12 permission bits; `None` where the system's default for new files applies.
        permissions: Option<u32>,
    },
    #[serde(rename_all = "camelCase")]
    Link { sha256: Sha256 },
    /// A directory that holds nothing but directories.
    Directory,
}

/// A place in the live tree: a directory below the top (`None`: the top itself) and a name in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spot {
    pub folder: Option<RepoPath>,
    /// The name; always one of ours, so always text.
    pub name: String,
}

/// One step of the plan, with everything that taking it back needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedStep {
    /// The change, as git sees it.
    pub change: Change,
    pub step: Step,
    /// The object that lies there; `None`: nothing.
    pub before: Option<Raw>,
    /// The object that will lie there; `None`: nothing.
    pub after: Option<Raw>,
    /// The place where the new object is staged, and the old one waits until the end. Not used for `already`.
    pub temporary: Option<Spot>,
    /// Notes that the receipt will have.
    pub notes: Vec<Note>,
}

/// The whole delivery, as written before the first byte.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryPlan {
    pub id: String,
    /// The top of the live tree, absolute. Text, or `{"bytes":"base64"}`.
    #[serde(with = "crate::domain::value::bytes")]
    pub top: std::path::PathBuf,
    /// Digest of the manifest that is delivered.
    pub manifest_sha256: Sha256,
    /// One for each path, in the order of execution.
    pub steps: Vec<PlannedStep>,
    /// Directories that have to be made, from the top down.
    pub folders: Vec<RepoPath>,
    /// The index entries that change together with the files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<IndexPlan>,
}

/// The index's part of a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IndexPlan {
    /// The git directory of the live tree, absolute. Text, or `{"bytes":"base64"}`.
    #[serde(with = "crate::domain::value::bytes")]
    pub git_dir: std::path::PathBuf,
    /// Our own second name of git's lock, in the git directory: by it a lock that a crash left is known to be
    /// ours.
    pub lock: String,
    pub steps: Vec<IndexStep>,
}

/// The staged objects, in the order of the plan's steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Staged {
    /// Each step's staged object; `None` where a step has none.
    pub objects: Vec<Option<Inode>>,
    /// Each step's preimage, kept for `undo`; `None` where there is none.
    pub kept: Vec<Option<Kept>>,
    /// Notes that came up while each step's object was staged; empty where none did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Vec<Note>>,
}

impl Staged {
    pub fn nothing_staged() -> Self {
        Self { objects: Vec::new(), kept: Vec::new(), notes: Vec::new() }
    }
}

/// The place of a preimage's bytes: a part of a stored blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Kept {
    pub blob: Sha256,
    pub offset: u64,
    pub length: u64,
    /// The file's attributes, where no file takes its place that has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attributes: Option<Attributes>,
}

/// Owner and extended attributes (among them ACLs) of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attributes {
    pub user: u32,
    pub group: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extended: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The outcome at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Applied,
    Already,
    /// It would be written (`--dry-run`).
    WouldApply,
    /// A delivery was taken back.
    Reverted,
}

/// Something that a reader of the receipt should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Note {
    /// The old file had further hard links; they keep the old content.
    HardLinkBroken,
    /// Nobody could be asked if the file was open for writing; it was hashed twice instead.
    LeaseNotChecked,
    /// The file system cannot exchange two names: the path was absent for a moment.
    NotExchanged,
    /// This extended attribute could not be carried over.
    AttributeLost(String),
    /// The file was another user's or group's, and could not be given back to them.
    OwnerLost,
    /// The change is about the executable bit, and `core.fileMode` is off: the one on disk was left.
    ExecutableBitLeft,
    /// The user changed the path after it was written; that version was kept.
    LaterEditKept,
    /// Bytes of the user's that had to make way for a still later version of theirs.
    EarlierEditStored(Sha256),
    /// Something of the user's lies under this name now, because its own was taken.
    LeftAt(String),
    /// What was set aside under this name is out of reach, because its directory is gone.
    NotFound(String),
}

/// The outcome at one path, with all that `undo` needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PathReceipt {
    /// The change, as git sees it.
    pub change: Change,
    pub outcome: Outcome,
    pub before: Option<Raw>,
    pub after: Option<Raw>,
    /// The bytes that lay there.
    pub kept: Option<Kept>,
    pub notes: Vec<Note>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    pub id: String,
    /// Digest of the manifest that was delivered.
    pub manifest_sha256: Sha256,
    /// Every path, sorted by path bytes.
    pub paths: Vec<PathReceipt>,
    /// Index entries that changed with them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub index: Vec<IndexStep>,
    /// The ref that was moved, where the live tree was left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publication: Option<Box<Publication>>,
}

impl Receipt {
    /// From the plan and what was staged for it; `notes` are those that came up while it ran, by step.
    pub fn new(plan: &DeliveryPlan, staged: &Staged, notes: &[Vec<Note>], applied: Outcome) -> Self {
        let mut paths: Vec<PathReceipt> = plan
            .steps
            .iter()
            .enumerate()
            .map(|(at, step)| PathReceipt {
                change: step.change.clone(),
                outcome: if step.step == Step::Already { Outcome::Already } else { applied },
                before: step.before.clone(),
                after: step.after.clone(),
                kept: staged.kept.get(at).cloned().flatten(),
                notes: [Some(&step.notes), staged.notes.get(at), notes.get(at)]
                    .into_iter()
                    .flatten()
                    .flatten()
                    .cloned()
                    .collect(),
            })
            .collect();
        paths.sort_by(|a, b| a.change.path.cmp(&b.change.path));
        let index = plan.index.as_ref().map(|index| index.steps.clone()).unwrap_or_default();
        Self { id: plan.id.clone(), manifest_sha256: plan.manifest_sha256, paths, index, publication: None }
    }

    /// Of a delivery that is part of no working tree: every path is in it as it is in the candidate.
    pub fn of_changes(id: &str, manifest_sha256: Sha256, changes: &[Change], outcome: Outcome) -> Self {
        let path = |change: &Change| PathReceipt {
            change: change.clone(),
            outcome,
            before: None,
            after: None,
            kept: None,
            notes: Vec::new(),
        };
        let paths = changes.iter().map(path).collect();
        Self { id: id.to_owned(), manifest_sha256, paths, index: Vec::new(), publication: None }
    }

    /// The changes that take back what was written; what was there already stays.
    pub fn reversed_changes(&self) -> Vec<Change> {
        let written = self.paths.iter().filter(|p| matches!(p.outcome, Outcome::Applied | Outcome::Reverted));
        written.map(|p| p.change.reverse_change()).collect()
    }
}
