//! Verifiers: what a repository brings to judge a change, and the runs that give evidence.
//!
//! - Manifests and what belongs to them come from the base commit or the user's private layer, never from the
//!   change (`load`). What a verifier sees is a slot with exactly its inputs from the candidate and its
//!   closure from the base (`view`); what it depends on is digested from the same list, so nothing can be
//!   reused falsely (`observe`).
//! - A run is judged by everything that has to hold at once (`outcome`): how it ended, what it counted, what
//!   it wrote, what it left behind. A pass needs all of it; the first thing that is missing is the reason.
//! - Nothing here decides whether a candidate may be delivered: it makes records, and
//!   [`crate::domain::proof::judge`] reads them.

mod attempt;
mod blame;
pub mod builtin;
mod cache;
mod command_line;
mod confinement;
mod folders;
mod foreign;
pub mod formats;
pub mod hook_config;
pub mod inputs;
mod judge;
mod listings;
pub mod load;
pub mod logs;
pub mod manifest;
pub mod needs;
mod observe;
mod outcome;
mod outputs;
mod protocol;
mod reads;
mod run;
mod runners;
mod scripts;
mod seen;
mod settings;
mod shadows;
pub mod shipped;
#[cfg(test)]
mod tests;
mod tools;
mod view;
mod watched;

pub use load::Verifiers;
pub use observe::observe;
pub use run::{mend, run};
pub use tools::known_secrets;
pub use view::depends_on;

use crate::domain::change::patch::Candidate;
use crate::domain::contract::Contract;
use crate::domain::contract::policy::Effective;
use crate::domain::value::digest::{ObjectId, Sha256};
use crate::error::Failure;
use crate::git::{Quarantine, Repository};
use crate::process::SandboxGrant;
use crate::store::{Blobs, Layout};
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

/// Why a run ends before its time.
#[derive(Debug, Clone)]
pub enum RunHalt {
    /// Nobody wants it any more, and so there is no record of it.
    Unwanted(Failure),
    /// A budget is spent, in words. That is a record: an error.
    Spent(String),
}

/// Whoever watches a run: hears how many bytes its programs have printed so far, and says whether it has to
/// end.
pub type Watch<'a> = &'a dyn Fn(u64) -> Option<RunHalt>;

/// What is judged, and by which rules.
#[derive(Debug, Clone, Copy)]
pub struct VerificationSubject<'a> {
    pub repository: &'a Repository,
    /// Where the candidate's objects lie.
    pub quarantine: Option<&'a Quarantine>,
    /// The tree of the base commit, where verifiers come from; not the base's where that is a capture of live
    /// work.
    pub base_commit_tree: &'a ObjectId,
    pub task: &'a str,
    pub candidate: &'a Candidate,
    pub contract: &'a Contract,
    /// The digest that it is sealed with.
    pub contract_sha256: Sha256,
    /// The contract within the policy; it protects the verifiers' closures too.
    pub effective: &'a Effective,
    /// Filter drivers that may run while a slot is filled.
    pub filters: &'a [String],
}

/// What makes one run tell itself from all others.
#[derive(Debug, Clone)]
pub struct Ticket {
    /// Its id: the id of the action that it is.
    pub run: String,
    /// Random; ties outputs to this run.
    pub nonce: String,
    /// It was asked for to clear what is flaky.
    pub clearing: bool,
}

/// The machine that verifiers run on.
#[derive(Clone, Copy)]
pub struct Host<'a> {
    /// This program, to start the supervisor.
    pub program: &'a Path,
    pub vars: &'a [(OsString, OsString)],
    /// The user's home directory; `read` entries are looked up in it.
    pub home: Option<&'a Path>,
    pub layout: &'a Layout,
    pub blobs: &'a Blobs,
    /// Where slots lie: a directory of ours outside of any repository.
    pub slots: &'a Path,
    /// What runs are confined to.
    pub sandbox: &'a SandboxGrant,
    /// Hears what is being done, of how much how much is done.
    pub progress: &'a dyn Fn(&str, u64, u64),
    /// Asked many times a second while a program runs.
    pub watch: Watch<'a>,
    /// How long a run may take at most, as far as that is known when it begins.
    pub most: Option<Duration>,
}

impl Host<'_> {
    /// The value of one of the caller's variables.
    fn var(&self, name: &str) -> Option<&OsStr> {
        self.vars.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_os_str())
    }
}

impl std::fmt::Debug for Host<'_> {
    /// Shows no values of variables.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host")
            .field("program", &self.program)
            .field("slots", &self.slots)
            .finish_non_exhaustive()
    }
}
