//! `check`: what is staged, a range or the live tree, without a task; and nothing of the user's is touched.

use crate::cancel::{background, wait_for};
use crate::support::verifier::{Counts, counting, runs};
use crate::support::{Answer, Contract, Lab, Repo, Snapshot, Task, Verifier};
use serde_json::json;
use std::os::unix::fs::MetadataExt as _;

/// The user's files, index and stash, the index to its bytes and its time.
pub struct Untouched {
    seen: Snapshot,
    index: Option<(Vec<u8>, i64, i64, u64)>,
}

impl Untouched {
    pub fn of(repo: &Repo<'_>) -> Self {
        // Asking git for a state refreshes the index; once it has, it has nothing left to write.
        repo.git_out(&["status"]);
        let seen = Snapshot::of(repo);
        Self { seen, index: index_of(repo) }
    }

    #[track_caller]
    pub fn is_still_so(&self, repo: &Repo<'_>) {
        assert!(self.index == index_of(repo), "the index file changed");
        self.seen.same(&Snapshot::of(repo));
    }
}

fn index_of(repo: &Repo<'_>) -> Option<(Vec<u8>, i64, i64, u64)> {
    let path = repo.git(&["rev-parse", "--path-format=absolute", "--git-path", "index"]);
    let found = std::fs::metadata(&path).ok()?;
    let bytes = std::fs::read(&path).expect("reads");
    Some((bytes, found.mtime(), found.mtime_nsec(), found.ino()))
}

fn ids(answer: &Answer) -> Vec<&str> {
    answer.json["requirements"]
        .as_array()
        .expect("rows")
        .iter()
        .filter_map(|row| row["id"].as_str())
        .collect()
}

/// Writes a verifier into the user's private layer.
pub fn write_private(repo: &Repo<'_>, verifier: &Verifier, id: &str) {
    let folder = repo.store().join("local/verifiers").join(id);
    std::fs::create_dir_all(&folder).expect("made");
    std::fs::write(folder.join("verifier.toml"), verifier.manifest()).expect("written");
    std::fs::write(folder.join("run.sh"), verifier.script_text()).expect("written");
}

/// `unit` looks at `src/`, `text` at `docs/`; each wants the word `good`.
fn repo_with_verifiers(lab: &Lab) -> Repo<'_> {
    let repo = lab.repo("app");
    repo.write("src/a.txt", "good\n");
    repo.write("docs/a.md", "good\n");
    repo.commit("files");
    let ran = counting(&lab.path("unit-ran"));
    let unit = format!("{ran}grep -q good src/a.txt && case_ok unit || case_bad unit\nfinish\n");
    Verifier::new("unit").script(&unit).commit(&repo);
    let text = "grep -q good docs/a.md && case_ok text || case_bad text\nfinish\n";
    Verifier::new("text").inputs(&["docs/**"]).script(text).commit(&repo);
    repo
}

#[test]
fn what_is_staged_is_checked_by_those_whom_it_concerns() {
    let lab = Lab::new();
    let repo = repo_with_verifiers(&lab);
    repo.write("src/a.txt", "good and staged\n");
    repo.git(&["add", "src/a.txt"]);
    // The same line once more, and a new file: nobody staged them.
    repo.write("src/a.txt", "bad\n");
    repo.write("docs/a.md", "bad\n");
    repo.write("src/new.txt", "bad\n");
    let before = Untouched::of(&repo);
    let answer = repo.json(&["check"]).ok();
    assert_eq!((&answer.json["taskId"], &answer.json["candidate"]), (&json!(null), &json!(null)));
    assert_eq!(answer.json["schema"], "git-tender/verification/v1");
    assert_eq!((answer.verdict("unit"), answer.verdict("text")), ("passed", "not_run"));
    assert_eq!(answer.row("text")["required"], json!(false));
    assert_eq!(answer.json["checked"]["changes"], json!(1), "{:#}", answer.json);
    before.is_still_so(&repo);
    repo.git(&["add", "src/a.txt"]);
    let text = repo.tender(&["check"]).exits(1).text();
    assert!(text.contains("failed") && text.contains("git tender show sha256:"), "{text}");
    assert!(text.contains("not concerned: text") && text.contains("1 failed"), "{text}");
    let answer = repo.json(&["check", "--staged"]).result(1);
    let run = &answer.json["runs"][0];
    assert_eq!(run["verifier"], "unit", "{:#}", answer.json);
    let log = run["logs"][0]["ref"].as_str().expect("a log").to_owned();
    assert!(repo.tender(&["show", &log]).ok().text().contains("test unit ... FAILED"));
}

