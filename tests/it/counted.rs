//! What a command may cost, in things that can be counted: git processes, waits for the disk, openings of the
//! ledger. Times depend on the machine; these do not.
//!
//! Each row is a maximum. The repository is an ordinary one with a verifier over all of it, and a task has
//! gone through it before: what is asked once is known by then.

use crate::support::lab::{TENDER, run};
use crate::support::repo::path_text;
use crate::support::{Contract, Lab, Repo, Verifier, say, skip};
use serde_json::json;
use std::process::{Command, Stdio};

const CALLS: &str = "trace=execve,openat,open,fsync,fdatasync,syncfs,sync_file_range,msync,sync";

/// What one command did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Costs {
    git: usize,
    /// Programs that are neither git nor ours.
    others: usize,
    syncs: usize,
    opens: usize,
}

impl Costs {
    fn at_most(git: usize, syncs: usize, opens: usize) -> Self {
        Self { git, others: 0, syncs, opens }
    }

    fn with_others(self, others: usize) -> Self {
        Self { others, ..self }
    }

    fn of_trace(trace: &str) -> Self {
        let mut costs = Self::default();
        for line in trace.lines() {
            // A pid comes first.
            let call = line.split_once(' ').map_or(line, |(_, call)| call.trim_start());
            let name = call.split('(').next().unwrap_or_default();
            let path = call.split('"').nth(1).unwrap_or_default();
            match name {
                "execve" if !call.ends_with(" = 0") => {}
                "execve" if path.ends_with("/git") => costs.git += 1,
                "execve" if path == TENDER => {}
                "execve" => costs.others += 1,
                "openat" | "open" if path.ends_with("/ledger.db") => costs.opens += 1,
                "fsync" | "fdatasync" | "syncfs" | "sync_file_range" | "msync" | "sync" => costs.syncs += 1,
                _ => {}
            }
        }
        costs
    }

    fn minus(self, other: Self) -> Self {
        let less = |a: usize, b: usize| a.saturating_sub(b);
        Self {
            git: less(self.git, other.git),
            others: less(self.others, other.others),
            syncs: less(self.syncs, other.syncs),
            opens: less(self.opens, other.opens),
        }
    }

    fn is_within(self, most: Self) -> bool {
        self.git <= most.git
            && self.others <= most.others
            && self.syncs <= most.syncs
            && self.opens <= most.opens
    }
}

fn can_trace(lab: &Lab) -> bool {
    let tried = Command::new("strace").args(["-o", "/dev/null", "true"]).stderr(Stdio::null()).status();
    let can = tried.is_ok_and(|status| status.success());
    if !can {
        match lab.has_tool("strace", "-V") {
            true => say("SKIPPED: tracing is forbidden here; nothing is counted"),
            false => skip("strace is not installed; nothing is counted"),
        }
    }
    can
}

/// Runs a command to its good end and counts, its children's calls too.
#[track_caller]
fn count(repo: &Repo<'_>, args: &[&str], input: Option<&[u8]>) -> (Costs, String) {
    let trace = repo.lab.path("tmp/counted");
    let mut command = repo.lab.command("setsid", &repo.path);
    command.args(["--wait", "strace", "-f", "-qq", "-o"]).arg(&trace).args(["-e", "signal=none"]);
    command.args(["-s", "4096", "-e", CALLS, "--", TENDER]).args(args);
    run(command, input).ok();
    let text = String::from_utf8_lossy(&std::fs::read(&trace).expect("a trace")).into_owned();
    (Costs::of_trace(&text), text)
}

/// Collects what is beyond its maximum, so that one run shows all of it.
struct Table<'r, 'l> {
    repo: &'r Repo<'l>,
    beyond: Vec<String>,
}

impl Table<'_, '_> {
    #[track_caller]
    fn row(&mut self, args: &[&str], most: Costs) {
        let (costs, trace) = count(self.repo, args, None);
        self.compare(&args.join(" "), costs, most, &trace);
    }

    fn compare(&mut self, name: &str, costs: Costs, most: Costs, trace: &str) {
        say(&format!("{name}: {costs:?}"));
        if !costs.is_within(most) {
            let telling = |line: &&str| line.contains("sync") || line.contains("execve");
            let calls: Vec<&str> = trace.lines().filter(telling).collect();
            self.beyond.push(format!("{name}: {costs:?} and not {most:?}\n  {}", calls.join("\n  ")));
        }
    }
}

fn contract(id: &str) -> Contract {
    let shown = json!([{"id": "all", "text": "all of it", "verifier": "all"}]);
    Contract::new(id).allowed(&["all"]).set("requirements", shown)
}

