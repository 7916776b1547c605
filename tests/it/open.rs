//! `open`: the sealed contract, the worktree, the base, what the worktree lacks.

use crate::support::repo::{LINES, path_text};
use crate::support::snapshot::tree;
use crate::support::{Contract, Lab, Repo, shape};
use serde_json::{Value, json};

pub fn task_shape() -> Value {
    json!({
        "schema": "git-tender/task/v1", "taskId": "$text", "state": "$word",
        "contract": {"version": "$int", "sha256": "$sha256"},
        "base": {"commit": "$oid", "tree": "$oid"}, "worktree": "$abs",
        "lacks": {"dirty": ["$any"], "ignored": ["$any"], "submodules": ["$any"], "lfs": ["$any"]}
    })
}

#[test]
fn the_example_contract_is_accepted_as_it_stands_and_sealed_by_its_digest() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let text = include_str!("example_contract.json");
    let file = crate::support::contract::raw(&lab, text.as_bytes());
    let answer = repo.json(&["open", path_text(&file)]).ok();
    shape::check(&answer.json, &task_shape());
    assert_eq!(answer.json["taskId"], "task-example");
    assert_eq!(answer.json["state"], "open");
    assert_eq!(answer.json["contract"]["version"], 1);
    let sum = crate::support::lab::run(
        {
            let mut command = lab.command("sha256sum", &repo.path);
            command.arg(&file);
            command
        },
        None,
    )
    .ok()
    .text();
    assert!(sum.starts_with(answer.json["contract"]["sha256"].as_str().expect("text")), "{sum}");
    assert_eq!(answer.json["base"]["commit"], repo.git(&["rev-parse", "HEAD"]));
    assert_eq!(answer.json["base"]["tree"], repo.git(&["rev-parse", "HEAD^{tree}"]));
}

#[test]
fn open_says_in_words_where_the_worktree_is_and_that_a_person_has_to_attest() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let file = crate::support::contract::raw(&lab, include_bytes!("example_contract.json"));
    let out = repo.tender(&["open", path_text(&file)]).ok();
    assert!(out.text().contains("task-example"), "{}", out.text());
    assert!(out.text().contains("app.tender/task-example"), "{}", out.text());
    let all = out.all();
    assert!(all.contains("editorial_review"), "open says whose attestation it needs: {all}");
}

#[test]
fn the_worktree_lies_beside_the_repository_detached_and_holds_the_base() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.link("docs/link", "a.md");
    repo.write("tool.sh", "#!/bin/sh\n");
    repo.chmod("tool.sh", 0o755);
    repo.commit("link and tool");
    let task = repo.open(&Contract::new("t1"));
    assert_eq!(task.worktree, lab.path("app.tender/t1"));
    assert_eq!(tree(&task.worktree), tree(&repo.path));
    let inside = Repo::at(&lab, task.worktree.clone());
    assert_eq!(inside.git(&["rev-parse", "HEAD"]), repo.git(&["rev-parse", "HEAD"]));
    assert_ne!(inside.git_out(&["symbolic-ref", "-q", "HEAD"]).code, 0, "HEAD is detached");
    assert_eq!(inside.git(&["status", "--porcelain"]), "", "git in the worktree sees the base, clean");
    assert!(lab.path("app.tender/.repository").exists(), "the way back to the repository");
    repo.fsck_gc();
}

#[test]
fn opening_changes_nothing_that_the_user_sees() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.write("docs/b.md", "staged\n");
    repo.git(&["add", "docs/b.md"]);
    repo.write("docs/b.md", "staged and edited\n");
    repo.write("new.txt", "untracked\n");
    repo.write(".env", "SECRET=1\n");
    let before = repo.snapshot();
    repo.open(&Contract::new("t1"));
    repo.open(&Contract::new("t2").set("base", json!("live")));
    before.same(&repo.snapshot());
    repo.fsck_gc();
}

