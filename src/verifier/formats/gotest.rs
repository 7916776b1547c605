//! What `go test -json` writes: an event a line, of packages and of the tests in them.
//!
//! Every test that a package names is a case, one that holds others too, as go counts them. A package without
//! an end is a run that was cut, and a package that failed where none of its tests did has failed outside of
//! them: it was not built, or `TestMain` said no. Before go 1.20 a test that prints no newline at its end has
//! no event for it; there the mark in its output stands for that. A line that is no event and no word on a
//! failed build is not guessed at.

use super::{CasePlace, Counted, refuse_size};
use crate::domain::proof::cases::{CaseOutcome, CountedCase};
use serde::Deserialize;
use std::collections::BTreeMap;

/// How many lines of what a test printed are kept.
const MOST_LINES: usize = 20;

/// The cases of all packages, or what does not fit together, in words.
pub fn count_cases(bytes: &[u8]) -> Result<Counted, String> {
    refuse_size(bytes)?;
    let mut events = EventStream::default();
    for (at, line) in String::from_utf8_lossy(bytes).lines().enumerate() {
        if let Err(why) = events.take_line(line) {
            events.note_problem(format!("{why}, at line {}", at + 1));
        }
    }
    events.finish()
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct TestEvent {
    action: String,
    #[serde(default)]
    package: String,
    #[serde(default)]
    test: Option<String>,
    #[serde(default)]
    output: String,
}

/// A package of which events were seen.
#[derive(Default)]
struct SeenPackage {
    ended: bool,
    failed_test: bool,
    printed: PrintedLines,
    /// The tests that have begun and not ended.
    open: BTreeMap<String, PrintedLines>,
}

#[derive(Default)]
struct EventStream {
    packages: BTreeMap<String, SeenPackage>,
    counted: Counted,
    problem: Option<String>,
}

impl EventStream {
    fn note_problem(&mut self, problem: String) {
        self.problem.get_or_insert(problem);
    }

    fn take_line(&mut self, line: &str) -> Result<(), String> {
        if line.trim().is_empty() {
            return Ok(());
        }
        if let Some(rest) = line.strip_prefix("FAIL") {
            let package = rest.split_whitespace().next().unwrap_or("go test");
            self.counted.fail_outside(package, CasePlace::default(), line);
            return Ok(());
        }
        let event: TestEvent =
            serde_json::from_str(line).map_err(|error| format!("it is no event: {error}"))?;
        match (event.action.as_str(), event.test) {
            ("build-output", _) => {}
            ("build-fail", _) => return Err("a package could not be built".to_owned()),
            ("start" | "pause" | "cont" | "attr" | "artifacts" | "bench", _) => {
                self.packages.entry(event.package).or_default();
            }
            ("run", Some(test)) => {
                self.packages.entry(event.package).or_default().open.insert(test, PrintedLines::default());
            }
            ("output", test) => {
                let package = self.packages.entry(event.package).or_default();
                let open = test.and_then(|test| package.open.get_mut(&test));
                open.unwrap_or(&mut package.printed).keep(&event.output);
            }
            (action, test) => {
                let outcome = match action {
                    "pass" => CaseOutcome::Passed,
                    "skip" => CaseOutcome::Skipped,
                    "fail" => CaseOutcome::FailedByAssertion,
                    _ => return Err(format!("the action {action:?} is not understood")),
                };
                match test {
                    Some(test) => {
                        let package = self.packages.entry(event.package.clone()).or_default();
                        let printed = package.open.remove(&test).unwrap_or_default();
                        self.end_test(&event.package, &test, outcome, &printed);
                    }
                    None => self.end_package(&event.package, outcome),
                }
            }
        }
        Ok(())
    }

    fn end_test(&mut self, name: &str, test: &str, outcome: CaseOutcome, printed: &PrintedLines) {
        let package = self.packages.entry(name.to_owned()).or_default();
        let class = Some(name.to_owned()).filter(|name| !name.is_empty());
        let case = |outcome| CountedCase { class, ..CountedCase::with_name(test, outcome) };
        if matches!(outcome, CaseOutcome::Passed | CaseOutcome::Skipped) {
            return self.counted.count_case(case(outcome));
        }
        package.failed_test = true;
        let outcome = if printed.ran_out_of_time() { CaseOutcome::FailedByError } else { outcome };
        self.counted.count_failure(case(outcome), CasePlace::default(), &printed.lines.join("\n"));
    }

    fn end_package(&mut self, name: &str, outcome: CaseOutcome) {
        let package = self.packages.entry(name.to_owned()).or_default();
        package.ended = true;
        let failed = outcome == CaseOutcome::FailedByAssertion;
        for (test, printed) in std::mem::take(&mut package.open) {
            match printed.find_end(&test) {
                Some(outcome) => self.end_test(name, &test, outcome, &printed),
                None if failed => self.end_test(name, &test, CaseOutcome::FailedByError, &printed),
                // A benchmark has no event for its end.
                None if test.starts_with("Benchmark") => {}
                None => self.note_problem(format!("{test} of {name} began and did not end")),
            }
        }
        let package = self.packages.entry(name.to_owned()).or_default();
        if failed && !package.failed_test {
            let message = package.printed.lines.join("\n");
            self.counted.fail_outside(name, CasePlace::default(), &message);
        }
    }

    fn finish(mut self) -> Result<Counted, String> {
        let open = self.packages.iter().find(|(_, package)| !package.ended).map(|(name, _)| name.clone());
        if let Some(name) = open {
            self.note_problem(format!(
                "the package {name} has no end: the run ended too early, or it is cut"
            ));
        }
        if self.packages.is_empty() {
            self.note_problem("it holds no event".to_owned());
        }
        self.counted.unless_failed(self.problem)
    }
}

/// The last lines that a test printed; from a panic on the first ones.
#[derive(Default)]
struct PrintedLines {
    lines: Vec<String>,
    panicked: bool,
}

impl PrintedLines {
    /// True where the whole run was ended while this test ran; any other panic is the test's own.
    fn ran_out_of_time(&self) -> bool {
        self.panicked && self.lines.first().is_some_and(|line| line.starts_with("panic: test timed out"))
    }

    fn keep(&mut self, output: &str) {
        let line = output.trim_end_matches('\n');
        if line.starts_with("=== ") {
            return;
        }
        if line.starts_with("panic: ") && !self.panicked {
            self.panicked = true;
            self.lines.clear();
        }
        if self.lines.len() == MOST_LINES {
            if self.panicked {
                return;
            }
            self.lines.remove(0);
        }
        self.lines.push(line.to_owned());
    }

    /// How a test without an event for its end ended: `printed--- PASS: TestA (0.00s)`
    fn find_end(&self, test: &str) -> Option<CaseOutcome> {
        let marked = |word: &str| {
            let mark = format!("--- {word}: {test} (");
            self.lines.iter().any(|line| line.contains(&mark))
        };
        let words = [
            ("FAIL", CaseOutcome::FailedByAssertion),
            ("SKIP", CaseOutcome::Skipped),
            ("PASS", CaseOutcome::Passed),
        ];
        words.into_iter().find(|(word, _)| marked(word)).map(|(_, outcome)| outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn event(action: &str, test: &str) -> String {
        format!("{{\"Action\":\"{action}\",\"Package\":\"x/a\",\"Test\":\"{test}\"}}\n")
    }

    fn output(test: &str, text: &str) -> String {
        format!(
            "{{\"Action\":\"output\",\"Package\":\"x/a\",\"Test\":\"{test}\",\"Output\":\"{text}\\n\"}}\n"
        )
    }

    fn end(action: &str) -> String {
        format!("{{\"Action\":\"{action}\",\"Package\":\"x/a\"}}\n")
    }

    fn read_ok(text: &str) -> Counted {
        count_cases(text.as_bytes()).unwrap_or_else(|why| panic!("{text}: {why}"))
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        let (run, pass) = (event("run", "TestA"), event("pass", "TestA"));
        for (text, why) in [
            (String::new(), "no event"),
            (format!("{run}{pass}"), "the package x/a has no end"),
            (format!("{run}{}", end("pass")), "TestA of x/a began and did not end"),
            (format!("{run}{pass}{}", end("strange")), "\"strange\" is not understood"),
            (format!("{run}{}{}", event("strange", "TestA"), end("pass")), "\"strange\" is not understood"),
            (format!("{run}{pass}{}ok  \tx/b\t0.1s\n", end("pass")), "no event"),
            (format!("{run}{pass}{}{{\"Action\":\"pass\",\"Action\":\"fail\"}}", end("pass")), "no event"),
            (
                format!("{{\"ImportPath\":\"x/c\",\"Action\":\"build-fail\"}}\n{run}{pass}{}", end("pass")),
                "built",
            ),
        ] {
            let found = count_cases(text.as_bytes()).expect_err(&text);
            assert!(found.contains(why), "{text}: {found}");
            let failing = format!("{}{text}", event("fail", "TestB"));
            assert_eq!(read_ok(&failing).checks.failed, 1, "a failure counts whatever else is wrong: {text}");
        }
        assert_eq!(read_ok(&end("skip")).checks.ran, 0, "a package without tests");
    }

    #[test]
    fn a_package_that_fails_without_a_failed_test_has_failed() {
        let (run, pass) = (event("run", "TestA"), event("pass", "TestA"));
        let counted = read_ok(&format!("{run}{pass}{}", end("fail")));
        assert_eq!((counted.checks.passed, counted.outside), (1, 1));
        let counted = read_ok(&format!("{run}{}{}", output("TestA", "panic: timed out"), end("fail")));
        assert_eq!((counted.checks.failed, counted.outside), (1, 0), "the test that was running");
        assert_eq!(counted.cases[0].outcome, CaseOutcome::FailedByError);
        assert_eq!(counted.findings[0].message, "panic: timed out");
        let how = |panic: &str| {
            let text = format!("{run}{}{}{}", output("TestA", panic), event("fail", "TestA"), end("fail"));
            read_ok(&text).cases[0].outcome
        };
        assert_eq!(how("panic: runtime error: index out of range"), CaseOutcome::FailedByAssertion);
        assert_eq!(how("panic: test timed out after 1s"), CaseOutcome::FailedByError);
    }

    #[test]
    fn a_test_that_prints_no_newline_ends_by_its_mark() {
        let of = |mark: &str| {
            let text = format!("{}{}{}", event("run", "TestA"), output("TestA", mark), end("pass"));
            count_cases(text.as_bytes()).map(|counted| counted.cases[0].outcome)
        };
        assert_eq!(of("x--- PASS: TestA (0.00s)"), Ok(CaseOutcome::Passed));
        assert_eq!(of("x--- SKIP: TestA (0.00s)"), Ok(CaseOutcome::Skipped));
        assert_eq!(of("x--- FAIL: TestA (0.00s)"), Ok(CaseOutcome::FailedByAssertion));
        assert!(of("x--- PASS: TestAB (0.00s)").is_err());
        assert_eq!(read_ok(&format!("{}{}", event("run", "BenchmarkA"), end("pass"))).checks.ran, 0);
    }

    proptest! {
        #[test]
        fn tests_are_counted_and_a_cut_output_is_no_pass(tests in proptest::collection::vec(0usize..3, 1..12), cut in 0.0f64..1.0) {
            let ends = ["pass", "skip", "fail"];
            let all = |tests: &[usize]| -> String {
                tests.iter().enumerate().map(|(n, how)| event("run", &n.to_string()) + &event(ends[*how], &n.to_string())).collect()
            };
            let of = |how: usize| tests.iter().filter(|test| **test == how).count() as u64;
            let text = all(&tests) + &end(if of(2) > 0 { "fail" } else { "pass" });
            let found = read_ok(&text).checks;
            prop_assert_eq!((found.passed, found.skipped, found.failed), (of(0), of(1), of(2)));
            let length = (cut * (text.len() - 1) as f64) as usize;
            prop_assert!(!count_cases(&text.as_bytes()[..length]).is_ok_and(|cut| !cut.holds_failure()));
        }
    }
}
