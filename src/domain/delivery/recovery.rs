//! What to do with a delivery that was cut off: forward or back, decided from what the ledger holds and what
//! is seen on disk. Pure, so that every crash point is a unit test.
//!
//! Steps are carried out in the order of the plan, so what was written is a beginning of it. Taking back is
//! announced in the ledger before it begins; a delivery that was already being taken back never goes forward
//! again. That everything is in place is in the ledger before the first old object is dropped: until then an
//! object that is gone was taken away by somebody else, and a path that is as it was before, though its new
//! content is gone, is one that the user has reset. A path that is in neither of its two states was edited by
//! the user meanwhile: it stays as it is and is named.

use crate::domain::delivery::Step;
use crate::domain::delivery::receipt::DeliveryPlan;
use crate::domain::value::repo_path::RepoPath;

/// The state of the path, compared with the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Live {
    Before,
    /// The object that the delivery puts there.
    After,
    /// Neither: the user's.
    Foreign,
}

/// The state of the temporary name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Temporary {
    Absent,
    /// The staged object, unchanged, which has not been put in place.
    Staged,
    /// The object that lay at the path before, unchanged.
    Held,
    /// Something else: an edit that came between, of what lay there before or of what was put there.
    HeldForeign,
}

/// Both sights of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sight {
    pub live: Live,
    pub temporary: Temporary,
}

/// The way that the delivery goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Forward,
    Back,
}

/// The recovery of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    Commit,
    /// It is written: drop what waits under the temporary name.
    Finish,
    /// Put back what waits under the temporary name; for a created path, remove what we put there.
    PutBack,
    /// The old object is gone from the temporary name: make it again from the kept bytes, then put it back.
    Remake,
    /// Not written: drop the staged object.
    DropStaged,
    /// The user's later version stays; store and drop what waits under the temporary name.
    KeepLater,
    /// The user's version waits under the temporary name: it goes to the path, if that is free.
    GiveBack,
    Nothing,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveryPlan {
    pub direction: Direction,
    /// One for each step of the plan.
    pub acts: Vec<Act>,
    /// Paths that the user edited meanwhile; they stay as they are.
    pub later: Vec<RepoPath>,
}

/// The progress of the delivery, by the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Only the plan is there: nothing was put in place.
    Planned,
    /// Everything is staged and safe; any beginning of the steps may have been carried out.
    Staged,
    /// Every step was carried out and looked at again; some of the old objects may have been dropped.
    InPlace,
    /// It was being taken back.
    TakingBack,
}

/// Decides. `sights` are in the order of the plan's steps; steps that had nothing to do are ignored.
/// `after_a_crash`: anything may have been done between the steps and the sights.
pub fn decide_recovery(
    plan: &DeliveryPlan,
    progress: Progress,
    sights: &[Sight],
    after_a_crash: bool,
) -> RecoveryPlan {
    let steps: Vec<Step> = plan.steps.iter().map(|s| s.step).collect();
    let last = (0..steps.len()).rev().find(|at| surely_written(steps[*at], sights[*at]));
    let came_before_a_written_one = |at: usize| last.is_some_and(|last| at < last);
    let written = match progress {
        Progress::InPlace => vec![true; steps.len()],
        _ => written_steps(&steps, sights, &came_before_a_written_one),
    };
    let may_go_on =
        steps.iter().zip(sights).zip(&written).all(|((step, sight), written)| {
            *step == Step::Already || can_go_forward(*step, *sight, *written)
        });
    let direction = match progress {
        Progress::InPlace => Direction::Forward,
        Progress::Staged if may_go_on => Direction::Forward,
        Progress::Staged | Progress::Planned | Progress::TakingBack => Direction::Back,
    };
    let act = |at: usize| match (steps[at], direction, progress) {
        (Step::Already, ..) => Act::Nothing,
        (_, _, Progress::Planned) => match sights[at].temporary {
            // Nothing was put in place, so a deletion cannot have a temporary name; if it has, it is not ours
            // to drop.
            _ if steps[at] == Step::Delete => Act::Nothing,
            Temporary::Absent => Act::Nothing,
            _ => Act::DropStaged,
        },
        (_, Direction::Forward, _) => act_forward(sights[at], written[at]),
        (step, Direction::Back, _) => {
            act_back(step, sights[at], after_a_crash || came_before_a_written_one(at))
        }
    };
    let acts: Vec<Act> = (0..steps.len()).map(act).collect();
    let is_later = |at: usize| {
        steps[at] != Step::Already
            && progress != Progress::Planned
            && match sights[at].live {
                Live::Foreign => true,
                Live::Before => acts[at] == Act::GiveBack || direction == Direction::Forward && written[at],
                Live::After => false,
            }
    };
    let later =
        (0..steps.len()).filter(|at| is_later(*at)).map(|at| plan.steps[at].change.path.clone()).collect();
    RecoveryPlan { direction, acts, later }
}

