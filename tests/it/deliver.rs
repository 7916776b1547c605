//! `deliver`: comparison with the live tree, the write, and what it must leave alone.

use crate::support::repo::{LINES, lines_with};
use crate::support::snapshot::{Entry, same_tree};
use crate::support::{Contract, Lab, Repo, shape};
use serde_json::{Value, json};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

pub fn delivery_shape() -> Value {
    json!({
        "schema": "git-tender/delivery/v1", "taskId": "$text", "state": "$word", "mode": "local_files",
        "paths": [{"path": "$any", "outcome": "$word"}]
    })
}

/// A repository whose `docs/a.md` has a candidate in line 5.
fn with_candidate(lab: &Lab) -> Repo<'_> {
    let repo = lab.repo("app");
    repo.changing("t1", &[("docs/a.md", Some(&lines_with(5, "five")))]);
    repo
}

/// Delivers, expects this one conflict, and that nothing at all changed.
#[track_caller]
pub fn conflict(repo: &Repo<'_>, task: &str, path: &str, reasons: &[&str]) -> Value {
    let before = repo.snapshot();
    let answer = repo.json(&["deliver", task]);
    let conflicts = answer.conflicts();
    before.same(&repo.snapshot());
    let found = conflicts.iter().find(|c| c.0 == path);
    let (_, reason) = found.unwrap_or_else(|| panic!("{path} is not among {conflicts:?}"));
    assert!(
        reasons.is_empty() || reasons.contains(&reason.as_str()),
        "{path}: {reason} is none of {reasons:?}"
    );
    assert_eq!(answer.json["error"]["retry"], "ask_user");
    let remedy = &answer.json["error"]["remedy"];
    assert!(
        !remedy["text"].as_str().expect("text").is_empty() && remedy["command"][0] == "git",
        "{remedy:#}"
    );
    let list = answer.json["error"]["details"]["conflicts"].as_array().expect("list");
    list.iter().find(|c| c["path"] == path).expect("found above").clone()
}

#[test]
fn a_change_is_delivered_and_its_receipt_has_the_drawn_shape() {
    let lab = Lab::new();
    let repo = with_candidate(&lab);
    let answer = repo.json(&["deliver", "t1"]).ok();
    shape::check(&answer.json, &delivery_shape());
    assert_eq!(answer.json["state"], "completed");
    assert_eq!(answer.outcomes(), [("docs/a.md".to_owned(), "applied".to_owned())]);
    assert_eq!(repo.text("docs/a.md"), lines_with(5, "five"));
    assert_eq!(repo.git(&["diff", "--cached", "--name-only"]), "", "the index is untouched");
    assert_eq!(repo.git(&["stash", "list"]), "");
    repo.fsck_gc();
}

#[test]
fn a_second_deliver_writes_nothing_and_shows_the_receipt() {
    let lab = Lab::new();
    let repo = with_candidate(&lab);
    repo.json(&["deliver", "t1"]).ok();
    repo.write("docs/a.md", "the user's next edit\n");
    let before = repo.snapshot();
    for _ in 0..2 {
        let again = repo.json(&["deliver", "t1"]).ok();
        assert_eq!(again.json["state"], "completed");
        assert_eq!(again.outcomes(), [("docs/a.md".to_owned(), "already".to_owned())]);
    }
    before.same(&repo.snapshot());
}

#[test]
fn a_dry_run_shows_what_would_happen_and_changes_nothing() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.changing("t1", &[("docs/a.md", Some("new\n")), ("docs/b.md", Some("other\n"))]);
    repo.write("docs/b.md", "other\n");
    let before = repo.snapshot();
    let answer = repo.json(&["deliver", "t1", "--dry-run"]).ok();
    shape::check(&answer.json, &delivery_shape());
    assert_ne!(answer.json["state"], "completed");
    let expected = [("docs/a.md", "would_apply"), ("docs/b.md", "already")];
    assert_eq!(answer.outcomes(), expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
    before.same(&repo.snapshot());
    assert_ne!(repo.json(&["report", "t1"]).ok().json["state"], "completed");
    repo.write("docs/a.md", "mine\n");
    let before = repo.snapshot();
    assert_eq!(repo.json(&["deliver", "t1", "--dry-run"]).conflicts()[0].1, "edited");
    before.same(&repo.snapshot());
}