#[test]
fn evidence_is_reused_by_checks_and_by_tasks() {
    let lab = Lab::new();
    let repo = repo_with_verifiers(&lab);
    repo.write("src/a.txt", "good, better\n");
    repo.git(&["add", "-A"]);
    assert_eq!(repo.json(&["check"]).ok().row("unit")["reused"], json!(false));
    let rows = repo.tender(&["log"]).ok().text();
    assert!(rows.contains("check") && !rows.contains("unfinished"), "{rows}");
    let again = repo.json(&["check"]).ok();
    assert_eq!(again.row("unit")["reused"], json!(true));
    assert_eq!(repo.tender(&["log"]).ok().text(), rows, "nothing ran, nothing is written");
    let task = Task::of(&repo.json(&["start", "goal", "--scope", "src/"]).ok().json);
    task.write("src/a.txt", "good, better\n");
    repo.json(&["submit", "t1"]).ok();
    assert_eq!(repo.json(&["verify", "t1"]).ok().row("unit")["reused"], json!(true));
    assert_eq!(runs(&lab.path("unit-ran")), 1);
    let faults = crate::independent::faults(&crate::independent::rows(&repo.store()).expect("reads"));
    assert!(faults.is_empty(), "{faults:?}");
    repo.json(&["recover"]).ok();
}

#[test]
fn a_verifier_that_rewrites_and_adds_changes_nothing_of_the_users() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let wild = "for f in src/a.txt src/b.txt; do chmod +w $f; echo mended > $f.new; mv $f.new $f; done\n\
                git add -A; git stash; git commit -m mine; finish\n";
    Verifier::new("wild").counts(Counts::Nothing).script(wild).commit(&repo);
    repo.write("src/a.txt", "staged\n");
    repo.git(&["add", "src/a.txt"]);
    repo.git(&["stash"]);
    repo.git(&["stash", "apply", "--index"]);
    repo.write("src/a.txt", "edited on\n");
    let before = Untouched::of(&repo);
    let answer = repo.json(&["check"]).result(1);
    assert_eq!(answer.verdict("wild"), "error", "{:#}", answer.json);
    before.is_still_so(&repo);
    // It is a slot like any other: the next run finds it in order.
    repo.json(&["check"]).result(1);
    before.is_still_so(&repo);
}

#[test]
fn a_killed_check_leaves_everything_as_it_was() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let ready = lab.path("ready");
    let script =
        format!("chmod +w src/a.txt; echo x > src/a.txt; git add -A; : > '{}'\nsleep 300\n", ready.display());
    Verifier::new("slow").counts(Counts::Nothing).script(&script).commit(&repo);
    repo.write("src/a.txt", "staged\n");
    repo.git(&["add", "-A"]);
    repo.write("src/a.txt", "edited on\n");
    let before = Untouched::of(&repo);
    let mut child = background(&repo, &["check"]);
    wait_for(&ready);
    child.kill().expect("killed");
    child.wait().expect("waits");
    before.is_still_so(&repo);
    let left = repo.json(&["recover"]).ok();
    assert_eq!(left.json["actions"], json!([]), "nothing waits for recovery");
    Verifier::new("slow").counts(Counts::Nothing).script("grep -q staged src/a.txt\nfinish\n").write(&repo);
    repo.git(&["commit", "-q", "-m", "staged"]);
    repo.commit("quick");
    repo.json(&["check", "--all"]).ok();
}

