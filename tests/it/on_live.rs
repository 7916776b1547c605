//! What a delivery says of the rest of the live tree: other files, newer rules, work that was left behind.

use crate::support::repo::lines_with;
use crate::support::{Contract, Lab, Verifier};
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
