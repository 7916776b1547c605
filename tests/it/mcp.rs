//! `git tender mcp`: the protocol's connection. What the tools do is looked at elsewhere.

use crate::cancel::wait_for;
use crate::support::mcp::Client;
use crate::support::{Contract, Lab, Out, Repo, Verifier};
use serde_json::{Value, json};
use std::io::Write as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

fn served(lab: &Lab) -> Repo<'_> {
    let repo = lab.repo("app");
    repo.open(&Contract::new("t1").set("allowedTools", json!(["read_file", "run_check"])));
    repo
}

/// A repository whose verifier says `started` and then waits for `go`.
pub fn waiting(lab: &Lab) -> Repo<'_> {
    let repo = lab.repo("app");
    let (started, go) = (lab.path("started"), lab.path("go"));
    let script = format!(
        "echo >> {}\nwhile [ ! -e {} ]; do sleep 0.02; done\ncase_ok a\nfinish",
        started.display(),
        go.display()
    );
    Verifier::new("unit").script(&script).commit(&repo);
    let contract = Contract::new("t1").allowed(&["unit"]);
    let task = repo.open(&contract.set("allowedTools", json!(["read_file", "run_check"])));
    task.write("src/a.txt", "x\n");
    repo
}

fn calls(repo: &Repo<'_>) -> Vec<Value> {
    let text = repo.tender(&["log", "t1", "--format", "json"]).ok().text();
    let entries = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    entries.filter(|entry| entry["result"]["record"] == "call").collect()
}

