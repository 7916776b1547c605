//! `check --fix`, killed at its calls: after the next command files and index are both as they were or both
//! fixed, the edit beside it is there in either case, and nothing of ours is left.

use crate::mixed::copy;
use crate::strace::{Call, What, calls, disturbed};
use crate::support::snapshot::{Tree, same_tree, tree};
use crate::support::verifier::Counts;
use crate::support::{Lab, Repo, Verifier};

const FIX: &[&str] = &["check", "--fix"];
const FOLDERS: &[&str] = &["app", "app.tender"];
/// Of the calls that touch neither files nor index, every so-many-th.
const OTHERS: usize = 30;

/// What the user has: the files, and what the index holds.
struct State(Tree, String);

impl State {
    fn of(repo: &Repo<'_>) -> Self {
        Self(tree(&repo.path), repo.git(&["ls-files", "--stage"]))
    }
}

fn stage(lab: &Lab) -> Repo<'_> {
    let repo = lab.empty_repo("app");
    for name in ["a", "b", "c"] {
        repo.write(format!("src/{name}.txt"), "one\ntwo\nthree\nfour\nfive\n");
    }
    repo.commit("base");
    let trim = "for f in $(grep -rlE ' +$' src || true); do sed -i 's/ *$//' \"$f\"; done\nfinish\n";
    Verifier::new("trim").inputs(&["src/**"]).counts(Counts::Nothing).script(trim).commit(&repo);
    for name in ["a", "b", "new"] {
        repo.write(format!("src/{name}.txt"), "one  \ntwo\nthree\nfour\nfive\n");
    }
    repo.git(&["add", "-A"]);
    repo.write("src/b.txt", "one  \ntwo\nthree\nfour\nfive, edited on  \n");
    repo.write("keep.txt", "work in progress\n");
    // The slots are there from here on.
    repo.json(&["check"]).result(1);
    repo
}

#[test]
fn a_fix_that_is_killed_at_any_call_is_there_or_not_there() {
    let lab = Lab::within(&crate::independent::memory());
    let repo = stage(&lab);
    copy(&lab, FOLDERS, "", "kept");
    let before = State::of(&repo);
    let calls = calls(&repo, FIX, 40);
    let after = State::of(&repo);
    assert_ne!(before.1, after.1, "the index was fixed");
    assert_eq!(repo.text("src/b.txt"), "one\ntwo\nthree\nfour\nfive, edited on  \n");
    let is_near =
        |call: &Call| ["/app/src", "/index", "tender-index-"].iter().any(|part| call.line.contains(part));
    let chosen: Vec<&Call> = calls
        .iter()
        .enumerate()
        .filter(|(at, call)| !call.is_sync() && (is_near(call) || at % OTHERS == 0 || crate::more() > 0))
        .map(|(_, call)| call)
        .collect();
    let (mut kills, mut forward, mut back) = (0, 0, 0);
    for (at, call) in chosen.iter().enumerate() {
        for name in FOLDERS {
            std::fs::remove_dir_all(lab.path(name)).expect("removes");
        }
        copy(&lab, FOLDERS, "kept", "");
        let (_, killed) = disturbed(&repo, FIX, call, What::Kill);
        if !killed {
            continue;
        }
        kills += 1;
        // A check that only looks puts in order first what it would look at, too.
        let next: &[&str] = if at % 2 == 0 { &["recover"] } else { &["check"] };
        let shown = format!("killed before call {} ({}), then {next:?}", call.number, call.line);
        let answer = repo.json(next);
        assert!([0, 1].contains(&answer.code), "{shown}: {:#}", answer.json);
        assert!(!repo.exists(".git/index.lock"), "{shown}");
        let now = State::of(&repo);
        let is_fixed = now.1 == after.1;
        let wanted = if is_fixed { &after } else { &before };
        assert_eq!(now.1, wanted.1, "{shown}");
        same_tree(&wanted.0, &now.0);
        forward += u32::from(is_fixed);
        back += u32::from(!is_fixed);
        // It can be done again, and then it is done.
        if at % 4 == 0 {
            repo.json(FIX).ok();
            assert_eq!(State::of(&repo).1, after.1, "{shown}");
        }
    }
    crate::support::say(&format!("crash check --fix: {kills} kills, {forward} went forward, {back} back"));
    assert!(kills > 10 && forward > 1 && back > 1, "{kills} kills, {forward} forward, {back} back");
}
