//! The words of a worker: its questions, wishes and findings, marked as its own.

use crate::domain::ledger::inquiries::{AmendmentObject, QuestionObject};
use crate::domain::ledger::report::FindingObject;
use crate::domain::value::outside::plain_line;
use crate::domain::worker::inquiry::SHOWN;

pub(super) fn question_lines(question: &QuestionObject) -> Vec<String> {
    let mut lines = vec![format!(
        "question {}, in the worker's words: {}",
        question.id,
        plain_line(&question.text, SHOWN)
    )];
    for hint in &question.hints {
        let (through, text) = (plain_line(&hint.through, SHOWN), plain_line(&hint.text, SHOWN));
        lines.push(format!("  said through the client {through}, perhaps by a person: {text}"));
    }
    match &question.answer {
        Some(answer) => lines.push(format!("  answered: {}", plain_line(&answer.text, SHOWN))),
        None => lines.push("  not answered yet; the task waits for it".to_owned()),
    }
    lines
}

pub(super) fn amendment_lines(amendment: &AmendmentObject) -> Vec<String> {
    let said = match (amendment.answer.as_deref(), amendment.version) {
        (_, Some(version)) => format!("agreed to: version {version} of the contract"),
        (Some(_), None) => "refused".to_owned(),
        (None, None) => "nobody has decided yet".to_owned(),
    };
    // Whole, field by field: what was cut off might be what matters.
    let changes = amendment.change.as_object().into_iter().flatten();
    let changes =
        changes.map(|(field, new)| format!("  {field} -> {}", plain_line(&new.to_string(), usize::MAX)));
    let mut lines = vec![format!("amendment {}, proposed by the worker", amendment.id)];
    lines.extend(changes);
    lines.push(format!("  its reason: {}", plain_line(&amendment.reason, SHOWN)));
    lines.push(format!("  {said}"));
    lines
}

pub(super) fn finding_line(finding: &FindingObject) -> String {
    let rests = match finding.verified {
        true => format!("rests on {}", plain_line(&finding.refs.join(", "), SHOWN)),
        false => "unverified: it refers to nothing".to_owned(),
    };
    format!("{} ({rests})", plain_line(&finding.text, SHOWN))
}
