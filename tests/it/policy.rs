//! The policy of the base commit: ceiling, protected paths, the floor of checks. It never comes from the
//! change.

use crate::support::repo::path_text;
use crate::support::{Contract, Lab, Repo, Verifier};
use serde_json::json;

fn with_policy<'l>(lab: &'l Lab, name: &str, policy: &str) -> Repo<'l> {
    let repo = lab.repo(name);
    repo.write(".tender/config.toml", policy);
    repo.commit("policy");
    repo
}

#[test]
fn the_ceiling_narrows_the_contract_and_the_narrowing_is_shown() {
    let lab = Lab::new();
    let repo = with_policy(&lab, "app", "[policy]\nwrite = [\"docs/\"]\n");
    let contract = Contract::new("t1").scope(&["docs/", "src/"]);
    let file = contract.file(&lab);
    let opened = repo.tender(&["open", path_text(&file)]).ok().all();
    assert!(opened.contains("src/"), "the narrowing is shown: {opened}");
    let task = repo.open(&contract);
    task.write("docs/a.md", "within\n");
    repo.json(&["submit", "t1"]).ok();
    task.write("src/a.txt", "beyond the ceiling\n");
    let answer = repo.json(&["submit", "t1"]);
    let refused = answer.fails("scope.violation");
    assert!(refused.to_string().contains("src/a.txt"));
    assert_eq!(refused["details"]["allowed"], json!(["docs/"]), "{refused:#}");
    let brief = repo.json(&["report", "t1", "--brief"]).ok().json;
    assert_eq!(brief["writeScope"], json!(["docs/"]), "{brief:#}");
    for report in [brief, repo.json(&["report", "t1"]).ok().json] {
        let lines = report["narrowed"].as_array().expect("lines");
        assert!(lines.len() == 1 && lines[0].as_str().expect("a line").contains("src/"), "{report:#}");
    }
    for args in [["report", "t1"].as_slice(), &["report", "t1", "--brief"]] {
        let text = repo.tender(args).ok().all();
        assert!(text.contains("narrowed") && text.contains("policy.write"), "{text}");
    }
}

#[test]
fn the_policy_of_the_candidate_or_the_live_tree_changes_nothing() {
    let lab = Lab::new();
    let repo = with_policy(&lab, "app", "[policy]\nwrite = [\"docs/\", \".tender/\"]\n");
    let task = repo.open(&Contract::new("t1"));
    let wide = "[policy]\nwrite = [\"docs/\", \"src/\", \".tender/\"]\n";
    task.write(".tender/config.toml", wide);
    task.write("src/a.txt", "x\n");
    assert!(repo.json(&["submit", "t1"]).fails("scope.violation").to_string().contains("src/a.txt"));
    repo.write(".tender/config.toml", wide);
    let task = repo.open(&Contract::new("t2"));
    task.write("src/a.txt", "x\n");
    repo.json(&["submit", "t2"]).fails("scope.violation");
}

#[test]
fn a_live_base_still_takes_the_policy_of_the_commit() {
    let lab = Lab::new();
    let repo = with_policy(&lab, "app", "[policy]\nwrite = [\"docs/\"]\n");
    repo.write(".tender/config.toml", "[policy]\nwrite = [\"docs/\", \"src/\"]\n");
    let task = repo.open(&Contract::new("t1").set("base", json!("live")));
    task.write("src/a.txt", "x\n");
    repo.json(&["submit", "t1"]).fails("scope.violation");
}

#[test]
fn protected_paths_need_a_person_by_default() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.approve_without_terminal();
    for (number, path) in [
        ".tender/config.toml",
        ".github/workflows/ci.yml",
        ".gitattributes",
        "docs/.gitattributes",
        ".gitmodules",
    ]
    .iter()
    .enumerate()
    {
        let id = format!("t{number}");
        repo.submitted(&Contract::new(&id), |task| task.write(path, "# harmless\n"));
        let answer = repo.json(&["verify", &id]).result(6);
        assert_eq!(answer.verdict("protected"), "needs_confirmation", "{path}");
        assert_eq!(answer.row("protected")["required"], true);
        let before = repo.snapshot();
        repo.json(&["deliver", &id]).fails("confirmation.required");
        before.same(&repo.snapshot());
    }
    repo.json(&["attest", "t1", "protected", "--pass", "-m", "fine"]).ok();
    repo.json(&["deliver", "t1"]).ok();
    assert_eq!(repo.text(".github/workflows/ci.yml"), "# harmless\n");
}

#[test]
fn a_policys_own_list_of_protected_paths_replaces_the_default_but_for_tender() {
    let lab = Lab::new();
    let repo = with_policy(&lab, "app", "[policy]\nprotected = [\"src/\"]\n");
    repo.submitted(&Contract::new("t1"), |task| task.write("src/a.txt", "x\n"));
    assert_eq!(repo.json(&["verify", "t1"]).result(6).verdict("protected"), "needs_confirmation");
    repo.submitted(&Contract::new("t2"), |task| task.write(".github/x", "x\n"));
    repo.json(&["verify", "t2"]).ok();
    repo.json(&["deliver", "t2"]).ok();
    repo.submitted(&Contract::new("t3"), |task| task.write(".tender/x", "x\n"));
    assert_eq!(repo.json(&["verify", "t3"]).result(6).verdict("protected"), "needs_confirmation");
}

