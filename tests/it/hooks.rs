//! Hooks of the repository's owners: guards block a worker's calls, observers only hear, and no candidate
//! decides which.

use crate::support::worker::Worker;
use crate::support::{Contract, Lab, Repo};
use serde_json::{Value, json};
use std::path::Path;

/// A repository with hooks, each as (event, kind, body of its script).
fn hooked<'l>(lab: &'l Lab, hooks: &[(&str, &str, String)]) -> Repo<'l> {
    let repo = lab.repo("app");
    let mut config = String::new();
    for (number, (event, kind, body)) in hooks.iter().enumerate() {
        let script = format!(".tender/hooks/h{number}.sh");
        repo.write(&script, format!("#!/bin/sh\n{body}"));
        repo.chmod(&script, 0o755);
        config += &hook(event, kind, &format!("[\"{script}\"]"));
    }
    repo.write(".tender/config.toml", config);
    repo.commit("hooks");
    repo
}

fn hook(event: &str, kind: &str, command: &str) -> String {
    format!("[[hooks]]\nevent = \"{event}\"\nkind = \"{kind}\"\ncommand = {command}\ntimeout = \"20s\"\n")
}

fn opened(repo: &Repo<'_>) -> Worker {
    repo.open(&Contract::new("t1").set("allowedTools", json!(["read_file", "note_finding"])));
    Worker::of(repo, "t1")
}

/// Appends what the hook reads to a file.
fn keeps(file: &Path) -> String {
    format!("cat >> '{}'\n", file.display())
}

fn heard(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("one object a line")).collect()
}

fn blocked(worker: &Worker) {
    worker.refused("read_file", json!({"path": "docs/a.md"}), "permission.denied");
}

#[test]
fn a_guard_sees_the_call_and_says_no_in_its_own_words() {
    let lab = Lab::new();
    let seen = lab.path("seen");
    let body = format!(
        "tee -a '{}' | grep -q secret && {{ echo 'not that file' >&2; exit 3; }}\nexit 0\n",
        seen.display()
    );
    let repo = hooked(&lab, &[("before_action", "guard", body)]);
    repo.write("docs/secret.md", "x\n");
    repo.commit("a file");
    let worker = opened(&repo);
    worker.ok("read_file", json!({"path": "docs/a.md"}));
    let failure = worker.refused("read_file", json!({"path": "docs/secret.md"}), "permission.denied");
    assert_eq!(failure["subject"], ".tender/hooks/h0.sh");
    assert_eq!(
        (&failure["details"]["exitCode"], &failure["details"]["stderr"]),
        (&json!(3), &json!(["not that file"]))
    );
    let told = heard(&seen);
    assert_eq!(told.len(), 2);
    let first = &told[0];
    assert_eq!((&first["schema"], &first["event"]), (&json!("git-tender/hook/v1"), &json!("before_action")));
    assert_eq!(
        (&first["taskId"], &first["tool"], &first["actor"]),
        (&json!("t1"), &json!("read_file"), &json!("agent"))
    );
    assert_eq!(
        (&first["arguments"], &first["contract"]["version"]),
        (&json!({"path": "docs/a.md"}), &json!(1))
    );
    let rows = repo.tender(&["log", "t1", "--format", "json"]).ok().text();
    let denied: Value = serde_json::from_str(rows.lines().last().expect("a row")).expect("a row");
    assert_eq!((&denied["state"], &denied["action"]), (&json!("denied"), &told[1]["action"]));
    // What is not allowed anyway no guard is asked about.
    worker.refused("list_files", json!({}), "tool.not_allowed");
    worker.refused("read_file", json!({"path": "../x"}), "scope.violation");
    assert_eq!(heard(&seen).len(), 2);
}

