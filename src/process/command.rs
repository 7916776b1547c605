//! A run of a program as its caller sees it: what is to be run, and how it ended.

use super::output::Captured;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Which confinement a program gets, the weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SandboxLayer {
    /// None: what the user may do, the program may do.
    #[default]
    None,
    /// Landlock and seccomp.
    Partial,
    /// Namespaces, Landlock and seccomp.
    Full,
}

impl SandboxLayer {
    /// The stable name, as it stands in evidence and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Partial => "partial",
            Self::Full => "full",
        }
    }
}

/// What a program is confined to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confinement {
    pub layer: SandboxLayer,
    /// The file of bubblewrap, for the tier full.
    pub bubblewrap: PathBuf,
    /// What it may read beside the system. What is not there is passed over.
    pub read: Vec<PathBuf>,
    /// What it may write; each has to be there.
    pub write: Vec<PathBuf>,
    /// Folders of which nothing is shown but what is named otherwise, and in which nothing can be made.
    pub bare: Vec<PathBuf>,
}

/// Limits of the system for each process of the run; none where not given. Core dumps are always off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessLimits {
    /// Largest file that may be written, in bytes.
    pub file_size: Option<u64>,
    pub open_files: Option<u64>,
    pub memory: Option<u64>,
    /// Processes; the system counts all of the user's, also those outside of the run.
    pub processes: Option<u64>,
}

#[derive(Clone)]
pub struct Invocation {
    /// The program and its arguments. A name without a slash is looked for in the `PATH` of `env`; one with a
    /// slash is relative to `cwd`.
    pub argv: Vec<OsString>,
    pub cwd: PathBuf,
    /// The complete environment; nothing is inherited.
    pub env: Vec<(OsString, OsString)>,
    /// What it reads from standard input; where this is empty, standard input is `/dev/null`.
    pub stdin: Vec<u8>,
    /// How long it may run.
    pub timeout: Duration,
    /// How long it may take to end after it was asked to, at a time-out.
    pub grace: Duration,
    /// How many bytes are kept of each of the two outputs.
    pub output_cap: u64,
    /// Values that must not be seen in what is kept.
    pub secrets: Vec<Vec<u8>>,
    pub limits: ProcessLimits,
    /// What the program is confined to; `None` for nothing.
    pub confinement: Option<Confinement>,
}

impl fmt::Debug for Invocation {
    /// Shows neither the values of the environment nor input nor secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&OsString> = self.env.iter().map(|(name, _)| name).collect();
        f.debug_struct("Command")
            .field("argv", &self.argv)
            .field("cwd", &self.cwd)
            .field("env", &names)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl Invocation {
    /// A command with an empty environment and input, ten minutes, two seconds of grace and 1 MiB of output.
    pub fn new<I, S>(argv: I, cwd: impl Into<PathBuf>) -> Self
    where
        I: IntoIterator<Item = S>,
        S: Into<OsString>,
    {
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            cwd: cwd.into(),
            env: Vec::new(),
            stdin: Vec::new(),
            timeout: Duration::from_secs(600),
            grace: Duration::from_secs(2),
            output_cap: 1024 * 1024,
            secrets: Vec::new(),
            limits: ProcessLimits::default(),
            confinement: None,
        }
    }
}

/// Why a program could not be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NotStarted {
    /// No such program, or the interpreter that its first line names is missing.
    NotFound,
    /// It is there and cannot be executed.
    PermissionDenied,
    /// What it was to be confined by could not be had.
    NotConfined,
    /// The working directory is missing.
    NoDirectory,
    /// Anything else; the message says what.
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ProgramEnd {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal, which was not ours.
    Signalled(i32),
    /// It was ended because its time was up.
    TimedOut,
    /// It was ended because whoever watches it wanted that.
    Stopped,
    NotStarted {
        kind: NotStarted,
        /// The cause in a sentence.
        message: String,
    },
    /// The supervisor was killed or did not answer; the program was killed as far as it could be found.
    SupervisorLost,
}

/// A run that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedRun {
    pub end: ProgramEnd,
    /// What it wrote to standard output.
    pub stdout: Captured,
    /// What it wrote to standard error.
    pub stderr: Captured,
    /// From the start of the program to its end.
    pub duration: Duration,
    /// Processes that were still alive after the main one had ended (or, where it was ended, after the grace)
    /// and were killed; the main one is not counted.
    pub survivors_killed: u32,
    /// Processes that could not be killed; zero but for such as hang in the kernel.
    pub unkillable: u32,
}
