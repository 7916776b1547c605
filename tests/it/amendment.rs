//! Amendments: proposed by a worker, decided by a person, and what follows for the candidate and its
//! evidence.

use crate::support::mcp::Client;
use crate::support::repo::path_text;
use crate::support::worker::Worker;
use crate::support::{Contract, Lab, Repo, Task, Verifier};
use serde_json::{Value, json};

/// A task that may change `docs/` and has changed it, with a verifier that passed.
fn verified<'l>(lab: &'l Lab, contract: Contract) -> (Repo<'l>, Task, Worker) {
    let repo = lab.repo("app").with(&Verifier::new("unit").inputs(&["docs/**", "src/**"]));
    repo.approve_without_terminal();
    let task = repo.submitted(&contract, |task| task.write("docs/b.md", "changed\n"));
    repo.json(&["verify", "t1"]).ok();
    let worker = Worker::of(&repo, "t1");
    (repo, task, worker)
}

fn plain() -> Contract {
    Contract::new("t1").scope(&["docs/"]).allowed(&["unit"])
}

fn report(repo: &Repo<'_>) -> Value {
    repo.json(&["report", "t1"]).ok().json
}

#[test]
fn a_wish_changes_nothing_and_a_no_neither() {
    let lab = Lab::new();
    let (repo, task, worker) = verified(&lab, plain());
    let before = report(&repo);
    let wish = worker.propose(json!({"writeScope": ["docs/", "src/"]}));
    let after = report(&repo);
    assert_eq!((&after["contract"], &after["state"]), (&before["contract"], &json!("verified")));
    let shown = &after["amendments"][0];
    assert_eq!((&shown["id"], &shown["change"]), (&json!(wish), &json!({"writeScope": ["docs/", "src/"]})));
    assert_eq!(
        (&shown["origin"], &shown["untrusted"], &shown["answer"]),
        (&json!("worker"), &json!(true), &json!(null))
    );
    task.write("src/a.txt", "not yet\n");
    repo.json(&["submit", "t1"]).fails("scope.violation");
    task.write("src/a.txt", "alpha\n");
    let answered = repo.json(&["answer", "t1", "no"]).ok();
    assert_eq!((&answered.json["kind"], &answered.json["outcome"]), (&json!("amendment"), &json!("refused")));
    let after = report(&repo);
    assert_eq!((&after["contract"], &after["state"]), (&before["contract"], &json!("verified")));
    assert_eq!(
        (&after["amendments"][0]["answer"], &after["amendments"][0]["version"]),
        (&json!("no"), &json!(null))
    );
    repo.json(&["answer", "t1", &wish, "yes"]).fails("arguments.invalid");
    repo.json(&["deliver", "t1"]).ok();
}

#[test]
fn an_agreed_wish_is_a_new_version_with_its_own_digest_and_basis() {
    let lab = Lab::new();
    let (repo, task, worker) = verified(&lab, plain());
    worker.propose(json!({"writeScope": ["docs/", "src/a.txt"]}));
    repo.git(&["config", "--unset", "tender.approveWithoutTerminal"]);
    repo.json(&["answer", "t1", "yes"]).fails("permission.denied");
    assert_eq!(report(&repo)["contract"]["version"], 1);
    repo.approve_without_terminal();
    let answered = repo.json(&["answer", "t1", "yes"]).ok();
    assert_eq!(answered.json["outcome"], "amended");
    let now = report(&repo);
    assert_eq!((&now["contract"]["version"], &now["candidate"]), (&json!(2), &json!(2)));
    assert_eq!(now["contract"], answered.json["contract"]);
    assert_ne!(now["contract"]["sha256"], task.opened["contract"]["sha256"]);
    assert_eq!(
        (&now["amendments"][0]["answer"], &now["amendments"][0]["version"]),
        (&json!("yes"), &json!(2))
    );
    // What the verifier showed is still so: neither its words nor its files changed.
    assert_eq!(now["state"], "verified");
    let document = repo.tender(&["show", now["contract"]["sha256"].as_str().expect("text")]).ok().text();
    let document: Value = serde_json::from_str(&document).expect("the new contract");
    assert_eq!(document["writeScope"], json!(["docs/", "src/a.txt"]));
    assert_eq!(document["goal"], "a change for a test");
    assert_eq!(task.read("docs/b.md"), b"changed\n", "the worktree keeps what it has");
    task.write("src/a.txt", "now\n");
    repo.json(&["submit", "t1"]).ok();
    repo.json(&["verify", "t1"]).ok();
    repo.json(&["deliver", "t1"]).ok();
    assert_eq!(repo.text("src/a.txt"), "now\n");
    let rows = repo.tender(&["log", "t1", "--format", "json"]).ok().text();
    let rows: Vec<Value> = rows.lines().map(|line| serde_json::from_str(line).expect("a row")).collect();
    let versions: Vec<(&str, u64)> = rows
        .iter()
        .map(|row| {
            (
                row["tool"].as_str().expect("text"),
                row["basis"]["contract"]["version"].as_u64().expect("a number"),
            )
        })
        .collect();
    let answered = versions.iter().rposition(|(tool, _)| *tool == "answer").expect("answered");
    assert!(versions[..=answered].iter().all(|(_, version)| *version == 1), "{versions:?}");
    assert!(versions[answered + 1..].iter().all(|(_, version)| *version == 2), "{versions:?}");
    assert!(versions.len() > answered + 3);
}

