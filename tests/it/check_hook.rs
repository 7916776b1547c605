//! `check` as git's own hook: it looks at what the commit at hand will hold, wherever git calls it from.

use crate::check::write_private;
use crate::support::verifier::Counts;
use crate::support::{Lab, Repo, Verifier};
use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;

/// Every file under `src/` has to hold the word `good`.
const SCRIPT: &str =
    "for f in src/*; do grep -q good \"$f\" || { echo \"$f:1:1: error: not good\"; exit 1; }; done\nfinish\n";

/// A repository with a commit, the hook in place, and a verifier in the private layer.
fn hooked(lab: &Lab) -> Repo<'_> {
    let repo = lab.empty_repo("app");
    for name in ["src/a.txt", "src/b.txt"] {
        repo.write(name, "good\n");
    }
    repo.write("docs/a.md", "words\n");
    repo.commit("first");
    with_hook(repo)
}

fn with_hook(repo: Repo<'_>) -> Repo<'_> {
    let answer = repo.json(&["init", "--hook"]).ok();
    assert_eq!(answer.json["hook"]["state"], "installed", "{:#}", answer.json);
    write_private(&repo, &Verifier::new("good").counts(Counts::Nothing).script(SCRIPT), "good");
    repo
}

/// Whether git makes a commit of these arguments; the hook says which file is not good.
#[track_caller]
fn commits(repo: &Repo<'_>, args: &[&str], bad: Option<&str>) {
    let all = [&["commit", "-q", "-m", "message"], args].concat();
    let out = repo.git_out(&all);
    match bad {
        None => assert_eq!(out.code, 0, "{}", out.all()),
        Some(bad) => assert!(out.code != 0 && out.all().contains(bad), "{}", out.all()),
    }
}

#[test]
fn a_hook_is_set_up_at_once_and_taken_away() {
    let lab = Lab::new();
    let repo = hooked(&lab);
    repo.write("src/a.txt", "bad\n");
    repo.git(&["add", "-A"]);
    // `git commit` itself notes in the index which trees it wrote.
    let before = repo.snapshot();
    commits(&repo, &[], Some("src/a.txt"));
    before.same(&repo.snapshot());
    commits(&repo, &["--no-verify"], None);
    repo.write("src/a.txt", "good again\n");
    repo.git(&["add", "-A"]);
    commits(&repo, &[], None);
    commits(&repo, &["--allow-empty"], None);
    assert_eq!(repo.json(&["init", "--hook"]).ok().json["hook"]["state"], "kept");
    assert_eq!(repo.json(&["init", "--unhook"]).ok().json["hook"]["state"], "removed");
    assert!(!repo.exists(".git/hooks/pre-commit"));
    assert_eq!(repo.json(&["init", "--unhook"]).ok().json["hook"]["state"], "absent");
    repo.write("src/a.txt", "bad\n");
    commits(&repo, &["-a"], None);
}

#[test]
fn a_hook_of_somebody_elses_is_kept_and_the_line_is_told() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let theirs = "#!/bin/sh\necho theirs\n";
    repo.write(".git/hooks/pre-commit", theirs);
    let refused = repo.json(&["init", "--hook"]);
    let line = refused.fails("state.invalid")["details"]["line"].as_str().expect("a line").to_owned();
    repo.json(&["init", "--unhook"]).fails("state.invalid");
    assert_eq!(repo.text(".git/hooks/pre-commit"), theirs);
    // Who adds the line has the check.
    let program = std::path::Path::new(crate::support::lab::TENDER).parent().expect("a folder").display();
    repo.write(".git/hooks/pre-commit", format!("{theirs}PATH='{program}':$PATH\n{line}\n"));
    repo.chmod(".git/hooks/pre-commit", 0o755);
    write_private(&repo, &Verifier::new("good").counts(Counts::Nothing).script(SCRIPT), "good");
    repo.write("src/a.txt", "bad\n");
    commits(&repo, &["-a"], Some("src/a.txt"));
    repo.rm(".git/hooks/pre-commit");
    repo.git(&["config", "core.hooksPath", "shared-hooks"]);
    let refused = repo.json(&["init", "--hook"]);
    assert_eq!(refused.fails("state.invalid")["subject"], "shared-hooks/pre-commit");
    assert!(!repo.exists("shared-hooks") && !repo.exists(".git/hooks/pre-commit"));
    repo.git(&["config", "core.hooksPath", ".git/hooks"]);
    repo.json(&["init", "--hook"]).ok();
    let mode = std::fs::metadata(repo.join(".git/hooks/pre-commit")).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
}

/// What a private verifier has is not written beside a committed one of the same id.
#[test]
fn the_private_layer_gets_no_second_verifier_of_an_id() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.write("pytest.ini", "[pytest]\n");
    repo.json(&["init"]).ok();
    repo.commit("verifiers");
    let answer = repo.json(&["init", "--hook"]).ok();
    assert_eq!(answer.json["layer"], "private");
    assert!(!repo.store().join("local/verifiers/pytest").exists());
    repo.write("docs/a.md", "words\n");
    repo.git(&["add", "-A"]);
    let checked = repo.json(&["check", "--staged"]);
    assert!(!checked.reason("pytest").contains("twice"), "{:#}", checked.json);
}

