//! `verify`: the table of verdicts, one case a row, and what a verifier sees of the world.

use crate::support::repo::path_text;
use crate::support::verifier::{Counts, counting, runs};
use crate::support::{Answer, Contract, Lab, Repo, Verifier, shape};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

pub fn verification_shape() -> Value {
    json!({
        "schema": "git-tender/verification/v1", "taskId": "$text", "candidate": "$int",
        "requirements": [{
            "id": "$text", "verifier": "$text", "title": "$str?", "required": "$bool", "verdict": "$word", "reason": "$str?",
            "reused": "$bool", "strength": "$word", "judgeChanged": "$bool", "evidence": "$ref256?", "checks": "$any"
        }]
    })
}

/// Commits the verifier, makes a candidate that edits `src/a.txt`, verifies.
#[track_caller]
fn verified(repo: &Repo<'_>, verifier: &Verifier) -> Answer {
    verifier.commit(repo);
    repo.submitted(&Contract::new("t1").allowed(&["unit"]), |task| task.write("src/a.txt", "candidate\n"));
    let answer = repo.json(&["verify", "t1"]);
    shape::check(&answer.json, &verification_shape());
    answer
}

/// One script, one expected verdict; the reason must hold one of the words.
#[track_caller]
fn verdict_of(verifier: &Verifier, verdict: &str, words: &[&str]) {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let answer = verified(&repo, verifier);
    assert_eq!(answer.verdict("unit"), verdict, "{:#}", answer.json);
    let reason = answer.reason("unit").to_lowercase();
    if verdict == "passed" {
        assert!(answer.row("unit")["reason"].is_null(), "{:#}", answer.json);
    } else {
        assert!(!reason.is_empty(), "a verdict other than passed has a reason: {:#}", answer.json);
    }
    assert!(
        words.is_empty() || words.iter().any(|word| reason.contains(word)),
        "{reason:?} has none of {words:?}"
    );
    assert_eq!(answer.code, i32::from(verdict != "passed"));
    let before = repo.snapshot();
    let deliver = repo.json(&["deliver", "t1"]);
    if verdict == "passed" {
        deliver.ok();
        return;
    }
    let error = deliver.fails_one_of(&[
        "verification.failed",
        "evidence.missing",
        "evidence.stale",
        "verifier.protocol",
    ]);
    let rows = error["details"]["requirements"].as_array().expect("a refused deliver lists the rows");
    assert_eq!(rows[0]["id"], "unit");
    before.same(&repo.snapshot());
    assert_ne!(repo.json(&["report", "t1"]).ok().json["state"], "completed");
}

fn unit(script: &str) -> Verifier {
    Verifier::new("unit").script(script)
}

#[test]
fn a_title_is_shown_wherever_its_verifier_is() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let unit = unit("exit 0").key("title = \"Unit tests\"");
    let answer = verified(&repo, &unit);
    assert_eq!(answer.row("unit")["title"], "Unit tests");
    assert_eq!(repo.json(&["report", "t1"]).ok().row("unit")["title"], "Unit tests");
    for view in [&["verify", "t1"][..], &["report", "t1"]] {
        let text = repo.tender(view).all();
        assert!(text.contains("unit - Unit tests"), "{text}");
    }
    Verifier::new("lint").key("title = 1").commit(&repo);
    let doctor = repo.json(&["doctor"]).ok();
    let problem = doctor.json["verifiers"][1]["problem"].as_str().expect("it cannot be read");
    assert!(problem.contains("title"), "{problem}");
    assert_eq!(doctor.json["verifiers"][0]["title"], "Unit tests");
    let text = repo.tender(&["doctor"]).all();
    assert!(text.contains("verifier unit: Unit tests") && text.contains("verifier lint: "), "{text}");
}

#[test]
fn a_pass_with_libtest_and_with_junit_counts_its_cases() {
    for counts in [Counts::Libtest, Counts::Junit] {
        let lab = Lab::new();
        let repo = lab.repo("app");
        let verifier =
            unit("grep -q candidate src/a.txt && case_ok one\ncase_ok two\ncase_skip three\nfinish")
                .counts(counts);
        let answer = verified(&repo, &verifier).ok();
        let row = answer.row("unit");
        assert_eq!(row["verdict"], "passed");
        assert_eq!(row["reused"], false);
        assert_eq!(row["required"], true);
        assert_eq!(row["judgeChanged"], false);
        assert_eq!(row["checks"], json!({"ran": 2, "passed": 2, "failed": 0, "skipped": 1, "flaky": 0}));
        assert_eq!(row["strength"], "unmeasured", "not tried on the base");
        assert_eq!(repo.json(&["report", "t1"]).ok().json["state"], "verified");
        repo.json(&["deliver", "t1"]).ok();
    }
}

#[test]
fn a_bare_exit_code_has_no_checks() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let answer = verified(&repo, &unit("exit 0").counts(Counts::Nothing)).ok();
    assert!(answer.row("unit")["checks"].is_null());
    assert_eq!(answer.verdict("unit"), "passed");
}

