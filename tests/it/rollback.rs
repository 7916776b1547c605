//! A ledger that was set back is noticed: an older copy of the store takes the place of the newer one.

use super::open::assert_chain;
use crate::support::repo::lines_with;
use crate::support::snapshot::{same_tree, tree};
use crate::support::{Contract, Lab, Repo, shape};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

pub fn copy_folder(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status().expect("cp runs");
    assert!(copied.success(), "{} to {}", from.display(), to.display());
}

/// Two tasks that are open; a copy of the store; then one is delivered, a third opened, and the copy put back.
fn set_back(lab: &Lab) -> Repo<'_> {
    let repo = lab.repo("app");
    repo.changing("t1", &[("docs/a.md", Some(&lines_with(5, "five")))]);
    repo.changing("t2", &[("docs/b.md", Some("another\n"))]);
    copy_folder(&repo.store(), &lab.path("copy"));
    repo.json(&["deliver", "t1"]).ok();
    repo.changing("t3", &[("src/a.txt", Some("third\n"))]);
    copy_folder(&lab.path("copy"), &repo.store());
    repo
}

fn anchor(repo: &Repo<'_>, task: &str) -> std::path::PathBuf {
    repo.join(format!(".git/worktrees/{task}/tender-ledger"))
}

#[test]
fn nothing_is_written_to_a_ledger_that_was_set_back() {
    let lab = Lab::new();
    let repo = set_back(&lab);
    let contract = Contract::new("t9").file(&lab);
    let contract = contract.to_str().expect("UTF-8");
    let lasting = || -> crate::support::snapshot::Tree {
        let all = tree(&repo.join(".git")).into_iter();
        all.filter(|(name, _)| !name.ends_with("-shm") && !name.ends_with("-wal")).collect()
    };
    repo.tender(&["status"]).ok();
    let (before, files) = (lasting(), repo.snapshot());
    let writes: &[&[&str]] = &[
        &["submit", "t2"],
        &["verify", "t2"],
        &["deliver", "t2"],
        &["deliver", "t2", "--dry-run"],
        &["deliver", "t3"],
        &["ship", "t2"],
        &["undo", "t1"],
        &["rebase", "t2"],
        &["cancel", "t2"],
        &["resume", "t2"],
        &["attest", "t2", "protected", "--pass", "-m", "seen"],
        &["answer", "t2", "yes"],
        &["open", contract],
        &["start", "a goal", "--scope", "docs/"],
        &["gc"],
        &["recover"],
    ];
    for args in writes {
        let answer = repo.json(args);
        let error = answer.fails("store.rolled_back");
        assert_eq!(answer.code, 10, "{args:?}");
        assert_eq!(error["remedy"]["command"], json!(["git", "tender", "recover", "--accept-rollback"]));
        let missing = error["details"]["missing"].as_array().expect("a list");
        let tasks: Vec<_> = missing.iter().map(|lost| lost["taskId"].as_str().expect("text")).collect();
        assert_eq!(tasks, ["t1", "t3"], "{args:?}");
        shape::check(
            &missing[0],
            &json!({"taskId": "t1", "worktree": "$text", "seq": "$int", "sha256": "$sha256"}),
        );
    }
    let worker = repo.tender(&["mcp", "t2"]);
    assert_eq!(worker.code, 10, "{}", worker.all());
    same_tree(&before, &lasting());
    files.same(&repo.snapshot());
}

#[test]
fn views_still_work_and_announce_it() {
    let lab = Lab::new();
    let repo = set_back(&lab);
    for args in [&["status"][..], &["report", "t1"], &["diff", "t1"]] {
        let out = repo.tender(args).ok();
        assert!(out.all().contains("the ledger was set back: row "), "{args:?}: {}", out.all());
        repo.json(args).ok();
    }
    let lost = repo.json(&["status"]).ok().json["rolledBack"].clone();
    assert_eq!((&lost[0]["taskId"], &lost[1]["taskId"]), (&json!("t1"), &json!("t3")));
    // Of what was lost nothing else can be said.
    repo.json(&["report", "t3"]).fails("store.rolled_back");
    let log = repo.tender(&["log", "--format", "json"]);
    assert_eq!(log.code, 10, "{}", log.all());
    let text = log.text();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    let (last, rows) = lines.split_last().expect("rows");
    assert_eq!(last["error"]["code"], "store.rolled_back");
    assert_eq!(last["error"]["details"]["head"]["seq"], rows.len());
    let action = rows[0]["action"].as_str().expect("text");
    let shown = repo.tender(&["show", action]).ok();
    assert!(shown.errors().contains("set back"), "{}", shown.errors());
}

