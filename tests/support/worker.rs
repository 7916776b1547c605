//! A worker: a client of a task's server that knows the tools by which a person is asked, and findings are
//! noted.

use super::mcp::{Client, Reply};
use super::repo::Repo;
use serde_json::{Value, json};
use std::cell::RefCell;

/// A worker of one task, with a server of its own.
pub struct Worker(RefCell<Client>);

impl Worker {
    /// With the laboratory's environment.
    #[track_caller]
    pub fn of(repo: &Repo<'_>, task: &str) -> Self {
        Self::with(repo, task, &[])
    }

    /// With further variables.
    #[track_caller]
    pub fn with(repo: &Repo<'_>, task: &str, more: &[(&str, &str)]) -> Self {
        let mut client = Client::start_in(repo.lab, &repo.path, more, &[task]);
        client.initialize();
        Self(RefCell::new(client))
    }

    /// A call and what came of it.
    #[track_caller]
    pub fn call(&self, tool: &str, arguments: Value) -> Reply {
        self.0.borrow_mut().call(tool, arguments)
    }

    /// The result of a call that is carried out.
    #[track_caller]
    pub fn ok(&self, tool: &str, arguments: Value) -> Value {
        self.call(tool, arguments).ok().clone()
    }

    /// The failure of a call that is refused with this code.
    #[track_caller]
    pub fn refused(&self, tool: &str, arguments: Value, code: &str) -> Value {
        self.call(tool, arguments).fails(code).clone()
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

#[track_caller]
fn id(answer: &Value) -> String {
    answer["id"].as_str().expect("an id").to_owned()
}
