//! Verifiers run in slots through the real launcher: what each kind of run amounts to, and for how long it
//! counts.

#![expect(clippy::disallowed_methods, reason = "the test plays the user and writes files")]

use crate::domain::change::patch::{BoundPatch, Candidate, Change, manifest_sha256};
use crate::domain::contract::Contract;
use crate::domain::contract::policy::{Config, effective_contract};
use crate::domain::proof::cases::CaseList;
use crate::domain::proof::evidence::{Evidence, Observation};
use crate::domain::proof::judge::{self, Job};
use crate::domain::proof::listing::{InputFile, Listing};
use crate::domain::proof::records::{On, Record, StoredLists};
use crate::domain::proof::verdict::{Row, Strength, Verdict};
use crate::domain::value::digest::{ObjectId, Sha256};
use crate::git::testing::TestRepository;
use crate::git::tree;
use crate::store::{Blobs, Layout};
use crate::verifier::{self, Host, Ticket, VerificationSubject, Verifiers};
use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

struct Bench {
    repository: TestRepository,
    vars: RefCell<Vec<(OsString, OsString)>>,
    records: RefCell<Vec<Record>>,
    base: RefCell<Option<ObjectId>>,
    contract: RefCell<serde_json::Value>,
    config: RefCell<String>,
    filters: RefCell<Vec<String>>,
    candidates: RefCell<Vec<ObjectId>>,
    runs: Cell<usize>,
    task: RefCell<String>,
    home: RefCell<PathBuf>,
}

impl Bench {
    fn new() -> Self {
        let repository = TestRepository::new();
        let mut vars = repository.variables().to_vec();
        vars[0].1 = "/usr/local/bin:/usr/bin:/bin".into();
        vars.push(("API_TOKEN".into(), "hunter2-hunter2".into()));
        Self {
            repository,
            vars: RefCell::new(vars),
            records: RefCell::default(),
            base: RefCell::default(),
            contract: RefCell::new(serde_json::json!({
                "taskId": "t1", "goal": "g", "writeScope": ["**"], "allowedTools": [],
                "verification": {"allowed": ["unit"]},
            })),
            config: RefCell::default(),
            filters: RefCell::default(),
            candidates: RefCell::default(),
            runs: Cell::new(0),
            task: RefCell::new("t1".to_owned()),
            home: RefCell::default(),
        }
    }

    fn top(&self) -> PathBuf {
        self.repository.top()
    }

    fn git(&self, args: &[&str]) -> String {
        let said = self.repository.git_call().args(args).run_for_stdout().expect("git works");
        String::from_utf8_lossy(&said).trim().to_owned()
    }

    fn write(&self, path: &str, text: &str) {
        let place = self.top().join(path);
        std::fs::create_dir_all(place.parent().expect("a parent")).expect("made");
        std::fs::write(place, text).expect("written");
    }

    fn script(&self, path: &str, text: &str) {
        self.write(path, &format!("#!/bin/sh\n{text}\n"));
        std::fs::set_permissions(self.top().join(path), std::fs::Permissions::from_mode(0o755)).expect("set");
    }

    /// A verifier `unit` that runs `text` from its closure, with more keys.
    fn unit(&self, text: &str, more: &str) {
        self.script(".tender/verifiers/unit/run.sh", text);
        let run = ".tender/verifiers/unit/run.sh";
        let manifest = format!("protocol = 1\nid = \"unit\"\ncommand = [\"{run}\"]\n{more}\n");
        self.write(".tender/verifiers/unit/verifier.toml", &manifest);
    }

    fn commit(&self) -> ObjectId {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
        self.git(&["rev-parse", "HEAD^{tree}"]).parse().expect("an id")
    }

    /// What is written so far is the base.
    fn base(&self) {
        *self.base.borrow_mut() = Some(self.commit());
    }

    /// What is written so far is the candidate; gives the rows after a verification.
    fn verify(&self) -> Vec<Row> {
        let tree = self.commit();
        self.judge(&tree, true)
    }

    /// The same without running anything.
    fn look(&self) -> Vec<Row> {
        let tree = self.commit();
        self.judge(&tree, false)
    }

    fn judge(&self, tree: &ObjectId, run: bool) -> Vec<Row> {
        let repository = self.repository.repository();
        let base = self.base.borrow().clone().expect("a base");
        let objects = repository.object_reader(None).expect("opens");
        let changes = tree::changes_between(&objects, &base, tree).expect("compares");
        let contract =
            Contract::parse_document(self.contract.borrow().to_string().as_bytes()).expect("a contract");
        let config = Config::parse_config(self.config.borrow().as_bytes()).expect("a config");
        let layout = Layout::new(repository.common_dir());
        layout.create().expect("made");
        let blobs = Blobs::new(&layout);
        let verifiers = Verifiers::load(&repository, &base, &layout.local(), &contract.case).expect("loads");
        let (effective, _) = effective_contract(&contract, &config.policy).expect("within");
        let effective = effective.protect_more(&verifiers.closure_scope());
        let candidate = self.candidate(&base, tree, changes);
        let task = self.task.borrow().clone();
        let vars = self.vars.borrow().clone();
        let home = self.home.borrow().clone();
        let subject = VerificationSubject {
            repository: &repository,
            quarantine: None,
            base_commit_tree: &base,
            task: &task,
            candidate: &candidate,
            contract: &contract,
            contract_sha256: candidate.patch.manifest_sha256,
            effective: &effective,
            filters: &self.filters.borrow().clone(),
        };
        let slots = self.repository.outside().join("repo.tender/.slots");
        let host = Host {
            program: crate::process::testing::program_under_test(),
            vars: &vars,
            home: Some(&home),
            layout: &layout,
            blobs: &blobs,
            slots: &slots,
            sandbox: &crate::process::SandboxGrant::Unconfined,
            progress: &|_, _, _| {},
            watch: &|_| None,
            most: None,
        };
        let observation = verifier::observe(&subject, &verifiers, &host).expect("observes");
        let wire = serde_json::to_string(&observation).expect("serializes");
        assert_eq!(serde_json::from_str::<Observation>(&wire).expect("parses"), observation);
        let files = |digest: &Sha256| listing(&blobs, digest);
        let cases = |digest: &Sha256| serde_json::from_slice(&blobs.get(digest).ok()?).ok();
        let stored = StoredLists { files: &files, cases: &cases };
        let missing = || judge::missing_jobs(&observation, &self.records.borrow(), stored);
        self.runs.set(0);
        if run {
            let make = |job: &Job, ticket: &Ticket| {
                verifier::run(&subject, &verifiers, &host, &observation, job, ticket).expect("runs")
            };
            self.make_records(missing(), &make);
            self.make_records(
                missing().into_iter().filter(|job| job.on == On::BaseWithoutCase).collect(),
                &make,
            );
        }
        judge::judge_rows(&observation, &self.records.borrow(), stored)
    }

    fn make_records(&self, jobs: Vec<Job>, run: &dyn Fn(&Job, &Ticket) -> Vec<Evidence>) {
        self.runs.set(self.runs.get() + jobs.len());
        for job in &jobs {
            let run_id = format!("r{}", self.records.borrow().len());
            let ticket = Ticket { run: run_id, nonce: "n0nce".to_owned(), clearing: false };
            for evidence in run(job, &ticket) {
                let wire = serde_json::to_string(&evidence).expect("serializes");
                assert_eq!(serde_json::from_str::<Evidence>(&wire).expect("parses"), evidence);
                self.records.borrow_mut().push((evidence.digest(), evidence));
            }
        }
    }

