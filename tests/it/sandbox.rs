//! Verifiers in a box: what gets out of it in which tier, and that nothing runs where it cannot be had.
//!
//! `UPDATE_SANDBOX=1 cargo test --test it sandbox` writes the table of docs/sandbox.md anew.

use crate::support::lab::run;
use crate::support::repo::path_text;
use crate::support::{Answer, Contract, Lab, Repo, Verifier, say, skip};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

const CANARY: &str = "canary-of-the-sandbox-test";
const BEGIN: &str = "<!-- attacks -->\n";
const END: &str = "<!-- /attacks -->";

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/attacks").join(name)
}

/// What this machine has, as `doctor` found it by trying.
fn has_tier(repo: &Repo<'_>, tier: &str) -> bool {
    let answer = repo.json(&["doctor"]);
    let checks = answer.json["checks"].as_array().expect("checks").clone();
    let found = checks.iter().find(|check| check["id"] == "sandbox").expect("it looks at the sandbox");
    let said = found["text"].as_str().expect("a text").to_owned();
    let has = said.starts_with("full") || (tier == "partial" && said.starts_with("partial"));
    if !has {
        skip(&format!("this machine has no tier {tier}: {said}"));
    }
    has
}

/// A task whose one verifier runs this script, submitted.
fn submitted_task(repo: &Repo<'_>, id: &str, contract: impl FnOnce(Contract) -> Contract) {
    repo.submitted(&contract(Contract::new(id).allowed(&["box"])), |task| {
        task.write("src/a.txt", format!("of {id}\n"));
    });
}

fn boxed<'l>(lab: &'l Lab, script: &str) -> Repo<'l> {
    lab.repo("r").with(&Verifier::new("box").script(script))
}

/// A record as it is stored.
fn evidence_record(repo: &Repo<'_>, evidence: &str) -> Value {
    let shown = repo.json(&["show", evidence]).ok().json;
    serde_json::from_str(shown["text"].as_str().expect("a text")).expect("JSON")
}

/// The log of the one row's run.
fn log_of(repo: &Repo<'_>, verified: &Value) -> String {
    let rows = verified["requirements"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["id"] == "box").expect("the row");
    let evidence = row["evidence"].as_str().expect("evidence");
    let shown = evidence_record(repo, evidence);
    let log = find_text(&shown, "stdout").unwrap_or_else(|| panic!("a log in {shown:#}"));
    let blob = repo.store().join("blobs/sha256").join(&log[..2]).join(&log[2..]);
    std::fs::read_to_string(blob).expect("a stored log")
}

fn find_text(value: &Value, key: &str) -> Option<String> {
    match value {
        Value::Object(map) => match map.get(key).and_then(Value::as_str) {
            Some(text) => Some(text.trim_start_matches("sha256:").to_owned()),
            None => map.values().find_map(|inner| find_text(inner, key)),
        },
        Value::Array(items) => items.iter().find_map(|inner| find_text(inner, key)),
        _ => None,
    }
}

#[test]
fn a_contract_that_requires_it_in_words_gets_the_best_tier() {
    let lab = Lab::new();
    let script = format!("test ! -e '{}' && case_ok works\nfinish\n", lab.path("r/src/a.txt").display());
    let repo = boxed(&lab, &script);
    if !has_tier(&repo, "full") {
        return;
    }
    submitted_task(&repo, "t", |contract| contract.set("sandbox", json!("required")));
    let verified = repo.json(&["verify", "t"]).ok();
    assert_eq!(verified.verdict("box"), "passed", "{:#}", verified.json);
    let again = repo.json(&["verify", "t"]).ok();
    assert_eq!(again.row("box")["reused"], true, "{:#}", again.json);
    let report = repo.json(&["report", "t"]).ok();
    assert_eq!(report.json["sandbox"], json!({"requested": "required", "enforced": "full"}));
    assert!(report.has_risk("the worker was not confined"), "{:#}", report.json["risks"]);
    let shown = evidence_record(&repo, verified.row("box")["evidence"].as_str().expect("evidence"));
    assert_eq!(shown["sandbox"], "full", "{shown:#}");
    repo.json(&["deliver", "t"]).ok();
}

