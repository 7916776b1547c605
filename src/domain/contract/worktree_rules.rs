//! What a task's worktree gets beside the files of its base: ignored files that are copied or linked from the
//! user's own tree, and what a command makes of them.
//!
//! It is said by the base commit and by the user's private layer, never by a change.

use crate::domain::value::document::{Node, Problems};
use crate::domain::value::repo_path::RepoPath;
use crate::domain::value::scope::Scope;
use serde::{Deserialize, Serialize};

/// The keys of `worktree` in a configuration.
pub const WORKTREE_FIELDS: [&str; 3] = ["copy", "link", "setup"];

/// The keys of its `setup`.
pub const SETUP_FIELDS: [&str; 3] = ["command", "inputs", "network"];

/// The rules of one configuration, or of both together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorktreeRules {
    /// Ignored files to copy.
    pub copy: Scope,
    /// Ignored files and folders that links lead to.
    pub link: Vec<RepoPath>,
    /// What is run in the new worktree.
    pub setup: Option<WorktreeSetup>,
}

/// A command that makes a worktree ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorktreeSetup {
    pub command: Vec<String>,
    /// The files of the base that its result depends on.
    pub inputs: Scope,
    /// Whether it is told how to reach the network.
    pub network: bool,
}

impl WorktreeRules {
    /// Both together; where both have a setup, the user's own counts.
    pub fn joined_with(mut self, private: Self) -> Self {
        self.link
            .extend(private.link.into_iter().filter(|path| !self.link.contains(path)).collect::<Vec<_>>());
        Self { copy: self.copy.union(&private.copy), link: self.link, setup: private.setup.or(self.setup) }
    }

    /// True where nothing is to be copied or linked by these rules.
    pub fn brings_nothing(&self) -> bool {
        self.copy.is_empty() && self.link.is_empty()
    }
}

/// Reads `worktree` of a configuration.
pub fn read_worktree_rules(problems: &mut Problems, field: &str, node: &Node) -> WorktreeRules {
    let mut rules = WorktreeRules::default();
    problems.read_object(field, node, &WORKTREE_FIELDS, |problems, key, field, node| match key {
        "copy" => rules.copy = problems.read_scope(field, node).unwrap_or_default(),
        "link" => rules.link = read_links(problems, field, node),
        _ => rules.setup = read_setup(problems, field, node),
    });
    rules
}

fn read_links(problems: &mut Problems, field: &str, node: &Node) -> Vec<RepoPath> {
    let mut links = Vec::new();
    for (item, value) in problems.read_list(field, node, "paths").unwrap_or_default() {
        let Some(text) = problems.read_text(&item, value) else { continue };
        match RepoPath::new(text.trim_end_matches('/')) {
            Ok(path) => links.push(path),
            Err(_) => {
                problems.report_fault(&item, "is no path of this repository", "a path such as .venv", text)
            }
        }
    }
    links
}

fn read_setup(problems: &mut Problems, field: &str, node: &Node) -> Option<WorktreeSetup> {
    let (mut command, mut inputs, mut network) = (None, None, false);
    problems.read_object(field, node, &SETUP_FIELDS, |problems, key, field, node| match key {
        "command" => {
            command = problems.read_texts(field, node);
            if command.as_ref().is_some_and(|argv| argv.is_empty() || argv.iter().any(|a| a.contains('\0'))) {
                problems.report_fault(field, "is no command", "the program and its arguments", "none");
            }
        }
        "inputs" => inputs = problems.read_scope(field, node),
        _ => network = problems.read_boolean(field, node) == Some(true),
    });
    problems.require_key(field, node, "command", "the program and its arguments");
    problems.require_key(field, node, "inputs", "the files that its result depends on, such as a lock file");
    Some(WorktreeSetup { command: command?, inputs: inputs?, network })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::contract::policy::Config;
    use crate::error::{Code, Result};

    fn rules(text: &str) -> Result<WorktreeRules> {
        Config::parse_config(text.as_bytes()).map(|config| config.worktree)
    }

    #[test]
    fn the_documented_rules_are_read() {
        let read = rules(
            "[worktree]\ncopy = [\".env*\", \"node_modules/\"]\nlink = [\".venv/\"]\n\
             setup = { command = [\"npm\", \"ci\"], inputs = [\"package-lock.json\"], network = true }\n",
        )
        .expect("reads");
        assert_eq!(read.copy.patterns(), [".env*", "node_modules/"]);
        assert_eq!(read.link, [RepoPath::new(".venv").expect("a path")]);
        let setup = read.setup.clone().expect("there");
        assert_eq!((setup.command.join(" "), setup.network), ("npm ci".to_owned(), true));
        let private = rules("[worktree]\ncopy = [\"x\"]\nlink = [\".venv\", \"y\"]\n").expect("reads");
        let both = read.joined_with(private);
        assert_eq!((both.copy.patterns().len(), both.link.len(), both.setup), (3, 2, Some(setup)));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, subject) in [
            ("[worktree]\ncopies = []\n", "worktree.copies"),
            ("[worktree]\nlink = [\"../x\"]\n", "worktree.link[0]"),
            ("[worktree]\nlink = [\".git\"]\n", "worktree.link[0]"),
            ("[worktree]\ncopy = [\"/abs\"]\n", "worktree.copy[0]"),
            ("[worktree]\nsetup = { command = [\"x\"] }\n", "worktree.setup.inputs"),
            ("[worktree]\nsetup = { command = [], inputs = [\"a\"] }\n", "worktree.setup.command"),
            ("[worktree]\nsetup = { inputs = [\"a\"] }\n", "worktree.setup.command"),
        ] {
            let failure = rules(text).expect_err(text);
            assert_eq!(
                (failure.code(), failure.subject_text()),
                (Code::ConfigInvalid, Some(subject)),
                "{text}"
            );
        }
    }
}
