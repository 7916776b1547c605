//! The comparison against a real tree: what counts as the preimage, what as the user's, and which bytes are
//! written.

use crate::domain::delivery::Reason;
use crate::domain::delivery::receipt::{Note, Outcome};
use crate::error::Code;
use crate::git::apply::tests::world::{World, conflict_reasons};

fn only_conflict_reason(world: &World, changes: &[crate::domain::change::patch::Change]) -> Reason {
    let before = world.live_tree();
    let index = std::fs::read(world.path(".git/index")).expect("an index");
    let refused = world.deliver_changes(changes).expect_err("a conflict");
    assert_eq!(world.live_tree(), before);
    assert_eq!(std::fs::read(world.path(".git/index")).expect("an index"), index, "the index is left alone");
    let reasons = conflict_reasons(&refused);
    assert_eq!(reasons.len(), 1, "{refused:?}");
    reasons[0].1
}

#[test]
fn content_decides_and_not_the_bits_of_the_index_nor_the_stat_cache() {
    for bit in ["--assume-unchanged", "--skip-worktree"] {
        let world = World::new(&[("a", "one\n"), ("b", "b\n")]);
        let changes = world.edit_candidate(|w| w.write_file("a", "two\n"));
        world.run_git(&["update-index", bit, "a"]);
        world.write_file("a", "ONE\n");
        assert_eq!(only_conflict_reason(&world, &changes), Reason::Edited);
        world.write_file("a", "one\n");
        world.deliver_changes(&changes).expect("the content is the preimage");
    }
    let world = World::new(&[("a", "one\n")]);
    let changes = world.edit_candidate(|w| w.write_file("a", "two\n"));
    world.run_git(&["config", "core.trustctime", "false"]);
    world.run_git(&["config", "core.checkStat", "minimal"]);
    let stamp = world.path("a").metadata().expect("there").modified().expect("known");
    world.write_file("a", "ONE\n");
    std::fs::File::options()
        .write(true)
        .open(world.path("a"))
        .expect("opens")
        .set_modified(stamp)
        .expect("sets");
    assert_eq!(only_conflict_reason(&world, &changes), Reason::Edited);
}

#[test]
fn the_index_is_asked_too() {
    let world = World::new(&[("a", "one\n"), ("b", "b\n")]);
    let changes = world.edit_candidate(|w| w.write_file("a", "two\n"));
    world.write_file("a", "staged\n");
    world.run_git(&["add", "a"]);
    world.write_file("a", "one\n");
    assert_eq!(only_conflict_reason(&world, &changes), Reason::IndexChanged);
    world.run_git(&["add", "a"]);
    world.deliver_changes(&changes).expect("delivers");

    let created = world.edit_candidate(|w| w.write_file("n", "n\n"));
    world.write_file("n", "");
    world.run_git(&["add", "-N", "n"]);
    std::fs::remove_file(world.path("n")).expect("removes");
    assert_eq!(only_conflict_reason(&world, &created), Reason::IntentToAdd);
}

#[test]
fn untracked_and_ignored_files_are_the_users() {
    let world = World::new(&[("a", "a\n"), (".gitignore", ".env\n")]);
    let changes = world.edit_candidate(|w| w.write_file(".env", "SECRET=1\n"));
    world.write_file(".env", "SECRET=mine\n");
    let refused = world.deliver_changes(&changes).expect_err("a conflict");
    assert_eq!(conflict_reasons(&refused)[0].1, Reason::Appeared);
    assert!(!format!("{refused:?}").contains("mine"), "the content is not printed");
    world.write_file(".env", "SECRET=1\n");
    let receipt = world.deliver_changes(&changes).expect("it is there");
    assert_eq!(receipt.paths[0].outcome, Outcome::Already);
}

