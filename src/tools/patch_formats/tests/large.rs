//! Patches of a megabyte that are made to take the square of their length, and what comes of many failures at
//! once.
//!
//! The bound is generous: what is measured takes seconds, and its square takes hours.

use super::*;
use std::time::Instant;

#[track_caller]
fn run_within_seconds<T>(work: impl FnOnce() -> T) -> T {
    let started = Instant::now();
    let done = work();
    assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
    done
}

fn numbered_lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(line).collect()
}

#[test]
fn many_hunks_that_fit_nowhere_make_a_small_failure() {
    let file = "a\n".repeat(2_000);
    let patch = format!("--- a/f\n+++ b/f\n{}", "@@\n-a\n+b\n".repeat(10_000));
    let failure = run_within_seconds(|| expect_refusal(&[("f", &file)], &patch, "matches 2000 times"));
    assert_eq!((failure.number(), &failure.details()["matches"]), (20, &2_000.into()));
    assert_eq!(failure.details()["lines"].as_array().expect("a list").len(), 20);
    assert_eq!(failure.details()["hunksNotLookedAt"], 10_000 - 20);
    let json = serde_json::to_vec(&failure).expect("json");
    assert!(json.len() < 64 << 10, "{}", json.len());
    let nowhere = format!("--- a/f\n+++ b/f\n{}", numbered_lines(10_000, |at| format!("@@\n-a{at}\n+b\n")));
    let failure = run_within_seconds(|| {
        expect_refusal(&[("f", &numbered_lines(20_000, |at| format!("x{at}\n")))], &nowhere, "nowhere")
    });
    assert_eq!(failure.number(), 20);
    let few = format!("--- a/f\n+++ b/f\n{}", "@@\n-a\n+b\n".repeat(3));
    let failure = expect_refusal(&[("f", &file)], &few, "matches 2000 times");
    assert!(failure.number() == 3 && !failure.details().contains_key("hunksNotLookedAt"), "{failure:?}");
}

#[test]
fn an_anchor_that_is_everywhere_is_counted_and_not_listed() {
    let file = format!("{}x\n", "a\n".repeat(5_000));
    let failure =
        expect_refusal(&[("f", &file)], &envelope_updating("@@ a\n-x\n+y\n"), "is there 5000 times");
    assert_eq!(failure.details()["lines"].as_array().expect("a list").len(), 20);
    assert_eq!(failure.details()["matches"], 5_000);
}

#[test]
fn empty_lines_in_a_new_file() {
    let empty = "\n".repeat(1 << 20);
    let patch = |end: &str| format!("*** Begin Patch\n*** Add File: a\n+x\n{empty}{end}");
    run_within_seconds(|| assert_patch_gives(&[], &patch("*** End Patch\n"), &[("a", "x\n")]));
    run_within_seconds(|| {
        assert_patch_gives(&[], &patch("*** Add File: b\n+y\n*** End Patch\n"), &[("a", "x\n"), ("b", "y\n")])
    });
    run_within_seconds(|| expect_refusal(&[], &patch(""), "`*** End Patch` is missing"));
    run_within_seconds(|| {
        expect_refusal(&[], &patch("lost\n*** End Patch\n"), "each line of a new file begins with `+`")
    });
}

#[test]
fn prose_around_a_hunk() {
    let hunk = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-1\n+2\n";
    let (above, below) = ("y\n".repeat(300_000), "x\n".repeat(300_000));
    run_within_seconds(|| {
        assert_patch_gives(&[("f", "1\n")], &format!("{above}{hunk}\n{below}"), &[("f", "2\n")])
    });
    let within = format!("git apply <<'END'\n{above}{hunk}END\n{below}");
    run_within_seconds(|| assert_patch_gives(&[("f", "1\n")], &within, &[("f", "2\n")]));
}

#[test]
fn lines_named_above_a_hunk() {
    let count = 200_000;
    let file = format!("{}end\n", numbered_lines(count, |at| format!("{at}\n")));
    let anchors = numbered_lines(count, |at| format!("@@ {at}\n"));
    let after = file.replace("end", "END");
    run_within_seconds(|| {
        assert_patch_gives(
            &[("f", &file)],
            &envelope_updating(&format!("{anchors}-end\n+END\n")),
            &[("f", &after)],
        )
    });
    let blanks = numbered_lines(500, |at| format!("{}\n", " ".repeat(at + 1)));
    let named = numbered_lines(500, |at| format!("@@ a{}\n", " ".repeat(at + 1)));
    let file = format!("{}end\n", blanks.lines().map(|line| format!("a{line}\n")).collect::<String>());
    assert_patch_gives(
        &[("f", &file)],
        &envelope_updating(&format!("{named}-end\n+END\n")),
        &[("f", &file.replace("end", "END"))],
    );
}

#[test]
fn hunks_at_the_end_of_a_file_that_repeats_itself() {
    let file = format!("{}a", "a\n".repeat(500_000));
    let hunk = "--- a/f\n+++ b/f\n@@ @@\n-a\n\\ No newline at end of file\n+b\n";
    run_within_seconds(|| expect_refusal(&[("f", &file)], &hunk.repeat(20_000), "both change line 500001"));
}

#[test]
fn names_that_are_nothing_but_dressing() {
    let block = "<<<<<<< SEARCH\n1\n=======\n2\n>>>>>>> REPLACE\n";
    for (begin, mark) in [("", "*"), ("", "**"), ("file:", "*"), ("", "file:"), ("", "`"), ("", "#:")] {
        let line = format!("{begin}{}", mark.repeat(1 << 20));
        let failure = run_within_seconds(|| {
            apply_to_files(&files_of(&[]), &format!("{line}\n{block}")).expect_err("no path")
        });
        assert!(failure.message().len() < 2_000, "{failure}");
    }
    let dots = "./".repeat(1 << 20);
    let patch = format!("--- {dots}f\n+++ {dots}f\n@@ @@\n-1\n+2\n");
    run_within_seconds(|| assert_patch_gives(&[("f", "1\n")], &patch, &[("f", "2\n")]));
    let blanks = format!("diff --git a/{}\n", " ".repeat(1 << 20));
    run_within_seconds(|| expect_refusal(&[], &blanks, "missing or do not fit together"));
    assert_patch_gives(&[("f", "1\n")], &format!("**`f`**:\n{block}"), &[("f", "2\n")]);
}

#[test]
fn a_block_with_nothing_in_common() {
    let side = |name: &str| numbered_lines(60_000, |at| format!("{name}{at}\n"));
    let (old, new) = (side("old"), side("new"));
    let patch = format!("f\n<<<<<<< SEARCH\n1\n{old}9\n=======\n1\n{new}9\n>>>>>>> REPLACE\n");
    let file = |middle: &str| format!("0\n1\r\n{middle}9\r\n");
    run_within_seconds(|| assert_patch_gives(&[("f", &file(&old))], &patch, &[("f", &file(&new))]));
}
