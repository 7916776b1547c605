//! The output of Rust's test harness: one line a case, per test binary a header and a summary.
//!
//! A case is a line `test NAME ... ok|FAILED|ignored`, as a rule between `running N tests` and `test
//! result:`. Cases are counted here; header and summary may claim no more than the cases show, and a header
//! without a summary of its own is a test binary that died in the middle: the summary of the next one must
//! not speak for it. A failed case counts whatever the rest says. Cases without header and summary are taken
//! too, since other runners write the same lines alone.
//!
//! What failed cases printed is quoted between `failures:` and the summary, and may look like the output of a
//! test run (a test runner's own tests do that). There the summary counts only where the list of all failed
//! cases stands right before it.

use super::{CasePlace, Counted, refuse_size};
use crate::domain::proof::cases::{CaseOutcome, CountedCase};
use std::borrow::Cow;
use std::collections::HashMap;

/// How many lines of what a failed case printed are kept.
const MOST_LINES: usize = 20;

/// The cases of all test binaries, or what does not fit together, in words.
pub fn count_cases(bytes: &[u8]) -> Result<Counted, String> {
    refuse_size(bytes)?;
    let text = String::from_utf8_lossy(bytes);
    let mut total = Counted::default();
    let mut section: Option<Section> = None;
    for line in text.lines() {
        let line = plain(line);
        if let Some(open) = section.take_if(|open| open.is_followed_by_another(&line)) {
            total.add(open.closed()?);
        }
        match &mut section {
            Some(open) => {
                let ended = open.ended_by(&line);
                match line.strip_prefix(SUMMARY).filter(|_| ended) {
                    Some(summary) => {
                        open.agree(summary)?;
                        total.add(open.counted());
                        section = None;
                    }
                    None => open.line(&line),
                }
            }
            None => section = outside(&line, &mut total)?,
        }
    }
    if let Some(open) = section {
        total.add(open.closed()?);
    }
    Ok(total)
}

const SUMMARY: &str = "test result: ";

/// A line between two test binaries: a header opens a section, and so does a case that comes without one.
fn outside(line: &str, total: &mut Counted) -> Result<Option<Section>, String> {
    if let Some(summary) = line.strip_prefix(SUMMARY) {
        let mut empty = Section::default();
        empty.agree(summary)?;
        total.add(empty.counted());
        return Ok(None);
    }
    if case(line).is_some() {
        let mut section = Section::default();
        section.line(line);
        return Ok(Some(section));
    }
    Ok(header(line).map(Section::new))
}

fn plain(line: &str) -> Cow<'_, str> {
    if !line.contains('\u{1b}') {
        return Cow::Borrowed(line);
    }
    let mut kept = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find("\u{1b}[") {
        kept.push_str(&rest[..at]);
        let code = &rest[at + 2..];
        let end = code.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(code.len());
        match code[end..].strip_prefix('m') {
            Some(after) => rest = after,
            None => {
                kept.push_str("\u{1b}[");
                rest = code;
            }
        }
    }
    kept.push_str(rest);
    Cow::Owned(kept)
}

/// `running 3 tests`
fn header(line: &str) -> Option<u64> {
    let rest = line.strip_prefix("running ")?;
    rest.strip_suffix(" tests").or_else(|| rest.strip_suffix(" test"))?.parse().ok()
}

/// How cargo names the test binary that it starts next: `     Running unittests src/lib.rs
/// (target/debug/deps/x-0f)`, `   Doc-tests x`
fn is_start(line: &str) -> bool {
    let word = line.trim_start_matches(' ');
    word.len() < line.len()
        && (word.starts_with("Doc-tests ") || word.starts_with("Running ") && word.ends_with(')'))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Passed,
    Failed,
    Ignored,
    Measured,
}

/// Name and status of `test NAME ... STATUS`.
fn case(line: &str) -> Option<(&str, Status)> {
    let rest = line.strip_prefix("test ")?;
    rest.match_indices(" ... ").find_map(|(at, dots)| {
        let name = &rest[..at];
        Some((name, status(&rest[at + dots.len()..])?))
    })
}