    fn candidate(&self, base: &ObjectId, tree: &ObjectId, changes: Vec<Change>) -> Candidate {
        let known = self.candidates.borrow().iter().position(|known| known == tree);
        let number = known.unwrap_or_else(|| {
            self.candidates.borrow_mut().push(tree.clone());
            self.candidates.borrow().len() - 1
        });
        let manifest = manifest_sha256(&changes);
        Candidate {
            candidate: u32::try_from(number).expect("small") + 1,
            contract_version: 1,
            base_tree: base.clone(),
            tree: tree.clone(),
            patch: BoundPatch { manifest_sha256: manifest, sha256: manifest, bytes: 0 },
            artifact_bytes: 0,
            changes,
        }
    }

    fn last(&self) -> Evidence {
        self.records.borrow().last().expect("a record").1.clone()
    }

    /// The stored standard output of the last attempt.
    fn stdout(&self) -> String {
        let digest = self.last().attempts.last().expect("an attempt").stdout.expect("a log");
        let blobs = Blobs::new(&Layout::new(&self.top().join(".git")));
        String::from_utf8_lossy(&blobs.get(&digest).expect("stored")).into_owned()
    }
}

fn listing(blobs: &Blobs, digest: &Sha256) -> Option<Vec<InputFile>> {
    let stored: Listing = serde_json::from_slice(&blobs.get(digest).ok()?).ok()?;
    let other = match &stored.differs_from {
        Some(other) => listing(blobs, other)?,
        None => Vec::new(),
    };
    Some(stored.resolve_with(other))
}

fn one(rows: &[Row]) -> (Verdict, String) {
    (rows[0].verdict, rows[0].reason.clone().unwrap_or_default())
}

/// The outcome of one run of a script in the verifier `unit`.
fn outcome(text: &str, more: &str) -> (Verdict, String) {
    let bench = Bench::new();
    bench.unit(text, more);
    bench.write("src/a", "1\n");
    bench.write("src/a.c", "\n");
    bench.base();
    bench.write("src/a", "2\n");
    one(&bench.verify())
}

const JUNIT: &str = "outputs = [{ path = \"{out}/r.xml\", format = \"junit\", required = true }]";
const ONE: &str = "<testsuite><testcase name=\"a\"/></testsuite>";

/// A run of a shell text, with more keys in its manifest, amounts to a verdict and words of its reason.
fn says(text: &str, more: &str, verdict: Verdict, words: &str) {
    let (found, reason) = outcome(text, more);
    assert!(found == verdict && reason.contains(words), "{text} ({more}): {found:?} {reason:?}");
}

#[test]
fn what_a_run_amounts_to() {
    says("true", "", Verdict::Passed, "");
    says("echo PASS; exit 1", "", Verdict::Failed, "exit code 1");
    says(&format!("echo '{ONE}' > $TENDER_OUT/r.xml; exit 1"), JUNIT, Verdict::Failed, "exit code 1");
    // Before any case: the change's, the environment's, or nobody's.
    let breaks = |says: &str| format!("echo '{says}' >&2; exit 1");
    says(&breaks("something else"), JUNIT, Verdict::Error, "exit code 1 before any case was counted");
    says(
        &breaks("error: attempting to get x, but --offline was specified"),
        JUNIT,
        Verdict::Error,
        "cargo fetch",
    );
    says(&breaks("ModuleNotFoundError: No module named x"), JUNIT, Verdict::Error, "pip install");
    says(&breaks("src/a.c:3:1: error: no"), JUNIT, Verdict::Failed, "did not build: exit code 1, src/a.c:3");
    let on_base = format!("grep -q 2 src/a || {{ echo '{ONE}' > $TENDER_OUT/r.xml; exit 0; }}; ");
    let breaks_alone = format!("{on_base}echo ModuleNotFoundError: x >&2; exit 1");
    says(&breaks_alone, JUNIT, Verdict::Failed, "did not build: exit code 1, the base comes to its cases");
    says(&format!("echo '{ONE}' > $TENDER_OUT/r.xml"), JUNIT, Verdict::Passed, "");
    says(
        "echo '<testsuite><testcase name=\"a\"><failure/></testcase></testsuite>' > $TENDER_OUT/r.xml",
        JUNIT,
        Verdict::Failed,
        "1 failed",
    );
    says("echo '<testsuites/>' > $TENDER_OUT/r.xml", JUNIT, Verdict::NotRun, "no checks ran");
    says(
        "echo '<testsuite><testcase><skipped/></testcase></testsuite>' > $TENDER_OUT/r.xml",
        JUNIT,
        Verdict::NotRun,
        "all skipped",
    );
    says("true", JUNIT, Verdict::Error, "was not made");
    says("echo '<testsuite><testcase' > $TENDER_OUT/r.xml", JUNIT, Verdict::Error, "r.xml");
    says("ln -s /etc/hostname $TENDER_OUT/r.xml", JUNIT, Verdict::Error, "was not made");
    says("mkfifo $TENDER_OUT/r.xml", JUNIT, Verdict::Error, "is no file");
    let empty = "printf 'running 0 tests\\n\\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\\n'";
    says(empty, "outputs = [{ format = \"libtest\" }]", Verdict::NotRun, "no checks ran");
    says("kill -9 $$", "", Verdict::Error, "signal 9");
    says("echo x > new", "", Verdict::Error, "wrote outside scratch: new");
    says("mkdir empty", "", Verdict::Error, "wrote outside scratch: empty");
    says("rm -f src/a; echo evil > src/a", "", Verdict::Error, "changed its inputs: src/a");
    says("rm -f src/a", "", Verdict::Error, "changed its inputs: removed src/a");
    says("chmod u+w src/a", "", Verdict::Error, "changed its inputs: src/a");
    says("mkdir -p target && echo x > target/x", "scratch = [\"target/\"]", Verdict::Passed, "");
    says("setsid sleep 60 > /dev/null 2>&1 &", "", Verdict::Error, "running");
}

#[test]
fn each_output_counts_by_itself_and_a_glob_is_one() {
    // Each required output needs a case of its own, whatever the others hold; and more, where it says so.
    let two = "outputs = [{ path = \"{out}/r.xml\", format = \"junit\", required = true }, { path = \"{out}/t.xml\", format = \"junit\", required = true }]";
    let both = format!("echo '{ONE}' > $TENDER_OUT/r.xml; echo '<testsuites/>' > $TENDER_OUT/t.xml");
    says(&both, two, Verdict::NotRun, "no checks ran in {out}/t.xml");
    says(
        &both,
        &two.replace("t.xml\", format = \"junit\", required = true", "t.xml\", format = \"junit\""),
        Verdict::Passed,
        "",
    );
    let more = JUNIT.replace("required = true", "min_checks = 2");
    says(
        &format!("echo '{ONE}' > $TENDER_OUT/r.xml"),
        &more,
        Verdict::Failed,
        "1 checks ran in {out}/r.xml, at least 2 must",
    );
    // A glob is one output, its files summed.
    let glob = "min_checks = 2\noutputs = [{ path = \"{out}/reports/**/*.xml\", format = \"junit\", required = true }]";
    let files = |second: &str| {
        format!(
            "mkdir -p $TENDER_OUT/reports/x; echo '{ONE}' > $TENDER_OUT/reports/a.xml; echo '{second}' > $TENDER_OUT/reports/x/b.xml"
        )
    };
    says(&files(ONE), glob, Verdict::Passed, "");
    says(&files("<testsuites/>"), glob, Verdict::Failed, "1 checks ran, at least 2 must");
    says(&files("<testsuite"), glob, Verdict::Error, "{out}/reports/x/b.xml");
    says(&files(&ONE.replace("/>", "><failure/></testcase>")), glob, Verdict::Failed, "1 failed");
    says("true", glob, Verdict::Error, "was not made");
}

