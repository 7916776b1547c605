//! `kind: repair`: the reproducing case must fail on the base by a counted case and pass on the candidate.

use crate::support::verifier::Counts;
use crate::support::{Answer, Contract, Lab, Repo, Verifier};
use serde_json::json;

/// Each `tests/*.txt` names a word that `src/a.txt` must hold; `NEEDS x` is a build error without `src/x`.
const RUNNER: &str = r#"
for t in tests/*.txt; do
  need=$(sed -n 's/^NEEDS //p' "$t")
  if [ -n "$need" ] && [ ! -e "src/$need" ]; then echo "error: cannot build $t"; exit 101; fi
done
for t in tests/*.txt; do
  word=$(sed -n 's/^EXPECT //p' "$t")
  name=$(basename "$t" .txt)
  if grep -q "$word" src/a.txt; then case_ok "$name"; else case_bad "$name"; fi
done
finish
"#;

fn broken<'l>(lab: &'l Lab, name: &str, counts: Counts) -> Repo<'l> {
    let repo = lab.repo(name);
    repo.write("tests/old.txt", "EXPECT alpha\n");
    Verifier::new("unit").script(RUNNER).inputs(&["src/**", "tests/**"]).counts(counts).commit(&repo);
    repo
}

fn contract() -> Contract {
    Contract::new("t1").allowed(&["unit"]).set("kind", json!("repair")).set("case", json!(["tests/**"]))
}

/// Verifies a repair whose candidate holds these files.
#[track_caller]
fn repaired(repo: &Repo<'_>, files: &[(&str, &str)]) -> Answer {
    repo.submitted(&contract(), |task| files.iter().for_each(|(path, text)| task.write(path, text)));
    repo.json(&["verify", "t1"])
}

#[test]
fn a_new_case_that_fails_on_the_base_and_passes_on_the_candidate_is_fixed() {
    let lab = Lab::new();
    for (name, counts) in [("libtest", Counts::Libtest), ("junit", Counts::Junit)] {
        let repo = broken(&lab, name, counts);
        let answer =
            repaired(&repo, &[("src/a.txt", "alpha beta\n"), ("tests/new.txt", "EXPECT beta\n")]).ok();
        assert_eq!((answer.verdict("unit"), &answer.row("unit")["strength"]), ("passed", &json!("fixed")));
        repo.json(&["deliver", "t1"]).ok();
        assert_eq!(repo.json(&["report", "t1"]).ok().json["kind"], "repair");
    }
}

#[test]
fn a_case_that_passes_on_the_base_already_is_not_reproduced() {
    let lab = Lab::new();
    let repo = broken(&lab, "app", Counts::Libtest);
    let answer =
        repaired(&repo, &[("src/a.txt", "alpha beta\n"), ("tests/new.txt", "EXPECT alpha\n")]).result(1);
    assert_eq!(answer.verdict("unit"), "failed", "{:#}", answer.json);
    assert!(answer.reason("unit").contains("not reproduced"), "{:#}", answer.json);
    repo.json(&["deliver", "t1"]).fails("verification.failed");
}

#[test]
fn a_base_that_fails_only_by_a_build_error_is_no_reproduction() {
    let lab = Lab::new();
    let repo = broken(&lab, "app", Counts::Libtest);
    let files =
        [("src/a.txt", "alpha beta\n"), ("src/api", "new\n"), ("tests/new.txt", "NEEDS api\nEXPECT beta\n")];
    let answer = repaired(&repo, &files);
    assert_ne!(answer.verdict("unit"), "passed", "{:#}", answer.json);
    assert_ne!(answer.code, 0);
    repo.json(&["deliver", "t1"]).error();
}

#[test]
fn an_optional_row_makes_no_repair() {
    let lab = Lab::new();
    let repo = broken(&lab, "app", Counts::Libtest);
    Verifier::new("lint").script("finish").counts(Counts::Nothing).commit(&repo);
    let lint = json!([{"id": "lint", "text": "lint is clean", "verifier": "lint"}]);
    let repair = contract().allowed(&["lint", "unit"]).set("requirements", lint);
    repo.submitted(&repair, |task| {
        task.write("src/a.txt", "alpha beta\n");
        task.write("tests/new.txt", "EXPECT beta\n");
    });
    let answer = repo.json(&["verify", "t1"]).result(1);
    assert_eq!((answer.verdict("lint"), answer.verdict("unit")), ("failed", "failed"), "{:#}", answer.json);
    assert!(answer.reason("lint").contains("not reproduced"), "{:#}", answer.json);
    repo.json(&["deliver", "t1"]).fails("verification.failed");
}

#[test]
fn no_case_in_the_candidate_is_no_reproduction() {
    let lab = Lab::new();
    let repo = broken(&lab, "app", Counts::Libtest);
    let answer = repaired(&repo, &[("src/a.txt", "alpha beta\n")]);
    assert_eq!(answer.verdict("unit"), "failed", "{:#}", answer.json);
}

#[test]
fn a_candidate_that_does_not_pass_is_failed() {
    let lab = Lab::new();
    let repo = broken(&lab, "app", Counts::Libtest);
    let answer = repaired(&repo, &[("src/a.txt", "alpha\n\n"), ("tests/new.txt", "EXPECT beta\n")]).result(1);
    assert_eq!(answer.verdict("unit"), "failed");
}

#[test]
fn the_base_run_sees_only_the_case_of_the_candidate() {
    let lab = Lab::new();
    let repo = broken(&lab, "app", Counts::Libtest);
    // The fix is outside `case`: were it in the base run, the case would pass there.
    let answer =
        repaired(&repo, &[("src/a.txt", "alpha gamma\n"), ("tests/deep.txt", "EXPECT gamma\n")]).ok();
    assert_eq!(answer.row("unit")["strength"], "fixed");
}

#[test]
fn an_existing_case_changed_by_the_candidate_counts_too() {
    let lab = Lab::new();
    let repo = broken(&lab, "app", Counts::Libtest);
    let answer = repaired(&repo, &[("src/a.txt", "delta\n"), ("tests/old.txt", "EXPECT delta\n")]).ok();
    assert_eq!(answer.row("unit")["strength"], "fixed");
}