#[test]
fn an_exit_code_that_is_not_zero_fails_whatever_was_printed() {
    verdict_of(&unit("echo PASS; echo 'all tests passed'; exit 1").counts(Counts::Nothing), "failed", &[]);
    verdict_of(
        &unit(
            "case_ok a; case_ok b; echo 'test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out'; exit 3",
        ),
        "failed",
        &[],
    );
}

#[test]
fn a_failing_case_fails_whatever_the_exit_code() {
    verdict_of(&unit("case_ok a; case_bad b; (finish); exit 0"), "failed", &[]);
    verdict_of(&unit("case_ok a; case_bad b; (finish); exit 0").counts(Counts::Junit), "failed", &[]);
}

#[test]
fn a_summary_that_lies_is_not_believed() {
    let lying = r#"echo '<testsuites tests="5" failures="0"><testsuite name="s" tests="5" failures="0" errors="0"><testcase name="a"/><testcase name="b"><failure>no</failure></testcase></testsuite></testsuites>' > "$TENDER_OUT/junit.xml"; exit 0"#;
    verdict_of(&unit(lying).counts(Counts::Junit), "failed", &[]);
    let errors = r#"echo '<testsuite name="s" tests="2" failures="0" errors="0"><testcase name="a"/><testcase name="b"><error>boom</error></testcase></testsuite>' > "$TENDER_OUT/junit.xml"; exit 0"#;
    verdict_of(&unit(errors).counts(Counts::Junit), "failed", &[]);
    // AMBIGUOUS: a libtest summary that claims more than its lines show: no case counted, or a contradiction.
    let lab = Lab::new();
    let repo = lab.repo("app");
    let boast = "echo 'test result: ok. 50 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out'; exit 0";
    let answer = verified(&repo, &unit(boast));
    assert!(["error", "not_run"].contains(&answer.verdict("unit")), "{:#}", answer.json);
}

#[test]
fn zero_checks_and_all_skipped_are_not_run() {
    for counts in [Counts::Libtest, Counts::Junit] {
        verdict_of(&unit("finish").counts(counts), "not_run", &["no checks ran"]);
        verdict_of(&unit("case_skip a; case_skip b; finish").counts(counts), "not_run", &["all skipped"]);
    }
}

#[test]
fn fewer_checks_than_min_checks_are_no_pass() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let answer = verified(&repo, &unit("case_ok a; finish").key("min_checks = 2"));
    assert_ne!(answer.verdict("unit"), "passed", "{:#}", answer.json);
    assert_eq!(answer.code, 1);
}

#[test]
fn a_missing_binary_is_not_run() {
    let verifier = unit("").counts(Counts::Nothing).key("command = [\"no-such-program-of-any-kind\"]");
    verdict_of(&verifier, "not_run", &["no-such-program-of-any-kind", "missing", "not found"]);
}

#[test]
fn a_signal_and_missing_or_unreadable_output_are_errors() {
    verdict_of(&unit("kill -9 $$").counts(Counts::Nothing), "error", &["signal"]);
    verdict_of(&unit("kill -SEGV $$"), "error", &["signal"]);
    verdict_of(&unit("exit 0").counts(Counts::Junit), "error", &["output", "junit"]);
    for bytes in ["", "not xml", "<testsuites><testsuite>", "<html/>"] {
        let script = format!("printf '%s' '{bytes}' > \"$TENDER_OUT/junit.xml\"; exit 0");
        verdict_of(&unit(&script).counts(Counts::Junit), "error", &[]);
    }
    verdict_of(&unit("echo garbage; exit 0"), "error", &[]);
}

#[test]
fn an_entity_bomb_in_the_output_is_an_error_and_costs_little() {
    let bomb = r#"{ echo '<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">'; for i in 1 2 3; do :; done; echo ']><testsuite name="&b;"><testcase name="&b;"/></testsuite>'; } > "$TENDER_OUT/junit.xml"; exit 0"#;
    let lab = Lab::new();
    let repo = lab.repo("app");
    let answer = verified(&repo, &unit(bomb).counts(Counts::Junit));
    assert!(["error", "passed"].contains(&answer.verdict("unit")), "{:#}", answer.json);
    assert!(!answer.json.to_string().contains("hahaha"));
}

#[test]
fn an_old_output_file_lying_there_is_an_error() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let verifier = unit(
        "mkdir -p build\nif grep -q WRITE src/a.txt; then echo '<testsuite name=\"s\"><testcase name=\"a\"/></testsuite>' > build/junit.xml; fi\nexit 0",
    )
    .counts(Counts::Nothing)
    .key("outputs = [{ path = \"build/junit.xml\", format = \"junit\", required = true }]")
    .key("scratch = [\"build/\"]");
    verifier.commit(&repo);
    let task =
        repo.submitted(&Contract::new("t1").allowed(&["unit"]), |task| task.write("src/a.txt", "WRITE\n"));
    assert_eq!(repo.json(&["verify", "t1"]).ok().verdict("unit"), "passed");
    task.write("src/a.txt", "no more\n");
    repo.json(&["submit", "t1"]).ok();
    let answer = repo.json(&["verify", "t1"]).result(1);
    assert_eq!(answer.verdict("unit"), "error", "{:#}", answer.json);
}

