//! The gate: the order of its questions, what it charges, what a worker can reach, and what its tools answer.

use crate::support::mcp::Client;
use crate::support::{Contract, Lab, Repo, Task, Verifier};
use serde_json::{Value, json};

const LOOKING: [&str; 5] = ["read_file", "list_files", "search_text", "apply_patch", "run_check"];

fn contract() -> Contract {
    Contract::new("t1").scope(&["docs/"]).set("allowedTools", json!(LOOKING))
}

fn opened<'l>(lab: &'l Lab, contract: &Contract) -> (Repo<'l>, Task) {
    let repo = lab.repo("app");
    let task = repo.open(contract);
    (repo, task)
}

fn replace(path: &str, old: &str, new: &str) -> Value {
    json!({ "patch": format!("*** Begin Patch\n*** Update File: {path}\n@@\n-{old}\n+{new}\n*** End Patch\n") })
}

fn add(path: &str) -> Value {
    json!({ "patch": format!("*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch\n") })
}

fn report(repo: &Repo<'_>, task: &str) -> Value {
    repo.json(&["report", task]).ok().json.clone()
}

fn budget(repo: &Repo<'_>, task: &str, key: &str) -> Value {
    report(repo, task)["budget"][key].clone()
}

/// The states of each call, in the order of their arrival, with the codes of those that failed.
fn calls(repo: &Repo<'_>, task: &str) -> Vec<(String, Vec<String>, String)> {
    let text = repo.tender(&["log", task, "--format", "json"]).ok().text();
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let arrived = rows.iter().filter(|row| row["result"]["record"] == "call");
    let of = |call: &Value| {
        let own = rows.iter().filter(|row| row["action"] == call["action"]);
        let mut states: Vec<String> =
            own.clone().map(|row| row["state"].as_str().expect("a state").to_owned()).collect();
        states.dedup();
        let code =
            own.filter_map(|row| row.pointer("/result/failure/code")?.as_str()).next().unwrap_or_default();
        (call["tool"].as_str().expect("a tool").to_owned(), states, code.to_owned())
    };
    arrived.map(of).collect()
}

#[test]
fn every_call_is_one_action_with_its_basis_and_a_denied_one_costs_too() {
    let lab = Lab::new();
    let (repo, _) = opened(&lab, &contract());
    let mut client = Client::open(&repo, "t1");
    client.call("read_file", json!({"path": "docs/b.md"})).ok();
    client.call("note_finding", json!({"text": "x"})).fails("tool.not_allowed");
    client.call("read_file", json!({"path": "docs/b.md", "max_calls": 1000})).fails("arguments.invalid");
    client.call("apply_patch", add("src/new.rs")).fails("scope.violation");
    client.call("read_file", json!({"path": "docs/none.md"})).fails("not_found");
    let calls = calls(&repo, "t1");
    let ends: Vec<(&str, &str)> = calls
        .iter()
        .map(|(_, states, code)| (states.last().expect("a state").as_str(), code.as_str()))
        .collect();
    assert_eq!(
        ends,
        [
            ("succeeded", ""),
            ("denied", "tool.not_allowed"),
            ("denied", "arguments.invalid"),
            ("denied", "scope.violation"),
            ("failed_without_effect", "not_found"),
        ]
    );
    assert_eq!(calls[0].1, ["planned", "authorized", "dispatched", "succeeded"]);
    assert_eq!(calls[1].1, ["planned", "denied"]);
    assert_eq!(budget(&repo, "t1", "toolCalls"), json!({"used": 5, "limit": 200}));
    assert_eq!(budget(&repo, "t1", "turns")["used"], "not measured");
    let report = report(&repo, "t1");
    assert_eq!(report["calls"], json!({"made": 5, "succeeded": 1, "failed": 1, "denied": 3, "cutOff": 0}));
    assert_eq!(report["state"], "working");
    let text = repo.tender(&["log", "t1", "--format", "json"]).ok().text();
    let call: Value = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"))
        .find(|row| row["tool"] == "read_file")
        .expect("a call");
    assert_eq!((&call["actor"], &call["origin"]), (&json!("agent"), &json!("mcp")));
    assert_eq!(call["basis"]["contract"]["version"], 1);
}

