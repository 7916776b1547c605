//! A repository that was copied, moved or replaced: a store writes nowhere but in the repository it belongs to.

use super::open::assert_chain;
use super::rollback::copy_folder;
use crate::support::repo::lines_with;
use crate::support::snapshot::{same_tree, tree};
use crate::support::{Contract, Lab, Repo};
use serde_json::{Value, json};
use std::path::Path;

const ADOPT: [&str; 2] = ["recover", "--adopt"];

fn at<'l>(lab: &'l Lab, name: &str) -> Repo<'l> {
    Repo::at(lab, lab.path(name))
}

fn rename(lab: &Lab, from: &str, to: &str) {
    std::fs::rename(lab.path(from), lab.path(to)).expect("renames");
}

fn lines(number: usize, word: &str) -> String {
    lines_with(number, word)
}

/// A candidate of t1, a delivered t2.
fn made(lab: &Lab) -> Repo<'_> {
    let repo = lab.repo("app");
    repo.changing("t2", &[("docs/b.md", Some("delivered\n"))]);
    repo.json(&["deliver", "t2"]).ok();
    repo.changing("t1", &[("docs/a.md", Some(&lines(5, "five")))]);
    repo
}

/// Everything but what a look leaves beside a database.
fn everything(lab: &Lab, names: &[&str]) -> crate::support::snapshot::Tree {
    let all = names.iter().flat_map(|name| {
        tree(&lab.path(name)).into_iter().map(move |(path, entry)| (format!("{name}/{path}"), entry))
    });
    all.filter(|(path, _): &(String, _)| !path.ends_with("-shm") && !path.ends_with("-wal")).collect()
}

#[test]
fn a_copy_writes_nowhere_until_a_person_lets_it_go_on() {
    let lab = Lab::new();
    let repo = made(&lab);
    copy_folder(&repo.path, &lab.path("copy"));
    let copy = at(&lab, "copy");
    copy.tender(&["status"]).ok();
    let before = everything(&lab, &["app", "app.tender", "copy"]);
    let contract = Contract::new("t9").file(&lab);
    let writes: &[&[&str]] = &[
        &["deliver", "t1"],
        &["undo", "t2"],
        &["submit", "t1"],
        &["verify", "t1"],
        &["ship", "t1"],
        &["rebase", "t1"],
        &["cancel", "t1"],
        &["gc"],
        &["recover"],
        &["open", contract.to_str().expect("UTF-8")],
        &["start", "a goal", "--scope", "docs/"],
    ];
    for args in writes {
        let answer = copy.json(args);
        let error = answer.fails("state.invalid");
        assert_eq!(error["remedy"]["command"], json!(["git", "tender", "recover", "--adopt"]), "{args:?}");
        assert_eq!(error["details"]["expected"], lab.path("app/.git").to_str().expect("UTF-8"), "{args:?}");
    }
    assert_eq!(copy.tender(&["mcp", "t1"]).code, 2);
    copy.json(&ADOPT).fails("permission.denied");
    for view in [&["status"][..], &["report", "t1"], &["diff", "t1"], &["log"]] {
        assert!(copy.tender(view).ok().errors().contains("nothing is written here"), "{view:?}");
    }
    same_tree(&before, &everything(&lab, &["app", "app.tender", "copy"]));

    copy.approve_without_terminal();
    let answer = copy.json(&ADOPT).ok();
    assert_eq!(answer.json["adopted"]["to"], lab.path("copy/.git").to_str().expect("UTF-8"));
    assert_chain(&copy);
    let delivered = copy.json(&["deliver", "t1"]).ok();
    assert_eq!(delivered.outcomes()[0].1, "applied");
    copy.json(&["undo", "t2"]).ok();
    assert_eq!((copy.text("docs/a.md"), copy.text("docs/b.md")), (lines(5, "five"), "second\n".to_owned()));
    assert_eq!(repo.text("docs/b.md"), "delivered\n");
    // The other one's worktrees stay its own: here there are none.
    copy.json(&["gc"]).ok();
    let status = copy.json(&["status", "--all"]).ok();
    let worktree = status.json["tasks"][0]["worktree"].as_str().expect("text").to_owned();
    assert!(Path::new(&worktree).starts_with(lab.path("copy.tender")), "{worktree}");
    assert!(lab.path("app.tender/t1/docs/a.md").exists());
    repo.json(&["deliver", "t1"]).ok();
    repo.json(&["gc"]).ok();
    assert!(copy.json(&ADOPT).ok().json.get("adopted").is_none(), "it is at home by now");
    copy.fsck_gc();
}

#[test]
fn a_repository_that_was_renamed_goes_on_with_its_tasks() {
    let lab = Lab::new();
    let repo = made(&lab);
    rename(&lab, "app", "renamed");
    drop(repo);
    let repo = at(&lab, "renamed");
    let said = repo.tender(&["status"]).ok();
    assert!(said.errors().contains("is at"), "{}", said.errors());
    // The worktree is where it was, and works.
    let worktree = lab.path("app.tender/t1");
    std::fs::write(worktree.join("docs/a.md"), lines(6, "six")).expect("writes");
    repo.json(&["submit", "t1"]).ok();
    let inside = Repo::at(&lab, worktree.clone());
    inside.git(&["status", "--porcelain"]);
    inside.json(&["verify"]).ok();
    repo.json(&["deliver", "t1"]).ok();
    repo.json(&["undo", "t2"]).ok();
    assert_eq!((repo.text("docs/a.md"), repo.text("docs/b.md")), (lines(6, "six"), "second\n".to_owned()));
    assert!(!repo.tender(&["status"]).ok().errors().contains("is at"), "said once");
    assert_chain(&repo);
    let log = repo.tender(&["log", "t1", "--format", "json"]).ok().text();
    let moves = log.lines().filter(|line| line.contains("\"record\":\"relocated\"")).count();
    assert_eq!(moves, 1);
    repo.changing("t3", &[("docs/b.md", Some("third\n"))]);
    repo.json(&["deliver", "t3"]).ok();
    repo.json(&["gc"]).ok();
    assert!(!worktree.exists() && !lab.path("renamed.tender/t3").exists());
    repo.fsck_gc();
}