#[test]
fn the_floor_adds_a_required_row_where_the_change_touches_it() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.write(".tender/config.toml", "[policy]\nrequire = [{ verifier = \"unit\", when = [\"src/**\"] }]\n");
    Verifier::new("unit").script("grep -q BAD src/a.txt && case_bad a\ncase_ok b\nfinish").commit(&repo);
    let task = repo.submitted(&Contract::new("t1"), |task| task.write("src/a.txt", "BAD\n"));
    let answer = repo.json(&["deliver", "t1"]);
    answer.fails_one_of(&["evidence.missing", "verification.failed"]);
    let answer = repo.json(&["verify", "t1"]).result(1);
    assert_eq!((answer.verdict("unit"), &answer.row("unit")["required"]), ("failed", &json!(true)));
    task.write("src/a.txt", "good\n");
    repo.json(&["submit", "t1"]).ok();
    repo.json(&["verify", "t1"]).ok();
    repo.json(&["deliver", "t1"]).ok();
    // A change elsewhere does not need it.
    repo.changing("t2", &[("docs/a.md", Some("x\n"))]);
    repo.json(&["deliver", "t2"]).ok();
}

#[test]
fn a_contract_that_forbids_the_floor_cannot_complete_such_a_change() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.write(".tender/config.toml", "[policy]\nrequire = [{ verifier = \"unit\", when = [\"src/**\"] }]\n");
    Verifier::new("unit").commit(&repo);
    let contract = |id: &str| Contract::new(id).forbidden(&["unit"]);
    repo.submitted(&contract("t1"), |task| task.write("src/a.txt", "x\n"));
    let answer = repo.json(&["verify", "t1"]);
    assert_ne!(answer.code, 0, "{:#}", answer.json);
    let before = repo.snapshot();
    repo.json(&["deliver", "t1"]).fails_one_of(&[
        "check.forbidden",
        "evidence.missing",
        "verification.failed",
    ]);
    before.same(&repo.snapshot());
    repo.submitted(&contract("t2"), |task| task.write("docs/a.md", "x\n"));
    repo.json(&["deliver", "t2"]).ok();
}

#[test]
fn a_delivery_that_the_policy_does_not_name_is_refused() {
    let lab = Lab::new();
    let repo = with_policy(&lab, "app", "[policy]\ndelivery = [\"bundle\"]\n");
    // AMBIGUOUS: refused at `open` or at `deliver`, and by which code.
    let mut answer = repo.open_fails(&Contract::new("t1"));
    if answer.code == 0 {
        crate::support::Task::of(&answer.json).write("docs/a.md", "x\n");
        repo.json(&["submit", "t1"]).ok();
        answer = repo.json(&["deliver", "t1"]);
    }
    answer.fails_one_of(&["permission.denied", "contract.invalid", "not_supported"]);
    assert_ne!(repo.text("docs/a.md"), "x\n");
}

#[test]
fn unknown_and_unfit_keys_are_config_invalid_by_name() {
    let lab = Lab::new();
    for (number, (policy, word)) in [
        ("[policy]\nwrit = [\"docs/\"]\n", "writ"),
        ("[polici]\nwrite = []\n", "polici"),
        ("[policy]\nwrite = \"docs/\"\n", "write"),
        ("[policy]\nwrite = [\"../x/\"]\n", "../x/"),
        ("[policy]\nflaky = \"maybe\"\n", "flaky"),
        ("[policy]\nrequire = [{ verifier = \"unit\", whn = [\"src/**\"] }]\n", "whn"),
        ("[policy\n", "config.toml"),
    ]
    .iter()
    .enumerate()
    {
        let repo = with_policy(&lab, &format!("r{number}"), policy);
        let answer = repo.open_fails(&Contract::new("t1"));
        let error = answer.fails("config.invalid");
        assert!(error.to_string().contains(word), "{word}: {error:#}");
        assert!(error.to_string().contains("config.toml"), "{error:#}");
    }
}

#[test]
fn what_a_later_version_brings_is_refused_by_name() {
    let lab = Lab::new();
    for (number, (config, word)) in [
        ("[policy]\naccept = \"signed\"\n", "accept"),
        ("[policy]\nnetwork = \"enabled\"\n", "network"),
        ("[policy]\ncommit = true\n", "commit"),
    ]
    .iter()
    .enumerate()
    {
        let repo = with_policy(&lab, &format!("r{number}"), config);
        let answer = repo.open_fails(&Contract::new("t1"));
        // AMBIGUOUS: `network` and `commit` that only set ceilings may be taken, since nothing can reach
        // them.
        if answer.code == 0 && ["network", "commit"].contains(word) {
            continue;
        }
        assert!(answer.fails("not_supported").to_string().contains(word));
    }
}

#[test]
fn private_and_committed_policy_intersect() {
    let lab = Lab::new();
    let repo = with_policy(&lab, "app", "[policy]\nwrite = [\"docs/\", \"src/\"]\n");
    repo.write(".git/tender/local/config.toml", "[policy]\nwrite = [\"docs/\"]\n");
    let task = repo.open(&Contract::new("t1"));
    task.write("src/a.txt", "x\n");
    repo.json(&["submit", "t1"]).fails("scope.violation");
}

#[test]
fn uncommitted_configuration_does_not_count_and_is_said_once() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.write(".tender/config.toml", "[policy]\nwrite = [\"docs/\"]\n");
    let file = Contract::new("t1").file(&lab);
    let out = repo.tender(&["open", path_text(&file)]).ok();
    let all = out.all();
    assert!(all.contains(".tender"), "{all}");
    let task = crate::support::Task::of(&repo.json(&["open", path_text(&file)]).ok().json);
    task.write("src/a.txt", "x\n");
    repo.json(&["submit", "t1"]).ok();
}
