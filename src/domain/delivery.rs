//! Delivery, the part that decides: what the live tree holds at the touched paths, compared with what the
//! change was made for, gives either a plan or the list of all conflicts.
//!
//! Nothing here reads a file. [`plan_delivery`] is a pure function, so that every row of the comparison
//! matrix is a unit test. A [`Plan`] alone writes nothing either: the executor takes a [`ClearedPlan`], and
//! the only way to one is a [`Clearance`] whose required rows all passed for exactly the planned manifest (or
//! that comes from a receipt, to undo it).

pub mod conflict;
pub mod decision;
pub mod index;
mod note;
pub mod publication;
pub mod publishing;
pub mod receipt;
pub mod recovery;
pub mod remedy;
use crate::domain::change::patch::{Change, manifest_sha256};
use crate::domain::delivery::receipt::Receipt;
use crate::domain::proof::verdict::{REQUIREMENTS, Row, Verdict};
use crate::domain::value::digest::{FileState, Mode, ObjectId, Sha256, TreeObject};
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Code, Failure, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

pub use crate::domain::delivery::conflict::{Conflict, Reason, refuse_delivery, stopped_by_conflicts};
pub use crate::domain::delivery::index::{IndexRule, IndexState, IndexStep};

/// The object that lies at a path in the live tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LiveKind {
    Missing,
    File(LiveFile),
    /// A symbolic link, never followed.
    Link {
        /// Git's id of the target as a blob.
        git_blob: ObjectId,
        sha256: Sha256,
    },
    Directory {
        /// True where it holds anything but directories and files that the patch deletes.
        strangers: bool,
    },
    /// A pipe, a socket, a device.
    Other,
}

/// A regular file of the live tree, compared by content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveFile {
    /// The executable bit as git sees it; where it does not count, that of the side whose content is there.
    pub executable: bool,
    /// False where `core.fileMode` is off: then the bit on disk is nobody's word, and is left alone.
    pub bit_counts: bool,
    /// The permission bits, 12 of them.
    pub permissions: u32,
    pub links: u64,
    /// Digest of the bytes as they lie there.
    pub sha256: Sha256,
    /// The id that git would store, conversions applied.
    pub git_blob: ObjectId,
    /// The content is the preimage's, conversions considered.
    pub is_before: bool,
    /// The content is the postimage's, conversions considered.
    pub is_after: bool,
    /// A new file can be given the same owner and group.
    pub owner_kept: bool,
}

/// The reason why the directory of a path cannot be entered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParentProblem {
    /// This component is a symbolic link.
    Link(RepoPath),
    /// This component is no directory.
    File(RepoPath),
}

/// Everything that a decision about one path rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveFact {
    pub kind: LiveKind,
    /// The fault on the way to it.
    pub parent: Option<ParentProblem>,
    /// A directory above it, below the top, has a `.git`.
    pub nested_repository: bool,
    /// What lies beside it (or beside a directory that has to be made) under a name that differs in case or
    /// Unicode form only.
    pub collision: Option<RepoPath>,
    pub index: IndexState,
    /// It is absent because of a sparse checkout, or would be outside it.
    pub outside_sparse: bool,
    /// The three-way merge of preimage, postimage and live content is clean.
    pub mergeable: bool,
}

impl LiveFact {
    /// The object that is there, as git would store it.
    pub fn tree_object(&self) -> Option<TreeObject> {
        match &self.kind {
            LiveKind::File(file) => Some(TreeObject {
                mode: if file.executable { Mode::Executable } else { Mode::File },
                id: file.git_blob.clone(),
            }),
            LiveKind::Link { git_blob, .. } => Some(TreeObject { mode: Mode::Symlink, id: git_blob.clone() }),
            _ => None,
        }
    }
}

/// The step that a plan takes at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Nothing is there; the new object takes the name.
    Create,
    /// The new object changes places with what is there.
    Replace,
    /// What is there loses the name.
    Delete,
    /// The postimage is there already.
    Already,
}

/// A change and what is to be done for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    pub change: Change,
    pub step: Step,
    pub kind: LiveKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a plan does nothing until it is cleared and executed"]
