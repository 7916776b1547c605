//! The process dies, or an operation fails, at every single place.

use super::world::{Tree, World};
use crate::domain::change::patch::Change;
use crate::error::Result;
use crate::git::apply::recover::{Reached, Recovered, UnfinishedDelivery};
use crate::git::beneath::fault::{self, InjectedFault};
use std::panic::{AssertUnwindSafe, catch_unwind};

fn world_with_changes() -> (World, Vec<Change>) {
    let world = World::new(&[("a", "a\n"), ("b", "b\n"), ("d/x", "x\n"), ("f", "f\n"), ("m", "m\n")]);
    let changes = world.edit_candidate(|w| {
        w.write_file("a", "A\n");
        w.remove_path("b");
        w.remove_path("d");
        w.write_file("d", "file\n");
        w.remove_path("f");
        w.write_file("f/g/h", "new\n");
        w.write_file("n/o", "new\n");
        w.set_mode("m", 0o755);
    });
    (world, changes)
}

/// The tree before, and after, the delivery.
fn trees_before_and_after(plain: bool) -> (Tree, Tree) {
    let (world, changes) = world_with_changes();
    let before = world.live_tree();
    fault::plain_file_system(plain);
    world.deliver_changes(&changes).expect("delivers");
    (before, world.live_tree())
}

/// Runs with the `at`th file operation going wrong. `None`: it died.
pub(super) fn run_with(what: InjectedFault, at: u32, run: impl FnOnce() -> Result<()>) -> Option<Result<()>> {
    fault::arm_fault(Some((at, what)));
    let ended = catch_unwind(AssertUnwindSafe(run));
    let reached = fault::count_operations() >= at;
    fault::arm_fault(None);
    match ended {
        Ok(result) => {
            assert!(reached || result.is_ok());
            Some(result)
        }
        Err(panic) => {
            assert_eq!(panic.downcast_ref::<&str>(), Some(&fault::DEATH), "a real panic");
            None
        }
    }
}

/// A delivery into the tree as it is given, which died at its `at`th file operation; what the ledger holds of
/// it.
pub(super) fn dead_at(world: &World, before: &Tree, changes: &[Change], at: u32) -> UnfinishedDelivery {
    world.reset_live(before);
    let ended = run_with(InjectedFault::Die, at, || world.deliver_changes(changes).map(|_| ()));
    assert!(ended.is_none(), "operation {at} was not reached");
    world.unfinished_delivery().expect("the plan is in the ledger")
}

pub(super) fn count_operations(run: impl FnOnce() -> Result<()>) -> u32 {
    fault::arm_fault(None);
    run().expect("works");
    fault::count_operations()
}

pub(super) fn silence_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if info.payload().downcast_ref::<&str>() != Some(&fault::DEATH) {
            usual(info);
        }
    }));
}

#[test]
fn death_at_any_place_is_recovered_to_all_or_nothing() {
    silence_panics();
    for plain in [false, true] {
        let (before, after) = trees_before_and_after(plain);
        let (world, changes) = world_with_changes();
        let total = count_operations(|| world.deliver_changes(&changes).map(|_| ()));
        let (mut forward, mut back) = (0, 0);
        for at in 1..=total {
            let unfinished = dead_at(&world, &before, &changes, at);
            match world.recover_unfinished(&unfinished).expect("recovers") {
                Recovered::Completed { later, .. } => {
                    assert!(later.is_empty(), "{at}: {later:?}");
                    assert_eq!(world.live_tree(), after, "{at}");
                    forward += 1;
                }
                Recovered::TakenBack { later, because, .. } => {
                    assert!(later.is_empty() && because.is_none(), "{at}: {later:?}");
                    assert_eq!(world.live_tree(), before, "{at}");
                    back += 1;
                }
            }
            let tree = world.live_tree();
            world.recover_unfinished(&unfinished).expect("recovers again");
            assert_eq!(world.live_tree(), tree, "{at}: a second recovery changes nothing");
            world.deliver_changes(&changes).expect("delivers again");
            assert_eq!(world.live_tree(), after, "{at}");
        }
        assert!(forward > 10 && back > 5, "{forward} {back}");
        fault::plain_file_system(false);
    }
}

