//! Runs that begin with a copy of what a run on the base built, by tools that go by the times of files: what
//! differs from the base is built anew, what does not is not, and nothing of an earlier change is left.

use crate::support::verifier::{Counts, counting, runs};
use crate::support::{Contract, Lab, Repo, Verifier};
use std::path::Path;

/// The verdict of a change of some files.
#[track_caller]
fn verdict(
    repo: &Repo<'_>,
    id: &str,
    verifier: &str,
    env: &[(&str, &str)],
    files: &[(&str, &str)],
) -> String {
    let task = repo.submitted(&Contract::new(id).allowed(&[verifier]), |task| {
        files.iter().for_each(|(path, text)| task.write(path, text));
    });
    repo.json_in("", env, None, &["verify", &task.id]).verdict(verifier).to_owned()
}

const AGES: &str =
    "find build -type f -exec sh -c 'echo good > \"$1\"; touch -d 2099-01-01 \"$1\"' - {} \\;\n";

#[test]
fn make_builds_what_differs_from_the_base_and_nothing_else() {
    let lab = Lab::new();
    if !lab.has_tool("make", "--version") {
        return;
    }
    let repo = lab.repo("app");
    let (slow, quick) = (lab.path("slow"), lab.path("quick"));
    let rule = |name: &str, counted: &Path| {
        let counted = counting(counted);
        format!("build/{name}: src/{name}\n\t@mkdir -p build; cp $< $@; {counted}")
    };
    repo.write("src/slow", "good\n");
    repo.write("src/quick", "good\n");
    repo.write("hook.sh", "true\n");
    let (slow_rule, quick_rule) = (rule("slow", &slow), rule("quick", &quick));
    let makefile = format!(
        "test: build/slow build/quick\n\t@grep -q good build/slow && grep -q good build/quick\n\t@sh hook.sh\n{slow_rule}{quick_rule}"
    );
    repo.write("Makefile", makefile);
    let unit = Verifier::new("unit").inputs(&["**"]).counts(Counts::Nothing);
    unit.key("command = [\"make\", \"-s\", \"test\"]\nscratch = [\"build/\"]").commit(&repo);
    let bad = |id: &str, text: &str| verdict(&repo, id, "unit", &[], &[("src/quick", text)]);
    assert_eq!(verdict(&repo, "t1", "unit", &[], &[("src/quick", "good and more\n")]), "passed");
    let built = runs(&slow);
    assert_eq!(bad("t2", "bad\n"), "failed", "what differs is newer than all of the copy");
    assert_eq!(verdict(&repo, "t3", "unit", &[], &[("hook.sh", AGES)]), "passed");
    assert_eq!(bad("t4", "bad again\n"), "failed", "what a run made of the copy is laid anew");
    assert_eq!((built, runs(&slow)), (1, 1), "what the base built is built once");
    assert!(runs(&quick) >= 4, "{}", runs(&quick));
}

#[test]
fn cargo_builds_what_differs_from_the_base() {
    let lab = Lab::new();
    let Some(rustup) = lab.rustup_home() else { return };
    let repo = lab.repo("app");
    repo.write("Cargo.toml", "[package]\nname = \"adder\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
    repo.write("Cargo.lock", "version = 3\n[[package]]\nname = \"adder\"\nversion = \"0.1.0\"\n");
    repo.write("src/lib.rs", "pub fn add(a: u32, b: u32) -> u32 { a + b }\n");
    let test = "#[test] fn one() { assert_eq!(adder::add(1, 2), 3); }\n";
    repo.write("tests/api.rs", test);
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("verifiers/cargo-test/verifier.toml");
    let manifest = std::fs::read_to_string(shipped).expect("reads");
    repo.write(".tender/verifiers/cargo-test/verifier.toml", format!("{manifest}env = [\"RUSTUP_HOME\"]\n"));
    repo.commit("code");
    let env = [("RUSTUP_HOME", rustup.as_str())];
    let broken = ("src/lib.rs", "pub fn add(a: u32, b: u32) -> u32 { a * b + 7 }\n");
    let ships = |id: &str, file: (&str, &str)| verdict(&repo, id, "cargo-test", &env, &[file]);
    assert_eq!(ships("t1", broken), "failed");
    let ages = test.replace("3); }", "3); std::process::Command::new(\"sh\").args([\"-c\", \"find target -exec touch -d 2099-01-01 {} +\"]).status().unwrap(); }");
    assert_eq!(ships("t2", ("tests/api.rs", &ages)), "passed");
    let other = ("src/lib.rs", "pub fn add(a: u32, b: u32) -> u32 { a * b + 8 }\n");
    assert_eq!(ships("t3", other), "failed", "what a run made of the copy is laid anew");
}
