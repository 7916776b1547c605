//! Says what a change tells a verifier otherwise: files that say how it judges and that may rightly change
//! with the work. A run sees the candidate's, so a person confirms the difference.

use super::load::Verifier;
use super::view::is_input;
use crate::domain::change::patch::Change;
use crate::domain::value::repo_path::RepoPath;

/// Something by which a change has a verifier judge otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChangedJudge {
    pub(super) path: RepoPath,
    /// For people: what of the file changed.
    pub(super) what: String,
}

/// Finds what a change tells a verifier otherwise, in the order of the paths.
pub(super) fn find_changed_judges(changes: &[Change], verifier: &Verifier) -> Vec<ChangedJudge> {
    let watched =
        |change: &&Change| verifier.manifest.watch.touches(&change.path) && is_input(&change.path, verifier);
    changes
        .iter()
        .filter(watched)
        .map(|change| ChangedJudge { path: change.path.clone(), what: change.path.to_string() })
        .collect()
}