#[test]
fn twin_blocks_the_user_deletes_the_second_the_change_is_in_it() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let block = "begin\n  one\n  two\n  three\n  four\n  five\nend\n";
    repo.write("twin.txt", format!("{block}{block}"));
    repo.commit("twins");
    repo.changing("t1", &[("twin.txt", Some(&format!("{block}{}", block.replace("three", "THREE"))))]);
    repo.write("twin.txt", block);
    conflict(&repo, "t1", "twin.txt", &["edited"]);
    assert_eq!(repo.text("twin.txt"), block);
}

#[test]
fn another_line_edited_is_a_mergeable_conflict_and_the_patch_is_kept() {
    let lab = Lab::new();
    let repo = with_candidate(&lab);
    repo.write("docs/a.md", lines_with(2, "two, mine"));
    let found = conflict(&repo, "t1", "docs/a.md", &["edited"]);
    // Line 2 and line 5 leave two lines between; a three-way merge is clean.
    assert_eq!(found["mergeable"], true);
    assert_eq!(found["expected"]["gitBlob"], repo.git(&["rev-parse", "HEAD:docs/a.md"]));
    assert_eq!(found["expected"]["mode"], "100644");
    assert_eq!(found["actual"]["gitBlob"], repo.git(&["hash-object", "docs/a.md"]));
    let diff = repo.tender(&["diff", "t1"]).ok().text();
    assert!(diff.contains("+five"), "the patch is kept: {diff}");
    // Taking the own edit back makes it deliverable.
    repo.write("docs/a.md", LINES);
    repo.json(&["deliver", "t1"]).ok();
}

#[test]
fn the_same_line_edited_by_both_is_refused_and_not_mergeable() {
    let lab = Lab::new();
    let repo = with_candidate(&lab);
    repo.write("docs/a.md", lines_with(5, "five, mine"));
    let found = conflict(&repo, "t1", "docs/a.md", &["edited"]);
    assert_eq!(found["mergeable"], false);
}

#[test]
fn a_file_with_staged_and_further_edits_keeps_both() {
    let lab = Lab::new();
    let repo = with_candidate(&lab);
    repo.write("docs/a.md", lines_with(5, "staged"));
    repo.git(&["add", "docs/a.md"]);
    repo.write("docs/a.md", lines_with(5, "unstaged"));
    conflict(&repo, "t1", "docs/a.md", &["edited"]);
    assert_eq!(repo.git(&["show", ":docs/a.md"]) + "\n", lines_with(5, "staged"));
    assert_eq!(repo.text("docs/a.md"), lines_with(5, "unstaged"));
}

#[test]
fn unrelated_work_in_progress_stays_as_it_is() {
    let lab = Lab::new();
    let repo = with_candidate(&lab);
    repo.write("src/a.txt", "dirty\n");
    repo.write("docs/b.md", "staged\n");
    repo.git(&["add", "docs/b.md"]);
    repo.write("docs/b.md", "staged, then edited\n");
    repo.write("untracked.txt", "new\n");
    repo.write(".env", "SECRET=1\n");
    repo.rm("src/b.txt");
    repo.write("README.md", "stashed\n");
    repo.git(&["stash", "push", "-q", "README.md"]);
    repo.write("docs/kept.md", "added by the user\n");
    repo.git(&["add", "-N", "docs/kept.md"]);
    let before = repo.snapshot();
    repo.json(&["deliver", "t1"]).ok();
    let mut after = repo.snapshot();
    assert_eq!(repo.text("docs/a.md"), lines_with(5, "five"));
    let path = "docs/a.md".to_owned();
    after.files.insert(path.clone(), before.files[&path].clone());
    before.same(&after);
    repo.fsck_gc();
}