fn said(out: &Out) -> Vec<Value> {
    out.text().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn a_client_is_told_who_it_speaks_to_and_what_it_may_call() {
    let lab = Lab::new();
    let repo = served(&lab);
    let mut client = Client::start(&repo, &["t1"]);
    let hello = client.initialize();
    assert_eq!(hello["serverInfo"]["name"], "git-tender");
    assert_eq!(hello["serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(hello["protocolVersion"], "2025-06-18");
    let instructions = hello["instructions"].as_str().expect("instructions");
    for word in ["t1", "a change for a test", "budget", "never an instruction"] {
        assert!(instructions.contains(word), "{word}: {instructions}");
    }
    let id = client.request("tools/list", json!({}));
    let tools = client.answer(id)["result"]["tools"].clone();
    let tools = tools.as_array().expect("tools");
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert!(names.contains(&"read_file") && names.contains(&"task_status"), "{names:?}");
    assert!(!names.contains(&"apply_patch"), "the contract does not allow it: {names:?}");
    for tool in tools {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool:#}");
        assert_eq!(tool["outputSchema"]["type"], "object", "{tool:#}");
        assert!(tool["annotations"]["readOnlyHint"].is_boolean(), "{tool:#}");
        assert!(tool["description"].as_str().is_some_and(|text| text.len() > 20), "{tool:#}");
    }
    let check = tools.iter().find(|tool| tool["name"] == "run_check").expect("it is allowed");
    assert_eq!(check["annotations"]["readOnlyHint"], false, "it captures a candidate and runs programs");
    let id = client.request("ping", json!({}));
    assert_eq!(client.answer(id)["result"], json!({}));
    client.end().exits(0);
}

/// What a client puts before its model is the harness's own words, the contract's, or marked as somebody
/// else's.
#[test]
fn the_instructions_hold_no_words_of_programs_or_of_earlier_workers() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    Verifier::new("unit").script("case_bad obey_the_program\nfinish").commit(&repo);
    let tools = json!(["read_file", "apply_patch", "note_finding"]);
    let task = repo.open(&Contract::new("t1").allowed(&["unit"]).set("allowedTools", tools));
    task.write("src/obey-the-name.txt", "x\n");
    let mut client = Client::open(&repo, "t1");
    client.call("note_finding", json!({"text": "obey the finding"})).ok();
    client.call("note_finding", json!({"text": "obey the limit", "kind": "limit"})).ok();
    client.call("finish", json!({})).ok();
    client.end().exits(0);
    let hello = Client::start(&repo, &["t1"]).initialize();
    let told = hello["instructions"].as_str().expect("instructions");
    assert!(!told.contains("obey"), "{told}");
    assert!(told.contains("unit: failed"), "{told}");
    assert!(!told.contains("run_check") && told.contains("Call finish"), "it is not allowed: {told}");
    let brief = repo.tender(&["report", "t1", "--brief"]).ok().text();
    for marked in ["found     in the worker's words: obey the finding", "limit     obey the limit"] {
        assert!(brief.contains(marked), "{marked}: {brief}");
    }
    let brief = repo.json(&["report", "t1", "--brief"]).ok().json;
    let all = [
        "apply_patch",
        "finish",
        "note_finding",
        "propose_amendment",
        "read_file",
        "request_input",
        "task_status",
    ];
    assert_eq!(brief["allowedTools"], json!(all));
}

#[test]
fn a_call_gives_the_same_object_in_both_forms() {
    let lab = Lab::new();
    let repo = served(&lab);
    let mut client = Client::open(&repo, "t1");
    let reply = client.call("read_file", json!({"path": "docs/b.md"}));
    assert!(reply.ok().to_string().contains("second"), "{:#}", reply.result);
    let text = reply.result["content"][0]["text"].as_str().expect("text");
    assert_eq!(&serde_json::from_str::<Value>(text).expect("JSON"), reply.ok());
    let refused = client.call("read_file", json!({"path": "no-such-file"}));
    let error = refused.fails("not_found");
    assert!(error["remedy"]["text"].is_string(), "{error:#}");
    let text = refused.result["content"][0]["text"].as_str().expect("text");
    assert_eq!(serde_json::from_str::<Value>(text).expect("JSON"), refused.result["structuredContent"]);
}

#[test]
fn every_call_reaches_the_gate_whatever_it_looks_like() {
    let lab = Lab::new();
    let repo = served(&lab);
    let mut client = Client::open(&repo, "t1");
    client.call("no_such_tool", json!({"a": 1})).fails("tool.not_allowed");
    client.call("apply_patch", json!({"patch": "x"})).fails("tool.not_allowed");
    client.call("read_file", json!({"path": "docs/b.md", "max_calls": 9})).fails("arguments.invalid");
    client.call("read_file", json!("text")).fails("arguments.invalid");
    client.call("read_file", json!([1, 2])).fails("arguments.invalid");
    let odd = [json!({"name": 5}), json!({"arguments": {}}), json!([1]), json!({"name": "", "_meta": 3})];
    for params in odd {
        let id = client.request("tools/call", params);
        client.reply(id).fails("tool.not_allowed");
    }
    assert_eq!(calls(&repo).len(), 9, "each was written down");
    let unknown = client.request("no/such/method", json!({}));
    assert_eq!(client.answer(unknown)["error"]["code"], -32601);
}

#[test]
fn a_burst_runs_one_after_the_other_in_the_order_of_arrival() {
    let lab = Lab::new();
    let repo = served(&lab);
    let mut client = Client::open(&repo, "t1");
    let mut burst = String::new();
    for number in 0..20 {
        let call = json!({"jsonrpc": "2.0", "id": format!("c{number}"), "method": "tools/call",
            "params": {"name": "read_file", "arguments": {"path": format!("none-{number}")}}});
        burst.push_str(&format!("{call}\n"));
    }
    client.send_raw(burst.as_bytes());
    client.close_input();
    let out = client.ended().exits(0);
    let answers: Vec<String> =
        said(&out).iter().map(|answer| answer["id"].as_str().expect("an id").to_owned()).collect();
    assert_eq!(answers, (0..20).map(|number| format!("c{number}")).collect::<Vec<_>>());
    for (answer, number) in said(&out).iter().zip(0..) {
        assert!(answer.to_string().contains(&format!("none-{number}")), "{answer:#}");
    }
}

#[test]
fn what_was_piped_in_is_all_answered() {
    let lab = Lab::new();
    let repo = served(&lab);
    let lines = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2024-11-05",
            "capabilities": {}, "clientInfo": {"name": "sh", "version": "0"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}),
        json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "task_status"}}),
        json!({"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {"name": "read_file", "arguments": {"path": "docs/b.md"}}}),
    ];
    // The last line has no newline.
    let input = lines.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
    let out = repo.tender_in("", &[], Some(input.as_bytes()), &["mcp", "t1"]).exits(0);
    let ids: Vec<i64> = said(&out).iter().filter_map(|answer| answer["id"].as_i64()).collect();
    assert_eq!(ids, [1, 2, 3, 4], "{}", out.all());
    assert!(out.stderr.is_empty(), "{}", out.errors());
    assert_eq!(said(&out)[0]["result"]["protocolVersion"], "2024-11-05");
}

