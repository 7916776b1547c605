//! What is asked of a task and what its verifiers look at: nothing passes by a look at an empty folder, and
//! nothing is delivered unseen without somebody's word.

use crate::support::verifier::{Counts, counting, runs};
use crate::support::{Answer, Contract, Lab, Repo, Verifier};
use serde_json::json;

fn notes(answer: &Answer) -> String {
    let notes = answer.json["notes"].as_array().expect("notes");
    notes.iter().map(|note| format!("{}\n", note.as_str().expect("text"))).collect()
}

fn asked(repo: &Repo<'_>, task: &str) -> Vec<String> {
    let report = repo.json(&["report", task]).ok();
    let rows = report.json["requirements"].as_array().expect("rows").clone();
    rows.iter().map(|row| row["id"].as_str().expect("id").to_owned()).collect()
}

/// `unit` over `src/**`, `text` over `docs/**`, and one that a person attests.
fn repo_with_verifiers(lab: &Lab) -> Repo<'_> {
    let repo = lab.repo("app");
    repo.write("src/a.py", "a\n");
    repo.write("docs/a.md", "a\n");
    let person = "protocol = 1\nid = \"look\"\nkind = \"manual\"\n";
    repo.write(".tender/verifiers/look/verifier.toml", person);
    repo.write(".tender/verifiers/bad/verifier.toml", "protocol = 1\nid = \"bad\"\n");
    repo.commit("files");
    Verifier::new("unit").commit(&repo);
    Verifier::new("text").inputs(&["docs/**"]).commit(&repo);
    repo
}

#[test]
fn start_asks_for_every_verifier_that_the_scope_can_meet() {
    let lab = Lab::new();
    let repo = repo_with_verifiers(&lab);
    let opened = repo.json(&["start", "goal", "--scope", "docs/"]).ok();
    assert_eq!(asked(&repo, "t1"), ["text"], "{:#}", opened.json);
    let told = notes(&opened);
    for words in ["by default: text", "unit (its inputs lie outside", "look (a person", "bad (cannot be used"]
    {
        assert!(told.contains(words), "{words}: {told}");
    }
    repo.json(&["start", "goal", "--scope", "**"]).ok();
    assert_eq!(asked(&repo, "t2"), ["text", "unit"]);
}

/// What a default asks for counts only where the change touches it; the row says so.
#[test]
fn a_row_that_the_change_does_not_touch_is_not_required() {
    let lab = Lab::new();
    let repo = repo_with_verifiers(&lab);
    let bad = Verifier::new("unit").script("case_bad broken\nfinish\n");
    bad.commit(&repo);
    repo.json(&["start", "goal", "--scope", "**"]).ok();
    repo.write("../app.tender/t1/docs/a.md", "b\n");
    let shipped = repo.json(&["ship", "t1"]).ok();
    let row = shipped.row("unit");
    assert_eq!((&row["verdict"], &row["required"]), (&json!("not_run"), &json!(false)), "{row:#}");
    assert_eq!(shipped.reason("unit"), "the change touches none of its inputs");
    assert_eq!(shipped.verdict("text"), "passed");
    assert_eq!(repo.text("docs/a.md"), "b\n");

    repo.json(&["start", "goal", "--scope", "**"]).ok();
    repo.write("../app.tender/t2/src/a.py", "b\n");
    repo.json(&["ship", "t2"]).result(1);
    assert_eq!(repo.text("src/a.py"), "a\n");
}

/// Nobody named the verifier, so whoever reads that it fails has to know whether the change made it fail.
#[test]
fn a_default_row_that_fails_says_what_the_base_does() {
    let lab = Lab::new();
    let repo = repo_with_verifiers(&lab);
    let counted = lab.path("counted");
    let script = format!("{}grep -q bad src/a.py && case_bad a || case_ok a\nfinish\n", counting(&counted));
    Verifier::new("unit").script(&script).commit(&repo);
    let failing = |task: &str, named: &[&str]| {
        repo.json(&[&["start", "goal", "--scope", "src/"], named].concat()).ok();
        repo.write(format!("../app.tender/{task}/src/a.py"), "bad\n");
        let shipped = repo.json(&["ship", task]).result(1);
        assert_eq!(repo.json(&["report", task]).ok().reason("unit"), shipped.reason("unit"));
        shipped.reason("unit").to_owned()
    };
    assert!(failing("t1", &[]).ends_with("; it passes on the base"));
    assert_eq!(runs(&counted), 2, "the candidate, then the base");
    repo.json(&["verify", "t1"]).result(1);
    assert_eq!(runs(&counted), 3, "the base is run once");
    assert!(!failing("t2", &["--verify", "unit"]).contains("base"), "whoever named it knows it");
    repo.write("src/a.py", "bad already\n");
    repo.commit("bad");
    assert!(failing("t3", &[]).ends_with("; it fails on the base too"));
}

#[test]
fn a_change_of_which_nothing_was_asked_is_a_risk() {
    let lab = Lab::new();
    let repo = repo_with_verifiers(&lab);
    let opened = repo.json(&["start", "goal", "--scope", "docs/", "--verify", "none"]).ok();
    assert!(notes(&opened).contains("NOTHING is asked"), "{}", notes(&opened));
    assert!(notes(&opened).contains("text"), "the verifiers that are there: {}", notes(&opened));
    repo.write("../app.tender/t1/docs/a.md", "b\n");
    assert!(repo.json(&["ship", "t1"]).ok().has_risk("no verifier was asked"));
}

