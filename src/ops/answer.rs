//! `answer`: a person says whether an effect took place that nobody can look at any more. The ledger keeps that it was said, and by whom.

use super::Session;
use super::recover;
use super::session::unconfirmed;
use crate::domain::task::{Record, TaskState, TaskView, Unfinished, Word};
use crate::error::{Code, Failure, Result};
use serde::Serialize;
use serde_json::json;

/// What `answer` shows.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answered {
    schema: &'static str,
    /// The task.
    pub task_id: String,
    /// Its state afterwards.
    pub state: TaskState,
    /// The action that was decided.
    pub action: String,
    /// What was answered.
    pub answer: String,
    /// `succeeded` or `safe_to_retry`.
    pub outcome: &'static str,
}

/// Answers the open decision of a task: the one named, or the only one.
pub fn answer(session: &Session, task: &str, named: Option<&str>, text: &str) -> Result<Answered> {
    let word = match text {
        "yes" => Word::Yes,
        "no" => Word::No,
        other => {
            return Err(Failure::new(Code::ArgumentsInvalid, "a decision is answered with yes or no")
                .subject("TEXT")
                .expected(["yes", "no"], other)
                .remedy("See what is asked.", ["git", "tender", "recover"]));
        }
    };
    // Whoever looks for themselves beats a word: what can be found out by now is settled first.
    let mut task = session.write_while_unknown(Some(task))?;
    let open = pending(&task.view, named)?;
    let id = task.view.id.clone();
    let params = json!({ "action": open.action, "answer": text });
    let mut action = task.action("answer", &params);
    let verb = if word == Word::Yes { "took place" } else { "did not take place" };
    let question = format!("Record that `{}` of {id} ({}) {verb}?", open.tool, open.action);
    if session.person.confirm(&question) != Some(true) {
        return Err(action.deny(
            &mut task.ledger,
            unconfirmed(
                "a decision is a person's",
                &open.action,
                ["git", "tender", "answer", &id, &open.action, text],
            ),
        ));
    }
    action.dispatch(&mut task.ledger)?;
    recover::decide_by_person(&mut task.ledger, session.actor, &open.action, word)?;
    let told = format!("a person said of {} that it {verb}", open.action);
    action.succeed(&mut task.ledger, &Record::Done { text: told })?;
    let (ledger, view) = session.view(Some(&id))?;
    let evidence = super::report::evidence(&ledger, &view)?;
    let rows = super::report::rows(&session.blobs(), &view, &evidence)?;
    Ok(Answered {
        schema: "git-tender/answer/v1",
        task_id: id,
        state: view.state(&rows),
        action: open.action,
        answer: text.to_owned(),
        outcome: if word == Word::Yes { "succeeded" } else { "safe_to_retry" },
    })
}

/// The decision that is meant.
fn pending(view: &TaskView, named: Option<&str>) -> Result<Unfinished> {
    let asks = |one: &&Unfinished| recover::is_live(&one.tool) && one.state.is_unknown();
    let open: Vec<&Unfinished> = view.unfinished.iter().filter(asks).collect();
    let ids: Vec<&str> = open.iter().map(|one| one.action.as_str()).collect();
    if let Some(found) = open.iter().find(|one| named == Some(&one.action)) {
        return Ok((*found).clone());
    }
    match (named, open.as_slice()) {
        (None, [one]) => Ok((*one).clone()),
        (None, []) => {
            Err(Failure::new(Code::StateInvalid, format!("nothing is asked of the task {}", view.id))
                .subject(view.id.clone())
                .remedy("See what is known of it.", ["git", "tender", "report", &view.id]))
        }
        (named, _) => Err(Failure::new(
            Code::ArgumentsInvalid,
            match named {
                Some(id) => format!("the task {} asks nothing under {id:?}", view.id),
                None => format!("the task {} asks {} things; name one", view.id, ids.len()),
            },
        )
        .subject("ID")
        .detail("open", &ids)
        .remedy("See what is asked.", ["git", "tender", "recover"])),
    }
}

impl Answered {
    /// As text.
    #[must_use]
    pub fn text(&self) -> String {
        format!("recorded for {}: {} ({})\n", self.action, self.answer, self.outcome.replace('_', " "))
    }
}