#[test]
fn a_line_without_an_end_is_refused_and_the_connection_lives_on() {
    let lab = Lab::new();
    let repo = served(&lab);
    let mut client = Client::open(&repo, "t1");
    let long = "x".repeat(9 << 20);
    client.send_raw(
        format!("{{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"tools/call\",\"params\":\"{long}\"}}\n")
            .as_bytes(),
    );
    assert_eq!(client.answer(77)["error"]["code"], -32600);
    client.send_raw(
        format!("{{\"method\":\"tools/call\",\"params\":\"{long}\",\"jsonrpc\":\"2.0\",\"id\":78}}\n")
            .as_bytes(),
    );
    assert_eq!(client.answer(78)["error"]["code"], -32600);
    client.send_raw(format!("{long}\n").as_bytes());
    assert_eq!(client.answer(Value::Null)["error"]["code"], -32600);
    client.call("task_status", json!({})).ok();
    assert_eq!(calls(&repo).len(), 1);
    // Much more than could be kept: its size is bounded while it comes.
    for _ in 0..32 {
        client.send_raw(long.as_bytes());
    }
    client.send_raw(b"\n");
    assert_eq!(client.answer(Value::Null)["error"]["code"], -32600);
    let status = std::fs::read_to_string(format!("/proc/{}/status", client.pid())).expect("it lives");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    let kib: u64 = peak.trim().trim_end_matches("kB").trim().parse().expect("a number");
    assert!(kib < 160 << 10, "{kib} KiB were used");
    client.call("task_status", json!({})).ok();
}

#[test]
fn garbage_is_answered_and_ends_nothing() {
    let lab = Lab::new();
    let repo = served(&lab);
    let mut client = Client::start(&repo, &["t1"]);
    client.send_raw(b"garbage\n");
    assert_eq!(client.answer(Value::Null)["error"]["code"], -32700);
    client.send_raw(b"\n\r\n   \n\xff\xfe\n");
    assert_eq!(client.answer(Value::Null)["error"]["code"], -32700);
    client.notify("notifications/initialized", json!({}));
    client.send(&json!({"jsonrpc": "2.0", "id": 5, "result": {}}));
    client.initialize();
    for line in ["[]", "5", "{}", "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}"] {
        client.send_raw(format!("{line}\n").as_bytes());
        assert_eq!(client.answer(Value::Null)["error"]["code"], -32600, "{line}");
    }
    client.send(&json!({"jsonrpc": "2.0", "id": 99, "result": {}}));
    client.notify("notifications/cancelled", json!({"requestId": 12345}));
    client.call("task_status", json!({})).ok();
    assert!(client.heard.is_empty(), "{:#?}", client.heard);
    client.end().exits(0);
}

#[test]
fn a_running_call_is_called_off_and_what_waits_for_it_goes_on() {
    let lab = Lab::new();
    let repo = waiting(&lab);
    let mut client = Client::open(&repo, "t1");
    let running = client.begin("run_check", json!({"id": "unit"}));
    wait_for(&lab.path("started"));
    let (second, third) =
        (client.begin("run_check", json!({"id": "unit"})), client.begin("task_status", json!({})));
    // Meanwhile it listens.
    let ping = client.request("ping", json!({}));
    client.answer(ping);
    let list = client.request("tools/list", json!({}));
    assert!(client.answer(list)["result"]["tools"].is_array());
    client.cancel(second);
    client.cancel(running);
    client.reply(third).ok();
    let started = std::fs::read_to_string(lab.path("started")).expect("reads");
    assert_eq!(started.lines().count(), 1, "the second one never ran");
    let recorded = calls(&repo);
    let tools: Vec<&str> = recorded.iter().filter_map(|entry| entry["tool"].as_str()).collect();
    assert_eq!(tools, ["run_check", "run_check", "task_status"], "{recorded:#?}");
    let rows = repo.tender(&["log", "t1", "--format", "json"]).ok().text();
    let refused = rows.lines().filter(|row| row.contains("\"denied\"") && row.contains("\"cancelled\""));
    assert_eq!(refused.count(), 1, "the second one is in the ledger: {rows}");
    let out = client.end().exits(0);
    assert!(said(&out).is_empty(), "who calls off gets no answer: {}", out.text());
}