pub struct Plan {
    items: Vec<Item>,
    index: Vec<IndexStep>,
    manifest: Sha256,
}

impl Item {
    /// True where the change sets or takes the executable bit, and the file on disk keeps the one it has.
    pub fn leaves_bit(&self) -> bool {
        let LiveKind::File(LiveFile { bit_counts: false, .. }) = self.kind else { return false };
        let mode = |side: &Option<FileState>| side.as_ref().map(|s| s.mode).filter(|m| m.is_regular());
        matches!((mode(&self.change.old), mode(&self.change.new)), (Some(old), Some(new)) if old != new)
    }
}

impl Plan {
    /// The steps, sorted by path bytes.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Index entries that change; none unless the index follows.
    pub fn index(&self) -> &[IndexStep] {
        &self.index
    }

    /// With other changes of the index than those that follow from the files.
    pub fn with_index_steps(mut self, steps: Vec<IndexStep>) -> Self {
        self.index = steps;
        self
    }

    /// To take back what a delivery changed in the index, and nothing else of it: also where it found the
    /// file as wanted already.
    pub fn taking_index_back(self, changed: &[IndexStep]) -> Self {
        self.with_index_steps(changed.iter().map(IndexStep::reverse_step).collect())
    }

    /// Allows the plan. A clearance for another manifest is our own fault and refused.
    pub fn clear_with(self, clearance: &Clearance) -> Result<ClearedPlan> {
        clearance.require_manifest(self.manifest)?;
        Ok(ClearedPlan(self))
    }
}

/// A plan that may be executed.
#[derive(Debug)]
#[must_use = "a cleared plan does nothing until it is executed"]
pub struct ClearedPlan(Plan);

impl ClearedPlan {
    pub fn plan(&self) -> &Plan {
        &self.0
    }

    /// Digest of the manifest that it delivers.
    pub fn manifest(&self) -> Sha256 {
        self.0.manifest
    }
}

/// The permission to execute a plan for one manifest. Made only here, from rows or from a receipt.
#[derive(Debug)]
pub struct Clearance {
    manifest: Sha256,
}

impl Clearance {
    /// From the rows of a candidate, computed now. Refused unless every required one passed; the failure
    /// lists all that did not, and `details.requirements` holds the rows.
    pub fn from_rows(manifest: Sha256, rows: &[Row]) -> Result<Self> {
        let missing: Vec<Failure> =
            rows.iter().filter(|row| row.required).filter_map(refusal_of_row).collect();
        match Failure::first_of(missing) {
            None => Ok(Self { manifest }),
            Some(failure) => Err(failure.with_detail(&REQUIREMENTS, rows)),
        }
    }

    /// Refuses another manifest than the one that was cleared: our own fault.
    pub fn require_manifest(&self, manifest: Sha256) -> Result<()> {
        if self.manifest == manifest {
            return Ok(());
        }
        Err(Failure::internal("a delivery was cleared for another manifest than the planned one")
            .expected(self.manifest, manifest))
    }

    /// For a task's own worktree: what is written there is nobody's but the task's, and is shown before it
    /// goes anywhere else.
    pub fn for_a_worktree(manifest: Sha256) -> Self {
        Self { manifest }
    }

    /// For a fix of the user's own files that the user has asked for by name: it is shown afterwards.
    pub fn for_an_asked_fix(manifest: Sha256) -> Self {
        Self { manifest }
    }

    /// To undo what a receipt says was delivered: exactly the reverse of it is allowed.
    pub fn to_undo(receipt: &Receipt) -> Self {
        Self { manifest: manifest_sha256(&receipt.reversed_changes()) }
    }
}

fn refusal_of_row(row: &Row) -> Option<Failure> {
    let (code, word) = match row.verdict {
        Verdict::Passed => return None,
        Verdict::Failed => (Code::VerificationFailed, "failed"),
        Verdict::Error => (Code::VerificationFailed, "ended in an error"),
        Verdict::Stale => (Code::EvidenceStale, "was shown for other bytes"),
        Verdict::NotRun => (Code::EvidenceMissing, "did not run"),
        Verdict::NeedsConfirmation => (Code::ConfirmationRequired, "waits for a person"),
    };
    let reason = row.reason.as_ref().map(|r| format!(": {r}")).unwrap_or_default();
    Some(Failure::new(code, format!("the required requirement {} {word}{reason}", row.id)).subject(&row.id))
}

