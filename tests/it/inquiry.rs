//! Questions of a worker: they stop the task until a person answers, and the worker finds the answer.

use crate::support::mcp::Client;
use crate::support::worker::Worker;
use crate::support::{Contract, Lab, Repo, Verifier};
use serde_json::{Value, json};

fn opened(repo: &Repo<'_>) -> Worker {
    repo.open(&Contract::new("t1"));
    repo.approve_without_terminal();
    Worker::of(repo, "t1")
}

#[test]
fn a_question_stops_deliveries_until_a_person_answers_it() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.changing("t1", &[("docs/b.md", Some("changed\n"))]);
    let worker = Worker::of(&repo, "t1");
    let id = worker.ask("Which of both?");
    let before = repo.json(&["report", "t1"]).ok();
    assert_eq!(before.json["state"], "waiting_input");
    assert_eq!(repo.json(&["status"]).ok().json["tasks"][0]["state"], "waiting_input");
    let asked = &before.json["questions"][0];
    assert_eq!((asked["id"].as_str(), asked["text"].as_str()), (Some(id.as_str()), Some("Which of both?")));
    assert_eq!(asked["origin"], "worker");
    assert_eq!((&asked["untrusted"], &asked["answer"]), (&json!(true), &json!(null)));
    for command in [
        ["deliver", "t1"].as_slice(),
        &["deliver", "t1", "--dry-run"],
        &["deliver", "t1", "--merge"],
        &["ship", "t1"],
    ] {
        let answer = repo.json(command);
        let error = answer.fails("input.required");
        assert_eq!(error["subject"], id.as_str(), "{command:?}");
        assert!(error["message"].as_str().expect("text").contains("Which of both?"), "{error:#}");
        assert_eq!(error["remedy"]["command"], json!(["git", "tender", "answer", "t1", id, "TEXT"]));
    }
    assert_eq!(repo.text("docs/b.md"), "second\n");
    worker.refused("finish", json!({}), "input.required");
    // Reading, patching, capturing and checking go on.
    worker.ok("read_file", json!({"path": "docs/a.md"}));
    let patch = "*** Begin Patch\n*** Update File: docs/b.md\n@@\n-changed\n+changed again\n*** End Patch\n";
    worker.ok("apply_patch", json!({ "patch": patch }));
    repo.json(&["submit", "t1"]).ok();
    repo.json(&["verify", "t1"]).ok();
    repo.json(&["answer", "t1", "the first"]).fails("permission.denied");
    assert_eq!(repo.json(&["report", "t1"]).ok().json["state"], "waiting_input");
    repo.approve_without_terminal();
    let answered = repo.json(&["answer", "t1", "the first"]).ok();
    assert_eq!(answered.json["kind"], "question");
    assert_eq!((&answered.json["action"], &answered.json["outcome"]), (&json!(id), &json!("answered")));
    assert_eq!(answered.json["state"], "verified");
    for report in [repo.json(&["report", "t1"]).ok().json, repo.json(&["report", "t1", "--brief"]).ok().json]
    {
        assert_eq!(report["questions"][0]["answer"]["text"], "the first");
        assert_eq!(report["questions"][0]["answer"]["origin"], "person");
    }
    let status = worker.ok("task_status", json!({}));
    assert_eq!(status["questions"][0]["answer"]["text"], "the first");
    worker.ok("finish", json!({}));
    repo.json(&["deliver", "t1"]).ok();
    assert_eq!(repo.text("docs/b.md"), "changed again\n");
    repo.json(&["answer", "t1", "again"]).fails("state.invalid");
}

#[test]
fn what_else_keeps_it_from_being_delivered_is_said_as_well() {
    let lab = Lab::new();
    let repo = lab.repo("app").with(&Verifier::new("unit").script("case_bad a\nfinish"));
    let contract = Contract::new("t1").allowed(&["unit"]);
    repo.open(&contract);
    let worker = Worker::of(&repo, "t1");
    worker.ask("Which of both?");
    let codes = |answer: &crate::support::Answer| -> Vec<String> {
        let error = answer.error();
        let also = error["also"].as_array().cloned().unwrap_or_default();
        let all = std::iter::once(error).chain(also.iter());
        all.map(|failure| failure["code"].as_str().expect("a code").to_owned()).collect()
    };
    let without = repo.json(&["deliver", "t1"]);
    assert_eq!(
        (without.code, codes(&without)),
        (2, vec!["state.invalid".to_owned(), "input.required".to_owned()])
    );
    let patch = "*** Begin Patch\n*** Update File: docs/b.md\n@@\n-second\n+changed\n*** End Patch\n";
    worker.ok("read_file", json!({"path": "docs/b.md"}));
    worker.ok("apply_patch", json!({ "patch": patch }));
    repo.json(&["submit", "t1"]).ok();
    repo.json(&["verify", "t1"]).result(1);
    let refused = repo.json(&["deliver", "t1"]);
    assert_eq!(
        (refused.code, codes(&refused)),
        (1, vec!["verification.failed".to_owned(), "input.required".to_owned()])
    );
}