/// A repository that one task has gone through.
fn used_repository(lab: &Lab) -> Repo<'_> {
    let repo = lab.repo("r").with(&Verifier::new("all").inputs(&["**"]));
    let first = repo.submitted(&contract("first"), |task| task.write("src/a.txt", "first\n"));
    for command in ["verify", "verify", "deliver", "undo"] {
        repo.json(&[command, &first.id]).ok();
    }
    repo.json(&["status"]).ok();
    let second = repo.open(&contract("second"));
    repo.json(&["submit", &second.id]).ok();
    repo
}

#[test]
fn no_command_does_more_than_its_share() {
    let lab = Lab::new();
    if !can_trace(&lab) {
        return;
    }
    let repo = used_repository(&lab);
    let mut table = Table { repo: &repo, beyond: Vec::new() };
    let open = |id: &str| path_text(&contract(id).file(&lab)).to_owned();
    let edit = |id: &str, text: &str| {
        let file = lab.path(format!("r.tender/{id}/src/a.txt"));
        std::fs::write(file, text).expect("writes");
    };
    let looks = Costs::at_most(0, 0, 1);

    table.row(&["open", &open("t")], Costs::at_most(2, 6, 1));
    edit("t", "changed\n");
    table.row(&["submit", "t"], Costs::at_most(2, 5, 1));
    // The verifier's own shell is what it is about.
    table.row(&["verify", "t"], Costs::at_most(0, 5, 1).with_others(1));
    table.row(&["verify", "t"], Costs::at_most(0, 1, 1));
    table.row(&["deliver", "t"], Costs::at_most(0, 5, 1));
    for view in [&["deliver", "t"][..], &["status"], &["report", "t"], &["log", "t"], &["diff", "t"]] {
        table.row(view, looks);
    }
    let evidence = repo.json(&["report", "t"]).ok().json["requirements"][0]["evidence"].clone();
    table.row(&["show", evidence.as_str().expect("evidence")], looks);
    table.row(&["undo", "t"], Costs::at_most(0, 5, 1));

    let patch = repo.patch_of(|copy| copy.write("docs/b.md", "patched\n"));
    let file = lab.path("tmp/change.patch");
    std::fs::write(&file, patch).expect("writes");
    repo.open(&contract("p"));
    table.row(&["submit", "p", "--patch", path_text(&file)], Costs::at_most(2, 5, 1));

    repo.open(&contract("s"));
    edit("s", "shipped\n");
    table.row(&["ship", "s"], Costs::at_most(2, 15, 1).with_others(1));
    assert!(table.beyond.is_empty(), "{}", table.beyond.join("\n"));
}

#[test]
fn no_call_of_a_worker_does_more_than_its_share() {
    let lab = Lab::new();
    if !can_trace(&lab) {
        return;
    }
    let repo = used_repository(&lab);
    let mut table = Table { repo: &repo, beyond: Vec::new() };
    let line = |id: u32, method: &str, params: serde_json::Value| {
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
    };
    let client = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    let started = [
        line(1, "initialize", client),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string(),
    ];
    let call = |id: u32, tool: &str, arguments: serde_json::Value| {
        line(id, "tools/call", json!({"name": tool, "arguments": arguments}))
    };
    let text = "*** Begin Patch\n*** Update File: src/a.txt\n@@\n-alpha\n+omega\n*** End Patch";
    let read = call(2, "read_file", json!({"path": "src/a.txt"}));
    let patch = call(3, "apply_patch", json!({"patch": text}));

    // Each session does one call more than the one before it; each has a task of its own.
    let counted = |id: &str, calls: &[&String]| {
        let task = repo.open(&contract(id));
        let lines: Vec<&str> = started.iter().chain(calls.iter().copied()).map(String::as_str).collect();
        let counted = count(&repo, &["mcp", id], Some(format!("{}\n", lines.join("\n")).as_bytes()));
        (counted, task)
    };
    let ((none, _), _) = counted("m0", &[]);
    let ((one, reading), _) = counted("m1", &[&read]);
    let ((two, patching), task) = counted("m2", &[&read, &patch]);
    assert_eq!(task.read("src/a.txt"), b"omega\n");
    table.compare("read_file", one.minus(none), Costs::at_most(0, 2, 0), &reading);
    table.compare("apply_patch", two.minus(one), Costs::at_most(0, 5, 0), &patching);
    assert!(table.beyond.is_empty(), "{}", table.beyond.join("\n"));
}

/// Files of `folders` folders, ten in each, with a verifier over all of them.
fn repository_of(lab: &Lab, folders: usize) -> Repo<'_> {
    let repo = lab.repo("r").with(&Verifier::new("all").inputs(&["**"]));
    for folder in 0..folders {
        for file in 0..10 {
            repo.write(format!("many/d{}/e{folder}/{file}.txt", folder / 20), format!("{folder} {file}\n"));
        }
    }
    // The looks after a delivery are at every file by their nature.
    repo.write(".tender/config.toml", "[policy]\nlive = \"off\"\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-q", "-m", "many"]);
    // An object that has a file of its own would be looked at like any other file.
    repo.git(&["gc", "-q"]);
    repo
}

