//! The filter drivers of the configuration, and which of them would run a program of the tree.

use super::objects::Objects;
use super::repository::Repository;
use super::tree;
use crate::domain::value::digest::{ObjectId, Sha256};
use crate::domain::value::repo_path::RepoPath;
use crate::error::Result;
use std::collections::BTreeMap;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Driver {
    /// `filter.<name>.clean`
    pub clean: String,
    /// `filter.<name>.smudge`
    pub smudge: String,
    /// `filter.<name>.process`
    pub process: String,
}

impl Driver {
    /// Whether it does anything on the way in.
    pub fn has_clean(&self) -> bool {
        !self.clean.is_empty() || !self.process.is_empty()
    }

    /// Whether it does anything on the way out.
    pub fn has_smudge(&self) -> bool {
        !self.smudge.is_empty() || !self.process.is_empty()
    }

    /// Names what it runs on the way out.
    pub fn smudge_digest(&self) -> Sha256 {
        Sha256::of_json(&[&self.smudge, &self.process])
    }

    /// Whether it is Git LFS, which fetches from the network.
    pub fn is_lfs(&self) -> bool {
        [&self.smudge, &self.process].iter().any(|c| c.contains("git-lfs") || c.contains("git lfs"))
    }

    /// Whether one of its commands names its program relative to the tree, or names a file that one of the
    /// trees has.
    pub fn is_relative(&self, objects: &Objects, trees: &[&ObjectId]) -> Result<bool> {
        for command in [&self.clean, &self.smudge, &self.process] {
            let mut program = true;
            for word in command_words(command) {
                if word.is_empty() {
                    program = true;
                    continue;
                }
                if relative_word(&word, program) || in_a_tree(&word, objects, trees)? {
                    return Ok(true);
                }
                // `NAME=value program` and `exec program` keep the next word in command position.
                program = program
                    && (word.contains('=') || matches!(word.as_str(), "exec" | "env" | "command" | "nice"));
            }
        }
        Ok(false)
    }
}

/// The words of a shell command without quotes; an empty word stands where a new command begins.
fn command_words(command: &str) -> Vec<String> {
    let spaced: String = command
        .chars()
        .filter(|c| !matches!(c, '"' | '\'' | '\\'))
        .map(|c| {
            if matches!(c, '|' | ';' | '&' | '(' | ')' | '`' | '{' | '}' | '\n') {
                "\u{1}".to_owned()
            } else {
                c.to_string()
            }
        })
        .collect::<String>()
        .replace('\u{1}', " \u{1} ")
        .replace(['<', '>'], " ");
    spaced.split_whitespace().map(|w| if w == "\u{1}" { String::new() } else { w.to_owned() }).collect()
}

fn relative_word(word: &str, program: bool) -> bool {
    let rooted = word.starts_with('/') || word.starts_with('~') || word.starts_with('$');
    word.starts_with("./")
        || word.starts_with("../")
        || (program && !rooted && word.contains('/') && !word.contains('='))
}

fn in_a_tree(word: &str, objects: &Objects, trees: &[&ObjectId]) -> Result<bool> {
    let Ok(path) = RepoPath::new(word) else { return Ok(false) };
    for tree in trees {
        if tree::find_entry(objects, tree, &path)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// All drivers that the configuration names, with what they run.
pub fn configured_drivers(repository: &Repository) -> Result<BTreeMap<String, Driver>> {
    let mut found: BTreeMap<String, Driver> = BTreeMap::new();
    for (key, value) in repository.configuration()?.keys_beneath("filter.") {
        let Some((name, what)) = key.strip_prefix("filter.").and_then(|key| key.rsplit_once('.')) else {
            continue;
        };
        if !matches!(what, "clean" | "smudge" | "process" | "required") {
            continue;
        }
        let driver = found.entry(name.to_owned()).or_default();
        match what {
            "clean" => value.clone_into(&mut driver.clean),
            "smudge" => value.clone_into(&mut driver.smudge),
            "process" => value.clone_into(&mut driver.process),
            _ => {}
        }
    }
    Ok(found)
}

/// The names of the drivers that run while a task's worktree is filled: all but Git LFS, which would fetch
/// from the network.
pub fn runnable_drivers(repository: &Repository) -> Result<Vec<String>> {
    let drivers = configured_drivers(repository)?.into_iter();
    Ok(drivers.filter(|(name, driver)| name != "lfs" && !driver.is_lfs()).map(|(name, _)| name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_the_tree_is_seen_wherever_it_stands() {
        let relative = |command: &str| {
            let mut program = true;
            command_words(command).iter().any(|word| {
                let hit = !word.is_empty() && relative_word(word, program);
                program = word.is_empty();
                hit
            })
        };
        for command in
            ["./f", "tools/f", "sh ../x/f", "cat | tools/f", "(tools/f)", "\"tools/f\" %f", "a;b/c"]
        {
            assert!(relative(command), "{command}");
        }
        for command in ["git-lfs clean -- %f", "/usr/bin/f", "sed s/a/b/", "tr a-z A-Z", "~/bin/f", "$HOME/f"]
        {
            assert!(!relative(command), "{command}");
        }
    }
}
