//! Sub-tasks: within their parent's contract, on its budget, and ended with it.

use super::cancel::{background, wait_for};
use crate::support::mcp::Client;
use crate::support::{Answer, Contract, Lab, Out, Repo, Verifier};
use serde_json::{Value, json};

fn parent(repo: &Repo<'_>, limits: Value) {
    let contract = Contract::new("top").scope(&["docs/", "src/"]).allowed(&["unit"]).set("budget", limits);
    repo.open(&contract);
}

fn part(id: &str, of: &str) -> Contract {
    Contract::new(id).scope(&["src/"]).allowed(&["unit"]).set("parent", json!(of))
}

fn used(repo: &Repo<'_>, task: &str, key: &str) -> u64 {
    repo.json(&["report", task]).ok().json["budget"][key]["used"].as_u64().expect("a number")
}

#[test]
fn a_part_is_within_its_parent_or_refused_by_field() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.open_fails(&part("p1", "nobody")).fails("not_found");
    parent(&repo, json!({"wallSeconds": 100}));
    for (contract, field) in [
        (part("p1", "top").scope(&["README.md"]), "writeScope"),
        (part("p1", "top").scope(&["**"]), "writeScope"),
        (part("p1", "top").set("allowedTools", json!(["shell"])), "allowedTools"),
        (part("p1", "top").set("budget", json!({"wallSeconds": 101})), "budget.wallSeconds"),
        (part("p1", "top").set("sandbox", json!("optional")), "sandbox"),
        (part("p1", "top").set("commitAllowed", json!(true)), "commitAllowed"),
    ] {
        let answer = repo.open_fails(&contract);
        let error = answer.fails("contract.invalid");
        assert_eq!(error["subject"], field, "{error:#}");
        assert!(
            !error["details"]["expected"].is_null() && !error["details"]["actual"].is_null(),
            "{error:#}"
        );
    }
    repo.open_fails(&part("p1", "p1")).fails("contract.invalid");
    let network = part("p1", "top").set("network", json!("enabled"));
    repo.open_fails(&network).fails_one_of(&["contract.invalid", "not_supported"]);
    let task = repo.open(&part("p1", "top"));
    assert_eq!(task.opened["state"], "open");
    let again = repo.open(&part("p1", "top"));
    assert_eq!(again.opened["contract"], task.opened["contract"]);
    let limits = repo.json(&["report", "p1"]).ok().json["budget"].clone();
    assert_eq!(limits["wallSeconds"]["limit"], 100, "what it does not ask for is its parent's at most");
    repo.json(&["cancel", "top"]).ok();
    repo.open_fails(&part("p2", "top")).fails("state.invalid");
    repo.changing("done", &[("docs/a.md", Some("x\n"))]);
    repo.json(&["deliver", "done"]).ok();
    repo.open_fails(&part("p3", "done")).fails("state.invalid");
}

#[test]
fn the_parents_policy_holds_for_its_parts() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.write(".tender/config.toml", "[policy]\nwrite = [\"docs/\"]\n");
    repo.commit("policy");
    repo.open(&Contract::new("top").scope(&["docs/", "src/"]));
    repo.write(".tender/config.toml", "");
    repo.commit("no policy");
    let contract = Contract::new("p1").scope(&["docs/", "src/"]).set("parent", json!("top"));
    let task = repo.open(&contract);
    task.write("docs/a.md", "within\n");
    repo.json(&["submit", "p1"]).ok();
    task.write("src/a.txt", "the parent may not\n");
    assert!(repo.json(&["submit", "p1"]).fails("scope.violation").to_string().contains("src/a.txt"));
}

