//! The command that makes a worktree ready, such as one that installs packages. What it makes is kept by
//! what it was made from: the command, its program, and the base's files that it names as its inputs.
//!
//! It runs with the user's own home, since it stands for what the user would type there. What it says is told
//! where it fails; the task is there all the same.

use super::super::Session;
use super::super::session::{Progress, secrets};
use crate::domain::contract::worktree_rules::WorktreeSetup;
use crate::domain::ledger::brought::{BroughtEntry, BroughtKind, BroughtPlaces, SetupEnd};
use crate::domain::value::digest::Sha256;
use crate::domain::value::repo_path::RepoPath;
use crate::error::Result;
use crate::git::tree;
use crate::git::worktree_extras::{
    BroughtExtras, ExtrasJob, copy_paths, digest_places, find_changed_files, ignored_in_worktree,
};
use crate::process::{
    self, FinishedRun, Invocation, ProgramEnd, base_environment, find_program, network_variables,
};
use crate::store::setup_cache::SetupCache;
use serde_json::json;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

/// How long it may take.
const LONGEST: Duration = Duration::from_secs(3600);
/// How much of what it prints is kept.
const OUTPUT: u64 = 64 << 10;
/// How many of its last lines are told where it fails.
const TOLD_LINES: usize = 3;

/// A set-up that is ready to run.
#[derive(Debug)]
pub(super) struct WorktreeSetupRun<'a> {
    session: &'a Session,
    job: ExtrasJob<'a>,
    setup: &'a WorktreeSetup,
    /// All that its result depends on.
    pub(super) made_from: Sha256,
    cache: SetupCache,
}

/// How it ended.
#[derive(Debug)]
pub(super) struct SetUp {
    pub(super) end: SetupEnd,
    pub(super) notes: Vec<String>,
}

impl<'a> WorktreeSetupRun<'a> {
    pub(super) fn prepare(
        session: &'a Session,
        job: ExtrasJob<'a>,
        setup: &'a WorktreeSetup,
    ) -> Result<Self> {
        let objects = job.repository.object_reader(Some(job.quarantine))?;
        let files = tree::list_files(&objects, job.tree)?.into_iter();
        let files: Vec<_> = files
            .filter(|file| setup.inputs.matches_path(&file.path))
            .map(|file| (file.path, file.mode, file.id))
            .collect();
        let program = setup.command.first().map(|name| stamp_of_program(session, job.worktree, name));
        let made_from = Sha256::of_json(&json!({
            "command": setup.command, "network": setup.network, "files": files, "program": program,
        }));
        let cache = SetupCache::new(&session.layout, made_from);
        Ok(Self { session, job, setup, made_from, cache })
    }

    /// What an earlier run made: it need not be copied from elsewhere.
    pub(super) fn kept_places(&self) -> Option<Vec<BroughtEntry>> {
        let places = self.cache.find_places()?.into_iter();
        Some(places.map(|path| BroughtEntry { path, kind: BroughtKind::Folder }).collect())
    }

    /// Takes what an earlier run made, or runs it.
    pub(super) fn set_up(&self, extras: &mut BroughtExtras, progress: Progress<'_>) -> Result<SetUp> {
        if let Some(places) = self.cache.find_places() {
            copy_paths(&self.cache.tree_folder(), self.job.worktree, places, extras, progress)?;
            return Ok(SetUp { end: SetupEnd::Cached, notes: Vec::new() });
        }
        let copied: Vec<RepoPath> = extras
            .entries
            .iter()
            .filter(|entry| entry.kind == BroughtKind::Folder)
            .map(|entry| entry.path.clone())
            .collect();
        let before = (ignored_in_worktree(self.job)?, digest_places(self.job.worktree, &copied)?);
        let finished = self.run_command()?;
        let mut notes = Vec::new();
        let is_done = finished.end == ProgramEnd::Exited(0);
        if !is_done {
            notes.push(self.describe_failure(&finished));
        }
        let after = digest_places(self.job.worktree, &copied)?;
        let rewritten = copied.iter().zip(before.1.iter().zip(&after)).filter(|(_, (was, is))| was != is);
        let rewritten: BTreeSet<RepoPath> = rewritten.map(|(path, _)| path.clone()).collect();
        let made = self.note_what_it_made(&before.0, extras)?;
        let altered = find_changed_files(self.job)?;
        if !altered.is_empty() {
            notes.push(format!(
                "the worktree's setup changed files of the base, which will be part of what is submitted: {}",
                shown_paths(&altered)
            ));
        }
        if !is_done || !altered.is_empty() {
            return Ok(SetUp { end: SetupEnd::Failed, notes });
        }
        let places: Vec<RepoPath> = made.union(&rewritten).cloned().collect();
        self.cache.keep_result(&places, |folder| {
            let mut kept = BroughtExtras::default();
            copy_paths(self.job.worktree, folder, places.clone(), &mut kept, progress)
        })?;
        Ok(SetUp { end: SetupEnd::Ran, notes })
    }