#[test]
fn a_guard_that_cannot_answer_blocks() {
    let lab = Lab::new();
    for (name, command, timeout, detail) in [
        ("missing", "[\"no-such-program\"]", "20s", "could not be started"),
        ("nofile", "[\".tender/hooks/none.sh\"]", "20s", "could not be started"),
        ("killed", "[\"sh\", \"-c\", \"kill -9 $$\"]", "20s", "signal 9"),
        ("slow", "[\"sleep\", \"60\"]", "100ms", "within 100 ms"),
        ("plain", "[\".tender/hooks/plain.sh\"]", "20s", "could not be started"),
    ] {
        let repo = lab.repo(name);
        repo.write(".tender/hooks/plain.sh", "#!/bin/sh\nexit 0\n");
        repo.write(".tender/config.toml", hook("before_action", "guard", command).replace("20s", timeout));
        repo.commit("hooks");
        let worker = opened(&repo);
        let failure = worker.refused("read_file", json!({"path": "docs/a.md"}), "permission.denied");
        assert!(failure["message"].as_str().expect("text").contains(detail), "{name}: {failure:#}");
        let report = repo.json(&["report", "t1"]).ok();
        assert_eq!(report.json["budget"]["toolCalls"]["used"], 1, "{name}: it was charged on arrival");
    }
}

#[test]
fn guards_are_asked_in_order_until_one_says_no() {
    let lab = Lab::new();
    let seen = lab.path("seen");
    let says =
        |word: &str, code: u8| format!("cat > /dev/null; echo {word} >> '{}'; exit {code}\n", seen.display());
    let repo = hooked(
        &lab,
        &[
            ("before_action", "guard", says("one", 0)),
            ("before_action", "guard", says("two", 1)),
            ("before_action", "guard", says("three", 0)),
        ],
    );
    let worker = opened(&repo);
    assert_eq!(
        worker.refused("read_file", json!({"path": "docs/a.md"}), "permission.denied")["subject"],
        ".tender/hooks/h1.sh"
    );
    assert_eq!(std::fs::read_to_string(&seen).expect("asked"), "one\ntwo\n");
}

#[test]
fn observers_hear_counts_and_can_hinder_nothing() {
    let lab = Lab::new();
    let (before, after, ends) = (lab.path("before"), lab.path("after"), lab.path("ends"));
    let repo = hooked(
        &lab,
        &[
            ("before_action", "observer", keeps(&before) + "exit 7\n"),
            ("after_action", "observer", keeps(&after) + "kill -9 $$\n"),
            ("after_task", "observer", keeps(&ends)),
            ("after_action", "observer", "exec /nonexistent\n".to_owned()),
        ],
    );
    let worker = opened(&repo);
    worker.ok("read_file", json!({"path": "docs/a.md"}));
    worker.refused("read_file", json!({"path": "docs/none.md"}), "not_found");
    let told = heard(&before);
    assert_eq!((told.len(), &told[0]["tool"]), (2, &json!("read_file")));
    let told = heard(&after);
    assert_eq!((&told[0]["outcome"], &told[1]["outcome"]), (&json!("ok"), &json!("not_found")));
    assert!(told[0]["durationMs"].is_u64() && told[0]["answerBytes"].is_u64(), "{told:#?}");
    let all = [std::fs::read_to_string(&before), std::fs::read_to_string(&after)]
        .map(|text| text.expect("heard"))
        .concat();
    assert!(!all.contains("a.md") && !all.contains("line 1") && !all.contains("arguments"), "{all}");
    assert_eq!(heard(&ends).len(), 0);
    repo.json(&["cancel", "t1"]).ok();
    repo.changing("t2", &[("docs/b.md", Some("x\n"))]);
    repo.json(&["deliver", "t2", "--dry-run"]).ok();
    repo.json(&["deliver", "t2"]).ok();
    repo.json(&["deliver", "t2"]).ok();
    repo.json(&["undo", "t2"]).ok();
    let ends: Vec<(Value, Value)> =
        heard(&ends).into_iter().map(|told| (told["taskId"].clone(), told["state"].clone())).collect();
    let expected = [("t1", "cancelled"), ("t2", "completed"), ("t2", "undone")];
    assert_eq!(ends, expected.map(|(task, state)| (json!(task), json!(state))));
}

