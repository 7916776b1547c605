//! What is refused, and what the refusal says.

use super::*;
use serde_json::json;

#[test]
fn no_patch_and_two_patches() {
    for text in ["", " \n\n", "just prose\n", "+a\n-b\n"] {
        let failure = parse_patch(text).expect_err(text);
        assert_eq!(failure.code(), Code::PatchInvalid);
        assert!(
            failure.message().contains("*** Begin Patch") && failure.message().contains("SEARCH"),
            "{failure}"
        );
    }
    let diff = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n";
    let block = "f\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n";
    let all = [diff.to_owned(), envelope_updating("@@\n-a\n+b\n"), block.to_owned()];
    for one in &all {
        for other in all.iter().filter(|other| *other != one) {
            expect_refusal(&[("f", "a\n")], &format!("{one}\n{other}"), "one form only");
        }
    }
    // Words below the end are words; a section there would be left out in silence.
    for below in ["*** Delete File: f\n", "*** Update File: f\n@@\n-b\n+c\n", "*** Add File: g\n+g\n"] {
        let failure = expect_refusal(
            &[("f", "a\n")],
            &format!("{}{below}", envelope_updating("@@\n-a\n+b\n")),
            "below",
        );
        assert_eq!(failure.details()["line"], below.lines().next().expect("a line"));
    }
    assert_patch_gives(
        &[("f", "a\n")],
        &format!("{}\nThat is all.\n", envelope_updating("@@\n-a\n+b\n")),
        &[("f", "b\n")],
    );
    expect_refusal(&[], "*** Begin Patch\n*** End Patch\n", "empty");
    expect_refusal(&[], "nul \0", "NUL");
}

#[test]
fn a_patch_that_was_cut_off() {
    for patch in [
        "*** Begin Patch\n*** Update File: f\n@@\n-a\n+b\n",
        "f\n<<<<<<< SEARCH\na\n",
        "f\n<<<<<<< SEARCH\na\n=======\nb\n",
        "--- a/f\n+++ b/f\n",
        "diff --git a/f b/f\nindex 1234567..1234568 100644\n",
    ] {
        assert_eq!(expect_refusal(&[("f", "a\n")], patch, "").details()["truncated"], true, "{patch}");
    }
    let whole = "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n one\n-two\n+zwei\n three\n";
    assert_patch_gives(&[("f", "one\ntwo\nthree\n")], whole, &[("f", "one\nzwei\nthree\n")]);
    assert_patch_gives(&[("f", "one\ntwo\nthree\n")], whole.trim_end(), &[("f", "one\nzwei\nthree\n")]);
    let body = whole.find("@@ -1,3 +1,3 @@\n").expect("a header") + 16;
    for end in body..whole.len() - " three\n".len() {
        let cut = apply_to_files(&files_of(&[("f", "one\ntwo\nthree\n")]), &whole[..end]);
        assert_eq!(cut.expect_err("half a change").code(), Code::PatchInvalid, "{:?}", &whole[..end]);
    }
    let new = "--- /dev/null\n+++ b/n\n@@ -0,0 +1,3 @@\n+one\n+tw";
    assert_eq!(expect_refusal(&[], new, "cut off").details()["truncated"], true);
}

#[test]
fn lines_that_belong_nowhere() {
    expect_refusal(&[("f", "a\n")], &envelope_updating("nothing\n"), "line 3 of the patch");
    expect_refusal(
        &[],
        "*** Begin Patch\n*** Frob File: f\n*** End Patch\n",
        "expected `*** Add File: PATH`",
    );
    expect_refusal(&[], "*** Begin Patch\n*** Add File: f\n+a\nb\n*** End Patch\n", "begins with `+`");
    expect_refusal(&[("f", "a\n")], &envelope_updating(""), "without a change");
    expect_refusal(&[("f", "a\n")], &envelope_updating("@@\n a\n"), "changes nothing");
    expect_refusal(
        &[("f", "a\n")],
        "@@ -1 +1 @@\n-a\n+b\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n",
        "no file's header",
    );
    expect_refusal(
        &[("f", "a\n")],
        "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n",
        "path of the file is missing",
    );
    expect_refusal(
        &[("f", "a\n")],
        "f\n<<<<<<< SEARCH\na\n=======\nT\n=======\n>>>>>>> REPLACE\n",
        "look like its borders",
    );
}

