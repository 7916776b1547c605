//! By which files of a tree a runner is told what to run, as a table.
//!
//! Such a file may rightly change with the work, so a run sees the candidate's; what it says of the judge is
//! compared. A runner counts as started where a command, a script that it executes, or one of these files
//! names it: too many of them cost a person's look, one too few would let a change judge itself.

use super::command_line::base_name;
use crate::domain::value::digest::Sha256;
use crate::domain::value::repo_path::RepoPath;
use crate::domain::value::scope::Scope;
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// What of a file tells a runner what to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunnerSettings {
    WholeFile,
    /// Code that the runner loads: all of it counts, and no runner is looked for in it.
    Code,
    /// Values of a JSON document by their dotted places.
    Json(&'static [&'static str]),
    /// Values of a TOML document by their dotted places.
    Toml(&'static [&'static str]),
    /// Sections of an INI file; one that ends with `*` stands for all that begin so.
    Ini(&'static [&'static str]),
    /// Those `scripts` of a `package.json` that are started.
    NpmScripts,
}

/// A kind of file, and whoever reads it.
#[derive(Debug)]
pub(super) struct RunnerFile {
    runners: &'static [&'static str],
    patterns: &'static [&'static str],
    pub(super) settings: RunnerSettings,
    /// True where only some targets of it are started.
    pub(super) has_targets: bool,
}

use RunnerSettings::{Code, Ini, Json, NpmScripts, Toml, WholeFile};

const MAKE: &[&str] = &["make", "gmake", "bmake"];
const NPM: &[&str] =
    &["npm", "npx", "pnpm", "pnpx", "yarn", "bun", "bunx", "corepack", "lerna", "nx", "turbo"];
/// What starts JavaScript, by itself or through `package.json`.
const NODE: &[&str] = &[
    "npm", "npx", "pnpm", "pnpx", "yarn", "bun", "bunx", "node", "nodejs", "deno", "tsx", "ts-node", "jest",
    "vitest", "mocha", "ava", "tap", "nyc", "c8",
];
const PYTHON: &[&str] = &["python", "python3", "pytest", "py.test", "tox", "nox", "hatch", "coverage"];
const PYTEST: &[&str] = &["pytest", "py.test", "tox", "nox", "hatch", "coverage"];

const fn file(
    runners: &'static [&'static str],
    patterns: &'static [&'static str],
    settings: RunnerSettings,
) -> RunnerFile {
    RunnerFile { runners, patterns, settings, has_targets: false }
}

/// A whole file in which each target is a block.
const fn with_targets(runners: &'static [&'static str], patterns: &'static [&'static str]) -> RunnerFile {
    RunnerFile { runners, patterns, settings: WholeFile, has_targets: true }
}

