//! Deliveries into real trees: what is written, what is kept, and what is left after a crash, a failure or a
//! race at any place.

mod barred;
mod crash;
mod interleave;
mod race;
mod staged;
pub(crate) mod world;

use crate::domain::delivery::Reason;
use crate::domain::delivery::receipt::{Note, Outcome};
use crate::git::beneath::Folder;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use world::{World, conflict_reasons};

#[test]
fn everything_a_patch_can_do_is_done_and_done_once() {
    let world = World::new(&[("a.txt", "one\n"), ("d/x", "x\n"), ("run", "#!\n"), ("keep", "k\n")]);
    let changes = world.edit_candidate(|w| {
        w.write_file("a.txt", "two\n");
        w.remove_path("d/x");
        w.set_mode("run", 0o755);
        w.write_file("new/deep/file", "n\n");
        w.make_link("l", "a.txt");
    });
    world.write_file("keep", "edited by the user\n");
    let receipt = world.deliver_changes(&changes).expect("delivers");
    assert!(receipt.paths.iter().all(|p| p.outcome == Outcome::Applied), "{receipt:#?}");
    let tree = world.live_tree();
    assert_eq!(tree["a.txt"].1, b"two\n");
    assert_eq!(tree["new/deep/file"].1, b"n\n");
    assert_eq!(tree["l"].1, b"a.txt");
    assert_eq!(tree["keep"].1, b"edited by the user\n");
    assert!(!tree.contains_key("d/x") && !world.path("d").exists());
    assert_eq!(world.mode_of("run"), 0o755);
    let again = world.deliver_changes(&changes).expect("again");
    assert!(again.paths.iter().all(|p| p.outcome == Outcome::Already));
    assert_eq!(world.live_tree(), tree);
}

/// Without a move to a free name there would be no way back: found out before anything of the user's moves.
#[test]
fn a_mount_without_a_way_back_is_refused_before_it_is_touched() {
    let edits: [fn(&world::Editor); 3] =
        [|w| w.write_file("a", "A\n"), |w| w.write_file("new/file", "n\n"), |w| w.remove_path("a")];
    for edit in edits {
        let world = World::new(&[("a", "a\n"), ("b", "b\n")]);
        let changes = world.edit_candidate(edit);
        let before = world.live_tree();
        crate::git::beneath::fault::bare_file_system(true);
        let refused = world.deliver_changes(&changes);
        crate::git::beneath::fault::bare_file_system(false);
        assert_eq!(refused.expect_err("refused").code(), crate::error::Code::NotSupported);
        assert_eq!(world.live_tree(), before);
        assert_eq!(world.journal_ends(), "taken_back");
        world.deliver_changes(&changes).expect("delivers elsewhere");
    }
}

#[test]
fn a_file_keeps_its_bits_its_attributes_and_its_partner() {
    let world = World::new(&[("secret", "one\n"), ("pair", "one\n")]);
    let changes = world.edit_candidate(|w| {
        w.write_file("secret", "two\n");
        w.write_file("pair", "two\n");
    });
    world.set_mode("secret", 0o600);
    let secret = std::fs::File::open(world.path("secret")).expect("opens");
    rustix::fs::fsetxattr(&secret, "user.note", b"mine", rustix::fs::XattrFlags::empty())
        .expect("attributes");
    std::fs::hard_link(world.path("pair"), world.home.outside().join("partner")).expect("links");
    let receipt = world.deliver_changes(&changes).expect("delivers");
    assert_eq!(world.mode_of("secret"), 0o600);
    let secret = std::fs::File::open(world.path("secret")).expect("opens");
    let mut value = [0u8; 16];
    let length = rustix::fs::fgetxattr(&secret, "user.note", &mut value[..]).expect("reads");
    assert_eq!(&value[..length], b"mine");
    assert_eq!(std::fs::read(world.home.outside().join("partner")).expect("reads"), b"one\n");
    assert_eq!(receipt.paths[0].notes, [Note::HardLinkBroken]);
}

#[test]
fn a_file_becomes_a_directory_and_back() {
    let world = World::new(&[("a", "file\n"), ("d/x", "x\n"), ("d/s/y", "y\n"), ("l", "file\n")]);
    let before = world.live_tree();
    let changes = world.edit_candidate(|w| {
        w.remove_path("a");
        w.write_file("a/b/c", "inner\n");
        w.remove_path("d");
        w.write_file("d", "now a file\n");
        w.remove_path("l");
        w.make_link("l", "a/b/c");
    });
    let receipt = world.deliver_changes(&changes).expect("delivers");
    let tree = world.live_tree();
    assert_eq!(tree["a/b/c"].1, b"inner\n");
    assert_eq!(tree["d"].1, b"now a file\n");
    assert_eq!(tree["l"], ("link".to_owned(), b"a/b/c".to_vec()));
    assert_eq!(tree.len(), 3);
    world.undo_receipt(&receipt).expect("undoes");
    assert_eq!(world.live_tree(), before);
}

