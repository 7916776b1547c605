//! A patch as an action of a real task: what the ledger says of it, and what recovery makes of one that was
//! cut off.

#![expect(clippy::disallowed_methods, reason = "the tests write as anybody would")]

use crate::domain::contract::tool::WorkerTool;
use crate::domain::ledger::action::{ActionState, Actor};
use crate::domain::worker::call::Arrived;
use crate::error::Code;
use crate::git::beneath::fault::{self, InjectedFault};
use crate::git::testing::TestRepository;
use crate::ops::open;
use crate::ops::recover::Consent;
use crate::store::Layout;
use crate::task::effect::patch::*;
use crate::task::session::{Machine, Nobody};
use std::path::PathBuf;

/// A repository with an open task.
pub(in crate::task) struct Place {
    pub(in crate::task) session: Session,
    worktree: PathBuf,
    _home: TestRepository,
}

impl Place {
    pub(in crate::task) fn new() -> Self {
        let home = TestRepository::new();
        home.write_file("a", b"0\n");
        home.commit_all("base");
        let repository = home.repository();
        let layout = Layout::new(repository.common_dir());
        let machine = Machine::new(PathBuf::from("/nowhere"), home.variables().to_vec());
        let session = Session {
            repository,
            layout,
            actor: Actor::Agent,
            origin: "mcp".to_owned(),
            machine,
            person: Box::new(Nobody),
        };
        let contract =
            r#"{"taskId": "t1", "goal": "a change", "writeScope": ["**"], "allowedTools": ["apply_patch"]}"#;
        open::open(&session, contract.as_bytes(), &|_, _| {}).expect("opens");
        let worktree = session.view(None).expect("there").1.opened_terms().expect("opened").worktree.clone();
        Self { session, worktree: PathBuf::from(worktree), _home: home }
    }

    /// One call, as the gate makes it.
    fn apply(&self, patch: &str) -> Result<ApplyPatchAnswer> {
        let arguments = ApplyPatchArguments { patch: patch.to_owned(), ..ApplyPatchArguments::default() };
        let mut task = self.session.write(None)?;
        let mut action = task.action(WorkerTool::ApplyPatch.name(), &arguments);
        let arrived = Arrived { worker: "w1".to_owned(), charged: true };
        action.arrive(&mut task.ledger, &Record::Call(arrived))?;
        action.dispatch(&mut task.ledger)?;
        let allowed = Allowed { read: &|_| Ok(()), write: &|_| Ok(()), known: &|_| None };
        let ledger = (&mut task.ledger, &mut action);
        match carry_out(&self.session, ledger, &self.worktree, &arguments, allowed) {
            Ok(applied) => {
                let done = Record::Done { text: "the patch was applied".to_owned() };
                task.finish(action, &done).map(|()| applied)
            }
            Err(Unapplied::Unchanged(failure)) => Err(action.fail(&mut task.ledger, failure)),
            Err(Unapplied::Unknown(failure)) => Err(action.lose(&mut task.ledger, failure)),
        }
    }

    /// The states of the last action, each once.
    fn states(&self) -> Vec<ActionState> {
        let entries = self.session.ledger().expect("opens").expect("there").entries(None).expect("reads");
        let last = entries.last().expect("rows").action.clone();
        let mut states: Vec<_> = entries.iter().filter(|e| e.action == last).map(|e| e.state).collect();
        states.dedup();
        states
    }

    fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.worktree.join(name)).ok()
    }

    fn names(&self) -> Vec<String> {
        let names = std::fs::read_dir(&self.worktree).expect("lists");
        let mut names: Vec<String> =
            names.map(|entry| entry.expect("one").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

fn patch(from: &str, to: &str, new: &str) -> String {
    format!(
        "*** Begin Patch\n*** Update File: a\n@@\n-{from}\n+{to}\n*** Add File: {new}\n+{to}\n*** End Patch\n"
    )
}

#[test]
fn the_ledger_has_every_step_and_the_end() {
    let place = Place::new();
    let applied = place.apply(&patch("0", "1", "n")).expect("applied");
    assert_eq!(applied.changes.len(), 2);
    assert_eq!((place.read("a"), place.read("n")), (Some("1\n".into()), Some("1\n".into())));
    use ActionState::{Authorized, Dispatched, FailedWithoutEffect, Planned, Succeeded};
    assert_eq!(place.states(), [Planned, Authorized, Dispatched, Succeeded]);
    let failure = place.apply(&patch("0", "1", "m")).expect_err("does not fit");
    assert_eq!(failure.code(), Code::PatchInvalid);
    assert_eq!(place.states(), [Planned, Authorized, Dispatched, FailedWithoutEffect]);
    assert_eq!(place.names(), [".git", "a", "n"]);
    let recovery = crate::ops::recover::recover(&place.session, Consent::Nothing).expect("recovers");
    assert!(recovery.actions.is_empty());
}

/// Applies a patch that changes `a` and adds `n`, while somebody writes to `a` at the first such place. It is
/// refused.
fn meddled(place: &Place, at: &'static str, text: &'static str) -> Failure {
    let file = place.worktree.join("a");
    let mut done = false;
    fault::set_hook(Some(Box::new(move |point| {
        if point == at && !done {
            done = true;
            std::fs::write(&file, text).expect("written");
        }
    })));
    let failure = place.apply(&patch("0", "1", "n")).expect_err("not as it was, or not as it was written");
    fault::set_hook(None);
    failure
}

/// The old version is dropped: everything was looked at for the last time.
const WRITTEN: &str = "unlinked";

#[test]
fn an_edit_at_the_last_moment_survives_and_is_a_conflict() {
    let place = Place::new();
    let failure = meddled(&place, "exchange", "mine\n");
    assert_eq!((failure.code(), failure.subject_text()), (Code::VersionConflict, Some("a")));
    assert_eq!(place.read("a").as_deref(), Some("mine\n"));
    assert_eq!(place.names(), [".git", "a"]);
    assert_eq!(place.states().last(), Some(&ActionState::FailedWithoutEffect));
}

#[test]
fn what_changes_right_after_the_write_is_no_success() {
    let place = Place::new();
    let failure = meddled(&place, WRITTEN, "mine\n");
    assert_eq!((failure.code(), failure.subject_text()), (Code::OutcomeUnknown, Some("a")));
    assert_eq!(place.states().last(), Some(&ActionState::OutcomeUnknown));
    // The next command looks, and finds that it had taken place.
    drop(place.session.write(None).expect("settles"));
    assert_eq!(place.states().last(), Some(&ActionState::Succeeded));
    assert_eq!((place.read("a").as_deref(), place.read("n").as_deref()), (Some("mine\n"), Some("1\n")));
}

#[test]
fn what_took_place_is_not_done_again() {
    let place = Place::new();
    // Just what lay there before.
    meddled(&place, WRITTEN, "0\n");
    std::fs::remove_file(place.worktree.join("n")).expect("removed");
    drop(place.session.write(None).expect("settles"));
    assert_eq!(place.states().last(), Some(&ActionState::Succeeded));
    assert_eq!((place.read("a").as_deref(), place.read("n")), (Some("0\n"), None));
}

#[test]
fn a_file_makes_room_for_a_directory() {
    let place = Place::new();
    let text = "*** Begin Patch\n*** Update File: a\n*** Move to: a/b\n@@\n-0\n+1\n*** End Patch\n";
    place.apply(text).expect("applied");
    assert_eq!(place.read("a/b").as_deref(), Some("1\n"));
    assert_eq!(place.states().last(), Some(&ActionState::Succeeded));
}

#[test]
fn killed_anywhere_recovery_brings_it_to_an_end() {
    let place = Place::new();
    let (mut now, mut ends) = (0, std::collections::BTreeMap::new());
    for at in 1..400 {
        let new = format!("n{at}");
        fault::arm_fault(Some((at, InjectedFault::Die)));
        let text = patch(&now.to_string(), &at.to_string(), &new);
        let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| place.apply(&text)));
        let reached = fault::count_operations() >= at;
        fault::arm_fault(None);
        if !reached {
            run.expect("alive").expect("applied");
            assert!(ends.len() > 1, "{ends:?}");
            return;
        }
        let recovery = crate::ops::recover::recover(&place.session, Consent::Nothing).expect("recovers");
        let [action] = recovery.actions.as_slice() else { panic!("{recovery:?}") };
        assert_eq!(action.tool, WorkerTool::ApplyPatch.name());
        *ends.entry(action.outcome).or_insert(0) += 1;
        let state = place.states().last().copied();
        if action.outcome == RecoveryOutcome::Completed {
            assert_eq!(state, Some(ActionState::Succeeded));
            now = at;
        } else {
            assert_eq!(state, Some(ActionState::SafeToRetry), "{:?}", action.outcome);
        }
        assert_eq!(place.read("a"), Some(format!("{now}\n")), "killed at {at}");
        assert_eq!(place.read(&new).is_some(), now == at, "killed at {at}");
        assert!(!place.names().iter().any(|name| name.starts_with(".tender")), "killed at {at}");
    }
    panic!("it never ended");
}
