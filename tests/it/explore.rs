//! Explorations: findings with what they rest on, nothing changed, and the report as what is delivered.

use crate::support::repo::{LINES, path_text};
use crate::support::worker::Worker;
use crate::support::{Contract, Lab, Repo, Snapshot, Verifier};
use serde_json::{Value, json};

fn explore() -> Contract {
    Contract::new("t1")
        .set("kind", json!("explore"))
        .scope(&[])
        .set("allowedTools", json!(["read_file", "note_finding"]))
}

fn opened(repo: &Repo<'_>) -> Worker {
    repo.open(&explore());
    Worker::of(repo, "t1")
}

fn report(repo: &Repo<'_>) -> Value {
    repo.json(&["report", "t1"]).ok().json
}

#[test]
fn findings_with_what_they_rest_on_are_the_delivery() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.write("docs/a.md", "work in progress\n");
    let worker = opened(&repo);
    let before = Snapshot::of(&repo);
    let noted =
        worker.note("line 3 says nothing", &["docs/a.md:3", "src/b.txt", "docs/a.md:2-4", "src/b.txt"]);
    assert_eq!(noted["verified"], true);
    let bare = worker.note("it may be slow", &[]);
    assert_eq!(bare["verified"], false);
    worker.ok("note_finding", json!({"text": "the tests were not run", "kind": "limit"}));
    let done = worker.ok("finish", json!({}));
    assert_eq!((&done["done"], &done["changes"]), (&json!(true), &json!([])));
    let now = report(&repo);
    assert_eq!((&now["kind"], &now["state"]), (&json!("explore"), &json!("verified")));
    let found = &now["findings"][0];
    assert_eq!(found["refs"], json!(["docs/a.md:3", "src/b.txt", "docs/a.md:2-4"]));
    assert_eq!(found["blobs"]["src/b.txt"], repo.git(&["rev-parse", "HEAD:src/b.txt"]).as_str());
    assert_eq!(
        found["blobs"]["docs/a.md"],
        repo.git(&["rev-parse", "HEAD:docs/a.md"]).as_str(),
        "as the worker has it"
    );
    assert_eq!(
        (&found["id"], &found["verified"], &found["origin"]),
        (&noted["id"], &json!(true), &json!("worker"))
    );
    assert_eq!((&now["findings"][1]["verified"], &now["findings"][1]["refs"]), (&json!(false), &json!([])));
    assert_eq!(now["limits"], json!(["the tests were not run"]));
    let risks = now["risks"].as_array().expect("a list");
    let about: Vec<&Value> = risks
        .iter()
        .filter(|risk| risk["text"].as_str().expect("text").contains("without evidence"))
        .collect();
    assert_eq!(about.len(), 1);
    assert_eq!(about[0]["ref"], bare["id"]);
    assert!(!now["risks"].to_string().contains("changes nothing"), "{risks:#?}");
    let tried = repo.json(&["deliver", "t1", "--dry-run"]).ok();
    assert_eq!((&tried.json["state"], &tried.json["paths"]), (&json!("verified"), &json!([])));
    let delivered = repo.json(&["deliver", "t1"]).ok();
    assert_eq!((&delivered.json["state"], &delivered.json["paths"]), (&json!("completed"), &json!([])));
    before.same(&Snapshot::of(&repo));
    let after = report(&repo);
    assert_eq!((&after["state"], &after["findings"]), (&json!("completed"), &now["findings"]));
    assert_eq!(repo.json(&["deliver", "t1"]).ok().json["state"], "completed");
    let undo = repo.json(&["undo", "t1"]);
    assert!(undo.fails("state.invalid")["message"].as_str().expect("text").contains("nothing to undo"));
    let text = repo.tender(&["report", "t1"]).ok().text();
    assert!(text.contains("line 3 says nothing") && text.contains("unverified"), "{text}");
    repo.json(&["gc"]).ok();
}

