//! Evidence: what makes it stale, what leaves it fresh, what brings it back; who judges.

use crate::independent::{canonical, sha256};
use crate::support::verifier::{counting, runs};
use crate::support::{Contract, Lab, Repo, Task, Verifier};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A repository with a counted verifier over `src/**`, and a verified candidate.
fn verified(lab: &Lab) -> (Repo<'_>, Task, PathBuf) {
    let repo = lab.repo("app");
    let count = lab.path("count");
    let script = format!("{}grep -q BAD src/a.txt && case_bad a\ncase_ok b\nfinish", counting(&count));
    Verifier::new("unit").script(&script).commit(&repo);
    let task =
        repo.submitted(&Contract::new("t1").allowed(&["unit"]), |task| task.write("src/a.txt", "one\n"));
    assert_eq!(repo.json(&["verify", "t1"]).ok().verdict("unit"), "passed");
    assert_eq!(runs(&count), 1);
    (repo, task, count)
}

/// Submits and returns what the report says of `unit`.
#[track_caller]
fn reported(repo: &Repo<'_>) -> String {
    repo.json(&["submit", "t1"]).ok();
    repo.json(&["report", "t1"]).ok().verdict("unit").to_owned()
}

#[test]
fn one_byte_makes_it_stale_and_putting_it_back_makes_it_fresh() {
    let lab = Lab::new();
    let (repo, task, count) = verified(&lab);
    task.write("src/a.txt", "onf\n");
    assert_eq!(reported(&repo), "stale");
    let report = repo.json(&["report", "t1"]).ok();
    assert!(report.reason("unit").contains("src/a.txt"), "which input changed: {:#}", report.json);
    assert_eq!(report.json["state"], "candidate");
    repo.json(&["deliver", "t1"]).fails("evidence.stale");
    task.write("src/a.txt", "one\n");
    assert_eq!(reported(&repo), "passed");
    let answer = repo.json(&["verify", "t1"]).ok();
    assert_eq!(answer.row("unit")["reused"], true);
    assert_eq!(runs(&count), 1, "nothing ran again");
    repo.json(&["deliver", "t1"]).ok();
}

#[test]
fn touching_a_file_leaves_it_fresh() {
    let lab = Lab::new();
    let (repo, task, count) = verified(&lab);
    let file = std::fs::File::options().write(true).open(task.worktree.join("src/a.txt")).expect("opens");
    file.set_modified(std::time::SystemTime::UNIX_EPOCH).expect("sets");
    drop(file);
    assert_eq!(reported(&repo), "passed");
    assert_eq!(repo.json(&["verify", "t1"]).ok().row("unit")["reused"], true);
    assert_eq!(runs(&count), 1);
}

#[test]
fn a_changed_mode_and_an_added_or_removed_input_make_it_stale() {
    type Act = fn(&Task);
    let changes: &[(&str, Act, Act)] = &[
        ("mode", |t| t.chmod("src/a.txt", 0o755), |t| t.chmod("src/a.txt", 0o644)),
        ("added", |t| t.write("src/deep/new.txt", "n\n"), |t| t.rm("src/deep/new.txt")),
        ("removed", |t| t.rm("src/b.txt"), |t| t.write("src/b.txt", "beta\n")),
        (
            "type",
            |t| {
                t.rm("src/b.txt");
                t.link("src/b.txt", "a.txt");
            },
            |t| {
                t.rm("src/b.txt");
                t.write("src/b.txt", "beta\n");
            },
        ),
    ];
    let lab = Lab::new();
    let (repo, task, count) = verified(&lab);
    for (name, act, back) in changes {
        act(&task);
        assert_eq!(reported(&repo), "stale", "{name}");
        back(&task);
        assert_eq!(reported(&repo), "passed", "{name}, taken back");
    }
    assert_eq!(runs(&count), 1);
}

#[test]
fn a_file_outside_the_inputs_leaves_it_fresh() {
    let lab = Lab::new();
    let (repo, task, count) = verified(&lab);
    task.write("docs/a.md", "elsewhere\n");
    task.write("srcx/new.txt", "elsewhere\n");
    assert_eq!(reported(&repo), "passed");
    assert_eq!(repo.json(&["verify", "t1"]).ok().row("unit")["reused"], true);
    assert_eq!(runs(&count), 1);
    repo.json(&["deliver", "t1"]).ok();
}