/// The order is part of the promise: a call that is wrong in several ways is refused for the first of them.
#[test]
fn the_questions_are_asked_in_their_order() {
    let lab = Lab::new();
    let (repo, _) = opened(&lab, &contract().set("budget", json!({"toolCalls": 3})));
    let mut client = Client::open(&repo, "t1");
    client.call("shell", json!({"path": "../x", "user_id": "admin"})).fails("tool.not_allowed");
    client.call("read_file", json!({"path": "../x", "user_id": "admin"})).fails("arguments.invalid");
    client.call("read_file", json!({"path": "../x"})).fails("scope.violation");
    // Nothing is left from here on; what is wrong beside that still comes first.
    client.call("read_file", json!({"path": "../x"})).fails("scope.violation");
    let spent = client.call("read_file", json!({"path": "docs/b.md"}));
    let failure = spent.fails("budget.exhausted");
    assert_eq!(failure["details"]["toolCalls"], json!({"used": 3, "limit": 3}));
    assert_eq!(failure["category"], "budget");
    let report = report(&repo, "t1");
    assert_eq!(report["state"], "incomplete");
    assert_eq!(report["budget"]["toolCalls"]["used"], 3, "what is refused for the budget costs nothing");
    repo.json(&["submit", "t1"]).fails("budget.exhausted");
    repo.approve_without_terminal();
    repo.json(&["resume", "t1", "--add", "toolCalls=1"]).ok();
    client.call("read_file", json!({"path": "docs/b.md"})).ok();
    client.call("read_file", json!({"path": "docs/b.md"})).fails("budget.exhausted");
}

/// The last call may be the one that finishes: a task is paused only once it asks for more than it has.
#[test]
fn a_task_that_finishes_with_its_last_call_is_not_paused() {
    let lab = Lab::new();
    let (repo, task) = opened(&lab, &contract().set("budget", json!({"toolCalls": 1})));
    task.write("docs/b.md", "mended\n");
    let mut client = Client::open(&repo, "t1");
    assert_eq!(client.call("finish", json!({})).ok()["done"], true);
    assert_eq!(report(&repo, "t1")["state"], "verified");
    repo.json(&["deliver", "t1"]).ok();
    assert_eq!(repo.text("docs/b.md"), "mended\n");
}

#[test]
fn of_a_burst_only_as_many_run_as_there_are_calls_left() {
    let lab = Lab::new();
    let (repo, _) = opened(&lab, &contract().set("budget", json!({"toolCalls": 4})));
    let (mut a, mut b) = (Client::open(&repo, "t1"), Client::open(&repo, "t1"));
    let burst: Vec<(&str, Value)> =
        (0..4).map(|n| ("search_text", json!({ "pattern": n.to_string() }))).collect();
    let (of_a, of_b) = (a.burst(&burst), b.burst(&burst));
    let mut codes: Vec<String> = of_a.into_iter().map(|id| a.reply(id).code().to_owned()).collect();
    codes.extend(of_b.into_iter().map(|id| b.reply(id).code().to_owned()));
    let ran = codes.iter().filter(|code| code.is_empty()).count();
    let refused = codes.iter().filter(|code| *code == "budget.exhausted").count();
    assert_eq!((ran, refused), (4, 4), "{codes:?}");
    assert_eq!(budget(&repo, "t1", "toolCalls"), json!({"used": 4, "limit": 4}));
}

#[test]
fn a_parents_calls_are_shared_with_its_parts() {
    let lab = Lab::new();
    let (repo, _) = opened(&lab, &contract().set("budget", json!({"toolCalls": 2})));
    let child = Contract::new("t2")
        .scope(&["docs/"])
        .set("allowedTools", json!(["read_file"]))
        .set("parent", json!("t1"));
    repo.open(&child.set("budget", json!({"toolCalls": 2})));
    let (mut above, mut beneath) = (Client::open(&repo, "t1"), Client::open(&repo, "t2"));
    beneath.call("read_file", json!({"path": "docs/b.md"})).ok();
    above.call("read_file", json!({"path": "docs/b.md"})).ok();
    beneath.call("read_file", json!({"path": "docs/b.md"})).fails("budget.exhausted");
    above.call("read_file", json!({"path": "docs/b.md"})).fails("budget.exhausted");
    assert_eq!(budget(&repo, "t1", "toolCalls")["used"], 2);
    assert_eq!(budget(&repo, "t2", "toolCalls")["used"], 1);
}

