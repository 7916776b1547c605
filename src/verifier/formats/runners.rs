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

/// How it begins that something could not be loaded: what the case would show was not reached.
const UNLOADED: [&str; 7] = [
    "ImportError",
    "ModuleNotFoundError",
    "SyntaxError",
    "IndentationError",
    "Cannot find module",
    "Error: Cannot find module",
    "java.lang.NoClassDefFoundError",
];

/// How a case failed, by what is written, by the runner's word for the kind of failure, and by its message.
pub(super) fn failed_how(written: CaseOutcome, kind: Option<&str>, message: &str) -> CaseOutcome {
    let is_unloaded = |text: &str| UNLOADED.iter().any(|begins| text.trim_start().starts_with(begins));
    match kind {
        Some(kind) if NOT_ITS_OWN.contains(&kind) || is_unloaded(kind) => CaseOutcome::FailedByError,
        _ if is_unloaded(message) => CaseOutcome::FailedByError,
        _ => written,
    }
}

/// How a tool's trace names the body of a case: a line of it, and the case's class and name.
type OwnFrame = fn(&str, &str, &str) -> bool;

/// The tools that mean by an `error` an exception in the body of a case as well. In all others it is what
/// went wrong around it.
const ERROR_IN_BODY: [(&str, OwnFrame); 2] =
    [("surefire, gradle, ant", is_java_frame), ("unittest", is_python_frame)];

/// `at app.AddTest.adds(AddTest.java:7)`
fn is_java_frame(line: &str, class: &str, name: &str) -> bool {
    let place = line.strip_prefix("at ").map(|rest| rest.split_once('/').map_or(rest, |(_, rest)| rest));
    let method = place.and_then(|place| place.strip_prefix(class)?.strip_prefix('.')?.strip_prefix(name));
    !class.is_empty() && method.is_some_and(|rest| rest.starts_with('('))
}

/// `File "test_add.py", line 7, in test_adds`
fn is_python_frame(line: &str, _: &str, name: &str) -> bool {
    line.starts_with("File \"") && line.rsplit_once(", in ").is_some_and(|(_, function)| function == name)
}

/// True where the trace of an `error` leads through the case's own body.
pub(super) fn is_error_in_body(class: &str, name: &str, trace: &str) -> bool {
    let bare = name.split(['(', '[', '{', ' ']).next().unwrap_or(name);
    let is_own = |line: &str| ERROR_IN_BODY.iter().any(|(_, is_frame)| is_frame(line.trim(), class, bare));
    !bare.is_empty() && trace.lines().any(is_own)
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
