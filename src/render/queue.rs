//! What became of each task of `ship --all`.

use super::delivery::delivery_text;
use super::failure::failure_text;
use super::style::{BAD, GOOD, style_text};
use crate::domain::ledger::objects::{QueueObject, QueueOutcome, QueueRow};
use std::fmt::Write;

/// A task, as soon as it is known.
pub fn queue_row_text(row: &QueueRow) -> String {
    let (style, word) = match row.outcome {
        QueueOutcome::Delivered => (GOOD, "delivered"),
        QueueOutcome::WouldDeliver => (GOOD, "would be delivered"),
        QueueOutcome::Conflict => (BAD, "skipped, since somebody else changed the same"),
        QueueOutcome::Skipped => (BAD, "skipped"),
    };
    let mut out = format!("{}: {}\n", row.task_id, style_text(style, word));
    let told = row.delivery.as_ref().map(delivery_text);
    let told = told.or_else(|| row.error.as_ref().map(failure_text)).unwrap_or_default();
    for line in told.lines() {
        let _ = writeln!(out, "  {line}");
    }
    out
}

/// How many went through.
pub fn queue_end_text(object: &QueueObject) -> String {
    let is_skipped = |row: &&QueueRow| row.error.is_some();
    let skipped = object.tasks.iter().filter(is_skipped).count();
    let through = object.tasks.len() - skipped;
    let previewed = object.tasks.iter().any(|row| row.outcome == QueueOutcome::WouldDeliver);
    let mut parts = vec![format!("{through} {}", if previewed { "would be delivered" } else { "delivered" })];
    parts.extend((skipped > 0).then(|| format!("{skipped} skipped")));
    parts
        .extend((!object.waiting.is_empty()).then(|| format!("not verified: {}", object.waiting.join(", "))));
    format!("{}\n", parts.join(", "))
}
