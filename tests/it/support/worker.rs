//! A worker at the gate: calls of tools, as its server makes them.

use super::lab::TENDER;
use super::repo::Repo;
use git_tender::domain::action::Actor;
use git_tender::git::{Caller, Environment, Repository};
use git_tender::ops::Session;
use git_tender::ops::gate::{Answer, Door, Line};
use git_tender::ops::session::{Machine, Nobody};
use git_tender::store::Layout;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::PathBuf;

/// A worker of one task.
pub struct Worker {
    session: Session,
    task: String,
}

impl Worker {
    /// With the laboratory's environment.
    pub fn of(repo: &Repo<'_>, task: &str) -> Self {
        Self::with(repo, task, &[])
    }

    /// With further variables.
    pub fn with(repo: &Repo<'_>, task: &str, more: &[(&str, &str)]) -> Self {
        let mut command = repo.lab.command("git", &repo.path);
        command.envs(more.iter().copied());
        let set = command.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
        let vars: Vec<(OsString, OsString)> = set.collect();
        let caller = Caller {
            cwd: repo.path.clone(),
            git_dir: None,
            work_tree: None,
            environment: Environment::scrubbed(vars.iter().cloned()),
        };
        let repository = Repository::discover(&caller).expect("a repository");
        let machine = Machine {
            program: PathBuf::from(TENDER),
            vars,
            home: Some(repo.lab.path("home")),
            cache: Some(repo.lab.path("cache")),
        };
        let session = Session {
            layout: Layout::new(repository.common_dir()),
            repository,
            actor: Actor::Agent,
            origin: "mcp".to_owned(),
            machine,
            person: Box::new(Nobody),
        };
        Self { session, task: task.to_owned() }
    }

    /// A call and what came of it.
    pub fn call(&self, tool: &str, arguments: Value) -> Answer {
        let mut door = Door::open(&self.session, Some(&self.task)).expect("a task that goes on");
        let line = Line { wants_to_stop: &|| false, progress: &|_, _, _| {} };
        door.call(tool, &arguments, &line)
    }

    /// The result of a call that is carried out.
    #[track_caller]
    pub fn ok(&self, tool: &str, arguments: Value) -> Value {
        self.call(tool, arguments).result.unwrap_or_else(|failure| panic!("{tool}: {failure:?}"))
    }

    /// The failure of a call that is refused with this code.
    #[track_caller]
    pub fn refused(&self, tool: &str, arguments: Value, code: &str) -> Value {
        let failure = self.call(tool, arguments).result.expect_err(tool);
        assert_eq!(failure.code().as_str(), code, "{failure:?}");
        serde_json::to_value(&failure).expect("serializes")
    }

    /// Asks, and gives the question's id.
    #[track_caller]
    pub fn ask(&self, question: &str) -> String {
        id(&self.ok("request_input", json!({ "question": question })))
    }

    /// Proposes, and gives the wish's id.
    #[track_caller]
    pub fn propose(&self, change: Value) -> String {
        id(&self
            .ok("propose_amendment", json!({ "change": change, "reason": "it cannot be done otherwise" })))
    }

    /// Notes a finding, and gives the answer.
    #[track_caller]
    pub fn note(&self, text: &str, refs: &[&str]) -> Value {
        self.ok("note_finding", json!({ "text": text, "refs": refs }))
    }
}

fn id(answer: &Value) -> String {
    answer["id"].as_str().expect("an id").to_owned()
}
