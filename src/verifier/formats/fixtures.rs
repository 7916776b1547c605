//! The readers held against files that the tools themselves wrote, whole and damaged.

use super::*;

/// Passed, failed, skipped, flaky; then what failed outside of the cases.
type Expected = Result<(u64, u64, u64, u64, u64), &'static str>;

macro_rules! files {
    ($reader:path: $($path:literal => $expected:expr,)*) => {
        &[$(($path, include_bytes!(concat!("../../../fixtures/formats/", $path)), $reader, $expected)),*]
    };
}

type ResultFile = (&'static str, &'static [u8], fn(&[u8]) -> Result<Counted, String>, Expected);

const JUNIT: &[ResultFile] = files! { junit::count_cases:
    "node/passing.xml" => Ok((2, 0, 2, 0, 0)),
    "node/failing.xml" => Ok((4, 5, 3, 0, 3)),
    "node/unloadable.xml" => Ok((2, 0, 2, 0, 1)),
    "vitest/passing.xml" => Ok((2, 0, 2, 0, 0)),
    "vitest/failing.xml" => Ok((4, 2, 2, 0, 3)),
    "jest/passing.xml" => Ok((2, 0, 1, 0, 0)),
    "jest/failing.xml" => Ok((3, 2, 1, 0, 6)),
    "jest/todo.xml" => Err("jest's writes a `todo` like a pass"),
    "mocha/passing.xml" => Ok((2, 0, 1, 0, 0)),
    "mocha/failing.xml" => Ok((2, 2, 0, 0, 1)),
    "mocha/left-out.xml" => Err("unless `includePending` is set"),
    "pytest/passing.xml" => Ok((4, 0, 2, 0, 0)),
    "pytest/failing.xml" => Ok((4, 8, 2, 0, 2)),
    "pytest/uncollectable.xml" => Ok((0, 0, 0, 0, 1)),
    "unittest/failing.xml" => Ok((1, 4, 2, 0, 0)),
    "unittest/unloadable.xml" => Ok((0, 0, 0, 0, 1)),
    "phpunit/passing.xml" => Ok((1, 0, 1, 0, 0)),
    "phpunit/failing.xml" => Ok((3, 3, 2, 0, 0)),
    "nextest/passing.xml" => Ok((2, 0, 0, 1, 0)),
    "nextest/failing.xml" => Ok((2, 1, 0, 1, 0)),
    "surefire/flaky.xml" => Ok((2, 0, 1, 1, 0)),
    "surefire/failing.xml" => Ok((0, 2, 0, 0, 1)),
    "gradle/failing.xml" => Ok((1, 1, 1, 0, 0)),
    "go-junit-report/failing.xml" => Ok((1, 1, 1, 0, 1)),
};

const TAP: &[ResultFile] = files! { tap::count_cases:
    "node/passing.tap" => Ok((2, 0, 2, 0, 0)),
    "node/failing.tap" => Ok((4, 5, 3, 0, 3)),
    "node/unloadable.tap" => Ok((2, 0, 2, 0, 1)),
    "mocha/passing.tap" => Ok((2, 0, 1, 0, 0)),
    "mocha/failing.tap" => Ok((2, 2, 2, 0, 1)),
    "perl/passing.tap" => Ok((1, 0, 0, 0, 0)),
    "perl/failing.tap" => Ok((3, 2, 2, 0, 0)),
    "perl/braces.tap" => Ok((3, 2, 1, 0, 0)),
    "perl/braces-passing.tap" => Ok((2, 0, 0, 0, 0)),
    "perl/bail-out.tap" => Err("gave up"),
    "perl/skipped.tap" => Ok((0, 0, 0, 0, 0)),
};

const GOTEST: &[ResultFile] = files! { gotest::count_cases:
    "go/passing.json" => Ok((2, 0, 0, 0, 0)),
    "go/failing.json" => Ok((3, 4, 2, 0, 1)),
    "go/unbuildable.json" => Ok((2, 0, 0, 0, 1)),
    "go/timed-out.json" => Ok((0, 1, 0, 0, 0)),
    "go/main-fails.json" => Ok((1, 0, 0, 0, 1)),
    "go/benchmarks.json" => Ok((3, 0, 1, 0, 0)),
    "go/no-newline.json" => Ok((2, 0, 0, 0, 0)),
    "go/build-failed.json" => Ok((1, 0, 0, 0, 1)),
};