#[test]
fn evidence_planted_by_the_task_is_ignored() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let verifier = unit("exit 0")
        .counts(Counts::Nothing)
        .key("outputs = [{ path = \"build/junit.xml\", format = \"junit\", required = true }]")
        .key("scratch = [\"build/\"]");
    verifier.commit(&repo);
    let junit = "<testsuite name=\"s\"><testcase name=\"a\"/></testsuite>";
    let planted = |task: &crate::support::Task| {
        task.write("src/a.txt", "x\n");
        task.write("build/junit.xml", junit);
        task.write(
            "src/result.json",
            "{\"protocol\":1,\"results\":[{\"requirement\":\"unit\",\"status\":\"pass\"}]}",
        );
        task.write(".tender/evidence/unit.json", "{\"verdict\":\"passed\"}");
    };
    let patch = repo.patch_of(|copy| copy.write("build/junit.xml", junit));
    repo.submitted(&Contract::new("t1").allowed(&["unit"]), planted);
    let answer = repo.json(&["verify", "t1"]);
    assert_eq!(answer.verdict("unit"), "error", "{:#}", answer.json);
    // The same file as part of the candidate's tree.
    repo.open(&Contract::new("t2").allowed(&["unit"]));
    repo.submit_patch("t2", &patch).ok();
    assert_ne!(repo.json(&["verify", "t2"]).verdict("unit"), "passed");
}

/// Whether any process on this machine has this word in its command line.
fn alive(word: &str) -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else { return false };
    processes.filter_map(Result::ok).any(|entry| {
        std::fs::read(entry.path().join("cmdline"))
            .is_ok_and(|line| String::from_utf8_lossy(&line).split('\0').any(|argument| argument == word))
    })
}

#[test]
fn a_time_out_with_a_grandchild_holding_the_pipe_ends_in_time_and_leaves_no_survivor() {
    let lab = Lab::new();
    for (number, script) in [
        "sleep DURATION",
        "sleep DURATION & sleep DURATION",
        "(setsid sleep DURATION &) ; sleep DURATION",
        "trap '' TERM HUP INT; (trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep DURATION; sleep DURATION' &); while :; do sleep DURATION; done",
    ]
    .iter()
    .enumerate()
    {
        let duration = format!("98{}.{number}7", std::process::id());
        let repo = lab.repo(&format!("r{number}"));
        let verifier = unit(&script.replace("DURATION", &duration)).counts(Counts::Nothing).key("timeout = \"2s\"");
        let started = Instant::now();
        let answer = verified(&repo, &verifier).result(1);
        let took = started.elapsed();
        assert_eq!(answer.verdict("unit"), "error", "{:#}", answer.json);
        assert!(answer.reason("unit").to_lowercase().contains("time"), "{:#}", answer.json);
        assert!(took > Duration::from_secs(2) && took < Duration::from_secs(30), "{took:?}");
        std::thread::sleep(Duration::from_millis(200));
        assert!(!alive(&duration), "{script}: something survived");
    }
}

#[test]
fn a_process_left_over_after_exit_0_is_no_pass_and_does_not_survive() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let duration = format!("97{}.3", std::process::id());
    let script = format!("(setsid sleep {duration} >/dev/null 2>&1 &)\nsleep 0.3\nexit 0");
    let started = Instant::now();
    let answer = verified(&repo, &unit(&script).counts(Counts::Nothing));
    assert_ne!(answer.verdict("unit"), "passed", "{:#}", answer.json);
    assert!(started.elapsed() < Duration::from_secs(60));
    assert!(!alive(&duration));
}

#[test]
fn writing_outside_scratch_or_changing_its_inputs_is_an_error() {
    let done = "\ncase_ok a\nfinish";
    let stray = format!("chmod u+w . 2>/dev/null\necho x > stray.txt{done}");
    verdict_of(&unit(&stray), "error", &["outside", "scratch", "stray.txt"]);
    let deep = format!("chmod -R u+w src 2>/dev/null\necho x > src/stray.txt{done}");
    verdict_of(&unit(&deep), "error", &[]);
    let input = format!("chmod u+w src src/a.txt\necho x >> src/a.txt{done}");
    verdict_of(&unit(&input), "error", &[]);
    let mode = format!("chmod 0755 src/b.txt{done}");
    verdict_of(&unit(&mode), "error", &[]);
    let removed = format!("chmod u+w src\nrm -f src/b.txt{done}");
    verdict_of(&unit(&removed), "error", &[]);
    let allowed = format!("mkdir -p out/deep\necho x > out/deep/file{done}");
    verdict_of(&unit(&allowed).key("scratch = [\"out/\"]"), "passed", &[]);
    let closure = format!(
        "chmod u+w .tender/verifiers/unit .tender/verifiers/unit/run.sh\necho >> .tender/verifiers/unit/run.sh{done}"
    );
    verdict_of(&unit(&closure), "error", &[]);
}