const TABLE: &[RunnerFile] = &[
    with_targets(MAKE, &["**/Makefile", "**/makefile", "**/GNUmakefile", "**/BSDmakefile", "**/*.mk"]),
    with_targets(&["just"], &["**/[jJ]ustfile", "**/.justfile", "**/*.just"]),
    file(&["rake", "bundle"], &["**/[rR]akefile", "**/*.rake"], WholeFile),
    file(&["rspec", "rake", "bundle"], &["**/.rspec"], WholeFile),
    file(&["task"], &["**/[tT]askfile.{yml,yaml}", "**/[tT]askfile.dist.{yml,yaml}"], WholeFile),
    file(NPM, &["**/package.json"], NpmScripts),
    file(&["node"], &["**/package.json"], NpmScripts),
    file(
        NPM,
        &["**/.npmrc", "**/.yarnrc*", "**/.pnp.*", "**/.pnpmfile.cjs", "**/pnpm-workspace.yaml"],
        WholeFile,
    ),
    file(&["bun", "bunx"], &["**/bunfig.toml"], WholeFile),
    file(NPM, &["**/{nx,turbo,lerna}.json"], WholeFile),
    file(
        NODE,
        &["**/package.json"],
        Json(&[
            "jest",
            "vitest",
            "mocha",
            "ava",
            "tap",
            "nyc",
            "c8",
            "babel",
            "eslintConfig",
            "eslintIgnore",
            "imports",
        ]),
    ),
    file(
        NODE,
        &[
            "**/{jest,vitest,vite,ava,babel}.config.*",
            "**/vitest.workspace.*",
            "**/.{mocharc,nycrc,c8rc,taprc,babelrc,swcrc}*",
        ],
        WholeFile,
    ),
    file(&["eslint"], &["**/package.json"], Json(&["eslintConfig", "eslintIgnore"])),
    file(&["eslint", "npm", "npx", "pnpm", "yarn", "bun"], &["**/eslint.config.*", "**/.eslint*"], WholeFile),
    file(&["tsc", "vue-tsc", "npm", "npx", "pnpm", "yarn", "bun"], &["**/tsconfig*.json"], WholeFile),
    file(NODE, &["**/node_modules/**"], Code),
    // Python takes it for the runner or a plugin of it, where the tree is on its search path, and believes
    // bytecode without a look at the source.
    file(
        PYTHON,
        &["{,*/}{sitecustomize,usercustomize}{,.*,/__init__}.{py,pyc,so}", "**/__pycache__/**", "**/*.pyc"],
        Code,
    ),
    file(
        PYTEST,
        &[
            "{,*/}{pytest,_pytest,pluggy,iniconfig,packaging}{,.*,/__init__}.{py,pyc,so}",
            "{,*/}*.{dist-info,egg-info}/**",
        ],
        Code,
    ),
    file(PYTEST, &["**/conftest.py"], Code),
    file(PYTEST, &["**/{,.}pytest.ini", "**/{,.}pytest.toml", "**/.coveragerc"], WholeFile),
    file(PYTEST, &["**/pyproject.toml"], Toml(&["tool.pytest", "tool.coverage"])),
    file(PYTEST, &["**/{setup.cfg,tox.ini}"], Ini(&["pytest", "tool:pytest", "coverage:*"])),
    file(&["tox"], &["**/tox.toml"], WholeFile),
    file(&["tox"], &["**/pyproject.toml"], Toml(&["tool.tox"])),
    file(&["tox"], &["**/{setup.cfg,tox.ini}"], Ini(&["DEFAULT", "tox", "tox:*", "testenv*"])),
    file(&["nox"], &["**/noxfile.py"], WholeFile),
    file(&["hatch"], &["**/hatch.toml"], WholeFile),
    file(&["hatch"], &["**/pyproject.toml"], Toml(&["tool.hatch.envs"])),
    file(&["ruff"], &["**/{,.}ruff.toml"], WholeFile),
    file(&["ruff"], &["**/pyproject.toml"], Toml(&["tool.ruff"])),
    file(&["mypy", "dmypy"], &["**/{,.}mypy.ini"], WholeFile),
    file(&["mypy", "dmypy"], &["**/pyproject.toml"], Toml(&["tool.mypy"])),
    file(&["mypy", "dmypy"], &["**/setup.cfg"], Ini(&["mypy*"])),
    file(&["pyright", "basedpyright"], &["**/pyrightconfig.json"], WholeFile),
    file(&["pyright", "basedpyright"], &["**/pyproject.toml"], Toml(&["tool.pyright", "tool.basedpyright"])),
    file(&["flake8"], &["**/.flake8"], WholeFile),
    file(&["flake8"], &["**/{setup.cfg,tox.ini}"], Ini(&["flake8*"])),
    file(&["pylint"], &["**/{,.}pylintrc*"], WholeFile),
    file(&["pylint"], &["**/pyproject.toml"], Toml(&["tool.pylint"])),
    file(&["cargo"], &["**/.cargo/config*", "**/rust-toolchain*", "**/{,.}clippy.toml"], WholeFile),
    file(&["cargo"], &["**/.config/nextest.toml"], WholeFile),
    file(
        &["cargo"],
        &["**/Cargo.toml"],
        Toml(&[
            "lib.test",
            "lib.doctest",
            "lib.harness",
            "test",
            "package.build",
            "package.autotests",
            "package.autobins",
            "package.autoexamples",
            "profile.dev",
            "profile.test",
            "lints",
            "workspace.lints",
            "workspace.exclude",
            "workspace.default-members",
        ]),
    ),
    file(&["golangci-lint"], &["**/.golangci.*"], WholeFile),
    file(&["phpunit"], &["**/phpunit.xml*"], WholeFile),
];

