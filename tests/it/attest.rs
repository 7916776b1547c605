//! `attest`: a person's evidence; who may give it, for what, and how long it holds.

use crate::support::repo::path_text;
use crate::support::{Contract, Lab, Repo, Task, Verifier, shape, skip};

fn waiting(lab: &Lab) -> (Repo<'_>, Task) {
    let repo = lab.repo("app");
    let task = repo.submitted(&Contract::new("t1").allowed(&["editorial_review"]), |task| {
        task.write("docs/a.md", "prose\n")
    });
    (repo, task)
}

#[test]
fn an_agent_in_the_users_shell_without_a_terminal_is_refused() {
    let lab = Lab::new();
    let (repo, _) = waiting(&lab);
    let attest = ["attest", "t1", "editorial_review", "--pass", "-m", "looks good"];
    repo.json(&attest).fails("permission.denied");
    // Neither the environment, nor a piped yes, nor the user's or the worktree's configuration widens it.
    repo.json_in("", &[("TENDER_APPROVE_WITHOUT_TERMINAL", "true"), ("CI", "true")], None, &attest)
        .fails("permission.denied");
    repo.json_in("", &[], Some(b"yes\ny\nyes\n"), &attest).fails("permission.denied");
    lab.git_config("tender.approveWithoutTerminal", "true");
    repo.json(&attest).fails("permission.denied");
    let injected = [
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "tender.approveWithoutTerminal"),
        ("GIT_CONFIG_VALUE_0", "true"),
    ];
    repo.json_in("", &injected, None, &attest).fails("permission.denied");
    let parameters = [("GIT_CONFIG_PARAMETERS", "'tender.approvewithoutterminal'='true'")];
    repo.json_in("", &parameters, None, &attest).fails("permission.denied");
    assert_eq!(repo.json(&["report", "t1"]).ok().verdict("editorial_review"), "needs_confirmation");
}

#[test]
fn the_repositorys_own_configuration_lets_it_through() {
    let lab = Lab::new();
    let (repo, _) = waiting(&lab);
    repo.approve_without_terminal();
    let answer = repo.json(&["attest", "t1", "editorial_review", "--pass", "-m", "read it all"]).ok();
    shape::check(&answer.json, &super::verify::verification_shape());
    let row = answer.row("editorial_review");
    assert_eq!((row["verdict"].as_str(), row["checks"].is_null()), (Some("passed"), true));
    assert!(row["evidence"].is_string());
    repo.json(&["deliver", "t1"]).ok();
    assert_eq!(repo.text("docs/a.md"), "prose\n");
    let shown = repo.tender(&["show", row["evidence"].as_str().expect("text")]).ok().text();
    assert!(shown.contains("read it all"), "{shown}");
}

#[test]
fn it_is_bound_to_the_candidate() {
    let lab = Lab::new();
    let (repo, task) = waiting(&lab);
    repo.approve_without_terminal();
    repo.json(&["attest", "t1", "editorial_review", "--pass", "-m", "read"]).ok();
    task.write("docs/a.md", "other prose\n");
    repo.json(&["submit", "t1"]).ok();
    let verdict = repo.json(&["report", "t1"]).ok().verdict("editorial_review").to_owned();
    assert!(verdict == "needs_confirmation" || verdict == "stale", "{verdict}");
    let answer = repo.json(&["deliver", "t1"]);
    answer.fails_one_of(&["confirmation.required", "evidence.stale"]);
    // The attested bytes put back: what was said of them holds again.
    task.write("docs/a.md", "prose\n");
    repo.json(&["submit", "t1"]).ok();
    assert_eq!(repo.json(&["report", "t1"]).ok().verdict("editorial_review"), "passed");
}