#[test]
fn nothing_is_overwritten_and_nothing_missing_is_changed() {
    let add = "*** Begin Patch\n*** Add File: f\n+b\n*** End Patch\n";
    expect_refusal(&[("f", "a\n")], add, "overwrites nothing");
    expect_refusal(&[], &envelope_updating("@@\n-a\n+b\n"), "does not exist");
    expect_refusal(&[], "*** Begin Patch\n*** Delete File: f\n*** End Patch\n", "does not exist");
    expect_refusal(&[], "f\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n", "does not exist");
    expect_refusal(&[("f", "a\n")], "f\n<<<<<<< SEARCH\n=======\nb\n>>>>>>> REPLACE\n", "could go anywhere");
    let part = "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n";
    expect_refusal(&[("f", "a\nb\n")], part, "only a part");
}

#[test]
fn nothing_that_changes_nothing() {
    expect_refusal(&[("f", "a\n")], &envelope_updating("@@\n-a\n+a\n"), "changes nothing");
    expect_refusal(
        &[("f", "a \n")],
        "f\n<<<<<<< SEARCH\na\n=======\na\n>>>>>>> REPLACE\n",
        "changes nothing",
    );
    expect_refusal(&[("f", "a\r\n")], "--- a/f\n+++ b/f\n@@\n-a\n+a\n", "changes nothing");
}

#[test]
fn a_place_that_is_not_the_only_one() {
    let failure = expect_refusal(
        &[("f", "}\na\n}\nb\n}\n")],
        &envelope_updating("@@\n-}\n+]\n"),
        "matches 3 times, at lines 1, 3, 5",
    );
    assert_eq!(failure.details()["lines"], json!([1, 3, 5]));
    let diff = "--- a/f\n+++ b/f\n@@ -3 +3 @@\n-}\n+]\n";
    expect_refusal(&[("f", "}\na\n}\nb\n}\n")], diff, "matches 3 times");
    let anchored =
        expect_refusal(&[("f", "h\na\nh\na\n")], &envelope_updating("@@ h\n-a\n+b\n"), "is there 2 times");
    assert_eq!(anchored.details()["lines"], json!([1, 3]));
    expect_refusal(
        &[("f", "h\na\na\n")],
        &envelope_updating("@@ h\n-a\n+b\n"),
        "matches 2 times, at lines 2, 3",
    );
    let indented =
        expect_refusal(&[("f", "  h\na\n")], &envelope_updating("@@ h\n-a\n+b\n"), "no line 1 or below");
    assert_eq!(indented.details()["nearest"]["line"], 1);
}

#[test]
fn the_nearest_place_is_shown() {
    let file = "fn a() {\n    one();\n    two();\n}\nfn b() {\n    one();\n    three();\n}\n";
    let patch = envelope_updating("@@\n fn b() {\n     one();\n-    two();\n+    four();\n }\n");
    let failure = expect_refusal(&[("f", file)], &patch, "matches nowhere; nearest is line 5, where line 7");
    assert_eq!(failure.details()["expected"], "    two();");
    assert_eq!(failure.details()["actual"], "    three();");
    assert_eq!(failure.details()["line"], 7);
    assert_eq!(failure.subject_text(), Some("f"));
    let end =
        expect_refusal(&[("f", "a\nb\n")], &envelope_updating("@@\n a\n b\n-c\n"), "the end of the file");
    assert_eq!(end.details()["actual"], json!(null));
}

#[test]
fn a_line_too_few_or_too_many_moves_only_what_is_below_it() {
    let near = |file: &str, body: &str| {
        let failure =
            expect_refusal(&[("f", file)], &envelope_updating(&format!("@@\n{body}")), "matches nowhere");
        let details = failure.details();
        (
            details["nearest"].clone(),
            details["line"].clone(),
            details["expected"].clone(),
            details["actual"].clone(),
        )
    };
    let all = "a\nb\nc\nd\ne\nf\n";
    let one = |nearest: u64, line: u64, expected: &str, actual: &str| {
        (json!(nearest), json!(line), json!(expected), json!(actual))
    };
    assert_eq!(near(all, " a\n b\n d\n-e\n+E\n f\n"), one(1, 3, "d", "c"));
    assert_eq!(near(&format!("x\ny\n{all}"), " a\n b\n d\n-e\n+E\n f\n"), one(3, 5, "d", "c"));
    assert_eq!(near(all, " a\n d\n-e\n+E\n f\n"), one(1, 2, "d", "b"));
    // One more than the file has: in the middle, and first.
    assert_eq!(near(all, " a\n b\n new\n c\n-d\n+D\n e\n"), one(1, 3, "new", "c"));
    assert_eq!(near(all, " new\n b\n c\n-d\n+D\n"), one(1, 1, "new", "a"));
    assert_eq!(near(all, " new\n a\n-b\n+B\n c\n"), one(1, 1, "new", "a"));
    // The last one.
    assert_eq!(near(all, " c\n d\n-x\n+E\n"), one(3, 5, "x", "e"));
    // Marks alone are no place to go by.
    let code = "fn a() {\n}\n\nfn second() {\n    two();\n}\n";
    assert_eq!(
        near(code, " }\n \n fn secnd() {\n-    two()\n+    three()\n }\n"),
        one(2, 4, "fn secnd() {", "fn second() {")
    );
}

