//! A verifier's manifest, `verifier.toml`: read strictly, every default filled in.
//!
//! Whoever has a [`Manifest`] knows that its parts fit together: what counts has an output, an output lies where the
//! verifier may write, and nothing is asked for that this version does not do.

use crate::domain::document::{Node, Problems, clipped, read_toml};
use crate::domain::evidence::Reuse;
use crate::domain::repo_path::RepoPath;
use crate::domain::scope::Scope;
use crate::error::{Code, Failure, Result};
use std::time::Duration;

/// How long a verifier may run unless its manifest says otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);
/// The longest time that a manifest may ask for.
pub const LONGEST_TIMEOUT: Duration = Duration::from_secs(24 * 3600);
/// How often a verifier may at most be tried.
pub const MOST_ATTEMPTS: u64 = 10;
/// Stands for the run's output directory in an argument vector and in the path of an output.
pub const OUT: &str = "{out}";

const FIELDS: [&str; 20] = [
    "protocol",
    "id",
    "title",
    "command",
    "setup",
    "read",
    "kind",
    "inputs",
    "closure",
    "tools",
    "env",
    "outputs",
    "pass",
    "min_checks",
    "timeout",
    "network",
    "scratch",
    "reuse",
    "attempts",
    "uses",
];

/// Who shows what the verifier stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Its command.
    Command,
    /// A person.
    Manual,
    /// git-tender itself.
    Builtin,
}

/// What makes a pass, beside exit 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// Nothing more.
    ExitCode,
    /// An output that counts.
    Outputs,
    /// A `result.json`.
    Protocol,
}

/// What an output is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// JUnit XML.
    Junit,
    /// The standard output of Rust's test harness.
    Libtest,
}

/// A file that a run makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Relative to the slot's root, or beginning with [`OUT`]; empty for standard output.
    pub path: String,
    /// What it is written in.
    pub format: Format,
    /// Whether a run without it is an error.
    pub required: bool,
}

/// A program that a verifier uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSpec {
    /// Its name on `PATH`.
    pub name: String,
    /// What to run to learn its version; empty for nothing.
    pub probe: Vec<String>,
}

/// What has to run before, once for the same inputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setup {
    /// Its argument vector.
    pub command: Vec<String>,
    /// What it depends on.
    pub inputs: Scope,
}

/// A manifest with its defaults filled in.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// The name of its directory.
    pub id: String,
    /// For people.
    pub title: String,
    /// Who shows it.
    pub kind: Kind,
    /// The argument vector; empty unless the kind is [`Kind::Command`].
    pub command: Vec<String>,
    /// What runs before.
    pub setup: Option<Setup>,
    /// What may be read beside the tree and the system.
    pub read: Vec<String>,
    /// What the verdict depends on; `None` for the whole tree.
    pub inputs: Option<Scope>,
    /// Files of the verifier itself.
    pub closure: Scope,
    /// Programs.
    pub tools: Vec<ToolSpec>,
    /// Variables that are passed.
    pub env: Vec<String>,
    /// Files that a run makes.
    pub outputs: Vec<Output>,
    /// What makes a pass.
    pub pass: Pass,
    /// How many cases must run; `None` where nothing counts.
    pub min_checks: Option<u64>,
    /// How long it may run.
    pub timeout: Duration,
    /// Where in the tree it may write.
    pub scratch: Scope,
    /// Whether a pass counts again.
    pub reuse: Reuse,
    /// How often it is tried until it passes.
    pub attempts: u64,
}

impl Manifest {
    /// True where a run counts cases.
    #[must_use]
    pub fn counts(&self) -> bool {
        self.kind == Kind::Command && (self.pass == Pass::Protocol || !self.outputs.is_empty())
    }

