//! The files of the tree that a text has run: a shell's text, a recipe of make, a script of npm.
//!
//! They judge like the script that a command names by itself, but only plain words tell of them. So a run
//! sees the change's own, and a person confirms where one differs.

use super::command_line::{SHELLS, base_name, executed_words, shell_text};
use crate::domain::value::repo_path::RepoPath;
use crate::domain::value::scope::Scope;
use std::collections::{BTreeMap, BTreeSet};

/// Words of a shell that a command follows.
const BEFORE_COMMANDS: &[&str] = &["exec", "command", "!", "if", "then", "else", "do", "while", "until"];
/// What stands for the folder that a text lies in, or for the top of the tree; longer ones come first.
const HERE: &[&str] = &[
    "$(cd \"$(dirname \"$0\")\" && pwd)",
    "$(cd \"$(dirname \"${BASH_SOURCE[0]}\")\" && pwd)",
    "$(dirname \"${BASH_SOURCE[0]}\")",
    "$(dirname \"$0\")",
    "$(dirname $0)",
    "${0%/*}",
    "$(git rev-parse --show-toplevel)",
    "$(CURDIR)",
    "$(PWD)",
    "${PWD}",
    "$PWD",
    "$INIT_CWD",
    "{toxinidir}",
    "{{justfile_directory()}}",
];
/// How often names in the values of other names are followed.
const DEEPEST_NAMES: usize = 3;
/// How long a text may grow by the values of its names.
const LONGEST_GROWN: usize = 4 << 20;

/// A text that is run, and the folder that it lies in; `None` for the top of the tree.
#[derive(Debug)]
pub(super) struct RunText {
    pub(super) folder: Option<RepoPath>,
    pub(super) text: String,
}

/// The files that some texts have run, each with whether it is only ever started as a program.
#[derive(Debug, Default)]
pub(super) struct RunScripts(BTreeMap<RepoPath, bool>);

impl RunScripts {
    /// Adds what a text has run; gives the places that are new.
    pub(super) fn add_text(&mut self, text: &RunText) -> Vec<RepoPath> {
        let mut fresh = Vec::new();
        for (path, as_program) in files_run_by(text) {
            let known = self.0.get(&path).copied();
            fresh.extend(known.is_none().then(|| path.clone()));
            self.0.insert(path, as_program && known.unwrap_or(true));
        }
        fresh
    }

    /// True where a file of this path is run; as a program only if it is executable.
    pub(super) fn runs_file(&self, path: &RepoPath, is_executable: bool) -> bool {
        let fits = |named: &RepoPath| {
            is_glob(named) && Scope::new(vec![named.to_string()]).is_ok_and(|glob| glob.matches_path(path))
        };
        let by_glob = self.0.iter().filter(|(named, _)| fits(named)).map(|(_, as_program)| as_program);
        self.0.get(path).into_iter().chain(by_glob).any(|as_program| is_executable || !as_program)
    }

    /// True where something that is run would lie beneath this path.
    pub(super) fn runs_beneath(&self, folder: &RepoPath) -> bool {
        self.0.keys().any(|path| path.ancestors().contains(folder))
    }
}

/// True for a word that stands for all files of a pattern.
pub(super) fn is_glob(path: &RepoPath) -> bool {
    path.as_bytes().iter().any(|byte| b"*?[".contains(byte))
}

/// The places of the tree that the text which a shell is given with `-c` has run.
pub(super) fn files_of_shell_text(argv: &[String]) -> BTreeSet<RepoPath> {
    let text = shell_text(argv).unwrap_or_default();
    files_run_by(&RunText { folder: None, text }).into_iter().map(|(path, _)| path).collect()
}

/// True for a file whose text a shell reads.
pub(super) fn is_shell_script(path: &RepoPath, text: &str) -> bool {
    let first = text.lines().next().and_then(|line| line.strip_prefix("#!"));
    let named = first.and_then(|line| line.split_whitespace().rfind(|word| !word.starts_with('-')));
    match named.map(base_name) {
        Some(program) => SHELLS.contains(&program),
        None => [&b".sh"[..], b".bash"].iter().any(|end| path.file_name().ends_with(end)),
    }
}

