//! Scenario folders: `fixtures/scenarios/NNN-name/`.
//!
//! | file | meaning |
//! |---|---|
//! | `contract.json` | the contract |
//! | `base/` | the tree that is committed |
//! | `live/` | files laid over it afterwards, uncommitted; `.deleted` lists paths to remove, one a line |
//! | `change.patch` | what is submitted |
//! | `expected/` | the live tree afterwards, complete |
//! | `expected.json` | `exit`, `json` (a part that the answer must contain; `$` marks as in the shapes), and `steps` |
//!
//! `steps` are the commands in order, `["ship"]` unless said; the first that does not exit 0 is the last, and
//! its answer is the one compared.

use crate::support::repo::path_text;
use crate::support::snapshot::{Entry, Tree, same_tree, tree};
use crate::support::{Answer, Lab, Repo, shape};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn scenarios() -> Vec<PathBuf> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/scenarios");
    let mut all: Vec<PathBuf> = std::fs::read_dir(&top)
        .unwrap_or_else(|error| panic!("{}: {error}", top.display()))
        .map(|entry| entry.expect("entry").path())
        .filter(|path| path.is_dir())
        .collect();
    all.sort();
    all
}

fn copy_tree(from: &Path, to: &Repo<'_>) {
    for (name, entry) in tree(from) {
        match entry {
            Entry::File { mode, bytes } if name != ".deleted" => {
                to.write(&name, bytes);
                to.chmod(&name, if mode & 0o100 == 0 { 0o644 } else { 0o755 });
            }
            Entry::Link(target) => to.link(&name, String::from_utf8(target).expect("UTF-8")),
            _ => {}
        }
    }
}

fn parsed(path: &Path) -> Value {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Files and links only, with the executable bit as the whole mode: that is what a checkout of ours keeps.
fn plain(tree: Tree) -> Tree {
    let keep = |(name, entry)| match entry {
        Entry::File { mode, bytes } => Some((name, Entry::File { mode: mode & 0o100, bytes })),
        Entry::Link(target) => Some((name, Entry::Link(target))),
        _ => None,
    };
    tree.into_iter().filter_map(keep).collect()
}

fn step(repo: &Repo<'_>, scenario: &Path, name: &str, task: &str) -> Answer {
    let contract = scenario.join("contract.json");
    let patch = scenario.join("change.patch");
    match name {
        "ship" => repo.json(&["ship", path_text(&contract), "--patch", path_text(&patch)]),
        "open" => repo.json(&["open", path_text(&contract)]),
        "submit" => repo.json(&["submit", task, "--patch", path_text(&patch)]),
        other => repo.json(&[other, task]),
    }
}

fn play(scenario: &Path) {
    let name = scenario.file_name().expect("a name").display().to_string();
    eprintln!("scenario {name}");
    let expected = parsed(&scenario.join("expected.json"));
    let lab = Lab::new();
    let repo = lab.empty_repo("app");
    copy_tree(&scenario.join("base"), &repo);
    repo.git(&["add", "-A", "-f"]);
    repo.git(&["commit", "-q", "-m", "base"]);
    if scenario.join("live").exists() {
        copy_tree(&scenario.join("live"), &repo);
        let deleted = std::fs::read_to_string(scenario.join("live/.deleted")).unwrap_or_default();
        deleted.lines().for_each(|path| repo.rm(path));
    }
    let before = repo.snapshot();
    let contract = parsed(&scenario.join("contract.json"));
    let task = contract["taskId"].as_str().unwrap_or("t1");
    let ship = vec![Value::from("ship")];
    let steps = expected["steps"].as_array().unwrap_or(&ship);
    let mut answer = None;
    for name in steps {
        let one = step(&repo, scenario, name.as_str().expect("a command"), task);
        let stop = one.code != 0;
        answer = Some(one);
        if stop {
            break;
        }
    }
    let answer = answer.expect("at least one step");
    assert_eq!(answer.code, expected["exit"], "{name}: {:#}\n{}", answer.json, answer.stderr);
    if let Err(problem) = shape::contains(&answer.json, &expected["json"], "$") {
        panic!("{name}: {problem}\nin {:#}", answer.json);
    }
    let after = repo.snapshot();
    assert_eq!((&before.index, &before.stash), (&after.index, &after.stash), "{name}");
    same_tree(&plain(tree(&scenario.join("expected"))), &plain(after.files));
}

#[test]
fn every_scenario_ends_as_drawn() {
    let all = scenarios();
    assert!(all.len() >= 15, "only {} scenarios", all.len());
    all.iter().for_each(|scenario| play(scenario));
}