#[test]
fn where_no_line_is_the_same_the_most_similar_one_is_named() {
    let file = "use std::fmt;\n\nfn first(a: usize) {}\nfn second(b: usize) {}\n";
    let failure = expect_refusal(
        &[("f", file)],
        &envelope_updating("@@\n fn second(b: u8) {}\n-fn third() {}\n"),
        "nearest is line 4",
    );
    assert_eq!(failure.details()["expected"], "fn second(b: u8) {}");
    assert_eq!(failure.details()["actual"], "fn second(b: usize) {}");
    let nothing = expect_refusal(
        &[("f", "alpha\nbeta\n")],
        &envelope_updating("@@\n-0123\n+4\n"),
        "none of the 2 lines",
    );
    assert!(nothing.message().contains("\"0123\""), "{nothing}");
    assert_eq!((&nothing.details()["expected"], &nothing.details()["lines"]), (&json!("0123"), &json!(2)));
    expect_refusal(&[("f", "")], &envelope_updating("@@\n-a\n+b\n"), "the file is empty");
    expect_refusal(&[("f", "x\nlast\n")], &envelope_updating("@@ last\n-a\n+b\n"), "is the last one");
}

#[test]
fn hunks_out_of_order_or_over_each_other() {
    expect_refusal(
        &[("f", "a\nb\nc\n")],
        &envelope_updating("@@\n-c\n+C\n@@\n-a\n+A\n"),
        "follow the order of the file",
    );
    expect_refusal(
        &[("f", "a\nb\nc\n")],
        &envelope_updating("@@\n a\n-b\n+B\n@@\n-b\n+C\n c\n"),
        "above the end of the hunk before it",
    );
    let blocks = "f\n<<<<<<< SEARCH\na\nb\n=======\nx\n>>>>>>> REPLACE\n<<<<<<< SEARCH\nb\nc\n=======\ny\n>>>>>>> REPLACE\n";
    expect_refusal(&[("f", "a\nb\nc\n")], blocks, "both change line 2");
    // Each hunk is looked for in the file as it was read.
    let chained =
        "f\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n<<<<<<< SEARCH\nb\n=======\nc\n>>>>>>> REPLACE\n";
    expect_refusal(&[("f", "a\n")], chained, "matches nowhere");
}

#[test]
fn one_path_twice() {
    let section = |text: &str| format!("*** Begin Patch\n{text}*** End Patch\n");
    for twice in [
        "*** Delete File: f\n*** Add File: f\n+b\n",
        "*** Add File: n\n+a\n*** Update File: n\n@@\n-a\n+b\n",
        "*** Update File: f\n*** Move to: n\n@@\n-a\n+b\n*** Update File: n\n@@\n-a\n+b\n",
        "*** Update File: f\n*** Move to: g\n*** Delete File: g\n",
        "*** Update File: f\n*** Move to: f\n@@\n-a\n+b\n",
    ] {
        expect_refusal(&[("f", "a\n"), ("g", "x\n")], &section(twice), "twice");
    }
}

#[test]
fn no_links_no_binaries_no_copies() {
    let cases = [
        (
            "new file mode 120000\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+/etc/passwd\n\\ No newline at end of file\n",
            "120000",
        ),
        (
            "new file mode 160000\nindex 0000000..1234567\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+Subproject\n",
            "160000",
        ),
        ("index 1234567..1234568 120000\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n", "120000"),
        ("old mode 100644\nnew mode 104755\n", "104755"),
        ("index 1234567..1234568 100644\nGIT binary patch\nliteral 1\nIcmZPo000310RR91\n\n", "binary"),
        ("Binary files a/f and b/f differ\n", "binary"),
        ("similarity index 90%\ncopy from f\ncopy to g\n", "copies"),
        ("new file mode 100644\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n", "contradict"),
        ("deleted file mode 100644\nold mode 100644\nnew mode 100755\n", "contradict"),
    ];
    for (lines, says) in cases {
        expect_refusal(&[("f", "a\n")], &format!("diff --git a/f b/f\n{lines}"), says);
    }
    expect_refusal(&[("f", "a\n")], "--- a/f\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n", "names of the file differ");
    expect_refusal(&[("f", "a\n")], "--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n", "/dev/null");
}

