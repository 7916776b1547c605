//! Whole processes against their peers: the same work on the same repository in the same run, in turn.
//!
//! `cargo bench` prints one line a case: the medians of both and their ratio. Times depend on the machine; the ratio is what to quote.
//! `BENCH_RUNS` sets the number of counted runs (5), `BENCH_LARGE` the size of the large repository (100000 files; 0 leaves it out).

#![expect(clippy::print_stdout, reason = "a bench prints its table")]
#![expect(clippy::disallowed_methods, reason = "a bench runs programs and makes files of its own")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
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
    open(1_000, runs);
    pipeline(1_000, runs);
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

    fn run(&self, program: &str, args: &[&str]) -> Output {
        let output = Command::new(program)
            .args(args)
            .current_dir(self.top())
            .env("HOME", self.dir.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .expect("starts");
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
        let text = format!(r#"{{"taskId":"{task}","goal":"bench","writeScope":["**"],"allowedTools":[]}}"#);
        std::fs::write(path, text).expect("writes");
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn name(n: usize) -> String {
    format!("d{:04}/f{n:06}.txt", n / 100)
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
