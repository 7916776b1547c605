mod cases;

use super::*;
use crate::domain::value::repo_path::RepoPath;
use crate::git::testing::TestRepository;
use crate::git::{Git, bound};

const LINES: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n";

struct Bench {
    home: TestRepository,
    base: ObjectId,
}

impl Bench {
    fn new(files: &[(&str, &str)]) -> Self {
        let home = TestRepository::new();
        for (path, content) in files {
            home.write_file(path, content.as_bytes());
        }
        let base = home.commit_all("base");
        Self { home, base }
    }

    fn take_patch(&self, patch: impl AsRef<[u8]>) -> Result<Capture> {
        self.take_with(patch, &|_| true, 1 << 20)
    }

    fn take_with(
        &self,
        patch: impl AsRef<[u8]>,
        in_scope: &dyn Fn(&RepoPath) -> bool,
        bytes: u64,
    ) -> Result<Capture> {
        let scope = ["docs/".to_owned()];
        let rules = CandidateLimits { allowed: in_scope, scope: &scope, artifact_bytes: Some(bytes) };
        take_patch(&self.home.repository(), &self.home.quarantine(), &self.base, patch.as_ref(), &rules)
    }

    fn expect_refusal(&self, patch: impl AsRef<[u8]>) -> Failure {
        let patch = patch.as_ref();
        match self.take_patch(patch) {
            Ok(capture) => panic!("{} was taken as {:?}", patch.escape_ascii(), capture.changes),
            Err(failure) => failure,
        }
    }

    fn refusal_code(&self, patch: impl AsRef<[u8]>) -> Code {
        self.expect_refusal(patch).code()
    }

    /// What the user's git gives for everything that differs from the base, by these options.
    fn git_diff(&self, options: &[&str]) -> Vec<u8> {
        self.home.run_git(["add", "-A", "-f"]);
        self.home
            .git_call()
            .args(["diff", "--cached"])
            .args(options)
            .arg("HEAD")
            .run_for_stdout()
            .expect("a diff")
    }

    fn staged_tree(&self) -> ObjectId {
        self.home.run_git(["add", "-A", "-f"]);
        self.home.run_git(["write-tree"]).parse().expect("an id")
    }

    /// Takes the patch, which must lead to the tree of the work tree's files.
    fn leads_to_staged(&self, patch: impl AsRef<[u8]>) -> Capture {
        let staged = self.staged_tree();
        let capture = self.take_patch(patch).expect("is taken");
        assert_eq!(capture.tree, staged);
        capture
    }

    fn set_mode(&self, path: &str, mode: u32) {
        use std::os::unix::fs::PermissionsExt;
        let place = self.home.top().join(path);
        std::fs::set_permissions(place, std::fs::Permissions::from_mode(mode)).expect("a mode");
    }

    fn make_link(&self, path: &str, target: &str) {
        let place = self.home.top().join(path);
        std::fs::create_dir_all(place.parent().expect("a parent")).expect("directories");
        std::os::unix::fs::symlink(target, place).expect("a link");
    }
}

fn new_file(path: &str, mode: &str, content: &str) -> String {
    let count = content.split_inclusive('\n').count();
    let end = if content.ends_with('\n') { "" } else { "\n\\ No newline at end of file\n" };
    let lines: String = content.split_inclusive('\n').map(|line| format!("+{line}")).collect();
    format!(
        "diff --git a/{path} b/{path}\nnew file mode {mode}\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{count} @@\n{lines}{end}"
    )
}

fn every_kind() -> Bench {
    let files = [
        ("a.md", LINES),
        ("gone.md", "x\n"),
        ("old name.md", LINES),
        ("copied.md", LINES),
        ("run", "#!/bin/sh\n"),
        ("bin", "\0\x01bytes\0"),
        ("end", "a\nb\nc\nd"),
        ("t\tb", "tab\n"),
        ("x b/y", "both\n"),
        ("becomes", "a link\n"),
        ("dir/x", "deep\n"),
        ("empty", ""),
    ];
    let bench = Bench::new(&files);
    let home = &bench.home;
    home.write_file("a.md", LINES.replace('5', "five").as_bytes());
    home.remove_file("gone.md");
    home.remove_file("old name.md");
    home.write_file("new name.md", LINES.replace("12", "twelve").as_bytes());
    home.write_file("copied.md", LINES.replace("11", "eleven").as_bytes());
    home.write_file("copy.md", LINES.replace("12", "dozen").as_bytes());
    bench.set_mode("run", 0o755);
    home.write_file("bin", b"\0\x02other bytes\0");
    home.write_file("end", b"a\nb\nc\nd\n");
    home.write_file("t\tb", b"tab two\n");
    home.write_file("new\nline", b"n\n");
    home.write_file("x b/y", b"more\n");
    home.write_bytes(b"caf\xe9", b"raw\n");
    home.write_file("empty file with spaces", b"");
    home.remove_file("becomes");
    bench.make_link("becomes", "a.md");
    home.remove_file("dir/x");
    std::fs::remove_dir(home.top().join("dir")).expect("is empty");
    home.write_file("dir", b"a file now\n");
    home.remove_file("empty");
    home.write_file("fresh.bin", &[0, 1, 2, 255, 254]);
    bench
}

#[test]
fn a_git_patch_of_every_kind_leads_to_the_same_tree() {
    for options in [
        &["--binary", "--full-index"][..],
        &["--binary", "-M", "-C", "--find-copies-harder"],
        &["--binary", "--no-renames"],
        &["--binary", "-M01", "-B"],
        &["--binary", "--src-prefix=i/", "--dst-prefix=w/"],
        &["--binary", "-U1"],
        &["--binary", "-U20", "--patience"],
    ] {
        let bench = every_kind();
        let patch = bench.git_diff(options);
        let capture = bench.leads_to_staged(&patch);
        assert!(capture.changes.len() > 15, "{options:?}");
    }
}

