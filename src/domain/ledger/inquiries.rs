//! What was asked of a person, with the answers, folded from a task's rows; and how a report shows it.

use crate::domain::contract::amendment::Proposal;
use crate::domain::ledger::entry::Recorded;
use crate::domain::ledger::record::Amended;
use crate::domain::value::outside::Speaker;
use crate::domain::worker::inquiry::{Hint, Question, Reply};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Everything that was asked of a person, in the order of the ledger, each with its answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Inquiries {
    hints: Vec<Recorded<Hint>>,
    questions: Vec<(Recorded<Question>, Option<Recorded<Reply>>)>,
    proposals: Vec<(Recorded<Proposal>, Option<Recorded<Decided>>)>,
}

/// The decision on a proposed amendment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decided {
    /// It is this version now.
    Version(u32),
    /// A person refused it.
    Refused,
}

impl Inquiries {
    /// Takes a question in.
    pub fn take_question(&mut self, question: Recorded<Question>) {
        self.questions.push((question, None));
    }

    /// Takes in what a client gave back for a question.
    pub fn take_hint(&mut self, hint: Recorded<Hint>) {
        self.hints.push(hint);
    }

    /// Takes a wish in.
    pub fn take_proposal(&mut self, proposal: Recorded<Proposal>) {
        self.proposals.push((proposal, None));
    }

    /// Takes an answer in, to whatever it answers.
    pub fn take_reply(&mut self, reply: Recorded<Reply>) {
        let to = reply.value.to.clone();
        if let Some((_, answer)) = self.questions.iter_mut().find(|(asked, _)| asked.action == to) {
            *answer = Some(reply);
        } else {
            let Recorded { seq, action, at, .. } = reply;
            self.take_decision(&to, Recorded { seq, action, at, value: Decided::Refused });
        }
    }

    /// Takes an amendment in that a person agreed to.
    pub fn take_amendment(&mut self, amended: &Recorded<&Amended>) {
        let Recorded { seq, action, at, value } = amended;
        let decided = Decided::Version(value.opened.seal.version);
        let (seq, action, at) = (*seq, action.clone(), at.clone());
        self.take_decision(&value.to, Recorded { seq, action, at, value: decided });
    }

    fn take_decision(&mut self, to: &str, decided: Recorded<Decided>) {
        if let Some((_, answer)) = self.proposals.iter_mut().find(|(wish, _)| wish.action == to) {
            *answer = Some(decided);
        }
    }

    /// The answers that came back through clients for a question, the oldest first.
    pub fn hints_for(&self, to: &str) -> Vec<HintObject> {
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
            QuestionObject::new(asked, answer.as_ref(), self.hints_for(&asked.action))
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
    /// A person's answer; `None` while it is open.
    pub answer: Option<AnswerObject>,
    /// Answers that came back through the worker's client. The task waits all the same.
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
    /// The reason in the worker's words.
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
