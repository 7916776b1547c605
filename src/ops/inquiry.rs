//! Questions of a worker to a person: checked here, recorded by the gate as what the call brought. The answer is `answer`'s.

use super::session::{TaskWrite, redacted};
use crate::domain::inquiry::Question;
use crate::error::Result;

/// The question as it is recorded. Changes nothing yet.
pub fn ask(task: &TaskWrite<'_>, question: &str) -> Result<Question> {
    task.require_active()?;
    task.view.require_room(task.view.inquiries.open_questions().count(), "questions")?;
    Question::new(&redacted(task.session, question))
}