    /// Reads a manifest. `file` names it in messages, `id` is the name of its directory. The failure is
    /// `config.invalid`, or `not_supported` where only a later version can do what it asks for; its subject is the key.
    pub fn parse(file: &str, id: &str, bytes: &[u8]) -> Result<Self> {
        read(id, bytes).map_err(|failure| named(file, &failure))
    }
}

/// The same failure, with the file's name in every sentence.
fn named(file: &str, failure: &Failure) -> Failure {
    let mut same =
        Failure::new(failure.code(), format!("{file}: {}", failure.message())).detail("file", file);
    if let Some(subject) = failure.subject_text() {
        same = same.subject(subject);
    }
    for (key, value) in failure.details() {
        same = same.detail(key, value);
    }
    same.also(failure.others().iter().map(|other| named(file, other)))
}

/// What has been read so far.
#[derive(Default)]
struct Draft {
    protocol: bool,
    id: Option<String>,
    title: Option<String>,
    kind: Option<Kind>,
    command: Vec<String>,
    setup: Option<Setup>,
    read: Vec<String>,
    inputs: Option<Scope>,
    closure: Scope,
    tools: Vec<ToolSpec>,
    env: Vec<String>,
    outputs: Vec<Output>,
    pass: Option<Pass>,
    min_checks: Option<u64>,
    timeout: Option<Duration>,
    scratch: Scope,
    reuse: Option<Reuse>,
    attempts: Option<u64>,
    present: Vec<String>,
}

fn read(id: &str, bytes: &[u8]) -> Result<Manifest> {
    let document = read_toml("the manifest", Code::ConfigInvalid, bytes)?;
    let mut problems = Problems::new("the manifest", Code::ConfigInvalid);
    let mut draft = Draft::default();
    problems.object("", &document, &FIELDS, |problems, key, field, node| {
        draft.present.push(key.to_owned());
        basic_field(problems, &mut draft, key, field, node);
        running_field(problems, &mut draft, key, field, node);
    });
    check(&mut problems, &draft, id);
    problems.finish()?;
    Ok(fill(draft))
}

fn basic_field(problems: &mut Problems, draft: &mut Draft, key: &str, field: &str, node: &Node) {
    match key {
        "protocol" => draft.protocol = protocol(problems, field, node),
        "id" => draft.id = problems.id(field, node),
        "title" => draft.title = problems.text(field, node),
        "command" => draft.command = argv(problems, field, node),
        "kind" => {
            let words = [("command", Kind::Command), ("manual", Kind::Manual), ("builtin", Kind::Builtin)];
            draft.kind = problems.choice(field, node, &words);
        }
        "inputs" => draft.inputs = problems.scope(field, node),
        "closure" => draft.closure = problems.scope(field, node).unwrap_or_default(),
        "scratch" => draft.scratch = problems.scope(field, node).unwrap_or_default(),
        "tools" => draft.tools = tools(problems, field, node),
        "env" => draft.env = names(problems, field, node),
        "outputs" => draft.outputs = outputs(problems, field, node),
        "uses" => problems.later(field, "a manifest of another tool"),
        _ => {}
    }
}

fn running_field(problems: &mut Problems, draft: &mut Draft, key: &str, field: &str, node: &Node) {
    match key {
        "setup" => draft.setup = setup(problems, field, node),
        "read" => draft.read = readable(problems, field, node),
        "pass" => {
            let words =
                [("exit-code", Pass::ExitCode), ("outputs", Pass::Outputs), ("protocol", Pass::Protocol)];
            draft.pass = problems.choice(field, node, &words);
        }
        "min_checks" => draft.min_checks = problems.count(field, node),
        "timeout" => draft.timeout = timeout(problems, field, node),
        "network" => {
            if problems.boolean(field, node) == Some(true) {
                problems.later(field, "a verifier with network");
            }
        }
        "reuse" => {
            let words = [("same-inputs", Reuse::SameInputs), ("never", Reuse::Never)];
            draft.reuse = problems.choice(field, node, &words);
        }
        "attempts" => {
            draft.attempts = problems.count(field, node);
            if draft.attempts.is_some_and(|n| n == 0 || n > MOST_ATTEMPTS) {
                let right = format!("from 1 to {MOST_ATTEMPTS}");
                problems.fault(field, &format!("must be {right}"), &right, draft.attempts);
            }
        }
        _ => {}
    }
}