#[test]
fn the_worktree_says_what_it_lacks() {
    let lab = Lab::new();
    let other = lab.repo("library");
    let repo = lab.repo("app");
    repo.git(&["submodule", "add", "-q", path_text(&other.path), "vendored"]);
    repo.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
    repo.git(&["config", "filter.lfs.clean", "cat"]);
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:\
                   4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n";
    repo.write("big.bin", pointer);
    repo.commit("submodule and pointer");
    // Nothing of it is here.
    repo.git(&["submodule", "deinit", "-q", "-f", "vendored"]);
    std::fs::remove_dir_all(repo.join(".git/modules")).expect("removed");
    repo.write("docs/b.md", "dirty\n");
    repo.write("untracked.txt", "new\n");
    repo.write(".env", "SECRET=1\n");
    let task = repo.open(&Contract::new("t1"));
    let lacks = &task.opened["lacks"];
    let has = |field: &str, what: &str| lacks[field].to_string().contains(what);
    assert!(has("dirty", "docs/b.md"), "{lacks:#}");
    assert!(has("dirty", "untracked.txt"), "{lacks:#}");
    assert!(has("ignored", ".env"), "{lacks:#}");
    assert!(has("submodules", "vendored"), "{lacks:#}");
    assert!(has("lfs", "big.bin"), "{lacks:#}");
    assert!(!lacks.to_string().contains("SECRET"), "names, never contents");
}

#[test]
fn a_filter_that_cannot_run_is_no_matter_where_nothing_is_asked_of_it() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.write(".gitattributes", "*.bin filter=lfs\n");
    repo.write("big.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 1\n");
    repo.commit("pointer");
    repo.git(&["config", "filter.lfs.clean", "no-such-program"]);
    repo.git(&["config", "filter.lfs.required", "true"]);
    repo.write("big.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 2\n");
    let task = repo.open(&Contract::new("t1"));
    let why = task.opened["lacks"]["unseen"].as_str().expect("says why");
    assert!(why.contains("git status"), "{why}");
    task.write("src/a.txt", "changed\n");
    repo.json(&["ship", "t1"]).ok();
    assert!(repo.json(&["report", "t1"]).ok().json["limits"].to_string().contains("was not looked for"));
}

#[test]
fn an_open_that_fails_leaves_nothing() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.write(".gitattributes", "*.need filter=need\n");
    repo.write("a.need", "text\n");
    repo.commit("a file that needs a program");
    repo.git(&["config", "filter.need.smudge", "no-such-program"]);
    repo.git(&["config", "filter.need.required", "true"]);
    repo.open_fails(&Contract::new("t1")).fails("io");
    repo.json(&["start", "a wish", "--scope", "src/", "--verify", "none"]).fails("io");
    assert_eq!(repo.git(&["worktree", "list"]).lines().count(), 1);
    assert!(!repo.store().join("tasks/t1").exists());
    repo.git(&["config", "filter.need.smudge", "cat"]);
    let task = repo.open(&Contract::new("t1"));
    assert_eq!(task.read("a.need"), b"text\n");
    // One that was killed could not tidy up: what it was making is known by its mark.
    let place = task.worktree.with_file_name("t7");
    repo.git(&["worktree", "add", "-q", "--detach", path_text(&place)]);
    let folder = repo.store().join("tasks/t7");
    std::fs::create_dir_all(folder.join("objects")).expect("makes");
    std::fs::write(folder.join("making-worktree"), path_text(&place)).expect("marks");
    assert_eq!(repo.json(&["gc"]).ok().json["removed"], json!(["t7"]));
    assert!(!place.exists() && !folder.exists());
    assert_eq!(repo.git(&["worktree", "list"]).lines().count(), 2);
}

#[test]
fn the_base_is_any_revision() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let first = repo.git(&["rev-parse", "HEAD"]);
    repo.git(&["tag", "v1"]);
    repo.write("docs/a.md", "newer\n");
    repo.commit("second");
    let abbreviated = first[..10].to_owned();
    for (number, base) in ["HEAD~1", "v1", first.as_str(), abbreviated.as_str(), "main~1"].iter().enumerate()
    {
        let task = repo.open(&Contract::new(&format!("t{number}")).set("base", json!(base)));
        assert_eq!(task.opened["base"]["commit"], first, "{base}");
        assert_eq!(task.read("docs/a.md"), LINES.as_bytes(), "{base}");
    }
    let answer = repo.open_fails(&Contract::new("t9").set("base", json!("no-such-revision")));
    let error = answer.fails_one_of(&["not_found", "contract.invalid"]);
    assert!(error.to_string().contains("no-such-revision"), "{error:#}");
    for option_like in ["--all", "-h", ""] {
        repo.open_fails(&Contract::new("t8").set("base", json!(option_like))).error();
    }
}

