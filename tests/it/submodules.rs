//! Submodules that somebody checks out in a task's worktree, and what is kept of a worker's own commits.

use crate::support::repo::path_text;
use crate::support::{Contract, Lab, Repo, Task};

/// A repository with a submodule, and a task in whose worktree it was checked out.
fn with_submodule<'l>(lab: &'l Lab, id: &str) -> (Repo<'l>, Repo<'l>) {
    let library = lab.repo("library");
    let repo = lab.repo("app");
    repo.git(&["submodule", "add", "-q", path_text(&library.path), "vendored"]);
    repo.commit("submodule");
    let task = repo.open(&Contract::new(id));
    let worktree = Repo::at(lab, task.worktree);
    worktree.git(&["submodule", "update", "-q", "--init"]);
    assert!(worktree.exists("vendored/docs/a.md"), "it is checked out");
    (repo, worktree)
}

#[test]
fn a_submodule_as_it_is_recorded_is_no_change_and_keeps_no_worktree() {
    let lab = Lab::new();
    let (repo, worktree) = with_submodule(&lab, "t1");
    worktree.write("src/a.txt", "changed\n");
    let candidate = repo.json(&["submit", "t1"]).ok();
    assert_eq!(candidate.changes(), [("src/a.txt".to_owned(), "modified".to_owned())]);
    repo.json(&["deliver", "t1"]).ok();
    assert_eq!(repo.json(&["gc"]).ok().json["removed"], serde_json::json!(["t1"]));
    assert!(!worktree.path.exists());
    assert_eq!(repo.git(&["worktree", "list"]).lines().count(), 1);
    repo.fsck_gc();
}

#[test]
fn work_in_a_submodule_is_refused_with_the_way_out() {
    let lab = Lab::new();
    let (repo, worktree) = with_submodule(&lab, "t1");
    worktree.write("src/a.txt", "changed\n");
    worktree.write("vendored/docs/a.md", "edited\n");
    let follow = |words: &str| {
        let answer = repo.json(&["submit", "t1"]);
        let error = answer.fails("scope.violation");
        assert!(error["message"].as_str().is_some_and(|text| text.contains(words)), "{error:#}");
        let command: Vec<&str> =
            error["remedy"]["command"].as_array().expect("words").iter().filter_map(|w| w.as_str()).collect();
        repo.git(&command[1..]);
    };
    follow("changes of its own (docs/a.md)");
    repo.json(&["submit", "t1"]).ok();
    let inside = Repo::at(&lab, worktree.join("vendored"));
    inside.write("docs/a.md", "committed\n");
    inside.commit("a commit that nobody else has");
    follow("another commit than the base records");
    repo.json(&["submit", "t1"]).ok();
    repo.json(&["deliver", "t1"]).ok();
    // What was set aside is in the worktree's own git directory, and nowhere else.
    let kept = repo.json(&["gc"]).ok();
    let reason = kept.json["kept"][0]["reason"].as_str().expect("a reason");
    assert!(reason.contains("commits that nobody else has"), "{reason}");
    assert!(worktree.exists("src/a.txt"));
}

#[test]
fn a_worktree_whose_worker_committed_is_removed_and_the_commit_kept() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let Task { worktree, .. } = repo.open(&Contract::new("t1"));
    let worker = Repo::at(&lab, worktree);
    worker.write("src/a.txt", "changed\n");
    let commit = worker.commit("the worker's own");
    repo.json(&["ship", "t1"]).ok();
    let collected = repo.json(&["gc"]).ok();
    assert_eq!(collected.json["removed"], serde_json::json!(["t1"]));
    let kept = &collected.json["commits"][0];
    assert_eq!((kept["taskId"].as_str(), kept["commit"].as_str()), (Some("t1"), Some(commit.as_str())));
    assert!(!worker.path.exists());
    repo.git(&["reflog", "expire", "--expire=now", "--all"]);
    repo.fsck_gc();
    let reference = kept["ref"].as_str().expect("a ref");
    assert_eq!(repo.git(&["rev-parse", reference]), commit);
}