#[test]
fn one_of_several_has_to_be_named() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let worker = opened(&repo);
    let (first, second) = (worker.ask("one?"), worker.ask("two?"));
    let wish = worker.propose(json!({"writeScope": ["docs/"]}));
    let several = repo.json(&["answer", "t1", "yes"]);
    let error = several.fails("arguments.invalid");
    assert_eq!(error["details"]["open"].as_array().expect("ids").len(), 3, "{error:#}");
    let kinds: Vec<&str> = error["details"]["asked"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| one["kind"].as_str().expect("text"))
        .collect();
    assert_eq!(kinds, ["amendment", "question", "question"]);
    repo.json(&["answer", "t1", "a0000", "yes"]).fails("arguments.invalid");
    repo.json(&["answer", "t1", &second, "2"]).ok();
    assert_eq!(repo.json(&["report", "t1"]).ok().json["state"], "waiting_input");
    repo.json(&["answer", "t1", &second, "3"]).fails("arguments.invalid");
    repo.json(&["answer", "t1", &wish, "perhaps"]).fails("arguments.invalid");
    repo.json(&["answer", "t1", &wish, "no"]).ok();
    repo.json(&["answer", "t1", "", "1"]).fails("arguments.invalid");
    repo.json(&["answer", "t1", " "]).fails("arguments.invalid");
    repo.json(&["answer", "t1", &"x".repeat(20_001)]).fails("arguments.invalid");
    repo.json(&["answer", "t1", "1"]).ok();
    let report = repo.json(&["report", "t1"]).ok();
    let answers: Vec<&str> = report.json["questions"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|asked| asked["answer"]["text"].as_str().expect("text"))
        .collect();
    assert_eq!(answers, ["1", "2"]);
    assert_eq!(report.json["questions"][0]["id"], first.as_str());
    assert_ne!(report.json["state"], "waiting_input");
}

#[test]
fn a_question_says_something_and_not_too_much_and_cannot_act_on_a_terminal() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let worker = opened(&repo);
    for question in [String::new(), " \n".to_owned(), "x".repeat(4001)] {
        let failure = worker.refused("request_input", json!({ "question": question }), "arguments.invalid");
        assert_eq!(failure["subject"], "question");
    }
    assert_ne!(repo.json(&["report", "t1"]).ok().json["state"], "waiting_input");
    let hostile = "\u{1b}[2J\u{1b}]0;owned\u{7}yes?\r\u{202e}txt";
    worker.ask(hostile);
    assert_eq!(
        repo.json(&["report", "t1"]).ok().json["questions"][0]["text"],
        hostile,
        "JSON has it as it is"
    );
    for command in [
        ["report", "t1"].as_slice(),
        &["report", "t1", "--brief"],
        &["deliver", "t1"],
        &["answer", "t1", "a0", "x"],
    ] {
        let shown = repo.tender(command).all();
        assert!(!shown.contains(['\u{1b}', '\u{7}', '\r', '\u{202e}']), "{command:?}: {shown:?}");
    }
    let shown = repo.tender(&["report", "t1"]).ok().text();
    assert!(shown.contains("\\u{1b}[2J") && shown.contains("worker's words"), "{shown}");
}

#[test]
fn no_secret_of_the_callers_is_in_a_question() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.open(&Contract::new("t1").set("allowedTools", json!(["note_finding"])));
    let worker = Worker::with(&repo, "t1", &[("DEPLOY_TOKEN", "hunter2hunter2")]);
    worker.ask("is it hunter2hunter2?");
    let wish = json!({"change": {"goal": "use hunter2hunter2"}, "reason": "x"});
    assert_eq!(worker.refused("propose_amendment", wish, "arguments.invalid")["subject"], "change");
    let wish = json!({"change": {"goal": "another"}, "reason": "hunter2hunter2"});
    worker.ok("propose_amendment", wish);
    worker.note("it is hunter2hunter2", &[]);
    let report = repo.json(&["report", "t1"]).ok().json.to_string();
    let log = repo.tender(&["log", "t1", "--format", "json"]).ok().text();
    assert!(!report.contains("hunter2") && !log.contains("hunter2"), "{report}\n{log}");
    let text = repo.json(&["report", "t1"]).ok().json["questions"][0]["text"].to_string();
    assert!(text.contains("is it") && !text.contains("hunter2"), "{text}");
}

#[test]
fn nobody_is_asked_over_and_over() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let worker = opened(&repo);
    for number in 0..20 {
        worker.ask(&format!("question {number}?"));
    }
    worker.refused("request_input", json!({"question": "one more?"}), "input.required");
    let repo = lab.repo("second");
    repo.open(&Contract::new("t1").set("budget", json!({"repeatedFailures": 3})));
    let worker = Worker::of(&repo, "t1");
    worker.ask("again?");
    worker.ask("again?");
    worker.refused("request_input", json!({"question": "again?"}), "failure.repeated");
}

#[test]
fn what_was_asked_ends_with_the_task() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let worker = opened(&repo);
    worker.ask("go on?");
    repo.json(&["cancel", "t1"]).ok();
    repo.json(&["answer", "t1", "yes"]).fails("cancelled");
    assert_eq!(repo.json(&["report", "t1"]).ok().json["state"], "cancelled");
}

