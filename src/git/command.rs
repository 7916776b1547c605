//! The one way to run the `git` program.
//!
//! Every call names its git directory, gets a scrubbed environment and has everything switched off that would
//! let configuration or a working tree run programs of its own: fsmonitor, hooks, pagers, bare repositories
//! found by accident. The caller's `GIT_*` variables do not reach it, but for the few that carry
//! configuration and credentials.

use super::beneath::Stamp;
use crate::error::{Code, DetailKey, Failure, Result};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

/// The standard error of a git that failed.
pub const STDERR: DetailKey<String> = DetailKey::new("stderr");

/// Variables named `GIT_…` that are passed on: configuration and credentials given by the environment.
const KEPT: &[&str] = &[
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_EXEC_PATH",
    "GIT_CEILING_DIRECTORIES",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSH_VARIANT",
    "GIT_PROXY_COMMAND",
    "GIT_SSL_NO_VERIFY",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CERT",
    "GIT_SSL_KEY",
    "GIT_ASKPASS",
    "GIT_ALLOW_PROTOCOL",
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
];

/// Settings that hold for every call, whatever the repository says.
const SETTINGS: &[&str] = &[
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.untrackedCache=false",
    "core.quotePath=false",
    "core.protectHFS=true",
    "core.protectNTFS=true",
    "core.pager=cat",
    "core.alternateRefsCommand=",
    "safe.bareRepository=explicit",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.detachedHead=false",
    "advice.embeddedRepo=false",
];

/// The environment that git is started with.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    variables: Vec<(OsString, OsString)>,
    /// Where git is, once somebody has asked.
    git: OnceLock<Option<PathBuf>>,
}

impl Environment {
    /// From the caller's variables: all but `GIT_*` that is not kept.
    pub fn scrub_variables(vars: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let kept = vars.into_iter().filter(|(name, _)| {
            let name = name.to_string_lossy();
            let config_pair = name.starts_with("GIT_CONFIG_KEY_") || name.starts_with("GIT_CONFIG_VALUE_");
            !name.starts_with("GIT_") || config_pair || KEPT.contains(&name.as_ref())
        });
        Self { variables: kept.collect(), git: OnceLock::new() }
    }

    /// All variables with their values.
    pub fn iter(&self) -> impl Iterator<Item = &(OsString, OsString)> {
        self.variables.iter()
    }

    /// The git on PATH, looked for once: a program with a whole path is started without a fork, and no folder
    /// that a call runs in can put another one in its place.
    fn git_program(&self) -> Option<&Path> {
        let find = || {
            let folders = self.get("PATH").map(std::env::split_paths).into_iter().flatten();
            let files = folders.filter(|folder| folder.is_absolute()).map(|folder| folder.join("git"));
            let runs = |file: &PathBuf| {
                file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
            };
            files.into_iter().find(runs)
        };
        self.git.get_or_init(find).as_deref()
    }

    /// Tells one git program from another; empty where there is none on PATH.
    pub fn git_stamp(&self) -> String {
        let found = self.git_program().and_then(|file| Some((rustix::fs::stat(file).ok()?, file)));
        found
            .map(|(stat, file)| format!("{} {} {:?}", file.display(), stat.st_dev, Stamp::of_stat(&stat)))
            .unwrap_or_default()
    }

    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_os_str())
    }
}

/// A git call that somebody else starts.
#[derive(Clone)]
pub struct GitCall {
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    pub env: Vec<(OsString, OsString)>,
}

impl std::fmt::Debug for GitCall {
    /// Neither arguments nor values: an address may hold a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call").field("arguments", &self.argv.len()).finish_non_exhaustive()
    }
}

/// What a finished git said.
#[derive(Debug)]
pub struct GitOutput {
    /// Exit code; `None` where a signal ended it.
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: String,
    shown: String,
}

impl GitOutput {
    /// True for exit code 0.
    pub fn success(&self) -> bool {
        self.code == Some(0)
    }

    /// The output of a successful call, or a failure that quotes git's own words.
    pub fn into_stdout(self) -> Result<Vec<u8>> {
        if self.success() { Ok(self.stdout) } else { Err(self.to_failure()) }
    }

    /// The failure that this output amounts to.
    pub fn to_failure(&self) -> Failure {
        let said = self.stderr.trim();
        let code = self.code.map_or("a signal".to_owned(), |code| format!("exit code {code}"));
        let failure = Failure::new(Code::Io, format!("`{}` ended with {code}: {said}", self.shown))
            .detail("exitCode", self.code)
            .with_detail(&STDERR, said);
        if !said.contains("promisor remote") {
            return failure;
        }
        // What a partial clone left out has to be fetched from where it came.
        failure.remedy(
            "This is a partial clone, and its remote does not answer: correct its address, or reach it again.",
            ["git", "remote", "-v"],
        )
    }

    /// Standard output as text without the final newline.
    pub fn first_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).trim_end_matches('\n').to_owned()
    }
}

/// Where a task's own objects lie until a delivery brings them into the repository.
#[derive(Debug, Clone)]
pub struct Quarantine {
    pub objects: PathBuf,
    /// The repository's, seen as an alternate.
    pub repository_objects: PathBuf,
}

