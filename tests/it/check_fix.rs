//! `check --fix`: what verifiers make of the tree goes to the user's files and index, all of it or nothing,
//! and what was edited beside it stays.

use crate::check::write_private;
use crate::support::verifier::Counts;
use crate::support::{Answer, Lab, Repo, Verifier};
use serde_json::json;

/// Takes blanks from the ends of lines, by writing the file anew.
const TRIM: &str = "for f in $(grep -rlE ' +$' src || true); do sed -i 's/ *$//' \"$f\"; done\nfinish\n";

fn trims(lab: &Lab) -> Repo<'_> {
    let repo = lab.repo("app");
    repo.write("src/a.txt", "one\ntwo\nthree\nfour\nfive\n");
    repo.commit("lines");
    Verifier::new("trim").inputs(&["src/**"]).counts(Counts::Nothing).script(TRIM).commit(&repo);
    repo
}

#[track_caller]
fn fixed_paths(answer: &Answer) -> Vec<&str> {
    let paths = answer.json["checked"]["fix"]["paths"].as_array().expect("a fix");
    paths.iter().map(|path| path["path"].as_str().expect("text")).collect()
}

fn staged(repo: &Repo<'_>, path: &str) -> String {
    let out = repo.git_out(&["show", &format!(":{path}")]);
    String::from_utf8(out.ok().stdout).expect("UTF-8")
}

#[test]
fn index_and_files_get_it_and_an_edit_beside_it_stays() {
    let lab = Lab::new();
    let repo = trims(&lab);
    repo.write("src/a.txt", "one  \ntwo\nthree\nfour\nfive\n");
    repo.write("src/new.txt", "new \n");
    repo.git(&["add", "-A"]);
    repo.write("src/a.txt", "one  \ntwo\nthree\nfour\nfive and not staged  \n");
    repo.write("src/b.txt", "not staged  \n");
    assert_eq!(repo.json(&["check"]).result(1).verdict("trim"), "error");
    let answer = repo.json(&["check", "--fix"]).ok();
    assert_eq!(answer.verdict("trim"), "passed", "the verdict is of what is there now");
    assert_eq!(fixed_paths(&answer), ["src/a.txt", "src/new.txt"]);
    assert_eq!(answer.json["checked"]["tree"].as_str().expect("a tree"), repo.git(&["write-tree"]));
    assert_eq!(staged(&repo, "src/a.txt"), "one\ntwo\nthree\nfour\nfive\n");
    assert_eq!(staged(&repo, "src/new.txt"), "new\n");
    assert_eq!(repo.text("src/a.txt"), "one\ntwo\nthree\nfour\nfive and not staged  \n");
    assert_eq!(repo.text("src/new.txt"), "new\n");
    assert_eq!(repo.text("src/b.txt"), "not staged  \n");
    assert_eq!(repo.git(&["stash", "list"]), "");
    // What was there can be had again.
    let action = answer.json["checked"]["fix"]["action"].as_str().expect("an action").to_owned();
    let rows = repo.json(&["show", &action]).ok();
    let receipt = rows.json["entries"]
        .as_array()
        .expect("rows")
        .iter()
        .find_map(|row| row["result"]["receipt"].is_object().then(|| row["result"]["receipt"].clone()));
    let kept = receipt.expect("a receipt")["paths"][0]["kept"]["blob"].as_str().expect("kept").to_owned();
    let text = repo.tender(&["show", &format!("sha256:{}", kept.trim_start_matches("sha256:"))]).ok().text();
    assert!(text.contains("five and not staged  "), "{text}");
    // Nothing is left to fix.
    let again = repo.json(&["check", "--fix"]).ok();
    assert_eq!((&again.json["checked"]["fix"], &again.row("trim")["reused"]), (&json!(null), &json!(true)));
    repo.fsck_gc();
    let faults = crate::independent::faults(&crate::independent::rows(&repo.store()).expect("reads"));
    assert!(faults.is_empty(), "{faults:?}");
}

