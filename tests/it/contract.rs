//! Contracts that are refused: each with code, field, value and what would be right; nothing is made.

use crate::support::contract::raw;
use crate::support::repo::path_text;
use crate::support::{Contract, Lab, Repo};
use serde_json::{Value, json};

/// The contract is refused with this code, the text names all of `words`, and no task came to be.
#[track_caller]
fn refused(repo: &Repo<'_>, file: &std::path::Path, code: &str, words: &[&str]) -> Value {
    let answer = repo.json(&["open", path_text(file)]);
    let error = answer.fails(code).clone();
    let text = error.to_string();
    for word in words {
        assert!(text.contains(word), "{word:?} is not named in {error:#}");
    }
    let status = repo.json(&["status"]).ok();
    assert_eq!(status.json["tasks"], json!([]), "no task came to be");
    assert!(!repo.lab.path("app.tender/t1").exists());
    error
}

fn plain() -> Contract {
    Contract::new("t1").scope(&["docs/"]).allowed(&["unit"])
}

#[test]
fn an_unknown_field_is_named_with_the_nearest_known_one() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    for (field, near) in [
        ("gaol", "goal"),
        ("writescope", "writeScope"),
        ("write_scope", "writeScope"),
        ("allowedTool", "allowedTools"),
        ("task_id", "taskId"),
        ("requirement", "requirements"),
    ] {
        let file = plain().set(field, json!("x")).file(&lab);
        refused(&repo, &file, "contract.invalid", &[field, near]);
    }
    let nested = [
        plain().set("verification", json!({"allowed": [], "forbidden": [], "allow": []})),
        plain().set("requirements", json!([{"id": "a", "text": "t", "verifier": "unit", "requierd": true}])),
        plain().set("artifacts", json!([{"path": "docs/a.md", "mustExists": true}])),
        plain().set("delivery", json!({"mode": "local_files", "mod": "x"})),
    ];
    for (contract, (field, near)) in nested.iter().zip([
        ("allow", "allowed"),
        ("requierd", "required"),
        ("mustExists", "mustExist"),
        ("mod", "mode"),
    ]) {
        refused(&repo, &contract.file(&lab), "contract.invalid", &[field, near]);
    }
}

#[test]
fn what_is_missing_or_of_the_wrong_type_is_named() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    for field in ["taskId", "goal", "writeScope", "allowedTools"] {
        let file = plain().without(field).file(&lab);
        refused(&repo, &file, "contract.invalid", &[field]);
        for wrong in [json!(7), json!({"a": 1}), json!(null), json!([1])] {
            let file = plain().set(field, wrong).file(&lab);
            refused(&repo, &file, "contract.invalid", &[field]);
        }
    }
    for (field, wrong) in [
        ("schema", json!("git-tender/contract/v2")),
        ("kind", json!("delete")),
        ("base", json!(5)),
        ("network", json!("sometimes")),
        ("sandbox", json!("maybe")),
        ("delivery", json!("by_post")),
        ("commitAllowed", json!("no")),
        ("verification", json!(["unit"])),
        ("requirements", json!({"id": "x"})),
        ("readScope", json!("docs/")),
        ("scratch", json!([1])),
    ] {
        let file = plain().set(field, wrong).file(&lab);
        refused(&repo, &file, "contract.invalid", &[field]);
    }
}

#[test]
fn task_ids_that_do_not_fit_are_refused() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let long = "a".repeat(65);
    for id in ["", ".", "..", ".hidden", "-x", "a/b", "a b", "../t", "a\nb", "ä", long.as_str()] {
        let file = Contract::new(id).file(&lab);
        refused(&repo, &file, "contract.invalid", &["taskId"]);
    }
    let longest = "a".repeat(64);
    for id in ["0", "A.b_c-d", longest.as_str()] {
        repo.open(&Contract::new(id));
    }
}

#[test]
fn scopes_that_leave_the_repository_are_refused() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    for path in
        ["../other/", "/etc/", "docs/../../x/", "docs/../src/", ".git/", ".GIT/hooks/", "docs/.git/", ""]
    {
        for field in ["writeScope", "readScope", "scratch"] {
            let file = plain().set(field, json!([path])).file(&lab);
            refused(&repo, &file, "contract.invalid", &[field]);
        }
        let file = plain().set("artifacts", json!([{"path": path, "mustExist": true}])).file(&lab);
        refused(&repo, &file, "contract.invalid", &["artifacts"]);
    }
    repo.open(&Contract::new("empty").scope(&[]));
}