#[test]
fn a_file_of_the_users_where_the_patch_creates_one_is_kept_and_not_printed() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    // `.env` is ignored: a patch brings it all the same.
    let patch = repo.patch_of(|copy| {
        copy.write(".env", "FROM_PATCH=1\n");
        copy.write("docs/new.md", "from the patch\n");
    });
    repo.open(&Contract::new("t1"));
    repo.submit_patch("t1", &patch).ok();
    repo.write(".env", "TOKEN=hunter2-very-secret\n");
    repo.write("docs/new.md", "the user's own\n");
    let before = repo.snapshot();
    for args in
        [&["deliver", "t1"][..], &["deliver", "t1", "--dry-run"], &["report", "t1"], &["status"], &["log"]]
    {
        let out = repo.tender(args);
        assert!(!out.all().contains("hunter2"), "{args:?} printed the content");
    }
    let answer = repo.json(&["deliver", "t1"]);
    let expected = [(".env", "appeared"), ("docs/new.md", "appeared")];
    assert_eq!(answer.conflicts(), expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
    assert!(!answer.json.to_string().contains("hunter2"));
    before.same(&repo.snapshot());
    // Identical content is no conflict.
    repo.write(".env", "FROM_PATCH=1\n");
    repo.rm("docs/new.md");
    let answer = repo.json(&["deliver", "t1"]).ok();
    let expected = [(".env", "already"), ("docs/new.md", "applied")];
    assert_eq!(answer.outcomes(), expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
}

#[test]
fn what_the_user_already_has_is_already() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.changing("t1", &[("docs/a.md", Some("same\n")), ("docs/new.md", Some("n\n")), ("src/b.txt", None)]);
    repo.write("docs/a.md", "same\n");
    repo.write("docs/new.md", "n\n");
    repo.rm("src/b.txt");
    let inode = std::fs::metadata(repo.join("docs/a.md")).expect("stats").ino();
    let answer = repo.json(&["deliver", "t1"]).ok();
    assert!(answer.outcomes().iter().all(|outcome| outcome.1 == "already"), "{:?}", answer.outcomes());
    assert_eq!(std::fs::metadata(repo.join("docs/a.md")).expect("stats").ino(), inode, "not written again");
    assert_eq!(answer.json["state"], "completed");
}

#[test]
fn every_kind_of_change_arrives() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.write("gone/deep/only.txt", "goes\n");
    repo.write("kept/one.txt", "stays\n");
    repo.write("kept/two.txt", "goes\n");
    repo.write("tool.sh", "#!/bin/sh\n");
    repo.chmod("tool.sh", 0o755);
    repo.link("link", "src/a.txt");
    repo.write("bin.dat", [0u8, 1, 2, 255, 0, 10, 13]);
    repo.write("dir-to-file/x", "x\n");
    repo.write("file-to-dir", "x\n");
    repo.commit("kinds");
    let task = repo.submitted(&Contract::new("t1"), |task| {
        task.rm("gone");
        task.rm("kept/two.txt");
        task.write("new/deep/er/file.txt", "new\n");
        task.chmod("tool.sh", 0o644);
        task.chmod("src/a.txt", 0o755);
        task.rm("link");
        task.link("link", "src/b.txt");
        task.write("bin.dat", [9u8, 0, 255, 254]);
        task.write("empty with space", "");
        task.rm("src/b.txt");
        task.link("src/b.txt", "a.txt");
        task.write("no-newline", "no newline at the end");
    });
    repo.json(&["deliver", "t1"]).ok();
    same_tree(&crate::support::snapshot::tree(&task.worktree), &crate::support::snapshot::tree(&repo.path));
    assert!(!repo.exists("gone"), "emptied directories go");
    assert!(repo.exists("kept/one.txt"));
    repo.fsck_gc();
}

#[test]
fn a_file_becomes_a_directory_and_the_other_way_round() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.write("was-dir/x", "x\n");
    repo.write("was-file", "x\n");
    repo.commit("kinds");
    let task = repo.submitted(&Contract::new("t1"), |task| {
        task.rm("was-dir");
        task.write("was-dir", "now a file\n");
        task.rm("was-file");
        task.write("was-file/x", "now a directory\n");
    });
    let before = repo.snapshot();
    let answer = repo.json(&["deliver", "t1"]);
    if answer.code == 0 {
        same_tree(
            &crate::support::snapshot::tree(&task.worktree),
            &crate::support::snapshot::tree(&repo.path),
        );
    } else {
        answer.error();
        before.same(&repo.snapshot());
    }
}

