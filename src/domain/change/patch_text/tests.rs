use crate::domain::change::patch_text::exact::apply_hunks;
use crate::domain::change::patch_text::*;
use crate::error::Code;
use proptest::prelude::*;

fn parse_one(text: &str) -> Section {
    let mut sections = parse_sections(text.as_bytes(), Strip::One).unwrap_or_else(|f| panic!("{text}: {f}"));
    assert_eq!(sections.len(), 1, "{text}");
    sections.remove(0)
}

fn name_text(path: &Option<Vec<u8>>) -> Option<&str> {
    path.as_deref().and_then(|bytes| std::str::from_utf8(bytes).ok())
}

#[test]
fn headers_say_what_happens() {
    let id = "0123456..89abcde";
    let made = parse_one("diff --git a/x y b/x y\nnew file mode 100755\nindex 0000000..e69de29\n");
    assert_eq!(
        (made.operation, name_text(&made.old), name_text(&made.new)),
        (Operation::Create, None, Some("x y"))
    );
    assert_eq!((made.old_mode, made.new_mode.as_deref()), (None, Some("100755")));
    let gone = parse_one("diff --git a/x b/x\ndeleted file mode 100644\nindex e69de29..0000000\n");
    assert_eq!(
        (gone.operation, name_text(&gone.old), name_text(&gone.new)),
        (Operation::Delete, Some("x"), None)
    );
    assert_eq!((gone.old_mode.as_deref(), gone.new_mode), (Some("100644"), None));
    let moved = parse_one("diff --git a/x b/d/y\nsimilarity index 100%\nrename from x\nrename to d/y\n");
    assert_eq!(
        (moved.operation, name_text(&moved.old), name_text(&moved.new)),
        (Operation::Rename, Some("x"), Some("d/y"))
    );
    let copied =
        parse_one("diff --git a/x \"b/t\\tb\"\nsimilarity index 100%\ncopy from x\ncopy to \"t\\tb\"\n");
    assert_eq!((copied.operation, name_text(&copied.new)), (Operation::Copy, Some("t\tb")));
    let mode = parse_one("diff --git a/x b/y b/x b/y\nold mode 100644\nnew mode 100755\n");
    assert_eq!((mode.operation, name_text(&mode.new)), (Operation::Modify, Some("x b/y")));
    let hunk = "@@ -1 +1 @@\n-a\n+b\n";
    let text =
        parse_one(&format!("diff --git a/x y b/x y\nindex {id} 100644\n--- a/x y\t\n+++ b/x y\t\n{hunk}"));
    assert_eq!((name_text(&text.new), text.hunks().len()), (Some("x y"), 1));
    assert_eq!(text.index, Some(IndexLine { old: "0123456".into(), new: "89abcde".into() }));
    assert_eq!((text.old_mode.as_deref(), text.new_mode.as_deref()), (Some("100644"), Some("100644")));
    let plain = parse_one(&format!(
        "Index: x\n=====\n--- a/x\t2020-01-01 10:00:00 +0000\n+++ b/x\t2020-01-01\n{hunk}-- \n2.47\n"
    ));
    assert_eq!((plain.is_git, name_text(&plain.old), plain.line), (false, Some("x"), 3));
}

#[test]
fn counts_bound_a_hunk_whatever_its_lines_look_like() {
    let body = "-diff --git a/x b/x\n--- a/x\n+++ b/x\n+@@ -1 +1 @@\n+-- \n\n \\ no\n";
    let text = format!("--- a/x\n+++ b/x\n@@ -1,4 +1,5 @@ fn x()\n{body}");
    let section = parse_one(&text);
    let lines: Vec<(Side, &[u8])> = section.hunks()[0].body_lines(text.as_bytes()).collect();
    assert_eq!(lines[0], (Side::Old, &b"diff --git a/x b/x\n"[..]));
    assert_eq!(lines[1], (Side::Old, &b"-- a/x\n"[..]));
    assert_eq!(lines[2], (Side::New, &b"++ b/x\n"[..]));
    assert_eq!(lines[5], (Side::Both, &b"\n"[..]));
    assert_eq!(lines[6], (Side::Both, &b"\\ no\n"[..]));
    assert_eq!(&text[section.hunks()[0].header.clone()], "@@ -1,4 +1,5 @@ fn x()");
    let unended =
        "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n";
    let lines: Vec<(Side, &[u8])> = parse_one(unended).hunks()[0].body_lines(unended.as_bytes()).collect();
    assert_eq!(lines, [(Side::Old, &b"a"[..]), (Side::New, &b"b"[..])]);
}

#[test]
fn a_failure_names_the_line() {
    let failure =
        parse_sections(b"--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-a\n+b\n", Strip::One).expect_err("too short");
    assert_eq!((failure.code(), &failure.details()["line"]), (Code::PatchInvalid, &6.into()));
    assert_eq!(failure.subject_text(), Some("x"));
}

