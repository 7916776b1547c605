//! An answer that was recorded.

use crate::domain::ledger::objects::Answered;
use crate::domain::value::outside::plain_line;
use crate::domain::worker::inquiry::SHOWN;

pub fn answer_text(answered: &Answered) -> String {
    let answer = plain_line(&answered.answer, SHOWN);
    let outcome = answered.outcome.replace('_', " ");
    let mut out = format!("recorded for {}: {answer} ({outcome})\n", answered.action);
    if answered.outcome == "amended" {
        out.push_str(&format!(
            "version {} of the contract of {} is in force\n",
            answered.contract.version, answered.task_id
        ));
    }
    for note in &answered.notes {
        out.push_str(&format!("  {}\n", plain_line(note, usize::MAX)));
    }
    out
}
