//! `submit --patch`: what people have is taken, exactly; everything else is refused before anything is made.

use super::submit::candidate_shape;
use crate::support::repo::{LINES, lines_with, path_text};
use crate::support::{Answer, Contract, Lab, Repo, shape};

/// A repository with an open task.
fn opened(lab: &Lab) -> Repo<'_> {
    let repo = lab.repo("app");
    repo.open(&Contract::new("t1"));
    repo
}

/// The patch is refused with one of the codes and leaves neither candidate nor trace in the live tree.
#[track_caller]
fn refused(repo: &Repo<'_>, patch: &[u8], codes: &[&str]) -> Answer {
    let before = repo.snapshot();
    let answer = repo.submit_patch("t1", patch);
    answer.fails_one_of(codes);
    before.same(&repo.snapshot());
    repo.json(&["deliver", "t1"]).fails("state.invalid");
    answer
}

fn hunk(head: &str, body: &str) -> Vec<u8> {
    format!("--- a/docs/a.md\n+++ b/docs/a.md\n{head}\n{body}").into_bytes()
}

const GOOD: &str = " line 2\n line 3\n line 4\n-line 5\n+five\n line 6\n line 7\n line 8\n";

#[test]
fn the_common_forms_are_taken() {
    let lab = Lab::new();
    let repo = opened(&lab);
    let git = repo.patch_of(|copy| copy.write("docs/a.md", lines_with(5, "five")));
    let plain = hunk("@@ -2,7 +2,7 @@", GOOD);
    let no_prefix =
        String::from_utf8(git.clone()).expect("text").lines().map(|l| format!("{l}\n")).collect::<String>();
    let copy = lab.path("tmp/mail");
    repo.git(&["clone", "-q", ".", path_text(&copy)]);
    let mail = Repo::at(&lab, copy);
    mail.write("docs/a.md", lines_with(5, "five"));
    mail.commit("Make line five a word\n\nWith a body, and --- in it.");
    let mailbox = mail.git_out(&["format-patch", "-1", "--stdout"]).ok().stdout;
    let dated = String::from_utf8(plain.clone())
        .expect("text")
        .replace("docs/a.md\n", "docs/a.md\t2024-01-01 00:00:00\n");
    let mut trees = Vec::new();
    for patch in [git, plain, no_prefix.into_bytes(), mailbox, dated.into_bytes()] {
        let answer = repo.submit_patch("t1", &patch).ok();
        shape::check(&answer.json, &candidate_shape());
        assert_eq!(answer.changes(), [("docs/a.md".to_owned(), "modified".to_owned())]);
        trees.push(answer.json["tree"].clone());
    }
    assert!(trees.windows(2).all(|pair| pair[0] == pair[1]), "{trees:?}");
}

#[test]
fn a_file_and_standard_input_are_the_same() {
    let lab = Lab::new();
    let repo = opened(&lab);
    let patch = repo.patch_of(|copy| copy.write("docs/a.md", lines_with(5, "five")));
    std::fs::write(lab.path("change.patch"), &patch).expect("writes");
    let file = repo.json(&["submit", "t1", "--patch", path_text(&lab.path("change.patch"))]).ok();
    let stdin = repo.submit_patch("t1", &patch).ok();
    assert_eq!(file.json["patch"]["manifestSha256"], stdin.json["patch"]["manifestSha256"]);
    assert_eq!(file.json["candidate"], stdin.json["candidate"]);
    repo.json(&["submit", "t1", "--patch", "no/such/file"]).fails_one_of(&[
        "not_found",
        "arguments.invalid",
        "io",
    ]);
}

#[test]
fn the_worktree_stays_as_it_is() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let task = repo.open(&Contract::new("t1"));
    task.write("docs/b.md", "work in the worktree\n");
    let before = crate::support::snapshot::tree(&task.worktree);
    let patch = repo.patch_of(|copy| copy.write("docs/a.md", lines_with(5, "five")));
    repo.submit_patch("t1", &patch).ok();
    crate::support::snapshot::same_tree(&before, &crate::support::snapshot::tree(&task.worktree));
}