/// A status as the harness writes it and nothing else: what a test printed behind its own name is none.
fn status(text: &str) -> Option<Status> {
    let noted = |word: &str| {
        let rest = text.strip_prefix(word)?;
        let time = |rest: &str| rest.starts_with(" <") && rest.ends_with("s>");
        let overdue = rest.strip_prefix(" (time limit exceeded)").unwrap_or(rest);
        (rest.is_empty() || overdue.is_empty() || time(overdue)).then_some(())
    };
    if noted("ok").is_some() {
        Some(Status::Passed)
    } else if noted("FAILED").is_some() {
        Some(Status::Failed)
    } else if text == "ignored" || text.starts_with("ignored, ") {
        Some(Status::Ignored)
    } else {
        text.starts_with("bench: ").then_some(Status::Measured)
    }
}

/// The name as the lists and the quoted outputs have it: without the mode.
fn bare(name: &str) -> &str {
    [" - should panic", " - compile fail", " - compile"]
        .iter()
        .find_map(|mode| name.strip_suffix(mode))
        .unwrap_or(name)
}

/// The run of one test binary.
#[derive(Default)]
struct Section {
    /// What the header said; `None` where there was none.
    announced: Option<u64>,
    passed: Vec<String>,
    failed: Vec<String>,
    ignored: Vec<String>,
    measured: u64,
    /// The last heading was `failures:` or `successes:`.
    quoting: Option<Heading>,
    /// The names since that heading, where nothing else stands there.
    listed: Option<Vec<String>>,
    /// What failed cases printed; from the case's own panic on where it has one.
    printed: HashMap<String, Vec<String>>,
    /// The case whose output is being quoted, and how much of it there was at the last heading.
    printing: Option<(String, usize)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heading {
    Failures,
    Successes,
}

impl Section {
    fn new(announced: u64) -> Self {
        Self { announced: Some(announced), ..Self::default() }
    }

    fn line(&mut self, line: &str) {
        let heading = match line {
            "failures:" => Some(Heading::Failures),
            "successes:" => Some(Heading::Successes),
            _ => None,
        };
        if heading.is_some() {
            self.quoting = heading;
            self.listed = Some(Vec::new());
            if let Some((name, length)) = &mut self.printing {
                *length = self.printed.get(name).map_or(0, Vec::len);
            }
            return;
        }
        if self.quoting.is_some() {
            return self.quoted(line);
        }
        match case(line) {
            Some((name, Status::Passed)) => self.passed.push(bare(name).to_owned()),
            Some((name, Status::Failed)) => self.failed.push(bare(name).to_owned()),
            Some((name, Status::Ignored)) => self.ignored.push(bare(name).to_owned()),
            Some((_, Status::Measured)) => self.measured += 1,
            None => {}
        }
    }

    fn quoted(&mut self, line: &str) {
        let list = self.listed.take();
        self.listed = match (line.strip_prefix("    "), list) {
            (Some(name), Some(mut list)) => {
                list.push(name.to_owned());
                Some(list)
            }
            (None, Some(list)) if line.is_empty() => Some(list),
            _ => None,
        };
        let named = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----"));
        if let Some(name) = named.filter(|name| self.failed.iter().any(|failed| failed == name)) {
            self.printing = Some((name.to_owned(), 0));
        } else if let Some((name, _)) = &self.printing {
            let lines = self.printed.entry(name.clone()).or_default();
            if line.starts_with(&format!("thread '{name}' ")) && panicked_at(line).is_some() {
                lines.clear();
            }
            if lines.len() < MOST_LINES {
                lines.push(line.to_owned());
            }
        }
    }

    /// True where a summary at this line would be the binary's own.
    fn ended_by(&self, line: &str) -> bool {
        let Some(heading) = self.quoting else { return line.starts_with(SUMMARY) };
        let Some(listed) = &self.listed else { return false };
        let sorted = |names: &[String]| {
            let mut names = names.to_vec();
            names.sort();
            names
        };
        let (names, last) = match heading {
            Heading::Failures => (&self.failed, true),
            Heading::Successes => (&self.passed, self.failed.is_empty()),
        };
        last && line.starts_with(SUMMARY) && sorted(names) == sorted(listed)
    }

    /// True where this line belongs to another test binary, so that this one has ended. Where a case failed
    /// nothing ends it but its own summary: what such a case printed is quoted.
    fn is_followed_by_another(&self, line: &str) -> bool {
        self.quoting.is_none() && self.failed.is_empty() && (header(line).is_some() || is_start(line))
    }