#[test]
fn verify_with_everything_fresh_runs_nothing_and_names_the_evidence() {
    let lab = Lab::new();
    let (repo, _, count) = verified(&lab);
    let first = repo.json(&["report", "t1"]).ok().row("unit")["evidence"].clone();
    let answer = repo.json(&["verify", "t1"]).ok();
    assert_eq!(answer.row("unit")["evidence"], first);
    assert_eq!(runs(&count), 1);
    let shown = repo.tender(&["show", first.as_str().expect("a reference")]).ok().text();
    assert!(shown.contains("unit"), "{shown}");
    let text = repo.tender(&["verify", "t1"]).ok().text();
    assert!(
        text.contains(&first.as_str().expect("text")[..14]) || text.to_lowercase().contains("fresh"),
        "{text}"
    );
}

#[test]
fn a_failure_is_never_reused() {
    let lab = Lab::new();
    let (repo, task, count) = verified(&lab);
    task.write("src/a.txt", "BAD\n");
    repo.json(&["submit", "t1"]).ok();
    for expected in [2, 3] {
        let answer = repo.json(&["verify", "t1"]).result(1);
        assert_eq!(
            (answer.verdict("unit"), &answer.row("unit")["reused"]),
            ("failed", &serde_json::json!(false))
        );
        assert_eq!(runs(&count), expected);
    }
    assert_eq!(repo.json(&["report", "t1"]).ok().json["state"], "verification_failed");
    repo.json(&["deliver", "t1"]).fails("verification.failed");
}

#[test]
fn reuse_never_runs_each_time() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let count = lab.path("count");
    Verifier::new("unit")
        .script(&format!("{}case_ok a\nfinish", counting(&count)))
        .key("reuse = \"never\"")
        .commit(&repo);
    repo.submitted(&Contract::new("t1").allowed(&["unit"]), |task| task.write("src/a.txt", "x\n"));
    for expected in [1, 2] {
        repo.json(&["verify", "t1"]).ok();
        assert_eq!(runs(&count), expected);
    }
}

#[test]
fn another_task_with_the_same_inputs_reuses_the_pass() {
    let lab = Lab::new();
    let (repo, _, count) = verified(&lab);
    repo.submitted(&Contract::new("t2").allowed(&["unit"]), |task| task.write("src/a.txt", "one\n"));
    let answer = repo.json(&["verify", "t2"]).ok();
    assert_eq!(answer.row("unit")["reused"], true);
    assert_eq!(runs(&count), 1);
}

#[test]
fn a_changed_verifier_at_the_base_makes_its_evidence_worthless() {
    let lab = Lab::new();
    let (repo, _, count) = verified(&lab);
    let script = format!("{}case_ok another\nfinish", counting(&count));
    Verifier::new("unit").script(&script).commit(&repo);
    repo.submitted(&Contract::new("t2").allowed(&["unit"]), |task| task.write("src/a.txt", "one\n"));
    let answer = repo.json(&["verify", "t2"]).ok();
    assert_eq!(answer.row("unit")["reused"], false);
    assert_eq!(runs(&count), 2);
}

#[test]
fn a_tool_that_was_replaced_makes_it_stale() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let count = lab.path("count");
    let bin = lab.path("bin");
    std::fs::create_dir(&bin).expect("creates");
    let tool = Repo::at(&lab, bin.clone());
    tool.write("mytool", "#!/bin/sh\necho 1.0\n");
    tool.chmod("mytool", 0o755);
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").expect("PATH"));
    let env = [("PATH", path.as_str())];
    Verifier::new("unit")
        .script(&format!("{}mytool >/dev/null || exit 3\ncase_ok a\nfinish", counting(&count)))
        .key("tools = [{ name = \"mytool\", probe = [\"mytool\", \"--version\"] }]")
        .commit(&repo);
    repo.submitted(&Contract::new("t1").allowed(&["unit"]), |task| task.write("src/a.txt", "x\n"));
    repo.json_in("", &env, None, &["verify", "t1"]).ok();
    assert_eq!(repo.json_in("", &env, None, &["verify", "t1"]).ok().row("unit")["reused"], true);
    tool.write("mytool", "#!/bin/sh\necho 2.0\n");
    let answer = repo.json_in("", &env, None, &["verify", "t1"]).ok();
    assert_eq!(answer.row("unit")["reused"], false);
    assert_eq!(runs(&count), 2);
}