#[test]
fn an_edit_of_the_same_line_is_a_conflict_and_nothing_is_written() {
    let lab = Lab::new();
    let repo = trims(&lab);
    repo.write("src/a.txt", "one  \ntwo\n");
    repo.write("src/b.txt", "fine otherwise \n");
    repo.git(&["add", "-A"]);
    repo.write("src/a.txt", "one, edited  \ntwo\n");
    let before = repo.snapshot();
    let refused = repo.json(&["check", "--fix"]);
    refused.fails("delivery.conflict");
    assert_eq!(refused.conflicts(), [("src/a.txt".to_owned(), "edited".to_owned())]);
    assert_eq!(refused.code, 3);
    before.same(&repo.snapshot());
    // The same where the file is gone.
    repo.rm("src/a.txt");
    let before = repo.snapshot();
    let refused = repo.json(&["check", "--fix"]);
    refused.fails("delivery.conflict");
    assert_eq!(refused.conflicts(), [("src/a.txt".to_owned(), "missing".to_owned())]);
    before.same(&repo.snapshot());
    // An edit that has the fix already leaves only the index to do.
    repo.write("src/a.txt", "one\ntwo\n");
    repo.json(&["check", "--fix"]).ok();
    assert_eq!(
        (staged(&repo, "src/a.txt"), repo.text("src/a.txt")),
        ("one\ntwo\n".into(), "one\ntwo\n".into())
    );
}

#[test]
fn the_live_tree_is_fixed_without_the_index_and_commits_are_not() {
    let lab = Lab::new();
    let repo = trims(&lab);
    repo.write("src/a.txt", "one \n");
    repo.write("src/new.txt", "new \n");
    let index = repo.git(&["ls-files", "--stage"]);
    let answer = repo.json(&["check", "--live", "--fix"]).ok();
    assert_eq!(fixed_paths(&answer), ["src/a.txt", "src/new.txt"]);
    assert_eq!((repo.text("src/a.txt"), repo.text("src/new.txt")), ("one\n".into(), "new\n".into()));
    assert_eq!(repo.git(&["ls-files", "--stage"]), index);
    repo.git(&["checkout", "-q", "--", "src"]);
    repo.rm("src/new.txt");
    repo.write("src/a.txt", "committed \n");
    repo.commit("blanks");
    let text = repo.tender(&["check", "--all", "--fix"]).ok().text();
    assert!(text.contains("with a fix of src/a.txt") && text.contains("not staged"), "{text}");
    assert_eq!(
        (repo.text("src/a.txt"), staged(&repo, "src/a.txt")),
        ("committed\n".into(), "committed \n".into())
    );
    let before = repo.snapshot();
    repo.json(&["check", "--rev", "HEAD~1..HEAD", "--fix"]).fails("arguments.invalid");
    before.same(&repo.snapshot());
}

#[test]
fn each_verifier_goes_on_from_what_the_one_before_left_and_what_fails_still_fails() {
    let lab = Lab::new();
    let repo = trims(&lab);
    let upper = "if grep -q ^one src/a.txt; then sed -i 's/^one/ONE/' src/a.txt; fi\nfinish\n";
    Verifier::new("upper").inputs(&["src/**"]).counts(Counts::Nothing).script(upper).commit(&repo);
    let strict = "if grep -q BAD src/a.txt; then exit 1; fi\nfinish\n";
    Verifier::new("strict").inputs(&["src/**"]).counts(Counts::Nothing).script(strict).commit(&repo);
    repo.write("src/a.txt", "one  \nBAD \n");
    repo.chmod("src/a.txt", 0o755);
    repo.git(&["add", "-A"]);
    let answer = repo.json(&["check", "--fix"]).result(1);
    assert_eq!((answer.verdict("trim"), answer.verdict("upper")), ("passed", "passed"));
    assert_eq!(answer.verdict("strict"), "failed");
    assert_eq!(staged(&repo, "src/a.txt"), "ONE\nBAD\n");
    assert!(repo.git(&["ls-files", "--stage", "src/a.txt"]).starts_with("100755"));
}