#[test]
fn before_the_first_commit_only_the_private_layer_judges() {
    let lab = Lab::new();
    let repo = lab.empty_repo("app");
    let nothing = repo.tender(&["check"]).ok().text();
    assert!(nothing.contains("nothing is changed"), "{nothing}");
    repo.write("src/a.txt", "good\n");
    Verifier::new("unit").write(&repo);
    repo.git(&["add", "-A"]);
    let answer = repo.json(&["check"]).ok();
    assert_eq!(answer.verdict("unit"), "not_run");
    assert!(answer.reason("unit").contains("is not in the base commit, only in the candidate"));
    write_private(
        &repo,
        &Verifier::new("own").script("grep -q good src/a.txt && case_ok a\nfinish\n"),
        "own",
    );
    let answer = repo.json(&["check"]).ok();
    assert_eq!(answer.verdict("own"), "passed");
    repo.write("src/a.txt", "bad\n");
    repo.git(&["add", "-A"]);
    assert_ne!(repo.json(&["check"]).result(1).verdict("own"), "passed");
}

#[test]
fn a_range_the_live_tree_and_everything_are_each_what_they_say() {
    let lab = Lab::new();
    let repo = repo_with_verifiers(&lab);
    repo.write("src/a.txt", "bad\n");
    repo.commit("bad");
    repo.write("src/a.txt", "good again\n");
    repo.commit("good");
    let before = Untouched::of(&repo);
    assert_eq!(ids(&repo.json(&["check"]).ok()), Vec::<&str>::new());
    assert_eq!(repo.json(&["check", "--rev", "HEAD~2..HEAD~1"]).result(1).verdict("unit"), "failed");
    assert_eq!(repo.json(&["check", "--rev", "HEAD~1.."]).ok().verdict("unit"), "passed");
    let all = repo.json(&["check", "--all"]).ok();
    assert_eq!((all.verdict("unit"), all.verdict("text")), ("passed", "passed"));
    before.is_still_so(&repo);
    repo.git(&["checkout", "-q", "-b", "side", "HEAD~2"]);
    repo.write("docs/a.md", "good on the side\n");
    repo.commit("side");
    let forked = repo.json(&["check", "--rev", "main...side"]).ok();
    assert_eq!((forked.verdict("text"), forked.verdict("unit")), ("passed", "not_run"));
    repo.write("src/new.txt", "good\n");
    repo.write("docs/a.md", "bad\n");
    let before = Untouched::of(&repo);
    let live = repo.json(&["check", "--live"]).result(1);
    assert_eq!((live.verdict("text"), live.verdict("unit")), ("failed", "passed"));
    before.is_still_so(&repo);
    for (range, code) in
        [("HEAD", "arguments.invalid"), ("nowhere..HEAD", "not_found"), ("..nowhere", "not_found")]
    {
        repo.json(&["check", "--rev", range]).fails(code);
    }
    repo.json(&["check", "--rev", "A..B", "--live"]).fails("arguments.invalid");
}

#[test]
fn protected_paths_are_told_and_stop_nothing() {
    let lab = Lab::new();
    let repo = repo_with_verifiers(&lab);
    repo.write(".tender/verifiers/text/run.sh", "true\n");
    repo.git(&["add", "-A"]);
    let answer = repo.json(&["check"]).ok();
    assert_eq!(answer.verdict("protected"), "needs_confirmation", "{:#}", answer.json);
    assert_eq!(answer.row("protected")["required"], json!(false));
}

#[test]
fn a_manifest_that_cannot_be_used_blocks_all_but_its_own_mending() {
    let lab = Lab::new();
    let repo = repo_with_verifiers(&lab);
    repo.write(".tender/verifiers/odd/verifier.toml", "protocol = 1\nid = \"odd\"\ncomand = []\n");
    repo.commit("odd");
    repo.write("docs/a.md", "good enough\n");
    repo.git(&["add", "-A"]);
    let answer = repo.json(&["check"]).result(1);
    assert_eq!((answer.verdict("odd"), answer.verdict("text")), ("error", "passed"));
    assert!(answer.reason("odd").contains("comand"), "{}", answer.reason("odd"));
    repo.git(&["rm", "-q", ".tender/verifiers/odd/verifier.toml"]);
    repo.json(&["check"]).ok();
}

