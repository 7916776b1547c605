//! What recovery found and did.

use super::style::spaced_word;
use crate::domain::ledger::objects::Recovery;

pub fn recovery_text(recovery: &Recovery) -> String {
    let mut out = format!("the ledger is whole: {} rows\n", recovery.rows);
    if let Some(adopted) = &recovery.adopted {
        out.push_str(&format!("the tasks of {} go on in {}\n", adopted.from, adopted.to));
    }
    for lost in &recovery.accepted {
        out.push_str(&format!("goes on although {}; its files are left as they are\n", lost.clause()));
    }
    if recovery.actions.is_empty() {
        out.push_str("nothing was left unfinished\n");
    }
    for action in &recovery.actions {
        let task = action.task.as_deref().unwrap_or("-");
        out.push_str(&format!(
            "{} of task {task} ({}): {}\n",
            action.tool,
            action.action,
            spaced_word(&action.outcome)
        ));
        for path in &action.kept {
            out.push_str(&format!("  your later edit of {path} was kept\n"));
        }
        for note in &action.notes {
            out.push_str(&format!("  {note}\n"));
        }
    }
    out
}