#[test]
fn protected_paths_and_judges_are_not_theirs() {
    let lab = Lab::new();
    let repo = trims(&lab);
    let wild = "echo '# more' >> .tender/verifiers/trim/verifier.toml; echo x >> .tender/config.toml; rm src/b.txt\n\
                ln -sf /etc/passwd src/a.txt; echo new > src/added.txt; finish\n";
    repo.write(".tender/config.toml", "");
    Verifier::new("wild").inputs(&["**"]).counts(Counts::Nothing).script(wild).commit(&repo);
    repo.write("src/a.txt", "fine\n");
    repo.git(&["add", "-A"]);
    let before = repo.snapshot();
    let answer = repo.json(&["check", "--fix"]).result(1);
    assert_eq!(answer.json["checked"]["fix"], json!(null), "{:#}", answer.json);
    before.same(&repo.snapshot());
    let notes = answer.json["checked"]["notes"].to_string();
    assert!(notes.contains(".tender/config.toml") && notes.contains("protected"), "{notes}");
}

/// The commit holds the fix, and where git would not see it nothing is written.
#[test]
fn inside_of_a_hook_it_is_right_or_refused() {
    let lab = Lab::new();
    let repo = lab.empty_repo("app");
    repo.write("src/a.txt", "one\ntwo\nthree\n");
    repo.write("src/b.txt", "other\n");
    repo.commit("first");
    let trim = Verifier::new("trim").inputs(&["src/**"]).counts(Counts::Nothing).script(TRIM);
    write_private(&repo, &trim, "trim");
    let program = std::path::Path::new(crate::support::lab::TENDER).parent().expect("a folder").display();
    repo.write(
        ".git/hooks/pre-commit",
        format!("#!/bin/sh\nPATH='{program}':$PATH\nexec git-tender check --staged --fix\n"),
    );
    repo.chmod(".git/hooks/pre-commit", 0o755);
    repo.write("src/a.txt", "ONE \ntwo\nthree\n");
    repo.git(&["add", "-A"]);
    repo.write("src/a.txt", "ONE \ntwo\nthree, edited on \n");
    repo.git_out(&["commit", "-q", "-m", "fixed"]).ok();
    assert_eq!(repo.git(&["show", "HEAD:src/a.txt"]), "ONE\ntwo\nthree");
    assert_eq!(repo.text("src/a.txt"), "ONE\ntwo\nthree, edited on \n");
    assert_eq!(repo.git(&["diff", "--cached", "--name-only"]), "");
    // With the index in git's own hands there is nowhere to write.
    for args in [&["commit", "-m", "x", "src/a.txt"][..], &["commit", "-a", "-m", "x"]] {
        let before = repo.snapshot();
        let out = repo.git_out(args);
        assert!(out.code != 0 && out.all().contains("git add"), "{}", out.all());
        before.same(&repo.snapshot());
    }
    // Without a fix to make, it is a check like any other.
    repo.write("src/b.txt", "fine\n");
    repo.git_out(&["commit", "-q", "-m", "b", "src/b.txt"]).ok();
    // Somebody else's lock is waited for, and the check goes on without it where nothing is to be written.
    repo.write(".git/index.lock", "");
    repo.json(&["check", "--fix"]).ok();
    assert!(repo.exists(".git/index.lock"));
}

#[test]
fn line_ends_and_bits_are_the_users_own() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.write(".gitattributes", "*.txt text eol=crlf\n");
    repo.write("src/a.txt", "one\r\ntwo\r\n");
    repo.commit("crlf");
    let mend = "if grep -q ^bad src/a.txt; then sed -i 's/^bad/good/' src/a.txt; fi\nfinish\n";
    Verifier::new("mend").inputs(&["src/**"]).counts(Counts::Nothing).script(mend).commit(&repo);
    repo.write("src/a.txt", "one\r\nbad\r\nthree\r\n");
    repo.git(&["add", "-A"]);
    repo.json(&["check", "--fix"]).ok();
    assert_eq!(repo.text("src/a.txt"), "one\r\ngood\r\nthree\r\n");
    assert_eq!(staged(&repo, "src/a.txt"), "one\ngood\nthree\n");
    assert_eq!(repo.git(&["status", "--porcelain"]), "M  src/a.txt");
}
