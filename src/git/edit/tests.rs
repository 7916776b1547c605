//! An edit is written byte for byte or not at all, and reaches nothing outside of the worktree.

#![expect(clippy::disallowed_methods, reason = "the tests write as anybody would, and read how long to race")]

use super::*;
use crate::domain::value::digest::TreeObject;
use crate::git::apply::tests::world::World;
use crate::git::beneath::fault::{self, InjectedFault};
use std::os::unix::fs::MetadataExt;

fn repo_path(text: &str) -> RepoPath {
    RepoPath::new(text).expect("a path")
}

fn open_worktree(world: &World) -> Worktree<'_> {
    Worktree::open_worktree(&world.repository, &world.path("")).expect("opens")
}

fn bytes_at(world: &World, path: &str) -> Option<Vec<u8>> {
    std::fs::read(world.path(path)).ok()
}

/// An edit of some paths, from what lies there now; `None` deletes.
fn prepare_edits(world: &World, edits: &[(&str, Option<&str>)]) -> Result<PreparedEdit> {
    let worktree = open_worktree(world);
    let edit = |(name, new): &(&str, Option<&str>)| -> Result<Edit> {
        let seen = worktree.look_at(&repo_path(name))?;
        let permissions = match &seen.file {
            Some(present) => present.with_executable(None),
            None => BodyPermissions::New { executable: false },
        };
        let new = new.map(|text| NewFile { bytes: text.as_bytes().to_vec(), permissions });
        Ok(Edit { path: repo_path(name), seen, new })
    };
    let edits = edits.iter().map(edit).collect::<Result<_>>()?;
    worktree.prepare_edit(edits)
}

#[test]
fn bytes_are_raw_and_permissions_stay() {
    let world = World::new(&[("a", "1\n"), ("x/b", "2\n"), ("gone/c", "3\n")]);
    world.write_file(".gitattributes", "* text eol=crlf filter=upper\n");
    world.run_git(&["config", "filter.upper.clean", "tr a-z A-Z"]);
    world.run_git(&["config", "core.autocrlf", "true"]);
    world.write_file("a", "one\r\ntwo\n");
    world.set_mode("a", 0o750);
    world.set_mode("x/b", 0o604);
    let edits =
        [("a", Some("uno\r\ndue\n")), ("x/b", Some("b\n")), ("gone/c", None), ("new/d/e", Some("neu\n"))];
    let prepared = prepare_edits(&world, &edits).expect("ready");
    let changes = prepared.changes.clone();
    world.execute_edit(prepared).expect("written");
    assert_eq!(bytes_at(&world, "a"), Some(b"uno\r\ndue\n".to_vec()));
    assert_eq!((world.mode_of("a"), world.mode_of("x/b")), (0o750, 0o604));
    assert_eq!(bytes_at(&world, "new/d/e"), Some(b"neu\n".to_vec()));
    assert!(!world.path("gone").exists());
    open_worktree(&world).confirm_written(&changes).expect("as written");
    let id = world.repository.format().blob_id(b"uno\r\ndue\n").expect("an id");
    let first = changes.iter().find(|change| change.path == repo_path("a")).expect("listed");
    assert_eq!(
        first.new.as_ref().map(FileState::tree_object),
        Some(TreeObject { mode: Mode::Executable, id })
    );
    world.write_file("a", "later\n");
    let failure = open_worktree(&world).confirm_written(&changes).expect_err("changed again");
    assert_eq!((failure.code(), failure.subject_text()), (Code::VersionConflict, Some("a")));
}

#[test]
fn what_is_not_the_worktrees_alone_is_out_of_scope() {
    let world = World::new(&[("f", "1\n"), ("d/in", "1\n")]);
    std::fs::create_dir(world.home.outside().join("outside")).expect("made");
    std::fs::write(world.home.outside().join("outside/secret"), "s").expect("written");
    world.make_link("link", "../outside");
    world.make_link("file", "../outside/secret");
    world.make_link("dangling", "nowhere");
    std::fs::hard_link(world.home.outside().join("outside/secret"), world.path("hard")).expect("linked");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        world.path("pipe"),
        FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .expect("a pipe");
    world.write_file("nested/.git/HEAD", "x");
    world.write_file("nested/f", "x");
    let refused =
        ["link/secret", "link/new", "file", "dangling", "hard", "pipe", "d", "nested/f", "nested/new"];
    for name in refused {
        let failure = open_worktree(&world).look_at(&repo_path(name)).expect_err(name);
        assert_eq!(failure.code(), Code::ScopeViolation, "{name}: {failure}");
        assert_eq!(failure.subject_text(), Some(name));
    }
    let failure = prepare_edits(&world, &[("f/below", Some("x"))]).expect_err("a file is in the way");
    assert_eq!(failure.code(), Code::PatchInvalid, "{failure}");
    let failure = prepare_edits(&world, &[("D/new", Some("x"))]).expect_err("another spelling");
    assert_eq!(failure.code(), Code::PatchInvalid, "{failure}");
    let big = std::fs::File::create(world.path("big")).expect("made");
    big.set_len(LARGEST + 1).expect("grows");
    open_worktree(&world).look_at(&repo_path("big")).expect_err("too large");
}

