//! A delivery of 5,000 files, killed at random times.

use crate::strace::killed_after;
use crate::support::{Contract, Dice, Lab, Repo, setting};
use crate::{independent, more};
use std::time::{Duration, Instant};

const FILES: usize = 5_000;

fn name(n: usize) -> String {
    format!("many/{:02}/f{n:04}.txt", n % 50)
}

fn prepared(lab: &Lab) -> Repo<'_> {
    let repo = lab.empty_repo("app");
    (0..FILES).filter(|n| n % 10 != 9).for_each(|n| repo.write(name(n), format!("old {n}\n")));
    repo.commit("many");
    repo
}

/// Old, new or something else, of every path: replaced, every tenth created, every tenth deleted.
fn count(repo: &Repo<'_>) -> (usize, usize) {
    let (mut old, mut new) = (0, 0);
    for n in 0..FILES {
        let text = std::fs::read_to_string(repo.join(name(n))).ok();
        let (before, after) = match n % 10 {
            9 => (None, Some(format!("new {n}\n"))),
            8 => (Some(format!("old {n}\n")), None),
            _ => (Some(format!("old {n}\n")), Some(format!("new {n}\n"))),
        };
        old += usize::from(text == before);
        new += usize::from(text == after);
    }
    (old, new)
}

fn strangers(repo: &Repo<'_>) -> Vec<String> {
    let known: std::collections::HashSet<String> = (0..FILES).map(name).collect();
    let all = crate::support::snapshot::tree(&repo.path).into_iter();
    let files = all.filter(|(_, entry)| !matches!(entry, crate::support::snapshot::Entry::Directory { .. }));
    files.map(|(path, _)| path).filter(|path| !known.contains(path)).collect()
}

#[test]
fn a_delivery_of_5000_files_that_is_killed_is_whole_or_absent() {
    let lab = Lab::within(&crate::independent::memory());
    let repo = prepared(&lab);
    let patch = repo.patch_of(|copy| {
        (0..FILES).for_each(|n| match n % 10 {
            8 => copy.rm(name(n)),
            _ => copy.write(name(n), format!("new {n}\n")),
        });
    });
    repo.open(&Contract::new("t1"));
    repo.submit_patch("t1", &patch).ok();
    let common = repo.join(".git");
    let store = |from: &str, to: &str| {
        let _ = std::fs::remove_dir_all(common.join(to));
        let mut command = lab.command("cp", &common);
        command.args(["-a", from, to]);
        crate::support::lab::run(command, None).ok();
    };
    store("tender", "tender-kept");
    // Where the head of the ledger is noted, too.
    store("worktrees", "worktrees-kept");
    let kills_wanted = 3 * (1 + 8 * more());
    let seed = setting("TENDER_SEED", 11);
    let mut dice = Dice::new(seed);
    let begin = Instant::now();
    repo.json(&["deliver", "t1"]).ok();
    let usual = u64::try_from(begin.elapsed().as_micros()).expect("fits");
    assert_eq!(count(&repo).1, FILES);
    let (mut kills, mut forward) = (0, 0);
    for trial in 0..kills_wanted {
        repo.git(&["checkout", "-q", "HEAD", "--", "many"]);
        repo.git(&["clean", "-fdq"]);
        store("tender-kept", "tender");
        store("worktrees-kept", "worktrees");
        // Most of the first third goes by before the first file is staged.
        let delay = Duration::from_micros(usual / 4 + dice.below(usual * 3 / 4));
        let (_, killed) = killed_after(&repo, &["deliver", "t1"], delay);
        kills += usize::from(killed);
        if trial % 2 == 0 {
            repo.json(&["recover"]).ok();
        } else {
            // Refused where the recovery that comes first completes the task.
            repo.json(&["cancel", "t1"]);
        }
        let (old, new) = count(&repo);
        assert!(old == FILES || new == FILES, "after {delay:?}: {old} old and {new} new of {FILES}");
        assert_eq!(strangers(&repo), [] as [String; 0], "after {delay:?}");
        let completed = repo.json(&["report", "t1"]).ok().json["state"] == "completed";
        assert_eq!(completed, new == FILES, "after {delay:?}");
        forward += usize::from(killed && completed);
        if completed {
            let answer = repo.json(&["deliver", "t1"]).ok();
            assert!(answer.outcomes().iter().all(|(_, outcome)| outcome == "already"));
            assert_eq!(count(&repo).1, FILES);
        }
    }
    let rows = independent::rows(&repo.store()).expect("readable");
    assert_eq!(independent::faults(&rows), [] as [String; 0]);
    crate::support::say(&format!(
        "crash 5000: seed {seed}, {kills} kills at random times, {forward} went forward, losses: 0"
    ));
    assert!(kills > 0, "no delivery was killed");
}