    /// What is ignored by now and was not before becomes a place of what was brought.
    fn note_what_it_made(
        &self,
        before: &BTreeSet<RepoPath>,
        extras: &mut BroughtExtras,
    ) -> Result<BTreeSet<RepoPath>> {
        let known = BroughtPlaces(extras.entries.clone());
        let now = ignored_in_worktree(self.job)?;
        let made: BTreeSet<RepoPath> =
            now.into_iter().filter(|path| !before.contains(path) && !known.hold(path)).collect();
        for path in &made {
            let place = self.job.worktree.join(path.as_path());
            let kind = match place.symlink_metadata() {
                Ok(found) if found.is_dir() => BroughtKind::Folder,
                // Nobody else has it, and the set-up makes it again.
                _ => BroughtKind::Link,
            };
            extras.entries.push(BroughtEntry { path: path.clone(), kind });
        }
        Ok(made)
    }

    fn run_command(&self) -> Result<FinishedRun> {
        let machine = &self.session.machine;
        let var = |name: &str| machine.vars.iter().find(|(key, _)| key == name).map(|(_, v)| v.as_os_str());
        let home = machine.home.as_deref().unwrap_or(Path::new("/nonexistent"));
        let tmp = var("TMPDIR").filter(|tmp| Path::new(tmp).is_absolute()).unwrap_or(OsStr::new("/tmp"));
        let path = var("PATH").unwrap_or_default();
        let mut command = Invocation::new(&self.setup.command, self.job.worktree);
        command.env = base_environment(path, home, Path::new(tmp), var("LANG"), var("TZ"));
        if self.setup.network {
            command.env.extend(network_variables(&machine.vars));
        }
        command.timeout = LONGEST;
        command.output_cap = OUTPUT;
        command.secrets = secrets(self.session);
        process::run_program(&machine.program, &command, &|_| true)
    }

    fn describe_failure(&self, finished: &FinishedRun) -> String {
        let ended = match &finished.end {
            ProgramEnd::Exited(code) => format!("exit code {code}"),
            ProgramEnd::NotStarted { message, .. } => message.clone(),
            other => format!("{other:?}"),
        };
        let text = [finished.stdout.bytes.as_slice(), &finished.stderr.bytes].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let last = lines.iter().rev().take(TOLD_LINES).rev().copied().collect::<Vec<_>>().join(" | ");
        let said = if last.is_empty() { String::new() } else { format!(": {last}") };
        format!(
            "the worktree's setup `{}` failed ({ended}){said}; run it in the worktree once it can work",
            self.setup.command.join(" "),
        )
    }
}

/// Which program a name means, and when that was written.
fn stamp_of_program(session: &Session, worktree: &Path, name: &str) -> serde_json::Value {
    let path = session.machine.vars.iter().find(|(key, _)| key == "PATH").map(|(_, value)| value.as_os_str());
    let Ok(found) = find_program(OsStr::new(name), worktree, path) else { return json!(name) };
    let real = found.canonicalize().unwrap_or(found);
    if real.starts_with(worktree) {
        // It is a file of the base; a worktree's own place and times say nothing.
        return json!(name);
    }
    use std::os::unix::fs::MetadataExt;
    let stamp = real.metadata().map(|found| (found.len(), found.mtime(), found.ino())).ok();
    json!([real.display().to_string(), stamp])
}

fn shown_paths(paths: &[RepoPath]) -> String {
    let shown: Vec<String> = paths.iter().take(3).map(ToString::to_string).collect();
    let rest = paths.len().saturating_sub(3);
    if rest == 0 { shown.join(", ") } else { format!("{} and {rest} more", shown.join(", ")) }
}