#[test]
fn a_repository_that_was_moved_with_its_worktrees_goes_on() {
    let lab = Lab::new();
    std::fs::create_dir(lab.path("old")).expect("creates");
    let repo = lab.repo("old/app");
    repo.changing("t1", &[("docs/a.md", Some(&lines(5, "five")))]);
    // A container's volume, a restored backup: other inodes at another place, nothing at the old one.
    copy_folder(&lab.path("old"), &lab.path("new"));
    std::fs::remove_dir_all(lab.path("old")).expect("removes");
    let repo = at(&lab, "new/app");
    std::fs::write(lab.path("new/app.tender/t1/docs/b.md"), "more\n").expect("writes");
    repo.json(&["submit", "t1"]).ok();
    repo.json(&["deliver", "t1"]).ok();
    assert_eq!((repo.text("docs/a.md"), repo.text("docs/b.md")), (lines(5, "five"), "more\n".to_owned()));
    let report = repo.json(&["status", "--all"]).ok();
    assert_eq!(report.json["tasks"][0]["worktree"], lab.path("new/app.tender/t1").to_str().expect("UTF-8"));
    repo.json(&["gc"]).ok();
    assert!(!lab.path("new/app.tender/t1").exists());
}

#[test]
fn where_another_repository_took_its_place_a_moved_one_has_to_be_adopted() {
    let lab = Lab::new();
    let repo = made(&lab);
    rename(&lab, "app", "moved");
    lab.git(&lab.path(""), &["clone", "-q", "moved", "app"]).ok();
    drop(repo);
    let (moved, clone) = (at(&lab, "moved"), at(&lab, "app"));
    moved.json(&["deliver", "t1"]).fails("state.invalid");
    assert_ne!(clone.text("docs/a.md"), lines(5, "five"));
    moved.approve_without_terminal();
    moved.json(&ADOPT).ok();
    std::fs::write(lab.path("app.tender/t1/docs/a.md"), lines(7, "seven")).expect("writes");
    moved.json(&["submit", "t1"]).ok();
    moved.json(&["deliver", "t1"]).ok();
    assert_eq!(moved.text("docs/a.md"), lines(7, "seven"));
    assert_ne!(clone.text("docs/a.md"), lines(7, "seven"));
    // The clone has worktrees of its own, in another folder.
    let task = clone.open(&Contract::new("t1"));
    assert!(task.worktree.starts_with(lab.path("app-2.tender")), "{}", task.worktree.display());
}

#[test]
fn a_store_that_a_cache_puts_into_a_fresh_clone_is_taken_over_where_nothing_is_open() {
    let lab = Lab::new();
    let repo = made(&lab);
    repo.json(&["cancel", "t1"]).ok();
    copy_folder(&repo.store(), &lab.path("cache"));
    rename(&lab, "app", "origin");
    let clone = || {
        let _ = std::fs::remove_dir_all(lab.path("app"));
        lab.git(&lab.path(""), &["clone", "-q", "--no-local", "origin", "app"]).ok();
        copy_folder(&lab.path("cache"), &lab.path("app/.git/tender"));
        at(&lab, "app")
    };
    let again = clone();
    again.json(&["report", "t2"]).ok();
    again.changing("t3", &[("src/a.txt", Some("third\n"))]);
    again.json(&["deliver", "t3"]).ok();
    assert_eq!(again.text("src/a.txt"), "third\n");

    // A task that is open, whose base is not there.
    let origin = at(&lab, "origin");
    origin.approve_without_terminal();
    origin.json(&ADOPT).ok();
    origin.write("docs/local.md", "never pushed\n");
    origin.commit("local");
    origin.open(&Contract::new("t4"));
    copy_folder(&origin.store(), &lab.path("cache"));
    origin.git(&["reset", "-q", "--hard", "HEAD^"]);
    let cached = std::fs::read_to_string(lab.path("cache/home.json")).expect("reads");
    let cached = cached.replace("/origin/.git", "/app/.git");
    std::fs::write(lab.path("cache/home.json"), cached).expect("writes");
    let again = clone();
    let refused = again.json(&["start", "a goal", "--scope", "docs/"]);
    let message = refused.fails("state.invalid")["message"].as_str().expect("text").to_owned();
    assert!(message.contains("the base") && message.contains("t4"), "{message}");
    again.approve_without_terminal();
    again.json(&ADOPT).ok();
    again.json(&["start", "a goal", "--scope", "docs/"]).ok();
}

#[test]
fn a_store_from_before_says_by_its_tasks_where_it_belongs() {
    let lab = Lab::new();
    let repo = made(&lab);
    let note = repo.store().join("home.json");
    std::fs::remove_file(&note).expect("removes");
    copy_folder(&repo.path, &lab.path("copy"));
    at(&lab, "copy").json(&["deliver", "t1"]).fails("state.invalid");
    repo.json(&["deliver", "t1"]).ok();
    let noted: Value = serde_json::from_slice(&std::fs::read(&note).expect("noted")).expect("JSON");
    assert_eq!(noted["gitDir"], lab.path("app/.git").to_str().expect("UTF-8"));
    assert!(noted["inode"]["ino"].is_u64());
}