#[test]
fn undo_brings_the_former_bytes_back_and_refuses_what_was_edited_since() {
    let world = World::new(&[("a", "1\n2\n3\n"), ("b", "b\n")]);
    world.run_git(&["config", "core.autocrlf", "true"]);
    world.write_file("a", "1\r\n2\n3\r\n");
    world.set_mode("b", 0o640);
    let before = world.live_tree();
    let changes = world.edit_candidate(|w| {
        w.write_file("a", "1\n2\nx\n3\n");
        w.remove_path("b");
    });
    let receipt = world.deliver_changes(&changes).expect("delivers");
    assert_eq!(world.live_tree()["a"].1, b"1\r\n2\nx\r\n3\r\n");
    world.write_file("a", "1\r\n2\nx\r\n3\r\nmine\r\n");
    let edited = world.live_tree();
    let refused = world.undo_receipt(&receipt).expect_err("edited since");
    assert_eq!(conflict_reasons(&refused), [("a".to_owned(), Reason::Edited)]);
    assert_eq!(world.live_tree(), edited);
    world.write_file("a", "1\r\n2\nx\r\n3\r\n");
    world.run_git(&["add", "a"]);
    let undone = world.undo_receipt(&receipt).expect("undoes");
    assert!(undone.paths.iter().all(|p| p.outcome == Outcome::Reverted));
    assert_eq!(world.live_tree(), before);
    assert_eq!(world.mode_of("b"), 0o640);
}

#[test]
fn one_conflict_of_five_and_none_is_written_but_all_are_listed() {
    let names = ["p1", "p2", "p3", "p4", "p5"];
    let files: Vec<(&str, &str)> = names.iter().map(|n| (*n, "base\n")).collect();
    let world = World::new(&files);
    let changes = world.edit_candidate(|w| names.iter().for_each(|n| w.write_file(n, "changed\n")));
    world.write_file("p4", "mine\n");
    std::fs::remove_file(world.path("p2")).expect("removes");
    let before = world.live_tree();
    let refused = world.deliver_changes(&changes).expect_err("conflicts");
    assert_eq!(
        conflict_reasons(&refused),
        [("p2".to_owned(), Reason::Missing), ("p4".to_owned(), Reason::Edited)]
    );
    assert_eq!(world.live_tree(), before);
}

#[test]
fn what_happens_between_the_look_and_the_write_is_found_and_left() {
    type Meddle = fn(&World);
    let cases: &[(&str, Meddle, Reason)] = &[
        ("edited", |w| w.write_file("d/b", "mine\n"), Reason::Edited),
        ("removed", |w| std::fs::remove_file(w.path("d/b")).expect("removes"), Reason::Missing),
        ("executable", |w| w.set_mode("d/b", 0o755), Reason::ModeChanged),
        (
            "a link",
            |w| {
                std::fs::remove_file(w.path("d/b")).expect("removes");
                w.make_link("d/b", "../a");
            },
            Reason::TypeChanged,
        ),
        (
            "a directory",
            |w| {
                std::fs::remove_file(w.path("d/b")).expect("removes");
                w.write_file("d/b/inner", "mine\n");
            },
            Reason::TypeChanged,
        ),
        (
            "parent is a link",
            |w| {
                std::fs::rename(w.path("d"), w.path("elsewhere")).expect("moves");
                w.make_link("d", "elsewhere");
            },
            Reason::ParentIsLink,
        ),
        ("appeared", |w| w.write_file("z/new", "mine\n"), Reason::Appeared),
    ];
    for plain in [false, true] {
        for (name, meddle, reason) in cases {
            let world = World::new(&[("a", "a\n"), ("d/b", "b\n"), ("gone", "g\n")]);
            let changes = world.edit_candidate(|w| {
                w.write_file("a", "A\n");
                w.write_file("d/b", "B\n");
                w.remove_path("gone");
                w.write_file("z/new", "new\n");
            });
            let ready = world.prepare_delivery(&changes).expect("no conflict yet");
            meddle(&world);
            let before = world.live_tree();
            crate::git::beneath::fault::plain_file_system(plain);
            let refused = world.execute_ready(ready);
            crate::git::beneath::fault::plain_file_system(false);
            let refused = refused.expect_err(name);
            let expected = conflict_reasons(&refused);
            assert_eq!(expected.len(), 1, "{name}: {refused:?}");
            assert_eq!(expected[0].1, *reason, "{name}");
            assert_eq!(world.live_tree(), before, "{name}");
            let ends = world.journal_ends();
            assert_eq!(ends, "taken_back", "{name}");
        }
    }
}

