//! The words and hands of the command line: paths as people type them, names that may be left out, and what
//! goes back and forth.

use crate::support::repo::{lines_with, path_text};
use crate::support::{Contract, Lab, Repo, Task, Verifier};
use serde_json::{Value, json};

fn scope_of(repo: &Repo<'_>, started: &Value) -> Value {
    let id = started["taskId"].as_str().expect("an id");
    repo.json(&["report", id, "--brief"]).ok().json["writeScope"].clone()
}

#[test]
fn a_scope_is_typed_like_a_path_of_the_current_folder() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let cases = [
        ("", "docs", "docs/"),
        ("", "./docs/", "docs/"),
        ("", ".", "**"),
        ("", "README.md", "README.md"),
        ("docs", ".", "docs/"),
        ("docs", "a.md", "docs/a.md"),
        ("docs", "../src", "src/"),
        ("docs", ":/src", "src/"),
        ("docs", "*.md", "docs/*.md"),
    ];
    for (folder, typed, meant) in cases {
        let started = repo.json_in(folder, &[], None, &["start", "--scope", typed, "a goal"]).ok();
        assert_eq!(scope_of(&repo, &started.json), json!([meant]), "{typed} in {folder:?}");
    }
    repo.json_in("docs", &[], None, &["start", "goal", "--scope", "../../x"]).fails("contract.invalid");
}

#[test]
fn a_scope_that_names_nothing_is_told_at_once() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let started = repo.json(&["start", "goal", "--scope", "dosc/", "--scope", "src/"]).ok();
    let notes = started.json["notes"].to_string();
    assert!(notes.contains("`dosc/` names no file"), "{notes}");
    assert!(!notes.contains("`src/` names"), "{notes}");
}

#[test]
fn the_worktree_of_a_task_is_printed_alone() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let task = repo.open(&Contract::new("t1"));
    assert_eq!(repo.tender(&["path"]).ok().text(), format!("{}\n", path_text(&task.worktree)));
    assert_eq!(repo.json(&["path", "t1"]).ok().json["worktree"], path_text(&task.worktree));
    repo.json(&["cancel", "t1"]).ok();
    repo.json(&["gc"]).ok();
    repo.json(&["path", "t1"]).fails("not_found");
}

#[test]
fn after_a_delivery_it_is_meant_where_nothing_is_named() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let other = repo.open(&Contract::new("open"));
    other.write("src/a.txt", "other\n");
    repo.changing("t1", &[("docs/a.md", Some("new\n"))]);
    repo.json(&["ship", "t1"]).ok();
    for view in ["report", "diff"] {
        assert_eq!(repo.json(&[view]).ok().json["taskId"], "t1", "{view}");
    }
    // Something else is done: the only open task is meant again, but what was delivered can still be undone.
    repo.json(&["submit", "open"]).ok();
    assert_eq!(repo.json(&["report"]).ok().json["taskId"], "open");
    assert_eq!(repo.json(&["undo"]).ok().json["taskId"], "t1");
}

#[test]
fn what_was_undone_is_delivered_again_by_the_same_rules() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.changing("t1", &[("docs/a.md", Some(lines_with(5, "five").as_str())), ("new.txt", Some("new\n"))]);
    repo.json(&["redo", "t1"]).fails("state.invalid");
    repo.json(&["deliver", "t1"]).ok();
    let nothing = repo.json(&["redo", "t1"]).ok();
    assert!(nothing.outcomes().iter().all(|(_, outcome)| outcome == "already"));
    let delivered = repo.snapshot();
    repo.json(&["undo"]).ok();
    // An edit in the way keeps it from coming back, and stays.
    repo.write("new.txt", "mine\n");
    let edited = repo.snapshot();
    assert_eq!(repo.json(&["redo"]).conflicts().len(), 1);
    edited.same(&repo.snapshot());
    repo.rm("new.txt");
    let preview = repo.json(&["redo", "--dry-run"]).ok();
    assert!(preview.outcomes().iter().all(|(_, outcome)| outcome == "would_apply"));
    assert!(!repo.exists("new.txt"));
    let again = repo.json(&["redo"]).ok();
    assert_eq!(again.json["state"], "completed");
    delivered.same(&repo.snapshot());
    assert_eq!(repo.json(&["report", "t1"]).ok().json["state"], "completed");
    // And back once more.
    assert_eq!(repo.json(&["undo"]).ok().json["state"], "undone");
    assert!(!repo.exists("new.txt"));
    repo.json(&["recover"]).ok();
}

#[test]
fn what_would_be_taken_back_is_said_and_left() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.changing("t1", &[("docs/a.md", Some("new\n"))]);
    repo.json(&["deliver", "t1"]).ok();
    let before = repo.snapshot();
    let preview = repo.json(&["undo", "--dry-run"]).ok();
    assert_eq!(preview.outcomes(), [("docs/a.md".to_owned(), "would_apply".to_owned())]);
    assert_eq!(preview.json["state"], "completed");
    before.same(&repo.snapshot());
    repo.write("docs/a.md", "mine\n");
    assert_eq!(repo.json(&["undo", "--dry-run"]).conflicts().len(), 1);
}

