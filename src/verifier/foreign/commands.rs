//! Which programs a command line starts: through wrappers (`env`, `timeout`, `uv run`), a shell's `-c`, a
//! script of the tree, or the file in which a runner looks up what to do.
//!
//! A wrapper is followed exactly. In a text only the words are looked at, since what a shell makes of them
//! cannot be known without it; a program that such a text names may be used, and that is enough here.

use super::planned::{PlannedRun, joined, text_of};
use crate::verifier::command_line::{SHELLS, StartedProgram, base_name, unwrapped};
use std::ffi::OsStr;
use std::path::Path;

/// Runners, and the file of the tree that tells each what to run.
const RUNNERS: &[(&str, &[&str])] = &[
    ("make", &["Makefile", "makefile", "GNUmakefile"]),
    ("gmake", &["Makefile", "makefile", "GNUmakefile"]),
    ("just", &["justfile", "Justfile", ".justfile"]),
    ("task", &["Taskfile.yml", "Taskfile.yaml"]),
    ("npm", &["package.json"]),
    ("pnpm", &["package.json"]),
    ("yarn", &["package.json"]),
    ("bun", &["package.json"]),
];

/// Every program that the run's command line names, the exact one first.
pub(super) fn programs(run: &PlannedRun<'_>) -> Vec<StartedProgram> {
    let Some(invocation) = unwrapped(run.argv) else { return Vec::new() };
    let text = told_to_run(run, &invocation);
    let in_project = invocation.in_project;
    let mut all = vec![invocation];
    for word in words(&text.unwrap_or_default()) {
        if !all.iter().any(|known| known.program == word) {
            let wrappers = all[0].wrappers.clone();
            all.push(StartedProgram {
                wrappers,
                program: word.to_owned(),
                arguments: Vec::new(),
                in_project,
            });
        }
    }
    all
}

/// True where the run's command line names a program of this name.
pub(super) fn mentions(run: &PlannedRun<'_>, name: &str) -> bool {
    programs(run).iter().any(|invocation| base_name(&invocation.program) == name)
}

/// The words of a text that can be names of programs.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_delimiter = |c: char| !(c.is_ascii_alphanumeric() || "._-+/".contains(c));
    text.split(is_delimiter)
        .filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic() || "./".contains(c)))
}

/// The text that tells this program what to run further.
fn told_to_run(run: &PlannedRun<'_>, invocation: &StartedProgram) -> Option<String> {
    let name = base_name(&invocation.program);
    if SHELLS.contains(&name) {
        let mut arguments = invocation.arguments.iter();
        while let Some(argument) = arguments.next() {
            if argument.starts_with('-') && !argument.starts_with("--") && argument.ends_with('c') {
                return arguments.next().cloned();
            }
            if !argument.starts_with('-') && !argument.starts_with('+') && argument != "pipefail" {
                return text_of(&joined(run.slot, Path::new(argument)));
            }
        }
        return None;
    }
    if let Some((_, files)) = RUNNERS.iter().find(|(runner, _)| *runner == name) {
        return files.iter().find_map(|file| text_of(&run.slot.join(file)));
    }
    let file = joined(run.slot, Path::new(&invocation.program));
    let of_tree = invocation.program.contains('/') && file.starts_with(run.slot);
    of_tree.then(|| text_of(&file)).flatten().filter(|text| text.starts_with("#!"))
}

/// The interpreter that a script's first line names, with its arguments; also behind the line that stands
/// there where a path is too long for a first line.
pub(super) fn interpreter_of(script: &Path) -> Option<Vec<String>> {
    let text = text_of(script)?;
    let mut lines = text.lines();
    let first = lines.next()?.strip_prefix("#!")?.trim();
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let second = lines.next().and_then(|line| line.strip_prefix("'''exec' "));
    match second {
        Some(real) if first == "/bin/sh" => {
            let quoted = real.strip_prefix('"').and_then(|rest| rest.split('"').next());
            quoted
                .map(|path| vec![path.to_owned()])
                .or_else(|| Some(words(real).into_iter().take(1).collect()))
        }
        _ => {
            let found = words(first);
            let inner = unwrapped(&found)?;
            // `env -S` hands on the rest as it is; so does every wrapper.
            let exists = OsStr::new(&inner.program) != OsStr::new("");
            exists.then(|| [vec![inner.program], inner.arguments].concat())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_lines_name_interpreters() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("script");
        for (text, wanted) in [
            ("#!/v/bin/python3 -I\n", Some("/v/bin/python3 -I")),
            ("#!/usr/bin/env python3\n", Some("python3")),
            ("#! /usr/bin/env -S python3 -P\n", Some("python3 -P")),
            ("#!/bin/sh\n'''exec' \"/long path/python\" \"$0\" \"$@\"\n", Some("/long path/python")),
            ("#!/bin/sh\n'''exec' /long/python \"$0\" \"$@\"\n", Some("/long/python")),
            ("#!/bin/sh\necho\n", Some("/bin/sh")),
            ("\u{7f}ELF", None),
        ] {
            crate::store::layout::write_private(&file, text.as_bytes()).expect("written");
            let found = interpreter_of(&file).map(|words| words.join(" "));
            assert_eq!(found.as_deref(), wanted, "{text:?}");
        }
    }
}
