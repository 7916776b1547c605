//! `rebase`: the candidate carried over to HEAD, with the live bytes of the paths that are in its way; inside
//! the task's worktree only.
//!
//! Everything is computed first, in the quarantine; then the ledger gets the whole of it; then the worktree
//! moves, which can be cut off anywhere and is completed by recovery. Evidence is made anew, since it was
//! made for other bytes.

use super::Session;
use crate::domain::change::patch::Candidate;
use crate::domain::delivery::conflict::CONFLICTS;
use crate::domain::delivery::remedy::{Tried, advise_on_conflicts};
use crate::domain::delivery::{Conflict, Reason, plan_delivery};
use crate::domain::ledger::record::{BaseState, Opened, Rebased};
use crate::domain::ledger::report::CandidateObject;
use crate::domain::value::digest::{FileState, Mode, ObjectId, TreeObject};
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Code, Failure, Remedy, Result};
use crate::git::capture::Capture;
use crate::git::convert::write_blob;
use crate::git::limits::{CandidateLimits, find_violations};
use crate::git::merge::{self, Labels, MergeConflict};
use crate::git::private_index::{PrivateIndex, PrivateIndexEntry};
use crate::git::{Quarantine, Repository, live_base, tree, user_index};
use crate::task::candidate::{SET_ASIDE, candidate_object};
use crate::task::effect::advance;
use crate::task::effect::tree::{index_rule, read_index_at_base};
use crate::task::held::TaskWrite;
use crate::task::observation::Judged;
use crate::task::terms::read_terms;
use crate::task::{budget, candidate, observation, tripwire};
use serde_json::json;
use std::collections::HashSet;
use std::path::Path;

/// Carries the last candidate over to HEAD and gives it; where both sides changed the same thing, the failure
/// names it and the worktree has it with conflict markers.
pub fn rebase(session: &Session, named: Option<&str>) -> Result<CandidateObject> {
    let mut task = session.write_live(named)?;
    task.require_active()?;
    budget::require_left(&task)?;
    tripwire::look_at_surroundings(&mut task)?;
    let candidate = task.view.last_candidate()?.value.clone();
    let from = worktree_state(&task)?;
    let home = session.live_repository(task.view.opened_terms()?)?;
    let base = new_base(&task, &home, &candidate)?;
    let planned = merged(&mut task, &home, &candidate, base, from)?;
    let params = json!({ "candidate": candidate.candidate, "onto": planned.rebased.opened.base });
    // Everything that can fail without a trace does so here: nothing was touched yet.
    let ready = advance::plan(session, &planned.rebased)?;
    let action = task.begin("rebase", &params)?;
    advance::carry_out(&mut task, action, planned.rebased.clone(), ready)?;
    match planned.rebased.captured {
        Some((candidate, _)) => Ok(candidate_object(session, &task.view.id, &candidate)),
        None => Err(unresolved(&task.view.id, &candidate, &planned)),
    }
}

struct Planned {
    rebased: Rebased,
    conflicts: Vec<MergeConflict>,
}

/// What the worktree holds; refused where that would be lost.
fn worktree_state(task: &TaskWrite<'_>) -> Result<ObjectId> {
    let opened = task.view.opened_terms()?;
    let limits = CandidateLimits { allowed: &|_| true, scope: &[], artifact_bytes: None };
    let now = candidate::worktree(task, limits)?;
    if task.view.is_known(&now.tree) {
        return Ok(now.tree);
    }
    Err(Failure::new(
        Code::StateInvalid,
        format!(
            "the worktree {} holds work that was never captured; a rebase would lose it",
            opened.worktree
        ),
    )
    .subject(opened.worktree.clone())
    .expected("a captured state", &now.tree)
    .remedy("Capture it first.", ["git", "tender", "submit", &task.view.id]))
}

/// The base that the task gets: HEAD, and what the live tree has at the paths where the candidate would not
/// fit otherwise.
struct NewBase {
    state: BaseState,
    /// Paths whose live bytes are in it.
    live: HashSet<RepoPath>,
}

