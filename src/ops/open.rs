//! `open`: seals the contract, fixes the base, makes the worktree.

use super::Session;
use crate::domain::contract::worktree_rules::WorktreeRules;
use crate::domain::contract::{Base, Contract, Kind};
use crate::domain::ledger::record::{BaseState, Home, Opened, Record, Seal};
use crate::domain::ledger::report::TaskObject;
use crate::domain::ledger::task::TaskView;
use crate::domain::value::digest::{ObjectId, Sha256};
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Code, Failure, Result};
use crate::git::anchor::anchor_of_task;
use crate::git::live_difference::count_uncommitted_beneath;
use crate::git::version::require_git;
use crate::git::{live_base, tree, user_index, worktree};
use crate::store::Ledger;
use crate::store::layout::create_private_dir;
use crate::store::lock::LockGuard;
use crate::task::enter::require_own_store;
use crate::task::furnish::{brought_places, forget_brought_lacks, furnish_worktree};
use crate::task::home::note_home;
use crate::task::session::{Progress, path_text};
use crate::task::task_object::{known_task_object, manual_requirements, task_object};
use crate::task::terms::{Terms, find_parent, read_terms};
use crate::task::unfinished::take_back;
use crate::task::view::load;
use crate::task::{recover, tripwire};
use crate::verifier::Verifiers;
use crate::verifier::inputs::check_asked_for;
use serde_json::json;
use std::collections::BTreeSet;

/// Opens a task. The same contract again gives the same task; another one under the same id is refused.
pub fn open(session: &Session, document: &[u8], progress: Progress<'_>) -> Result<TaskObject> {
    open_named(session, document, None, progress)
}

/// `naming` keeps others from taking the same id; it is needed until the ledger has the task's first row.
pub(super) fn open_named(
    session: &Session,
    document: &[u8],
    naming: Option<LockGuard>,
    progress: Progress<'_>,
) -> Result<TaskObject> {
    let contract = Contract::parse_document(document)?;
    let seal = Seal { version: 1, sha256: Contract::seal_document(document) };
    session.repository.top()?;
    require_own_store(session)?;
    require_git(&session.repository)?;
    let known = match session.ledger()? {
        Some(ledger) => load(&ledger, &contract.task_id)?,
        None => None,
    };
    if let Some(view) = known {
        return again(session, &view, &seal);
    }
    drop(Ledger::create(&session.layout)?);
    note_home(session)?;
    let _lock = LockGuard::acquire(&session.layout.task_lock(&contract.task_id))?;
    let known = load(&Ledger::create(&session.layout)?, &contract.task_id)?;
    if let Some(view) = known {
        return again(session, &view, &seal);
    }
    recover::before_writing(session, &contract.task_id)?;
    let prepared = prepare(session, &contract, &seal)?;
    // From here on one connection does it: whoever asks for the ledger before gives it back.
    let mut ledger = Ledger::create(&session.layout)?;
    let basis = json!({ "contract": seal, "policySha256": prepared.opened.effective.policy_sha256 });
    let params = json!({ "contract": seal.sha256 });
    let mut action = session.action(session.actor, &contract.task_id, "open", &params, basis);
    action.dispatch(&mut ledger)?;
    drop(naming);
    if let Err(failure) = session.blobs().put(document) {
        return Err(action.fail(&mut ledger, failure));
    }
    let Prepared { opened, manual, notes, .. } = match make(session, prepared, progress) {
        Ok(prepared) => prepared,
        Err(failure) => {
            let failure = failure.also(take_back(session, &contract.task_id).err());
            return Err(action.fail(&mut ledger, failure));
        }
    };
    let record = Record::Opened(Box::new(opened.clone()));
    ledger.keep_head_at(anchor_of_task(&session.repository, &contract.task_id)?);
    // A parent that has ended meanwhile ends its parts, and would miss one that comes after.
    let recorded = ledger.atomically(|ledger| match find_parent(ledger, &contract) {
        Ok(_) => action.succeed(ledger, &record).map(|_| Ok(())),
        Err(failure) => Ok(Err(failure)),
    })?;
    if let Err(failure) = recorded {
        let failure = failure.also(take_back(session, &contract.task_id).err());
        return Err(action.fail(&mut ledger, failure));
    }
    drop(ledger);
    worktree::mark_made(&session.quarantine(&contract.task_id))?;
    let (_, view) = session.view(Some(&contract.task_id))?;
    Ok(task_object(&contract.task_id, view.state_with(&[]), &opened, manual, notes))
}

