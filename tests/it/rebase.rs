//! A candidate carried over to a base that moved: by `rebase`, and by `deliver --merge`.

use crate::support::deadly::deadly_git;
use crate::support::repo::{LINES, lines_with};
use crate::support::verifier::{counting, runs};
use crate::support::{Contract, Lab, Repo, Task, Verifier};
use serde_json::json;

fn with_candidate<'l>(lab: &'l Lab) -> (Repo<'l>, Task) {
    let repo = lab.repo("app");
    let task = repo.changing("t1", &[("docs/a.md", Some(&lines_with(2, "two")))]);
    (repo, task)
}

fn both() -> String {
    lines_with(2, "two").replace("line 9\n", "nine, by the user\n")
}

#[test]
fn a_conflict_names_the_rebase_that_solves_it() {
    let lab = Lab::new();
    let (repo, task) = with_candidate(&lab);
    let mine = lines_with(9, "nine, by the user");
    repo.write("docs/a.md", &mine);
    repo.write("src/a.txt", "unfinished\n");
    let refused = repo.json(&["deliver", "t1"]);
    let error = refused.fails("delivery.conflict");
    assert_eq!(error["remedy"]["command"], json!(["git", "tender", "rebase", "t1"]));
    assert_eq!(error["details"]["conflicts"][0]["mergeable"], true);
    let rebased = repo.json(&["rebase", "t1"]).ok();
    assert_eq!(rebased.json["schema"], "git-tender/candidate/v1");
    assert_eq!(rebased.json["candidate"], 2);
    assert_eq!(rebased.changes(), [("docs/a.md".to_owned(), "modified".to_owned())]);
    assert_eq!(repo.text("docs/a.md"), mine, "the live tree is not touched");
    assert_eq!(task.read("docs/a.md"), both().into_bytes());
    assert_eq!(task.read("src/a.txt"), b"alpha\n", "the rest of the user's work stays out of it");
    let inside = Repo::at(&lab, task.worktree.clone());
    assert_eq!(inside.git(&["diff", "--name-only"]), "docs/a.md");
    repo.json(&["deliver", "t1"]).ok();
    assert_eq!(repo.text("docs/a.md"), both());
    assert_eq!(repo.text("src/a.txt"), "unfinished\n");
    repo.json(&["undo", "t1"]).ok();
    assert_eq!(repo.text("docs/a.md"), mine);
    repo.fsck_gc();
}

#[test]
fn a_commit_on_the_same_file_is_carried_over_too() {
    let lab = Lab::new();
    let (repo, task) = with_candidate(&lab);
    repo.write("docs/a.md", lines_with(9, "nine, by the user"));
    repo.write("src/new.txt", "n\n");
    let head = repo.commit("further");
    repo.json(&["deliver", "t1"]).fails("delivery.conflict");
    repo.json(&["rebase", "t1"]).ok();
    assert_eq!(task.read("docs/a.md"), both().into_bytes());
    assert!(task.exists("src/new.txt"), "the worktree is at the new base");
    let inside = Repo::at(&lab, task.worktree.clone());
    assert_eq!(inside.git(&["rev-parse", "HEAD"]), head);
    repo.json(&["deliver", "t1"]).ok();
    assert_eq!(repo.text("docs/a.md"), both());
}

#[test]
fn evidence_is_made_anew_for_the_merged_bytes() {
    let lab = Lab::new();
    let count = lab.path("count");
    let script =
        format!("{}grep -q two docs/a.md || case_bad two\ncase_ok works\nfinish\n", counting(&count));
    let repo = lab.repo("app").with(&Verifier::new("unit").script(&script).inputs(&["docs/**"]));
    repo.submitted(&Contract::new("t1").allowed(&["unit"]), |task| {
        task.write("docs/a.md", lines_with(2, "two"));
    });
    repo.json(&["verify", "t1"]).ok();
    repo.write("docs/a.md", lines_with(9, "nine, by the user"));
    repo.json(&["rebase", "t1"]).ok();
    let before = runs(&count);
    let refused = repo.json(&["deliver", "t1"]);
    assert!(
        ["evidence.stale", "evidence.missing"].contains(&refused.error()["code"].as_str().expect("text"))
    );
    assert_eq!(repo.text("docs/a.md"), lines_with(9, "nine, by the user"));
    repo.json(&["verify", "t1"]).ok();
    assert!(runs(&count) > before);
    repo.json(&["deliver", "t1"]).ok();
    assert_eq!(repo.text("docs/a.md"), both());
}