#[test]
fn an_emptied_directory_that_holds_the_users_file_stays() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.write("gone/only.txt", "goes\n");
    repo.commit("gone");
    repo.submitted(&Contract::new("t1"), |task| task.rm("gone"));
    repo.write("gone/mine.txt", "mine\n");
    repo.json(&["deliver", "t1"]).ok();
    assert_eq!(repo.text("gone/mine.txt"), "mine\n");
    assert!(!repo.exists("gone/only.txt"));
}

#[test]
fn a_patch_of_five_files_whose_fourth_conflicts_writes_none() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let names = ["f1", "f2", "f3", "f4", "f5"];
    names.iter().for_each(|name| repo.write(name, "old\n"));
    repo.commit("five");
    let files: Vec<_> = names.iter().map(|name| (*name, Some("new\n"))).collect();
    repo.changing("t1", &files);
    repo.write("f4", "mine\n");
    let inodes: Vec<_> =
        names.iter().map(|n| std::fs::metadata(repo.join(n)).expect("stats").ino()).collect();
    conflict(&repo, "t1", "f4", &["edited"]);
    let after: Vec<_> = names.iter().map(|n| std::fs::metadata(repo.join(n)).expect("stats").ino()).collect();
    assert_eq!(inodes, after, "not even the same bytes in another file");
    // Two conflicts: both are listed.
    repo.write("f2", "mine too\n");
    assert_eq!(repo.json(&["deliver", "t1"]).conflicts().len(), 2);
}

#[test]
fn modes_owner_and_extended_attributes_are_kept() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.changing(
        "t1",
        &[("docs/a.md", Some("new\n")), ("src/a.txt", Some("new\n")), ("src/b.txt", Some("new\n"))],
    );
    repo.chmod("docs/a.md", 0o600);
    repo.chmod("src/a.txt", 0o640);
    repo.chmod("src/b.txt", 0o664);
    let attributes = rustix::fs::setxattr(
        repo.join("docs/a.md"),
        "user.tender-test",
        b"kept",
        rustix::fs::XattrFlags::empty(),
    );
    repo.json(&["deliver", "t1"]).ok();
    let mode = |path: &str| std::fs::metadata(repo.join(path)).expect("stats").permissions().mode() & 0o7777;
    assert_eq!((mode("docs/a.md"), mode("src/a.txt"), mode("src/b.txt")), (0o600, 0o640, 0o664));
    assert_eq!(repo.text("docs/a.md"), "new\n");
    if attributes.is_ok() {
        let mut buffer = [0u8; 16];
        let length = rustix::fs::getxattr(repo.join("docs/a.md"), "user.tender-test", &mut buffer[..]);
        assert_eq!(&buffer[..length.expect("the attribute is there")], b"kept");
    } else {
        eprintln!("no extended attributes on this file system: that half is left out");
    }
}

#[test]
fn a_mode_change_keeps_the_other_bits() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.submitted(&Contract::new("t1"), |task| task.chmod("src/a.txt", 0o755));
    repo.chmod("src/a.txt", 0o600);
    repo.json(&["deliver", "t1"]).ok();
    let mode = std::fs::metadata(repo.join("src/a.txt")).expect("stats").permissions().mode() & 0o777;
    assert_eq!(mode & 0o100, 0o100, "executable for the owner");
    assert_eq!(mode & 0o066, 0, "no reading or writing for others was added: {mode:o}");
}

#[test]
fn a_hard_link_is_replaced_its_partner_untouched_and_noted() {
    let lab = Lab::new();
    let repo = with_candidate(&lab);
    std::fs::hard_link(repo.join("docs/a.md"), lab.path("partner.md")).expect("links");
    repo.json(&["deliver", "t1"]).ok();
    assert_eq!(repo.text("docs/a.md"), lines_with(5, "five"));
    assert_eq!(std::fs::read_to_string(lab.path("partner.md")).expect("reads"), LINES);
    let report = repo.json(&["report", "t1"]).ok();
    assert!(report.has_risk("hard link"), "{:#}", report.json["risks"]);
}