/// A git call under construction.
#[derive(Debug)]
pub struct Git {
    command: Command,
    shown: Vec<String>,
    stdin: Vec<u8>,
}

impl Git {
    /// A call on a git directory; `None` leaves it to git to find one from the current folder (discovery
    /// only).
    #[expect(clippy::disallowed_methods, reason = "the one place that starts git")]
    pub fn new(environment: &Environment, git_dir: Option<&Path>) -> Self {
        let mut command = Command::new(environment.git_program().unwrap_or(Path::new("git")));
        command.env_clear().envs(environment.iter().map(|(k, v)| (k, v)));
        command.env("LC_ALL", "C").env("GIT_OPTIONAL_LOCKS", "0").env("GIT_PAGER", "cat");
        command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_ADVICE", "0").env("GIT_NO_REPLACE_OBJECTS", "1");
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        if let Some(dir) = git_dir {
            let mut option = OsString::from("--git-dir=");
            option.push(dir);
            command.arg(option);
        }
        Self { command, shown: vec!["git".into()], stdin: Vec::new() }
    }

    /// The folder it runs in.
    pub fn cwd(mut self, dir: &Path) -> Self {
        self.command.current_dir(dir);
        self
    }

    /// The working tree; call before the subcommand's arguments.
    pub fn work_tree(mut self, dir: &Path) -> Self {
        let mut option = OsString::from("--work-tree=");
        option.push(dir);
        self.command.arg(option);
        self.command.current_dir(dir);
        self
    }

    /// The tree whose `.gitattributes` count; call before the subcommand's arguments.
    pub fn attributes_from(mut self, tree: &str) -> Self {
        self.command.arg(format!("--attr-source={tree}"));
        self
    }

    /// One setting more; call before the subcommand's arguments.
    pub fn with_setting(mut self, setting: &str) -> Self {
        self.command.args(["-c", setting]);
        self
    }

    /// A setting with an empty value, whatever characters its key holds; call before the subcommand's
    /// arguments.
    pub fn empty_setting(self, key: &str) -> Self {
        self.setting_from(key, "GIT_TENDER_EMPTY", "")
    }

    /// A setting whose value stands in a variable, whatever characters its key holds; call before the
    /// subcommand's arguments.
    pub fn setting_from(mut self, key: &str, variable: &str, value: &str) -> Self {
        self.command.arg(format!("--config-env={key}={variable}")).env(variable, value);
        self
    }

    /// Without the configuration that the caller's environment carries.
    pub fn without_config_of_the_environment(mut self) -> Self {
        self.command.env_remove("GIT_CONFIG_COUNT").env_remove("GIT_CONFIG_PARAMETERS");
        self
    }

    pub fn with_index(mut self, file: &Path) -> Self {
        self.command.env("GIT_INDEX_FILE", file);
        self
    }

    /// New objects go to the quarantine; the repository's are seen through it.
    pub fn with_quarantine(mut self, quarantine: &Quarantine) -> Self {
        self.command.env("GIT_OBJECT_DIRECTORY", &quarantine.objects);
        self.command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", quote_alternate(&quarantine.repository_objects));
        self
    }

    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.shown.push(arg.as_ref().to_string_lossy().into_owned());
        self.command.arg(arg);
        self
    }

    pub fn args<I, S>(mut self, args: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        for arg in args {
            self = self.arg(arg);
        }
        self
    }

    /// What it reads from standard input.
    pub fn stdin(mut self, bytes: Vec<u8>) -> Self {
        self.stdin = bytes;
        self
    }

    /// The whole call, for whoever starts it under supervision.
    pub fn into_call(self) -> GitCall {
        let argv = std::iter::once(self.command.get_program()).chain(self.command.get_args());
        // The caller's environment was cleared first, so that what was set is all there is.
        let env = self.command.get_envs().filter_map(|(k, v)| Some((k.to_owned(), v?.to_owned())));
        GitCall { argv: argv.map(OsStr::to_owned).collect(), env: env.collect() }
    }

    fn spawn(&mut self) -> Result<Child> {
        self.command.spawn().map_err(|e| match e.kind() {
            ErrorKind::NotFound | ErrorKind::PermissionDenied => Failure::new(
                Code::GitUnsupported,
                format!("cannot start the `git` program: {e}"),
            )
            .remedy("Install git 2.41 or newer and make sure that it is on PATH.", ["git", "--version"]),
            _ => Failure::io("start", Path::new("git"), &e),
        })
    }

    /// Runs it to its end.
    pub fn run(self) -> Result<GitOutput> {
        let mut stdout = Vec::new();
        let mut output = self.run_streaming(|source| {
            source
                .read_to_end(&mut stdout)
                .map(|_| ())
                .map_err(|e| Failure::new(Code::Io, format!("cannot read git's output: {e}")))
        })?;
        output.stdout = stdout;
        Ok(output)
    }

    /// Runs it and takes its output, or the failure.
    pub fn run_for_stdout(self) -> Result<Vec<u8>> {
        self.run()?.into_stdout()
    }

    /// Runs it and hands its standard output to `consume` while it is written, so that a large output is
    /// never held whole.
    pub fn run_streaming(mut self, consume: impl FnOnce(&mut dyn Read) -> Result<()>) -> Result<GitOutput> {
        // Files in memory on both other sides: git never waits for us there, and no thread is needed, which
        // the system may refuse.
        let fed = std::mem::take(&mut self.stdin);
        self.command.stdin(if fed.is_empty() { Stdio::null() } else { memory_file(&fed)?.into() });
        let errors = memory_file(b"")?;
        self.command.stdout(Stdio::piped()).stderr(errors.try_clone().map_err(not_kept)?);
        let mut child = self.spawn()?;
        let broken = || Failure::internal("a pipe to git is missing");
        let mut output = std::io::BufReader::with_capacity(1 << 16, child.stdout.take().ok_or_else(broken)?);
        let consumed = consume(&mut output);
        if consumed.is_err() {
            let _ = child.kill();
        }
        drop(output);
        let status = child.wait().map_err(|e| Failure::new(Code::Io, format!("cannot wait for git: {e}")))?;
        consumed?;
        let stderr = text_from(&errors, 0).1;
        Ok(GitOutput { code: status.code(), stdout: Vec::new(), stderr, shown: self.shown.join(" ") })
    }

    /// Starts it as a co-process that answers requests.
    pub fn start_conversation(mut self) -> Result<Conversation> {
        let errors = memory_file(b"")?;
        let said = errors.try_clone().map_err(not_kept)?;
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(said);
        let mut child = self.spawn()?;
        let broken = || Failure::internal("a pipe to git is missing");
        let input = child.stdin.take().ok_or_else(broken)?;
        let output = std::io::BufReader::new(child.stdout.take().ok_or_else(broken)?);
        let shown = self.shown.join(" ");
        Ok(Conversation { child, input: Some(input), output, errors, heard: 0, shown })
    }
}

