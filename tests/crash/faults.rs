//! The disk fails, is full or read-only; parts of the store vanish; the clock goes backwards; two deliver at
//! once.

use crate::mixed::{Stage, alike, change, repository};
use crate::strace::{What, calls, can_trace, disturbed, looks};
use crate::support::lab::{TENDER, run};
use crate::support::repo::path_text;
use crate::support::snapshot::tree;
use crate::support::{Answer, Contract, Lab, Repo, skip};
use crate::{independent, more};
use std::path::PathBuf;

/// What this machine cannot do at all, not even in CI.
fn impossible(why: &str) {
    crate::support::say(&format!("SKIPPED: {why}"));
}

const ERRORS: &[&str] = &["EIO", "ENOSPC", "EROFS", "EDQUOT"];

#[test]
fn a_delivery_whose_calls_fail_is_whole_or_absent_and_says_so() {
    let lab = Lab::within(&crate::independent::memory());
    failing(&Stage::delivery(&lab), "deliver");
}

#[test]
fn an_undo_whose_calls_fail_is_whole_or_absent_and_says_so() {
    let lab = Lab::within(&crate::independent::memory());
    failing(&Stage::undo(&lab), "undo");
}

/// Nothing is decided by what could not be looked at: neither that it is absent, nor that it is the user's.
#[test]
fn a_look_that_fails_is_a_failure_and_no_conflict() {
    if !can_trace() {
        return;
    }
    for command in ["deliver", "undo"] {
        let lab = Lab::within(&crate::independent::memory());
        let stage = if command == "undo" { Stage::undo(&lab) } else { Stage::delivery(&lab) };
        let looks = looks(&stage.repo, &[command, "t1"]);
        assert!(looks.len() > 10, "{looks:#?}");
        for look in looks.iter().step_by(if more() > 0 { 1 } else { 4 }) {
            stage.again();
            let (out, _) =
                disturbed(&stage.repo, &[command, "t1", "--format", "json"], look, What::Fail("EMFILE"));
            after_a_failure(&stage, command, Answer::of(out), &format!("EMFILE at {}", look.line));
        }
        crate::support::say(&format!(
            "faults {command}: {} looks, a part of them failed, losses: 0",
            looks.len()
        ));
    }
}

fn failing(stage: &Stage<'_>, command: &str) {
    if !can_trace() {
        return;
    }
    let calls = calls(&stage.repo, &[command, "t1"], if more() > 0 { 1 } else { 12 });
    let (mut done, mut refused, mut open) = (0, 0, 0);
    for (at, call) in calls.iter().enumerate() {
        let error = ERRORS[at % ERRORS.len()];
        stage.again();
        let (out, _) = disturbed(&stage.repo, &[command, "t1", "--format", "json"], call, What::Fail(error));
        match after_a_failure(stage, command, Answer::of(out), &format!("{error} at {}", call.line)) {
            End::Done => done += 1,
            End::Refused => refused += 1,
            End::Open => open += 1,
        }
    }
    crate::support::say(&format!(
        "faults {command}: {} calls failed, {done} delivered all the same, {refused} left all as it was, {open} were put in order by recover, losses: 0",
        calls.len()
    ));
    assert!(done > 3 && refused > 20, "{done} {refused}");
}

enum End {
    Done,
    Refused,
    Open,
}

fn after_a_failure(stage: &Stage<'_>, command: &str, answer: Answer, shown: &str) -> End {
    let repo = &stage.repo;
    let whole = || {
        let now = tree(&repo.path);
        match (alike(&stage.before, &now), alike(&stage.after, &now)) {
            (true, false) => Some(false),
            (false, true) => Some(true),
            _ => None,
        }
    };
    let end = if answer.code == 0 {
        answer.ok();
        assert_eq!(whole(), Some(true), "{shown}: succeeded with a part of it");
        End::Done
    } else {
        let error = answer.fails_one_of(&["io", "outcome.unknown"]);
        match whole() {
            Some(false) => End::Refused,
            // The number of writes before the answer is not the same in each run, so that the call may be the
            // one that prints. Then all is done, and the ledger says so.
            Some(true) if error["message"].as_str().is_some_and(|said| said.contains("standard output")) => {
                assert_eq!(repo.json(&["recover"]).ok().json["actions"], serde_json::json!([]), "{shown}");
                End::Done
            }
            _ => {
                let remedy = error["remedy"]["command"].to_string();
                assert!(remedy.contains("recover"), "{shown}: a part of it, and no word of it: {error:#}");
                End::Open
            }
        }
    };
    repo.json(&["recover"]).ok();
    assert!(whole().is_some(), "{shown}: neither before nor after: {:#?}", tree(&repo.path));
    let rows = independent::rows(&repo.store()).expect("readable");
    assert_eq!(independent::faults(&rows), [] as [String; 0], "{shown}");
    if whole() == Some(false) {
        repo.json(&[command, "t1"]).ok();
        assert_eq!(whole(), Some(true), "{shown}");
    }
    end
}

