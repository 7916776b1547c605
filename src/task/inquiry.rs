//! Questions of a worker to a person: checked here, recorded by the gate as what the call brought. The answer
//! is `answer`'s; what comes back through the worker's own client is kept beside the question, and ends
//! nothing.

use crate::domain::ledger::inquiries::HintObject;
use crate::domain::ledger::record::Record;
use crate::domain::value::outside::accept_text;
use crate::domain::worker::inquiry::{Hint, LONGEST_ANSWER, Question};
use crate::error::Result;
use crate::task::held::TaskWrite;
use serde_json::json;

/// The question as it is recorded. Changes nothing yet.
pub fn check_question(task: &TaskWrite<'_>, question: &str) -> Result<Question> {
    task.require_active()?;
    task.view.require_room(task.view.inquiries.open_questions().count(), "questions")?;
    Question::new(question)
}

/// Records what came back for a question through the worker's client. `None` where the question is answered
/// by now, or was never asked.
pub fn keep_hint(task: &mut TaskWrite<'_>, hint: &Hint) -> Result<Option<HintObject>> {
    task.require_active()?;
    if !task.view.inquiries.open_questions().any(|asked| asked.action == hint.to) {
        return Ok(None);
    }
    let text = accept_text("answer", &hint.text, LONGEST_ANSWER)?;
    let hint = Hint { text, ..hint.clone() };
    let action = task.begin("elicitation", &json!({ "action": hint.to, "through": hint.through }))?;
    let to = hint.to.clone();
    task.finish(action, &Record::Hinted(hint))?;
    Ok(task.view.inquiries.hints_for(&to).pop())
}
