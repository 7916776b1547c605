//! `deliver --prove`: what is delivered is shown on the live tree first, by the rules of HEAD.

use crate::support::remote::wait_for;
use crate::support::repo::lines_with;
use crate::support::verifier::{counting, runs};
use crate::support::{Answer, Contract, Lab, Repo, Verifier};
use serde_json::{Value, json};
use std::path::PathBuf;

/// A task whose verifier passed, and fails where a file under `src/` says so.
struct Bench<'l> {
    repo: Repo<'l>,
    counted: PathBuf,
}

impl<'l> Bench<'l> {
    fn new(lab: &'l Lab, policy: &str, more: &str) -> Self {
        let repo = lab.repo("app");
        let counted = lab.path("counted");
        repo.write(".tender/config.toml", policy);
        repo.write("src/state.txt", "fine\n");
        let script =
            format!("{}{more}grep -rq broken src && case_bad a || case_ok a\nfinish\n", counting(&counted));
        Verifier::new("unit").inputs(&["docs/a.md", "src/**"]).script(&script).commit(&repo);
        repo.submitted(&Contract::new("t1").allowed(&["unit"]), |task| {
            task.write("docs/a.md", lines_with(5, "five"));
        });
        repo.json(&["verify", "t1"]).ok();
        Self { repo, counted }
    }

    /// Refused with this code, and nothing was written.
    #[track_caller]
    fn refused(&self, args: &[&str], code: &str) -> Value {
        let before = self.repo.snapshot();
        let refused = self.repo.json(args).fails(code).clone();
        before.same(&self.repo.snapshot());
        assert_ne!(self.repo.json(&["report", "t1"]).ok().json["state"], "completed");
        refused
    }

    /// Delivered, with the first paths of a row.
    #[track_caller]
    fn proven(&self, args: &[&str], on_live: &str) -> Answer {
        let answer = self.repo.json(args).ok();
        let row = answer.row("unit");
        assert_eq!((&row["onLive"], &row["differs"]), (&json!(on_live), &json!([])), "{row:#}");
        assert_eq!(self.repo.text("docs/a.md"), lines_with(5, "five"));
        answer
    }

    fn runs(&self) -> usize {
        runs(&self.counted)
    }
}

const PROVE: [&str; 3] = ["deliver", "t1", "--prove"];

#[test]
fn what_the_live_tree_has_otherwise_is_tried_there_before_the_write() {
    let lab = Lab::new();
    let bench = Bench::new(&lab, "", "");
    bench.repo.write("src/state.txt", "broken\n");
    let refused = bench.refused(&PROVE, "verification.failed");
    let message = refused["message"].as_str().expect("a message");
    assert!(message.contains("unit failed: on the live tree: "), "{message}");
    assert_eq!(refused["details"]["requirements"][0]["verdict"], "failed", "{refused:#}");
    assert!(refused["details"]["runs"][0]["logs"].is_array(), "{refused:#}");
    bench.repo.write("src/state.txt", "mended\n");
    bench.repo.write("src/untracked.txt", "broken\n");
    bench.refused(&PROVE, "verification.failed");
    bench.repo.write(".gitignore", "untracked.txt\n");
    let before = bench.runs();
    bench.proven(&PROVE, "proven");
    assert_eq!(bench.runs(), before + 1, "what is ignored is no input");
    let report = bench.repo.json(&["report", "t1"]).ok();
    assert!(!report.has_risk("unit was shown on other files"), "{:#}", report.json["risks"]);
}

#[test]
fn what_is_the_same_there_needs_no_run() {
    let lab = Lab::new();
    let bench = Bench::new(&lab, "", "");
    bench.repo.write("docs/other.md", "an edit that is nobody's input\n");
    let before = bench.runs();
    let answer = bench.proven(&PROVE, "same");
    assert_eq!(bench.runs(), before);
    assert_eq!(answer.json["risks"], json!([]), "{:#}", answer.json);
}

#[test]
fn a_policy_wants_it_proven() {
    let lab = Lab::new();
    let bench = Bench::new(&lab, "[policy]\nlive = \"prove\"\n", "");
    bench.repo.write("src/state.txt", "broken\n");
    bench.repo.json(&["deliver", "t1", "--dry-run"]).ok();
    bench.refused(&["deliver", "t1"], "verification.failed");
    bench.refused(&["ship", "t1"], "verification.failed");
    bench.repo.write("src/state.txt", "mended\n");
    bench.proven(&["deliver", "t1"], "proven");
}

