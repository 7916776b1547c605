//! Readers of foreign bytes, each fed with documents that are nearly right.
//!
//! A reader holds where any bytes give an answer: no panic, soon, and of bounded size; where what it read can
//! be written again, that reads as the same. Random bytes would be refused at once, so each target begins
//! with real documents and breaks them: cut, doubled, spliced, with bytes and words of the format in wrong
//! places. What fails is made small by proptest.
//!
//! Readers that their module keeps to itself have their target there, by [`holds`]: the answer of a verifier
//! (`verifier/protocol.rs`), messages of a worker's client (`mcp/lines.rs`), git's listing of its
//! configuration (`git/config.rs`) and of its index (`git/live/index.rs`).
//!
//! `TENDER_FUZZ_SECONDS` says for how long each target is tried; a second unless said.

use crate::domain::change::patch_text::{self, Strip};
use crate::domain::contract::Contract;
use crate::domain::contract::policy::Config;
use crate::domain::value::digest::ObjectFormat;
use crate::domain::value::repo_path::RepoPath;
use crate::domain::value::scope::Scope;
use crate::domain::worker::finding::Lines;
use crate::error::{Code, Failure};
use crate::git::testing::TestRepository;
use crate::tools::patch_formats;
use crate::verifier::formats::{Counted, gotest, junit, libtest, sarif, tap};
use crate::verifier::logs;
use crate::verifier::manifest::Manifest;
use proptest::prelude::*;
use proptest::test_runner::{Config as Settings, TestRunner};
use std::time::{Duration, Instant};

/// A failure is read by people and by models: it is never larger than this in JSON.
const LARGEST_FAILURE: usize = 256 << 10;
/// The longest that one document of at most [`LONGEST`] bytes may take, on a busy machine.
const SLOWEST: Duration = Duration::from_secs(10);
const LONGEST: usize = 32 << 10;

/// One way to break a document; places are shares of its length.
#[derive(Debug, Clone)]
enum Break {
    Cut(f64),
    Remove(f64, usize),
    Put(f64, Vec<u8>),
    Repeat(f64, usize, usize),
    Splice(f64, usize),
}

fn breaks(words: &[&[u8]]) -> impl Strategy<Value = Break> + use<> {
    let mut words: Vec<Vec<u8>> = words.iter().map(|word| word.to_vec()).collect();
    words.extend(
        [&b"\0"[..], b"\n", b"\r\n", b"\xff", b"\xc3", b"-1", b"99999999999999999999", b"../", b"\x1b["]
            .map(<[u8]>::to_vec),
    );
    let put = prop_oneof![
        4 => prop::sample::select(words),
        1 => prop::collection::vec(any::<u8>(), 1..4),
    ];
    prop_oneof![
        1 => (0.0..1.0).prop_map(Break::Cut),
        3 => (0.0..1.0, 1usize..20).prop_map(|(at, length)| Break::Remove(at, length)),
        4 => (0.0..1.0, put).prop_map(|(at, bytes)| Break::Put(at, bytes)),
        1 => (0.0..1.0, 1usize..60, 2usize..300).prop_map(|(at, length, times)| Break::Repeat(at, length, times)),
        2 => (0.0..1.0, any::<usize>()).prop_map(|(at, other)| Break::Splice(at, other)),
    ]
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a share of a length that is small"
)]
fn broken(seeds: &[Vec<u8>], seed: usize, breaks: &[Break]) -> Vec<u8> {
    let mut bytes = seeds[seed % seeds.len()].clone();
    for one in breaks {
        let place = |share: f64| (share * bytes.len() as f64) as usize;
        let (Break::Cut(share)
        | Break::Remove(share, _)
        | Break::Put(share, _)
        | Break::Repeat(share, _, _)
        | Break::Splice(share, _)) = one;
        let at = place(*share);
        match one {
            Break::Cut(_) => bytes.truncate(at),
            Break::Remove(_, length) => drop(bytes.drain(at..(at + length).min(bytes.len()))),
            Break::Put(_, word) => drop(bytes.splice(at..at, word.iter().copied())),
            Break::Repeat(_, length, times) => {
                let part = bytes[at..(at + length).min(bytes.len())].repeat(*times);
                bytes.splice(at..at, part);
            }
            Break::Splice(_, other) => {
                let other = &seeds[other % seeds.len()];
                bytes.truncate(at);
                bytes.extend_from_slice(&other[(*share * other.len() as f64) as usize..]);
            }
        }
        bytes.truncate(LONGEST);
    }
    bytes
}

