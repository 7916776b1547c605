//! `submit`: a candidate, from the worktree or a part of what it changes, or from a patch.

mod hunks;
mod named;

use super::Session;
use crate::domain::ledger::report::CandidateObject;
use crate::error::Result;
use crate::task::budget;
use crate::task::candidate::candidate_object;
use crate::task::submission::{came_from_patch, capture_candidate, is_untouched};

pub use hunks::submit_hunks;
pub use named::submit_named;

/// Captures a candidate. The same tree under the same contract version is the same candidate.
pub fn submit(session: &Session, named: Option<&str>, patch: Option<&[u8]>) -> Result<CandidateObject> {
    let mut task = session.write(named)?;
    task.require_active()?;
    budget::require_left(&task)?;
    let candidate = capture_candidate(&mut task, patch)?;
    Ok(candidate_object(session, &task.view.id, &candidate))
}

/// The same, but where the last candidate came from a patch and nobody has worked in the worktree, that one
/// is gone on with: whoever brought a patch does not bring it again.
pub fn submit_or_go_on(session: &Session, id: &str, patch: Option<&[u8]>) -> Result<CandidateObject> {
    if patch.is_none() {
        let task = session.write(Some(id))?;
        if let Some(last) = task.view.current_candidate()
            && came_from_patch(&task, last.value.candidate)?
            && is_untouched(&task)?
        {
            return Ok(candidate_object(session, id, &last.value));
        }
    }
    submit(session, Some(id), patch)
}
