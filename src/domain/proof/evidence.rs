//! Evidence: one record of one verifier run or of one person's word, and the digests that decide for what it
//! counts.
//!
//! A record counts where its key equals the key that is computed now; nothing else makes it fresh, and
//! nothing stores that it is. The key covers the requirement's words, the verifier with everything that
//! judges, the files that the verdict depends on, and the platform. The harness alone makes records; they
//! live in the ledger.

use crate::domain::contract::Kind;
use crate::domain::contract::clause::Clause;
use crate::domain::contract::policy::{BaseRuns, Flaky, GoneCases};
use crate::domain::proof::listing::{InputFile, listing_differences};
use crate::domain::proof::verdict::{Checks, Verdict};
use crate::domain::value::digest::{ObjectId, Sha256};
use crate::domain::value::scope::Scope;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The `schema` of a record.
pub const SCHEMA: &str = "git-tender/evidence/v1";
/// The platform of what does not depend on one: a person's word, built-in verifiers.
pub const ANY_PLATFORM: &str = "any";
/// Number of findings that a record keeps.
pub const MOST_FINDINGS: usize = 200;

/// The digests that a record is bound to. Two keys are the same where every part is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EvidenceKey {
    /// Digest of the requirement's text.
    pub requirement: Sha256,
    /// Digest of the verifier's [`Identity`].
    pub verifier: Sha256,
    /// Digest of the folders of files that it depends on ([`super::listing::folder_digest`]), with what it is
    /// told of the change where it is told anything; of the candidate's manifest and tree where the verifier
    /// has no listing.
    pub inputs: Sha256,
    /// Operating system and architecture, or [`ANY_PLATFORM`].
    pub platform: String,
}

impl EvidenceKey {
    /// The digest that the ledger is searched by.
    pub fn digest(&self) -> Sha256 {
        Sha256::of_json(self)
    }

    /// The key of the same run where its verifier is told of no requirement: whoever asks, it says the same.
    pub fn for_any_requirement(&self) -> Self {
        Self { requirement: Sha256::of(b""), ..self.clone() }
    }

    /// True where both are keys of one run, whatever requirement it is to show.
    pub fn is_same_run(&self, other: &Self) -> bool {
        (self.verifier, self.inputs, &self.platform) == (other.verifier, other.inputs, &other.platform)
    }
}

/// A program that a verifier uses, by its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// The name that is looked for on `PATH`.
    pub name: String,
    /// The sha256 of the file that was found.
    pub sha256: Sha256,
    /// Digest of the probe's output; `None` where there is no probe.
    pub probe: Option<Sha256>,
}

/// Everything that judges: the verifier's digest is taken of this.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Identity {
    /// The bytes of the manifest; of the parameters where the verifier is built in.
    pub manifest: Sha256,
    /// The argument vector as written.
    pub argv: Vec<String>,
    /// The verifier's own files, from where the manifest came from.
    pub closure: Vec<InputFile>,
    pub tools: Vec<Tool>,
    /// The digests of the passed variables' values; `None` for one that is not set.
    pub env: BTreeMap<String, Option<Sha256>>,
    /// The digests of what it may read beside the tree, and of the configuration above its slot; `None` for
    /// what is too large, or a store, and so no part of the key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub read: BTreeMap<String, Option<Sha256>>,
    /// Settings and filter drivers that decide, beside the tree, how bytes are checked out.
    pub checkout: Vec<String>,
    /// The profile of the confinement.
    pub sandbox: String,
    pub tender_version: String,
}

impl Identity {
    /// What is read beside the tree and is in no key, as the manifest names it.
    pub fn not_in_key(&self) -> Vec<String> {
        let unknown = self.read.iter().filter(|(_, digest)| digest.is_none());
        unknown.map(|(entry, _)| entry.clone()).collect()
    }

    /// Of what a person or git-tender itself judges by.
    pub fn by_hand(manifest: Sha256, sandbox: &str, tender_version: &str) -> Self {
        Self {
            manifest,
            argv: Vec::new(),
            closure: Vec::new(),
            tools: Vec::new(),
            env: BTreeMap::new(),
            read: BTreeMap::new(),
            checkout: Vec::new(),
            sandbox: sandbox.to_owned(),
            tender_version: tender_version.to_owned(),
        }
    }

    pub fn digest(&self) -> Sha256 {
        Sha256::of_json(self)
    }

