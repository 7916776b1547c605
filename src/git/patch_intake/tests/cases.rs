//! The cases that the issue names, over one small base.

use super::super::*;
use crate::git::bound;
use crate::git::testing::TestRepository;
use std::os::unix::fs::{PermissionsExt, symlink};

struct Intake {
    home: TestRepository,
    repository: Repository,
    quarantine: Quarantine,
    base: ObjectId,
}

const TEN: &[u8] = b"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";

impl Intake {
    fn new() -> Self {
        Self::with_format("sha1")
    }

    fn with_format(format: &str) -> Self {
        let home = TestRepository::with_format(format);
        home.write_file("a/ten", TEN);
        home.write_file("x b/y", b"1\n");
        home.write_file("crlf", b"1\r\n2\r\n");
        home.write_file("bin", b"\0\x01\x02");
        home.write_file("end", b"no newline");
        let base = home.commit_all("base");
        Self { repository: home.repository(), quarantine: home.quarantine(), base, home }
    }

    fn take_with(&self, patch: &[u8], budget: Option<u64>) -> Result<Capture> {
        let limits = CandidateLimits {
            allowed: &|path| !path.as_bytes().starts_with(b"forbidden/"),
            scope: &[],
            artifact_bytes: budget,
        };
        take_patch(&self.repository, &self.quarantine, &self.base, patch, &limits)
    }

    fn take_patch(&self, patch: impl AsRef<[u8]>) -> Result<Capture> {
        self.take_with(patch.as_ref(), None)
    }

    fn expect_refusal(&self, patch: impl AsRef<[u8]>) -> Failure {
        let text = String::from_utf8_lossy(patch.as_ref()).into_owned();
        self.take_patch(patch).expect_err(&text)
    }

    /// The bytes of a git command's output.
    fn git_bytes(&self, args: &[&str]) -> Vec<u8> {
        self.home.git_call().args(args).run_for_stdout().expect("git works")
    }

    /// Changes of every kind, committed one on the other; the tree of the last.
    fn commit_history(&self) -> ObjectId {
        let home = &self.home;
        home.write_file("a/ten", &TEN.with(b"2\n", b"two\n"));
        home.write_file("crlf", b"1\r\n2\r\n3\r\n");
        home.write_file("new file", b"new\n");
        home.write_file("bin", b"\0\x01\x03more");
        home.commit_all("one");
        home.write_file("a/ten", &TEN.with(b"2\n", b"two\n").with(b"9\n", b"nine"));
        home.run_git(["mv", "x b/y", "x b/z"]);
        home.write_file("end", b"with newline\n");
        home.write_file("e m p t y", b"");
        home.commit_all("two");
        home.remove_file("crlf");
        symlink("a/ten", home.top().join("crlf")).expect("made");
        std::fs::set_permissions(home.top().join("end"), std::fs::Permissions::from_mode(0o755))
            .expect("set");
        home.remove_file("bin");
        home.commit_all("three")
    }
}

trait Replace {
    fn with(&self, from: &[u8], to: &[u8]) -> Vec<u8>;
}

impl<T: AsRef<[u8]> + ?Sized> Replace for T {
    fn with(&self, from: &[u8], to: &[u8]) -> Vec<u8> {
        let bytes = self.as_ref();
        let at = bytes.windows(from.len()).position(|w| w == from).expect("is there");
        [&bytes[..at], to, &bytes[at + from.len()..]].concat()
    }
}

#[test]
fn git_patches_and_mailboxes_give_the_tree_that_they_were_made_of() {
    for format in ["sha1", "sha256"] {
        let intake = Intake::with_format(format);
        let wanted = intake.commit_history();
        let base = intake.home.run_git(["rev-list", "--max-parents=0", "HEAD"]);
        for args in [
            &["diff", "--binary", "--full-index", &base, "HEAD"][..],
            &["diff", "--binary", "--full-index", "-M", "-C", "--find-copies-harder", &base, "HEAD"],
            &["format-patch", "--stdout", "--binary", "--full-index", &base],
            &["format-patch", "--stdout", "--binary", "--full-index", "--cover-letter", &base],
            &["log", "--reverse", "-p", "--binary", "--full-index", "--no-renames", &format!("{base}..HEAD")],
        ] {
            let capture = intake
                .take_patch(intake.git_bytes(args))
                .unwrap_or_else(|f| panic!("{args:?}: {f} {:?}", f.details()));
            assert_eq!(capture.tree, wanted, "{args:?}");
            let text = bound::patch_text(&intake.repository, &intake.quarantine, &intake.base, &capture.tree)
                .expect("made");
            assert_eq!(intake.take_patch(text).expect("taken").tree, wanted);
        }
    }
}

