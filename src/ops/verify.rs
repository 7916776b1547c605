//! `verify`: run what lacks evidence, reuse what is fresh, and say of each requirement what is known for
//! exactly these bytes.

use super::Session;
use crate::domain::ledger::report::VerificationObject;
use crate::error::Result;
use crate::task::budget;
use crate::task::session::Progress;
use crate::task::verification::produce_evidence;
pub use crate::task::verification::{Explain, FlakyRows, Options, Sandbox, refusal_of_rows};

/// Produces the missing evidence for the last candidate.
pub fn verify(
    session: &Session,
    named: Option<&str>,
    options: &Options<'_>,
    progress: Progress<'_>,
) -> Result<VerificationObject> {
    let mut task = session.write(named)?;
    task.require_active()?;
    budget::require_left(&task)?;
    produce_evidence(&mut task, options, progress)
}
