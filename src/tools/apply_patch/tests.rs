//! Whole calls of the tool against a worktree, without a ledger.

use super::*;
use crate::git::apply::tests::world::{Tree, World};

/// What a call may do, for a test.
struct Call<'a> {
    world: &'a World,
    known: BTreeMap<RepoPath, ObjectId>,
    barred: Option<&'a str>,
}

impl<'a> Call<'a> {
    fn new(world: &'a World) -> Self {
        Self { world, known: BTreeMap::new(), barred: None }
    }

    fn prepare_edit(&self, arguments: &ApplyPatchArguments) -> Result<PreparedEdit> {
        let bar = |path: &RepoPath| match self.barred {
            Some(barred) if path.to_string() == barred => {
                Err(Failure::new(Code::ScopeViolation, "not in scope").subject(barred))
            }
            _ => Ok(()),
        };
        prepare_edit(
            arguments,
            PatchGround {
                repository: &self.world.repository,
                worktree: &self.world.path(""),
                may_read: &bar,
                may_write: &bar,
                known: &|path| self.known.get(path).cloned(),
            },
        )
    }

    fn apply_patch(
        &self,
        patch: &str,
        expected: &[(&str, &str)],
    ) -> Result<Vec<crate::domain::change::patch::Change>> {
        let expected = expected.iter().map(|(path, id)| ((*path).to_owned(), (*id).to_owned())).collect();
        let ready = self.prepare_edit(&ApplyPatchArguments { patch: patch.to_owned(), expected })?;
        let changes = ready.changes.clone();
        self.world.execute_edit(ready)?;
        Worktree::open_worktree(&self.world.repository, &self.world.path(""))?.confirm_written(&changes)?;
        Ok(changes)
    }

    /// Refused with this code, and nothing is different.
    #[track_caller]
    fn expect_refusal(&self, patch: &str, expected: &[(&str, &str)], code: Code) -> Failure {
        let before: Tree = self.world.live_tree();
        let failure = self.apply_patch(patch, expected).expect_err(patch);
        assert_eq!(failure.code(), code, "{failure}");
        assert_eq!(self.world.live_tree(), before);
        failure
    }
}

fn blob_id_of(world: &World, text: &str) -> ObjectId {
    world.repository.format().blob_id(text.as_bytes()).expect("an id")
}

fn repo_path(text: &str) -> RepoPath {
    RepoPath::new(text).expect("a path")
}

const CHANGE: &str = "*** Begin Patch\n*** Update File: a\n@@\n-1\n+one\n*** End Patch\n";

#[test]
fn several_files_in_one_call() {
    let world = World::new(&[("a", "1\n"), ("b", "2\n"), ("m/old", "3\n")]);
    world.set_mode("m/old", 0o750);
    let patch = "*** Begin Patch\n*** Update File: a\n@@\n-1\n+one\n*** Delete File: b\n*** Add File: n/c\n+new\n*** Update File: m/old\n*** Move to: k/new\n@@\n-3\n+three\n*** End Patch\n";
    let changes = Call::new(&world).apply_patch(patch, &[]).expect("applied");
    let listed: Vec<String> = changes
        .iter()
        .map(|c| format!("{} {}", c.path, serde_json::to_value(c.status).expect("text")))
        .collect();
    assert_eq!(
        listed,
        ["a \"modified\"", "b \"deleted\"", "k/new \"added\"", "m/old \"deleted\"", "n/c \"added\""]
    );
    let tree = world.live_tree();
    let names: Vec<&str> = tree.keys().map(String::as_str).collect();
    assert_eq!(names, ["a", "k/new", "n/c"]);
    assert_eq!(tree["k/new"], ("750".to_owned(), b"three\n".to_vec()));
    let json = serde_json::to_value(&changes[0]).expect("serializes");
    assert_eq!(json["new"]["gitBlob"], blob_id_of(&world, "one\n").as_str());
    assert_eq!(json["old"]["mode"], "100644");
}

