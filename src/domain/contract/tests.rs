//! The contract, as people may write it.

use super::*;
use crate::domain::contract::budget::Key;
use crate::domain::contract::tool::WorkerTool;
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Code, Failure};
use proptest::prelude::*;
use serde_json::{Value, json};

/// The contract of the documentation.
const EXAMPLE: &str = r#"{
  "taskId": "task-example",
  "goal": "修正文档中的数据库语法说明",
  "writeScope": ["docs/editorial/"],
  "allowedTools": ["read_file", "apply_patch"],
  "network": "disabled",
  "verification": { "allowed": ["editorial_review"], "forbidden": ["build", "product_tests"] },
  "delivery": "local_files",
  "commitAllowed": false
}
"#;

fn parse_value(value: &Value) -> Result<Contract> {
    Contract::parse_document(value.to_string().as_bytes())
}

/// A small contract with more or other fields; `null` takes a field out.
fn contract_value(more: Value) -> Value {
    let mut value = json!({"taskId": "t1", "goal": "g", "writeScope": ["docs/"], "allowedTools": []});
    let (Some(object), Value::Object(more)) = (value.as_object_mut(), more) else { panic!("objects") };
    for (key, field) in more {
        if field.is_null() {
            object.shift_remove(&key);
        } else {
            object.insert(key, field);
        }
    }
    value
}

fn accepted_contract(more: Value) -> Contract {
    parse_value(&contract_value(more)).unwrap_or_else(|failure| panic!("{failure:?}"))
}

fn refused_contract(more: Value) -> Failure {
    let value = contract_value(more);
    parse_value(&value).expect_err(&format!("taken: {value}"))
}

#[test]
fn the_example_is_taken_as_it_stands() {
    let contract = Contract::parse_document(EXAMPLE.as_bytes()).expect("taken");
    assert_eq!(contract.task_id, "task-example");
    assert_eq!(contract.goal, "修正文档中的数据库语法说明");
    assert_eq!((contract.kind, &contract.base), (Kind::Edit, &Base::Revision("HEAD".into())));
    assert!(contract.write_scope.matches_path(&RepoPath::new("docs/editorial/x").expect("a path")));
    assert!(!contract.write_scope.matches_path(&RepoPath::new("docs/editorial-evil/x").expect("a path")));
    assert_eq!(contract.verification.forbidden, ["build", "product_tests"]);
    assert_eq!(contract.requirements.len(), 1);
    let only = &contract.requirements[0];
    assert_eq!(
        (only.id.as_str(), only.text.as_str(), only.required),
        ("editorial_review", "editorial_review", true)
    );
    assert_eq!((contract.sandbox, contract.network), (SandboxWish::Required, Network::Disabled));
    assert_eq!((contract.delivery, contract.commit_allowed), (DeliveryMode::LocalFiles, false));
    assert!(contract.budget.is_empty() && contract.parent.is_none());
    assert_eq!(contract.read_scope, None);
}

#[test]
fn every_field_in_force_is_read() {
    let contract = accepted_contract(json!({
        "schema": SCHEMA, "kind": "repair", "case": ["tests/it/*.rs"], "base": "live", "readScope": ["**"],
        "allowedTools": WorkerTool::all_names(), "scratch": ["target/"], "network": "disabled", "sandbox": "optional",
        "verification": {"allowed": ["unit"], "forbidden": ["slow"]},
        "requirements": [
            {"id": "works", "text": "it works", "verifier": "unit", "paths": ["src/"]},
            {"id": "slow", "text": "slow too", "verifier": "slow", "required": false},
            {"id": "other", "text": "not allowed, not forbidden", "verifier": "other"},
        ],
        "artifacts": [{"path": "docs/a.md", "mustChange": true, "maxBytes": 10, "mustNotContain": ["TODO"]},
                      {"path": "gone.md", "mustExist": false, "maxBytes": 1}],
        "parent": "t0", "budget": {"artifactBytes": 5, "turns": 0}, "delivery": {"mode": "local_files"}, "commitAllowed": true,
    }));
    assert_eq!((contract.kind, contract.base), (Kind::Repair, Base::Live));
    assert_eq!(contract.case.patterns(), ["tests/it/*.rs"]);
    assert_eq!(contract.allowed_tools.len(), 12);
    assert_eq!(contract.sandbox, SandboxWish::Optional);
    assert_eq!(contract.requirements.len(), 3);
    assert_eq!(contract.requirements[0].paths.as_ref().expect("paths").patterns(), ["src/"]);
    assert!(!contract.requirements[1].required && contract.requirements[2].required);
    let artifact = &contract.artifacts[0];
    assert!(artifact.must_exist && artifact.must_change);
    assert_eq!(
        (artifact.max_bytes, artifact.must_not_contain.as_slice()),
        (Some(10), ["TODO".to_owned()].as_slice())
    );
    assert!(!contract.artifacts[1].must_exist);
    assert_eq!(contract.budget, [(Key::ArtifactBytes, 5), (Key::Turns, 0)].into());
    assert_eq!(contract.parent.as_deref(), Some("t0"));
}