#[test]
fn findings_fail_a_run_and_count_nothing() {
    const SARIF: &str = "outputs = [{ path = \"{out}/r.sarif\", format = \"sarif\", required = true }]";
    let log = |results: &str, more: &str| {
        let log = format!(
            r#"{{"version":"2.1.0","runs":[{{"tool":{{"driver":{{"name":"x"}}}},"results":{results}}}]}}"#
        );
        format!("echo '{log}' > $TENDER_OUT/r.sarif; {more}")
    };
    says(&log("[]", ""), SARIF, Verdict::Passed, "");
    let warning = r#"[{"level":"warning","ruleId":"w"}]"#;
    says(&log(warning, ""), SARIF, Verdict::Passed, "");
    says(&log(warning, "exit 1"), SARIF, Verdict::Failed, "exit code 1");
    let error = r#"[{"level":"error","ruleId":"e"}]"#;
    says(&log(error, ""), SARIF, Verdict::Failed, "a finding is an error: e, although");
    says(&log("null", ""), SARIF, Verdict::Error, "no results");
    says("true", SARIF, Verdict::Error, "was not made");
    says("exit 2", SARIF, Verdict::Error, "exit code 2");
    let bench = Bench::new();
    bench.unit(&format!("grep -q 3 src/a && exit 2; {}", log("[]", "")), SARIF);
    bench.write("src/a", "1\n");
    bench.base();
    bench.write("src/a", "2\n");
    let observed = bench.verify();
    assert_eq!(one(&observed).0, Verdict::Passed);
    assert!(bench.records.borrow().iter().all(|(_, record)| record.checks.is_none()));
    bench.write("src/a", "3\n");
    assert_eq!(
        one(&bench.verify()).0,
        Verdict::Failed,
        "the tool did not come to its end, and on the base it does"
    );
}

#[test]
fn a_time_out_ends_everything_even_where_a_grandchild_holds_the_pipe() {
    let started = Instant::now();
    let (verdict, reason) =
        outcome("setsid sh -c 'trap \"\" TERM; sleep 300' & sleep 300", "timeout = \"1s\"");
    assert_eq!(verdict, Verdict::Error);
    assert!(reason.contains("timed out"), "{reason}");
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}

#[test]
fn an_old_output_never_counts() {
    let bench = Bench::new();
    let keys = "scratch = [\"target/\"]\noutputs = [{ path = \"target/r.xml\", format = \"junit\", required = true }]";
    bench.unit(&format!("mkdir -p target; grep -q 3 src/a || echo '{ONE}' > target/r.xml"), keys);
    bench.write("src/a", "1\n");
    bench.base();
    bench.write("src/a", "2\n");
    assert_eq!(one(&bench.verify()).0, Verdict::Passed, "its base leaves one in the scratch");
    bench.write("src/a", "3\n");
    let (verdict, reason) = one(&bench.verify());
    assert_eq!((verdict, reason.as_str()), (Verdict::Error, "the output target/r.xml was not made"));
}

#[test]
fn the_environment_is_cleared_and_secrets_are_redacted() {
    let bench = Bench::new();
    bench.unit("env; echo \"home holds:$(ls -A $HOME)\"; cat", "env = [\"RUSTFLAGS\", \"API_TOKEN\"]");
    bench.vars.borrow_mut().extend([
        ("RUSTFLAGS".into(), "-Dwarnings".into()),
        ("LEAK".into(), "leaked".into()),
        ("SSH_AUTH_SOCK".into(), "/sock".into()),
    ]);
    bench.base();
    bench.write("src/a", "2\n");
    assert_eq!(one(&bench.verify()).0, Verdict::Passed);
    let log = bench.stdout();
    assert!(log.contains("RUSTFLAGS=-Dwarnings") && log.contains("home holds:\n"), "{log}");
    assert!(log.contains("API_TOKEN=") && !log.contains("hunter2"), "{log}");
    assert!(!log.contains("leaked") && !log.contains("SSH_AUTH_SOCK") && !log.contains("GIT_"), "{log}");
    let wire = serde_json::to_string(&bench.last()).expect("serializes");
    assert!(!wire.contains("hunter2"));
    bench.vars.borrow_mut().retain(|(name, _)| name != "RUSTFLAGS");
    let (verdict, reason) = one(&bench.look());
    assert_eq!((verdict, reason.as_str()), (Verdict::Stale, "the variable RUSTFLAGS changed"));
}

#[test]
fn evidence_is_fresh_for_exactly_what_it_was_made_on() {
    let bench = Bench::new();
    bench.unit("ls -R", "inputs = [\"src/**\"]");
    bench.write("src/a", "1\n");
    bench.write("other", "1\n");
    bench.base();
    bench.write("src/a", "2\n");
    let rows = bench.verify();
    assert_eq!(one(&rows).0, Verdict::Passed);
    assert!(!rows[0].reused);
    assert!(!bench.stdout().contains("other"), "what is not among the inputs is not there");
    bench.verify();
    assert_eq!(bench.runs.get(), 0, "everything is fresh");
    bench.write("other", "2\n");
    let rows = bench.look();
    assert_eq!(one(&rows).0, Verdict::Passed);
    assert!(rows[0].reused, "another candidate");
    let stale = |words: &str| {
        let (verdict, reason) = one(&bench.look());
        assert_eq!((verdict, reason.as_str()), (Verdict::Stale, words));
    };
    bench.write("src/a", "3\n");
    stale("src/a changed");
    bench.write("src/a", "2\n");
    assert_eq!(one(&bench.look()).0, Verdict::Passed, "the bytes are back");
    bench.write("src/new", "x\n");
    stale("src/new was added");
    std::fs::remove_file(bench.top().join("src/new")).expect("removed");
    std::fs::set_permissions(bench.top().join("src/a"), std::fs::Permissions::from_mode(0o755)).expect("set");
    stale("src/a changed its mode from 100644 to 100755");
    std::fs::set_permissions(bench.top().join("src/a"), std::fs::Permissions::from_mode(0o644)).expect("set");
    bench.write(".gitattributes", "src/a eol=crlf\n");
    stale(".gitattributes was added");
}

#[test]
fn the_base_judges_and_a_person_confirms_where_the_judge_is_changed() {
    let bench = Bench::new();
    bench.unit("cat lib/check; test \"$(cat lib/check)\" = strict", "closure = [\"lib/**\"]");
    bench.write("lib/check", "strict");
    bench.base();
    bench.write("lib/check", "lax");
    bench.script(".tender/verifiers/unit/run.sh", "true");
    bench.write("lib/check2", "planted");
    let rows = bench.verify();
    assert_eq!(one(&rows).0, Verdict::Passed);
    assert_eq!(bench.stdout(), "strict");
    assert!(rows[0].judge_changed);
    let person = rows.iter().find(|row| row.id == "protected").expect("a row");
    assert_eq!((person.verdict, person.required), (Verdict::NeedsConfirmation, true));
}

