//! What each form can say.

use super::*;
use crate::tools::patch_formats::PatchKind;

#[test]
fn a_git_diff() {
    let patch = "\
diff --git a/src/x.rs b/src/x.rs
--- a/src/x.rs
+++ b/src/x.rs
@@ -1,3 +1,3 @@ fn main()
 one
-two
+TWO
 three
@@ -9,2 +9,3 @@
 nine
+and a half
 ten
diff --git a/new b/new
new file mode 100755
--- /dev/null
+++ b/new
@@ -0,0 +1,2 @@
+#!/bin/sh
+exit
diff --git a/gone b/gone
deleted file mode 100644
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-away
";
    let before = [("src/x.rs", "zero\none\ntwo\nthree\nnine\nten\n"), ("gone", "away\n")];
    assert_patch_gives(
        &before,
        patch,
        &[("src/x.rs", "zero\none\nTWO\nthree\nnine\nand a half\nten\n"), ("new", "#!/bin/sh\nexit\n")],
    );
    let kinds = parse_patch(patch).expect("a patch");
    assert!(matches!(kinds[1].kind, PatchKind::Add { executable: true, .. }));
}

#[test]
fn a_plain_diff_with_counts_that_are_wrong_or_missing() {
    for header in
        ["@@ -1,3 +1,3 @@", "@@ -7,2 +2,1 @@ fn x()", "@@ -1,3 +1,3", "@@ ... @@", "@@", "@@ -1 +1 @@"]
    {
        for (old, new) in
            [("a/f", "b/f"), ("f", "f"), ("f\t2020-01-01 00:00:00", "f\t2020-01-02 00:00:00"), ("i/f", "w/f")]
        {
            let patch = format!(
                "Here it is:\n\n```diff\n--- {old}\n+++ {new}\n{header}\n a\n-b\n+B\n c\n```\n\nThat is all.\n"
            );
            assert_patch_gives(&[("f", "a\nb\nc\n")], &patch, &[("f", "a\nB\nc\n")]);
        }
    }
}

#[test]
fn lines_of_a_hunk_that_look_like_headers() {
    let patch = "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n--- old\n+++ new\n c\n";
    assert_patch_gives(&[("f", "-- old\nc\n")], patch, &[("f", "++ new\nc\n")]);
    let mail = "From 1 Mon\nSubject: x\n---\n f | 2 +-\n\ndiff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n-- \n2.40.0\n";
    assert_patch_gives(&[("f", "a\n")], mail, &[("f", "b\n")]);
}

#[test]
fn renames_and_modes() {
    let rename = "diff --git a/old.txt b/new/name.txt\nsimilarity index 80%\nrename from old.txt\nrename to new/name.txt\n--- a/old.txt\n+++ b/new/name.txt\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n";
    assert_patch_gives(&[("old.txt", "a\nb\n")], rename, &[("new/name.txt", "a\nB\n")]);
    let plain = "diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n";
    assert_patch_gives(&[("x", "a\r\nb")], plain, &[("y", "a\r\nb")]);
    let mode = parse_only_patch("diff --git a/x b/x\nold mode 100644\nnew mode 100755\n");
    assert_eq!(mode.executable_bit(), Some(true));
    assert_eq!(mode.apply_to_file(Some(b"#!"), ObjectFormat::Sha1).expect("fits"), Some(b"#!".to_vec()));
    let quoted = parse_only_patch(
        "diff --git \"a/caf\\303\\251\" \"b/caf\\303\\251\"\n--- \"a/caf\\303\\251\"\n+++ \"b/caf\\303\\251\"\n@@ -1 +1 @@\n-a\n+b\n",
    );
    assert_eq!(quoted.path.to_string(), "caf\u{e9}");
    let empty = "diff --git a/e b/e\nnew file mode 100644\nindex 0000000..e69de29\n";
    assert_patch_gives(&[], empty, &[("e", "")]);
    // A directory that is called like a prefix, in a diff without prefixes.
    let noprefix = "diff --git b/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+1\n";
    assert_patch_gives(&[], noprefix, &[("b/x", "1\n")]);
}