    /// The differences, each in a few words.
    pub fn differences_from(&self, before: &Identity) -> Vec<String> {
        let mut found = Vec::new();
        if self.manifest != before.manifest {
            found.push("the manifest changed".to_owned());
        }
        if self.argv != before.argv {
            found.push("the command changed".to_owned());
        }
        found.extend(
            listing_differences(&before.closure, &self.closure).into_iter().map(|d| format!("closure: {d}")),
        );
        found.extend(self.tool_differences(before));
        for (name, value) in &self.env {
            if before.env.get(name) != Some(value) {
                found.push(format!("the variable {name} changed"));
            }
        }
        found.extend(
            before
                .env
                .keys()
                .filter(|name| !self.env.contains_key(*name))
                .map(|name| format!("the variable {name} is no longer passed")),
        );
        let read = |identity: &Identity, path: &str| identity.read.get(path).copied();
        let paths: std::collections::BTreeSet<&String> = self.read.keys().chain(before.read.keys()).collect();
        let changed = paths.into_iter().filter(|path| read(self, path) != read(before, path));
        found.extend(changed.map(|path| format!("{path}, which it reads, changed")));
        if self.checkout != before.checkout {
            found.push("the settings of the checkout changed".to_owned());
        }
        if self.sandbox != before.sandbox {
            found.push(format!("the sandbox was {}, it is {}", before.sandbox, self.sandbox));
        }
        if self.tender_version != before.tender_version {
            found.push(format!("git-tender was {}, it is {}", before.tender_version, self.tender_version));
        }
        found
    }

    fn tool_differences(&self, before: &Identity) -> Vec<String> {
        let mut found = Vec::new();
        for tool in &self.tools {
            match before.tools.iter().find(|old| old.name == tool.name) {
                Some(old) if old == tool => {}
                Some(_) => found.push(format!("the tool {} changed", tool.name)),
                None => found.push(format!("the tool {} is new", tool.name)),
            }
        }
        let gone = before.tools.iter().filter(|old| !self.tools.iter().any(|tool| tool.name == old.name));
        found.extend(gone.map(|old| format!("the tool {} is no longer used", old.name)));
        found
    }
}

/// The source of a row's verdict, as far as that is known without running anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "is")]
pub enum Source {
    Command,
    /// A verifier of git-tender's own.
    Builtin,
    Manual,
    /// Protected paths are touched, or a verifier is told otherwise how to judge: a person attests it.
    Protected {
        /// What it is, a clause each; empty in rows of before it was told.
        #[serde(default)]
        why: Vec<String>,
    },
    /// The contract forbids the verifier.
    Forbidden,
    /// The contract does not name it among the allowed ones.
    NotAllowed,
    /// Its manifest is not in the base commit, but there.
    OnlyIn {
        /// The place in words.
        place: String,
    },
    /// The change is none of its business, or took away what it looks at.
    NothingToSee {
        /// A sentence that says why.
        why: String,
    },
    /// A program that it needs is not here.
    Missing {
        /// A sentence that says what is missing.
        what: String,
    },
}

/// Says if an earlier pass may count again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reuse {
    /// An earlier pass counts for the same key.
    SameInputs,
    /// Only for the candidate that it was made for, and `verify` makes it anew.
    Never,
}

/// The keys of runs on the base that differ where there is a case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RepairKeys {
    /// Of the base as it is.
    pub base: EvidenceKey,
    /// Of the base without any file of the case.
    pub without_case: EvidenceKey,
}

fn yes() -> bool {
    true
}

/// One row, with everything that decides whether a record counts for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Observed {
    /// The claim that has to be shown.
    pub clause: Clause,
    /// The title of the verifier; shown, and part of no key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    pub source: Source,
    /// The key that a record must have; `None` where nothing can be shown now.
    pub key: Option<EvidenceKey>,
    /// The identity that the key's verifier digest is taken of.
    pub identity: Option<Identity>,
    /// The stored [`super::listing::Listing`] that the key's input digest belongs to.
    pub listing: Option<Sha256>,
    /// The key of a run on the base (for a repair: with the case); `None` where no base run can be. It is for
    /// any requirement, unless the verifier is told of them.
    pub base_key: Option<EvidenceKey>,
    /// The keys of the other runs on the base that a repair may need; `None` where it is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair_keys: Option<RepairKeys>,
    /// Whether it is run on the base where no repair asks for that.
    #[serde(default)]
    pub base_runs: BaseRuns,
    /// False where the names of its cases are not stable, so that nothing is compared.
    #[serde(default = "yes")]
    pub compares_cases: bool,
    /// True where the verifier counts cases.
    pub counts: bool,
    /// Says if an earlier pass counts.
    pub reuse: Reuse,
    /// The candidate touches what judges it.
    pub judge_changed: bool,
    /// Those patterns of its inputs that name no file of the candidate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dead_inputs: Vec<String>,
}

