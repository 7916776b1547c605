//! `submit` from the worktree: the candidate, what is refused, and that nothing of the worker's is run.

use crate::support::repo::{LINES, lines_with, path_text};
use crate::support::{Contract, Lab, Repo, Task, is_root, shape};
use serde_json::{Value, json};
use std::path::Path;

pub fn candidate_shape() -> Value {
    json!({
        "schema": "git-tender/candidate/v1", "taskId": "$text", "candidate": "$int", "baseTree": "$oid", "tree": "$oid",
        "patch": {"manifestSha256": "$sha256", "sha256": "$sha256", "bytes": "$int", "path": "$abs"},
        "changes": ["$object"]
    })
}

/// Submits and expects a refusal that names `path`; afterwards there is no candidate.
#[track_caller]
fn refused(repo: &Repo<'_>, task: &Task, code: &str, path: &str) {
    let answer = repo.json(&["submit", &task.id]);
    let error = answer.fails(code);
    assert!(error.to_string().contains(path), "{path} is not named in {error:#}");
    repo.json(&["deliver", &task.id]).fails("state.invalid");
}

#[test]
fn the_candidate_has_the_drawn_shape_and_a_patch_that_git_applies() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let task = repo.open(&Contract::new("t1"));
    task.write("docs/a.md", lines_with(5, "five"));
    task.write("docs/new.md", "new\n");
    task.rm("src/b.txt");
    task.chmod("src/a.txt", 0o755);
    let answer = repo.json(&["submit", "t1"]).ok();
    shape::check(&answer.json, &candidate_shape());
    let state = |value: &Value| {
        shape::check(value, &json!({"mode": "$text", "gitBlob": "$oid", "sha256": "$sha256"}));
    };
    let changes = answer.json["changes"].as_array().expect("list");
    let paths: Vec<_> = changes.iter().map(|c| c["path"].as_str().expect("path")).collect();
    assert_eq!(paths, ["docs/a.md", "docs/new.md", "src/a.txt", "src/b.txt"], "sorted by path");
    for change in changes {
        match change["status"].as_str().expect("status") {
            "added" => assert!(change["old"].is_null()),
            "deleted" => assert!(change["new"].is_null()),
            "modified" => {}
            other => panic!("no such status {other}"),
        }
        ["old", "new"].iter().map(|side| &change[side]).filter(|v| !v.is_null()).for_each(state);
    }
    assert_eq!(changes[0]["old"]["gitBlob"], repo.git(&["rev-parse", "HEAD:docs/a.md"]));
    assert_eq!(changes[2]["new"]["mode"], "100755");
    assert_eq!(answer.json["baseTree"], repo.git(&["rev-parse", "HEAD^{tree}"]));
    let patch =
        std::fs::read(answer.json["patch"]["path"].as_str().expect("path")).expect("the patch is there");
    assert_eq!(answer.json["patch"]["bytes"], patch.len());
    repo.git(&["clone", "-q", ".", "../oracle"]);
    let oracle = Repo::at(&lab, lab.path("oracle"));
    oracle.git(&["apply", "--index", answer.json["patch"]["path"].as_str().expect("path")]);
    assert_eq!(oracle.git(&["write-tree"]), answer.json["tree"].as_str().expect("tree"));
    repo.fsck_gc();
}

#[test]
fn the_same_tree_again_is_the_same_candidate() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let task = repo.open(&Contract::new("t1"));
    task.write("docs/a.md", "one\n");
    let first = repo.json(&["submit", "t1"]).ok();
    let again = repo.json(&["submit", "t1"]).ok();
    assert_eq!(first.json["candidate"], again.json["candidate"]);
    task.write("docs/a.md", "two\n");
    let second = repo.json(&["submit", "t1"]).ok();
    assert_ne!(first.json["candidate"], second.json["candidate"]);
    assert_eq!(second.json["candidate"], 2);
}