#[test]
fn death_while_recovering_is_recovered_too() {
    silence_panics();
    let (before, after) = trees_before_and_after(false);
    let (world, changes) = world_with_changes();
    for at in (1..60).step_by(7) {
        for second in (1..40).step_by(3) {
            world.reset_live(&before);
            if run_with(InjectedFault::Die, at, || world.deliver_changes(&changes).map(|_| ())).is_some() {
                continue;
            }
            let unfinished = world.unfinished_delivery().expect("the plan is in the ledger");
            let died =
                run_with(InjectedFault::Die, second, || world.recover_unfinished(&unfinished).map(|_| ()))
                    .is_none();
            if died {
                let unfinished = world.unfinished_delivery().expect("still unfinished");
                world.recover_unfinished(&unfinished).expect("recovers");
            }
            let tree = world.live_tree();
            assert!(tree == before || tree == after, "{at} {second}: {tree:?}");
        }
    }
}

#[test]
fn a_failure_at_any_place_leaves_all_as_it_was_or_is_completed() {
    let (before, after) = trees_before_and_after(false);
    let (world, changes) = world_with_changes();
    let total = count_operations(|| world.deliver_changes(&changes).map(|_| ()));
    for at in 1..=total {
        world.reset_live(&before);
        let ended =
            run_with(InjectedFault::Fail(libc::ENOSPC), at, || world.deliver_changes(&changes).map(|_| ()));
        ended.expect("did not die").expect_err("failed");
        let tree = world.live_tree();
        match world.journal_ends() {
            "taken_back" => assert_eq!(tree, before, "{at}"),
            end => {
                assert_eq!(end, "nothing", "{at}");
                let unfinished = world.unfinished_delivery().expect("the plan is in the ledger");
                let recovered = world.recover_unfinished(&unfinished).expect("recovers");
                assert!(matches!(recovered, Recovered::Completed { .. }), "{at}");
                assert_eq!(world.live_tree(), after, "{at}");
            }
        }
    }
}

#[test]
fn a_ledger_that_cannot_be_written_stops_it() {
    let (before, after) = trees_before_and_after(false);
    for at in 1..=4 {
        let (world, changes) = world_with_changes();
        world.journal.borrow_mut().fail_at = Some(at);
        world.deliver_changes(&changes).expect_err("no ledger");
        world.journal.borrow_mut().fail_at = None;
        let mut tree = world.live_tree();
        tree.retain(|name, _| !name.contains(".tender-"));
        assert_eq!(tree, if at >= 3 { after.clone() } else { before.clone() }, "{at}");
        if let Some(unfinished) = world.unfinished_delivery() {
            world.recover_unfinished(&unfinished).expect("recovers");
            assert_eq!(world.live_tree(), after, "{at}");
        }
    }
}

#[test]
fn edits_made_while_we_were_down_are_kept_and_named() {
    silence_panics();
    let (world, changes) = world_with_changes();
    let before = world.live_tree();
    let total = count_operations(|| world.deliver_changes(&changes).map(|_| ()));
    for edited in ["a", "b", "m", "d", "n/o"] {
        for at in (1..=total).step_by(3) {
            world.reset_live(&before);
            let _ = run_with(InjectedFault::Die, at, || world.deliver_changes(&changes).map(|_| ()));
            let Some(unfinished) = world.unfinished_delivery() else { continue };
            let path = world.path(edited);
            if path.is_dir() || !path.parent().expect("has one").is_dir() {
                continue;
            }
            world.write_file(edited, "the user was here\n");
            let recovered = world.recover_unfinished(&unfinished).expect("recovers");
            let (Recovered::Completed { later, .. } | Recovered::TakenBack { later, .. }) = recovered;
            assert_eq!(world.live_tree()[edited].1, b"the user was here\n", "{edited} {at}");
            // Before anything was staged there is nothing to name: nobody was disturbed.
            let named = later.iter().any(|p| p.to_string() == edited);
            assert!(named || unfinished.staged.is_none(), "{edited} {at}");
            assert!(!world.live_tree().keys().any(|name| name.contains(".tender-")), "{edited} {at}");
        }
    }
}

