//! What every operation works on: the repository that was meant, its store, and who asks. The ways into a
//! task are in [`super::enter`].

use crate::domain::ledger::action::Actor;
use crate::domain::ledger::record::Opened;
use crate::domain::value::repo_path::RepoPath;
use crate::domain::value::scope::pattern_from_typed;
use crate::error::presence::is_folder;
use crate::error::{Code, Failure, Result};
use crate::git::materialise::HeldFiles;
use crate::git::{Quarantine, Repository};
use crate::process::Secrets;
use crate::store::layout::replace_private_unsynced;
use crate::store::{Blobs, Layout, Ledger};
use crate::task::action::{ActionOrigin, RunningAction};
use crate::verifier::known_secrets;
use serde::Serialize;
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// How a person is asked to confirm. The command line asks on the controlling terminal.
pub trait Person: std::fmt::Debug {
    /// Puts the question and waits for the answer; `None` where no person can be reached.
    fn confirm(&self, question: &str) -> Option<bool>;

    /// True where the repository's owner has said that calls without a terminal count as a person's.
    fn has_consented(&self) -> bool;

    /// Shows lines, puts a question of several answers and gives what was typed; `None` where no person is at
    /// a terminal. Nobody's consent stands for such an answer.
    fn choose(&self, lines: &[String], question: &str) -> Option<String>;

    /// True where a person is at a terminal.
    fn is_at_terminal(&self) -> bool;
}

/// Where no person can be reached, and none has consented beforehand.
#[derive(Debug)]
pub struct Nobody;

impl Person for Nobody {
    fn confirm(&self, _question: &str) -> Option<bool> {
        None
    }

    fn has_consented(&self) -> bool {
        false
    }

    fn choose(&self, _lines: &[String], _question: &str) -> Option<String> {
        None
    }

    fn is_at_terminal(&self) -> bool {
        false
    }
}

/// Progress of a long step: done and total.
pub type Progress<'a> = &'a dyn Fn(u64, u64);

/// Asked between steps, and many times a second while a program runs: true once whoever called wants no
/// answer any more.
pub type Stop<'a> = &'a (dyn Fn() -> bool + Sync);

/// What a process found out about itself and its machine.
#[derive(Debug, Clone)]
pub struct Machine {
    /// This program's file, to start the supervising helper.
    pub program: PathBuf,
    pub vars: Vec<(OsString, OsString)>,
    pub home: Option<PathBuf>,
    pub cache: Option<PathBuf>,
    /// The user does without confinement, where the contract lets that through.
    pub no_sandbox: bool,
    /// What of the environment must be seen nowhere, once somebody has asked for it.
    secrets: OnceLock<Secrets>,
}

impl Machine {
    /// By what a process found out.
    pub fn new(program: PathBuf, vars: Vec<(OsString, OsString)>) -> Self {
        Self { program, vars, home: None, cache: None, no_sandbox: false, secrets: OnceLock::new() }
    }
}

/// The repository, its store and the caller.
#[derive(Debug)]
pub struct Session {
    /// The repository that was meant.
    pub repository: Repository,
    pub layout: Layout,
    pub actor: Actor,
    /// The channel that it comes by: `cli` or `mcp`.
    pub origin: String,
    pub machine: Machine,
    /// A way to a person.
    pub person: Box<dyn Person>,
}

impl Session {
    /// The same repository for a worker's calls: whatever terminal or consent there is, nobody of it is a
    /// person.
    pub fn for_a_worker(self) -> Self {
        Self { actor: Actor::Agent, origin: "mcp".to_owned(), person: Box::new(Nobody), ..self }
    }

    /// The values that must be seen nowhere, made ready to be looked for.
    pub fn secrets(&self) -> &Secrets {
        self.machine.secrets.get_or_init(|| Secrets::new(&secrets(self)))
    }

    pub fn blobs(&self) -> Blobs {
        Blobs::new(&self.layout)
    }

