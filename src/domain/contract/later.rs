//! Fields that a later version fulfils: their shape is checked, then they are refused by name, never ignored.

use super::DeliveryMode;
use crate::domain::contract::terms;
use crate::domain::contract::terms::Terms;
use crate::domain::value::document::{Node, Problems, quote_clipped};

pub(super) fn check_field(problems: &mut Problems, key: &str, field: &str, node: &Node) {
    match key {
        "commands" => check_commands(problems, field, node),
        "network" => {
            if read_network(problems, field, node) == Some(true) {
                problems.report_later(field, "an open network");
            }
        }
        _ => {
            problems.read_object(field, node, &["pass"], |problems, _, name, value| {
                drop(problems.read_texts(name, value))
            });
            problems.report_later(field, "passing the environment on");
        }
    }
}

/// `"disabled"`, `"enabled"` or `{"allow": ["host:port"]}`; true where it opens anything.
pub(in crate::domain) fn read_network(problems: &mut Problems, field: &str, node: &Node) -> Option<bool> {
    let Node::Object(_) = node else {
        return problems.read_choice(field, node, &[("disabled", false), ("enabled", true)]);
    };
    problems.read_object(field, node, &["allow"], |problems, _, name, value| {
        for (name, item) in problems.read_list(name, value, "\"host:port\"").unwrap_or_default() {
            let Some(text) = problems.read_text(&name, item) else { continue };
            if !is_host_and_port(&text) {
                problems.report_fault(
                    &name,
                    &format!("must be host:port, but is {}", quote_clipped(&text)),
                    "host:port",
                    text,
                );
            }
        }
    });
    problems.require_key(field, node, "allow", "a list of \"host:port\"");
    Some(true)
}

fn is_host_and_port(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && !host.contains([' ', '/']) && port.parse::<u16>().is_ok_and(|port| port > 0)
    })
}

fn check_commands(problems: &mut Problems, field: &str, node: &Node) {
    problems.read_entries(field, node, |problems, _, name, command| {
        problems.read_object(name, command, &["argv", "timeout", "writes"], |problems, key, name, value| {
            match key {
                "argv" => {
                    if problems.read_texts(name, value).is_some_and(|argv| argv.is_empty()) {
                        problems.report_fault(
                            name,
                            "is empty",
                            "the program and its arguments",
                            Vec::<String>::new(),
                        );
                    }
                }
                "timeout" => check_timeout(problems, name, value),
                _ => drop(problems.read_scope(name, value)),
            }
        });
        problems.require_key(name, command, "argv", "the program and its arguments");
    });
    problems.report_later(field, "running named commands");
}

/// A duration as in a verifier's manifest (`"10m"`), or seconds.
fn check_timeout(problems: &mut Problems, field: &str, node: &Node) {
    let fine = match node {
        Node::Integer(seconds) => *seconds > 0,
        Node::Text(text) => ["ms", "s", "m", "h"].iter().any(|unit| {
            text.strip_suffix(unit).is_some_and(|count| count.parse::<u64>().is_ok_and(|count| count > 0))
        }),
        _ => false,
    };
    if !fine {
        problems.report_mistyped(field, "a duration such as \"10m\", or seconds", node);
    }
}

/// The mode, alone or with what goes with it.
pub(super) fn read_delivery(
    problems: &mut Problems,
    terms: &mut Terms,
    field: &str,
    node: &Node,
) -> Option<DeliveryMode> {
    let Node::Object(_) = node else {
        let mode = problems.read_choice(field, node, &DeliveryMode::ALL)?;
        refuse_later_mode(problems, field, mode);
        return Some(mode);
    };
    // The mode is looked at first, wherever it stands: the other keys depend on it.
    let known = DeliveryMode::ALL
        .iter()
        .find(|(word, _)| node.get_key("mode") == Some(&Node::Text((*word).to_owned())));
    let known = known.map(|(_, mode)| *mode);
    let mut mode = None;
    let keys = ["mode", "branch", "remote", "pushOptions", "message", "path"];
    problems.read_object(field, node, &keys, |problems, key, name, value| {
        match key {
            "mode" => mode = problems.read_choice(name, value, &DeliveryMode::ALL),
            "pushOptions" => terms.push_options = push_options(problems, name, value),
            "branch" => terms.branch = read_named(problems, name, value, terms::branch_fault),
            "remote" => terms.remote = read_named(problems, name, value, terms::remote_fault),
            "message" => terms.message = read_named(problems, name, value, terms::message_fault),
            _ => drop(problems.read_text(name, value)),
        }
        if let Some(mode) = known.filter(|mode| key != "mode" && !mode.delivery_keys().contains(&key)) {
            let why = format!("does not go with the mode `{}`", mode.as_str());
            problems.report_fault(name, &why, mode.delivery_keys(), key);
        }
    });
    problems.require_key(field, node, "mode", "where the change goes");
    refuse_later_mode(problems, field, mode?);
    mode
}

/// A text that no rule speaks against.
fn read_named(
    problems: &mut Problems,
    field: &str,
    node: &Node,
    fault: fn(&str) -> Option<&'static str>,
) -> Option<String> {
    let text = problems.read_text(field, node)?;
    match fault(&text) {
        None => Some(text),
        Some(rule) => {
            problems.report_fault(
                field,
                &format!("is {}, which {rule}", quote_clipped(&text)),
                "another text",
                text,
            );
            None
        }
    }
}

fn push_options(problems: &mut Problems, field: &str, node: &Node) -> Vec<String> {
    let items = problems.read_list(field, node, "strings").unwrap_or_default();
    let option = |(name, item): &(String, &Node)| read_named(problems, name, item, terms::push_option_fault);
    items.iter().filter_map(option).collect()
}

fn refuse_later_mode(problems: &mut Problems, field: &str, mode: DeliveryMode) {
    if !mode.is_ready() {
        problems.report_later(field, &format!("the mode `{}`", mode.as_str()));
    }
}
