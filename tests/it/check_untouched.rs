//! What other tools of hooks lose: partly staged files in all their forms, with verifiers that rewrite, stage,
//! stash, commit and are killed. Working tree, index and stash are the same bytes after each `check`.

use crate::cancel::{background, wait_for};
use crate::check::Untouched;
use crate::support::verifier::Counts;
use crate::support::{Lab, Repo, Verifier};

/// Rewrites every file that it finds, stages it, and uses whatever git has to put work aside.
const WILD: &str = "for f in $(find src -type f); do chmod +w $f; printf 'mended\\n' > $f.new; mv $f.new $f; done\n\
                    git add -A; git stash; git rm -q --cached -r src; git commit -q -m mine; git reset -q --hard; finish\n";

/// Names a situation, and makes it.
type Situation = (&'static str, fn(&Repo<'_>));

const SITUATIONS: &[Situation] = &[
    ("an unstaged edit on the line that is staged", |repo| {
        repo.write("src/a.txt", "one\nstaged\nthree\n");
        repo.git(&["add", "-A"]);
        repo.write("src/a.txt", "one\nedited on\nthree\n");
    }),
    ("staged and unstaged lines of one file", |repo| {
        repo.write("src/a.txt", "STAGED\ntwo\nthree\n");
        repo.git(&["add", "-A"]);
        repo.write("src/a.txt", "STAGED\ntwo\nUNSTAGED\n");
    }),
    ("a staged deletion and an untracked file of the same name", |repo| {
        repo.git(&["rm", "-q", "--cached", "src/a.txt"]);
        repo.write("src/a.txt", "made anew\n");
    }),
    ("a staged rename with an edit that is not", |repo| {
        repo.git(&["mv", "src/a.txt", "src/moved.txt"]);
        repo.write("src/moved.txt", "one\ntwo\nthree, edited\n");
    }),
    ("a binary file, partly staged", |repo| {
        repo.write("src/image", b"\0\x01staged");
        repo.git(&["add", "-A"]);
        repo.write("src/image", b"\0\x02not staged");
    }),
    ("line ends of another system", |repo| {
        repo.write(".gitattributes", "*.txt text eol=crlf\n");
        repo.write("src/a.txt", "one\r\nstaged\r\n");
        repo.git(&["add", "-A"]);
        repo.write("src/a.txt", "one\r\nedited\r\nmixed\n");
    }),
    ("a file that is tracked and ignored", |repo| {
        repo.write("src/kept.log", "ignored, and staged\n");
        repo.git(&["add", "-f", "src/kept.log"]);
        repo.write("src/kept.log", "ignored, and edited\n");
        repo.write("src/own.log", "ignored\n");
    }),
    ("a staged file that is gone", |repo| {
        repo.write("src/new.txt", "new\n");
        repo.git(&["add", "-A"]);
        repo.rm("src/new.txt");
    }),
    ("a mode that is staged and one that is not", |repo| {
        repo.chmod("src/a.txt", 0o755);
        repo.git(&["add", "-A"]);
        repo.chmod("src/a.txt", 0o644);
    }),
    ("a link in place of a file", |repo| {
        repo.rm("src/a.txt");
        repo.link("src/a.txt", "b.txt");
        repo.git(&["add", "-A"]);
        repo.rm("src/a.txt");
        repo.write("src/a.txt", "a file again\n");
    }),
];

fn stage<'l>(lab: &'l Lab, name: &str, verifier: &Verifier, make: fn(&Repo<'_>)) -> Repo<'l> {
    let repo = lab.repo(name);
    repo.write("src/a.txt", "one\ntwo\nthree\n");
    repo.commit("lines");
    verifier.commit(&repo);
    // Something lies in the stash, too.
    repo.write("docs/a.md", "put aside\n");
    repo.git(&["stash"]);
    make(&repo);
    repo.write("src/untracked.txt", "untracked\n");
    repo
}

#[test]
fn whatever_a_verifier_does_nothing_of_the_users_changes() {
    let lab = Lab::new();
    let wild = Verifier::new("wild").inputs(&["**"]).counts(Counts::Nothing).script(WILD);
    for (at, (situation, make)) in SITUATIONS.iter().enumerate() {
        let repo = stage(&lab, &format!("app{at}"), &wild, *make);
        let before = Untouched::of(&repo);
        for target in ["--staged", "--live"] {
            let answer = repo.json(&["check", target]);
            assert_eq!(answer.code, 1, "{situation}, {target}: {:#}", answer.json);
            before.is_still_so(&repo);
        }
    }
}

#[test]
fn a_check_that_is_killed_in_the_middle_leaves_every_situation_as_it_was() {
    let lab = Lab::new();
    let ready = lab.path("ready");
    let script = format!("{}: > '{}'\nsleep 300\n", WILD.replace("finish\n", ""), ready.display());
    let slow = Verifier::new("wild").inputs(&["**"]).counts(Counts::Nothing).script(&script);
    for (at, (situation, make)) in SITUATIONS.iter().enumerate() {
        let repo = stage(&lab, &format!("app{at}"), &slow, *make);
        let before = Untouched::of(&repo);
        let mut child = background(&repo, &["check"]);
        wait_for(&ready);
        child.kill().unwrap_or_else(|error| panic!("{situation}: {error}"));
        child.wait().expect("waits");
        before.is_still_so(&repo);
        std::fs::remove_file(&ready).expect("was there");
    }
}