#[test]
fn a_checkout_with_other_line_ends_is_no_conflict_and_keeps_them() {
    let blob = "1\n2\n3\n4\n5\n";
    let cases = [
        ("1\r\n2\r\n3\r\n4\r\n5\r\n", "1\r\n2\r\nX\r\n4\r\n5\r\n"),
        ("1\n2\n3\n4\n5\n", "1\n2\nX\n4\n5\n"),
        ("1\r\n2\n3\n4\r\n5\r\n", "1\r\n2\nX\r\n4\r\n5\r\n"),
    ];
    for (live, delivered) in cases {
        for attributes in ["", "* text=auto eol=crlf\n", "*.bat eol=crlf\n"] {
            let world = World::new(&[("a.bat", blob), (".gitattributes", attributes)]);
            if attributes.is_empty() {
                world.run_git(&["config", "core.autocrlf", "true"]);
            }
            let changes = world.edit_candidate(|w| w.write_file("a.bat", "1\n2\nX\n4\n5\n"));
            world.write_file("a.bat", live);
            world.deliver_changes(&changes).expect("delivers");
            let now = world.live_tree()["a.bat"].1.clone();
            assert_eq!(String::from_utf8_lossy(&now), delivered, "{attributes:?}");
            assert_eq!(
                world.run_git(&["hash-object", "a.bat"]).trim(),
                changes[0].new.as_ref().expect("new").git_blob.as_str()
            );
        }
    }
}

#[test]
fn an_attribute_file_and_a_file_in_one_patch_follow_the_new_attributes() {
    let world = World::new(&[("a.txt", "1\n2\n"), ("b.txt", "b\n")]);
    let changes = world.edit_candidate(|w| {
        w.write_file(".gitattributes", "*.txt eol=crlf\n");
        w.write_file("a.txt", "1\n2\n3\n");
        w.write_file("c.txt", "c\n");
    });
    world.deliver_changes(&changes).expect("delivers");
    let tree = world.live_tree();
    assert_eq!(tree["a.txt"].1, b"1\r\n2\r\n3\r\n");
    assert_eq!(tree["c.txt"].1, b"c\r\n");
    assert_eq!(tree["b.txt"].1, b"b\n");
    let again = world.deliver_changes(&changes).expect("again");
    assert!(again.paths.iter().all(|p| p.outcome == Outcome::Already));
}

#[test]
fn encodings_idents_and_drivers_are_gits() {
    let utf16 = |text: &str| -> Vec<u8> {
        [0xff, 0xfe].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect()
    };
    let world = World::new(&[
        ("u.txt", "ä\n"),
        ("i.c", "$Id$\nx\n"),
        ("f.up", "low\n"),
        (".gitattributes", "u.txt working-tree-encoding=UTF-16LE-BOM\n*.c ident\n*.up filter=up\n"),
    ]);
    world.run_git(&["config", "filter.up.clean", "tr A-Z a-z"]);
    world.run_git(&["config", "filter.up.smudge", "tr a-z A-Z"]);
    let changes = world.edit_candidate(|w| {
        w.write_file("u.txt", "ö\n");
        w.write_file("i.c", "$Id$\ny\n");
        w.write_file("f.up", "lower\n");
    });
    std::fs::remove_file(world.path("u.txt")).expect("removes");
    world.run_git(&["checkout", "--", "u.txt"]);
    for name in ["i.c", "f.up"] {
        std::fs::remove_file(world.path(name)).expect("removes");
        world.run_git(&["checkout", "--", name]);
    }
    assert_eq!(world.live_tree()["f.up"].1, b"LOW\n");
    world.deliver_changes(&changes).expect("no false conflict");
    let tree = world.live_tree();
    assert_eq!(tree["u.txt"].1, utf16("ö\n"));
    assert_eq!(tree["f.up"].1, b"LOWER\n");
    assert!(String::from_utf8_lossy(&tree["i.c"].1).starts_with("$Id: "), "{:?}", tree["i.c"]);
    assert!(world.run_git(&["diff", "--stat"]).contains("u.txt"));
    world.write_file("u.txt", "not that encoding");
    let further = world.edit_candidate(|w| w.write_file("u.txt", "ü\n"));
    assert_eq!(only_conflict_reason(&world, &further), Reason::Edited);
}

