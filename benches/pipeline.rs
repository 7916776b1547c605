//! Whole processes against their peers: the same work on the same repository in the same run, in turn.
//!
//! `cargo bench` prints one line a case: the medians of both and their ratio. Times depend on the machine;
//! the ratio is what to quote. `BENCH_RUNS` sets the number of counted runs (5), `BENCH_LARGE` the size of
//! the large repository (100000 files; 0 leaves it out), `BENCH_CRATES` that of a cargo workspace (200; 0
//! leaves it out).

#![expect(clippy::print_stdout, reason = "a bench prints its table")]
#![expect(clippy::disallowed_methods, reason = "a bench runs programs and makes files of its own")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_git-tender");

fn main() {
    let runs = number("BENCH_RUNS", 5);
    let large = number("BENCH_LARGE", 100_000);
    println!("| case | git-tender | peer | ratio |");
    println!("|---|---|---|---|");
    for files in [1, 100, 5_000] {
        deliver(&format!("deliver {files} files / git apply"), files.max(100), files, runs);
    }
    deliver("deliver 1 file of 100 / git apply", 100, 1, runs);
    if large > 0 {
        deliver(&format!("deliver 1 file of {large} / git apply"), large, 1, runs);
    }
    for calls in [0, 1_000] {
        call(1_000, calls, runs);
    }
    open(1_000, runs);
    pipeline(1_000, runs);
    for files in [1_000, large] {
        if files > 0 {
            verify_fresh(files, runs);
            look_at_live(files, runs);
        }
    }
    let crates = number("BENCH_CRATES", 200);
    if crates > 0 {
        verify_next_candidate(crates, runs);
    }
}

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// A repository of `files` small files in folders of 100, and a way to run things in it.
struct Lab {
    dir: tempfile::TempDir,
    files: usize,
}

impl Lab {
    fn new(files: usize) -> Self {
        let lab = Self { dir: tempfile::tempdir().expect("a folder"), files };
        std::fs::create_dir_all(lab.top()).expect("creates");
        lab.git(&["init", "-q", "."]);
        for n in 0..files {
            let path = lab.top().join(name(n));
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("creates");
            std::fs::write(path, content(n, "old")).expect("writes");
        }
        lab.git(&["add", "-A"]);
        lab.git(&["-c", "user.name=b", "-c", "user.email=b@localhost", "commit", "-q", "-m", "start"]);
        lab
    }

    fn top(&self) -> PathBuf {
        self.dir.path().join("repo")
    }

    fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args).current_dir(self.top());
        command.env("HOME", self.dir.path()).env("GIT_CONFIG_NOSYSTEM", "1");
        command
    }

    fn run(&self, program: &str, args: &[&str]) -> Output {
        let output = self.command(program, args).output().expect("starts");
        assert!(
            output.status.success(),
            "{program} {args:?}: {}{}",
            text(&output.stdout),
            text(&output.stderr)
        );
        output
    }

    fn git(&self, args: &[&str]) -> Output {
        self.run("git", args)
    }

    fn timed(&self, program: &str, args: &[&str]) -> Duration {
        let start = Instant::now();
        self.run(program, args);
        start.elapsed()
    }

    /// A patch that changes the first `count` files.
    fn patch(&self, count: usize) -> PathBuf {
        assert!(count <= self.files);
        for n in 0..count {
            std::fs::write(self.top().join(name(n)), content(n, "new")).expect("writes");
        }
        let diff = self.git(&["diff", "--binary", "--full-index"]);
        self.git(&["checkout", "-q", "--", "."]);
        let path = self.dir.path().join("change.patch");
        std::fs::write(&path, diff.stdout).expect("writes");
        path
    }

    fn contract(&self, task: &str, path: &Path) {
        let text = format!(
            r#"{{"taskId":"{task}","goal":"bench","writeScope":["**"],"allowedTools":["read_file","apply_patch"],
                "budget":{{"toolCalls":100000}}}}"#
        );
        std::fs::write(path, text).expect("writes");
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn name(n: usize) -> String {
    format!("d{:04}/f{n:06}.txt", n / 100)
}

/// What stands in the changed line after so many patches.
fn word(patches: usize) -> String {
    if patches == 0 { "old".to_owned() } else { format!("new{patches}") }
}

