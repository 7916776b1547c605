//! Index and files together: both or neither, whatever happens in the middle, and no entry but the patch's.

use super::crash::{count_operations, run_with, silence_panics};
use super::world::{Tree, World, conflict_reasons};
use crate::domain::change::patch::Change;
use crate::domain::delivery::{IndexRule, Reason};
use crate::error::Code;
use crate::git::apply::recover::Recovered;
use crate::git::beneath::fault::{self, InjectedFault};

fn world_with_staged() -> (World, Vec<Change>) {
    let world = World::new(&[("a", "a\n"), ("b", "b\n"), ("mine", "m\n"), ("x", "x\n")]);
    world.rule.set(IndexRule::Follows);
    let changes = world.edit_candidate(|w| {
        w.write_file("a", "A\n");
        w.remove_path("b");
        w.write_file("n/o", "new\n");
        w.set_mode("x", 0o755);
    });
    (world, changes)
}

/// What the index holds, and the files.
fn index_and_files(world: &World) -> (String, Tree) {
    (world.run_git(&["ls-files", "-s"]), world.live_tree())
}

/// As it was at first, with a staged change of the user's.
fn reset_world(world: &World, files: &Tree) {
    world.reset_live(files);
    world.run_git(&["read-tree", "HEAD"]);
    world.write_file("mine", "staged by the user\n");
    world.run_git(&["add", "mine"]);
    world.write_file("mine", "and edited further\n");
}

fn left_behind(world: &World) -> Vec<String> {
    let entries = std::fs::read_dir(world.path(".git")).expect("lists");
    let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("tender-index") || name == "index.lock").collect()
}

#[test]
fn the_index_follows_and_other_entries_stay() {
    let (world, changes) = world_with_staged();
    let files = world.live_tree();
    reset_world(&world, &files);
    let before = index_and_files(&world);
    let receipt = world.deliver_changes(&changes).expect("delivers");
    assert_eq!(world.run_git(&["diff-files", "--name-only"]), "mine\n", "the stat cache is filled");
    assert_eq!(
        world.run_git(&["diff", "--cached", "--name-status", "--no-renames"]),
        "M\ta\nD\tb\nM\tmine\nA\tn/o\nM\tx\n"
    );
    assert_eq!(world.run_git(&["show", ":mine"]), "staged by the user\n");
    assert_eq!(left_behind(&world), [""; 0]);
    world.undo_receipt(&receipt).expect("undoes");
    assert_eq!(index_and_files(&world), before);
}

#[test]
fn an_entry_that_is_not_the_preimage_is_a_conflict() {
    let (world, changes) = world_with_staged();
    world.write_file("a", "staged by the user\n");
    world.run_git(&["add", "a"]);
    world.write_file("a", "a\n");
    let before = index_and_files(&world);
    let refused = world.deliver_changes(&changes).expect_err("refused");
    assert_eq!(conflict_reasons(&refused), [("a".to_owned(), Reason::IndexChanged)]);
    assert_eq!(index_and_files(&world), before);
}

#[test]
fn an_entry_that_changes_between_the_look_and_the_lock_is_a_conflict() {
    let (world, changes) = world_with_staged();
    let ready = world.prepare_delivery(&changes).expect("no conflict yet");
    world.run_git(&["update-index", "--force-remove", "a"]);
    let before = index_and_files(&world);
    let refused = world.execute_ready(ready).expect_err("refused");
    assert_eq!(conflict_reasons(&refused), [("a".to_owned(), Reason::IndexChanged)]);
    assert_eq!((index_and_files(&world), left_behind(&world)), (before, Vec::new()));
}

#[test]
fn nobody_elses_lock_is_touched() {
    let (world, _) = world_with_staged();
    let lock = world.path(".git/index.lock");
    world.write_file(".git/index.lock", "");
    let plan = crate::domain::delivery::receipt::IndexPlan {
        git_dir: world.path(".git"),
        lock: "tender-index-x".to_owned(),
        steps: Vec::new(),
    };
    let top = world.path("");
    let writer = crate::git::index_write::IndexWriter::new(world.repository.environment(), &plan, &top)
        .expect("opens");
    // The name of ours is there, and is another file.
    world.write_file(".git/tender-index-x", "");
    writer.clear_stale().expect("works");
    assert!(lock.exists() && !world.path(".git/tender-index-x").exists());
    let waited = std::thread::scope(|scope| {
        let waits = scope.spawn(|| writer.lock_index().map(|_| ()));
        std::thread::sleep(std::time::Duration::from_millis(100));
        std::fs::remove_file(&lock).expect("removed");
        waits.join().expect("no panic")
    });
    waited.expect("gets it");
    assert!(lock.exists());
    writer.clear_stale().expect("works");
    assert_eq!(left_behind(&world), [""; 0]);
}

