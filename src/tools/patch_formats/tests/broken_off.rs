//! A hunk of a unified diff that is shorter than it says, or that a line without prefix breaks off, loses
//! nothing in silence.

use super::*;
use serde_json::json;

const HEAD: &str = "--- a/f\n+++ b/f\n";
const FIVE: &str = "l1\nl2\nl3\nl4\nl5\n";

#[track_caller]
fn expect_refused_body(body: &str, says: &str) -> Failure {
    expect_refusal(&[("f", FIVE)], &format!("{HEAD}{body}"), says)
}

#[test]
fn fewer_lines_than_the_header_says() {
    let failure = expect_refused_body("@@ -1,3 +1,3 @@\n l1\n-l2\nL2\n l3\n", "before line 6, \"L2\"");
    assert_eq!(failure.details()["expected"], json!([3, 3]));
    assert_eq!(failure.details()["actual"], json!([2, 1]));
    assert_eq!(failure.details()["header"], "@@ -1,3 +1,3 @@");
    assert_eq!((&failure.details()["line"], &failure.details()["endsAt"]), (&json!("L2"), &json!(6)));
    assert_eq!(failure.details()["truncated"], true);
    let short = "@@ -1,3 +1,3 @@\n l1\n-l2\n+L2\n";
    for after in [
        "@@ -4,2 +4,2 @@\n l4\n-l5\n+L5\n",
        "diff --git a/g b/g\n--- a/g\n+++ b/g\n@@ -1 +1 @@\n-x\n+y\n",
        "That is all.\n",
        "```\n",
        "...\n",
        "-- \n2.40.0\n",
        "",
    ] {
        expect_refused_body(&format!("{short}{after}"), "cut off");
    }
    // By its counts the next header is what is missing; the file does not hold it.
    expect_refused_body(&format!("{short}--- a/g\n+++ b/g\n@@ -1 +1 @@\n-x\n+y\n"), "matches nowhere");
    expect_refused_body("@@ -1,4 +1,4 @@\n l1\n-l2\n+L2\n...\n l4\n", "\"...\"");
    expect_refused_body(
        "@@ -1,4 +1,4 @@ fn x()\n l1\n-l2\n+L2 is long,\nso it was wrapped\n l3\n l4\n",
        "so it was wrapped",
    );
    expect_refused_body("@@ -1,4 +1,5 @@\n l1\n-l2\n+L2\n\nL2b\n l3\n l4\n", "\"L2b\"");
    // More on one side does not make up for the other.
    expect_refused_body("@@ -1,3 +1,1 @@\n l1\n-l2\n+L2\n+L3\n", "2 and 3 stand there");
    let new = "--- /dev/null\n+++ b/n\n@@ -0,0 +1,3 @@\n+a\nb\n+c\n";
    expect_refusal(&[], new, "before line 5, \"b\"");
    let gone = "--- a/f\n+++ /dev/null\n@@ -1,5 +0,0 @@\n-l1\n-l2\nl3\n-l4\n-l5\n";
    expect_refusal(&[("f", FIVE)], gone, "\"l3\"");
}

#[test]
fn a_line_without_prefix_right_behind_a_hunk() {
    for header in ["@@", "@@ @@", "@@ fn main() @@", "@@ ... @@", "@@ -1 +1 @@", "@@ -1,3 +1,3 @@"] {
        let failure = expect_refused_body(
            &format!("{header}\n l1\n-l2\n+L2\n l3\nand the rest of it\n"),
            "and the rest of it",
        );
        assert_eq!(failure.details()["line"], "and the rest of it", "{header}");
    }
    let failure =
        expect_refused_body("@@ @@\n l1\n-l2\nL2\n l3\n", "line 6 of the patch: \"L2\" stands behind");
    assert_eq!(failure.details()["patchLine"], 6);
    expect_refused_body("@@\n l1\n-l2\n...\n+L5\n", "\"...\"");
    // The counts hold, and what was wrapped is the last line.
    expect_refused_body("@@ -1,2 +1,2 @@\n l1\n-l2\n+L2 is long,\nso it was wrapped\n", "so it was wrapped");
    // A fence in the middle of a document's hunk.
    expect_refused_body("@@\n l1\n-l2\n```\n+L2\n", "\"```\"");
    let new = "--- /dev/null\n+++ b/n\n@@\n+a\nb\n+c\n";
    expect_refusal(&[], new, "\"b\"");
}