#[test]
fn a_file_makes_room_for_a_directory() {
    let world = World::new(&[("f", "1\n")]);
    world
        .execute_edit(prepare_edits(&world, &[("f", None), ("f/g", Some("2\n"))]).expect("ready"))
        .expect("written");
    assert_eq!(bytes_at(&world, "f/g"), Some(b"2\n".to_vec()));
}

#[test]
fn what_changed_since_the_look_stays_and_nothing_is_written() {
    let world = World::new(&[("a", "1\n"), ("b", "2\n")]);
    let ready =
        prepare_edits(&world, &[("a", Some("x\n")), ("b", Some("y\n")), ("c", Some("z\n"))]).expect("ready");
    world.write_file("b", "edited\n");
    let failure = as_version_conflict(world.execute_edit(ready).expect_err("a conflict"));
    assert_eq!((failure.code(), failure.subject_text()), (Code::VersionConflict, Some("b")));
    assert_eq!(bytes_at(&world, "a"), Some(b"1\n".to_vec()));
    assert_eq!(bytes_at(&world, "b"), Some(b"edited\n".to_vec()));
    assert_eq!(bytes_at(&world, "c"), None);
    assert_eq!(world.journal_ends(), "taken_back");
}

#[test]
fn killed_anywhere_it_is_whole_or_not_at_all_after_recovery() {
    let edits = [("a", Some("x\n")), ("b", None), ("n/c", Some("z\n"))];
    let mut completed = 0;
    for at in 1..400 {
        let world = World::new(&[("a", "1\n"), ("b", "2\n")]);
        let before = world.live_tree();
        let ready = prepare_edits(&world, &edits).expect("ready");
        fault::arm_fault(Some((at, InjectedFault::Die)));
        let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.execute_edit(ready)));
        let reached = fault::count_operations() >= at;
        fault::arm_fault(None);
        if !reached {
            run.expect("not killed").expect("written");
            assert!(completed > 3, "only {completed} deaths were completed");
            return;
        }
        if let Some(unfinished) = world.unfinished_delivery() {
            world.recover_unfinished(&unfinished).expect("recovers");
        }
        let after = world.live_tree();
        let content = |name: &str| after.get(name).map(|(_, bytes)| bytes.as_slice());
        let whole = content("a") == Some(b"x\n")
            && content("b").is_none()
            && content("n/c") == Some(b"z\n")
            && after.len() == 2;
        assert!(whole || after == before, "killed at {at}: {after:?}");
        completed += usize::from(whole);
    }
    panic!("it never ended");
}

/// `TENDER_RACE_SWAPS` times, or few: a directory and a link out of the worktree change places all the time.
#[test]
fn a_directory_that_becomes_a_link_leads_nowhere() {
    let rounds: usize = std::env::var("TENDER_RACE_SWAPS").ok().and_then(|n| n.parse().ok()).unwrap_or(2_000);
    let world = World::new(&[("d/f", "inside\n")]);
    let outside = world.home.outside().join("outside");
    std::fs::create_dir(&outside).expect("made");
    std::fs::write(outside.join("f"), "outside\n").expect("written");
    world.make_link("l", "../outside");
    let (one, other) = (world.path("d"), world.path("l"));
    let stop = std::sync::atomic::AtomicBool::new(false);
    let swapped = std::thread::scope(|scope| {
        let swapper = scope.spawn(|| {
            let mut swaps = 0usize;
            let cwd = rustix::fs::CWD;
            // An even number of times, so that everything is where it was.
            while swaps < rounds || !stop.load(std::sync::atomic::Ordering::Relaxed) || swaps % 2 == 1 {
                rustix::fs::renameat_with(cwd, &one, cwd, &other, rustix::fs::RenameFlags::EXCHANGE)
                    .expect("swaps");
                swaps += 1;
            }
            swaps
        });
        let mut number = 0;
        while number < rounds / 20 || (!swapper.is_finished() && number < rounds / 10) {
            number += 1;
            if let Ok(seen) = open_worktree(&world).look_at(&repo_path("d/f"))
                && let Some(file) = seen.file
            {
                assert!(!file.bytes.starts_with(b"outside"), "read through a link");
            }
            let text = format!("inside {number}\n");
            let new = format!("d/new{number}");
            if let Ok(ready) = prepare_edits(&world, &[("d/f", Some(&text)), (&new, Some("n"))]) {
                drop(world.execute_edit(ready));
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        swapper.join().expect("ends")
    });
    assert!(swapped >= rounds);
    let names: Vec<_> =
        std::fs::read_dir(&outside).expect("lists").map(|entry| entry.expect("one").file_name()).collect();
    assert_eq!(names, ["f"], "something was written outside");
    assert_eq!(std::fs::read(outside.join("f")).expect("there"), b"outside\n");
    assert_eq!(outside.join("f").metadata().expect("there").nlink(), 1);
}
