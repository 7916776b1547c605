//! What test runners write alike in all formats that they know: names that stand for no case, words for a
//! failure that is not the case's own, and remarks that speak of failures.

use crate::domain::proof::cases::CaseOutcome;

/// True for the name of a file of JavaScript or TypeScript: runners name such a file like a case where it
/// has none.
pub(super) fn is_script_name(name: &str) -> bool {
    let ends = ["js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx"];
    !name.contains(char::is_whitespace)
        && name.rsplit_once('.').is_some_and(|(stem, end)| !stem.is_empty() && ends.contains(&end))
}

/// True for the name that mocha gives to a hook that failed.
pub(super) fn is_hook_name(name: &str) -> bool {
    let hooks = ["before all", "before each", "after all", "after each"];
    hooks.iter().any(|hook| name.contains(&format!("\"{hook}\" hook")))
}

/// The words by which node says that a case did not fail in its own body.
const NOT_ITS_OWN: [&str; 4] = ["cancelledByParent", "hookFailed", "testTimeoutFailure", "testAborted"];

/// How a case failed, by what is written and by the runner's word for the kind of failure.
pub(super) fn failed_how(written: CaseOutcome, kind: Option<&str>) -> CaseOutcome {
    match kind {
        Some(kind) if NOT_ITS_OWN.contains(&kind) => CaseOutcome::FailedByError,
        _ => written,
    }
}

/// What a remark claims of failures, as node, mocha and tape sum them up: `fail 2`, `cancelled 1`.
pub(super) fn claimed_failure(remark: &str) -> Option<String> {
    let mut words = remark.split_ascii_whitespace();
    match (words.next(), words.next(), words.next()) {
        (Some(word @ ("fail" | "cancelled")), Some(count), None) if count != "0" => {
            Some(format!("it says \"{word} {count}\" and no case failed"))
        }
        _ => None,
    }
}