/// The blocks of a Makefile or a justfile that these words start, as text: those of the targets that are
/// named, or else of the first one, with all that they depend on, and whatever stands outside of blocks.
pub(super) fn started_blocks(text: &str, called: &BTreeSet<String>) -> String {
    let mut blocks: Vec<(Vec<&str>, String)> = vec![(Vec::new(), String::new())];
    for line in text.lines() {
        let is_recipe = line.starts_with([' ', '\t']);
        if let Some(targets) = targets_of(line).filter(|_| !is_recipe) {
            blocks.push((targets, String::new()));
        } else if !is_recipe && !line.trim().is_empty() && !line.starts_with('#') {
            blocks.push((Vec::new(), String::new()));
        }
        if let Some((_, block)) = blocks.last_mut() {
            block.extend([line, "\n"]);
        }
    }
    let is_open = |targets: &[&str]| targets.is_empty() || targets.iter().any(|name| name.contains('%'));
    let plain = |(targets, _): &&(Vec<&str>, String)| {
        targets.iter().any(|name| !name.starts_with('.') && !name.contains('%'))
    };
    let named = |targets: &[&str], words: &BTreeSet<String>| targets.iter().any(|name| words.contains(*name));
    let mut words = called.clone();
    if !blocks.iter().any(|(targets, _)| named(targets, called)) {
        let first = blocks.iter().find(plain).map(|(targets, _)| targets.clone()).unwrap_or_default();
        words.extend(first.into_iter().map(str::to_owned));
    }
    loop {
        let started = blocks.iter().filter(|(targets, _)| is_open(targets) || named(targets, &words));
        let started: String = started.map(|(_, block)| block.as_str()).collect();
        let known = words.len();
        words.extend(super::runners::words_of(&started).map(str::to_owned));
        if words.len() == known {
            return started;
        }
    }
}

/// The names of all targets of a Makefile or a justfile.
pub(super) fn target_names(text: &str) -> BTreeSet<String> {
    let text = with_values(text);
    let heads = text.lines().filter(|line| !line.starts_with([' ', '\t'])).filter_map(targets_of);
    heads.flatten().map(str::to_owned).collect()
}

/// The targets that a line begins a block for.
fn targets_of(line: &str) -> Option<Vec<&str>> {
    let (head, rest) = line.split_once(':')?;
    let assigns = rest.starts_with('=') || rest.starts_with(":=") || head.contains('=');
    let names: Vec<&str> = head.split_whitespace().map(|name| name.trim_start_matches('@')).collect();
    (!assigns && !head.starts_with('#') && !names.is_empty()).then_some(names)
}

/// The places of the tree that a text executes, each with whether it is started as a program.
fn files_run_by(text: &RunText) -> Vec<(RepoPath, bool)> {
    let whole: String = with_loops(&text.text).iter().map(|text| with_values(text) + "\n").collect();
    let (mut words, mut folders) = (Vec::new(), vec![String::new()]);
    for command in whole.split([';', '&', '|', '(', ')', '`', '{', '}', '\n']) {
        let command = told_command(command).trim_start().trim_start_matches(['@', '-', '+']);
        let parts = command.split_whitespace().map(plain_word);
        let is_before = |word: &&str| {
            word.is_empty() || BEFORE_COMMANDS.contains(word) || word.contains('=') || word.ends_with(':')
        };
        let argv: Vec<String> = parts.skip_while(|word| is_before(&word.as_str())).collect();
        match argv.first().map(String::as_str) {
            Some("cd" | "pushd") => folders.extend(argv.get(1).cloned()),
            Some("." | "source") => words.extend(argv.get(1).map(|word| (word.clone(), false))),
            _ => words.extend(executed_words(&argv)),
        }
    }
    let tops = [Some(String::new()), text.folder.as_ref().map(ToString::to_string)];
    let mut found = Vec::new();
    for top in tops.into_iter().flatten() {
        for folder in &folders {
            let place =
                |(word, as_program): &(String, bool)| Some((place_from(&[&top, folder, word])?, *as_program));
            found.extend(words.iter().filter_map(place));
        }
    }
    found
}

/// A word as a shell takes it, without what settings put around words.
fn plain_word(word: &str) -> String {
    word.replace(['"', '\''], "").trim_matches(['$', '[', ']', ',']).to_owned()
}

/// A text once for each turn of its `for` loops, with the name of the loop given the turn's word.
fn with_loops(text: &str) -> Vec<String> {
    const MOST_TURNS: usize = 64;
    let heads = text.split([';', '\n']).filter_map(|command| {
        let words = command.trim().trim_start_matches(['@', '-', '+']).strip_prefix("for ")?;
        let (name, words) = words.split_once(" in ")?;
        let words = words.split_whitespace().map(|word| word.trim_matches(['"', '\'']).to_owned());
        Some((name.trim().to_owned(), words.collect::<Vec<_>>()))
    });
    let loops: Vec<(String, Vec<String>)> = heads.collect();
    let turns = loops.iter().map(|(_, words)| words.len()).max().unwrap_or(0).clamp(1, MOST_TURNS);
    let turn = |at: usize| {
        let values = loops.iter().filter_map(|(name, words)| Some(format!("{name}={}\n", words.get(at)?)));
        values.collect::<String>() + &text.replace("$$", "$")
    };
    match loops.is_empty() {
        true => vec![text.to_owned()],
        false => (0..turns).map(turn).collect(),
    }
}