/// All that is known of a candidate's rows at one moment. Together with records it gives the verdicts, so it
/// is recorded whenever it is taken, and a report needs nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Observation {
    pub task: String,
    pub candidate: u32,
    pub contract_version: u32,
    pub manifest_sha256: Sha256,
    pub kind: Kind,
    /// The policy's rule for flaky runs.
    pub flaky: Flaky,
    /// The policy's rule for cases that do not run any more.
    #[serde(default)]
    pub gone_cases: GoneCases,
    /// Where the case of a repair lies.
    #[serde(default, skip_serializing_if = "Scope::is_empty")]
    pub case: Scope,
    /// The rows in the order in which they are shown.
    pub rows: Vec<Observed>,
}

/// The kind of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceKind {
    /// A run on the candidate.
    Run,
    /// A run on the base, with the case of a repair.
    BaseRun,
    Attestation,
}

/// The subject of a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// The candidate's tree; for a base run the base's, without the case.
    pub tree: ObjectId,
    /// The tree that the candidate was made against.
    pub base_tree: ObjectId,
    pub manifest_sha256: Sha256,
}

/// Something that a run said about a place.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The file, as the verifier wrote it.
    pub path: Option<String>,
    pub line: Option<u64>,
    pub column: Option<u64>,
    /// `error`, `warning`, `note`.
    pub level: String,
    /// The rule's or the case's name.
    pub rule: Option<String>,
    pub message: String,
}

/// One start of the verifier's command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    pub outcome: Verdict,
    /// The reason, where it is no pass.
    pub reason: Option<String>,
    /// Exit code, where it ended by itself.
    pub exit_code: Option<i32>,
    /// Signal, where one ended it.
    pub signal: Option<i32>,
    pub checks: Option<Checks>,
    /// The stored log of standard output.
    pub stdout: Option<Sha256>,
    /// The stored log of standard error.
    pub stderr: Option<Sha256>,
    /// True where a log was cut at its cap.
    pub truncated: bool,
    /// Number of bytes of standard output, where not all of them are in the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout_total: Option<u64>,
    /// The same of standard error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr_total: Option<u64>,
    pub milliseconds: u64,
}

/// A file that a run made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Produced {
    /// As the manifest names it.
    pub path: String,
    pub sha256: Sha256,
    pub bytes: u64,
}

/// A person's word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attestation {
    /// The person, as git knows them.
    pub person: String,
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    /// [`SCHEMA`].
    pub schema: String,
    pub kind: EvidenceKind,
    /// Id of the run; the rows that one run shows share it.
    pub run: String,
    pub nonce: String,
    /// The task it was made for.
    pub task: String,
    /// The candidate it was made for.
    pub candidate: u32,
    pub contract_version: u32,
    pub requirement: String,
    pub verifier: String,
    pub subject: Subject,
    /// The key that it is bound to.
    pub key: EvidenceKey,
    pub identity: Identity,
    /// The stored [`super::listing::Listing`] of what it depended on.
    pub listing: Option<Sha256>,
    /// `passed`, `failed`, `not_run` or `error`.
    pub outcome: Verdict,
    /// The reason, where it is no pass.
    pub reason: Option<String>,
    /// The counted cases; `None` where nothing counts.
    pub checks: Option<Checks>,
    /// The stored list of the cases' names and outcomes; `None` where nothing counts, or what counts names
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cases: Option<Sha256>,
    /// It failed and passed, within this run.
    pub flaky: bool,
    /// It began with scratch that another candidate of the same task may have written, as runs of earlier
    /// versions did: it counts for that task only.
    #[serde(default)]
    pub warm: bool,
    /// It was asked for to clear what is flaky; only such passes can.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub clearing: bool,
    /// Every start of the command; empty where no process ran.
    pub attempts: Vec<Attempt>,
    pub outputs: Vec<Produced>,
    /// Its findings, at most [`MOST_FINDINGS`].
    pub findings: Vec<Finding>,
    pub started_at: String,
    pub finished_at: String,
    /// The confinement that was enforced.
    pub sandbox: String,
    pub attestation: Option<Attestation>,
}

impl Evidence {
    /// The digest of the record: sha256 of its canonical JSON.
    pub fn digest(&self) -> Sha256 {
        Sha256::of_json(self)
    }

    /// True where a log of it was cut.
    pub fn is_truncated(&self) -> bool {
        self.attempts.iter().any(|attempt| attempt.truncated)
    }
}

/// A digest as reports show it.
pub fn shown_digest(digest: &Sha256) -> String {
    format!("sha256:{digest}")
}
