//! Writes a delivery into the live tree: all of it or none of it, and never over bytes that were not
//! looked at.
//!
//! The order is what makes it safe. The plan is in the ledger before the first byte; new objects are
//! staged under names of ours, the old bytes are stored, both are on the disk (by one sync of the file
//! system) and in the ledger before the first path changes; then every path changes by one atomic
//! exchange or move that cannot overwrite, and what came out is looked at *after* it has lost its
//! name: nobody can write to it unnoticed any more. An object that is not as expected goes back, and
//! so does everything before it. At the end all that came out is looked at once more, and only then
//! dropped.
//!
//! Nothing is assumed about what an operation that failed has done: taking back, like recovery, looks
//! at each path first. [`execute_plan`] accepts a [`ClearedPlan`] and nothing else.

mod attributes;
mod back;
mod dispose;
mod index;
mod look;
mod names;
pub mod recover;
mod run;
mod stage;
mod step;
#[cfg(test)]
pub(crate) mod tests;
mod trial;

use super::Repository;
use super::index_write::Towards;
use super::live::Materials;
use crate::domain::delivery::conflict::EDITED_MEANWHILE;
use crate::domain::delivery::receipt::{DeliveryPlan, Note, Outcome, PlannedStep, Receipt, Staged};
use crate::domain::delivery::recovery::{Act, Progress, Sight, decide_recovery};
use crate::domain::delivery::{ClearedPlan, Conflict, Plan, Reason, Step, stopped_by_conflicts};
use crate::domain::value::digest::{FileState, Sha256};
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Failure, Result};
use run::{DeliveryRun, StepStop};
use std::path::Path;

