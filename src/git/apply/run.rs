//! A delivery on its way: what it works on and how far it is, for whoever takes a step of it forward or back.

use super::Keeper;
use crate::domain::delivery::Reason;
use crate::domain::delivery::receipt::{DeliveryPlan, Note, Outcome, PlannedStep, Spot, Staged};
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Code, Failure, Result};
use crate::git::beneath::{Barred, Folder, TreeTop};
use crate::git::index_write::IndexWriter;
use std::rc::Rc;

/// Why a step did not go through.
#[derive(Debug)]
pub(super) enum StepStop {
    Conflict(usize, Reason),
    Failed(Failure),
}

impl From<Failure> for StepStop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// What is known of the entries that the delivery changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IndexProgress {
    /// They are as they were before it.
    Untouched,
    /// They may have been changed.
    Written,
    /// A delivery that was cut off: nothing is known.
    Unknown,
}

/// A delivery on its way.
pub(super) struct DeliveryRun<'a> {
    pub(super) top: &'a TreeTop,
    pub(super) plan: &'a DeliveryPlan,
    pub(super) staged: Staged,
    pub(super) keeper: &'a dyn Keeper,
    pub(super) outcome: Outcome,
    pub(super) notes: Vec<Vec<Note>>,
    pub(super) index: Option<&'a IndexWriter<'a>>,
    pub(super) index_state: IndexProgress,
    /// Entries that the user changed meanwhile; they stay as they are.
    pub(super) index_later: Vec<RepoPath>,
    /// There is no way back any more.
    pub(super) in_place: bool,
    /// It was cut off, and goes on after whatever was done meanwhile.
    pub(super) after_a_crash: bool,
}

impl<'a> DeliveryRun<'a> {
    pub(super) fn new(
        top: &'a TreeTop,
        plan: &'a DeliveryPlan,
        staged: Staged,
        keeper: &'a dyn Keeper,
        outcome: Outcome,
        index: Option<&'a IndexWriter<'a>>,
    ) -> Self {
        let notes = vec![Vec::new(); plan.steps.len()];
        let (index_state, index_later) = (IndexProgress::Untouched, Vec::new());
        Self {
            top,
            plan,
            staged,
            keeper,
            outcome,
            notes,
            index,
            index_state,
            index_later,
            in_place: false,
            after_a_crash: false,
        }
    }

    pub(super) fn planned_step(&self, at: usize) -> &'a PlannedStep {
        &self.plan.steps[at]
    }

    pub(super) fn temporary_spot(&self, at: usize) -> Result<&'a Spot> {
        let missing = || Failure::internal("a step has no temporary name");
        self.plan.steps[at].temporary.as_ref().ok_or_else(missing)
    }

    pub(super) fn note_outcome(&mut self, at: usize, note: Note) {
        if !self.notes[at].contains(&note) {
            self.notes[at].push(note);
        }
    }
}

/// A directory that has to be there.
pub(super) fn require_folder(top: &TreeTop, path: Option<&RepoPath>) -> Result<Rc<Folder>> {
    top.open_folder(path).map_err(|barred| {
        let shown = path.map(ToString::to_string).unwrap_or_default();
        let why = match barred {
            Barred::Missing => "it is gone".to_owned(),
            Barred::Link(at) => format!("{at} is a symbolic link"),
            Barred::NotFolder(at) => format!("{at} is no directory"),
            Barred::Error(e) => e.to_string(),
        };
        Failure::new(Code::Io, format!("cannot enter the directory {shown}: {why}")).subject(shown)
    })
}

/// An operation on a path failed.
pub(super) fn operation_failed(doing: &str, path: &RepoPath, error: &std::io::Error) -> Failure {
    Failure::io(doing, path.as_path(), error)
}