#[test]
fn the_bases_script_judges_though_the_candidate_changed_it_and_a_person_must_confirm() {
    let lab = Lab::new();
    let (repo, task, _) = verified(&lab);
    repo.approve_without_terminal();
    let unit = Verifier::new("unit").script("case_ok always\nfinish");
    task.write("src/a.txt", "BAD\n");
    task.write(unit.script_path(), unit.script_text());
    repo.json(&["submit", "t1"]).ok();
    let answer = repo.json(&["verify", "t1"]).result(1);
    assert_eq!(answer.verdict("unit"), "failed", "the base's version judges");
    assert_eq!(answer.row("unit")["judgeChanged"], true);
    // A good change that also touches the judge: proven by the base's judge, and a person confirms.
    task.write("src/a.txt", "good\n");
    repo.json(&["submit", "t1"]).ok();
    let answer = repo.json(&["verify", "t1"]).result(6);
    assert_eq!(answer.row("unit")["judgeChanged"], true);
    assert_eq!(answer.verdict("protected"), "needs_confirmation");
    assert_eq!(answer.row("protected")["required"], true);
    repo.json(&["deliver", "t1"]).fails("confirmation.required");
    repo.json(&["attest", "t1", "protected", "--pass", "-m", "read the new script"]).ok();
    repo.json(&["deliver", "t1"]).ok();
    let report = repo.json(&["report", "t1"]).ok();
    assert!(report.has_risk("protected"), "{:#}", report.json["risks"]);
}

#[test]
fn the_manifest_and_other_closure_files_are_judged_likewise() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.write("tools/limit", "5\n");
    let unit = Verifier::new("unit").script("test \"$(cat tools/limit)\" = 5 || exit 3\ncase_ok a\nfinish");
    repo.write(unit.script_path(), unit.script_text());
    let manifest = unit.manifest().replace("closure = [", "closure = [\"tools/limit\", ");
    repo.write(unit.manifest_path(), &manifest);
    repo.commit("verifier");
    let task =
        repo.submitted(&Contract::new("t1").allowed(&["unit"]), |task| task.write("tools/limit", "50\n"));
    let answer = repo.json(&["verify", "t1"]).result(6);
    assert_eq!(answer.verdict("unit"), "passed", "the base's closure stands in the slot: {:#}", answer.json);
    assert_eq!(answer.row("unit")["judgeChanged"], true);
    assert_eq!(answer.verdict("protected"), "needs_confirmation");
    task.write("tools/limit", "5\n");
    task.write(unit.manifest_path(), manifest.replace("protocol = 1", "protocol = 1\ntimeout = \"1s\""));
    repo.json(&["submit", "t1"]).ok();
    assert_eq!(repo.json(&["verify", "t1"]).result(6).row("unit")["judgeChanged"], true);
}

#[test]
fn what_a_candidate_left_in_the_scratch_never_judges_another_one() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let script = "mkdir -p cache; if grep -q plant src/a.txt; then touch cache/ok; fi\ntest -e cache/ok && case_ok a || case_bad a\nfinish";
    Verifier::new("unit").script(script).key("scratch = [\"cache/\"]").commit(&repo);
    let task =
        repo.submitted(&Contract::new("t1").allowed(&["unit"]), |task| task.write("src/a.txt", "plant\n"));
    repo.json(&["verify", "t1"]).ok();
    task.write("src/a.txt", "clean\n");
    repo.json(&["submit", "t1"]).ok();
    let answer = repo.json(&["verify", "t1"]);
    assert_eq!(answer.verdict("unit"), "failed", "nor for the same task: {:#}", answer.json);
    repo.submitted(&Contract::new("t2").allowed(&["unit"]), |task| task.write("src/a.txt", "clean\n"));
    let answer = repo.json(&["verify", "t2"]);
    assert_eq!(answer.verdict("unit"), "failed", "{:#}", answer.json);
}