#[test]
fn hunks_apply_at_their_place_only() {
    let before = b"1\n2\n3\n4\n5";
    let run = |hunks: &str| {
        let text = format!("--- a/x\n+++ b/x\n{hunks}");
        apply_hunks(text.as_bytes(), parse_one(&text).hunks(), before)
            .map(|bytes| String::from_utf8(bytes).expect("text"))
    };
    assert_eq!(run("@@ -2 +2,2 @@\n-2\n+two\n+zwei\n").as_deref(), Ok("1\ntwo\nzwei\n3\n4\n5"));
    assert_eq!(run("@@ -0,0 +1 @@\n+0\n").as_deref(), Ok("0\n1\n2\n3\n4\n5"));
    assert_eq!(run("@@ -1,2 +0,0 @@\n-1\n-2\n").as_deref(), Ok("3\n4\n5"));
    assert_eq!(
        run("@@ -5 +5,2 @@\n-5\n\\ No newline at end of file\n+5\n+6\n").as_deref(),
        Ok("1\n2\n3\n4\n5\n6\n")
    );
    for bad in [
        "@@ -3 +3 @@\n-2\n+x\n",
        "@@ -2 +3 @@\n-2\n+x\n",
        "@@ -2 +1 @@\n-2\n+x\n",
        "@@ -5,0 +6 @@\n+x\n",
        "@@ -9,0 +10 @@\n+x\n",
        "@@ -5 +5 @@\n-5\n+x\n",
        "@@ -2 +2 @@\n-2\n+x\n\\ No newline at end of file\n",
        "@@ -5,2 +5,2 @@\n 5\n-6\n+x\n",
    ] {
        assert!(run(bad).is_err(), "{bad}");
    }
    assert_eq!(run("@@ -3 +3 @@\n-2\n+x\n").expect_err("elsewhere").would_apply_at, [2]);
}

/// The hunks between two contents, as any diff tool writes them.
fn unified_hunks(old: &str, new: &str, context: usize) -> String {
    let diff = similar::TextDiff::from_lines(old, new);
    diff.unified_diff().context_radius(context).header("a/x", "b/x").to_string()
}

fn any_content() -> impl Strategy<Value = String> {
    let line =
        prop::sample::select(vec!["a", "b", "-- ", "+++ x", "@@ -1 +1 @@", "", "\\ x", "diff --git a/x b/x"]);
    (prop::collection::vec(line, 0..30), any::<bool>()).prop_map(|(lines, ended)| {
        let text = lines.join("\n");
        if ended && !text.is_empty() { text + "\n" } else { text }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn any_diff_leads_to_its_other_side(old in any_content(), new in any_content(), context in 0usize..5) {
        prop_assume!(old != new);
        let text = unified_hunks(&old, &new, context);
        let section = parse_one(&text);
        prop_assert_eq!(section.range.end, text.len());
        let after = apply_hunks(text.as_bytes(), section.hunks(), old.as_bytes());
        prop_assert_eq!(after.map(|bytes| String::from_utf8(bytes).expect("text")), Ok(new));
    }

    #[test]
    fn any_cut_is_refused_or_leads_elsewhere(old in any_content(), new in any_content(), cut in any::<prop::sample::Index>()) {
        prop_assume!(old != new);
        let text = unified_hunks(&old, &new, 3);
        let cut = &text.as_bytes()[..cut.index(text.len())];
        for section in parse_sections(cut, Strip::One).unwrap_or_default() {
            // What is taken stops before a whole hunk, or before the mark of a last line without an end.
            let rest = &text[section.range.end..];
            prop_assert!(rest.starts_with("@@ -") || rest.starts_with("\\ No"), "{:?} of {:?}", section.range, text);
        }
    }

    #[test]
    fn reading_never_panics(text in prop::collection::vec(prop::sample::select(vec![
        "diff --git a/x b/x\n", "--- a/x\n", "+++ b/x\n", "@@ -1 +1 @@\n", "@@ -0,0 +1,2 @@\n", "-a\n", "+b\n", " c\n", "\\ No\n", "\n",
        "GIT binary patch\n", "literal 5\n", "MzzzM\n", "index 0000..1111 100644\n", "rename from x\n", "rename to \"y\\\n", "new file mode 100644\n",
        "diff --git \"a", "similarity index 9%\n", "-- ", "@@ -18446744073709551615 +1 @@\n", "@@ -1,999999999 +1,999999999 @@\n",
    ]), 0..12)) {
        let text = text.concat();
        for strip in [Strip::One, Strip::None] {
            for section in parse_sections(text.as_bytes(), strip).unwrap_or_default() {
                drop(apply_hunks(text.as_bytes(), section.hunks(), b"a\nc\n"));
            }
        }
    }
}
