//! A record of evidence with its logs.

use super::style::{BOLD, shell_line, spaced_word, style_text};
use crate::domain::proof::evidence::Evidence;
use crate::domain::value::outside::{plain_line, readable_text};
use std::fmt::Write;

/// A record of evidence: what ran and came out, then the logs, in words that cannot act on a terminal.
pub fn evidence_text(record: &Evidence, logs: &[(&str, Vec<u8>)]) -> String {
    let reason = record
        .reason
        .as_ref()
        .map(|reason| format!(": {}", plain_line(reason, usize::MAX)))
        .unwrap_or_default();
    let mut out = format!(
        "{} for task {}, candidate {}: {}{reason}\n",
        record.requirement,
        record.task,
        record.candidate,
        spaced_word(&record.outcome)
    );
    let _ = writeln!(out, "  verifier  {}", record.verifier);
    if !record.identity.argv.is_empty() {
        let _ = writeln!(out, "  command   {}", shell_line(&record.identity.argv));
    }
    if let Some(said) = &record.attestation {
        let _ = writeln!(out, "  {} says: {}", said.person, readable_text(&said.message));
    }
    let _ = writeln!(out, "  made      {} to {} [{}]", record.started_at, record.finished_at, record.run);
    for finding in &record.findings {
        let place = finding.path.as_ref().map(|path| format!("{path}: ")).unwrap_or_default();
        let said = format!("{}: {place}{}", finding.level, finding.message);
        let _ = writeln!(out, "  {}", plain_line(&said, usize::MAX));
    }
    for (name, log) in logs {
        let _ = writeln!(
            out,
            "{}\n{}",
            style_text(BOLD, &format!("--- {name}")),
            readable_text(String::from_utf8_lossy(log).trim_end())
        );
    }
    out
}
