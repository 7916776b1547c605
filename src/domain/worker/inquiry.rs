//! What a worker asks of a person, and what came of it: questions that stop the task until they are answered,
//! and wishes for another contract ([`crate::domain::contract::amendment`]), which stop nothing.
//!
//! Both are the results of the worker's own actions; the id of that action is what a person answers to. An
//! answer is an action of its own.

use crate::domain::contract::amendment::{Amended, Proposal};
use crate::domain::ledger::task::{Recorded, TaskView};
use crate::domain::value::outside::{Speaker, accept, plain};
use crate::error::{Code, Failure, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The longest question, in characters.
pub const LONGEST_QUESTION: usize = 4000;
/// The longest answer, in characters.
pub const LONGEST_ANSWER: usize = 20_000;
/// Most questions, and most amendments, that wait for a person at once.
const MOST_OPEN: usize = 20;
/// How much of a worker's text one line for people shows, in characters.
pub const SHOWN: usize = 400;

/// A question of the worker's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// In the worker's words.
    pub text: String,
}

impl Question {
    /// Refused (`arguments.invalid`) where it asks nothing, or is longer than [`LONGEST_QUESTION`].
    pub fn new(text: &str) -> Result<Self> {
        accept("question", text, LONGEST_QUESTION).map(|text| Self { text })
    }
}

/// What a person said to a question, or that they refused an amendment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// The action that asked.
    pub to: String,
    /// In the person's words.
    pub text: String,
}

/// What the worker's client gave back when it was asked to put a question to its user. It may help the
/// worker; a person's answer it is not, for nobody can tell who typed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hint {
    /// The action that asked.
    pub to: String,
    /// The words.
    pub text: String,
    /// The client, as it calls itself.
    pub through: String,
}

/// Everything that was asked of a person, in the order of the ledger, each with its answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Inquiries {
    hints: Vec<Recorded<Hint>>,
    questions: Vec<(Recorded<Question>, Option<Recorded<Reply>>)>,
    proposals: Vec<(Recorded<Proposal>, Option<Recorded<Decided>>)>,
}

/// What became of a wish for another contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decided {
    /// It is this version now.
    Version(u32),
    /// A person refused it.
    Refused,
}

impl Inquiries {
    /// Takes a question in.
    pub fn asked(&mut self, question: Recorded<Question>) {
        self.questions.push((question, None));
    }

    /// Takes in what a client gave back for a question.
    pub fn hinted(&mut self, hint: Recorded<Hint>) {
        self.hints.push(hint);
    }

    /// Takes a wish in.
    pub fn proposed(&mut self, proposal: Recorded<Proposal>) {
        self.proposals.push((proposal, None));
    }

    /// Takes an answer in, to whatever it answers.
    pub fn answered(&mut self, reply: Recorded<Reply>) {
        let to = reply.value.to.clone();
        if let Some((_, answer)) = self.questions.iter_mut().find(|(asked, _)| asked.action == to) {
            *answer = Some(reply);
        } else {
            let Recorded { seq, action, at, .. } = reply;
            self.decided(&to, Recorded { seq, action, at, value: Decided::Refused });
        }
    }

    /// Takes an amendment in that a person agreed to.
    pub fn amended(&mut self, amended: &Recorded<&Amended>) {
        let Recorded { seq, action, at, value } = amended;
        let decided = Decided::Version(value.opened.seal.version);
        let (seq, action, at) = (*seq, action.clone(), at.clone());
        self.decided(&value.to, Recorded { seq, action, at, value: decided });
    }

    fn decided(&mut self, to: &str, decided: Recorded<Decided>) {
        if let Some((_, answer)) = self.proposals.iter_mut().find(|(wish, _)| wish.action == to) {
            *answer = Some(decided);
        }
    }

    /// What was given back for a question through clients, the oldest first.
    pub fn hints(&self, to: &str) -> Vec<HintObject> {
        self.hints.iter().filter(|hint| hint.value.to == to).map(HintObject::new).collect()
    }

    /// The questions that nobody has answered.
    pub fn open_questions(&self) -> impl Iterator<Item = &Recorded<Question>> {
        self.questions.iter().filter(|(_, answer)| answer.is_none()).map(|(asked, _)| asked)
    }

    /// The wishes that nobody has decided about.
    pub fn open_proposals(&self) -> impl Iterator<Item = &Recorded<Proposal>> {
        self.proposals.iter().filter(|(_, decided)| decided.is_none()).map(|(wish, _)| wish)
    }

    /// The questions as a report shows them.
    pub fn question_objects(&self) -> Vec<QuestionObject> {
        let object = |(asked, answer): &(Recorded<Question>, Option<Recorded<Reply>>)| {
            QuestionObject::new(asked, answer.as_ref(), self.hints(&asked.action))
        };
        self.questions.iter().map(object).collect()
    }

    /// The wishes as a report shows them.
    pub fn amendment_objects(&self) -> Vec<AmendmentObject> {
        self.proposals.iter().map(|(wish, decided)| AmendmentObject::new(wish, decided.as_ref())).collect()
    }
}

