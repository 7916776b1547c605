//! `ship`: open, submit, verify, deliver in one, until one fails.

use super::report::report_shape;
use crate::support::repo::{LINES, lines_with, path_text};
use crate::support::{Contract, Lab, Repo, Verifier, shape};

fn with_unit(lab: &Lab) -> Repo<'_> {
    lab.repo("app")
        .with(&Verifier::new("unit").script("grep -q BAD src/a.txt && case_bad a\ncase_ok b\nfinish"))
}

fn patch(repo: &Repo<'_>, text: &str) -> std::path::PathBuf {
    let bytes = repo.patch_of(|copy| copy.write("src/a.txt", text));
    let path = repo.lab.path("ship.patch");
    std::fs::write(&path, bytes).expect("writes");
    path
}

#[test]
fn a_contract_and_a_patch_go_all_the_way_and_the_report_comes() {
    let lab = Lab::new();
    let repo = with_unit(&lab);
    let contract = Contract::new("t1").allowed(&["unit"]).file(&lab);
    let patch = patch(&repo, "good\n");
    let args = ["ship", path_text(&contract), "--patch", path_text(&patch)];
    let answer = repo.json(&args).ok();
    shape::check(&answer.json, &report_shape());
    assert_eq!(answer.json["state"], "completed");
    assert_eq!(answer.verdict("unit"), "passed");
    assert_eq!(repo.text("src/a.txt"), "good\n");
    // Once more: nothing to do, no harm.
    let before = repo.snapshot();
    assert_eq!(repo.json(&args).ok().json["state"], "completed");
    // Another patch is not silently dropped.
    std::fs::write(&patch, repo.patch_of(|copy| copy.write("src/a.txt", "other\n"))).expect("writes");
    repo.json(&args).fails("state.invalid");
    repo.json(&["ship", "t1", "--patch", path_text(&patch)]).fails("state.invalid");
    before.same(&repo.snapshot());
}

#[test]
fn a_task_ships_its_worktree_and_may_be_left_out() {
    let lab = Lab::new();
    let repo = with_unit(&lab);
    let task = repo.open(&Contract::new("t1").allowed(&["unit"]));
    task.write("src/a.txt", "good\n");
    let answer = repo.json(&["ship"]).ok();
    assert_eq!(answer.json["state"], "completed");
    assert_eq!(repo.text("src/a.txt"), "good\n");
}

#[test]
fn it_stops_where_a_step_fails_with_that_steps_exit() {
    let lab = Lab::new();
    let repo = with_unit(&lab);
    let task = repo.open(&Contract::new("t1").allowed(&["unit"]).scope(&["src/"]));
    task.write("src/a.txt", "BAD\n");
    let before = repo.snapshot();
    let answer = repo.json(&["ship", "t1"]).result(1);
    assert_eq!(answer.json["schema"], "git-tender/report/v1", "verify has a result, so the report comes");
    assert_eq!(answer.verdict("unit"), "failed");
    task.write("docs/a.md", "outside\n");
    repo.json(&["ship", "t1"]).fails("scope.violation");
    before.same(&repo.snapshot());
    task.write("docs/a.md", LINES);
    task.write("src/a.txt", "good\n");
    repo.write("src/a.txt", "mine\n");
    let answer = repo.json(&["ship", "t1"]);
    assert_eq!(answer.conflicts()[0].0, "src/a.txt");
    assert_eq!(repo.text("src/a.txt"), "mine\n");
}

#[test]
fn a_person_is_waited_for() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let task = repo.open(&Contract::new("t1").allowed(&["review"]));
    task.write("docs/a.md", lines_with(5, "five"));
    let answer = repo.json(&["ship", "t1"]).result(6);
    assert_eq!(answer.verdict("review"), "needs_confirmation");
    repo.approve_without_terminal();
    repo.json(&["attest", "t1", "review", "--pass", "-m", "read"]).ok();
    assert_eq!(repo.json(&["ship", "t1"]).ok().json["state"], "completed");
}

#[test]
fn a_name_that_is_neither_file_nor_task_is_not_found() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.json(&["ship", "nothing"]).fails("not_found");
    repo.json(&["ship"]).fails_one_of(&["not_found", "arguments.invalid"]);
    assert!(!repo.store().exists());
    let bad = crate::support::contract::raw(&lab, b"{");
    repo.json(&["ship", path_text(&bad)]).fails("contract.invalid");
}