/// A file system of its own, for as long as this lives.
struct Mounted(PathBuf);

impl Mounted {
    fn new(lab: &Lab, size: &str) -> Option<Self> {
        let place = lab.path("small");
        std::fs::create_dir(&place).expect("creates");
        let mut command = lab.command("mount", &lab.path(""));
        command.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs", path_text(&place)]);
        if run(command, None).code == 0 {
            return Some(Self(place));
        }
        impossible(
            "no file system can be mounted here: the tests of a full and of a read-only disk are left out",
        );
        None
    }

    /// A real one, whose blocks are smaller than a page.
    fn with_small_blocks(lab: &Lab) -> Option<Self> {
        let (place, image) = (lab.path("small"), lab.path("image"));
        std::fs::create_dir(&place).expect("creates");
        let file = std::fs::File::create(&image).expect("creates");
        file.set_len(64 << 20).expect("sizes");
        let mut make = lab.command("mkfs.ext4", &lab.path(""));
        make.args(["-q", "-F", "-b", "1024", "-m", "0"]).arg(&image);
        let mut mount = lab.command("mount", &lab.path(""));
        mount.args(["-o", "loop"]).arg(&image).arg(&place);
        if run(make, None).code == 0 && run(mount, None).code == 0 {
            return Some(Self(place));
        }
        impossible("no image can be mounted here: the test of a full disk with small blocks is left out");
        None
    }

    fn fill_up_to(&self, room: u64) -> PathBuf {
        let ballast = self.0.join("ballast");
        let stat = rustix::fs::statvfs(&self.0).expect("stats");
        let free = stat.f_bavail * stat.f_frsize;
        let bytes = usize::try_from(free.saturating_sub(room)).expect("fits");
        // What the bookkeeping of the file takes is not there for its bytes.
        let mut file = std::fs::File::create(&ballast).expect("creates");
        let filled = std::io::Write::write_all(&mut file, &vec![0u8; bytes]);
        drop(filled.and_then(|()| file.sync_all()));
        ballast
    }