#[test]
fn a_patch_that_lost_bytes_at_its_end_is_refused() {
    let bench = every_kind();
    let patch = bench.git_diff(&["--binary", "--full-index", "-M", "-C"]);
    for cut in (0..patch.len()).rev().step_by(7).chain([patch.len() - 1, patch.len() - 2]) {
        // Cut between two files it is a sound patch of fewer files.
        let Ok(capture) = bench.take_patch(&patch[..cut]) else { continue };
        // So it is where lines are lost from the header of a file whose content is empty or comes from
        // elsewhere.
        let rest = &patch[cut..];
        assert!(
            patch[..cut].ends_with(b"\n")
                && (rest.starts_with(b"diff --git ") || rest.starts_with(b"index ")),
            "{cut}: {}",
            rest[..40].escape_ascii()
        );
        assert!(!capture.changes.is_empty());
    }
    let one = |edit: &dyn Fn(&TestRepository)| {
        let bench = Bench::new(&[("a", LINES), ("end", "a\nb"), ("bin", "\0x")]);
        edit(&bench.home);
        let patch = bench.git_diff(&["--binary", "--full-index"]);
        bench.take_patch(&patch).expect("whole");
        assert_eq!(
            bench.refusal_code(&patch[..patch.len() - 1]),
            Code::PatchInvalid,
            "{}",
            patch.escape_ascii()
        );
    };
    one(&|home| home.write_file("a", LINES.replace("12", "x").as_bytes()));
    one(&|home| home.write_file("a", LINES.replace("12\n", "x").as_bytes()));
    one(&|home| home.write_file("bin", b"\0y"));
    one(&|home| home.write_file("empty", b""));
    one(&|home| home.remove_file("end"));
    one(&|home| home.write_file("z", b"z\n"));
    let text = "diff --git a/a b/a\nold mode 100644\nnew mode 100755";
    assert_eq!(bench.refusal_code(text), Code::PatchInvalid);
}

#[test]
fn a_mailbox_is_applied_mail_by_mail() {
    let bench = Bench::new(&[("a.md", LINES), ("b.md", "b\n")]);
    let home = &bench.home;
    home.write_file("a.md", LINES.replace('2', "two").as_bytes());
    home.commit_all("first: change\n\n-- \nwith a signature line\n---\nand dashes");
    home.write_file("a.md", LINES.replace('2', "two").replace("7", "sieben").as_bytes());
    home.run_git(["mv", "b.md", "c d.md"]);
    home.commit_all("second");
    home.write_file("ü.md", "grüße\r\nmixed\n".as_bytes());
    home.remove_file("a.md");
    let tree = home.commit_all("dritte Änderung");
    for options in [&[][..], &["--attach"], &["--cover-letter"], &["-k"], &["--no-signature"]] {
        let mails =
            home.git_call().args(["format-patch", "--stdout", "--binary"]).args(options).arg("HEAD~3..HEAD");
        let mails = mails.run_for_stdout().expect("mails");
        assert_eq!(bench.take_patch(&mails).expect("is taken").tree, tree, "{options:?}");
        let body = mails.windows(5).position(|w| w == b"\nFrom").expect("headers") + 1;
        assert_eq!(
            bench.take_patch(&mails[body..]).expect("is taken").tree,
            tree,
            "without the first line {options:?}"
        );
    }
    let mails =
        home.git_call().args(["format-patch", "--stdout", "HEAD~3..HEAD~1"]).run_for_stdout().expect("mails");
    let crlf = String::from_utf8(mails).expect("text").replace('\n', "\r\n");
    assert_eq!(bench.take_patch(crlf).expect("line ends of the transport").tree, home.tree_of("HEAD~1"));
    let lone =
        home.git_call().args(["format-patch", "--stdout", "HEAD~2..HEAD~1"]).run_for_stdout().expect("mails");
    let failure = bench.expect_refusal(lone);
    assert_eq!(failure.code(), Code::VersionConflict);
    assert_eq!(failure.details()["mail"], 1);
}

#[test]
fn encoded_mail_bodies_are_decoded() {
    use base64::Engine;
    let bench = Bench::new(&[("a.md", LINES)]);
    bench.home.write_file("a.md", LINES.replace('6', "sechs = é").as_bytes());
    let diff = bench.git_diff(&["--full-index"]);
    let mail = |encoding: &str, body: &str| {
        format!(
            "From 0123456789012345678901234567890123456789 Mon Sep 17 00:00:00 2001\nFrom: A <a@example.org>\n\
             Date: Mon, 2 Nov 2026 10:00:00 +0000\nSubject: [PATCH] x\nMIME-Version: 1.0\n\
             Content-Type: text/plain; charset=ISO-8859-1\nContent-Transfer-Encoding: {encoding}\n\n{body}\n"
        )
    };
    let encoded = base64::engine::general_purpose::STANDARD.encode(&diff);
    let lines: Vec<&str> =
        encoded.as_bytes().chunks(76).map(|c| std::str::from_utf8(c).expect("ascii")).collect();
    bench.leads_to_staged(mail("base64", &lines.join("\n")));
    let quoted: String = diff
        .iter()
        .map(|b| match b {
            b'=' | 0x80.. => format!("={b:02X}"),
            b => char::from(*b).to_string(),
        })
        .collect();
    let soft = quoted.replace("sechs", "se=\nchs");
    bench.leads_to_staged(mail("quoted-printable", &soft));
    let cut: Vec<&str> = lines[..lines.len() - 1].to_vec();
    assert_eq!(bench.refusal_code(mail("base64", &cut.join("\n"))), Code::PatchInvalid);
}