#[test]
fn an_empty_diff_is_a_candidate_that_says_so_and_is_never_delivered() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.submitted(&Contract::new("t1"), |_| {});
    let answer = repo.json(&["submit", "t1"]).ok();
    assert_eq!(answer.json["changes"], json!([]));
    // AMBIGUOUS: where a report says it; taken: in words, in the text of `submit` and of `report`.
    for command in ["submit", "report"] {
        let text = repo.tender(&[command, "t1"]).ok().text().to_lowercase();
        assert!(text.contains("no change") || text.contains("empty"), "{command}: {text}");
    }
    let before = repo.snapshot();
    repo.json(&["deliver", "t1"]).fails("verification.failed");
    before.same(&repo.snapshot());
    assert_ne!(repo.json(&["report", "t1"]).ok().json["state"], "completed");
}

#[test]
fn what_git_did_in_the_worktree_does_not_matter() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let task = repo.open(&Contract::new("t1"));
    let inside = Repo::at(&lab, task.worktree.clone());
    task.write("docs/a.md", "committed by the worker\n");
    inside.git(&["add", "-A"]);
    inside.git(&["commit", "-q", "-m", "worker"]);
    task.write("docs/b.md", "staged\n");
    inside.git(&["add", "docs/b.md"]);
    inside.git(&["rm", "-q", "--cached", "src/a.txt"]);
    let answer = repo.json(&["submit", "t1"]).ok();
    let paths: Vec<_> = answer.changes().into_iter().map(|c| c.0).collect();
    assert_eq!(paths, ["docs/a.md", "docs/b.md"], "what is on disk counts, not the worker's index");
}

#[test]
fn ignored_files_are_left_out_but_tracked_ignored_ones_stay_tracked() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.write("tracked.log", "one\n");
    repo.git(&["add", "-f", "tracked.log"]);
    repo.commit("tracked though ignored");
    let task = repo.open(&Contract::new("t1"));
    task.write("tracked.log", "two\n");
    task.write("noise.log", "ignored\n");
    task.write("build/out.o", "ignored\n");
    let answer = repo.json(&["submit", "t1"]).ok();
    assert_eq!(answer.changes(), [("tracked.log".to_owned(), "modified".to_owned())]);
}

#[test]
fn scratch_is_never_captured() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let contract = Contract::new("t1").scope(&["src/"]).set("scratch", json!(["out/", "**/*.tmp"]));
    let task = repo.open(&contract);
    task.write("out/deep/x", "scratch\n");
    task.write("docs/y.tmp", "scratch\n");
    task.write("src/a.txt", "work\n");
    let answer = repo.json(&["submit", "t1"]).ok();
    assert_eq!(answer.changes(), [("src/a.txt".to_owned(), "modified".to_owned())]);
}

#[test]
fn a_change_outside_the_scope_is_refused_whatever_kind_it_is() {
    type Work = fn(&Task);
    let cases: &[(&str, Work)] = &[
        ("docs/editorial-evil/x", |t| t.write("docs/editorial-evil/x", "evil\n")),
        ("docs/editorialx", |t| t.write("docs/editorialx", "evil\n")),
        ("src/a.txt", |t| t.write("src/a.txt", "edited\n")),
        ("src/a.txt", |t| t.rm("src/a.txt")),
        ("src/a.txt", |t| t.chmod("src/a.txt", 0o755)),
        ("src/a.txt", |t| {
            t.rm("src/a.txt");
            t.link("src/a.txt", "b.txt");
        }),
        ("src/moved.md", |t| {
            std::fs::rename(t.worktree.join("docs/editorial/e.md"), t.worktree.join("src/moved.md"))
                .expect("moves");
        }),
        ("src/a.txt", |t| {
            std::fs::rename(t.worktree.join("src/a.txt"), t.worktree.join("docs/editorial/a.txt"))
                .expect("moves");
        }),
        ("README.md", |t| t.write("README.md", "edited\n")),
    ];
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.write("docs/editorial/e.md", "editorial\n");
    repo.commit("editorial");
    for (number, (path, work)) in cases.iter().enumerate() {
        let task = repo.open(&Contract::new(&format!("t{number}")).scope(&["docs/editorial/"]));
        task.write("docs/editorial/e.md.new", "allowed\n");
        work(&task);
        refused(&repo, &task, "scope.violation", path);
    }
}