/// What a line of settings says that is run (`commands = sh x.sh`); the line itself where it says nothing.
fn told_command(line: &str) -> &str {
    let is_told = |name: &str| name == "runner" || name.starts_with("command");
    let told = line.split_once('=').filter(|(name, _)| is_told(name.trim()));
    told.map_or(line, |(_, command)| command)
}

/// A place of the tree by the parts of the way to it; `None` where it leads out of the tree.
fn place_from(parts: &[&str]) -> Option<RepoPath> {
    if parts.iter().any(|part| part.starts_with('/')) {
        return None;
    }
    let mut names: Vec<&str> = Vec::new();
    for name in parts.iter().flat_map(|part| part.split('/')) {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()?),
            name => names.push(name),
        }
    }
    RepoPath::new(names.join("/").as_bytes()).ok()
}

/// A text with the values of the names that it gives values to, and with the names themselves in small
/// letters where it gives them none: `$(PYTHON)` is some python.
pub(super) fn with_values(text: &str) -> String {
    let mut text = text.replace("\\\n", " ");
    for here in HERE {
        text = text.replace(here, ".");
    }
    text = text.replace("{envpython}", "python");
    let code: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
    let mut text = code.join("\n");
    let values: BTreeMap<String, String> = text.lines().filter_map(assigned_value).collect();
    for _ in 0..DEEPEST_NAMES {
        let next = replace_names(&text, &values);
        if next == text || next.len() > LONGEST_GROWN {
            break;
        }
        text = next;
    }
    text
}

/// The name that a line gives a value, as make, just and a shell write it.
fn assigned_value(line: &str) -> Option<(String, String)> {
    let (name, value) = line.trim().trim_start_matches("export ").split_once('=')?;
    let name = name.trim_end_matches([':', '?', '+', ' ', '\t']);
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let value = value.trim().trim_matches(['"', '\'']);
    (is_name && !value.contains(&format!("({name})"))).then(|| (name.to_owned(), value.to_owned()))
}