#[test]
fn all_or_nothing() {
    let world = World::new(&[("a", "1\n"), ("b", "2\n")]);
    let call = Call::new(&world);
    let half = CHANGE.replace("*** End", "*** Update File: b\n@@\n-x\n+y\n*** End");
    assert_eq!(call.expect_refusal(&half, &[], Code::PatchInvalid).subject_text(), Some("b"));
    let over = CHANGE.replace("*** End", "*** Add File: b\n+y\n*** End");
    call.expect_refusal(&over, &[], Code::PatchInvalid);
    let onto = CHANGE.replace("@@", "*** Move to: b\n@@");
    assert_eq!(call.expect_refusal(&onto, &[], Code::PatchInvalid).subject_text(), Some("b"));
    let barred = Call { barred: Some("b"), ..Call::new(&world) };
    barred.expect_refusal(&onto, &[], Code::ScopeViolation);
    barred.expect_refusal(&half, &[], Code::ScopeViolation);
    barred.expect_refusal(CHANGE, &[("b", "1234567")], Code::ScopeViolation);
}

#[test]
fn the_version_that_is_meant() {
    let world = World::new(&[("a", "1\n"), ("b", "2\n")]);
    let call = Call::new(&world);
    let right = blob_id_of(&world, "1\n").to_string();
    let failure = call.expect_refusal(CHANGE, &[("a", "1234567890")], Code::VersionConflict);
    assert_eq!(failure.details()["expected"], "1234567890");
    assert_eq!(failure.details()["actual"], right);
    assert_eq!(serde_json::to_value(&failure).expect("json")["retry"], "reread");
    // Also of a file that the patch leaves alone.
    let other = call.expect_refusal(CHANGE, &[("b", right.as_str())], Code::VersionConflict);
    assert_eq!(other.subject_text(), Some("b"));
    call.expect_refusal(CHANGE, &[("missing", right.as_str())], Code::VersionConflict);
    call.expect_refusal(CHANGE, &[("a", "0000000")], Code::VersionConflict);
    for wrong in ["", "12345", "not hex", &"a".repeat(50)] {
        call.expect_refusal(CHANGE, &[("a", wrong)], Code::ArgumentsInvalid);
    }
    call.expect_refusal(CHANGE, &[("../a", "1234567")], Code::ScopeViolation);
    // What was read before counts, where the call says nothing.
    let mut stale = Call::new(&world);
    stale.known.insert(repo_path("a"), blob_id_of(&world, "old\n"));
    stale.expect_refusal(CHANGE, &[], Code::VersionConflict);
    let sha256 = crate::domain::value::digest::Sha256::of(b"1\n").to_string();
    for (name, named) in [("a", &right[..7]), ("a", &right.to_uppercase()), ("a", &sha256), ("./a", &right)] {
        stale
            .prepare_edit(&ApplyPatchArguments {
                patch: CHANGE.to_owned(),
                expected: [(name.to_owned(), named.to_owned())].into(),
            })
            .expect(named);
    }
    call.expect_refusal(CHANGE, &[("./a", "1234567890")], Code::VersionConflict);
    call.expect_refusal(CHANGE, &[("./a", "1234567890"), ("a", right.as_str())], Code::ArgumentsInvalid);
    stale
        .apply_patch(
            CHANGE,
            &[("a", &right), ("b", &blob_id_of(&world, "2\n").as_str()[..8]), ("new", &"0".repeat(40))],
        )
        .expect("applied");
}

#[test]
fn what_is_gone_may_be_made_anew() {
    let world = World::new(&[("a", "1\n")]);
    let mut call = Call::new(&world);
    call.known.insert(repo_path("a"), blob_id_of(&world, "1\n"));
    let add = "*** Begin Patch\n*** Add File: a\n+new\n*** End Patch\n";
    call.expect_refusal(add, &[], Code::PatchInvalid);
    std::fs::remove_file(world.path("a")).expect("removed");
    call.expect_refusal(CHANGE, &[], Code::VersionConflict);
    call.apply_patch(add, &[]).expect("nothing is there");
    assert_eq!(world.live_tree()["a"].1, b"new\n");
}