#[test]
fn an_edit_of_another_line_is_mergeable_and_still_refused() {
    let world = World::new(&[("a", "1\n2\n3\n4\n5\n6\n7\n8\n")]);
    let changes = world.edit_candidate(|w| w.write_file("a", "1\n2\n3\n4\n5\n6\nX\n8\n"));
    for (live, mergeable) in [("1\nmine\n3\n4\n5\n6\n7\n8\n", true), ("1\n2\n3\n4\n5\n6\nmine\n8\n", false)] {
        world.write_file("a", live);
        let refused = world.deliver_changes(&changes).expect_err("edited");
        assert_eq!(refused.details()["conflicts"][0]["mergeable"], mergeable);
    }
}

#[test]
fn nested_repositories_collisions_and_links_on_the_way_are_refused() {
    let world = World::new(&[("sub/a", "a\n"), ("docs/b", "b\n"), ("Straße", "s\n")]);
    let nested = world.edit_candidate(|w| w.write_file("sub/x", "x\n"));
    std::fs::create_dir(world.path("sub/.git")).expect("creates");
    assert_eq!(only_conflict_reason(&world, &nested), Reason::NestedRepository);
    std::fs::remove_dir(world.path("sub/.git")).expect("removes");
    for name in ["DOCS/c", "docs/B", "STRAßE"] {
        let changes = world.edit_candidate(|w| w.write_file(name, "x\n"));
        assert_eq!(only_conflict_reason(&world, &changes), Reason::Collision, "{name}");
    }
    let renamed = world.edit_candidate(|w| {
        w.remove_path("docs");
        w.write_file("Docs/b", "b\n");
    });
    world.deliver_changes(&renamed).expect("a rename in case only is not a collision");
    std::fs::rename(world.path("sub"), world.path("real")).expect("moves");
    world.make_link("sub", "real");
    let changes = world.edit_candidate(|w| w.write_file("sub/a", "A\n"));
    assert_eq!(only_conflict_reason(&world, &changes), Reason::ParentIsLink);
}

#[test]
fn outside_the_sparse_cone_is_refused_but_a_present_file_is_compared() {
    let world = World::new(&[("in/a", "a\n"), ("out/b", "b\n"), ("top", "t\n")]);
    let changed = world.edit_candidate(|w| w.write_file("out/b", "B\n"));
    world.run_git(&["sparse-checkout", "set", "--cone", "in"]);
    assert!(!world.path("out").exists());
    assert_eq!(only_conflict_reason(&world, &changed), Reason::OutsideSparse);
    world.write_file("out/b", "b\n");
    world.deliver_changes(&changed).expect("it is there, and it is the preimage");
    let created = world.edit_candidate(|w| w.write_file("out/new", "n\n"));
    assert_eq!(only_conflict_reason(&world, &created), Reason::OutsideSparse);
    let inside = world.edit_candidate(|w| w.write_file("in/new", "n\n"));
    world.deliver_changes(&inside).expect("inside");
}

#[test]
fn an_unfinished_merge_or_rebase_is_refused_where_it_touches_the_paths() {
    let world = World::new(&[("a", "a\n"), ("b", "b\n"), ("c", "c\n")]);
    let changes = world.edit_candidate(|w| w.write_file("a", "A\n"));
    let branch = world.run_git(&["symbolic-ref", "--short", "HEAD"]);
    world.run_git(&["checkout", "-q", "-b", "other"]);
    world.write_file("b", "other\n");
    world.write_file("c", "other\n");
    world.run_git(&["commit", "-qam", "other"]);
    world.run_git(&["checkout", "-q", branch.trim()]);
    world.write_file("c", "ours\n");
    world.run_git(&["commit", "-qam", "ours"]);
    world.run_git(&["config", "merge.ff", "false"]);
    world.try_git(&["merge", "-q", "other"]);
    assert!(world.path(".git/MERGE_HEAD").exists());
    let touched = world.edit_candidate(|w| w.write_file("b", "B\n"));
    let refused = world.deliver_changes(&touched).expect_err("a merge");
    assert_eq!(refused.code(), Code::DeliveryConflict);
    assert_eq!(refused.details()["operation"], "merge");
    world.deliver_changes(&changes).expect("the merge does not touch it");
}

