//! What a command line says by itself: the program behind its wrappers (`env`, `timeout`, `uv run`), and the
//! files of the tree that it executes, as its program or as the script of an interpreter.
//!
//! Only the words are looked at, so the answer is the same wherever it is asked for. What a text for a shell
//! (`sh -c`) runs is looked for in `scripts`.

use crate::domain::value::repo_path::RepoPath;

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

const fn exec(name: &'static str, valued: &'static [&'static str]) -> Wrapper {
    Wrapper { name, subcommand: "exec", valued, own: 0, in_project: false }
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
    plain("xargs", &["-n", "-P", "-I", "-L", "-d", "-a", "-s", "-E"], 0),
    plain("npx", &["-p", "--package", "-w", "--workspace"], 0),
    plain("bunx", &["-p", "--package"], 0),
    plain("pnpx", &["-p", "--package"], 0),
    plain("busybox", &[], 0),
    exec("bundle", &[]),
    exec("pyenv", &[]),
    exec("npm", &["-p", "--package", "-w", "--workspace"]),
    exec("pnpm", &["-C", "--dir", "--filter", "-F"]),
    exec("yarn", &["--cwd"]),
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

pub(super) const SHELLS: &[&str] = &["sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish"];

/// A program that is given a script: the first argument that is no option, where nothing before it is the
/// code itself.
struct ScriptInterpreter {
    /// Without a version at the end.
    names: &'static [&'static str],
    /// Letters of the options that are followed by a value.
    valued: &'static str,
    /// Letters of the options after which no script comes, since they bring the code or name a module.
    ending: &'static str,
    /// The same for long options with a value.
    long_valued: &'static [&'static str],
    /// The same for long options that end the search.
    long_ending: &'static [&'static str],
    /// A word that may stand before the script; empty for none.
    subcommand: &'static str,
}

const INTERPRETERS: &[ScriptInterpreter] = &[
    ScriptInterpreter {
        names: SHELLS,
        valued: "oO",
        ending: "cs",
        long_valued: &["--rcfile", "--init-file"],
        long_ending: &[],
        subcommand: "",
    },
    ScriptInterpreter {
        names: &["python", "pypy"],
        valued: "WX",
        ending: "cm",
        long_valued: &["--check-hash-based-pycs"],
        long_ending: &[],
        subcommand: "",
    },
    // What `--test` is given are the tests, and tests are inputs.
    ScriptInterpreter {
        names: &["node", "nodejs", "tsx", "ts-node"],
        valued: "rCP",
        ending: "ep",
        long_valued: &[
            "--require",
            "--import",
            "--loader",
            "--conditions",
            "--env-file",
            "--project",
            "--tsconfig",
        ],
        long_ending: &["--eval", "--print", "--test"],
        subcommand: "",
    },
    ScriptInterpreter {
        names: &["deno", "bun"],
        valued: "cLr",
        ending: "e",
        long_valued: &["--config", "--import-map", "--lock", "--cert", "--seed", "--preload", "--cwd"],
        long_ending: &["--eval"],
        subcommand: "run",
    },
    ScriptInterpreter {
        names: &["ruby", "perl"],
        valued: "IrC",
        ending: "eE",
        long_valued: &[],
        long_ending: &[],
        subcommand: "",
    },
    ScriptInterpreter {
        names: &["php"],
        valued: "cdz",
        ending: "rRBS",
        long_valued: &["--define", "--php-ini"],
        long_ending: &["--run"],
        subcommand: "",
    },
    ScriptInterpreter {
        names: &["lua", "luajit", "Rscript", "tclsh", "julia", "elixir", "escript", "runghc", "groovy"],
        valued: "le",
        ending: "",
        long_valued: &[],
        long_ending: &[],
        subcommand: "",
    },
];

/// What Python and Node take where a script is named without its end, or by its folder.
const IMPLIED_ENDS: &[&str] = &["/__main__.py", ".js", "/index.js"];