#[test]
fn a_candidate_outside_of_the_new_scope_cannot_be_delivered() {
    let lab = Lab::new();
    let (repo, task, worker) = verified(&lab, plain());
    worker.propose(json!({"writeScope": ["docs/a.md"]}));
    let answered = repo.json(&["answer", "t1", "yes"]).ok();
    assert!(answered.json["notes"][0].as_str().expect("a note").contains("docs/b.md"), "{:#}", answered.json);
    assert_eq!(report(&repo)["candidate"], json!(null));
    repo.json(&["deliver", "t1"]).fails("state.invalid");
    repo.json(&["submit", "t1"]).fails("scope.violation");
    assert_eq!(repo.text("docs/b.md"), "second\n");
    task.write("docs/b.md", "second\n");
    task.write("docs/a.md", "changed\n");
    repo.json(&["ship", "t1"]).ok();
    assert_eq!(repo.text("docs/a.md"), "changed\n");
}

#[test]
fn evidence_of_what_changed_is_stale_and_artifacts_are_looked_at_again() {
    let lab = Lab::new();
    let requirement = |text: &str| json!([{"id": "unit", "text": text, "verifier": "unit"}]);
    let (repo, _, worker) = verified(&lab, plain().set("requirements", requirement("it works")));
    assert_eq!(report(&repo)["state"], "verified");
    worker.propose(json!({
        "requirements": requirement("it works well"),
        "artifacts": [{"path": "docs/b.md", "mustNotContain": ["changed"]}],
    }));
    repo.json(&["answer", "t1", "yes"]).ok();
    let now = repo.json(&["report", "t1"]).ok();
    assert_eq!(now.verdict("unit"), "stale");
    assert!(now.reason("unit").contains("text changed"), "{}", now.reason("unit"));
    assert_ne!(now.verdict("artifacts"), "passed");
    repo.json(&["deliver", "t1"]).error();
    let shown = repo.json(&["verify", "t1"]).result(1);
    assert_eq!((shown.verdict("unit"), shown.verdict("artifacts")), ("passed", "failed"));
    repo.json(&["deliver", "t1"]).fails("verification.failed");
}

#[test]
fn what_makes_the_task_cannot_be_changed_and_a_wish_has_to_be_a_contract() {
    let lab = Lab::new();
    let (repo, _, worker) = verified(&lab, plain());
    let refused = |change: Value, code: &str| {
        worker.refused("propose_amendment", json!({"change": change, "reason": "because"}), code)
    };
    for (field, value) in [
        ("taskId", json!("t2")),
        ("base", json!("live")),
        ("parent", json!("t2")),
        ("kind", json!("explore")),
        ("schema", json!("x")),
    ] {
        assert_eq!(refused(json!({ field: value }), "contract.invalid")["subject"], field);
    }
    assert_eq!(refused(json!({"writeScop": []}), "contract.invalid")["details"]["nearest"], "writeScope");
    assert_eq!(refused(json!({"writeScope": ["../x"]}), "contract.invalid")["subject"], "writeScope[0]");
    assert_eq!(refused(json!({"delivery": "bundle"}), "not_supported")["subject"], "delivery");
    refused(json!({}), "arguments.invalid");
    worker.refused("propose_amendment", json!({"change": {"goal": "x"}, "reason": " "}), "arguments.invalid");
    worker.refused("propose_amendment", json!({"change": ["goal"], "reason": "x"}), "arguments.invalid");
    assert_eq!(report(&repo)["amendments"], json!([]));
}

