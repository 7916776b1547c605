//! Budgets: what is shown, what is charged, what happens once one is spent, and who may add to it.

use crate::support::{Contract, Lab, Repo, Verifier, verifier};
use serde_json::{Value, json};

const KEYS: [&str; 6] =
    ["wallSeconds", "toolCalls", "turns", "outputBytes", "artifactBytes", "repeatedFailures"];

fn budget(repo: &Repo<'_>, task: &str) -> Value {
    repo.json(&["report", task]).ok().json["budget"].clone()
}

fn state(repo: &Repo<'_>, task: &str) -> Value {
    repo.json(&["report", task]).ok().json["state"].clone()
}

/// A task with a candidate that `first` judges, and then `second`, which passes. Both depend on `src/`.
fn judged(repo: &Repo<'_>, id: &str, first: &str, limits: Value) -> crate::support::Task {
    if !repo.exists(".tender/verifiers/first/verifier.toml") {
        Verifier::new("first").script(first).commit(repo);
        Verifier::new("second").commit(repo);
    }
    let contract = Contract::new(id).allowed(&["first", "second"]).set("budget", limits);
    repo.submitted(&contract, |task| task.write("src/a.txt", format!("{id}\n")))
}

#[test]
fn every_key_is_shown_with_what_is_used_and_its_limit() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.write(".tender/config.toml", "[policy.budget.edit]\ntoolCalls = 7\nwallSeconds = 600\n");
    repo.commit("policy");
    let opened =
        repo.open(&Contract::new("t1").set("budget", json!({"wallSeconds": 601, "turns": 3}))).opened;
    let narrowed = opened["narrowed"].to_string();
    assert!(
        narrowed.contains("budget.wallSeconds 601 narrowed to 600 by policy.budget.edit.wallSeconds"),
        "{narrowed}"
    );
    let shown = budget(&repo, "t1");
    let keys: Vec<&String> = shown.as_object().expect("an object").keys().collect();
    assert_eq!(keys, KEYS);
    let limits: Vec<&Value> = KEYS.iter().map(|key| &shown[key]["limit"]).collect();
    assert_eq!(limits, [&json!(600), &json!(7), &json!(3), &json!(256 << 20), &json!(64 << 20), &json!(5)]);
    assert_eq!(shown["turns"]["used"], "not measured");
    for key in ["wallSeconds", "toolCalls", "outputBytes", "artifactBytes", "repeatedFailures"] {
        assert_eq!(shown[key]["used"], 0, "{key}");
    }
    assert_eq!(repo.json(&["report", "t1", "--brief"]).ok().json["budget"], shown);
}

#[test]
fn the_help_has_the_limits_of_the_documentation() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let documentation = include_str!("../../docs/budgets.md").replace(['|', '`'], " ");
    for text in
        [repo.tender(&["start", "--help"]).ok().text(), repo.tender(&["resume", "--help"]).ok().text()]
    {
        for key in ["wallSeconds", "toolCalls", "turns", "outputBytes", "artifactBytes", "repeatedFailures"] {
            let of = |line: &str| -> Vec<u64> {
                let words: Vec<&str> = line.split_whitespace().collect();
                let named = words.first() == Some(&key);
                words.iter().filter(|_| named).filter_map(|cell| cell.parse().ok()).take(3).collect()
            };
            let limits = |text: &str| text.lines().map(of).find(|numbers| numbers.len() == 3);
            let documented = limits(&documentation);
            assert!(documented.is_some(), "{key} is documented");
            assert_eq!(limits(&text), documented, "{key}");
        }
    }
}

#[test]
fn a_run_is_charged_and_evidence_that_is_reused_costs_nothing() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    judged(&repo, "t1", "head -c 3000 /dev/zero | tr '\\0' x >&2\nsleep 1.1\ncase_ok a\nfinish", json!({}));
    repo.json(&["verify", "t1"]).ok();
    let once = budget(&repo, "t1");
    let (seconds, bytes) = (once["wallSeconds"]["used"].as_u64(), once["outputBytes"]["used"].as_u64());
    assert!(seconds >= Some(2), "{once}");
    assert!(bytes >= Some(3000) && bytes < Some(4000), "{once}");
    repo.json(&["verify", "t1"]).ok();
    assert_eq!(budget(&repo, "t1"), once, "nothing ran");
    repo.json(&["deliver", "t1"]).ok();
    assert_eq!(budget(&repo, "t1")["wallSeconds"], once["wallSeconds"]);
}