#[test]
fn plain_diffs_are_taken_with_the_prefixes_that_git_takes_off() {
    let bench = Bench::new(&[("src/a.rs", LINES), ("top", LINES), ("src/top", "other\n")]);
    let hunk = "@@ -1,4 +1,4 @@\n-1\n+one\n 2\n 3\n 4\n";
    let plain = |old: &str, new: &str| format!("Hello,\n\nhere it is:\n\n--- {old}\n+++ {new}\n{hunk}");
    for (old, new, path) in [
        ("a/src/a.rs", "b/src/a.rs", "src/a.rs"),
        ("top", "top", "top"),
        ("top.orig\t2020-01-01 00:00:00.000000000 +0000", "top\t2020-01-02 00:00:00.000000000 +0000", "top"),
        ("old/top", "new/top", "top"),
        ("a/top", "b/top", "top"),
        ("\"a/top\"", "\"b/top\"", "top"),
    ] {
        let capture = bench.take_patch(plain(old, new)).unwrap_or_else(|f| panic!("{old}: {f}"));
        assert_eq!(capture.changes.len(), 1);
        assert_eq!(capture.changes[0].path.to_string(), path);
    }
    let created = bench.take_patch("--- /dev/null\n+++ b/src/new\n@@ -0,0 +1 @@\n+x\n").expect("new");
    assert_eq!(created.changes[0].path.to_string(), "src/new");
    let created = bench.take_patch("--- /dev/null\n+++ mine/new\n@@ -0,0 +1 @@\n+x\n").expect("new");
    assert_eq!(created.changes[0].path.to_string(), "new");
    let created = bench.take_patch("--- a/new\n+++ b/new\n@@ -0,0 +1 @@\n+x\n").expect("new");
    assert_eq!(created.changes[0].path.to_string(), "new");
    let epoch = "--- o/new\t1970-01-01 00:00:00.000000000 +0000\n+++ n/new\t2020-01-02 00:00:00 +0000\n@@ -0,0 +1 @@\n+x\n";
    assert_eq!(bench.take_patch(epoch).expect("new").changes[0].path.to_string(), "new");
    let removed = bench.take_patch("--- a/src/top\n+++ /dev/null\n@@ -1 +0,0 @@\n-other\n").expect("removed");
    assert!(removed.changes[0].new.is_none());
    assert_eq!(bench.refusal_code(plain("a/missing", "b/missing")), Code::VersionConflict);
    let prose = format!("From me to you: 10 lines\n\n{}", plain("a/top", "b/top"));
    assert_eq!(bench.take_patch(prose).expect("prose").changes.len(), 1);
    let failure = bench.expect_refusal("--- a/top\n+++ b/top\n@@ -1,4 +1,4 @@\n-1\n+one\n 2\n drei\n 4\n");
    assert_eq!(failure.code(), Code::PatchInvalid);
    assert_eq!(
        failure.details()["firstDifference"],
        serde_json::json!({"line": 3, "patch": "drei", "base": "3"})
    );
}

/// Git takes the first folder off, and would change another file than the one that is meant.
#[test]
fn names_without_a_prefix_are_never_guessed() {
    let both = Bench::new(&[("file", "A\n"), ("sub/file", "A\n"), ("sub/other", "C\n"), ("other", "D\n")]);
    let plain = |name: &str, old: &str| format!("--- {name}\n+++ {name}\n@@ -1 +1 @@\n-{old}\n+B\n");
    let header = "diff --git sub/file sub/file\nindex f70f10e..223b783 100644\n";
    let mode = "diff --git sub/file sub/file\nold mode 100644\nnew mode 100755\n".to_owned();
    for patch in [plain("sub/file", "A"), format!("{header}{}", plain("sub/file", "A")), mode] {
        let refused = both.expect_refusal(&patch);
        assert_eq!(refused.code(), Code::PatchInvalid, "{patch}");
        assert!(refused.message().contains("can mean file or sub/file"), "{refused}");
    }
    let folder = both.expect_refusal("--- /dev/null\n+++ sub/new\n@@ -0,0 +1 @@\n+x\n");
    assert!(folder.message().contains("can mean new or sub/new"), "{folder}");
    // Where the content decides, only git's own reading is left to take.
    let taken = both.take_patch(plain("sub/other", "D")).expect("fits one");
    assert_eq!(taken.changes[0].path.to_string(), "other");
    assert!(both.expect_refusal(plain("sub/other", "C")).message().contains("no prefix"));
    let second = Bench::new(&[("sub/file", "A\n"), ("top", "A\n")]);
    for patch in [plain("sub/file", "A"), format!("{header}{}", plain("sub/file", "A"))] {
        let refused = second.expect_refusal(&patch);
        assert_eq!((refused.code(), refused.subject_text()), (Code::PatchInvalid, Some("sub/file")));
        assert_eq!(refused.details()["alsoRead"], "file");
        assert!(refused.next_step().command.contains(&"--default-prefix".to_owned()));
    }
    // A plain diff of files at the top has nothing to take off; one with git's header lacks what git takes.
    assert_eq!(second.take_patch(plain("top", "A")).expect("at the top").changes[0].path.to_string(), "top");
    second.expect_refusal(format!("diff --git top top\n{}", plain("top", "A")));
}

#[test]
fn two_names_without_rename_lines_are_a_rename() {
    let bench = Bench::new(&[("pre", "A\n"), ("there", "A\n")]);
    let patch = |to: &str| format!("diff --git a/pre b/{to}\n--- a/pre\n+++ b/{to}\n@@ -1 +1 @@\n-A\n+B\n");
    let taken = bench.take_patch(patch("post")).expect("valid");
    let paths: Vec<_> = taken.changes.iter().map(|c| (c.path.to_string(), c.new.is_some())).collect();
    assert_eq!(paths, [("post".to_owned(), true), ("pre".to_owned(), false)]);
    // Git would write over what is there.
    let refused = bench.expect_refusal(patch("there"));
    assert_eq!((refused.code(), refused.subject_text()), (Code::VersionConflict, Some("there")));
}

#[test]
fn the_beginning_of_time_in_any_zone_means_no_file() {
    let bench = Bench::new(&[("x", "A\n")]);
    let patch =
        |stamp: &str| format!("--- a/x\t2020-01-01 10:00:00 +0000\n+++ b/x{stamp}\n@@ -1 +0,0 @@\n-A\n");
    for (stamp, removes) in [
        ("\t1969-12-31 16:00:00 -0800", true),
        ("\t1969-12-31 16:00:00.000 -08:00", true),
        ("\t1970-01-01 01:00:00 +0100", true),
        (" 1969-12-31 16:00:00 -0800", false),
        ("\t1969-12-31 16:00 -0800", false),
        ("\t1970-01-01 00:00:00", false),
    ] {
        let taken = bench.take_patch(patch(stamp)).unwrap_or_else(|f| panic!("{stamp}: {f}"));
        assert_eq!(taken.changes[0].new.is_none(), removes, "{stamp}");
    }
}

