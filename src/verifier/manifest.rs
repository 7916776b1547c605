//! A verifier's manifest, `verifier.toml`: read strictly, every default filled in.
//!
//! Whoever has a [`Manifest`] knows that its parts fit together: what counts has an output, an output lies
//! where the verifier may write, and nothing is asked for that this version does not do.

mod read;

#[cfg(test)]
pub use read::MANIFEST_FIELDS;

use crate::domain::contract::policy::BaseRuns;
use crate::domain::proof::evidence::Reuse;
use crate::domain::value::repo_path::RepoPath;
use crate::domain::value::scope::Scope;
use crate::error::Result;
use crate::verifier::formats::ResultFormat;
use crate::verifier::hook_config;
use std::time::Duration;

/// How long a verifier may run unless its manifest says otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);
/// The longest time that a manifest may ask for, in milliseconds.
pub const LONGEST_TIMEOUT: u64 = 24 * 3_600_000;
/// How often a verifier may at most be tried.
pub const MOST_ATTEMPTS: u64 = 10;
/// Stands for the run's output directory in an argument vector and in the path of an output.
pub const OUT: &str = "{out}";

/// Who shows what the verifier stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerifierKind {
    Command,
    Manual,
    Builtin,
}

/// What makes a pass, beside exit 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    ExitCode,
    Outputs,
    /// A `result.json`.
    Protocol,
}

/// A file that a run makes.
#[derive(Debug, Clone)]
pub struct DeclaredOutput {
    /// Relative to the slot's root, or beginning with [`OUT`]; empty for standard output.
    pub path: String,
    /// What it is written in.
    pub format: ResultFormat,
    /// Which files it stands for, where its path is a glob; without [`OUT`].
    pub pattern: Option<Scope>,
    /// Whether a run without it is an error.
    pub required: bool,
    /// How many cases must run in it.
    pub min_checks: Option<u64>,
}

impl DeclaredOutput {
    pub fn is_standard_output(&self) -> bool {
        self.path.is_empty()
    }
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
    pub command: Vec<String>,
    pub inputs: Scope,
    /// Whether it is told how to reach the network; the policy may forbid it.
    pub network: bool,
}

/// A manifest with its defaults filled in.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// The name of its directory.
    pub id: String,
    pub title: Option<String>,
    pub kind: VerifierKind,
    /// The argument vector; empty unless the kind is [`VerifierKind::Command`].
    pub command: Vec<String>,
    pub setup: Option<Setup>,
    /// What may be read beside the tree and the system.
    pub read: Vec<String>,
    /// What of it is a store whose content a lock file names: it is in no key, and a run may change it.
    pub stores: Vec<String>,
    /// What the verdict depends on; `None` for the whole tree.
    pub inputs: Option<Scope>,
    /// Files of the verifier itself.
    pub closure: Scope,
    /// Those patterns of the closure that may name nothing in the base, written `?pattern`: what a candidate
    /// adds there is not shown, and changes the judge.
    pub may_be_absent: Vec<String>,
    /// Files that say how it judges and may rightly change with the work: a run sees the candidate's, and a
    /// person confirms where they differ.
    pub watch: Scope,
    pub tools: Vec<ToolSpec>,
    pub env: Vec<String>,
    /// Files that a run makes.
    pub outputs: Vec<DeclaredOutput>,
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
    /// When it is run on the base, to compare case by case.
    pub base_runs: BaseRuns,
    /// False where the names of its cases are not stable, so that nothing is compared.
    pub compares_cases: bool,
    /// It runs the hooks of another tool's configuration: what it changes is what it finds fault with.
    pub uses_hooks: bool,
}

impl Manifest {
    /// True where a run counts cases.
    pub fn counts(&self) -> bool {
        self.min_checks.is_some()
    }

    /// True where a run sees the candidate's file of this path, unless the closure has one there.
    pub fn sees(&self, path: &RepoPath) -> bool {
        self.inputs.as_ref().is_none_or(|inputs| inputs.matches_path(path)) || self.watch.matches_path(path)
    }

    /// Reads a manifest. `file` names it in messages, `id` is the name of its directory. The failure is
    /// `config.invalid`, or `not_supported` where only a later version can do what it asks for; its subject
    /// is the key.
    pub fn parse(file: &str, id: &str, bytes: &[u8]) -> Result<Self> {
        let read = read::manifest(id, bytes).map_err(|failure| read::named(file, &failure))?;
        Ok(if read.uses_hooks && read.command.is_empty() { read.with_all_hooks() } else { read })
    }