#[test]
fn contradictions_and_duplicates_are_refused() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let requirement = |id: &str, verifier: &str, required: bool| json!({"id": id, "text": "it holds", "verifier": verifier, "required": required});
    let both = plain().set("verification", json!({"allowed": ["unit"], "forbidden": ["unit"]}));
    refused(&repo, &both.file(&lab), "contract.invalid", &["unit"]);
    let forbidden = plain().forbidden(&["build"]);
    let contradiction = forbidden.clone().set("requirements", json!([requirement("builds", "build", true)]));
    refused(&repo, &contradiction.file(&lab), "contract.invalid", &["builds", "build"]);
    let twice =
        plain().set("requirements", json!([requirement("a", "unit", true), requirement("a", "unit", false)]));
    refused(&repo, &twice.file(&lab), "contract.invalid", &["a"]);
    let ids = plain().set("verification", json!({"allowed": ["unit", "unit"], "forbidden": []}));
    refused(&repo, &ids.file(&lab), "contract.invalid", &["unit"]);
    let repair = plain().set("kind", json!("repair"));
    refused(&repo, &repair.file(&lab), "contract.invalid", &["case"]);
    // Not required and forbidden is no contradiction: it is reported as not run.
    let optional = forbidden.set("requirements", json!([requirement("builds", "build", false)]));
    repo.open(&optional);
}

#[test]
fn damaged_and_huge_documents_are_refused_in_one_sentence() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let whole = serde_json::to_vec(&plain().0).expect("serializes");
    for cut in [0, 1, whole.len() / 2, whole.len() - 1] {
        refused(&repo, &raw(&lab, &whole[..cut]), "contract.invalid", &[]);
    }
    let trailing = [whole.as_slice(), b" {}"].concat();
    refused(&repo, &raw(&lab, &trailing), "contract.invalid", &[]);
    refused(&repo, &raw(&lab, b"[]"), "contract.invalid", &[]);
    refused(&repo, &raw(&lab, b"{\"taskId\": \"\xff\xfe\"}"), "contract.invalid", &[]);
    let twice = br#"{"taskId":"t1","taskId":"t2","goal":"g","writeScope":[],"allowedTools":[]}"#;
    refused(&repo, &raw(&lab, twice), "contract.invalid", &["taskId"]);
    let mut nested = vec![b'['; 200_000];
    nested.extend(std::iter::repeat_n(b']', 200_000));
    refused(&repo, &raw(&lab, &nested), "contract.invalid", &[]);
    let huge = plain().set("goal", json!("x".repeat(50 * 1024 * 1024)));
    let file = huge.file(&lab);
    let started = std::time::Instant::now();
    let error = refused(&repo, &file, "contract.invalid", &[]);
    assert!(started.elapsed().as_secs() < 60);
    assert!(error.to_string().len() < 10_000, "the document is not quoted back");
}

#[test]
fn what_a_later_version_brings_is_refused_by_name_never_ignored() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    for (field, value) in [
        ("commands", json!({"build": {"argv": ["make"], "timeout": "1m"}})),
        ("network", json!("enabled")),
        ("network", json!({"allow": ["example.org:443"]})),
        ("env", json!({"pass": ["TERM"]})),
        ("delivery", json!("bundle")),
    ] {
        let contract = plain().set(field, value.clone());
        refused(&repo, &contract.file(&lab), "not_supported", &[field]);
    }
    // Nothing in this version can break these, so they are taken and recorded.
    let all = plain()
        .set("schema", json!("git-tender/contract/v1"))
        .set("readScope", json!(["docs/", "src/*.txt"]))
        .set("network", json!("disabled"))
        .set("sandbox", json!("optional"))
        .set("allowedTools", json!(["read_file", "shell"]))
        .set("budget", json!({"artifactBytes": 1000}))
        .set("delivery", json!({"mode": "local_files"}));
    repo.open(&all);
}

#[test]
fn a_contract_that_is_not_there_is_said_to_be_missing() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let answer = repo.json(&["open", "no/such/contract.json"]);
    let error = answer.fails_one_of(&["not_found", "arguments.invalid", "io"]);
    assert!(error.to_string().contains("no/such/contract.json"), "{error:#}");
    assert!(!repo.store().exists(), "nothing was made");
}