#[test]
fn a_patch_for_another_base_is_a_version_conflict() {
    let bench = Bench::new(&[("a.md", LINES), ("b.md", "b\n")]);
    let id = bench.home.run_git(["rev-parse", "HEAD:a.md"]);
    bench.home.write_file("a.md", LINES.replace("12", "twelve").as_bytes());
    let sound = String::from_utf8(bench.git_diff(&["--full-index"])).expect("text");
    bench.take_patch(&sound).expect("sound");
    bench.take_patch(sound.replace(&id, &id[..7])).expect("an abbreviated id");
    let other = "0123456789012345678901234567890123456789";
    let failure = bench.expect_refusal(sound.replace(&id, other));
    assert_eq!(failure.code(), Code::VersionConflict);
    assert_eq!(failure.subject_text(), Some("a.md"));
    assert_eq!(
        (&failure.details()["expected"], &failure.details()["actual"]),
        (&other.into(), &id.clone().into())
    );
    assert_eq!(failure.exit_code(), 3);
    assert!(failure.has_remedy());
    // Before anything of git's: the hunk would not apply either.
    let both = sound.replace(&id, other).replace(" 9\n", " neun\n");
    assert_eq!(bench.refusal_code(both), Code::VersionConflict);
    assert_eq!(bench.refusal_code(sound.replace("a.md", "gone.md")), Code::VersionConflict);
    let exists = new_file("b.md", "100644", "b\n").replace("--- /dev", "index 0000000..6178079\n--- /dev");
    assert_eq!(bench.refusal_code(exists), Code::VersionConflict);
    assert_eq!(
        bench.refusal_code("diff --git a/b.md b/b.md\nold mode 100755\nnew mode 100644\n"),
        Code::VersionConflict
    );
}

#[test]
fn an_index_line_that_names_another_result_is_refused() {
    let bench = Bench::new(&[("a.md", LINES)]);
    bench.home.write_file("a.md", LINES.replace("12", "twelve").replace("1\n2", "one\n2").as_bytes());
    let patch = String::from_utf8(bench.git_diff(&["-U2"])).expect("text");
    assert_eq!(bench.refusal_code(patch.replace("+one", "+eins")), Code::PatchInvalid);
    let lost = patch.rfind("@@ -").expect("two hunks");
    assert_eq!(bench.refusal_code(&patch[..lost]), Code::PatchInvalid, "the last hunk is lost");
}

#[test]
fn what_git_would_shift_is_refused() {
    let bench = Bench::new(&[("a", LINES)]);
    let patch = |old: usize, new: usize| {
        format!("--- a/a\n+++ b/a\n@@ -{old},7 +{new},7 @@\n 3\n 4\n 5\n-6\n+six\n 7\n 8\n 9\n")
    };
    bench.take_patch(patch(3, 3)).expect("exact");
    for (old, new) in [(2, 2), (4, 4), (5, 5), (2, 3), (3, 4), (3, 2)] {
        let failure = bench.expect_refusal(patch(old, new));
        assert_eq!(failure.code(), Code::PatchInvalid);
        assert_eq!(failure.subject_text(), Some("a"));
        assert_eq!(failure.details()["wouldApplyAt"], serde_json::json!([3]), "{old} {new}: {failure}");
        assert_eq!(failure.details()["hunk"], format!("@@ -{old},7 +{new},7 @@"));
        assert!(failure.has_remedy() && !failure.next_step().command.is_empty());
        // And git alone takes it.
        let git =
            bench.home.git_call().args(["apply", "--cached", "--check"]).stdin(patch(old, new).into_bytes());
        assert!(git.run().expect("runs").success());
    }
    let fuzzy = patch(3, 3).replace(" 9\n", " nine\n");
    assert_eq!(bench.refusal_code(fuzzy), Code::PatchInvalid);
}

#[test]
fn twin_blocks_are_told_apart_by_their_place() {
    let block = "fn x() {\n  a;\n  b;\n  c;\n  d;\n  e;\n}\n";
    let bench = Bench::new(&[("a", &format!("{block}{block}"))]);
    let patch = |at: usize| {
        format!(
            "--- a/a\n+++ b/a\n@@ -{at},7 +{at},7 @@\n fn x() {{\n   a;\n   b;\n-  c;\n+  C;\n   d;\n   e;\n }}\n"
        )
    };
    let first = bench.take_patch(patch(1)).expect("first");
    let second = bench.take_patch(patch(8)).expect("second");
    assert_ne!(first.tree, second.tree);
    let failure = bench.expect_refusal(patch(7));
    assert_eq!(failure.details()["wouldApplyAt"], serde_json::json!([1, 8]));
}

#[test]
fn damaged_hunks_are_refused() {
    let bench = Bench::new(&[("a", LINES)]);
    let head = "--- a/a\n+++ b/a\n";
    for (what, text) in [
        ("overlap", "@@ -1,4 +1,4 @@\n 1\n-2\n+two\n 3\n 4\n@@ -4,4 +4,4 @@\n 4\n-5\n+five\n 6\n 7\n"),
        ("order", "@@ -6,3 +6,3 @@\n 6\n-7\n+x\n 8\n@@ -1,3 +1,3 @@\n 1\n-2\n+y\n 3\n"),
        ("too few", "@@ -1,5 +1,5 @@\n 1\n-2\n+two\n 3\n 4\n"),
        ("too many", "@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n 4\n"),
        ("too many, added", "@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n+four\n"),
        ("no counts", "@@ ... @@\n 1\n-2\n+two\n 3\n"),
        ("second without counts", "@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n@@ ... @@\n 5\n-6\n"),
        ("zero start", "@@ -0,3 +0,3 @@\n 1\n-2\n+two\n 3\n"),
        ("no newline", "@@ -1,3 +1,3 @@\n 1\n-2\n+two\n\\ No newline at end of file\n 3\n"),
        ("no context", "@@ -5 +5 @@\n-5\n+five\n"),
        ("huge", "@@ -1,99999999999999999999 +1,3 @@\n 1\n"),
    ] {
        assert_eq!(bench.refusal_code(format!("{head}{text}")), Code::PatchInvalid, "{what}");
    }
    for text in [
        "",
        " \n",
        "hello\n",
        "diff --git a/a b/a\n",
        "@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n",
        "--- a/a\n+++ b/a\n",
        "diff --git a/a b/a\nindex 1111111..2222222 100644\n",
        "diff --cc a\nindex 1,2..3\n",
        "\u{feff}--- a/a\n",
        "Binary files a/a and b/a differ\n",
        "diff --git a/a b/a\nindex 1111..2222\nBinary files a/a and b/a differ\n",
        "new file mode 100755\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n",
        "diff --git a/n b/n\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n",
        "diff --git a/a b/a\nrename from a\nnew file mode 100644\n",
        "diff --git a/a b/c\nrename from a\nrename from a\nrename to c\n",
        "diff --git a/a b/a\ndeleted file mode 100644\n",
        "diff --git a/a b/a\ndeleted file mode 100644\n--- a/a\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-1\n-2\n",
    ] {
        assert_eq!(bench.refusal_code(text), Code::PatchInvalid, "{text}");
    }
}