#[test]
fn scope_forms_directory_file_and_globs_are_compared_by_component() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    for (number, (scope, inside, outside)) in [
        ("docs/", "docs/deep/er/x.md", "docsx/x.md"),
        ("docs/a.md", "docs/a.md", "docs/a.md.bak"),
        ("docs/*.md", "docs/n.md", "docs/deep/n.md"),
        ("docs/**/*.md", "docs/deep/er/n.md", "docs/deep/n.txt"),
        ("src/*", "src/n", "src/deep/n"),
        ("**/x.txt", "a/b/x.txt", "a/b/xx.txt"),
    ]
    .iter()
    .enumerate()
    {
        let task = repo.open(&Contract::new(&format!("t{number}")).scope(&[scope]));
        task.write(inside, "inside\n");
        repo.json(&["submit", &task.id]).ok();
        task.write(outside, "outside\n");
        let answer = repo.json(&["submit", &task.id]);
        assert!(answer.fails("scope.violation").to_string().contains(outside), "{scope}");
    }
}

#[test]
fn an_empty_scope_lets_no_change_through() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let task = repo.open(&Contract::new("t1").scope(&[]));
    task.write("docs/a.md", "x\n");
    refused(&repo, &task, "scope.violation", "docs/a.md");
}

#[test]
fn a_nested_repository_is_refused_by_path_and_gc_keeps_it() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let task = repo.open(&Contract::new("t1"));
    let nested = lab.repo_at(task.worktree.join("front"), &[]);
    nested.write("precious.txt", "only here\n");
    nested.commit("nested");
    refused(&repo, &task, "scope.violation", "front");
    repo.json(&["cancel", "t1"]).ok();
    let gc = repo.tender(&["gc"]);
    assert_eq!(nested.text("precious.txt"), "only here\n", "{}", gc.all());
    assert!(gc.all().contains("t1"), "gc names what it kept: {}", gc.all());
    assert_eq!(nested.git(&["log", "--oneline"]).lines().count(), 1);
}

#[test]
fn links_that_leave_the_tree_are_refused_and_inner_ones_taken() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    for (number, target) in
        ["/etc/passwd", "../../outside", "../../app/README.md", "a/../../../x", ".git/config", "../.git"]
            .iter()
            .enumerate()
    {
        let task = repo.open(&Contract::new(&format!("t{number}")));
        task.link("docs/leads-out", target);
        refused(&repo, &task, "scope.violation", "docs/leads-out");
    }
    let task = repo.open(&Contract::new("inner"));
    task.link("docs/inner", "../src/a.txt");
    task.link("docs/dangling", "not-there.md");
    let answer = repo.json(&["submit", "inner"]).ok();
    assert!(answer.json["changes"].as_array().expect("list").iter().all(|c| c["new"]["mode"] == "120000"));
    repo.json(&["deliver", "inner"]).ok();
    assert_eq!(std::fs::read_link(repo.join("docs/inner")).expect("link"), Path::new("../src/a.txt"));
}

#[test]
fn special_files_and_hard_links_are_refused() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let task = repo.open(&Contract::new("fifo"));
    let mut command = lab.command("mkfifo", &task.worktree);
    command.arg("docs/pipe");
    crate::support::lab::run(command, None).ok();
    refused(&repo, &task, "scope.violation", "docs/pipe");

    let task = repo.open(&Contract::new("hard"));
    std::fs::write(lab.path("outside.txt"), "outside\n").expect("writes");
    std::fs::hard_link(lab.path("outside.txt"), task.worktree.join("docs/hard.txt")).expect("links");
    refused(&repo, &task, "scope.violation", "docs/hard.txt");

    let task = repo.open(&Contract::new("pair"));
    std::fs::hard_link(task.worktree.join("docs/a.md"), task.worktree.join("docs/a2.md")).expect("links");
    refused(&repo, &task, "scope.violation", "docs/a");

    if is_root() {
        let task = repo.open(&Contract::new("device"));
        let mut command = lab.command("mknod", &task.worktree);
        command.args(["docs/null", "c", "1", "3"]);
        if crate::support::lab::run(command, None).code == 0 {
            refused(&repo, &task, "scope.violation", "docs/null");
        }
    }
}