#[test]
fn a_partial_commit_is_what_it_will_hold() {
    let lab = Lab::new();
    let repo = hooked(&lab);
    repo.write("src/a.txt", "good for one\n");
    repo.write("src/b.txt", "bad\n");
    repo.git(&["add", "src/b.txt"]);
    commits(&repo, &["src/a.txt"], None);
    commits(&repo, &[], Some("src/b.txt"));
    commits(&repo, &["-a"], Some("src/b.txt"));
    assert_eq!(repo.git(&["diff", "--cached", "--name-only"]), "src/b.txt");
    repo.write("src/b.txt", "good\n");
    repo.git(&["add", "-A"]);
    repo.write("src/b.txt", "bad\n");
    repo.write("src/a.txt", "good twice\n");
    commits(&repo, &["src/a.txt"], None);
    repo.write("src/a.txt", "bad\n");
    commits(&repo, &["src/a.txt"], Some("src/a.txt"));
}

#[test]
fn the_first_commit_and_one_in_a_linked_worktree() {
    let lab = Lab::new();
    let repo = with_hook(lab.empty_repo("app"));
    repo.write("src/a.txt", "bad\n");
    repo.git(&["add", "-A"]);
    commits(&repo, &[], Some("src/a.txt"));
    repo.write("src/a.txt", "good\n");
    repo.git(&["add", "-A"]);
    commits(&repo, &[], None);
    let place = lab.path("linked");
    repo.git(&["worktree", "add", "-q", "-b", "side", place.to_str().expect("UTF-8")]);
    let linked = Repo::at(&lab, place);
    linked.write("src/a.txt", "bad there\n");
    linked.git(&["add", "-A"]);
    commits(&linked, &[], Some("src/a.txt"));
    // The other working tree has nothing staged.
    assert_eq!(repo.json(&["check"]).ok().json["checked"]["changes"], json!(0));
    linked.write("src/a.txt", "good there\n");
    commits(&linked, &["-a"], None);
    // From a subfolder git sets a prefix, and runs the hook at the top.
    linked.write("src/a.txt", "bad once more\n");
    let out = lab.git(&linked.join("src"), &["commit", "-q", "-a", "-m", "x"]);
    assert!(out.code != 0 && out.all().contains("src/a.txt"), "{}", out.all());
}

#[test]
fn a_merge_and_a_rebase_are_commits_like_others() {
    let lab = Lab::new();
    let repo = hooked(&lab);
    repo.git(&["checkout", "-q", "-b", "side"]);
    repo.write("src/a.txt", "good theirs\n");
    repo.write("src/b.txt", "bad theirs\n");
    commits(&repo, &["-a", "--no-verify"], None);
    repo.git(&["checkout", "-q", "main"]);
    repo.write("src/a.txt", "good ours\n");
    commits(&repo, &["-a"], None);
    assert_ne!(repo.git_out(&["merge", "side"]).code, 0);
    // Between the versions there is nothing to look at.
    repo.json(&["check"]).fails("state.invalid");
    repo.write("src/a.txt", "good both\n");
    repo.git(&["add", "-A"]);
    let before = repo.snapshot();
    commits(&repo, &[], Some("src/b.txt"));
    before.same(&repo.snapshot());
    repo.write("src/b.txt", "good both\n");
    commits(&repo, &["-a"], None);
    assert_eq!(repo.git(&["rev-list", "--parents", "-1", "HEAD"]).split(' ').count(), 3);
    repo.git(&["checkout", "-q", "-b", "more", "HEAD^1"]);
    repo.write("src/a.txt", "good more\n");
    commits(&repo, &["-a"], None);
    assert_ne!(repo.git_out(&["rebase", "-q", "main"]).code, 0);
    repo.write("src/a.txt", "bad now\n");
    repo.git(&["add", "-A"]);
    commits(&repo, &[], Some("src/a.txt"));
    repo.write("src/a.txt", "good now\n");
    repo.git(&["add", "-A"]);
    commits(&repo, &[], None);
    let out = repo.git_out(&["-c", "core.editor=true", "rebase", "--continue"]);
    assert_eq!(out.code, 0, "{}", out.all());
}

#[test]
fn a_sparse_tree_is_looked_at_whole() {
    let lab = Lab::new();
    let repo = hooked(&lab);
    for more in [&["--no-sparse-index"][..], &["--sparse-index"][..]] {
        repo.git(&[&["sparse-checkout", "set", "--cone"], more, &["docs"]].concat());
        assert!(!repo.exists("src/a.txt"));
        repo.write("docs/a.md", format!("words {more:?}\n"));
        let answer = repo.git_out(&["commit", "-q", "-a", "-m", "x"]);
        assert_eq!(answer.code, 0, "{}", answer.all());
        let all = repo.json(&["check", "--all"]).ok();
        assert_eq!(all.verdict("good"), "passed", "the slot has what the sparse tree leaves out");
    }
}

#[test]
fn what_is_only_meant_to_be_added_is_not_there_and_a_lock_is_in_nobodys_way() {
    let lab = Lab::new();
    let repo = hooked(&lab);
    repo.write("src/later.txt", "bad\n");
    repo.git(&["add", "-N", "src/later.txt"]);
    repo.write("src/a.txt", "good and more\n");
    repo.git(&["add", "src/a.txt"]);
    commits(&repo, &[], None);
    repo.write("src/a.txt", "bad\n");
    repo.git(&["add", "src/a.txt"]);
    repo.write(".git/index.lock", "");
    let checked = repo.json(&["check"]).result(1);
    assert_eq!(checked.verdict("good"), "failed");
    let env = [("GIT_DIR", ".git"), ("GIT_PREFIX", "src/"), ("GIT_INDEX_FILE", ".git/index")];
    assert_eq!(repo.json_in("", &env, None, &["check"]).result(1).verdict("good"), "failed");
    let env = [("GIT_INDEX_FILE", ".git/none")];
    // An index that is not there is an empty one: everything is taken out.
    assert_eq!(repo.json_in("", &env, None, &["check"]).json["checked"]["changes"], json!(3));
    assert_eq!(repo.text(".git/index.lock"), "");
}