    /// What it counts where it ended without a summary.
    fn closed(mut self) -> Result<Counted, String> {
        match self.announced {
            Some(announced) if self.failed.is_empty() => Err(format!(
                "a test binary announced {announced} tests and gave no summary: it ended too early, the output was cut, or the output \
                 of another run stands in its midst"
            )),
            _ => Ok(self.counted()),
        }
    }

    /// `ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s`
    fn agree(&self, summary: &str) -> Result<(), String> {
        let number = |word: &str| -> Option<u64> {
            let at = summary.find(&format!(" {word}"))?;
            summary[..at].rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
        };
        let (passed, failed) = (self.passed.len() as u64, self.failed.len() as u64);
        let claimed = ["passed", "failed"].map(number);
        if failed > 0 {
            // Whatever the summary says: this run failed.
            return Ok(());
        }
        // More cases than were claimed are only counted; fewer mean that the output is not whole.
        let seen = passed + self.ignored.len() as u64 + self.measured;
        if let Some(announced) = self.announced.filter(|announced| *announced > seen) {
            return Err(format!(
                "a test binary announced {announced} tests, but the lines of its cases are {seen}: it ended too early, or it was run \
                 with --quiet or --nocapture"
            ));
        }
        let more = |claim: &Option<u64>, seen: u64| claim.is_none_or(|claim| claim > seen);
        if more(&claimed[1], failed) || more(&claimed[0], passed) {
            let shown = claimed.map(|n| n.map_or("?".to_owned(), |n| n.to_string()));
            return Err(format!(
                "the summary of a test binary says {} passed and {} failed, but the lines of its cases say {passed} and \
                 {failed}: run it without --quiet and without --nocapture",
                shown[0], shown[1]
            ));
        }
        if !summary.starts_with("ok. ") {
            return Err(format!(
                "the summary {summary:?} of a test binary names a failure that no case shows"
            ));
        }
        Ok(())
    }

