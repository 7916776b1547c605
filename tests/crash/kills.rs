//! SIGKILL at the system calls of each command that writes, an edit of the user's while it is down, then the
//! next command, whichever that is.

use crate::mixed::{EDITS, Edit, Stage, alike, fingerprint};
use crate::strace::{Call, What, calls, calls_with, can_trace, disturbed, killed_after_failure};
use crate::support::snapshot::{Entry, Tree, tree};
use crate::support::{Lab, Repo, setting};
use crate::{independent, more};
use serde_json::Value;

/// How many kills of a command are tried by default where each is not of interest.
const SOME: usize = 14;

/// The command that comes next after a crash.
#[derive(Debug, Clone, Copy)]
enum Next {
    Recover,
    Same,
    LookThenRecover,
    Another,
    VerifyAnother,
}

const NEXT: &[Next] = &[Next::Recover, Next::Same, Next::LookThenRecover, Next::Another, Next::VerifyAnother];

/// What a matrix counted.
#[derive(Debug, Default)]
struct Score {
    kills: usize,
    forward: usize,
    back: usize,
    edits: usize,
}

struct Trial<'s, 'l> {
    stage: &'s Stage<'l>,
    command: &'static str,
    shown: String,
    edit: Option<Edit>,
}

#[test]
fn a_delivery_that_is_killed_at_any_call_is_whole_or_absent_after_the_next_command() {
    let lab = Lab::within(&crate::independent::memory());
    matrix(&Stage::delivery(&lab), "deliver");
}

#[test]
fn files_and_index_are_killed_at_any_call_and_are_both_there_or_neither() {
    let lab = Lab::within(&crate::independent::memory());
    matrix(&Stage::staged(&lab), "deliver");
}

#[test]
fn an_undo_that_is_killed_at_any_call_is_whole_or_absent_after_the_next_command() {
    let lab = Lab::within(&crate::independent::memory());
    matrix(&Stage::undo(&lab), "undo");
}

/// Every call that changes the live tree or the store; of the ledger's pages every twelfth.
fn matrix(stage: &Stage<'_>, command: &'static str) {
    let mut calls = calls(&stage.repo, &[command, "t1"], if more() > 0 { 1 } else { 12 });
    calls.retain(|call| !call.is_sync());
    assert!(calls.len() > 30, "only {} calls: {calls:?}", calls.len());
    let shift = usize::try_from(setting("TENDER_SEED", 0)).expect("fits");
    let mut score = Score::default();
    for round in 0..=usize::try_from(more() / 2).expect("fits") {
        for (at, call) in calls.iter().enumerate() {
            // Both turns are of another length, so that in time everything meets everything.
            let at = at + shift + round;
            one(stage, command, call, EDITS[at % EDITS.len()], NEXT[at % NEXT.len()], &mut score);
        }
    }
    let Score { kills, forward, back, edits } = score;
    crate::support::say(&format!(
        "crash {command}: {kills} kills, {forward} went forward, {back} back, {edits} edits made while down, losses: 0"
    ));
    assert!(kills * 10 >= calls.len() * 8, "only {kills} kills");
    assert!(forward > 3 && back > 3 && edits > 5, "the kills did not fall where they should");
}

fn one(
    stage: &Stage<'_>,
    command: &'static str,
    call: &Call,
    edit: Option<Edit>,
    next: Next,
    score: &mut Score,
) {
    stage.again();
    let repo = &stage.repo;
    let (out, killed) = disturbed(repo, &[command, "t1"], call, What::Kill);
    if !killed {
        // The calls of two runs need not be the same to the last one.
        out.ok();
        return;
    }
    score.kills += 1;
    let edit = edit.filter(|edit| edit.make(repo));
    score.edits += usize::from(edit.is_some());
    let shown = format!("{command} killed before call {} ({}), {edit:?}, {next:?}", call.number, call.line);
    let trial = Trial { stage, command, shown, edit };
    let open = trial.unfinished();
    trial.next(next, &open);
    let done = trial.settled();
    score.forward += usize::from(done);
    score.back += usize::from(!done);
    trial.once_more(done, call.number.is_multiple_of(3));
}