/// Compares. `facts` are in the order of `changes`; so is `index_at_base`, what the index said when the base
/// was fixed: where the list ends, of nothing. Every conflict is in the answer, not only the first.
pub fn plan_delivery(
    changes: &[Change],
    facts: &[LiveFact],
    rule: IndexRule,
    index_at_base: &[IndexState],
) -> std::result::Result<Plan, Vec<Conflict>> {
    let patch = Patch::new(changes);
    let (mut items, mut index, mut conflicts) = (Vec::new(), Vec::new(), Vec::new());
    for (at, (change, fact)) in changes.iter().zip(facts).enumerate() {
        let at_base = index_at_base.get(at).unwrap_or(&IndexState::Absent);
        match patch.judge_change(change, fact, (rule == IndexRule::Stays).then_some(at_base)) {
            Ok(step) => {
                items.push(Item { change: change.clone(), step, kind: fact.kind.clone() });
                let after = IndexState::from_tree_state(change.new.as_ref());
                if rule == IndexRule::Follows && fact.index != after {
                    index.push(IndexStep { path: change.path.clone(), before: fact.index.clone(), after });
                }
            }
            Err(reason) => conflicts.push(Conflict {
                path: change.path.clone(),
                reason,
                expected: change.old.as_ref().map(FileState::tree_object),
                actual: fact.tree_object(),
                mergeable: is_mergeable(change, fact, reason, rule),
                partner: fact.collision.clone().filter(|_| reason == Reason::Collision),
            }),
        }
    }
    if conflicts.is_empty() {
        items.sort_by(|a, b| a.change.path.cmp(&b.change.path));
        return Ok(Plan { items, index, manifest: manifest_sha256(changes) });
    }
    Err(conflicts)
}

/// True where a rebase would carry the change over without a conflict, and a delivery would then go through.
fn is_mergeable(change: &Change, fact: &LiveFact, reason: Reason, rule: IndexRule) -> bool {
    let content = match reason {
        Reason::Edited => fact.mergeable,
        // Only one side changed the bit.
        Reason::ModeChanged => match (&change.old, &change.new) {
            (Some(old), Some(new)) => old.mode == new.mode,
            _ => false,
        },
        _ => false,
    };
    // Where the index follows, it has to have what lies there: what is edited and not staged stays so.
    let lies = fact.tree_object().map(|side| IndexState::Entry { mode: side.mode, git_blob: side.id });
    content && (rule == IndexRule::Stays || lies.as_ref() == Some(&fact.index))
}

/// The paths that the patch frees and fills, to judge a path together with its neighbours.
struct Patch<'a> {
    deleted: BTreeSet<&'a RepoPath>,
    filled: BTreeSet<&'a RepoPath>,
}

/// The side of a change that the live tree shows.
enum Shows {
    Before,
    After,
}

impl<'a> Patch<'a> {
    fn new(changes: &'a [Change]) -> Self {
        let of = |wanted: fn(&Change) -> bool| {
            changes.iter().filter(|c| wanted(c)).map(|c| &c.path).collect::<BTreeSet<_>>()
        };
        Self { deleted: of(|c| c.new.is_none()), filled: of(|c| c.new.is_some()) }
    }

    fn judge_change(
        &self,
        change: &Change,
        fact: &LiveFact,
        at_base: Option<&IndexState>,
    ) -> std::result::Result<Step, Reason> {
        let sides = [&change.old, &change.new];
        if sides.iter().any(|s| s.as_ref().is_some_and(|s| s.mode == Mode::Gitlink)) {
            return Err(Reason::Gitlink);
        }
        if fact.nested_repository {
            return Err(Reason::NestedRepository);
        }
        self.judge_parent(change, fact)?;
        if fact.kind == LiveKind::Missing && fact.outside_sparse {
            return Err(Reason::OutsideSparse);
        }
        let shows = self.compare_live(change, fact)?;
        judge_index(change, fact, at_base)?;
        let step = match (shows, &change.old, &change.new, &fact.kind) {
            (Shows::After, ..) => return Ok(Step::Already),
            (Shows::Before, None, _, LiveKind::Missing) => Step::Create,
            (Shows::Before, _, None, _) => Step::Delete,
            (Shows::Before, ..) => Step::Replace,
        };
        if change.old.is_none() && fact.collision.is_some() {
            return Err(Reason::Collision);
        }
        match &fact.kind {
            LiveKind::File(file) if step == Step::Replace && !file.owner_kept => Err(Reason::Owner),
            _ => Ok(step),
        }
    }

