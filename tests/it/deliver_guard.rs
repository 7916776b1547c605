//! `deliver` against a live tree that is not what it seems: replaced parents, fooled bits, half-done merges,
//! failing disks.

use super::deliver::conflict;
use crate::support::repo::{LINES, lines_with, path_text};
use crate::support::{Contract, Lab, Repo, is_root};
use serde_json::json;

fn with_candidate(lab: &Lab) -> Repo<'_> {
    let repo = lab.repo("app");
    repo.changing("t1", &[("docs/a.md", Some(&lines_with(5, "five")))]);
    repo
}

#[test]
fn a_parent_replaced_by_a_link_is_refused_and_nothing_is_written_outside() {
    let lab = Lab::new();
    let repo = with_candidate(&lab);
    let outside = lab.path("outside");
    std::fs::rename(repo.join("docs"), &outside).expect("moves");
    repo.link("docs", &outside);
    conflict(&repo, "t1", "docs/a.md", &[]);
    assert_eq!(std::fs::read_to_string(outside.join("a.md")).expect("reads"), LINES);
}

#[test]
fn a_parent_replaced_by_an_inner_link_is_refused_too() {
    let lab = Lab::new();
    let repo = with_candidate(&lab);
    std::fs::rename(repo.join("docs"), repo.join("docs.real")).expect("moves");
    repo.link("docs", "docs.real");
    conflict(&repo, "t1", "docs/a.md", &[]);
    assert_eq!(repo.text("docs.real/a.md"), LINES);
}

#[test]
fn a_parent_moved_away_or_replaced_by_a_file_is_refused() {
    let lab = Lab::new();
    let repo = with_candidate(&lab);
    std::fs::rename(repo.join("docs"), repo.join("papers")).expect("moves");
    conflict(&repo, "t1", "docs/a.md", &[]);
    repo.write("docs", "a file now\n");
    conflict(&repo, "t1", "docs/a.md", &[]);
    assert_eq!(repo.text("papers/a.md"), LINES);
}

#[test]
fn the_file_replaced_removed_or_made_executable_is_refused_by_name() {
    type Act = fn(&Repo<'_>);
    let cases: &[(&str, Act)] = &[
        ("type_changed", |repo| {
            std::fs::rename(repo.join("docs/a.md"), repo.join("docs/real.md")).expect("moves");
            repo.link("docs/a.md", "real.md");
        }),
        ("type_changed", |repo| {
            repo.rm("docs/a.md");
            repo.write("docs/a.md/inner", "x\n");
        }),
        ("mode_changed", |repo| repo.chmod("docs/a.md", 0o755)),
        ("missing", |repo| repo.rm("docs/a.md")),
        ("edited", |repo| repo.write("docs/a.md", "")),
        ("edited", |repo| repo.write("docs/a.md", LINES.replace('\n', "\r\n"))),
        ("edited", |repo| repo.write("docs/a.md", LINES.trim_end())),
    ];
    let lab = Lab::new();
    let repo = with_candidate(&lab);
    for (reason, act) in cases {
        act(&repo);
        conflict(&repo, "t1", "docs/a.md", &[reason]);
        if repo.exists("docs/a.md") {
            repo.rm("docs/a.md");
        }
        repo.git(&["checkout", "--", "docs/a.md"]);
        repo.chmod("docs/a.md", 0o644);
    }
    repo.json(&["deliver", "t1"]).ok();
}

#[test]
fn the_same_kinds_hold_for_a_file_that_the_patch_deletes_or_creates() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.changing("t1", &[("src/b.txt", None), ("fresh/new.txt", Some("new\n"))]);
    repo.write("src/b.txt", "mine\n");
    conflict(&repo, "t1", "src/b.txt", &["edited"]);
    repo.write("src/b.txt", "beta\n");
    repo.chmod("src/b.txt", 0o755);
    conflict(&repo, "t1", "src/b.txt", &["mode_changed"]);
    repo.chmod("src/b.txt", 0o644);
    repo.write("fresh", "a file where a directory is needed\n");
    conflict(&repo, "t1", "fresh/new.txt", &[]);
    repo.rm("fresh");
    repo.link("fresh", "src");
    conflict(&repo, "t1", "fresh/new.txt", &[]);
    assert!(!repo.exists("src/new.txt"));
    repo.rm("fresh");
    repo.write("fresh/new.txt/deep", "x\n");
    conflict(&repo, "t1", "fresh/new.txt", &[]);
    repo.rm("fresh");
    repo.link("fresh/new.txt", "nowhere");
    conflict(&repo, "t1", "fresh/new.txt", &[]);
    repo.rm("fresh");
    repo.json(&["deliver", "t1"]).ok();
}