#[test]
fn changed_line_ends_are_refused_but_those_of_files_are_kept() {
    let bench = Bench::new(&[("a", LINES), ("dos", &LINES.replace('\n', "\r\n"))]);
    bench.home.write_file("dos", LINES.replace('\n', "\r\n").replace('6', "six").as_bytes());
    let patch = String::from_utf8(bench.git_diff(&[])).expect("text");
    bench.leads_to_staged(&patch);
    let failure = bench.expect_refusal(patch.replace("\r\n", "\n").replace('\n', "\r\n"));
    assert_eq!(failure.code(), Code::PatchInvalid);
    assert_eq!(failure.details()["lineEnds"], "crlf");
    assert_eq!(bench.refusal_code(patch.replace("\r\n", "\n")), Code::PatchInvalid);
}

#[test]
fn a_path_that_comes_up_again_is_held_against_what_the_earlier_section_made() {
    let bench = Bench::new(&[("a", LINES), ("b", "b\n")]);
    let step =
        |from: &str, to: &str| format!("--- a/a\n+++ b/a\n@@ -1,4 +1,4 @@\n-{from}\n+{to}\n 2\n 3\n 4\n");
    let capture = bench.take_patch(step("1", "one") + &step("one", "uno")).expect("two steps");
    bench.home.write_file("a", LINES.replacen('1', "uno", 1).as_bytes());
    assert_eq!(capture.tree, bench.staged_tree());
    assert_eq!(bench.refusal_code(step("1", "one") + &step("1", "uno")), Code::PatchInvalid);
    let made = new_file("n", "100644", "1\n2\n") + "--- a/n\n+++ b/n\n@@ -1,2 +1,2 @@\n-1\n+one\n 2\n";
    assert_eq!(bench.take_patch(&made).expect("made and changed").changes.len(), 1);
    let undone = made
        + "diff --git a/n b/n\ndeleted file mode 100644\n--- a/n\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-2\n";
    assert!(bench.take_patch(undone).expect("made and removed").changes.is_empty());
    let moved = "diff --git a/b b/c\nsimilarity index 100%\nrename from b\nrename to c\n".to_owned();
    let then = moved + "and then\n--- a/c\n+++ b/c\n@@ -1 +1 @@\n-b\n+c\n";
    assert_eq!(bench.take_patch(then).expect("moved and changed").changes.len(), 2);
    let swap = "diff --git a/a b/b\nsimilarity index 100%\nrename from a\nrename to b\n\
                diff --git a/b b/a\nsimilarity index 100%\nrename from b\nrename to a\n";
    let capture = bench.take_patch(swap).expect("a swap");
    assert_eq!(capture.changes[0].old, capture.changes[1].new);
    assert_eq!(capture.changes[1].old, capture.changes[0].new);
}

#[test]
fn paths_that_leave_or_disguise_are_refused() {
    let bench = Bench::new(&[("a", LINES), ("link-less", "x\n")]);
    for path in [
        ".git/hooks/x",
        ".GIT/config",
        "a/.git/config",
        "git~1/config",
        ".git::$INDEX_ALLOCATION/x",
        ".git /x",
        ".git./x",
        ".g\u{200c}it/config",
        "../x",
        "docs/../../x",
        "/etc/x",
        "x//y",
        "./x",
    ] {
        let failure = bench.expect_refusal(new_file(path, "100644", "x\n"));
        assert_eq!(failure.code(), Code::ScopeViolation, "{path}: {failure}");
    }
    assert_eq!(bench.refusal_code("--- /dev/null\n+++ /tmp/x\n@@ -0,0 +1 @@\n+x\n"), Code::ScopeViolation);
    assert_eq!(
        bench.refusal_code("--- /etc/passwd\n+++ /etc/passwd\n@@ -1 +1 @@\n-x\n+y\n"),
        Code::ScopeViolation
    );
    let into = "diff --git a/a b/.git/a\nsimilarity index 100%\nrename from a\nrename to .git/a\n";
    assert_eq!(bench.refusal_code(into), Code::ScopeViolation);
    for mode in ["100666", "104755", "100664", "040000", "140000"] {
        assert_eq!(bench.refusal_code(new_file("x", mode, "x\n")), Code::PatchInvalid, "{mode}");
    }
    let gitlink = new_file("sub", "160000", "Subproject commit 0123456789012345678901234567890123456789\n");
    assert_eq!(bench.refusal_code(gitlink), Code::ScopeViolation);
    let to_gitlink = "diff --git a/a b/a\nold mode 100644\nnew mode 160000\n";
    assert_eq!(bench.refusal_code(to_gitlink), Code::ScopeViolation);
    assert_eq!(bench.refusal_code(new_file(".gitmodules", "120000", "a")), Code::ScopeViolation);
}