#[test]
fn a_run_begins_with_what_the_base_left_and_builds_what_differs() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    // Times decide, as they do for cargo. The copy of what the base built is older than what differs from the
    // base, and newer than what does not.
    let makefile = "target/all: target/same target/other\n\tcat $^ > $@\n\
                    target/%: src/%\n\tmkdir -p target; cp $< $@; echo $* >> $(TENDER_OUT)/built\n";
    repo.write("src/Makefile", makefile);
    repo.write("src/same", "1\n");
    repo.write("src/other", "1\n");
    let script = "make -s -f src/Makefile target/all >&2\n\
                  test \"$(cat \"$TENDER_OUT/built\")\" = other && case_ok built || case_bad built\n\
                  grep -q 2 target/all && case_bad two || case_ok two\nfinish";
    Verifier::new("unit").script(script).key("scratch = [\"target/\"]").commit(&repo);
    let task = repo.submitted(&Contract::new("t1").allowed(&["unit"]), |task| task.write("src/other", "2\n"));
    for (text, verdict) in [("2\n", "failed"), ("3\n", "passed"), ("2\n# again\n", "failed")] {
        task.write("src/other", text);
        repo.json(&["submit", "t1"]);
        let answer = repo.json(&["verify", "t1"]);
        assert_eq!(answer.verdict("unit"), verdict, "{text:?}: {:#}", answer.json);
        assert_eq!(answer.row("unit")["checks"]["failed"], u64::from(verdict == "failed"), "{text:?}");
    }
}

#[test]
fn what_a_run_puts_above_its_slot_is_removed_and_its_own_error() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let script = "grep -q plant src/a.txt && echo x > ../../pytest.ini\n\
                  grep -q higher src/a.txt && echo x > ../../../../setup.cfg\n\
                  test -e ../../pytest.ini && case_bad above || case_ok above\nfinish";
    Verifier::new("unit").script(script).commit(&repo);
    let task =
        repo.submitted(&Contract::new("t1").allowed(&["unit"]), |task| task.write("src/a.txt", "plant\n"));
    let planted = lab.path("app.tender/.slots/pytest.ini");
    let answer = repo.json(&["verify", "t1"]);
    assert_eq!(answer.verdict("unit"), "error", "{:#}", answer.json);
    assert!(answer.reason("unit").contains("pytest.ini"), "{:#}", answer.json);
    assert!(!planted.exists());
    // Somebody else's is removed before a run, which is judged as if it had not been there.
    std::fs::write(&planted, "x").expect("written");
    task.write("src/a.txt", "clean\n");
    repo.json(&["submit", "t1"]);
    let answer = repo.json(&["verify", "t1"]);
    assert_eq!(answer.verdict("unit"), "passed", "{:#}", answer.json);
    assert!(!planted.exists());
    // What is not ours is left, and slots lie elsewhere from then on.
    task.write("src/a.txt", "higher\n");
    repo.json(&["submit", "t1"]);
    let answer = repo.json(&["verify", "t1"]);
    assert_eq!(answer.verdict("unit"), "error", "{:#}", answer.json);
    assert!(
        answer.reason("unit").contains("setup.cfg") && lab.path("setup.cfg").exists(),
        "{:#}",
        answer.json
    );
    std::fs::remove_dir_all(lab.path("app.tender/.slots")).expect("removed");
    task.write("src/a.txt", "clean again\n");
    repo.json(&["submit", "t1"]);
    let answer = repo.json(&["verify", "t1"]);
    assert_eq!(answer.verdict("unit"), "passed", "{:#}", answer.json);
    assert!(!lab.path("app.tender/.slots/unit-0").exists());
}

