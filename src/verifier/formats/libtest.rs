//! The output of Rust's test harness: one line a case, per test binary a header and a summary.
//!
//! A case is a line `test NAME ... ok|FAILED|ignored` between `running N tests` and `test result:`. What failed cases
//! printed is quoted between `failures:` and the summary, and may itself look like the output of a test run (a test
//! runner's own tests do that), so it is passed over. Header, cases and summary have to agree: a test binary
//! that dies in the middle leaves a header without a summary.

use super::Counted;

/// The cases of all test binaries, or what does not fit together, in words.
pub fn read(text: &[u8]) -> Result<Counted, String> {
    let text = String::from_utf8_lossy(text);
    let mut total = Counted::default();
    let mut section: Option<Section> = None;
    for line in text.lines() {
        if let Some(open) = &mut section {
            if let Some(summary) = line.strip_prefix("test result: ") {
                open.close(summary)?;
                total.add(std::mem::take(&mut open.counted));
                section = None;
            } else {
                open.line(line);
            }
        } else if let Some(announced) = header(line) {
            section = Some(Section::new(announced));
        }
    }
    match section {
        Some(open) => Err(format!(
            "a test binary announced {} tests and gave no summary: it ended too early, or the output was cut",
            open.announced
        )),
        None => Ok(total),
    }
}

/// `running 3 tests`
fn header(line: &str) -> Option<u64> {
    let rest = line.strip_prefix("running ")?;
    rest.strip_suffix(" tests").or_else(|| rest.strip_suffix(" test"))?.parse().ok()
}

struct Section {
    announced: u64,
    counted: Counted,
    measured: u64,
    quoting: bool,
}

impl Section {
    fn new(announced: u64) -> Self {
        Self { announced, counted: Counted::default(), measured: 0, quoting: false }
    }

    fn line(&mut self, line: &str) {
        if line == "failures:" || line == "successes:" {
            self.quoting = true;
        }
        let Some(case) = line.strip_prefix("test ").filter(|_| !self.quoting) else { return };
        let Some((name, status)) = case.rsplit_once(" ... ") else { return };
        let word = status.split([' ', ',', ':']).next().unwrap_or(status);
        match word {
            "ok" => self.counted.pass(),
            "FAILED" => self.counted.fail(name),
            "ignored" => self.counted.checks.skipped += 1,
            "bench" => {
                self.counted.pass();
                self.measured += 1;
            }
            _ => {}
        }
    }

    /// `ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s`
    fn close(&self, summary: &str) -> Result<(), String> {
        let number = |word: &str| -> Option<u64> {
            let at = summary.find(&format!(" {word}"))?;
            summary[..at].rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
        };
        let checks = self.counted.checks;
        let counted = [checks.passed - self.measured, checks.failed, checks.skipped, self.measured];
        let claimed = ["passed", "failed", "ignored", "measured"].map(number);
        if claimed != counted.map(Some) {
            let shown = claimed.map(|n| n.map_or("?".to_owned(), |n| n.to_string()));
            return Err(format!(
                "the summary of a test binary says {} passed, {} failed, {} ignored, {} measured, but the lines of its \
                 cases say {}, {}, {}, {}: run it without --quiet and without --nocapture",
                shown[0], shown[1], shown[2], shown[3], counted[0], counted[1], counted[2], counted[3]
            ));
        }
        let seen = checks.ran + checks.skipped;
        if seen != self.announced {
            return Err(format!("a test binary announced {} tests and reported {seen}", self.announced));
        }
        let good = summary.starts_with("ok");
        if good != (checks.failed == 0) {
            return Err(format!("a test binary's summary begins {summary:?} with {} failed cases", checks.failed));
        }
        Ok(())
    }
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
test nested ... ok
test result: nothing of the kind
thread 'b::breaks' panicked at src/lib.rs:9:5:


failures:
    b::breaks

test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
";

    #[test]
    fn a_real_run_is_counted() {
        let text = REAL.replace("test result: nothing of the kind\n", "");
        let counted = read(text.as_bytes()).expect("agrees");
        assert_eq!(counted.failed, ["b::breaks"]);
        let checks = counted.checks;
        assert_eq!((checks.ran, checks.passed, checks.failed, checks.skipped), (3, 2, 1, 1));
        assert!(read(REAL.as_bytes()).is_err(), "a quoted summary cannot end the section unnoticed");
    }

    #[test]
    fn several_binaries_are_summed_and_what_is_between_them_is_passed_over() {
        let part = "running 1 test\ntest a ... ok <0.001s>\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
        let empty = "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
        let doc = "running 1 test\ntest src/lib.rs - f (line 3) - compile fail ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\nall doctests ran in 0.1s\n";
        let text = format!("   Doc-tests x\ntest stray ... FAILED\n{part}\n{empty}{doc}");
        assert_eq!(read(text.as_bytes()).expect("agrees").checks.ran, 2);
        assert_eq!(read(b"error[E0425]: cannot find value\n").expect("nothing ran").checks.ran, 0);
    }

    #[test]
    fn what_does_not_agree_is_refused() {
        let whole = "running 2 tests\ntest a ... ok\ntest b ... ok\n\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
        assert!(read(whole.as_bytes()).is_ok());
        for (from, to) in [
            ("test b ... ok\n", ""),
            ("running 2", "running 3"),
            ("test b ... ok", "test b ... FAILED"),
            ("2 passed", "1 passed"),
            ("test b ... ok\n", "..\n"),
            ("ok. 2", "FAILED. 2"),
            ("test result", "the result"),
        ] {
            assert!(read(whole.replace(from, to).as_bytes()).is_err(), "{from} -> {to}");
        }
    }

    proptest! {
        #[test]
        fn a_cut_run_never_counts_as_whole(cut in 0usize..REAL.len()) {
            let text = REAL.replace("test result: nothing of the kind\n", "");
            let cut = cut.min(text.len() - 1);
            if let Ok(counted) = read(&text.as_bytes()[..cut]) {
                // Cut before the header there is nothing, cut behind the counts there is all.
                prop_assert!(counted.checks.ran == 0 || counted.checks.failed == 1);
            }
        }

        #[test]
        fn counts_are_those_of_the_lines(cases in proptest::collection::vec(0u8..3, 0..40)) {
            let words = ["ok", "FAILED", "ignored"];
            let count = |n: u8| cases.iter().filter(|c| **c == n).count();
            let mut text = format!("running {} tests\n", cases.len());
            for (at, case) in cases.iter().enumerate() {
                text.push_str(&format!("test t{at} ... {}\n", words[usize::from(*case)]));
            }
            let word = if count(1) == 0 { "ok" } else { "FAILED" };
            text.push_str(&format!("\ntest result: {word}. {} passed; {} failed; {} ignored; 0 measured; 0 filtered out\n", count(0), count(1), count(2)));
            let checks = read(text.as_bytes()).expect("agrees").checks;
            prop_assert_eq!((checks.passed as usize, checks.failed as usize, checks.skipped as usize), (count(0), count(1), count(2)));
        }
    }
}