fn content(n: usize, word: &str) -> String {
    (0..20)
        .map(|line| if line == 10 { format!("{word} {n}\n") } else { format!("line {line} of file {n}\n") })
        .collect()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn row(case: &str, ours: Vec<Duration>, peer: Vec<Duration>) {
    let mut ratios: Vec<f64> =
        ours.iter().zip(&peer).map(|(a, b)| a.as_secs_f64() / b.as_secs_f64()).collect();
    ratios.sort_by(f64::total_cmp);
    let ms = |times| median(times).as_secs_f64() * 1e3;
    println!("| {case} | {:.1} ms | {:.1} ms | {:.2} |", ms(ours), ms(peer), ratios[ratios.len() / 2]);
}

fn deliver(case: &str, files: usize, changed: usize, runs: usize) {
    let lab = Lab::new(files);
    let patch = lab.patch(changed);
    let patch = patch.to_str().expect("UTF-8");
    let contract = lab.dir.path().join("contract.json");
    let (mut ours, mut peer) = (Vec::new(), Vec::new());
    for run in 0..=runs {
        let task = format!("b{run}");
        lab.contract(&task, &contract);
        lab.run(PROGRAM, &["open", contract.to_str().expect("UTF-8")]);
        lab.run(PROGRAM, &["submit", &task, "--patch", patch]);
        let one = lab.timed(PROGRAM, &["deliver", &task]);
        lab.run(PROGRAM, &["undo", &task]);
        lab.run(PROGRAM, &["gc"]);
        let other = lab.timed("git", &["apply", patch]);
        lab.git(&["apply", "-R", patch]);
        // The first pair warms the caches.
        if run > 0 {
            ours.push(one);
            peer.push(other);
        }
    }
    row(case, ours, peer);
}

/// A worker's connection.
struct Worker {
    server: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Worker {
    fn connect(lab: &Lab, task: &str) -> Self {
        let mut command = lab.command(PROGRAM, &["mcp", task]);
        let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starts");
        let input = server.stdin.take().expect("piped");
        let output = BufReader::new(server.stdout.take().expect("piped"));
        let mut worker = Self { server, input, output };
        let client = r#"{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}"#;
        worker.ask("initialize", client);
        writeln!(worker.input, r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#)
            .expect("writes");
        worker
    }

    fn ask(&mut self, method: &str, params: &str) -> Duration {
        let start = Instant::now();
        writeln!(self.input, r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)
            .expect("writes");
        let mut answer = String::new();
        self.output.read_line(&mut answer).expect("reads");
        let took = start.elapsed();
        assert!(answer.contains(r#""result""#) && !answer.contains(r#""isError":true"#), "{answer}");
        took
    }

    fn call(&mut self, tool: &str, arguments: &str) -> Duration {
        self.ask("tools/call", &format!(r#"{{"name":"{tool}","arguments":{arguments}}}"#))
    }

    fn end(self) {
        let Self { mut server, input, output } = self;
        drop((input, output));
        assert!(server.wait().expect("ends").success());
    }
}

/// A worker's patch of one file, as the next of `before` calls, against the same patch by a process that
/// keeps no account of it.
fn call(files: usize, before: usize, runs: usize) {
    let lab = Lab::new(files);
    let patch = lab.patch(1);
    let patch = patch.to_str().expect("UTF-8");
    let contract = lab.dir.path().join("contract.json");
    lab.contract("c", &contract);
    lab.run(PROGRAM, &["open", contract.to_str().expect("UTF-8")]);
    let mut worker = Worker::connect(&lab, "c");
    for n in 0..before {
        worker.call("read_file", &format!(r#"{{"path":"{}"}}"#, name(n % files)));
    }
    let (mut ours, mut peer) = (Vec::new(), Vec::new());
    for run in 0..=runs {
        let (old, new) = (word(run), word(run + 1));
        let lines = [
            "*** Begin Patch".to_owned(),
            format!("*** Update File: {}", name(0)),
            format!("@@\\n-{old} 0\\n+{new} 0"),
            "*** End Patch".to_owned(),
        ];
        let one = worker.call("apply_patch", &format!(r#"{{"patch":"{}"}}"#, lines.join("\\n")));
        let other = lab.timed("git", &["apply", patch]);
        lab.git(&["apply", "-R", patch]);
        if run > 0 {
            ours.push(one);
            peer.push(other);
        }
    }
    worker.end();
    row(&format!("apply_patch to 1 file after {before} calls / git apply"), ours, peer);
}

/// Writes files and commits them.
fn commit(lab: &Lab, files: &[(&str, &str)]) {
    for (path, content) in files {
        let path = lab.top().join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("creates");
        std::fs::write(path, content).expect("writes");
    }
    lab.git(&["add", "-A"]);
    lab.git(&["-c", "user.name=b", "-c", "user.email=b@localhost", "commit", "-q", "-m", "more"]);
}

/// A verifier that depends on the whole tree.
const PLAIN: (&str, &str) =
    (".tender/verifiers/plain/verifier.toml", "protocol = 1\nid = \"plain\"\ncommand = [\"true\"]\n");

/// `verify` where all the evidence is fresh.
fn verify_fresh(files: usize, runs: usize) {
    let lab = Lab::new(files);
    commit(&lab, &[PLAIN]);
    let patch = lab.patch(1);
    lab.run(PROGRAM, &["start", "bench", "--scope", "**", "--verify", "plain"]);
    lab.run(PROGRAM, &["submit", "t1", "--patch", patch.to_str().expect("UTF-8")]);
    lab.run(PROGRAM, &["verify", "t1"]);
    let (mut ours, mut peer) = (Vec::new(), Vec::new());
    for run in 0..=runs {
        let one = lab.timed(PROGRAM, &["verify", "t1"]);
        let other = lab.timed("git", &["status", "--porcelain"]);
        if run > 0 {
            ours.push(one);
            peer.push(other);
        }
    }
    row(&format!("verify, all fresh, {files} files / git status"), ours, peer);
}

/// What a delivery's look at the rest of the live tree costs: a delivery with it less one without.
fn look_at_live(files: usize, runs: usize) {
    let timed = |live: &str| {
        let lab = Lab::new(files);
        let policy = format!("[policy]\nlive = \"{live}\"\n");
        commit(&lab, &[PLAIN, (".tender/config.toml", &policy)]);
        let patch = lab.patch(1);
        let patch = patch.to_str().expect("UTF-8");
        let (mut deliveries, mut looks) = (Vec::new(), Vec::new());
        for run in 0..=runs {
            let task = format!("t{}", run + 1);
            lab.run(PROGRAM, &["start", "bench", "--scope", "**", "--verify", "plain"]);
            lab.run(PROGRAM, &["submit", &task, "--patch", patch]);
            lab.run(PROGRAM, &["verify", &task]);
            let one = lab.timed(PROGRAM, &["deliver", &task]);
            looks.push(lab.timed("git", &["status", "--porcelain"]));
            lab.run(PROGRAM, &["undo", &task]);
            lab.run(PROGRAM, &["gc"]);
            deliveries.push(one);
        }
        (deliveries, looks)
    };
    let (without, _) = timed("off");
    let (with, looks) = timed("warn");
    let without = median(without[1..].to_vec());
    let ours = with[1..].iter().map(|one| one.saturating_sub(without)).collect();
    row(
        &format!("look at the live tree after a delivery, {files} files / git status"),
        ours,
        looks[1..].to_vec(),
    );
}

/// `verify` of the second and later candidates of a cargo workspace, each with one more crate changed, against
/// the same tests in a folder where they were built before.
fn verify_next_candidate(crates: usize, runs: usize) {
    let lab = Lab::new(1);
    let home = std::env::var("HOME").unwrap_or_default();
    let rustup = std::env::var("RUSTUP_HOME").unwrap_or_else(|_| format!("{home}/.rustup"));
    let source = |n: usize, text: &str| {
        format!(
            "pub fn f() -> usize {{ {n} }}\n{text}#[cfg(test)] mod tests {{ #[test] fn t() {{ assert_eq!(super::f(), {n}) }} }}\n"
        )
    };
    let mut files = vec![
        ("Cargo.toml".to_owned(), "[workspace]\nmembers = [\"c*\"]\nresolver = \"2\"\n".to_owned()),
        (".gitignore".to_owned(), "target\n".to_owned()),
    ];
    for n in 0..crates {
        let package = format!("[package]\nname = \"c{n}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
        files.push((format!("c{n}/Cargo.toml"), package));
        files.push((format!("c{n}/src/lib.rs"), source(n, "")));
    }
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("verifiers/cargo-test/verifier.toml");
    let manifest = std::fs::read_to_string(shipped).expect("reads");
    let place = ".tender/verifiers/cargo-test/verifier.toml".to_owned();
    files.push((place, format!("{manifest}env = [\"RUSTUP_HOME\"]\n")));
    let cargo = |folder: &Path, args: &[&str]| {
        let mut command = Command::new("cargo");
        command.args(args).current_dir(folder).env("HOME", lab.dir.path()).env("RUSTUP_HOME", &rustup);
        let start = Instant::now();
        let output = command.output().expect("starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
        start.elapsed()
    };
    let listed: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    commit(&lab, &listed);
    cargo(&lab.top(), &["generate-lockfile", "--offline"]);
    commit(&lab, &[]);
    let peer_folder = lab.dir.path().join("peer");
    lab.git(&["worktree", "add", "-q", "--detach", peer_folder.to_str().expect("UTF-8")]);
    cargo(&peer_folder, &["test", "--offline", "--locked"]);
    let ask = |args: &[&str]| {
        let mut command = lab.command(PROGRAM, args);
        let start = Instant::now();
        let output = command.env("RUSTUP_HOME", &rustup).output().expect("starts");
        assert!(output.status.success(), "{args:?}: {}{}", text(&output.stdout), text(&output.stderr));
        start.elapsed()
    };
    ask(&["start", "bench", "--scope", "**", "--verify", "cargo-test"]);
    let worktree = lab.dir.path().join("repo.tender/t1");
    let (mut ours, mut peer) = (Vec::new(), Vec::new());
    for run in 0..=runs {
        let path = format!("c{run}/src/lib.rs");
        for folder in [&worktree, &peer_folder] {
            std::fs::write(folder.join(&path), source(run, "// another line\n")).expect("writes");
        }
        ask(&["submit", "t1"]);
        let one = ask(&["verify", "t1"]);
        let other = cargo(&peer_folder, &["test", "--offline", "--locked"]);
        // The first one makes the scratch that all begin with.
        if run > 0 {
            ours.push(one);
            peer.push(other);
        }
    }
    row(&format!("verify of the next candidate of {crates} crates / cargo test, warm"), ours, peer);
}

fn open(files: usize, runs: usize) {
    let lab = Lab::new(files);
    let contract = lab.dir.path().join("contract.json");
    let (mut ours, mut peer) = (Vec::new(), Vec::new());
    for run in 0..=runs {
        lab.contract(&format!("o{run}"), &contract);
        let one = lab.timed(PROGRAM, &["open", contract.to_str().expect("UTF-8")]);
        let place = lab.dir.path().join(format!("w{run}"));
        let other = lab.timed("git", &["worktree", "add", "-q", "--detach", place.to_str().expect("UTF-8")]);
        if run > 0 {
            ours.push(one);
            peer.push(other);
        }
    }
    row(&format!("open with {files} files / git worktree add"), ours, peer);
}

/// The whole pipeline against what it replaces: a worktree, a diff there, and an apply here.
fn pipeline(files: usize, runs: usize) {
    let lab = Lab::new(files);
    let patch = lab.patch(100);
    let patch = patch.to_str().expect("UTF-8");
    let contract = lab.dir.path().join("contract.json");
    let (mut ours, mut peer) = (Vec::new(), Vec::new());
    for run in 0..=runs {
        let task = format!("p{run}");
        lab.contract(&task, &contract);
        let start = Instant::now();
        lab.run(PROGRAM, &["open", contract.to_str().expect("UTF-8")]);
        lab.run(PROGRAM, &["submit", &task, "--patch", patch]);
        lab.run(PROGRAM, &["verify", &task]);
        lab.run(PROGRAM, &["deliver", &task]);
        lab.run(PROGRAM, &["report", &task]);
        let one = start.elapsed();
        lab.run(PROGRAM, &["undo", &task]);
        let place = lab.dir.path().join(format!("w{run}"));
        let place = place.to_str().expect("UTF-8");
        let start = Instant::now();
        lab.git(&["worktree", "add", "-q", "--detach", place]);
        lab.git(&["-C", place, "apply", patch]);
        lab.git(&["-C", place, "diff", "--binary"]);
        lab.git(&["apply", patch]);
        let other = start.elapsed();
        lab.git(&["apply", "-R", patch]);
        if run > 0 {
            ours.push(one);
            peer.push(other);
        }
    }
    row(
        &format!(
            "open, submit, verify, deliver, report: 100 of {files} files / worktree add, apply, diff, apply"
        ),
        ours,
        peer,
    );
}
