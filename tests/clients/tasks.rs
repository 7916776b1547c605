//! Each client completes the task.

use crate::clients::{AGENTS, Client, serve};
use crate::stand_in::{StandIn, turn};
use crate::support::lab::{TENDER, run};
use crate::support::{Lab, Out};
use crate::world::{EDIT, World, contract};
use serde_json::{Value, json};

#[test]
fn coding_agents_complete_a_task() {
    for agent in AGENTS.into_iter().filter(|agent| agent.is_there()) {
        let lab = Lab::new();
        let world = World::new(&lab, &contract());
        let script = vec![
            turn("read_file", json!({"path": "docs/a.md"})),
            turn("apply_patch", json!({"patch": EDIT})),
            turn("run_check", json!({"id": "prose"})),
            turn("finish", json!({})),
        ];
        let model = StandIn::start(agent.api(), script);
        let out = agent.works(&world.repo, "t1", &model);
        let heard = model.heard();
        let tools: Vec<&str> = heard.iter().map(|heard| heard.tool.as_str()).collect();
        assert_eq!(tools, ["read_file", "apply_patch", "run_check", "finish"], "{agent:?}: {}", out.all());
        assert_eq!(heard[0].object()["text"], crate::support::repo::LINES, "{agent:?}");
        assert_eq!(heard[1].object()["changes"][0]["path"], "docs/a.md", "{agent:?}");
        assert_eq!(heard[2].object()["requirements"][0]["verdict"], "passed", "{agent:?}");
        assert_eq!(heard[3].object()["done"], true, "{agent:?}");
        let offered = model.offered();
        for tool in ["read_file", "apply_patch", "run_check", "finish", "task_status"] {
            assert!(offered.iter().any(|name| name == tool), "{agent:?}: {tool} is not in {offered:?}");
        }
        assert!(!offered.iter().any(|name| name == "search_text"), "{agent:?}: {offered:?}");
        world.is_completed_by(&tools);
    }
}

#[test]
fn one_agent_asks_a_person_answers_and_another_goes_on() {
    let [first, second] = AGENTS;
    if !(first.is_there() && second.is_there()) {
        return;
    }
    let lab = Lab::new();
    let world = World::new(&lab, &contract());
    world.repo.approve_without_terminal();
    let question = json!({"question": "What should the third line be?"});
    let model = StandIn::start(first.api(), vec![turn("request_input", question)]);
    first.works(&world.repo, "t1", &model);
    assert_eq!(model.heard()[0].object()["status"], "waiting_input");
    assert_eq!(world.report().json["state"], "waiting_input");
    world.repo.tender(&["answer", "t1", "line three"]).ok();
    let script = vec![
        turn("task_status", json!({})),
        turn("read_file", json!({"path": "docs/a.md"})),
        turn("apply_patch", json!({"patch": EDIT})),
        turn("finish", json!({})),
    ];
    let model = StandIn::start(second.api(), script);
    second.works(&world.repo, "t1", &model);
    let heard = model.heard();
    let status = heard[0].object().to_string();
    assert!(status.contains("What should the third line be?") && status.contains("line three"), "{status}");
    assert_eq!(heard[3].object()["done"], true, "{heard:?}");
    world.is_completed_by(&["request_input", "task_status", "read_file", "apply_patch", "finish"]);
}

/// Runs a part of `sdk.py` against the task and gives what it saw.
#[track_caller]
fn python(world: &World<'_>, part: &str) -> Value {
    let mut command = Client::Python.command(&world.repo);
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/sdk.py")).arg(part).arg(TENDER);
    command.args(serve(&world.repo, "t1"));
    command.env("EDIT", EDIT).env("BEGUN", world.repo.lab.path("slow"));
    let out = run(command, None).ok();
    serde_json::from_str(&out.text()).unwrap_or_else(|_| panic!("{}", out.all()))
}

#[test]
fn the_python_sdk_completes_a_task() {
    if !Client::Python.is_there() {
        return;
    }
    let lab = Lab::new();
    let world = World::new(&lab, &contract());
    let seen = python(&world, "task");
    for tool in ["read_file", "apply_patch", "run_check", "finish", "task_status", "request_input"] {
        assert!(seen["tools"].as_array().expect("a list").contains(&json!(tool)), "{seen:#}");
    }
    assert!(seen["readOnly"].as_array().expect("a list").contains(&json!("read_file")), "{seen:#}");
    assert!(!seen["readOnly"].as_array().expect("a list").contains(&json!("apply_patch")), "{seen:#}");
    assert_eq!(seen["read"]["text"], crate::support::repo::LINES);
    assert_eq!(seen["patched"]["changes"][0]["old"]["gitBlob"], seen["read"]["gitBlob"]);
    assert_eq!(seen["checked"]["requirements"][0]["verdict"], "passed", "{seen:#}");
    assert_eq!(seen["refused"]["error"]["code"], "arguments.invalid");
    assert_eq!(seen["finished"]["done"], true, "{seen:#}");
    assert_eq!(world.calls().len(), 6, "{:?}", world.calls());
    world.delivers();
}