#[test]
fn renames_copies_modes_binary_new_and_deleted_files() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.write("bin.dat", [0u8, 159, 146, 150, 0]);
    repo.commit("binary");
    repo.open(&Contract::new("t1"));
    let copy = lab.path("tmp/forms");
    repo.git(&["clone", "-q", ".", path_text(&copy)]);
    let copy = Repo::at(&lab, copy);
    copy.git(&["mv", "docs/a.md", "docs/moved.md"]);
    copy.write("docs/b-copy.md", copy.read("docs/b.md"));
    copy.write("docs/b.md", "second, changed\n");
    copy.write("bin.dat", [1u8, 0, 255, 254, 10]);
    copy.write("new with space.txt", "new\n");
    copy.write("empty with space", "");
    copy.write("no-newline.txt", "no newline");
    copy.rm("src/b.txt");
    copy.chmod("src/a.txt", 0o755);
    copy.git(&["add", "-A"]);
    let tree = copy.git(&["write-tree"]);
    for options in
        [&["--binary", "-M", "-C", "--find-copies-harder"][..], &["--binary", "--full-index", "--no-renames"]]
    {
        let mut args = vec!["diff", "--cached", "HEAD"];
        args.extend_from_slice(options);
        let patch = copy.git_out(&args).ok().stdout;
        let answer = repo.submit_patch("t1", &patch).ok();
        assert_eq!(answer.json["tree"], tree.as_str());
    }
}

#[test]
fn difficult_names_are_taken() {
    let lab = Lab::new();
    let repo = opened(&lab);
    let names = [
        "x b/y",
        "a b/b c",
        "tab\there",
        "new\nline",
        "quote\"d",
        "back\\slash",
        "ünïcödé/日本語",
        " lead",
        "trail ",
    ];
    let patch = repo.patch_of(|copy| names.iter().for_each(|name| copy.write(name, format!("{name:?}\n"))));
    let answer = repo.submit_patch("t1", &patch).ok();
    assert_eq!(answer.json["changes"].as_array().map(Vec::len), Some(names.len()));
    repo.json(&["deliver", "t1"]).ok();
    for name in names {
        assert_eq!(repo.text(name), format!("{name:?}\n"));
    }
}

#[test]
fn damaged_patches_are_refused() {
    let lab = Lab::new();
    let repo = opened(&lab);
    let good = hunk("@@ -2,7 +2,7 @@", GOOD);
    let whole = repo.patch_of(|copy| {
        copy.write("docs/a.md", lines_with(5, "five"));
        copy.write("bin.dat", [0u8; 300]);
    });
    let cut_counts = hunk("@@ -2,7 +2,8 @@", GOOD);
    let long_counts = hunk("@@ -2,17 +2,17 @@", GOOD);
    let cases: Vec<Vec<u8>> = vec![
        Vec::new(),
        b"not a patch at all\n".to_vec(),
        b"diff --git a/docs/a.md b/docs/a.md\n".to_vec(),
        good[..good.len() - 1].to_vec(),
        good[..good.len() - 10].to_vec(),
        cut_counts,
        long_counts,
        whole[..whole.len() - 1].to_vec(),
        whole[..whole.len() - 20].to_vec(),
        [b"\0\0\0\0".as_slice(), &good].concat(),
    ];
    for (number, patch) in cases.iter().enumerate() {
        // git tolerates some of these (a missing last byte, garbage in front). What it refuses is the floor.
        let tolerated = number == 9 && repo_git_accepts(&repo, patch);
        if !tolerated {
            refused(&repo, patch, &["patch.invalid"]);
        }
    }
}

fn repo_git_accepts(repo: &Repo<'_>, patch: &[u8]) -> bool {
    let mut command = repo.lab.command("git", &repo.path);
    command.args(["apply", "--check", "-"]);
    crate::support::lab::run(command, Some(patch)).code == 0
}

#[test]
fn fuzz_and_offset_are_refused_with_the_line_where_it_would_have_gone() {
    let lab = Lab::new();
    let repo = opened(&lab);
    // Two lines too low: git apply reports an offset and exits 0.
    let offset = hunk("@@ -4,7 +4,7 @@", GOOD);
    assert!(repo_git_accepts(&repo, &offset), "git takes it");
    let answer = refused(&repo, &offset, &["patch.invalid"]);
    assert!(answer.json["error"].to_string().contains('2'), "the true line is named: {:#}", answer.json);
    let fuzz = hunk("@@ -2,7 +2,7 @@", &GOOD.replace(" line 2\n", " line two\n"));
    refused(&repo, &fuzz, &["patch.invalid"]);
    let whitespace = hunk("@@ -2,7 +2,7 @@", &GOOD.replace(" line 3\n", " line  3\n"));
    refused(&repo, &whitespace, &["patch.invalid"]);
}