#[test]
fn a_plain_diff_is_read_as_git_reads_it() {
    let intake = Intake::new();
    let hunk = "@@ -1,4 +1,4 @@\n 1\n-2\n+two\n 3\n 4\n";
    let capture = intake.take_patch(format!("--- a/a/ten\n+++ b/a/ten\n{hunk}")).expect("taken");
    assert_eq!(capture.changes[0].path.to_string(), "a/ten");
    for header in ["--- a/ten\t2020-01-01\n+++ a/ten\t2020-01-02\n", "--- a/ten.orig\n+++ a/ten\n"] {
        let refused = intake.expect_refusal(format!("{header}{hunk}"));
        assert_eq!(refused.code(), Code::PatchInvalid, "{header}");
        assert!(refused.message().contains("no prefix"), "{header}: {refused}");
    }
    let capture = intake.take_patch("--- /dev/null\n+++ b/docs/n\n@@ -0,0 +1 @@\n+n\n").expect("taken");
    assert_eq!(capture.changes[0].path.to_string(), "docs/n");
}

#[test]
fn offsets_and_fuzz_are_refused_though_git_takes_them() {
    let intake = Intake::new();
    let patch = "--- a/a/ten\n+++ b/a/ten\n@@ -2,3 +2,3 @@\n 4\n-5\n+five\n 6\n";
    let refused = intake.expect_refusal(patch);
    assert_eq!((refused.code(), refused.subject_text()), (Code::PatchInvalid, Some("a/ten")));
    assert_eq!(refused.details()["wouldApplyAt"], serde_json::json!([4]));
    assert_eq!(refused.details()["hunk"], "@@ -2,3 +2,3 @@");
    assert_eq!(intake.expect_refusal(patch.replace("-2,3", "-4,3")).code(), Code::PatchInvalid);
    intake.take_patch(patch.replace("-2,3 +2,3", "-4,3 +4,3")).expect("exact");
    intake.expect_refusal("--- a/a/ten\n+++ b/a/ten\n@@ -1,3 +1,3 @@\n 1\n-2\n+two\n XX\n");
}

#[test]
fn another_base_is_a_conflict_that_names_both_blobs() {
    let intake = Intake::new();
    let home = &intake.home;
    home.write_file("a/ten", b"others\n");
    home.commit_all("elsewhere");
    home.write_file("a/ten", b"mine\n");
    let patch = intake.git_bytes(&["diff"]);
    let refused = intake.expect_refusal(&patch);
    assert_eq!((refused.code(), refused.exit_code()), (Code::VersionConflict, 3));
    let actual = refused.details()["actual"].as_str().expect("an id").to_owned();
    assert_eq!(actual, home.run_git(["rev-parse", &format!("{}:a/ten", intake.base)]));
    let added = "diff --git a/end b/end\nnew file mode 100644\n--- /dev/null\n+++ b/end\n@@ -0,0 +1 @@\n+x\n";
    assert_eq!(intake.expect_refusal(added).code(), Code::VersionConflict);
    let missing = "--- a/none\n+++ b/none\n@@ -1 +1 @@\n-x\n+y\n";
    assert_eq!(intake.expect_refusal(missing).code(), Code::VersionConflict);
}

