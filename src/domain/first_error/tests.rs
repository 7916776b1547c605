//! Logs that real tools wrote (trimmed), logs of tools that were content, and logs that nobody wrote on purpose.

use super::*;

macro_rules! log {
    ($name:literal) => {
        include_bytes!(concat!("logs/", $name, ".log"))
    };
}

#[track_caller]
fn at(log: &[u8], kind: Kind, place: &str, words: &[&str]) -> FirstError {
    let found = find(log).expect("something is found");
    assert_eq!(found.kind, kind, "{found:#?}");
    let number = |number: Option<u32>| number.map(|number| format!(":{number}")).unwrap_or_default();
    let shown = found.path.clone().unwrap_or_default() + &number(found.row) + &number(found.column);
    assert_eq!(shown, place, "{found:#?}");
    for word in words {
        assert!(found.text.contains(word), "{word} is missing: {}", found.text);
    }
    assert!(found.text.lines().count() <= LINES && !found.text.contains('\u{1b}'), "{}", found.text);
    let line = Lines::new(log).nth(found.line as usize - 1).expect("the line is there");
    let first = found.text.lines().next().expect("a line").trim().to_owned();
    assert!(
        found.text.contains(line.text.trim().split('\n').next().expect("text"))
            || line.text.contains("rendered")
            || found.kind == Kind::Pytest,
        "{first} at {line:?}"
    );
    found
}

#[test]
fn of_rust() {
    at(log!("rustc"), Kind::Rustc, "bad.rs:4:20", &["error[E0425]", "cannot find value `y`"]);
    at(log!("cargo_build"), Kind::Rustc, "src/lib.rs:1:59", &["error[E0277]"]);
    at(log!("cargo_json"), Kind::Rustc, "src/lib.rs:1:59", &["error[E0277]", "cannot add"]);
    let found =
        at(log!("cargo_test"), Kind::Libtest, "src/lib.rs:5:51", &["tests::adds", "sum is off", "right: 3"]);
    assert!(!found.text.contains("backtrace"), "{}", found.text);
    let returned =
        b"failures:\n\n---- tests::reads stdout ----\nError: \"no file\"\n\n\nfailures:\n    tests::reads\n";
    at(returned, Kind::Libtest, "", &["tests::reads", "no file"]);
    let old = b"thread 'main' panicked at 'no way', src/main.rs:3:5\nnote: run with\n";
    at(old, Kind::Libtest, "src/main.rs:3:5", &["no way"]);
    let event = br#"{"type":"test","event":"failed","name":"a","stdout":"\nthread 'a' (1) panicked at src/x.rs:2:3:\nboom\n"}"#;
    at(event, Kind::Libtest, "src/x.rs:2:3", &["boom"]);
}

#[test]
fn of_python() {
    at(log!("pytest"), Kind::Pytest, "test_a.py:6", &["assert total == 4", "AssertionError: sum is off"]);
    at(log!("pytest_short"), Kind::Pytest, "test_a.py:6", &["sum is off"]);
    at(log!("pytest_no"), Kind::Pytest, "test_a.py", &["test_total", "sum is off"]);
    at(log!("pytest_collect"), Kind::Pytest, "test_b.py:1", &["No module named 'nothing_here'"]);
    at(log!("pytest_syntax"), Kind::Pytest, "/app/test_c.py:1", &["SyntaxError: invalid syntax"]);
    at(log!("traceback"), Kind::Python, "/app/helper.py:4", &["ValueError: no such thing"]);
}

#[test]
fn of_scripts() {
    at(log!("tsc"), Kind::Tsc, "a.ts:1:7", &["TS2322"]);
    at(log!("tsc_pretty"), Kind::Tsc, "a.ts:1:7", &["TS2322"]);
    at(log!("jest"), Kind::Jest, "sum.test.js:5:23", &["sums › adds", "Expected: 4"]);
    at(log!("vitest"), Kind::Vitest, "v/b.spec.mjs:4:17", &["adds", "expected 3 to be 4"]);
}

#[test]
fn of_go() {
    at(log!("go_build"), Kind::Go, "./b.go:2:23", &["undefined: undefinedThing"]);
    for log in [&log!("go_test")[..], log!("go_test_v"), log!("go_test_json")] {
        at(log, Kind::GoTest, "a_test.go:6", &["TestAdd", "want 3"]);
    }
    at(log!("go_panic"), Kind::GoTest, "a_test.go:6", &["TestAdd"]);
    let (_, panic) =
        std::str::from_utf8(log!("go_panic")).expect("text").split_once("want 3\n").expect("two failures");
    at(panic.as_bytes(), Kind::GoTest, "/app/a.go:3", &["TestBoom", "assignment to entry in nil map"]);
}

#[test]
fn of_compilers() {
    at(log!("gcc"), Kind::Compiler, "bad.c:2:36", &["expected ‘;’"]);
    at(log!("ld"), Kind::Linker, "und.c", &["undefined reference to `missing'"]);
    let fatal = b"In file included from a.c:1:\nb.h:3:10: fatal error: none.h: No such file or directory\n    3 | #include <none.h>\n      |          ^\ncompilation terminated.\n";
    at(fatal, Kind::Compiler, "b.h:3:10", &["none.h"]);
}