/// Feeds a reader with the seeds, and then with broken ones for about a second. `words` are what the format
/// is made of; `reader` panics where something does not hold.
pub(crate) fn holds(seeds: &[&[u8]], words: &[&[u8]], reader: impl Fn(&[u8])) {
    let seeds: Vec<Vec<u8>> = seeds.iter().map(|seed| seed.to_vec()).collect();
    let reader = |bytes: &[u8]| {
        let begun = Instant::now();
        reader(bytes);
        assert!(begun.elapsed() < SLOWEST, "{} bytes took {:?}", bytes.len(), begun.elapsed());
    };
    seeds.iter().for_each(|seed| reader(seed));
    let inputs = (any::<usize>(), prop::collection::vec(breaks(words), 0..6));
    let inputs = inputs.prop_map(move |(seed, breaks)| broken(&seeds, seed, &breaks));
    let end = Instant::now() + Duration::from_secs(seconds());
    while Instant::now() < end {
        let settings = Settings { cases: 50, failure_persistence: None, ..Settings::default() };
        let result = TestRunner::new(settings).run(&inputs, |bytes| {
            reader(&bytes);
            Ok(())
        });
        result.unwrap_or_else(|error| panic!("{error}"));
    }
}

#[expect(clippy::disallowed_methods, reason = "a setting of the tests")]
fn seconds() -> u64 {
    std::env::var("TENDER_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

fn is_bounded(failure: &Failure) {
    let size = serde_json::to_string(failure).expect("serializes").len();
    assert!(size <= LARGEST_FAILURE, "a failure of {size} bytes");
}

fn checked<T>(result: Result<T, Failure>) -> Option<T> {
    result.inspect_err(is_bounded).ok()
}

/// What was read reads the same after the way through JSON, as the ledger keeps it.
fn survives<T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T) {
    let text = serde_json::to_string(value).expect("serializes");
    assert_eq!(&serde_json::from_str::<T>(&text).expect("reads"), value);
}

const GIT_PATCH: &[u8] = b"diff --git a/docs/a.md b/docs/a.md\nindex 0123456..89abcde 100644\n--- a/docs/a.md\n+++ b/docs/a.md\n@@ -1,3 +1,3 @@ head\n one\n-two\n+TWO\n three\n\\ No newline at end of file\n";
const GIT_RENAME: &[u8] = b"diff --git \"a/\\303\\244\" b/new\nsimilarity index 90%\nrename from \"\\303\\244\"\nrename to new\nold mode 100644\nnew mode 100755\n";
const GIT_NEW: &[u8] = b"diff --git a/x b/x\nnew file mode 120000\nindex 0000000..1234567\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+target\ndiff --git a/y b/y\ndeleted file mode 100644\n--- a/y\n+++ /dev/null\n@@ -1 +0,0 @@\n-y\n";
const BINARY_PATCH: &[u8] = b"diff --git a/b b/b\nindex e69de29..9a2c773 100644\nGIT binary patch\nliteral 4\nLc${NkU|;|M00aO5\n\nliteral 0\nHcmV?d00001\n\n";
const PATCH_WORDS: &[&[u8]] = &[
    b"diff --git ",
    b"--- ",
    b"+++ ",
    b"@@ -1 +1 @@\n",
    b"@@ -0,0 +1,99999 @@",
    b"\\ No newline",
    b"GIT binary patch\n",
    b"literal ",
    b"delta 9\n",
    b"rename to ",
    b"\"\\777",
    b"/dev/null",
    b"-",
    b"+",
    b" ",
];

#[test]
fn a_patch() {
    holds(&[GIT_PATCH, GIT_RENAME, GIT_NEW, BINARY_PATCH], PATCH_WORDS, |bytes| {
        for strip in [Strip::One, Strip::None] {
            let _ = checked(patch_text::parse_sections(bytes, strip));
        }
    });
}

#[test]
fn a_mailbox_or_a_patch_for_a_tree() {
    const MAIL: &[u8] = b"From 0123456789012345678901234567890123456789 Mon Sep 17 00:00:00 2001\nFrom: A <a@example.org>\nDate: Mon, 1 Jan 2024 00:00:00 +0000\nSubject: [PATCH] x\nMIME-Version: 1.0\nContent-Type: text/plain; charset=UTF-8\nContent-Transfer-Encoding: quoted-printable\n\nwords\n---\n a | 2 +-\n\ndiff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n-1\n+one\n 2\n--\n2.41\n\n";
    let home = TestRepository::new();
    home.write_file("a", b"1\n2\n");
    let base = home.commit_all("base");
    let (repository, quarantine) = (home.repository(), home.quarantine());
    let limits =
        crate::git::limits::CandidateLimits { allowed: &|_| true, scope: &[], artifact_bytes: Some(1 << 20) };
    holds(
        &[MAIL, GIT_PATCH],
        &[b"From ", b"Content-Transfer-Encoding: base64\n", b"=?utf-8?q?x?=", b"@@ -1 +1 @@\n"],
        |bytes| {
            let _ = checked(crate::git::patch_intake::take_patch(
                &repository,
                &quarantine,
                &base,
                bytes,
                &limits,
            ));
        },
    );
}

#[test]
fn a_workers_patch() {
    const ENVELOPE: &[u8] = b"*** Begin Patch\n*** Update File: docs/a.md\n@@ head\n one\n-two\n+TWO\n three\n*** Add File: b\n+new\n*** Delete File: c\n*** End Patch\n";
    const BLOCKS: &[u8] = b"docs/a.md\n<<<<<<< SEARCH\none\ntwo\n=======\none\nTWO\n>>>>>>> REPLACE\n";
    let words: &[&[u8]] = &[
        b"*** Begin Patch\n",
        b"*** End Patch\n",
        b"*** Update File: ",
        b"*** Move to: ",
        b"*** End of File\n",
        b"<<<<<<< SEARCH\n",
        b"=======\n",
        b">>>>>>> REPLACE\n",
        b"```\n",
        b"@@\n",
        b"\xef\xbb\xbf",
    ];
    holds(&[ENVELOPE, BLOCKS, GIT_PATCH, GIT_NEW], words, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        for file in checked(patch_formats::parse_patch(&text)).into_iter().flatten() {
            let _ = checked(file.apply_to_file(Some(b"one\ntwo\nthree\n"), ObjectFormat::Sha1));
            let _ = checked(file.apply_to_file(None, ObjectFormat::Sha1));
        }
    });
}