#[test]
fn what_is_read_is_in_the_key_and_may_not_be_written() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let data = lab.path("what-is-read");
    std::fs::create_dir(&data).expect("made");
    std::fs::write(data.join("limit"), "1\n").expect("written");
    let place = data.display();
    let script = format!(
        "grep -q spoil src/a.txt && echo 3 > {place}/planted\ngrep -q 2 {place}/limit && case_bad a || case_ok a\nfinish"
    );
    let keys = format!("read = [\"{place}\"]");
    Verifier::new("unit").script(&script).key(&keys).commit(&repo);
    let task = repo.submitted(&Contract::new("t1").allowed(&["unit"]), |task| task.write("src/a.txt", "1\n"));
    assert_eq!(repo.json(&["verify", "t1"]).ok().verdict("unit"), "passed");
    std::fs::write(data.join("limit"), "2\n").expect("written");
    let answer = repo.json(&["verify", "t1"]);
    assert_eq!(answer.verdict("unit"), "failed", "{:#}", answer.json);
    std::fs::write(data.join("limit"), "1\n").expect("written");
    assert_eq!(repo.json(&["verify", "t1"]).ok().verdict("unit"), "passed", "the same bytes again");
    task.write("src/a.txt", "spoil\n");
    repo.json(&["submit", "t1"]);
    let answer = repo.json(&["verify", "t1"]);
    assert_eq!(answer.verdict("unit"), "error", "{:#}", answer.json);
    assert!(answer.reason("unit").contains("may only read"), "{:#}", answer.json);
}

/// The digest of the files of a stored listing, folder by folder.
fn listing_digest(store: &Path, listing: &str) -> String {
    let mut root = Map::new();
    for file in listed_files(store, listing) {
        let path = file["path"].as_str().expect("a path").to_owned();
        let mut names: Vec<&str> = path.split('/').collect();
        let name = names.pop().expect("a name");
        let mut folder = &mut root;
        for above in names {
            let below = folder.entry(above).or_insert_with(|| json!({}));
            folder = below.as_object_mut().expect("a folder");
        }
        folder.insert(name.to_owned(), json!([file["gitBlob"], file["mode"], file["sha256"]]));
    }
    folder_digest(&root)
}

fn folder_digest(folder: &Map<String, Value>) -> String {
    let mut names: Vec<&String> = folder.keys().collect();
    names.sort_by_key(|name| name.as_bytes());
    let entries: Vec<Value> = names
        .into_iter()
        .map(|name| match &folder[name] {
            Value::Object(below) => json!({"files": folder_digest(below), "name": name}),
            file => json!({"gitBlob": file[0], "mode": file[1], "name": name, "sha256": file[2]}),
        })
        .collect();
    sha256(canonical(&Value::Array(entries)).as_bytes())
}

/// A listing stands whole, or as what differs from another one.
fn listed_files(store: &Path, listing: &str) -> Vec<Value> {
    let blob = store.join("blobs/sha256").join(&listing[..2]).join(&listing[2..]);
    let bytes = std::fs::read(&blob).expect("a stored listing");
    assert_eq!(sha256(&bytes), listing, "a blob is named by its digest");
    let stored: Value = serde_json::from_slice(&bytes).expect("JSON");
    let mut files: BTreeMap<String, Value> = BTreeMap::new();
    if let Some(other) = stored["differsFrom"].as_str() {
        files.extend(listed_files(store, other).into_iter().map(|file| (file["path"].to_string(), file)));
    }
    for path in stored["without"].as_array().expect("paths") {
        files.remove(&path.to_string());
    }
    for file in stored["files"].as_array().expect("files") {
        files.insert(file["path"].to_string(), file.clone());
    }
    files.into_values().collect()
}

#[test]
fn the_inputs_of_a_record_are_the_digest_of_its_listed_folders() {
    let lab = Lab::new();
    let repo = lab.repo("r").with(&Verifier::new("unit").inputs(&["src/", "docs/**/*.md"]));
    for round in 0..3 {
        let id = format!("t{round}");
        let contract = Contract::new(&id).scope(&["**"]).allowed(&["unit"]);
        let task = repo.submitted(&contract, |task| {
            task.write("src/a.txt", format!("{round}\n"));
            task.write(format!("src/new/{round}/a-b"), "new\n");
            task.write(format!("src/new/{round}/a/b"), "new\n");
            task.write("docs/x/y.md", format!("{round}\n"));
        });
        repo.json(&["verify", &task.id, "--only", "unit"]);
    }
    let rows = crate::independent::rows(&repo.store()).expect("reads");
    let records: Vec<_> = rows.iter().filter(|row| row.record() == "evidence").collect();
    let mut compared = 0;
    for record in records.iter().map(|row| &row.result) {
        let Some(listing) = record["listing"].as_str() else { continue };
        let digest = listing_digest(&repo.store(), listing);
        assert_eq!(record["key"]["inputs"], digest.as_str());
        compared += 1;
    }
    assert!(compared >= 3, "{records:?}");
}
