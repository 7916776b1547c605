//! A delivery that was cut off, and whose tree is gone: only a person can say what became of it.

use crate::support::deadly::deadly_git;
use crate::support::repo::{LINES, lines_with, path_text};
use crate::support::{Contract, Lab, Repo};
use serde_json::json;
use std::path::PathBuf;

/// A delivery in mode `staged` from a linked worktree, killed in the middle.
fn cut_off(lab: &Lab) -> (Repo<'_>, PathBuf) {
    let main = lab.repo("app");
    let linked = lab.path("linked");
    main.git(&["worktree", "add", "-q", "-b", "side", path_text(&linked)]);
    let side = Repo::at(lab, linked.clone());
    side.submitted(&Contract::new("t1").set("delivery", json!("staged")), |task| {
        task.write("docs/a.md", lines_with(5, "five"));
    });
    // After all files are in place, before the index is.
    let path = deadly_git(lab, "$GIT_INDEX_FILE", "*tender-index-*");
    let out = main.tender_in("", &[("PATH", &path)], None, &["deliver", "t1"]);
    assert_ne!(out.code, 0);
    assert_eq!(side.text("docs/a.md"), lines_with(5, "five"), "it was killed after the files were written");
    assert!(side.git(&["show", ":docs/a.md"]) == LINES.trim_end(), "and before the index was");
    (main, linked)
}

#[test]
fn the_next_command_completes_files_and_index() {
    let lab = Lab::new();
    let (main, linked) = cut_off(&lab);
    let side = Repo::at(&lab, linked);
    assert_eq!(main.json(&["status"]).ok().json["tasks"][0]["state"], "delivering");
    assert_eq!(main.json(&["report", "t1"]).ok().json["unfinished"][0]["tool"], "deliver");
    for view in ["report", "diff", "log"] {
        let told = main.tender(&[view, "t1"]).ok().errors();
        assert!(told.contains("unfinished: deliver of t1"), "{view}: {told}");
    }
    let locked = side.git_out(&["add", "src/a.txt"]);
    assert!(locked.errors().contains("index.lock"), "{}", locked.all());
    let recovered = main.json(&["recover"]).ok();
    assert_eq!(recovered.json["actions"][0]["outcome"], "completed");
    assert_eq!(side.git(&["diff", "--cached", "--name-only"]), "docs/a.md");
    assert_eq!(side.git(&["diff", "--name-only"]), "");
    assert_eq!(main.json(&["report", "t1"]).ok().json["state"], "completed");
    assert!(main.json(&["deliver", "t1"]).ok().outcomes().iter().all(|(_, outcome)| outcome == "already"));
}

#[test]
fn where_the_tree_is_gone_a_person_says_what_became_of_it() {
    let lab = Lab::new();
    let (main, linked) = cut_off(&lab);
    let away = lab.path("away");
    std::fs::rename(&linked, &away).expect("moves");
    for command in ["deliver", "submit"] {
        let refused = main.json(&[command, "t1"]);
        let error = refused.fails("decision.required");
        assert_eq!(error["remedy"]["command"][2], "answer");
        let answers: Vec<&str> = error["details"]["choices"]
            .as_array()
            .expect("choices")
            .iter()
            .map(|choice| choice["answer"].as_str().expect("text"))
            .collect();
        assert_eq!(answers, ["yes", "no"]);
    }
    // Another task is not held up by it.
    main.changing("t2", &[("docs/b.md", Some("x\n"))]);
    main.json(&["deliver", "t2"]).ok();
    let recovered = main.json(&["recover"]).result(6);
    assert_eq!(recovered.json["actions"][0]["outcome"], "needs_human_decision");
    assert_eq!(main.json(&["report", "t1"]).ok().json["state"], "outcome_unknown");
    main.json(&["answer", "t1", "perhaps"]).fails("arguments.invalid");
    main.json(&["answer", "t1", "a0", "yes"]).fails("arguments.invalid");
    main.json(&["answer", "t2", "yes"]).fails("state.invalid");
    main.json(&["answer", "t1", "yes"]).fails("permission.denied");
    main.approve_without_terminal();
    let answered = main.json(&["answer", "t1", "no"]).ok();
    assert_eq!(answered.json["outcome"], "safe_to_retry");
    main.json(&["deliver", "t1"]).fails("not_found");
    std::fs::rename(&away, &linked).expect("moves back");
    main.json(&["deliver", "t1"]).ok();
}

#[test]
fn a_persons_yes_is_in_the_report_and_a_tree_that_comes_back_is_looked_at() {
    let lab = Lab::new();
    let (main, linked) = cut_off(&lab);
    main.approve_without_terminal();
    let away = lab.path("away");
    std::fs::rename(&linked, &away).expect("moves");
    main.json(&["deliver", "t1"]).fails("decision.required");
    std::fs::rename(&away, &linked).expect("moves back");
    main.json(&["answer", "t1", "no"]).fails("state.invalid");
    let report = main.json(&["report", "t1"]).ok();
    assert_eq!(report.json["state"], "completed");
    assert!(!report.has_risk("a person said"));
    let lab = Lab::new();
    let (main, linked) = cut_off(&lab);
    main.approve_without_terminal();
    std::fs::rename(&linked, lab.path("away")).expect("moves");
    main.json(&["recover"]).result(6);
    assert_eq!(main.json(&["answer", "t1", "yes"]).ok().json["state"], "completed");
    assert!(main.json(&["report", "t1"]).ok().has_risk("a person said"));
}