#[test]
fn what_a_worker_read_is_what_its_patch_is_bound_to() {
    let lab = Lab::new();
    let (repo, task) = opened(&lab, &contract());
    task.write("docs/b.md", "one\n");
    let (mut a, mut b) = (Client::open(&repo, "t1"), Client::open(&repo, "t1"));
    let first = a.call("read_file", json!({"path": "docs/b.md"})).ok()["gitBlob"].clone();
    b.call("apply_patch", replace("docs/b.md", "one", "two")).ok();
    let refused = a.call("apply_patch", replace("docs/b.md", "two", "three"));
    let failure = refused.fails("version.conflict");
    assert_eq!((&failure["details"]["expected"], &failure["retry"]), (&first, &json!("reread")));
    assert_eq!(
        failure["details"]["actual"],
        repo.git(&["hash-object", task.worktree.join("docs/b.md").to_str().expect("text")]).trim()
    );
    assert_eq!(task.read("docs/b.md"), b"two\n");
    a.call("read_file", json!({"path": "docs/b.md"})).ok();
    a.call("apply_patch", replace("docs/b.md", "two", "three")).ok();
    // Its own write is known to it; a hand in between is not.
    a.call("apply_patch", replace("docs/b.md", "three", "four")).ok();
    task.write("docs/b.md", "four\nby hand\n");
    a.call("apply_patch", replace("docs/b.md", "four", "five")).fails("version.conflict");
    // A server that was started anew still knows what the task has seen.
    Client::open(&repo, "t1")
        .call("apply_patch", replace("docs/b.md", "four", "five"))
        .fails("version.conflict");
    let wrong =
        json!({"patch": replace("docs/b.md", "four", "five")["patch"], "expected": {"docs/b.md": first}});
    a.call("apply_patch", wrong).fails("version.conflict");
    assert_eq!(task.read("docs/b.md"), b"four\nby hand\n");
}

#[test]
fn only_the_tasks_own_logs_can_be_read_and_by_lines() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let script = "i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done\necho 'error: it is broken' >&2\ncase_bad a\nfinish";
    Verifier::new("unit").script(script).commit(&repo);
    let tools = json!(["read_file", "run_check"]);
    let task = repo.open(&Contract::new("t1").allowed(&["unit"]).set("allowedTools", tools.clone()));
    task.write("src/a.txt", "changed\n");
    repo.open(&Contract::new("t2").set("allowedTools", tools));
    let mut client = Client::open(&repo, "t1");
    let checked = client.call("run_check", json!({"id": "unit"})).ok().clone();
    assert_eq!(checked["verdict"], "failed");
    assert_eq!(checked["requirements"][0]["checks"]["failed"], 1);
    let run = &checked["runs"][0];
    assert_eq!(run["firstError"]["text"], "error: it is broken", "{run:#}");
    let place = json!({"ref": run["firstError"]["ref"], "lines": run["firstError"]["line"].to_string()});
    assert_eq!(client.call("read_file", place).ok()["text"], "error: it is broken\n");
    let logs = run["logs"].as_array().expect("logs");
    let out = logs.iter().find(|log| log["stream"] == "stdout").expect("an output");
    let whole = client.call("read_file", json!({"ref": out["ref"]})).ok().clone();
    assert_eq!(whole["bytes"], out["bytes"]);
    assert_eq!(whole["origin"], json!({"kind": "log", "of": out["ref"], "trust": "untrusted"}));
    let some = client.call("read_file", json!({"ref": out["ref"], "lines": "3-4"})).ok().clone();
    let lines: Vec<&str> = whole["text"].as_str().expect("text").split_inclusive('\n').collect();
    assert_eq!(some["text"], lines[2..4].concat());
    assert_eq!(some["lines"]["total"], whole["lines"]["total"]);
    client.call("read_file", json!({"ref": checked["requirements"][0]["evidence"]})).ok();
    let mut other = Client::open(&repo, "t2");
    other.call("read_file", json!({"ref": out["ref"]})).fails("not_found");
    client.call("read_file", json!({"ref": report(&repo, "t1")["contract"]["sha256"]})).fails("not_found");
    client.call("read_file", json!({"ref": "sha256:abc"})).fails("arguments.invalid");
    client.call("read_file", json!({})).fails("arguments.invalid");
}