#[test]
fn a_dirty_slot_is_rebuilt_for_the_next_run() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let verifier = unit(
        "if grep -q STRAY src/a.txt; then chmod u+w . src; echo x > src/stray.txt; fi\ntest -e src/stray.txt && ! grep -q STRAY src/a.txt && exit 9\ncase_ok a\nfinish",
    );
    verifier.commit(&repo);
    let task =
        repo.submitted(&Contract::new("t1").allowed(&["unit"]), |task| task.write("src/a.txt", "STRAY\n"));
    assert_eq!(repo.json(&["verify", "t1"]).result(1).verdict("unit"), "error");
    task.write("src/a.txt", "fine\n");
    repo.json(&["submit", "t1"]).ok();
    assert_eq!(repo.json(&["verify", "t1"]).ok().verdict("unit"), "passed");
}

#[test]
fn a_verifier_sees_its_inputs_and_closure_and_nothing_else() {
    let script = "for f in README.md docs/a.md .gitignore; do test -e $f && { echo \"$f is visible\"; exit 5; }; done\n\
                  test -e src/a.txt || exit 6\ngrep -q candidate src/a.txt || exit 7\ncase_ok a\nfinish";
    verdict_of(&unit(script), "passed", &[]);
    // An undeclared dependency shows at once, and it is not the change that is to blame.
    verdict_of(&unit("cat docs/a.md || exit 1\ncase_ok a\nfinish"), "error", &["before any case"]);
    let whole = "test -e README.md && test -e docs/a.md || exit 5\ncase_ok a\nfinish";
    verdict_of(&unit(whole).inputs(&["**"]), "passed", &[]);
}

#[test]
fn the_environment_is_cleared_and_home_is_empty() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let script = "test -z \"$SECRET_TOKEN\" || exit 3\ntest -z \"$SSH_AUTH_SOCK\" || exit 4\ntest -z \"$GIT_DIR$GIT_INDEX_FILE\" || exit 5\n\
                  test -n \"$HOME\" && test -z \"$(ls -A \"$HOME\")\" || exit 6\ntest -d \"$TENDER_OUT\" || exit 7\n\
                  test ! -e \"$HOME/.secret\" || exit 8\ntest -n \"$TMPDIR\" || exit 9\ncase_ok a\nfinish";
    unit(script).commit(&repo);
    std::fs::write(lab.path("home/.secret"), "x").expect("writes");
    repo.submitted(&Contract::new("t1").allowed(&["unit"]), |task| task.write("src/a.txt", "x\n"));
    let env = [("SECRET_TOKEN", "s3cr3t"), ("SSH_AUTH_SOCK", "/tmp/none")];
    let answer = repo.json_in("", &env, None, &["verify", "t1"]);
    assert_eq!(answer.verdict("unit"), "passed", "{:#}\n{}", answer.json, answer.stderr);
}

#[test]
fn what_read_names_is_linked_into_home() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    std::fs::create_dir_all(lab.path("home/.toolbox/deep")).expect("creates");
    std::fs::write(lab.path("home/.toolbox/deep/version"), "7").expect("writes");
    std::fs::write(lab.path("home/.other"), "x").expect("writes");
    let script = "test \"$(cat \"$HOME/.toolbox/deep/version\")\" = 7 || exit 3\ntest ! -e \"$HOME/.other\" || exit 4\ncase_ok a\nfinish";
    let answer = verified(&repo, &unit(script).key("read = [\"~/.toolbox\"]"));
    assert_eq!(answer.verdict("unit"), "passed", "{:#}", answer.json);
}

#[test]
fn a_known_secret_is_passed_on_and_found_nowhere_afterwards() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let secret = "hunter2-Zq81mmPx-very-secret";
    repo.write(".tender/config.toml", "[policy]\nenv = [\"API_TOKEN\"]\n");
    let script = "test -n \"$API_TOKEN\" || exit 3\necho \"token $API_TOKEN\"; echo \"token $API_TOKEN\" >&2\n\
                  printf %s \"$API_TOKEN\" | base64\ncase_ok a\nfinish";
    unit(script).key("env = [\"API_TOKEN\"]").commit(&repo);
    repo.submitted(&Contract::new("t1").allowed(&["unit"]), |task| task.write("src/a.txt", "x\n"));
    let answer = repo.json_in("", &[("API_TOKEN", secret)], None, &["verify", "t1"]);
    assert_eq!(answer.verdict("unit"), "passed", "{:#}\n{}", answer.json, answer.stderr);
    let encoded = "aHVudGVyMi1acTgxbW1QeC12ZXJ5LXNlY3JldA==";
    for (name, entry) in crate::support::snapshot::tree(&repo.store()) {
        let crate::support::snapshot::Entry::File { bytes, .. } = entry else { continue };
        for word in [secret, encoded] {
            let found = bytes.windows(word.len()).any(|window| window == word.as_bytes());
            assert!(!found, "{word} stands in {name}");
        }
    }
    let shown = repo.tender(&["report", "t1"]).ok().all() + &repo.tender(&["log", "t1"]).ok().all();
    assert!(!shown.contains(secret));
}

