//! What verifiers write about their cases, or of what they found. Every reader counts the cases itself; a
//! summary is only ever used to find out that something is missing, never as the count.
//!
//! A reader gives its reason in words where it cannot read an output: then nothing at all is known of the
//! run, and it is an error, whatever else the output may hold.

#[cfg(test)]
mod fixtures;
pub mod gotest;
pub mod junit;
pub mod libtest;
mod runners;
pub mod sarif;
pub mod tap;

use crate::domain::proof::cases::{CaseOutcome, CountedCase, MOST_CASES};
use crate::domain::proof::evidence::{Finding, MOST_FINDINGS};
use crate::domain::proof::verdict::Checks;
use std::path::Path;

/// How many bytes of an output are read.
pub const MOST_BYTES: usize = 64 << 20;
/// How many characters of a case's message are kept.
const LONGEST_MESSAGE: usize = 2000;
/// How many characters of a case's name are kept.
const LONGEST_NAME: usize = 300;

/// Where a tool leaves its results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrittenTo {
    /// A file, which the manifest names.
    File,
    StandardOutput,
    /// A file where the manifest names one, else standard output.
    Either,
}

/// A format of results. All that the rest of the program knows of one stands in its row of [`ALL`].
#[derive(Debug, Clone, Copy)]
pub struct ResultFormat {
    /// The word for it in a manifest.
    pub name: &'static str,
    pub written_to: WrittenTo,
    /// It counts cases; findings alone count nothing.
    pub counts: bool,
    /// Reads an output, or says why it cannot be read.
    pub read_results: fn(&[u8]) -> Result<Counted, String>,
}

/// The formats that a manifest can name.
pub const ALL: &[ResultFormat] = &[
    ResultFormat::of_cases("junit", WrittenTo::File, junit::count_cases),
    ResultFormat::of_cases("libtest", WrittenTo::StandardOutput, libtest::count_cases),
    ResultFormat::of_cases("tap", WrittenTo::Either, tap::count_cases),
    ResultFormat::of_cases("gotest", WrittenTo::Either, gotest::count_cases),
    ResultFormat {
        name: "sarif",
        written_to: WrittenTo::Either,
        counts: false,
        read_results: sarif::read_findings,
    },
];

impl ResultFormat {
    const fn of_cases(
        name: &'static str,
        written_to: WrittenTo,
        read_results: fn(&[u8]) -> Result<Counted, String>,
    ) -> Self {
        Self { name, written_to, counts: true, read_results }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counted {
    pub checks: Checks,
    /// The cases by name.
    pub cases: Vec<CountedCase>,
    /// How many more there were than are kept by name.
    pub unnamed: u64,
    /// What failed outside of any case: a file that could not be loaded, a build, what runs before the cases.
    pub outside: u64,
    /// The first output in which fewer cases ran than must.
    pub lacking: Option<Lack>,
    /// The first failed ones: `rule` is the case's name.
    pub findings: Vec<Finding>,
}

/// An output in which fewer cases ran than must.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lack {
    pub output: String,
    pub ran: u64,
    pub skipped: u64,
    pub wanted: u64,
}

impl Counted {
    /// Adds what another output says.
    pub fn add(&mut self, other: Counted) {
        self.checks.ran += other.checks.ran;
        self.checks.passed += other.checks.passed;
        self.checks.failed += other.checks.failed;
        self.checks.skipped += other.checks.skipped;
        self.checks.flaky += other.checks.flaky;
        self.unnamed += other.unnamed;
        self.outside += other.outside;
        self.lacking = self.lacking.take().or(other.lacking);
        let room = MOST_CASES.saturating_sub(self.cases.len());
        self.unnamed += other.cases.len().saturating_sub(room) as u64;
        self.cases.extend(other.cases.into_iter().take(room));
        let room = MOST_FINDINGS.saturating_sub(self.findings.len());
        self.findings.extend(other.findings.into_iter().take(room));
    }

    /// Takes the path of the tree out of what the tools say: it is another one in each slot.
    pub fn name_relative_to(&mut self, tree: &Path) {
        let Some(prefix) = tree.to_str().map(|tree| format!("{}/", tree.trim_end_matches('/'))) else {
            return;
        };
        let shorten = |text: &mut String| {
            if text.contains(&prefix) {
                *text = text.replace(&prefix, "");
            }
        };
        for case in &mut self.cases {
            shorten(&mut case.name);
            case.class.iter_mut().chain(&mut case.file).for_each(shorten);
        }
        for finding in &mut self.findings {
            finding.path.iter_mut().chain(&mut finding.rule).for_each(shorten);
        }
    }

