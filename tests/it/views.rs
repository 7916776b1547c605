//! Read-only views: they exit 0 whatever they show and write nothing.

use super::open::assert_chain;
use crate::support::repo::lines_with;
use crate::support::snapshot::{same_tree, tree};
use crate::support::{Contract, Lab, Repo, Verifier, shape};
use serde_json::{Value, json};

#[test]
fn in_a_fresh_repository_a_view_makes_nothing() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let before = tree(&repo.join(".git"));
    let status = repo.json(&["status", "--all"]).ok();
    assert_eq!(status.json, json!({"schema": "git-tender/status/v2", "tasks": []}));
    repo.tender(&["log"]).ok();
    for args in [&["report", "t1"][..], &["diff", "t1"], &["show", "sha256:00"], &["log", "t1"]] {
        let answer = repo.tender(args);
        assert!(answer.code == 2 || (args[0] == "log" && answer.code == 0), "{args:?}: {}", answer.all());
    }
    repo.json(&["report", "t1"]).fails("not_found");
    repo.json(&["diff", "t1"]).fails("not_found");
    repo.json(&["deliver", "t1"]).fails("not_found");
    repo.json(&["submit", "t1"]).fails("not_found");
    repo.json(&["cancel", "t1"]).fails("not_found");
    assert!(!repo.store().exists());
    same_tree(&before, &tree(&repo.join(".git")));
    assert!(!lab.path("app.tender").exists());
}

fn busy(lab: &Lab) -> Repo<'_> {
    let repo = lab.repo("app");
    Verifier::new("bad").script("case_bad a\nfinish").commit(&repo);
    repo.submitted(&Contract::new("t1").allowed(&["bad"]), |task| task.write("src/a.txt", "x\n"));
    repo.json(&["verify", "t1"]).result(1);
    repo.changing("t2", &[("docs/a.md", Some(&lines_with(5, "five")))]);
    repo.json(&["deliver", "t2"]).ok();
    repo.open(&Contract::new("t3"));
    repo
}

#[test]
fn views_exit_0_whatever_they_show_and_change_no_byte() {
    let lab = Lab::new();
    let repo = busy(&lab);
    let evidence =
        repo.json(&["report", "t1"]).ok().row("bad")["evidence"].as_str().expect("a reference").to_owned();
    // A checkpointed ledger, so that even opening it must not write.
    let logs = |tree: crate::support::snapshot::Tree| -> crate::support::snapshot::Tree {
        tree.into_iter().filter(|(name, _)| !name.ends_with("-shm") && !name.ends_with("-wal")).collect()
    };
    let (before, store) = (repo.snapshot(), logs(tree(&repo.store())));
    let views: &[&[&str]] = &[
        &["status"],
        &["report", "t1"],
        &["report", "t2"],
        &["report", "t3"],
        &["report", "t1", "--brief"],
        &["diff", "t1"],
        &["log"],
        &["log", "t1"],
        &["show", &evidence],
    ];
    for view in views {
        repo.tender(view).ok();
        if view[0] != "log" {
            repo.json(view).ok();
        }
    }
    before.same(&repo.snapshot());
    same_tree(&store, &logs(tree(&repo.store())));
}

#[test]
fn status_has_the_drawn_shape_and_the_states() {
    let lab = Lab::new();
    let repo = busy(&lab);
    let status = repo.json(&["status", "--all"]).ok();
    shape::check(
        &status.json,
        &json!({"schema": "git-tender/status/v2",
                "tasks": [{"taskId": "$text", "state": "$word", "worktree": "$str?", "bytes": null,
                           "goal": "$text", "createdAt": "$time", "turn": "$any", "next": "$any", "liveConflict": null}]}),
    );
    let state = |id: &str| {
        let tasks = status.json["tasks"].as_array().expect("list");
        tasks.iter().find(|task| task["taskId"] == id).expect("listed")["state"].clone()
    };
    assert_eq!([state("t1"), state("t2"), state("t3")], ["verification_failed", "completed", "open"]);
    let turns = |id: &str| {
        let tasks = status.json["tasks"].as_array().expect("list");
        let task = tasks.iter().find(|task| task["taskId"] == id).expect("listed");
        (task["turn"].clone(), task["next"].clone())
    };
    assert_eq!(turns("t1"), (json!("worker"), json!(["git", "tender", "report", "t1"])));
    assert_eq!(turns("t2"), (Value::Null, Value::Null));
    let text = repo.tender(&["status"]).ok().text();
    assert!(text.contains("t1") && text.contains("t3") && !text.contains("t2"), "{text}");
    assert!(
        text.contains("a change for a test, a moment ago; the worker's turn: git tender ship t3"),
        "{text}"
    );
    assert!(repo.tender(&["status", "--all"]).ok().text().contains("t2"));
}

