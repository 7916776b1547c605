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
    let verifier = |known: &KnownVerifier| {
        let said = known.problem.as_ref().or(known.title.as_ref());
        let said = said.map(|text| format!(": {}", readable_text(text))).unwrap_or_default();
        let mark = if known.problem.is_none() { "ok     " } else { "unfit  " };
        format!("{mark}  verifier {}{said}\n", known.id)
    };
    diagnosis.checks.iter().map(line).chain(diagnosis.verifiers.iter().map(verifier)).collect()
}