#[test]
fn a_live_base_holds_the_uncommitted_work_and_the_patch_does_not() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.write("docs/a.md", "my work in progress\n");
    repo.write("docs/untracked.md", "mine, new\n");
    repo.rm("src/b.txt");
    repo.write(".env", "SECRET=1\n");
    let task = repo.open(&Contract::new("t1").set("base", json!("live")));
    assert_eq!(task.opened["base"]["commit"], repo.git(&["rev-parse", "HEAD"]));
    assert_eq!(task.read("docs/a.md"), b"my work in progress\n");
    assert_eq!(task.read("docs/untracked.md"), b"mine, new\n");
    assert!(!task.exists("src/b.txt") && !task.exists(".env"));
    assert_eq!(task.opened["lacks"]["dirty"], json!([]), "nothing of it is lacking");
    task.write("docs/a.md", "my work in progress\nand the agent's line\n");
    let candidate = repo.json(&["submit", "t1"]).ok();
    assert_eq!(candidate.changes(), [("docs/a.md".to_owned(), "modified".to_owned())]);
    repo.json(&["deliver", "t1"]).ok();
    assert_eq!(repo.text("docs/a.md"), "my work in progress\nand the agent's line\n");
    assert_eq!(repo.text("docs/untracked.md"), "mine, new\n");
    assert!(!repo.exists("src/b.txt"));
    repo.fsck_gc();
}

#[test]
fn the_same_contract_again_is_the_same_task_and_another_one_is_refused() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let contract = Contract::new("t1");
    let first = repo.open(&contract);
    first.write("docs/a.md", "work\n");
    let again = repo.open(&contract);
    assert_eq!(first.opened["base"], again.opened["base"]);
    assert_eq!(first.worktree, again.worktree);
    assert_eq!(again.read("docs/a.md"), b"work\n", "the work in the worktree stays");
    let error = repo.open_fails(&contract.clone().set("goal", json!("another")));
    assert_eq!(error.fails("state.invalid")["subject"], "t1");
    // HEAD moved meanwhile: it is still the same task on the same base.
    repo.write("README.md", "moved\n");
    repo.commit("moved");
    assert_eq!(repo.open(&contract).opened["base"], first.opened["base"]);
}

#[test]
fn twenty_four_parallel_opens_all_succeed() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let before = repo.snapshot();
    std::thread::scope(|scope| {
        for number in 0..24 {
            let repo = &repo;
            scope.spawn(move || {
                let task = repo.open(&Contract::new(&format!("p{number}")));
                assert_eq!(task.read("docs/a.md"), LINES.as_bytes());
            });
        }
    });
    let status = repo.json(&["status"]).ok();
    assert_eq!(status.json["tasks"].as_array().map(Vec::len), Some(24));
    before.same(&repo.snapshot());
    repo.fsck_gc();
    assert_chain(&repo);
}

#[test]
fn the_same_open_twenty_four_times_at_once_is_one_task() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    std::thread::scope(|scope| {
        for _ in 0..24 {
            scope.spawn(|| repo.open(&Contract::new("same")));
        }
    });
    let status = repo.json(&["status"]).ok();
    assert_eq!(status.json["tasks"].as_array().map(Vec::len), Some(1));
    assert_chain(&repo);
}

/// The log is one unbroken chain.
pub fn assert_chain(repo: &Repo<'_>) {
    let log = repo.tender(&["log", "--format", "json"]).ok().text();
    let mut last: Option<(u64, String)> = None;
    for line in log.lines() {
        let entry: Value = serde_json::from_str(line).expect("one object a line");
        let seq = entry["seq"].as_u64().expect("seq");
        if let Some((before, hash)) = &last {
            assert!(seq > *before, "{line}");
            assert_eq!(entry["prev"], hash.as_str(), "{line}");
        }
        last = Some((seq, entry["hash"].as_str().expect("hash").to_owned()));
    }
    assert!(last.is_some(), "the log is not empty");
}