fn new_base(task: &TaskWrite<'_>, home: &Repository, candidate: &Candidate) -> Result<NewBase> {
    let opened = task.view.opened_terms()?;
    let gone = |what: &str| Failure::new(Code::NotFound, format!("the live tree has no {what} any more"));
    let commit = home.resolve_revision("HEAD", "commit")?.ok_or_else(|| gone("commit"))?;
    let commit_tree = home.resolve_revision(commit.as_str(), "tree")?.ok_or_else(|| gone("tree"))?;
    let quarantine = task.session.quarantine(&task.view.id);
    let mut live = HashSet::new();
    let tree = if opened.base.live {
        live_base::capture_live(home, &quarantine)?
    } else if opened.effective.delivery.writes_files() {
        let entries = live_entries(task, home, candidate, &commit_tree)?;
        live.extend(entries.iter().map(|(path, _)| path.clone()));
        let index = PrivateIndex::holding_tree(home, &quarantine, &commit_tree)?;
        index.update_entries(&entries)?;
        index.write_tree()?
    } else {
        commit_tree.clone()
    };
    let state = BaseState { commit, tree, commit_tree, live: opened.base.live };
    Ok(NewBase { state, live })
}

/// What the live tree has at the touched paths, where it is neither what HEAD has nor what the candidate
/// brings.
fn live_entries(
    task: &TaskWrite<'_>,
    home: &Repository,
    candidate: &Candidate,
    head: &ObjectId,
) -> Result<Vec<PrivateIndexEntry>> {
    let opened = task.view.opened_terms()?;
    let quarantine = task.session.quarantine(&task.view.id);
    let terms = crate::git::live::LiveTerms {
        repository: home,
        quarantine: Some(&quarantine),
        top: Path::new(&opened.home.top),
        changes: &candidate.changes,
        before_tree: &candidate.base_tree,
        after_tree: &candidate.tree,
        drivers: &candidate.base_tree,
        former: None,
        settings: crate::git::live::Settings::read_settings(home)?,
    };
    let survey = crate::git::live::survey_paths(&terms)?;
    let index = read_index_at_base(&task.session.blobs(), opened, candidate, &candidate.changes)?;
    let conflicts = plan_delivery(&candidate.changes, &survey.facts, index_rule(opened), &index).err();
    refuse_what_no_merge_solves(&task.view.id, conflicts.unwrap_or_default())?;
    let objects = home.object_reader(Some(&quarantine))?;
    let mut wanted = HashSet::new();
    for (change, fact) in candidate.changes.iter().zip(&survey.facts) {
        let lies = fact.tree_object();
        let brought = change.new.as_ref().map(FileState::tree_object);
        let old = change.old.as_ref().map(FileState::tree_object);
        let at_head = tree::find_entry(&objects, head, &change.path)?;
        // Where HEAD still has the preimage and the live tree has the change already, delivering it again is
        // no conflict.
        if lies != at_head && !(lies == brought && at_head == old) {
            wanted.insert(&change.path);
        }
    }
    crate::git::live::store_found(&terms, &survey, head, &wanted)
}

/// Links and directories in the way, submodules, a merge that is not finished: a person has to see to those.
fn refuse_what_no_merge_solves(task: &str, conflicts: Vec<Conflict>) -> Result<()> {
    let hard: Vec<Conflict> = conflicts.into_iter().filter(|c| !c.is_for_a_rebase()).collect();
    match hard.is_empty() {
        true => Ok(()),
        false => {
            let Remedy { text, command } = advise_on_conflicts(task, Tried::Delivery, &hard);
            let refused = crate::domain::delivery::refuse_delivery(&hard);
            Err(refused.remedy(format!("No merge can solve this. {text}"), command))
        }
    }
}

/// Everything that the rebase comes to, computed in the quarantine; nothing of the worktree is touched yet.
fn merged(
    task: &mut TaskWrite<'_>,
    home: &Repository,
    candidate: &Candidate,
    base: NewBase,
    from: ObjectId,
) -> Result<Planned> {
    let session = task.session;
    let id = task.view.id.clone();
    let quarantine = session.quarantine(&id);
    let old = task.view.opened_terms()?.clone();
    let index = PrivateIndex::holding_tree(home, &quarantine, &base.state.tree)?;
    let theirs = if base.live.is_empty() && !base.state.live { "HEAD" } else { "live" };
    let labels = Labels { theirs, ours: &id };
    let outcome =
        merge::carry_over(&index, &candidate.base_tree, &candidate.changes, &base.state.tree, labels)?;
    let terms = read_terms(session, &old.contract, base.state.commit_tree())?;
    let differences = user_index::index_differences(home, &quarantine, &base.state.tree)?;
    let opened = Opened {
        index: session.blobs().put(&serde_json::to_vec(&differences).unwrap_or_default())?,
        base: base.state,
        ..terms.apply(old)
    };
    let marked: Vec<RepoPath> =
        outcome.conflicts.iter().filter(|c| c.marked).map(|c| c.path.clone()).collect();
    let captured = match outcome.conflicts.is_empty() {
        true => Some(capture(task, &opened, &quarantine, &outcome.tree)?),
        false => None,
    };
    let to = set_aside(&index, &outcome, candidate)?;
    let set_aside = to != outcome.tree;
    let rebased = Rebased { opened, from, to, captured, marked, set_aside };
    Ok(Planned { rebased, conflicts: outcome.conflicts })
}