#[test]
fn policy_and_parent_hold_for_the_new_version_too() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.write(
        ".tender/config.toml",
        "[policy]\nwrite = [\"docs/\", \"src/\"]\ndelivery = [\"local_files\"]\n[policy.budget.edit]\ntoolCalls = 50\n",
    );
    repo.commit("policy");
    repo.approve_without_terminal();
    repo.open(&Contract::new("top").scope(&["docs/"]).set("budget", json!({"toolCalls": 20})));
    repo.open(&Contract::new("t1").scope(&["docs/a.md"]).set("parent", json!("top")));
    let part = Worker::of(&repo, "t1");
    let wish = part.propose(json!({"writeScope": ["src/"]}));
    assert_eq!(repo.json(&["answer", "t1", "yes"]).fails("contract.invalid")["subject"], "writeScope");
    assert_eq!(report(&repo)["contract"]["version"], 1);
    repo.json(&["answer", "t1", &wish, "no"]).ok();
    part.propose(json!({"writeScope": ["docs/"]}));
    repo.json(&["answer", "t1", "yes"]).ok();
    // What a person added before counts within the policy too.
    repo.json(&["resume", "top", "--add", "toolCalls=25"]).ok();
    let top = Worker::of(&repo, "top");
    top.propose(json!({"writeScope": ["**"], "budget": {"toolCalls": 60}}));
    let answered = repo.json(&["answer", "top", "yes"]).ok();
    let notes = answered.json["notes"].to_string();
    assert!(notes.contains("policy.write") && notes.contains("60 narrowed to 50"), "{notes}");
    assert_eq!(repo.json(&["report", "top"]).ok().json["budget"]["toolCalls"]["limit"], 50);
    top.propose(json!({"delivery": "staged"}));
    repo.json(&["answer", "top", "yes"]).fails("permission.denied");
}

#[test]
fn a_delivery_that_commits_has_its_author_from_then_on() {
    let lab = Lab::new();
    let (repo, _, worker) = verified(&lab, plain());
    let wish = json!({"delivery": {"mode": "branch", "branch": "work"}, "commitAllowed": true});
    worker.propose(wish);
    repo.json(&["answer", "t1", "yes"]).ok();
    let done = repo.json(&["deliver", "t1"]).ok();
    assert_eq!(done.json["mode"], "branch");
    assert_eq!(repo.git(&["show", "-s", "--format=%an", "work"]), "Test Person");
    assert_eq!(repo.text("docs/b.md"), "second\n");
}

#[test]
fn the_document_that_opened_the_task_still_names_it() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.approve_without_terminal();
    let contract = plain().without("verification");
    let file = contract.file(&lab);
    repo.json(&["open", path_text(&file)]).ok();
    let worker = Worker::of(&repo, "t1");
    worker.propose(json!({"goal": "another goal"}));
    repo.json(&["answer", "t1", "yes"]).ok();
    let again = repo.json(&["open", path_text(&file)]).ok();
    assert_eq!(again.json["contract"]["version"], 2, "the task as it is now");
    let digest = again.json["contract"]["sha256"].as_str().expect("text");
    let now = repo.tender(&["show", digest]).ok().stdout;
    let now = crate::support::contract::raw(&lab, &now);
    assert_eq!(repo.json(&["open", path_text(&now)]).ok().json["contract"]["version"], 2);
    repo.open_fails(&contract.set("goal", json!("a third one"))).fails("state.invalid");
    let status = worker.ok("task_status", json!({}));
    assert_eq!((&status["goal"], &status["contract"]["version"]), (&json!("another goal"), &json!(2)));
}

#[test]
fn an_allowed_tool_is_allowed_once_a_person_agreed() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.approve_without_terminal();
    repo.open(&Contract::new("t1").set("allowedTools", json!([])));
    let worker = Worker::of(&repo, "t1");
    worker.refused("read_file", json!({"path": "docs/a.md"}), "tool.not_allowed");
    worker.propose(json!({"allowedTools": ["read_file"]}));
    worker.refused("read_file", json!({"path": "docs/a.md"}), "tool.not_allowed");
    repo.json(&["answer", "t1", "yes"]).ok();
    worker.ok("read_file", json!({"path": "docs/a.md"}));
}