#[test]
fn the_log_is_one_object_a_line_and_a_chain() {
    let lab = Lab::new();
    let repo = busy(&lab);
    let out = repo.tender(&["log", "--format", "json"]).ok();
    let shape_of_a_line = json!({
        "seq": "$int", "at": "$time", "task": "$str?", "actor": "$word", "action": "$text", "tool": "$text",
        "state": "$word", "paramsSha256": "$sha256", "basis": "$any", "origin": "$any", "result": "$any",
        "prev": "$any", "hash": "$sha256", "version": "$int"
    });
    let lines: Vec<Value> =
        out.text().lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    assert!(lines.len() >= 8, "{}", out.text());
    lines.iter().for_each(|line| shape::check(line, &shape_of_a_line));
    assert_chain(&repo);
    let of_one = repo.tender(&["log", "t2", "--format", "json"]).ok().text();
    assert!(of_one.lines().all(|line| serde_json::from_str::<Value>(line).expect("object")["task"] == "t2"));
    assert!(!of_one.is_empty());
    // No terminal: what asked was an agent, or the harness itself.
    assert!(
        lines.iter().all(|line| line["actor"] == "agent" || line["actor"] == "harness"),
        "{}",
        out.text()
    );
    let tools: Vec<_> = lines.iter().filter_map(|line| line["tool"].as_str()).collect();
    for tool in ["open", "submit", "verify", "deliver"] {
        assert!(tools.contains(&tool), "{tool} is not in {tools:?}");
    }
    let action = lines[0]["action"].as_str().expect("text");
    repo.tender(&["show", action]).ok();
}

#[test]
fn diff_is_the_bound_patch() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.submitted(&Contract::new("t1"), |task| {
        task.write("docs/a.md", lines_with(5, "five"));
        task.write("bin.dat", [0u8, 1, 2, 0]);
    });
    let candidate = repo.json(&["submit", "t1"]).ok();
    let patch = std::fs::read(candidate.json["patch"]["path"].as_str().expect("path")).expect("reads");
    assert_eq!(repo.tender(&["diff", "t1"]).ok().stdout, patch);
    let answer = repo.json(&["diff", "t1"]).ok();
    assert!(answer.json.to_string().contains("docs/a.md"));
}

#[test]
fn show_of_nothing_is_not_found() {
    let lab = Lab::new();
    let repo = busy(&lab);
    let zero = format!("sha256:{}", "0".repeat(64));
    for reference in ["nonsense", zero.as_str(), "../../etc/passwd", "sha256:", ""] {
        repo.json(&["show", reference]).fails_one_of(&["not_found", "arguments.invalid"]);
    }
}

#[test]
fn a_damaged_ledger_is_found_and_said() {
    let lab = Lab::new();
    let repo = busy(&lab);
    let file = repo.store().join("ledger.db");
    for suffix in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", file.display()));
    }
    let mut bytes = std::fs::read(&file).expect("reads");
    let middle = bytes.len() / 2;
    let end = (middle + 6000).min(bytes.len());
    bytes[middle..end].iter_mut().for_each(|byte| *byte ^= 0x5a);
    std::fs::write(&file, bytes).expect("writes");
    let answer = repo.tender(&["log"]);
    assert!(answer.code == 10 || answer.code == 0, "{}", answer.all());
    let recovered = repo.json(&["recover"]);
    if recovered.code != 0 {
        recovered.fails("store.corrupt");
    }
    let before = repo.snapshot();
    repo.tender(&["deliver", "t1"]);
    before.same(&repo.snapshot());
}

#[test]
fn a_ledger_that_is_gone_is_no_empty_one() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.changing("t1", &[("docs/a.md", Some("new\n"))]);
    let ledger = repo.store().join("ledger.db");
    for lost in [true, false] {
        for suffix in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(ledger.with_file_name(format!("ledger.db{suffix}")));
        }
        if !lost {
            std::fs::write(&ledger, b"").expect("writes");
        }
        for args in [
            &["status"][..],
            &["report", "t1"],
            &["log"],
            &["diff", "t1"],
            &["recover"],
            &["gc"],
            &["deliver", "t1"],
            &["start", "a goal", "--scope", "docs/"],
        ] {
            let answer = repo.json(args);
            answer.fails("store.corrupt");
            assert_eq!(answer.code, 10, "{args:?}");
        }
        assert_eq!(ledger.exists(), !lost);
    }
}

#[test]
fn whether_a_candidate_fits_the_live_tree_is_told_where_it_is_asked_for() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.changing("fits", &[("docs/b.md", Some("task's\n"))]);
    repo.changing("conflicts", &[("docs/a.md", Some("task's\n"))]);
    repo.open(&Contract::new("nothing"));
    repo.write("docs/a.md", "mine\n");
    let before = repo.snapshot();
    let status = repo.json(&["status", "--live"]).ok().json;
    let told: Vec<_> = (0..3).map(|at| status["tasks"][at]["liveConflict"].clone()).collect();
    assert_eq!(told, [json!(false), json!(true), Value::Null]);
    let text = repo.tender(&["status", "--live"]).ok().text();
    assert!(
        text.contains("it fits the live tree now") && text.contains("it conflicts with the live tree now")
    );
    before.same(&repo.snapshot());
}