/// Runs a command to its good end and counts how often a path or a folder is looked at.
#[track_caller]
fn count_looks(repo: &Repo<'_>, args: &[&str]) -> usize {
    let trace = repo.lab.path("tmp/looks");
    let mut command = repo.lab.command("setsid", &repo.path);
    command.args(["--wait", "strace", "-f", "-qq", "-o"]).arg(&trace).args(["-e", "signal=none"]);
    command.args(["-e", "trace=%file,getdents64", "--", TENDER]).args(args);
    run(command, None).ok();
    String::from_utf8_lossy(&std::fs::read(&trace).expect("a trace")).lines().count()
}

/// What each command looks at, in a repository of this many folders.
fn all_looks(folders: usize) -> Vec<(String, usize)> {
    let lab = Lab::new();
    let repo = repository_of(&lab, folders);
    let first = repo.submitted(&contract("first"), |task| task.write("many/d0/e0/0.txt", "first\n"));
    for command in ["verify", "verify", "deliver", "undo"] {
        repo.json(&[command, &first.id]).ok();
    }
    let mut found = Vec::new();
    let mut look = |args: &[&str]| found.push((args.join(" "), count_looks(&repo, args)));
    look(&["open", path_text(&contract("t").file(&lab))]);
    std::fs::write(lab.path("r.tender/t/many/d0/e1/3.txt"), "changed\n").expect("writes");
    look(&["submit", "t"]);
    look(&["verify", "t"]);
    for args in [
        &["verify", "t"][..],
        &["deliver", "t"],
        &["deliver", "t"],
        &["status"],
        &["report", "t"],
        &["log", "t"],
        &["diff", "t"],
        &["undo", "t"],
    ] {
        look(args);
    }
    let patch = repo.patch_of(|copy| copy.write("many/d0/e0/1.txt", "patched\n"));
    let file = lab.path("tmp/change.patch");
    std::fs::write(&file, patch).expect("writes");
    repo.open(&contract("p"));
    look(&["submit", "p", "--patch", path_text(&file)]);
    repo.write("many/d0/e0/2.txt", "staged\n");
    repo.git(&["add", "-A"]);
    repo.json(&["check"]).ok();
    look(&["check"]);
    found
}

#[test]
fn looks_do_not_grow_with_the_files() {
    let lab = Lab::new();
    if !can_trace(&lab) {
        return;
    }
    let (few, many) = (all_looks(10), all_looks(100));
    let more_files = 90 * 10;
    let mut beyond = Vec::new();
    for ((name, few), (other, many)) in few.iter().zip(&many) {
        assert_eq!(name.split(' ').next(), other.split(' ').next());
        say(&format!("{name}: {few} and {many}"));
        // Whoever lays out a tree, or looks for what changed in one, looks at each of its files.
        let most = match name.split(' ').next() {
            Some("open") => more_files * 8,
            Some("submit") if !name.contains("--patch") => more_files * 2,
            // A slot is looked at before and after its run.
            Some("verify") if *few > 1_500 => more_files * 7 / 2,
            _ => 20,
        };
        if many.saturating_sub(*few) > most {
            beyond.push(format!("{name}: {few} looks for 100 files and {many} for 1,000"));
        }
    }
    assert!(beyond.is_empty(), "{}", beyond.join("\n"));
}

#[test]
fn a_small_candidate_leaves_no_pack_in_the_users_repository() {
    let lab = Lab::new();
    let repo = lab.repo("r").with(&Verifier::new("all").inputs(&["**"]));
    let packs = || {
        let names = std::fs::read_dir(repo.join(".git/objects/pack")).expect("a folder").flatten();
        names.map(|name| name.file_name()).collect::<Vec<_>>()
    };
    let before = packs();
    for at in 0..5 {
        let id = format!("t{at}");
        let task = repo.submitted(&contract(&id), |task| task.write("src/a.txt", format!("{at}\n")));
        repo.json(&["verify", &task.id]).ok();
        repo.json(&["deliver", &task.id]).ok();
        repo.json(&["undo", &task.id]).ok();
        repo.open(&contract(&format!("p{at}")));
        let patch = repo.patch_of(|copy| copy.write("docs/b.md", format!("patched {at}\n")));
        repo.submit_patch(&format!("p{at}"), &patch).ok();
        assert_eq!(packs(), before, "after {id}");
    }
    repo.json(&["gc"]).ok();
    assert_eq!(packs(), before, "after gc");
}