#[test]
fn a_flood_of_output_is_capped_and_said() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let script = "head -c 80000000 /dev/zero | tr '\\0' x\nexit 0";
    let answer = verified(&repo, &unit(script).counts(Counts::Nothing));
    assert_eq!(answer.verdict("unit"), "passed", "{:#}", answer.json);
    let size: u64 = crate::support::snapshot::tree(&repo.store())
        .values()
        .map(|entry| match entry {
            crate::support::snapshot::Entry::File { bytes, .. } => bytes.len() as u64,
            _ => 0,
        })
        .sum();
    assert!(size < 40_000_000, "{size} bytes are kept");
    let report = repo.json(&["report", "t1"]).ok();
    assert!(report.has_risk("truncated"), "{:#}", report.json["risks"]);
}

#[test]
fn a_set_up_step_runs_once_for_the_same_inputs() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let count = lab.path("setups");
    repo.write(
        ".tender/verifiers/unit/setup.sh",
        format!("mkdir -p deps && echo ready > deps/flag\n{}", counting(&count)),
    );
    let verifier = unit("test \"$(cat deps/flag)\" = ready || exit 4\ncase_ok a\nfinish")
        .inputs(&["src/**", ".tender/verifiers/unit/setup.sh"])
        .key("setup = { command = [\"sh\", \".tender/verifiers/unit/setup.sh\"], inputs = [\"src/b.txt\"] }")
        .key("scratch = [\"deps/\"]");
    verifier.commit(&repo);
    let task =
        repo.submitted(&Contract::new("t1").allowed(&["unit"]), |task| task.write("src/a.txt", "one\n"));
    let first = repo.json(&["verify", "t1"]);
    assert_eq!(first.verdict("unit"), "passed", "{:#}", first.json);
    assert_eq!(runs(&count), 1);
    task.write("src/a.txt", "two\n");
    repo.json(&["submit", "t1"]).ok();
    assert_eq!(repo.json(&["verify", "t1"]).ok().verdict("unit"), "passed");
    assert_eq!(runs(&count), 1, "the set-up is cached by its inputs");
    task.write("src/b.txt", "three\n");
    repo.json(&["submit", "t1"]).ok();
    repo.json(&["verify", "t1"]).ok();
    assert_eq!(runs(&count), 2);
}

#[test]
fn a_set_up_step_that_fails_is_no_pass() {
    let verifier =
        unit("case_ok a\nfinish").key("setup = { command = [\"sh\", \"-c\", \"exit 3\"], inputs = [] }");
    let lab = Lab::new();
    let repo = lab.repo("app");
    let answer = verified(&repo, &verifier);
    assert_ne!(answer.verdict("unit"), "passed", "{:#}", answer.json);
    assert!(!answer.reason("unit").is_empty());
}

#[test]
fn the_example_has_three_rows() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let contract = Contract(serde_json::from_str(include_str!("example_contract.json")).expect("JSON"));
    repo.submitted(&contract, |task| task.write("docs/editorial/a.md", "x\n"));
    let answer = repo.json(&["verify", "task-example"]).result(6);
    shape::check(&answer.json, &verification_shape());
    assert_eq!(answer.json["requirements"].as_array().map(Vec::len), Some(3));
    assert_eq!(answer.verdict("editorial_review"), "needs_confirmation");
    assert_eq!(answer.row("editorial_review")["required"], true);
    for id in ["build", "product_tests"] {
        assert_eq!(answer.verdict(id), "not_run");
        assert_eq!(answer.reason(id), "forbidden by contract");
        assert_eq!(answer.row(id)["required"], false);
    }
    repo.json(&["deliver", "task-example"]).fails("confirmation.required");
    let report = repo.json(&["report", "task-example"]).ok();
    assert_eq!(
        report.json["summary"],
        json!({"passed": 0, "failed": 0, "notRun": 2, "stale": 0, "needsConfirmation": 1, "error": 0})
    );
}

#[test]
fn a_forbidden_verifier_that_exists_does_not_run() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let count = lab.path("count");
    unit(&format!("{}case_ok a\nfinish", counting(&count))).commit(&repo);
    repo.submitted(&Contract::new("t1").forbidden(&["unit"]), |task| task.write("src/a.txt", "x\n"));
    let answer = repo.json(&["verify", "t1"]).ok();
    assert_eq!((answer.verdict("unit"), answer.reason("unit")), ("not_run", "forbidden by contract"));
    repo.json(&["verify", "t1", "--only", "unit"]).fails_one_of(&["check.forbidden", "arguments.invalid"]);
    assert_eq!(runs(&count), 0);
}