#[test]
fn a_large_log_is_whole_and_every_view_leads_to_its_first_error() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let noise = "head -c 3000000 /dev/zero | tr '\\0' '.' | fold -w 99 >&2; echo >&2";
    let error = "printf 'error[E0308]: mismatched types\\n --> src/lib.rs:3:5\\n\\0\\n' >&2";
    Verifier::new("unit").script(&format!("{noise}\n{error}\n{noise}\ncase_bad a\nfinish")).commit(&repo);
    let tools = json!(["read_file", "run_check", "task_status"]);
    let task = repo.open(&Contract::new("t1").allowed(&["unit"]).set("allowedTools", tools));
    task.write("src/a.txt", "changed\n");
    let mut client = Client::open(&repo, "t1");
    let checked = client.call("run_check", json!({"id": "unit"})).ok().clone();
    let run = &checked["runs"][0];
    assert_eq!((&run["firstError"]["path"], &run["firstError"]["row"]), (&json!("src/lib.rs"), &json!(3)));
    let log = &run["logs"][1];
    assert_eq!((&log["truncated"], &log["totalBytes"]), (&json!(false), &log["bytes"]), "{run:#}");
    assert!(log["bytes"].as_u64().expect("a size") > 6_000_000, "{run:#}");
    let status = client.call("task_status", json!({})).ok().clone();
    assert_eq!(status["runs"], checked["runs"]);
    let place = json!({"ref": status["runs"][0]["logs"][1]["ref"], "lines": run["firstError"]["line"]});
    let read = client.call("read_file", place).ok().clone();
    assert_eq!(read["text"], "error[E0308]: mismatched types\n");
    assert_eq!(read["encoding"], "utf-8-lossy");
    drop(client);
    assert_eq!(report(&repo, "t1")["runs"], checked["runs"]);
    assert_eq!(repo.json(&["verify", "t1"]).result(1).json["runs"][0]["firstError"], run["firstError"]);
    let refused = repo.json(&["deliver", "t1"]).fails("verification.failed").clone();
    assert_eq!(refused["details"]["runs"][0]["firstError"], run["firstError"], "{refused:#}");
    let show = format!("git tender show {}", log["ref"].as_str().expect("a ref"));
    for (arguments, reference) in
        [(vec!["report", "t1"], show.as_str()), (vec!["report", "t1", "--brief"], &show[16..])]
    {
        let text = repo.tender(&arguments).ok().text();
        for part in ["src/lib.rs:3:5", "error[E0308]: mismatched types", reference] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}

#[test]
fn what_is_no_text_file_is_said_and_nothing_waits_for_it() {
    let lab = Lab::new();
    let (repo, task) = opened(&lab, &contract().set("readScope", json!(["docs/"])));
    let mut client = Client::open(&repo, "t1");
    let mut read = |path: &str| client.call("read_file", json!({ "path": path }));
    task.write("docs/binary", b"a\0b");
    let binary = read("docs/binary").ok().clone();
    assert_eq!(
        (&binary["text"], &binary["encoding"], &binary["bytes"]),
        (&Value::Null, &json!("binary"), &json!(3))
    );
    task.write("docs/latin", b"caf\xe9\n");
    assert_eq!(read("docs/latin").ok()["text"], "caf\u{e9}\n");
    task.write("docs/wide", b"\xff\xfeh\0i\0");
    assert_eq!(read("docs/wide").ok()["encoding"], "utf-16le");
    task.write("docs/empty", b"");
    assert_eq!(read("docs/empty").ok()["lines"], json!({"first": 1, "last": 0, "total": 0}));
    let file = std::fs::File::create(task.worktree.join("docs/large")).expect("made");
    file.set_len(1 << 30).expect("sparse");
    let failure = read("docs/large").fails("arguments.invalid").clone();
    assert_eq!(failure["details"]["actual"], 1 << 30);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        task.worktree.join("docs/pipe"),
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .expect("made");
    read("docs/pipe").fails("arguments.invalid");
    task.write("docs/sub/x", "x");
    read("docs/sub").fails("arguments.invalid");
    task.link("docs/link", "b.md");
    read("docs/link").fails("scope.violation");
    task.link("docs/out", "/etc");
    read("docs/out/passwd").fails("scope.violation");
    std::fs::hard_link(task.worktree.join("docs/b.md"), task.worktree.join("docs/second")).expect("linked");
    read("docs/second").fails("scope.violation");
    for outside in [
        "src/a.txt",
        "../x",
        "/etc/passwd",
        ".git",
        ".git/config",
        "docs/../src/a.txt",
        ".GIT/config",
        "docs//b.md",
        "",
    ] {
        read(outside).fails("scope.violation");
    }
}