/// Options by which a program is given a file that tells it what to run or how to judge.
const FILE_OPTIONS: &[(&[&str], &[&str])] = &[
    (MAKE, &["-f", "--file", "--makefile"]),
    (&["just"], &["-f", "--justfile"]),
    (&["nox"], &["-f", "--noxfile"]),
    (&["tox"], &["-c", "--conf"]),
    (PYTEST, &["-c", "--config-file", "--rcfile"]),
    (&["ruff"], &["--config"]),
    (&["mypy", "dmypy"], &["--config-file"]),
    (&["pyright", "basedpyright"], &["-p", "--project"]),
    (&["flake8"], &["--config"]),
    (&["pylint"], &["--rcfile"]),
    (&["cargo"], &["--config"]),
    (&["golangci-lint", "phpunit"], &["-c", "--config", "--configuration"]),
    (
        NODE,
        &["-c", "--config", "--require", "-r", "--import", "--loader", "--experimental-loader", "--env-file"],
    ),
    (&["eslint"], &["-c", "--config"]),
    (&["tsc", "vue-tsc"], &["-p", "--project"]),
    (&["awk", "gawk", "mawk", "sed", "jq"], &["-f", "--file", "--from-file"]),
];

/// The words of a command by which its programs are given such files.
pub(super) fn files_given_by(argv: &[String]) -> Vec<&str> {
    let starts = |names: &&[&str]| argv.iter().any(|word| names.contains(&base_name(word)));
    let options: Vec<&str> = FILE_OPTIONS
        .iter()
        .filter(|(names, _)| starts(names))
        .flat_map(|(_, options)| options.iter().copied())
        .collect();
    let mut given = Vec::new();
    for (at, word) in argv.iter().enumerate() {
        let value = match word.split_once('=') {
            Some((option, value)) if options.contains(&option) => Some(value),
            _ if options.contains(&word.as_str()) => argv.get(at + 1).map(String::as_str),
            _ => options.iter().find_map(|option| {
                let is_short = option.len() == 2 && !word.starts_with("--");
                word.strip_prefix(option).filter(|rest| is_short && !rest.is_empty())
            }),
        };
        given.extend(value);
    }
    given
}

static SCOPES: LazyLock<Vec<Scope>> = LazyLock::new(|| {
    let scope = |file: &RunnerFile| Scope::new(file.patterns.iter().map(|p| (*p).to_owned()).collect());
    TABLE.iter().map(|file| scope(file).unwrap_or_default()).collect()
});

/// All patterns at once: one look at a path tells most of them apart from what no runner reads.
static READ_BY_ANY: LazyLock<Scope> = LazyLock::new(|| {
    let patterns = TABLE.iter().flat_map(|file| file.patterns).map(|pattern| (*pattern).to_owned());
    Scope::new(patterns.collect()).unwrap_or_default()
});

/// The kinds of files that the runners among these words read.
pub(super) fn files_read_by<'w>(
    words: &'w BTreeSet<String>,
) -> impl Iterator<Item = (&'static RunnerFile, &'static Scope)> + 'w {
    let is_named = |file: &RunnerFile| file.runners.iter().any(|runner| words.contains(*runner));
    TABLE.iter().zip(SCOPES.iter()).filter(move |(file, _)| is_named(file))
}

/// True where a runner is started that is told what to run by targets of a file.
pub(super) fn has_targets(words: &BTreeSet<String>) -> bool {
    files_read_by(words).any(|(file, _)| file.has_targets)
}

pub(super) fn starts_make(words: &BTreeSet<String>) -> bool {
    MAKE.iter().any(|make| words.contains(*make))
}

