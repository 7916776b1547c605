//! What verifiers write about their cases. Every reader counts the cases itself; a summary is only ever used to find
//! out that something is missing, never as the count.

pub mod junit;
pub mod libtest;

use crate::domain::verdict::Checks;

/// How many names of failed cases a reader keeps.
pub const MOST_NAMES: usize = 50;

/// What one output says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counted {
    /// The cases.
    pub checks: Checks,
    /// The first failed ones, by name.
    pub failed: Vec<String>,
}

impl Counted {
    /// Adds what another output says.
    pub fn add(&mut self, other: Counted) {
        self.checks.ran += other.checks.ran;
        self.checks.passed += other.checks.passed;
        self.checks.failed += other.checks.failed;
        self.checks.skipped += other.checks.skipped;
        self.checks.flaky += other.checks.flaky;
        let room = MOST_NAMES.saturating_sub(self.failed.len());
        self.failed.extend(other.failed.into_iter().take(room));
    }

    fn pass(&mut self) {
        self.checks.ran += 1;
        self.checks.passed += 1;
    }

    fn fail(&mut self, name: &str) {
        self.checks.ran += 1;
        self.checks.failed += 1;
        if self.failed.len() < MOST_NAMES {
            self.failed.push(name.chars().take(300).collect());
        }
    }
}