#[test]
fn a_script_that_the_command_runs_judges_as_it_is_in_the_base() {
    for command in [r#"["./check.sh"]"#, r#"["sh", "check.sh"]"#] {
        let bench = Bench::new();
        let manifest = format!("protocol = 1\nid = \"unit\"\ncommand = {command}\n");
        bench.write(".tender/verifiers/unit/verifier.toml", &manifest);
        bench.script("check.sh", "grep -q good docs/a.md");
        bench.write("docs/a.md", "good\n");
        bench.base();
        bench.write("docs/a.md", "bad\n");
        bench.script("check.sh", "exit 0");
        let rows = bench.verify();
        assert_eq!((one(&rows).0, rows[0].judge_changed), (Verdict::Failed, true), "{command}: {rows:?}");
        let person = rows.iter().find(|row| row.id == "protected").expect("a row");
        assert_eq!(person.verdict, Verdict::NeedsConfirmation);
        bench.contract.borrow_mut()["kind"] = "repair".into();
        bench.contract.borrow_mut()["case"] = serde_json::json!(["check.sh"]);
        assert!(!bench.look()[0].judge_changed, "a case is what the contract wants tried");
    }
}

#[test]
fn what_may_not_appear_is_not_shown_and_changes_the_judge() {
    let bench = Bench::new();
    bench.unit("test ! -e settings.conf", "closure = [\"?settings.conf\", \"?**/sitecustomize.py\"]");
    bench.base();
    bench.write("docs/a.md", "1\n");
    let rows = bench.verify();
    assert_eq!((one(&rows).0, rows[0].judge_changed), (Verdict::Passed, false));
    bench.write("settings.conf", "x\n");
    let rows = bench.verify();
    assert_eq!((one(&rows).0, rows[0].judge_changed), (Verdict::Passed, true), "{rows:?}");
    let person = rows.iter().find(|row| row.id == "protected").expect("a row");
    assert_eq!(person.verdict, Verdict::NeedsConfirmation);
}

#[test]
fn what_is_watched_is_the_candidates_and_a_person_confirms_where_it_differs() {
    let bench = Bench::new();
    let keys = "inputs = [\"src/**\"]\nwatch = [\"rules.conf\", \"**/conftest.py\"]";
    bench.unit("cat rules.conf; ls src", keys);
    bench.write("rules.conf", "strict\n");
    bench.write("src/a", "1\n");
    bench.base();
    bench.write("src/a", "2\n");
    let rows = bench.verify();
    assert_eq!((one(&rows).0, rows[0].judge_changed, rows.len()), (Verdict::Passed, false, 1));
    bench.write("rules.conf", "lax\n");
    bench.write("src/conftest.py", "\n");
    let stale = bench.look();
    assert_eq!(one(&stale).0, Verdict::Stale, "what is watched is in the key: {stale:?}");
    let rows = bench.verify();
    assert_eq!((one(&rows).0, rows[0].judge_changed), (Verdict::Passed, true), "{rows:?}");
    assert_eq!(bench.stdout(), "lax\na\nconftest.py\n");
    let person = rows.iter().find(|row| row.id == "protected").expect("a row");
    let reason = "unit is told otherwise how to judge (rules.conf, src/conftest.py): a person has to confirm";
    assert_eq!((person.verdict, person.reason.as_deref()), (Verdict::NeedsConfirmation, Some(reason)));
}

#[test]
fn caches_are_private_and_a_row_names_what_is_in_no_key() {
    let bench = Bench::new();
    let home = bench.repository.outside().join("home");
    std::fs::create_dir_all(home.join(".store")).expect("made");
    *bench.home.borrow_mut() = home.clone();
    let keys = "read = [{ path = \"~/.store\", cache = true }, \"~/.settings\"]\nenv = [\"DENO_DIR\"]";
    let script = "echo ${npm_config_cache#\"$HOME/\"} ${PIP_CACHE_DIR#\"$HOME/\"} $DENO_DIR\n\
                  mkdir -p $npm_config_cache $XDG_CACHE_HOME && touch $npm_config_cache/x $XDG_CACHE_HOME/x";
    bench.unit(script, keys);
    bench.vars.borrow_mut().extend([
        ("npm_config_cache".into(), home.join("mine").into_os_string()),
        ("DENO_DIR".into(), "/given".into()),
    ]);
    bench.base();
    let rows = bench.verify();
    assert_eq!(one(&rows), (Verdict::Passed, String::new()), "{rows:?}");
    assert_eq!(bench.stdout(), ".npm .cache/pip /given\n");
    assert_eq!(rows[0].outside_key, ["~/.store"]);
    let left: Vec<_> =
        std::fs::read_dir(&home).expect("lists").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, [".store"], "nothing was written into the home directory");
}

/// What a person is asked to confirm, where the base has `before`, the candidate `after`, and the command is
/// run on both.
fn asked_to_confirm(command: &str, before: &[(&str, &str)], after: &[(&str, &str)]) -> Option<String> {
    let bench = Bench::new();
    let argv: Vec<&str> = command.split(' ').collect();
    let manifest = format!("protocol = 1\nid = \"unit\"\ncommand = {argv:?}\n");
    bench.write(".tender/verifiers/unit/verifier.toml", &manifest);
    before.iter().for_each(|(path, text)| bench.write(path, text));
    bench.base();
    for (path, text) in after {
        let place = bench.top().join(path);
        drop(std::fs::remove_file(&place));
        match text.strip_prefix("-> ") {
            Some(target) => std::os::unix::fs::symlink(target, place).expect("linked"),
            None if *text == "gone" => {}
            None => bench.write(path, text),
        }
    }
    let rows = bench.look();
    let person = rows.iter().find(|row| row.id == "protected");
    assert_eq!(person.is_some(), rows[0].judge_changed, "{rows:?}");
    let reason = person?.reason.as_deref()?;
    Some(reason.strip_prefix("unit is told otherwise how to judge (")?.split_once(')')?.0.to_owned())
}