    pub fn quarantine(&self, task: &str) -> Quarantine {
        Quarantine {
            objects: self.layout.task_objects(task),
            repository_objects: self.repository.objects_dir(),
        }
    }

    /// The ledger, if the repository has one.
    pub fn ledger(&self) -> Result<Option<Ledger>> {
        Ledger::open(&self.layout)
    }

    /// The repository as seen from the live tree that the task was opened from.
    pub fn live_repository(&self, opened: &Opened) -> Result<Repository> {
        let top = Path::new(&opened.home.top);
        if !is_folder(top)? {
            return Err(Failure::new(Code::NotFound, format!("the live tree {} is gone", top.display()))
                .subject(opened.home.top.clone())
                .remedy(
                    "Put it back, or take the patch elsewhere.",
                    ["git", "tender", "diff", &opened.contract.task_id],
                ));
        }
        let (git_dir, here) = (Path::new(&opened.home.git_dir), &self.repository);
        if here.git_dir() == git_dir && here.top().is_ok_and(|known| known == top) {
            return Ok(here.clone());
        }
        Repository::at_git_dir(here.environment(), git_dir, top, None)
    }

    /// A new action of whoever called, on the channel that they come by.
    pub fn action(
        &self,
        actor: Actor,
        task: &str,
        tool: &str,
        params: &impl Serialize,
        basis: Value,
    ) -> RunningAction {
        let channel = ActionOrigin { origin: &self.origin, secrets: self.secrets() };
        RunningAction::new(actor, Some(task), tool, params, basis, channel)
    }

    /// What we wrote into a task's worktree, as far as it is noted. Without the note every file is read.
    pub fn held(&self, task: &str) -> Option<HeldFiles> {
        serde_json::from_slice(&std::fs::read(self.layout.task_held(task)).ok()?).ok()
    }

    /// Notes what we wrote into a task's worktree. Losing it costs reading, so nobody waits for the disk.
    pub fn keep_held(&self, task: &str, held: &HeldFiles) -> Result<()> {
        let held = serde_json::to_vec(held)
            .map_err(|e| Failure::internal(format!("the stat cache cannot be written: {e}")))?;
        replace_private_unsynced(&self.layout.task_held(task), &held)
    }
}

/// Values that must be seen nowhere.
pub fn secrets(session: &Session) -> Vec<Vec<u8>> {
    known_secrets(&session.layout, &session.machine.vars)
}

/// A text of a worker's without any value that must be seen nowhere.
pub fn redacted(session: &Session, text: &str) -> String {
    session.secrets().redact_text(text)
}

/// A scope that a person typed in `folder`, in patterns from the top. What is a folder there means all
/// beneath it.
pub fn typed_scope(session: &Session, typed: &[String], folder: &Path) -> Result<Vec<String>> {
    let top = session.repository.top()?;
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let folder = folder.strip_prefix(top).ok().and_then(Path::to_str).unwrap_or_default();
    let pattern = |typed: &String| {
        let pattern = pattern_from_typed(typed, folder);
        let is_folder = RepoPath::new(pattern.as_str()).is_ok() && top.join(&pattern).is_dir();
        if is_folder && !pattern.ends_with('/') { format!("{pattern}/") } else { pattern }
    };
    Ok(typed.iter().map(pattern).collect())
}

/// A path as text; one that is no UTF-8 cannot stand in JSON that other people read.
pub fn path_text(path: &Path) -> Result<String> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        Failure::new(
            Code::GitUnsupported,
            format!("the folder {} has a name that is not UTF-8", path.display()),
        )
        .subject(path.display().to_string())
    })
}

/// The refusal of what a person has to confirm and nobody did. `call` is the command that asks again.
pub fn unconfirmed<S: Into<String>>(what: &str, subject: &str, call: impl IntoIterator<Item = S>) -> Failure {
    Failure::new(Code::PermissionDenied, format!("{what}, and no person confirmed it")).subject(subject).remedy(
        "Run it in a terminal and type yes. Who works without one may set tender.approveWithoutTerminal in this repository's git configuration.",
        call,
    )
}