fn protocol(problems: &mut Problems, field: &str, node: &Node) -> bool {
    match problems.count(field, node) {
        Some(1) => true,
        Some(other) => {
            problems.later(field, &format!("protocol {other}"));
            true
        }
        None => false,
    }
}

/// A list of arguments with at least one that says something. A string is refused: no shell reads it.
fn argv(problems: &mut Problems, field: &str, node: &Node) -> Vec<String> {
    let Some(items) = problems.list(field, node, "arguments, never one string for a shell") else {
        return Vec::new();
    };
    let mut argv = Vec::new();
    for (name, item) in &items {
        match item {
            Node::Text(text) if text.contains('\0') => {
                problems.fault(name, "holds a NUL byte", "an argument", clipped(text));
            }
            Node::Text(text) => argv.push(text.clone()),
            _ => problems.mistyped(name, "a string", item),
        }
    }
    if argv.first().is_none_or(|program| program.trim().is_empty()) {
        problems.fault(field, "names no program", "a list that begins with a program", &argv);
    }
    argv
}

fn readable(problems: &mut Problems, field: &str, node: &Node) -> Vec<String> {
    let list = problems.texts(field, node).unwrap_or_default();
    for (at, entry) in list.iter().enumerate() {
        let placed = entry.starts_with('/') || entry.strip_prefix("~/").is_some_and(|rest| !rest.is_empty());
        if !placed || entry.split('/').any(|part| part == "..") {
            let right = "a path that begins with `~/` or `/`, without `..`";
            problems.fault(&format!("{field}[{at}]"), &format!("must be {right}"), right, entry);
        }
    }
    list
}

/// Variables that git-tender sets itself, or that reach no child.
fn refused_variable(name: &str) -> bool {
    let fixed = ["PATH", "HOME", "TMPDIR", "TENDER_OUT", "SSH_AUTH_SOCK", "LD_PRELOAD", "LD_LIBRARY_PATH"];
    fixed.contains(&name) || name.starts_with("GIT_")
}

fn names(problems: &mut Problems, field: &str, node: &Node) -> Vec<String> {
    let list = problems.texts(field, node).unwrap_or_default();
    for (at, name) in list.iter().enumerate() {
        let field = format!("{field}[{at}]");
        if name.contains(['=', '\0']) {
            problems.fault(&field, "is no name of a variable", "a name without `=`", name);
        } else if refused_variable(name) {
            problems.fault(
                &field,
                "is never passed on",
                "a variable that git-tender does not set itself",
                name,
            );
        }
    }
    list
}

fn tools(problems: &mut Problems, field: &str, node: &Node) -> Vec<ToolSpec> {
    let mut tools = Vec::new();
    for (field, item) in problems.list(field, node, "tools").unwrap_or_default() {
        let (mut name, mut probe) = (None, Vec::new());
        problems.object(&field, item, &["name", "probe"], |problems, key, field, node| match key {
            "name" => name = problems.text(field, node),
            _ => probe = argv(problems, field, node),
        });
        problems.require(&field, item, "name", "the name of a program");
        if let Some(name) = name {
            if name.contains('/') {
                problems.fault(&field, "must be looked up on PATH", "a name without `/`", &name);
            }
            tools.push(ToolSpec { name, probe });
        }
    }
    tools
}

