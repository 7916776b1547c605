//! The report: every row and where it rests, risks, the brief; the same from a copy of ledger and blobs.

use super::submit::candidate_shape;
use super::verify::verification_shape;
use crate::support::repo::lines_with;
use crate::support::{Contract, Lab, Repo, Verifier, shape};
use serde_json::{Value, json};

pub fn report_shape() -> Value {
    json!({
        "schema": "git-tender/report/v1", "taskId": "$text", "state": "$word", "kind": "$word", "candidate": "$any",
        "summary": {
            "passed": "$int", "failed": "$int", "notRun": "$int", "stale": "$int", "needsConfirmation": "$int", "error": "$int"
        },
        "requirements": verification_shape()["requirements"],
        "changes": candidate_shape()["changes"],
        "findings": ["$object"], "limits": ["$any"],
        "risks": [{"text": "$text", "ref": "$str?"}],
        "budget": "$object",
        "sandbox": {"requested": "$text", "enforced": "$text"},
        "delivery": "$any",
        "contract": {"version": "$int", "sha256": "$sha256"}
    })
}

/// A repository with every kind of row: passed, failed, not run, needs confirmation, error.
fn rich(lab: &Lab) -> Repo<'_> {
    let repo = lab.repo("app");
    Verifier::new("good").commit(&repo);
    Verifier::new("bad").script("case_bad a\nfinish").commit(&repo);
    Verifier::new("broken").script("kill -9 $$").commit(&repo);
    let contract = Contract::new("t1").allowed(&["good", "bad", "broken", "review"]).forbidden(&["build"]);
    repo.submitted(&contract, |task| {
        task.write("src/a.txt", "x\n");
        task.write("docs/a.md", lines_with(5, "five"));
    });
    repo.json(&["verify", "t1"]).result(1);
    repo
}

#[test]
fn every_kind_of_row_is_there_with_what_it_rests_on() {
    let lab = Lab::new();
    let repo = rich(&lab);
    let report = repo.json(&["report", "t1"]).ok();
    shape::check(&report.json, &report_shape());
    let verdicts = ["good", "bad", "broken", "review", "build"].map(|id| report.verdict(id).to_owned());
    assert_eq!(verdicts, ["passed", "failed", "error", "needs_confirmation", "not_run"]);
    assert_eq!(
        report.json["summary"],
        json!({"passed": 1, "failed": 1, "notRun": 1, "stale": 0, "needsConfirmation": 1, "error": 1})
    );
    for id in ["good", "bad", "broken"] {
        let reference =
            report.row(id)["evidence"].as_str().unwrap_or_else(|| panic!("{id} rests on nothing"));
        let shown = repo.tender(&["show", reference]).ok().text();
        assert!(shown.contains(id), "{shown}");
    }
    assert_eq!(report.json["state"], "verification_failed");
    assert_eq!(report.json["kind"], "edit");
    assert_eq!(report.json["sandbox"]["requested"], "required");
    assert_eq!(report.json["sandbox"]["enforced"], "none");
    assert!(report.has_risk("sandbox"), "{:#}", report.json["risks"]);
    assert!(report.json["delivery"].is_null());
}

#[test]
fn in_words_it_says_the_same() {
    let lab = Lab::new();
    let repo = rich(&lab);
    let text = repo.tender(&["report", "t1"]).ok().text();
    for word in ["good", "bad", "broken", "review", "build", "forbidden by contract", "docs/a.md"] {
        assert!(text.contains(word), "{word} is missing: {text}");
    }
}

#[test]
fn after_delivery_it_holds_the_receipt() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.changing("t1", &[("docs/a.md", Some("x\n"))]);
    let delivered = repo.json(&["deliver", "t1"]).ok();
    let report = repo.json(&["report", "t1"]).ok();
    shape::check(&report.json, &report_shape());
    assert_eq!(report.json["state"], "completed");
    assert_eq!(report.json["delivery"]["paths"][0]["path"], "docs/a.md");
    assert_eq!(report.json["delivery"]["mode"], delivered.json["mode"]);
    assert_eq!(report.changes(), [("docs/a.md".to_owned(), "modified".to_owned())]);
}

