//! Files of ours that this user cannot read, as after one `sudo`: they never read as absent.

use crate::support::lab::run;
use crate::support::repo::lines_with;
use crate::support::{Answer, Contract, Lab, Repo, is_root};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Any user that is not root, with rights of its own in the laboratory.
const ANYBODY: &str = "65534";

/// Whoever runs the tests may be root, for whom nothing is barred: the commands of these tests run as an
/// ordinary user, whose the repository is.
fn json_as_anybody(repo: &Repo<'_>, args: &[&str]) -> Answer {
    json_within(repo, &[], args)
}

/// Likewise, by a program that sets limits first.
fn json_within(repo: &Repo<'_>, limits: &[&str], args: &[&str]) -> Answer {
    let lab = repo.lab;
    let mut command = lab.command("setsid", &repo.path);
    command.arg("--wait");
    if is_root() {
        command.args(["setpriv", "--reuid", ANYBODY, "--regid", ANYBODY, "--clear-groups"]);
    }
    command.args(limits).arg(program(lab)).args(args).args(["--format", "json"]);
    Answer::of(run(command, None))
}

/// The program where everybody can reach it.
fn program(lab: &Lab) -> PathBuf {
    let place = lab.path("git-tender");
    if !place.exists() {
        std::fs::copy(crate::support::lab::TENDER, &place).expect("copies the program");
    }
    place
}

fn hand_over(lab: &Lab) {
    std::fs::set_permissions(lab.path(""), std::fs::Permissions::from_mode(0o755)).expect("opens");
    if is_root() {
        let done = Command::new("chown").args(["-R", ANYBODY]).arg(lab.path("")).status().expect("runs");
        assert!(done.success());
    }
}

/// Takes a folder or a file away from the ordinary user.
fn bar(path: &Path) {
    if is_root() {
        assert!(Command::new("chown").args(["-R", "0:0"]).arg(path).status().expect("runs").success());
    }
    let mode = if path.is_dir() { 0o700 } else { 0o600 };
    let mode = if is_root() { mode } else { 0 };
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("bars");
}

fn give_back(path: &Path) {
    if is_root() {
        let done = Command::new("chown").args(["-R", ANYBODY]).arg(path).status().expect("runs");
        assert!(done.success());
    }
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)).expect("opens");
}

fn is_about(error: &Value, path: &Path) {
    let told = error["message"].as_str().expect("a message");
    assert!(told.contains("ermission denied"), "{error}");
    let text = error["remedy"]["text"].as_str().expect("a sentence");
    let way = if is_root() { "sudo chown -R 65534" } else { "chmod -R u+rwX" };
    assert!(text.contains(&format!("`{way} {}`", path.display())), "{error}");
}

#[test]
fn a_store_that_cannot_be_read_is_no_empty_one() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.changing("t1", &[("docs/a.md", Some(&lines_with(5, "five")))]);
    hand_over(&lab);
    json_as_anybody(&repo, &["status"]).ok();
    let store = repo.join(".git/tender");
    for barred in [store.clone(), store.join("ledger.db")] {
        bar(&barred);
        for args in [
            &["status"][..],
            &["log"],
            &["report", "t1"],
            &["show", "x"],
            &["gc"],
            &["recover"],
            &["ship", "t1"],
            &["start", "a goal", "--scope", "docs/"],
        ] {
            let answer = json_as_anybody(&repo, args);
            is_about(answer.fails("io"), &barred);
            assert_eq!(answer.code, 10, "{args:?}");
        }
        let doctor = json_as_anybody(&repo, &["doctor"]).ok();
        let mut checks = doctor.json["checks"].as_array().expect("checks").iter();
        let ledger = checks.find(|check| check["id"] == "ledger").expect("a check");
        assert_eq!(ledger["ok"], false, "{ledger}");
        if barred.is_dir() {
            give_back(&barred);
        }
    }
}

#[test]
fn from_a_worktree_whose_way_back_is_barred_no_other_is_taken() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let task = repo.open(&Contract::new("t1"));
    hand_over(&lab);
    bar(&lab.path("app.tender/.repository"));
    let inside = Repo::at(&lab, task.worktree.clone());
    is_about(json_as_anybody(&inside, &["status"]).fails("io"), &lab.path("app.tender/.repository"));
}

#[test]
fn a_live_tree_or_worktree_that_cannot_be_looked_at_is_not_gone() {
    let lab = Lab::new();
    let home = lab.path("there");
    std::fs::create_dir(&home).expect("creates");
    let repo = lab.repo("app");
    repo.git(&["worktree", "add", "-q", "-b", "side", home.join("live").to_str().expect("UTF-8")]);
    let live = Repo::at(&lab, home.join("live"));
    live.changing("t1", &[("docs/a.md", Some("new\n"))]);
    live.json(&["cancel", "t1"]).ok();
    live.changing("t2", &[("docs/a.md", Some("new\n"))]);
    hand_over(&lab);
    bar(&home);
    let answer = json_as_anybody(&repo, &["deliver", "t2"]);
    is_about(answer.fails("io"), &home);
    give_back(&home);
    // Nothing is collected that nobody can look at.
    let root = lab.path("app.tender");
    bar(&root);
    let gc = json_as_anybody(&repo, &["gc"]).ok();
    assert_eq!(gc.json["removed"], serde_json::json!([]), "{}", gc.json);
    let kept = gc.json["kept"].as_array().expect("a list");
    assert!(kept[0]["reason"].as_str().expect("text").contains("ermission denied"), "{}", gc.json);
    give_back(&root);
    assert!(root.join("t1").is_dir());
    let gc = json_as_anybody(&repo, &["gc"]).ok();
    assert_eq!(gc.json["removed"], serde_json::json!(["t1"]), "{}", gc.json);
}

/// A container's limit, or the user's: no thread and no process is to be had any more.
#[test]
fn without_a_further_process_it_is_no_fault_of_ours() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.open(&Contract::new("t2"));
    hand_over(&lab);
    let before = repo.read("docs/a.md");
    for processes in 0..4 {
        let limit = format!("--nproc={processes}:{processes}");
        for args in [&["submit", "t2"][..], &["start", "a goal", "--scope", "docs/"]] {
            let answer = json_within(&repo, &["prlimit", &limit], args);
            if answer.code != 0 {
                let error = answer.fails("io");
                let text = error["remedy"]["text"].as_str().expect("a sentence");
                assert!(processes > 0 || text.contains("ulimit -u"), "{args:?}: {error}");
            }
        }
        assert_eq!(repo.read("docs/a.md"), before);
    }
    json_as_anybody(&repo, &["submit", "t2"]).ok();
}