fn outputs(problems: &mut Problems, field: &str, node: &Node) -> Vec<Output> {
    let mut outputs = Vec::new();
    for (field, item) in problems.list(field, node, "outputs").unwrap_or_default() {
        let (mut path, mut format, mut required) = (None, None, false);
        problems.object(
            &field,
            item,
            &["path", "format", "required"],
            |problems, key, field, node| match key {
                "path" => path = problems.text(field, node),
                "format" => format = output_format(problems, field, node),
                _ => required = problems.boolean(field, node).unwrap_or_default(),
            },
        );
        problems.require(&field, item, "format", "junit or libtest");
        match format {
            Some(Format::Libtest) if path.is_some() => {
                problems.fault(
                    &field,
                    "has a path, but libtest is read from standard output",
                    "no path",
                    &path,
                );
            }
            Some(Format::Junit) => problems.require(&field, item, "path", "where the file is"),
            _ => {}
        }
        if let Some(format) = format {
            outputs.push(Output { path: path.unwrap_or_default(), format, required });
        }
    }
    outputs
}

fn output_format(problems: &mut Problems, field: &str, node: &Node) -> Option<Format> {
    if *node == Node::Text("sarif".to_owned()) {
        problems.later(field, "the format `sarif`");
        return None;
    }
    problems.choice(field, node, &[("junit", Format::Junit), ("libtest", Format::Libtest)])
}

fn setup(problems: &mut Problems, field: &str, node: &Node) -> Option<Setup> {
    let (mut command, mut inputs) = (Vec::new(), None);
    problems.object(field, node, &["command", "inputs", "network"], |problems, key, field, node| match key {
        "command" => command = argv(problems, field, node),
        "inputs" => inputs = problems.scope(field, node),
        _ => {
            if problems.boolean(field, node) == Some(true) {
                problems.later(field, "a setup with network");
            }
        }
    });
    problems.require(field, node, "command", "an argument vector");
    problems.require(field, node, "inputs", "the files that it depends on");
    Some(Setup { command, inputs: inputs? })
}

fn timeout(problems: &mut Problems, field: &str, node: &Node) -> Option<Duration> {
    let text = problems.text(field, node)?;
    let parsed = duration(&text).filter(|d| !d.is_zero() && *d <= LONGEST_TIMEOUT);
    if parsed.is_none() {
        let right = "a time such as 500ms, 30s, 10m or 1h30m, at most 24h";
        problems.fault(field, &format!("must be {right}, but is {}", clipped(&text)), right, &text);
    }
    parsed
}

/// `1h30m`, `10m`, `30s`, `500ms`: whole numbers, each followed by its unit, units falling.
#[must_use]
pub fn duration(text: &str) -> Option<Duration> {
    const UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
    let (mut rest, mut total, mut from) = (text, 0u64, 0);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: u64 = rest[..digits].parse().ok()?;
        let end = rest[digits..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |at| digits + at);
        let at = from + UNITS[from..].iter().position(|(unit, _)| *unit == &rest[digits..end])?;
        total = total.checked_add(number.checked_mul(UNITS[at].1)?)?;
        (rest, from) = (&rest[end..], at + 1);
    }
    (!text.is_empty()).then(|| Duration::from_millis(total))
}

/// What only shows when all keys are known.
fn check(problems: &mut Problems, draft: &Draft, id: &str) {
    let has = |key: &str| draft.present.iter().any(|name| name == key);
    if !has("protocol") {
        problems.missing("protocol", "1");
    }
    match &draft.id {
        Some(given) if given != id => {
            problems.fault("id", &format!("must be the name of its directory, {id:?}"), id, given);
        }
        None if !has("id") => problems.missing("id", "the name of its directory"),
        _ => {}
    }
    let kind = draft.kind.unwrap_or(Kind::Command);
    if kind == Kind::Command && !has("command") && !has("uses") {
        problems.missing("command", "an argument vector, unless `kind` is manual or builtin");
    }
    let builtin = super::builtin::NAMES.contains(&id);
    if kind == Kind::Builtin && !builtin {
        problems.unknown_value("id", id, &super::builtin::NAMES);
    } else if kind != Kind::Builtin && (builtin || id == crate::domain::contract::PROTECTED) {
        let why = "is the name of what git-tender judges itself";
        problems.fault("id", why, "another name", id);
    }
    if kind != Kind::Command {
        for key in
            ["command", "setup", "outputs", "pass", "min_checks", "attempts", "tools", "env", "timeout"]
        {
            if has(key) {
                problems.fault(key, "has no meaning where nothing is run", "kind = \"command\"", key);
            }
        }
    }
    check_outputs(problems, draft, has("min_checks"));
}