#[test]
fn an_offset_is_refused_also_without_context_and_for_one_of_several_hunks() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let repeated = "same\n".repeat(20);
    repo.write("docs/a.md", &repeated);
    repo.commit("repeated lines");
    repo.open(&Contract::new("t1"));
    // Every line is equal, so the position alone says what is meant.
    let body = " same\n same\n same\n-same\n+other\n same\n same\n same\n";
    repo.submit_patch("t1", &hunk("@@ -5,7 +5,7 @@", body)).ok();
    repo.json(&["deliver", "t1", "--dry-run"]).ok();
    repo.json(&["cancel", "t1"]).ok();

    let repo = lab.repo("second");
    repo.open(&Contract::new("t1"));
    let two = format!(
        "{}@@ -8,3 +9,3 @@\n line 9\n-line 10\n+ten\n",
        "@@ -1,2 +1,3 @@\n line 1\n+between\n line 2\n"
    );
    let patch = format!("--- a/docs/a.md\n+++ b/docs/a.md\n{two}");
    refused(&repo, patch.as_bytes(), &["patch.invalid"]);
}

#[test]
fn overlapping_hunks_and_the_same_file_twice_are_refused() {
    let lab = Lab::new();
    let repo = opened(&lab);
    let overlap = format!(
        "--- a/docs/a.md\n+++ b/docs/a.md\n@@ -2,7 +2,7 @@\n{GOOD}@@ -4,5 +4,5 @@\n line 4\n-line 5\n+cinq\n line 6\n line 7\n line 8\n"
    );
    refused(&repo, overlap.as_bytes(), &["patch.invalid"]);
    let one = String::from_utf8(hunk("@@ -2,7 +2,7 @@", GOOD)).expect("text");
    refused(&repo, format!("{one}{one}").as_bytes(), &["patch.invalid"]);
    let second = hunk("@@ -8,3 +8,3 @@", " line 8\n line 9\n-line 10\n+ten\n");
    let both = [one.as_bytes(), &second].concat();
    if repo_git_accepts(&repo, &both) {
        // AMBIGUOUS: "the same file twice in one mail" may be refused, or mean both hunks; never just one of
        // them.
        let answer = repo.submit_patch("t1", &both);
        if answer.code == 0 {
            let text = repo.tender(&["diff", "t1"]).ok().text();
            assert!(text.contains("+five") && text.contains("+ten"), "{text}");
        } else {
            answer.fails("patch.invalid");
        }
    } else {
        refused(&repo, &both, &["patch.invalid"]);
    }
}

#[test]
fn a_patch_for_another_base_shows_expected_and_actual() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let patch = repo.patch_of(|copy| copy.write("docs/a.md", lines_with(5, "five")));
    let old = repo.git(&["rev-parse", "HEAD:docs/a.md"]);
    repo.write("docs/a.md", lines_with(10, "ten"));
    repo.commit("moved on");
    let now = repo.git(&["rev-parse", "HEAD:docs/a.md"]);
    repo.open(&Contract::new("t1"));
    // The context still fits: only the index line tells.
    assert!(repo_git_accepts(&repo, &patch));
    let answer = refused(&repo, &patch, &["version.conflict"]);
    let error = answer.error();
    assert_eq!(error["subject"], "docs/a.md");
    assert!(error["details"].to_string().contains(&old[..7]), "{error:#}");
    assert!(error["details"].to_string().contains(&now[..7]), "{error:#}");
    assert!(
        error["details"]["expected"].is_string() || error["details"]["expected"].is_object(),
        "{error:#}"
    );
    assert!(!error["details"]["actual"].is_null(), "{error:#}");
}

#[test]
fn creating_what_is_there_and_deleting_what_is_not_are_refused() {
    let lab = Lab::new();
    let repo = opened(&lab);
    let codes = &["patch.invalid", "version.conflict"];
    let create = b"--- /dev/null\n+++ b/docs/a.md\n@@ -0,0 +1 @@\n+x\n";
    refused(&repo, create, codes);
    let delete = b"--- a/docs/none.md\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n";
    refused(&repo, delete, codes);
    let partial = b"diff --git a/docs/a.md b/docs/a.md\ndeleted file mode 100644\n--- a/docs/a.md\n+++ /dev/null\n@@ -1 +0,0 @@\n-line 1\n";
    refused(&repo, partial, codes);
    let missing = b"--- a/docs/none.md\n+++ b/docs/none.md\n@@ -1 +1 @@\n-x\n+y\n";
    refused(&repo, missing, codes);
}

