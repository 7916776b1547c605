//! The index's part of a delivery: locked before the first path changes, changed after the last, so that
//! whoever has the lock sees both or neither. An entry that is neither of its two states any more is the
//! user's, like a path that is.

use super::run::{DeliveryRun, IndexProgress, StepStop};
use crate::domain::delivery::receipt::DeliveryPlan;
use crate::domain::delivery::recovery::Act;
use crate::domain::delivery::{Conflict, IndexStep, refuse_delivery};
use crate::error::Result;
use crate::git::Environment;
use crate::git::index_write::{IndexWriter, Locked, Towards};

/// The way to the index, where the plan changes it.
pub(super) fn index_writer<'a>(
    environment: &Environment,
    plan: &'a DeliveryPlan,
) -> Result<Option<IndexWriter<'a>>> {
    plan.index.as_ref().map(|index| IndexWriter::new(environment, index, &plan.top)).transpose()
}

impl DeliveryRun<'_> {
    /// All paths, and the index with them.
    pub(super) fn commit_with_index(&mut self, acts: &[Act]) -> std::result::Result<(), StepStop> {
        let Some(writer) = self.index else { return self.commit_all(acts) };
        if self.index_state == IndexProgress::Unknown {
            writer.clear_stale()?;
            self.commit_all(acts)?;
            self.index_later = writer.bring_entries(Towards::After)?;
            return Ok(());
        }
        let locked = writer.lock_index()?;
        let steps = self.steps_of_the_index(&locked)?;
        self.commit_all(acts)?;
        if !steps.is_empty() {
            self.index_state = IndexProgress::Written;
            locked.set_entries(&steps)?;
        }
        Ok(writer.clear_stale()?)
    }

    /// The entries that have to change. Between the look and the lock somebody may have changed one of them.
    fn steps_of_the_index(&self, locked: &Locked<'_, '_>) -> std::result::Result<Vec<IndexStep>, StepStop> {
        let (steps, others) = locked.due_steps(Towards::After)?;
        if others.is_empty() {
            return Ok(steps);
        }
        let conflicts: Vec<Conflict> = others.into_iter().map(Conflict::of_the_index).collect();
        Err(StepStop::Failed(refuse_delivery(&conflicts)))
    }

    /// The index as it was before, and its lock free.
    pub(super) fn restore_index(&mut self) -> Result<()> {
        match (self.index, self.index_state) {
            (None, _) => Ok(()),
            (Some(writer), IndexProgress::Untouched) => writer.clear_stale(),
            (Some(writer), IndexProgress::Written | IndexProgress::Unknown) => {
                self.index_later = writer.bring_entries(Towards::Before)?;
                Ok(())
            }
        }
    }
}