/// The files that a Makefile includes by plain names or patterns, there or not.
pub(super) fn included_files(text: &str) -> Vec<String> {
    let names = |line: &str| {
        let (word, names) = line.trim_start().split_once(char::is_whitespace)?;
        ["include", "-include", "sinclude"].contains(&word).then(|| names.to_owned())
    };
    let names: Vec<String> = text.lines().filter_map(names).collect();
    let plain = names
        .iter()
        .flat_map(|names| names.split_whitespace())
        .map(|name| name.trim_end_matches(')').trim_start_matches("./"));
    let plain = plain.filter(|name| !name.is_empty() && !name.contains(['$', '(']));
    plain.map(str::to_owned).collect()
}

/// True for a file that some runner reads.
pub(super) fn is_read_by_runners(path: &RepoPath) -> bool {
    READ_BY_ANY.matches_path(path)
}

/// Tells the files that runners read from those that the table of another version names.
pub(super) fn runner_files_id() -> Sha256 {
    Sha256::of_json(&READ_BY_ANY.patterns())
}

/// The words of a command, or of a text that a shell or a runner reads, each as it stands and without the
/// folder before it. Lines that are comments say nothing.
pub(super) fn words_of(text: &str) -> impl Iterator<Item = &str> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let apart = |c: char| !(c.is_alphanumeric() || "_-./:@+".contains(c));
    let words = code.flat_map(move |code| code.split(apart)).filter(|word| !word.is_empty());
    words.flat_map(|word| [word, base_name(word)])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The settings that a command's runners have in a file, in the order of the table.
    fn told_by(command: &str, path: &str) -> Vec<RunnerSettings> {
        let words = words_of(command).map(str::to_owned).collect();
        let path = RepoPath::new(path).expect("a path");
        files_read_by(&words)
            .filter(|(_, scope)| scope.matches_path(&path))
            .map(|(file, _)| file.settings)
            .collect()
    }

    #[test]
    fn every_row_has_patterns_that_can_be_read() {
        assert_eq!(SCOPES.len(), TABLE.len());
        assert_eq!(READ_BY_ANY.patterns().len(), TABLE.iter().map(|file| file.patterns.len()).sum::<usize>());
        for (file, scope) in TABLE.iter().zip(SCOPES.iter()) {
            assert_eq!(scope.patterns().len(), file.patterns.len(), "{file:?}");
        }
    }

    #[test]
    fn files_that_a_program_is_given_by_an_option_are_known() {
        for (line, wanted) in [
            ("make -s -f ci/build.make test", "ci/build.make"),
            ("gmake --file=x.mk -fy.mk", "x.mk y.mk"),
            ("python3 -m pytest -c conf/my.ini tests", "conf/my.ini"),
            ("node --require ./setup.js --test a.js", "./setup.js"),
            ("awk -f check.awk docs/a.md", "check.awk"),
            ("grep -f words.txt docs/a.md", ""),
            ("sh -c x.sh", ""),
        ] {
            let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(files_given_by(&argv).join(" "), wanted, "{line}");
        }
    }

    #[test]
    fn a_runner_reads_its_own_files_and_no_others() {
        for (command, path, count) in [
            ("make test", "Makefile", 1),
            ("sh -c 'cd sub && /usr/bin/make -s'", "sub/rules.mk", 1),
            ("# make sure\ntrue", "Makefile", 0),
            ("cargo test", "Makefile", 0),
            ("cargo test", ".cargo/config.toml", 1),
            ("python3 -m pytest -q", "pytest.ini", 1),
            ("python3 -m pytest -q", "tests/.pytest.ini", 1),
            ("python3 -m pytest -q", "pyproject.toml", 1),
            ("python3 -m unittest", "pyproject.toml", 0),
            ("npm test", "package.json", 2),
            ("node --test", "package.json", 2),
            ("npx jest", "jest.config.js", 1),
            ("just check", "Justfile", 1),
            ("nox -s tests", "noxfile.py", 1),
            ("tox", "tox.ini", 2),
        ] {
            assert_eq!(told_by(command, path).len(), count, "{command}: {path}");
        }
    }
}
