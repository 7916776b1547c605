use super::*;
use crate::domain::exact;
use proptest::prelude::*;

fn fails(text: &str) -> String {
    parse(text.as_bytes()).expect_err(text).message().to_owned()
}

const GOOD: &str =
    "diff --git a/x b/x\nindex 1234567..89abcde 100644\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n";

fn name(name: &str, prefixed: bool) -> Option<Name> {
    Some(Name { bytes: name.as_bytes().to_vec(), prefixed })
}

#[test]
fn names_are_told_from_whatever_tells_them() {
    let cases = [
        (
            "diff --git a/x b/y b/x b/y\nold mode 100644\nnew mode 100755\n",
            name("a/x b/y", true),
            name("b/x b/y", true),
        ),
        ("diff --git a/e f b/e f\nnew file mode 100644\nindex 0000000..e69de29\n", None, name("b/e f", true)),
        (
            "diff --git \"a/\\303\\244\" \"b/\\303\\244\"\nold mode 100644\nnew mode 100755\n",
            name("a/ä", true),
            name("b/ä", true),
        ),
        (
            "diff --git a/x b/y z\nsimilarity index 100%\nrename from x\nrename to y z\n",
            name("x", false),
            name("y z", false),
        ),
        ("diff --git a/x b/x\ndeleted file mode 100644\nindex e69de29..0000000\n", name("a/x", true), None),
        (
            "--- a/s p\t2020-01-01\n+++ b/s p\t2020-01-01\n@@ -1 +1 @@\n-a\n+b\n",
            name("a/s p", true),
            name("b/s p", true),
        ),
        ("--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+a\n", None, name("b/n", true)),
    ];
    for (text, old, new) in cases {
        let sections = parse(text.as_bytes()).expect(text);
        assert_eq!((&sections[0].old, &sections[0].new), (&old, &new), "{text}");
        assert_eq!(sections[0].range, 0..text.len());
    }
}

#[test]
fn damage_is_seen() {
    assert_eq!(parse(GOOD.as_bytes()).expect("good").len(), 1);
    for cut in 1..GOOD.len() {
        let text = &GOOD[..GOOD.len() - cut];
        parse(text.as_bytes()).expect_err(text);
    }
    assert!(fails("").contains("no change"));
    assert!(fails("just words\n").contains("no change"));
    assert!(fails(&GOOD.replace("-1,2", "-1,3")).contains("fewer"));
    assert!(fails(&GOOD.replace("-1,2 +1,2", "-1,1 +1,1")).contains("more lines"));
    assert!(fails(&GOOD.replace('\n', "\r\n")).contains("CRLF"));
    assert!(fails("@@ -1 +1 @@\n-a\n+b\n").contains("without the name"));
    let overlap = format!("{GOOD}@@ -2,1 +2,1 @@\n-x\n+y\n");
    assert!(fails(&overlap).contains("overlaps"));
    assert!(parse(format!("{GOOD}-- \n2.47.3\n\n").as_bytes()).is_ok());
    assert!(parse(GOOD.replace(" a\n", " a\r\n").as_bytes()).is_ok());
}

#[test]
fn a_hunk_must_stand_where_it_says() {
    let section = parse(GOOD.as_bytes()).expect("good").remove(0);
    assert_eq!(exact::apply("x", &section, b"a\nb\nz\n").expect("applies"), b"a\nc\nz\n");
    let moved = exact::apply("x", &section, b"new\na\nb\n").expect_err("an offset");
    assert!(moved.message().contains("stand at line 2, not at line 1"), "{moved}");
    assert_eq!(moved.details()["foundAt"], serde_json::json!([2]));
    exact::apply("x", &section, b"a\nB\n").expect_err("other lines");
    exact::apply("x", &section, b"a\nb").expect_err("no newline");
    let wrong = parse(GOOD.replace("+1,2", "+2,2").as_bytes()).expect("parses").remove(0);
    exact::apply("x", &wrong, b"a\nb\n").expect_err("the new position is wrong");
}

fn text() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "c", "-- ", "@@ -1 +1 @@", "", "d"]), 0..30)
        .prop_map(|lines| lines.into_iter().map(str::to_owned).collect())
}

proptest! {
    #[test]
    fn what_a_diff_writes_is_read_and_gives_the_new_text(old in text(), new in text(), ends in any::<(bool, bool)>()) {
        let join = |lines: &[String], newline: bool| {
            let mut text = lines.join("\n");
            if newline && !lines.is_empty() { text.push('\n'); }
            text
        };
        let (old, new) = (join(&old, ends.0), join(&new, ends.1));
        prop_assume!(old != new);
        let diff = similar::TextDiff::from_lines(&old, &new);
        let patch = diff.unified_diff().header("a/x", "b/x").to_string();
        let sections = parse(patch.as_bytes()).map_err(|f| TestCaseError::fail(format!("{f}: {patch}")))?;
        prop_assert_eq!(sections.len(), 1);
        let applied = exact::apply("x", &sections[0], old.as_bytes());
        let applied = applied.map_err(|f| TestCaseError::fail(format!("{f}: {patch}")))?;
        prop_assert_eq!(String::from_utf8_lossy(&applied), new);
    }
}