#[test]
fn every_attempt_is_charged() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let script = "head -c 1000 /dev/zero | tr '\\0' x >&2\ncase_bad a\nfinish";
    Verifier::new("first").script(script).key("attempts = 3").commit(&repo);
    repo.submitted(&Contract::new("t1").allowed(&["first"]), |task| task.write("src/a.txt", "x\n"));
    repo.json(&["verify", "t1"]).result(1);
    assert!(budget(&repo, "t1")["outputBytes"]["used"].as_u64() >= Some(3000));
}

#[test]
fn a_run_is_cut_to_what_is_left_and_the_task_pauses() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let marks = lab.path("marks");
    let script = format!(
        "{}[ -e '{}' ] || sleep 60\ncase_ok a\nfinish",
        verifier::counting(&marks),
        lab.path("quick").display()
    );
    judged(&repo, "t1", &script, json!({"wallSeconds": 1}));
    let answer = repo.json(&["verify", "t1"]).result(1);
    assert_eq!(answer.verdict("first"), "error");
    assert!(answer.reason("first").contains("wallSeconds"), "{:#}", answer.json);
    assert_eq!(answer.verdict("second"), "not_run", "{:#}", answer.json);
    assert!(answer.reason("second").contains("wallSeconds 1 of 1"), "{:#}", answer.json);
    assert_eq!(state(&repo, "t1"), "incomplete");
    let report = repo.json(&["report", "t1"]).ok();
    assert!(report.reason("second").contains("wallSeconds"), "{:#}", report.json);
    assert_eq!(report.json["candidate"], 1);
    let before = repo.snapshot();
    for args in [
        &["submit", "t1"][..],
        &["verify", "t1"],
        &["deliver", "t1"],
        &["deliver", "t1", "--dry-run"],
        &["ship", "t1"],
    ] {
        let answer = repo.json(args);
        let error = answer.fails("budget.exhausted");
        let kept = json!({"wallSeconds": {"used": 1, "limit": 1}, "candidate": 1, "candidateState": "verification_failed"});
        assert_eq!(error["details"], kept, "{args:?}");
        assert!(error["message"].as_str().expect("text").contains("candidate 1"), "{error:#}");
        assert_eq!(error["remedy"]["command"][2], "resume");
    }
    before.same(&repo.snapshot());
    assert_eq!(verifier::runs(&marks), 1, "a restart refills nothing");
    // A person goes on: with more budget, or without.
    std::fs::write(lab.path("quick"), "").expect("writes");
    let denied = repo.json(&["resume", "t1", "--add", "wallSeconds=100"]);
    denied.fails("permission.denied");
    assert_eq!(state(&repo, "t1"), "incomplete");
    repo.approve_without_terminal();
    repo.json(&["verify", "t1"]).ok();
    assert_eq!(state(&repo, "t1"), "incomplete", "more is used than there is");
    let resumed = repo.json(&["resume", "t1", "--add", "wallSeconds=100", "--add", "turns=2"]).ok().json;
    assert_eq!((&resumed["schema"], &resumed["state"]), (&json!("git-tender/task/v1"), &json!("verified")));
    let shown = budget(&repo, "t1");
    assert_eq!((&shown["wallSeconds"]["limit"], &shown["turns"]["limit"]), (&json!(101), &json!(102)));
    repo.json(&["deliver", "t1"]).ok();
    repo.json(&["resume", "t1", "--add", "turns=2"]).fails("state.invalid");
    let log = repo.tender(&["log", "t1", "--format", "json"]).ok().text();
    let row = log.lines().find(|line| line.contains("\"resumed\"")).expect("it is recorded");
    let row: Value = serde_json::from_str(row).expect("JSON");
    assert_eq!((&row["tool"], &row["result"]["added"]["wallSeconds"]), (&json!("resume"), &json!(100)));
    assert!(row["basis"]["contract"]["sha256"].is_string(), "it names its basis: {row:#}");
}