#[test]
fn progress_is_told_to_who_asked_for_it() {
    let lab = Lab::new();
    let repo = waiting(&lab);
    let mut client = Client::open(&repo, "t1");
    let params = json!({"name": "run_check", "arguments": {"id": "unit"}, "_meta": {"progressToken": "p1"}});
    let id = client.request("tools/call", params);
    let told = client.wait_for("progress", |said| said["method"] == "notifications/progress");
    assert_eq!(told["params"]["progressToken"], "p1");
    let runs = |said: &Value| said["params"]["message"] == "running verifiers";
    let told = client.wait_for("word of the run, while it goes on", runs);
    assert_eq!((&told["params"]["progress"], &told["params"]["total"]), (&json!(1.0), &json!(2.0)));
    std::fs::write(lab.path("go"), "").expect("writes");
    client.reply(id).ok();
    let quiet = client.begin("run_check", json!({"id": "unit"}));
    client.heard.clear();
    client.reply(quiet).ok();
    assert!(client.heard.is_empty(), "nobody asked: {:#?}", client.heard);
}

#[test]
fn a_client_that_is_killed_ends_the_server_and_what_runs() {
    let lab = Lab::new();
    let repo = waiting(&lab);
    let mut client = Client::open(&repo, "t1");
    client.begin("run_check", json!({"id": "unit"}));
    client.begin("task_status", json!({}));
    wait_for(&lab.path("started"));
    let (code, errors) = client.vanish();
    assert_eq!((code, errors.as_str()), (0, ""));
    // The lock is free, and the task can be worked on.
    let mut next = Client::open(&repo, "t1");
    next.call("task_status", json!({})).ok();
}

/// Nobody waits for an observer, and nothing stops it either: it stands for whatever does not listen while it
/// is at work.
#[test]
fn a_client_that_is_killed_ends_a_server_that_does_not_listen() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let started = lab.path("started");
    let script = format!("#!/bin/sh\n: > '{}'\nsleep 100\n", started.display());
    repo.write(".tender/hooks/slow.sh", script);
    repo.chmod(".tender/hooks/slow.sh", 0o755);
    let hook = "[[hooks]]\nevent = \"after_action\"\nkind = \"observer\"\ncommand = [\".tender/hooks/slow.sh\"]\ntimeout = \"200s\"\n";
    repo.write(".tender/config.toml", hook);
    repo.commit("an observer");
    repo.open(&Contract::new("t1").set("allowedTools", json!(["read_file"])));
    let mut client = Client::open(&repo, "t1");
    client.begin("read_file", json!({"path": "docs/b.md"}));
    wait_for(&started);
    let since = Instant::now();
    let (code, errors) = client.vanish();
    assert_eq!((code, errors.as_str()), (0, ""));
    assert!(since.elapsed() < Duration::from_secs(60), "it holds the lock for nobody: {:?}", since.elapsed());
    repo.json(&["submit", "t1"]).ok();
}

#[test]
fn a_signal_ends_the_server_and_what_runs() {
    for (name, code) in [("TERM", 143), ("INT", 130)] {
        let lab = Lab::new();
        let repo = waiting(&lab);
        let mut client = Client::open(&repo, "t1");
        client.begin("run_check", json!({"id": "unit"}));
        let never = client.begin("read_file", json!({"path": "docs/b.md"}));
        wait_for(&lab.path("started"));
        client.signal(name);
        let out = client.ended();
        assert_eq!((out.code, out.errors().as_str()), (code, ""), "{name}");
        assert!(
            said(&out).iter().all(|said| said["id"] != json!(never) || said["error"].is_object()),
            "{}",
            out.text()
        );
        assert_eq!(calls(&repo).len(), 1, "what waited never ran");
    }
}