    fn remount(&self, lab: &Lab, how: &str) {
        let mut command = lab.command("mount", &lab.path(""));
        command.args(["-o", &format!("remount,{how}"), path_text(&self.0)]);
        run(command, None).ok();
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// A repository on the small disk, with a task whose delivery takes about 3 MB.
fn on_small_disk(lab: &Lab) -> Repo<'_> {
    let repo = lab.empty_repo("small/app");
    for n in 0..6 {
        repo.write(format!("d{n}/f.txt"), "old\n");
    }
    repo.commit("base");
    repo.submitted(&Contract::new("t1"), |task| {
        for n in 0..6 {
            task.write(format!("d{n}/f.txt"), "new\n".repeat(128 << 10));
        }
    });
    repo
}

#[test]
fn a_full_disk_leaves_all_as_it_was_and_with_room_it_goes_through() {
    let lab = Lab::within(&crate::independent::memory());
    let Some(mounted) = Mounted::new(&lab, "40m") else { return };
    let repo = on_small_disk(&lab);
    let before = repo.snapshot();
    for room in [0, 40 << 10, 200 << 10, 1 << 20, 2 << 20, 3_000_000u64] {
        let ballast = mounted.0.join("ballast");
        let stat = rustix::fs::statvfs(&mounted.0).expect("stats");
        let free = stat.f_bavail * stat.f_frsize;
        let bytes = usize::try_from(free.saturating_sub(room)).expect("fits");
        std::fs::write(&ballast, vec![0u8; bytes]).expect("fills");
        let answer = repo.json(&["deliver", "t1"]);
        std::fs::remove_file(&ballast).expect("removes");
        answer.fails("io");
        before.same(&repo.snapshot());
        assert_eq!(repo.json(&["recover"]).ok().code, 0, "{room}");
        before.same(&repo.snapshot());
    }
    let rows = independent::rows(&repo.store()).expect("readable");
    assert_eq!(independent::faults(&rows), [] as [String; 0]);
    repo.json(&["deliver", "t1"]).ok();
    assert_eq!(repo.read("d5/f.txt").len(), 512 << 10);
}

/// A page of the ledger's shared memory that gets no block would end the process by a signal.
#[test]
fn a_full_disk_of_small_blocks_is_a_failure_and_no_death() {
    let lab = Lab::within(&crate::independent::memory());
    let Some(mounted) = Mounted::with_small_blocks(&lab) else { return };
    let repo = on_small_disk(&lab);
    let before = repo.snapshot();
    for room in [0, 10 << 10, 30 << 10, 60 << 10, 120 << 10u64] {
        let ballast = mounted.fill_up_to(room);
        let answer = repo.json(&["deliver", "t1"]);
        repo.json(&["status"]).ok();
        std::fs::remove_file(&ballast).expect("removes");
        answer.fails("io");
        before.same(&repo.snapshot());
    }
    repo.json(&["deliver", "t1"]).ok();
}

/// Each call that makes the ledger fails once: nothing stands under its name then, or a whole one.
#[test]
fn a_ledger_whose_making_fails_is_no_loss() {
    if !can_trace() {
        return;
    }
    let lab = Lab::within(&crate::independent::memory());
    let contract = Contract::new("t1").file(&lab);
    let args = ["open", path_text(&contract), "--format", "json"];
    let making: Vec<_> = calls(&repository(&lab), &args, 1)
        .into_iter()
        .filter(|call| call.line.contains("/.ledger-") && !call.line.starts_with("open"))
        .collect();
    assert!(making.len() > 10, "{making:?}");
    for (at, call) in making.iter().enumerate() {
        let lab = Lab::within(&crate::independent::memory());
        let (repo, contract) = (repository(&lab), Contract::new("t1").file(&lab));
        let args = ["open", path_text(&contract), "--format", "json"];
        let (out, _) = disturbed(&repo, &args, call, What::Fail(ERRORS[at % ERRORS.len()]));
        let answer = Answer::of(out);
        if answer.code != 0 {
            answer.fails("io");
        }
        repo.json(&["recover"]).ok();
        repo.json(&["open", path_text(&contract)]).ok();
    }
}

#[test]
fn a_disk_that_became_read_only_refuses_and_later_goes_through() {
    let lab = Lab::within(&crate::independent::memory());
    let Some(mounted) = Mounted::new(&lab, "40m") else { return };
    let repo = on_small_disk(&lab);
    let before = repo.snapshot();
    mounted.remount(&lab, "ro");
    for args in [&["deliver", "t1"][..], &["submit", "t1"], &["undo", "t1"], &["cancel", "t1"], &["recover"]]
    {
        let answer = repo.json(args);
        if answer.code != 0 {
            answer.fails_one_of(&["io", "state.invalid"]);
        }
        before.same(&repo.snapshot());
    }
    for view in [&["status"][..], &["report", "t1"], &["diff", "t1"]] {
        let answer = repo.json(view);
        if answer.code != 0 {
            answer.fails("io");
        }
    }
    mounted.remount(&lab, "rw");
    repo.json(&["recover"]).ok();
    before.same(&repo.snapshot());
    repo.json(&["deliver", "t1"]).ok();
    assert_eq!(repo.read("d5/f.txt").len(), 512 << 10);
}

#[test]
fn without_its_worktree_a_task_still_delivers_its_candidate() {
    let lab = Lab::within(&crate::independent::memory());
    let repo = repository(&lab);
    let task = repo.submitted(&Contract::new("t1"), change);
    std::fs::remove_dir_all(&task.worktree).expect("removes");
    let error = repo.json(&["submit", "t1"]);
    assert!(error.fails("not_found")["message"].as_str().is_some_and(|text| text.contains("is gone")));
    repo.json(&["deliver", "t1"]).ok();
    assert_eq!(repo.text("a"), "A\n");
    assert_eq!(repo.json(&["gc"]).ok().json["removed"], serde_json::json!(["t1"]));
    repo.git_out(&["fsck", "--strict"]).ok();
}

#[test]
fn without_its_private_folder_the_last_state_of_a_task_is_not_lost() {
    let lab = Lab::within(&crate::independent::memory());
    let repo = repository(&lab);
    repo.submitted(&Contract::new("t1"), change);
    let candidate = repo.json(&["report", "t1"]).ok();
    std::fs::remove_dir_all(repo.store().join("tasks/t1")).expect("removes");
    let before = repo.snapshot();
    assert_eq!(repo.git(&["show", "refs/tender/tasks/t1/last:n/o"]), "new");
    assert_eq!(repo.json(&["report", "t1"]).ok().changes(), candidate.changes());
    let answer = repo.json(&["deliver", "t1"]);
    if answer.code == 0 {
        assert_eq!(repo.text("n/o"), "new\n");
        repo.json(&["undo", "t1"]).ok();
        before.same(&repo.snapshot());
    } else {
        answer.fails_one_of(&["io", "store.corrupt", "state.invalid", "not_found"]);
        before.same(&repo.snapshot());
    }
    let again = repo.json(&["gc"]).ok();
    assert!(again.json.to_string().contains("t1"), "{:#}", again.json);
    repo.git_out(&["fsck", "--strict"]).ok();
}

#[test]
fn of_two_tasks_for_the_same_path_one_wins_and_for_different_paths_both() {
    let lab = Lab::within(&crate::independent::memory());
    let repo = repository(&lab);
    for round in 0..6 {
        let ids: Vec<String> =
            ["same", "other", "apart"].iter().map(|name| format!("{name}-{round}")).collect();
        for (id, path) in ids.iter().zip(["a", "a", "m"]) {
            let text = format!("{id}\n");
            repo.submitted(&Contract::new(id), |task| task.write(path, &text));
        }
        let answers: Vec<Answer> = std::thread::scope(|scope| {
            let started: Vec<_> = ids.iter().map(|id| scope.spawn(|| repo.json(&["deliver", id]))).collect();
            started.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        let won: Vec<bool> = answers.iter().map(|answer| answer.code == 0).collect();
        assert!(won[0] != won[1] && won[2], "{won:?}");
        let (winner, loser) = if won[0] { (0, 1) } else { (1, 0) };
        assert_eq!(answers[loser].conflicts(), [("a".to_owned(), "edited".to_owned())]);
        assert_eq!(repo.text("a"), format!("{}\n", ids[winner]));
        assert_eq!(repo.text("m"), format!("{}\n", ids[2]));
        repo.git(&["checkout", "-q", "--", "a", "m"]);
    }
    let rows = independent::rows(&repo.store()).expect("readable");
    assert_eq!(independent::faults(&rows), [] as [String; 0]);
}

#[test]
fn a_clock_that_goes_backwards_disturbs_nothing() {
    let lab = Lab::within(&crate::independent::memory());
    let repo = repository(&lab);
    let at = |date: &str, args: &[&str]| {
        let mut command = lab.command("faketime", &repo.path);
        command.args(["-f", date, "setsid", "--wait", TENDER]).args(args).args(["--format", "json"]);
        Answer::of(run(command, None))
    };
    if std::process::Command::new("faketime").arg("--version").output().is_err() {
        skip("faketime is not installed");
        return;
    }
    let contract = Contract::new("t1").file(&lab);
    let opened = at("2030-01-01 00:00:00", &["open", path_text(&contract)]).ok();
    change(&crate::support::Task::of(&opened.json));
    at("2020-06-01 00:00:00", &["submit", "t1"]).ok();
    at("2031-01-01 00:00:00", &["verify", "t1"]).ok();
    at("2019-01-01 00:00:00", &["deliver", "t1"]).ok();
    assert_eq!(repo.text("a"), "A\n");
    at("2018-01-01 00:00:00", &["undo", "t1"]).ok();
    assert_eq!(repo.text("a"), "a\n");
    let rows = independent::rows(&repo.store()).expect("readable");
    assert_eq!(independent::faults(&rows), [] as [String; 0]);
    let years: Vec<&str> = rows.iter().map(|row| &row.at[..4]).collect();
    assert!(
        years.contains(&"2030") && years.contains(&"2018"),
        "the clock was not the one we set: {years:?}"
    );
    at("2017-01-01 00:00:00", &["recover"]).ok();
    assert_eq!(at("2016-01-01 00:00:00", &["gc"]).ok().json["removed"], serde_json::json!(["t1"]));
}