#[test]
fn a_reference_to_what_is_not_there_is_refused() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.write("docs/sub/x.md", "x\n");
    repo.commit("a folder");
    repo.open(&explore().set("readScope", json!(["docs/"])));
    let worker = Worker::of(&repo, "t1");
    let lines = LINES.lines().count();
    for (reference, code) in [
        ("docs/none.md".to_owned(), "not_found"),
        ("docs/none.md:1".to_owned(), "not_found"),
        (format!("docs/a.md:{}", lines + 1), "not_found"),
        (format!("docs/a.md:1-{}", lines + 1), "not_found"),
        ("docs/a.md:0".to_owned(), "not_found"),
        ("docs/a.md:4-2".to_owned(), "not_found"),
        ("docs/sub".to_owned(), "arguments.invalid"),
        ("src/a.txt".to_owned(), "scope.violation"),
        ("src/a.txt:1".to_owned(), "scope.violation"),
        ("../app/docs/a.md".to_owned(), "scope.violation"),
        ("/etc/passwd".to_owned(), "scope.violation"),
        (".git/config".to_owned(), "scope.violation"),
        ("a0123456789abcdef".to_owned(), "scope.violation"),
        (format!("sha256:{}", "0".repeat(64)), "not_found"),
        ("sha256:0".to_owned(), "not_found"),
    ] {
        worker.refused("note_finding", json!({"text": "x", "refs": [reference]}), code);
    }
    let both = worker.refused(
        "note_finding",
        json!({"text": "x", "refs": ["docs/a.md", "docs/none.md"]}),
        "not_found",
    );
    assert_eq!(both["subject"], "docs/none.md");
    worker.refused("note_finding", json!({"text": " "}), "arguments.invalid");
    worker.refused("note_finding", json!({"text": "x".repeat(8001)}), "arguments.invalid");
    worker.refused("note_finding", json!({"text": "x", "refs": vec!["docs/a.md"; 101]}), "arguments.invalid");
    worker.refused("note_finding", json!({"text": "x", "kind": "guess"}), "arguments.invalid");
    assert_eq!(report(&repo)["findings"], json!([]));
    worker.note("at its end", &[&format!("docs/a.md:{lines}")]);
}

#[test]
fn a_finding_may_rest_on_what_this_task_has_in_its_ledger() {
    let lab = Lab::new();
    let repo = lab.repo("app").with(&Verifier::new("unit"));
    repo.changing("other", &[("docs/b.md", Some("x\n"))]);
    repo.open(&explore().allowed(&["unit"]));
    let worker = Worker::of(&repo, "t1");
    worker.ok("finish", json!({}));
    let shown = repo.json(&["report", "t1"]).ok();
    let evidence = shown.row("unit")["evidence"].as_str().expect("evidence").to_owned();
    let action = worker.note("first", &[&evidence])["id"].as_str().expect("an id").to_owned();
    worker.note("second", &[&action]);
    let now = report(&repo);
    assert_eq!(now["findings"][0]["refs"], json!([evidence]));
    assert_eq!(now["findings"][1]["refs"], json!([action]));
    let rows = repo.tender(&["log", "other", "--format", "json"]).ok().text();
    let foreign: Value = serde_json::from_str(rows.lines().next().expect("a row")).expect("a row");
    let foreign = foreign["action"].as_str().expect("an id");
    worker.refused("note_finding", json!({"text": "x", "refs": [foreign]}), "not_found");
}

#[test]
fn an_exploration_changes_nothing() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let task =
        repo.open(&explore().scope(&["docs/"]).set("allowedTools", json!(["note_finding", "apply_patch"])));
    assert!(task.opened["narrowed"].to_string().contains("explore"), "{:#}", task.opened);
    let worker = Worker::of(&repo, "t1");
    worker.note("something", &["docs/a.md"]);
    let patch = "*** Begin Patch\n*** Update File: docs/b.md\n@@\n-second\n+changed\n*** End Patch\n";
    worker.refused("apply_patch", json!({ "patch": patch }), "scope.violation");
    assert_eq!(task.read("docs/b.md"), b"second\n");
    task.write("docs/b.md", "changed\n");
    repo.json(&["submit", "t1"]).fails("scope.violation");
    repo.json(&["ship", "t1"]).fails("scope.violation");
    task.write("docs/b.md", "second\n");
    let shipped = repo.json(&["ship", "t1"]).ok();
    assert_eq!(shipped.json["state"], "completed");
}