#[test]
fn positions_count_where_the_blob_is_named() {
    let body = "@@ -3 +3 @@\n-x\n+y\n";
    let id = ObjectFormat::Sha1.blob_id(b"x\nx\nx\n").expect("an id");
    let named =
        format!("diff --git a/f b/f\nindex {}..0000000 100644\n--- a/f\n+++ b/f\n{body}", &id.as_str()[..9]);
    assert_patch_gives(&[("f", "x\nx\nx\n")], &named, &[("f", "x\nx\ny\n")]);
    let unnamed = named.replace(&id.as_str()[..9], "0000000");
    let failure = expect_refusal(&[("f", "x\nx\nx\n")], &unnamed, "matches 3 times");
    assert_eq!(failure.details()["lines"], serde_json::json!([1, 2, 3]));
    // Another version is no place to guess in, whatever would match there.
    for body in [body, "@@ -1 +0,0 @@\n-x\n"] {
        let other = named.replace(&id.as_str()[..9], "123456789").replace("@@ -3 +3 @@\n-x\n+y\n", body);
        let failure = apply_to_files(&files_of(&[("f", "x\n")]), &other).expect_err("another blob");
        assert_eq!(
            (failure.code(), &failure.details()["expected"]),
            (Code::VersionConflict, &serde_json::json!("123456789"))
        );
    }
    let gone = "diff --git a/f b/f\ndeleted file mode 100644\nindex e69de29..0000000\n";
    assert_patch_gives(&[("f", "")], gone, &[]);
    assert_eq!(
        apply_to_files(&files_of(&[("f", "x\n")]), gone).expect_err("it is not empty").code(),
        Code::VersionConflict
    );
    // What git stores with other line ends than the disk has is the same version.
    assert_patch_gives(
        &[("f", "x\r\nx\r\nz\r\n")],
        &format!(
            "diff --git a/f b/f\nindex {}..0000000 100644\n--- a/f\n+++ b/f\n@@ -3 +3 @@\n-z\n+y\n",
            ObjectFormat::Sha1.blob_id(b"x\nx\nz\n").expect("an id")
        ),
        &[("f", "x\r\nx\r\ny\r\n")],
    );
    let wrong_end = named.replace("0000000", "89abcde");
    expect_refusal(&[("f", "x\nx\nx\n")], &wrong_end, "does not lead to the version");
    let shifted = named.replace("@@ -3 +3 @@", "@@ -4 +4 @@");
    expect_refusal(&[("f", "x\nx\nx\n")], &shifted, "matches 3 times");
    let insertion = named.replace(body, "@@ -1,0 +2 @@\n+new\n");
    assert_patch_gives(&[("f", "x\nx\nx\n")], &insertion, &[("f", "x\nnew\nx\nx\n")]);
}

/// A diff of `f` with an index line that names what it is made from.
fn diff_with_index(old: &str, new: &str, body: &str) -> String {
    let id = |text: &str| ObjectFormat::Sha1.blob_id(text.as_bytes()).expect("an id");
    format!("diff --git a/f b/f\nindex {}..{} 100644\n--- a/f\n+++ b/f\n{body}", id(old), id(new))
}

