//! From the document to a [`Config`]: one reader a key. Nothing stops at the first problem: whoever writes a
//! configuration gets all that is wrong with it at once.

use super::{BaseRuns, Config, Flaky, Floor, GoneCases, LiveRule, Policy};
use crate::domain::contract::budget::{Amounts, Key};
use crate::domain::contract::hook::read_hooks;
use crate::domain::contract::worktree_rules::read_worktree_rules;
use crate::domain::contract::{DeliveryMode, Kind, read_network};
use crate::domain::value::document::{Node, Problems, read_toml};
use crate::error::{Code, Result};
use std::collections::BTreeMap;

/// The keys of a configuration.
pub const CONFIG_FIELDS: [&str; 5] = ["$schema", "filters", "policy", "hooks", "worktree"];

/// The keys of its `policy`.
pub const POLICY_FIELDS: [&str; 13] = [
    "write",
    "protected",
    "require",
    "network",
    "delivery",
    "commit",
    "env",
    "flaky",
    "live",
    "goneCases",
    "base",
    "accept",
    "budget",
];

impl Config {
    /// Reads a configuration. An empty one is the default. The failure is `config.invalid`, or
    /// `not_supported` where it asks for what this version does not do; its subject is the key, and it lists
    /// every problem.
    pub fn parse_config(bytes: &[u8]) -> Result<Self> {
        let document = read_toml("the configuration", Code::ConfigInvalid, bytes)?;
        let mut problems = Problems::new("the configuration", Code::ConfigInvalid);
        let mut config = Self::default();
        problems.read_object("", &document, &CONFIG_FIELDS, |problems, key, field, node| {
            match key {
                // For editors.
                "$schema" => drop(problems.read_text(field, node)),
                "filters" => config.filters = read_names(problems, field, node),
                "policy" => config.policy = read_policy(problems, field, node),
                "hooks" => config.hooks = read_hooks(problems, field, node),
                _ => config.worktree = read_worktree_rules(problems, field, node),
            }
        });
        problems.into_result()?;
        Ok(config)
    }
}

fn read_policy(problems: &mut Problems, field: &str, node: &Node) -> Policy {
    let mut policy = Policy::default();
    problems.read_object(field, node, &POLICY_FIELDS, |problems, key, field, node| match key {
        "write" => policy.write.extend(problems.read_scope(field, node)),
        "protected" => policy.protected = problems.read_scope(field, node),
        "require" => policy.require = read_floors(problems, field, node),
        "network" => policy.network = read_network(problems, field, node),
        "delivery" => policy.delivery = read_modes(problems, field, node),
        "commit" => policy.commit = problems.read_boolean(field, node),
        "flaky" => {
            let words = [("fail", Flaky::Fail), ("warn", Flaky::Warn)];
            policy.flaky = problems.read_choice(field, node, &words);
        }
        "live" => {
            let words = [("off", LiveRule::Off), ("warn", LiveRule::Warn), ("prove", LiveRule::Prove)];
            policy.live = problems.read_choice(field, node, &words);
        }
        "goneCases" => {
            let words = [("person", GoneCases::Person), ("warn", GoneCases::Warn)];
            policy.gone_cases = problems.read_choice(field, node, &words);
        }
        "base" => policy.base = problems.read_choice(field, node, &BaseRuns::ALL),
        // A contract cannot pass variables on in this version; those that a manifest names are its owners'
        // own.
        "env" => drop(problems.read_texts(field, node)),
        "accept" => {
            problems.read_choice(field, node, &[("signed", ()), ("rerun", ())]);
            problems.report_later(field, "accepting bundles");
        }
        _ => policy.budget = read_budgets(problems, field, node),
    });
    policy
}

fn read_names(problems: &mut Problems, field: &str, node: &Node) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (item, value) in problems.read_list(field, node, "strings").unwrap_or_default() {
        if let Some(name) = problems.read_text(&item, value)
            && problems.require_once(&item, &name, &names)
        {
            names.push(name);
        }
    }
    names
}

fn read_floors(problems: &mut Problems, field: &str, node: &Node) -> Vec<Floor> {
    let mut floors = Vec::new();
    for (name, item) in problems.read_list(field, node, "tables").unwrap_or_default() {
        let (mut verifier, mut when) = (None, None);
        problems.read_object(&name, item, &["verifier", "when"], |problems, key, field, node| match key {
            "verifier" => verifier = problems.read_id(field, node),
            _ => when = problems.read_scope(field, node),
        });
        problems.require_key(&name, item, "verifier", "the id of a verifier");
        problems.require_key(&name, item, "when", "a list of paths and globs; [\"**\"] for every change");
        if let (Some(verifier), Some(when)) = (verifier, when) {
            floors.push(Floor { verifier, when });
        }
    }
    floors
}

fn read_modes(problems: &mut Problems, field: &str, node: &Node) -> Option<Vec<DeliveryMode>> {
    let mut modes = Vec::new();
    for (name, item) in problems.read_list(field, node, "delivery modes")? {
        if let Some(mode) = problems.read_choice(&name, item, &DeliveryMode::ALL)
            && !modes.contains(&mode)
        {
            modes.push(mode);
        }
    }
    Some(modes)
}

fn read_budgets(problems: &mut Problems, field: &str, node: &Node) -> BTreeMap<String, Amounts> {
    let mut budgets: BTreeMap<String, Amounts> = BTreeMap::new();
    let kinds = Kind::ALL.map(|(word, _)| word);
    problems.read_object(field, node, &kinds, |problems, kind, field, node| {
        let budget = budgets.entry(kind.to_owned()).or_default();
        problems.read_object(field, node, &Key::all_words(), |problems, key, field, node| {
            if let (Some(count), Some(key)) = (problems.read_count(field, node), Key::from_word(key)) {
                budget.insert(key, count);
            }
        });
    });
    budgets
}