pub(super) fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// The places of the tree that a command line executes: its program, each wrapper before it, and the script
/// that an interpreter is given. A place may be no file; who has the tree knows.
pub(super) fn executed_paths(argv: &[String]) -> Vec<RepoPath> {
    let mut found: Vec<RepoPath> =
        executed_words(argv).iter().filter_map(|(word, _)| place_in_tree(word)).collect();
    found.dedup();
    found
}

/// The words of a command line that name what it executes, each with whether it is started as a program.
pub(super) fn executed_words(argv: &[String]) -> Vec<(String, bool)> {
    let Some(started) = unwrapped(argv) else { return Vec::new() };
    let own = argv.first().into_iter().chain([&started.program]).filter(|program| program.contains('/'));
    let own = own.map(|program| (program.clone(), true));
    // `uv run` and its like give a Python script to Python by themselves.
    let given = Some(&started.program).filter(|program| started.in_project && program.ends_with(".py"));
    let mut scripts: Vec<String> = given.or_else(|| script_of(&started)).into_iter().cloned().collect();
    if let [script] = scripts.as_slice()
        && !base_name(script).contains('.')
    {
        let beside = IMPLIED_ENDS.iter().map(|end| format!("{script}{end}"));
        scripts.extend(beside.collect::<Vec<_>>());
    }
    own.chain(scripts.into_iter().map(|script| (script, false))).collect()
}

/// The text that a shell is given with `-c`.
pub(super) fn shell_text(argv: &[String]) -> Option<String> {
    let started = unwrapped(argv).filter(|started| SHELLS.contains(&base_name(&started.program)))?;
    let is_option = |word: &&String| word.starts_with('-') && !word.starts_with("--") && word.contains('c');
    let mut words = started.arguments.iter().skip_while(|word| !is_option(word)).skip(1);
    words.find(|word| !word.starts_with('-')).cloned()
}

/// A relative path without the dots that a shell's user writes.
pub(super) fn place_in_tree(word: &str) -> Option<RepoPath> {
    let parts: Vec<&str> = word.split('/').filter(|part| *part != "." && !part.is_empty()).collect();
    let relative = !word.starts_with('/');
    relative.then(|| RepoPath::new(parts.join("/").as_bytes()).ok()).flatten()
}

/// The script that a known interpreter is given.
fn script_of(started: &StartedProgram) -> Option<&String> {
    let name = base_name(&started.program).trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let interpreter = INTERPRETERS.iter().find(|interpreter| interpreter.names.contains(&name))?;
    let mut arguments = started.arguments.iter();
    let mut subcommand = interpreter.subcommand;
    while let Some(argument) = arguments.next() {
        if argument == "--" {
            return arguments.next();
        } else if argument.starts_with("--") {
            let ends = interpreter.long_ending.iter().any(|long| {
                argument.strip_prefix(long).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
            });
            if ends {
                return None;
            }
            if interpreter.long_valued.contains(&argument.as_str()) {
                arguments.next();
            }
        } else if let Some(letters) = argument.strip_prefix(['-', '+']).filter(|rest| !rest.is_empty()) {
            let special = letters.find(|c| interpreter.valued.contains(c) || interpreter.ending.contains(c));
            let Some(letter) = special.and_then(|at| letters[at..].chars().next()) else { continue };
            if interpreter.ending.contains(letter) {
                return None;
            }
            if letters.ends_with(letter) {
                arguments.next();
            }
        } else if argument == subcommand {
            subcommand = "";
        } else {
            return Some(argument);
        }
    }
    None
}

/// A command line with what `env -S` is given split into its words.
fn with_split_words(argv: &[String]) -> Vec<String> {
    let is_env = argv.first().is_some_and(|program| base_name(program) == "env");
    let text_at = |word: &str| -> Option<Option<String>> {
        if let Some(text) = word.strip_prefix("--split-string") {
            return Some(text.strip_prefix('=').map(str::to_owned));
        }
        let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'))?;
        let text = &letters[letters.find('S')? + 1..];
        Some(Some(text.to_owned()).filter(|text| !text.is_empty()))
    };
    let found = argv.iter().enumerate().skip(1).find_map(|(at, word)| Some((at, text_at(word)?)));
    let Some((at, within)) = found.filter(|_| is_env) else { return argv.to_vec() };
    let rest = at + 1 + usize::from(within.is_none());
    let text = within.or_else(|| argv.get(at + 1).cloned()).unwrap_or_default();
    let words = text.split_whitespace().map(|word| word.trim_matches(['"', '\'']).to_owned());
    argv[..at].iter().cloned().chain(words).chain(argv.iter().skip(rest).cloned()).collect()
}