impl Trial<'_, '_> {
    fn repo(&self) -> &Repo<'_> {
        &self.stage.repo
    }

    /// The rows of the action that was cut off, as the ledger holds them now.
    fn unfinished(&self) -> Vec<independent::Row> {
        let rows = independent::rows(&self.repo().store()).expect("readable");
        assert_eq!(independent::faults(&rows), [] as [String; 0], "{}", self.shown);
        let ends = ["succeeded", "failed_without_effect", "denied", "safe_to_retry"];
        let open = independent::by_action(&rows).into_values().find(|rows| {
            rows[0].tool == self.command && rows.iter().all(|row| !ends.contains(&row.state.as_str()))
        });
        open.map(|rows| rows.into_iter().cloned().collect()).unwrap_or_default()
    }

    fn next(&self, next: Next, open: &[independent::Row]) {
        let repo = self.repo();
        match next {
            Next::Recover => self.recover(open),
            Next::Same => {
                let answer = repo.json(&[self.command, "t1"]);
                assert!([0, 2, 3].contains(&answer.code), "{}: {:#}", self.shown, answer.json);
            }
            Next::LookThenRecover => {
                let before =
                    (fingerprint(&repo.path), independent::rows(&repo.store()).expect("readable").len());
                for view in [&["status"][..], &["report", "t1"], &["diff", "t1"]] {
                    repo.json(view).ok();
                }
                let after =
                    (fingerprint(&repo.path), independent::rows(&repo.store()).expect("readable").len());
                assert_eq!(before, after, "{}: a view wrote something", self.shown);
                self.recover(open);
            }
            Next::Another => drop(repo.json(&["submit", "t2"]).ok()),
            Next::VerifyAnother => {
                repo.json(&["submit", "t2"]).ok();
                repo.json(&["verify", "t2"]).ok();
            }
        }
    }

    /// `recover` names the action, and the user's edit where it had anything to do with it.
    fn recover(&self, open: &[independent::Row]) {
        let answer = self.repo().json(&["recover"]).ok();
        let all = answer.json["actions"].as_array().expect("actions");
        // What only looks around can be cut off as well, and has no effect.
        let (actions, others): (Vec<&Value>, Vec<&Value>) =
            all.iter().partition(|action| action["tool"] == self.command);
        assert!(
            others.iter().all(|other| other["outcome"] == "safe_to_retry"),
            "{}: {others:#?}",
            self.shown
        );
        assert_eq!(actions.len(), usize::from(!open.is_empty()), "{}: {:#}", self.shown, answer.json);
        let Some(action) = actions.first() else { return };
        assert_eq!(action["action"], open[0].action.as_str(), "{}", self.shown);
        let staged = open.iter().any(|row| row.record() == "staged");
        if let Some(edit) = self.edit.filter(|edit| edit.is_touched() && staged) {
            let kept = action["kept"].as_array().expect("kept");
            assert!(kept.contains(&Value::from(edit.path)), "{}: not named: {:#}", self.shown, answer.json);
        }
        let again = self.repo().json(&["recover"]).ok();
        assert_eq!(again.json["actions"], serde_json::json!([]), "{}", self.shown);
    }

    /// All or nothing, with the edit; gives which of the two.
    fn settled(&self) -> bool {
        let now = tree(&self.repo().path);
        let with_edit = |side: &Tree| self.edit.map_or_else(|| (side.clone(), None), |edit| edit.on(side));
        let (expected, displaced) = with_edit(&self.stage.before);
        let before = alike(&expected, &now);
        if let Some((path, bytes)) = displaced.filter(|_| before) {
            // The user's directory stands where a file of theirs would come back: that file is kept in the
            // store.
            assert!(self.is_stored(&bytes), "{}: the bytes of {path} are lost", self.shown);
        }
        let (expected, displaced) = with_edit(&self.stage.after);
        let after = displaced.is_none() && alike(&expected, &now);
        assert!(before != after, "{}: neither before nor after: {:#?}", self.shown, now);
        let index = self.repo().git(&["ls-files", "--stage"]);
        assert_eq!(index, self.stage.indexes[usize::from(after)], "{}: the index", self.shown);
        let left = std::fs::read_dir(self.repo().join(".git")).expect("lists").flatten();
        let left: Vec<_> = left.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        let ours = |name: &&String| name.starts_with("tender-index") || *name == "index.lock";
        assert_eq!(left.iter().find(ours), None, "{}", self.shown);
        let rows = independent::rows(&self.repo().store()).expect("readable");
        assert_eq!(independent::faults(&rows), [] as [String; 0], "{}", self.shown);
        assert!(self.unfinished().is_empty(), "{}: still unfinished", self.shown);
        let records: Vec<&str> = rows.iter().map(independent::Row::record).collect();
        let (end, state) =
            if self.command == "deliver" { ("delivered", "completed") } else { ("undone", "undone") };
        let ends = records.iter().filter(|record| **record == end).count();
        assert_eq!(ends, usize::from(after), "{}: {records:?}", self.shown);
        let report = self.repo().json(&["report", "t1"]).ok();
        assert_eq!(report.json["state"] == state, after, "{}: {:#}", self.shown, report.json);
        after
    }

    fn is_stored(&self, bytes: &[u8]) -> bool {
        let blobs = tree(&self.repo().store().join("blobs"));
        blobs.values().any(|entry| match entry {
            Entry::File { bytes: blob, .. } => blob.windows(bytes.len().max(1)).any(|part| part == bytes),
            _ => false,
        })
    }

    /// The same command again: it completes what was taken back, if the user lets it; what is done it leaves
    /// alone.
    fn once_more(&self, done: bool, thoroughly: bool) {
        let repo = self.repo();
        let held = fingerprint(&repo.path);
        let answer = repo.json(&[self.command, "t1"]);
        let in_the_way = self.edit.is_some_and(Edit::is_touched);
        match (done, in_the_way) {
            (true, _) if self.command == "deliver" => {
                let answer = answer.ok();
                assert!(answer.outcomes().iter().all(|(_, outcome)| outcome == "already"), "{}", self.shown);
                assert_eq!(held, fingerprint(&repo.path), "{}: written again", self.shown);
            }
            (true, _) => {
                answer.fails("state.invalid");
                assert_eq!(held, fingerprint(&repo.path), "{}: written again", self.shown);
            }
            (false, true) => {
                let path = self.edit.map(|edit| edit.path).unwrap_or_default();
                let above = |conflict: &str| path == conflict || path.starts_with(&format!("{conflict}/"));
                assert!(answer.conflicts().iter().any(|(conflict, _)| above(conflict)), "{}", self.shown);
                assert_eq!(held, fingerprint(&repo.path), "{}: written in spite of a conflict", self.shown);
            }
            (false, false) => {
                // A file of the user's in a directory that has to make room is a conflict too; there is none
                // here.
                answer.ok();
                assert!(self.settled(), "{}", self.shown);
                if thoroughly {
                    self.once_more(true, false);
                }
            }
        }
    }
}