/// Which steps were carried out, as far as the names tell. Where a name is gone, the order of the steps
/// tells.
fn written_steps(
    steps: &[Step],
    sights: &[Sight],
    came_before_a_written_one: &dyn Fn(usize) -> bool,
) -> Vec<bool> {
    let first_staged = (0..steps.len()).find(|at| sights[*at].temporary == Temporary::Staged);
    let told = |at: usize| match (sights[at].temporary, steps[at]) {
        (Temporary::Held | Temporary::HeldForeign, _) => true,
        (Temporary::Staged, _) => false,
        (Temporary::Absent, Step::Delete) => sights[at].live == Live::After || came_before_a_written_one(at),
        (Temporary::Absent, _) => first_staged.is_none_or(|first| at < first),
    };
    (0..steps.len()).map(told).collect()
}

/// True where the names of a step alone say that it was carried out.
fn surely_written(step: Step, sight: Sight) -> bool {
    match sight.temporary {
        Temporary::Held | Temporary::HeldForeign => true,
        Temporary::Absent => sight.live == Live::After && matches!(step, Step::Create | Step::Replace),
        Temporary::Staged => false,
    }
}

/// Before everything was in place. A path that was written and is as it was before again has been reset by
/// the user: they do not want the rest either. One where an edit came between was a conflict.
fn can_go_forward(step: Step, sight: Sight, written: bool) -> bool {
    match (sight.live, sight.temporary) {
        (_, Temporary::HeldForeign) => false,
        (Live::After, _) => true,
        (Live::Before, Temporary::Staged) => true,
        (Live::Before, Temporary::Absent) => step == Step::Delete && !written,
        (Live::Before, Temporary::Held) => false,
        (Live::Foreign, _) => written,
    }
}

fn act_forward(sight: Sight, written: bool) -> Act {
    match (sight.live, sight.temporary) {
        (Live::Before, Temporary::Staged | Temporary::Absent) if !written => Act::Commit,
        (Live::After, Temporary::Held) => Act::Finish,
        (_, Temporary::Absent) => Act::Nothing,
        (_, Temporary::Staged) => Act::DropStaged,
        (_, Temporary::Held | Temporary::HeldForeign) => Act::KeepLater,
    }
}

