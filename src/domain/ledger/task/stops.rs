//! What stops a task until a person does something: a budget that is spent, the same again and again, a
//! question without an answer.

use crate::domain::contract::budget::Limits;
use crate::domain::ledger::charges::{Member, Spent, Standing};
use crate::domain::ledger::inquiries::QuestionObject;
use crate::domain::ledger::task::TaskView;
use crate::domain::value::outside::plain_line;
use crate::domain::worker::inquiry::SHOWN;
use crate::error::{Code, Failure, Result};

/// Most questions, and most amendments, that wait for a person at once.
const MOST_OPEN: usize = 20;

impl TaskView {
    /// The limits that hold now: those of its contract, and what a person added, within the policy's ceiling.
    pub fn current_limits(&self) -> Limits {
        let Some(effective) = self.opened.as_ref().map(|opened| &opened.value.effective) else {
            return Limits::default().with_added(self.charges.added_amounts());
        };
        effective.limits.with_added(self.charges.added_amounts()).lowered_to(&effective.ceiling)
    }

    /// The task as one of a family that shares a budget.
    pub fn family_member(&self) -> Member {
        let last = self.candidates.last().filter(|_| self.cancelled.is_none());
        Member {
            id: self.id.clone(),
            parent: self.opened.as_ref().and_then(|opened| opened.value.contract.parent.clone()),
            limits: self.current_limits(),
            charges: self.charges.clone(),
            artifact_bytes: last.map_or(0, |candidate| candidate.value.artifact_bytes),
        }
    }

    /// The refusal of a task that was stopped since the same came back over and over.
    pub fn refuse_repetition(&self) -> Option<Failure> {
        self.standing.as_ref().and_then(Standing::refuse_repetition)
    }

    /// The part of its budget, or of one above it, that is used up.
    pub fn spent_budget(&self) -> Option<Spent> {
        self.standing.as_ref().and_then(Standing::spent_budget)
    }

    /// The same, for the keys that a run uses.
    pub fn spent_for_runs(&self) -> Option<Spent> {
        self.standing.as_ref().and_then(Standing::spent_for_runs)
    }

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
        let question = plain_line(&first.text, SHOWN);
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