#[test]
fn bits_that_say_unchanged_prove_nothing() {
    let lab = Lab::new();
    let repo = with_candidate(&lab);
    for (set, unset) in
        [("--assume-unchanged", "--no-assume-unchanged"), ("--skip-worktree", "--no-skip-worktree")]
    {
        repo.git(&["update-index", set, "docs/a.md"]);
        repo.write("docs/a.md", "mine\n");
        conflict(&repo, "t1", "docs/a.md", &["edited"]);
        repo.write("docs/a.md", LINES);
        repo.git(&["update-index", unset, "docs/a.md"]);
    }
    repo.git(&["update-index", "--assume-unchanged", "docs/a.md"]);
    repo.json(&["deliver", "t1"]).ok();
    assert!(repo.git(&["ls-files", "-v", "docs/a.md"]).starts_with("h "), "the bit stays");
}

#[test]
fn the_same_size_and_time_hide_no_edit() {
    let lab = Lab::new();
    let repo = with_candidate(&lab);
    repo.git(&["status"]);
    let path = repo.join("docs/a.md");
    let time = std::fs::metadata(&path).expect("stats").modified().expect("mtime");
    let mine = LINES.replace("line 9", "LINE 9");
    assert_eq!(mine.len(), LINES.len());
    let file = std::fs::OpenOptions::new().write(true).open(&path).expect("opens");
    std::os::unix::fs::FileExt::write_all_at(&file, mine.as_bytes(), 0).expect("writes");
    file.set_modified(time).expect("sets");
    drop(file);
    repo.git(&["config", "core.trustctime", "false"]);
    conflict(&repo, "t1", "docs/a.md", &["edited"]);
    assert_eq!(repo.text("docs/a.md"), mine);
}

#[test]
fn a_sparse_checkout_is_respected() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let patch = repo.patch_of(|copy| {
        copy.write("docs/a.md", lines_with(5, "five"));
        copy.write("src/a.txt", "edited\n");
    });
    let inside = repo.patch_of(|copy| copy.write("docs/a.md", lines_with(5, "five")));
    repo.git(&["sparse-checkout", "set", "docs"]);
    assert!(!repo.exists("src/a.txt"));
    repo.open(&Contract::new("t1"));
    repo.submit_patch("t1", &patch).ok();
    conflict(&repo, "t1", "src/a.txt", &[]);
    repo.open(&Contract::new("t2"));
    repo.submit_patch("t2", &inside).ok();
    repo.json(&["deliver", "t2"]).ok();
    assert_eq!(repo.text("docs/a.md"), lines_with(5, "five"));
    assert!(!repo.exists("src/a.txt"), "the cone stays as it was");
}

#[test]
fn an_index_entry_that_is_none_of_the_three_is_refused_though_the_bytes_are_the_preimage() {
    let lab = Lab::new();
    let repo = with_candidate(&lab);
    repo.write("docs/a.md", "staged meanwhile\n");
    repo.git(&["add", "docs/a.md"]);
    repo.write("docs/a.md", LINES);
    conflict(&repo, "t1", "docs/a.md", &[]);
    repo.git(&["rm", "-q", "-f", "--cached", "docs/a.md"]);
    conflict(&repo, "t1", "docs/a.md", &[]);
    repo.git(&["reset", "-q", "--", "docs/a.md"]);
    repo.json(&["deliver", "t1"]).ok();
}