#[test]
fn changes_of_submodules_are_refused() {
    let bench = Bench::new(&[("a", "a\n")]);
    let commit = bench.home.run_git(["rev-parse", "HEAD"]);
    bench.home.run_git(["update-index", "--add", "--cacheinfo", &format!("160000,{commit},sub")]);
    bench.home.run_git(["commit", "-q", "-m", "sub"]);
    let bench = Bench { base: bench.home.tree_of("HEAD"), ..bench };
    let other = "0123456789012345678901234567890123456789";
    for text in [
        format!(
            "diff --git a/sub b/sub\nindex {commit}..{other} 160000\n--- a/sub\n+++ b/sub\n@@ -1 +1 @@\n-Subproject commit {commit}\n+Subproject commit {other}\n"
        ),
        format!(
            "diff --git a/sub b/sub\ndeleted file mode 160000\nindex {commit}..0000000\n--- a/sub\n+++ /dev/null\n@@ -1 +0,0 @@\n-Subproject commit {commit}\n"
        ),
        format!(
            "--- a/sub\n+++ b/sub\n@@ -1 +1 @@\n-Subproject commit {commit}\n+Subproject commit {other}\n"
        ),
        "diff --git a/sub b/new\nsimilarity index 100%\nrename from sub\nrename to new\n".to_owned(),
    ] {
        assert_eq!(bench.refusal_code(&text), Code::ScopeViolation, "{text}");
    }
    assert_eq!(bench.take_patch(new_file("b", "100644", "x\n")).expect("beside it").changes.len(), 1);
}

#[test]
fn links_stay_inside_the_tree() {
    let bench = Bench::new(&[("a/b/c", "x\n")]);
    bench.make_link("in", "a/b");
    bench.make_link("a/deep", "b/../../in");
    bench.home.run_git(["add", "-A"]);
    let base = bench.home.commit_all("links");
    let bench = Bench { base, ..bench };
    for (path, target) in [
        ("l", "/etc/passwd"),
        ("l", "../x"),
        ("a/l", "../../x"),
        ("a/l", ".."),
        ("l", "a/../.."),
        ("l", ".git/config"),
        ("l", "a/.GIT/x"),
        ("l", "a/b/../../../x"),
        ("l", "in/../../.."),
        ("a/l", "../in/../../../x"),
        ("l", "a/deep/../../.."),
    ] {
        let taken = bench.take_patch(new_file(path, "120000", target));
        if target == ".." {
            // The top itself is inside.
            taken.expect("stays inside");
            continue;
        }
        let failure = taken.expect_err(target);
        assert_eq!(failure.code(), Code::ScopeViolation, "{target}: {failure}");
        assert_eq!(failure.subject_text(), Some(path));
    }
    for (path, target) in
        [("l", "a"), ("l", "nowhere"), ("a/l", "../a/b/c"), ("l", "in/c"), ("l", "l"), ("a/b/l", "../../x")]
    {
        bench.take_patch(new_file(path, "120000", target)).expect(target);
    }
    let out = "diff --git a/in b/in\n--- a/in\n+++ b/in\n@@ -1 +1 @@\n-a/b\n\\ No newline at end of file\n+../..\n\\ No newline at end of file\n";
    assert_eq!(bench.refusal_code(out), Code::ScopeViolation);
}

#[test]
fn nothing_is_written_through_a_link() {
    let bench = Bench::new(&[("a/b", "x\n"), ("f", "f\n")]);
    bench.make_link("old", "a");
    let base = bench.home.commit_all("link");
    let bench = Bench { base, ..bench };
    let link = new_file("l", "120000", "a");
    assert_eq!(bench.refusal_code(link.clone() + &new_file("l/x", "100644", "x\n")), Code::ScopeViolation);
    assert_eq!(bench.refusal_code(new_file("l/x", "100644", "x\n") + &link), Code::ScopeViolation);
    assert_eq!(bench.refusal_code(new_file("old/x", "100644", "x\n")), Code::ScopeViolation);
    assert_eq!(bench.refusal_code("--- a/old/b\n+++ b/old/b\n@@ -1 +1 @@\n-x\n+y\n"), Code::ScopeViolation);
    assert_eq!(bench.refusal_code(new_file("f/x", "100644", "x\n")), Code::PatchInvalid, "beneath a file");
    assert_eq!(bench.refusal_code(new_file("a", "100644", "x\n")), Code::PatchInvalid, "over a directory");
    let gone = "diff --git a/old b/old\ndeleted file mode 120000\n--- a/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n\\ No newline at end of file\n";
    bench.take_patch(gone.to_owned() + &new_file("old/x", "100644", "x\n")).expect("the link goes first");
}

#[test]
fn every_path_out_of_scope_is_named() {
    let bench = Bench::new(&[("docs/a", LINES), ("src/a", LINES), ("src/b", LINES)]);
    let docs = |path: &RepoPath| path.as_bytes().starts_with(b"docs/");
    let code = |text: &str| bench.take_with(text, &docs, 1 << 20).map_err(|f| f.code());
    let copy = "diff --git a/src/a b/docs/c\nsimilarity index 100%\ncopy from src/a\ncopy to docs/c\n";
    assert_eq!(code(copy).expect("a copy only reads").changes.len(), 1);
    for text in [
        copy.replace("copy", "rename"),
        "diff --git a/docs/a b/src/c\nsimilarity index 100%\nrename from docs/a\nrename to src/c\n".into(),
        "diff --git a/src/a b/src/a\nold mode 100644\nnew mode 100755\n".into(),
        new_file("docs-evil/x", "100644", "x\n"),
    ] {
        assert_eq!(code(&text).map(drop), Err(Code::ScopeViolation), "{text}");
    }
    let many = new_file("x", "100644", "x\n")
        + &new_file("docs/x", "100644", "x\n")
        + &new_file("y", "100644", "x\n");
    let failure = bench.take_with(many, &docs, 1 << 20).expect_err("refused");
    assert_eq!(failure.subject_text(), Some("x"));
    assert_eq!(failure.others().iter().filter_map(Failure::subject_text).collect::<Vec<_>>(), ["y"]);
    assert_eq!(failure.details()["allowed"], serde_json::json!(["docs/"]));
}