    fn counted(&mut self) -> Counted {
        // What followed the last heading is the list of names.
        if let Some((lines, length)) =
            self.printing.as_ref().and_then(|(name, length)| Some((self.printed.get_mut(name)?, *length)))
        {
            lines.truncate(length);
        }
        let mut counted = Counted::default();
        for (names, outcome) in [(&self.ignored, CaseOutcome::Skipped), (&self.passed, CaseOutcome::Passed)] {
            names.iter().for_each(|name| counted.count_case(named_case(name, outcome)));
        }
        for name in &self.failed {
            let printed = self.printed.remove(name).unwrap_or_default();
            let place = printed.iter().find_map(|line| panicked_at(line)).or_else(|| documented_at(name));
            // A doc test that does not build never ran.
            let unbuilt = documented_at(name).is_some() && printed.iter().any(|line| line == UNBUILT);
            let outcome = if unbuilt { CaseOutcome::FailedByError } else { CaseOutcome::FailedByAssertion };
            let case = named_case(name, outcome);
            counted.count_failure(case, place.unwrap_or_default(), &printed.join("\n"));
        }
        counted
    }
}

/// `thread 'a' (7) panicked at src/lib.rs:3:5:`, and as it was before Rust 1.73: `panicked at 'text',
/// src/lib.rs:3:5`
fn panicked_at(line: &str) -> Option<CasePlace> {
    let (_, rest) = line.split_once("panicked at ")?;
    let rest = if rest.starts_with('\'') { rest.rsplit_once("', ")?.1 } else { rest };
    let mut parts = rest.trim_end_matches(':').rsplitn(3, ':');
    let column = parts.next()?.parse().ok()?;
    let line = parts.next()?.parse().ok()?;
    let path = parts.next().filter(|path| !path.starts_with("/rustc/"))?;
    Some(CasePlace { path: Some(path.to_owned()), line: Some(line), column: Some(column) })
}

/// What rustdoc says of a doc test that does not build.
const UNBUILT: &str = "Couldn't compile the test.";

/// A case by its name; a doc test's without the line, which every edit above it changes.
fn named_case(name: &str, outcome: CaseOutcome) -> CountedCase {
    let Some(file) = documented_at(name).and_then(|place| place.path) else {
        return CountedCase::with_name(name, outcome);
    };
    let bare = name.rsplit_once(" (line ").map_or(name, |(bare, _)| bare);
    let item = bare.strip_prefix(&file).and_then(|rest| rest.strip_prefix(" - ")).unwrap_or(bare);
    CountedCase { file: Some(file), ..CountedCase::with_name(item, outcome) }
}

/// A doc test's name says where it stands: `src/lib.rs - item (line 3)`.
fn documented_at(name: &str) -> Option<CasePlace> {
    let (path, rest) = name.split_once(" - ")?;
    let (_, line) = rest.strip_suffix(')')?.rsplit_once("(line ")?;
    Some(CasePlace { path: Some(path.to_owned()), line: Some(line.parse().ok()?), column: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const REAL: &str = "
running 4 tests
test a::works ... ok
test a::is_slow ... ignored, takes an hour
test b - should panic ... ok
test b::breaks ... FAILED

failures:

---- b::breaks stdout ----
running 1 test
test nested ... FAILED

failures:

failures:
    nested

test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

thread 'b::breaks' (71) panicked at src/lib.rs:9:5:
left is not right


failures:
    b::breaks

test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
";

    fn refused(text: &str) -> String {
        count_cases(text.as_bytes()).expect_err(text)
    }

    /// The output of one binary with these cases, as the harness would write it.
    fn binary(cases: &[(&str, &str)]) -> String {
        let count = |status: &str| cases.iter().filter(|case| case.1 == status).count();
        let mut text = format!("running {} tests\n", cases.len());
        for (name, status) in cases {
            text.push_str(&format!("test {name} ... {status}\n"));
        }
        if count("FAILED") > 0 {
            text.push_str("\nfailures:\n\nfailures:\n");
            cases
                .iter()
                .filter(|case| case.1 == "FAILED")
                .for_each(|(name, _)| text.push_str(&format!("    {name}\n")));
        }
        let word = if count("FAILED") == 0 { "ok" } else { "FAILED" };
        let (passed, failed, ignored) = (count("ok"), count("FAILED"), count("ignored"));
        text.push_str(&format!(
            "\ntest result: {word}. {passed} passed; {failed} failed; {ignored} ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n"
        ));
        text
    }

    #[test]
    fn a_real_run_is_counted_and_what_a_case_quotes_is_not() {
        let counted = count_cases(REAL.as_bytes()).expect("agrees");
        let checks = counted.checks;
        assert_eq!((checks.ran, checks.passed, checks.failed, checks.skipped), (3, 2, 1, 1));
        let seen: Vec<_> = counted.cases.iter().map(|case| (case.name.as_str(), case.outcome)).collect();
        let expected = [
            ("a::is_slow", CaseOutcome::Skipped),
            ("a::works", CaseOutcome::Passed),
            ("b", CaseOutcome::Passed),
            ("b::breaks", CaseOutcome::FailedByAssertion),
        ];
        assert_eq!(seen, expected);
        let [finding] = counted.findings.as_slice() else { panic!("{:?}", counted.findings) };
        assert_eq!(finding.rule.as_deref(), Some("b::breaks"));
        assert_eq!(
            (finding.path.as_deref(), finding.line, finding.column),
            (Some("src/lib.rs"), Some(9), Some(5))
        );
        assert_eq!(finding.message, "thread 'b::breaks' (71) panicked at src/lib.rs:9:5:\nleft is not right");
    }

    #[test]
    fn a_case_that_should_have_panicked_is_listed_by_its_bare_name() {
        let text = "running 1 test\ntest b - should panic ... FAILED\n\nfailures:\n\n---- b stdout ----\nnote: test did not panic as expected at src/lib.rs:4:8\n\nfailures:\n    b\n\ntest result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n";
        assert_eq!(count_cases(text.as_bytes()).expect("agrees").findings[0].rule.as_deref(), Some("b"));
    }

    #[test]
    fn a_doc_test_keeps_its_name_where_lines_move_and_fails_only_where_it_ran() {
        let run = |line: u32, said: &str| {
            let name = format!("src/lib.rs - f::<T> (line {line})");
            let text = format!(
                "running 1 test\ntest {name} ... FAILED\n\nfailures:\n\n---- {name} stdout ----\n{said}\n\nfailures:\n    {name}\n\n\
                 test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s\n"
            );
            count_cases(text.as_bytes()).expect("agrees").cases[0].clone()
        };
        let unbuilt = run(3, "error[E0425]: no f\n\nCouldn't compile the test.");
        assert_eq!((unbuilt.file.as_deref(), unbuilt.name.as_str()), (Some("src/lib.rs"), "f::<T>"));
        assert_eq!(unbuilt.outcome, CaseOutcome::FailedByError);
        let failed = run(4, "Test executable failed (exit status: 101).");
        assert_eq!(failed.identity(), unbuilt.identity());
        assert_eq!(failed.outcome, CaseOutcome::FailedByAssertion);
    }

    #[test]
    fn several_binaries_are_summed() {
        let part = "running 1 test\ntest a ... ok <0.001s>\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
        let doc = "running 1 test\ntest src/lib.rs - f (line 3) - compile fail ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\nall doctests ran in 0.1s\n";
        let text = format!("   Doc-tests x\n{part}\n{}{doc}", binary(&[]));
        assert_eq!(count_cases(text.as_bytes()).expect("agrees").checks.ran, 2);
        let empty = count_cases(binary(&[]).as_bytes()).expect("an empty run is a run");
        assert_eq!(empty, Counted::default());
        let coloured = part.replace("ok <", "\u{1b}[32mok\u{1b}(B\u{1b}[m <");
        assert!(count_cases(coloured.as_bytes()).is_err(), "only colours are taken away");
        let coloured = part.replace("ok <", "\u{1b}[1;32mok\u{1b}[m <");
        assert_eq!(count_cases(coloured.as_bytes()).expect("agrees").checks.ran, 1);
    }

    #[test]
    fn measurements_are_no_cases() {
        let text = "running 2 tests\ntest a ... ok\ntest b ... bench:       1,234.50 ns/iter (+/- 3)\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 1 measured; 0 filtered out\n";
        assert_eq!(count_cases(text.as_bytes()).expect("agrees").checks.ran, 1);
    }

    #[test]
    fn shown_outputs_of_passed_cases_are_quoted_too() {
        let text = "running 1 test\ntest a ... ok\n\nsuccesses:\n\n---- a stdout ----\ntest b ... FAILED\n\nsuccesses:\n    a\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
        assert_eq!(count_cases(text.as_bytes()).expect("agrees").checks.passed, 1);
    }

    #[test]
    fn what_does_not_agree_is_refused() {
        let whole = binary(&[("a", "ok"), ("b", "ok")]);
        assert!(count_cases(whole.as_bytes()).is_ok());
        for (from, to) in [
            ("test b ... ok\n", ""),
            ("2 passed", "3 passed"),
            ("0 failed", "1 failed"),
            ("test b ... ok\n", "..\n"),
            ("ok. 2", "FAILED. 2"),
            ("test result", "the result"),
            ("test b ... ok", "test b ... some text\nok"),
            ("test b ... ok", "test b ... ok, as it seems"),
        ] {
            assert!(count_cases(whole.replace(from, to).as_bytes()).is_err(), "{from} -> {to}");
        }
        assert!(refused("running 3 tests\n...\ntest result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n").contains("--quiet"));
    }

    #[test]
    fn the_summary_of_the_next_binary_is_none_for_one_that_ended_early() {
        let cut = "running 3 tests\ntest a ... ok\n";
        let whole = binary(&[("z", "ok")]);
        let start = "     Running unittests src/lib.rs (target/debug/deps/x-0f)\n";
        for next in
            [binary(&[]), whole.clone(), format!("   Doc-tests x\n\n{}", binary(&[])), start.to_owned()]
        {
            let why = refused(&format!("{whole}{cut}{next}"));
            assert!(why.contains("announced 3 tests and gave no summary"), "{why}");
        }
        let summary = "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
        assert!(refused(&format!("{cut}{summary}")).contains("the lines of its cases are 1"));
        // Cases alone announce nothing that could be missing, but they are no part of what follows.
        assert_eq!(
            count_cases(format!("test a ... ok\n{whole}").as_bytes()).expect("counts").checks.passed,
            2
        );
        assert!(refused(&format!("test a ... ok\n{cut}{summary}")).contains("announced 3"));
        // A failed case quotes what it likes, and what passed cases printed is shown where it is asked for.
        let shown = "running 1 test\ntest a ... ok\n\nsuccesses:\n\n---- a stdout ----\nrunning 9 tests\n\nsuccesses:\n    a\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
        assert_eq!(count_cases(shown.as_bytes()).expect("agrees").checks.passed, 1);
    }

    #[test]
    fn a_failed_case_counts_whatever_the_rest_says() {
        let lied = binary(&[("a", "ok"), ("b", "ok")]).replace("test b ... ok", "test b ... FAILED");
        assert_eq!(count_cases(lied.as_bytes()).expect("counts").checks.failed, 1);
        assert_eq!(
            count_cases(b"running 2 tests\ntest a ... FAILED\n").expect("counts").checks.failed,
            1,
            "cut in the middle"
        );
    }

    #[test]
    fn cases_count_without_header_and_summary() {
        let summary = "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
        for text in [
            "test a ... ok\n".to_owned(),
            format!("test a ... ok\n{summary}"),
            format!("some text\ntest a ... ok\n\n{summary}"),
        ] {
            assert_eq!(count_cases(text.as_bytes()).expect("counts").checks.passed, 1, "{text}");
        }
        assert!(count_cases(summary.as_bytes()).is_err(), "a summary alone proves nothing");
        let nextest = "    Starting 1 test across 1 binary\n        PASS [   0.003s] x tests::a\n     Summary [   0.004s] 1 test run: 1 passed, 0 skipped\n";
        for text in ["", "error[E0425]: cannot find value\n", nextest] {
            assert_eq!(count_cases(text.as_bytes()).expect("no cases").checks.ran, 0, "{text}");
        }
    }

    #[test]
    fn a_test_cannot_print_a_pass_of_its_own() {
        // With --nocapture: the first case prints a whole good run before the true end comes.
        let forged = format!(
            "running 2 tests\ntest a ... ok\ntest b ... ok\n{}ok\ntest b ... FAILED\n\nfailures:\n\nfailures:\n    b\n\ntest result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n",
            "\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n"
        );
        assert_ne!(count_cases(forged.as_bytes()).map(|counted| counted.checks.failed), Ok(0));
    }

    #[test]
    fn places_are_read_in_the_old_and_the_new_form() {
        let place =
            |line| panicked_at(line).map(|place| (place.path.unwrap_or_default(), place.line, place.column));
        let at = |path: &str| Some((path.to_owned(), Some(3), Some(5)));
        assert_eq!(place("thread 'a' panicked at 'x: y, z', src/lib.rs:3:5"), at("src/lib.rs"));
        assert_eq!(place("thread 'a' panicked at src/a b.rs:3:5:"), at("src/a b.rs"));
        assert_eq!(place("thread 'a' panicked at /rustc/1234/library/core/src/option.rs:3:5:"), None);
        assert_eq!(documented_at("src/lib.rs - f::<T> (line 12)").and_then(|place| place.line), Some(12));
    }

    proptest! {
        #[test]
        fn a_cut_run_never_counts_as_passed(cut in 0usize..REAL.len()) {
            if let Ok(counted) = count_cases(&REAL.as_bytes()[..cut]) {
                prop_assert!(counted.checks.failed == 1 || counted.checks.ran == 0);
            }
        }

        #[test]
        fn counts_are_those_of_the_lines(binaries in proptest::collection::vec(proptest::collection::vec(0usize..3, 0..20), 1..5)) {
            let words = ["ok", "FAILED", "ignored"];
            let mut text = String::new();
            for cases in &binaries {
                let names: Vec<String> = (0..cases.len()).map(|at| format!("m::t{at}")).collect();
                let cases: Vec<(&str, &str)> = cases.iter().zip(&names).map(|(c, name)| (name.as_str(), words[*c])).collect();
                text.push_str(&binary(&cases));
            }
            let count = |n: usize| binaries.iter().flatten().filter(|c| **c == n).count();
            let counted = count_cases(text.as_bytes()).expect("agrees");
            let checks = counted.checks;
            prop_assert_eq!((checks.passed as usize, checks.failed as usize, checks.skipped as usize), (count(0), count(1), count(2)));
            prop_assert_eq!(counted.findings.len(), count(1));
        }
    }
}