#[test]
fn a_true_index_line_leaves_the_matcher_its_tiers() {
    let (old, new) = ("l1\nl2\nl3\n", "l1\nL2\nl3\n");
    for header in ["@@ -1,3 +1,3 @@", "@@ -2,3 +2,3 @@", "@@ -90,3 +90,3 @@"] {
        let body = format!("{header}\n l1\n-l2\n+L2\n l3\n");
        assert_patch_gives(&[("f", old)], &diff_with_index(old, new, &body), &[("f", new)]);
    }
    let (crlf, new) = ("l1\r\nl2\r\nl3\r\n", "l1\r\nL2\r\nl3\r\n");
    assert_patch_gives(
        &[("f", crlf)],
        &diff_with_index(crlf, new, "@@ -1,3 +1,3 @@\n l1\n-l2\n+L2\n l3\n"),
        &[("f", new)],
    );
    let (blanks, new) = ("l1 \nl2\t\nl3\n", "l1 \nL2\nl3\n");
    assert_patch_gives(
        &[("f", blanks)],
        &diff_with_index(blanks, new, "@@ -1,3 +1,3 @@\n l1\n-l2\n+L2\n l3\n"),
        &[("f", new)],
    );
    // The result is held to the index line all the same.
    let other = diff_with_index(old, "something\n", "@@ -2,3 +2,3 @@\n l1\n-l2\n+L2\n l3\n");
    expect_refusal(&[("f", old)], &other, "does not lead to the version");
    let far = expect_refusal(
        &[("f", old)],
        &diff_with_index(old, "x", "@@ -1,2 +1,2 @@\n l1\n-lx\n+L2\n"),
        "nearest is line 1",
    );
    assert_eq!(far.details()["line"], 2);
}

#[test]
fn a_new_file_is_the_blob_that_its_index_line_names() {
    let head = "diff --git a/n b/n\nnew file mode 100644\n";
    let body = "--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n+a\n+b\n";
    let id = ObjectFormat::Sha1.blob_id(b"a\nb\n").expect("an id").to_string();
    for id in [&id, &id[..7], "0000000"] {
        assert_patch_gives(&[], &format!("{head}index 0000000..{id}\n{body}"), &[("n", "a\nb\n")]);
    }
    for (named, body) in [("7d8007a", ""), (&id[..8], ""), ("7d8007a", body)] {
        let failure = expect_refusal(&[], &format!("{head}index 0000000..{named}\n{body}"), "cut off");
        assert_eq!(failure.details()["expected"], named);
        assert_eq!(failure.details()["truncated"], true);
    }
    assert_patch_gives(&[], &format!("{head}index 0000000..e69de29\n"), &[("n", "")]);
    assert_patch_gives(&[], head, &[("n", "")]);
}

#[test]
fn a_file_goes_unseen_only_by_the_name_of_its_blob() {
    let head = "diff --git a/f b/f\ndeleted file mode 100644\n";
    let id = ObjectFormat::Sha1.blob_id(b"a\nb\n").expect("an id").to_string();
    for id in [&id, &id[..7]] {
        assert_patch_gives(&[("f", "a\nb\n")], &format!("{head}index {id}..0000000\n"), &[]);
        assert_patch_gives(&[("f", "a\r\nb\r\n")], &format!("{head}index {id}..0000000\n"), &[]);
    }
    for ids in ["", "index 0000000..0000000\n", "index 123..0000000\n"] {
        let failure = expect_refusal(&[("f", "a\nb\n")], &format!("{head}{ids}"), "shows none of its lines");
        assert_eq!(failure.details()["truncated"], true);
    }
    assert_patch_gives(&[("f", "")], head, &[]);
    assert_patch_gives(&[("f", "a\nb\n")], "*** Begin Patch\n*** Delete File: f\n*** End Patch\n", &[]);
}

#[test]
fn the_envelope() {
    let patch = "\
*** Begin Patch
*** Add File: docs/new.md
+# Title
+
+text
*** Delete File: gone
*** Update File: src/a.py
*** Move to: src/b.py
@@ class B:
@@     def f(self):
-        return 1
+        return 2
@@
 last
+more
*** End of File
*** End Patch
";
    let a =
        "class A:\n    def f(self):\n        return 1\nclass B:\n    def f(self):\n        return 1\nlast\n";
    let b = "class A:\n    def f(self):\n        return 1\nclass B:\n    def f(self):\n        return 2\nlast\nmore\n";
    assert_patch_gives(
        &[("src/a.py", a), ("gone", "x")],
        patch,
        &[("src/b.py", b), ("docs/new.md", "# Title\n\ntext\n")],
    );
    let shell = format!("apply_patch <<'EOF'\n{patch}EOF\n");
    assert_patch_gives(
        &[("src/a.py", a), ("gone", "x")],
        &shell,
        &[("src/b.py", b), ("docs/new.md", "# Title\n\ntext\n")],
    );
    assert_patch_gives(&[("f", "a\nb\n")], &envelope_updating(" a\n-b\n+c\n"), &[("f", "a\nc\n")]);
    assert_patch_gives(
        &[("f", "a\nb\n")],
        &envelope_updating("@@ -1,2 +1,2 @@\n a\n-b\n+c\n"),
        &[("f", "a\nc\n")],
    );
}

