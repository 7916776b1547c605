//! The ledger, one line an entry, or an action with all its rows.

use super::style::spaced_word;
use crate::domain::ledger::entry::Entry;
use crate::domain::ledger::objects::Referenced;

/// One line of the ledger.
pub fn entry_line(entry: &Entry) -> String {
    let task = entry.task.as_deref().unwrap_or("-");
    format!(
        "{:>5}  {}  {:<16} {:<9} {:<18} {} {}\n",
        entry.seq,
        entry.at,
        task,
        entry.tool,
        spaced_word(&entry.state),
        entry.action,
        spaced_word(&entry.actor)
    )
}

/// The rows of an action, as they are stored.
pub fn action_text(action: &Referenced) -> String {
    serde_json::to_string_pretty(action).map(|text| text + "\n").unwrap_or_default()
}