#[test]
fn verifiers_named_by_requirements_are_allowed_where_no_list_says_otherwise() {
    let requirements = json!([
        {"id": "a", "text": "a", "verifier": "unit"}, {"id": "b", "text": "b", "verifier": "unit"},
        {"id": "c", "text": "c", "verifier": "lint"}, {"id": "d", "text": "d", "verifier": "no", "required": false},
    ]);
    let contract =
        accepted_contract(json!({"requirements": requirements, "verification": {"forbidden": ["no"]}}));
    assert_eq!(contract.verification.allowed, ["unit", "lint"]);
    let contract = accepted_contract(
        json!({"requirements": requirements, "verification": {"allowed": [], "forbidden": []}}),
    );
    assert!(contract.verification.allowed.is_empty());
    let contract = accepted_contract(json!({}));
    assert!(contract.requirements.is_empty() && contract.verification.allowed.is_empty());
    assert!(
        accepted_contract(json!({"requirements": [], "verification": {"allowed": ["unit"]}}))
            .requirements
            .is_empty()
    );
}

/// What is wrong, the field that is named, and something that is said.
static FAULTS: &[(&str, &str, &str)] = &[
    (r#"{"goals": 1}"#, "goals", "`goal`"),
    (r#"{"task_id": "x"}"#, "task_id", "`taskId`"),
    (r#"{"verification": {"alowed": []}}"#, "verification.alowed", "`verification.allowed`"),
    (
        r#"{"requirements": [{"id": "a", "text": "a", "verifier": "v", "must": 1}]}"#,
        "requirements[0].must",
        "did you mean",
    ),
    (r#"{"artifacts": [{"path": "docs/a", "mustexists": true}]}"#, "artifacts[0].mustexists", "mustExist"),
    (r#"{"budget": {"toolCall": 1}}"#, "budget.toolCall", "`budget.toolCalls`"),
    (r#"{"delivery": {"mode": "local_files", "brnch": "x"}}"#, "delivery.brnch", "`delivery.branch`"),
    (r#"{"env": {"pas": []}}"#, "env.pas", "`env.pass`"),
    (r#"{"network": {"alow": []}}"#, "network.alow", "`network.allow`"),
    (r#"{"commands": {"t": {"argv": ["x"], "timout": 1}}}"#, "commands.t.timout", "timeout"),
    (r#"{"taskId": null}"#, "taskId", "missing"),
    (r#"{"goal": null}"#, "goal", "missing"),
    (r#"{"writeScope": null}"#, "writeScope", "missing"),
    (r#"{"allowedTools": null}"#, "allowedTools", "missing"),
    (r#"{"schema": "git-tender/contract/v2"}"#, "schema", "v1"),
    (r#"{"taskId": 5}"#, "taskId", "the number 5"),
    (r#"{"taskId": ""}"#, "taskId", "empty"),
    (r#"{"taskId": "-x"}"#, "taskId", "[A-Za-z0-9]"),
    (r#"{"taskId": "../x"}"#, "taskId", "[A-Za-z0-9]"),
    (r#"{"taskId": "任务"}"#, "taskId", "[A-Za-z0-9]"),
    (r#"{"goal": ["x"]}"#, "goal", "a list of 1"),
    (r#"{"goal": " "}"#, "goal", "empty"),
    (r#"{"kind": "fix"}"#, "kind", "edit, repair, explore"),
    (r#"{"base": "--all"}"#, "base", "revision"),
    (r#"{"base": "a b"}"#, "base", "revision"),
    (r#"{"writeScope": "docs/"}"#, "writeScope", "a list"),
    (r#"{"writeScope": ["docs/", "../x"]}"#, "writeScope[1]", ".."),
    (r#"{"writeScope": ["/etc/"]}"#, "writeScope[0]", "absolute"),
    (r#"{"writeScope": [".GIT/"]}"#, "writeScope[0]", ".git"),
    (r#"{"writeScope": [7]}"#, "writeScope[0]", "a string"),
    (r#"{"readScope": ["."]}"#, "readScope[0]", "`**`"),
    (r#"{"scratch": ["a\\b"]}"#, "scratch[0]", "backslash"),
    (r#"{"allowedTools": ["read_files"]}"#, "allowedTools[0]", "\"read_file\""),
    (r#"{"allowedTools": ["shell", "shell"]}"#, "allowedTools[1]", "already"),
    (r#"{"sandbox": true}"#, "sandbox", "required, optional"),
    (r#"{"commitAllowed": "yes"}"#, "commitAllowed", "true or false"),
    (r#"{"commitAllowed": 0}"#, "commitAllowed", "true or false"),
    (r#"{"verification": []}"#, "verification", "an object"),
    (r#"{"verification": {"allowed": ["a", "a"]}}"#, "verification.allowed[1]", "already"),
    (r#"{"verification": {"allowed": ["a b"]}}"#, "verification.allowed[0]", "[A-Za-z0-9]"),
    (r#"{"verification": {"allowed": ["a"], "forbidden": ["b", "a"]}}"#, "verification.forbidden", "both"),
    (r#"{"verification": {"forbidden": ["a"], "allowed": ["a"]}}"#, "verification.allowed", "both"),
    (r#"{"verification": {"allowed": ["protected"]}}"#, "verification.allowed", "protected"),
    (r#"{"requirements": {}}"#, "requirements", "a list"),
    (r#"{"requirements": ["unit"]}"#, "requirements[0]", "an object"),
    (r#"{"requirements": [{"id": "a", "text": "a"}]}"#, "requirements[0].verifier", "missing"),
    (
        r#"{"requirements": [{"id": "a", "text": "a", "verifier": "v", "required": 1}]}"#,
        "requirements[0].required",
        "true or false",
    ),
    (
        r#"{"requirements": [{"id": "a", "text": "a", "verifier": "v"}, {"id": "a", "text": "b", "verifier": "v"}]}"#,
        "requirements[1].id",
        "already",
    ),
    (
        r#"{"requirements": [{"id": "protected", "text": "a", "verifier": "v"}]}"#,
        "requirements[0].id",
        "protected",
    ),
    (
        r#"{"requirements": [{"id": "artifacts", "text": "a", "verifier": "v"}]}"#,
        "requirements[0].id",
        "artifacts",
    ),
    (
        r#"{"verification": {"forbidden": ["v"]}, "requirements": [{"id": "a", "text": "a", "verifier": "v"}]}"#,
        "requirements[0].verifier",
        "forbids",
    ),
    (r#"{"artifacts": [{"mustExist": true}]}"#, "artifacts[0].path", "missing"),
    (r#"{"artifacts": [{"path": "../x"}]}"#, "artifacts[0].path", ".."),
    (r#"{"artifacts": [{"path": ".git/config"}]}"#, "artifacts[0].path", ".git"),
    (r#"{"artifacts": [{"path": "docs/"}]}"#, "artifacts[0].path", "empty component"),
    (r#"{"artifacts": [{"path": "a"}, {"path": "a"}]}"#, "artifacts[1].path", "already"),
    (r#"{"artifacts": [{"path": "a", "maxBytes": -1}]}"#, "artifacts[0].maxBytes", "from 0"),
    (r#"{"artifacts": [{"path": "a", "maxBytes": 1.5}]}"#, "artifacts[0].maxBytes", "from 0"),
    (r#"{"artifacts": [{"path": "a", "mustNotContain": "x"}]}"#, "artifacts[0].mustNotContain", "a list"),
    (r#"{"artifacts": [{"path": "a", "mustNotContain": [""]}]}"#, "artifacts[0].mustNotContain[0]", "empty"),
    (r#"{"artifacts": [{"path": "a", "mustExist": false}]}"#, "artifacts[0]", "claims nothing"),
    (r#"{"artifacts": [{"path": "src/a", "mustChange": true}]}"#, "artifacts[0].mustChange", "writeScope"),
    (
        r#"{"artifacts": [{"path": "a"}], "verification": {"forbidden": ["artifacts"]}}"#,
        "verification.forbidden",
        "artifacts",
    ),
    (r#"{"budget": {"artifactBytes": "5"}}"#, "budget.artifactBytes", "from 0"),
    (r#"{"budget": 5}"#, "budget", "an object"),
    (r#"{"kind": "repair"}"#, "case", "missing"),
    (r#"{"kind": "repair", "case": []}"#, "case", "empty"),
    (r#"{"case": ["tests/"]}"#, "case", "repair"),
    (r#"{"delivery": "mail"}"#, "delivery", "local_files"),
    (r#"{"delivery": {"branch": "x"}}"#, "delivery.mode", "missing"),
    (r#"{"delivery": {"mode": "local_files", "branch": "x"}}"#, "delivery.branch", "does not go with"),
    (r#"{"delivery": "branch"}"#, "commitAllowed", "must be true"),
    (r#"{"delivery": "push", "commitAllowed": true, "base": "live"}"#, "base", "uncommitted work"),
    (r#"{"parent": "a b"}"#, "parent", "[A-Za-z0-9]"),
    (r#"{"parent": "t1"}"#, "parent", "the task itself"),
    (r#"{"network": "off"}"#, "network", "disabled"),
    (r#"{"network": {"allow": ["host"]}}"#, "network.allow[0]", "host:port"),
    (r#"{"network": {"allow": ["host:0"]}}"#, "network.allow[0]", "host:port"),
    (r#"{"commands": {"t": {}}}"#, "commands.t.argv", "missing"),
    (r#"{"commands": {"t": {"argv": []}}}"#, "commands.t.argv", "empty"),
    (r#"{"commands": {"t": {"argv": ["x"], "timeout": "soon"}}}"#, "commands.t.timeout", "duration"),
    (r#"{"commands": {"t": {"argv": ["x"], "writes": ["/tmp/"]}}}"#, "commands.t.writes[0]", "absolute"),
    (r#"{"env": {"pass": "PATH"}}"#, "env.pass", "a list"),
];

#[test]
fn each_fault_names_its_field() {
    for (more, subject, says) in FAULTS {
        let failure = refused_contract(serde_json::from_str(more).expect("JSON"));
        let found = (failure.code(), failure.subject_text());
        assert_eq!(found, (Code::ContractInvalid, Some(*subject)), "{more}: {failure}");
        assert!(failure.message().contains(says), "{more}: {failure}");
        assert!(failure.details().contains_key("expected"), "{more}");
    }
    assert_eq!(refused_contract(json!({"taskId": "x".repeat(65)})).subject_text(), Some("taskId"));
    assert_eq!(accepted_contract(json!({"taskId": "x".repeat(64)})).task_id.len(), 64);
}

#[test]
fn null_is_no_value_of_any_field() {
    for field in [
        "taskId",
        "kind",
        "goal",
        "parent",
        "requirements",
        "budget",
        "delivery",
        "sandbox",
        "case",
        "network",
    ] {
        let mut value = contract_value(json!({}));
        value[field] = Value::Null;
        let failure = parse_value(&value).expect_err(field);
        assert_eq!(
            (failure.code(), failure.subject_text()),
            (Code::ContractInvalid, Some(field)),
            "{failure}"
        );
    }
}

#[test]
fn what_comes_later_is_refused_by_name() {
    for (more, subject) in [
        (json!({"commands": {"t": {"argv": ["x"], "timeout": "10m", "writes": ["out/"]}}}), "commands"),
        (json!({"network": "enabled"}), "network"),
        (json!({"network": {"allow": ["localhost:80"]}}), "network"),
        (json!({"env": {"pass": ["HOME"]}}), "env"),
        (json!({"delivery": "bundle"}), "delivery"),
        (json!({"delivery": {"mode": "bundle", "path": "x"}}), "delivery"),
    ] {
        let failure = refused_contract(more.clone());
        assert_eq!(
            (failure.code(), failure.subject_text()),
            (Code::NotSupported, Some(subject)),
            "{more}: {failure}"
        );
    }
}

#[test]
fn what_goes_with_a_branch_or_a_push_is_kept() {
    let parse = |delivery: serde_json::Value| {
        let document = json!({"taskId": "t1", "goal": "g", "writeScope": [], "allowedTools": [], "commitAllowed": true,
            "delivery": delivery});
        Contract::parse_document(document.to_string().as_bytes())
    };
    let word = parse(json!("branch")).expect("taken");
    assert_eq!((word.delivery, word.terms.is_empty()), (DeliveryMode::Branch, true));
    let text = serde_json::to_string(&word).expect("serializes");
    assert!(!text.contains("terms"), "a ledger of before reads the same");
    let options = ["topic=ä b", "ci.skip"];
    let all = parse(
        json!({"mode": "push", "branch": "a/b", "remote": "up", "pushOptions": options, "message": "m\n\nn"}),
    );
    let all = all.expect("taken");
    assert_eq!(all.delivery, DeliveryMode::Push);
    assert_eq!((all.terms.branch.as_deref(), all.terms.remote.as_deref()), (Some("a/b"), Some("up")));
    assert_eq!(
        (all.terms.push_options.as_slice(), all.terms.message.as_deref()),
        (&options.map(str::to_owned)[..], Some("m\n\nn"))
    );
    let back: Contract =
        serde_json::from_value(serde_json::to_value(&all).expect("serializes")).expect("reads");
    assert_eq!(back, all);
    for (key, value) in [
        ("branch", json!("-x")),
        ("branch", json!("a..b")),
        ("remote", json!("--upload-pack=x")),
        ("message", json!("a\u{0}b")),
        ("message", json!("a\n\nTender-Task: t9")),
        ("pushOptions", json!(["a\nb"])),
        ("pushOptions", json!(["a\u{0}"])),
    ] {
        let failure = parse(json!({"mode": "push", key: value})).expect_err("refused");
        assert_eq!(failure.code(), Code::ContractInvalid, "{failure}");
        assert!(
            failure.subject_text().is_some_and(|subject| subject.starts_with(&format!("delivery.{key}")))
        );
    }
}

#[test]
fn all_problems_come_at_once_in_the_order_of_the_document() {
    let text = r#"{"env": {"pass": []}, "goal": 1, "bogus": 2, "taskId": "?", "verification": {"x": 1}, "writeScope": ["/"]}"#;
    let failure = Contract::parse_document(text.as_bytes()).expect_err("refused");
    let subjects: Vec<_> = std::iter::once(&failure)
        .chain(failure.others())
        .map(|f| f.subject_text().unwrap_or_default())
        .collect();
    assert_eq!(
        subjects,
        ["goal", "bogus", "taskId", "verification.x", "writeScope[0]", "allowedTools", "env"]
    );
    assert_eq!(failure.others().last().map(Failure::code), Some(Code::NotSupported));
    assert_eq!(failure.exit_code(), 2);
}

#[test]
fn documents_that_are_no_contract_are_refused_with_their_place() {
    for (bytes, says) in [
        (&b""[..], "empty"),
        (b" \n", "empty"),
        (b"[]", "an object"),
        (b"7", "an object"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        (b"\xff\xfe{\0}\0", "byte order mark"),
        (b"{\"goal\": \"\xff\"}", "not UTF-8"),
        (b"{\"goal\": 1,}", "line 1 column 12"),
        (b"{} {}", "trailing"),
        (b"{}\n\nx", "line 3 column 1"),
        (b"{\"a\": 1e999}", "line 1"),
    ] {
        let failure = Contract::parse_document(bytes).expect_err("refused");
        assert_eq!(failure.code(), Code::ContractInvalid);
        assert!(failure.message().contains(says), "{failure}");
    }
    let deep = "[".repeat(1_000_000);
    let failure = Contract::parse_document(deep.as_bytes()).expect_err("refused");
    assert!(failure.message().contains("recursion"), "{failure}");
}

#[test]
fn every_truncation_is_refused_and_names_the_place() {
    let text = EXAMPLE.trim_end().as_bytes();
    for end in 1..text.len() {
        let failure = Contract::parse_document(&text[..end]).expect_err("cut short");
        assert_eq!(failure.code(), Code::ContractInvalid);
        assert!(failure.message().contains("line"), "{end}: {failure}");
    }
}

#[test]
fn a_field_that_comes_twice_is_refused() {
    let text = EXAMPLE.replacen("\"network\"", "\"goal\": \"other\",\n  \"network\"", 1);
    let failure = Contract::parse_document(text.as_bytes()).expect_err("refused");
    assert_eq!(failure.subject_text(), Some("goal"));
    assert!(failure.message().contains("twice"), "{failure}");
    let text = EXAMPLE.replacen("\"forbidden\"", "\"allowed\": [], \"forbidden\"", 1);
    let failure = Contract::parse_document(text.as_bytes()).expect_err("refused");
    assert_eq!(failure.subject_text(), Some("verification.allowed"));
    let text = EXAMPLE.replacen("\"network\"", "\"go\\u0061l\": \"other\",\n  \"network\"", 1);
    assert_eq!(Contract::parse_document(text.as_bytes()).expect_err("refused").subject_text(), Some("goal"));
}

#[test]
fn a_contract_of_fifty_megabytes_is_refused_at_once() {
    let text = contract_value(json!({"goal": "x".repeat(50 << 20)})).to_string();
    let failure = Contract::parse_document(text.as_bytes()).expect_err("refused");
    assert!(failure.message().contains("1048576"), "{failure}");
    assert!(failure.message().len() < 200);
}

#[test]
fn a_long_value_does_not_flood_the_message() {
    let failure = refused_contract(json!({"taskId": "修".repeat(100_000)}));
    assert!(failure.message().len() < 1_000, "{}", failure.message().len());
}

#[test]
fn the_seal_is_of_the_bytes_as_given() {
    let spaced = EXAMPLE.replace(": ", " : ");
    assert_ne!(Contract::seal_document(EXAMPLE.as_bytes()), Contract::seal_document(spaced.as_bytes()));
    assert_eq!(Contract::parse_document(EXAMPLE.as_bytes()), Contract::parse_document(spaced.as_bytes()));
}

#[test]
fn a_contract_survives_the_ledger() {
    let contract = accepted_contract(json!({
        "kind": "repair", "case": ["tests/"], "base": "main~2", "readScope": ["src/"],
        "verification": {"allowed": ["unit"]}, "artifacts": [{"path": "docs/a.md", "mustChange": true}],
    }));
    let text = serde_json::to_string(&contract).expect("serializes");
    assert_eq!(serde_json::from_str::<Contract>(&text).expect("reads"), contract);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(vec!["HEAD", "edit", "repair", "docs/", "..", "unit", "local_files", "", "a b"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        let keys = prop::sample::select(vec![
            "allowed",
            "forbidden",
            "id",
            "text",
            "verifier",
            "path",
            "mode",
            "argv",
            "x",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((keys, inner), 0..4).prop_map(|entries| entries
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]
    #[test]
    fn no_document_breaks_the_reader(
        field in prop::sample::select(vec!["kind", "case", "base", "writeScope", "verification", "requirements", "artifacts",
            "budget", "delivery", "network", "commands", "env", "schema", "commitAllowed"]),
        value in any_json(),
    ) {
        let mut whole = contract_value(json!({}));
        whole[field] = value;
        match parse_value(&whole) {
            Ok(contract) => {
                let text = serde_json::to_string(&contract).expect("serializes");
                prop_assert_eq!(serde_json::from_str::<Contract>(&text).expect("reads"), contract);
            }
            Err(failure) => prop_assert!(matches!(failure.code(), Code::ContractInvalid | Code::NotSupported)),
        }
    }

    #[test]
    fn no_bytes_break_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(Contract::parse_document(&bytes).is_err());
    }
}
