use super::*;
use crate::domain::delivery::receipt::{Outcome, PathReceipt};
use crate::domain::proof::verdict::Strength;

fn path(text: &str) -> RepoPath {
    RepoPath::new(text).expect("a path")
}

fn id(text: &str) -> ObjectId {
    crate::domain::value::digest::ObjectFormat::Sha1.blob_id(text.as_bytes()).expect("hashes")
}

fn state(mode: Mode, text: &str) -> Option<FileState> {
    Some(FileState { mode, git_blob: id(text), sha256: Sha256::of(text.as_bytes()) })
}

fn entry(mode: Mode, text: &str) -> IndexState {
    IndexState::Entry { mode, git_blob: id(text) }
}

/// A live regular file; `old` and `new` are the texts of the two sides.
fn file(text: &str, executable: bool) -> LiveKind {
    LiveKind::File(LiveFile {
        executable,
        permissions: if executable { 0o755 } else { 0o644 },
        links: 1,
        sha256: Sha256::of(text.as_bytes()),
        git_blob: id(text),
        is_before: text == "old",
        is_after: text == "new",
        owner_kept: true,
    })
}

fn link(target: &str) -> LiveKind {
    LiveKind::Link { git_blob: id(target), sha256: Sha256::of(target.as_bytes()) }
}

fn fact(kind: LiveKind, index: IndexState) -> LiveFact {
    LiveFact {
        kind,
        parent: None,
        nested_repository: false,
        collision: false,
        index,
        outside_sparse: false,
        mergeable: false,
    }
}

fn modify() -> Change {
    Change::new(path("p"), state(Mode::File, "old"), state(Mode::File, "new"))
}

fn create() -> Change {
    Change::new(path("p"), None, state(Mode::File, "new"))
}

fn delete() -> Change {
    Change::new(path("p"), state(Mode::File, "old"), None)
}

fn step(change: &Change, fact: LiveFact) -> std::result::Result<Step, Reason> {
    let at_base = IndexState::of(change.old.as_ref());
    match plan(std::slice::from_ref(change), &[fact], IndexRule::Stays, &|_| at_base.clone()) {
        Ok(plan) => Ok(plan.items()[0].step),
        Err(conflicts) => Err(conflicts[0].reason),
    }
}

fn old_entry() -> IndexState {
    entry(Mode::File, "old")
}

#[test]
fn a_modified_path_is_applied_there_already_or_a_conflict() {
    let seen = |kind| step(&modify(), fact(kind, old_entry()));
    assert_eq!(seen(file("old", false)), Ok(Step::Replace));
    assert_eq!(seen(file("new", false)), Ok(Step::Already));
    assert_eq!(seen(file("mine", false)), Err(Reason::Edited));
    assert_eq!(seen(file("old", true)), Err(Reason::ModeChanged));
    assert_eq!(seen(file("new", true)), Err(Reason::ModeChanged));
    assert_eq!(seen(LiveKind::Missing), Err(Reason::Missing));
    for kind in [link("old"), LiveKind::Directory { strangers: false }, LiveKind::Other] {
        assert_eq!(seen(kind), Err(Reason::TypeChanged));
    }
}

#[test]
fn a_created_path_must_be_free() {
    let seen = |kind| step(&create(), fact(kind, IndexState::Absent));
    assert_eq!(seen(LiveKind::Missing), Ok(Step::Create));
    assert_eq!(seen(file("new", false)), Ok(Step::Already));
    assert_eq!(seen(file("mine", false)), Err(Reason::Appeared));
    assert_eq!(seen(file("new", true)), Err(Reason::Appeared));
    assert_eq!(seen(link("new")), Err(Reason::Appeared));
    assert_eq!(seen(LiveKind::Directory { strangers: true }), Err(Reason::TypeChanged));
    assert_eq!(seen(LiveKind::Directory { strangers: false }), Ok(Step::Replace));
    assert_eq!(seen(LiveKind::Other), Err(Reason::TypeChanged));
    let collides = LiveFact { collision: true, ..fact(LiveKind::Missing, IndexState::Absent) };
    assert_eq!(step(&create(), collides), Err(Reason::Collision));
}