/// The same `open` again.
fn again(session: &Session, view: &TaskView, seal: &Seal) -> Result<TaskObject> {
    let opened = view.opened_terms()?;
    // The document that it was opened with stays its name, also once a person has agreed to another version.
    let same = opened.seal.sha256 == seal.sha256 || view.sealed.first() == Some(&seal.sha256);
    if !same {
        return Err(Failure::new(
            Code::StateInvalid,
            format!("the task {} exists already, with another contract", view.id),
        )
        .subject(view.id.clone())
        .expected(opened.seal.sha256, seal.sha256)
        .remedy("Choose another taskId, or cancel the task first.", ["git", "tender", "report", &view.id]));
    }
    known_task_object(session, &view.id)
}

struct Prepared {
    opened: Opened,
    /// What the worktree is to get beside the files of its base.
    rules: WorktreeRules,
    manual: Vec<String>,
    notes: Vec<String>,
}

/// Everything that can be known and refused before anything is made.
fn prepare(session: &Session, contract: &Contract, seal: &Seal) -> Result<Prepared> {
    let repository = &session.repository;
    let base = base_of(session, contract)?;
    let Terms { effective, filters, hooks, narrowed, worktree, verifiers } =
        read_terms(session, contract, base.commit_tree())?;
    let home = Home {
        top: path_text(repository.top()?)?,
        git_dir: path_text(repository.git_dir())?,
        branch: repository.current_branch()?,
    };
    let opened = Opened {
        seal: seal.clone(),
        contract: contract.clone(),
        effective,
        filters,
        narrowed,
        lacks: Default::default(),
        worktree: String::new(),
        index: Sha256::of(b""),
        author: crate::task::effect::refs::before_opening(repository, contract)?,
        sight: None,
        hooks,
        brought: None,
        base,
        home,
    };
    let manual = manual_requirements(contract, &verifiers);
    let mut notes = uncommitted_configuration(session)?;
    notes.extend(look_at_verifiers(session, contract, &verifiers, &opened.base)?);
    Ok(Prepared { opened, rules: worktree, manual, notes })
}

/// What a person should know of the verifiers that a contract asks for, or does not ask for.
fn look_at_verifiers(
    session: &Session,
    contract: &Contract,
    verifiers: &Verifiers,
    base: &BaseState,
) -> Result<Vec<String>> {
    let required = contract.requirements.iter().map(|requirement| &requirement.verifier);
    let asked: BTreeSet<&String> = required.chain(&contract.verification.allowed).collect();
    if asked.is_empty() && contract.kind != Kind::Explore {
        let there: Vec<&str> = verifiers.all().map(|(id, _)| id).collect();
        let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
        return Ok(vec![format!(
            "NOTHING is asked of this task: its change will be delivered unseen; verifiers of this repository: {there}"
        )]);
    }
    let forbidden = &contract.verification.forbidden;
    let mut notes = Vec::new();
    let mut files = None;
    for id in asked.into_iter().filter(|id| !forbidden.contains(id)) {
        let Some(verifier) = verifiers.get(id)? else { continue };
        let files = match &mut files {
            Some(files) => files,
            none => none.insert(paths_of(session, base.commit_tree())?),
        };
        notes.extend(check_asked_for(verifier, files, contract)?);
    }
    Ok(notes)
}