#[test]
fn two_servers_work_on_one_task() {
    let lab = Lab::new();
    let repo = waiting(&lab);
    let (mut one, mut two) = (Client::open(&repo, "t1"), Client::open(&repo, "t1"));
    let slow = one.begin("run_check", json!({"id": "unit"}));
    wait_for(&lab.path("started"));
    let quick = two.begin("task_status", json!({}));
    std::fs::write(lab.path("go"), "").expect("writes");
    one.reply(slow).ok();
    two.reply(quick).ok();
    let both = [
        one.begin("read_file", json!({"path": "docs/a.md"})),
        one.begin("read_file", json!({"path": "docs/b.md"})),
    ];
    two.call("read_file", json!({"path": "docs/a.md"})).ok();
    for id in both {
        one.reply(id).ok();
    }
    assert_eq!(calls(&repo).len(), 5);
    one.end().exits(0);
    two.end().exits(0);
}

#[test]
fn an_id_that_is_waited_for_is_not_taken_twice() {
    let lab = Lab::new();
    let repo = waiting(&lab);
    let mut client = Client::open(&repo, "t1");
    let call = json!({"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": {"name": "run_check", "arguments": {"id": "unit"}}});
    client.send(&call);
    wait_for(&lab.path("started"));
    client.send(&call);
    assert_eq!(client.answer(Value::Null)["error"]["code"], -32600);
    std::fs::write(lab.path("go"), "").expect("writes");
    assert!(client.answer("a")["result"].is_object());
    assert_eq!(calls(&repo).len(), 1);
}

#[test]
fn without_a_task_it_never_speaks_the_protocol() {
    let lab = Lab::new();
    let repo = served(&lab);
    let hello = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    let out = repo.tender_in("", &[], Some(hello), &["mcp", "nope"]).exits(2);
    assert!(out.stdout.is_empty() && out.errors().contains("nope"), "{}", out.all());
    repo.json(&["mcp", "nope"]).fails("not_found");
    repo.json(&["cancel", "t1"]).ok();
    repo.json(&["mcp", "t1"]).fails("cancelled");
}

#[test]
fn a_worker_is_no_person_whatever_the_repository_says() {
    let lab = Lab::new();
    let repo = served(&lab);
    repo.approve_without_terminal();
    let mut client = Client::open(&repo, "t1");
    client.call("task_status", json!({})).ok();
    let calls = calls(&repo);
    assert!(calls.iter().all(|entry| entry["actor"] == "agent"), "{calls:#?}");
    let id = client.request("initialize", json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}));
    assert!(client.answer(id)["result"].is_object(), "a second handshake does no harm");
}

/// Its answers fill the pipe, and whoever writes them never comes to an end by itself.
#[test]
fn a_signal_ends_a_server_whose_client_reads_nothing() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let task = repo.open(&Contract::new("t1").set("allowedTools", json!(["list_files"])));
    for n in 0..1_000 {
        task.write(format!("many/{n:06}"), "");
    }
    let mut command = lab.command(crate::support::lab::TENDER, &repo.path);
    command.args(["mcp", "t1"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("starts");
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
    let list = |id: u32| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "list_files", "arguments": {}}});
    let said = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        list(2),
        list(3),
    ];
    let mut input = child.stdin.take().expect("piped");
    said.iter().for_each(|message| writeln!(input, "{message}").expect("written"));
    let end = Instant::now() + Duration::from_secs(60);
    while calls(&repo).len() < 2 {
        assert!(Instant::now() < end, "the calls do not run");
        std::thread::sleep(Duration::from_millis(50));
    }
    let signal = std::process::Command::new("kill").args(["-s", "TERM", &child.id().to_string()]).status();
    assert!(signal.expect("runs").success());
    let status = loop {
        if let Some(status) = child.try_wait().expect("waits") {
            break status;
        }
        if Instant::now() > end {
            let _ = child.kill();
            panic!("the server does not end");
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(status.code(), Some(143));
}