#[test]
fn a_deleted_path_is_gone_or_unchanged() {
    let seen = |kind| step(&delete(), fact(kind, old_entry()));
    assert_eq!(seen(file("old", false)), Ok(Step::Delete));
    assert_eq!(seen(LiveKind::Missing), Ok(Step::Already));
    assert_eq!(seen(file("mine", false)), Err(Reason::Edited));
    assert_eq!(seen(LiveKind::Directory { strangers: false }), Err(Reason::TypeChanged));
}

#[test]
fn links_are_compared_by_their_target() {
    let change = Change::new(path("p"), state(Mode::Symlink, "old"), state(Mode::Symlink, "new"));
    let index = || entry(Mode::Symlink, "old");
    assert_eq!(step(&change, fact(link("old"), index())), Ok(Step::Replace));
    assert_eq!(step(&change, fact(link("new"), index())), Ok(Step::Already));
    assert_eq!(step(&change, fact(link("mine"), index())), Err(Reason::Edited));
    assert_eq!(step(&change, fact(file("old", false), index())), Err(Reason::TypeChanged));
}

#[test]
fn the_index_must_say_one_of_three_things() {
    let seen = |index, at_base: IndexState| {
        let facts = [fact(file("old", false), index)];
        plan(&[modify()], &facts, IndexRule::Stays, &|_| at_base.clone()).map(|_| ()).map_err(|c| c[0].reason)
    };
    for index in [old_entry(), entry(Mode::File, "new"), entry(Mode::File, "staged before")] {
        assert_eq!(seen(index, entry(Mode::File, "staged before")), Ok(()));
    }
    assert_eq!(seen(entry(Mode::File, "staged since"), old_entry()), Err(Reason::IndexChanged));
    assert_eq!(seen(entry(Mode::Executable, "old"), old_entry()), Err(Reason::IndexChanged));
    assert_eq!(seen(IndexState::Absent, old_entry()), Err(Reason::IndexChanged));
    assert_eq!(seen(IndexState::IntentToAdd, IndexState::Absent), Err(Reason::IntentToAdd));
    assert_eq!(seen(IndexState::Unmerged, IndexState::Unmerged), Err(Reason::Unmerged));
}

#[test]
fn what_bars_the_way_is_named() {
    let with = |change: &Change, change_fact: fn(&mut LiveFact)| {
        let mut f = fact(LiveKind::Missing, IndexState::of(change.old.as_ref()));
        change_fact(&mut f);
        step(change, f)
    };
    let link: fn(&mut LiveFact) = |f| f.parent = Some(ParentProblem::Link(path("d")));
    let file: fn(&mut LiveFact) = |f| f.parent = Some(ParentProblem::File(path("d")));
    for change in [create(), modify(), delete()] {
        assert_eq!(with(&change, link), Err(Reason::ParentIsLink));
        assert_eq!(with(&change, file), Err(Reason::ParentIsFile));
        assert_eq!(with(&change, |f| f.nested_repository = true), Err(Reason::NestedRepository));
        assert_eq!(with(&change, |f| f.outside_sparse = true), Err(Reason::OutsideSparse));
    }
    let gitlink = Change::new(path("p"), state(Mode::File, "old"), state(Mode::Gitlink, "new"));
    assert_eq!(with(&gitlink, |_| {}), Err(Reason::Gitlink));
    let mut foreign = fact(self::file("old", false), old_entry());
    if let LiveKind::File(f) = &mut foreign.kind {
        f.owner_kept = false;
    }
    assert_eq!(step(&modify(), foreign.clone()), Err(Reason::Owner));
    assert_eq!(step(&delete(), foreign), Ok(Step::Delete));
}

#[test]
fn what_the_patch_itself_moves_is_not_in_the_way() {
    let gone = Change::new(path("d"), state(Mode::File, "old"), None);
    let inner = Change::new(path("d/x"), None, state(Mode::File, "new"));
    let beneath_file = LiveFact {
        parent: Some(ParentProblem::File(path("d"))),
        ..fact(LiveKind::Missing, IndexState::Absent)
    };
    let facts = [fact(file("old", false), old_entry()), beneath_file.clone()];
    let both = [gone.clone(), inner.clone()];
    let planned = plan(&both, &facts, IndexRule::Stays, &|p| {
        if *p == path("d") { old_entry() } else { IndexState::Absent }
    });
    let steps: Vec<Step> = planned.expect("fits").items().iter().map(|i| i.step).collect();
    assert_eq!(steps, [Step::Delete, Step::Create]);
    // Delivered before: both are there already.
    let facts = [
        fact(LiveKind::Directory { strangers: true }, IndexState::Absent),
        fact(file("new", false), IndexState::Absent),
    ];
    let planned = plan(&both, &facts, IndexRule::Stays, &|_| IndexState::Absent).expect("fits");
    assert!(planned.items().iter().all(|i| i.step == Step::Already));
    // The other way round.
    let facts = [fact(file("old", false), old_entry()), beneath_file];
    let back = [gone.reversed(), inner.reversed()];
    let conflicts = plan(&back, &facts, IndexRule::Stays, &|_| old_entry()).expect_err("d is there");
    assert_eq!(conflicts.len(), 1);
}