fn creating(path: &str, mode: &str) -> Vec<u8> {
    let quoted: String = path
        .bytes()
        .map(|byte| match byte {
            b'"' | b'\\' => format!("\\{}", byte as char),
            0x20..=0x7e => (byte as char).to_string(),
            other => format!("\\{other:03o}"),
        })
        .collect();
    format!(
        "diff --git \"a/{quoted}\" \"b/{quoted}\"\nnew file mode {mode}\nindex 0000000..587be6b\n--- /dev/null\n+++ \"b/{quoted}\"\n@@ -0,0 +1 @@\n+x\n"
    )
    .into_bytes()
}

#[test]
fn paths_that_leave_the_scope_or_the_tree_are_refused() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.write("docs/editorial/e.md", "e\n");
    repo.commit("editorial");
    repo.open(&Contract::new("t1").scope(&["docs/editorial/"]));
    refused(&repo, &creating("docs/editorial-evil/x", "100644"), &["scope.violation"]);
    // AMBIGUOUS: whether a malformed path in a patch is the patch's fault or a violation of scope.
    let either = &["scope.violation", "patch.invalid"];
    for path in [
        "docs/editorial/../../src/x",
        "docs/editorial/./x",
        "/etc/passwd",
        "../outside",
        "docs/editorial//x",
        "docs/editorial/.git/config",
        ".GIT/config",
        "docs/editorial/git~1",
    ] {
        refused(&repo, &creating(path, "100644"), either);
    }
    assert!(!lab.path("outside").exists());
}

#[test]
fn rename_mode_change_and_copy_out_of_scope_are_refused() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.open(&Contract::new("t1").scope(&["docs/"]));
    let header = |text: &str| text.as_bytes().to_vec();
    let cases = [
        header(
            "diff --git a/docs/a.md b/src/a.md\nsimilarity index 100%\nrename from docs/a.md\nrename to src/a.md\n",
        ),
        header(
            "diff --git a/src/a.txt b/docs/a.txt\nsimilarity index 100%\nrename from src/a.txt\nrename to docs/a.txt\n",
        ),
        header(
            "diff --git a/docs/a.md b/src/a.md\nsimilarity index 100%\ncopy from docs/a.md\ncopy to src/a.md\n",
        ),
        header("diff --git a/src/a.txt b/src/a.txt\nold mode 100644\nnew mode 100755\n"),
    ];
    for patch in cases {
        refused(&repo, &patch, &["scope.violation"]);
    }
}

#[test]
fn links_out_special_modes_and_a_file_through_a_link_are_refused() {
    let lab = Lab::new();
    let repo = opened(&lab);
    let either = &["scope.violation", "patch.invalid"];
    let link = |path: &str, target: &str| {
        format!(
            "diff --git a/{path} b/{path}\nnew file mode 120000\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+{target}\n\\ No newline at end of file\n"
        )
    };
    for target in ["/etc", "../../x", "../.git/config", "a/../../../x"] {
        refused(&repo, link("docs/l", target).as_bytes(), either);
    }
    let through = format!(
        "{}{}",
        link("way", "docs"),
        String::from_utf8(creating("way/through", "100644")).expect("text")
    );
    refused(&repo, through.as_bytes(), either);
    let gitlink = format!(
        "diff --git a/sub b/sub\nnew file mode 160000\nindex 0000000..{0}\n--- /dev/null\n+++ b/sub\n@@ -0,0 +1 @@\n+Subproject commit {0}\n",
        "1".repeat(40)
    );
    refused(&repo, gitlink.as_bytes(), either);
    let mode = "diff --git a/src/a.txt b/src/a.txt\nold mode 100644\nnew mode 160000\n";
    refused(&repo, mode.as_bytes(), either);
    for mode in ["100600", "100777", "140000", "020000", "104755"] {
        let answer = repo.submit_patch("t1", &creating("docs/odd", mode));
        if answer.code == 0 {
            // git writes any regular mode as 100644 or 100755; that is then what is bound.
            let bound = &answer.json["changes"][0]["new"]["mode"];
            assert!(bound == "100644" || bound == "100755", "{mode}: {bound}");
        } else {
            answer.fails_one_of(either);
        }
    }
    // A link in the tree already: a file written through it is refused too.
    let repo = lab.repo("second");
    repo.link("way", "docs");
    repo.commit("link");
    repo.open(&Contract::new("t1"));
    refused(&repo, &creating("way/through.md", "100644"), either);
}