/// Adds what markers cannot show: the candidate's version, under its path in a folder of its own; for a
/// deletion, a sentence.
fn set_aside(
    index: &PrivateIndex<'_>,
    outcome: &merge::MergeOutcome,
    candidate: &Candidate,
) -> Result<ObjectId> {
    let mut entries: Vec<PrivateIndexEntry> = Vec::new();
    for conflict in outcome.conflicts.iter().filter(|conflict| !conflict.marked || conflict.theirs.is_none())
    {
        let change = candidate.changes.iter().find(|change| change.path == conflict.path);
        let version = match change.and_then(|change| change.new.as_ref()) {
            Some(new) => new.tree_object(),
            None => {
                let text = format!("the candidate deletes {}\n", conflict.path).into_bytes();
                let id = write_blob(&index.conversions(), text)?;
                TreeObject { mode: Mode::File, id }
            }
        };
        let path = [SET_ASIDE.as_bytes(), b"/", conflict.path.as_bytes()].concat();
        entries.push((RepoPath::new(path)?, Some(version)));
    }
    index.update_entries(&entries)?;
    index.write_tree()
}

/// The candidate on the new base, within the limits, and its digests.
fn capture(
    task: &mut TaskWrite<'_>,
    opened: &Opened,
    quarantine: &Quarantine,
    tree: &ObjectId,
) -> Result<(Candidate, crate::domain::proof::evidence::Observation)> {
    let objects = task.session.repository.object_reader(Some(quarantine))?;
    let limits = CandidateLimits {
        allowed: &|path| opened.effective.write_allows(path),
        scope: &opened.effective.write_patterns(),
        artifact_bytes: Some(budget::artifact_bytes(&task.view)),
    };
    if let Some(failure) = Failure::first_of(find_violations(&objects, &opened.base.tree, tree, &limits)?) {
        return Err(failure);
    }
    let changes = tree::changes_between(&objects, &opened.base.tree, tree)?;
    let candidate = candidate::bind(task, opened, Capture { tree: tree.clone(), changes })?;
    if let Some(known) = &mut task.view.opened {
        known.value = opened.clone();
    }
    let observation = observation::take_observation(task, Judged { opened, candidate: &candidate })?;
    Ok((candidate, observation))
}

/// What the failure of a rebase with conflicts says. The worktree has them; nothing else was touched.
fn unresolved(task: &str, candidate: &Candidate, planned: &Planned) -> Failure {
    let expected = |path: &RepoPath| {
        let change = candidate.changes.iter().find(|change| change.path == *path)?;
        change.old.as_ref().map(FileState::tree_object)
    };
    let conflict = |conflict: &MergeConflict| Conflict {
        path: conflict.path.clone(),
        reason: match (&conflict.theirs, expected(&conflict.path)) {
            (None, _) => Reason::Missing,
            (Some(_), None) => Reason::Appeared,
            _ => Reason::Edited,
        },
        expected: expected(&conflict.path),
        actual: conflict.theirs.clone(),
        mergeable: false,
        partner: None,
    };
    let conflicts: Vec<Conflict> = planned.conflicts.iter().map(conflict).collect();
    let first = conflicts.first().map(|c| c.path.to_string()).unwrap_or_default();
    let worktree = &planned.rebased.opened.worktree;
    Failure::new(
        Code::DeliveryConflict,
        format!("both sides changed {first}: the task is on its new base, and {worktree} has the conflict to resolve"),
    )
    .subject(first)
    .with_detail(&CONFLICTS, &conflicts)
    .detail("marked", &planned.rebased.marked)
    .detail("worktree", worktree)
    .remedy(
        format!("Resolve the conflict markers in the task's worktree, decide about what lies in {SET_ASIDE}/ and remove that folder; then submit."),
        ["git", "tender", "submit", task],
    )
}
