//! Verifiers, for those who write them.

use super::doctor::verifier_lines;
use super::style::{BOLD, style_text};
use crate::domain::ledger::verifier_objects::{ShownVerifier, TestedVerifier, VerifierList, WrittenVerifier};
use crate::domain::value::outside::readable_text;

pub fn verifier_list_text(list: &VerifierList) -> String {
    if list.verifiers.is_empty() {
        return "no verifiers here; `git tender init` writes those that fit, `git tender verifier new ID` one\n"
            .to_owned();
    }
    list.verifiers.iter().map(verifier_lines).collect()
}

pub fn shown_verifier_text(shown: &ShownVerifier) -> String {
    format!("{}  in {}\n\n{}", verifier_lines(&shown.verifier), shown.file, readable_text(&shown.manifest))
}

pub fn written_verifier_text(done: &WrittenVerifier) -> String {
    let written: String = done.written.iter().map(|name| format!("  wrote {name}\n")).collect();
    format!(
        "{written}Adapt it, try it on projects in its fixtures/passing and fixtures/failing, then commit it:\n  \
         git tender verifier test {}\n",
        done.id
    )
}

pub fn tested_verifier_text(tested: &TestedVerifier) -> String {
    let mut out = String::new();
    for run in &tested.fixtures {
        let mark = if run.as_expected { "ok    " } else { "WRONG " };
        let said = run.reason.as_deref().map(|why| format!(": {}", readable_text(why))).unwrap_or_default();
        let verdict = super::style::spaced_word(&run.verdict);
        out.push_str(&format!("{mark} fixtures/{} {}{said}\n", run.fixture, style_text(BOLD, &verdict)));
        if let Some(error) = run.first_error.as_ref().filter(|_| !run.as_expected) {
            out.push_str(&format!("         {}\n", readable_text(&error.error.text)));
        }
    }
    out
}
