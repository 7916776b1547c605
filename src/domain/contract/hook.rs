//! Hooks: programs of the repository's owners that are asked before a worker's call (guards), or hear of
//! calls and of the ends of tasks (observers).
//!
//! A guard that cannot be asked blocks. An observer hears durations and counts, never contents, and what
//! becomes of it changes nothing.

use crate::domain::value::document::{Node, Problems, read_duration};
use serde::{Deserialize, Serialize};

/// Time that a hook may take where its owner does not say, in milliseconds.
const DEFAULT_TIMEOUT: u64 = 30_000;
/// The longest that may be said: a worker waits for it with every call.
const LONGEST_TIMEOUT: u64 = 3_600_000;
/// The keys of a hook.
const FIELDS: [&str; 4] = ["event", "kind", "command", "timeout"];

/// The event that a hook waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// A worker's call, charged on its arrival, may reach what it names, and is not yet carried out.
    BeforeAction,
    /// A worker's call has its result.
    AfterAction,
    /// A task was completed, cancelled or undone.
    AfterTask,
}

impl Moment {
    const ALL: [(&'static str, Moment); 3] = [
        ("before_action", Self::BeforeAction),
        ("after_action", Self::AfterAction),
        ("after_task", Self::AfterTask),
    ];
}

/// The purpose of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Guard,
    Observer,
}

/// Whose configuration it stands in: that decides where it runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    #[default]
    Committed,
    Private,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hook {
    pub event: Moment,
    pub kind: Kind,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Time that it may take, in milliseconds.
    pub timeout_ms: u64,
    pub layer: Layer,
}

/// Reads a list of hooks.
pub fn read_hooks(problems: &mut Problems, field: &str, node: &Node) -> Vec<Hook> {
    let items = problems.read_list(field, node, "tables").unwrap_or_default();
    items.into_iter().filter_map(|(name, item)| read_hook(problems, &name, item)).collect()
}

fn read_hook(problems: &mut Problems, field: &str, node: &Node) -> Option<Hook> {
    let (mut event, mut kind, mut command, mut timeout) = (None, None, None, Some(DEFAULT_TIMEOUT));
    problems.read_object(field, node, &FIELDS, |problems, key, name, value| match key {
        "event" => event = problems.read_choice(name, value, &Moment::ALL),
        "kind" => {
            kind = problems.read_choice(name, value, &[("guard", Kind::Guard), ("observer", Kind::Observer)])
        }
        "command" => command = read_argv(problems, name, value),
        _ => timeout = read_duration(problems, name, value, LONGEST_TIMEOUT, "1h"),
    });
    for (key, what) in [
        ("event", "before_action, after_action or after_task"),
        ("kind", "guard or observer"),
        ("command", "the program and its arguments"),
    ] {
        problems.require_key(field, node, key, what);
    }
    let (event, kind) = (event?, kind?);
    if kind == Kind::Guard && event != Moment::BeforeAction {
        let why = "is `guard`, which can only block what has not happened yet";
        problems.report_fault(&format!("{field}.kind"), why, "observer, or the event before_action", "guard");
    }
    Some(Hook { event, kind, command: command?, timeout_ms: timeout?, layer: Layer::Committed })
}

fn read_argv(problems: &mut Problems, field: &str, node: &Node) -> Option<Vec<String>> {
    let argv = problems.read_texts(field, node)?;
    if argv.is_empty() || argv.iter().any(|argument| argument.contains('\0')) {
        problems.report_fault(field, "is no command", "the program and its arguments", argv);
        return None;
    }
    Some(argv)
}

#[cfg(test)]
mod tests {
    use crate::domain::contract::hook::*;
    use crate::domain::contract::policy::Config;
    use crate::error::Code;

    #[test]
    fn a_list_of_hooks_is_read_with_its_defaults() {
        let text = "[[hooks]]\nevent = \"before_action\"\nkind = \"guard\"\ncommand = [\"sh\", \".tender/hooks/check.sh\"]\n\
             [[hooks]]\nevent = \"after_task\"\nkind = \"observer\"\ncommand = [\"true\"]\ntimeout = \"1m30s\"\n";
        let hooks = Config::parse_config(text.as_bytes()).expect("reads").hooks;
        assert_eq!(hooks[0].command, ["sh", ".tender/hooks/check.sh"]);
        assert_eq!(
            (hooks[0].event, hooks[0].kind, hooks[0].timeout_ms),
            (Moment::BeforeAction, Kind::Guard, DEFAULT_TIMEOUT)
        );
        assert_eq!(
            (hooks[1].event, hooks[1].kind, hooks[1].timeout_ms),
            (Moment::AfterTask, Kind::Observer, 90_000)
        );
        let text = serde_json::to_string(&hooks).expect("writes");
        assert_eq!(serde_json::from_str::<Vec<Hook>>(&text).expect("reads"), hooks);
    }

    #[test]
    fn every_wrong_hook_is_named() {
        let whole = [("event", "\"before_action\""), ("kind", "\"guard\""), ("command", "[\"true\"]")];
        let with = |changed: &str, value: Option<&str>| {
            let mut lines = vec!["[[hooks]]".to_owned()];
            for (key, own) in whole {
                let value = if key == changed { value } else { Some(own) };
                lines.extend(value.map(|value| format!("{key} = {value}")));
            }
            if !whole.iter().any(|(key, _)| *key == changed) {
                lines.extend(value.map(|value| format!("{changed} = {value}")));
            }
            Config::parse_config(lines.join("\n").as_bytes())
        };
        assert!(with("timeout", Some("\"5s\"")).is_ok());
        for (key, value, subject) in [
            ("event", Some("\"before_task\""), "hooks[0].event"),
            ("event", None, "hooks[0].event"),
            ("event", Some("\"after_action\""), "hooks[0].kind"),
            ("kind", Some("\"watcher\""), "hooks[0].kind"),
            ("kind", None, "hooks[0].kind"),
            ("command", Some("[]"), "hooks[0].command"),
            ("command", Some("\"true\""), "hooks[0].command"),
            ("command", None, "hooks[0].command"),
            ("timeout", Some("5"), "hooks[0].timeout"),
            ("timeout", Some("\"0s\""), "hooks[0].timeout"),
            ("timeout", Some("\"2h\""), "hooks[0].timeout"),
            ("on", Some("\"x\""), "hooks[0].on"),
        ] {
            let failure = with(key, value).expect_err(key);
            assert_eq!(
                (failure.code(), failure.subject_text()),
                (Code::ConfigInvalid, Some(subject)),
                "{key} {value:?}"
            );
        }
    }
}