/// A question with its answer, in a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QuestionObject {
    /// The action that asked; what `answer` takes as ID.
    pub id: String,
    /// In the worker's words.
    pub text: String,
    /// Who says so.
    pub origin: Speaker,
    /// True: the words are nobody's whom the harness trusts.
    pub untrusted: bool,
    /// When, RFC 3339.
    pub asked_at: String,
    /// What a person said; `None` while it is open.
    pub answer: Option<AnswerObject>,
    /// What came back through the worker's client. The task waits all the same.
    pub hints: Vec<HintObject>,
}

/// What came back through the worker's client, in a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HintObject {
    /// The words.
    pub text: String,
    /// The client, as it calls itself.
    pub through: String,
    /// Who says so.
    pub origin: Speaker,
    /// True: the words are nobody's whom the harness trusts.
    pub untrusted: bool,
    /// When, RFC 3339.
    pub at: String,
}

impl HintObject {
    fn new(hint: &Recorded<Hint>) -> Self {
        let Hint { text, through, .. } = hint.value.clone();
        Self { text, through, origin: Speaker::Client, untrusted: true, at: hint.at.clone() }
    }
}

/// A person's answer, in a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AnswerObject {
    /// In the person's words.
    pub text: String,
    /// Who says so.
    pub origin: Speaker,
    /// When, RFC 3339.
    pub answered_at: String,
    /// The action that recorded it.
    #[serde(rename = "ref")]
    pub reference: String,
}

impl QuestionObject {
    fn new(asked: &Recorded<Question>, answer: Option<&Recorded<Reply>>, hints: Vec<HintObject>) -> Self {
        Self {
            id: asked.action.clone(),
            text: asked.value.text.clone(),
            origin: Speaker::Worker,
            untrusted: true,
            asked_at: asked.at.clone(),
            answer: answer.map(|reply| AnswerObject {
                text: reply.value.text.clone(),
                origin: Speaker::Person,
                answered_at: reply.at.clone(),
                reference: reply.action.clone(),
            }),
            hints,
        }
    }
}

/// A wish for another contract with what became of it, in a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AmendmentObject {
    /// The action that proposed it; what `answer` takes as ID.
    pub id: String,
    /// The fields of the contract that it would replace.
    pub change: Value,
    /// Why, in the worker's words.
    pub reason: String,
    /// Who says so.
    pub origin: Speaker,
    /// True: the words are nobody's whom the harness trusts.
    pub untrusted: bool,
    /// When, RFC 3339.
    pub proposed_at: String,
    /// `yes` or `no`; `None` while it is open.
    pub answer: Option<String>,
    /// When that was said, RFC 3339.
    pub answered_at: Option<String>,
    /// The version of the contract that came of it.
    pub version: Option<u32>,
}

impl AmendmentObject {
    fn new(wish: &Recorded<Proposal>, decided: Option<&Recorded<Decided>>) -> Self {
        let version = decided.and_then(|decided| match decided.value {
            Decided::Version(version) => Some(version),
            Decided::Refused => None,
        });
        Self {
            id: wish.action.clone(),
            change: Value::Object(wish.value.change.clone()),
            reason: wish.value.reason.clone(),
            origin: Speaker::Worker,
            untrusted: true,
            proposed_at: wish.at.clone(),
            answer: decided.map(|_| if version.is_some() { "yes" } else { "no" }.to_owned()),
            answered_at: decided.map(|decided| decided.at.clone()),
            version,
        }
    }
}

impl TaskView {
    /// True while a question waits for its answer.
    pub fn waits_for_input(&self) -> bool {
        self.inquiries.open_questions().next().is_some()
    }

    /// Refuses (`input.required`) to ask for more where so much of it waits already.
    pub fn require_room(&self, open: usize, what: &str) -> Result<()> {
        if open < MOST_OPEN {
            return Ok(());
        }
        Err(Failure::new(
            Code::InputRequired,
            format!("{open} {what} of the task {} wait for a person already", self.id),
        )
        .subject(self.id.clone())
        .expected(format!("fewer than {MOST_OPEN}"), open)
        .remedy("Wait until some are answered.", ["git", "tender", "report", &self.id]))
    }

    /// Refuses (`input.required`) while a question waits for its answer.
    pub fn require_answered(&self) -> Result<()> {
        let open = self.inquiries.question_objects();
        let open: Vec<&QuestionObject> = open.iter().filter(|asked| asked.answer.is_none()).collect();
        let Some(first) = open.first() else { return Ok(()) };
        let more = if open.len() > 1 { format!(" (and {} more)", open.len() - 1) } else { String::new() };
        let question = plain(&first.text, SHOWN);
        Err(Failure::new(
            Code::InputRequired,
            format!(
                "the worker of {} has asked a question, and waits for the answer: {question}{more}",
                self.id
            ),
        )
        .subject(first.id.clone())
        .reference(first.id.clone())
        .detail("questions", &open)
        .remedy("Answer it.", ["git", "tender", "answer", &self.id, &first.id, "TEXT"]))
    }
}