#[test]
fn an_id_that_is_nowhere_is_not_found_unless_a_person_is_meant() {
    let lab = Lab::new();
    let repo = repo_with_verifiers(&lab);
    let error = repo.json(&["start", "goal", "--scope", "docs/", "--verify", "txt"]);
    assert_eq!(error.fails("not_found")["details"]["nearest"], "text");
    assert!(!repo.join("../app.tender/t1").exists());
    repo.json(&["start", "goal", "--scope", "docs/", "--manual", "txt"]).ok();
    assert_eq!(asked(&repo, "t1"), ["text", "txt"], "beside what is asked by default");
}

#[test]
fn inputs_that_name_no_file_are_refused_at_open() {
    let lab = Lab::new();
    let repo = repo_with_verifiers(&lab);
    Verifier::new("typo").inputs(&["scr/**"]).counts(Counts::Nothing).commit(&repo);
    let contract = |id: &str| Contract::new(id).allowed(&["typo"]);
    let refused = repo.open_fails(&contract("a").scope(&["src/"]));
    assert_eq!(refused.fails("config.invalid")["details"]["nearest"], "src/**");
    // A scope that could make one is told, and the row waits for the file.
    let opened = repo.json(&["open", contract("b").file(&lab).to_str().expect("text")]).ok();
    assert!(notes(&opened).contains("name nothing in the base yet"), "{}", notes(&opened));
    repo.write("../app.tender/b/src/a.py", "b\n");
    let shown = repo.json(&["submit", "b"]).ok();
    assert_eq!(shown.json["candidate"], 1);
    let row = repo.json(&["verify", "b"]);
    assert_eq!((row.verdict("typo"), row.reason("typo")), ("not_run", "nothing under scr/** yet"));
}

#[test]
fn one_dead_pattern_among_several_is_told() {
    let lab = Lab::new();
    let repo = repo_with_verifiers(&lab);
    Verifier::new("half").inputs(&["src/**", "tset/**"]).counts(Counts::Nothing).commit(&repo);
    let opened = repo.json(&["start", "goal", "--scope", "src/", "--verify", "half"]).ok();
    assert!(notes(&opened).contains("`tset/**` among its inputs names nothing"), "{}", notes(&opened));
    assert!(!notes(&opened).contains("src/**"), "{}", notes(&opened));
    repo.write("../app.tender/t1/src/a.py", "b\n");
    repo.json(&["submit", "t1"]).ok();
    let shown = repo.json(&["verify", "t1"]).ok();
    assert_eq!(shown.row("half")["deadInputs"], json!(["tset/**"]), "{:#}", shown.json);
    let text = repo.tender(&["verify", "t1"]).ok().text();
    assert!(text.contains("no file here for tset/**"), "{text}");
    assert_eq!(repo.json(&["report", "t1"]).ok().row("half")["deadInputs"], json!(["tset/**"]));
}

/// The code is moved away from what its verifier looks at: no pass, and a person has to look.
#[test]
fn inputs_that_the_change_emptied_are_no_pass() {
    let lab = Lab::new();
    let repo = repo_with_verifiers(&lab);
    let task = repo.submitted(&Contract::new("t").allowed(&["unit"]), |task| {
        ["src/a.py", "src/a.txt", "src/b.txt"].iter().for_each(|path| task.rm(path));
        task.write("source/a.py", "b\n");
    });
    let shown = repo.json(&["verify", &task.id]);
    let row = shown.row("unit");
    assert_eq!((&row["verdict"], &row["judgeChanged"]), (&json!("not_run"), &json!(true)), "{row:#}");
    assert_eq!(shown.reason("unit"), "nothing under src/** any more");
    assert_eq!(shown.verdict("protected"), "needs_confirmation");
    assert_eq!(shown.reason("protected"), "unit has nothing left to look at: a person has to confirm");
    repo.json(&["deliver", &task.id]).fails("confirmation.required");
    assert!(repo.exists("src/a.py") && !repo.exists("source/a.py"));
}

#[test]
fn words_of_a_shell_in_a_command_without_one_are_told() {
    let lab = Lab::new();
    let repo = repo_with_verifiers(&lab);
    let odd = "command = [\"grep\", \"-q\", \"a\", \"src/a.py\", \"&&\", \"true\", \"*.md\"]";
    Verifier::new("odd").counts(Counts::Nothing).key(odd).commit(&repo);
    let opened = repo.json(&["start", "goal", "--scope", "src/", "--verify", "odd"]).ok();
    for word in ["`&&`", "`*.md`"] {
        assert!(notes(&opened).contains(word), "{}", notes(&opened));
    }
}

#[test]
fn a_script_in_a_text_for_a_shell_is_told() {
    let lab = Lab::new();
    let repo = repo_with_verifiers(&lab);
    let text = "command = [\"sh\", \"-c\", \"cd . && python3 src/a.py\"]";
    Verifier::new("odd").counts(Counts::Nothing).key(text).commit(&repo);
    let opened = repo.json(&["start", "goal", "--scope", "src/", "--verify", "odd"]).ok();
    assert!(notes(&opened).contains("`src/a.py` is named in a text for a shell"), "{}", notes(&opened));
}
