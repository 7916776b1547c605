//! `deliver --merge`: a sequence of the commands `rebase`, `verify` and `deliver`.

use super::{Options, Write, deliver};
use crate::domain::delivery::conflict::CONFLICTS;
use crate::domain::ledger::report::DeliveryObject;
use crate::error::{Code, Failure, Result};
use crate::ops::rebase::rebase;
use crate::ops::verify;
use crate::task::Session;
use crate::task::session::Progress;

/// Delivers; where the live tree is in the way and every conflict can be merged, carries the candidate over
/// to what is there first, runs the verifiers that this made stale, and delivers exactly what they saw.
pub fn merge(
    session: &Session,
    named: Option<&str>,
    options: &Options,
    progress: Progress<'_>,
) -> Result<DeliveryObject> {
    let refused = match deliver(session, named, options, progress) {
        Err(failure) if failure.code() == Code::DeliveryConflict && is_mergeable(&failure) => failure,
        other => return other,
    };
    if options.write == Write::DryRun {
        return Err(refused);
    }
    let candidate = rebase(session, named)?;
    let task = Some(candidate.task_id.as_str());
    verify::verify(session, task, &verify::Options::default(), progress)?;
    deliver(session, task, options, progress)
}

/// True where the failure lists conflicts and each can be merged.
fn is_mergeable(failure: &Failure) -> bool {
    let conflicts = failure.read_detail(&CONFLICTS);
    conflicts.is_some_and(|all| !all.is_empty() && all.iter().all(|conflict| conflict.mergeable))
}
