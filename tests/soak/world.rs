//! The repository that all work at, and what they write down of it.

use crate::support::lab::{TENDER, run};
use crate::support::{Lab, Out, Repo, Verifier};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Directories that tasks and the user work in. `own` is the user's: no contract names it.
pub const PLACES: &[&str] = &["p0", "p1", "p2", "p3", "own"];
/// How many of [`PLACES`] tasks may have.
pub const SHARED: usize = 4;
/// Files in each to begin with.
pub const FILES: usize = 12;

/// One command of an actor, as seen from outside.
#[derive(Debug, Clone)]
pub struct Command {
    pub args: Vec<String>,
    pub begin: Instant,
    pub end: Instant,
    pub killed: bool,
    pub code: i32,
    pub json: Value,
}

impl Command {
    /// True for those that may write to the live tree.
    pub fn may_write(&self) -> bool {
        ["deliver", "undo", "ship", "recover"].contains(&self.args[0].as_str())
    }
}

/// One thing that the user did.
#[derive(Debug, Clone)]
pub struct Deed {
    pub begin: Instant,
    pub end: Instant,
    pub what: What,
}

#[derive(Debug, Clone)]
pub enum What {
    Wrote { path: String, sha256: String },
    Removed { path: String },
    Moved { from: String, to: String },
    Committed,
}

/// What an actor's task wanted.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    pub scope: Vec<String>,
    pub required: Vec<String>,
    /// Paths that it changed within its scope.
    pub changed: Vec<String>,
}

/// Everything.
pub struct World<'l> {
    pub lab: &'l Lab,
    pub repo: Repo<'l>,
    /// Path to sha256 of its content, at the very beginning.
    pub first: BTreeMap<String, String>,
    pub stop: AtomicBool,
    pub commands: Mutex<Vec<Command>>,
    pub deeds: Mutex<Vec<Deed>>,
    /// There is one user: whoever saves for them holds this, so that it is known which save of a path was the
    /// last.
    pub hand: Mutex<()>,
    pub tasks: Mutex<BTreeMap<String, Wanted>>,
    /// sha256 of everything written in worktrees that the verifier `clean` must refuse.
    pub bad: Mutex<BTreeSet<String>>,
}

impl<'l> World<'l> {
    pub fn new(lab: &'l Lab) -> Self {
        let repo = lab.empty_repo("app");
        for place in PLACES {
            for n in 0..FILES {
                repo.write(format!("{place}/f{n}.txt"), format!("first {place} {n}\n"));
            }
        }
        let inputs: Vec<String> = PLACES[..SHARED].iter().map(|place| format!("{place}/**")).collect();
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        let places = PLACES[..SHARED].join(" ");
        Verifier::new("fine").inputs(&inputs).write(&repo);
        let clean = format!("if grep -rq BAD {places}; then case_bad clean; else case_ok clean; fi\nfinish");
        Verifier::new("clean").inputs(&inputs).script(&clean).write(&repo);
        let moody = format!(
            "if grep -rq MOODY {places} && [ $(($(date +%s%N) / 1000 % 2)) = 0 ]; then case_bad moody; else case_ok moody; fi\nfinish"
        );
        Verifier::new("moody").inputs(&inputs).script(&moody).write(&repo);
        repo.commit("first");
        let first = files(&repo);
        Self {
            lab,
            repo,
            first,
            stop: AtomicBool::new(false),
            commands: Mutex::default(),
            deeds: Mutex::default(),
            hand: Mutex::default(),
            tasks: Mutex::default(),
            bad: Mutex::default(),
        }
    }

    /// Runs the program, and kills it after a while where one is given. Every answer is written down.
    pub fn tender(&self, args: &[&str], kill: Option<Duration>) -> Command {
        let mut command = self.lab.command(TENDER, &self.repo.path);
        command.args(args).args(["--format", "json"]);
        let shown = format!("{command:?}");
        let begin = Instant::now();
        let mut killed = false;
        let out = match kill {
            None => run(command, None),
            Some(delay) => {
                command.stdout(Stdio::piped()).stderr(Stdio::piped());
                let mut child = command.spawn().expect("starts");
                std::thread::sleep(delay);
                killed = child.try_wait().expect("waits").is_none() && child.kill().is_ok();
                Out::new(shown, child.wait_with_output().expect("waits"))
            }
        };
        assert!(!out.errors().contains("panicked at"), "{args:?}: {}", out.all());
        killed = killed && out.code == 128 + 9;
        let json = serde_json::from_slice(&out.stdout).unwrap_or(Value::Null);
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        let command = Command { args, begin, end: Instant::now(), killed, code: out.code, json };
        self.commands.lock().expect("whole").push(command.clone());
        command
    }

    /// How long a command took lately that was done and not killed.
    pub fn usual(&self, name: &str) -> Duration {
        let commands = self.commands.lock().expect("whole");
        let done = commands.iter().rev().find(|command| command.args[0] == name && command.code == 0);
        done.map_or(Duration::from_millis(400), |command| command.end - command.begin)
    }

    /// After the last kill: everything unfinished is brought to its end.
    pub fn settle(&self) {
        // A git process of a killed command may still be at work.
        std::thread::sleep(Duration::from_millis(300));
        let recovered = self.tender(&["recover"], None);
        assert_eq!(recovered.code, 0, "{:#}", recovered.json);
        let again = self.tender(&["recover"], None);
        assert_eq!(again.json["actions"], serde_json::json!([]), "{:#}", again.json);
    }
}

/// Every file of the live tree with the sha256 of its content.
pub fn files(repo: &Repo<'_>) -> BTreeMap<String, String> {
    use crate::support::snapshot::{Entry, tree};
    let entries = tree(&repo.path).into_iter();
    entries
        .filter_map(|(path, entry)| match entry {
            Entry::File { bytes, .. } => Some((path, crate::independent::sha256(&bytes))),
            Entry::Link(target) => Some((path, crate::independent::sha256(&target))),
            _ => None,
        })
        .collect()
}