#[test]
fn merging_while_delivering_verifies_exactly_what_is_written() {
    let lab = Lab::new();
    let seen = lab.path("seen");
    let script = format!("cat docs/a.md > '{}'\ncase_ok works\nfinish\n", seen.display());
    let repo = lab.repo("app").with(&Verifier::new("unit").script(&script).inputs(&["docs/**"]));
    repo.submitted(&Contract::new("t1").allowed(&["unit"]), |task| {
        task.write("docs/a.md", lines_with(2, "two"));
    });
    repo.json(&["verify", "t1"]).ok();
    repo.write("docs/a.md", lines_with(9, "nine, by the user"));
    repo.json(&["deliver", "t1", "--merge", "--dry-run"]).fails("delivery.conflict");
    assert_eq!(repo.text("docs/a.md"), lines_with(9, "nine, by the user"));
    let delivered = repo.json(&["deliver", "t1", "--merge"]).ok();
    assert_eq!(delivered.json["state"], "completed");
    assert_eq!(repo.text("docs/a.md"), both());
    assert_eq!(std::fs::read_to_string(&seen).expect("reads"), both());
    assert_eq!(repo.json(&["report", "t1"]).ok().json["summary"]["passed"], 1);
}

#[test]
fn merging_does_not_deliver_what_fails_once_it_is_merged() {
    let lab = Lab::new();
    let script = "grep -q 'by the user' docs/a.md && case_bad merged\ncase_ok works\nfinish\n";
    let repo = lab.repo("app").with(&Verifier::new("unit").script(script).inputs(&["docs/**"]));
    repo.submitted(&Contract::new("t1").allowed(&["unit"]), |task| {
        task.write("docs/a.md", lines_with(2, "two"));
    });
    repo.json(&["verify", "t1"]).ok();
    repo.write("docs/a.md", lines_with(9, "nine, by the user"));
    repo.json(&["deliver", "t1", "--merge"]).fails("verification.failed");
    assert_eq!(repo.text("docs/a.md"), lines_with(9, "nine, by the user"));
}

#[test]
fn what_cannot_be_merged_is_marked_in_the_worktree_only() {
    let lab = Lab::new();
    let (repo, task) = with_candidate(&lab);
    let mine = lines_with(2, "zwei");
    repo.write("docs/a.md", &mine);
    assert_eq!(
        repo.json(&["deliver", "t1"]).fails("delivery.conflict")["details"]["conflicts"][0]["mergeable"],
        false
    );
    repo.json(&["deliver", "t1", "--merge"]).fails("delivery.conflict");
    assert_eq!(task.read("docs/a.md"), lines_with(2, "two").into_bytes(), "nothing was rebased");
    let refused = repo.json(&["rebase", "t1"]);
    assert_eq!(refused.conflicts(), [("docs/a.md".to_owned(), "edited".to_owned())]);
    assert_eq!(repo.text("docs/a.md"), mine);
    let marked = String::from_utf8(task.read("docs/a.md")).expect("text");
    assert!(marked.contains("<<<<<<< live\nzwei\n=======\ntwo\n>>>>>>> t1\n"), "{marked}");
    assert_eq!(repo.json(&["status"]).ok().json["tasks"][0]["state"], "open");
    repo.json(&["deliver", "t1"]).fails("state.invalid");
    let unresolved = repo.json(&["submit", "t1"]);
    assert_eq!(unresolved.fails("state.invalid")["subject"], "docs/a.md");
    task.write("docs/a.md", lines_with(2, "two, zwei"));
    repo.json(&["submit", "t1"]).ok();
    repo.json(&["deliver", "t1"]).ok();
    assert_eq!(repo.text("docs/a.md"), lines_with(2, "two, zwei"));
}

