//! `demo`: the whole pipeline on a throw-away repository, with one delivery and one refusal. Nothing is
//! staged: each step is the operation that the command of that name runs.

use super::{Session, deliver, open, report, submit, verify};
use crate::domain::ledger::action::Actor;
use crate::domain::ledger::objects::{Demo, DemoStep};
use crate::error::{Code, Failure, Result};
use crate::git::{Caller, Environment, Git, Repository};
use crate::render::{candidate_text, delivery_text, failure_text, report_text, task_text, verification_text};
use crate::store::Layout;
use crate::store::layout::write_shared;
use crate::task::session::{Machine, Nobody};
use std::path::{Path, PathBuf};

const README: &str = "# Greeting\n\nSay hello.\n\nThat is all.\n";
const CHECK: &str = "#!/bin/sh\n# Passes while the greeting is a whole sentence. Writes what a test runner would.\nif grep -q 'Say hello.*\\.$' docs/greeting.md; then\n  echo 'test greeting_is_a_sentence ... ok'\n  echo 'test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out'\nelse\n  echo 'test greeting_is_a_sentence ... FAILED'\n  echo 'test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out'\n  exit 1\nfi\n";
const MANIFEST: &str = "protocol = 1\nid = \"greeting\"\ntitle = \"The greeting is a sentence\"\ncommand = [\"sh\", \".tender/verifiers/greeting/check.sh\"]\ninputs = [\"docs/**\"]\noutputs = [{ format = \"libtest\" }]\n";

struct Walk<'a> {
    session: Session,
    top: PathBuf,
    steps: Vec<DemoStep>,
    tell: &'a dyn Fn(&str),
}

/// Makes the repository and walks through it; `tell` hears each step as it happens.
pub fn demo(
    dir: Option<&Path>,
    environment: Environment,
    machine: Machine,
    tell: &dyn Fn(&str),
) -> Result<Demo> {
    let place = match dir {
        Some(dir) => fresh(dir)?,
        None => tempfile::Builder::new()
            .prefix("git-tender-demo-")
            .tempdir()
            .map_err(|e| Failure::io("make a folder in", &std::env::temp_dir(), &e))?
            .keep(),
    };
    let top = place.join("repo");
    prepare(&top, &environment)?;
    let caller = Caller { cwd: top.clone(), git_dir: None, work_tree: None, environment };
    let repository = Repository::discover(&caller)?;
    let layout = Layout::new(repository.common_dir());
    let (origin, person) = ("demo".to_owned(), Box::new(Nobody));
    let session = Session { repository, layout, actor: Actor::Agent, origin, machine, person };
    let mut walk = Walk { session, top: top.clone(), steps: Vec::new(), tell };
    walk.all()?;
    Ok(Demo { schema: "git-tender/demo/v1", repository: top.display().to_string(), steps: walk.steps })
}

fn fresh(dir: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(dir).map_err(|e| Failure::io("create", dir, &e))?;
    let dir = dir.canonicalize().map_err(|e| Failure::io("find", dir, &e))?;
    let mut entries = std::fs::read_dir(&dir).map_err(|e| Failure::io("read", &dir, &e))?;
    if entries.next().is_some() {
        return Err(
            Failure::new(Code::ArgumentsInvalid, format!("{} is not empty", dir.display())).subject("--dir")
        );
    }
    Ok(dir)
}

fn prepare(top: &Path, environment: &Environment) -> Result<()> {
    let files = [
        ("docs/greeting.md", README),
        (".tender/verifiers/greeting/verifier.toml", MANIFEST),
        (".tender/verifiers/greeting/check.sh", CHECK),
        (".tender/config.toml", "[policy]\nwrite = [\"docs/\"]\n"),
    ];
    for (name, content) in files {
        put(top, name, content)?;
    }
    let git = || Git::new(environment, Some(&top.join(".git"))).work_tree(top);
    Git::new(environment, None).cwd(top).args(["init", "--quiet", "."]).run_for_stdout()?;
    git().args(["add", "--all"]).run_for_stdout()?;
    git()
        .with_setting("user.name=git-tender demo")
        .with_setting("user.email=demo@localhost")
        .with_setting("commit.gpgSign=false")
        .args(["commit", "--quiet", "--message", "Start"])
        .run_for_stdout()
        .map(|_| ())
}