#[test]
fn a_patch_that_lost_bytes_is_refused_at_every_length() {
    let intake = Intake::new();
    intake.commit_history();
    let patch = intake.git_bytes(&["diff", "--binary", "--full-index", "HEAD~2", "HEAD~1", "--", "a/ten"]);
    let home = TestRepository::new();
    home.write_file("a/ten", &TEN.with(b"2\n", b"two\n"));
    let base = home.commit_all("base");
    let intake = Intake { repository: home.repository(), quarantine: home.quarantine(), base, home };
    intake.take_patch(&patch).expect("whole");
    for cut in (1..patch.len()).step_by(7).chain([1, 2]) {
        intake.expect_refusal(&patch[..patch.len() - cut]);
    }
    assert!(intake.expect_refusal("").message().contains("no change"));
    assert!(intake.expect_refusal("From 0000 Mon\nSubject: x\n\nwords\n").message().contains("no change"));
    let crlf: Vec<u8> = String::from_utf8_lossy(&patch).into_owned().replace('\n', "\r\n").into_bytes();
    assert!(intake.expect_refusal(crlf).message().contains("CRLF"));
}

#[test]
fn what_no_patch_may_do() {
    let intake = Intake::new();
    let new = |path: &str, mode: &str| {
        format!(
            "diff --git a/{path} b/{path}\nnew file mode {mode}\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n"
        )
    };
    for path in
        ["../x", ".git/config", "d/.GIT/x", "git~1/x", ".g\u{200c}it/config", "/abs", "a//b", "forbidden/x"]
    {
        let refused = intake.expect_refusal(new(path, "100644"));
        assert_eq!(refused.code(), Code::ScopeViolation, "{path}: {refused}");
    }
    for mode in ["100666", "100600", "040000"] {
        assert_eq!(intake.expect_refusal(new("f", mode)).code(), Code::PatchInvalid, "{mode}");
    }
    assert_eq!(intake.expect_refusal(new("sub", "160000")).code(), Code::ScopeViolation);
    let to_gitlink = "diff --git a/end b/end\nold mode 100644\nnew mode 160000\n";
    assert_eq!(intake.expect_refusal(to_gitlink).code(), Code::ScopeViolation);
    let link = |target: &str| {
        format!(
            "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+{target}\n\\ No newline at end of file\n"
        )
    };
    for target in ["/etc/passwd", "../x", ".git/config"] {
        assert_eq!(intake.expect_refusal(link(target)).code(), Code::ScopeViolation, "{target}");
    }
    intake.take_patch(link("a")).expect("a link inside");
    assert_eq!(intake.expect_refusal(link("a") + &new("l/x", "100644")).code(), Code::ScopeViolation);
    let rename =
        "diff --git a/end b/forbidden/end\nsimilarity index 100%\nrename from end\nrename to forbidden/end\n";
    assert_eq!(intake.expect_refusal(rename).code(), Code::ScopeViolation);
    let binary =
        "diff --git a/bin b/bin\nindex 1234567..89abcde 100644\nBinary files a/bin and b/bin differ\n";
    assert_eq!(intake.expect_refusal(binary).code(), Code::PatchInvalid);
    assert_eq!(
        intake.take_with(new("f", "100644").as_bytes(), Some(1)).expect_err("two bytes").code(),
        Code::BudgetExhausted
    );
}

#[test]
fn the_same_file_twice_and_names_exchanged() {
    let intake = Intake::new();
    let twice = "--- a/a/ten\n+++ b/a/ten\n@@ -1,4 +1,4 @@\n 1\n-2\n+two\n 3\n 4\n\
                 --- a/a/ten\n+++ b/a/ten\n@@ -1,4 +1,5 @@\n 1\n two\n+and\n 3\n 4\n";
    assert_eq!(intake.take_patch(twice).expect("taken").changes.len(), 1);
    let exchange = "diff --git a/end b/crlf\nsimilarity index 100%\nrename from end\nrename to crlf\n\
                    diff --git a/crlf b/end\nsimilarity index 100%\nrename from crlf\nrename to end\n";
    let capture = intake.take_patch(exchange).expect("taken");
    let ids: Vec<_> =
        capture.changes.iter().map(|c| (c.old.clone().expect("old"), c.new.clone().expect("new"))).collect();
    assert_eq!(ids[0].0, ids[1].1);
    assert_eq!(ids[1].0, ids[0].1);
}