#[test]
fn a_change_over_its_budget_is_refused_before_it_is_inflated() {
    let bench = Bench::new(&[("a", LINES), ("big", &"0123456789abcdef\0".repeat(4000))]);
    let text = new_file("x", "100644", &"12345678\n".repeat(10));
    assert_eq!(bench.take_with(&text, &|_| true, 90).expect("fits").changes.len(), 1);
    let failure = bench.take_with(&text, &|_| true, 89).expect_err("refused");
    assert_eq!(failure.code(), Code::BudgetExhausted);
    assert_eq!((&failure.details()["expected"], &failure.details()["actual"]), (&89.into(), &90.into()));
    bench.home.write_file("zeros", &vec![0; 500_000]);
    let patch = bench.git_diff(&["--binary", "--full-index"]);
    assert!(patch.len() < 5_000, "{}", patch.len());
    bench.take_with(&patch, &|_| true, 500_000).expect("fits");
    assert_eq!(
        bench.take_with(&patch, &|_| true, 499_999).expect_err("refused").code(),
        Code::BudgetExhausted
    );
    let lie = String::from_utf8(patch).expect("ascii").replace("literal 500000", "literal 99999999999999");
    assert_eq!(bench.refusal_code(lie), Code::BudgetExhausted);
    // A delta says its result's size inside.
    bench.home.remove_file("zeros");
    bench.home.write_file("big", "0123456789abcdef\0".repeat(4001).as_bytes());
    let patch = bench.git_diff(&["--binary", "--full-index"]);
    assert!(String::from_utf8_lossy(&patch).contains("\ndelta "));
    bench.take_with(&patch, &|_| true, 17 * 4001).expect("fits");
    assert_eq!(
        bench.take_with(&patch, &|_| true, 17 * 4001 - 1).expect_err("refused").code(),
        Code::BudgetExhausted
    );
    assert!(!bench.home.quarantine().objects.join("nothing").exists());
}

#[test]
fn what_a_binary_patch_says_is_checked() {
    let bench = Bench::new(&[("bin", "\0\x01")]);
    bench.home.write_file("bin", b"\0\x02");
    let patch = String::from_utf8(bench.git_diff(&["--binary", "--full-index"])).expect("ascii");
    bench.leads_to_staged(&patch);
    let id = bench.home.run_git(["rev-parse", "HEAD:bin"]);
    assert_eq!(bench.refusal_code(patch.replace(&id, &id[..10])), Code::PatchInvalid, "an abbreviated id");
    let line = patch.lines().position(|line| line.starts_with("literal")).expect("data") + 1;
    let data = patch.lines().nth(line).expect("data");
    let wrong = data.replace(&data[2..4], "00");
    assert_eq!(bench.refusal_code(patch.replace(data, &wrong)), Code::PatchInvalid, "other bytes");
    assert_eq!(
        bench.refusal_code(patch.replace(data, &data[..data.len() - 1])),
        Code::PatchInvalid,
        "a shorter line"
    );
    assert_eq!(
        bench.refusal_code(patch.replacen("literal 2", "literal 3", 1)),
        Code::PatchInvalid,
        "another size"
    );
    let back = patch.rfind("literal 2").expect("the way back");
    let huge = patch[..back].to_owned() + &patch[back..].replace("literal 2", "literal 99999999999");
    assert_eq!(bench.refusal_code(huge), Code::PatchInvalid, "a huge way back");
}

#[test]
fn a_patch_that_changes_nothing_is_an_empty_capture() {
    let bench = Bench::new(&[("a", LINES)]);
    let capture = bench.take_patch("--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n-1\n+1\n 2\n").expect("is taken");
    assert_eq!((capture.tree, capture.changes.len()), (bench.base.clone(), 0));
}