#[test]
fn lists_and_searches_stay_in_their_bounds_and_say_so() {
    let lab = Lab::new();
    let (repo, task) = opened(&lab, &contract().set("readScope", json!(["docs/", "many/"])));
    for n in 0..1_200 {
        task.write(format!("many/{n:05}"), "needle\n");
    }
    task.write("docs/x.md", "a needle here\nno\nNEEDLE\n");
    task.link("docs/out", "/etc");
    let mut client = Client::open(&repo, "t1");
    let list = client.call("list_files", json!({})).ok().clone();
    assert_eq!((&list["truncated"], list["files"].as_array().map(Vec::len)), (&json!(true), Some(1_000)));
    assert!(list["total"].as_u64().is_some_and(|total| total > 1_200), "{}", list["total"]);
    assert!(!list.to_string().contains("src/"), "outside of what may be read");
    let docs = client.call("list_files", json!({"path": "docs"})).ok().clone();
    assert_eq!(docs["truncated"], false);
    assert!(
        docs["files"]
            .as_array()
            .expect("files")
            .iter()
            .any(|file| file["path"] == "docs/out" && file["kind"] == "link")
    );
    client.call("list_files", json!({"path": "docs/out"})).fails("scope.violation");
    client.call("list_files", json!({"path": "../"})).fails("scope.violation");
    client.call("list_files", json!({"path": "nowhere"})).fails("not_found");
    let found = client.call("search_text", json!({"pattern": "(?i)needle", "path": "docs/"})).ok().clone();
    let hits: Vec<(&str, u64)> = found["hits"]
        .as_array()
        .expect("hits")
        .iter()
        .map(|hit| (hit["path"].as_str().expect("a path"), hit["line"].as_u64().expect("a line")))
        .collect();
    assert_eq!(hits, [("docs/x.md", 1), ("docs/x.md", 3)]);
    let all = client.call("search_text", json!({"pattern": "needle"})).ok().clone();
    assert_eq!((&all["truncated"], all["hits"].as_array().map(Vec::len)), (&json!(true), Some(200)));
    client.call("search_text", json!({"pattern": "("})).fails("arguments.invalid");
    client.call("search_text", json!({"pattern": ""})).fails("arguments.invalid");
    let one = client.call("search_text", json!({"pattern": "here", "path": "docs/x.md"})).ok().clone();
    assert_eq!(one["hits"].as_array().map(Vec::len), Some(1));
    client
        .call("search_text", json!({"pattern": "root", "path": "docs/out/passwd"}))
        .fails("scope.violation");
}

#[test]
fn finishing_can_say_no_and_what_did_not_run_is_said() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    Verifier::new("unit")
        .script("if grep -q good docs/b.md; then case_ok a; else case_bad a; fi\nfinish")
        .inputs(&["docs/**"])
        .commit(&repo);
    Verifier::new("slow").script("case_ok a\nfinish").commit(&repo);
    let task = repo.open(&contract().allowed(&["unit"]).forbidden(&["slow"]));
    let mut client = Client::open(&repo, "t1");
    let nothing = client.call("finish", json!({})).ok().clone();
    assert_eq!(nothing["done"], false);
    assert!(nothing["why"].to_string().contains("nothing has changed"), "{nothing}");
    task.write("docs/b.md", "bad\n");
    let bad = client.call("finish", json!({})).ok().clone();
    assert_eq!((&bad["done"], &bad["state"]), (&json!(false), &json!("verification_failed")));
    client.call("run_check", json!({"id": "slow"})).fails("check.forbidden");
    client.call("run_check", json!({"id": "protected"})).fails("check.forbidden");
    client.call("apply_patch", replace("docs/b.md", "bad", "good")).ok();
    assert_eq!(report(&repo, "t1")["state"], "working");
    let good = client.call("finish", json!({})).ok().clone();
    assert_eq!((&good["done"], &good["state"]), (&json!(true), &json!("verified")));
    let rows = good["requirements"].as_array().expect("rows");
    let slow = rows.iter().find(|row| row["id"] == "slow").expect("a row");
    assert_eq!((&slow["verdict"], &slow["reason"]), (&json!("not_run"), &json!("forbidden by contract")));
    repo.json(&["deliver", "t1"]).ok();
    client.call("read_file", json!({"path": "docs/b.md"})).fails("state.invalid");
}

