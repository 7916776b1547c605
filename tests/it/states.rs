//! The life of a task: its states, its ends, `cancel`, `gc`, `recover`.

use crate::support::repo::{LINES, path_text};
use crate::support::{Contract, Lab, Repo, Verifier};

#[track_caller]
fn state(repo: &Repo<'_>, task: &str) -> String {
    let report = repo.json(&["report", task]).ok().json["state"].as_str().expect("a state").to_owned();
    let status = repo.json(&["status", "--all"]).ok();
    let tasks = status.json["tasks"].as_array().expect("list").clone();
    let listed = tasks.iter().find(|entry| entry["taskId"] == task).expect("listed");
    assert_eq!(listed["state"], report.as_str(), "status and report agree");
    report
}

#[test]
fn the_states_follow_the_evidence() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    Verifier::new("unit").script("grep -q BAD src/a.txt && case_bad a\ncase_ok b\nfinish").commit(&repo);
    let task = repo.open(&Contract::new("t1").allowed(&["unit"]));
    assert_eq!(state(&repo, "t1"), "open");
    task.write("src/a.txt", "BAD\n");
    repo.json(&["submit", "t1"]).ok();
    assert_eq!(state(&repo, "t1"), "candidate");
    repo.json(&["verify", "t1"]).result(1);
    assert_eq!(state(&repo, "t1"), "verification_failed");
    task.write("src/a.txt", "good\n");
    repo.json(&["submit", "t1"]).ok();
    assert_eq!(state(&repo, "t1"), "candidate");
    repo.json(&["verify", "t1"]).ok();
    assert_eq!(state(&repo, "t1"), "verified");
    repo.json(&["deliver", "t1"]).ok();
    assert_eq!(state(&repo, "t1"), "completed");
    repo.json(&["undo", "t1"]).ok();
    assert_eq!(state(&repo, "t1"), "undone");
}

#[test]
fn deliver_without_verify_is_missing_evidence() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    Verifier::new("unit").commit(&repo);
    repo.submitted(&Contract::new("t1").allowed(&["unit"]), |task| task.write("src/a.txt", "x\n"));
    let before = repo.snapshot();
    let answer = repo.json(&["deliver", "t1"]);
    let rows = answer.fails("evidence.missing")["details"]["requirements"].clone();
    assert_eq!(rows[0]["verdict"], "not_run");
    before.same(&repo.snapshot());
}

#[test]
fn cancel_is_an_end_after_which_everything_is_refused() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.approve_without_terminal();
    let contract = Contract::new("t1").allowed(&["review"]);
    let task = repo.submitted(&contract, |task| task.write("docs/a.md", "x\n"));
    let before = repo.snapshot();
    repo.json(&["cancel", "t1"]).ok();
    assert_eq!(state(&repo, "t1"), "cancelled");
    for args in [
        &["submit", "t1"][..],
        &["verify", "t1"],
        &["attest", "t1", "review", "--pass", "-m", "x"],
        &["deliver", "t1"],
        &["deliver", "t1", "--dry-run"],
        &["ship", "t1"],
        &["undo", "t1"],
    ] {
        let answer = repo.json(args);
        answer.fails("cancelled");
        assert_eq!(answer.code, 8);
    }
    before.same(&repo.snapshot());
    // Views and the same open still work.
    for view in [&["status"][..], &["report", "t1"], &["diff", "t1"]] {
        repo.json(view).ok();
    }
    repo.tender(&["log", "t1"]).ok();
    let again = repo.open(&contract);
    assert_eq!(again.opened["state"], "cancelled");
    assert!(task.exists("docs/a.md"), "cancel removes nothing");
}

#[test]
fn completed_is_an_end() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.approve_without_terminal();
    let contract = Contract::new("t1");
    repo.changing("t1", &[("docs/a.md", Some("x\n"))]);
    repo.json(&["deliver", "t1"]).ok();
    for args in [
        &["submit", "t1"][..],
        &["verify", "t1"],
        &["attest", "t1", "review", "--pass", "-m", "x"],
        &["cancel", "t1"],
    ] {
        repo.json(args).fails("state.invalid");
    }
    assert_eq!(repo.open(&contract).opened["state"], "completed");
}

#[test]
fn gc_removes_an_ended_tasks_worktree_and_only_that() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let done = repo.changing("t1", &[("docs/a.md", Some("x\n"))]);
    let open = repo.changing("t2", &[("docs/b.md", Some("y\n"))]);
    repo.json(&["deliver", "t1"]).ok();
    repo.git(&["worktree", "add", "-q", "-b", "mine", "../mine"]);
    let before = repo.snapshot();
    repo.json(&["gc"]).ok();
    assert!(!done.worktree.exists());
    assert!(open.exists("docs/b.md"));
    assert!(lab.path("mine/docs/a.md").exists());
    before.same(&repo.snapshot());
    repo.fsck_gc();
    // The report still comes.
    assert_eq!(repo.json(&["report", "t1"]).ok().json["state"], "completed");
    repo.json(&["deliver", "t2"]).ok();
    assert!(!repo.git(&["worktree", "list"]).contains("app.tender/t1"));
}