#[test]
fn a_mode_alone_is_a_change_and_the_same_mode_is_none() {
    let world = World::new(&[("a", "1\n")]);
    world.set_mode("a", 0o644);
    let mode = "diff --git a/a b/a\nold mode 100644\nnew mode 100755\n";
    Call::new(&world).apply_patch(mode, &[]).expect("applied");
    assert_eq!(world.mode_of("a"), 0o755);
    Call::new(&world).expect_refusal(mode, &[], Code::PatchInvalid);
    let script =
        "diff --git a/s b/s\nnew file mode 100755\n--- /dev/null\n+++ b/s\n@@ -0,0 +1 @@\n+#!/bin/sh\n";
    Call::new(&world).apply_patch(script, &[]).expect("applied");
    assert_ne!(world.mode_of("s") & 0o100, 0);
}

#[test]
fn many_failures_are_told_by_the_first_of_them_and_counted() {
    let world = World::new(&[("a", "1\n")]);
    let call = Call::new(&world);
    let missing: String = (0..3_000).map(|at| format!("*** Update File: f{at}\n@@\n-1\n+2\n")).collect();
    let missing = format!("*** Begin Patch\n{missing}*** End Patch\n");
    let failure = call.expect_refusal(&missing, &[], Code::PatchInvalid);
    assert_eq!((failure.number(), &failure.details()["filesNotLookedAt"]), (20, &2_980.into()));
    let names: Vec<String> = (0..3_000).map(|at| format!("f{at}")).collect();
    let expected: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "1234567")).collect();
    let failure = call.expect_refusal(CHANGE, &expected, Code::VersionConflict);
    assert_eq!((failure.number(), failure.others().len()), (3_000, 20));
    let outside: String = (0..3_000).map(|at| format!("*** Add File: o/{at}\n+1\n")).collect();
    let outside = format!("*** Begin Patch\n{outside}*** End Patch\n");
    let none = |path: &RepoPath| Err(Failure::new(Code::ScopeViolation, format!("{path} is not in scope")));
    let arguments = ApplyPatchArguments { patch: outside, expected: BTreeMap::new() };
    let ground = PatchGround {
        repository: &world.repository,
        worktree: &world.path(""),
        may_read: &|_| Ok(()),
        may_write: &none,
        known: &|_| None,
    };
    let failure = authorize_patch(&arguments, ground).expect_err("outside");
    assert_eq!((failure.number(), failure.others().len()), (3_000, 20));
}

#[test]
fn many_files_are_held_against_each_other_once() {
    let world = World::new(&[]);
    let count = 100_000;
    let adds: String = (0..count).map(|at| format!("*** Add File: {at}\n+1\n")).collect();
    let expected = (0..count).map(|at| (format!("x{at}"), "0000000".to_owned())).collect();
    let arguments =
        ApplyPatchArguments { patch: format!("*** Begin Patch\n{adds}*** End Patch\n"), expected };
    let ground = PatchGround {
        repository: &world.repository,
        worktree: &world.path(""),
        may_read: &|_| Ok(()),
        may_write: &|_| Ok(()),
        known: &|_| None,
    };
    let started = std::time::Instant::now();
    let asked = read_request(&arguments, ground).expect("fine");
    let new = new_paths(&asked.files);
    assert_eq!(asked.paths.iter().filter(|path| new.contains(path)).count(), count);
    assert_eq!(asked.paths.len(), 2 * count);
    assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
}

#[test]
fn unknown_arguments_are_refused() {
    let read = |text: &str| serde_json::from_str::<ApplyPatchArguments>(text);
    read(r#"{"patch": "x", "max_calls": 3}"#).expect_err("unknown");
    read(r#"{"expected": {}}"#).expect_err("no patch");
    assert_eq!(read(r#"{"patch": "x"}"#).expect("fine").expected, BTreeMap::new());
    let schema = serde_json::to_value(schemars::schema_for!(ApplyPatchArguments)).expect("a schema");
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["required"], serde_json::json!(["patch"]));
}