    /// Which tool runs the hooks, and with what, is in no key: a pass counts for its candidate alone.
    fn with_all_hooks(self) -> Self {
        let config = Scope::new(vec![hook_config::CONFIG.to_owned()]).unwrap_or_default();
        let stores = hook_config::STORES.map(str::to_owned);
        Self {
            command: hook_config::RUN_ALL.map(str::to_owned).to_vec(),
            closure: self.closure.union(&config),
            env: [self.env, vec!["SKIP".to_owned()]].concat(),
            read: [self.read, stores.to_vec()].concat(),
            stores: [self.stores, stores.to_vec()].concat(),
            reuse: Reuse::Never,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;

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
watch = ["build.rs", "**/conftest.py"]
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
base = "reuse"
cases = true
"#,
        )
        .expect("reads");
        assert!(full.counts());
        assert_eq!(full.min_checks, Some(1));
        let stores = with("read = [\"~/.a\", { path = \"~/.b\", cache = true }]").expect("reads");
        assert_eq!((stores.read.join(" "), stores.stores.join(" ")), ("~/.a ~/.b".into(), "~/.b".into()));
        let fetched = with("setup = { command = [\"x\"], inputs = [\"a\"], network = true }").expect("reads");
        assert!(fetched.setup.is_some_and(|setup| setup.network) && !full.setup.is_none_or(|s| s.network));
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
            ("base = \"never\"", "base"),
            ("cases = 1", "cases"),
            (
                "outputs = [{ path = \"src/x.xml\", format = \"junit\" }]\nscratch = [\"target/\"]",
                "outputs[0].path",
            ),
            ("outputs = [{ path = \"{out}/../x.xml\", format = \"junit\" }]", "outputs[0].path"),
            ("outputs = [{ path = \"a\", format = \"libtest\" }]", "outputs[0]"),
            ("outputs = [{ path = \"{out}/a[.xml\", format = \"junit\" }]", "outputs[0].path"),
            (
                "outputs = [{ path = \"{out}/a.xml\", format = \"junit\", min_checks = \"x\" }]",
                "outputs[0].min_checks",
            ),
            ("outputs = [{ format = \"sarif\", min_checks = 1 }]", "outputs[0].min_checks"),
            ("outputs = [{ format = \"sarif\" }]\nmin_checks = 1", "min_checks"),
            ("outputs = [{ format = \"sarif\" }]\npass = \"outputs\"", "pass"),
            ("read = [\"src\"]", "read[0]"),
            ("read = [{ path = \"src\", cache = true }]", "read[0]"),
            ("read = [{ cache = true }]", "read[0].path"),
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
        let manual = "protocol = 1\nid = \"unit\"\nkind = \"manual\"\n";
        assert!(parse(manual).is_ok());
        for idle in ["reuse = \"never\"", "read = [\"~/.a\"]", "scratch = [\"a/\"]", "uses = \"pre-commit\""]
        {
            let failure = parse(&format!("{manual}{idle}")).expect_err("nothing is run");
            assert_eq!(failure.subject_text(), idle.split(' ').next(), "{failure}");
        }
    }

    #[test]
    fn the_hooks_of_another_tool_need_no_command() {
        let hooks = parse("protocol = 1\nid = \"unit\"\nuses = \"pre-commit\"").expect("a manifest");
        assert!(hooks.uses_hooks && hooks.command.iter().any(|word| word == "--all-files"));
        assert_eq!(hooks.closure.patterns(), [".pre-commit-config.yaml"]);
        assert_eq!((hooks.reuse, hooks.env), (Reuse::Never, vec!["SKIP".to_owned()]));
        let own = parse("protocol = 1\nid = \"unit\"\nuses = \"pre-commit\"\ncommand = [\"x\"]");
        assert_eq!(own.expect("a manifest").command, ["x"]);
        assert_eq!(with("uses = \"husky\"").expect_err("unknown").subject_text(), Some("uses"));
    }

    #[test]
    fn what_comes_later_is_not_supported() {
        let failure = with("network = true").expect_err("a later one");
        assert_eq!((failure.code(), failure.subject_text()), (Code::NotSupported, Some("network")));
        assert_eq!(
            parse("protocol = 2\nid = \"unit\"\ncommand = [\"x\"]").expect_err("2").code(),
            Code::NotSupported
        );
    }
}
