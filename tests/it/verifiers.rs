//! `verifier list|show|test|new`, and the shipped verifiers on their own projects, run by the real tools.

use crate::support::{Lab, Repo};
use serde_json::{Value, json};
use std::path::Path;

/// Copies a folder of this project into a repository.
fn copy_into(repo: &Repo<'_>, from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let name = to.join(entry.file_name());
        assert!(name.is_relative(), "{}", name.display());
        if entry.path().is_dir() {
            copy_into(repo, &entry.path(), &name);
        } else {
            repo.write(&name, std::fs::read(entry.path()).expect("reads"));
        }
    }
}

/// `init` finds a shipped verifier by its passing project, and as it is written it passes that and fails the
/// other one.
fn works_unedited(id: &str, tool: (&str, &str)) {
    let lab = Lab::new();
    if !lab.has_tool(tool.0, tool.1) {
        return;
    }
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("verifiers").join(id);
    let repo = lab.empty_repo("app");
    copy_into(&repo, &home.join("fixtures/passing"), Path::new(""));
    repo.commit("a project");
    let found = repo.json(&["init"]).ok();
    assert!(found.json["verifiers"].as_array().expect("ids").contains(&json!(id)), "{:#}", found.json);
    copy_into(&repo, &home.join("fixtures"), Path::new(&format!(".tender/verifiers/{id}/fixtures")));
    let mut command = lab.tender_command(&repo.path);
    command.args(["verifier", "test", id, "--format", "json"]);
    if let Some(rustup) = lab.rustup_home() {
        // Where its manifest lets it be read.
        std::os::unix::fs::symlink(rustup, lab.path("home/.rustup")).expect("a link");
    }
    let out = crate::support::lab::run(command, None);
    let tested: Value = serde_json::from_str(&out.text()).expect("an object");
    let said: Vec<(&str, &str)> = tested["fixtures"]
        .as_array()
        .expect("runs")
        .iter()
        .map(|run| (run["fixture"].as_str().expect("text"), run["verdict"].as_str().expect("a verdict")))
        .collect();
    assert_eq!(said, [("passing", "passed"), ("failing", "failed")], "{tested:#}");
    assert_eq!((out.code, &tested["passed"]), (0, &json!(true)));
}

#[test]
fn go_test_works_unedited() {
    works_unedited("go-test", ("go", "version"));
}

#[test]
fn nextest_works_unedited() {
    works_unedited("nextest", ("cargo-nextest", "--version"));
}

#[test]
fn node_test_works_unedited() {
    works_unedited("node-test", ("node", "--test"));
}

#[test]
fn pytest_works_unedited() {
    works_unedited("pytest", ("python3", "-cimport pytest"));
}

#[test]
fn ruff_works_unedited() {
    works_unedited("ruff", ("ruff", "--version"));
}

#[test]
fn a_verifier_is_written_tried_listed_and_shown() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let script = "grep -q good input || { echo 'not good' >&2; exit 1; }";
    let written = repo.json(&["verifier", "new", "look", "--", "sh", "-c", script]).ok();
    assert_eq!(written.json["written"], json!([".tender/verifiers/look/verifier.toml"]));
    repo.json(&["verifier", "new", "look", "--", "true"]).fails("state.invalid");
    repo.json(&["verifier", "new", "unheard-of"]).fails("arguments.invalid");
    repo.json(&["verifier", "test", "look"]).fails("not_found");
    repo.write(".tender/verifiers/look/fixtures/passing/input", "good\n");
    repo.write(".tender/verifiers/look/fixtures/failing/input", "bad\n");
    let before = repo.snapshot();
    let tested = repo.json(&["verifier", "test", "look"]).ok();
    assert_eq!(tested.json["passed"], true, "{:#}", tested.json);
    before.same(&repo.snapshot());
    // One that cannot tell them apart is told by its exit code, too.
    repo.write(".tender/verifiers/look/fixtures/failing/input", "good\n");
    let wrong = repo.tender(&["verifier", "test", "look"]);
    assert!(wrong.code != 0 && wrong.text().contains("WRONG  fixtures/failing passed"), "{}", wrong.all());
    let listed = repo.json(&["verifier", "list"]).ok();
    assert_eq!(listed.json["verifiers"][0]["id"], "look");
    assert!(listed.json["verifiers"][0]["problem"].as_str().is_some_and(|why| why.contains("commit it")));
    repo.commit("a verifier");
    let shown = repo.tender(&["verifier", "show", "look"]).ok().text();
    assert!(shown.contains("ok       verifier look") && shown.contains("command = [\"sh\""), "{shown}");
    let unknown = repo.json(&["verifier", "show", "lok"]);
    assert_eq!(unknown.fails("not_found")["details"]["nearest"], "look");
    // A shipped one by its name.
    let ruff = repo.json(&["verifier", "new", "ruff"]).ok();
    assert_eq!(ruff.json["written"].as_array().map(Vec::len), Some(2));
}
