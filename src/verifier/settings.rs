//! What a file of the tree says to a runner: read as values, so that a reordered key or another comment is no
//! difference.
//!
//! A document that cannot be read gives `None`, and whoever compares takes that for a difference.

use super::runners::RunnerSettings;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The settings of a document by their places.
pub(super) type Settings = BTreeMap<String, Value>;

/// Reads the settings of a kind. `words` are those that the command and what it reads consist of.
pub(super) fn read_settings(
    kind: RunnerSettings,
    bytes: &[u8],
    words: &BTreeSet<String>,
) -> Option<Settings> {
    let text = std::str::from_utf8(bytes).ok()?;
    Some(match kind {
        RunnerSettings::Code => Settings::new(),
        RunnerSettings::WholeFile => Settings::from([(String::new(), Value::from(text))]),
        RunnerSettings::Json(places) => values_at(&serde_json::from_str(text).ok()?, places),
        RunnerSettings::Toml(places) => values_at(&toml::from_str(text).ok()?, places),
        RunnerSettings::Ini(names) => sections(text, names),
        RunnerSettings::NpmScripts => started_scripts(&serde_json::from_str(text).ok()?, words)?,
    })
}

fn values_at(document: &Value, places: &[&str]) -> Settings {
    let value = |place: &str| place.split('.').try_fold(document, |value, key| value.get(key)).cloned();
    places.iter().filter_map(|place| Some(((*place).to_owned(), value(place)?))).collect()
}

/// The lines of the sections of these names, without comments. Whatever stands in one section's headers and
/// lines is kept in order, since parsers differ in what they make of it.
fn sections(text: &str, names: &[&str]) -> Settings {
    let is_wanted = |section: &str| {
        names.iter().any(|name| match name.strip_suffix('*') {
            Some(start) => section.starts_with(start),
            None => section == *name,
        })
    };
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    let mut section = String::new();
    for line in text.lines().map(str::trim_end) {
        if let Some((name, _)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            name.trim().clone_into(&mut section);
        }
        let says = !line.is_empty() && !line.trim_start().starts_with(['#', ';']);
        if says && is_wanted(&section) {
            found.entry(section.clone()).or_default().extend([line, "\n"]);
        }
    }
    found.into_iter().map(|(name, lines)| (format!("[{name}]"), Value::from(lines))).collect()
}

/// What npm runs by itself when it installs.
const INSTALLING: &[&str] = &[
    "preinstall",
    "install",
    "postinstall",
    "prepublish",
    "preprepare",
    "prepare",
    "postprepare",
    "dependencies",
];

/// The scripts of a `package.json` that are started, and those that they name. `None` where `scripts` is
/// nothing that npm would take.
fn started_scripts(document: &Value, words: &BTreeSet<String>) -> Option<Settings> {
    let Some(scripts) = document.get("scripts") else { return Some(Settings::new()) };
    let scripts: BTreeMap<&str, &str> =
        scripts.as_object()?.iter().map(|(k, v)| Some((k.as_str(), v.as_str()?))).collect::<Option<_>>()?;
    let (mut started, mut pending) = (BTreeSet::new(), Vec::new());
    let mut name_one = |word: &str, pending: &mut Vec<String>| {
        let own = match word {
            "t" | "tst" => vec!["test"],
            "i" | "ci" | "install" | "add" => INSTALLING.to_vec(),
            word => vec![word],
        };
        // `npm-run-all test:*` and its like name several.
        let is_meant = |script: &str| {
            own.iter().any(|name| match script.strip_prefix(name) {
                Some(rest) => rest.is_empty() || name.ends_with(':'),
                None => ["pre", "post"].iter().any(|hook| script.strip_prefix(hook) == Some(name)),
            })
        };
        for (script, text) in scripts.iter().filter(|(script, _)| is_meant(script)) {
            if started.insert((*script).to_owned()) {
                pending.push((*text).to_owned());
            }
        }
    };
    words.iter().for_each(|word| name_one(word, &mut pending));
    while let Some(text) = pending.pop() {
        super::runners::words_of(&text).for_each(|word| name_one(word, &mut pending));
    }
    let value = |script: String| (format!("scripts.{script}"), Value::from(scripts[script.as_str()]));
    Some(started.into_iter().map(value).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(kind: RunnerSettings, text: &str, words: &[&str]) -> Option<String> {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        Some(read_settings(kind, text.as_bytes(), &words)?.into_keys().collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn a_script_is_started_by_name_by_a_hook_and_by_another_script() {
        let text = r#"{"scripts": {"test": "npm run lint && run-p unit:*", "pretest": "node a.js", "lint": "x",
            "unit:a": "a", "unit:b": "b", "docs": "d", "postinstall": "p", "prepare": "q"}}"#;
        let of = |words: &[&str]| places(RunnerSettings::NpmScripts, text, words).expect("reads");
        let tests = "scripts.lint scripts.pretest scripts.test scripts.unit:a scripts.unit:b";
        assert_eq!(of(&["npm", "test"]), tests);
        assert_eq!(of(&["npm", "t"]), tests);
        assert_eq!(of(&["npm", "run", "docs"]), "scripts.docs");
        assert_eq!(of(&["npm", "ci"]), "scripts.postinstall scripts.prepare");
        assert_eq!(of(&["node", "--test"]), "");
        for broken in ["{", "{\"scripts\": []}", "{\"scripts\": {\"test\": 1}}"] {
            assert_eq!(places(RunnerSettings::NpmScripts, broken, &["test"]), None, "{broken}");
        }
    }

    #[test]
    fn sections_are_compared_without_their_comments() {
        let kind = RunnerSettings::Ini(&["pytest", "testenv*"]);
        let read = |text: &str| read_settings(kind, text.as_bytes(), &BTreeSet::new()).expect("reads");
        let text = "[pytest]\naddopts = -x\n[flake8]\na = 1\n[testenv:py]\ndeps =\n  a\n";
        assert_eq!(places(kind, text, &[]).expect("reads"), "[pytest] [testenv:py]");
        let same = "# now\n[testenv:py]\ndeps =\n  a\n\n[pytest] \n; why\naddopts = -x\n[flake8]\na = 2\n";
        assert_eq!(read(text), read(same));
        assert_ne!(read(text), read(&text.replace("-x", "-k no")));
        assert_ne!(read(text), read(&text.replace("  a", "  b")));
    }

    #[test]
    fn values_are_compared_and_not_their_writing() {
        let kind = RunnerSettings::Toml(&["tool.pytest", "lints"]);
        let read = |text: &str| read_settings(kind, text.as_bytes(), &BTreeSet::new());
        let one = read("[tool.pytest.ini_options]\naddopts = \"-x\"\n[project]\nname = \"a\"\n");
        assert_eq!(one, read("tool.pytest.ini_options = { addopts = '-x' } # why\n"));
        assert_ne!(one, read("[tool.pytest.ini_options]\naddopts = \"\"\n"));
        assert_eq!((read("[tool"), read("[[lints]]").map(|found| found.len())), (None, Some(1)));
    }
}