#[test]
fn what_parts_use_counts_for_the_parent_and_stops_all_of_them() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    Verifier::new("unit").script("head -c 2000 /dev/zero | tr '\\0' x >&2\ncase_ok a\nfinish").commit(&repo);
    parent(&repo, json!({"outputBytes": 5000}));
    repo.submitted(&part("p1", "top"), |task| task.write("src/a.txt", "1\n"));
    repo.submitted(&part("p2", "p1"), |task| task.write("src/a.txt", "2\n"));
    repo.submitted(&part("p3", "top"), |task| task.write("src/a.txt", "3\n"));
    repo.json(&["verify", "p2"]).ok();
    let once = used(&repo, "p2", "outputBytes");
    assert!(once >= 2000);
    assert_eq!((used(&repo, "p1", "outputBytes"), used(&repo, "top", "outputBytes")), (once, once));
    assert_eq!(used(&repo, "p3", "outputBytes"), 0, "a sibling's is not its own");
    repo.json(&["verify", "p1"]).ok();
    let answer = repo.json(&["verify", "p3"]);
    assert!(answer.code == 0 || answer.code == 1, "{:#}", answer.json);
    assert!(used(&repo, "top", "outputBytes") >= 5000);
    for (task, state) in
        [("top", "incomplete"), ("p1", "incomplete"), ("p2", "incomplete"), ("p3", "incomplete")]
    {
        assert_eq!(repo.json(&["report", task]).ok().json["state"], state, "{task}");
    }
    let error = repo.json(&["submit", "p2"]);
    let error = error.fails("budget.exhausted");
    assert_eq!(error["remedy"]["command"][3], "top", "it is the parent's that has to grow: {error:#}");
    repo.approve_without_terminal();
    repo.json(&["resume", "top", "--add", "outputBytes=100000"]).ok();
    assert_ne!(repo.json(&["report", "p2"]).ok().json["state"], "incomplete");
}

#[test]
fn parts_side_by_side_do_not_use_the_same_rest_twice() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    Verifier::new("unit").script("sleep 3\ncase_ok a\nfinish").commit(&repo);
    parent(&repo, json!({"wallSeconds": 4}));
    let names = ["p1", "p2", "p3"];
    for name in names {
        repo.submitted(&part(name, "top"), |task| task.write("src/a.txt", format!("{name}\n")));
    }
    let children: Vec<_> = names.iter().map(|name| background(&repo, &["verify", name])).collect();
    let mut passed = 0;
    for child in children {
        let answer = Answer::of(Out::new("verify".to_owned(), child.wait_with_output().expect("waits")));
        let Some(rows) = answer.json["requirements"].as_array() else {
            answer.fails_one_of(&["budget.exhausted", "store.busy"]);
            continue;
        };
        match rows[0]["verdict"].as_str() {
            Some("passed") => passed += 1,
            _ => assert!(rows[0]["reason"].to_string().contains("wallSeconds"), "{:#}", answer.json),
        }
    }
    assert!(passed <= 1, "three seconds fit only once into four");
    let sum: u64 = names.iter().map(|name| used(&repo, name, "wallSeconds")).sum();
    assert!(used(&repo, "top", "wallSeconds") <= 4, "sum of the parts: {sum}");
}

#[test]
fn candidates_of_a_family_share_the_artifact_budget() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    parent(&repo, json!({"artifactBytes": 1000}));
    let big = |n: usize| "x".repeat(n);
    let one = repo.submitted(&part("p1", "top"), |task| task.write("src/a.txt", big(600)));
    assert_eq!(used(&repo, "top", "artifactBytes"), 600);
    let two = repo.open(&part("p2", "top"));
    two.write("src/b.txt", big(500));
    repo.json(&["submit", "p2"]).fails("budget.exhausted");
    two.write("src/b.txt", big(400));
    repo.json(&["submit", "p2"]).ok();
    // Its own former candidate is replaced, not added to.
    one.write("src/a.txt", big(599));
    repo.json(&["submit", "p1"]).ok();
    assert_eq!(used(&repo, "top", "artifactBytes"), 999);
    repo.json(&["cancel", "p2"]).ok();
    one.write("src/a.txt", big(1000));
    repo.json(&["submit", "p1"]).ok();
}