#[test]
fn what_is_allowed_and_not_required_may_be_run_and_is_reported() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    for (name, script) in [("unit", "case_ok a\nfinish"), ("lint", "case_bad b\nfinish")] {
        Verifier::new(name).script(script).write(&repo);
    }
    repo.commit("verifiers");
    let requirements = json!([{"id": "works", "text": "it works", "verifier": "unit"}]);
    let task = repo.open(&contract().allowed(&["unit", "lint"]).set("requirements", requirements));
    task.write("docs/b.md", "x\n");
    repo.json(&["submit", "t1"]).ok();
    let lint = |json: &Value| {
        let rows = json["requirements"].as_array().expect("rows").iter();
        let row = rows.clone().find(|row| row["verifier"] == "lint").expect("a row").clone();
        (row["required"].clone(), row["verdict"].clone())
    };
    assert_eq!(lint(&report(&repo, "t1")), (json!(false), json!("not_run")));
    let mut client = Client::open(&repo, "t1");
    assert_eq!(client.call("run_check", json!({"id": "lint"})).ok()["verdict"], "failed");
    let finished = client.call("finish", json!({}));
    assert_eq!(
        (&finished.ok()["done"], lint(finished.ok())),
        (&json!(true), (json!(false), json!("failed")))
    );
    drop(client);
    repo.json(&["deliver", "t1"]).ok();
}

/// A verifier that runs anew with the same outcome is nothing new, whatever its logs are called.
#[test]
fn a_check_that_fails_the_same_way_is_stopped() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    Verifier::new("unit").script("date +%N\ncase_bad a\nfinish").commit(&repo);
    let task = repo.open(&contract().allowed(&["unit"]));
    task.write("docs/b.md", "x\n");
    let mut client = Client::open(&repo, "t1");
    for turn in 1..5 {
        let checked = client.call("run_check", json!({"id": "unit"}));
        assert_eq!(checked.ok()["warning"].is_string(), turn >= 3, "{turn}");
    }
    let stopped = client.call("run_check", json!({"id": "unit"}));
    let failure = stopped.fails("failure.repeated");
    assert_eq!(failure["details"]["repeatedFailures"], json!({"used": 5, "limit": 5}));
    assert_eq!(failure["details"]["last"]["verdict"], "failed");
    client.call("read_file", json!({"path": "docs/b.md"})).fails("failure.repeated");
    // Whatever it is, and the ledger says the same.
    client.call("upload", json!({})).fails("failure.repeated");
    assert_eq!(calls(&repo, "t1").last().map(|call| call.2.clone()).as_deref(), Some("failure.repeated"));
    drop(client);
    let mut next = Client::open(&repo, "t1");
    next.call("read_file", json!({"path": "docs/b.md"})).fails("failure.repeated");
    assert_eq!(report(&repo, "t1")["state"], "incomplete");
    repo.json(&["submit", "t1"]).fails("failure.repeated");
    repo.approve_without_terminal();
    repo.json(&["resume", "t1"]).ok();
    next.call("read_file", json!({"path": "docs/b.md"})).ok();
}

/// A status in between brings nothing new either: ids and times are nothing that stands.
#[test]
fn two_in_turn_are_stopped_and_a_status_that_changes_is_not() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    Verifier::new("unit").script("date +%N\ncase_bad a\nfinish").commit(&repo);
    let task = repo.open(&contract().allowed(&["unit"]));
    let mut client = Client::open(&repo, "t1");
    for turn in 0..7 {
        task.write("docs/b.md", format!("{turn}\n"));
        repo.json(&["submit", "t1"]).ok();
        assert_eq!(client.call("task_status", json!({})).ok()["warning"], Value::Null, "{turn}");
    }
    let mut codes = Vec::new();
    while codes.len() < 14 && codes.last().is_none_or(String::is_empty) {
        let tool = ["finish", "task_status"][codes.len() % 2];
        codes.push(client.call(tool, json!({})).code().to_owned());
    }
    assert_eq!(codes.last().map(String::as_str), Some("failure.repeated"), "{codes:?}");
}