#[test]
fn settings_of_the_runner_that_a_command_starts_are_a_persons_to_confirm() {
    let npm = r#"{"scripts": {"test": "jest"}, "jest": {"bail": 1}, "version": "1"}"#;
    let other = &npm.replace("\"1\"", "\"2\"");
    let lax = &npm.replace("jest\"}", "true\"}");
    let jest = &npm.replace("bail", "passWithNoTests");
    let cargo = "[package]\nname = \"a\"\n";
    let toml = "[tool.pytest.ini_options]\naddopts = \"-x\"\n[project]\nname = \"a\"\n";
    for (command, path, before, after, wanted) in [
        ("make test", "Makefile", "test:\n\tfalse\n", "test:\n\ttrue\n", Some("Makefile")),
        ("make test", "local.mk", "", "test:\n", Some("local.mk")),
        ("make test", "Makefile", "test:\n", "gone", Some("Makefile")),
        ("make test", "README", "a", "b", None),
        ("true", "Makefile", "a", "b", None),
        ("sh -c make", "Makefile", "a", "b", Some("Makefile")),
        ("npm test", "package.json", npm, other, None),
        ("npm test", "package.json", npm, lax, Some("package.json: scripts.test")),
        ("npm test", "package.json", npm, jest, Some("package.json: jest")),
        ("npm test", "package.json", npm, "{", Some("package.json, which cannot be read")),
        ("npx jest", "package.json", npm, lax, None),
        ("python3 -m pytest", "pyproject.toml", toml, &toml.replace("\"a\"", "\"b\""), None),
        ("pytest", "pyproject.toml", toml, &toml.replace("-x", ""), Some("pyproject.toml: tool.pytest")),
        ("pytest", "pytest.ini", "", "[pytest]\n", Some("pytest.ini")),
        ("pytest", "tests/conftest.py", "", "x", Some("tests/conftest.py")),
        ("pytest", "x.dist-info/entry_points.txt", "", "x", Some("x.dist-info/entry_points.txt")),
        ("python3 -m pytest", "_pytest/__init__.py", "", "x", Some("_pytest/__init__.py")),
        (
            "python3 t.py",
            "src/__pycache__/a.cpython-312.pyc",
            "",
            "x",
            Some("src/__pycache__/a.cpython-312.pyc"),
        ),
        ("node --test", "node_modules/a/index.js", "", "x", Some("node_modules/a/index.js")),
        ("pytest", "setup.cfg", "", "[tool:pytest]\na = 1\n", Some("setup.cfg: [tool:pytest]")),
        ("pytest", "setup.cfg", "", "[flake8]\na = 1\n", None),
        ("cargo test", ".cargo/config.toml", "", "[build]\n", Some(".cargo/config.toml")),
        ("cargo test", "Cargo.toml", cargo, "[package]\nname = \"b\"\n", None),
        ("cargo test", "a/Cargo.toml", cargo, "[lib]\nharness = false\n", Some("a/Cargo.toml: lib.harness")),
        ("just check", "justfile", "check:\n", "check:\n\ttrue\n", Some("justfile")),
        ("nox", "noxfile.py", "a", "b", Some("noxfile.py")),
        ("tox", "tox.ini", "[testenv]\na = 1\n", "[testenv]\na = 2\n", Some("tox.ini: [testenv]")),
    ] {
        let before = if before.is_empty() { vec![] } else { vec![(path, before)] };
        let found = asked_to_confirm(command, &before, &[(path, after)]);
        assert_eq!(found.as_deref(), wanted, "{command}: {path} {after}");
    }
}