#[test]
fn without_a_finding_or_with_a_row_that_failed_nothing_is_delivered() {
    let lab = Lab::new();
    let repo = lab.repo("app").with(&Verifier::new("unit").script("case_bad no\nfinish\n"));
    let worker = opened(&repo);
    let done = worker.ok("finish", json!({}));
    assert_eq!(done["done"], false);
    let refused = repo.json(&["deliver", "t1"]);
    let error = refused.fails("verification.failed");
    assert_eq!(error["subject"], "findings");
    worker.ok("note_finding", json!({"text": "nothing was found", "kind": "limit"}));
    assert_eq!(worker.ok("finish", json!({}))["done"], true);
    repo.json(&["deliver", "t1"]).ok();
    repo.open(&explore().set("taskId", json!("t2")).allowed(&["unit"]));
    let second = Worker::of(&repo, "t2");
    second.ok("note_finding", json!({"text": "x", "kind": "limit"}));
    assert_eq!(repo.json(&["ship", "t2"]).code, 1);
    repo.json(&["deliver", "t2"]).fails("verification.failed");
}

#[test]
fn what_an_exploration_cannot_be_is_refused_at_open() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    for (contract, field) in [
        (explore().set("delivery", json!("staged")), "delivery"),
        (explore().committed(json!("branch")), "delivery"),
        (
            explore().scope(&["docs/"]).set("artifacts", json!([{"path": "docs/a.md", "mustChange": true}])),
            "artifacts[0].mustChange",
        ),
        (explore().set("case", json!(["tests/"])), "case"),
    ] {
        assert_eq!(repo.open_fails(&contract).fails("contract.invalid")["subject"], field);
    }
    let file = explore().file(&lab);
    repo.json(&["open", path_text(&file)]).ok();
}

/// What a worker planted in its worktree proves nothing: findings of an exploration rest on what it started
/// from.
#[test]
fn a_finding_rests_on_the_base_and_not_on_what_was_planted() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let task = repo.open(&explore());
    let worker = Worker::of(&repo, "t1");
    task.write("docs/proof.md", "planted\n");
    worker.refused("note_finding", json!({"text": "x", "refs": ["docs/proof.md:1"]}), "not_found");
    task.write("docs/a.md", format!("{LINES}one more\n"));
    let beyond = format!("docs/a.md:{}", LINES.lines().count() + 1);
    worker.refused("note_finding", json!({"text": "x", "refs": [beyond]}), "not_found");
}

#[test]
fn a_line_of_a_file_that_the_scope_names_can_be_referred_to() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.open(&explore().set("readScope", json!(["docs/a.md", "src/*.txt"])));
    let worker = Worker::of(&repo, "t1");
    let refs = ["docs/a.md:3", "docs/a.md:2-4", "src/b.txt:1", "docs/a.md"];
    assert_eq!(worker.note("by line", &refs)["verified"], true);
    assert_eq!(report(&repo)["findings"][0]["refs"], json!(refs));
    for (reference, code) in [
        ("docs/b.md:1", "scope.violation"),
        ("docs/a.md:0", "scope.violation"),
        ("docs/a.md:999", "not_found"),
        ("src/none.txt:1", "not_found"),
    ] {
        worker.refused("note_finding", json!({"text": "x", "refs": [reference]}), code);
    }
}

#[test]
fn what_is_too_large_to_read_in_the_base_is_refused_as_in_the_worktree() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let file = std::fs::File::create(repo.join("docs/large.bin")).expect("made");
    file.set_len((64 << 20) + 1).expect("sparse");
    repo.commit("a large file");
    let worker = opened(&repo);
    let refused =
        worker.refused("note_finding", json!({"text": "x", "refs": ["docs/large.bin"]}), "arguments.invalid");
    assert_eq!(
        (&refused["subject"], &refused["details"]["expected"]),
        (&json!("docs/large.bin"), &json!(64 << 20))
    );
}