#[test]
fn the_envelope_padded_with_blanks() {
    let patch = "  *** Begin Patch  \n  *** Update File: f\n@@\n-a\n+b\n*** End Patch \n";
    assert_patch_gives(&[("f", "a\n")], patch, &[("f", "b\n")]);
    let patch = " *** Begin Patch\n *** Update File: f\n@@\n-a\n+b\n *** End Patch\n";
    assert_patch_gives(&[("f", "a\n")], patch, &[("f", "b\n")]);
    // As context, where the end is still to come.
    let patch = envelope_updating("@@\n *** End Patch\n-a\n+b\n");
    assert_patch_gives(&[("f", "*** End Patch\na\n")], &patch, &[("f", "*** End Patch\nb\n")]);
    let patch = "*** Begin Patch\n*** Add File: n\n+1\n\n  *** Delete File: f\n*** End Patch";
    assert_patch_gives(&[("f", "a\n")], patch, &[("n", "1\n")]);
}

#[test]
fn additions_without_context() {
    assert_patch_gives(&[("f", "")], &envelope_updating("@@\n+a\n+b\n"), &[("f", "a\nb\n")]);
    assert_patch_gives(
        &[("f", "x\r\ny")],
        &envelope_updating("@@\n+a\n+b\n*** End of File\n"),
        &[("f", "x\r\ny\r\na\r\nb")],
    );
    expect_refusal(&[("f", "x\n")], &envelope_updating("@@\n+a\n"), "it could go anywhere");
    expect_refusal(&[("f", "x\n")], "--- a/f\n+++ b/f\n@@ -1,0 +2 @@\n+a\n", "it could go anywhere");
    assert_patch_gives(&[], "--- a/f\n+++ b/f\n@@ -0,0 +1 @@\n+a\n", &[("f", "a\n")]);
}

#[test]
fn the_end_of_the_file_is_where_it_says() {
    assert_patch_gives(
        &[("f", "x\ny\nx\n")],
        &envelope_updating("@@\n-x\n+z\n*** End of File\n"),
        &[("f", "x\ny\nz\n")],
    );
    expect_refusal(
        &[("f", "x\ny\n")],
        &envelope_updating("@@\n-x\n+z\n*** End of File\n"),
        "the file goes on",
    );
}

#[test]
fn search_and_replace() {
    let patch = "I change two places:\n\n`src/f.rs`\n```rust\n<<<<<<< SEARCH\n    b\n    c\n=======\n    B\n    c\n>>>>>>> REPLACE\n```\n\n<<<<<<< SEARCH\na\n=======\n>>>>>>> REPLACE\n\nnew.rs\n<<<<<<< SEARCH\n=======\nfn n() {}\n>>>>>>> REPLACE\n";
    assert_patch_gives(
        &[("src/f.rs", "a\n    b\n    c  \n")],
        patch,
        &[("src/f.rs", "    B\n    c  \n"), ("new.rs", "fn n() {}\n")],
    );
}

