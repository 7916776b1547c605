//! Result formats as the real tools write them in a slot: what each kind of run amounts to, in counts and in
//! cases by name.

use crate::support::verifier::Counts;
use crate::support::{Answer, Contract, Lab, Repo, Verifier};
use serde_json::{Value, json};

/// A tool that writes results, in a repository where its verifier passes.
struct Tool<'l> {
    repo: Repo<'l>,
    tasks: std::cell::Cell<usize>,
}

impl<'l> Tool<'l> {
    /// `output` is the entry in `outputs` without its braces; `command` may hold `{out}`.
    fn new(lab: &'l Lab, files: &[(&str, &str)], command: &[&str], output: &str) -> Self {
        let repo = lab.repo("app");
        for (path, text) in files {
            repo.write(path, text);
        }
        let verifier = Verifier::new("unit").counts(Counts::Nothing).inputs(&["**"]);
        let output = format!("outputs = [{{ {output}, required = true }}]");
        let command = format!("command = {command:?}");
        verifier.key(&command).key(&output).key("base = \"always\"").commit(&repo);
        Self { repo, tasks: std::cell::Cell::new(0) }
    }

    /// What `verify` says of a candidate with these files.
    #[track_caller]
    fn says(&self, files: &[(&str, &str)], verdict: &str, reason: &str) -> Answer {
        self.tasks.set(self.tasks.get() + 1);
        let id = format!("t{}", self.tasks.get());
        self.repo.submitted(&Contract::new(&id).allowed(&["unit"]), |task| {
            task.write("docs/a.md", format!("{id}\n"));
            files.iter().for_each(|(path, text)| task.write(path, text));
        });
        let answer = self.repo.json(&["verify", &id]);
        assert_eq!(answer.verdict("unit"), verdict, "{:#}", answer.json);
        let said = answer.row("unit")["reason"].as_str().unwrap_or_default();
        assert!(said.contains(reason), "{said}");
        answer
    }
}

/// Passed, failed and skipped cases.
fn counts(answer: &Answer) -> Value {
    let checks = &answer.row("unit")["checks"];
    json!([checks["passed"], checks["failed"], checks["skipped"]])
}

const SUM: &str = "exports.add = (a, b) => a + b;\n";
const SUM_TEST: &str = "const test = require('node:test'), assert = require('node:assert'), { add } = require('../src/sum.js');\n\
    test('adds', () => assert.equal(add(1, 2), 3));\n\
    test('group', async (t) => { await t.test('inner', () => assert.equal(add(0, 0), 0)); });\n";

#[test]
fn nodes_own_runner_in_both_of_its_formats() {
    let junit = ["node", "--test", "--test-reporter=junit", "--test-reporter-destination={out}/r", "test/"];
    let tap = ["node", "--test", "--test-reporter=tap", "test/"];
    let formats = [(&junit[..], "path = \"{out}/r\", format = \"junit\""), (&tap[..], "format = \"tap\"")];
    for (command, output) in formats {
        let lab = Lab::new();
        if !lab.has_tool("node", "--test") {
            return;
        }
        let files = [("src/sum.js", SUM), ("test/sum.test.js", SUM_TEST)];
        let node = Tool::new(&lab, &files, command, output);
        assert_eq!(counts(&node.says(&[], "passed", "")), json!([2, 0, 0]), "{output}");
        let broken = node.says(&[("src/sum.js", "exports.add = (a, b) => a - b;\n")], "failed", "1 failed: ");
        assert_eq!(counts(&broken), json!([1, 1, 0]), "{output}");
        assert_eq!(broken.row("unit")["cases"]["broken"]["count"], 1, "{:#}", broken.json);
        // A source that ends its judge, and a file that cannot be loaded.
        let ended = node.says(&[("src/sum.js", "process.exit(0);\n")], "not_run", "no checks ran");
        assert_eq!(counts(&ended), json!([0, 0, 0]), "{output}");
        node.says(&[("src/sum.js", "throw new Error('no');\n")], "failed", "sum.test.js");
        // `todo` may fail, and is no pass.
        let later = format!("{SUM_TEST}test('later', {{ todo: true }}, () => assert.fail());\n");
        let later = node.says(&[("test/sum.test.js", &later)], "passed", "");
        assert_eq!(counts(&later), json!([2, 0, 1]), "{output}");
        // An empty file beside the others is no case.
        let empty = node.says(&[("test/empty.test.js", "")], "passed", "");
        assert_eq!(counts(&empty), json!([2, 0, 0]), "{output}");
        assert_eq!(empty.row("unit")["cases"]["new"]["count"], 0, "{output}");
    }
}