#[test]
fn a_manifest_only_in_the_candidate_or_the_live_tree_does_not_count() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let verifier = unit("case_ok a\nfinish");
    let task = repo.submitted(&Contract::new("t1").allowed(&["unit"]), |task| {
        task.write(verifier.manifest_path(), verifier.manifest());
        task.write(verifier.script_path(), verifier.script_text());
    });
    let answer = repo.json(&["verify", "t1"]);
    assert_eq!(answer.verdict("unit"), "not_run", "{:#}", answer.json);
    let in_candidate = answer.reason("unit").to_owned();
    assert!(in_candidate.contains("candidate"), "{in_candidate}");
    drop(task);
    verifier.write(&repo);
    repo.submitted(&Contract::new("t2").allowed(&["unit"]), |task| task.write("src/a.txt", "x\n"));
    let answer = repo.json(&["verify", "t2"]);
    assert_eq!(answer.verdict("unit"), "not_run", "{:#}", answer.json);
    assert_ne!(answer.reason("unit"), in_candidate, "each has its own reason");
    // And the command that would have used it says so.
    let said = repo.tender(&["verify", "t2"]).all();
    assert!(said.contains(".tender"), "{said}");
}

#[test]
fn flaky_is_failed_unless_policy_says_warn() {
    let lab = Lab::new();
    for (name, policy, verdict) in
        [("strict", "", "failed"), ("lenient", "[policy]\nflaky = \"warn\"\n", "passed")]
    {
        let repo = lab.repo(name);
        repo.write(".tender/config.toml", policy);
        let mark = lab.path(format!("{name}-tried"));
        let script = format!(
            "if test -e '{0}'; then case_ok a; else touch '{0}'; case_bad a; fi\nfinish",
            mark.display()
        );
        let answer = verified(&repo, &unit(&script).key("attempts = 2"));
        assert_eq!(answer.verdict("unit"), verdict, "{name}: {:#}", answer.json);
        if verdict == "failed" {
            assert!(answer.reason("unit").contains("flaky"), "{:#}", answer.json);
        } else {
            assert!(repo.json(&["report", "t1"]).ok().has_risk("flaky"));
        }
        // A flaky run is never reused.
        assert_eq!(repo.json(&["verify", "t1"]).row("unit")["reused"], false);
    }
}

#[test]
fn the_private_layer_works_like_the_committed_one() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let verifier = unit("grep -q candidate src/a.txt || exit 3\ncase_ok a\nfinish");
    repo.write(
        format!(".git/tender/local/{}", verifier.manifest_path().trim_start_matches(".tender/")),
        verifier.manifest(),
    );
    repo.write(
        format!(".git/tender/local/{}", verifier.script_path().trim_start_matches(".tender/")),
        verifier.script_text(),
    );
    repo.submitted(&Contract::new("t1").allowed(&["unit"]), |task| task.write("src/a.txt", "candidate\n"));
    let answer = repo.json(&["verify", "t1"]).ok();
    assert_eq!(answer.verdict("unit"), "passed", "{:#}", answer.json);
    assert_eq!(repo.git(&["status", "--porcelain"]), "", "nothing of it in the repository");
    // The same id in both layers is an error.
    verifier.commit(&repo);
    repo.open_fails(&Contract::new("t2").allowed(&["unit"])).fails("config.invalid");
}

#[test]
fn manifests_that_do_not_fit_are_refused_by_file_and_field() {
    let lab = Lab::new();
    for (number, (bad, code, word)) in [
        ("protocol = 1\nid = \"unit\"\ncommand = [\"true\"]\ntimout = \"1m\"\n", "config.invalid", "timout"),
        ("protocol = 1\nid = \"other\"\ncommand = [\"true\"]\n", "config.invalid", "id"),
        ("protocol = 1\nid = \"unit\"\n", "config.invalid", "command"),
        ("protocol = 1\nid = \"unit\"\ncommand = \"true && true\"\n", "config.invalid", "command"),
        ("protocol = 1\nid = \"unit\"\ncommand = [\"true\"]\ntimeout = \"soon\"\n", "config.invalid", "timeout"),
        ("protocol = 1\nid = \"unit\"\ncommand = [\"true\"]\nmin_checks = 1\n", "config.invalid", "min_checks"),
        ("not toml at all", "config.invalid", "verifier.toml"),
        ("protocol = 1\nid = \"unit\"\ncommand = [\"true\"]\nnetwork = true\n", "not_supported", "network"),
        // Its configuration is the judge's, and here there is none.
        ("protocol = 1\nid = \"unit\"\nuses = \"pre-commit\"\n", "config.invalid", ".pre-commit-config.yaml"),
        (
            "protocol = 1\nid = \"unit\"\ncommand = [\"true\"]\noutputs = [{ path = \"{out}/r\", format = \"subunit\", required = true }]\n",
            "config.invalid",
            "format",
        ),
    ]
    .iter()
    .enumerate()
    {
        let repo = lab.repo(&format!("r{number}"));
        repo.write(".tender/verifiers/unit/verifier.toml", bad);
        repo.commit("manifest");
        let file = Contract::new("t1").allowed(&["unit"]).file(&lab);
        // Before any work is done, also where nothing requires it.
        let answer = repo.json(&["open", path_text(&file)]);
        let error = answer.fails(code);
        assert!(error.to_string().contains(word), "{word} is not named: {error:#}");
    }
}