#[test]
fn a_path_as_writers_dress_it_up() {
    for line in [
        "n.txt",
        "n.txt:",
        "`n.txt`",
        "`n.txt`:",
        "# n.txt",
        "#### n.txt",
        "### `n.txt`",
        "**n.txt**",
        "**n.txt:**",
        "**`n.txt`**",
        "*n.txt*",
        "File: n.txt",
        "file: `n.txt`",
        "**File:** `n.txt`",
        "**File: n.txt**",
        "## Filename: n.txt",
        "\"n.txt\"",
        "./n.txt",
    ] {
        for (search, before) in [("", None), ("old\n", Some(("n.txt", "old\n")))] {
            for fence in ["", "```\n"] {
                let patch =
                    format!("{line}\n{fence}<<<<<<< SEARCH\n{search}=======\nx\n>>>>>>> REPLACE\n{fence}");
                assert_patch_gives(before.as_slice(), &patch, &[("n.txt", "x\n")]);
            }
        }
    }
    let block = "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n";
    for name in ["my file.txt", "Read me", "a.b.", "x:y", "path/of a.txt"] {
        assert_patch_gives(&[(name, "a\n")], &format!("{name}\n{block}"), &[(name, "b\n")]);
        assert_patch_gives(&[(name, "a\n")], &format!("`{name}`\n{block}"), &[(name, "b\n")]);
        let new = "<<<<<<< SEARCH\n=======\nb\n>>>>>>> REPLACE\n";
        assert_patch_gives(&[], &format!("**`{name}`**:\n{new}"), &[(name, "b\n")]);
    }
}

#[test]
fn a_dot_before_a_path_says_nothing() {
    for dot in ["./", "././"] {
        let body = "@@ -1 +1 @@\n-a\n+b\n";
        for patch in [
            format!("--- {dot}f\n+++ {dot}f\n{body}"),
            format!("--- {dot}a/f\n+++ {dot}b/f\n{body}"),
            format!("--- a/{dot}f\n+++ b/{dot}f\n{body}"),
            format!("diff --git {dot}f {dot}f\n--- {dot}f\n+++ {dot}f\n{body}"),
            format!("*** Begin Patch\n*** Update File: {dot}f\n@@\n-a\n+b\n*** End Patch\n"),
            format!("{dot}f\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n"),
        ] {
            assert_patch_gives(&[("f", "a\n")], &patch, &[("f", "b\n")]);
        }
        let moved = format!(
            "*** Begin Patch\n*** Update File: {dot}f\n*** Move to: {dot}g\n*** Add File: {dot}n\n+x\n*** Delete File: {dot}d\n*** End Patch\n"
        );
        assert_patch_gives(&[("f", "a\n"), ("d", "")], &moved, &[("g", "a\n"), ("n", "x\n")]);
        assert_patch_gives(&[], &format!("--- /dev/null\n+++ {dot}n\n@@ -0,0 +1 @@\n+x\n"), &[("n", "x\n")]);
        assert_patch_gives(&[("f", "a\n")], &format!("--- {dot}f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"), &[]);
    }
}

#[test]
fn sections_of_one_file_are_one_change() {
    let patch = "*** Begin Patch\n*** Update File: f\n@@\n-c\n+C\n*** Update File: g\n@@\n-x\n+y\n*** Update File: f\n@@\n-a\n+A\n*** End Patch\n";
    assert_patch_gives(&[("f", "a\nb\nc\n"), ("g", "x\n")], patch, &[("f", "A\nb\nC\n"), ("g", "y\n")]);
}

