//! `undo`: the delivery reversed by the same rules.

use super::deliver::delivery_shape;
use crate::support::repo::{LINES, lines_with};
use crate::support::snapshot::same_tree;
use crate::support::{Contract, Lab, Repo, shape};

fn delivered(lab: &Lab) -> Repo<'_> {
    let repo = lab.repo("app");
    repo.write("gone/deep/x.txt", "goes\n");
    repo.commit("gone");
    repo.submitted(&Contract::new("t1"), |task| {
        task.write("docs/a.md", lines_with(5, "five"));
        task.write("new/deep/file.txt", "new\n");
        task.rm("gone");
        task.chmod("src/a.txt", 0o755);
    });
    repo.chmod("docs/a.md", 0o600);
    repo
}

#[test]
fn undo_brings_back_exactly_what_was_there() {
    let lab = Lab::new();
    let repo = delivered(&lab);
    repo.write("README.md", "dirty\n");
    let before = repo.snapshot();
    repo.json(&["deliver", "t1"]).ok();
    let answer = repo.json(&["undo", "t1"]).ok();
    shape::check(&answer.json, &delivery_shape());
    assert_eq!(answer.json["state"], "undone");
    assert_eq!(answer.outcomes().len(), 4);
    assert!(answer.outcomes().iter().all(|outcome| outcome.1 == "reverted"), "{:?}", answer.outcomes());
    before.same(&repo.snapshot());
    assert!(!repo.exists("new"), "directories that were ours and are empty go");
    repo.fsck_gc();
}

#[test]
fn a_path_edited_since_is_refused_and_nothing_is_reverted() {
    let lab = Lab::new();
    let repo = delivered(&lab);
    repo.json(&["deliver", "t1"]).ok();
    repo.write("new/deep/file.txt", "new, and mine\n");
    let before = repo.snapshot();
    let answer = repo.json(&["undo", "t1"]);
    assert_eq!(answer.conflicts(), [("new/deep/file.txt".to_owned(), "edited".to_owned())]);
    before.same(&repo.snapshot());
    assert_eq!(repo.json(&["report", "t1"]).ok().json["state"], "completed");
    // The edit taken back: it works.
    repo.write("new/deep/file.txt", "new\n");
    repo.json(&["undo", "t1"]).ok();
}

#[test]
fn a_file_of_the_users_in_our_directory_keeps_the_directory() {
    let lab = Lab::new();
    let repo = delivered(&lab);
    repo.json(&["deliver", "t1"]).ok();
    repo.write("new/deep/mine.txt", "mine\n");
    repo.json(&["undo", "t1"]).ok();
    assert_eq!(repo.text("new/deep/mine.txt"), "mine\n");
    assert!(!repo.exists("new/deep/file.txt"));
}

#[test]
fn a_file_put_back_by_the_user_meanwhile_is_not_overwritten() {
    let lab = Lab::new();
    let repo = delivered(&lab);
    repo.json(&["deliver", "t1"]).ok();
    repo.write("gone/deep/x.txt", "my own new one\n");
    let before = repo.snapshot();
    let answer = repo.json(&["undo", "t1"]);
    assert_eq!(answer.conflicts()[0].0, "gone/deep/x.txt");
    before.same(&repo.snapshot());
}

#[test]
fn exactly_what_was_delivered_and_then_added_is_no_conflict() {
    let lab = Lab::new();
    let repo = delivered(&lab);
    repo.json(&["deliver", "t1"]).ok();
    repo.git(&["add", "-A"]);
    let index = repo.git(&["ls-files", "-s"]);
    repo.json(&["undo", "t1"]).ok();
    assert_eq!(repo.text("docs/a.md"), LINES);
    assert_eq!(repo.git(&["ls-files", "-s"]), index, "the index is the user's");
}

#[test]
fn undone_is_an_end() {
    let lab = Lab::new();
    let repo = delivered(&lab);
    repo.json(&["deliver", "t1"]).ok();
    repo.json(&["undo", "t1"]).ok();
    assert_eq!(repo.json(&["report", "t1"]).ok().json["state"], "undone");
    for args in
        [&["undo", "t1"][..], &["deliver", "t1"], &["submit", "t1"], &["verify", "t1"], &["cancel", "t1"]]
    {
        repo.json(args).fails("state.invalid");
    }
}

#[test]
fn without_a_delivery_there_is_nothing_to_undo() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.json(&["undo", "t1"]).fails("not_found");
    repo.changing("t1", &[("docs/a.md", Some("x\n"))]);
    repo.json(&["undo", "t1"]).fails("state.invalid");
}

#[test]
fn what_was_already_there_is_not_taken_away() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.changing("t1", &[("docs/new.md", Some("same\n")), ("docs/a.md", Some("new\n"))]);
    repo.write("docs/new.md", "same\n");
    let before = repo.snapshot();
    repo.json(&["deliver", "t1"]).ok();
    repo.json(&["undo", "t1"]).ok();
    // AMBIGUOUS: cli.md only says "the delivery reversed". Taken: an `already` path was not written by the
    // delivery, so it stays.
    same_tree(&before.files, &repo.snapshot().files);
}

#[test]
fn a_deleted_file_comes_back_with_its_attributes() {
    let lab = Lab::new();
    let repo = delivered(&lab);
    let (path, name) = (repo.join("gone/deep/x.txt"), "user.tender-test");
    let set = rustix::fs::setxattr(&path, name, b"mine", rustix::fs::XattrFlags::empty());
    if let Err(e) = set {
        eprintln!("no extended attributes here: {e}");
        return;
    }
    repo.json(&["deliver", "t1"]).ok();
    assert!(!path.exists());
    repo.json(&["undo", "t1"]).ok();
    let mut buffer = [0u8; 16];
    let length = rustix::fs::getxattr(&path, name, &mut buffer[..]).expect("it is there again");
    assert_eq!(&buffer[..length], b"mine");
}