#[test]
fn what_will_be_built_in_is_refused_and_not_left_to_a_person() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.open_fails(&Contract::new("t1").allowed(&["secrets"])).fails("not_supported");
    // Who has one of their own uses that.
    let repo = repo.with(&Verifier::new("secrets"));
    repo.submitted(&Contract::new("t1").allowed(&["secrets"]), |task| task.write("src/a.txt", "candidate\n"));
    assert_eq!(repo.json(&["verify", "t1"]).ok().verdict("secrets"), "passed");
}

#[test]
fn built_in_whitespace_and_scope() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let contract = Contract::new("t1").allowed(&["whitespace", "scope"]);
    let task = repo.submitted(&contract, |task| task.write("docs/b.md", "clean\n"));
    let answer = repo.json(&["verify", "t1"]).ok();
    assert_eq!((answer.verdict("whitespace"), answer.verdict("scope")), ("passed", "passed"));
    for bad in [
        "trailing \n",
        "<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n",
        "ok\n \tspace before tab\n",
        "blank line at the end\n\n",
    ] {
        task.write("docs/b.md", bad);
        repo.json(&["submit", "t1"]).ok();
        let answer = repo.json(&["verify", "t1"]).result(1);
        assert_eq!(answer.verdict("whitespace"), "failed", "{bad:?}");
        assert!(answer.reason("whitespace").contains("docs/b.md"), "{:#}", answer.json);
    }
    // What was there before the change is not the change's fault.
    let repo = lab.empty_repo("second");
    repo.write("old.txt", "trailing \nmore\n");
    repo.commit("old sins");
    repo.submitted(&Contract::new("t1").allowed(&["whitespace"]), |task| {
        task.write("old.txt", "trailing \nless\n")
    });
    assert_eq!(repo.json(&["verify", "t1"]).ok().verdict("whitespace"), "passed");
}

#[test]
fn artifacts_are_checked_on_the_candidates_bytes() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    for (number, (claim, good)) in [
        (json!({"path": "docs/a.md", "mustExist": true}), true),
        (json!({"path": "docs/none.md", "mustExist": true}), false),
        (json!({"path": "docs/a.md", "mustChange": true}), true),
        (json!({"path": "docs/b.md", "mustChange": true}), false),
        (json!({"path": "docs/a.md", "maxBytes": 100}), true),
        (json!({"path": "docs/a.md", "maxBytes": 3}), false),
        (json!({"path": "docs/a.md", "mustNotContain": ["TODO"]}), true),
        (json!({"path": "docs/a.md", "mustNotContain": ["TODO", "fresh"]}), false),
    ]
    .iter()
    .enumerate()
    {
        let id = format!("t{number}");
        let contract = Contract::new(&id).set("artifacts", json!([claim]));
        repo.submitted(&contract, |task| task.write("docs/a.md", "fresh bytes\n"));
        let answer = repo.json(&["verify", &id]).result(i32::from(!good));
        assert_eq!(answer.verdict("artifacts"), if *good { "passed" } else { "failed" }, "{claim}");
        assert_eq!(answer.row("artifacts")["required"], true);
        if !good {
            assert!(
                answer.reason("artifacts").contains(claim["path"].as_str().expect("text")),
                "{:#}",
                answer.json
            );
            repo.json(&["deliver", &id]).fails("verification.failed");
        }
    }
}

#[test]
fn an_optional_requirement_that_fails_lets_through_and_is_a_risk() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    unit("case_bad a\nfinish").commit(&repo);
    let contract = Contract::new("t1").allowed(&["unit"]).set(
        "requirements",
        json!([{"id": "nice", "text": "it would be nice", "verifier": "unit", "required": false}]),
    );
    repo.submitted(&contract, |task| task.write("src/a.txt", "x\n"));
    let answer = repo.json(&["verify", "t1"]).ok();
    assert_eq!((answer.verdict("nice"), &answer.row("nice")["verifier"]), ("failed", &json!("unit")));
    repo.json(&["deliver", "t1"]).ok();
    let report = repo.json(&["report", "t1"]).ok();
    assert!(report.has_risk("nice"), "{:#}", report.json["risks"]);
}

#[test]
fn two_requirements_of_one_verifier_are_two_rows() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let count = lab.path("count");
    unit(&format!("{}case_ok a\nfinish", counting(&count))).commit(&repo);
    let row = |id: &str| json!({"id": id, "text": format!("text of {id}"), "verifier": "unit"});
    let contract =
        Contract::new("t1").allowed(&["unit"]).set("requirements", json!([row("one"), row("two")]));
    repo.submitted(&contract, |task| task.write("src/a.txt", "x\n"));
    let answer = repo.json(&["verify", "t1"]).ok();
    assert_eq!((answer.verdict("one"), answer.verdict("two")), ("passed", "passed"));
    assert_eq!(answer.row("one")["required"], true);
    assert_eq!(runs(&count), 1);
    // The same bytes under the same words, in another task: each row has a record to rest on.
    let again = Contract::new("t2").allowed(&["unit"]).set("requirements", json!([row("one"), row("two")]));
    repo.submitted(&again, |task| task.write("src/a.txt", "x\n"));
    let answer = repo.json(&["verify", "t2"]).ok();
    assert_eq!((&answer.row("one")["reused"], &answer.row("two")["reused"]), (&json!(true), &json!(true)));
    assert_eq!(runs(&count), 1, "nothing ran again");
}

