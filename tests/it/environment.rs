//! Where a command is called from: subfolder, `-C`, linked worktree, inside a hook. The same result, the
//! right repository.

use crate::support::repo::{LINES, lines_with, path_text};
use crate::support::{Contract, Lab, Repo, Task};

fn five() -> String {
    lines_with(5, "five")
}

fn candidate(repo: &Repo<'_>) -> Task {
    repo.changing("t1", &[("docs/a.md", Some(&five()))])
}

#[test]
fn from_a_subfolder() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let contract = Contract::new("t1").file(&lab);
    let opened = repo.json_in("docs", &[], None, &["open", path_text(&contract)]).ok();
    let task = Task::of(&opened.json);
    assert_eq!(task.worktree, lab.path("app.tender/t1"));
    task.write("docs/a.md", five());
    for args in [&["submit", "t1"][..], &["verify", "t1"], &["deliver", "t1"], &["report", "t1"]] {
        repo.json_in("docs", &[], None, args).ok();
    }
    assert_eq!(repo.text("docs/a.md"), five());
    repo.json_in("src", &[], None, &["undo", "t1"]).ok();
    assert_eq!(repo.text("docs/a.md"), LINES);
}

#[test]
fn relative_files_are_relative_to_where_one_stands() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let patch = repo.patch_of(|copy| copy.write("docs/a.md", five()));
    std::fs::write(lab.path("app/docs/change.patch"), patch).expect("writes");
    std::fs::copy(Contract::new("t1").file(&lab), lab.path("app/docs/contract.json")).expect("copies");
    repo.json_in("docs", &[], None, &["open", "contract.json"]).ok();
    repo.json_in("docs", &[], None, &["submit", "t1", "--patch", "change.patch"]).ok();
    repo.json_in("docs", &[], None, &["deliver", "t1"]).ok();
    assert_eq!(repo.text("docs/a.md"), five());
}

#[test]
fn with_dash_c_from_anywhere() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let elsewhere = Repo::at(&lab, lab.path("home"));
    candidate(&repo);
    let top = path_text(&repo.path).to_owned();
    let deep = path_text(&repo.join("docs")).to_owned();
    elsewhere.json(&["-C", &top, "report", "t1"]).ok();
    elsewhere.json(&["-C", &deep, "deliver", "t1"]).ok();
    assert_eq!(repo.text("docs/a.md"), five());
    // `-C` wins over GIT_DIR, GIT_DIR over the current folder.
    let other = lab.repo("other");
    let git_dir = path_text(&other.join(".git")).to_owned();
    let answer = elsewhere.json_in("", &[("GIT_DIR", &git_dir)], None, &["-C", &top, "status", "--all"]).ok();
    assert_eq!(answer.json["tasks"].as_array().map(Vec::len), Some(1));
    let theirs = repo.json_in("", &[("GIT_DIR", &git_dir)], None, &["status"]).ok();
    assert_eq!(theirs.json["tasks"].as_array().map(Vec::len), Some(0), "GIT_DIR wins over the folder");
}

#[test]
fn as_a_git_subcommand() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    candidate(&repo);
    let directory = std::path::Path::new(crate::support::lab::TENDER).parent().expect("a folder");
    let path = format!("{}:{}", directory.display(), std::env::var("PATH").expect("PATH"));
    for (cwd, args) in [("", &["tender", "deliver", "t1"][..]), ("docs", &["-C", "..", "tender", "status"])] {
        let mut command = lab.command("setsid", &repo.join(cwd));
        command.arg("--wait").arg("git").args(args).env("PATH", &path);
        crate::support::lab::run(command, None).ok();
    }
    assert_eq!(repo.text("docs/a.md"), five());
}

#[test]
fn through_a_linked_worktree() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.git(&["worktree", "add", "-q", "-b", "side", "../linked"]);
    let linked = Repo::at(&lab, lab.path("linked"));
    let task = linked.changing("t1", &[("docs/a.md", Some(&five()))]);
    assert!(!task.worktree.starts_with(&linked.path) && !task.worktree.starts_with(&repo.path));
    // Opened there, so delivered there, wherever one stands.
    repo.json(&["deliver", "t1"]).ok();
    assert_eq!(linked.text("docs/a.md"), five());
    assert_eq!(repo.text("docs/a.md"), LINES);
    repo.changing("t2", &[("docs/b.md", Some("for the main one\n"))]);
    linked.json(&["deliver", "t2"]).ok();
    assert_eq!(repo.text("docs/b.md"), "for the main one\n");
    assert_eq!(linked.text("docs/b.md"), "second\n");
    repo.fsck_gc();
}

#[test]
fn inside_a_hook_with_gits_variables_set() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let task = repo.open(&Contract::new("t1"));
    task.write("docs/a.md", five());
    let other = repo.join(".git/other-index");
    std::fs::copy(repo.join(".git/index"), &other).expect("copies");
    let object_dir = lab.path("objects");
    std::fs::create_dir(&object_dir).expect("creates");
    let git_dir = path_text(&repo.join(".git")).to_owned();
    let (index, top) = (path_text(&other).to_owned(), path_text(&repo.path).to_owned());
    let env = [
        ("GIT_DIR", git_dir.as_str()),
        ("GIT_WORK_TREE", top.as_str()),
        ("GIT_INDEX_FILE", index.as_str()),
        ("GIT_PREFIX", "docs/"),
        ("GIT_EXEC_PATH", ""),
        ("GIT_REFLOG_ACTION", "commit"),
    ];
    let env: Vec<_> = env.into_iter().filter(|pair| !pair.1.is_empty()).collect();
    let before = std::fs::read(&other).expect("reads");
    for args in [&["submit", "t1"][..], &["verify", "t1"], &["deliver", "t1"]] {
        repo.json_in("docs", &env, None, args).ok();
    }
    assert_eq!(repo.text("docs/a.md"), five());
    assert_eq!(std::fs::read(&other).expect("reads"), before, "the hook's index is not ours to write");
    // Relative, as git sets it in the main worktree.
    let relative = [("GIT_DIR", ".git"), ("GIT_INDEX_FILE", ".git/index"), ("GIT_PREFIX", "")];
    repo.json_in("", &relative, None, &["undo", "t1"]).ok();
    assert_eq!(repo.text("docs/a.md"), LINES);
}