    /// A file or link on the way is no problem where the patch itself takes it away (or puts it there, for a
    /// deletion).
    fn judge_parent(&self, change: &Change, fact: &LiveFact) -> std::result::Result<(), Reason> {
        let (at, reason) = match &fact.parent {
            None => return Ok(()),
            Some(ParentProblem::Link(at)) => (at, Reason::ParentIsLink),
            Some(ParentProblem::File(at)) => (at, Reason::ParentIsFile),
        };
        let ours = if change.new.is_some() {
            change.old.is_none() && self.deleted.contains(at)
        } else {
            self.filled.contains(at)
        };
        if ours { Ok(()) } else { Err(reason) }
    }

    fn compare_live(&self, change: &Change, fact: &LiveFact) -> std::result::Result<Shows, Reason> {
        if self.is_in_state(change, change.new.as_ref(), fact, |file| file.is_after) {
            return Ok(Shows::After);
        }
        if self.is_in_state(change, change.old.as_ref(), fact, |file| file.is_before) {
            return Ok(Shows::Before);
        }
        let regular = change.old.as_ref().is_some_and(|old| old.mode.is_regular());
        Err(match (&change.old, &fact.kind) {
            (_, LiveKind::Missing) => Reason::Missing,
            (None, LiveKind::Directory { .. } | LiveKind::Other) => Reason::TypeChanged,
            (None, _) => Reason::Appeared,
            (Some(_), LiveKind::File(file)) if regular && (file.is_before || file.is_after) => {
                Reason::ModeChanged
            }
            (Some(_), LiveKind::File(_)) if regular => Reason::Edited,
            (Some(old), LiveKind::Link { .. }) if old.mode == Mode::Symlink => Reason::Edited,
            (Some(_), _) => Reason::TypeChanged,
        })
    }

    /// True where the live path is in the given state.
    fn is_in_state(
        &self,
        change: &Change,
        state: Option<&FileState>,
        fact: &LiveFact,
        content: impl Fn(&LiveFile) -> bool,
    ) -> bool {
        let Some(state) = state else {
            return match fact.kind {
                LiveKind::Missing => true,
                LiveKind::Directory { strangers } if change.new.is_some() => !strangers,
                LiveKind::Directory { .. } => self.fills_beneath(&change.path),
                _ => false,
            };
        };
        match &fact.kind {
            LiveKind::File(file) => {
                state.mode.is_regular()
                    && file.executable == (state.mode == Mode::Executable)
                    && content(file)
            }
            LiveKind::Link { git_blob, sha256 } => {
                state.mode == Mode::Symlink && *git_blob == state.git_blob && *sha256 == state.sha256
            }
            _ => false,
        }
    }

    fn fills_beneath(&self, path: &RepoPath) -> bool {
        self.filled.iter().any(|filled| filled.ancestors().contains(path))
    }
}

/// The index has to say one of the two sides, or what it said at the base where that will do.
fn judge_index(
    change: &Change,
    fact: &LiveFact,
    at_base: Option<&IndexState>,
) -> std::result::Result<(), Reason> {
    let known = at_base == Some(&fact.index)
        || fact.index == IndexState::from_tree_state(change.old.as_ref())
        || fact.index == IndexState::from_tree_state(change.new.as_ref());
    match fact.index {
        IndexState::Unmerged => Err(Reason::Unmerged),
        _ if known => Ok(()),
        IndexState::IntentToAdd => Err(Reason::IntentToAdd),
        _ => Err(Reason::IndexChanged),
    }
}

#[cfg(test)]
mod tests;