fn replace_names(text: &str, values: &BTreeMap<String, String>) -> String {
    const BRACKETS: [(&str, &str); 4] = [("$(", ")"), ("${", "}"), ("{{", "}}"), ("$", "")];
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    'text: while let Some(at) = rest.find(['$', '{']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        for (open, close) in BRACKETS {
            let Some(inner) = from.strip_prefix(open) else { continue };
            let inner = if open == "{{" { inner.trim_start() } else { inner };
            let name = &inner[..inner.find(|c| !is_part(c)).unwrap_or(inner.len())];
            let after = &inner[name.len()..];
            let after = if open == "{{" { after.trim_start() } else { after };
            let Some(after) = after.strip_prefix(close) else { continue };
            if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
                continue;
            }
            match values.get(name) {
                Some(value) => out.push_str(value),
                None if name == "SHELL" => out.push_str("sh"),
                None => out.push_str(&name.to_ascii_lowercase()),
            }
            rest = after;
            continue 'text;
        }
        let mark = from.chars().next().map_or(0, char::len_utf8);
        out.push_str(&from[..mark]);
        rest = &from[mark..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a text in a folder has run; a program is marked by a star.
    fn run_by(folder: &str, text: &str) -> String {
        let folder = RepoPath::new(folder).ok();
        let mut scripts = RunScripts::default();
        scripts.add_text(&RunText { folder, text: text.to_owned() });
        let shown =
            scripts.0.iter().map(|(path, program)| format!("{path}{}", if *program { "*" } else { "" }));
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn plain_words_tell_what_a_text_runs() {
        for (text, wanted) in [
            ("python tests/run.py", "tests/run.py"),
            ("set -e; ./check.sh --all | tee log", "check.sh*"),
            ("if ! A=1 exec bash 'ci/x.sh'; then echo no; fi", "ci/x.sh"),
            ("x=$(node tools/a.js)", "tools/a.js"),
            (". ./ci/lib.sh && source ci/more.sh", "ci/lib.sh ci/more.sh"),
            ("cd sub && ../ci/check.sh", "ci/check.sh*"),
            ("test:\n\t@-$(PYTHON) tools/check.py -q\n", "tools/check.py"),
            ("CHECK := ./ci/check.sh\ntest: a\n\t@$(CHECK) --all\n", "ci/check.sh*"),
            ("DIR = ci\nRUN = $(DIR)/check.sh\ntest:\n\tsh $(RUN)\n", "ci/check.sh"),
            ("py := \"python3\"\ncheck:\n  {{ py }} tools/a.py\n", "tools/a.py"),
            ("test:\n\tsh \\\n\t  ci/x.sh\n", "ci/x.sh"),
            ("# sh ci/x.sh", ""),
            ("grep -q a docs/a.md && python3 -m pytest tests/a.py", ""),
            ("cat /etc/x | ../../out.sh", ""),
            (
                "commands = sh a.sh\n  {envpython} tools/a.py\n  sh {toxinidir}/ci/x.sh",
                "a.sh ci/x.sh tools/a.py",
            ),
            ("FILES = docs/a.md docs/b.md", ""),
            ("[target.x]\nrunner = [\"sh\", \"ci/run.sh\"]", "ci/run.sh"),
            ("cmds:\n  - sh a.sh\n  - cmd: node b.mjs", "a.sh b.mjs"),
            ("xargs -n 1 python tools/lint.py", "tools/lint.py"),
            ("sh \"ci\"/x.sh; \"$(dirname \"$0\")\"/y.sh", "ci/x.sh y.sh*"),
            ("for f in ci/*.sh a.sh; do\n  bash \"$f\"\ndone", "a.sh ci/*.sh"),
            ("test:\n\t@for f in a b; do sh ci/$$f.sh; done", "ci/a.sh ci/b.sh"),
        ] {
            assert_eq!(run_by("", text), wanted, "{text}");
        }
    }

    #[test]
    fn a_text_runs_what_lies_beside_it_or_at_the_top() {
        assert_eq!(run_by("sub", "sh x.sh"), "sub/x.sh x.sh");
        assert_eq!(run_by("ci", "HERE=$(dirname \"$0\")\npython \"$HERE/check.py\""), "check.py ci/check.py");
        assert_eq!(run_by("", "cd ci\n./a.sh"), "a.sh* ci/a.sh*");
    }

    #[test]
    fn a_program_is_meant_where_it_is_executable() {
        let mut scripts = RunScripts::default();
        let add = |scripts: &mut RunScripts, text: &str| {
            scripts.add_text(&RunText { folder: None, text: text.to_owned() }).len()
        };
        assert_eq!(add(&mut scripts, "./docs/a.md"), 1);
        let path = RepoPath::new("docs/a.md").expect("a path");
        assert!(scripts.runs_file(&path, true) && !scripts.runs_file(&path, false));
        assert!(scripts.runs_beneath(&RepoPath::new("docs").expect("a path")));
        assert_eq!(add(&mut scripts, "sh docs/a.md"), 0, "known already");
        assert!(scripts.runs_file(&path, false));
    }

    #[test]
    fn a_pattern_stands_for_all_its_files() {
        let mut scripts = RunScripts::default();
        scripts.add_text(&RunText { folder: None, text: "for f in ci/*.sh; do sh $f; done".to_owned() });
        for (path, is_run) in [("ci/new.sh", true), ("ci/new.md", false), ("new.sh", false)] {
            let path = RepoPath::new(path).expect("a path");
            assert_eq!(scripts.runs_file(&path, false), is_run, "{path}");
        }
    }

    #[test]
    fn only_what_is_started_of_a_makefile_counts() {
        let text = "PY = python3\n.PHONY: all run\nall: build\n\techo all\nbuild:\n\tsh b.sh\nrun:\n\tsh r.sh\n\
                    check: $(OBJ)\n\tsh c.sh && $(MAKE) more\nmore:\n\tsh m.sh\n%.o: %.c\n\tsh o.sh\n";
        let of = |words: &[&str]| {
            let words = words.iter().map(|word| (*word).to_owned()).collect();
            run_by("", &started_blocks(text, &words))
        };
        assert_eq!(of(&["make"]), "b.sh o.sh");
        assert_eq!(of(&["make", "check"]), "c.sh m.sh o.sh");
        assert_eq!(of(&["make", "run"]), "o.sh r.sh");
        let names = target_names("OUT = made\n$(OUT) more: dep\n\techo a: b\nX := y\n");
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["made", "more"]);
    }

    #[test]
    fn a_shell_script_is_known_by_its_first_line_or_its_name() {
        let is = |path: &str, text: &str| is_shell_script(&RepoPath::new(path).expect("a path"), text);
        assert!(is("a", "#!/usr/bin/env bash\n") && is("a.sh", "echo") && is("a", "#!/bin/sh -e\n"));
        assert!(!is("a.sh", "#!/usr/bin/python3\n") && !is("a.py", "import os"));
    }
}
