//! What verifiers write about their cases. Every reader counts the cases itself; a summary is only ever used
//! to find out that something is missing, never as the count.
//!
//! A reader gives its reason in words where it cannot read an output: then nothing at all is known of the
//! run, and it is an error, whatever else the output may hold.

pub mod junit;
pub mod libtest;

use crate::domain::proof::evidence::{Finding, MOST_FINDINGS};
use crate::domain::proof::verdict::Checks;

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
}

/// A format of results. All that the rest of the program knows of one stands in its row of [`ALL`].
#[derive(Debug, Clone, Copy)]
pub struct ResultFormat {
    /// The word for it in a manifest.
    pub name: &'static str,
    pub written_to: WrittenTo,
    /// Counts the cases of an output, or says why the output cannot be read.
    pub count_cases: fn(&[u8]) -> Result<Counted, String>,
}

/// The formats that a manifest can name.
pub const ALL: &[ResultFormat] = &[
    ResultFormat { name: "junit", written_to: WrittenTo::File, count_cases: junit::count_cases },
    ResultFormat {
        name: "libtest",
        written_to: WrittenTo::StandardOutput,
        count_cases: libtest::count_cases,
    },
];

/// The formats of a later version.
pub const LATER: &[&str] = &["sarif"];

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counted {
    pub checks: Checks,
    /// The first failed ones: `rule` is the case's name.
    pub findings: Vec<Finding>,
}

impl Counted {
    /// Adds what another output says.
    pub fn add(&mut self, other: Counted) {
        self.checks.ran += other.checks.ran;
        self.checks.passed += other.checks.passed;
        self.checks.failed += other.checks.failed;
        self.checks.skipped += other.checks.skipped;
        self.checks.flaky += other.checks.flaky;
        let room = MOST_FINDINGS.saturating_sub(self.findings.len());
        self.findings.extend(other.findings.into_iter().take(room));
    }

    fn pass(&mut self) {
        self.checks.ran += 1;
        self.checks.passed += 1;
    }

    fn fail(&mut self, name: &str, place: CasePlace, message: &str) {
        self.checks.ran += 1;
        self.checks.failed += 1;
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
