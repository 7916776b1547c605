//! Whose failure it is where a run ended badly before any case: the change's, the environment's, nobody's.
//!
//! A run that never came to its cases says little of the bytes. It is the change's where its first error lies
//! in a file that was shown, or where the base comes to its cases in the same environment. It is the
//! environment's where the log names a cause outside. What is known is a table; nothing else is blamed.

use super::logs;
use crate::domain::proof::run::Kind;
use crate::domain::proof::verdict::{Said, Verdict};
use crate::git::tree::TreeFile;
use crate::process::FinishedRun;
use std::path::Path;

/// How much of the end of a log is searched for a cause.
const SEARCHED: usize = 256 << 10;

/// Whose failure it is that no case was counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Blame {
    /// The change's; where its first error stands.
    Change(String),
    /// The environment's: the cause and its remedy.
    Environment(&'static Cause),
    /// A run on the base has to tell; what the log may mean.
    AskBase(Option<&'static Cause>),
}

/// A cause outside of the bytes that are judged.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cause {
    name: &'static str,
    remedy: &'static str,
    /// False where a change may be the cause as well, such as one that imports what never was.
    sure: bool,
    /// How logs say it, in lower case.
    signs: &'static [&'static str],
}

const CAUSES: &[Cause] = &[
    Cause {
        name: "a crate is not on this machine",
        remedy: "run `cargo fetch`",
        sure: true,
        signs: &[
            "--offline was specified",
            "no matching package named",
            "failed to download from `",
            "unable to update registry",
        ],
    },
    Cause {
        name: "a name could not be resolved",
        remedy: "see that the network is there, or fetch what is needed before",
        sure: true,
        signs: &[
            "could not resolve host",
            "temporary failure in name resolution",
            "name or service not known",
            "getaddrinfo e",
        ],
    },
    Cause {
        name: "the network did not answer",
        remedy: "see that the network is there, or fetch what is needed before",
        sure: true,
        signs: &[
            "network is unreachable",
            "connection timed out",
            "etimedout",
            "econnreset",
            "connection reset by peer",
        ],
    },
    Cause {
        name: "the disk is full",
        remedy: "make room (`git tender gc`)",
        sure: true,
        signs: &["no space left on device", "enospc", "disk quota exceeded"],
    },
    Cause {
        name: "a port is in use",
        remedy: "end what listens there",
        sure: true,
        signs: &["address already in use", "eaddrinuse"],
    },
    Cause {
        name: "a server did not answer",
        remedy: "start it",
        sure: false,
        signs: &["connection refused", "econnrefused"],
    },
    Cause {
        name: "there was not enough memory",
        remedy: "end other programs, or let fewer run at once",
        sure: false,
        signs: &["cannot allocate memory", "out of memory", "std::bad_alloc", "enomem"],
    },
    Cause {
        name: "a Python module is missing",
        remedy: "run `pip install` for what the project needs",
        sure: false,
        signs: &["modulenotfounderror", "no module named"],
    },
    Cause {
        name: "a package of Node.js is missing",
        remedy: "run `npm ci`",
        sure: false,
        signs: &["cannot find module", "err_module_not_found", "cannot find package '"],
    },
    Cause {
        name: "a Go module is missing",
        remedy: "run `go mod download`",
        sure: false,
        signs: &["missing go.sum entry", "no required module provides"],
    },
    Cause {
        name: "a program is missing",
        remedy: "install it; `git tender doctor` lists what is missing",
        sure: false,
        signs: &["command not found", "is not installed", ": not found"],
    },
    Cause {
        name: "access was denied",
        remedy: "see who may read and write there",
        sure: false,
        signs: &["permission denied", "eacces", "read-only file system"],
    },
];

impl Cause {
    fn find_in(text: &str) -> Option<&'static Self> {
        let text = text.to_ascii_lowercase();
        CAUSES.iter().find(|cause| cause.signs.iter().any(|sign| text.contains(sign)))
    }
}

impl Blame {
    /// Reads the logs of a run that showed the files `shown` in the folder `root`.
    pub(super) fn from_logs(finished: &FinishedRun, shown: &[TreeFile], root: &Path) -> Self {
        let logs = [&finished.stderr.bytes, &finished.stdout.bytes];
        let errors: Vec<_> = logs.into_iter().filter_map(|log| logs::find(log)).collect();
        let first = errors.iter().find(|error| error.kind != Kind::Tail);
        if let Some(cause) = first.and_then(|error| Cause::find_in(&error.text)) {
            return Self::from_cause(cause);
        }
        let place = errors.iter().filter_map(|error| {
            let path = relative_to(root, error.path.as_deref()?);
            is_shown(path, shown).then(|| format!("{path}:{}", error.row.unwrap_or(1)))
        });
        if let Some(place) = place.into_iter().next() {
            return Self::Change(place);
        }
        let ends =
            logs.map(|log| String::from_utf8_lossy(&log[log.len().saturating_sub(SEARCHED)..]).into_owned());
        match ends.iter().find_map(|end| Cause::find_in(end)) {
            Some(cause) => Self::from_cause(cause),
            None => Self::AskBase(None),
        }
    }

    fn from_cause(cause: &'static Cause) -> Self {
        if cause.sure { Self::Environment(cause) } else { Self::AskBase(Some(cause)) }
    }

    /// Decides with what a run on the base says: it counted cases, or it did not come to them either.
    pub(super) fn decide_by_base(&self, base_counts: bool) -> Self {
        match self {
            Self::AskBase(_) if base_counts => Self::Change("the base comes to its cases".to_owned()),
            Self::AskBase(Some(cause)) => Self::Environment(cause),
            decided => decided.clone(),
        }
    }

    pub(super) fn is_outside(&self) -> bool {
        matches!(self, Self::Environment(_))
    }

    /// The verdict and its reason for a run that ended with `code`.
    pub(super) fn to_verdict(&self, code: i32) -> Said {
        let (verdict, reason) = match self {
            Self::Change(place) => (Verdict::Failed, format!("did not build: exit code {code}, {place}")),
            Self::Environment(Cause { name, remedy, .. }) => {
                (Verdict::Error, format!("exit code {code} before any case: {name}; {remedy}"))
            }
            Self::AskBase(_) => (Verdict::Error, format!("exit code {code} before any case was counted")),
        };
        (verdict, Some(reason))
    }
}

fn relative_to<'a>(root: &Path, path: &'a str) -> &'a str {
    let below =
        root.to_str().and_then(|root| path.strip_prefix(root)).map(|path| path.trim_start_matches('/'));
    below.unwrap_or_else(|| path.trim_start_matches("./"))
}

/// True where a log's path is a file that was shown; tools write it from the folder they work in.
fn is_shown(path: &str, shown: &[TreeFile]) -> bool {
    let path = path.as_bytes();
    let ends = |file: &TreeFile| {
        let whole = file.path.as_bytes();
        whole.strip_suffix(path).is_some_and(|folder| folder.is_empty() || folder.ends_with(b"/"))
    };
    !path.is_empty() && shown.iter().any(ends)
}