/// Nobody agrees to what was not shown: a long field cannot hide the others, and what a whole field loses
/// stands beside what it gets.
#[test]
fn whoever_agrees_is_shown_all_of_it_and_what_it_replaces() {
    let lab = Lab::new();
    let (repo, _, worker) = verified(&lab, plain().set("budget", json!({"wallSeconds": 60})));
    worker
        .propose(json!({"goal": "\u{1b}[2J".repeat(200), "writeScope": ["**"], "budget": {"toolCalls": 61}}));
    let answered = repo.tender(&["answer", "t1", "yes"]).ok().text();
    for line in [r#"writeScope: ["docs/"] -> ["**"]"#, r#"budget: {"wallSeconds":60} -> {"toolCalls":61}"#] {
        assert!(answered.contains(line), "{line}: {answered}");
    }
    let shown = repo.tender(&["report", "t1"]).ok().text();
    assert!(shown.contains(r#"writeScope -> ["**"]"#), "{shown}");
    assert!(!answered.contains('\u{1b}') && !shown.contains('\u{1b}'), "{shown:?}");
}

#[test]
fn a_wish_for_an_older_version_says_so() {
    let lab = Lab::new();
    let (repo, _, worker) = verified(&lab, plain());
    let first = worker.propose(json!({"writeScope": ["docs/", "src/"]}));
    let second = worker.propose(json!({"writeScope": ["docs/b.md"]}));
    repo.json(&["answer", "t1", &second, "yes"]).ok();
    let answered = repo.json(&["answer", "t1", &first, "yes"]).ok().json;
    let notes = answered["notes"].to_string();
    assert!(
        notes.contains("was proposed for version 1") && notes.contains("version 2 is in force"),
        "{notes}"
    );
    assert!(notes.contains(r#"[\"docs/b.md\"] -> [\"docs/\",\"src/\"]"#), "{notes}");
}

#[test]
fn a_task_cannot_lose_what_one_of_its_parts_still_has() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.approve_without_terminal();
    repo.open(&Contract::new("t1").scope(&["docs/", "src/"]));
    repo.open(&Contract::new("t2").scope(&["src/"]).set("parent", json!("t1")));
    let worker = Worker::of(&repo, "t1");
    let wish = worker.propose(json!({"writeScope": ["docs/"]}));
    let refused = repo.json(&["answer", "t1", &wish, "yes"]);
    assert_eq!(refused.fails("contract.invalid")["details"]["task"], "t2");
    assert_eq!(report(&repo)["contract"]["version"], 1);
    repo.json(&["cancel", "t2"]).ok();
    repo.json(&["answer", "t1", &wish, "yes"]).ok();
    assert_eq!(report(&repo)["contract"]["version"], 2);
    repo.json(&["cancel", "t1"]).ok();
    repo.json(&["answer", "t1", &wish, "yes"]).fails("cancelled");
}

#[test]
fn a_client_hears_of_tools_that_a_person_has_agreed_to() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.open(&Contract::new("t1").set("allowedTools", json!(["read_file"])));
    repo.approve_without_terminal();
    let mut client = Client::start(&repo, &["t1"]);
    let capabilities = client.initialize()["capabilities"].clone();
    assert_eq!(capabilities["tools"]["listChanged"], json!(true), "{capabilities:#}");
    let change =
        json!({"change": {"allowedTools": ["read_file", "search_text"]}, "reason": "to find things"});
    client.call("propose_amendment", change).ok();
    client.call("task_status", json!({})).ok();
    repo.json(&["answer", "t1", "yes"]).ok();
    let told = |said: &Value| said["method"] == "notifications/tools/list_changed";
    assert!(!client.heard.iter().any(told), "nothing had changed before");
    client.call("task_status", json!({})).ok();
    client.wait_for("word of other tools", told);
    let id = client.request("tools/list", json!({}));
    let listed = client.answer(id)["result"]["tools"].to_string();
    assert!(listed.contains("search_text"), "{listed}");
    client.call("search_text", json!({"pattern": "line"})).ok();
    let rest = client.end().all();
    assert!(!rest.contains("list_changed"), "told once: {rest}");
}