pub(super) fn paths_of(session: &Session, tree: &ObjectId) -> Result<Vec<RepoPath>> {
    let files = tree::list_files(&session.repository.object_reader(None)?, tree)?;
    Ok(files.into_iter().map(|file| file.path).collect())
}

/// The commit and the tree that a contract starts from.
pub(super) fn base_of(session: &Session, contract: &Contract) -> Result<BaseState> {
    let repository = &session.repository;
    let revision = match &contract.base {
        Base::Revision(revision) => revision.as_str(),
        Base::Live => "HEAD",
    };
    let live = contract.base == Base::Live;
    let Some(commit) = repository.resolve_revision(revision, "commit")? else {
        let unborn = revision == "HEAD";
        let why = if unborn { "the branch has no commit yet" } else { "the repository has no such commit" };
        return Err(Failure::new(Code::NotFound, format!("the base {revision:?} cannot be found: {why}"))
            .subject("base")
            .remedy(
                if unborn {
                    "Make a first commit; an empty one will do."
                } else {
                    "Name a commit, a tag or a branch."
                },
                if unborn {
                    vec!["git", "commit", "--allow-empty", "-m", "Start"]
                } else {
                    vec!["git", "log", "--oneline"]
                },
            ));
    };
    let commit_tree = repository
        .resolve_revision(commit.as_str(), "tree")?
        .ok_or_else(|| Failure::internal("a commit without a tree"))?;
    Ok(BaseState { tree: commit_tree.clone(), commit_tree, commit, live })
}

/// Files under `.tender/` that are not committed count for nothing; whoever made them should hear it.
fn uncommitted_configuration(session: &Session) -> Result<Vec<String>> {
    session.repository.top()?;
    let count = count_uncommitted_beneath(&session.repository, &RepoPath::new(".tender")?)?;
    let note = || {
        format!(
            "{count} files under .tender/ are not committed as they are: only what the base commit holds counts"
        )
    };
    Ok((count > 0).then(note).into_iter().collect())
}

/// Makes the worktree and everything that belongs to it.
fn make(session: &Session, mut prepared: Prepared, progress: Progress<'_>) -> Result<Prepared> {
    let repository = &session.repository;
    let opened = &mut prepared.opened;
    let id = opened.contract.task_id.clone();
    let quarantine = session.quarantine(&id);
    create_private_dir(&quarantine.objects)?;
    if opened.base.live {
        // A delivery that is under way is not the user's work, nor are its temporary files. Whoever holds
        // this lock waits for no task that is not open yet, so the order of the two locks does no harm.
        let delivery = LockGuard::acquire(&session.layout.delivery_lock())?;
        recover::before_capturing(session, &delivery)?;
        opened.base.tree = live_base::capture_live(repository, &quarantine)?;
    }
    let differences = user_index::index_differences(repository, &quarantine, &opened.base.tree)?;
    opened.index = session.blobs().put(&serde_json::to_vec(&differences).unwrap_or_default())?;
    let path = worktree::make_root(repository)?.join(&id);
    let opening = worktree::Opening {
        repository,
        quarantine: &quarantine,
        task: &id,
        path: &path,
        base_commit: Some(&opened.base.commit),
        tree: &opened.base.tree,
    };
    let held = worktree::create_worktree(
        &opening,
        || LockGuard::acquire(&session.layout.worktrees_lock()),
        progress,
    )?;
    opened.worktree = path_text(&path)?;
    session.keep_held(&id, &held)?;
    opened.lacks = live_base::find_lacks(repository, &opened.base.tree, opened.base.live)?;
    if let Some(furnished) = furnish_worktree(session, opened, &prepared.rules, progress)? {
        opened.brought = Some(furnished.brought);
        let places = brought_places(session, opened)?;
        forget_brought_lacks(opened, &places);
        prepared.notes.extend(furnished.notes);
    }
    opened.sight = Some(tripwire::first_look(session, opened)?);
    Ok(prepared)
}