#[test]
fn the_rules_of_head_judge_there() {
    let lab = Lab::new();
    let bench = Bench::new(&lab, "", "");
    let repo = &bench.repo;
    Verifier::new("prose")
        .inputs(&["docs/**"])
        .script("grep -q five docs/a.md && case_ok a\nfinish\n")
        .write(repo);
    repo.write(
        ".tender/config.toml",
        "[policy]\nrequire = [{ verifier = \"prose\", when = [\"docs/**\"] }]\n",
    );
    let stricter = Verifier::new("unit").inputs(&["docs/a.md", "src/**"]).script("case_bad a\nfinish\n");
    repo.write(stricter.script_path(), stricter.script_text());
    repo.commit("stricter");
    bench.refused(&PROVE, "verification.failed");
    let lenient = Verifier::new("unit").inputs(&["docs/a.md", "src/**"]);
    repo.write(lenient.script_path(), lenient.script_text());
    repo.commit("lenient");
    let answer = bench.proven(&PROVE, "proven");
    let row = answer.row("prose");
    assert_eq!((&row["verdict"], &row["onLive"]), (&json!("passed"), &json!("proven")), "{row:#}");
    for answer in [&answer, &repo.json(&["report", "t1"]).ok()] {
        let risks = answer.json["risks"].to_string();
        assert!(!risks.contains("HEAD"), "the evidence is of HEAD's rules, on HEAD's files: {risks}");
    }
}

#[test]
fn what_a_person_has_to_confirm_by_the_rules_of_head_is_not_delivered() {
    let lab = Lab::new();
    let bench = Bench::new(&lab, "", "");
    bench.repo.write(".tender/config.toml", "[policy]\nprotected = [\"docs/\"]\n");
    bench.repo.commit("protect");
    let refused = bench.refused(&PROVE, "confirmation.required");
    assert_eq!(refused["remedy"]["command"], json!(["git", "tender", "rebase", "t1"]), "{refused:#}");
    bench.repo.write(".tender/config.toml", "[policy]\nwrite = [\"src/\"]\n");
    bench.repo.commit("narrow");
    bench.refused(&PROVE, "scope.violation");
}

/// The verifier waits on the live tree until `edit` was done there.
fn edited_meanwhile(lab: &Lab, edit: impl FnOnce(&Repo<'_>)) -> (Bench<'_>, Answer) {
    let (began, go) = (lab.path("began"), lab.path("go"));
    let waits = format!(
        "if grep -q wait src/state.txt; then touch '{}'; while [ ! -e '{}' ]; do sleep 0.02; done; fi\n",
        began.display(),
        go.display()
    );
    let bench = Bench::new(lab, "", &waits);
    bench.repo.write("src/state.txt", "wait\n");
    let before = bench.repo.snapshot();
    let answer = std::thread::scope(|scope| {
        let delivery = scope.spawn(|| bench.repo.json(&PROVE));
        wait_for("the verifier on the live tree", || began.exists());
        before.same(&bench.repo.snapshot());
        edit(&bench.repo);
        std::fs::write(&go, "").expect("writes");
        delivery.join().expect("ends")
    });
    (bench, answer)
}

#[test]
fn an_edit_of_an_input_during_the_proof_refuses_the_delivery() {
    let lab = Lab::new();
    let (bench, answer) = edited_meanwhile(&lab, |repo| repo.write("src/late.txt", "broken\n"));
    let refused = answer.fails("evidence.stale");
    assert!(refused["message"].as_str().expect("text").contains("src/late.txt was added"), "{refused:#}");
    assert_eq!(bench.repo.text("docs/a.md"), crate::support::repo::LINES, "nothing was written");
    let before = bench.runs();
    bench.repo.rm("src/late.txt");
    bench.proven(&PROVE, "proven");
    assert_eq!(bench.runs(), before, "its record is evidence like any other");
}

#[test]
fn others_deliver_while_the_verifiers_run() {
    let lab = Lab::new();
    let (bench, answer) = edited_meanwhile(&lab, |repo| {
        repo.changing("t2", &[("docs/t2.md", Some("new\n"))]);
        repo.json(&["deliver", "t2"]).ok();
    });
    let answer = answer.ok();
    assert_eq!(
        answer.row("unit")["onLive"],
        "proven",
        "what is nobody's input may change: {:#}",
        answer.json
    );
    assert!(bench.repo.exists("docs/t2.md"));
}

#[test]
fn a_conflict_is_told_before_anything_runs() {
    let lab = Lab::new();
    let bench = Bench::new(&lab, "", "");
    bench.repo.write("docs/a.md", lines_with(5, "mine"));
    let before = bench.runs();
    bench.refused(&PROVE, "delivery.conflict");
    assert_eq!(bench.runs(), before);
}

#[test]
fn nothing_is_proven_where_nothing_goes_to_the_live_tree() {
    let lab = Lab::new();
    let bench = Bench::new(&lab, "", "");
    bench.repo.json(&["deliver", "t1", "--prove", "--dry-run"]).fails("arguments.invalid");
    let contract = Contract::new("t2").committed(json!({"mode": "branch", "branch": "agent/t2"}));
    bench.repo.submitted(&contract, |task| task.write("docs/b.md", "new\n"));
    bench.repo.json(&["deliver", "t2", "--prove"]).fails("arguments.invalid");
    bench.repo.json(&["deliver", "t2"]).ok();
}