#[test]
fn a_runner_that_another_one_starts_is_told_otherwise_too() {
    let base = [("Makefile", "test:\n\tnpm test\n"), ("package.json", r#"{"scripts": {"test": "sh t.sh"}}"#)];
    let after = [("package.json", r#"{"scripts": {"test": "true"}}"#)];
    assert_eq!(asked_to_confirm("make", &base, &after).as_deref(), Some("package.json: scripts.test"));
    let base = [("check.sh", "cd sub && exec make -s\n"), ("sub/Makefile", "a")];
    assert_eq!(
        asked_to_confirm("sh check.sh", &base, &[("sub/Makefile", "b")]).as_deref(),
        Some("sub/Makefile")
    );
    let base = [("Makefile", "check: lint\nlint:\n\tfalse\n"), ("src/a", "x")];
    for (path, wanted) in [("check", Some("check")), ("lint/a", Some("lint")), ("src/lint2", None)] {
        let wanted = wanted.map(|name| format!("{name}, which make would find up to date"));
        assert_eq!(asked_to_confirm("make check", &base, &[(path, "x")]), wanted);
    }
    let base =
        [("Makefile", "test:\n\tfalse\n-include ./local.conf other.conf\n"), ("other.conf", "A = 1\n")];
    for path in ["local.conf", "other.conf"] {
        assert_eq!(asked_to_confirm("make test", &base, &[(path, "x")]).as_deref(), Some(path));
        assert_eq!(asked_to_confirm("cargo test", &base, &[(path, "x")]), None);
    }
    let base = [("a/config.toml", "x"), ("a/b", "x")];
    assert_eq!(asked_to_confirm("cargo test", &base, &[(".cargo", "-> a")]).as_deref(), Some(".cargo"));
    assert_eq!(asked_to_confirm("cargo test", &base, &[("c", "-> a/b")]), None, "a link to a file");
}

#[test]
fn only_what_is_in_the_base_commit_is_a_verifier() {
    let bench = Bench::new();
    bench.write("a", "1\n");
    bench.base();
    bench.unit("true", "");
    let (verdict, reason) = one(&bench.verify());
    assert_eq!(verdict, Verdict::NotRun);
    assert!(reason.ends_with("only in the candidate"), "{reason}");
    let bench = Bench::new();
    bench.write(
        ".tender/verifiers/unit/verifier.toml",
        "protocol = 1\nid = \"unit\"\ncommand = [\"no-such-program\"]\n",
    );
    bench.base();
    let (verdict, reason) = one(&bench.verify());
    assert_eq!((verdict, reason.as_str()), (Verdict::NotRun, "no-such-program was not found on PATH"));
}

#[test]
fn the_documented_contract_has_three_rows() {
    let bench = Bench::new();
    bench.write("docs/editorial/a.md", "1\n");
    bench.base();
    bench.write("docs/editorial/a.md", "2\n");
    *bench.contract.borrow_mut() = serde_json::json!({
        "taskId": "task-example", "goal": "修正文档中的数据库语法说明", "writeScope": ["docs/editorial/"],
        "allowedTools": ["read_file", "apply_patch"], "network": "disabled",
        "verification": { "allowed": ["editorial_review"], "forbidden": ["build", "product_tests"] },
        "delivery": "local_files", "commitAllowed": false
    });
    let rows = bench.verify();
    let seen: Vec<_> = rows
        .iter()
        .map(|r| (r.id.as_str(), r.required, r.verdict, r.reason.as_deref().unwrap_or("")))
        .collect();
    assert_eq!(seen[0].2, Verdict::NeedsConfirmation);
    assert_eq!((seen[0].0, seen[0].1), ("editorial_review", true));
    assert_eq!(
        seen[1..],
        [
            ("build", false, Verdict::NotRun, "forbidden by contract"),
            ("product_tests", false, Verdict::NotRun, "forbidden by contract")
        ]
    );
}

#[test]
fn flaky_runs_are_failures_unless_the_policy_only_warns() {
    let script = "mkdir -p target; test -e a || exit 0; test -e target/x && exit 0; touch target/x; exit 1";
    let bench = Bench::new();
    bench.unit(script, "scratch = [\"target/\"]\nattempts = 2");
    bench.base();
    bench.write("a", "1\n");
    let (verdict, reason) = one(&bench.verify());
    assert!(verdict == Verdict::Failed && reason.starts_with("flaky"), "{verdict:?} {reason}");
    assert_eq!(bench.last().attempts.len(), 2);
    *bench.config.borrow_mut() = "[policy]\nflaky = \"warn\"\n".to_owned();
    let (verdict, reason) = one(&bench.look());
    assert!(verdict == Verdict::Passed && reason.starts_with("flaky"), "{verdict:?} {reason}");
    bench.verify();
    assert_eq!(bench.runs.get(), 1, "a flaky pass is never reused");
}

#[test]
fn cases_are_stored_by_name_without_secrets_and_without_the_slots_path() {
    let bench = Bench::new();
    let cases = "<testcase name='b of $API_TOKEN in $PWD/src/a'/><testcase name='a'/>";
    bench.unit(
        &format!("echo \"<testsuite>{cases}</testsuite>\" > $TENDER_OUT/r.xml"),
        &format!("env = [\"API_TOKEN\"]\n{JUNIT}"),
    );
    bench.base();
    bench.write("src/a", "1\n");
    bench.verify();
    let blobs = Blobs::new(&Layout::new(&bench.top().join(".git")));
    let stored = blobs.get(&bench.last().cases.expect("stored")).expect("is there");
    let stored = String::from_utf8(stored).expect("text");
    assert!(!stored.contains("hunter2") && !stored.contains("slots"), "{stored}");
    let list: CaseList = serde_json::from_str(&stored).expect("a list");
    assert_eq!((list.cases[0].name.as_str(), list.unnamed), ("a", 0), "sorted");
    assert!(list.cases[1].name.ends_with(" in src/a"), "{stored}");
}

#[test]
fn scratch_of_the_base_serves_every_run_and_the_setup_runs_once() {
    let bench = Bench::new();
    let keys = "scratch = [\"deps/\"]\nsetup = { command = [\"sh\", \"-c\", \"mkdir -p deps; echo x >> deps/setups\"], inputs = [\"lock\"] }";
    bench.unit("cat deps/setups; ls deps; cp src/a deps/$(cat src/a)", keys);
    bench.write("lock", "1\n");
    bench.write("src/a", "base\n");
    bench.base();
    for of_a_candidate in ["1\n", "2\n"] {
        bench.write("src/a", of_a_candidate);
        assert_eq!(one(&bench.verify()).0, Verdict::Passed);
        assert_eq!(bench.stdout(), "x\nbase\nsetups\n", "the setup was not run again");
    }
    bench.write("lock", "2\n");
    bench.verify();
    assert_eq!(bench.stdout(), "x\nx\nbase\nsetups\n", "its inputs changed");
    *bench.task.borrow_mut() = "t2".to_owned();
    bench.write("lock", "1\n");
    bench.write("src/a", "3\n");
    bench.verify();
    assert_eq!(bench.stdout(), "x\nbase\nsetups\n", "another task finds the same");
    bench.unit("true", &keys.replace("mkdir -p deps; echo x >> deps/setups", "exit 3"));
    bench.base();
    bench.write("src/a", "4\n");
    let (verdict, reason) = one(&bench.verify());
    assert_eq!((verdict, reason.as_str()), (Verdict::Error, "the setup failed: exit code 3"));
}

#[test]
fn a_repair_shows_what_it_repairs() {
    let script =
        "sh cases/* > $TENDER_OUT/r.xml || exit 1; if grep -q failure $TENDER_OUT/r.xml; then exit 1; fi";
    let case = "set -e; test -e src/lib || exit 1\nif grep -q fixed src/lib; then echo '<testsuite><testcase name=\"c\"/></testsuite>'; else echo '<testsuite><testcase name=\"c\"><failure/></testcase></testsuite>'; fi\n";
    let bench = |base: &str, case: &str| {
        let bench = Bench::new();
        bench.contract.borrow_mut()["kind"] = "repair".into();
        bench.contract.borrow_mut()["case"] = serde_json::json!(["cases/"]);
        bench.unit(script, JUNIT);
        bench.write("src/lib", base);
        bench.base();
        bench.write("cases/c", case);
        bench.write("src/lib", "fixed\n");
        bench
    };
    let repaired = bench("broken\n", case);
    let rows = repaired.verify();
    assert_eq!((rows[0].verdict, rows[0].strength), (Verdict::Passed, Strength::Fixed), "{rows:?}");
    repaired.verify();
    assert_eq!(repaired.runs.get(), 0, "the base run is reused too");
    let (verdict, reason) = one(&bench("fixed already\n", case).verify());
    assert!(
        verdict == Verdict::Failed && reason.contains("passes on the base already"),
        "{verdict:?} {reason}"
    );
    let builds = case.replace("test -e src/lib", "grep -q fixed src/lib");
    let (verdict, reason) = one(&bench("does not build\n", &builds).verify());
    assert!(
        verdict == Verdict::Failed && reason.contains("a build error proves nothing"),
        "{verdict:?} {reason}"
    );
}

#[test]
fn the_protocol_is_spoken() {
    let answer = |nonce: &str, status: &str| {
        let body = format!(
            "{{\\\"protocol\\\":1,\\\"nonce\\\":\\\"{nonce}\\\",\\\"results\\\":[{{\\\"requirement\\\":\\\"unit\\\",\\\"status\\\":\\\"{status}\\\",\\\"checks\\\":{{\\\"ran\\\":1,\\\"passed\\\":1,\\\"failed\\\":0}}}}]}}"
        );
        format!("read -r line; echo \"$line\"; echo \"{body}\" > $TENDER_OUT/result.json")
    };
    let keys = "pass = \"protocol\"";
    let bench = Bench::new();
    bench.unit(&answer("n0nce", "pass"), keys);
    bench.base();
    bench.write("src/a", "1\n");
    let rows = bench.verify();
    assert_eq!(one(&rows), (Verdict::Passed, String::new()));
    assert_eq!(rows[0].checks.expect("counted").ran, 1);
    let line: serde_json::Value = serde_json::from_str(&bench.stdout()).expect("one JSON line");
    assert_eq!((&line["op"], &line["changed"][0]["path"]), (&"verify".into(), &"src/a".into()));
    for (text, words) in [
        (answer("other", "pass"), "nonce"),
        (answer("n0nce", "fine"), "status"),
        ("true".to_owned(), "was not written"),
    ] {
        let (verdict, reason) = outcome(&text, keys);
        assert!(verdict == Verdict::Error && reason.contains(words), "{text}: {verdict:?} {reason}");
    }
    assert_eq!(outcome(&format!("{}; exit 1", answer("n0nce", "pass")), keys).0, Verdict::Failed);
    assert_eq!(outcome(&answer("n0nce", "skip"), keys).0, Verdict::NotRun);
}

/// A script that answers with these results and writes a report that holds a number of passed cases.
fn answering(results: &serde_json::Value, cases: usize) -> String {
    let answer = serde_json::json!({"protocol": 1, "nonce": "n0nce", "results": results});
    let cases = "<testcase/>".repeat(cases);
    format!(
        "echo '{answer}' > $TENDER_OUT/result.json; echo '<testsuite>{cases}</testsuite>' > $TENDER_OUT/r.xml"
    )
}

#[test]
fn what_an_answer_claims_is_held_against_the_outputs() {
    let claim = |ran: u64, cases: usize, least: u64| {
        let checks = serde_json::json!({"ran": ran, "passed": ran, "failed": 0});
        let results = serde_json::json!([{"requirement": "unit", "status": "pass", "checks": checks}]);
        let keys = format!("pass = \"protocol\"\nmin_checks = {least}\n{JUNIT}");
        outcome(&answering(&results, cases), &keys)
    };
    assert_eq!(claim(5, 5, 5).0, Verdict::Passed);
    let (verdict, reason) = claim(5, 5, 10);
    assert!(verdict == Verdict::Failed && reason.contains("5 checks ran, at least 10 must"), "{reason}");
    let (verdict, reason) = claim(10, 5, 10);
    assert!(verdict == Verdict::Error && reason.contains("claims 10 passed"), "{verdict:?} {reason}");
}

#[test]
fn each_requirement_of_a_run_is_judged_by_its_own_cases() {
    let rows = |one: (&str, u64, u64), two: (&str, u64, u64)| {
        let result = |id: &str, (status, passed, failed): (&str, u64, u64)| {
            let checks = serde_json::json!({"ran": passed + failed, "passed": passed, "failed": failed});
            serde_json::json!({"requirement": id, "status": status, "checks": checks})
        };
        let bench = Bench::new();
        let row = |id: &str| serde_json::json!({"id": id, "text": id, "verifier": "unit"});
        bench.contract.borrow_mut()["requirements"] = serde_json::json!([row("one"), row("two")]);
        bench.unit(
            &answering(&serde_json::json!([result("one", one), result("two", two)]), 0),
            "pass = \"protocol\"",
        );
        bench.base();
        bench.write("src/a", "1\n");
        let rows = bench.verify();
        let said = |at: usize| {
            (rows[at].verdict, rows[at].reason.clone().unwrap_or_default(), rows[at].checks.map(|c| c.ran))
        };
        (said(0), said(1))
    };
    let passed = (Verdict::Passed, String::new(), Some(5));
    let (one, two) = rows(("pass", 5, 0), ("pass", 0, 0));
    assert_eq!((one, two), (passed.clone(), (Verdict::NotRun, "no checks ran".to_owned(), Some(0))));
    let (one, two) = rows(("fail", 1, 1), ("pass", 5, 0));
    assert_eq!(
        (one, two),
        ((Verdict::Failed, "1 failed, although it ended with exit code 0".to_owned(), Some(2)), passed)
    );
}

#[test]
fn what_an_answer_says_is_redacted_and_clipped() {
    let long = "x".repeat(100_000);
    let results = serde_json::json!([{"requirement": "unit", "status": "fail", "message": long}]);
    let finding =
        serde_json::json!({"path": long, "level": "hunter2-hunter2", "rule": long, "message": long});
    let answer =
        serde_json::json!({"protocol": 1, "nonce": "n0nce", "results": results, "findings": [finding]});
    let bench = Bench::new();
    bench.unit("cp answer.json $TENDER_OUT/result.json", "pass = \"protocol\"\nenv = [\"API_TOKEN\"]");
    bench.write("answer.json", &answer.to_string());
    bench.base();
    bench.write("src/a", "1\n");
    let (verdict, reason) = one(&bench.verify());
    assert!(verdict == Verdict::Failed && reason.ends_with("… (100000 bytes)"), "{}", reason.len());
    let record = bench.last();
    assert!(serde_json::to_vec(&record).expect("serializes").len() < 64 << 10);
    assert!(!record.findings[0].level.contains("hunter2"), "{}", record.findings[0].level);
}

/// Speaks protocol 1: passes unless the request matches the pattern `no`.
fn refusing(no: &str) -> String {
    let body = r#"{\"protocol\":1,\"nonce\":\"n0nce\",\"results\":[{\"requirement\":\"unit\",\"status\":\"$status\",\"checks\":{\"ran\":1,\"passed\":$p,\"failed\":$f}}]}"#;
    format!(
        "read -r line; echo \"$line\"; status=pass p=1 f=0\nif echo \"$line\" | grep -q '{no}'; then status=fail p=0 f=1; fi\necho \"{body}\" > $TENDER_OUT/result.json; test $status = pass"
    )
}

#[test]
fn what_a_run_is_told_of_the_change_is_in_the_key() {
    let bench = Bench::new();
    bench.unit(&refusing("\"src/"), "pass = \"protocol\"\ninputs = [\"CHANGELOG.md\"]");
    bench.write("CHANGELOG.md", "nothing yet\n");
    bench.base();
    bench.write("docs/a", "1\n");
    assert_eq!(one(&bench.verify()).0, Verdict::Passed);
    assert_eq!(one(&bench.verify()).0, Verdict::Passed);
    assert_eq!(bench.runs.get(), 0, "nothing that it was told changed");
    bench.write("src/a", "1\n");
    assert_eq!(one(&bench.look()).0, Verdict::Stale, "none of its inputs changed, but what it is told");
    assert_eq!(one(&bench.verify()).0, Verdict::Failed);
}

#[test]
fn a_run_on_the_base_is_told_of_the_base() {
    let bench = Bench::new();
    bench.contract.borrow_mut()["kind"] = "repair".into();
    bench.contract.borrow_mut()["case"] = serde_json::json!(["cases/"]);
    let script = refusing("never").replace("never", "\"changed\":.{\"path\":\"cases/c\"[^}]*}.,");
    let names = "if [ $status = pass ]; then echo '<testsuite><testcase name=\"c\" file=\"cases/c\"/></testsuite>'; else echo '<testsuite><testcase name=\"c\" file=\"cases/c\"><failure/></testcase></testsuite>'; fi > $TENDER_OUT/r.xml";
    let script = script.replace("; test $status = pass", &format!("; {names}; test $status = pass"));
    bench.unit(&script, &format!("pass = \"protocol\"\n{JUNIT}"));
    bench.write("src/lib", "broken\n");
    bench.base();
    bench.write("cases/c", "1\n");
    bench.write("src/lib", "fixed\n");
    let rows = bench.verify();
    assert_eq!((rows[0].verdict, rows[0].strength), (Verdict::Passed, Strength::Fixed), "{rows:?}");
    let blobs = Blobs::new(&Layout::new(&bench.top().join(".git")));
    let told: Vec<_> = bench
        .records
        .borrow()
        .iter()
        .map(|(_, evidence)| {
            let log = blobs.get(&evidence.attempts[0].stdout.expect("a log")).expect("stored");
            let line: serde_json::Value = serde_json::from_slice(&log).expect("one JSON line");
            (line["subject"]["gitTree"].clone(), line["changed"].as_array().expect("a list").len())
        })
        .collect();
    let tree = |of: &str| serde_json::Value::from(bench.git(&["rev-parse", &format!("{of}^{{tree}}")]));
    let no_tree = (serde_json::Value::Null, 1);
    assert_eq!(told, [(tree("HEAD~1"), 0), no_tree, (tree("HEAD"), 2)], "no tree is the base with the case");
}

#[test]
fn the_bytes_that_judge_do_not_depend_on_the_candidates_attributes() {
    let bench = Bench::new();
    let words = ".tender/verifiers/unit/forbidden.txt";
    bench.write(words, "forbidden\n");
    bench.unit(&format!("! grep -Ff {words} src/a"), "inputs = [\"src/**\"]");
    bench.write("src/a", "fine\n");
    bench.base();
    bench.write("src/a", "a forbidden word\n");
    bench.write(".gitattributes", "forbidden.txt text eol=crlf\n");
    let rows = bench.verify();
    assert_eq!((rows[0].verdict, rows[0].judge_changed), (Verdict::Failed, false), "{rows:?}");
    // Once the base has these attributes they count, and what was shown before does not.
    bench.write("src/a", "fine\n");
    assert_eq!(one(&bench.verify()).0, Verdict::Passed);
    bench.base();
    bench.write("docs/a", "1\n");
    let (verdict, reason) = one(&bench.look());
    assert!(verdict == Verdict::Stale && reason.contains("checkout"), "{verdict:?} {reason}");
    bench.write("src/a", "a forbidden word\n");
    assert_eq!(one(&bench.verify()).0, Verdict::Passed, "the pattern ends with a carriage return now");
}

#[test]
fn a_git_directory_that_a_run_makes_is_its_own_matter() {
    let made = "mkdir -p crates/x/target/r/.git/objects";
    assert_eq!(outcome(made, "scratch = [\"**/target/\"]"), (Verdict::Passed, String::new()));
    let (verdict, reason) = outcome("mkdir -p sub/.git/objects", "scratch = [\"**/target/\"]");
    assert_eq!((verdict, reason.as_str()), (Verdict::Error, "wrote outside scratch: sub/.git"));
}

#[test]
fn what_the_machine_adds_to_a_run_is_in_the_key() {
    let bench = Bench::new();
    bench.unit("cat src/a", "");
    bench.write("src/a", "1\n");
    bench.base();
    bench.write("src/a", "abc\n");
    let set = |name: &str, value: &str| {
        bench.vars.borrow_mut().retain(|(known, _)| known != name);
        bench.vars.borrow_mut().push((name.into(), value.into()));
    };
    set("TZ", "UTC");
    assert_eq!(one(&bench.verify()).0, Verdict::Passed);
    for (name, value, back) in [("TZ", "Asia/Tokyo", "UTC"), ("LANG", "de_DE.UTF-8", "C.UTF-8")] {
        set(name, value);
        let (verdict, reason) = one(&bench.look());
        assert!(verdict == Verdict::Stale && reason.contains(name), "{verdict:?} {reason}");
        set(name, back);
        assert_eq!(one(&bench.look()).0, Verdict::Passed, "{name}");
    }
    set("PATH", "/usr/bin:/bin");
    assert_eq!(one(&bench.look()).0, Verdict::Passed, "the same programs are found on it");
    let own = bench.repository.outside().join("attributes");
    bench.git(&["config", "core.attributesFile", own.to_str().expect("UTF-8")]);
    for place in [own, bench.top().join(".git/info/attributes")] {
        std::fs::create_dir_all(place.parent().expect("a parent")).expect("made");
        std::fs::write(&place, "src/a text eol=crlf\n").expect("written");
        let (verdict, reason) = one(&bench.look());
        assert!(verdict == Verdict::Stale && reason.contains("checkout"), "{place:?}: {verdict:?} {reason}");
        std::fs::remove_file(&place).expect("removed");
        assert_eq!(one(&bench.look()).0, Verdict::Passed, "{place:?}");
    }
}

#[test]
fn another_command_of_a_filter_driver_makes_other_bytes() {
    let bench = Bench::new();
    bench.unit("cat src/a", "");
    bench.write(".gitattributes", "src/a filter=turn\n");
    bench.write("src/a", "1\n");
    bench.base();
    bench.write("src/a", "abc\n");
    bench.filters.borrow_mut().push("turn".to_owned());
    bench.git(&["config", "filter.turn.smudge", "tr a-z A-Z"]);
    assert_eq!(one(&bench.verify()).0, Verdict::Passed);
    assert_eq!(bench.stdout(), "ABC\n");
    bench.git(&["config", "filter.turn.smudge", "tr a-c x-z"]);
    assert_eq!(one(&bench.look()).0, Verdict::Stale);
    assert_eq!(one(&bench.verify()).0, Verdict::Passed);
    assert_eq!(bench.stdout(), "xyz\n", "the slot does not keep what the other command made");
}

#[test]
fn what_is_built_in_needs_no_manifest() {
    let bench = Bench::new();
    bench.contract.borrow_mut()["verification"]["allowed"] = serde_json::json!(["scope", "whitespace"]);
    bench.contract.borrow_mut()["artifacts"] =
        serde_json::json!([{"path": "a", "maxBytes": 9, "mustNotContain": ["TODO"]}]);
    bench.write("a", "1\n");
    bench.base();
    bench.write("a", "2\n");
    let verdicts = |rows: &[Row]| rows.iter().map(|row| (row.id.clone(), row.verdict)).collect::<Vec<_>>();
    let passed = ["scope", "whitespace", "artifacts"].map(|id| (id.to_owned(), Verdict::Passed));
    assert_eq!(verdicts(&bench.verify()), passed);
    assert_eq!(bench.runs.get(), 3);
    bench.verify();
    assert_eq!(bench.runs.get(), 0);
    bench.write("a", "TODO \n");
    assert_eq!(verdicts(&bench.look())[1].1, Verdict::Stale);
    let rows = bench.verify();
    assert_eq!(
        verdicts(&rows).iter().map(|row| row.1).collect::<Vec<_>>(),
        [Verdict::Passed, Verdict::Failed, Verdict::Failed]
    );
    assert!(bench.records.borrow().iter().all(|(_, e)| e.checks.is_none() && e.key.platform == "any"));
}

#[test]
fn the_floor_of_the_policy_runs_and_a_forbidden_floor_cannot_be_met() {
    let bench = Bench::new();
    bench.contract.borrow_mut()["verification"] = serde_json::json!({"allowed": ["scope"]});
    bench.unit("exit 1", "");
    bench.base();
    *bench.config.borrow_mut() =
        "[policy]\nrequire = [{ verifier = \"unit\", when = [\"src/**\"] }]\n".to_owned();
    bench.write("docs/a", "1\n");
    assert_eq!(bench.verify().len(), 1, "nothing under src is touched");
    bench.write("src/a", "1\n");
    let rows = bench.verify();
    assert_eq!((rows[1].id.as_str(), rows[1].required, rows[1].verdict), ("unit", true, Verdict::Failed));
    bench.contract.borrow_mut()["verification"] =
        serde_json::json!({"allowed": ["scope"], "forbidden": ["unit"]});
    let rows = bench.verify();
    assert_eq!(
        (rows[1].required, rows[1].verdict, rows[1].reason.as_deref()),
        (true, Verdict::NotRun, Some("forbidden by contract"))
    );
}

/// Copies a shipped fixture into the repository, in place of the one before.
fn fixture(bench: &Bench, id: &str, name: &str) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("verifiers").join(id).join("fixtures").join(name);
    let mut folders = vec![from.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("lists").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let below = path.strip_prefix(&from).expect("beneath").to_str().expect("UTF-8");
            bench.write(below, &std::fs::read_to_string(&path).expect("reads"));
        }
    }
}

#[test]
fn shipped_verifiers_tell_their_fixtures_apart() {
    for id in ["cargo-test", "clippy", "pytest"] {
        let bench = Bench::new();
        bench.contract.borrow_mut()["verification"]["allowed"] = serde_json::json!([id]);
        let var = |name: &str| std::env::var_os(name).unwrap_or_default();
        bench.vars.borrow_mut().retain(|(name, _)| name != "PATH");
        bench.vars.borrow_mut().push(("PATH".into(), var("PATH")));
        *bench.home.borrow_mut() = var("HOME").into();
        let manifest =
            std::fs::read_to_string(format!("{}/verifiers/{id}/verifier.toml", env!("CARGO_MANIFEST_DIR")));
        bench.write(&format!(".tender/verifiers/{id}/verifier.toml"), &manifest.expect("reads"));
        bench.base();
        fixture(&bench, id, "passing");
        let rows = bench.verify();
        if rows[0].verdict == Verdict::NotRun {
            // The tool is not on this machine, and the row says so.
            assert!(rows[0].reason.as_deref().is_some_and(|reason| reason.contains(" not ")), "{rows:?}");
            continue;
        }
        assert_eq!(one(&rows), (Verdict::Passed, String::new()), "{id}: {:?}", bench.records.borrow());
        fixture(&bench, id, "failing");
        let rows = bench.verify();
        assert_eq!(rows[0].verdict, Verdict::Failed, "{id}: {rows:?}");
        assert_eq!(rows[0].checks.is_some(), id != "clippy");
    }
}
