//! The terms of a delivery that moves a ref: the names and texts that a contract gives, the rules that these
//! have to keep, and what takes the place of those that it leaves out.

use serde::{Deserialize, Serialize};

/// What a contract says beside the mode `branch` or `push`; what it leaves out is filled in at the delivery.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Terms {
    /// The branch, without `refs/heads/`.
    pub branch: Option<String>,
    /// The name of a configured remote.
    pub remote: Option<String>,
    /// Options for the server, in order.
    pub push_options: Vec<String>,
    pub message: Option<String>,
}

impl Terms {
    /// True where the contract says nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Longest component of a branch's name, in bytes: a file system's 255 less what git's lock file adds
/// (`.lock`).
const LONGEST_COMPONENT: usize = 250;

/// Longest name of a branch, in bytes, so that its path remains one.
const LONGEST_BRANCH: usize = 1_000;

/// The rule that a name breaks, of those that git has for branches; `None` where it is right.
pub fn branch_fault(name: &str) -> Option<&'static str> {
    let component = |part: &str| part.is_empty() || part.starts_with('.') || part.ends_with(".lock");
    let forbidden = |c: char| c.is_control() || " ~^:?*[\\".contains(c);
    if name.starts_with('-') {
        Some("begins with a dash")
    } else if name.starts_with("refs/") {
        Some("is a full ref name; the name of a branch stands without `refs/heads/`")
    } else if name == "HEAD" || name == "@" {
        Some("is a name that git keeps for itself")
    } else if name.chars().any(forbidden) {
        Some("holds a character that no ref may have")
    } else if name.contains("..")
        || name.contains("@{")
        || name.ends_with('.')
        || name.split('/').any(component)
    {
        Some("is no valid name of a ref")
    } else if name.len() > LONGEST_BRANCH || name.split('/').any(|part| part.len() > LONGEST_COMPONENT) {
        Some("is longer than a name in a file system may be")
    } else {
        None
    }
}

/// The rule that the name of a remote breaks.
pub fn remote_fault(name: &str) -> Option<&'static str> {
    if name.starts_with('-') {
        Some("begins with a dash")
    } else if name.chars().any(|c| c.is_control() || c.is_whitespace()) {
        Some("holds a character that no remote's name may have")
    } else {
        None
    }
}

/// The rule that a push option breaks.
pub fn push_option_fault(option: &str) -> Option<&'static str> {
    option.contains(['\n', '\r', '\0']).then_some("holds a line break or NUL, which no push option may have")
}

/// The rule that a message breaks.
pub fn message_fault(message: &str) -> Option<&'static str> {
    if message.contains('\0') {
        Some("holds NUL, which no commit's message may have")
    } else if message.lines().any(is_ours) {
        Some("has a line that begins as ours do (`Tender-…:`), which say where a commit comes from")
    } else {
        None
    }
}

/// True for a line that could be taken for one of the trailers that a delivery adds. git does not mind their
/// case.
fn is_ours(line: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let key = line.bytes().take_while(|byte| word(*byte)).count();
    let begins = line[..key].to_ascii_lowercase().starts_with("tender-");
    begins && line[key..].trim_start().starts_with([':', '=', '#'])
}

/// The message where the contract names none: its goal, none of whose lines can be taken for a trailer of
/// ours.
pub fn message_of_goal(goal: &str) -> String {
    let goal = goal.replace('\0', " ");
    let lines =
        goal.split('\n').map(|line| if is_ours(line) { format!("> {line}") } else { line.to_owned() });
    lines.collect::<Vec<_>>().join("\n")
}

/// A task's id as a component of a ref's name. A task id may hold what a ref may not (`a..b`, `x.lock`); its
/// dots are then escaped.
pub fn ref_component(task: &str) -> String {
    let bad = task.contains("..") || task.ends_with('.') || task.ends_with(".lock");
    if bad { task.replace('.', "%2e") } else { task.to_owned() }
}

/// The branch of a task whose contract names none.
pub fn default_branch(task: &str) -> String {
    format!("tender/{}", ref_component(task))
}

#[cfg(test)]
mod tests {
    use crate::domain::contract::terms::*;

    #[test]
    fn names_of_branches_are_judged_as_git_does() {
        for good in ["x", "tender/t1", "a.b/c", "ümläut", "a@b", "@a", "a-", "x.locked", "HEAD/x"] {
            assert_eq!(branch_fault(good), None, "{good}");
        }
        for bad in [
            "",
            "-x",
            "a..b",
            "a b",
            "a~",
            "a^",
            "a:b",
            "a?",
            "a*",
            "a[",
            "a\\b",
            "/a",
            "a/",
            "a//b",
            "a.",
            ".a",
            "a/.b",
            "a.lock",
            "a.lock/b",
            "a@{b",
            "@",
            "HEAD",
            "refs/heads/x",
            "a\nb",
            "a\u{7f}",
        ] {
            assert!(branch_fault(bad).is_some(), "{bad:?}");
        }
        let long = "x".repeat(250);
        assert_eq!(branch_fault(&format!("a/{long}")), None);
        for bad in [format!("a/{long}x"), format!("{}x", "ä".repeat(125)), vec![long; 5].join("/")] {
            assert!(branch_fault(&bad).is_some(), "{bad}");
        }
        for task in ["t1", "a..b", "x.lock", "x.", "a.b"] {
            assert_eq!(branch_fault(&default_branch(task)), None, "{task}");
        }
        assert!(
            remote_fault("-x").is_some() && remote_fault("a b").is_some() && remote_fault("up/x").is_none()
        );
        assert!(
            push_option_fault("a\nb").is_some() && push_option_fault("merge_request.title=ä b").is_none()
        );
    }

    #[test]
    fn no_message_forges_a_trailer_of_ours() {
        for good in
            ["x", "x\n\nTender-hearted, it is: a", "x\n\n Tender-Task: t", "x\n\nSigned-off-by: A <a@b>"]
        {
            assert_eq!(message_fault(good), None, "{good}");
        }
        for bad in ["x\n\nTender-Task: t9", "tender-evidence : x", "x\r\n\r\nTENDER-Contract:y\r\n", "x\0"] {
            assert!(message_fault(bad).is_some(), "{bad:?}");
            assert_eq!(message_fault(&message_of_goal(bad)), None, "{bad:?}");
        }
        assert_eq!(message_of_goal("a\nTender-Task: x\n"), "a\n> Tender-Task: x\n");
    }
}