#[test]
fn only_a_person_goes_on_without_what_is_missing() {
    let lab = Lab::new();
    let repo = set_back(&lab);
    let accept = ["recover", "--accept-rollback"];
    let rows = |repo: &Repo<'_>| repo.tender(&["log"]).text().lines().count();
    let before = rows(&repo);
    repo.json(&accept).fails("permission.denied");
    assert_eq!(rows(&repo), before, "a refusal writes nothing");
    repo.json(&["deliver", "t2"]).fails("store.rolled_back");

    repo.approve_without_terminal();
    let lost = repo.json(&["status"]).ok().json["rolledBack"].clone();
    let answer = repo.json(&accept).ok();
    assert_eq!(answer.json["accepted"], lost);
    let log = repo.tender(&["log", "--format", "json"]).ok().text();
    let last: Value = serde_json::from_str(log.lines().last().expect("a row")).expect("an object");
    assert_eq!((&last["tool"], &last["task"]), (&json!("recover"), &Value::Null));
    assert_eq!(last["result"], json!({"record": "rollback_accepted", "lost": lost}));
    assert_chain(&repo);

    // t1 was delivered before: its bytes are there, and nothing is written again.
    assert!(repo.json(&["deliver", "t1"]).ok().outcomes().iter().all(|outcome| outcome.1 == "already"));
    repo.json(&["deliver", "t2"]).ok();
    repo.json(&["report", "t3"]).fails("not_found");
    assert_eq!(repo.text("docs/b.md"), "another\n");
    assert!(repo.json(&accept).ok().json.get("accepted").is_none(), "there is nothing left to accept");
    assert_eq!(repo.json(&["status"]).ok().json.get("rolledBack"), None);
    repo.json(&["start", "a goal", "--scope", "docs/"]).ok();
}

#[test]
fn a_store_that_is_gone_was_set_back_to_nothing() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.changing("t1", &[("docs/a.md", Some("new\n"))]);
    std::fs::remove_dir_all(repo.store()).expect("removes");
    repo.json(&["start", "a goal", "--scope", "docs/"]).fails("store.rolled_back");
    repo.json(&["recover"]).fails("store.rolled_back");
    assert!(!repo.store().join("ledger.db").exists());
    repo.approve_without_terminal();
    repo.json(&["recover", "--accept-rollback"]).ok();
    repo.json(&["start", "a goal", "--scope", "docs/"]).ok();
}

#[test]
fn a_copy_of_the_whole_repository_is_in_order() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.changing("t1", &[("docs/a.md", Some("new\n"))]);
    for (name, copy) in [("app", "copy.app"), ("app.tender", "copy.tender")] {
        copy_folder(&lab.path(name), &lab.path(copy));
    }
    repo.json(&["deliver", "t1"]).ok();
    for (name, copy) in [("app", "copy.app"), ("app.tender", "copy.tender")] {
        copy_folder(&lab.path(copy), &lab.path(name));
    }
    repo.json(&["recover"]).ok();
    repo.json(&["deliver", "t1"]).ok();
    assert_eq!(repo.text("docs/a.md"), "new\n");
}