/// What most people do after a crash: throw everything away. Nothing of the delivery comes back then, and
/// nothing is deleted; only what was complete before counts as done.
#[test]
fn a_tree_that_is_reset_after_a_kill_stays_reset() {
    if !can_trace() {
        return;
    }
    for staged in [false, true] {
        let lab = Lab::within(&crate::independent::memory());
        let stage = if staged { Stage::staged(&lab) } else { Stage::delivery(&lab) };
        let repo = &stage.repo;
        let mut all = calls(repo, &["deliver", "t1"], if more() > 0 { 1 } else { 12 });
        all.retain(|call| !call.is_sync());
        let (mut kills, mut done) = (0, 0);
        for call in all.iter().skip(usize::from(staged)).step_by(if more() > 0 { 1 } else { 2 }) {
            stage.again();
            let (_, killed) = disturbed(repo, &["deliver", "t1"], call, What::Kill);
            kills += usize::from(killed);
            let _ = std::fs::remove_file(repo.join(".git/index.lock"));
            repo.git(&["reset", "--quiet", "--hard"]);
            repo.git(&["clean", "--quiet", "-fd"]);
            let reset = (tree(&repo.path), repo.git(&["ls-files", "--stage"]));
            repo.json(&["recover"]).ok();
            let shown = format!("killed before {}", call.line);
            assert_eq!((tree(&repo.path), repo.git(&["ls-files", "--stage"])), reset, "{shown}");
            let delivered = repo.json(&["deliver", "t1"]).ok().outcomes();
            let already = delivered.iter().filter(|(_, outcome)| outcome == "already").count();
            assert!(already == 0 || already == delivered.len(), "{shown}: {delivered:?}");
            assert_eq!(already > 0, tree(&repo.path) == reset.0, "{shown}: {delivered:?}");
            done += usize::from(already > 0);
        }
        crate::support::say(&format!("crash reset: {kills} kills, {done} were complete, losses: 0"));
        assert!(kills > 10 && done > 0 && done < kills, "{done} of {kills}");
    }
}