#[test]
fn work_that_was_never_captured_is_not_moved_away() {
    let lab = Lab::new();
    let (repo, task) = with_candidate(&lab);
    repo.write("docs/a.md", lines_with(9, "nine, by the user"));
    task.write("docs/a.md", "more work\n");
    repo.json(&["rebase", "t1"]).fails("state.invalid");
    assert_eq!(task.read("docs/a.md"), b"more work\n");
}

#[test]
fn files_that_were_removed_created_or_made_binary_on_both_sides_are_a_persons_matter() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.write("bin", b"a\0b");
    repo.commit("binary");
    let task = repo.changing(
        "t1",
        &[
            ("docs/a.md", Some("changed\n")),
            ("docs/b.md", None),
            ("new.md", Some("ours\n")),
            ("bin", Some("a\0c")),
        ],
    );
    repo.rm("docs/a.md");
    repo.write("docs/b.md", "edited\n");
    repo.write("new.md", "theirs\n");
    repo.write("bin", b"a\0d");
    let refused = repo.json(&["rebase", "t1"]);
    let names: Vec<String> = refused.conflicts().into_iter().map(|(path, _)| path).collect();
    assert_eq!(names, ["bin", "docs/a.md", "docs/b.md", "new.md"]);
    assert_eq!(task.read(".tender-conflicts/bin"), b"a\0c");
    assert_eq!(task.read(".tender-conflicts/new.md"), b"ours\n");
    // Nobody has decided yet; nothing is captured, nothing is shipped.
    assert_eq!(repo.json(&["ship", "t1"]).fails("state.invalid")["subject"], ".tender-conflicts");
    task.rm(".tender-conflicts");
    repo.json(&["submit", "t1"]).ok();
    assert_eq!(task.read("docs/a.md"), b"changed\n");
    assert_eq!(task.read("docs/b.md"), b"edited\n");
    assert_eq!(repo.text("new.md"), "theirs\n");
    repo.git(&["checkout", "-q", "--", "."]);
}

#[test]
fn a_base_that_did_not_move_gives_the_same_candidate() {
    let lab = Lab::new();
    let (repo, _) = with_candidate(&lab);
    let rebased = repo.json(&["rebase", "t1"]).ok();
    assert_eq!(rebased.json["candidate"], 1);
    repo.json(&["deliver", "t1"]).ok();
}

#[test]
fn the_scope_and_the_policy_of_the_new_base_count() {
    let lab = Lab::new();
    let (repo, _) = with_candidate(&lab);
    repo.write(".tender/config.toml", "[policy]\nwrite = [\"src/\"]\n");
    repo.commit("a narrower policy");
    repo.write("docs/a.md", lines_with(9, "nine, by the user"));
    repo.json(&["rebase", "t1"]).fails("scope.violation");
}

#[test]
fn a_live_base_is_captured_anew() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.write("docs/a.md", lines_with(9, "nine, by the user"));
    let task = repo.submitted(&Contract::new("t1").set("base", json!("live")), |task| {
        task.write("docs/a.md", both());
    });
    let further = lines_with(9, "nine, by the user").replace("line 6\n", "six, by the user\n");
    repo.write("docs/a.md", &further);
    repo.write("src/b.txt", "edited\n");
    repo.json(&["deliver", "t1"]).fails("delivery.conflict");
    repo.json(&["rebase", "t1"]).ok();
    assert_eq!(task.read("src/b.txt"), b"edited\n");
    repo.json(&["deliver", "t1"]).ok();
    assert_eq!(repo.text("docs/a.md"), further.replace("line 2\n", "two\n"));
    assert_eq!(repo.text("docs/b.md"), "second\n");
    assert_ne!(repo.text("docs/a.md"), LINES);
}