#[test]
fn a_person_widens_the_scope_and_nobody_else() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let started = repo.json(&["start", "goal", "--scope", "docs/"]).ok();
    let task = Task::of(&started.json);
    task.write("src/a.txt", "more\n");
    repo.json(&["submit", "t1"]).fails("scope.violation");
    repo.json(&["amend", "t1", "--scope", "src"]).fails("permission.denied");
    repo.json(&["submit", "t1"]).fails("scope.violation");
    repo.approve_without_terminal();
    repo.json(&["amend", "t1", "--scope", "docs/"]).fails("arguments.invalid");
    repo.json(&["amend", "t1", "--scope", "/etc"]).fails("contract.invalid");
    let amended = repo.json_in("src", &[], None, &["amend", "t1", "--scope", "."]).ok();
    assert_eq!(amended.json["contract"]["version"], 2);
    assert_eq!(scope_of(&repo, &started.json), json!(["docs/", "src/"]));
    repo.json(&["ship", "t1"]).ok();
    assert_eq!(repo.text("src/a.txt"), "more\n");
    repo.json(&["amend", "t1", "--scope", "x"]).fails("state.invalid");
}

#[test]
fn editors_get_the_schemas_of_what_people_write() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    for name in ["contract", "config", "verifier"] {
        let text = repo.tender(&["schema", name]).ok().text();
        let schema: Value = serde_json::from_str(&text).expect("JSON");
        let line = repo.tender(&["schema", name, "--format", "json"]).ok().text();
        assert_eq!(serde_json::from_str::<Value>(&line).expect("JSON"), schema);
        assert!(schema["properties"]["$schema"].is_object());
    }
    repo.json(&["schema", "other"]).fails("arguments.invalid");
    // What an editor writes into a document to find the schema is taken.
    let link = json!("https://example.org/contract.json");
    repo.open(&Contract::new("t1").set("$schema", link));
    repo.write(".tender/config.toml", "\"$schema\" = \"config.json\"\n");
    repo.commit("configuration");
    repo.open(&Contract::new("t2"));
}

#[test]
fn several_tasks_are_cancelled_at_once() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    for id in ["t1", "t2", "t3"] {
        repo.open(&Contract::new(id));
    }
    let told = repo.tender(&["cancel", "t1", "t2"]).ok().text();
    assert!(told.contains("task t1 is cancelled") && told.contains("task t2 is cancelled"), "{told}");
    let states = repo.json(&["status"]).ok().json["tasks"].to_string();
    assert!(states.contains("t3"), "{states}");
    repo.tender(&["abort", "t3"]).ok();
}

#[test]
fn a_change_of_nothing_runs_no_verifier() {
    let lab = Lab::new();
    let repo = lab.repo("app").with(&Verifier::new("unit").script("case_ok a\nfinish"));
    repo.open(&Contract::new("t1").allowed(&["unit"]));
    let refused = repo.json(&["ship", "t1"]);
    refused.fails("verification.failed");
    assert!(refused.error()["message"].to_string().contains("changes nothing"), "{:#}", refused.json);
    let log = repo.tender(&["log", "t1"]).ok().text();
    assert!(!log.contains(" verify "), "{log}");
}

#[test]
fn ship_goes_on_with_the_patch_that_was_brought_before() {
    let lab = Lab::new();
    let unit = Verifier::new("unit").script("test -e \"$TENDER_ALLOW\" || case_bad a\ncase_ok b\nfinish");
    let repo = lab.repo("app").with(&unit);
    repo.open(&Contract::new("t1").set(
        "requirements",
        json!([
            { "id": "seen", "text": "a person has looked", "verifier": "seen" }
        ]),
    ));
    let patch = repo.patch_of(|copy| copy.write("src/a.txt", "from the patch\n"));
    let refused = repo.json_in("", &[], Some(&patch), &["ship", "t1", "-"]);
    assert_ne!(refused.code, 0, "a person has to attest first");
    repo.approve_without_terminal();
    repo.json(&["attest", "t1", "seen", "--pass", "-m", "looked"]).ok();
    let shipped = repo.json(&["ship", "t1"]).ok();
    assert_eq!(shipped.json["state"], "completed");
    assert_eq!(repo.text("src/a.txt"), "from the patch\n");
}

#[test]
fn a_shipment_is_tried_without_a_write() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let task = repo.open(&Contract::new("t1"));
    task.write("docs/a.md", "new\n");
    let before = repo.snapshot();
    let tried = repo.json(&["ship", "--dry-run"]).ok();
    assert_eq!(tried.json["delivery"]["paths"][0]["outcome"], "would_apply");
    before.same(&repo.snapshot());
    assert_eq!(repo.json(&["ship"]).ok().json["state"], "completed");
}

#[test]
fn a_diff_is_summed_up_and_a_log_cut() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let task = repo.changing("t1", &[("new.txt", Some("a\nb\n"))]);
    task.chmod("src/a.txt", 0o755);
    let listed = repo.tender(&["submit", "t1"]).ok().text();
    assert!(listed.contains("M src/a.txt (mode 100644 -> 100755)"), "{listed}");
    let stat = repo.tender(&["diff", "--stat"]).ok().text();
    assert!(stat.contains(" new.txt   |   2 ++ (new)"), "{stat}");
    assert!(stat.contains("2 files changed, 2 insertions(+), 0 deletions(-)"), "{stat}");
    let all = repo.tender(&["log"]).ok().text();
    let last = repo.tender(&["log", "-n", "2"]).ok().text();
    assert_eq!(last.lines().count(), 2);
    assert!(all.ends_with(&last));
}