#[test]
fn unrelated_live_edits_at_delivery_are_a_risk() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    Verifier::new("unit").commit(&repo);
    repo.submitted(&Contract::new("t1").allowed(&["unit"]), |task| task.write("src/a.txt", "x\n"));
    repo.json(&["verify", "t1"]).ok();
    repo.write("README.md", "moved on\n");
    repo.commit("HEAD moves");
    repo.json(&["deliver", "t1"]).ok();
    assert!(repo.json(&["report", "t1"]).ok().has_risk("HEAD"));
}

/// Copies ledger and blobs into another repository, nothing else.
fn copied<'l>(repo: &Repo<'l>, name: &str) -> Repo<'l> {
    let other = repo.lab.empty_repo(name);
    let (from, to) = (repo.store(), other.join(".git/tender"));
    std::fs::create_dir_all(&to).expect("creates");
    for entry in std::fs::read_dir(&from).expect("lists").map(|e| e.expect("entry")) {
        let file = entry.file_name().into_string().expect("text");
        if file.starts_with("ledger.db") || file == "blobs" {
            let mut command = repo.lab.command("cp", &from);
            command.arg("-a").arg(entry.path()).arg(to.join(&file));
            crate::support::lab::run(command, None).ok();
        }
    }
    other
}

#[test]
fn from_a_copy_of_ledger_and_blobs_it_comes_out_byte_for_byte_the_same() {
    let lab = Lab::new();
    let repo = rich(&lab);
    repo.changing("t2", &[("docs/b.md", Some("y\n")), ("src/b.txt", None)]);
    repo.json(&["deliver", "t2"]).ok();
    repo.json(&["undo", "t2"]).ok();
    let other = copied(&repo, "elsewhere");
    for task in ["t1", "t2"] {
        for format in ["text", "json"] {
            let one = repo.tender(&["report", task, "--format", format]).ok();
            let two = other.tender(&["report", task, "--format", format]).ok();
            assert_eq!(one.text(), two.text(), "{task} {format}");
        }
        assert_eq!(repo.tender(&["diff", task]).ok().stdout, other.tender(&["diff", task]).ok().stdout);
    }
    assert_eq!(
        repo.tender(&["log", "--format", "json"]).ok().stdout,
        other.tender(&["log", "--format", "json"]).ok().stdout
    );
}

#[test]
fn it_is_the_same_twice_and_does_not_change_with_the_live_tree() {
    let lab = Lab::new();
    let repo = rich(&lab);
    let one = repo.tender(&["report", "t1", "--format", "json"]).ok().stdout;
    repo.write("src/a.txt", "live edit\n");
    repo.rm("docs");
    assert_eq!(repo.tender(&["report", "t1", "--format", "json"]).ok().stdout, one);
}

#[test]
fn the_brief_has_contract_open_requirements_and_references() {
    let lab = Lab::new();
    let repo = rich(&lab);
    let text = repo.tender(&["report", "t1", "--brief"]).ok().text();
    assert!(text.contains("a change for a test"), "the goal: {text}");
    for word in ["bad", "broken", "review"] {
        assert!(text.contains(word), "{word} is open: {text}");
    }
    let whole = repo.tender(&["report", "t1"]).ok().text();
    assert!(text.len() < whole.len() * 2, "it is brief");
    repo.json(&["report", "t1", "--brief"]).ok();
}

#[test]
fn a_goal_with_escapes_does_not_reach_the_terminal() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let contract = Contract::new("t1").set("goal", json!("evil \u{1b}[2J\u{1b}]0;title\u{7} goal\u{202e}"));
    repo.submitted(&contract, |task| task.write("docs/\u{1b}[31mred.md", "x\n"));
    for args in [
        &["report", "t1"][..],
        &["status"],
        &["report", "t1", "--brief"],
        &["log"],
        &["deliver", "t1", "--dry-run"],
    ] {
        let out = repo.tender(args);
        assert!(!out.stdout.contains(&0x1b) && !out.stderr.contains(&0x1b), "{args:?}: {:?}", out.text());
    }
}
