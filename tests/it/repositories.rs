//! Repositories of every kind, names of every kind, sizes: it works, or one clear sentence says why not.

use crate::support::repo::{LINES, lines_with, path_text};
use crate::support::{Answer, Contract, Lab, Repo, skip};
use serde_json::json;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// One sentence: a known refusal, short, on one line, that names what is the matter.
#[track_caller]
fn one_sentence(answer: &Answer, words: &[&str]) {
    let error = answer.fails_one_of(&[
        "git.unsupported",
        "not_supported",
        "state.invalid",
        "not_found",
        "contract.invalid",
        "scope.violation",
    ]);
    let message = error["message"].as_str().expect("text");
    assert!(message.len() < 400 && !message.contains('\n'), "{message}");
    assert!(
        words.iter().any(|word| message.to_lowercase().contains(word)),
        "{message} names none of {words:?}"
    );
}

/// The whole way on one file, or one sentence at `open`.
#[track_caller]
fn works_or_says_why(repo: &Repo<'_>, words: &[&str]) -> bool {
    let before = repo.snapshot();
    let answer = repo.open_fails(&Contract::new("way"));
    if answer.code != 0 {
        one_sentence(&answer, words);
        before.same(&repo.snapshot());
        return false;
    }
    let task = crate::support::Task::of(&answer.json);
    task.write("docs/a.md", lines_with(5, "five"));
    repo.json(&["submit", "way"]).ok();
    repo.json(&["verify", "way"]).ok();
    repo.json(&["deliver", "way"]).ok();
    assert_eq!(repo.text("docs/a.md"), lines_with(5, "five"));
    repo.json(&["undo", "way"]).ok();
    before.same(&repo.snapshot());
    repo.fsck_gc();
    true
}

#[test]
fn an_empty_repository_and_an_unborn_head() {
    let lab = Lab::new();
    let repo = lab.empty_repo("empty");
    works_or_says_why(&repo, &["commit", "head", "empty", "unborn"]);
    let repo = lab.repo("orphan");
    repo.git(&["switch", "-q", "--orphan", "fresh"]);
    repo.write("docs/a.md", LINES);
    works_or_says_why(&repo, &["commit", "head", "empty", "unborn"]);
    for view in [&["status"][..], &["log"], &["doctor"]] {
        repo.tender(view);
    }
}

#[test]
fn a_bare_repository() {
    let lab = Lab::new();
    let origin = lab.repo("origin");
    origin.git(&["clone", "-q", "--bare", ".", "../bare.git"]);
    let bare = Repo::at(&lab, lab.path("bare.git"));
    let answer = bare.open_fails(&Contract::new("t1"));
    one_sentence(&answer, &["bare", "work"]);
    assert!(!bare.join("tender").exists());
}

#[test]
fn a_shallow_clone() {
    let lab = Lab::new();
    let origin = lab.repo("origin");
    origin.write("README.md", "second\n");
    origin.commit("second");
    let url = format!("file://{}", origin.path.display());
    origin.git(&["clone", "-q", "--depth", "1", &url, "../shallow"]);
    let shallow = Repo::at(&lab, lab.path("shallow"));
    assert!(works_or_says_why(&shallow, &["shallow"]), "a shallow clone has all that is needed");
}

#[test]
fn a_partial_clone() {
    let lab = Lab::new();
    let origin = lab.repo("origin");
    origin.git(&["config", "uploadpack.allowFilter", "true"]);
    let url = format!("file://{}", origin.path.display());
    origin.git(&["clone", "-q", "--filter=blob:none", &url, "../partial"]);
    let partial = Repo::at(&lab, lab.path("partial"));
    works_or_says_why(&partial, &["partial", "promisor"]);
}

#[test]
fn sha256_reftable_split_and_sparse_index() {
    let lab = Lab::new();
    let fill = |repo: &Repo<'_>| {
        repo.write("docs/a.md", LINES);
        repo.write("src/x.txt", "x\n");
        repo.commit("first");
    };
    let sha256 = lab.repo_with("sha256", &["--object-format=sha256"]);
    fill(&sha256);
    works_or_says_why(&sha256, &["sha256", "sha-256", "objectformat"]);
    let out = lab.git(&lab.path(""), &["init", "-q", "--ref-format=reftable", "reftable"]);
    if out.code == 0 {
        let reftable = Repo::at(&lab, lab.path("reftable"));
        fill(&reftable);
        works_or_says_why(&reftable, &["reftable", "refstorage"]);
    } else {
        eprintln!("this git has no reftable: left out");
    }
    let split = lab.repo("split");
    split.git(&["update-index", "--split-index"]);
    works_or_says_why(&split, &["split"]);
    let sparse = lab.repo("sparse");
    sparse.git(&["sparse-checkout", "set", "--cone", "--sparse-index", "docs"]);
    works_or_says_why(&sparse, &["sparse"]);
    let untracked = lab.repo("untracked");
    untracked.git(&["update-index", "--untracked-cache"]);
    untracked.git(&["update-index", "--index-version", "4"]);
    assert!(works_or_says_why(&untracked, &["index"]));
}