#[test]
fn the_worktree_root_can_be_set_and_a_folder_of_another_repository_is_not_used() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let root = lab.path("elsewhere");
    std::fs::create_dir(&root).expect("creates");
    repo.git(&["config", "tender.worktreeRoot", path_text(&root)]);
    let task = repo.open(&Contract::new("t1"));
    assert!(task.worktree.starts_with(&root), "{}", task.worktree.display());

    // Two repositories of one name share the root: neither lands in the other's folder.
    std::fs::create_dir(lab.path("second")).expect("creates");
    let other = lab.repo("second/app");
    other.git(&["config", "tender.worktreeRoot", path_text(&root)]);
    let answer = other.open_fails(&Contract::new("t1"));
    if answer.code == 0 {
        let theirs = crate::support::Task::of(&answer.json);
        assert_ne!(theirs.worktree.parent(), task.worktree.parent());
    } else {
        answer.error();
    }
    assert!(task.exists("docs/a.md"));
}

#[test]
fn a_folder_that_stands_in_the_way_is_not_touched() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    std::fs::create_dir_all(lab.path("app.tender/t1")).expect("creates");
    std::fs::write(lab.path("app.tender/t1/mine.txt"), "mine").expect("writes");
    let answer = repo.open_fails(&Contract::new("t1"));
    if answer.code == 0 {
        assert_ne!(crate::support::Task::of(&answer.json).worktree, lab.path("app.tender/t1"));
    } else {
        answer.error();
    }
    assert_eq!(std::fs::read(lab.path("app.tender/t1/mine.txt")).expect("reads"), b"mine");
}

#[test]
fn filling_the_worktree_runs_nothing() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let marker = lab.path("ran");
    let script = format!("#!/bin/sh\ntouch '{}'\ncat\n", marker.display());
    for hook in ["post-checkout", "post-index-change", "reference-transaction", "pre-commit"] {
        repo.write(format!(".git/hooks/{hook}"), &script);
        repo.chmod(format!(".git/hooks/{hook}"), 0o755);
    }
    repo.write("monitor.sh", &script);
    repo.chmod("monitor.sh", 0o755);
    repo.write(".gitattributes", "*.md filter=evil\n");
    repo.git_out(&["-c", "core.hooksPath=/dev/null", "add", "-A"]).ok();
    repo.git_out(&["-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", "attributes"]).ok();
    repo.git(&["config", "filter.evil.smudge", "./monitor.sh"]);
    repo.git(&["config", "core.fsmonitor", path_text(&repo.join("monitor.sh"))]);
    let _ = std::fs::remove_file(&marker);
    let answer = repo.open_fails(&Contract::new("t1"));
    if answer.code != 0 {
        answer.error();
    }
    assert!(!marker.exists(), "something of the tree, or a hook, was run");
}

#[test]
fn a_live_base_never_holds_half_a_delivery_or_its_temporary_files() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.submitted(&Contract::new("t1"), |task| {
        for number in 0..400 {
            task.write(format!("docs/new{number}.md"), "new\n");
        }
    });
    let live: Vec<_> =
        (0..4).map(|n| Contract::new(&format!("live{n}")).set("base", "live".into())).collect();
    let opened = std::thread::scope(|scope| {
        let delivery = scope.spawn(|| repo.json(&["deliver", "t1"]).ok());
        let opened: Vec<_> = live.iter().map(|contract| repo.open(contract)).collect();
        delivery.join().expect("delivered");
        opened
    });
    for task in opened {
        let names = std::fs::read_dir(task.worktree.join("docs")).expect("lists");
        let names: Vec<String> =
            names.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        assert!(!names.iter().any(|name| name.starts_with(".tender-")), "{names:?}");
        let delivered = names.iter().filter(|name| name.starts_with("new")).count();
        assert!(delivered == 0 || delivered == 400, "{delivered} of 400");
    }
}