#[test]
fn a_contract() {
    const WHOLE: &[u8] = br#"{"schema": "git-tender/contract/v1", "taskId": "t1", "kind": "repair", "case": ["tests/**"], "goal": "g", "base": "HEAD", "writeScope": ["docs/", "a/*.{rs,md}"], "readScope": ["**"], "allowedTools": ["read_file"], "scratch": ["target/"], "network": "disabled", "sandbox": "optional", "verification": {"allowed": ["unit"], "forbidden": ["build"]}, "requirements": [{"id": "r", "text": "x", "verifier": "unit", "paths": ["docs/"], "required": true}], "artifacts": [{"path": "docs/a.md", "mustChange": true, "maxBytes": 10, "mustNotContain": ["TODO"]}], "budget": {"wallSeconds": 60, "toolCalls": 7}, "delivery": {"mode": "push", "branch": "b", "remote": "origin", "pushOptions": ["x"], "message": "m"}, "commitAllowed": true}"#;
    const SMALL: &[u8] = br#"{"taskId": "t", "goal": "g", "writeScope": [], "allowedTools": [], "parent": "p", "kind": "explore"}"#;
    let words: &[&[u8]] = &[
        b"{",
        b"}",
        b"[",
        b"]",
        b"\"",
        b",",
        b":",
        b"null",
        b"true",
        b"\\ud800",
        b"1e999",
        b"-0",
        b"\"taskId\"",
        b"\"kind\": \"edit\",",
        b"**/",
        b"{a,b}",
    ];
    holds(&[WHOLE, SMALL], words, |bytes| {
        if let Some(contract) = checked(Contract::parse_document(bytes)) {
            survives(&contract);
        }
    });
}

const TOML_WORDS: &[&[u8]] = &[
    b"[",
    b"]",
    b"[[",
    b"]]",
    b"{",
    b"}",
    b"\"",
    b"\"\"\"",
    b"'",
    b" = ",
    b".",
    b"#",
    b"\n[a.b]\n",
    b"0x",
    b"1979-05-27",
    b"inf",
    b"\\u0000",
    b"\n[policy]\n",
];

#[test]
fn a_configuration() {
    const WHOLE: &[u8] = b"filters = [\"lfs\"]\n[policy]\nwrite = [\"src/\"]\nprotected = [\".ci/\"]\nrequire = [{ verifier = \"test\", when = [\"src/**\"] }]\nnetwork = { allow = [\"h:1\"] }\ndelivery = [\"branch\"]\ncommit = false\nflaky = \"warn\"\n[policy.budget.edit]\ntoolCalls = 5\n[[hooks]]\nevent = \"before_action\"\nkind = \"guard\"\ncommand = [\"sh\"]\ntimeout = \"1m30s\"\n";
    holds(&[WHOLE], TOML_WORDS, |bytes| {
        if let Some(config) = checked(Config::parse_config(bytes)) {
            survives(&config);
        }
    });
}