#[test]
fn the_python_sdk_finds_the_protocol_by_itself() {
    if !Client::Python.is_there() {
        return;
    }
    let lab = Lab::new();
    let world = World::new(&lab, &contract());
    let seen = python(&world, "modern");
    assert_eq!(seen["read"]["text"], crate::support::repo::LINES, "{seen:#}");
    assert_eq!(seen["unknown"]["error"]["code"], "tool.not_allowed", "{seen:#}");
    assert_eq!(seen["question"]["status"], "waiting_input", "{seen:#}");
    assert_eq!(world.report().json["state"], "waiting_input");
    world.untouched();
}

#[test]
fn what_a_user_says_to_the_python_sdk_is_no_answer_yet() {
    if !Client::Python.is_there() {
        return;
    }
    let lab = Lab::new();
    let world = World::new(&lab, &contract());
    let seen = python(&world, "elicit");
    assert!(seen["asked"][0].as_str().is_some_and(|asked| asked.contains("Which line?")), "{seen:#}");
    assert_eq!(seen["question"]["hint"]["text"], "the second line", "{seen:#}");
    assert_eq!(seen["refused"]["error"]["code"], "input.required", "{seen:#}");
    assert_eq!(world.report().json["state"], "waiting_input");
    world.untouched();
}

#[test]
fn a_check_that_the_client_gives_up_is_stopped() {
    if !Client::Python.is_there() {
        return;
    }
    let lab = Lab::new();
    let world = World::new(&lab, &contract().allowed(&["slow"]));
    let seen = python(&world, "cancel");
    assert_eq!(seen["status"]["taskId"], "t1", "{seen:#}");
    crate::deaths::is_gone(&lab.path("slow"));
    assert_ne!(world.report().verdict("slow"), "passed");
    world.untouched();
}

/// One process of the inspector: one server, one question.
#[track_caller]
fn inspector(world: &World<'_>, question: &[&str]) -> Value {
    let mut command = Client::Inspector.command(&world.repo);
    command.arg("--cli").arg(TENDER).args(serve(&world.repo, "t1")).args(question);
    let out: Out = run(command, None).ok();
    serde_json::from_str(&out.text()).unwrap_or_else(|_| panic!("{}", out.all()))
}

#[test]
fn the_inspector_completes_a_task() {
    if !Client::Inspector.is_there() {
        return;
    }
    let lab = Lab::new();
    let world = World::new(&lab, &contract());
    let listed = inspector(&world, &["--method", "tools/list"]);
    let tools = listed["tools"].as_array().expect("a list");
    assert!(tools.iter().any(|tool| tool["name"] == "apply_patch"), "{listed:#}");
    let call = |tool: &str, arguments: &[&str]| {
        let mut question = vec!["--method", "tools/call", "--tool-name", tool];
        arguments.iter().for_each(|argument| question.extend(["--tool-arg", argument]));
        inspector(&world, &question)["structuredContent"].clone()
    };
    assert_eq!(call("read_file", &["path=docs/a.md"])["text"], crate::support::repo::LINES);
    let patch = format!("patch={EDIT}");
    assert_eq!(call("apply_patch", &[&patch])["changes"][0]["status"], "modified");
    assert_eq!(call("run_check", &["id=prose"])["requirements"][0]["verdict"], "passed");
    // Every one was a server of its own, and all of them spent one budget.
    let status = call("task_status", &[]);
    assert_eq!(status["budget"]["toolCalls"]["used"], world.used(), "{status:#}");
    assert_eq!(call("finish", &[])["done"], true);
    world.is_completed_by(&["read_file", "apply_patch", "run_check", "task_status", "finish"]);
}

/// It holds every answer to the schema that the tool declares.
#[test]
fn the_inspector_hears_why_a_call_is_refused() {
    if !Client::Inspector.is_there() {
        return;
    }
    let lab = Lab::new();
    let world = World::new(&lab, &contract());
    let question = ["--method", "tools/call", "--tool-name", "read_file", "--tool-arg", "path=../x"];
    let refused = inspector(&world, &question)["structuredContent"].clone();
    assert_eq!(refused["error"]["code"], "scope.violation", "{refused:#}");
    world.untouched();
}
