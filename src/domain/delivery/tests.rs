use super::*;
use crate::domain::delivery::receipt::{Outcome, PathReceipt};

fn repo_path(text: &str) -> RepoPath {
    RepoPath::new(text).expect("a path")
}

fn blob_id(text: &str) -> ObjectId {
    crate::domain::value::digest::ObjectFormat::Sha1.blob_id(text.as_bytes()).expect("hashes")
}

fn file_state(mode: Mode, text: &str) -> Option<FileState> {
    Some(FileState { mode, git_blob: blob_id(text), sha256: Sha256::of(text.as_bytes()) })
}

fn index_entry(mode: Mode, text: &str) -> IndexState {
    IndexState::Entry { mode, git_blob: blob_id(text) }
}

/// A live regular file; `old` and `new` are the texts of the two sides.
fn live_file(text: &str, executable: bool) -> LiveKind {
    LiveKind::File(LiveFile {
        executable,
        bit_counts: true,
        permissions: if executable { 0o755 } else { 0o644 },
        links: 1,
        sha256: Sha256::of(text.as_bytes()),
        git_blob: blob_id(text),
        is_before: text == "old",
        is_after: text == "new",
        owner_kept: true,
    })
}

fn live_link(target: &str) -> LiveKind {
    LiveKind::Link { git_blob: blob_id(target), sha256: Sha256::of(target.as_bytes()) }
}

fn live_fact(kind: LiveKind, index: IndexState) -> LiveFact {
    LiveFact {
        kind,
        parent: None,
        nested_repository: false,
        collision: None,
        index,
        outside_sparse: false,
        mergeable: false,
    }
}

fn modify_change() -> Change {
    Change::new(repo_path("p"), file_state(Mode::File, "old"), file_state(Mode::File, "new"))
}

fn create_change() -> Change {
    Change::new(repo_path("p"), None, file_state(Mode::File, "new"))
}

fn delete_change() -> Change {
    Change::new(repo_path("p"), file_state(Mode::File, "old"), None)
}

fn planned_step(change: &Change, fact: LiveFact) -> std::result::Result<Step, Reason> {
    let at_base = IndexState::from_tree_state(change.old.as_ref());
    match plan_delivery(std::slice::from_ref(change), &[fact], IndexRule::Stays, &[at_base]) {
        Ok(plan) => Ok(plan.items()[0].step),
        Err(conflicts) => Err(conflicts[0].reason),
    }
}

fn old_entry() -> IndexState {
    index_entry(Mode::File, "old")
}

#[test]
fn a_modified_path_is_applied_there_already_or_a_conflict() {
    let seen = |kind| planned_step(&modify_change(), live_fact(kind, old_entry()));
    assert_eq!(seen(live_file("old", false)), Ok(Step::Replace));
    assert_eq!(seen(live_file("new", false)), Ok(Step::Already));
    assert_eq!(seen(live_file("mine", false)), Err(Reason::Edited));
    assert_eq!(seen(live_file("old", true)), Err(Reason::ModeChanged));
    assert_eq!(seen(live_file("new", true)), Err(Reason::ModeChanged));
    assert_eq!(seen(LiveKind::Missing), Err(Reason::Missing));
    for kind in [live_link("old"), LiveKind::Directory { strangers: false }, LiveKind::Other] {
        assert_eq!(seen(kind), Err(Reason::TypeChanged));
    }
}

#[test]
fn a_created_path_must_be_free() {
    let seen = |kind| planned_step(&create_change(), live_fact(kind, IndexState::Absent));
    assert_eq!(seen(LiveKind::Missing), Ok(Step::Create));
    assert_eq!(seen(live_file("new", false)), Ok(Step::Already));
    assert_eq!(seen(live_file("mine", false)), Err(Reason::Appeared));
    assert_eq!(seen(live_file("new", true)), Err(Reason::Appeared));
    assert_eq!(seen(live_link("new")), Err(Reason::Appeared));
    assert_eq!(seen(LiveKind::Directory { strangers: true }), Err(Reason::TypeChanged));
    assert_eq!(seen(LiveKind::Directory { strangers: false }), Ok(Step::Replace));
    assert_eq!(seen(LiveKind::Other), Err(Reason::TypeChanged));
    let collides =
        LiveFact { collision: RepoPath::new("A").ok(), ..live_fact(LiveKind::Missing, IndexState::Absent) };
    assert_eq!(planned_step(&create_change(), collides), Err(Reason::Collision));
}