#[test]
fn a_manifest() {
    const WHOLE: &[u8] = b"protocol = 1\nid = \"unit\"\ntitle = \"Unit\"\ncommand = [\"sh\", \"{out}\"]\nsetup = { command = [\"true\"], inputs = [\"a\"] }\nread = [\"~/.cargo\"]\ninputs = [\"src/**\"]\nclosure = [\"x\"]\ntools = [{ name = \"cargo\", probe = [\"cargo\", \"-V\"] }]\nenv = [\"RUSTFLAGS\"]\noutputs = [{ path = \"{out}/j.xml\", format = \"junit\", required = true }, { format = \"libtest\" }]\nmin_checks = 2\ntimeout = \"10m\"\nscratch = [\"target/\"]\nreuse = \"never\"\nattempts = 2\n";
    const MANUAL: &[u8] = b"protocol = 1\nid = \"unit\"\nkind = \"manual\"\ninputs = [\"**\"]\n";
    holds(&[WHOLE, MANUAL], TOML_WORDS, |bytes| {
        let _ = checked(Manifest::parse("verifier.toml", "unit", bytes));
    });
}

/// What a run's output amounts to adds up, whatever it says of itself.
fn adds_up(read: Result<Counted, String>) {
    match read {
        Ok(Counted { checks, .. }) => assert_eq!(Some(checks.ran), checks.passed.checked_add(checks.failed)),
        Err(why) => assert!(why.len() < LARGEST_FAILURE, "an answer of {} bytes", why.len()),
    }
}

#[test]
fn a_junit_file() {
    const WHOLE: &[u8] = b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites tests=\"3\"><testsuite name=\"s\" tests=\"3\" failures=\"1\" skipped=\"1\"><testcase name=\"a\" classname=\"c\" file=\"a.py\" line=\"3\"/><testcase name=\"b\"><failure message=\"m&lt;\">a.py:3: <![CDATA[x]]></failure><system-out>&#10;</system-out></testcase><testcase name=\"c\"><skipped/></testcase></testsuite></testsuites>\n";
    let words: &[&[u8]] = &[
        b"<testcase",
        b"</testcase>",
        b"<failure>",
        b"<error/>",
        b"<!--",
        b"<![CDATA[",
        b"]]>",
        b"<!DOCTYPE x [<!ENTITY a \"b\">]>",
        b"&a;",
        b"&#0;",
        b"<?x?>",
        b"\"",
        b">",
    ];
    holds(&[WHOLE], words, |bytes| adds_up(junit::count_cases(bytes)));
}

#[test]
fn output_of_the_rust_harness() {
    const WHOLE: &[u8] = b"\nrunning 3 tests\ntest a ... ok\ntest b ... FAILED\ntest c ... ignored, why\n\nfailures:\n\n---- b stdout ----\n\nthread 'b' (7) panicked at src/lib.rs:3:5:\nmessage\n\nfailures:\n    b\n\ntest result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n";
    let words: &[&[u8]] = &[
        b"running 2 tests\n",
        b"test x ... ok\n",
        b"test x ... FAILED\n",
        b"test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n",
        b"failures:\n",
        b"---- x stdout ----\n",
        b"successes:\n",
    ];
    holds(&[WHOLE], words, |bytes| adds_up(libtest::count_cases(bytes)));
}

#[test]
fn output_of_the_test_anything_protocol() {
    const WHOLE: &[u8] = b"TAP version 14\n# Subtest: a\n    ok 1 - b\n    not ok 2 - c # TODO\n      ---\n      error: 'x'\n      ...\n    1..2\nok 1 - a\nok 2 - d {\n    ok 1\n    1..1\n}\nnot ok 3\n1..3\n";
    let words: &[&[u8]] = &[
        b"ok 1\n",
        b"not ok",
        b"    ",
        b"1..1\n",
        b" {\n",
        b"}\n",
        b"  ---\n",
        b"  ...\n",
        b"# Subtest: x\n",
        b"Bail out!",
    ];
    holds(&[WHOLE], words, |bytes| adds_up(tap::count_cases(bytes)));
}