#[test]
fn cancelling_a_parent_cancels_its_open_parts() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    parent(&repo, json!({}));
    repo.open(&part("p1", "top"));
    repo.open(&part("p2", "p1"));
    repo.submitted(&part("p3", "top").without("verification"), |task| task.write("src/a.txt", "x\n"));
    repo.json(&["deliver", "p3"]).ok();
    repo.open(&Contract::new("other"));
    let cancelled = repo.json(&["cancel", "top"]).ok().json;
    assert_eq!(cancelled["parts"], json!(["p1", "p2"]));
    let status = repo.json(&["status", "--all"]).ok().json;
    let states: Vec<String> = status["tasks"]
        .as_array()
        .expect("tasks")
        .iter()
        .map(|task| {
            format!(
                "{}:{}",
                task["taskId"].as_str().unwrap_or_default(),
                task["state"].as_str().unwrap_or_default()
            )
        })
        .collect();
    assert_eq!(states, ["top:cancelled", "p1:cancelled", "p2:cancelled", "p3:completed", "other:open"]);
}

/// Two parts of a task that has one call left, and a guard that holds every `finish` up until there is a file
/// `go`.
fn one_call_left(lab: &Lab) -> Repo<'_> {
    let repo = lab.repo("app");
    let guard = format!(
        "#!/bin/sh\ngrep -q '\"finish\"' || exit 0\n: > '{}'\nwhile [ ! -e '{}' ]; do sleep 0.02; done\n",
        lab.path("held").display(),
        lab.path("go").display()
    );
    repo.write(".tender/hooks/guard.sh", guard);
    repo.chmod(".tender/hooks/guard.sh", 0o755);
    repo.write(
        ".tender/config.toml",
        "[[hooks]]\nevent = \"before_action\"\nkind = \"guard\"\ncommand = [\".tender/hooks/guard.sh\"]\ntimeout = \"60s\"\n",
    );
    // It runs for several of the slices that a run gets at a time.
    Verifier::new("unit").script("sleep 2.5\ncase_ok a\nfinish").commit(&repo);
    parent(&repo, json!({"toolCalls": 1, "wallSeconds": 16}));
    for name in ["p1", "p2"] {
        repo.open(&part(name, "top")).write("src/a.txt", format!("{name}\n"));
    }
    repo
}

#[test]
fn the_last_call_is_carried_out_whoever_asks_for_more_meanwhile() {
    let lab = Lab::new();
    let repo = one_call_left(&lab);
    let (mut one, mut two) = (Client::open(&repo, "p1"), Client::open(&repo, "p2"));
    let charged = one.begin("finish", json!({}));
    wait_for(&lab.path("held"));
    two.call("read_file", json!({"path": "src/a.txt"})).fails("budget.exhausted");
    std::fs::write(lab.path("go"), "").expect("writes");
    let reply = one.reply(charged);
    assert_eq!(reply.ok()["done"], true, "{:#}", reply.result);
    assert_eq!(used(&repo, "top", "toolCalls"), 1);
}

#[test]
fn what_a_call_lacked_when_it_came_is_what_it_is_refused_for() {
    let lab = Lab::new();
    let repo = one_call_left(&lab);
    repo.approve_without_terminal();
    let (mut one, mut two) = (Client::open(&repo, "p1"), Client::open(&repo, "p2"));
    one.call("read_file", json!({"path": "src/a.txt"})).ok();
    let refused = two.begin("finish", json!({}));
    wait_for(&lab.path("held"));
    repo.json(&["resume", "top", "--add", "toolCalls=5"]).ok();
    std::fs::write(lab.path("go"), "").expect("writes");
    let reply = two.reply(refused);
    assert_eq!(reply.fails("budget.exhausted")["details"]["toolCalls"], json!({"used": 1, "limit": 1}));
    two.call("read_file", json!({"path": "src/a.txt"})).ok();
}
