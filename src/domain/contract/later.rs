//! Fields that a later version fulfils: their shape is checked, then they are refused by name, never ignored.

use super::DeliveryMode;
use crate::domain::contract::terms;
use crate::domain::contract::terms::Terms;
use crate::domain::value::document::{Node, Problems, clipped};

pub(super) fn field(problems: &mut Problems, key: &str, field: &str, node: &Node) {
    match key {
        "commands" => commands(problems, field, node),
        "network" => {
            if network(problems, field, node) == Some(true) {
                problems.later(field, "an open network");
            }
        }
        _ => {
            problems
                .object(field, node, &["pass"], |problems, _, name, value| drop(problems.texts(name, value)));
            problems.later(field, "passing the environment on");
        }
    }
}

/// `"disabled"`, `"enabled"` or `{"allow": ["host:port"]}`; true where it opens anything.
pub(in crate::domain) fn network(problems: &mut Problems, field: &str, node: &Node) -> Option<bool> {
    let Node::Object(_) = node else {
        return problems.choice(field, node, &[("disabled", false), ("enabled", true)]);
    };
    problems.object(field, node, &["allow"], |problems, _, name, value| {
        for (name, item) in problems.list(name, value, "\"host:port\"").unwrap_or_default() {
            let Some(text) = problems.text(&name, item) else { continue };
            if !is_host_and_port(&text) {
                problems.fault(
                    &name,
                    &format!("must be host:port, but is {}", clipped(&text)),
                    "host:port",
                    text,
                );
            }
        }
    });
    problems.require(field, node, "allow", "a list of \"host:port\"");
    Some(true)
}

fn is_host_and_port(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && !host.contains([' ', '/']) && port.parse::<u16>().is_ok_and(|port| port > 0)
    })
}

fn commands(problems: &mut Problems, field: &str, node: &Node) {
    problems.entries(field, node, |problems, _, name, command| {
        problems.object(
            name,
            command,
            &["argv", "timeout", "writes"],
            |problems, key, name, value| match key {
                "argv" => {
                    if problems.texts(name, value).is_some_and(|argv| argv.is_empty()) {
                        problems.fault(
                            name,
                            "is empty",
                            "the program and its arguments",
                            Vec::<String>::new(),
                        );
                    }
                }
                "timeout" => timeout(problems, name, value),
                _ => drop(problems.scope(name, value)),
            },
        );
        problems.require(name, command, "argv", "the program and its arguments");
    });
    problems.later(field, "running named commands");
}

/// A duration as in a verifier's manifest (`"10m"`), or seconds.
fn timeout(problems: &mut Problems, field: &str, node: &Node) {
    let fine = match node {
        Node::Integer(seconds) => *seconds > 0,
        Node::Text(text) => ["ms", "s", "m", "h"].iter().any(|unit| {
            text.strip_suffix(unit).is_some_and(|count| count.parse::<u64>().is_ok_and(|count| count > 0))
        }),
        _ => false,
    };
    if !fine {
        problems.mistyped(field, "a duration such as \"10m\", or seconds", node);
    }
}

/// The mode, alone or with what goes with it.
pub(super) fn delivery(
    problems: &mut Problems,
    terms: &mut Terms,
    field: &str,
    node: &Node,
) -> Option<DeliveryMode> {
    let Node::Object(_) = node else {
        let mode = problems.choice(field, node, &DeliveryMode::ALL)?;
        refuse_later_mode(problems, field, mode);
        return Some(mode);
    };
    // The mode is looked at first, wherever it stands: the other keys depend on it.
    let known =
        DeliveryMode::ALL.iter().find(|(word, _)| node.get("mode") == Some(&Node::Text((*word).to_owned())));
    let known = known.map(|(_, mode)| *mode);
    let mut mode = None;
    let keys = ["mode", "branch", "remote", "pushOptions", "message", "path"];
    problems.object(field, node, &keys, |problems, key, name, value| {
        match key {
            "mode" => mode = problems.choice(name, value, &DeliveryMode::ALL),
            "pushOptions" => terms.push_options = push_options(problems, name, value),
            "branch" => terms.branch = named(problems, name, value, terms::branch_fault),
            "remote" => terms.remote = named(problems, name, value, terms::remote_fault),
            "message" => terms.message = named(problems, name, value, terms::message_fault),
            _ => drop(problems.text(name, value)),
        }
        if let Some(mode) = known.filter(|mode| key != "mode" && !mode.keys().contains(&key)) {
            let why = format!("does not go with the mode `{}`", mode.as_str());
            problems.fault(name, &why, mode.keys(), key);
        }
    });
    problems.require(field, node, "mode", "where the change goes");
    refuse_later_mode(problems, field, mode?);
    mode
}

/// A text that no rule speaks against.
fn named(
    problems: &mut Problems,
    field: &str,
    node: &Node,
    fault: fn(&str) -> Option<&'static str>,
) -> Option<String> {
    let text = problems.text(field, node)?;
    match fault(&text) {
        None => Some(text),
        Some(rule) => {
            problems.fault(field, &format!("is {}, which {rule}", clipped(&text)), "another text", text);
            None
        }
    }
}

fn push_options(problems: &mut Problems, field: &str, node: &Node) -> Vec<String> {
    let items = problems.list(field, node, "strings").unwrap_or_default();
    let option = |(name, item): &(String, &Node)| named(problems, name, item, terms::push_option_fault);
    items.iter().filter_map(option).collect()
}

fn refuse_later_mode(problems: &mut Problems, field: &str, mode: DeliveryMode) {
    if !mode.is_ready() {
        problems.later(field, &format!("the mode `{}`", mode.as_str()));
    }
}