#[test]
fn a_submodule() {
    let lab = Lab::new();
    let library = lab.repo("library");
    let repo = lab.repo("app");
    repo.git(&["submodule", "add", "-q", path_text(&library.path), "vendored"]);
    repo.commit("submodule");
    assert!(works_or_says_why(&repo, &["submodule"]));
    let task = repo.open(&Contract::new("t1"));
    // The pointer itself must not move.
    let patch = format!(
        "diff --git a/vendored b/vendored\nindex {0}..{1} 160000\n--- a/vendored\n+++ b/vendored\n@@ -1 +1 @@\n-Subproject commit {0}\n+Subproject commit {1}\n",
        repo.git(&["rev-parse", "HEAD:vendored"]),
        "1".repeat(40)
    );
    repo.submit_patch("t1", patch.as_bytes()).fails_one_of(&["scope.violation", "patch.invalid"]);
    task.write("vendored/x", "written into the empty place of the submodule\n");
    repo.json(&["submit", "t1"]).fails("scope.violation");
    assert_eq!(repo.text("vendored/docs/a.md"), LINES);
}

#[test]
fn lfs_pointer_files() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:\
                   4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n";
    repo.write("big.bin", pointer);
    repo.commit("pointer without attributes");
    repo.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
    repo.git(&["add", ".gitattributes"]);
    repo.git(&["commit", "-q", "-m", "attributes"]);
    works_or_says_why(&repo, &["lfs", "filter"]);
    assert_eq!(repo.text("big.bin"), pointer);
}

/// Names that break what is careless with them.
fn odd_names() -> Vec<Vec<u8>> {
    let names: &[&[u8]] = &[
        b"caf\xe9.txt",
        b"\xff\xfe",
        "ünïcödé/日本語.md".as_bytes(),
        "e\u{301}-decomposed".as_bytes(),
        "é-composed".as_bytes(),
        b"with space",
        b" leading and trailing ",
        b"new\nline",
        b"tab\tname",
        b"quote\"and'apostrophe",
        b"back\\slash",
        b"-option",
        b"--format",
        b":(top)magic",
        b"*star?[x]",
        b"!bang",
        b"#hash",
        b"a/b/c/d/e/f/g/h/i/j/deep",
        b"dollar$HOME",
        b"percent%s",
        b"control\x01\x1b[31m",
        b"{out}",
    ];
    names.iter().map(|name| name.to_vec()).collect()
}

#[test]
fn odd_path_names_in_every_kind_of_change() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let at = |name: &[u8], kind: &str| Path::new(kind).join(Path::new(OsStr::from_bytes(name)));
    for name in odd_names() {
        repo.write(at(&name, "edit"), "old\n");
        repo.write(at(&name, "delete"), "old\n");
        repo.write(at(&name, "mode"), "old\n");
    }
    repo.commit("odd names");
    let task = repo.submitted(&Contract::new("t1"), |task| {
        for name in odd_names() {
            task.write(at(&name, "edit"), "new\n");
            task.rm(at(&name, "delete"));
            task.write(at(&name, "create"), "new\n");
            task.chmod(at(&name, "mode"), 0o755);
        }
    });
    let candidate = repo.json(&["submit", "t1"]).ok();
    assert_eq!(candidate.json["changes"].as_array().map(Vec::len), Some(odd_names().len() * 4));
    let bytes =
        candidate.json["changes"].as_array().expect("list").iter().filter(|c| c["path"]["bytes"].is_string());
    assert_eq!(bytes.count(), 8, "a path that is not UTF-8 is shown as base64 of its bytes");
    repo.tender(&["report", "t1"]).ok();
    repo.json(&["deliver", "t1"]).ok();
    // Folders that the worker emptied go with their last file.
    std::fs::remove_dir_all(task.worktree.join("delete")).expect("nothing but folders is left in it");
    crate::support::snapshot::same_tree(
        &crate::support::snapshot::tree(&task.worktree),
        &crate::support::snapshot::tree(&repo.path),
    );
    repo.json(&["undo", "t1"]).ok();
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    repo.fsck_gc();
}