#[test]
fn all_conflicts_are_listed_in_the_shape_of_the_documentation() {
    let second = Change::new(path("q"), None, state(Mode::File, "new"));
    let mut edited = fact(file("mine", false), old_entry());
    edited.mergeable = true;
    let facts = [edited, fact(link("x"), IndexState::Absent)];
    let at_base = |p: &RepoPath| if *p == path("p") { old_entry() } else { IndexState::Absent };
    let conflicts = plan(&[modify(), second], &facts, IndexRule::Stays, &at_base).expect_err("two");
    let failure = refused(&conflicts);
    assert_eq!(failure.exit_code(), 3);
    let shown = serde_json::to_value(&conflicts).expect("serializes");
    let side = |mode: &str, text: &str| serde_json::json!({"mode": mode, "gitBlob": id(text)});
    assert_eq!(
        shown,
        serde_json::json!([
            {"path": "p", "reason": "edited", "expected": side("100644", "old"), "actual": side("100644", "mine"), "mergeable": true},
            {"path": "q", "reason": "appeared", "expected": null, "actual": side("120000", "x"), "mergeable": false},
        ])
    );
}

fn row(id: &str, required: bool, verdict: Verdict) -> Row {
    Row {
        id: id.into(),
        verifier: id.into(),
        title: None,
        required,
        verdict,
        reason: None,
        reused: false,
        strength: Strength::Unmeasured,
        judge_changed: false,
        cases: None,
        evidence: None,
        checks: None,
    }
}

#[test]
fn only_passed_rows_for_the_same_manifest_clear_a_plan() {
    let planned = || {
        plan(&[modify()], &[fact(file("old", false), old_entry())], IndexRule::Stays, &|_| old_entry())
            .expect("fits")
    };
    let manifest = manifest_sha256(&[modify()]);
    let optional = row("b", false, Verdict::Failed);
    let good = Clearance::from_rows(manifest, &[row("a", true, Verdict::Passed), optional]).expect("passed");
    assert!(planned().clear(&good).is_ok());
    let other = Clearance::from_rows(Sha256::of(b"other"), &[]).expect("passed");
    assert_eq!(planned().clear(&other).expect_err("another manifest").code(), Code::Internal);
    let codes = [
        (Verdict::Failed, Code::VerificationFailed),
        (Verdict::Error, Code::VerificationFailed),
        (Verdict::Stale, Code::EvidenceStale),
        (Verdict::NotRun, Code::EvidenceMissing),
        (Verdict::NeedsConfirmation, Code::ConfirmationRequired),
    ];
    for (verdict, code) in codes {
        let refused = Clearance::from_rows(manifest, &[row("a", true, verdict)]).expect_err("refused");
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
    let there = Change::new(path("q"), None, state(Mode::File, "new"));
    let receipt = Receipt {
        id: "d1".into(),
        manifest_sha256: manifest_sha256(&[modify(), there.clone()]),
        paths: vec![at(modify(), Outcome::Applied), at(there, Outcome::Already)],
        index: Vec::new(),
        publication: None,
    };
    let back = modify().reversed();
    assert_eq!(receipt.reversed(), std::slice::from_ref(&back));
    let planned = |change: &Change| {
        let mut live = fact(file("new", false), entry(Mode::File, "new"));
        if let LiveKind::File(f) = &mut live.kind {
            (f.is_before, f.is_after) = (true, false);
        }
        plan(std::slice::from_ref(change), &[live], IndexRule::Stays, &|_| old_entry()).expect("fits")
    };
    assert!(planned(&back).clear(&Clearance::to_undo(&receipt)).is_ok());
    let wider = Change::new(path("z"), state(Mode::File, "new"), None);
    assert!(planned(&wider).clear(&Clearance::to_undo(&receipt)).is_err());
}