#[test]
fn a_deleted_path_is_gone_or_unchanged() {
    let seen = |kind| planned_step(&delete_change(), live_fact(kind, old_entry()));
    assert_eq!(seen(live_file("old", false)), Ok(Step::Delete));
    assert_eq!(seen(LiveKind::Missing), Ok(Step::Already));
    assert_eq!(seen(live_file("mine", false)), Err(Reason::Edited));
    assert_eq!(seen(LiveKind::Directory { strangers: false }), Err(Reason::TypeChanged));
}

#[test]
fn links_are_compared_by_their_target() {
    let change =
        Change::new(repo_path("p"), file_state(Mode::Symlink, "old"), file_state(Mode::Symlink, "new"));
    let index = || index_entry(Mode::Symlink, "old");
    assert_eq!(planned_step(&change, live_fact(live_link("old"), index())), Ok(Step::Replace));
    assert_eq!(planned_step(&change, live_fact(live_link("new"), index())), Ok(Step::Already));
    assert_eq!(planned_step(&change, live_fact(live_link("mine"), index())), Err(Reason::Edited));
    assert_eq!(planned_step(&change, live_fact(live_file("old", false), index())), Err(Reason::TypeChanged));
}

#[test]
fn the_index_must_say_one_of_three_things() {
    let seen = |index, at_base: IndexState| {
        let facts = [live_fact(live_file("old", false), index)];
        plan_delivery(&[modify_change()], &facts, IndexRule::Stays, &[at_base])
            .map(|_| ())
            .map_err(|c| c[0].reason)
    };
    for index in [old_entry(), index_entry(Mode::File, "new"), index_entry(Mode::File, "staged before")] {
        assert_eq!(seen(index, index_entry(Mode::File, "staged before")), Ok(()));
    }
    assert_eq!(seen(index_entry(Mode::File, "staged since"), old_entry()), Err(Reason::IndexChanged));
    assert_eq!(seen(index_entry(Mode::Executable, "old"), old_entry()), Err(Reason::IndexChanged));
    assert_eq!(seen(IndexState::Absent, old_entry()), Err(Reason::IndexChanged));
    assert_eq!(seen(IndexState::IntentToAdd, IndexState::Absent), Err(Reason::IntentToAdd));
    assert_eq!(seen(IndexState::Unmerged, IndexState::Unmerged), Err(Reason::Unmerged));
}

#[test]
fn what_bars_the_way_is_named() {
    let with = |change: &Change, change_fact: fn(&mut LiveFact)| {
        let mut f = live_fact(LiveKind::Missing, IndexState::from_tree_state(change.old.as_ref()));
        change_fact(&mut f);
        planned_step(change, f)
    };
    let link: fn(&mut LiveFact) = |f| f.parent = Some(ParentProblem::Link(repo_path("d")));
    let file: fn(&mut LiveFact) = |f| f.parent = Some(ParentProblem::File(repo_path("d")));
    for change in [create_change(), modify_change(), delete_change()] {
        assert_eq!(with(&change, link), Err(Reason::ParentIsLink));
        assert_eq!(with(&change, file), Err(Reason::ParentIsFile));
        assert_eq!(with(&change, |f| f.nested_repository = true), Err(Reason::NestedRepository));
        assert_eq!(with(&change, |f| f.outside_sparse = true), Err(Reason::OutsideSparse));
    }
    let gitlink =
        Change::new(repo_path("p"), file_state(Mode::File, "old"), file_state(Mode::Gitlink, "new"));
    assert_eq!(with(&gitlink, |_| {}), Err(Reason::Gitlink));
    let mut foreign = live_fact(self::live_file("old", false), old_entry());
    if let LiveKind::File(f) = &mut foreign.kind {
        f.owner_kept = false;
    }
    assert_eq!(planned_step(&modify_change(), foreign.clone()), Err(Reason::Owner));
    assert_eq!(planned_step(&delete_change(), foreign), Ok(Step::Delete));
}

#[test]
fn what_the_patch_itself_moves_is_not_in_the_way() {
    let gone = Change::new(repo_path("d"), file_state(Mode::File, "old"), None);
    let inner = Change::new(repo_path("d/x"), None, file_state(Mode::File, "new"));
    let beneath_file = LiveFact {
        parent: Some(ParentProblem::File(repo_path("d"))),
        ..live_fact(LiveKind::Missing, IndexState::Absent)
    };
    let facts = [live_fact(live_file("old", false), old_entry()), beneath_file.clone()];
    let both = [gone.clone(), inner.clone()];
    let planned = plan_delivery(&both, &facts, IndexRule::Stays, &[old_entry()]);
    let steps: Vec<Step> = planned.expect("fits").items().iter().map(|i| i.step).collect();
    assert_eq!(steps, [Step::Delete, Step::Create]);
    // Delivered before: both are there already.
    let facts = [
        live_fact(LiveKind::Directory { strangers: true }, IndexState::Absent),
        live_fact(live_file("new", false), IndexState::Absent),
    ];
    let planned = plan_delivery(&both, &facts, IndexRule::Stays, &[]).expect("fits");
    assert!(planned.items().iter().all(|i| i.step == Step::Already));
    // The other way round.
    let facts = [live_fact(live_file("old", false), old_entry()), beneath_file];
    let back = [gone.reverse_change(), inner.reverse_change()];
    let conflicts =
        plan_delivery(&back, &facts, IndexRule::Stays, &[old_entry(), old_entry()]).expect_err("d is there");
    assert_eq!(conflicts.len(), 1);
}