#[test]
fn a_test_that_ends_its_process_hides_no_other() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let cut = "echo 'running 50 tests'; case_ok a; echo; echo 'running 0 tests'; ok=0; finish";
    let answer = verified(&repo, &unit(cut));
    assert_eq!(answer.verdict("unit"), "error", "{:#}", answer.json);
    assert!(answer.reason("unit").contains("gave no summary"), "{:#}", answer.json);
}

#[test]
fn a_pass_in_one_run_after_a_failure_in_another_is_a_risk() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.write(".tender/config.toml", "[policy]\nflaky = \"warn\"\n");
    let mark = lab.path("tried");
    let script =
        format!("if test -e '{0}'; then case_ok a; else touch '{0}'; case_bad a; fi\nfinish", mark.display());
    assert_eq!(verified(&repo, &unit(&script)).verdict("unit"), "failed");
    let answer = repo.json(&["verify", "t1"]).ok();
    assert!(
        answer.verdict("unit") == "passed" && answer.reason("unit").contains("flaky"),
        "{:#}",
        answer.json
    );
    let report = repo.json(&["report", "t1"]).ok();
    assert!(report.has_risk("is flaky"), "{:#}", report.json["risks"]);
    repo.json(&["deliver", "t1"]).ok();
    assert!(repo.json(&["report", "t1"]).ok().has_risk("is flaky"));
}

#[test]
fn only_and_explain() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let (one, two) = (lab.path("one"), lab.path("two"));
    Verifier::new("one").script(&format!("{}case_ok a\nfinish", counting(&one))).commit(&repo);
    Verifier::new("two").script(&format!("{}case_ok a\nfinish", counting(&two))).commit(&repo);
    repo.submitted(&Contract::new("t1").allowed(&["one", "two"]), |task| task.write("src/a.txt", "x\n"));
    let answer = repo.json(&["verify", "t1", "--only", "one"]);
    assert_eq!((runs(&one), runs(&two)), (1, 0));
    assert_eq!(answer.verdict("one"), "passed");
    repo.json(&["verify", "t1", "--only", "three"]).fails_one_of(&["not_found", "arguments.invalid"]);
    let text = repo.tender(&["verify", "t1", "--explain"]).all();
    assert!(text.contains("one") && text.contains("two"), "{text}");
    assert_eq!(repo.json(&["deliver", "t1", "--dry-run"]).code, i32::from(runs(&two) == 0));
}

#[test]
fn the_live_tree_and_the_worktree_do_not_matter_to_a_verifier() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    unit("test \"$(cat src/a.txt)\" = candidate || exit 3\ncase_ok a\nfinish").commit(&repo);
    let task = repo
        .submitted(&Contract::new("t1").allowed(&["unit"]), |task| task.write("src/a.txt", "candidate\n"));
    task.write("src/a.txt", "later work, not submitted\n");
    repo.write("src/a.txt", "dirty live\n");
    assert_eq!(repo.json(&["verify", "t1"]).ok().verdict("unit"), "passed");
}

/// The name of a test is the candidate's own word: it can paint nothing over the verdict.
#[test]
fn what_a_log_names_cannot_act_on_a_terminal() {
    let lab = Lab::new();
    let script =
        "printf 'test a\\r\\033[2K  passed (1 ran) ... FAILED\\n'\nprintf '\\033[2Jraw\\n'\nbad=1\nfinish";
    let repo = lab.repo("app").with(&Verifier::new("unit").script(script));
    repo.submitted(&Contract::new("t1").allowed(&["unit"]), |task| task.write("src/a.txt", "x\n"));
    repo.tender(&["verify", "t1"]).exits(1);
    let rows = repo.json(&["report", "t1"]).ok().json;
    assert!(
        rows["requirements"][0]["reason"].as_str().is_some_and(|reason| reason.contains('\u{1b}')),
        "{rows:#}"
    );
    let evidence = rows["requirements"][0]["evidence"].as_str().expect("evidence").to_owned();
    let commands: [&[&str]; 6] = [
        &["report", "t1"],
        &["verify", "t1"],
        &["verify", "t1", "--explain"],
        &["deliver", "t1"],
        &["ship", "t1"],
        &["show", &evidence],
    ];
    for command in commands {
        let shown = repo.tender(command).all();
        assert!(!shown.contains(['\u{1b}', '\r']), "{command:?}: {shown:?}");
        assert!(shown.contains("\\u{1b}[2K"), "{command:?}: {shown:?}");
    }
}