#[test]
fn gc_keeps_a_worktree_with_work_that_was_not_captured() {
    type Act = fn(&crate::support::Task);
    let cases: &[(&str, Act)] = &[
        ("edited", |t| t.write("docs/a.md", "later work\n")),
        ("new", |t| t.write("later.txt", "later work\n")),
        ("ignored", |t| t.write("notes.log", "ignored, and only here\n")),
        ("mode", |t| t.chmod("docs/b.md", 0o755)),
    ];
    let lab = Lab::new();
    let repo = lab.repo("app");
    for (name, act) in cases {
        let task = repo.changing(name, &[("src/a.txt", Some(&format!("{name}\n")))]);
        act(&task);
        repo.json(&["cancel", name]).ok();
        let before = crate::support::snapshot::tree(&task.worktree);
        let out = repo.tender(&["gc"]);
        assert!(out.all().contains(name), "gc says what it kept: {}", out.all());
        crate::support::snapshot::same_tree(&before, &crate::support::snapshot::tree(&task.worktree));
    }
    // Scratch does not keep it.
    let contract = Contract::new("scratch").set("scratch", serde_json::json!(["out/"]));
    let task = repo.submitted(&contract, |task| task.write("docs/b.md", "z\n"));
    task.write("out/x", "scratch\n");
    repo.json(&["cancel", "scratch"]).ok();
    repo.tender(&["gc"]);
    assert!(!task.worktree.exists());
}

#[test]
fn gc_unlinks_links_and_never_follows_them() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let outside = lab.path("outside");
    std::fs::create_dir(&outside).expect("creates");
    std::fs::write(outside.join("precious"), "precious").expect("writes");
    let contract = Contract::new("t1").set("scratch", serde_json::json!(["out/"]));
    let task = repo.submitted(&contract, |task| task.write("docs/a.md", "x\n"));
    task.link("out/way", path_text(&outside));
    repo.json(&["cancel", "t1"]).ok();
    repo.tender(&["gc"]);
    assert_eq!(std::fs::read(outside.join("precious")).expect("still there"), b"precious");
}

#[test]
fn gc_leaves_a_locked_worktree_and_one_that_was_replaced() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let task = repo.changing("t1", &[("docs/a.md", Some("x\n"))]);
    repo.json(&["cancel", "t1"]).ok();
    repo.git(&["worktree", "lock", path_text(&task.worktree)]);
    repo.tender(&["gc"]);
    assert!(task.exists("docs/a.md"), "locked by someone else");
    let other = repo.changing("t2", &[("docs/a.md", Some("y\n"))]);
    repo.json(&["cancel", "t2"]).ok();
    std::fs::remove_dir_all(&other.worktree).expect("removes");
    std::fs::create_dir(&other.worktree).expect("creates");
    std::fs::write(other.worktree.join("mine"), "mine").expect("writes");
    repo.tender(&["gc"]);
    assert_eq!(std::fs::read(other.worktree.join("mine")).expect("kept"), b"mine");
}

#[test]
fn recover_with_nothing_to_do_does_nothing() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.changing("t1", &[("docs/a.md", Some("x\n"))]);
    repo.json(&["deliver", "t1"]).ok();
    let before = repo.snapshot();
    repo.json(&["recover"]).ok();
    before.same(&repo.snapshot());
}

#[test]
fn a_delivery_killed_at_a_random_moment_is_whole_or_absent_after_recovery() {
    let lab = Lab::new();
    let trials = crate::support::setting("TENDER_KILL_TRIALS", 8);
    for trial in 0..trials {
        let repo = lab.repo(&format!("r{trial}"));
        let names: Vec<String> = (0..60).map(|n| format!("many/f{n}.txt")).collect();
        names.iter().for_each(|name| repo.write(name, "old\n"));
        repo.commit("many");
        let files: Vec<_> = names.iter().map(|name| (name.as_str(), Some("new\n"))).collect();
        repo.changing("t1", &files);
        let entries = repo.snapshot().files.len();
        let mut command = lab.tender_command(&repo.path);
        let mut child =
            command.args(["deliver", "t1"]).stdout(std::process::Stdio::null()).spawn().expect("starts");
        std::thread::sleep(std::time::Duration::from_millis(10 + trial * 15));
        child.kill().expect("kills");
        child.wait().expect("waits");
        repo.json(&["recover"]).ok();
        let texts: Vec<_> = names.iter().map(|name| repo.text(name)).collect();
        let new = texts.iter().filter(|text| *text == "new\n").count();
        assert!(new == 0 || new == names.len(), "trial {trial}: {new} of {} are new", names.len());
        assert_eq!(repo.snapshot().files.len(), entries, "trial {trial}: no temporary file is left");
        repo.fsck_gc();
        repo.json(&["deliver", "t1"]).ok();
        assert!(names.iter().all(|name| repo.text(name) == "new\n"));
        assert_eq!(repo.text("docs/a.md"), LINES);
    }
}

#[test]
fn a_private_folder_that_was_removed_stops_neither_delivery_nor_collection() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    for id in ["t1", "t2"] {
        repo.changing(id, &[("docs/a.md", Some("new\n"))]);
        std::fs::remove_dir_all(repo.store().join("tasks").join(id)).expect("removes");
    }
    repo.json(&["cancel", "t2"]).ok();
    repo.json(&["deliver", "t1"]).ok();
    assert_eq!(repo.text("docs/a.md"), "new\n");
    for id in ["t1", "t2"] {
        let _ = std::fs::remove_dir_all(repo.store().join("tasks").join(id));
    }
    let collected = repo.json(&["gc"]).ok().json;
    assert_eq!(collected["removed"], serde_json::json!(["t1", "t2"]), "{collected:#}");
}
