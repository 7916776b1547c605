//! `answer`: what only a person can say. A question of the worker's gets its text; a wish for another
//! contract is agreed to or refused; and where an effect can be looked at by nobody any more, a person says
//! whether it took place. The ledger keeps that it was said, and by whom.

use super::Session;
use crate::domain::contract::amendment::Proposal;
use crate::domain::delivery::decision::Word;
use crate::domain::ledger::action::writes_live_tree;
use crate::domain::ledger::entry::Recorded;
use crate::domain::ledger::objects::Answered;
use crate::domain::ledger::record::Record;
use crate::domain::ledger::task::Unfinished;
use crate::domain::value::outside::{accept_text, plain_line};
use crate::domain::worker::inquiry::{LONGEST_ANSWER, Question, Reply, SHOWN};
use crate::error::{Code, Failure, Result};
use crate::task::held::TaskWrite;
use crate::task::session::{redacted, unconfirmed};
use crate::task::{amendment, evidence, hooks, recover};
use serde_json::{Value, json};

/// Something that waits for a person.
#[derive(Debug, Clone)]
enum Asks {
    Decision(Unfinished),
    Amendment(Recorded<Proposal>),
    Question(Recorded<Question>),
}

/// What came of an answer: the outcome's word and what else to know.
type Said = (&'static str, Vec<String>);

/// Answers what a task asks: the thing that is named, or the only one.
pub fn answer(session: &Session, task: &str, named: Option<&str>, text: &str) -> Result<Answered> {
    // Whoever looks for themselves beats a word: what can be found out by now is settled first.
    let mut task = session.write_while_unknown(Some(task))?;
    let asks = find_pending(&task, named)?;
    let (outcome, notes) = match &asks {
        Asks::Decision(open) => decide(&mut task, open, text)?,
        Asks::Amendment(wish) => settle_amendment(&mut task, wish, text)?,
        Asks::Question(question) => reply(&mut task, question, text)?,
    };
    let id = task.view.id.clone();
    let (ledger, view) = session.view(Some(&id))?;
    let evidence = evidence::counting_for(&ledger, &view)?;
    let rows = evidence::current_rows(&session.blobs(), &view, &evidence)?;
    Ok(Answered {
        schema: "git-tender/answer/v1",
        task_id: id,
        state: view.state_with(&rows),
        kind: asks.kind(),
        action: asks.id().to_owned(),
        answer: text.to_owned(),
        outcome,
        contract: view.opened_terms()?.seal.clone(),
        notes,
    })
}

impl Asks {
    fn id(&self) -> &str {
        match self {
            Self::Decision(open) => &open.action,
            Self::Amendment(wish) => &wish.action,
            Self::Question(question) => &question.action,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Decision(_) => "decision",
            Self::Amendment(_) => "amendment",
            Self::Question(_) => "question",
        }
    }

    /// In one line, in words that cannot act on a terminal.
    fn line(&self) -> String {
        match self {
            Self::Decision(open) => format!("whether `{}` took place", open.tool),
            Self::Amendment(wish) => {
                let change = Value::Object(wish.value.change.clone()).to_string();
                format!("{} because {}", plain_line(&change, SHOWN), plain_line(&wish.value.reason, SHOWN))
            }
            Self::Question(question) => plain_line(&question.value.text, SHOWN),
        }
    }

    fn object(&self) -> Value {
        json!({ "id": self.id(), "kind": self.kind(), "text": self.line() })
    }
}

fn find_pending(task: &TaskWrite<'_>, named: Option<&str>) -> Result<Asks> {
    let view = &task.view;
    let is_decision = |one: &&Unfinished| writes_live_tree(&one.tool) && one.state.is_unknown();
    let mut open: Vec<Asks> =
        view.unfinished.iter().filter(is_decision).cloned().map(Asks::Decision).collect();
    if !view.has_ended() {
        open.extend(view.inquiries.open_proposals().cloned().map(Asks::Amendment));
        open.extend(view.inquiries.open_questions().cloned().map(Asks::Question));
    }
    if let Some(found) = open.iter().find(|one| named == Some(one.id())) {
        return Ok(found.clone());
    }
    match (named, open.as_slice()) {
        (None, [one]) => Ok(one.clone()),
        (None, []) => {
            view.require_active()?;
            Err(Failure::new(Code::StateInvalid, format!("nothing is asked of the task {}", view.id))
                .subject(view.id.clone())
                .remedy("See what is known of it.", ["git", "tender", "report", &view.id]))
        }
        (named, open) => {
            if open.is_empty() {
                view.require_active()?;
            }
            let shown: Vec<Value> = open.iter().map(Asks::object).collect();
            let ids: Vec<&str> = open.iter().map(Asks::id).collect();
            Err(Failure::new(
                Code::ArgumentsInvalid,
                match named {
                    Some(id) => format!("the task {} asks nothing under {:?}", view.id, plain_line(id, 80)),
                    None => format!("the task {} asks {} things; name one", view.id, ids.len()),
                },
            )
            .subject("ID")
            .detail("open", &ids)
            .detail("asked", shown)
            .remedy("See what is asked.", ["git", "tender", "report", &view.id]))
        }
    }
}

fn yes_or_no(what: &str, text: &str, task: &str) -> Result<Word> {
    match text {
        "yes" => Ok(Word::Yes),
        "no" => Ok(Word::No),
        other => Err(Failure::new(Code::ArgumentsInvalid, format!("{what} is answered with yes or no"))
            .subject("TEXT")
            .expected(["yes", "no"], plain_line(other, 200))
            .remedy("See what is asked.", ["git", "tender", "report", task])),
    }
}

/// Asks the person at the terminal; records that nobody was there, or did not mean it.
fn confirm(
    task: &mut TaskWrite<'_>,
    action: &mut crate::task::action::RunningAction,
    (what, to, text): (&str, &str, &str),
    question: &str,
) -> Result<()> {
    if task.session.person.confirm(question) == Some(true) {
        return action.dispatch(&mut task.ledger);
    }
    let id = task.view.id.clone();
    let failure = unconfirmed(what, to, ["git", "tender", "answer", &id, to, text]);
    Err(action.deny(&mut task.ledger, failure))
}

fn decide(task: &mut TaskWrite<'_>, open: &Unfinished, text: &str) -> Result<Said> {
    let (session, id) = (task.session, task.view.id.clone());
    let word = yes_or_no("a decision", text, &id)?;
    let mut action = task.action("answer", &json!({ "action": open.action, "answer": text }));
    let verb = if word == Word::Yes { "took place" } else { "did not take place" };
    let question = format!("Record that `{}` of {id} ({}) {verb}?", open.tool, open.action);
    confirm(task, &mut action, ("a decision is a person's", &open.action, text), &question)?;
    recover::decide_by_person(&mut task.ledger, session.actor, &open.action, word)?;
    let told = format!("a person said of {} that it {verb}", open.action);
    action.succeed(&mut task.ledger, &Record::Done { text: told })?;
    if word == Word::Yes {
        hooks::after_task(session, &task.ledger, &task.view);
    }
    Ok((if word == Word::Yes { "succeeded" } else { "safe_to_retry" }, Vec::new()))
}

fn reply(task: &mut TaskWrite<'_>, question: &Recorded<Question>, text: &str) -> Result<Said> {
    // Here already, so that the person confirms exactly what will be kept.
    let text = redacted(task.session, &accept_text("TEXT", text, LONGEST_ANSWER)?);
    let to = question.action.clone();
    let mut action = task.action("answer", &json!({ "action": to, "answer": text }));
    let ask = format!(
        "The worker of {} asks: {}\nAnswer it with: {}?",
        task.view.id,
        plain_line(&question.value.text, SHOWN),
        plain_line(&text, SHOWN)
    );
    confirm(task, &mut action, ("the answer to a question is a person's", &to, &text), &ask)?;
    task.finish(action, &Record::Answered(Reply { to, text }))?;
    Ok(("answered", Vec::new()))
}

fn settle_amendment(task: &mut TaskWrite<'_>, wish: &Recorded<Proposal>, text: &str) -> Result<Said> {
    let word = yes_or_no("an amendment", text, &task.view.id)?;
    let to = wish.action.clone();
    let mut action = task.action("answer", &json!({ "action": to, "answer": text }));
    let is_persons = ("an amendment of the contract is a person's to decide", to.as_str(), text);
    let changes = amendment::differences(task, &wish.value)?;
    let why = plain_line(&wish.value.reason, SHOWN);
    let told = format!(
        "The worker of {} wishes to change its contract:\n  {}\nIts reason: {why}",
        task.view.id,
        changes.join("\n  ")
    );
    if word == Word::No {
        confirm(task, &mut action, is_persons, &format!("{told}\nRefuse it?"))?;
        task.finish(action, &Record::Answered(Reply { to, text: text.to_owned() }))?;
        return Ok(("refused", Vec::new()));
    }
    // As long as it is not known what became of a delivery, nobody can say what the next version would be
    // for.
    let known = recover::before_writing(task.session, &task.view.id);
    let version = match known.and_then(|()| amendment::next_version(task, &wish.value)) {
        Ok(version) => version,
        Err(failure) => return Err(action.deny(&mut task.ledger, failure)),
    };
    let narrowed: String =
        version.opened.narrowed.iter().map(|line| format!("\n{}", plain_line(line, SHOWN))).collect();
    let ask = format!("{told}{narrowed}\nAgree to version {}?", version.opened.seal.version);
    confirm(task, &mut action, is_persons, &ask)?;
    let accepted = match amendment::agree_to(task, &wish.action, version) {
        Ok(accepted) => accepted,
        Err(failure) => return Err(action.fail(&mut task.ledger, failure)),
    };
    task.finish(action, &accepted.record)?;
    Ok(("amended", accepted.notes.into_iter().chain(changes).collect()))
}