fn rows(repo: &Repo<'_>) -> Vec<Value> {
    let text = repo.tender(&["log", "t1", "--format", "json"]).ok().text();
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Whatever becomes of a call, its time counts, and that of what it runs counts once.
#[test]
fn the_time_of_every_call_that_was_let_through_is_charged() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    Verifier::new("unit").script("sleep 1\ncase_ok a\nfinish").commit(&repo);
    let task = repo.open(&contract().allowed(&["unit"]));
    task.write("docs/b.md", "x\n");
    let mut client = Client::open(&repo, "t1");
    client.call("run_check", json!({"id": "unit"})).ok();
    client.call("finish", json!({})).ok();
    task.write("src/a.txt", "not in its scope\n");
    client.call("finish", json!({})).fails("scope.violation");
    let rows = rows(&repo);
    let quotes = |row: &Value| row["tool"] == "finish" && row["result"]["origin"]["of"] == "unit";
    assert!(rows.iter().any(quotes), "what finish answers is in part the verifier's: {rows:#?}");
    let end = |tool: &str| rows.iter().rfind(|row| row["tool"] == tool).expect("a row")["result"].clone();
    let captured = end("run_check")["milliseconds"].as_u64().expect("what the capture took");
    let run = rows.iter().find_map(|row| row.pointer("/result/cost/milliseconds")?.as_u64()).expect("a run");
    assert!(run >= 1000 && captured > 0, "{run}, {captured}");
    let charged = budget(&repo, "t1", "wallSeconds")["used"].as_u64().expect("a number");
    assert!(charged * 1000 >= run + captured, "{charged} s for {run} + {captured} ms");
    assert!(end("finish")["cost"]["milliseconds"].as_u64() > Some(0), "{:#}", end("finish"));
    let said = end("run_check")["origin"]["of"].clone();
    assert_eq!(said, "unit");
}

#[test]
fn a_foreign_name_is_kept_short_and_no_secret_is_quoted() {
    let lab = Lab::new();
    let (repo, _) = opened(&lab, &contract());
    let mut client = Client::start_in(repo.lab, &repo.path, &[("DEPLOY_TOKEN", "hunter2hunter2")], &["t1"]);
    client.initialize();
    let long = "n".repeat(1 << 20);
    let refused = client.call(&long, json!({}));
    let failure = refused.fails("tool.not_allowed");
    assert!(
        failure["subject"].as_str().is_some_and(|name| name.ends_with("… (1048576 bytes)")),
        "{failure:#}"
    );
    client.call("hunter2hunter2", json!({})).fails("tool.not_allowed");
    client.call("read_file", json!({"path": "docs/a.md", long.as_str(): 1})).fails("arguments.invalid");
    let broken = client.call("search_text", json!({"pattern": "hunter2hunter2("}));
    assert!(!broken.fails("arguments.invalid").to_string().contains("hunter2"), "{:#}", broken.result);
    client.call("search_text", json!({"pattern": "hunter2hunter2"})).ok();
    let text = repo.tender(&["log", "t1", "--format", "json"]).ok().text();
    assert!(!text.contains("hunter2"), "{text}");
    assert!(text.contains("[redacted]") && text.len() < 200_000, "{} bytes", text.len());
}

#[test]
fn who_goes_on_when_nothing_is_left_does_not_fill_the_ledger() {
    let lab = Lab::new();
    let (repo, _) = opened(&lab, &contract().set("budget", json!({"toolCalls": 1})));
    repo.approve_without_terminal();
    let mut client = Client::open(&repo, "t1");
    client.call("read_file", json!({"path": "docs/b.md"})).ok();
    for _ in 0..110 {
        client.call("read_file", json!({"path": "docs/b.md"})).fails("budget.exhausted");
    }
    assert_eq!(calls(&repo, "t1").len(), 101, "the rest of them said nothing new");
    repo.json(&["resume", "t1", "--add", "toolCalls=1"]).ok();
    client.call("read_file", json!({"path": "docs/b.md"})).ok();
    client.call("read_file", json!({"path": "docs/b.md"})).fails("budget.exhausted");
    assert_eq!(calls(&repo, "t1").len(), 103, "and it is written again");
}