#[test]
fn a_no_is_a_failure_and_the_last_word_counts() {
    let lab = Lab::new();
    let (repo, _) = waiting(&lab);
    repo.approve_without_terminal();
    let answer = repo.json(&["attest", "t1", "editorial_review", "--fail", "-m", "wrong term"]);
    assert_eq!(answer.verdict("editorial_review"), "failed");
    repo.json(&["deliver", "t1"]).fails("verification.failed");
    repo.json(&["attest", "t1", "editorial_review", "--pass", "-m", "no, it is right"]).ok();
    repo.json(&["deliver", "t1"]).ok();
}

#[test]
fn only_manual_rows_and_protected_can_be_attested() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.approve_without_terminal();
    Verifier::new("unit").script("case_bad a\nfinish").commit(&repo);
    let contract = Contract::new("t1").allowed(&["unit", "whitespace"]).forbidden(&["build"]);
    repo.submitted(&contract, |task| task.write("src/a.txt", "x\n"));
    let attest = |row: &str| repo.json(&["attest", "t1", row, "--pass", "-m", "trust me"]);
    for row in ["unit", "whitespace"] {
        attest(row).fails_one_of(&["permission.denied", "arguments.invalid", "state.invalid"]);
    }
    attest("build").fails_one_of(&[
        "permission.denied",
        "check.forbidden",
        "arguments.invalid",
        "state.invalid",
    ]);
    attest("nothing-of-that-name").fails("not_found");
    attest("protected").fails_one_of(&["not_found", "arguments.invalid", "state.invalid"]);
    let answer = repo.json(&["verify", "t1"]).result(1);
    assert_eq!(answer.verdict("unit"), "failed");
}

#[test]
fn a_verdict_and_a_message_are_asked_for() {
    let lab = Lab::new();
    let (repo, _) = waiting(&lab);
    repo.approve_without_terminal();
    for args in [
        &["attest", "t1", "editorial_review"][..],
        &["attest", "t1", "editorial_review", "--pass"],
        &["attest", "t1", "editorial_review", "--pass", "--fail", "-m", "x"],
        &["attest", "t1", "editorial_review", "-m", "x"],
    ] {
        repo.json(args).fails("arguments.invalid");
    }
}

#[test]
fn at_a_terminal_a_person_types_it() {
    let lab = Lab::new();
    let (repo, _) = waiting(&lab);
    let mut command = lab.command("script", &repo.path);
    let line = format!("'{}' attest t1 editorial_review --pass -m read", crate::support::lab::TENDER);
    command.args(["-qec", &line, path_text(&lab.path("tmp/typescript"))]);
    if crate::support::lab::run(lab_which(&lab, &repo), None).code != 0 {
        skip("the program script (a pseudo-terminal) is not installed");
        return;
    }
    // AMBIGUOUS: what is to be typed; taken: `yes` and Enter.
    let out = crate::support::lab::run(command, Some(b"yes\n")).ok();
    assert_eq!(repo.json(&["report", "t1"]).ok().verdict("editorial_review"), "passed", "{}", out.all());
}

#[test]
fn at_a_terminal_a_no_leaves_all_as_it_was() {
    let lab = Lab::new();
    let (repo, _) = waiting(&lab);
    if crate::support::lab::run(lab_which(&lab, &repo), None).code != 0 {
        skip("the program script (a pseudo-terminal) is not installed");
        return;
    }
    let mut command = lab.command("script", &repo.path);
    let line = format!("'{}' attest t1 editorial_review --pass -m read", crate::support::lab::TENDER);
    command.args(["-qec", &line, path_text(&lab.path("tmp/typescript"))]);
    let out = crate::support::lab::run(command, Some(b"no\n"));
    assert_ne!(out.code, 0, "{}", out.all());
    assert_eq!(repo.json(&["report", "t1"]).ok().verdict("editorial_review"), "needs_confirmation");
}

fn lab_which(lab: &Lab, repo: &Repo<'_>) -> std::process::Command {
    let mut command = lab.command("sh", &repo.path);
    command.args(["-c", "command -v script"]);
    command
}