fn put(top: &Path, name: &str, content: &str) -> Result<()> {
    let path = top.join(name);
    let folder = path.parent().unwrap_or(top);
    std::fs::create_dir_all(folder).map_err(|e| Failure::io("create", folder, &e))?;
    write_shared(&path, content.as_bytes())
}

fn contract(task: &str, goal: &str) -> String {
    format!(
        r#"{{"taskId": "{task}", "goal": "{goal}", "writeScope": ["docs/"], "allowedTools": [],
  "verification": {{"allowed": ["greeting", "whitespace"]}}}}"#
    )
}

impl Walk<'_> {
    fn step(&mut self, command: &str, outcome: String) {
        (self.tell)(&format!("$ {command}\n{outcome}\n"));
        self.steps.push(DemoStep { command: command.to_owned(), outcome });
    }

    fn all(&mut self) -> Result<()> {
        let worktree = self.open("hello", "Greet the world")?;
        self.change(&worktree, "Say hello to the world.")?;
        self.prove("hello")?;
        put(&self.top, "docs/notes.md", "my own unfinished notes\n")?;
        self.step(
            "echo … > docs/notes.md",
            "you go on working meanwhile: an unrelated file of yours\n".to_owned(),
        );
        self.deliver("hello")?;
        let worktree = self.open("again", "Greet everybody")?;
        self.change(&worktree, "Say hello to everybody.")?;
        self.prove("again")?;
        put(&self.top, "docs/greeting.md", &README.replace("Say hello.", "Say hello to my cat."))?;
        self.step("echo … > docs/greeting.md", "this time you edit the same line yourself\n".to_owned());
        self.refusal("again")?;
        let report = report::report(&self.session, Some("hello"))?;
        self.step("git tender report hello", report_text(&report));
        Ok(())
    }

    fn open(&mut self, task: &str, goal: &str) -> Result<PathBuf> {
        let document = contract(task, goal);
        let object = open::open(&self.session, document.as_bytes(), &|_, _| {})?;
        self.step(&format!("git tender open {task}.json"), task_text(&object));
        Ok(PathBuf::from(object.worktree))
    }

    fn change(&mut self, worktree: &Path, line: &str) -> Result<()> {
        put(worktree, "docs/greeting.md", &README.replace("Say hello.", line))?;
        self.step("edit docs/greeting.md in the worktree", format!("the worker writes: {line}\n"));
        Ok(())
    }

    fn prove(&mut self, task: &str) -> Result<()> {
        let candidate = submit::submit(&self.session, Some(task), None)?;
        self.step(&format!("git tender submit {task}"), candidate_text(&candidate));
        let options = verify::Options::default();
        let verification = verify::verify(&self.session, Some(task), &options, &|_, _| {})?;
        self.step(&format!("git tender verify {task}"), verification_text(&verification));
        match verify::refusal_of_rows(task, &verification.requirements) {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }

    fn deliver(&mut self, task: &str) -> Result<()> {
        let object = deliver::deliver(&self.session, Some(task), &deliver::Options::default(), &|_, _| {})?;
        self.step(&format!("git tender deliver {task}"), delivery_text(&object));
        Ok(())
    }

    fn refusal(&mut self, task: &str) -> Result<()> {
        match deliver::deliver(&self.session, Some(task), &deliver::Options::default(), &|_, _| {}) {
            Err(failure) if failure.code() == Code::DeliveryConflict => {
                self.step(&format!("git tender deliver {task}"), failure_text(&failure));
                Ok(())
            }
            Err(other) => Err(other),
            Ok(_) => Err(Failure::internal("the demo's second delivery should have been refused")),
        }
    }
}