#[test]
fn perls_tests_write_tap() {
    let lab = Lab::new();
    if !lab.has_tool("perl", "-MTest::More") {
        return;
    }
    let test = "use Test::More tests => 2; use lib 'lib'; use_ok('M'); is(M::f(), 1, 'f is one');\n";
    let module = |body: &str| format!("package M; sub f {{ {body} }} 1;\n");
    let files = [("lib/M.pm", &*module("1")), ("t/m.t", test)];
    let perl = Tool::new(&lab, &files, &["perl", "t/m.t"], "format = \"tap\"");
    assert_eq!(counts(&perl.says(&[], "passed", "")), json!([2, 0, 0]));
    perl.says(&[("lib/M.pm", &module("2"))], "failed", "1 failed: f is one");
    // What ends in the middle is not what was planned, whatever its exit code.
    perl.says(
        &[("lib/M.pm", &module("require POSIX; POSIX::_exit(0)"))],
        "error",
        "the plan says 2 and there are 1",
    );
}

#[test]
fn go_writes_events() {
    let lab = Lab::new();
    if !lab.has_tool("go", "version") {
        return;
    }
    let cache = format!("GOCACHE={}", lab.path("cache/go").display());
    let test =
        "package m\nimport \"testing\"\nfunc TestF(t *testing.T) { if F() != 1 { t.Error(\"not one\") } }\n";
    let module = |body: &str| format!("package m\nfunc F() int {{ {body} }}\n");
    let files = [("go.mod", "module m\ngo 1.19\n"), ("m.go", &*module("return 1")), ("m_test.go", test)];
    let command = ["env", &*cache, "go", "test", "-json", "-count=1", "./..."];
    let go = Tool::new(&lab, &files, &command, "format = \"gotest\"");
    assert_eq!(counts(&go.says(&[], "passed", "")), json!([1, 0, 0]));
    go.says(&[("m.go", &module("return 2"))], "failed", "1 failed: m::TestF");
    go.says(&[("m.go", &module("return"))], "failed", "failed outside of the cases: m");
    go.says(&[("a/a.go", "package a\n")], "passed", "");
    let ended = "import \"syscall\"\nfunc F() int { syscall.Exit(0); return 1 }\n";
    go.says(&[("m.go", &format!("package m\n{ended}"))], "error", "");
}

#[test]
fn ruff_writes_findings() {
    let lab = Lab::new();
    if !lab.has_tool("ruff", "--version") {
        return;
    }
    let command =
        ["ruff", "check", "--isolated", "--no-cache", "--output-format=sarif", "--output-file={out}/r.sarif"];
    let ruff =
        Tool::new(&lab, &[("a.py", "x = 1\n")], &command, "path = \"{out}/r.sarif\", format = \"sarif\"");
    assert_eq!(ruff.says(&[], "passed", "").row("unit")["checks"], Value::Null);
    let unused = ruff.says(&[("a.py", "import os\n")], "failed", "a finding is an error: F401");
    assert_eq!(unused.row("unit")["checks"], Value::Null);
    ruff.says(&[("a.py", "def f(:\n")], "failed", "invalid-syntax");
}