#[test]
fn an_index_entry_as_it_was_at_open_or_already_the_postimage_is_no_conflict() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    // Staged and further edited before `open` with a live base: the entry is neither pre- nor postimage.
    repo.write("docs/a.md", "staged before\n");
    repo.git(&["add", "docs/a.md"]);
    repo.write("docs/a.md", "edited before\n");
    let task = repo.open(&Contract::new("t1").set("base", json!("live")));
    task.write("docs/a.md", "edited before\nand more\n");
    repo.json(&["submit", "t1"]).ok();
    let index = repo.git(&["ls-files", "-s"]);
    repo.json(&["deliver", "t1"]).ok();
    assert_eq!(repo.text("docs/a.md"), "edited before\nand more\n");
    assert_eq!(repo.git(&["ls-files", "-s"]), index);

    repo.changing("t2", &[("docs/b.md", Some("post\n"))]);
    repo.write("docs/b.md", "post\n");
    repo.git(&["add", "docs/b.md"]);
    repo.write("docs/b.md", "second\n");
    repo.json(&["deliver", "t2"]).ok();
}

#[test]
fn intent_to_add_and_unmerged_entries_are_refused() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.changing("t1", &[("docs/new.md", Some("new\n"))]);
    repo.write("docs/new.md", "soon\n");
    repo.git(&["add", "-N", "docs/new.md"]);
    conflict(&repo, "t1", "docs/new.md", &[]);
    repo.rm("docs/new.md");
    conflict(&repo, "t1", "docs/new.md", &[]);

    let repo = lab.repo("second");
    repo.changing("t1", &[("docs/a.md", Some("new\n"))]);
    let blob = repo.git(&["rev-parse", "HEAD:docs/a.md"]);
    let entries = format!(
        "0 {0} 0\tdocs/a.md\n100644 {blob} 1\tdocs/a.md\n100644 {blob} 2\tdocs/a.md\n",
        "0".repeat(40)
    );
    let mut command = lab.command("git", &repo.path);
    command.args(["update-index", "--index-info"]);
    crate::support::lab::run(command, Some(entries.as_bytes())).ok();
    conflict(&repo, "t1", "docs/a.md", &[]);
}

#[test]
fn in_the_middle_of_an_operation_that_touches_the_paths_it_is_refused() {
    let lab = Lab::new();
    for operation in ["merge", "rebase", "cherry-pick"] {
        let repo = lab.repo(operation);
        repo.git(&["switch", "-q", "-c", "side"]);
        repo.write("docs/a.md", lines_with(5, "side"));
        repo.write("docs/b.md", "side\n");
        repo.commit("side");
        repo.git(&["switch", "-q", "main"]);
        repo.write("docs/b.md", "main\n");
        repo.commit("main");
        let side = repo.git(&["rev-parse", "side"]);
        repo.changing("t1", &[("docs/a.md", Some("new\n")), ("docs/b.md", Some("new\n"))]);
        repo.changing("t2", &[("src/a.txt", Some("new\n"))]);
        let out = repo.git_out(&[operation, &side]);
        assert_ne!(out.code, 0, "{operation} stops at the conflict");
        let before = repo.snapshot();
        let answer = repo.json(&["deliver", "t1"]);
        // While a rebase runs HEAD is detached: another branch is an equally good ground to refuse.
        answer.fails_one_of(&["delivery.conflict", "confirmation.required"]);
        before.same(&repo.snapshot());
        if operation != "rebase" {
            repo.json(&["deliver", "t2"]).ok();
        }
    }
}

#[test]
fn a_path_inside_a_nested_repository_of_the_users_is_refused() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.changing("t1", &[("front/new.txt", Some("new\n"))]);
    let nested = lab.repo_at(repo.join("front"), &[]);
    nested.write("x", "x\n");
    nested.commit("nested");
    conflict(&repo, "t1", "front/new.txt", &[]);
    assert!(!repo.exists("front/new.txt"));
}

#[test]
fn open_for_writing_elsewhere_is_refused() {
    let lab = Lab::new();
    let repo = with_candidate(&lab);
    let editor = std::fs::OpenOptions::new().append(true).open(repo.join("docs/a.md")).expect("opens");
    conflict(&repo, "t1", "docs/a.md", &[]);
    drop(editor);
    repo.json(&["deliver", "t1"]).ok();
}