fn act_back(step: Step, sight: Sight, surely: bool) -> Act {
    match (sight.live, sight.temporary, step) {
        (_, Temporary::Staged, _) => Act::DropStaged,
        // Nothing lay there: what was taken from the path is the user's edit of what we put there, or another
        // file of theirs.
        (_, Temporary::HeldForeign, Step::Create) => Act::GiveBack,
        (Live::After, Temporary::Held | Temporary::HeldForeign, _) => Act::PutBack,
        (Live::After, Temporary::Absent, Step::Create) => Act::PutBack,
        (Live::After, Temporary::Absent, Step::Replace) => Act::Remake,
        // Whether a path is empty because we deleted it, only the steps after it can tell. After a crash it
        // comes back in any case: whoever removed what was set aside has it again, and whoever meant to
        // delete the file can do so once more.
        (Live::After, Temporary::Absent, Step::Delete) if surely => Act::Remake,
        (_, Temporary::Held | Temporary::HeldForeign, _) => Act::KeepLater,
        (_, Temporary::Absent, _) => Act::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use crate::domain::change::patch::Change;
    use crate::domain::delivery::receipt::PlannedStep;
    use crate::domain::delivery::recovery::*;
    use crate::domain::value::digest::{FileState, Mode, Sha256};

    fn plan_of(steps: &[Step]) -> DeliveryPlan {
        let state = |text: &str| FileState {
            mode: Mode::File,
            git_blob: "ce013625030ba8dba906f756967f9e9ca394464a".parse().expect("an id"),
            sha256: Sha256::of(text.as_bytes()),
        };
        let step = |(at, step): (usize, &Step)| PlannedStep {
            change: Change::new(
                RepoPath::new(format!("p{at}")).expect("a path"),
                (*step != Step::Create).then(|| state("old")),
                (*step != Step::Delete).then(|| state("new")),
            ),
            step: *step,
            before: None,
            after: None,
            temporary: None,
            notes: Vec::new(),
        };
        DeliveryPlan {
            id: "d1".into(),
            top: "/x".into(),
            manifest_sha256: Sha256::of(b""),
            steps: steps.iter().enumerate().map(step).collect(),
            folders: Vec::new(),
            index: None,
        }
    }

    const STEPS: [Step; 4] = [Step::Delete, Step::Replace, Step::Create, Step::Already];

    fn sight_of(live: Live, temporary: Temporary) -> Sight {
        Sight { live, temporary }
    }

    /// The sight of a step that was, or was not, carried out.
    fn sight_of_step(step: Step, done: bool) -> Sight {
        match (step, done) {
            (Step::Delete, false) | (Step::Already, _) => sight_of(Live::Before, Temporary::Absent),
            (_, false) => sight_of(Live::Before, Temporary::Staged),
            (Step::Create, true) => sight_of(Live::After, Temporary::Absent),
            (_, true) => sight_of(Live::After, Temporary::Held),
        }
    }

    #[test]
    fn a_crash_after_any_number_of_steps_goes_forward() {
        for done in 0..=3 {
            let sights: Vec<Sight> =
                STEPS.iter().enumerate().map(|(at, s)| sight_of_step(*s, at < done)).collect();
            let decided = decide_recovery(&plan_of(&STEPS), Progress::Staged, &sights, false);
            assert_eq!(decided.direction, Direction::Forward, "{done}");
            let commits = decided.acts.iter().filter(|a| **a == Act::Commit).count();
            assert_eq!(commits, 3 - done);
            assert!(decided.later.is_empty());
        }
    }

    #[test]
    fn a_crash_while_the_old_objects_are_dropped_finishes() {
        let mut sights: Vec<Sight> = STEPS.iter().map(|s| sight_of_step(*s, true)).collect();
        sights[0].temporary = Temporary::Absent;
        let decided = decide_recovery(&plan_of(&STEPS), Progress::Staged, &sights, false);
        assert_eq!(decided.direction, Direction::Forward);
        assert_eq!(decided.acts, [Act::Nothing, Act::Finish, Act::Nothing, Act::Nothing]);
    }

    #[test]
    fn what_is_in_place_only_goes_forward_and_never_writes() {
        let lives = [Live::Before, Live::After, Live::Foreign];
        let temps = [Temporary::Absent, Temporary::Staged, Temporary::Held, Temporary::HeldForeign];
        for step in [Step::Delete, Step::Replace, Step::Create] {
            for (live, temporary) in lives.iter().flat_map(|live| temps.map(|temporary| (*live, temporary))) {
                let decided = decide_recovery(
                    &plan_of(&[step]),
                    Progress::InPlace,
                    &[sight_of(live, temporary)],
                    false,
                );
                assert_eq!(decided.direction, Direction::Forward);
                let act = decided.acts[0];
                assert!(
                    matches!(act, Act::Finish | Act::KeepLater | Act::DropStaged | Act::Nothing),
                    "{act:?}"
                );
                assert!(temporary != Temporary::HeldForeign || act == Act::KeepLater);
                assert_eq!(decided.later.is_empty(), live == Live::After);
            }
        }
    }

    #[test]
    fn a_path_that_was_reset_takes_everything_back() {
        let reset = sight_of(Live::Before, Temporary::Absent);
        let untouched = sight_of_step(Step::Delete, false);
        for step in [Step::Replace, Step::Create] {
            for other in [untouched, sight_of_step(Step::Delete, true)] {
                let decided = decide_recovery(
                    &plan_of(&[Step::Delete, step]),
                    Progress::Staged,
                    &[other, reset],
                    false,
                );
                assert_eq!(decided.direction, Direction::Back);
                assert!(!decided.acts.contains(&Act::Commit));
            }
        }
        let written = [sight_of_step(Step::Delete, true), sight_of(Live::Before, Temporary::Held)];
        let decided = decide_recovery(&plan_of(&STEPS[..2]), Progress::Staged, &written, false);
        assert_eq!(decided.acts, [Act::PutBack, Act::KeepLater]);
    }

    #[test]
    fn a_deletion_whose_object_is_gone_is_made_again_where_it_surely_took_place() {
        let gone = sight_of(Live::After, Temporary::Absent);
        let act = |after: Sight| {
            decide_recovery(&plan_of(&STEPS[..2]), Progress::TakingBack, &[gone, after], false).acts[0]
        };
        assert_eq!(act(sight_of_step(Step::Replace, true)), Act::Remake);
        assert_eq!(act(sight_of_step(Step::Replace, false)), Act::Nothing);
    }

    #[test]
    fn before_everything_is_staged_it_only_tidies_up() {
        let sights = [
            sight_of_step(Step::Delete, false),
            sight_of_step(Step::Replace, false),
            sight_of(Live::Before, Temporary::Absent),
        ];
        let decided = decide_recovery(&plan_of(&STEPS[..3]), Progress::Planned, &sights, false);
        assert_eq!(decided.direction, Direction::Back);
        assert_eq!(decided.acts, [Act::Nothing, Act::DropStaged, Act::Nothing]);
    }

    #[test]
    fn an_edit_that_came_between_goes_back() {
        let sights = [
            sight_of_step(Step::Delete, true),
            sight_of(Live::After, Temporary::HeldForeign),
            sight_of_step(Step::Create, false),
        ];
        let decided = decide_recovery(&plan_of(&STEPS[..3]), Progress::Staged, &sights, false);
        assert_eq!(decided.direction, Direction::Back);
        assert_eq!(decided.acts, [Act::PutBack, Act::PutBack, Act::DropStaged]);
    }

    #[test]
    fn a_later_edit_of_a_written_path_is_kept_and_the_rest_goes_forward() {
        let sights = [
            sight_of_step(Step::Delete, true),
            sight_of(Live::Foreign, Temporary::Held),
            sight_of_step(Step::Create, false),
        ];
        let decided = decide_recovery(&plan_of(&STEPS[..3]), Progress::Staged, &sights, false);
        assert_eq!(decided.direction, Direction::Forward);
        assert_eq!(decided.acts, [Act::Finish, Act::KeepLater, Act::Commit]);
        assert_eq!(decided.later.len(), 1);
    }

    #[test]
    fn an_edit_of_an_unwritten_path_takes_everything_back() {
        let sights = [
            sight_of_step(Step::Delete, true),
            sight_of_step(Step::Replace, true),
            sight_of(Live::Foreign, Temporary::Staged),
        ];
        let decided = decide_recovery(&plan_of(&STEPS[..3]), Progress::Staged, &sights, false);
        assert_eq!(decided.direction, Direction::Back);
        assert_eq!(decided.acts, [Act::PutBack, Act::PutBack, Act::DropStaged]);
        assert_eq!(decided.later[0].to_string(), "p2");
    }

    #[test]
    fn a_deletion_is_told_by_what_came_after_it() {
        let edited = sight_of(Live::Foreign, Temporary::Absent);
        let not_begun = [edited, sight_of_step(Step::Replace, false)];
        let decided = decide_recovery(&plan_of(&STEPS[..2]), Progress::Staged, &not_begun, false);
        assert_eq!(decided.direction, Direction::Back);
        let begun = [edited, sight_of_step(Step::Replace, true)];
        let decided = decide_recovery(&plan_of(&STEPS[..2]), Progress::Staged, &begun, false);
        assert_eq!(decided.direction, Direction::Forward);
        assert_eq!(decided.acts, [Act::Nothing, Act::Finish]);
    }

    #[test]
    fn once_it_was_being_taken_back_it_never_goes_forward() {
        let sights = [
            sight_of_step(Step::Delete, true),
            sight_of_step(Step::Replace, true),
            sight_of_step(Step::Create, true),
        ];
        let decided = decide_recovery(&plan_of(&STEPS[..3]), Progress::TakingBack, &sights, false);
        assert_eq!(decided.acts, [Act::PutBack, Act::PutBack, Act::PutBack]);
    }

    /// Over all sights: no act ever drops what may be the only copy of something that is not ours.
    #[test]
    fn no_act_discards_an_edit() {
        let lives = [Live::Before, Live::After, Live::Foreign];
        let temps = [Temporary::Absent, Temporary::Staged, Temporary::Held, Temporary::HeldForeign];
        for step in [Step::Delete, Step::Replace, Step::Create] {
            for progress in [Progress::Staged, Progress::TakingBack] {
                for live in lives {
                    for temporary in temps {
                        let decided =
                            decide_recovery(&plan_of(&[step]), progress, &[sight_of(live, temporary)], false);
                        let act = decided.acts[0];
                        assert!(
                            !(temporary == Temporary::HeldForeign
                                && matches!(act, Act::Finish | Act::DropStaged))
                        );
                        assert!(
                            !(live == Live::Foreign
                                && matches!(act, Act::Commit | Act::PutBack | Act::Remake))
                        );
                        assert_eq!(
                            decided.later.len(),
                            usize::from(
                                live == Live::Foreign || live == Live::Before && act == Act::GiveBack
                            )
                        );
                    }
                }
            }
        }
    }
}
