//! What the machine and the repository offer.

use crate::domain::ledger::objects::{Diagnosis, DoctorCheck, KnownVerifier};
use crate::domain::value::outside::readable_text;

pub fn doctor_text(diagnosis: &Diagnosis) -> String {
    let line = |check: &DoctorCheck| {
        let mark = if check.ok { "ok     " } else { "missing" };
        let remedy =
            if check.remedy.is_empty() { String::new() } else { format!("\n          {}", check.remedy) };
        format!("{mark}  {}: {}{remedy}\n", check.id, check.text)
    };
    diagnosis.checks.iter().map(line).chain(diagnosis.verifiers.iter().map(verifier_lines)).collect()
}

pub(super) fn verifier_lines(known: &KnownVerifier) -> String {
    let said = known.problem.as_ref().or(known.title.as_ref());
    let said = said.map(|text| format!(": {}", readable_text(text))).unwrap_or_default();
    let mark = match (&known.problem, known.is_ready()) {
        (Some(_), _) => "unfit  ",
        (None, false) => "missing",
        (None, true) => "ok     ",
    };
    let layer = match (known.private, known.committed) {
        (true, _) => " (private)",
        (false, true) => "",
        (false, false) => " (not committed)",
    };
    let broken = known.tools.iter().filter_map(|tool| tool.problem.as_ref());
    let broken = broken.map(|problem| readable_text(problem).to_string());
    let dead =
        known.dead_inputs.iter().map(|dead| format!("its inputs name nothing with {}", readable_text(dead)));
    let absent = known.absent_reads.iter();
    let absent = absent.map(|path| format!("{}, which it may read, is not here", readable_text(path)));
    let more: String = broken.chain(dead).chain(absent).map(|line| format!("          {line}\n")).collect();
    format!("{mark}  verifier {}{layer}{said}\n{more}", known.id)
}