/// After a crash the user throws everything away (`git reset --hard`, `git clean`): nothing of the delivery
/// comes back or is deleted, and it is not called complete unless it had been.
#[test]
fn a_tree_that_was_reset_while_we_were_down_stays_as_it_is() {
    silence_panics();
    for plain in [false, true] {
        fault::plain_file_system(plain);
        let (world, changes) = world_with_changes();
        let before = world.live_tree();
        let total = count_operations(|| world.deliver_changes(&changes).map(|_| ()));
        let (mut completed, mut back) = (0, 0);
        for at in 1..=total {
            let unfinished = dead_at(&world, &before, &changes, at);
            world.restore_live(&before);
            match world.recover_unfinished(&unfinished).expect("recovers") {
                Recovered::Completed { later, .. } => {
                    assert_eq!(unfinished.reached, Reached::InPlace, "{at}");
                    assert_eq!(later.len(), changes.len(), "{at}: {later:?}");
                    completed += 1;
                }
                Recovered::TakenBack { later, .. } => {
                    assert!(later.is_empty(), "{at}: {later:?}");
                    back += 1;
                }
            }
            assert_eq!(world.live_tree(), before, "{at}");
        }
        assert!(completed > 3 && back > 10, "{completed} {back}");
        fault::plain_file_system(false);
    }
}

/// The user resets the paths alone: what had been written so far does not go on.
#[test]
fn what_was_written_and_reset_is_not_completed_by_halves() {
    silence_panics();
    let (world, changes) = world_with_changes();
    let before = world.live_tree();
    let total = count_operations(|| world.deliver_changes(&changes).map(|_| ()));
    let mut back = 0;
    for at in 1..=total {
        let unfinished = dead_at(&world, &before, &changes, at);
        let written = world.live_tree().get("a") != before.get("a");
        if unfinished.reached == Reached::InPlace || !written {
            continue;
        }
        world.write_file("a", "a\n");
        assert!(
            matches!(world.recover_unfinished(&unfinished).expect("recovers"), Recovered::TakenBack { .. }),
            "{at}"
        );
        assert_eq!(world.live_tree(), before, "{at}");
        back += 1;
    }
    assert!(back > 5, "{back}");
}

/// Its old objects are gone when it has to go back (the user cleaned up): each is made again whole, or not at
/// all, also where that dies half way.
#[test]
fn what_is_made_again_is_whole_also_where_that_dies() {
    silence_panics();
    let (world, changes) = world_with_changes();
    let before = world.live_tree();
    let total = count_operations(|| world.deliver_changes(&changes).map(|_| ()));
    let mut died = 0;
    for at in (1..=total).rev().step_by(3) {
        for second in (1..).step_by(2) {
            let mut unfinished = dead_at(&world, &before, &changes, at);
            if unfinished.reached == Reached::InPlace || unfinished.staged.is_none() {
                break;
            }
            unfinished.reached = Reached::TakingBack;
            world.clean_temporaries();
            let ended =
                run_with(InjectedFault::Die, second, || world.recover_unfinished(&unfinished).map(|_| ()));
            let whole = ended.is_some();
            if let Some(ended) = ended {
                ended.expect("recovers");
            } else {
                died += 1;
                world.recover_unfinished(&unfinished).expect("recovers");
            }
            let tree = world.live_tree();
            for (path, found) in &tree {
                assert!(before.get(path) == Some(found), "{at} {second}: {path} is {found:?}");
            }
            assert_eq!(tree.len(), before.len(), "{at} {second}: {tree:?}");
            if whole {
                break;
            }
        }
    }
    assert!(died > 20, "{died}");
}

/// The repository was restored from a copy, or git put everything away and back: the same bytes under other
/// numbers.
#[test]
fn the_same_bytes_under_other_numbers_are_recovered_to_all_or_nothing() {
    silence_panics();
    let (before, after) = trees_before_and_after(false);
    let (world, changes) = world_with_changes();
    let total = count_operations(|| world.deliver_changes(&changes).map(|_| ()));
    let (mut forward, mut back) = (0, 0);
    for at in 1..=total {
        let unfinished = dead_at(&world, &before, &changes, at);
        world.restore_live(&world.live_tree());
        match world.recover_unfinished(&unfinished).expect("recovers") {
            Recovered::Completed { later, .. } => {
                assert!(later.is_empty(), "{at}: {later:?}");
                assert_eq!(world.live_tree(), after, "{at}");
                forward += 1;
            }
            Recovered::TakenBack { later, .. } => {
                assert!(later.is_empty(), "{at}: {later:?}");
                assert_eq!(world.live_tree(), before, "{at}");
                back += 1;
            }
        }
    }
    assert!(forward > 10 && back > 5, "{forward} {back}");
}