#[test]
fn spellings_of_the_git_directory_are_refused_in_the_worktree() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    for (number, name) in [
        ".GIT",
        ".Git",
        "git~1",
        "GIT~1",
        ".g\u{200c}it",
        ".git.",
        ".git ",
        ".git . .",
        ".git::$INDEX_ALLOCATION",
    ]
    .iter()
    .enumerate()
    {
        let task = repo.open(&Contract::new(&format!("t{number}")));
        task.write(format!("docs/{name}/config"), "[core]\n");
        let answer = repo.json(&["submit", &task.id]);
        let error = answer.fails("scope.violation");
        assert!(error.to_string().contains("docs/"), "{error:#}");
    }
}

#[test]
fn the_artifact_budget_caps_what_is_captured() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let task = repo.open(&Contract::new("t1").set("budget", json!({"artifactBytes": 10_000})));
    task.write("docs/small.bin", vec![b'x'; 9_000]);
    repo.json(&["submit", "t1"]).ok();
    task.write("docs/large.bin", vec![b'x'; 20_000]);
    let answer = repo.json(&["submit", "t1"]);
    answer.fails("budget.exhausted");
}

#[test]
fn a_worktree_whose_git_file_points_to_a_hostile_repository_runs_nothing() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let marker = lab.path("ran");
    let script = format!("#!/bin/sh\ntouch '{}'\n", marker.display());
    let hostile = lab.repo("hostile");
    hostile.write("evil.sh", &script);
    hostile.chmod("evil.sh", 0o755);
    let evil = hostile.join("evil.sh");
    let hooks =
        ["pre-commit", "post-checkout", "post-index-change", "reference-transaction", "post-applypatch"];
    for hook in hooks {
        hostile.write(format!(".git/hooks/{hook}"), &script);
        hostile.chmod(format!(".git/hooks/{hook}"), 0o755);
    }
    hostile.git(&["config", "filter.evil.clean", path_text(&evil)]);
    hostile.git(&["config", "diff.external", path_text(&evil)]);
    hostile.git(&["config", "core.fsmonitor", path_text(&evil)]);
    let _ = std::fs::remove_file(&marker);
    let task = repo.open(&Contract::new("t1"));
    task.write(".git", format!("gitdir: {}\n", hostile.join(".git").display()));
    task.write("docs/a.md", lines_with(5, "five"));
    let answer = repo.json(&["submit", "t1"]).ok();
    assert_eq!(answer.changes(), [("docs/a.md".to_owned(), "modified".to_owned())]);
    repo.json(&["verify", "t1"]).ok();
    repo.json(&["deliver", "t1"]).ok();
    assert_eq!(repo.text("docs/a.md"), lines_with(5, "five"));
    repo.tender(&["gc"]);
    assert!(!marker.exists(), "something of the hostile repository was run");
    assert_eq!(hostile.text("docs/a.md"), LINES);
}

#[test]
fn a_worktree_whose_git_file_became_a_repository_is_refused_or_captured_by_ours() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let marker = lab.path("ran");
    let task = repo.open(&Contract::new("t1"));
    std::fs::remove_file(task.worktree.join(".git")).expect("removes");
    let inside = lab.repo_at(task.worktree.clone(), &[]);
    inside.write(".git/evil.sh", format!("#!/bin/sh\ntouch '{}'\n", marker.display()));
    inside.chmod(".git/evil.sh", 0o755);
    inside.git(&["config", "core.fsmonitor", ".git/evil.sh"]);
    task.write("docs/a.md", lines_with(5, "five"));
    let answer = repo.json(&["submit", "t1"]);
    if answer.code == 0 {
        assert_eq!(answer.changes(), [("docs/a.md".to_owned(), "modified".to_owned())]);
    } else {
        answer.error();
    }
    assert!(!marker.exists(), "something of the worktree's repository was run");
}

