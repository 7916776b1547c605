//! SIGKILL of a worker's server at the system calls of one patch; then another server goes on.

use crate::independent;
use crate::strace::{Call, calls_reading, can_trace, killed_reading};
use crate::support::mcp::Client;
use crate::support::{Contract, Lab, Repo, Task};
use serde_json::{Value, json};

/// One of two states that a patch takes the worktree between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

impl Side {
    fn other(self) -> Self {
        if self == Self::Left { Self::Right } else { Self::Left }
    }

    /// The state of all three files; `None` where they are of both.
    fn of(task: &Task) -> Option<Self> {
        let text = task.read("docs/b.md");
        let files = (text.as_slice(), task.exists("docs/left.md"), task.exists("docs/right/new.md"));
        match files {
            (b"left\n", true, false) => Some(Self::Left),
            (b"right\n", false, true) => Some(Self::Right),
            _ => None,
        }
    }

    /// Everything that a client pipes in to get there.
    fn input(self) -> Vec<u8> {
        let patch = match self {
            Self::Right => {
                "*** Begin Patch\n*** Update File: docs/b.md\n@@\n-left\n+right\n*** Delete File: docs/left.md\n*** Add File: docs/right/new.md\n+x\n*** End Patch\n"
            }
            Self::Left => {
                "*** Begin Patch\n*** Update File: docs/b.md\n@@\n-right\n+left\n*** Add File: docs/left.md\n+x\n*** Delete File: docs/right/new.md\n*** End Patch\n"
            }
        };
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
        let messages = [
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "apply_patch", "arguments": {"patch": patch}}}),
        ];
        messages.iter().flat_map(|message| format!("{message}\n").into_bytes()).collect()
    }
}

fn rows(repo: &Repo<'_>) -> Vec<independent::Row> {
    let rows = independent::rows(&repo.store()).expect("readable");
    assert_eq!(independent::faults(&rows), [] as [String; 0]);
    rows
}

/// Every call has one end, and the budget counts each once.
fn every_call_has_an_end(repo: &Repo<'_>, shown: &str) {
    let rows = rows(repo);
    let actions = independent::by_action(&rows);
    let made = actions.values().filter(|rows| rows[0].result["record"] == "call").count();
    let ends = ["succeeded", "failed_without_effect", "denied", "safe_to_retry"];
    for of_one in actions.values() {
        let ended = of_one.last().is_some_and(|row| ends.contains(&row.state.as_str()));
        assert!(ended, "{shown}: {} has no end", of_one[0].tool);
    }
    let report = repo.json(&["report", "t1"]).ok().json.clone();
    assert_eq!(report["budget"]["toolCalls"]["used"], made, "{shown}");
    assert_eq!(report["calls"]["made"], made, "{shown}");
}

fn leftovers(task: &Task) -> Vec<String> {
    let mut found = Vec::new();
    let mut todo = vec![task.worktree.clone()];
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(&dir).expect("lists").map(|entry| entry.expect("one")) {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(".tender-") {
                found.push(name);
            } else if entry.path().is_dir() {
                todo.push(entry.path());
            }
        }
    }
    found
}

#[test]
fn a_server_that_is_killed_at_any_call_leaves_a_whole_patch_or_none() {
    let lab = Lab::within(&crate::independent::memory());
    let repo = lab.repo("app");
    let contract = Contract::new("t1")
        .scope(&["docs/"])
        .set("budget", json!({"toolCalls": 100_000, "repeatedFailures": 100_000}));
    let task = repo.open(&contract.set("allowedTools", json!(["apply_patch"])));
    task.write("docs/b.md", "left\n");
    task.write("docs/left.md", "x\n");
    if !can_trace() {
        return;
    }
    let pages = if crate::more() > 0 { 1 } else { 12 };
    let mut calls = calls_reading(&repo, &["mcp", "t1"], pages, &Side::Right.input());
    assert_eq!(Side::of(&task), Some(Side::Right), "the patch itself");
    calls.retain(|call| !call.is_sync());
    assert!(calls.len() > 20, "only {} calls: {calls:?}", calls.len());
    let (mut kills, mut forward) = (0, 0);
    for call in &calls {
        let (killed, went) = one(&repo, &task, call);
        kills += usize::from(killed);
        forward += usize::from(killed && went);
    }
    crate::support::say(&format!(
        "crash apply_patch: {kills} kills, {forward} went forward, {} back, losses: 0",
        kills - forward
    ));
    assert!(kills * 10 >= calls.len() * 7, "only {kills} kills of {}", calls.len());
    assert!(forward > 2 && kills - forward > 2, "the kills did not fall where they should");
}

/// One kill; whether there was one, and whether the patch took place.
fn one(repo: &Repo<'_>, task: &Task, call: &Call) -> (bool, bool) {
    let before = Side::of(task).expect("whole");
    let killed = killed_reading(repo, &["mcp", "t1"], call, &before.other().input());
    let shown = format!("killed before call {} ({})", call.number, call.line);
    let last = last_call(repo);
    // The next worker is told what became of it, and goes on.
    let mut next = Client::open(repo, "t1");
    let status = next.call("task_status", json!({})).ok().clone();
    drop(next);
    let after = Side::of(task)
        .unwrap_or_else(|| panic!("{shown}: half a patch: {:?}", String::from_utf8(task.read("docs/b.md"))));
    assert_eq!(leftovers(task), [] as [String; 0], "{shown}");
    every_call_has_an_end(repo, &shown);
    if let Some(action) = last.filter(|_| killed) {
        let said = status["done"].as_array().expect("steps").iter().any(|step| step["ref"] == action);
        assert!(said, "{shown}: nothing is said of {action}: {status:#}");
        let rows = rows(repo);
        let end = rows.iter().rfind(|row| row.action == action).expect("rows").state.clone();
        assert_eq!(end == "succeeded", after != before, "{shown}: {end}");
    }
    (killed, after != before)
}

/// The last patch that was asked for, where its row was written and it is not known yet what became of it.
fn last_call(repo: &Repo<'_>) -> Option<Value> {
    let rows = rows(repo);
    let last = rows.iter().rfind(|row| row.tool == "apply_patch")?;
    let unknown = ["planned", "authorized", "dispatched"].contains(&last.state.as_str());
    unknown.then(|| Value::from(last.action.clone()))
}
