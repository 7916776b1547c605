//! `gc`: removes what ended tasks left, where the ledger proves that it is ours and that nothing would be
//! lost. Whatever is in doubt stays, with the reason.

use super::Session;
use crate::domain::ledger::objects::{Collection, KeptCommit, KeptTask};
use crate::domain::ledger::record::Record;
use crate::domain::value::digest::{Mode, ObjectId, Sha256};
use crate::domain::value::repo_path::RepoPath;
use crate::error::presence::is_present;
use crate::error::{Code, Failure, Result};
use crate::git::limits::CandidateLimits;
use crate::git::registration::admin_of;
use crate::git::submodule::module_with_own_commits;
use crate::git::{capture, keep, materialise, tree, worktree};
use crate::store::Ledger;
use crate::store::lock::LockGuard;
use crate::store::setup_cache::remove_unused_setups;
use crate::task::candidate;
use crate::task::enter::require_own_store;
use crate::task::furnish::{brought_places, find_unbrought};
use crate::task::held::TaskWrite;
use crate::task::unfinished::{remove_private, take_back};
use crate::task::view::load;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;

pub fn gc(session: &Session) -> Result<Collection> {
    let mut collection = Collection {
        schema: "git-tender/gc/v1",
        removed: Vec::new(),
        kept: Vec::new(),
        commits: Vec::new(),
        setups: 0,
    };
    let mut used_setups: BTreeSet<Sha256> = BTreeSet::new();
    require_own_store(session)?;
    let Some(ids) = session.ledger()?.map(|ledger| ledger.tasks()).transpose()? else {
        return Ok(collection);
    };
    for id in ids {
        let view = session.ledger()?.map(|ledger| load(&ledger, &id)).transpose()?.flatten();
        let Some(view) = view.filter(|view| !view.collected) else { continue };
        let kept = |reason: String| KeptTask { task_id: id.clone(), reason };
        if !view.has_ended() {
            let brought = view.opened_terms().ok().and_then(|opened| opened.brought.as_ref());
            used_setups.extend(brought.and_then(|brought| brought.made_from));
            collection.kept.push(kept("it has not ended".to_owned()));
            continue;
        }
        match collect(session, &id) {
            Ok(commit) => {
                collection.commits.extend(commit);
                collection.removed.push(id);
            }
            Err(failure) => collection.kept.push(kept(failure.message().to_owned())),
        }
    }
    let ledger = Ledger::create(&session.layout)?;
    let unfinished = sweep_unfinished(session, &ledger)?;
    collection.removed.extend(unfinished);
    collection.setups = remove_unused_setups(&session.layout, &used_setups)?;
    ledger.shorten_log(0)?;
    Ok(collection)
}

/// What an `open` left that was cut off before the ledger had the task.
fn sweep_unfinished(session: &Session, ledger: &Ledger) -> Result<Vec<String>> {
    let mut swept = Vec::new();
    for id in session.layout.task_ids()? {
        let quarantine = session.quarantine(&id);
        if load(ledger, &id)?.is_some() || !worktree::is_half_made(&quarantine)? {
            continue;
        }
        // Whoever is opening it just now holds this lock, and is not waited for.
        let Some(_lock) = LockGuard::try_acquire(&session.layout.task_lock(&id))? else { continue };
        if load(ledger, &id)?.is_none() {
            take_back(session, &id)?;
            swept.push(id);
        }
    }
    Ok(swept)
}

fn collect(session: &Session, id: &str) -> Result<Option<KeptCommit>> {
    let mut task = session.write(Some(id))?;
    let worktree = task.view.opened_terms()?.worktree.clone();
    let path = Path::new(&worktree);
    let base = task.view.opened_terms()?.base.commit.clone();
    let mut head = None;
    // One that is gone was removed by somebody, or by a `gc` that was cut off, which had kept its commit
    // before.
    if is_present(path)? {
        nobody_works_there(path)?;
        nothing_is_lost(&task, path)?;
        head = worktree::worktree_head(&session.repository, path)?.filter(|head| *head != base);
    }
    task.act("gc", &json!({ "worktree": worktree }), |task| {
        let kept = match head {
            None => None,
            Some(commit) => Some(KeptCommit {
                task_id: id.to_owned(),
                reference: keep::keep_worker_commit(&session.repository, id, &commit)?,
                commit,
            }),
        };
        worktree::remove_worktree(&session.repository, path, || {
            LockGuard::acquire(&session.layout.worktrees_lock())
        })?;
        keep::drop_refs(&session.repository, &task.view.id)?;
        remove_private(&session.layout.task(&task.view.id))?;
        Ok((Record::Collected, kept))
    })
}

/// The content has to be what was captured last, or what the task started from; ignored files outside of
/// scratch count too.
fn nothing_is_lost(task: &TaskWrite<'_>, worktree: &Path) -> Result<()> {
    let session = task.session;
    let opened = task.view.opened_terms()?;
    let limits = CandidateLimits { allowed: &|_| true, scope: &[], artifact_bytes: None };
    let quarantine = session.quarantine(&task.view.id);
    let now = candidate::worktree(task, limits)?;
    let lost = |what: String| {
        Failure::new(Code::StateInvalid, what)
            .subject(opened.worktree.clone())
            .remedy("Take what you need out of it, or remove it yourself.", ["git", "worktree", "list"])
    };
    if worktree.join(".git").is_dir() {
        return Err(lost(format!("{} has a repository of its own", worktree.display())));
    }
    let files = tree::list_files(&session.repository.object_reader(None)?, &opened.base.tree)?;
    let modules: Vec<ObjectId> =
        files.into_iter().filter(|file| file.mode == Mode::Gitlink).map(|file| file.id).collect();
    if let Some(admin) = admin_of(&session.repository, worktree)?
        && let Some(module) = module_with_own_commits(&admin, &modules)
    {
        let what = format!("the submodule in {} has commits that nobody else has", module.display());
        return Err(lost(what).subject(module.display().to_string()));
    }
    if !task.view.is_known(&now.tree) {
        return Err(lost(format!("{} holds work that was never captured", worktree.display())));
    }
    let ignored = capture::never_captured(&session.repository, &quarantine, worktree, &opened.base.tree)?;
    let scratch = &opened.contract.scratch;
    let places = brought_places(session, opened)?;
    let outside =
        |path: &&RepoPath| !scratch.matches_path(path) && !materialise::covers_folder(scratch, path);
    for path in ignored.iter().filter(outside) {
        if let Some(path) = find_unbrought(worktree, path, &places)? {
            let what = format!("{} holds an ignored file outside of scratch: {path}", worktree.display());
            return Err(lost(what));
        }
    }
    Ok(())
}

/// No process may have its current folder in the worktree.
fn nobody_works_there(worktree: &Path) -> Result<()> {
    let real = worktree.canonicalize().map_err(|e| Failure::io("find", worktree, &e))?;
    let Ok(processes) = std::fs::read_dir("/proc") else { return Ok(()) };
    for process in processes.flatten() {
        let inside = std::fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&real));
        if inside {
            let pid = process.file_name().to_string_lossy().into_owned();
            return Err(Failure::new(
                Code::StateInvalid,
                format!("the process {pid} works in {}", worktree.display()),
            ));
        }
    }
    Ok(())
}