#[test]
fn head_moved_is_delivered_where_the_touched_paths_are_the_preimages_and_is_a_risk() {
    let lab = Lab::new();
    let repo = with_candidate(&lab);
    repo.write("README.md", "moved on\n");
    repo.commit("moved");
    repo.json(&["deliver", "t1"]).ok();
    assert_eq!(repo.text("docs/a.md"), lines_with(5, "five"));
    let report = repo.json(&["report", "t1"]).ok();
    assert!(report.has_risk("HEAD"), "{:#}", report.json["risks"]);
    shape::check(&report.json["risks"], &json!([{"text": "$text", "ref": "$str?"}]));
}

#[test]
fn head_moved_through_the_touched_path_is_a_conflict() {
    let lab = Lab::new();
    let repo = with_candidate(&lab);
    repo.write("docs/a.md", lines_with(9, "nine"));
    repo.commit("moved");
    conflict(&repo, "t1", "docs/a.md", &["edited"]);
}

#[test]
fn another_branch_needs_a_person_and_here_confirms() {
    let lab = Lab::new();
    let repo = with_candidate(&lab);
    repo.git(&["switch", "-q", "-c", "other"]);
    let before = repo.snapshot();
    repo.json(&["deliver", "t1"]).fails("confirmation.required");
    before.same(&repo.snapshot());
    // AMBIGUOUS: whether `--here` is a confirmation in the sense of contract.md (typed on a terminal); with
    // `tender.approveWithoutTerminal` it has to work either way.
    repo.approve_without_terminal();
    repo.json(&["deliver", "t1", "--here"]).ok();
    assert_eq!(repo.text("docs/a.md"), lines_with(5, "five"));
    repo.git(&["switch", "-q", "-c", "third"]);
    assert_eq!(repo.json(&["deliver", "t1"]).ok().outcomes()[0].1, "already");
}

#[test]
fn a_detached_head_at_the_same_commit_is_another_branch_too() {
    let lab = Lab::new();
    let repo = with_candidate(&lab);
    repo.git(&["checkout", "-q", "--detach"]);
    repo.json(&["deliver", "t1"]).fails("confirmation.required");
    repo.git(&["switch", "-q", "main"]);
    repo.json(&["deliver", "t1"]).ok();
}

#[test]
fn git_stays_clean_at_every_moment() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.write("docs/b.md", "work in progress\n");
    let task = repo.open(&Contract::new("t1").set("base", json!("live")));
    repo.fsck_gc();
    task.write("docs/a.md", "new\n");
    task.write("docs/new.bin", vec![7u8; 100_000]);
    repo.json(&["submit", "t1"]).ok();
    repo.fsck_gc();
    repo.json(&["verify", "t1"]).ok();
    repo.fsck_gc();
    repo.json(&["deliver", "t1"]).ok();
    repo.fsck_gc();
    assert_eq!(repo.text("docs/a.md"), "new\n");
    repo.json(&["undo", "t1"]).ok();
    repo.fsck_gc();
    assert_eq!(repo.text("docs/a.md"), LINES);
    repo.tender(&["gc"]).ok();
    repo.fsck_gc();
    let leftovers: Vec<_> =
        repo.snapshot().files.into_keys().filter(|name| name.contains("tender")).collect();
    assert_eq!(leftovers, Vec::<String>::new());
}

#[test]
fn no_temporary_file_is_left_beside_the_users_files() {
    let lab = Lab::new();
    let repo = with_candidate(&lab);
    let names = |repo: &Repo<'_>| repo.snapshot().files.into_keys().collect::<Vec<_>>();
    let before = names(&repo);
    repo.json(&["deliver", "t1"]).ok();
    assert_eq!(before, names(&repo));
    assert!(matches!(repo.snapshot().files["docs/a.md"], Entry::File { .. }));
}