    /// Counts a case, whatever its outcome.
    fn count_case(&mut self, case: CountedCase) {
        match case.outcome {
            CaseOutcome::Skipped => self.checks.skipped += 1,
            CaseOutcome::Passed => {
                self.checks.ran += 1;
                self.checks.passed += 1;
            }
            CaseOutcome::FailedByAssertion | CaseOutcome::FailedByError => {
                self.checks.ran += 1;
                self.checks.failed += 1;
            }
        }
        if self.cases.len() >= MOST_CASES {
            self.unnamed += 1;
            return;
        }
        let clip = |text: String| match text.len() > LONGEST_NAME {
            true => text.chars().take(LONGEST_NAME).collect(),
            false => text,
        };
        self.cases.push(CountedCase {
            name: clip(case.name),
            class: case.class.map(clip),
            file: case.file.map(clip),
            outcome: case.outcome,
        });
    }

    /// Counts a case that failed, with what it says of that.
    fn count_failure(&mut self, case: CountedCase, place: CasePlace, message: &str) {
        self.note_failure(&case.full_title(), place, message);
        self.count_case(case);
    }

    /// Notes that something failed that is no case.
    fn fail_outside(&mut self, name: &str, place: CasePlace, message: &str) {
        self.outside += 1;
        self.note_failure(name, place, message);
    }

    fn note_failure(&mut self, name: &str, place: CasePlace, message: &str) {
        if self.findings.len() < MOST_FINDINGS {
            let message = message.trim_matches(['\r', '\n']);
            self.findings.push(Finding {
                path: place.path,
                line: place.line,
                column: place.column,
                level: "error".to_owned(),
                rule: Some(name.chars().take(LONGEST_NAME).collect()),
                message: match message.is_empty() {
                    true => "the case failed and says nothing about it".to_owned(),
                    false => message.chars().take(LONGEST_MESSAGE).collect(),
                },
            });
        }
    }

    /// True where anything failed, a case or not.
    pub fn holds_failure(&self) -> bool {
        self.checks.failed > 0 || self.outside > 0
    }

    /// The count, where no problem stands against it. A failure counts whatever else is wrong.
    fn unless_failed(self, problem: Option<String>) -> Result<Self, String> {
        match problem {
            Some(problem) if !self.holds_failure() => Err(problem),
            _ => Ok(self),
        }
    }
}

/// Where in the sources a case failed, as far as its output says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct CasePlace {
    path: Option<String>,
    line: Option<u64>,
    column: Option<u64>,
}

/// Why an output of this length is not read at all.
fn refuse_size(bytes: &[u8]) -> Result<(), String> {
    match bytes.len() {
        length if length > MOST_BYTES => Err(format!("it has {length} bytes; at most {MOST_BYTES} are read")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_named_without_the_place_where_they_ran_and_are_bounded() {
        let mut counted = Counted::default();
        let file = Some("/slots/1/tree/tests/a.py".to_owned());
        let name = format!("/slots/1/tree/tests/a.py: {}", "x".repeat(LONGEST_NAME));
        let case = CountedCase { file, ..CountedCase::with_name(&name, CaseOutcome::FailedByError) };
        counted.count_failure(case, CasePlace::default(), "no");
        counted.name_relative_to(Path::new("/slots/1/tree"));
        assert_eq!(counted.cases[0].file.as_deref(), Some("tests/a.py"));
        assert!(counted.cases[0].name.starts_with("tests/a.py: x"), "{:?}", counted.cases[0]);
        assert_eq!(counted.findings[0].rule.as_deref(), Some(counted.cases[0].name.as_str()));

        let mut many = Counted::default();
        (0..MOST_CASES)
            .for_each(|n| many.count_case(CountedCase::with_name(&n.to_string(), CaseOutcome::Passed)));
        counted.add(many);
        assert_eq!((counted.cases.len(), counted.unnamed), (MOST_CASES, 1));
        assert_eq!(counted.checks.ran, MOST_CASES as u64 + 1, "all are counted");
    }
}