#[test]
fn a_flood_ends_where_the_output_budget_does() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    judged(&repo, "t1", "yes\ncase_ok a\nfinish", json!({"outputBytes": 300_000}));
    let answer = repo.json(&["verify", "t1"]).result(1);
    assert_eq!(answer.verdict("first"), "error");
    assert!(answer.reason("first").contains("outputBytes"), "{:#}", answer.json);
    assert!(answer.reason("second").contains("outputBytes"), "{:#}", answer.json);
    let used = budget(&repo, "t1")["outputBytes"]["used"].as_u64().expect("a number");
    assert!((300_000..100_000_000).contains(&used), "{used}");
    let answer = repo.json(&["submit", "t1"]);
    assert_eq!(answer.fails("budget.exhausted")["details"]["outputBytes"]["limit"], 300_000);
}

#[test]
fn who_passes_over_the_output_budget_before_the_stop_has_not_passed() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let script = "head -c 60000 /dev/zero | tr '\\0' x >&2\ncase_ok a\nfinish";
    judged(&repo, "t1", script, json!({"outputBytes": 10}));
    let answer = repo.json(&["verify", "t1"]).result(1);
    assert_eq!(answer.verdict("first"), "error", "{:#}", answer.json);
    assert!(answer.reason("first").contains("outputBytes"), "{:#}", answer.json);
    assert_eq!(state(&repo, "t1"), "incomplete");
    repo.json(&["verify", "t1"]).fails("budget.exhausted");
}

#[test]
fn who_sleeps_beyond_the_time_leaves_the_task_incomplete() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    judged(&repo, "t1", "sleep 60\ncase_ok a\nfinish", json!({"wallSeconds": 2}));
    let answer = repo.json(&["verify", "t1"]).result(1);
    assert_eq!(answer.verdict("first"), "error", "{:#}", answer.json);
    assert!(answer.reason("first").contains("wallSeconds"), "{:#}", answer.json);
    assert_eq!(state(&repo, "t1"), "incomplete");
}

#[test]
fn a_person_adds_within_the_policy_and_the_arguments_are_looked_at() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.write(".tender/config.toml", "[policy.budget.edit]\nwallSeconds = 50\nturns = 3\n");
    repo.commit("policy");
    repo.approve_without_terminal();
    repo.open(&Contract::new("t1").set("budget", json!({"wallSeconds": 40})));
    for wish in [
        "bogus=1",
        "wallSeconds",
        "wallSeconds=",
        "wallSeconds=0",
        "wallSeconds=-1",
        "wallSeconds=+1",
        "wallSeconds=1.5",
        "=1",
        "wallSeconds=99999999999999999999",
    ] {
        let answer = repo.json(&["resume", "t1", "--add", wish]);
        assert!(answer.fails("arguments.invalid").to_string().contains("add"), "{wish}");
    }
    repo.json(&["resume", "t1", "--add", "turns=1", "--add", "turns=1"]).fails("arguments.invalid");
    let largest = format!("toolCalls={}", u64::MAX);
    repo.json(&["resume", "t1", "--add", &largest]).fails("arguments.invalid");
    let resumed = repo.json(&["resume", "t1", "--add", "wallSeconds=100"]).ok().json;
    assert!(resumed["narrowed"].to_string().contains("140 narrowed to 50"), "{resumed:#}");
    assert_eq!(budget(&repo, "t1")["wallSeconds"]["limit"], 50);
    let denied = repo.json(&["resume", "t1", "--add", "wallSeconds=1", "--add", "turns=1"]);
    denied.fails("permission.denied");
    repo.json(&["resume", "nobody", "--add", "turns=1"]).fails("not_found");
    repo.json(&["cancel", "t1"]).ok();
    repo.json(&["resume", "t1", "--add", "toolCalls=1"]).fails("cancelled");
}

#[test]
fn a_run_that_was_killed_is_charged_when_it_is_found() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let started = lab.path("started");
    let script = format!("echo > '{}'\nsleep 60\ncase_ok a\nfinish", started.display());
    judged(&repo, "t1", &script, json!({"wallSeconds": 30}));
    let mut child = super::cancel::background(&repo, &["verify", "t1"]);
    super::cancel::wait_for(&started);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    child.kill().expect("kills");
    child.wait().expect("waits");
    repo.json(&["recover"]).ok();
    let used = budget(&repo, "t1")["wallSeconds"]["used"].as_u64();
    assert!(used >= Some(1) && used <= Some(30), "{used:?}");
    assert_eq!(state(&repo, "t1"), "candidate");
}
