//! What a delivery says of the rest of the live tree: other files, newer rules, work that was left behind.

use crate::support::repo::Task;
use crate::support::repo::lines_with;
use crate::support::{Contract, Lab, Repo, Verifier};
use serde_json::{Value, json};

/// What was delivered says for each row whether the live tree has the files that the verifier saw.
#[test]
fn a_row_says_whether_the_live_tree_has_the_same_inputs() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    Verifier::new("unit").inputs(&["docs/**"]).commit(&repo);
    Verifier::new("lint").inputs(&["src/**"]).commit(&repo);
    let contract = Contract::new("t1").allowed(&["unit", "lint"]);
    repo.submitted(&contract, |task| task.write("docs/a.md", lines_with(5, "five")));
    repo.json(&["verify", "t1"]).ok();
    repo.write("docs/untracked.md", "nobody saw this\n");
    let answer = repo.json(&["deliver", "t1"]).ok();
    let row = answer.row("unit");
    assert_eq!((&row["onLive"], &row["differs"]), (&json!("differs"), &json!(["docs/untracked.md"])));
    let row = answer.row("lint");
    assert_eq!((&row["onLive"], &row["differs"]), (&json!("same"), &json!([])));
    let report = repo.json(&["report", "t1"]).ok();
    assert!(report.has_risk("unit was shown on other files than the live tree has"), "{:#}", report.json);
    assert!(!report.has_risk("lint was shown"), "{:#}", report.json["risks"]);
}

#[test]
fn a_policy_leaves_the_look_out() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.write(".tender/config.toml", "[policy]\nlive = \"off\"\n");
    Verifier::new("unit").inputs(&["docs/**"]).commit(&repo);
    for (task, private, expected) in
        [("t1", "", Value::Null), ("t2", "[policy]\nlive = \"warn\"\n", json!("differs"))]
    {
        repo.write(".git/tender/local/config.toml", private);
        let name = format!("docs/{task}.md");
        repo.submitted(&Contract::new(task).allowed(&["unit"]), |task| task.write(&name, "new\n"));
        repo.json(&["verify", task]).ok();
        repo.write("docs/untracked.md", "nobody saw this\n");
        let answer = repo.json(&["deliver", task]).ok();
        assert_eq!(answer.row("unit")["onLive"], expected, "the stricter of both layers: {:#}", answer.json);
        let report = repo.json(&["report", task]).ok();
        assert_eq!(
            report.has_risk("unit was shown on other files"),
            !expected.is_null(),
            "{:#}",
            report.json
        );
    }
}

/// What HEAD got since the task was opened; `told` has to be among the risks of the delivery and the report,
/// and nothing else of HEAD's rules.
#[track_caller]
fn tells(prepare: &dyn Fn(&Repo<'_>), told: &[&str]) {
    let lab = Lab::new();
    let repo = lab.repo("app");
    Verifier::new("unit").inputs(&["docs/**"]).commit(&repo);
    repo.submitted(&Contract::new("t1").allowed(&["unit"]), |task| {
        task.write("docs/a.md", lines_with(5, "five"));
    });
    repo.json(&["verify", "t1"]).ok();
    prepare(&repo);
    repo.commit("later");
    let delivered = repo.json(&["deliver", "t1"]).ok();
    let report = repo.json(&["report", "t1"]).ok();
    for answer in [&delivered, &report] {
        for words in told {
            assert!(answer.has_risk(words), "{words}: {:#}", answer.json["risks"]);
        }
        let risks = answer.json["risks"].to_string();
        let said = risks.matches("at HEAD").count() + risks.matches("HEAD has").count();
        assert_eq!(said, told.len(), "{risks}");
    }
}

#[test]
fn newer_rules_at_head_are_told_by_name() {
    tells(&|repo| repo.write("src/other.txt", "a commit that changes no rule\n"), &[]);
    tells(
        &|repo| {
            Verifier::new("prose").inputs(&["docs/**"]).write(repo);
            let text = "[policy]\nrequire = [{ verifier = \"prose\", when = [\"docs/**\"] }]\n";
            repo.write(".tender/config.toml", text);
        },
        &[
            "the policy at HEAD is another than the base's, which judged: require",
            "the policy at HEAD requires the verifier prose",
            "HEAD has a verifier prose for what was changed",
        ],
    );
    tells(
        &|repo| repo.write(".tender/config.toml", "[policy]\nprotected = [\"docs/\"]\nwrite = [\"src/\"]\n"),
        &[
            "the policy at HEAD is another than the base's, which judged: protected, write",
            "docs/a.md is protected at HEAD, and no person confirmed its change",
            "docs/a.md may not change by the policy at HEAD",
        ],
    );
    let changed = |repo: &Repo<'_>| {
        let stricter = Verifier::new("unit").inputs(&["docs/**"]).script("case_ok stricter\nfinish\n");
        repo.write(stricter.script_path(), stricter.script_text());
        Verifier::new("elsewhere").inputs(&["src/**"]).write(repo);
    };
    tells(&changed, &["the verifier unit is another at HEAD: .tender/verifiers/unit/run.sh changed"]);
    tells(
        &|repo| {
            repo.rm(".tender/verifiers/unit/run.sh");
            repo.rm(".tender/verifiers/unit/verifier.toml");
        },
        &["the verifier unit is not at HEAD any more"],
    );
}

#[test]
fn work_that_is_in_no_candidate_is_told() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let words = "work in the task's worktree is in no candidate";
    let told = |task: &str| {
        let delivered = repo.json(&["deliver", task]).ok();
        let report = repo.json(&["report", task]).ok();
        assert_eq!(delivered.has_risk(words), report.has_risk(words), "{:#}", report.json["risks"]);
        let risks = delivered.json["risks"].to_string();
        risks.find(words).map(|at| risks[at..].split('"').next().unwrap_or_default().to_owned())
    };
    let submitted = |id: &str, later: &dyn Fn(&Task)| {
        let contract = Contract::new(id).scope(&["docs/", "src/"]);
        let name = format!("docs/{id}.md");
        let task = repo.submitted(&contract, |task| task.write(&name, "new\n"));
        later(&task);
        repo.json(&["verify", id]).ok();
        told(id)
    };
    assert_eq!(submitted("t1", &|_| {}), None);
    let forgotten = submitted("t2", &|task| task.write("src/forgotten.txt", "by hand\n"));
    assert!(forgotten.expect("is told").ends_with("not delivered: src/forgotten.txt"));
    let further = submitted("t3", &|task| {
        task.write("docs/t3.md", "newer\n");
        task.rm("docs/a.md");
    });
    assert!(further.expect("is told").ends_with("docs/a.md and 1 more"));
    let back = submitted("t4", &|task| task.rm("docs/t4.md"));
    assert_eq!(back, None, "what is as it was in the base is no work");
    let beyond = submitted("t5", &|task| {
        std::fs::hard_link(task.worktree.join("docs/t5.md"), task.worktree.join("twin")).expect("links");
    });
    assert_eq!(beyond, None, "another sentence");
    let report = repo.json(&["report", "t5"]).ok();
    assert!(report.has_risk("holds what is in no candidate"), "{:#}", report.json["risks"]);
}