#[test]
fn configuration_and_attributes_do_not_reach_a_patch() {
    let bench = every_kind();
    let (base, tree) = (bench.base.clone(), bench.staged_tree());
    let repository = bench.home.repository();
    let quarantine = bench.home.quarantine();
    let before = bound::patch_text(&repository, &quarantine, &base, &tree).expect("a text");
    for (key, value) in [
        ("diff.context", "0"),
        ("diff.interHunkContext", "50"),
        ("diff.noprefix", "true"),
        ("diff.mnemonicPrefix", "true"),
        ("diff.srcPrefix", "x/"),
        ("diff.dstPrefix", "y/"),
        ("diff.algorithm", "patience"),
        ("diff.indentHeuristic", "false"),
        ("diff.suppressBlankEmpty", "true"),
        ("diff.renames", "copies"),
        ("color.diff", "always"),
        ("diff.orderFile", "/dev/null"),
        ("diff.external", "false"),
        ("diff.relative", "true"),
        ("apply.whitespace", "error-all"),
        ("apply.ignoreWhitespace", "change"),
        ("core.autocrlf", "true"),
        ("core.splitIndex", "true"),
        ("core.sparseCheckout", "true"),
        ("core.bigFileThreshold", "1"),
        ("diff.t.textconv", "false"),
        ("diff.t.binary", "true"),
        ("diff.t.xfuncname", "x"),
        ("core.worktree", "/"),
    ] {
        bench.home.set_config(key, value);
    }
    let info = bench.home.top().join(".git/info");
    std::fs::create_dir_all(&info).expect("a directory");
    bench.home.write_file(".git/info/attributes", b"* diff=t -text\n*.md -diff whitespace=trailing-space\n");
    let after = bound::patch_text(&repository, &quarantine, &base, &tree).expect("a text");
    assert_eq!(before.escape_ascii().to_string(), after.escape_ascii().to_string());
    assert_eq!(bench.take_patch(&before).expect("is taken").tree, tree);
    bound::verify_patch(&repository, &quarantine, &base, &before, &tree).expect("leads there");
    let environment = crate::git::Environment::scrub_variables(
        [("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "diff.noprefix"), ("GIT_CONFIG_VALUE_0", "true")]
            .map(|(k, v)| (k.into(), v.into()))
            .into_iter()
            .chain([("PATH".into(), bench.home.environment().get("PATH").expect("a path").to_owned())]),
    );
    let hostile =
        Repository::at_git_dir(&environment, repository.git_dir(), &bench.home.top(), None).expect("opens");
    assert_eq!(bound::patch_text(&hostile, &quarantine, &base, &tree).expect("a text"), before);
    let left: Vec<_> =
        std::fs::read_dir(quarantine.objects.parent().expect("a folder")).expect("reads").collect();
    assert_eq!(left.len(), 1, "only the objects stay: {left:?}");
    drop(Git::new(&environment, None));
}

#[test]
fn the_bound_text_proves_its_tree_and_no_other() {
    for format in ["sha1", "sha256"] {
        let home = TestRepository::with_format(format);
        home.write_file("a", LINES.as_bytes());
        home.write_file("bin", b"\0\x01");
        let base = home.commit_all("base");
        home.write_file("a", LINES.replace('3', "three").as_bytes());
        home.write_file("bin", b"\0\x02");
        home.write_file("dir/new file", b"");
        let tree = home.commit_all("next");
        let (repository, quarantine) = (home.repository(), home.quarantine());
        let text = bound::patch_text(&repository, &quarantine, &base, &tree).expect("a text");
        bound::verify_patch(&repository, &quarantine, &base, &text, &tree).expect("proves");
        bound::verify_patch(&repository, &quarantine, &base, b"", &base).expect("nothing proves nothing");
        assert_eq!(bound::patch_text(&repository, &quarantine, &base, &base).expect("a text"), b"");
        let damaged = String::from_utf8_lossy(&text).replace("+three", "+drei").into_bytes();
        for (text, tree) in [(&text[..], &base), (&damaged[..], &tree), (b"", &tree)] {
            bound::verify_patch(&repository, &quarantine, &base, text, tree).expect_err("proves too much");
        }
        let rules = CandidateLimits { allowed: &|_| true, scope: &[], artifact_bytes: Some(1 << 20) };
        let capture = take_patch(&repository, &quarantine, &base, &text, &rules).expect("is taken");
        assert_eq!(capture.tree, tree);
        assert_eq!(home.run_git(["status", "--porcelain"]), "");
        assert_eq!(home.run_git(["fsck", "--full", "--strict"]), "");
    }
}

#[test]
fn new_objects_stay_in_the_quarantine() {
    let bench = Bench::new(&[("a", LINES)]);
    let capture = bench.take_patch(new_file("only/here", "100644", "unique\n")).expect("is taken");
    let id = &capture.changes[0].new.as_ref().expect("added").git_blob;
    assert!(!bench.home.git_call().args(["cat-file", "-e", id.as_str()]).run().expect("runs").success());
    assert!(
        !bench.home.git_call().args(["cat-file", "-e", capture.tree.as_str()]).run().expect("runs").success()
    );
}

/// Names that are easily read wrongly.
const NAMES: [&[u8]; 14] = [
    b"a",
    b"b/x",
    b"x b/x",
    b"x b/x b/x",
    b" ",
    b"a\tb",
    b"a\nb",
    b"\"q\"",
    b"caf\xe9",
    "\u{fc}".as_bytes(),
    b"d/e/f",
    b"d/e g",
    b"a b",
    b"diff --git c",
];

/// What stands at each of the names: nothing, lines, bytes, a link, something executable.
fn any_files() -> impl proptest::strategy::Strategy<Value = Vec<(u8, Vec<u8>, bool)>> {
    use proptest::prelude::*;
    let line = prop::sample::select(vec![
        "one\n",
        "two\n",
        "-- \n",
        "\n",
        "dos\r\n",
        "+++ b/x\n",
        "@@ -1 +1 @@\n",
        "three\n",
        "\\ x\n",
    ]);
    let text = (prop::collection::vec(line, 0..14), any::<bool>()).prop_map(|(lines, ended)| {
        let mut bytes = lines.concat().into_bytes();
        if !ended {
            bytes.pop();
        }
        bytes
    });
    let bytes = prop::collection::vec(any::<u8>(), 0..200);
    let content = prop_oneof![3 => text, 1 => bytes];
    prop::collection::vec((0u8..6, content, any::<bool>()), NAMES.len())
}

fn fill_repository(home: &TestRepository, files: &[(u8, Vec<u8>, bool)]) -> ObjectId {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::PermissionsExt;
    for entry in std::fs::read_dir(home.top()).expect("reads") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && !path.is_symlink() && !path.ends_with(".git") {
            std::fs::remove_dir_all(path).expect("removes");
        } else if !path.ends_with(".git") {
            std::fs::remove_file(path).expect("removes");
        }
    }
    for (name, (kind, content, executable)) in NAMES.iter().zip(files) {
        let place = home.top().join(std::ffi::OsStr::from_bytes(name));
        match kind {
            0 | 1 => {}
            2 => {
                std::fs::create_dir_all(place.parent().expect("a parent")).expect("directories");
                std::os::unix::fs::symlink("a", place).expect("a link");
            }
            _ => {
                home.write_bytes(name, content);
                let mode = if *executable { 0o755 } else { 0o644 };
                std::fs::set_permissions(place, std::fs::Permissions::from_mode(mode)).expect("a mode");
            }
        }
    }
    home.commit_all("state")
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..proptest::prelude::ProptestConfig::with_cases(24) })]

    #[test]
    fn any_diff_of_gits_leads_to_its_tree(old in any_files(), new in any_files(), copies in proptest::prelude::any::<bool>(), context in 1u8..4) {
        let home = TestRepository::new();
        let (base, tree) = (fill_repository(&home, &old), fill_repository(&home, &new));
        let (repository, quarantine) = (home.repository(), home.quarantine());
        let text = bound::patch_text(&repository, &quarantine, &base, &tree).expect("a text");
        bound::verify_patch(&repository, &quarantine, &base, &text, &tree).expect("leads there");
        let moves = if copies { "--find-copies-harder" } else { "--find-renames=10%" };
        let theirs = home.git_call().args(["diff", "--binary", moves, &format!("-U{context}"), "HEAD~1", "HEAD"]).run_for_stdout().expect("a diff");
        let mails = home.git_call().args(["format-patch", "--stdout", "--binary", moves, "HEAD~1"]).run_for_stdout().expect("mails");
        let rules = CandidateLimits { allowed: &|_| true, scope: &[], artifact_bytes: Some(1 << 20) };
        if base != tree {
            for patch in [text, theirs, mails] {
                let capture = take_patch(&repository, &quarantine, &base, &patch, &rules);
                let capture = capture.unwrap_or_else(|f| panic!("{f} {:?}\n{}", f.details(), patch.escape_ascii()));
                proptest::prop_assert_eq!(&capture.tree, &tree);
            }
        }
    }
}