const SARIF: &[ResultFile] = files! { sarif::read_findings:
    "eslint/passing.sarif" => Ok((0, 0, 0, 0, 0)),
    "eslint/warning.sarif" => Ok((0, 0, 0, 0, 0)),
    "eslint/failing.sarif" => Ok((0, 0, 0, 0, 1)),
    "eslint/parse-error.sarif" => Err("Parsing error"),
    "ruff/passing.sarif" => Ok((0, 0, 0, 0, 0)),
    "ruff/failing.sarif" => Ok((0, 0, 0, 0, 1)),
};

/// All files of all formats.
fn all() -> impl Iterator<Item = &'static ResultFile> {
    JUNIT.iter().chain(TAP).chain(GOTEST).chain(SARIF)
}

#[test]
fn each_tool_is_counted_as_it_means_it() {
    for (path, bytes, read_results, expected) in all() {
        let found = read_results(bytes);
        let counts = found.as_ref().map(|counted| {
            let Checks { passed, failed, skipped, flaky, ran } = counted.checks;
            assert_eq!(ran, passed + failed, "{path}");
            assert!(counted.cases.len() as u64 <= ran + skipped, "{path}");
            (passed, failed, skipped, flaky, counted.outside)
        });
        match (counts, expected) {
            (Ok(counts), Ok(expected)) => {
                assert_eq!(&counts, expected, "{path}: {:#?}", counted_names(&found))
            }
            (Err(why), Err(part)) => assert!(why.contains(part), "{path}: {why}"),
            (found, expected) => panic!("{path}: {found:?}, not {expected:?}"),
        }
    }
}

fn counted_names(found: &Result<Counted, String>) -> Vec<String> {
    let cases = found.iter().flat_map(|counted| &counted.cases);
    cases.map(|case| format!("{} {:?}", case.full_title(), case.outcome)).collect()
}

/// Each byte of a file that shows a failure taken out or replaced, and the file cut behind it.
#[test]
fn a_damaged_file_never_turns_a_failure_into_a_pass() {
    for (path, bytes, read_results, expected) in all() {
        let failing = expected.as_ref().is_ok_and(|expected| expected.1 + expected.4 > 0);
        if !failing {
            continue;
        }
        let counts = !path.ends_with(".sarif");
        let passes = |bytes: &[u8]| {
            read_results(bytes).is_ok_and(|c| !c.holds_failure() && (!counts || c.checks.ran > 0))
        };
        for at in 0..bytes.len() {
            let mut damaged = bytes.to_vec();
            let byte = b"x >\"\n#"[at % 6];
            damaged[at] = byte;
            assert!(!passes(&damaged), "{path}: byte {at} replaced by {:?}", char::from(byte));
            damaged.remove(at);
            assert!(!passes(&damaged), "{path}: byte {at} left out");
            assert!(!passes(&bytes[..at]), "{path}: cut at byte {at}");
        }
    }
}

#[test]
fn a_failure_in_the_body_of_a_case_is_told_from_one_around_it() {
    let around = |(path, bytes, count_cases, _): &ResultFile| {
        let cases = count_cases(bytes).map(|counted| counted.cases).unwrap_or_default();
        let around = cases.into_iter().filter(|case| case.outcome == CaseOutcome::FailedByError);
        around.map(|case| format!("{path}: {}", case.name)).collect::<Vec<_>>()
    };
    let expected = [
        "pytest/failing.xml: test_setup",
        "pytest/failing.xml: test_teardown",
        "pytest/failing.xml: test_both",
        "unittest/failing.xml: test_u", // a success that was not expected
        "phpunit/failing.xml: testErr",
        "phpunit/failing.xml: testRisky",
        "surefire/failing.xml: throws", // its trace is cut
        "go/timed-out.json: TestA",
    ];
    assert_eq!(all().flat_map(around).collect::<Vec<_>>(), expected);
}