/// A client that can ask its user.
fn asking(repo: &Repo<'_>) -> Client {
    repo.open(&Contract::new("t1"));
    let mut client = Client::start(repo, &["t1"]);
    client.initialize_with(json!({"elicitation": {}}));
    client
}

/// The server's request to the client's user, after a question; the call's id with it.
fn elicited(client: &mut Client, question: &str) -> (i64, Value) {
    let call = client.begin("request_input", json!({ "question": question }));
    let request = client.wait_for("a request to ask the user", |said| {
        said["method"] == "elicitation/create" && said["id"] != json!(null)
    });
    (call, request)
}

fn question(repo: &Repo<'_>) -> Value {
    let report = repo.json(&["report", "t1"]).ok();
    assert_eq!(report.json["state"], "waiting_input");
    report.json["questions"][0].clone()
}

#[test]
fn what_the_user_says_through_the_client_helps_and_is_no_answer() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let mut client = asking(&repo);
    let (call, request) = elicited(&mut client, "Which of\nboth?");
    let (id, params) = (question(&repo)["id"].as_str().expect("an id").to_owned(), &request["params"]);
    let message = params["message"].as_str().expect("a text");
    assert!(message.contains("Which of\\nboth?") && message.contains(&id), "{message}");
    assert_eq!(params["requestedSchema"]["required"], json!(["answer"]));
    assert_eq!(params["requestedSchema"]["properties"]["answer"]["type"], "string");
    // Other calls go on meanwhile.
    client.call("read_file", json!({"path": "docs/a.md"})).ok();
    let result = json!({"action": "accept", "content": {"answer": "the first"}});
    client.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}));
    let reply = client.reply(call);
    let told = reply.ok();
    assert_eq!((&told["status"], &told["id"]), (&json!("waiting_input"), &json!(id)));
    let hint = &told["hint"];
    assert_eq!((&hint["text"], &hint["through"]), (&json!("the first"), &json!("test")));
    assert_eq!((&hint["origin"], &hint["untrusted"]), (&json!("client"), &json!(true)));
    let asked = question(&repo);
    assert_eq!((&asked["hints"], &asked["answer"]), (&json!([hint]), &json!(null)));
    let text = repo.tender(&["report", "t1"]).all();
    assert!(text.contains("said through the client test, perhaps by a person: the first"), "{text}");
    client.call("finish", json!({})).fails("input.required");
    assert!(client.end().code == 0);
    repo.approve_without_terminal();
    repo.json(&["answer", "t1", "the second"]).ok();
    let asked = repo.json(&["report", "t1"]).ok().json["questions"][0].clone();
    assert_eq!(
        (&asked["answer"]["text"], &asked["answer"]["origin"]),
        (&json!("the second"), &json!("person"))
    );
}

#[test]
fn a_user_who_says_nothing_leaves_the_question_open() {
    let answers = [
        json!({"result": {"action": "decline"}}),
        json!({"result": {"action": "cancel"}}),
        json!({"result": {"action": "accept"}}),
        json!({"result": {"action": "accept", "content": {"answer": 5}}}),
        json!({"result": {"action": "accept", "content": {"answer": " "}}}),
        json!({"result": {"action": "accept", "content": {"answer": "x".repeat(30_000)}}}),
        json!({"result": {"something": "else"}}),
        json!({"error": {"code": -32601, "message": "no such method"}}),
    ];
    let lab = Lab::new();
    let repo = lab.repo("app");
    let mut client = asking(&repo);
    for (number, answer) in answers.into_iter().enumerate() {
        let (call, request) = elicited(&mut client, &format!("The question {number}?"));
        let mut message = answer.clone();
        message["jsonrpc"] = json!("2.0");
        message["id"] = request["id"].clone();
        client.send(&message);
        let reply = client.reply(call);
        assert_eq!(
            (&reply.ok()["status"], &reply.ok()["hint"]),
            (&json!("waiting_input"), &json!(null)),
            "{answer}"
        );
    }
    assert_eq!(question(&repo)["hints"], json!([]));
    client.end();
}

#[test]
fn nobody_waits_for_a_user_whom_nobody_can_ask_any_more() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let mut client = asking(&repo);
    let (call, _) = elicited(&mut client, "The first?");
    client.cancel(call);
    client.call("read_file", json!({"path": "docs/a.md"})).ok();
    elicited(&mut client, "The second?");
    let out = client.end();
    assert_eq!(out.code, 0);
    assert!(out.all().contains("waiting_input"), "{}", out.all());
    assert_eq!(repo.json(&["report", "t1"]).ok().json["questions"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_client_that_cannot_ask_its_user_is_not_asked_to() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.open(&Contract::new("t1"));
    for capabilities in [json!({}), json!({"elicitation": {"url": {}}})] {
        let mut client = Client::start(&repo, &["t1"]);
        client.initialize_with(capabilities);
        client.call("request_input", json!({"question": "Well?"})).ok();
        assert!(client.heard.iter().all(|said| said["method"] != "elicitation/create"));
        client.end();
    }
}
