//! What only a person can say, because nobody can look any more: the question, and what each answer leads to.

use crate::error::{Code, DetailKey, Failure};
use serde::{Deserialize, Serialize};

/// A question that only a person can answer: did an effect take place?
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    pub question: String,
    /// The consequence of each answer.
    pub choices: Vec<Choice>,
    /// The reason why it could not be found out.
    pub because: String,
}

/// A person's word on an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    Yes,
    No,
}

/// The answers that a question takes.
pub const CHOICES: DetailKey<Vec<Choice>> = DetailKey::new("choices");

/// One answer to a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// `yes` or `no`.
    pub answer: String,
    pub consequence: String,
}

impl Decision {
    /// A question that is answered with yes or no.
    pub fn new(question: String, yes: &str, no: &str, because: String) -> Self {
        let choice = |answer: &str, consequence: &str| Choice {
            answer: answer.to_owned(),
            consequence: consequence.to_owned(),
        };
        Self { question, choices: vec![choice("yes", yes), choice("no", no)], because }
    }

    /// The failure that everything else ends with until somebody answers.
    pub fn require_answer(&self, task: &str, action: &str) -> Failure {
        Failure::new(Code::DecisionRequired, format!("{} ({})", self.question, self.because))
            .subject(task)
            .reference(action)
            .with_detail(&CHOICES, &self.choices)
            .detail("because", &self.because)
            .remedy("Find out, then say yes or no.", ["git", "tender", "answer", task, action, "yes"])
    }
}