#[test]
fn inside_a_real_hook_of_a_linked_worktree() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.git(&["worktree", "add", "-q", "-b", "side", "../linked"]);
    let linked = Repo::at(&lab, lab.path("linked"));
    linked.changing("t1", &[("docs/a.md", Some(&five()))]);
    let out = lab.path("hook-out");
    let hook = format!(
        "#!/bin/sh\nsetsid --wait '{}' deliver t1 --format json > '{}' 2>&1\n",
        crate::support::lab::TENDER,
        out.display()
    );
    repo.write(".git/hooks/pre-commit", hook);
    repo.chmod(".git/hooks/pre-commit", 0o755);
    linked.write("src/a.txt", "commit me\n");
    linked.git(&["commit", "-q", "-a", "-m", "with a hook"]);
    assert_eq!(linked.text("docs/a.md"), five(), "{}", std::fs::read_to_string(&out).unwrap_or_default());
    assert_eq!(repo.text("docs/a.md"), LINES);
    assert_eq!(
        linked.git(&["show", "--stat", "--format=", "HEAD"]).lines().count(),
        2,
        "only the user's file is in it"
    );
}

#[test]
fn hostile_git_variables_do_not_redirect_us() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    candidate(&repo);
    let marker = lab.path("ran");
    let evil = format!("touch '{}'", marker.display());
    let objects = path_text(&lab.path("tmp")).to_owned();
    let env = [
        ("GIT_EXTERNAL_DIFF", evil.as_str()),
        ("GIT_PAGER", evil.as_str()),
        ("GIT_EDITOR", evil.as_str()),
        ("GIT_SSH_COMMAND", evil.as_str()),
        ("GIT_TRACE", "1"),
        ("GIT_OBJECT_DIRECTORY", objects.as_str()),
        ("GIT_LITERAL_PATHSPECS", "1"),
        ("GIT_ICASE_PATHSPECS", "1"),
        ("GIT_DEFAULT_HASH", "sha256"),
    ];
    repo.json_in("", &env, None, &["deliver", "t1"]).ok();
    repo.json_in("", &env, None, &["diff", "t1"]).ok();
    assert_eq!(repo.text("docs/a.md"), five());
    assert!(!marker.exists());
}

#[test]
fn inside_a_tasks_worktree_the_task_can_be_left_out() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let task = repo.open(&Contract::new("t1"));
    repo.open(&Contract::new("t2"));
    task.write("docs/a.md", five());
    let inside = Repo::at(&lab, task.worktree.clone());
    assert_eq!(inside.json(&["submit"]).ok().json["taskId"], "t1");
    assert_eq!(inside.json_in("docs", &[], None, &["verify"]).ok().json["taskId"], "t1");
    assert_eq!(inside.json(&["report"]).ok().json["taskId"], "t1");
    assert_eq!(inside.json(&["deliver"]).ok().json["taskId"], "t1");
    assert_eq!(repo.text("docs/a.md"), five(), "delivered to where it was opened");
}

#[test]
fn the_way_back_from_a_worktree_is_not_its_git_file() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let hostile = lab.repo("hostile");
    let task = repo.open(&Contract::new("t1"));
    task.write(".git", format!("gitdir: {}\n", hostile.join(".git").display()));
    task.write("docs/a.md", five());
    let inside = Repo::at(&lab, task.worktree.clone());
    inside.json(&["submit"]).ok();
    inside.json(&["deliver"]).ok();
    assert_eq!(repo.text("docs/a.md"), five());
    assert!(!hostile.join(".git/tender").exists());
    assert_eq!(hostile.text("docs/a.md"), LINES);
}

#[test]
fn where_one_task_is_open_it_can_be_left_out_and_with_two_it_must_be_named() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.json(&["deliver"]).fails_one_of(&["not_found", "arguments.invalid"]);
    assert!(!repo.store().exists(), "a command that does not find its task creates nothing");
    candidate(&repo);
    repo.json(&["report"]).ok();
    repo.json(&["deliver", "--dry-run"]).ok();
    repo.open(&Contract::new("t2"));
    let answer = repo.json(&["deliver"]);
    let error = answer.fails_one_of(&["arguments.invalid", "not_found"]);
    let text = error.to_string();
    assert!(text.contains("t1") && text.contains("t2"), "it names the choice: {error:#}");
    repo.json(&["cancel", "t2"]).ok();
    repo.json(&["deliver"]).ok();
}

#[test]
fn outside_of_a_repository_it_is_one_clear_sentence() {
    let lab = Lab::new();
    let nowhere = Repo::at(&lab, lab.path("home"));
    for args in [&["status"][..], &["report", "t1"], &["deliver"], &["init"]] {
        nowhere.json(args).error();
        let out = nowhere.tender(args);
        assert!(out.errors().contains("repository"), "{args:?}: {}", out.errors());
    }
}
