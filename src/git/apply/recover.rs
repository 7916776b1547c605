//! Puts a delivery in order that was cut off: to its end or back to its beginning. Running it again changes
//! nothing.

use super::run::{DeliveryRun, IndexProgress, operation_failed};
use super::{Journal, Keeper, Record, index};
use crate::domain::delivery::Step;
use crate::domain::delivery::receipt::{DeliveryPlan, Note, Outcome, Receipt, Staged};
use crate::domain::delivery::recovery::{Act, Direction, Progress, Temporary, decide_recovery};
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Failure, Result};
use crate::git::Environment;
use crate::git::beneath::{TreeTop, or_absent};

/// What the ledger holds of an unfinished delivery.
#[derive(Debug, Clone)]
pub struct UnfinishedDelivery {
    pub plan: DeliveryPlan,
    /// What was staged; `None` where the ledger does not say that everything was.
    pub staged: Option<Staged>,
    /// How far it came after that.
    pub reached: Reached,
    /// How the receipt calls a written path.
    pub outcome: Outcome,
}

/// How far the ledger says that a delivery came, after all was staged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reached {
    /// Any beginning of its steps.
    Begun,
    /// All of its steps; what came out is being dropped.
    InPlace,
    /// It was being taken back.
    TakingBack,
    /// It was taken back, but for these paths: what lies at its paths now came afterwards.
    TakenBack(Vec<RepoPath>),
    /// Its end was written down: what lies at its paths now came afterwards.
    Done,
}

#[derive(Debug)]
pub enum Recovered {
    Completed {
        receipt: Receipt,
        /// Paths that the user edited after they were written; they stay.
        later: Vec<RepoPath>,
    },
    /// Everything is as it was before the delivery.
    TakenBack {
        /// Paths that the user edited meanwhile; they stay.
        later: Vec<RepoPath>,
        /// What else to know, by path: a temporary file that could not be found is named here.
        notes: Vec<(RepoPath, Vec<Note>)>,
        /// Why it could not be completed, where that was tried.
        because: Option<Failure>,
    },
}

/// Recovers. The journal gets `Done` or `TakenBack`, as from an ordinary delivery.
pub fn recover_delivery(
    environment: &Environment,
    unfinished: &UnfinishedDelivery,
    journal: &mut dyn Journal,
    keeper: &dyn Keeper,
) -> Result<Recovered> {
    let plan = &unfinished.plan;
    let progress = match &unfinished.reached {
        Reached::Done => {
            let receipt = Receipt::new(plan, &staged_files(unfinished), &[], unfinished.outcome);
            return Ok(Recovered::Completed { receipt, later: Vec::new() });
        }
        Reached::TakenBack(later) => {
            return Ok(Recovered::TakenBack { later: later.clone(), notes: Vec::new(), because: None });
        }
        _ if unfinished.staged.is_none() => Progress::Planned,
        Reached::Begun => Progress::Staged,
        Reached::InPlace => Progress::InPlace,
        Reached::TakingBack => Progress::TakingBack,
    };
    let top = open_top(unfinished)?;
    let index = index::index_writer(environment, plan)?;
    let mut run =
        DeliveryRun::new(&top, plan, staged_files(unfinished), keeper, unfinished.outcome, index.as_ref());
    run.index_state = IndexProgress::Unknown;
    run.after_a_crash = true;
    let sights = run.look_at_steps()?;
    for (at, sight) in sights.iter().enumerate() {
        let step = run.planned_step(at);
        let reachable = match &step.temporary {
            Some(spot) => or_absent(top.open_folder(spot.folder.as_ref()))
                .map_err(|e| operation_failed("look at", &step.change.path, &e))?
                .is_some(),
            None => true,
        };
        let was_dropped = progress == Progress::InPlace;
        if step.step != Step::Already && sight.temporary == Temporary::Absent && !reachable && !was_dropped {
            let name = run.shown_temporary(at);
            run.note_outcome(at, Note::NotFound(name));
        }
    }
    let mut decided = decide_recovery(plan, progress, &sights, run.after_a_crash);
    if decided.direction == Direction::Forward {
        let receipt = match progress {
            Progress::InPlace => run.finish_again(&decided.acts, journal),
            _ => run.go_forward(&decided.acts, journal),
        };
        return match receipt {
            Ok(receipt) => {
                decided.later.append(&mut run.index_later);
                Ok(Recovered::Completed { receipt, later: decided.later })
            }
            Err(because) if run.in_place => Err(because),
            Err(because) => back_after_all(&mut run, because),
        };
    }
    if progress == Progress::Staged {
        journal.record(&Record::TakingBack)?;
    }
    run.go_back(&decided.acts)?;
    run.restore_index()?;
    decided.later.append(&mut run.index_later);
    journal.record(&Record::TakenBack(&decided.later))?;
    Ok(Recovered::TakenBack { later: decided.later, notes: notes_by_path(&run), because: None })
}

/// Going on met a conflict and was taken back. If anything is left in between, that is a failure.
fn back_after_all(run: &mut DeliveryRun<'_>, because: Failure) -> Result<Recovered> {
    let sights = run.look_at_steps()?;
    let decided = decide_recovery(run.plan, Progress::TakingBack, &sights, false);
    if decided.acts.iter().any(|act| *act != Act::Nothing) {
        return Err(because);
    }
    Ok(Recovered::TakenBack { later: decided.later, notes: notes_by_path(run), because: Some(because) })
}

fn notes_by_path(run: &DeliveryRun<'_>) -> Vec<(RepoPath, Vec<Note>)> {
    let paths = run.plan.steps.iter().map(|step| step.change.path.clone());
    paths.zip(run.notes.iter().cloned()).filter(|(_, notes)| !notes.is_empty()).collect()
}

fn open_top(unfinished: &UnfinishedDelivery) -> Result<TreeTop> {
    let top = &unfinished.plan.top;
    TreeTop::open_top(top).map_err(|e| Failure::io("open", top, &e))
}

fn staged_files(unfinished: &UnfinishedDelivery) -> Staged {
    unfinished.staged.clone().unwrap_or_else(Staged::nothing_staged)
}