#[test]
fn a_ledger_ahead_of_its_anchor_is_in_order() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.changing("t1", &[("docs/a.md", Some("new\n"))]);
    let old = std::fs::read(anchor(&repo, "t1")).expect("an anchor");
    repo.json(&["deliver", "t1"]).ok();
    let new = std::fs::read(anchor(&repo, "t1")).expect("an anchor");
    assert_ne!(old, new);
    let log = repo.tender(&["log", "--format", "json"]).ok().text();
    // The last row of a delivery is not waited for: the anchor names it apart from what is on the disk.
    let head = |behind: usize| {
        let row: Value =
            serde_json::from_str(log.lines().nth_back(behind).expect("a row")).expect("an object");
        format!("{}:{}", row["seq"], row["hash"].as_str().expect("text"))
    };
    let text = String::from_utf8(new.clone()).expect("text");
    let (safe, late) = text.split_once('\n').expect("two heads");
    assert_eq!(safe, head(1));
    assert!(late.starts_with(&format!("late {} ", head(0))), "{late}");
    for kept in [&old[..], b"", &new[..new.len() - 9]] {
        std::fs::write(anchor(&repo, "t1"), kept).expect("writes");
        repo.json(&["recover"]).ok();
    }
    std::fs::remove_file(anchor(&repo, "t1")).expect("removes");
    repo.json(&["undo", "t1"]).ok();
    // Whoever writes makes it anew.
    assert!(anchor(&repo, "t1").exists());
    let (seq, hash) = safe.split_once(':').expect("place and hash");
    let other = format!("{seq}:{}{}", &hash[1..], &hash[..1]);
    for forged in [format!("{other}\n"), text.replace(&head(0), &other)] {
        std::fs::write(anchor(&repo, "t1"), forged).expect("writes");
        repo.json(&["recover"]).fails("store.rolled_back");
    }
}

/// Takes the last commit off the log of the ledger, as if it had never been: what a copy from just before holds.
fn without_last_commit(repo: &Repo<'_>) {
    let wal = repo.store().join("ledger.db-wal");
    let log = std::fs::read(&wal).expect("the log is kept");
    let number = |at: usize| u32::from_be_bytes(log[at..at + 4].try_into().expect("four bytes"));
    let frame = 24 + number(8) as usize;
    let frames = (32..log.len()).step_by(frame).filter(|at| at + frame <= log.len());
    let commits = frames.filter(|at| number(at + 4) != 0 && log[at + 8..at + 16] == log[16..24]);
    let ends: Vec<usize> = commits.map(|at| at + frame).collect();
    let [.., before, _] = ends[..] else { panic!("{} commits in the log", ends.len()) };
    std::fs::write(&wal, &log[..before]).expect("writes");
    std::fs::remove_file(repo.store().join("ledger.db-shm")).expect("removes");
}

/// The last row of a delivery is not waited for; without it the delivery would be done again.
#[test]
fn a_ledger_without_the_last_row_of_a_delivery_was_set_back() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.changing("t1", &[("docs/a.md", Some(&lines_with(5, "five")))]);
    repo.json(&["deliver", "t1"]).ok();
    let rows = |repo: &Repo<'_>| repo.tender(&["log"]).text().lines().count();
    let last = rows(&repo);
    without_last_commit(&repo);
    for args in [&["deliver", "t1"][..], &["recover"], &["start", "a goal", "--scope", "docs/"]] {
        let lost = repo.json(args).fails("store.rolled_back")["details"]["missing"].clone();
        assert_eq!((&lost[0]["taskId"], &lost[0]["seq"]), (&json!("t1"), &json!(last)), "{args:?}");
    }
    // After another start of the machine a power cut may have taken it: recovery comes to the same end.
    let kept = std::fs::read_to_string(anchor(&repo, "t1")).expect("reads");
    let (before, _) = kept.trim_end().rsplit_once(' ').expect("a late head names the machine's start");
    std::fs::write(anchor(&repo, "t1"), format!("{before} another-start\n")).expect("writes");
    assert_eq!(repo.json(&["status"]).ok().json.get("rolledBack"), None);
    repo.json(&["recover"]).ok();
    assert_eq!(repo.json(&["status", "--all"]).ok().json["tasks"][0]["state"], "completed");
}

/// A person goes on without such a row as well, and it is asked once.
#[test]
fn a_person_goes_on_without_the_last_row_of_a_delivery() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.changing("t1", &[("docs/a.md", Some(&lines_with(5, "five")))]);
    repo.json(&["deliver", "t1"]).ok();
    without_last_commit(&repo);
    repo.approve_without_terminal();
    assert!(repo.json(&["recover", "--accept-rollback"]).ok().json["accepted"].is_array());
    assert_eq!(repo.json(&["deliver", "t1"]).ok().json["state"], "completed");
    assert_eq!(repo.text("docs/a.md"), lines_with(5, "five"));
    repo.json(&["recover"]).ok();
}