#[test]
fn ordinary_work_passes_in_it() {
    let lab = Lab::new();
    let script = "
/usr/bin/python3 - <<'P' && case_ok loopback
import socket, subprocess, tempfile
server = socket.socket(); server.bind(('127.0.0.1', 0)); server.listen(1)
client = socket.create_connection(server.getsockname()); client.send(b'x')
assert server.accept()[0].recv(1) == b'x'
assert subprocess.run(['sh', '-c', 'echo a | cat'], capture_output=True).stdout == b'a\\n'
tempfile.NamedTemporaryFile().write(b'x')
P
git status --short >/dev/null && case_ok git
echo x > /tmp/a && echo x > \"$TMPDIR/a\" && echo x > \"$HOME/a\" && echo x > \"$TENDER_OUT/a\" && case_ok folders
head -c 1 /dev/urandom >/dev/null && case_ok devices
test $ok = 4
finish
";
    let repo = boxed(&lab, script);
    if !has_tier(&repo, "full") {
        return;
    }
    lab.git_config("tender.sandbox", "full");
    submitted_task(&repo, "t", |contract| contract);
    let verified = repo.json(&["verify", "t"]);
    assert_eq!(verified.json["requirements"][0]["checks"]["passed"], 4, "{:#}", verified.json);
    assert_eq!(verified.verdict("box"), "passed", "{:#}", verified.json);
}

#[test]
fn a_pass_without_it_is_none_with_it() {
    let lab = Lab::new();
    let repo = boxed(&lab, "case_ok works\nfinish\n");
    if !has_tier(&repo, "full") {
        return;
    }
    submitted_task(&repo, "t", |contract| contract.set("sandbox", json!("optional")));
    assert_eq!(repo.json(&["verify", "t"]).ok().verdict("box"), "passed");
    lab.git_config("tender.sandbox", "full");
    let refused = repo.json(&["deliver", "t"]);
    refused.fails("evidence.stale");
    let explained = repo.json(&["report", "t"]).ok();
    assert!(explained.reason("box").contains("the sandbox was none, it is full"), "{:#}", explained.json);
    let verified = repo.json(&["verify", "t"]).ok();
    assert_eq!((verified.verdict("box"), &verified.row("box")["reused"]), ("passed", &json!(false)));
    // The contract lets the user do without.
    let without = repo.json(&["verify", "t", "--no-sandbox"]).ok();
    assert_eq!(without.verdict("box"), "passed");
}

#[test]
fn where_it_cannot_be_had_nothing_is_started() {
    let lab = Lab::new();
    let marker = lab.path("tmp/ran");
    let repo = boxed(&lab, &format!("echo ran > '{}'\ncase_ok works\nfinish\n", marker.display()));
    lab.git_config("tender.sandbox", "full");
    // No bubblewrap on this PATH.
    let programs = lab.path("programs");
    std::fs::create_dir(&programs).expect("creates");
    for program in ["git", "sh", "setsid"] {
        let mut which = lab.command("which", &repo.path);
        which.arg(program);
        let found = run(which, None).ok().text();
        std::os::unix::fs::symlink(found.trim(), programs.join(program)).expect("links");
    }
    submitted_task(&repo, "t", |contract| contract);
    let poor = [("PATH", path_text(&programs))];
    let refused: Answer = repo.json_in("", &poor, None, &["verify", "t"]);
    let error = refused.fails("sandbox.unavailable");
    assert!(error["message"].as_str().expect("text").contains("bubblewrap"), "{error:#}");
    assert!(!marker.exists());
    lab.git_config("tender.sandbox", "much");
    repo.json(&["verify", "t"]).fails("config.invalid");
}