#[test]
fn a_directory_that_is_moved_in_the_middle_takes_nothing_along() {
    let world = World::new(&[("d/a", "a\n"), ("d/b", "b\n"), ("e", "e\n")]);
    let changes = world.edit_candidate(|w| {
        w.write_file("d/a", "A\n");
        w.write_file("d/b", "B\n");
        w.write_file("e", "E\n");
    });
    let ready = world.prepare_delivery(&changes).expect("no conflict yet");
    let (from, to) = (world.path("d"), world.path("moved"));
    let mut exchanges = 0;
    crate::git::beneath::fault::set_hook(Some(Box::new(move |point| {
        exchanges += usize::from(point == "exchange");
        if point == "exchange" && exchanges == 2 {
            std::fs::rename(&from, &to).expect("moves");
        }
    })));
    let refused = world.execute_ready(ready);
    crate::git::beneath::fault::set_hook(None);
    assert_eq!(conflict_reasons(&refused.expect_err("moved"))[0].1, Reason::Missing);
    let tree = world.live_tree();
    assert_eq!(tree["moved/a"].1, b"a\n");
    assert_eq!(tree["moved/b"].1, b"b\n");
    assert_eq!(tree["e"].1, b"e\n");
    assert_eq!(tree.len(), 3);
}

#[test]
fn an_open_writer_is_a_conflict() {
    let world = World::new(&[("a", "a\n"), ("b", "b\n")]);
    let changes = world.edit_candidate(|w| {
        w.write_file("a", "A\n");
        w.remove_path("b");
    });
    for name in ["a", "b"] {
        let before = world.live_tree();
        let writer = std::fs::File::options().append(true).open(world.path(name)).expect("opens");
        let refused = world.deliver_changes(&changes).expect_err("open");
        assert_eq!(conflict_reasons(&refused), [(name.to_owned(), Reason::OpenForWriting)]);
        assert_eq!(world.live_tree(), before);
        drop(writer);
    }
    world.deliver_changes(&changes).expect("now it works");
}

#[test]
fn a_file_in_the_way_of_a_directory_and_a_read_only_directory_change_nothing() {
    let world = World::new(&[("a", "a\n"), ("d/b", "b\n")]);
    let changes = world.edit_candidate(|w| {
        w.write_file("a", "A\n");
        w.write_file("n/x", "x\n");
    });
    let ready = world.prepare_delivery(&changes).expect("no conflict yet");
    world.write_file("n", "mine\n");
    let before = world.live_tree();
    let refused = world.execute_ready(ready).expect_err("in the way");
    assert_eq!(conflict_reasons(&refused)[0].1, Reason::ParentIsFile);
    assert_eq!(world.live_tree(), before);
}

#[test]
fn new_files_get_what_the_umask_leaves() {
    let world = World::new(&[("a", "a\n")]);
    let changes = world.edit_candidate(|w| {
        w.write_file("n", "n\n");
        w.write_file("x", "x\n");
        w.set_mode("x", 0o755);
    });
    std::fs::set_permissions(world.path(""), std::fs::Permissions::from_mode(0o2775)).expect("sets");
    world.deliver_changes(&changes).expect("delivers");
    let plain = world.home.outside().join("plain");
    std::fs::File::create(&plain).expect("creates");
    assert_eq!(world.mode_of("n"), plain.metadata().expect("there").mode() & 0o7777);
    assert_eq!(world.mode_of("x") & 0o111, (world.mode_of("n") & 0o444) >> 2);
}

/// Empty directories are in nobody's way, and there may be any number of them in one another.
#[test]
fn a_file_takes_the_place_of_a_directory_however_deep_that_is() {
    let world = World::new(&[("d/x", "x\n")]);
    let changes = world.edit_candidate(|w| {
        w.remove_path("d");
        w.write_file("d", "a file\n");
    });
    let mut at = Folder::open_path(&world.path("d")).expect("opens");
    for _ in 0..5000 {
        at = at.make_subfolder(b"e").expect("made");
    }
    world.deliver_changes(&changes).expect("delivers");
    assert_eq!(std::fs::read_to_string(world.path("d")).expect("a file"), "a file\n");
    assert_eq!(std::fs::read_dir(world.path("")).expect("lists").count(), 2, "nothing is left beside it");
}
