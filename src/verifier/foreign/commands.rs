//! Which programs a command line starts: through wrappers (`env`, `timeout`, `uv run`), a shell's `-c`, a
//! script of the tree, or the file in which a runner looks up what to do.
//!
//! A wrapper is followed exactly. In a text only the words are looked at, since what a shell makes of them
//! cannot be known without it; a program that such a text names may be used, and that is enough here.

use super::planned::{PlannedRun, joined, text_of};
use std::ffi::OsStr;
use std::path::Path;

/// A program with its arguments, as far as they are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StartedProgram {
    /// The wrappers and their options before it, of which each hands on its environment.
    pub(super) wrappers: Vec<String>,
    pub(super) program: String,
    pub(super) arguments: Vec<String>,
    /// True where a wrapper chooses the project's own environment (`uv run`).
    pub(super) in_project: bool,
}

/// A program that starts the one after its own options.
struct Wrapper {
    name: &'static str,
    /// The word that makes it one; empty for none.
    subcommand: &'static str,
    /// Its options that are followed by a value.
    valued: &'static [&'static str],
    /// How many arguments of its own it has before the program.
    own: usize,
    in_project: bool,
}

const fn plain(name: &'static str, valued: &'static [&'static str], own: usize) -> Wrapper {
    Wrapper { name, subcommand: "", valued, own, in_project: false }
}

const fn project(name: &'static str, valued: &'static [&'static str]) -> Wrapper {
    Wrapper { name, subcommand: "run", valued, own: 0, in_project: true }
}

const UV: &[&str] = &[
    "--with",
    "--with-editable",
    "--with-requirements",
    "--extra",
    "--group",
    "--only-group",
    "--no-group",
    "--env-file",
    "--package",
    "--project",
    "--directory",
    "--python",
    "-p",
    "-w",
    "--index",
    "--config-file",
    "--cache-dir",
    "--no-extra",
];

const WRAPPERS: &[Wrapper] = &[
    plain("env", &["-u", "--unset", "-C", "--chdir"], 0),
    plain("timeout", &["-k", "--kill-after", "-s", "--signal"], 1),
    plain("nice", &["-n", "--adjustment"], 0),
    plain("ionice", &["-c", "-n", "--class", "--classdata"], 0),
    plain("nohup", &[], 0),
    plain("setsid", &[], 0),
    plain("time", &["-f", "-o", "--format", "--output"], 0),
    plain("stdbuf", &["-i", "-o", "-e", "--input", "--output", "--error"], 0),
    plain("taskset", &[], 1),
    plain("flock", &["-w", "-E", "--timeout"], 1),
    plain("xvfb-run", &["-n", "-s", "-e", "-f", "-w", "--server-num", "--server-args"], 0),
    plain("dbus-run-session", &[], 0),
    plain("catchsegv", &[], 0),
    Wrapper { name: "pyenv", subcommand: "exec", valued: &[], own: 0, in_project: false },
    Wrapper {
        name: "conda",
        subcommand: "run",
        valued: &["-n", "-p", "--name", "--prefix", "--cwd"],
        own: 0,
        in_project: false,
    },
    project("uv", UV),
    project("poetry", &["-C", "-P", "--directory", "--project"]),
    project("pdm", &["-p", "--project"]),
    project("pipenv", &[]),
    project("hatch", &["-e", "--env"]),
    project("rye", &["--pyproject"]),
    project("pixi", &["-e", "--environment", "--manifest-path"]),
];

const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "busybox"];

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
    let text = told(run, &invocation);
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

pub(super) fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// The words of a text that can be names of programs.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_delimiter = |c: char| !(c.is_ascii_alphanumeric() || "._-+/".contains(c));
    text.split(is_delimiter)
        .filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic() || "./".contains(c)))
}

/// The program that is left when all wrappers are taken off.
fn unwrapped(argv: &[String]) -> Option<StartedProgram> {
    let (mut at, mut in_project) = (0, false);
    while let Some(next) = argv.get(at..).and_then(after_wrapper) {
        in_project |= next.1;
        at += next.0;
    }
    let (program, arguments) = argv.get(at..)?.split_first()?;
    Some(StartedProgram {
        wrappers: argv[..at].to_vec(),
        program: program.clone(),
        arguments: arguments.to_vec(),
        in_project,
    })
}

/// Where the wrapped program stands, if this begins with a wrapper; and whether it chooses an environment.
fn after_wrapper(argv: &[String]) -> Option<(usize, bool)> {
    let name = base_name(argv.first()?);
    let wrapper = WRAPPERS.iter().find(|wrapper| wrapper.name == name)?;
    let mut at = 1;
    let mut wanted = usize::from(!wrapper.subcommand.is_empty());
    let mut own = wrapper.own;
    while let Some(argument) = argv.get(at) {
        at += 1;
        if argument == "--" && wanted == 0 {
            continue;
        } else if argument.starts_with('-') {
            at += usize::from(wrapper.valued.contains(&argument.as_str()));
        } else if wanted > 0 {
            if argument != wrapper.subcommand {
                return None;
            }
            wanted = 0;
        } else if own > 0 {
            own -= 1;
        } else if wrapper.name != "env" || !argument.contains('=') {
            return Some((at - 1, wrapper.in_project));
        }
    }
    None
}

/// The text that tells this program what to run further.
fn told(run: &PlannedRun<'_>, invocation: &StartedProgram) -> Option<String> {
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

    fn argv(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn wrappers_come_off_with_their_options() {
        for (line, wrappers, program, in_project) in [
            ("python3 -m pytest", 0, "python3", false),
            ("env -u X A=1 B=2 timeout -k 5 60 nice -n 3 python3 t.py", 12, "python3", false),
            ("uv run --frozen --extra dev pytest -q", 5, "pytest", true),
            ("timeout 9 poetry -C sub run -- pytest", 7, "pytest", true),
            ("uv sync", 0, "uv", false),
            ("conda run -n base python", 4, "python", false),
        ] {
            let found = unwrapped(&argv(line)).expect(line);
            let seen = (found.wrappers.len(), found.program.as_str(), found.in_project);
            assert_eq!(seen, (wrappers, program, in_project), "{line}");
        }
        assert!(unwrapped(&argv("env A=1")).is_some_and(|found| found.program == "env"));
    }

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
