//! Logs that real tools wrote (trimmed), logs of tools that were content, and logs that nobody wrote on
//! purpose.

use crate::domain::proof::run::{FirstError, Kind};
use crate::verifier::logs::*;

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
    let line = LogLines::new(log).nth(found.line as usize - 1).expect("the line is there");
    assert!(
        line.text.starts_with(['{', '[']) || found.text.contains(line.text.trim()),
        "{} is not at {line:?}",
        found.text
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

#[test]
fn libtest_shows_what_passed_too() {
    let log = "running 3 tests\ntest a ... ok\n\nsuccesses:\n\n---- a stdout ----\nplain words\nthread 'x' (1) panicked at src/old.rs:1:1:\nold\n\n\nsuccesses:\n    a\n\nfailures:\n\n---- c stdout ----\n\nthread 'c' (2) panicked at src/lib.rs:5:57:\nreal\n\n\nfailures:\n    c\n\ntest result: FAILED. 1 passed; 1 failed\n";
    let found = at(log.as_bytes(), Kind::Libtest, "src/lib.rs:5:57", &["thread 'c'", "real"]);
    assert_eq!(found.line, 19);
    let other = "successes:\nerror: they are not libtest's\n";
    at(other.as_bytes(), Kind::Plain, "", &["not libtest's"]);
    let next = "running 1 test\nsuccesses:\nerror: x\n\ntest result: ok. 1 passed\nerror: y\n";
    at(next.as_bytes(), Kind::Plain, "", &["y"]);
}

/// Without capturing, a panic stands where it happened, whether it was wanted or not.
#[test]
fn the_panic_of_the_test_that_failed_is_taken() {
    let log = "running 2 tests\ntest b - should panic ... \nthread 'b' (1) panicked at src/lib.rs:4:45:\nwanted\nok\ntest c ... \nthread 'c' (2) panicked at src/lib.rs:5:57:\nreal\nFAILED\n\nfailures:\n\nfailures:\n    c\n\ntest result: FAILED. 1 passed; 1 failed\n";
    let found = at(log.as_bytes(), Kind::Libtest, "src/lib.rs:5:57", &["real"]);
    assert_eq!((found.line, found.text.contains("FAILED")), (7, false));
    let nextest = "        PASS [   0.005s] (1/2) so t::b - should panic\n  stderr ───\n\n    thread 't::b' (1) panicked at src/lib.rs:4:45:\n    wanted\n    x.c:1:2: error: printed\n\n        FAIL [   0.005s] (2/2) so t::c\n  stderr ───\n\n    thread 't::c' (2) panicked at src/lib.rs:5:57:\n    real\n";
    at(nextest.as_bytes(), Kind::Libtest, "src/lib.rs:5:57", &["real"]);
    let over = "        PASS [   0.005s] so a\nerror: boom\n";
    at(over.as_bytes(), Kind::Plain, "", &["boom"]);
}

#[test]
fn an_example_that_does_not_compile_has_its_place() {
    let log = "running 1 test\ntest src/lib.rs - f (line 1) ... FAILED\n\nfailures:\n\n---- src/lib.rs - f (line 1) stdout ----\nerror[E0308]: mismatched types\n --> src/lib.rs:2:14\n  |\n2 | let x: i32 = \"s\";\n\nfailures:\n    src/lib.rs - f (line 1)\n";
    at(log.as_bytes(), Kind::Rustc, "src/lib.rs:2:14", &["- f (line 1)", "E0308"]);
}

#[test]
fn an_error_without_a_place_says_why() {
    let cargo = "error: failed to parse manifest at `/w/Cargo.toml`\n\nCaused by:\n  no targets specified\n\nerror: other\n";
    let found = at(cargo.as_bytes(), Kind::Plain, "", &["Caused by:", "no targets specified"]);
    assert!(!found.text.contains("other"), "{}", found.text);
    let noted =
        "error: no such thing `x`\nlocation searched: index\nrequired by package `y`\nAs a reminder\n";
    let found = at(noted.as_bytes(), Kind::Plain, "", &["required by package"]);
    assert!(!found.text.contains("reminder"), "{}", found.text);
    let linked = "error: linking with `cc` failed: exit status: 1\n  |\n  = note:  \"cc\" \"-m64\" \"x.o\"\n  = note: some arguments are omitted\n  = note: rust-lld: error: undefined symbol: none_such\n          >>> referenced by main.rs:2 (src/main.rs:2)\n          collect2: error: ld returned 1 exit status\n\nerror: could not compile `lk` (bin \"lk\")\n";
    let found = at(linked.as_bytes(), Kind::Linker, "src/main.rs:2", &["linking with", "none_such"]);
    assert!(!found.text.contains("-m64") && !found.text.contains("collect2"), "{}", found.text);
    at(
        b"src/x.rs:1:5: warning: unused\nsrc/lib.rs:2:37: error[E0308]: mismatched types\n",
        Kind::Rustc,
        "src/lib.rs:2:37",
        &["mismatched"],
    );
}

#[test]
fn pytest_has_other_forms() {
    let diff = "=== FAILURES ===\n___ test_diff ___\n\n>       assert a == b\nE       AssertionError: assert 'x' == 'y'\nE         \nE         - y\nE         + x\n\ntest_d.py:3: AssertionError\n";
    at(diff.as_bytes(), Kind::Pytest, "test_d.py:3", &["assert a == b", "- y"]);
    let long = format!(
        "=== FAILURES ===\nE   AssertionError: x\n{}\n\ntest_d.py:3: AssertionError\n",
        "E     - line\n".repeat(60)
    );
    at(long.as_bytes(), Kind::Pytest, "test_d.py:3", &["AssertionError"]);
    let line = "=== FAILURES ===\nE   AssertionError: sum\n    assert 1 == 5\n---- Captured log call ----\nERROR    root:test_a.py:6 error: retrying\n/w/test_a.py:9: AssertionError: sum\nE   ValueError: second\n/w/test_a.py:11: ValueError: second\n";
    at(line.as_bytes(), Kind::Pytest, "/w/test_a.py:9", &["sum"]);
    let conftest = "ImportError while loading conftest '/w/conftest.py'.\nconftest.py:1: in <module>\n    import none_such\nE   ModuleNotFoundError: No module named 'none_such'\n";
    at(conftest.as_bytes(), Kind::Pytest, "conftest.py:1", &["none_such"]);
    let usage =
        "ERROR: usage: python -m pytest [options]\npython -m pytest: error: unrecognized arguments: --x\n";
    at(usage.as_bytes(), Kind::Plain, "", &["unrecognized"]);
    let native = "=== FAILURES ===\n___ t ___\nTraceback (most recent call last):\n  File \"/v/lib/python3.11/site-packages/p.py\", line 1, in f\n  File \"/w/test_a.py\", line 9, in t\n    assert 0\nAssertionError\n";
    at(native.as_bytes(), Kind::Pytest, "/w/test_a.py:9", &["assert 0"]);
}

#[test]
fn of_other_python() {
    let handled = "ERROR:root:handled\nTraceback (most recent call last):\n  File \"/w/test_a.py\", line 4, in test_a\n    int(\"x\")\nValueError: x\n.F\n=====\nFAIL: test_b (test_a.T.test_b)\n----------------------------------------------------------------------\nTraceback (most recent call last):\n  File \"/w/test_a.py\", line 6, in test_b\n    self.assertEqual([1], [2])\nAssertionError: Lists differ: [1] != [2]\n";
    at(handled.as_bytes(), Kind::Unittest, "/w/test_a.py:6", &["FAIL: test_b", "Lists differ"]);
    let unread = "  File \"/w/s.py\", line 3\n    def f(:\n          ^\nSyntaxError: invalid syntax\n";
    at(unread.as_bytes(), Kind::Python, "/w/s.py:3", &["def f(:", "SyntaxError"]);
}

#[test]
fn of_other_scripts() {
    let jest = "FAIL ./e.test.js\n  ● Test suite failed to run\n\n    Jest encountered an unexpected token\n\n    Here is advice:\n     • one\n     • two\n     • three\n     • four\n     • five\n     • six\n\n    Details:\n\n    SyntaxError: /w/e.test.js: Unexpected token (1:22)\n\n    > 1 | const = 3\n\n      at constructor (../node_modules/@babel/parser/src/x.ts:96:45)\n";
    at(jest.as_bytes(), Kind::Jest, "/w/e.test.js:1:22", &["failed to run", "Unexpected token", "const = 3"]);
    let mocha = "  error module\nError: printed by one that passes\n    ✔ error: fine\n    1) adds\n\n  1 passing (9ms)\n  2 failing\n\n  1) error module\n       adds:\n     AssertionError: -1 !== 5\n      at x (node_modules/y.js:1:1)\n      at Context.<anonymous> (a.js:4:28)\n\n  2) error module\n       throws:\n     TypeError: kaboom\n      at Context.<anonymous> (a.js:5:27)\n";
    let found = at(mocha.as_bytes(), Kind::Mocha, "a.js:4:28", &["adds", "-1 !== 5"]);
    assert!(!found.text.contains("kaboom"), "{}", found.text);
    let tap = "TAP version 13\n# Error: printed\nok 1 - error\nnot ok 2 - later # TODO not yet\n# Subtest: adds\nnot ok 3 - adds\n  ---\n  location: '/w/a.test.js:3:1'\n  error: |-\n    Expected:\n    \n    -1 !== 5\n    \n  code: 'ERR_ASSERTION'\n  stack: |-\n    x (/w/a.test.js:3:28)\n  ...\n";
    let found = at(tap.as_bytes(), Kind::Tap, "/w/a.test.js:3:1", &["3 - adds", "-1 !== 5"]);
    assert!(!found.text.contains("ERR_ASSERTION"), "{}", found.text);
    let spec = "✖ adds (1ms)\n✖ failing tests:\n\ntest at a.test.js:3:1\n✖ adds (1ms)\n  AssertionError: -1 !== 5\n      at x (/w/a.test.js:3:28)\n";
    at(spec.as_bytes(), Kind::Node, "a.test.js:3:1", &["-1 !== 5"]);
    let node = "/w/x.js:3\n  null.y\n       ^\n\nTypeError: Cannot read properties of null\n    at f (/w/x.js:3:8)\n    at Module._compile (node:internal/x:1521:14)\n\nNode.js v20\n";
    at(node.as_bytes(), Kind::Node, "/w/x.js:3:8", &["null.y", "TypeError"]);
    let missing = "node:internal/modules/cjs/loader:1210\n  throw err;\n  ^\n\nError: Cannot find module './none'\nRequire stack:\n- /w/n.js\n    at f (node:internal/x:1:1)\n    at Object.<anonymous> (/w/n.js:1:1)\n";
    at(missing.as_bytes(), Kind::Node, "/w/n.js:1:1", &["Cannot find module"]);
}

#[test]
fn go_tests_at_the_same_time_keep_what_they_say_apart() {
    let run = "=== RUN   TestA\n=== PAUSE TestA\n=== RUN   TestB\n=== PAUSE TestB\n=== CONT  TestA\n=== CONT  TestB\n    a_test.go:6: B fails\n        want 1\n=== CONT  TestA\n    a_test.go:5: A log\n--- PASS: TestA (0.10s)\n--- FAIL: TestB (0.21s)\nFAIL\n";
    let found = at(run.as_bytes(), Kind::GoTest, "a_test.go:6", &["TestB", "B fails", "want 1"]);
    assert!(!found.text.contains("A log"), "{}", found.text);
    let event = |package: &str, test: &str, text: &str| {
        format!(
            "{{\"Action\":\"output\",\"Package\":\"{package}\",\"Test\":\"{test}\",\"Output\":\"{text}\\n\"}}\n"
        )
    };
    let json = [
        event("p", "TestB", "    a_test.go:6: B fails"),
        event("q", "TestB", "    q_test.go:9: of a namesake"),
        event("p", "TestA", "    a_test.go:5: A log"),
        event("p", "TestB", "--- FAIL: TestB (0.21s)"),
        event("q", "TestC", "    q_test.go:8: elsewhere"),
    ];
    at(json.concat().as_bytes(), Kind::GoTest, "a_test.go:6", &["B fails"]);
}

#[test]
fn what_go_tests_print_is_theirs() {
    let lint = "=== RUN   TestLint\nx.go:3:4: undefined: foo\nx.c:1:2: error: printed\n--- PASS: TestLint (0.00s)\nPASS\nok  \tex/b\t0.003s\n=== RUN   TestBad\n    c_test.go:8: bad\n--- FAIL: TestBad (0.00s)\n";
    at(lint.as_bytes(), Kind::GoTest, "c_test.go:8", &["bad"]);
    let (passed, _) = lint.split_once("=== RUN   TestBad").expect("two tests");
    assert_eq!(find(passed.as_bytes()).map(|found| found.kind), Some(Kind::Tail));
    let after = format!("{passed}x.go:3:4: undefined: foo\n");
    at(after.as_bytes(), Kind::Go, "x.go:3:4", &["undefined"]);
    let other = "=== RUN   lint\nx.c:1:2: error: of another tool\n";
    at(other.as_bytes(), Kind::Compiler, "x.c:1:2", &["another tool"]);
    let exits = "=== RUN   TestExit\nno server\nFAIL\tex/b\t0.003s\n";
    at(exits.as_bytes(), Kind::GoTest, "", &["no server"]);
}

#[test]
fn go_frames_are_of_the_program() {
    let late = "panic: test timed out after 1s\n\ngoroutine 17 [running]:\ntesting.(*M).startAlarm.func1()\n\t/opt/go/src/testing/testing.go:2036 +0x8e\ncreated by time.goFunc\n\t/opt/go/src/time/sleep.go:176 +0x32\n\ngoroutine 1 [chan receive]:\nmain.main()\n\t_testmain.go:47 +0x1aa\n\ngoroutine 5 [select]:\nex.pump()\n\t/w/pump.go:9 +0x1\n\ngoroutine 6 [sleep]:\ntime.Sleep(0x12a05f200)\n\t/opt/go/src/runtime/time.go:195 +0x135\nex.TestSlow(0x0?)\n\t/w/a_test.go:5 +0x25\n";
    at(late.as_bytes(), Kind::GoTest, "/w/a_test.go:5", &["timed out"]);
    let library = "panic: boom\n\ngoroutine 1 [running]:\nx.F()\n\t/root/go/pkg/mod/x@v1/x.go:3 +0x1\nmain.main()\n\t/w/main.go:4 +0x1\n";
    at(library.as_bytes(), Kind::GoTest, "/w/main.go:4", &["boom"]);
    let race = "=== RUN   TestR\n==================\nWARNING: DATA RACE\nWrite at 0x00c0 by goroutine 8:\n  runtime.racewrite()\n      /opt/go/src/runtime/race.go:7 +0x30\n  ex.TestR.func1()\n      /w/r_test.go:7 +0x30\n==================\n--- FAIL: TestR (0.00s)\n    testing.go:1319: race detected during execution of test\n";
    at(race.as_bytes(), Kind::GoTest, "/w/r_test.go:7", &["DATA RACE"]);
    let build =
        r#"{"ImportPath":"e [e.test]","Action":"build-output","Output":"./a_test.go:5:28: undefined: X\n"}"#;
    let found = at(build.as_bytes(), Kind::Go, "./a_test.go:5:28", &["undefined: X"]);
    assert!(!found.text.contains("build-output"), "{}", found.text);
}

#[test]
fn of_linkers_and_prefixes() {
    let lib = b"/usr/bin/ld: warning: creating DT_TEXTREL\n/usr/bin/ld: cannot find -lnone: No such file or directory\ncollect2: error: ld returned 1 exit status\n";
    at(lib, Kind::Linker, "", &["cannot find -lnone"]);
    let symbol = b"/usr/bin/ld: l1.cpp:(.text+0x1b): undefined reference to `A::g()'\n";
    at(symbol, Kind::Linker, "l1.cpp", &["A::g()"]);
    at(b"vet: ./main.go:9:14: cannot use \"s\"\n", Kind::Go, "./main.go:9:14", &["cannot use"]);
    let script =
        "warning: cw@0.1.0: src/x.c:3:1: error: expected ‘;’\nerror: failed to run custom build command\n";
    at(script.as_bytes(), Kind::Compiler, "src/x.c:3:1", &["expected"]);
    at(b"web:build: src/a.ts(2,40): error TS2322: Type x\n", Kind::Tsc, "src/a.ts:2:40", &["TS2322"]);
}

#[test]
fn of_linters() {
    let eslint = "\n/w/a.js\n  1:5   warning  'error' is never used  no-unused-vars\n  2:5   error    'foo' is not defined   no-undef\n\n✖ 2 problems (1 error, 1 warning)\n";
    at(eslint.as_bytes(), Kind::Linter, "/w/a.js:2:5", &["/w/a.js", "'foo' is not defined"]);
    let flake8 = "./m.py:1:1: F401 'os' imported but unused\n./m.py:2:1: E302 expected 2 blank lines\n";
    at(flake8.as_bytes(), Kind::Linter, "./m.py:1:1", &["F401"]);
    let pylint = "m.py:1:0: C0114: Missing module docstring\nm.py:3:4: E0602: Undefined variable 'x'\n";
    at(pylint.as_bytes(), Kind::Linter, "m.py:3:4", &["E0602"]);
    let ruff = "F401 [*] `os` imported but unused\n --> m.py:1:8\n  |\n1 | import os\n  |        ^^\n\nFound 1 error.\n";
    at(ruff.as_bytes(), Kind::Linter, "m.py:1:8", &["F401", "import os"]);
    let note = b"::warning file=a.js,line=1::w\n::error file=src/b.js,line=4,col=2::Missing semicolon\n";
    at(note, Kind::Linter, "src/b.js:4:2", &["Missing semicolon"]);
    for log in ["12:30:45: ERR001 x\n", "note: x\n --> a.rs:1:2\n", "warning: x\n --> a.rs:1:2\n"] {
        assert_eq!(find(log.as_bytes()).map(|found| found.kind), Some(Kind::Tail), "{log}");
    }
}

#[test]
fn of_reports_in_json() {
    let eslint = br#"[{"filePath":"/w/a.js","messages":[{"ruleId":"no-unused-vars","severity":1,"message":"'e' is never used.","line":1,"column":5},{"ruleId":"no-undef","severity":2,"message":"'foo' is not defined.","line":2,"column":5}]}]"#;
    at(eslint, Kind::Json, "/w/a.js:2:5", &["'foo' is not defined.", "no-undef"]);
    let ruff = b"Checking\n[\n  {\n    \"code\": \"F401\",\n    \"fix\": {\"message\": \"Remove it\"},\n    \"filename\": \"/w/m.py\",\n    \"location\": {\n      \"column\": 8,\n      \"row\": 1\n    },\n    \"message\": \"`os` imported but unused\"\n  }\n]\nerror: after it\n";
    let found = at(ruff, Kind::Json, "/w/m.py:1:8", &["`os` imported but unused", "F401"]);
    assert_eq!(found.line, 2);
    let gcc = br#"[{"kind": "warning", "locations": [{"caret": {"line": 5, "file": "e.c", "column": 15}}], "message": "w"}, {"kind": "error", "locations": [{"caret": {"line": 7, "file": "e.c", "column": 12}}], "message": "'bar' undeclared"}]"#;
    at(gcc, Kind::Json, "e.c:7:12", &["'bar' undeclared"]);
    let jest = br#"{"success":false,"testResults":[{"name":"/w/a.test.js","status":"failed","assertionResults":[{"status":"passed","fullName":"ok","failureMessages":[]},{"status":"failed","fullName":"adds","failureMessages":["Error: expected\n\nExpected: 5\n    at x (/w/node_modules/y.js:1:1)\n    at Object.toBe (/w/a.test.js:3:39)"]}]}]}"#;
    at(jest, Kind::Jest, "/w/a.test.js:3:39", &["adds", "Expected: 5"]);
    let mocha = b"{\n  \"stats\": {},\n  \"failures\": [{\"fullTitle\": \"m adds\", \"file\": \"/w/a.js\", \"err\": {\"message\": \"-1\", \"stack\": \"Error: -1\\n    at Context.<anonymous> (a.js:4:28)\"}}]\n}\n";
    at(mocha, Kind::Mocha, "a.js:4:28", &["m adds"]);
    let errors = br#"{"errors":[{"message":"bad","path":"a.yml","line":3,"column":4}]}"#;
    at(errors, Kind::Json, "a.yml:3:4", &["bad"]);
    at(br#"{"error":{"message":"no such key"}}"#, Kind::Json, "", &["no such key"]);
    at(br#"{"error":"no such key"}"#, Kind::Json, "", &["no such key"]);
    at(
        br#"{"file":"n.py","line":1,"column":9,"message":"m","severity":"error"}"#,
        Kind::Json,
        "n.py:1:9",
        &["m"],
    );
    let behind = b"[\n  1\n]\n[12:30] up\nx.c:1:2: error: y\n";
    assert_eq!(at(behind, Kind::Compiler, "x.c:1:2", &["y"]).line, 5);
    for log in [
        r#"{"level":"info","msg":"up","file":"x.go","line":3}"#,
        r#"[{"filePath":"/w/a.js","messages":[{"severity":1,"message":"w","line":1,"column":5}]}]"#,
        r#"{"errors":[],"error":null,"message":"error: none"}"#,
        r#"{"testResults":[{"status":"passed","assertionResults":[]}]}"#,
    ] {
        assert_eq!(find(log.as_bytes()).map(|found| found.kind), Some(Kind::Tail), "{log}");
    }
}

#[test]
fn a_log_may_be_written_otherwise() {
    let text = "main.c:1:2: error: x é\n";
    let little: Vec<u8> =
        [0xff, 0xfe].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let big: Vec<u8> =
        [0xfe, 0xff].into_iter().chain(text.encode_utf16().flat_map(u16::to_be_bytes)).collect();
    let marked: Vec<u8> = [0xef, 0xbb, 0xbf].into_iter().chain(text.bytes()).collect();
    for log in [little, big, marked] {
        let found = find(&log).expect("found");
        assert_eq!((found.path.as_deref(), found.text.as_str()), (Some("main.c"), text.trim_end()));
    }
}

#[test]
fn a_count_of_none_is_no_failure() {
    for (text, failure) in [("10 failed", true), ("0 failed, 3 passed", false), ("failed: 0 errors", false)] {
        assert_eq!(counts_none(text), !failure, "{text}");
    }
    assert_eq!(find(b"failed 10 of 20\n10 failed\n").map(|found| found.kind), Some(Kind::Plain));
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
        "a:1\n",
        "a:1\n^\n",
        "FAIL x\ny\n",
        "not ok 1\n",
        "test at a:1:1\n",
        "[1,\n",
        "[\n",
        "{\"a\":[\n",
        "thread 'a' panicked at a:1:2:\n",
        "=== RUN Testa\nx\n",
        "error: x\n y\n\n",
    ] {
        let log = line.repeat((1 << 16) / line.len());
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
    "[{\"message\":\"m\",\"file\":\"f\",\"line\":1}",
    "]\n",
    "running 1 test\n",
    "successes:\n",
    "failures:\n",
    "    a\n",
    "  PASS [ 0.1s] x\n",
    "not ok 1 - x\n",
    "  1 failing\n",
    "  1) x\n",
    "a.js:1\n",
    "  ^\n",
    "TypeError: x\n",
    "=== RUN   T\n",
    "WARNING: DATA RACE\n",
    "      /a.go:3 +0x1\n",
    "FAIL: t\n",
    "----------------------\n",
    "error: linking with x\n",
    "F401 x\n",
    "  1:2 error x\n",
    "Details:\n",
    "SyntaxError: a: x (1:2)\n",
    "\"}\n",
    "\n",
    "\u{1b}[",
    "\r",
    ":",
    "é",
];