#[test]
fn line_ends_stay_as_the_file_has_them() {
    assert_patch_gives(
        &[("f", "a\r\nb\r\nc\r\n")],
        &envelope_updating("@@\n a\n-b\n+x\n+y\n"),
        &[("f", "a\r\nx\r\ny\r\nc\r\n")],
    );
    assert_patch_gives(
        &[("f", "a\nb\nc\n")],
        &envelope_updating("@@\n a\n-b\n+x\n").replace('\n', "\r\n"),
        &[("f", "a\nx\nc\n")],
    );
    // Mixed: each line its own, a new one that of the line it replaces, or of the one above.
    assert_patch_gives(
        &[("f", "a\r\nb\nc\r\nd\n")],
        &envelope_updating("@@\n a\n-b\n-c\n+B\n+C\n+D\n d\n"),
        &[("f", "a\r\nB\nC\r\nD\r\nd\n")],
    );
    assert_patch_gives(
        &[("f", "a\r\nb\n")],
        "--- a/f\n+++ b/f\n@@\n a\n+new\n b\n",
        &[("f", "a\r\nnew\r\nb\n")],
    );
    // A diff that was made from CRLF says so itself, also where it changes the ends.
    assert_patch_gives(
        &[("f", "a\r\nb\r\n")],
        "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\r\n-b\r\n+b\n",
        &[("f", "a\r\nb\n")],
    );
}

#[test]
fn the_last_newline() {
    assert_patch_gives(&[("f", "a\nb")], &envelope_updating("@@\n-b\n+c\n"), &[("f", "a\nc")]);
    assert_patch_gives(&[("f", "a\nb")], &envelope_updating("@@\n b\n+c\n"), &[("f", "a\nb\nc")]);
    assert_patch_gives(
        &[("f", "a\r\nb")],
        &envelope_updating("@@\n a\n-b\n+c\n+d\n"),
        &[("f", "a\r\nc\r\nd")],
    );
    assert_patch_gives(&[("f", "a\nb")], &envelope_updating("@@\n-b\n"), &[("f", "a")]);
    assert_patch_gives(&[("f", "a\nb\n")], &envelope_updating("@@\n-b\n"), &[("f", "a\n")]);
    let head = "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n";
    let none = "\\ No newline at end of file\n";
    assert_patch_gives(&[("f", "a\nb")], &format!("{head}-b\n{none}+b\n"), &[("f", "a\nb\n")]);
    assert_patch_gives(&[("f", "a\nb\n")], &format!("{head}-b\n+b\n{none}"), &[("f", "a\nb")]);
    assert_patch_gives(&[("f", "a\nb")], &format!("{head}-b\n{none}+c\n{none}"), &[("f", "a\nc")]);
    // Said of a line that has one: that is another file than this.
    expect_refusal(&[("f", "a\nb\n")], &format!("{head}-b\n{none}+c\n{none}"), "ends with one");
    // Said nothing of it: it stays.
    assert_patch_gives(&[("f", "a\nb")], &format!("{head}-b\n+c\n"), &[("f", "a\nc")]);
}

#[test]
fn trailing_white_space() {
    assert_patch_gives(
        &[("f", "a \t\nb\nc\t\n")],
        &envelope_updating("@@\n a\n-b\n+x\n c\n"),
        &[("f", "a \t\nx\nc\t\n")],
    );
    // The exact match is the one, also where a weaker comparison would find two.
    assert_patch_gives(&[("f", "a \na\n")], &envelope_updating("@@\n-a\n+x\n"), &[("f", "a \nx\n")]);
    expect_refusal(&[("f", "a \na\t\n")], &envelope_updating("@@\n-a\n+x\n"), "matches 2 times");
    expect_refusal(&[("f", "    a\n")], &envelope_updating("@@\n-a\n+x\n"), "matches nowhere");
    expect_refusal(
        &[("f", "\u{201c}a\u{201d}\n")],
        &envelope_updating("@@\n-\"a\"\n+x\n"),
        "matches nowhere",
    );
}