/// A kept git process. Dropping it closes its input and waits for it.
#[derive(Debug)]
pub struct Conversation {
    child: Child,
    input: Option<ChildStdin>,
    pub output: std::io::BufReader<ChildStdout>,
    errors: File,
    heard: u64,
    shown: String,
}

impl Conversation {
    pub fn send_request(&mut self, request: &[u8]) -> std::io::Result<()> {
        let input = self.input.as_mut().ok_or(std::io::ErrorKind::BrokenPipe)?;
        input.write_all(request)?;
        input.flush()
    }

    /// Closes its input, reads the rest of its answers and waits for its end.
    pub fn finish_conversation(mut self) -> Result<GitOutput> {
        drop(self.input.take());
        let lost = |e: std::io::Error| Failure::new(Code::Io, format!("cannot wait for git: {e}"));
        let mut stdout = Vec::new();
        self.output.read_to_end(&mut stdout).map_err(lost)?;
        let code = self.child.wait().map_err(lost)?.code();
        self.heard = 0;
        let stderr = self.take_complaints();
        Ok(GitOutput { code, stdout, stderr, shown: self.shown.clone() })
    }

    /// What it said on standard error since the last call. Everything that belongs to an answer is there once
    /// the answer is.
    pub fn take_complaints(&mut self) -> String {
        let (got, text) = text_from(&self.errors, self.heard);
        self.heard += got;
        text
    }
}

fn not_kept(error: std::io::Error) -> Failure {
    Failure::io("keep in memory what is said to or by", Path::new("git"), &error)
}

/// A file without a name that holds these bytes, to be read from its start.
fn memory_file(bytes: &[u8]) -> Result<File> {
    let memory = rustix::fs::memfd_create("git-tender", rustix::fs::MemfdFlags::CLOEXEC);
    let file = File::from(memory.map_err(|e| not_kept(e.into()))?);
    file.write_all_at(bytes, 0).map_err(not_kept)?;
    Ok(file)
}

/// What is in a file from a place on, and how many bytes that were.
fn text_from(file: &File, start: u64) -> (u64, String) {
    let length = file.metadata().map_or(0, |m| m.len());
    let mut text = vec![0; usize::try_from(length.saturating_sub(start)).unwrap_or(0)];
    let got = file.read_at(&mut text, start).unwrap_or(0);
    (got as u64, String::from_utf8_lossy(&text[..got]).into_owned())
}

impl Drop for Conversation {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

/// An entry of the alternates list; git splits it at `:` unless it is quoted the way C does.
fn quote_alternate(path: &Path) -> OsString {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let bytes = path.as_os_str().as_bytes();
    if !bytes.iter().any(|b| matches!(b, b':' | b'"' | b'\\' | b'\n')) {
        return path.as_os_str().to_owned();
    }
    let mut quoted = vec![b'"'];
    for byte in bytes {
        match byte {
            b'"' | b'\\' => quoted.extend([b'\\', *byte]),
            b'\n' => quoted.extend(b"\\n"),
            _ => quoted.push(*byte),
        }
    }
    quoted.push(b'"');
    OsString::from_vec(quoted)
}

/// Joins a relative path to a folder; an absolute one stays.
pub fn join_absolute(folder: &Path, path: &Path) -> PathBuf {
    folder.join(path)
}