#[test]
fn a_file_that_may_not_be_read_is_not_searched_either() {
    let lab = Lab::new();
    let (repo, task) = opened(&lab, &contract().set("readScope", json!(["docs/"])));
    task.write("docs-evil/x.md", "secret\n");
    let mut client = Client::open(&repo, "t1");
    for path in ["src/a.txt", "docs-evil/x.md"] {
        client.call("search_text", json!({"pattern": ".", "path": path})).fails("scope.violation");
    }
    // Nor is it told whether a directory is there.
    for path in ["docs-evil", "nowhere"] {
        let listed = client.call("list_files", json!({ "path": path }));
        assert!(
            listed.fails("not_found")["message"].as_str().is_some_and(|text| text.contains("may be read"))
        );
        client.call("search_text", json!({"pattern": ".", "path": path})).fails("not_found");
    }
}

#[test]
fn arguments_are_an_object_and_names_fit_a_file_system() {
    let lab = Lab::new();
    let (repo, task) = opened(&lab, &contract());
    let mut client = Client::open(&repo, "t1");
    client.call("read_file", json!(["docs/b.md", null, null])).fails("arguments.invalid");
    client.call("list_files", json!([])).fails("arguments.invalid");
    client.call("task_status", json!("x")).fails("arguments.invalid");
    client.call("apply_patch", add(&format!("docs/{}", "n".repeat(300)))).fails("patch.invalid");
    client.call("apply_patch", add(&format!("docs/{}z", "y/".repeat(2_500)))).fails("patch.invalid");
    client.call("read_file", json!({"path": "n".repeat(300)})).fails("arguments.invalid");
    let both = "*** Begin Patch\n*** Add File: docs/n\n+x\n*** Add File: docs/n/x\n+x\n*** End Patch\n";
    client.call("apply_patch", json!({ "patch": both })).fails("patch.invalid");
    let alike = "*** Begin Patch\n*** Add File: docs/n1\n+x\n*** Add File: docs/N1\n+x\n*** End Patch\n";
    client.call("apply_patch", json!({ "patch": alike })).fails("patch.invalid");
    assert!(!task.exists("docs/n") && !task.exists("docs/n1"));
    assert_eq!(budget(&repo, "t1", "toolCalls")["used"], 8);
}

/// A call that cannot even be looked at in time is written down and charged as well.
#[test]
fn a_call_that_is_called_off_while_it_waits_for_the_lock_is_in_the_ledger() {
    let lab = Lab::new();
    let repo = crate::mcp::waiting(&lab);
    let (mut a, mut b) = (Client::open(&repo, "t1"), Client::open(&repo, "t1"));
    let check = a.begin("run_check", json!({"id": "unit"}));
    crate::cancel::wait_for(&lab.path("started"));
    // One that is called off before the server came to it never runs; on a slow machine that takes a while.
    let written = [300, 1_000, 3_000, 9_000].into_iter().any(|delay| {
        let read = b.begin("read_file", json!({"path": "docs/b.md"}));
        std::thread::sleep(std::time::Duration::from_millis(delay));
        b.cancel(read);
        let end = std::time::Instant::now() + std::time::Duration::from_secs(5);
        while calls(&repo, "t1").len() < 2 && std::time::Instant::now() < end {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        calls(&repo, "t1").len() == 2
    });
    assert!(written, "the call that waits is not written down");
    std::fs::write(lab.path("go"), "").expect("written");
    assert_eq!(a.reply(check).ok()["verdict"], "passed");
    let calls = calls(&repo, "t1");
    assert_eq!(
        calls[1],
        ("read_file".to_owned(), vec!["planned".to_owned(), "denied".to_owned()], "cancelled".to_owned())
    );
    assert_eq!(budget(&repo, "t1", "toolCalls")["used"], 2);
}

#[test]
fn what_came_after_the_candidate_is_a_risk_of_its_delivery() {
    let lab = Lab::new();
    let (repo, task) = opened(&lab, &contract());
    task.write("docs/b.md", "one\n");
    let mut client = Client::open(&repo, "t1");
    assert_eq!(client.call("finish", json!({})).ok()["done"], true);
    client.call("apply_patch", replace("docs/b.md", "one", "two")).ok();
    repo.json(&["deliver", "t1"]).ok();
    assert_eq!(repo.text("docs/b.md"), "one\n");
    let risks = report(&repo, "t1")["risks"].to_string();
    assert!(risks.contains("after the candidate that was delivered"), "{risks}");
}