#[test]
fn all_conflicts_are_listed_in_the_shape_of_the_documentation() {
    let second = Change::new(repo_path("q"), None, file_state(Mode::File, "new"));
    let mut edited = live_fact(live_file("mine", false), old_entry());
    edited.mergeable = true;
    let facts = [edited, live_fact(live_link("x"), IndexState::Absent)];
    let conflicts =
        plan_delivery(&[modify_change(), second], &facts, IndexRule::Stays, &[old_entry()]).expect_err("two");
    let failure = refuse_delivery(&conflicts);
    assert_eq!(failure.exit_code(), 3);
    let shown = serde_json::to_value(&conflicts).expect("serializes");
    let side = |mode: &str, text: &str| serde_json::json!({"mode": mode, "gitBlob": blob_id(text)});
    assert_eq!(
        shown,
        serde_json::json!([
            {"path": "p", "reason": "edited", "expected": side("100644", "old"), "actual": side("100644", "mine"), "mergeable": true},
            {"path": "q", "reason": "appeared", "expected": null, "actual": side("120000", "x"), "mergeable": false},
        ])
    );
}

fn requirement_row(id: &str, required: bool, verdict: Verdict) -> Row {
    Row { required, ..Row::without_run(id, id, verdict, None) }
}

#[test]
fn only_passed_rows_for_the_same_manifest_clear_a_plan() {
    let planned = || {
        plan_delivery(
            &[modify_change()],
            &[live_fact(live_file("old", false), old_entry())],
            IndexRule::Stays,
            &[old_entry()],
        )
        .expect("fits")
    };
    let manifest = manifest_sha256(&[modify_change()]);
    let optional = requirement_row("b", false, Verdict::Failed);
    let good = Clearance::from_rows(manifest, &[requirement_row("a", true, Verdict::Passed), optional])
        .expect("passed");
    assert!(planned().clear_with(&good).is_ok());
    let other = Clearance::from_rows(Sha256::of(b"other"), &[]).expect("passed");
    assert_eq!(planned().clear_with(&other).expect_err("another manifest").code(), Code::Internal);
    let codes = [
        (Verdict::Failed, Code::VerificationFailed),
        (Verdict::Error, Code::VerificationFailed),
        (Verdict::Stale, Code::EvidenceStale),
        (Verdict::NotRun, Code::EvidenceMissing),
        (Verdict::NeedsConfirmation, Code::ConfirmationRequired),
    ];
    for (verdict, code) in codes {
        let refused =
            Clearance::from_rows(manifest, &[requirement_row("a", true, verdict)]).expect_err("refused");
        assert_eq!(refused.code(), code);
        assert!(refused.details().contains_key("requirements"));
    }
}

#[test]
fn an_undo_is_cleared_for_the_reverse_of_what_was_applied_and_nothing_else() {
    let at = |change: Change, outcome| PathReceipt {
        change,
        outcome,
        before: None,
        after: None,
        kept: None,
        notes: Vec::new(),
    };
    let there = Change::new(repo_path("q"), None, file_state(Mode::File, "new"));
    let receipt = Receipt {
        id: "d1".into(),
        manifest_sha256: manifest_sha256(&[modify_change(), there.clone()]),
        paths: vec![at(modify_change(), Outcome::Applied), at(there, Outcome::Already)],
        index: Vec::new(),
        publication: None,
    };
    let back = modify_change().reverse_change();
    assert_eq!(receipt.reversed_changes(), std::slice::from_ref(&back));
    let planned = |change: &Change| {
        let mut live = live_fact(live_file("new", false), index_entry(Mode::File, "new"));
        if let LiveKind::File(f) = &mut live.kind {
            (f.is_before, f.is_after) = (true, false);
        }
        plan_delivery(std::slice::from_ref(change), &[live], IndexRule::Stays, &[old_entry()]).expect("fits")
    };
    assert!(planned(&back).clear_with(&Clearance::to_undo(&receipt)).is_ok());
    let wider = Change::new(repo_path("z"), file_state(Mode::File, "new"), None);
    assert!(planned(&wider).clear_with(&Clearance::to_undo(&receipt)).is_err());
}