#[test]
fn what_the_policy_requires_is_required_here_too() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let policy = "[policy]\nrequire = [{ verifier = \"whitespace\", when = [\"docs/**\"] }]\n";
    repo.write(".tender/config.toml", policy);
    repo.commit("policy");
    repo.write("docs/a.md", "words  \n");
    repo.git(&["add", "-A"]);
    assert_eq!(repo.json(&["check"]).result(1).verdict("whitespace"), "failed");
    repo.write("docs/a.md", "words\n");
    repo.git(&["add", "-A"]);
    assert_eq!(repo.json(&["check"]).ok().verdict("whitespace"), "passed");
}

#[test]
fn an_index_with_conflicts_is_no_tree() {
    let lab = Lab::new();
    let repo = repo_with_verifiers(&lab);
    repo.git(&["checkout", "-q", "-b", "side"]);
    repo.write("src/a.txt", "good: theirs\n");
    repo.commit("theirs");
    repo.git(&["checkout", "-q", "main"]);
    repo.write("src/a.txt", "good: ours\n");
    repo.commit("ours");
    assert_ne!(repo.git_out(&["merge", "side"]).code, 0);
    let refused = repo.json(&["check"]);
    assert_eq!(refused.fails("state.invalid")["subject"], "src/a.txt");
    repo.write("src/a.txt", "good: both\n");
    repo.git(&["add", "-A"]);
    assert_eq!(repo.json(&["check"]).ok().verdict("unit"), "passed");
}

#[test]
fn other_programs_read_it_in_their_own_forms() {
    let lab = Lab::new();
    let repo = repo_with_verifiers(&lab);
    repo.write("src/a.txt", "bad\n");
    repo.git(&["add", "-A"]);
    let shown = |format: &str| repo.tender(&["check", "--format", format]).exits(1).text();
    assert!(shown("github").starts_with("::error "), "{}", shown("github"));
    let sarif: serde_json::Value = serde_json::from_str(&shown("sarif")).expect("JSON");
    assert_eq!(sarif["runs"][0]["results"][0]["ruleId"], "unit");
    assert!(shown("junit").contains("<failure message="), "{}", shown("junit"));
    repo.tender(&["status", "--format", "sarif"]).exits(2);
}

/// A run that failed for a cause beside the change stays known until it is cleared.
#[test]
fn what_is_flaky_is_cleared_by_three_passes() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let switch = lab.path("switch");
    let script = format!("[ -e '{}' ] && case_ok a || case_bad a\nfinish\n", switch.display());
    Verifier::new("unit").script(&script).commit(&repo);
    repo.write("src/a.txt", "staged\n");
    repo.git(&["add", "-A"]);
    repo.json(&["check"]).result(1);
    std::fs::write(&switch, "").expect("written");
    let flaky = repo.json(&["check"]).result(1);
    assert!(flaky.reason("unit").starts_with("flaky"), "{}", flaky.reason("unit"));
    assert_eq!(repo.json(&["check", "--again"]).ok().verdict("unit"), "passed");
    assert_eq!(repo.json(&["check"]).ok().row("unit")["reused"], json!(true));
}

/// A store that only checks have written to is one in which tasks are opened, ended and collected.
#[test]
fn tasks_and_checks_share_a_store() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.write("docs/a.md", "staged\n");
    repo.git(&["add", "-A"]);
    repo.json(&["check"]).ok();
    let task = repo.open(&Contract::new("one"));
    repo.json(&["cancel", &task.id]).ok();
    repo.json(&["gc"]).ok();
    repo.json(&["check"]).ok();
    let listed = repo.json(&["status"]).ok();
    assert!(!listed.json.to_string().contains("@check"), "{:#}", listed.json);
}