/// One entry for the ledger. Each but the last has to be durable when [`Journal::record`] returns:
/// without `Done`, recovery does again what is between it and `InPlace`, and finds it done.
#[derive(Debug)]
pub enum Record<'a> {
    Planned(&'a DeliveryPlan),
    /// All new objects are staged and safe, all old bytes stored; no path was changed yet.
    Staged(&'a Staged),
    /// Every path is changed and was looked at again; from here on the old objects are dropped, and it
    /// only goes forward.
    InPlace,
    /// From here on it only goes back.
    TakingBack,
    /// Everything is as it was, but for these paths, which the user edited meanwhile.
    TakenBack(&'a [RepoPath]),
    Done(&'a Receipt),
}

/// Where the steps of a delivery are written down.
pub trait Journal {
    fn record(&mut self, record: &Record<'_>) -> Result<()>;
}

/// Content-addressed storage for the user's bytes.
pub trait Keeper {
    fn put(&self, bytes: &[u8]) -> Result<Sha256>;

    fn get(&self, digest: &Sha256) -> Result<Vec<u8>>;

    /// Told that all of a device is on the disk now, so that what was put there needs no wait of its
    /// own.
    fn note_synced(&self, device: u64);
}

#[derive(Debug, Clone, Copy)]
pub struct Delivery<'a> {
    /// Its id; names it in ledger and receipt.
    pub id: &'a str,
    /// The top of the live tree.
    pub top: &'a Path,
    /// How the receipt calls a written path: `applied`, or `reverted` for an undo.
    pub outcome: Outcome,
    /// The repository as seen from that tree.
    pub repository: &'a Repository,
}

/// What the receipt of a plan would say, for `--dry-run`.
pub fn preview_receipt(plan: &Plan) -> Vec<(RepoPath, Outcome)> {
    let outcome = |step| if step == Step::Already { Outcome::Already } else { Outcome::WouldApply };
    plan.items().iter().map(|item| (item.change.path.clone(), outcome(item.step))).collect()
}

/// Executes a plan. On failure everything is as it was before, except where the failure says otherwise.
pub fn execute_plan(
    cleared: ClearedPlan,
    materials: Materials,
    delivery: Delivery<'_>,
    journal: &mut dyn Journal,
    keeper: &dyn Keeper,
) -> Result<Receipt> {
    let plan = stage::lay_out(cleared, &materials, delivery)?;
    let index = index::index_writer(delivery.repository.environment(), &plan)?;
    journal.record(&Record::Planned(&plan))?;
    let staged = stage::stage_objects(&plan, &materials, keeper);
    let (staged, problem) = match staged {
        Ok(staged) => {
            let tried = trial::try_mounts(&materials.top, &plan, &staged);
            let problem = tried.and_then(|()| journal.record(&Record::Staged(&staged))).err();
            (staged, problem)
        }
        Err((staged, e)) => (staged, Some(e)),
    };
    let mut run = DeliveryRun::new(&materials.top, &plan, staged, keeper, delivery.outcome, index.as_ref());
    match problem {
        Some(problem) => run.clear_away(problem, journal),
        None => {
            let act = |step: &PlannedStep| {
                if step.step == Step::Already { Act::Nothing } else { Act::Commit }
            };
            let acts: Vec<Act> = plan.steps.iter().map(act).collect();
            run.go_forward(&acts, journal)
        }
    }
}

impl DeliveryRun<'_> {
    /// Carries out what is left, looks once more at all that came out, and drops it.
    fn go_forward(&mut self, acts: &[Act], journal: &mut dyn Journal) -> Result<Receipt> {
        if let Err(stop) = self.commit_with_index(acts) {
            return Err(self.take_back(stop, journal));
        }
        // Whether the row is there or not when this fails, recovery goes forward from what it sees.
        self.in_place = true;
        match journal.record(&Record::InPlace) {
            Ok(()) => self.drop_replaced(acts, journal),
            Err(failure) => Err(only_the_end_is_missing(failure)),
        }
    }

    /// Drops all that came out of a delivery that is in place. There is no way back any more, and none
    /// is needed.
    fn drop_replaced(&mut self, acts: &[Act], journal: &mut dyn Journal) -> Result<Receipt> {
        let receipt = self.drop_held(acts).and_then(|()| {
            let receipt = Receipt::new(self.plan, &self.staged, &self.notes, self.outcome);
            journal.record(&Record::Done(&receipt)).map(|()| receipt)
        });
        receipt.map_err(only_the_end_is_missing)
    }

    /// The same for one that was cut off while that was being done. The index was part of what is in
    /// place.
    fn finish_again(&mut self, acts: &[Act], journal: &mut dyn Journal) -> Result<Receipt> {
        self.in_place = true;
        if let Some(writer) = self.index {
            self.index_later = writer.free_left_lock(Towards::After)?;
        }
        self.drop_replaced(acts, journal)
    }

    /// Puts everything back as it was; the failure that comes back says why, and what could not be
    /// restored.
    fn take_back(&mut self, stop: StepStop, journal: &mut dyn Journal) -> Failure {
        // If the ledger cannot take it, going back is still right; only a crash in the middle would be harder
        // to read.
        let announced = journal.record(&Record::TakingBack);
        let restored = self.restore_steps();
        let restored = self.restore_index().and(restored);
        let mut failure = match stop {
            StepStop::Failed(failure) => failure,
            StepStop::Conflict(at, reason) => {
                let what_became = match &restored {
                    Ok(later) if later.is_empty() => "nothing was written",
                    Ok(_) => "all was taken back but what you edited meanwhile",
                    Err(_) => "it could not be taken back as a whole",
                };
                stopped_by_conflicts(what_became, &[self.conflict_at(at, reason)])
            }
        };
        match restored.and_then(|later| journal.record(&Record::TakenBack(&later)).map(|()| later)) {
            Ok(later) if !later.is_empty() => failure = failure.with_detail(&EDITED_MEANWHILE, &later),
            Ok(_) => {}
            Err(e) => {
                let remedy = "The tree may hold a part of the delivery. Run `recover` to put it in order.";
                failure = failure.also([e]).remedy(remedy, ["git", "tender", "recover"]);
            }
        }
        let stored: Vec<&Note> = self.notes.iter().flatten().collect();
        if !stored.is_empty() {
            failure = failure.detail("notes", stored);
        }
        failure.also(announced.err())
    }

    /// Looks at every step and undoes what was done, last first. Returns the paths that the user edited
    /// meanwhile.
    fn restore_steps(&mut self) -> Result<Vec<RepoPath>> {
        let sights = self.look_at_steps()?;
        let decided = decide_recovery(self.plan, Progress::TakingBack, &sights, self.after_a_crash);
        self.go_back(&decided.acts)?;
        Ok(decided.later)
    }

    fn go_back(&mut self, acts: &[Act]) -> Result<()> {
        let mut first_problem = None;
        let last_not_created =
            self.plan.steps.iter().rposition(|s| matches!(s.step, Step::Replace | Step::Delete));
        for at in (0..acts.len()).rev() {
            // The created files are gone; their directories may lie where a file has to come back.
            if Some(at) == last_not_created {
                first_problem = first_problem.or(self.remove_folders().err());
            }
            // One path that cannot be put back must not keep the others from it.
            if let Err(e) = self.undo_act(at, acts[at]) {
                first_problem.get_or_insert(e);
            }
        }
        self.remove_folders()?;
        self.sync_names()?;
        first_problem.map_or(Ok(()), Err)
    }

    /// Staging failed: removes what was staged. No path was touched.
    fn clear_away(&mut self, problem: Failure, journal: &mut dyn Journal) -> Result<Receipt> {
        let trials = trial::clear_trials(self.top, self.plan);
        let cleared =
            self.drop_all_staged().and(trials).and_then(|()| journal.record(&Record::TakenBack(&[])));
        Err(problem.also(cleared.err()))
    }

    fn look_at_steps(&mut self) -> Result<Vec<Sight>> {
        (0..self.plan.steps.len()).map(|at| self.look_at_step(at)).collect()
    }

    /// The object that a conflict is about, as it lies there now; unconverted, since nothing may run
    /// at this point.
    fn conflict_at(&self, at: usize, reason: Reason) -> Conflict {
        let change = &self.plan.steps[at].change;
        Conflict {
            path: change.path.clone(),
            reason,
            expected: change.old.as_ref().map(FileState::tree_object),
            actual: look::read_side(self.top, change),
            mergeable: false,
            partner: None,
        }
    }
}

/// Recovery has nothing to decide any more, and only to write it down.
fn only_the_end_is_missing(failure: Failure) -> Failure {
    let text =
        "All paths are written; only the end of it could not be recorded. Run `recover` to complete it.";
    failure.remedy(text, ["git", "tender", "recover"])
}