#[test]
fn a_delivery_that_is_killed_while_it_is_taken_back_never_goes_forward_again() {
    if !can_trace() {
        return;
    }
    let lab = Lab::within(&crate::independent::memory());
    let stage = Stage::delivery(&lab);
    let repo = &stage.repo;
    let args = ["deliver", "t1", "--format", "json"];
    let usual = calls(repo, &args, 1000);
    // The last directory cannot be made. (strace takes one fault for each system call: renames are needed for
    // the kills.)
    let late = usual.iter().rfind(|call| call.name.0 == "mkdirat").expect("directories are made");
    let failing = What::Fail("EIO");
    stage.again();
    let all = calls_with(repo, &args, 12, &late.inject(failing), 10);
    let first_back = all.iter().find(|call| call.name.0 == "renameat2" && call.number > late.number);
    let first_back = first_back.expect("something is put back").number;
    let mut kills = 0;
    for call in all.iter().filter(|call| call.number >= first_back && !call.is_sync()) {
        stage.again();
        let killed = killed_after_failure(repo, &args, (late, failing), call);
        // A row of another length may take a page of the ledger more or less, and the kill comes before it says
        // that it goes back; then it may go forward.
        let rows = independent::rows(&repo.store()).expect("readable");
        let last = rows.last().map(|row| row.action.clone());
        let announced =
            rows.iter().any(|row| row.record() == "taking_back" && Some(&row.action) == last.as_ref());
        repo.json(&["recover"]).ok();
        let (Some(killed), true) = (killed, announced) else { continue };
        kills += usize::from(killed);
        let now = tree(&repo.path);
        assert!(alike(&stage.before, &now), "killed while taking back, before {}: {now:#?}", call.line);
        repo.json(&["deliver", "t1"]).ok();
        assert!(alike(&stage.after, &tree(&repo.path)), "{}", call.line);
    }
    crate::support::say(&format!("crash taking back: {kills} kills, none went forward, losses: 0"));
    assert!(kills > 10, "only {kills} kills");
}

/// For commands that do not write to the live tree: killed, the tree is untouched; the same command completes
/// it.
fn killed_then_again(
    lab: &Lab,
    name: &str,
    prepare: impl Fn(&Repo<'_>),
    args: &[&str],
    check: impl Fn(&Repo<'_>),
) {
    let repo = crate::mixed::repository(lab);
    prepare(&repo);
    crate::mixed::copy(lab, &["app", "app.tender"], "", "kept");
    let before = repo.snapshot();
    let all = calls(&repo, args, 8);
    let step = (all.len() / (SOME << more().min(8))).max(1);
    let mut kills = 0;
    for call in all.iter().step_by(step) {
        for folder in ["app", "app.tender"] {
            std::fs::remove_dir_all(lab.path(folder)).expect("removes");
        }
        crate::mixed::copy(lab, &["app", "app.tender"], "kept", "");
        let (_, killed) = disturbed(&repo, args, call, What::Kill);
        kills += usize::from(killed);
        before.same(&repo.snapshot());
        repo.json(&["status"]).ok();
        repo.json(args).ok();
        check(&repo);
        before.same(&repo.snapshot());
        repo.json(&["recover"]).ok();
        let rows = independent::rows(&repo.store()).expect("readable");
        assert_eq!(independent::faults(&rows), [] as [String; 0], "{name} killed before {call:?}");
        repo.git_out(&["fsck", "--strict", "--no-dangling"]).ok();
    }
    crate::support::say(&format!("crash {name}: {kills} kills of {} calls, losses: 0", all.len()));
    assert!(kills > 5 && kills * 10 >= all.len() / step * 7, "only {kills} kills");
}

#[test]
fn an_open_that_is_killed_can_be_repeated() {
    let lab = Lab::within(&crate::independent::memory());
    let contract = crate::support::Contract::new("t1").set("base", "live".into()).file(&lab);
    let path = crate::support::repo::path_text(&contract).to_owned();
    killed_then_again(
        &lab,
        "open",
        |repo| drop(repo.open(&crate::support::Contract::new("t0"))),
        &["open", &path],
        |repo| {
            let shown = repo.json(&["open", &path]).ok();
            let worktree = crate::support::Task::of(&shown.json);
            assert_eq!(worktree.read("keep.txt"), b"work in progress\n");
        },
    );
}

#[test]
fn a_submit_that_is_killed_can_be_repeated() {
    let lab = Lab::within(&crate::independent::memory());
    killed_then_again(
        &lab,
        "submit",
        |repo| crate::mixed::change(&repo.open(&crate::support::Contract::new("t1"))),
        &["submit", "t1"],
        |repo| assert_eq!(repo.json(&["submit", "t1"]).ok().json["candidate"], 1),
    );
}

#[test]
fn a_gc_that_is_killed_can_be_repeated() {
    let lab = Lab::within(&crate::independent::memory());
    killed_then_again(
        &lab,
        "gc",
        |repo| {
            repo.submitted(&crate::support::Contract::new("t1"), crate::mixed::change);
            repo.json(&["cancel", "t1"]).ok();
            let stays = repo.open(&crate::support::Contract::new("t2"));
            stays.write("never-captured.txt", "only here\n");
            repo.json(&["cancel", "t2"]).ok();
        },
        &["gc"],
        |repo| {
            assert!(!repo.lab.path("app.tender/t1").exists(), "what is captured goes");
            let kept = std::fs::read(repo.lab.path("app.tender/t2/never-captured.txt"));
            assert_eq!(kept.expect("what was never captured stays"), b"only here\n");
            assert_eq!(repo.git(&["for-each-ref", "refs/tender/tasks/t1/"]), "");
        },
    );
}