#[test]
fn a_path_out_of_the_tree_is_a_scope_violation() {
    for path in [
        "../f",
        "/etc/passwd",
        "a/../../f",
        ".git/config",
        ".GIT/hooks/x",
        "sub/.git/x",
        "git~1/config",
        "./../f",
        "././.git/config",
        "a/./f",
        ".//f",
    ] {
        let patches = [
            format!("*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch\n"),
            format!("*** Begin Patch\n*** Update File: f\n*** Move to: {path}\n@@\n-a\n+b\n*** End Patch\n"),
            format!("--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n"),
            format!("diff --git a/f b/f\nrename from f\nrename to {path}\n"),
            format!("{path}\n<<<<<<< SEARCH\n=======\nx\n>>>>>>> REPLACE\n"),
        ];
        for patch in patches {
            assert_eq!(parse_patch(&patch).expect_err(&patch).code(), Code::ScopeViolation, "{patch}");
        }
    }
}

#[test]
fn a_line_that_is_no_path_makes_no_file() {
    for line in [
        "Create the new file:",
        "Now add the helper.",
        "### 1. The helper",
        "**The helper:**",
        "Done.",
        "- n.txt",
        "Use `a` and `b`",
        "`a` or so",
        "# File: the helper",
    ] {
        let patch = format!("{line}\n<<<<<<< SEARCH\n=======\nx\n>>>>>>> REPLACE\n");
        let failure = expect_refusal(&[], &patch, "was taken for its path");
        assert_eq!((&failure.details()["line"], &failure.details()["patchLine"]), (&json!(line), &json!(1)));
    }
}

#[test]
fn what_is_quoted_is_short_however_long_the_line_is() {
    let long = "y".repeat(100_000);
    let patches = [
        envelope_updating(&format!("@@\n a\n-{long}\n+b\n")),
        envelope_updating(&format!("@@\n-{long}\n+b\n")),
        envelope_updating(&format!("@@ {long}\n-a\n+b\n")),
        envelope_updating("@@\n a\n-b\n+B\n"),
        envelope_updating(&format!("@@ q{long}\n-a\n+b\n")),
        format!("--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@ {long}\n a\n{long}\n"),
        format!("--- a/f\n+++ b/f\n@@ @@ {long}\n a\n-x\n{long}\n"),
        format!("{long} {long}\n<<<<<<< SEARCH\n=======\nx\n>>>>>>> REPLACE\n"),
        format!("{long}\n<<<<<<< SEARCH\n=======\nx\n>>>>>>> REPLACE\n"),
        format!("*** Begin Patch\n*** Add File: {long}\n+x\n*** End Patch\n"),
        format!("--- a/{long}\n+++ b/{long}\n@@ @@\n-a\n+b\n"),
        format!("diff --git {long}\nold mode 100644\n"),
        format!("diff --git a/f b/f\nold mode {long}\n"),
        format!("diff --git a/f b/f\nindex 1234567..1234567 {long}\n"),
    ];
    for patch in patches {
        let failure = apply_to_files(&files_of(&[("f", &format!("a\n  {long}\n"))]), &patch)
            .expect_err("it does not fit");
        let length = serde_json::to_string(&failure).expect("json").len();
        assert!(length < 6_000, "{length}: {}", failure.message().chars().take(300).collect::<String>());
    }
    let failure = expect_refusal(
        &[("f", "x\nz\n")],
        &envelope_updating(&format!("@@\n x\n-{long}\n+b\n")),
        "(100000 bytes)",
    );
    let expected = failure.details()["expected"].as_str().expect("text");
    assert!(expected.ends_with("… (100000 bytes)") && expected.chars().count() < 450, "{expected}");
}

#[test]
fn a_hunk_that_repeats_itself_costs_no_more_than_its_length() {
    // A hundred thousand equal lines, and a hunk of ten thousand of them with another at its end.
    let file = "x\n".repeat(100_000);
    let body: String = std::iter::once("@@\n".to_owned())
        .chain((0..10_000).map(|_| " x\n".to_owned()))
        .chain(["-y\n".to_owned()])
        .collect();
    expect_refusal(&[("f", &file)], &envelope_updating(&body), "matches nowhere");
}

#[test]
fn a_near_miss_names_the_place() {
    let failure = expect_refusal(
        &[("f", "alpha\nthe second line\ngamma\n")],
        &envelope_updating("@@\n-the secnd line\n+x\n"),
        "nearest is line 2",
    );
    assert_eq!(failure.details()["line"], 2);
    assert_eq!(failure.details()["actual"], "the second line");
    expect_refusal(&[("f", "a\n")], "diff --git a/f b/f\n--- a/g\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n", "differ");
}