#[test]
fn with_file_mode_off_the_bit_on_disk_says_nothing() {
    for file_mode in ["true", "false"] {
        let world = World::new(&[("a", "a\n"), ("b", "b\n")]);
        // A repository reads its configuration once.
        world.run_git(&["config", "core.fileMode", file_mode]);
        let changes = world.edit_candidate(|w| w.write_file("a", "A\n"));
        world.set_mode("a", 0o755);
        if file_mode == "true" {
            assert_eq!(only_conflict_reason(&world, &changes), Reason::ModeChanged);
        } else {
            world.deliver_changes(&changes).expect("delivers");
            assert_eq!(world.mode_of("a"), 0o755);
        }
    }
}

#[test]
fn strange_names_and_many_paths_work() {
    let names: Vec<String> = (0..230).map(|n| format!("many/f{n}")).collect();
    let mut files: Vec<(&str, &str)> = names.iter().map(|n| (n.as_str(), "x\n")).collect();
    files.extend([
        ("sp ace", "x\n"),
        ("new\nline", "x\n"),
        ("ümlaut", "x\n"),
        ("-dash", "x\n"),
        ("*", "x\n"),
        (":(top)x", "x\n"),
    ]);
    let world = World::new(&files);
    for (name, _) in files.iter().rev().take(8) {
        let changes = world.edit_candidate(|w| w.write_file(name, "y\n"));
        world.deliver_changes(&changes).expect(name);
    }
    let all = world.edit_candidate(|w| files.iter().for_each(|(name, _)| w.write_file(name, "y\n")));
    let receipt = world.deliver_changes(&all).expect("delivers");
    assert_eq!(receipt.paths.len(), files.len());
    assert!(world.live_tree().values().all(|(_, bytes)| bytes == b"y\n"));
}

#[test]
fn with_file_mode_off_a_bit_that_was_not_set_is_not_said_to_be() {
    let world = World::new(&[("mode", "a\n"), ("both", "b\n")]);
    world.run_git(&["config", "core.fileMode", "no"]);
    let changes = world.edit_candidate(|w| {
        w.set_mode("mode", 0o755);
        w.write_file("both", "B\n");
        w.set_mode("both", 0o755);
    });
    let receipt = world.deliver_changes(&changes).expect("delivers");
    let outcomes: Vec<_> = receipt.paths.iter().map(|p| (p.outcome, p.notes.clone())).collect();
    let left = vec![Note::ExecutableBitLeft];
    assert_eq!(outcomes, [(Outcome::Applied, left.clone()), (Outcome::Already, left)]);
    assert_eq!((world.mode_of("mode"), world.mode_of("both")), (0o644, 0o644));
    let undone = world.undo_receipt(&receipt).expect("goes back");
    assert_eq!(undone.paths.len(), 1);
    assert_eq!(std::fs::read(world.path("both")).expect("reads"), b"b\n");
}

/// A driver that fails says so; a git that is gone says nothing, and nobody knows what the file holds.
#[test]
fn a_conversion_that_broke_off_is_no_conflict() {
    for edits in [true, false] {
        let world = World::new(&[("a", "one\n"), (".gitattributes", "a filter=own\n")]);
        let changes = world.edit_candidate(|w| match edits {
            true => w.write_file("a", "two\n"),
            false => w.remove_path("a"),
        });
        world.write_file("a", "ONE\n");
        world.run_git(&["config", "filter.own.clean", "false"]);
        assert_eq!(only_conflict_reason(&world, &changes), Reason::Edited);
        world.run_git(&["config", "filter.own.clean", "kill -9 $PPID"]);
        let before = world.live_tree();
        let refused = world.deliver_changes(&changes).expect_err("git is killed");
        assert_eq!((refused.code(), refused.subject_text()), (Code::Io, Some("a")), "{refused:?}");
        assert_eq!(world.live_tree(), before);
    }
}