#[test]
fn a_rebase_that_was_cut_off_is_completed_and_loses_nothing() {
    // While the last state is copied in, after the files of the worktree were moved, and between git's HEAD
    // and index.
    for pattern in ["*pack-objects*", "*worktrees*update-ref*HEAD*", "*worktrees*read-tree*"] {
        let lab = Lab::new();
        let (repo, task) = with_candidate(&lab);
        // So many that git packs them.
        (0..80).for_each(|number| task.write(format!("many/{number}"), format!("{number}\n")));
        repo.json(&["submit", "t1"]).ok();
        repo.write("src/new.txt", "n\n");
        repo.commit("further");
        let mine = lines_with(9, "nine, by the user");
        repo.write("docs/a.md", &mine);
        let path = deadly_git(&lab, "$*", pattern);
        let out = repo.tender_in("", &[("PATH", &path)], None, &["rebase", "t1"]);
        assert_ne!(out.code, 0, "{pattern}");
        assert_eq!(repo.json(&["status"]).ok().json["unfinished"][0]["tool"], "rebase", "{pattern}");
        // The worker goes on while nobody has put anything in order.
        task.write("docs/b.md", "the worker was here\n");
        repo.json(&["submit", "t1"]).ok();
        if !task.exists("src/new.txt") {
            // Nothing had been moved yet, so it was taken back; the worker's edit is captured on the old
            // base.
            repo.json(&["rebase", "t1"]).ok();
        }
        assert_eq!(task.read("docs/a.md"), both().into_bytes(), "{pattern}");
        assert_eq!(task.read("docs/b.md"), b"the worker was here\n", "{pattern}");
        assert!(task.exists("src/new.txt"), "{pattern}");
        repo.json(&["deliver", "t1"]).ok();
        assert_eq!(repo.text("docs/a.md"), both(), "{pattern}");
        repo.fsck_gc();
    }
}

/// A task whose candidate deletes a file and puts a directory there.
#[test]
fn what_is_in_conflict_makes_no_room() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let task = repo.submitted(&Contract::new("t1"), |task| {
        task.rm("docs/b.md");
        task.write("docs/b.md/in", "x\n");
    });
    repo.write("docs/b.md", "edited by the user\n");
    repo.json(&["rebase", "t1"]).fails("delivery.conflict");
    assert_eq!(task.read("docs/b.md"), b"edited by the user\n");
    repo.json(&["ship", "t1"]).fails("state.invalid");
    assert_eq!(repo.text("docs/b.md"), "edited by the user\n");
}

#[test]
fn a_worktree_that_cannot_be_moved_stays_as_it_is() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.write(".gitignore", "/build\n");
    repo.commit("ignore");
    let task = repo.changing("t1", &[("docs/a.md", Some(&lines_with(2, "two")))]);
    task.write("build", "an ignored file of the worker's\n");
    repo.write("build/x", "x\n");
    repo.git(&["add", "-f", "build/x"]);
    repo.write("src/a.txt", "further\n");
    repo.commit("a directory of that name");
    repo.write("docs/a.md", lines_with(9, "nine, by the user"));
    repo.json(&["rebase", "t1"]).fails("state.invalid");
    assert_eq!(task.read("docs/a.md"), lines_with(2, "two").into_bytes());
    assert_eq!(task.read("src/a.txt"), b"alpha\n");
    task.rm("build");
    repo.json(&["rebase", "t1"]).ok();
    assert_eq!(task.read("build/x"), b"x\n");
    repo.json(&["ship", "t1"]).ok();
    assert_eq!(repo.text("docs/a.md"), both());
    assert_eq!(repo.git(&["status", "--porcelain"]), " M docs/a.md");
}