#[test]
fn death_at_any_place_leaves_both_or_neither() {
    silence_panics();
    let (world, changes) = world_with_staged();
    let files = world.live_tree();
    reset_world(&world, &files);
    let before = index_and_files(&world);
    let total = count_operations(|| world.deliver_changes(&changes).map(|_| ()));
    let after = index_and_files(&world);
    let (mut forward, mut back) = (0, 0);
    for at in 1..=total {
        reset_world(&world, &files);
        assert!(
            run_with(InjectedFault::Die, at, || world.deliver_changes(&changes).map(|_| ())).is_none(),
            "{at} of {total}"
        );
        let unfinished = world.unfinished_delivery().expect("the plan is in the ledger");
        match world.recover_unfinished(&unfinished).expect("recovers") {
            Recovered::Completed { later, .. } => {
                assert_eq!((index_and_files(&world), later), (after.clone(), Vec::new()), "{at}");
                forward += 1;
            }
            Recovered::TakenBack { later, .. } => {
                assert_eq!((index_and_files(&world), later), (before.clone(), Vec::new()), "{at}");
                back += 1;
            }
        }
        assert_eq!(left_behind(&world), [""; 0], "{at}");
        world.deliver_changes(&changes).expect("delivers again");
        assert_eq!(index_and_files(&world), after, "{at}");
    }
    assert!(forward > 8 && back > 3, "{forward} {back}");
}

#[test]
fn a_failure_at_any_place_leaves_both_or_neither() {
    let (world, changes) = world_with_staged();
    let files = world.live_tree();
    reset_world(&world, &files);
    let before = index_and_files(&world);
    let total = count_operations(|| world.deliver_changes(&changes).map(|_| ()));
    for at in 1..=total {
        reset_world(&world, &files);
        let ended =
            run_with(InjectedFault::Fail(libc::ENOSPC), at, || world.deliver_changes(&changes).map(|_| ()));
        let failure = ended.expect("did not die").expect_err("failed");
        assert_eq!(failure.code(), Code::Io, "{at}: {failure:?}");
        if let Some(unfinished) = world.unfinished_delivery() {
            world.recover_unfinished(&unfinished).expect("recovers");
            continue;
        }
        assert_eq!((index_and_files(&world), left_behind(&world)), (before.clone(), Vec::new()), "{at}");
    }
}

#[test]
fn an_entry_that_the_user_changed_while_we_were_down_is_kept_and_named() {
    silence_panics();
    let (world, changes) = world_with_staged();
    let files = world.live_tree();
    let total = count_operations(|| world.deliver_changes(&changes).map(|_| ()));
    for at in 1..=total {
        reset_world(&world, &files);
        assert!(run_with(InjectedFault::Die, at, || world.deliver_changes(&changes).map(|_| ())).is_none());
        let unfinished = world.unfinished_delivery().expect("the plan is in the ledger");
        // The user removes the lock that a crash left, as everybody does.
        let _ = std::fs::remove_file(world.path(".git/index.lock"));
        let entry = format!("100644,{},a", world.run_git(&["hash-object", "-w", "mine"]).trim());
        world.run_git(&["update-index", "--cacheinfo", &entry]);
        let recovered = world.recover_unfinished(&unfinished).expect("recovers");
        let (Recovered::Completed { later, .. } | Recovered::TakenBack { later, .. }) = recovered;
        assert_eq!(world.run_git(&["show", ":a"]), "and edited further\n", "{at}");
        let named = later.iter().any(|path| path.to_string() == "a");
        assert!(named || unfinished.staged.is_none(), "{at}");
    }
    fault::arm_fault(None);
}
