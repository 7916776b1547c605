//! A client or a server is killed in the middle: nothing goes on by itself, and the next one goes on with
//! what is left.

use crate::clients::{AGENTS, serve};
use crate::stand_in::{StandIn, turn};
use crate::support::Lab;
use crate::support::lab::TENDER;
use crate::support::mcp::Client;
use crate::world::{EDIT, World, contract};
use serde_json::json;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until something holds.
#[track_caller]
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits for the end of the process that wrote its number into a file.
#[track_caller]
pub fn is_gone(file: &Path) {
    let pid = std::fs::read_to_string(file).expect("it began").trim().to_owned();
    until("the end of the check", || !runs(&pid));
}

/// True while a process is there and no zombie.
fn runs(pid: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:") && !line.contains('Z'))
}

/// The processes that serve a task of this laboratory.
fn servers(world: &World<'_>) -> Vec<String> {
    let wanted = [&[TENDER], &serve(&world.repo, "t1")[..]].concat().join("\0") + "\0";
    let entries = std::fs::read_dir("/proc").expect("proc").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let numbers = pids.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    let serving = |pid: &String| {
        std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line == wanted.as_bytes()) && runs(pid)
    };
    numbers.filter(serving).collect()
}

/// Whoever comes next reads, patches and finishes, on the budget that is left.
#[track_caller]
fn the_next_one_goes_on(world: &World<'_>, used: u64) {
    let mut next = Client::open(&world.repo, "t1");
    let status = next.call("task_status", json!({}));
    let now = status.ok()["budget"]["toolCalls"]["used"].as_u64().expect("a number");
    assert!(now > used, "{now} is not more than {used}");
    next.call("read_file", json!({"path": "docs/a.md"})).ok();
    next.call("apply_patch", json!({"patch": EDIT})).ok();
    next.end().exits(0);
}

#[test]
fn an_agent_that_is_killed_leaves_nothing_running() {
    for agent in AGENTS.into_iter().filter(|agent| agent.is_there()) {
        let lab = Lab::new();
        let world = World::new(&lab, &contract().allowed(&["slow"]));
        let script =
            vec![turn("read_file", json!({"path": "docs/a.md"})), turn("run_check", json!({"id": "slow"}))];
        let model = StandIn::start(agent.api(), script);
        let mut command = agent.agent(&world.repo, "t1", &model);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts");
        until("the check begins", || lab.path("slow").exists());
        assert_eq!(servers(&world).len(), 1, "{agent:?}");
        child.kill().expect("lives");
        child.wait().expect("waits");
        until("the end of the server", || servers(&world).is_empty());
        is_gone(&lab.path("slow"));
        world.untouched();
        assert_ne!(world.report().verdict("slow"), "passed", "{agent:?}");
        the_next_one_goes_on(&world, world.used());
    }
}

#[test]
fn a_server_that_is_killed_is_followed_by_one_that_knows() {
    let lab = Lab::new();
    let world = World::new(&lab, &contract().allowed(&["slow"]));
    let mut client = Client::open(&world.repo, "t1");
    client.call("read_file", json!({"path": "docs/b.md"})).ok();
    client.begin("run_check", json!({"id": "slow"}));
    until("the check begins", || lab.path("slow").exists());
    client.signal("KILL");
    client.ended();
    world.untouched();
    let used = world.used();
    assert!(used >= 2, "{used}");
    the_next_one_goes_on(&world, used);
    // A check has no effect: what is not known of it is that it may be made again.
    assert_eq!(world.count("run_check", "safe_to_retry"), 1, "{:?}", world.calls());
    assert_eq!(world.count("apply_patch", "succeeded"), 1, "{:?}", world.calls());
    is_gone(&lab.path("slow"));
}

#[test]
fn agents_are_told_when_the_server_dies_and_the_task_goes_on() {
    for agent in AGENTS.into_iter().filter(|agent| agent.is_there()) {
        let lab = Lab::new();
        let world = World::new(&lab, &contract().allowed(&["prose", "slow"]));
        let script = vec![
            turn("read_file", json!({"path": "docs/a.md"})),
            turn("run_check", json!({"id": "slow"})),
            turn("task_status", json!({})),
        ];
        let model = StandIn::start(agent.api(), script);
        let mut command = agent.agent(&world.repo, "t1", &model);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts");
        until("the check begins", || lab.path("slow").exists());
        for pid in servers(&world) {
            let pid = rustix::process::Pid::from_raw(pid.parse().expect("a number")).expect("a process");
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("killed");
        }
        child.wait().expect("waits");
        let heard = model.heard();
        assert_eq!(heard[1].tool, "run_check");
        assert!(heard[1].text.contains("losed"), "{agent:?}: {heard:?}");
        until("the end of the servers", || servers(&world).is_empty());
        the_next_one_goes_on(&world, world.used());
        is_gone(&lab.path("slow"));
    }
}