/// How many processes sleep for this time.
fn count_sleepers(time: &str) -> usize {
    let wanted = format!("sleep\0{time}\0");
    let processes = std::fs::read_dir("/proc").expect("lists").flatten();
    processes
        .filter(|one| std::fs::read(one.path().join("cmdline")).is_ok_and(|line| line == wanted.as_bytes()))
        .count()
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..200 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("not within ten seconds: {what}");
}

#[test]
fn when_the_harness_is_killed_nothing_of_a_run_survives() {
    let lab = Lab::new();
    let script = "trap '' TERM HUP\nsetsid setsid sh -c 'trap \"\" TERM HUP; sleep 61.375' &\nsleep 61.375\n";
    let repo = boxed(&lab, script);
    for tier in ["full", "partial"] {
        if !has_tier(&repo, tier) {
            continue;
        }
        lab.git_config("tender.sandbox", tier);
        submitted_task(&repo, tier, |contract| contract);
        let mut command = lab.command(crate::support::lab::TENDER, &repo.path);
        command.args(["verify", tier]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut harness = command.spawn().expect("starts");
        wait_until("both sleep", || count_sleepers("61.375") == 2);
        harness.kill().expect("kills");
        harness.wait().expect("waits");
        wait_until("none sleeps", || count_sleepers("61.375") == 0);
    }
}

/// The victims' process; it ends with its standard input.
struct Victims {
    child: Child,
    known: Value,
}

impl Victims {
    fn start(lab: &Lab) -> Self {
        let folder = lab.path("victims");
        std::fs::create_dir(&folder).expect("creates");
        let mut command = lab.command("python3", &folder);
        command.arg(fixture("victims.py")).arg(&folder).env("SECRET", CANARY);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        Self { child, known: serde_json::from_str(&line).expect("JSON") }
    }
}

impl Drop for Victims {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Everything that attacks aim at, made anew.
fn lay_out(lab: &Lab, victims: &Victims, live: &Path, sibling: &Path, task: &Path) -> (Value, PathBuf) {
    let outside = lab.path("outside");
    let _ = std::fs::remove_dir_all(&outside);
    std::fs::create_dir(&outside).expect("creates");
    for name in ["file", "in", "truncated", "unlinked"] {
        std::fs::write(outside.join(name), "untouched\n").expect("writes");
    }
    std::fs::write(lab.path("home/secret"), CANARY).expect("writes");
    let daemon = lab.path("tmp/daemon");
    let _ = std::fs::remove_file(&daemon);
    for left in [live.join(".git/index.lock"), task.join("../.slots/stranger")] {
        let _ = std::fs::remove_file(left);
    }
    let mut all = victims.known.clone();
    for (name, path) in [
        ("outside", outside.as_path()),
        ("home", &lab.path("home")),
        ("live", live),
        ("sibling", sibling),
        ("task", task),
        ("daemon", &daemon),
    ] {
        all[name] = json!(path_text(path));
    }
    all["canary"] = json!(CANARY);
    all["descriptor"] = json!(9);
    (all, daemon)
}

/// What each attack came to: true where it was done.
fn outcomes(log: &str, daemon: &Path) -> BTreeMap<String, bool> {
    std::thread::sleep(Duration::from_millis(2500));
    let lines = log.lines().filter_map(|line| line.split_once('\t'));
    let mut all: BTreeMap<String, bool> =
        lines.map(|(name, said)| (name.to_owned(), said == "done")).collect();
    // It is not about its start but about its survival.
    all.insert("daemon that ignores TERM".to_owned(), daemon.exists());
    all
}

#[test]
fn what_gets_out_is_what_the_page_says() {
    let lab = Lab::new();
    if !lab.has_tool("/usr/bin/python3", "-V") {
        return;
    }
    let attack = std::fs::read_to_string(fixture("attack.py")).expect("reads");
    let script = "/usr/bin/python3 src/attack.py src/victims.json\ncase_ok ran\nfinish\n";
    let repo = lab.repo("r").with(&Verifier::new("box").script(script));
    if !has_tier(&repo, "full") {
        return;
    }
    let sibling = lab.repo("sibling");
    let victims = Victims::start(&lab);
    let other = repo.open(&Contract::new("other"));
    let lay = || lay_out(&lab, &victims, &repo.path, &sibling.path, &other.worktree);

    // Without a box each has to work, or it says nothing.
    let (known, daemon) = lay();
    let plain = lab.path("plain/a/tree");
    std::fs::create_dir_all(&plain).expect("creates");
    let file = lab.path("plain/victims.json");
    std::fs::write(&file, known.to_string()).expect("writes");
    let mut command = lab.command("sh", &plain);
    command.args(["-c", "exec 9>>\"$0\"; exec python3 \"$1\" \"$2\""]).arg(lab.path("tmp/inherited"));
    command.arg(fixture("attack.py")).arg(&file);
    let unconfined = outcomes(&run(command, None).ok().text(), &daemon);
    let (shown, not_shown): (Vec<_>, Vec<_>) = unconfined.iter().partition(|(_, done)| **done);
    for (name, _) in not_shown {
        say(&format!("not shown, it does not work here without a box either: {name}"));
    }
    assert!(shown.len() > 35, "most attacks work: {unconfined:?}");

    let mut tiers = BTreeMap::new();
    for tier in ["full", "partial"] {
        let (known, daemon) = lay();
        lab.git_config("tender.sandbox", tier);
        let contract = Contract::new(tier).allowed(&["box"]);
        repo.submitted(&contract, |task| {
            task.write("src/a.txt", format!("in {tier}\n"));
            task.write("src/attack.py", &attack);
            task.write("src/victims.json", known.to_string());
        });
        let mut command = lab.command("sh", &repo.path);
        command.args(["-c", "exec 9>>\"$0\"; exec setsid --wait \"$@\""]).arg(lab.path("tmp/inherited"));
        command.args([crate::support::lab::TENDER, "verify", tier, "--format", "json"]).env("SECRET", CANARY);
        let output = run(command, None);
        let verified: Value =
            serde_json::from_str(&output.text()).unwrap_or_else(|_| panic!("{}", output.all()));
        let log = log_of(&repo, &verified);
        tiers.insert(tier, outcomes(&log, &daemon));
        assert!(tiers[tier].len() >= unconfined.len(), "{tier} ran all of it: {log}");
    }
    let open = |tier: &str, name: &str| tiers[tier].get(name).copied().unwrap_or(true);
    let through: Vec<&String> =
        shown.iter().map(|(name, _)| *name).filter(|name| open("full", name)).collect();
    assert!(through.is_empty(), "the tier full lets through {through:?}");

    compare_with_page(&unconfined, &open);
}

/// Compares with the table of the page, or writes it anew.
fn compare_with_page(unconfined: &BTreeMap<String, bool>, open: &dyn Fn(&str, &str) -> bool) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/sandbox.md");
    let text = std::fs::read_to_string(&page).expect("reads docs/sandbox.md");
    let (before, rest) = text.split_once(BEGIN).expect("a table begins");
    let (table, after) = rest.split_once(END).expect("it ends");
    let word = |tier: &str, name: &str| if open(tier, name) { "**gets through**" } else { "stopped" };
    let row = |name: &str| format!("| {name} | {} | {} |\n", word("partial", name), word("full", name));
    if std::env::var_os("UPDATE_SANDBOX").is_some() {
        let rows: String = unconfined.keys().map(|name| row(name)).collect();
        let new = format!("{before}{BEGIN}| attack | partial | full |\n|---|---|---|\n{rows}{END}{after}");
        std::fs::write(&page, new).expect("writes docs/sandbox.md");
        return;
    }
    for (name, _) in unconfined.iter().filter(|(_, done)| **done) {
        assert!(table.contains(&row(name)), "docs/sandbox.md does not say: {}", row(name));
    }
}