#[test]
fn a_changed_line_in_what_looks_like_prose() {
    for lost in ["+more", "-l3", "+    more", "+\tmore"] {
        for header in ["@@ @@", "@@ -1,2 +1,2 @@"] {
            let body = format!("{header}\n l1\n-l2\n+L2\n\nL2b\n{lost}\n");
            let failure = expect_refused_body(&body, "below text that is none of them");
            assert_eq!(failure.details()["line"], lost);
        }
    }
    let list = "\nThis:\n- does one thing\n+ and another\n---\n-- me\n";
    for prose in [list.to_owned(), format!("```\n{list}\n```\n+x\n```\n")] {
        let patch = format!("{HEAD}@@ @@\n l1\n-l2\n+L2\n{prose}");
        assert_patch_gives(&[("f", FIVE)], &patch, &[("f", "l1\nL2\nl3\nl4\nl5\n")]);
    }
}

#[test]
fn a_rename_or_mode_whose_text_is_missing() {
    let rename = "diff --git a/f b/g\nsimilarity index 90%\nrename from f\nrename to g\n";
    refuses_whole(rename);
    refuses_whole(&format!("{}index 1234567..1234568 100644\n", rename.replace("90%", "100%")));
    refuses_whole("diff --git a/f b/f\nold mode 100644\nnew mode 100755\nindex 1234567..1234568\n");
    assert_patch_gives(&[("f", FIVE)], &rename.replace("90%", "100%"), &[("g", FIVE)]);
    assert_patch_gives(&[("f", FIVE)], &rename.replace("similarity index 90%\n", ""), &[("g", FIVE)]);
}

#[track_caller]
fn refuses_whole(patch: &str) {
    let failure = expect_refusal(&[("f", FIVE)], patch, "its change is missing");
    assert_eq!(failure.details()["truncated"], true);
}

#[test]
fn lines_that_go_on_behind_an_empty_one() {
    let file = "l1\nl2\n\nl4\n";
    let patch = format!("{HEAD}@@ -1,2 +1,2 @@\n l1\n-l2\n+L2\n\n-l4\n+L4\n");
    assert_patch_gives(&[("f", file)], &patch, &[("f", "l1\nL2\n\nL4\n")]);
}

#[test]
fn what_may_stand_behind_a_hunk() {
    let after = [
        "",
        "\n",
        "\nThat is all.\n",
        "```\n",
        "```\nThat is all.\n",
        "````\n\n- one thing\n",
        "-- \n2.40.0\n",
        "-- \n2.40.0\n\n",
        "--\n2.40.0 (Apple Git-1)\n\nFrom 1 Mon\n",
        "*** End Patch\n",
        "Only in b: other\n",
    ];
    for after in after {
        for header in ["@@ -1,3 +1,3 @@", "@@ -1 +1 @@", "@@ @@"] {
            let patch = format!("{HEAD}{header}\n l1\n-l2\n+L2\n l3\n{after}");
            assert_patch_gives(&[("f", FIVE)], &patch, &[("f", "l1\nL2\nl3\nl4\nl5\n")]);
        }
    }
    for between in ["", "\n", "diff -ru a/g b/g\n", "Index: g\n=====\n", "```\n\nAnd then:\n\n```diff\n"] {
        for header in ["@@ -1,3 +1,3 @@", "@@ -1 +1 @@", "@@ @@"] {
            let patch = format!(
                "{HEAD}{header}\n l1\n-l2\n+L2\n l3\n{between}--- a/g\n+++ b/g\n@@ -1 +1 @@\n-x\n+y\n"
            );
            let after = [("f", "l1\nL2\nl3\nl4\nl5\n"), ("g", "y\n")];
            assert_patch_gives(&[("f", FIVE), ("g", "x\n")], &patch, &after);
        }
    }
    let document = format!("git apply <<'END'\n{HEAD}@@ -1,2 +1,2 @@\n l1\n-l2\n+L2\nEND\n");
    assert_patch_gives(&[("f", FIVE)], &document, &[("f", "l1\nL2\nl3\nl4\nl5\n")]);
    expect_refused_body("@@ -1,2 +1,2 @@\n l1\n-l2\n+L2\nEND\n", "\"END\"");
}