/// Five files in five directories; the third is large.
fn five(lab: &Lab, name: &str, large: usize) -> (Vec<String>, String) {
    let repo = lab.repo(name);
    let paths: Vec<String> = (1..=5).map(|n| format!("d{n}/file.txt")).collect();
    paths.iter().for_each(|path| repo.write(path, "old\n"));
    repo.commit("five");
    let big = "x".repeat(large);
    let files: Vec<_> = paths
        .iter()
        .enumerate()
        .map(|(n, path)| (path.as_str(), Some(if n == 2 { big.as_str() } else { "new\n" })))
        .collect();
    let contract = Contract::new("t1").set("budget", json!({"artifactBytes": 200_000_000}));
    repo.submitted(&contract, |task| {
        files.iter().for_each(|(path, text)| task.write(path, text.expect("set")))
    });
    (paths.clone(), big)
}

#[test]
fn no_space_in_the_middle_leaves_all_as_before() {
    let lab = Lab::new();
    let (_, big) = five(&lab, "app", 40_000_000);
    let repo = Repo::at(&lab, lab.path("app"));
    let before = repo.snapshot();
    // A file size limit with SIGXFSZ ignored: writes beyond 20 MB fail with EFBIG, as a full disk would.
    let mut command = lab.command("sh", &repo.path);
    let script = "trap '' XFSZ; ulimit -f 40000; exec setsid --wait \"$0\" deliver t1 --format json";
    command.args(["-c", script, crate::support::lab::TENDER]);
    let answer = crate::support::Answer::of(crate::support::lab::run(command, None));
    answer.fails("io");
    before.same(&repo.snapshot());
    repo.fsck_gc();
    // With room again the same command completes.
    repo.json(&["deliver", "t1"]).ok();
    assert_eq!(repo.text("d3/file.txt").len(), big.len());
}

#[test]
fn a_read_only_directory_in_the_middle_leaves_all_as_before() {
    let lab = Lab::new();
    five(&lab, "app", 10);
    let repo = Repo::at(&lab, lab.path("app"));
    let directory = repo.join("d3");
    if is_root() {
        // Permission bits do not stop root; an immutable directory does.
        let mut command = lab.command("chattr", &repo.path);
        command.args(["+i", "d3"]);
        if crate::support::lab::run(command, None).code != 0 {
            eprintln!("chattr +i does not work here (file system or capability): left out");
            return;
        }
    } else {
        repo.chmod("d3", 0o555);
    }
    let before = repo.snapshot();
    let answer = repo.json(&["deliver", "t1"]);
    let after = repo.snapshot();
    if is_root() {
        let mut command = lab.command("chattr", &repo.path);
        command.args(["-i", path_text(&directory)]);
        crate::support::lab::run(command, None).ok();
    } else {
        repo.chmod("d3", 0o755);
    }
    let error = answer.fails_one_of(&["io", "delivery.conflict"]);
    assert!(error.to_string().contains("d3"), "{error:#}");
    before.same(&after);
    repo.json(&["deliver", "t1"]).ok();
}

#[test]
fn a_file_where_a_directory_is_needed_leaves_all_as_before() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.changing(
        "t1",
        &[("src/a.txt", Some("new\n")), ("m/deep/file.txt", Some("new\n")), ("z.txt", Some("new\n"))],
    );
    repo.write("m/deep", "a file of the user's\n");
    conflict(&repo, "t1", "m/deep/file.txt", &[]);
    assert_eq!(repo.text("src/a.txt"), "alpha\n");
}

#[test]
fn two_deliveries_at_once_apply_it_once() {
    let lab = Lab::new();
    let repo = with_candidate(&lab);
    let answers: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..6).map(|_| scope.spawn(|| repo.json(&["deliver", "t1"]))).collect();
        workers.into_iter().map(|worker| worker.join().expect("no panic").ok()).collect()
    });
    let applied = answers.iter().filter(|answer| answer.outcomes()[0].1 == "applied").count();
    assert_eq!(applied, 1);
    assert_eq!(repo.text("docs/a.md"), lines_with(5, "five"));
    super::open::assert_chain(&repo);
}

#[test]
fn two_tasks_that_want_the_same_line_do_not_both_get_it() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.changing("t1", &[("docs/a.md", Some(&lines_with(5, "one")))]);
    repo.changing("t2", &[("docs/a.md", Some(&lines_with(5, "two")))]);
    repo.json(&["deliver", "t1"]).ok();
    conflict(&repo, "t2", "docs/a.md", &["edited"]);
    assert_eq!(repo.text("docs/a.md"), lines_with(5, "one"));
}
