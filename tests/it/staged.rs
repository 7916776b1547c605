//! Delivery into the files and the index together.

use crate::support::repo::{LINES, lines_with};
use crate::support::{Contract, Lab, Repo, Task};
use serde_json::json;

fn staged(id: &str) -> Contract {
    Contract::new(id).set("delivery", json!("staged"))
}

fn with_candidate(repo: &Repo<'_>) -> Task {
    repo.submitted(&staged("t1"), |task| {
        task.write("docs/a.md", lines_with(5, "five"));
        task.rm("docs/b.md");
        task.write("docs/new/c.md", "new\n");
        task.chmod("src/a.txt", 0o755);
    })
}

#[test]
fn what_is_delivered_can_be_committed_and_nothing_else_is_staged() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    with_candidate(&repo);
    repo.write("README.md", "staged by the user\n");
    repo.git(&["add", "README.md"]);
    repo.write("README.md", "and edited\n");
    repo.write("src/b.txt", "edited\n");
    repo.write("mine.txt", "untracked\n");
    let preview = repo.json(&["deliver", "t1", "--dry-run"]).ok();
    assert_eq!(
        (preview.json["mode"].as_str(), repo.git(&["diff", "--cached", "--name-only"])),
        (Some("staged"), "README.md".to_owned())
    );
    let delivered = repo.json(&["deliver", "t1"]).ok();
    assert_eq!(delivered.json["mode"], "staged");
    assert_eq!(delivered.json["state"], "completed");
    assert!(delivered.outcomes().iter().all(|(_, outcome)| outcome == "applied"));
    assert_eq!(
        repo.git(&["diff", "--cached", "--name-status", "--no-renames"]),
        "M\tREADME.md\nM\tdocs/a.md\nD\tdocs/b.md\nA\tdocs/new/c.md\nM\tsrc/a.txt"
    );
    assert_eq!(repo.git(&["diff-files", "--name-only"]), "README.md\nsrc/b.txt");
    assert_eq!(repo.git(&["show", ":README.md"]), "staged by the user");
    assert_eq!(repo.json(&["report", "t1"]).ok().json["delivery"]["mode"], "staged");
    let index = repo.read(".git/index");
    let again = repo.json(&["deliver", "t1"]).ok();
    assert!(again.outcomes().iter().all(|(_, outcome)| outcome == "already"));
    assert_eq!(repo.read(".git/index"), index);
    repo.fsck_gc();
    repo.git(&["commit", "-q", "-m", "both"]);
    assert_eq!(repo.git(&["show", "HEAD:docs/new/c.md"]), "new");
}

#[test]
fn undo_takes_both_back_and_refuses_what_was_staged_since() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    with_candidate(&repo);
    let before = (repo.git(&["ls-files", "-s"]), repo.git(&["status", "--porcelain"]));
    repo.json(&["deliver", "t1"]).ok();
    let text = repo.text("docs/a.md");
    repo.write("docs/a.md", "staged since\n");
    repo.git(&["add", "docs/a.md"]);
    repo.write("docs/a.md", &text);
    let refused = repo.json(&["undo", "t1"]);
    assert_eq!(refused.conflicts(), [("docs/a.md".to_owned(), "index_changed".to_owned())]);
    repo.git(&["add", "docs/a.md"]);
    let undone = repo.json(&["undo", "t1"]).ok();
    assert!(undone.outcomes().iter().all(|(_, outcome)| outcome == "reverted"));
    assert_eq!((repo.git(&["ls-files", "-s"]), repo.git(&["status", "--porcelain"])), before);
}

#[test]
fn an_entry_that_is_not_the_preimage_is_a_conflict_and_nothing_is_written() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.write("docs/a.md", "staged before the task was opened\n");
    repo.git(&["add", "docs/a.md"]);
    repo.write("docs/a.md", LINES);
    with_candidate(&repo);
    let before = repo.snapshot();
    let refused = repo.json(&["deliver", "t1"]);
    assert_eq!(refused.conflicts(), [("docs/a.md".to_owned(), "index_changed".to_owned())]);
    assert_eq!(repo.snapshot(), before);
}

#[test]
fn a_file_that_is_as_wanted_already_is_staged() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    with_candidate(&repo);
    repo.write("docs/a.md", lines_with(5, "five"));
    let delivered = repo.json(&["deliver", "t1"]).ok();
    assert!(delivered.outcomes().contains(&("docs/a.md".to_owned(), "already".to_owned())));
    assert_eq!(repo.git(&["show", ":docs/a.md"]), lines_with(5, "five").trim_end());
    repo.json(&["undo", "t1"]).ok();
    assert_eq!(repo.git(&["show", ":docs/a.md"]), LINES.trim_end());
    assert_eq!(repo.text("docs/a.md"), lines_with(5, "five"), "what the user had written themselves stays");
}

#[test]
fn a_linked_worktree_has_an_index_of_its_own() {
    let lab = Lab::new();
    let main = lab.repo("app");
    let path = lab.path("linked");
    main.git(&["worktree", "add", "-q", "-b", "side", path.to_str().expect("UTF-8")]);
    let linked = Repo::at(&lab, path);
    let index = main.read(".git/index");
    linked.submitted(&staged("t1"), |task| task.write("docs/a.md", lines_with(5, "five")));
    linked.json(&["deliver", "t1"]).ok();
    assert_eq!(linked.git(&["diff", "--cached", "--name-only"]), "docs/a.md");
    assert_eq!(main.read(".git/index"), index);
}

#[test]
fn entries_beneath_or_above_a_new_one_are_the_users_and_in_the_way() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.submitted(&staged("t1"), |task| task.write("d/x", "x\n"));
    repo.write("d", "the only copy\n");
    repo.git(&["add", "d"]);
    repo.rm("d");
    let refused = repo.json(&["deliver", "t1"]);
    assert_eq!(refused.conflicts(), [("d/x".to_owned(), "index_changed".to_owned())]);
    assert_eq!(repo.git(&["show", ":d"]), "the only copy");
    assert!(!repo.exists("d") && !repo.exists(".git/index.lock"));
    repo.git(&["rm", "-q", "--cached", "d"]);
    repo.json(&["deliver", "t1"]).ok();
}

#[test]
fn an_edit_that_is_not_staged_is_no_matter_for_a_rebase() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.submitted(&staged("t1"), |task| task.write("docs/a.md", lines_with(2, "two")));
    let mine = lines_with(9, "nine, by the user");
    repo.write("docs/a.md", &mine);
    let refused = repo.json(&["deliver", "t1"]);
    assert_eq!(refused.fails("delivery.conflict")["details"]["conflicts"][0]["mergeable"], false);
    repo.json(&["rebase", "t1"]).ok();
    let refused = repo.json(&["deliver", "t1"]);
    let error = refused.fails("delivery.conflict");
    assert_eq!(error["remedy"]["command"], json!(["git", "add", "--", "docs/a.md"]));
    repo.git(&["add", "docs/a.md"]);
    repo.json(&["deliver", "t1"]).ok();
    assert_eq!(repo.git(&["show", ":docs/a.md"]), mine.replace("line 2\n", "two\n").trim_end());
}
