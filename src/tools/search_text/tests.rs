//! The bounds of a search, each said by its answer.

#![expect(clippy::disallowed_methods, reason = "the tests write as anybody would")]

use super::*;
use crate::domain::value::digest::ObjectFormat;
use crate::domain::value::scope::Scope;
use crate::tools::list_files;
use std::cell::Cell;
use std::path::Path;

fn compile_regex(pattern: &str) -> Result<Regex> {
    SearchTextArguments { pattern: pattern.to_owned(), path: None }.compile_pattern()
}

fn repo_path(text: &str) -> RepoPath {
    RepoPath::new(text).expect("a path")
}

fn readable_place<'a>(top: &'a Path, read: Option<&'a Scope>) -> Place<'a> {
    Place { top, read, format: ObjectFormat::Sha1 }
}

fn search_matches(top: &Path, file: Option<&str>, pattern: &str) -> SearchTextAnswer {
    let file = file.map(repo_path);
    search_files(
        &readable_place(top, None),
        file.as_ref(),
        &compile_regex(pattern).expect("a pattern"),
        &|| Ok(()),
    )
    .expect("searches")
}

#[test]
fn a_pattern_is_bounded_and_never_told_at_length() {
    compile_regex(&"x".repeat(LONGEST_PATTERN)).expect("fits");
    compile_regex(
        r"(?i)(\w+\s*\([^)]*\)|\p{Greek}{1,20}|[a-z0-9._%+-]+@[a-z0-9.-]+\.[a-z]{2,}|\b\w{5,30}\b)",
    )
    .expect("usual");
    let long = compile_regex(&"x".repeat(1 << 20)).expect_err("too long");
    assert_eq!(long.details()["expected"], LONGEST_PATTERN);
    assert_eq!(long.details()["actual"], 1 << 20);
    let open = compile_regex(&format!("{}(", "x".repeat(3_000))).expect_err("open");
    assert!(open.message().ends_with("error: unclosed group"), "{open}");
    for failure in [long, open, compile_regex(r"(\w{900}){900}").expect_err("too large")] {
        assert_eq!((failure.code(), failure.subject_text()), (Code::ArgumentsInvalid, Some("pattern")));
        assert!(serde_json::to_vec(&failure).expect("json").len() < 2_000, "{failure}");
    }
    let short = compile_regex("a(b").expect_err("open");
    assert!(short.message().contains("a(b\n"), "the place at fault is shown: {short}");
}

#[test]
fn of_a_large_file_the_beginning_is_searched_and_the_answer_says_so() {
    let home = tempfile::tempdir().expect("a directory");
    // The bound goes through a character of the second line.
    let fill = "\u{20ac}".repeat(3 << 20);
    std::fs::write(home.path().join("big.log"), format!("n\u{e9}edle\n{fill}\nn\u{e9}edle\n"))
        .expect("written");
    let named = search_matches(home.path(), Some("big.log"), "n\u{e9}edle");
    let hit = SearchHit { path: "big.log".to_owned(), line: 1, text: "n\u{e9}edle".to_owned() };
    assert_eq!((named.hits, named.truncated, named.files, named.skipped), (vec![hit], true, 1, 0));
    let walked = search_matches(home.path(), None, "n\u{e9}edle");
    assert_eq!((walked.hits.len(), walked.files, walked.skipped), (0, 0, 1));
    std::fs::write(home.path().join("one.line"), &fill).expect("written");
    let line = search_matches(home.path(), Some("one.line"), ".");
    assert_eq!((line.hits.len(), line.truncated, line.files, line.skipped), (0, true, 0, 1));
    std::fs::write(home.path().join("small"), "needle\n").expect("written");
    let small = search_matches(home.path(), Some("small"), "needle");
    assert_eq!((small.hits.len(), small.truncated, small.files, small.skipped), (1, false, 1, 0));
}

#[test]
fn a_search_ends_once_nobody_wants_its_answer() {
    let home = tempfile::tempdir().expect("a directory");
    std::fs::write(home.path().join("long"), "a\n".repeat(3 << 20)).expect("written");
    for number in 0..20 {
        std::fs::write(home.path().join(number.to_string()), "a\n").expect("written");
    }
    let regex = compile_regex("b").expect("a pattern");
    let after = |file: Option<&str>, most: u32| {
        let asked = Cell::new(0);
        let wanted = || {
            asked.set(asked.get() + 1);
            if asked.get() > most { Err(Failure::new(Code::Cancelled, "called off")) } else { Ok(()) }
        };
        let (place, file) = (readable_place(home.path(), None), file.map(repo_path));
        (search_files(&place, file.as_ref(), &regex, &wanted).map(|answer| answer.files), asked.get())
    };
    for (file, most) in [(None, 5), (Some("long"), 3), (Some("long"), 0)] {
        let (ended, asked) = after(file, most);
        assert_eq!(ended.expect_err("called off").code(), Code::Cancelled);
        assert_eq!(asked, most + 1);
    }
    assert_eq!(after(None, 1_000).0.expect("searches"), 21);
}

#[test]
fn what_cannot_hold_anything_readable_is_not_entered_and_what_is_too_deep_is_counted() {
    let home = tempfile::tempdir().expect("a directory");
    let deep = format!("{}/", "d".repeat(200)).repeat(11);
    for folder in ["docs", "other"] {
        std::fs::create_dir_all(home.path().join(folder).join(&deep)).expect("made");
        std::fs::write(home.path().join(folder).join("a.md"), "a\n").expect("written");
    }
    let scope = Scope::new(vec!["docs/".to_owned()]).expect("a scope");
    let listed = list_files::list_folder(&readable_place(home.path(), Some(&scope)), None).expect("lists");
    assert_eq!((listed.total, listed.skipped, listed.truncated), (1, 1, false));
    let searched = search_files(
        &readable_place(home.path(), Some(&scope)),
        None,
        &compile_regex("a").expect("a pattern"),
        &|| Ok(()),
    )
    .expect("searches");
    assert_eq!((searched.files, searched.skipped), (1, 1));
    let whole = list_files::list_folder(&readable_place(home.path(), None), None).expect("lists");
    assert_eq!((whole.total, whole.skipped), (2, 2));
}