fn check_outputs(problems: &mut Problems, draft: &Draft, min_checks: bool) {
    let pass = draft.pass.unwrap_or(Pass::ExitCode);
    if pass == Pass::Outputs && draft.outputs.is_empty() {
        problems.fault(
            "pass",
            "is outputs, but there is no output that counts",
            "an entry in `outputs`",
            "none",
        );
    }
    if min_checks && draft.outputs.is_empty() && pass != Pass::Protocol {
        problems.fault("min_checks", "needs an output that counts", "an entry in `outputs`", "none");
    }
    for (at, output) in draft.outputs.iter().enumerate() {
        let field = format!("outputs[{at}].path");
        let within = |path: &str| RepoPath::new(path.as_bytes()).is_ok();
        let right = "a file in `scratch`, or one that begins with `{out}/`";
        let fits = match output.path.strip_prefix(OUT) {
            Some(rest) => rest.strip_prefix('/').is_some_and(within),
            None => {
                output.path.is_empty()
                    || RepoPath::new(output.path.as_bytes()).is_ok_and(|path| draft.scratch.matches(&path))
            }
        };
        if !fits {
            problems.fault(&field, &format!("must be {right}"), right, &output.path);
        }
    }
}

fn fill(draft: Draft) -> Manifest {
    let pass = draft.pass.unwrap_or(Pass::ExitCode);
    let counts = pass == Pass::Protocol || !draft.outputs.is_empty();
    let id = draft.id.unwrap_or_default();
    Manifest {
        title: draft.title.unwrap_or_else(|| id.clone()),
        id,
        kind: draft.kind.unwrap_or(Kind::Command),
        command: draft.command,
        setup: draft.setup,
        read: draft.read,
        inputs: draft.inputs,
        closure: draft.closure,
        tools: draft.tools,
        env: draft.env,
        outputs: draft.outputs,
        pass,
        min_checks: counts.then(|| draft.min_checks.unwrap_or(1)),
        timeout: draft.timeout.unwrap_or(DEFAULT_TIMEOUT),
        scratch: draft.scratch,
        reuse: draft.reuse.unwrap_or(Reuse::SameInputs),
        attempts: draft.attempts.unwrap_or(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Manifest> {
        Manifest::parse(".tender/verifiers/unit/verifier.toml", "unit", text.as_bytes())
    }

    /// A manifest of two required lines and what is given.
    fn with(more: &str) -> Result<Manifest> {
        parse(&format!("protocol = 1\nid = \"unit\"\ncommand = [\"true\"]\n{more}"))
    }

    #[test]
    fn the_documented_manifest_reads_and_the_defaults_are_the_documented_ones() {
        let full = parse(
            r#"
protocol = 1
id = "unit"
title = "Unit tests"
command = ["cargo", "nextest", "run", "--offline", "--profile", "ci"]
setup = { command = ["npm", "ci", "--offline"], inputs = ["package-lock.json"], network = false }
read = ["~/.cargo", "~/.rustup"]
kind = "command"
inputs = ["src/**", "tests/**", "Cargo.*"]
closure = [".tender/bin/unit.sh", "rust-toolchain.toml"]
tools = [{ name = "cargo", probe = ["cargo", "-V"] }]
env = ["RUSTFLAGS"]
outputs = [{ path = "target/nextest/ci/junit.xml", format = "junit", required = true }]
pass = "exit-code"
min_checks = 1
timeout = "10m"
network = false
scratch = ["target/"]
reuse = "same-inputs"
attempts = 1
"#,
        )
        .expect("reads");
        assert!(full.counts());
        assert_eq!(full.min_checks, Some(1));
        let small = with("").expect("reads");
        assert_eq!((small.timeout, small.attempts, small.pass), (DEFAULT_TIMEOUT, 1, Pass::ExitCode));
        assert_eq!((small.min_checks, small.reuse), (None, Reuse::SameInputs));
        assert!(small.inputs.is_none() && !small.counts());
    }

    #[test]
    fn faults_name_file_key_and_nearest() {
        let failure = with("time_out = \"1s\"").expect_err("unknown");
        assert_eq!(failure.code(), Code::ConfigInvalid);
        assert_eq!(failure.subject_text(), Some("time_out"));
        assert_eq!(failure.details()["nearest"], "timeout");
        assert!(failure.message().starts_with(".tender/verifiers/unit/verifier.toml: "), "{failure}");
        for (text, subject) in [
            ("min_checks = 3", "min_checks"),
            ("pass = \"outputs\"", "pass"),
            ("timeout = \"ten minutes\"", "timeout"),
            ("timeout = \"25h\"", "timeout"),
            ("attempts = 0", "attempts"),
            (
                "outputs = [{ path = \"src/x.xml\", format = \"junit\" }]\nscratch = [\"target/\"]",
                "outputs[0].path",
            ),
            ("outputs = [{ path = \"{out}/../x.xml\", format = \"junit\" }]", "outputs[0].path"),
            ("outputs = [{ path = \"a\", format = \"libtest\" }]", "outputs[0]"),
            ("read = [\"src\"]", "read[0]"),
            ("env = [\"GIT_DIR\"]", "env[0]"),
            ("tools = [{ probe = [\"x\"] }]", "tools[0].name"),
            ("setup = { command = [\"x\"] }", "setup.inputs"),
            ("kind = \"manual\"", "command"),
        ] {
            let failure = with(text).expect_err(text);
            assert_eq!(failure.code(), Code::ConfigInvalid, "{text}");
            assert_eq!(failure.subject_text(), Some(subject), "{text}: {failure}");
        }
        let failure = parse("protocol = 1\nid = \"other\"\ncommand = \"make test\"").expect_err("two faults");
        assert_eq!(failure.others().len(), 1, "{failure:?}");
        assert_eq!(
            parse("protocol = 1\nid = \"unit\"").expect_err("no command").subject_text(),
            Some("command")
        );
        assert!(parse("protocol = 1\nid = \"unit\"\nkind = \"manual\"").is_ok());
    }

    #[test]
    fn what_comes_later_is_not_supported() {
        for (text, subject) in [
            ("uses = \"pre-commit\"", "uses"),
            ("network = true", "network"),
            ("setup = { command = [\"x\"], inputs = [\"a\"], network = true }", "setup.network"),
            ("outputs = [{ path = \"{out}/a\", format = \"sarif\" }]", "outputs[0].format"),
        ] {
            let failure = with(text).expect_err(text);
            assert_eq!(
                (failure.code(), failure.subject_text()),
                (Code::NotSupported, Some(subject)),
                "{text}"
            );
        }
        assert_eq!(
            parse("protocol = 2\nid = \"unit\"\ncommand = [\"x\"]").expect_err("2").code(),
            Code::NotSupported
        );
    }

    #[test]
    fn times_are_read() {
        for (text, millis) in [("500ms", 500), ("30s", 30_000), ("1h30m", 5_400_000), ("1m1ms", 60_001)] {
            assert_eq!(duration(text), Some(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "10", "m", "30m1h", "1s1s", "-1s", "1.5s", "1d", "99999999999999999999s"] {
            assert_eq!(duration(text), None, "{text}");
        }
    }
}
