//! What failed once and passes now: the environment's failures, and how a person clears what is flaky.

use crate::support::verifier::{Counts, counting, runs};
use crate::support::{Contract, Lab, Repo, Verifier};
use serde_json::json;

/// A candidate of a task with this id, always the same bytes.
fn candidate(repo: &Repo<'_>, id: &str) {
    repo.submitted(&Contract::new(id).allowed(&["unit"]), |task| task.write("src/a.txt", "candidate\n"));
}

#[test]
fn what_is_flaky_is_cleared_by_three_passes_in_a_row_and_all_runs_are_kept() {
    for counts in [Counts::Nothing, Counts::Libtest] {
        let lab = Lab::new();
        let repo = lab.repo("app");
        let (wanted, count) = (lab.path("wanted"), lab.path("count"));
        let script = format!("{}cat '{}' && case_ok a\nfinish", counting(&count), wanted.display());
        let script = if counts == Counts::Nothing {
            script.replace("&&", "|| exit 1;")
        } else {
            script.replace("&& case_ok a", "&& case_ok a || case_bad a")
        };
        Verifier::new("unit").counts(counts).script(&script).commit(&repo);
        candidate(&repo, "t1");
        assert_eq!(repo.json(&["verify", "t1"]).verdict("unit"), "failed");
        std::fs::write(&wanted, "there now\n").expect("writes");
        let answer = repo.json(&["verify", "t1"]).result(1);
        assert!(answer.reason("unit").starts_with("flaky"), "{:#}", answer.json);
        let refused = repo.json(&["deliver", "t1"]);
        let remedy = &refused.fails("verification.failed")["remedy"]["command"];
        assert_eq!(*remedy, json!(["git", "tender", "verify", "t1", "--again"]));
        assert_eq!(runs(&count), 2);
        // The same bytes in another task are as flaky as here.
        candidate(&repo, "t2");
        assert_eq!(repo.json(&["verify", "t2"]).verdict("unit"), "failed");
        assert_eq!(runs(&count), 3);

        assert_eq!(repo.json(&["verify", "t1", "--again"]).ok().verdict("unit"), "passed");
        assert_eq!(runs(&count), 6, "three passes, counted from the request");
        let log = repo.tender(&["log", "t1", "--format", "json"]).exits(0).text();
        assert_eq!(log.matches("\"record\":\"evidence\"").count(), 5, "all runs are kept");
        assert_eq!(repo.json(&["verify", "t2"]).ok().verdict("unit"), "passed", "cleared in every task");
        assert_eq!(runs(&count), 6);
        repo.json(&["deliver", "t1"]).ok();
    }
}

#[test]
fn a_failure_among_the_runs_clears_nothing() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let count = lab.path("count");
    // The first and the fourth run fail.
    let script = format!(
        "{}case $(wc -l < '{}') in 1|4) case_bad a;; *) case_ok a;; esac\nfinish",
        counting(&count),
        count.display()
    );
    Verifier::new("unit").script(&script).commit(&repo);
    candidate(&repo, "t1");
    assert_eq!(repo.json(&["verify", "t1"]).verdict("unit"), "failed");
    assert_eq!(repo.json(&["verify", "t1"]).verdict("unit"), "failed", "flaky");
    assert_eq!(repo.json(&["verify", "t1", "--again"]).verdict("unit"), "failed");
    assert_eq!(runs(&count), 4, "it stops at a failure");
    repo.json(&["deliver", "t1"]).fails("verification.failed");
    assert_eq!(repo.json(&["verify", "t1", "--again"]).ok().verdict("unit"), "passed");
    assert_eq!(runs(&count), 7);
}

#[test]
fn a_failure_of_the_environment_is_no_half_of_flaky() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let wanted = lab.path("wanted");
    let script = format!(
        "test -e '{}' || {{ echo 'error: no matching package named `itoa` found' >&2; exit 101; }}\ncase_ok a\nfinish",
        wanted.display()
    );
    Verifier::new("unit").script(&script).commit(&repo);
    candidate(&repo, "t1");
    let answer = repo.json(&["verify", "t1"]).result(1);
    assert_eq!(answer.verdict("unit"), "error");
    assert!(answer.reason("unit").contains("cargo fetch"), "{:#}", answer.json);
    repo.json(&["deliver", "t1"]).fails_one_of(&["verifier.protocol", "verification.failed"]);
    std::fs::write(&wanted, "there now\n").expect("writes");
    let answer = repo.json(&["verify", "t1"]).ok();
    assert_eq!((answer.verdict("unit"), answer.row("unit")["reason"].is_null()), ("passed", true));
    repo.json(&["deliver", "t1"]).ok();
}

#[test]
fn cargo_says_by_itself_whose_failure_it_is() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let Some(rustup) = lab.rustup_home() else { return };
    repo.write("src/lib.rs", "pub fn one() -> u8 { 1 }\n#[test] fn t() { assert_eq!(one(), 1); }\n");
    repo.write("Cargo.toml", "[package]\nname = \"m\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
    let command = "command = [\"cargo\", \"test\", \"--offline\", \"--lib\"]";
    let verifier = Verifier::new("unit").counts(Counts::Libtest).inputs(&["src/**", "Cargo.toml"]);
    let verifier =
        verifier.key(command).key("scratch = [\"target/\", \"Cargo.lock\"]\nenv = [\"RUSTUP_HOME\"]");
    verifier.commit(&repo);
    let judged = |id: &str, path: &str, text: &str| {
        repo.submitted(&Contract::new(id).set("writeScope", json!(["**"])).allowed(&["unit"]), |task| {
            task.write(path, text);
        });
        repo.json_in("", &[("RUSTUP_HOME", &rustup)], None, &["verify", id])
    };
    let broken = judged("t1", "src/lib.rs", "pub fn one() -> u8 { \"1\" }\n#[test] fn t() {}\n");
    assert_eq!(broken.verdict("unit"), "failed", "{:#}", broken.json);
    assert!(
        broken.reason("unit").contains("did not build: exit code 101, src/lib.rs:1"),
        "{:#}",
        broken.json
    );
    let manifest = "[package]\nname = \"m\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\nno-crate-of-this-name = \"1\"\n";
    let missing = judged("t2", "Cargo.toml", manifest);
    assert_eq!(missing.verdict("unit"), "error", "{:#}", missing.json);
    assert!(missing.reason("unit").contains("run `cargo fetch`"), "{:#}", missing.json);
}
