//! A delivery or its reversal.

use super::style::{BOLD, DIM, GOOD, OPEN, SHOWN, short_id, spaced_word, style_text};
use crate::domain::delivery::receipt::Outcome;
use crate::domain::ledger::report::DeliveryObject;
use std::fmt::Write;

pub fn delivery_text(delivery: &DeliveryObject) -> String {
    let mut out =
        format!("task {} is {}\n", style_text(BOLD, &delivery.task_id), spaced_word(&delivery.state));
    write_ref(&mut out, delivery);
    for path in delivery.paths.iter().take(SHOWN * 5) {
        let style = if path.outcome == Outcome::Already { DIM } else { GOOD };
        let _ = writeln!(
            out,
            "  {} {}",
            style_text(style, &format!("{:<12}", spaced_word(&path.outcome))),
            path.path
        );
    }
    if delivery.paths.len() > SHOWN * 5 {
        let _ = writeln!(out, "  … and {} more", delivery.paths.len() - SHOWN * 5);
    }
    for note in &delivery.notes {
        let _ = writeln!(out, "  {} {note}", style_text(OPEN, "note:"));
    }
    out
}

/// The ref that a delivery moved.
pub(super) fn write_ref(out: &mut String, delivery: &DeliveryObject) {
    let Some(branch) = &delivery.branch else { return };
    let remote = delivery.remote.as_ref().map(|remote| format!(" of {remote}")).unwrap_or_default();
    let commit =
        delivery.commit.as_ref().map(|id| format!(", commit {}", short_id(id.as_str()))).unwrap_or_default();
    let _ = writeln!(out, "  branch    {branch}{remote}{commit}");
}