#[test]
fn of_anything_else() {
    let cargo = b"    Updating index\nerror: failed to parse manifest at `/x/Cargo.toml`\n\nCaused by:\n  no targets\n";
    at(cargo, Kind::Plain, "", &["failed to parse manifest"]);
    let make = b"cc -c a.c\nError: the moon is down\nmake: *** [all] Error 1\n";
    assert_eq!(find(make).expect("found").line, 2);
    let logged = b"{\"level\":\"info\",\"msg\":\"up\"}\n{\"level\":\"error\",\"msg\":\"down\"}\n";
    at(logged, Kind::Plain, "", &["down"]);
    assert_eq!(
        find(b"one\n\ntwo\nthree\n").map(|found| (found.kind, found.text, found.line)),
        Some((Kind::Tail, "one\ntwo\nthree".to_owned(), 1))
    );
    let many: String = (0..100).map(|number| format!("line {number}\n")).collect();
    assert_eq!(find(many.as_bytes()).map(|found| found.line), Some(89));
    assert_eq!(find(b""), None);
    assert_eq!(find(b"\n  \r\n\x1b[0m\n"), None);
}

/// A failure that says nothing of itself must not be blamed on somebody who only spoke of errors.
#[test]
fn a_log_that_speaks_of_errors_has_none() {
    for log in [
        "test tests::error_is_shown ... ok\ntest result: ok. 5 passed; 0 failed; 0 ignored\n",
        "running error tests\n=== RUN   TestFine\n    a_test.go:3: error: expected\n--- PASS: TestFine (0.00s)\nPASS\n",
        "Found 0 errors. Watching for file changes.\n",
        "0 errors, 0 warnings\nDone in 0.3s\n",
        "src/error.rs compiled\nerrors are handled\nthe word error: in the middle\n",
        "warning: unused variable: `error`\n --> src/lib.rs:1:5\n  |\n1 | let error = 1;\n",
        "E       not in pytest\n> neither\n",
        "12:30:45: all fine\n[12:30:45] ok\n",
        "error: could not compile `demo` (lib) due to 1 previous error\n",
    ] {
        assert_eq!(find(log.as_bytes()).map(|found| found.kind), Some(Kind::Tail), "{log}");
    }
}

#[test]
fn what_is_sure_wins_over_what_came_before() {
    let log = b"error: expected by the test\nTraceback (most recent call last):\n  File \"a.py\", line 1, in f\nOops: handled\nx.c:1:2: error: this one\n";
    assert_eq!(find(log).map(|found| (found.kind, found.line)), Some((Kind::Compiler, 5)));
    let caught = "thread 'x' (1) panicked at src/a.rs:1:1:\ncaught\n\n---- y stdout ----\n\nthread 'y' (2) panicked at src/b.rs:2:2:\nreal\n\nfailures:\n";
    assert_eq!(find(caught.as_bytes()).and_then(|found| found.row), Some(2));
}

/// Every line makes a reader look ahead, and none is content.
#[test]
fn a_huge_log_takes_no_more_than_its_size() {
    for line in [
        "error: x\n",
        "---- a stdout ----\n",
        "FAIL x\n",
        "panic: x\n",
        "Traceback (most recent call last):\n",
        "--- FAIL: T\n",
        "● x\n",
        "a:b:c:d:e:f:g:1\n",
        "{\"Output\":1}\n",
        "\x1b[1m\x1b[2m\r",
    ] {
        let log = line.repeat((2 << 20) / line.len());
        assert!(find(log.as_bytes()).is_some() || line.contains('\r'), "{line}");
    }
}

proptest::proptest! {
    #[test]
    fn nothing_breaks_it(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..2000)) {
        let _ = find(&bytes);
    }

    #[test]
    fn mixtures_of_what_readers_know_do_not_break_it(parts in proptest::collection::vec(0..PARTS.len(), 0..40)) {
        let log: String = parts.into_iter().map(|part| PARTS[part]).collect();
        if let Some(found) = find(log.as_bytes()) {
            proptest::prop_assert!(found.text.lines().count() <= LINES);
        }
    }
}

const PARTS: &[&str] = &[
    "error: ",
    "error[E1]: x\n",
    " --> a.rs:1:2\n",
    "---- a stdout ----\n",
    "thread 'a' panicked at ",
    "a:1:2:\n",
    "=== FAILURES ===\n",
    "E   x\n",
    "> y\n",
    "a.py:3: in f\n",
    "FAILED a.py::b\n",
    "Traceback (most recent call last):\n",
    "  File \"",
    "\", line ",
    "4\n",
    "FAIL ",
    "❯ a:1:2\n",
    "● x\n",
    "at f (a:1:2)\n",
    "a(1,2): error TS1: x\n",
    "--- FAIL: T\n",
    "panic: x\n",
    "goroutine 1\n",
    "\t/a.go:3 +0x1\n",
    "    a_test.go:6: x\n",
    "{\"Action\":\"output\",\"Output\":\"",
    "\"}\n",
    "\n",
    "\u{1b}[",
    "\r",
    ":",
    "é",
];