#[test]
fn a_rebase_that_was_cut_off_in_a_worktree_that_is_gone_keeps_nobody_from_ending_the_task() {
    let lab = Lab::new();
    let (repo, task) = with_candidate(&lab);
    repo.write("src/new.txt", "n\n");
    repo.commit("further");
    let path = deadly_git(&lab, "$*", "*worktrees*update-ref*HEAD*");
    assert_ne!(repo.tender_in("", &[("PATH", &path)], None, &["rebase", "t1"]).code, 0);
    std::fs::remove_dir_all(&task.worktree).expect("removed");
    repo.json(&["recover"]).ok();
    repo.json(&["cancel", "t1"]).ok();
}

#[test]
fn what_the_candidate_added_is_not_dropped_because_it_is_ignored_by_now() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.changing("t1", &[("docs/x.tmp", Some("x\n"))]);
    repo.write(".gitignore", "*.tmp\n");
    repo.commit("ignore");
    let rebased = repo.json(&["rebase", "t1"]).ok();
    assert_eq!(rebased.changes(), [("docs/x.tmp".to_owned(), "added".to_owned())]);
    repo.json(&["ship", "t1"]).ok();
    assert_eq!(repo.text("docs/x.tmp"), "x\n");
}

#[test]
fn lines_are_merged_in_every_repository_and_as_git_stores_them() {
    let lab = Lab::new();
    // SHA-256; a merge whose result is empty; an editor that saves with other line ends; a bit that only one
    // side changed.
    let repo = lab.repo_with("sha256", &["--object-format=sha256"]);
    repo.write("docs/a.md", LINES);
    repo.write("e", "one\n");
    repo.write(".gitattributes", "*.md text\n");
    repo.commit("first");
    let task = repo.submitted(&Contract::new("t1"), |task| {
        task.write("docs/a.md", lines_with(2, "two"));
        task.chmod("e", 0o755);
    });
    repo.write("docs/a.md", lines_with(9, "nine, by the user").replace('\n', "\r\n"));
    repo.write("e", "");
    let conflicts = repo.json(&["deliver", "t1"]);
    let conflicts = &conflicts.fails("delivery.conflict")["details"]["conflicts"];
    assert_eq!(
        (&conflicts[0]["mergeable"], &conflicts[1]["mergeable"]),
        (&json!(true), &json!(true)),
        "{conflicts:#}"
    );
    repo.json(&["deliver", "t1", "--merge"]).ok();
    assert_eq!(repo.text("docs/a.md").replace('\r', ""), both());
    assert_eq!(repo.text("e"), "");
    assert_eq!(task.read("e"), b"");
}

#[test]
fn a_worktree_that_became_a_repository_of_its_own_is_not_collected() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let task = repo.changing("t1", &[("docs/a.md", Some(&lines_with(2, "two")))]);
    std::fs::remove_file(task.worktree.join(".git")).expect("removed");
    let inside = lab.repo_at(task.worktree.clone(), &[]);
    inside.commit("only here");
    repo.json(&["cancel", "t1"]).ok();
    let kept = repo.json(&["gc"]).ok();
    assert!(kept.json["kept"].to_string().contains("of its own"), "{:#}", kept.json);
    assert!(task.exists("docs/a.md"));
}

#[test]
fn the_attributes_of_the_new_base_say_what_the_users_bytes_are() {
    let lab = Lab::new();
    let (repo, _) = with_candidate(&lab);
    repo.write(".gitattributes", "*.md text eol=crlf\n");
    repo.commit("attributes");
    repo.rm("docs/a.md");
    repo.git(&["checkout", "--", "docs/a.md"]);
    assert!(repo.text("docs/a.md").contains("\r\n"));
    repo.json(&["deliver", "t1"]).fails("delivery.conflict");
    repo.json(&["rebase", "t1"]).ok();
    repo.json(&["deliver", "t1"]).ok();
    assert_eq!(repo.text("docs/a.md"), lines_with(2, "two").replace('\n', "\r\n"));
}