#[test]
fn events_of_go_test() {
    const WHOLE: &[u8] = b"{\"Action\":\"run\",\"Package\":\"x/a\",\"Test\":\"TestA\"}\n{\"Action\":\"output\",\"Package\":\"x/a\",\"Test\":\"TestA\",\"Output\":\"panic: x\\n\"}\n{\"Action\":\"fail\",\"Package\":\"x/a\",\"Test\":\"TestA\"}\n{\"Action\":\"fail\",\"Package\":\"x/a\"}\nFAIL\tx/c [build failed]\n";
    let words: &[&[u8]] = &[
        b"{\"Action\":\"pass\",\"Package\":\"x/a\"}\n",
        b"\"run\"",
        b"\"skip\"",
        b"\"Test\":",
        b"null",
        b"FAIL\n",
        b"{",
        b"}",
    ];
    holds(&[WHOLE], words, |bytes| adds_up(gotest::count_cases(bytes)));
}

#[test]
fn a_log_of_findings() {
    const WHOLE: &[u8] = br#"{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"x","rules":[{"id":"a","defaultConfiguration":{"level":"error"}}]}},"invocations":[{"executionSuccessful":true,"toolExecutionNotifications":[{"level":"note","message":{"text":"m"}}]}],"results":[{"ruleId":"a","ruleIndex":0,"message":{"text":"m"},"suppressions":[{"status":"accepted"}],"locations":[{"physicalLocation":{"artifactLocation":{"uri":"file:///a%20b"},"region":{"startLine":1}}}]}]}]}"#;
    let words: &[&[u8]] =
        &[b"null", b"[]", b"{}", b"\"level\":\"error\",", b"\"kind\":\"pass\",", b"-1", b"%ff", b"[", b"}"];
    holds(&[WHOLE], words, |bytes| adds_up(sarif::read_findings(bytes)));
}

#[test]
fn a_log() {
    let seeds: [&[u8]; 6] = [
        b"error[E0308]: mismatched types\n --> src/lib.rs:3:5\n  |\n3 |     1\n  |     ^ expected\n",
        b"Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n    x()\nValueError: no\n",
        b"--- FAIL: TestA (0.00s)\n    a_test.go:7: got 1\nFAIL\nFAIL\tpkg\t0.1s\n{\"Action\":\"output\",\"Package\":\"p\",\"Output\":\"x\\n\"}\n",
        b"a.c:3:5: error: expected ';'\nmake: *** [all] Error 2\nnpm ERR! code 1\nTypeError: x\n    at f (/a/b.js:3:5)\n",
        b"\x1b[31mE\x1b[0m   assert 1 == 2\ntest_a.py:3: AssertionError\n=== short test summary info ===\n",
        b"{\"reason\":\"compiler-message\",\"message\":{\"rendered\":\"error\",\"level\":\"error\",\"spans\":[]}}\n",
    ];
    holds(
        &seeds,
        &[
            b"error: ",
            b":1:1: ",
            b"FAILED",
            b"Traceback (most recent call last):\n",
            b"    at ",
            b"{\"",
            b"\x1b[0m",
            b"\r",
            b"panicked at ",
        ],
        |bytes| {
            let Some(error) = logs::find(bytes) else { return };
            assert!(error.line >= 1 && error.text.len() <= 16 << 10, "{error:?}");
            let _ = logs::speaks_of_failure(&error);
        },
    );
}

#[test]
fn a_scope_and_a_path() {
    let seeds: [&[u8]; 4] = [b"docs/", b"**/*.{rs,md,toml}", b"a/[!b-z]?/**", b"src/{a,b{c,d}}/x"];
    holds(
        &seeds,
        &[b"**", b"/", b"{", b"}", b",", b"[", b"]", b"\\", b"*", b"?", b"**/**/", b"{a,b}{a,b}{a,b}"],
        |bytes| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            if let Some(scope) =
                checked(Scope::parse_field("scope", Code::ContractInvalid, vec![text.clone()]))
            {
                let long = "a/".repeat(40) + "b";
                for path in [text.as_str(), "docs/a/b.md", &long] {
                    let _ = checked(RepoPath::new(path.as_bytes())).map(|path| scope.matches_path(&path));
                }
            }
            if let Some(lines) = Lines::parse_range(&text) {
                assert_eq!(Lines::parse_range(&lines.to_string()), Some(lines));
            }
        },
    );
}

#[test]
fn what_does_not_hold_is_found() {
    let hidden = std::panic::catch_unwind(|| holds(&[b"x\n"], &[], |bytes| assert!(bytes.len() < 200)));
    assert!(hidden.is_err(), "the engine finds nothing");
}