/// The program that is left when all wrappers are taken off.
pub(super) fn unwrapped(argv: &[String]) -> Option<StartedProgram> {
    let argv = with_split_words(argv);
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
    fn what_a_command_executes_is_its_program_and_the_script_it_is_given() {
        for (line, wanted) in [
            ("./check.sh docs/a.md", "check.sh"),
            ("sh check.sh", "check.sh"),
            ("sh -eu -o pipefail ./ci/check.sh", "ci/check.sh"),
            ("sh -ec ./check.sh", ""),
            ("bash +x tools//check", "tools/check"),
            ("python3.12 -B -W error tools/run.py -q", "tools/run.py"),
            ("python3 -Wonce run.py", "run.py"),
            ("python3 -Im pytest tests/a.py", ""),
            ("env A=1 timeout -k 5 60 uv run --extra dev python t.py", "t.py"),
            ("ci/wrap.sh sh x.sh", "ci/wrap.sh"),
            ("node --require ./setup.js run.mjs", "run.mjs"),
            ("node --test tests/a.js", ""),
            ("deno run -A --config deno.json main.ts", "main.ts"),
            ("bundle exec ruby -Ilib -r set test.rb", "test.rb"),
            ("npx tsx t.ts", "t.ts"),
            ("pnpm exec tsx t.ts", "t.ts"),
            ("pnpm test t.ts", ""),
            ("uv run --frozen check.py -q", "check.py"),
            ("busybox sh check.sh", "check.sh"),
            ("env -i tclsh x.tcl", "x.tcl"),
            ("lua -l x t.lua", "t.lua"),
            ("grep Hello docs/greeting.md", ""),
            ("sh /usr/bin/x", ""),
            ("sh ../x.sh", ""),
        ] {
            let found: Vec<String> = executed_paths(&argv(line)).iter().map(ToString::to_string).collect();
            let is_implied =
                |path: &&String| IMPLIED_ENDS.iter().any(|end| path.ends_with(&format!("check{end}")));
            let found: Vec<&str> =
                found.iter().filter(|path| !is_implied(path)).map(String::as_str).collect();
            assert_eq!(found.join(" "), wanted, "{line}");
        }
        let folder = executed_paths(&argv("python3 tools"));
        assert!(folder.iter().any(|path| path.to_string() == "tools/__main__.py"), "{folder:?}");
    }

    #[test]
    fn a_text_that_env_splits_is_read_by_its_words() {
        for (words, wanted) in [
            (&["env", "-S", "A=1 sh ci/x.sh", "-q"][..], "ci/x.sh"),
            (&["env", "-vSsh x.sh"], "x.sh"),
            (&["env", "--split-string=sh x.sh"], "x.sh"),
            (&["sh", "-S", "x.sh"], "x.sh"),
        ] {
            let argv: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let found: Vec<String> = executed_paths(&argv).iter().map(ToString::to_string).collect();
            assert_eq!(found.first().map(String::as_str), Some(wanted), "{argv:?}");
        }
    }

    #[test]
    fn a_shells_text_is_found() {
        for shell in
            [&["sh", "-c"][..], &["env", "A=1", "bash", "-euo", "pipefail", "-xc"], &["sh", "-c", "-e"]]
        {
            let argv: Vec<String> = shell.iter().copied().chain(["a b", "name"]).map(str::to_owned).collect();
            assert_eq!(shell_text(&argv).as_deref(), Some("a b"), "{argv:?}");
        }
        assert_eq!(shell_text(&argv("sh check.sh -x")), None);
        assert_eq!(shell_text(&argv("python -c x.sh")), None);
    }
}