#[test]
fn a_repository_in_a_folder_with_an_odd_name() {
    let lab = Lab::new();
    for name in ["with space", "ünïcödé", "quote'\"x", "dollar$x", "-dash", "new\nline"] {
        let parent = lab.path(format!("in {}", name.len()));
        let repo = lab.repo_at(parent.join(name), &[]);
        repo.write("docs/a.md", LINES);
        repo.commit("first");
        assert!(works_or_says_why(&repo, &["name", "path"]) || name == "new\nline", "{name:?}");
    }
}

#[test]
fn a_patch_of_ten_thousand_files() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let count = crate::support::setting("TENDER_MANY_FILES", 10_000);
    let patch = repo.patch_of(|copy| {
        (0..count).for_each(|n| copy.write(format!("many/d{}/f{n}.txt", n % 100), format!("content {n}\n")));
    });
    repo.open(&Contract::new("t1").set("budget", json!({"artifactBytes": 500_000_000})));
    let candidate = repo.submit_patch("t1", &patch).ok();
    assert_eq!(candidate.json["changes"].as_array().map(Vec::len), usize::try_from(count).ok());
    repo.json(&["deliver", "t1"]).ok();
    assert_eq!(repo.text("many/d99/f99.txt"), "content 99\n");
    let files = repo.git(&["ls-files", "-o", "--exclude-standard"]);
    assert_eq!(files.lines().count(), usize::try_from(count).expect("fits"));
    repo.json(&["undo", "t1"]).ok();
    assert!(!repo.exists("many"));
}

#[test]
fn a_hundred_megabytes() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let size = 100_000_000;
    let mut block: Vec<u8> = (0..1_000_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    block[0] = 0;
    let mut big = block.repeat(size / block.len());
    repo.write("present.bin", &big);
    repo.commit("big");
    let task = repo.open(&Contract::new("t1").set("budget", json!({"artifactBytes": 500_000_000})));
    big[size / 2] ^= 1;
    task.write("present.bin", &big);
    task.write("fresh.bin", &big);
    let answer = repo.json(&["submit", "t1"]);
    if answer.code != 0 {
        answer.fails("budget.exhausted");
        return;
    }
    repo.json(&["deliver", "t1"]).ok();
    assert!(repo.read("present.bin") == big && repo.read("fresh.bin") == big);
    repo.fsck_gc();
}

#[test]
fn a_large_untouched_file_costs_nothing() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.write("large.bin", vec![b'z'; 60_000_000]);
    repo.commit("large");
    repo.write("untracked.bin", vec![b'y'; 60_000_000]);
    repo.changing("t1", &[("docs/a.md", Some("x\n"))]);
    let started = std::time::Instant::now();
    repo.json(&["deliver", "t1"]).ok();
    assert!(started.elapsed() < std::time::Duration::from_secs(5), "{:?}", started.elapsed());
}

#[test]
fn alternates_and_grafted_histories() {
    let lab = Lab::new();
    let origin = lab.repo("origin");
    origin.git(&["clone", "-q", "--shared", ".", "../shared"]);
    let shared = Repo::at(&lab, lab.path("shared"));
    assert!(works_or_says_why(&shared, &["alternate"]));
    let replaced = lab.repo("replaced");
    replaced.write("docs/a.md", lines_with(1, "other"));
    replaced.commit("second");
    let (old, new) =
        (replaced.git(&["rev-parse", "HEAD~1:docs/a.md"]), replaced.git(&["rev-parse", "HEAD:docs/a.md"]));
    replaced.git(&["replace", &new, &old]);
    let task = replaced.open(&Contract::new("t1"));
    task.write("docs/b.md", "x\n");
    replaced.json(&["submit", "t1"]).ok();
    replaced.json(&["deliver", "t1"]).ok();
}

#[test]
fn a_separate_git_directory() {
    let lab = Lab::new();
    let separate = format!("--separate-git-dir={}", lab.path("gitdirs.git").display());
    let repo = lab.repo_with("app", &[separate.as_str()]);
    repo.write("docs/a.md", LINES);
    repo.commit("first");
    assert!(works_or_says_why(&repo, &["git"]));
}

#[test]
fn a_repository_owned_by_someone_else_is_refused_as_git_refuses_it() {
    if !crate::support::is_root() {
        eprintln!("only root can give a repository away: left out");
        return;
    }
    let lab = Lab::new();
    let repo = lab.repo("app");
    let mut command = lab.command("chown", &repo.path);
    command.args(["-R", "12345:12345", "."]);
    if crate::support::lab::run(command, None).code != 0 {
        skip("chown does not work here");
        return;
    }
    let answer = repo.json(&["status"]);
    let git = repo.git_out(&["status"]);
    if git.code != 0 && answer.code != 0 {
        answer.error();
    }
    assert!(
        !(git.code != 0 && answer.code == 0 && repo.store().exists()),
        "git refuses it, we made something in it"
    );
}