#[test]
fn encodings_stay() {
    let patch = envelope_updating("@@\n-caf\u{e9}\n+th\u{e9} \u{e0}\n");
    let apply = |bytes: &[u8]| parse_only_patch(&patch).apply_to_file(Some(bytes), ObjectFormat::Sha1);
    assert_eq!(
        apply(b"\xffraw\ncaf\xe9\nz\xfe").expect("fits"),
        Some(b"\xffraw\nth\xe9 \xe0\nz\xfe".to_vec())
    );
    assert_eq!(
        apply("\u{feff}caf\u{e9}\n".as_bytes()).expect("fits"),
        Some("\u{feff}th\u{e9} \u{e0}\n".as_bytes().to_vec())
    );
    let wide = |text: &str| -> Vec<u8> {
        [0xfe, 0xff].into_iter().chain(text.encode_utf16().flat_map(u16::to_be_bytes)).collect()
    };
    assert_eq!(apply(&wide("a\r\ncaf\u{e9}\r\n")).expect("fits"), Some(wide("a\r\nth\u{e9} \u{e0}\r\n")));
    let snow = parse_only_patch(&envelope_updating("@@\n-a\n+\u{2603}\n"))
        .apply_to_file(Some(b"\xff\na\n"), ObjectFormat::Sha1)
        .expect_err("no such byte");
    assert!(snow.message().contains("U+2603"), "{snow}");
    apply(b"caf\xe9\n\0").expect_err("binary");
}

#[test]
fn git_names_what_it_stores_with_other_line_ends() {
    let stored = ObjectFormat::Sha1.blob_id(b"caf\xe9\nold\r \r\n").expect("an id");
    let head =
        format!("diff --git a/f b/f\nindex {}..0000000 100644\n--- a/f\n+++ b/f\n", &stored.as_str()[..9]);
    let before = Files::from([("f".to_owned(), b"caf\xe9\r\nold\r \r\r\n".to_vec())]);
    let after =
        apply_to_files(&before, &format!("{head}@@ -1 +1,2 @@\n café\n+new\n")).expect("the same file");
    assert_eq!(after["f"].escape_ascii().to_string(), "caf\\xe9\\r\\nnew\\r\\nold\\r \\r\\r\\n");
}

#[test]
fn a_byte_order_mark_is_part_of_the_first_line_where_the_patch_shows_it() {
    let marked = "\u{feff}one\ntwo\n";
    let shown = "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-\u{feff}one\n+\u{feff}uno\n two\n";
    assert_patch_gives(&[("f", marked)], shown, &[("f", "\u{feff}uno\ntwo\n")]);
    let unshown = "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-one\n+uno\n two\n";
    assert_patch_gives(&[("f", marked)], unshown, &[("f", "\u{feff}uno\ntwo\n")]);
    let dropped = "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-\u{feff}one\n+one\n two\n";
    assert_patch_gives(&[("f", marked)], dropped, &[("f", "one\ntwo\n")]);
    let added = "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-one\n+\u{feff}one\n two\n";
    assert_patch_gives(&[("f", "one\ntwo\n")], added, &[("f", marked)]);
    assert_patch_gives(
        &[("f", marked)],
        &envelope_updating("@@\n-\u{feff}one\n+\u{feff}uno\n"),
        &[("f", "\u{feff}uno\ntwo\n")],
    );
}

#[test]
fn many_hunks_are_placed_as_few_are() {
    let lines = |changed: bool| -> String {
        (0..3_000)
            .map(|n| if changed && n % 100 == 50 { format!("new {n}\n") } else { format!("{}\n", n % 700) })
            .collect()
    };
    let hunks: String = (0..30)
        .map(|n| {
            let at = n * 100 + 50;
            format!("@@\n {}\n-{}\n+new {at}\n {}\n", (at - 1) % 700, at % 700, (at + 1) % 700)
        })
        .collect();
    // Each is there several times: with the numbers of the lines gone, none may be placed.
    expect_refusal(&[("f", &lines(false))], &envelope_updating(&hunks), "matches");
    let unique: String = (0..3_000).map(|n| format!("line {n}\n")).collect();
    let hunks: String = (0..30).map(|n| format!("@@\n-line {}\n+new {n}\n", n * 100)).collect();
    let after: String = (0..3_000)
        .map(|n| if n % 100 == 0 { format!("new {}\n", n / 100) } else { format!("line {n}\n") })
        .collect();
    assert_patch_gives(&[("f", &unique)], &envelope_updating(&hunks), &[("f", &after)]);
}
