//! Cases by name: what became of those of the base, who confirms that some are gone, and when the base is
//! run.

use crate::support::verifier::{Counts, counting};
use crate::support::{Answer, Contract, Lab, Repo, Verifier};
use serde_json::{Value, json};

/// Each line of `tests/*.txt` is a case: its name, and `ok`, `bad` or `skip`.
const RUNNER: &str = r#"
cat tests/*.txt > "$TENDER_OUT/all"
while read -r name how; do "case_$how" "$name"; done < "$TENDER_OUT/all"
finish
"#;

fn runner() -> Verifier {
    Verifier::new("unit").script(RUNNER).inputs(&["src/**", "tests/**"]).counts(Counts::Junit)
}

/// A repository with a verifier and three cases, two of them passing.
fn repository<'l>(lab: &'l Lab, verifier: &Verifier) -> Repo<'l> {
    let repo = lab.repo("app");
    repo.write("tests/a.txt", "one ok\ntwo ok\n");
    repo.write("tests/b.txt", "three skip\n");
    verifier.commit(&repo);
    repo.approve_without_terminal();
    repo
}

/// Verifies a candidate whose `tests/a.txt` is this.
#[track_caller]
fn verified(repo: &Repo<'_>, id: &str, text: &str) -> Answer {
    repo.submitted(&Contract::new(id).allowed(&["unit"]), |task| task.write("tests/a.txt", text));
    repo.json(&["verify", id])
}

fn named(first: &[&str]) -> Value {
    json!({ "count": first.len(), "first": first })
}

#[test]
fn a_person_confirms_the_cases_that_are_gone() {
    let lab = Lab::new();
    let repo = repository(&lab, &runner().key("base = \"always\""));
    let answer = verified(&repo, "t1", "one skip\nfour ok\n").result(6);
    let cases = json!({
        "gone": named(&["c::one", "c::two"]), "new": named(&["c::four"]), "fixed": named(&[]), "broken": named(&[]),
        "moved": {"count": 0, "first": []},
    });
    assert_eq!((&answer.row("unit")["cases"], answer.verdict("unit")), (&cases, "passed"));
    assert_eq!(answer.row("unit")["judgeChanged"], true);
    assert_eq!(answer.verdict("protected"), "needs_confirmation");
    assert!(answer.reason("protected").contains("c::one, c::two"), "{}", answer.reason("protected"));
    assert_eq!(answer.row("protected")["cases"], Value::Null);
    let text = repo.tender(&["verify", "t1"]).exits(6).text();
    assert!(text.contains("2 gone: c::one, c::two") && text.contains("1 new: c::four"), "{text}");
    repo.json(&["deliver", "t1"]).fails("confirmation.required");
    assert!(repo.json(&["report", "t1"]).ok().has_risk("c::one, c::two (not confirmed by a person)"));
    repo.json(&["attest", "t1", "protected", "--pass", "-m", "they are obsolete"]).ok();
    repo.json(&["deliver", "t1"]).ok();
    let report = repo.json(&["report", "t1"]).ok();
    assert!(report.has_risk("c::one, c::two (confirmed by"), "{:#}", report.json["risks"]);
    assert_eq!(report.row("unit")["cases"], cases, "the report says it as well");
}

#[test]
fn a_case_that_only_moved_is_told_as_a_pair() {
    let lab = Lab::new();
    let repo = repository(&lab, &runner().key("base = \"always\""));
    let answer = verified(&repo, "t1", "m::one ok\ntwo ok\n").result(6);
    let moved = json!({"count": 1, "first": [{"from": "c::one", "to": "c::m::one"}]});
    assert_eq!(answer.row("unit")["cases"]["moved"], moved, "{:#}", answer.json);
    let text = repo.tender(&["verify", "t1"]).exits(6).text();
    assert!(text.contains("moved, it seems: c::one -> c::m::one"), "{text}");
    assert_eq!(repo.json(&["report", "t1"]).ok().row("unit")["cases"]["moved"], moved);
}

#[test]
fn a_confirmation_is_for_the_cases_that_were_gone_then() {
    let lab = Lab::new();
    let repo = repository(&lab, &runner().key("base = \"always\""));
    repo.submitted(&Contract::new("t1").allowed(&["unit"]), |task| {
        task.write("tests/a.txt", "one ok\n");
        task.write(".gitattributes", "*.x text\n");
    });
    let before = repo.json(&["attest", "t1", "protected", "--pass", "-m", "of the attributes"]).ok();
    assert_eq!(before.verdict("protected"), "passed");
    let answer = repo.json(&["verify", "t1"]).result(6);
    assert!(
        answer
            .reason("protected")
            .contains("protected paths are touched (.gitattributes), 1 case of the base"),
        "{answer:?}"
    );
    repo.json(&["attest", "t1", "protected", "--pass", "-m", "of the case too"]).ok();
    assert_eq!(repo.json(&["verify", "t1"]).ok().verdict("protected"), "passed");
}

#[test]
fn a_case_that_moved_is_shown_with_where_it_went() {
    let lab = Lab::new();
    let script = r#"
cat tests/*.txt > "$TENDER_OUT/all"
while read -r class name; do cases="$cases<testcase name='$name' classname='$class'/>"; ok=$((ok+1)); done < "$TENDER_OUT/all"
finish
"#;
    let repo = repository(&lab, &runner().script(script).key("base = \"always\""));
    repo.write("tests/a.txt", "old one\n");
    repo.write("tests/b.txt", "old two\n");
    repo.commit("cases with a class");
    let answer = verified(&repo, "t1", "new one\n").result(6);
    assert_eq!(answer.row("unit")["cases"]["gone"], named(&["old::one"]));
    let text = repo.tender(&["report", "t1"]).ok().text();
    assert!(text.contains("old::one -> new::one"), "{text}");
}

#[test]
fn the_base_is_run_once_for_all_tasks() {
    let lab = Lab::new();
    let runs = lab.path("runs");
    let script = format!("{}{RUNNER}", counting(&runs));
    let repo = repository(&lab, &runner().script(&script).key("base = \"always\""));
    let count = || std::fs::read_to_string(&runs).expect("reads").lines().count();
    let task = |id: &str, text: &str| {
        let rows = json!([{"id": "r", "text": text, "verifier": "unit"}]);
        let contract = Contract::new(id).allowed(&["unit"]).set("requirements", rows);
        repo.submitted(&contract, |task| task.write("src/a.txt", format!("{id}\n")));
        let answer = repo.json(&["verify", id]).ok();
        assert_eq!(answer.row("r")["strength"], "no_regression");
        assert_eq!(answer.row("r")["cases"]["gone"], named(&[]));
    };
    task("t1", "all is well");
    assert_eq!(count(), 2, "the base and the candidate");
    task("t2", "in other words");
    assert_eq!(count(), 3, "the candidate alone");
    repo.json(&["verify", "t2"]).ok();
    assert_eq!(count(), 3, "all is fresh");
}

#[test]
fn what_the_last_delivery_ran_is_compared_with() {
    let lab = Lab::new();
    let repo = repository(&lab, &runner());
    let first = verified(&repo, "t1", "one ok\ntwo ok\nfour ok\n").ok();
    assert_eq!(first.row("unit")["cases"], Value::Null, "nobody ran the base");
    assert!(repo.json(&["report", "t1"]).ok().has_risk("the cases of unit were not compared"));
    repo.json(&["deliver", "t1"]).ok();
    repo.commit("what was delivered");
    let second = verified(&repo, "t2", "one ok\n").result(6);
    assert_eq!(second.row("unit")["cases"]["gone"], named(&["c::four", "c::two"]));
    assert!(!repo.json(&["report", "t2"]).ok().has_risk("were not compared"));
}

#[test]
fn policy_and_manifest_say_what_is_compared_and_what_it_takes() {
    let lab = Lab::new();
    let repo = repository(&lab, &runner());
    repo.write(".tender/config.toml", "[policy]\nbase = \"always\"\ngoneCases = \"warn\"\n");
    repo.commit("a policy");
    let answer = verified(&repo, "t1", "one ok\n").ok();
    assert_eq!(answer.row("unit")["cases"]["gone"], named(&["c::two"]));
    assert_eq!(answer.row("unit")["judgeChanged"], true);
    assert!(repo.json(&["report", "t1"]).ok().has_risk("c::two (the policy asks nobody)"));
    runner().key("cases = false").commit(&repo);
    let answer = verified(&repo, "t2", "one ok\n").ok();
    assert_eq!(
        (&answer.row("unit")["cases"], &answer.row("unit")["judgeChanged"]),
        (&Value::Null, &json!(false))
    );
    assert!(repo.json(&["report", "t2"]).ok().has_risk("says that their names change"));
}

#[test]
fn a_case_of_another_file_repairs_nothing() {
    let lab = Lab::new();
    let repo = repository(&lab, &runner());
    repo.write("tests/a.txt", "one ok\ntwo bad\n");
    repo.commit("one fails");
    let repair = |id: &str| {
        let contract = Contract::new(id).allowed(&["unit"]).set("kind", json!("repair"));
        contract.set("case", json!(["tests/new*"]))
    };
    // What fails is silenced where it stands; the case of the repair passes anyway.
    repo.submitted(&repair("t1"), |task| {
        task.write("tests/a.txt", "one ok\ntwo ok\n");
        task.write("tests/new.txt", "new ok\n");
    });
    let answer = repo.json(&["verify", "t1"]).result(1);
    assert!(answer.reason("unit").starts_with("not reproduced: "), "{}", answer.reason("unit"));
    assert_eq!(answer.row("unit")["cases"]["fixed"], named(&["c::two"]));
    repo.json(&["deliver", "t1"]).fails("verification.failed");
}

/// As pytest writes it: a class is the module's path, and a file that cannot be loaded is an error of no case.
const MODULES: &str = r#"
for file in tests/*.py old/*.py; do
  [ -e "$file" ] || continue
  class=$(echo "${file%.py}" | tr / .)
  need=$(sed -n 's/^import //p' "$file")
  if [ -n "$need" ] && [ ! -e "src/$need" ]; then
    bad=$((bad+1)); cases="$cases<testcase classname='' name='$class'><error message='collection failure'>no $need</error></testcase>"
    continue
  fi
  while read -r word name want; do
    [ "$word" = def ] || continue
    if grep -q "$want" src/app; then ok=$((ok+1)); cases="$cases<testcase classname='$class' name='$name'/>"
    else bad=$((bad+1)); cases="$cases<testcase classname='$class' name='$name'><failure message='assert'/></testcase>"; fi
  done < "$file"
done
finish
"#;

/// Verifies a repair whose case is `tests/`, on a base with a failing case in `old/`.
#[track_caller]
fn repaired(lab: &Lab, name: &str, files: &[(&str, &str)]) -> Answer {
    let repo = lab.repo(name);
    repo.write("src/app", "alpha\n");
    repo.write("old/test_old.py", "def test_old beta\n");
    let verifier = Verifier::new("unit").script(MODULES).inputs(&["src/**", "tests/**", "old/**"]);
    verifier.counts(Counts::Junit).commit(&repo);
    let contract = Contract::new("t1").allowed(&["unit"]).set("kind", json!("repair"));
    repo.submitted(&contract.set("case", json!(["tests/"])), |task| {
        files.iter().for_each(|(path, text)| task.write(path, text));
    });
    repo.json(&["verify", "t1"])
}

#[test]
fn a_repair_is_shown_by_a_case_that_lies_in_it_and_failed_in_its_own_body() {
    let lab = Lab::new();
    let silenced = ("old/test_old.py", "def test_old alpha\n");
    let mended = ("src/app", "alpha beta gamma\n");
    let right = repaired(&lab, "right", &[("tests/test_new.py", "def test_new gamma\n"), mended]).ok();
    assert_eq!(right.row("unit")["strength"], "fixed");
    let fixed = json!({ "count": 2, "first": ["old.test_old::test_old", "tests.test_new::test_new"] });
    assert_eq!(right.row("unit")["cases"]["fixed"], fixed);
    let elsewhere = repaired(&lab, "elsewhere", &[("tests/test_new.py", "def test_new alpha\n"), silenced]);
    let reason = elsewhere.result(1).reason("unit").to_owned();
    assert_eq!(reason, "not reproduced: the case passes on the base already");
    let unloaded =
        [("tests/test_new.py", "import helper\ndef test_new alpha\n"), ("src/helper", "x\n"), silenced];
    let reason = repaired(&lab, "unloaded", &unloaded).result(1).reason("unit").to_owned();
    assert_eq!(reason, "not reproduced: on the base no counted case failed; a build error proves nothing");
}