#[test]
fn a_filter_that_only_the_candidate_selects_is_refused_and_never_run() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let marker = lab.path("ran");
    let script = format!("#!/bin/sh\ntouch '{}'\ncat\n", marker.display());
    std::fs::write(lab.path("filter.sh"), &script).expect("writes");
    let absolute = format!("sh {}", lab.path("filter.sh").display());
    for (number, program) in
        ["./filter.sh", "tools/filter.sh %f", "sh filter.sh", absolute.as_str()].iter().enumerate()
    {
        repo.git(&["config", "filter.chosen.clean", program]);
        repo.git(&["config", "filter.chosen.smudge", program]);
        let task = repo.open(&Contract::new(&format!("t{number}")));
        task.write(".gitattributes", "*.txt filter=chosen\n");
        task.write("filter.sh", &script);
        task.write("tools/filter.sh", &script);
        task.chmod("filter.sh", 0o755);
        task.chmod("tools/filter.sh", 0o755);
        task.write("src/a.txt", "edited\n");
        let answer = repo.json(&["submit", &task.id]);
        let error = answer.fails("permission.denied");
        assert!(error.to_string().contains(".txt"), "{program}: {error:#}");
        assert!(!marker.exists(), "{program} was run");
    }
}

#[test]
fn a_relative_filter_program_is_refused_even_where_the_base_selects_it() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let marker = lab.path("ran");
    repo.write(".gitattributes", "src/*.txt filter=rel\n");
    repo.commit("attributes");
    let task = repo.open(&Contract::new("t1"));
    repo.git(&["config", "filter.rel.clean", "./clean.sh"]);
    task.write("clean.sh", format!("#!/bin/sh\ntouch '{}'\ncat\n", marker.display()));
    task.chmod("clean.sh", 0o755);
    task.write("src/a.txt", "edited\n");
    let answer = repo.json(&["submit", "t1"]);
    assert!(answer.fails("permission.denied").to_string().contains("src/a.txt"));
    assert!(!marker.exists());
}

#[test]
fn set_times_do_not_hide_a_change() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let task = repo.open(&Contract::new("t1"));
    repo.json(&["submit", "t1"]).ok();
    let path = task.worktree.join("docs/a.md");
    let meta = std::fs::metadata(&path).expect("stats");
    let changed = LINES.replace("line 5", "LINE 5");
    assert_eq!(changed.len(), LINES.len());
    let file = std::fs::OpenOptions::new().write(true).open(&path).expect("opens");
    std::os::unix::fs::FileExt::write_all_at(&file, changed.as_bytes(), 0).expect("writes");
    file.set_modified(meta.modified().expect("mtime")).expect("sets the time");
    let answer = repo.json(&["submit", "t1"]).ok();
    assert_eq!(answer.changes(), [("docs/a.md".to_owned(), "modified".to_owned())]);
}

#[test]
fn without_a_candidate_all_but_report_are_state_invalid() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.open(&Contract::new("t1").allowed(&["editorial_review"]));
    repo.approve_without_terminal();
    repo.json(&["verify", "t1"]).fails("state.invalid");
    repo.json(&["deliver", "t1"]).fails("state.invalid");
    repo.json(&["attest", "t1", "editorial_review", "--pass", "-m", "read"]).fails("state.invalid");
    let report = repo.json(&["report", "t1"]).ok();
    assert_eq!(report.json["state"], "open");
    assert!(report.json["candidate"].is_null());
}

#[test]
fn an_unregistered_gitlink_is_refused() {
    let lab = Lab::new();
    let other = lab.repo("library");
    let repo = lab.repo("app");
    let task = repo.open(&Contract::new("t1"));
    let inside = Repo::at(&lab, task.worktree.clone());
    inside.git(&["clone", "-q", path_text(&other.path), "vendored"]);
    refused(&repo, &task, "scope.violation", "vendored");
}