#[test]
fn spellings_of_the_git_directory_with_git_as_the_oracle() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.open(&Contract::new("t1"));
    let blob = repo.git(&["rev-parse", "HEAD:src/a.txt"]);
    let (mut refused_count, mut taken) = (0, 0);
    for name in spellings() {
        for path in [format!("{name}/config"), format!("docs/{name}"), format!("docs/{name}/hooks/x")] {
            let entry = format!("100644,{blob},{path}");
            let oracle = repo.git_out(&[
                "-c",
                "core.protectHFS=true",
                "-c",
                "core.protectNTFS=true",
                "update-index",
                "--add",
                "--cacheinfo",
                &entry,
            ]);
            let answer = repo.submit_patch("t1", &creating(&path, "100644"));
            if oracle.code == 0 {
                repo.git(&["update-index", "--force-remove", &path]);
                taken += i32::from(answer.code == 0);
            } else {
                refused_count += 1;
                assert_ne!(answer.code, 0, "git refuses {path:?}, we take it");
                answer.fails_one_of(&["scope.violation", "patch.invalid"]);
            }
        }
    }
    assert!(refused_count > 60, "the oracle refused only {refused_count}");
    assert!(taken > 10, "harmless names are taken: {taken}");
}

/// Everything that some system reads as `.git`, and neighbours that none does.
fn spellings() -> Vec<String> {
    let ignorable = [
        '\u{200c}', '\u{200d}', '\u{200e}', '\u{200f}', '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}',
        '\u{202e}', '\u{206a}', '\u{206b}', '\u{206c}', '\u{206d}', '\u{206e}', '\u{206f}', '\u{feff}',
    ];
    let mut all: Vec<String> = Vec::new();
    for (at, sign) in ignorable.iter().enumerate() {
        let place = at % 5;
        all.push(format!("{}{sign}{}", &".git"[..place.min(4)], &".git"[place.min(4)..]));
    }
    let fixed = [
        ".git",
        ".GIT",
        ".Git",
        ".gIt",
        "git~1",
        "GIT~1",
        "Git~1",
        ".git.",
        ".git..",
        ".git ",
        ".git . .",
        ".GIT ",
        ".git::$INDEX_ALLOCATION",
        ".git:x",
        "git~1.",
        "git~1 ",
        ".G\u{200c}IT",
        "\u{feff}.GiT",
        // Harmless neighbours:
        ".gitx",
        "git",
        "git~2",
        "git~11",
        ".gi",
        "dot.git",
        "a.git",
        "..git",
        ".git-x",
        "gitt~1",
        ".g\u{e9}it",
    ];
    all.extend(fixed.iter().map(|name| (*name).to_owned()));
    all
}

#[test]
fn what_git_apply_refuses_we_refuse() {
    let lab = Lab::new();
    let repo = opened(&lab);
    let candidates: Vec<Vec<u8>> = vec![
        hunk("@@ -2,7 +2,7 @@", &GOOD.replace("-line 5", "-line five")),
        hunk("@@ -2,7 +2,7 @@ x\n@@", GOOD),
        hunk("@@ -0,0 +1 @@", "+x\n"),
        hunk("@@ -20,7 +20,7 @@", GOOD),
        hunk("@@ -99999999999999999999,7 +2,7 @@", GOOD),
        hunk("@@ -2,7 +2,7 @@", "line 2\n"),
        b"diff --git a/docs/a.md b/docs/a.md\nindex 1..2 100644\nGIT binary patch\nliteral 5\nMc$`\n"
            .to_vec(),
        b"diff --git a/docs/a.md b/docs/b.md\n--- a/docs/a.md\n+++ b/docs/b.md\n@@ -1 +1 @@\n-line 1\n+x\n"
            .to_vec(),
        b"diff --git a/docs/a.md b/docs/a.md\nBinary files a/docs/a.md and b/docs/a.md differ\n".to_vec(),
    ];
    for patch in candidates {
        if !repo_git_accepts(&repo, &patch) {
            let answer = refused(&repo, &patch, &["patch.invalid", "version.conflict", "scope.violation"]);
            assert!(answer.stderr.is_empty() || !answer.stderr.contains("panicked"));
        }
    }
    assert_eq!(repo.text("docs/a.md"), LINES);
}