#[test]
fn no_candidate_and_no_uncommitted_file_decides_what_guards_it() {
    let lab = Lab::new();
    let repo = hooked(&lab, &[("before_action", "guard", "exit 1\n".to_owned())]);
    let task = repo.open(&Contract::new("t1"));
    let worker = Worker::of(&repo, "t1");
    let harmless = "#!/bin/sh\nexit 0\n";
    for place in [&repo.path, &task.worktree] {
        std::fs::write(place.join(".tender/hooks/h0.sh"), harmless).expect("writes");
        std::fs::write(place.join(".tender/config.toml"), "").expect("writes");
    }
    blocked(&worker);
    repo.json(&["submit", "t1"]).ok();
    blocked(&worker);
    // A guard that lies where the worker works is none.
    let repo = lab.repo("second");
    repo.write(
        ".tender/config.toml",
        hook(
            "before_action",
            "guard",
            &format!("[\"{}/second.tender/t1/guard.sh\"]", lab.path("").display()),
        ),
    );
    repo.commit("hooks");
    let task = repo.open(&Contract::new("t1"));
    task.write("guard.sh", harmless);
    task.chmod("guard.sh", 0o755);
    let worker = Worker::of(&repo, "t1");
    let failure = worker.refused("read_file", json!({"path": "docs/a.md"}), "permission.denied");
    assert!(failure["message"].as_str().expect("text").contains("worktree"), "{failure:#}");
}

#[test]
fn hooks_of_the_private_layer_run_beside_the_committed_ones_and_from_there() {
    let lab = Lab::new();
    let (seen, own) = (lab.path("seen"), lab.path("own"));
    let repo = hooked(&lab, &[("after_action", "observer", keeps(&seen))]);
    repo.write(".git/tender/local/hooks/own.sh", format!("#!/bin/sh\n{}exit 4\n", keeps(&own)));
    repo.chmod(".git/tender/local/hooks/own.sh", 0o700);
    for command in ["[\"hooks/own.sh\"]", "[\"sh\", \".tender/hooks/own.sh\"]"] {
        let id = format!("t{}", command.len());
        repo.write(".git/tender/local/config.toml", hook("before_action", "guard", command));
        repo.open(&Contract::new(&id));
        let worker = Worker::of(&repo, &id);
        assert_eq!(
            worker.refused("read_file", json!({"path": "docs/a.md"}), "permission.denied")["details"]["exitCode"],
            4
        );
    }
    assert_eq!((heard(&own).len(), heard(&seen).len()), (2, 2));
    // What was fixed at `open` is not taken away later.
    std::fs::remove_file(repo.join(".git/tender/local/config.toml")).expect("removes");
    let first = Worker::of(&repo, "t16");
    blocked(&first);
}

#[test]
fn a_hook_finds_neither_the_callers_home_nor_its_secrets_and_shows_none() {
    let lab = Lab::new();
    let seen = lab.path("seen");
    let body = format!(
        "env | cut -d= -f1 | sort > '{}'; pwd >> '{}'; echo \"it is $(cat '{}')\" >&2; exit 1\n",
        seen.display(),
        seen.display(),
        lab.path("token").display()
    );
    let repo = hooked(&lab, &[("before_action", "guard", body)]);
    std::fs::write(lab.path("token"), "hunter2hunter2").expect("writes");
    let task = repo.open(&Contract::new("t1"));
    let worker = Worker::with(&repo, "t1", &[("DEPLOY_TOKEN", "hunter2hunter2")]);
    let failure = worker.refused("read_file", json!({"path": "docs/a.md"}), "permission.denied");
    let said = failure["details"]["stderr"][0].as_str().expect("text");
    assert!(said.starts_with("it is") && !said.contains("hunter2"), "{said}");
    let seen = std::fs::read_to_string(&seen).expect("ran");
    assert!(!seen.contains("DEPLOY_TOKEN") && !seen.contains("GIT_"), "{seen}");
    let cwd = Path::new(seen.lines().last().expect("a folder"));
    assert!(!cwd.starts_with(&repo.path) && !cwd.starts_with(&task.worktree) && !cwd.exists(), "{seen}");
}
