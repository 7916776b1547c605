//! `ship`: (open,) submit, verify and deliver in one go, until a step fails. Once something was verified the
//! result is the report, whether or not it was delivered.

mod queue;

pub use queue::ship_all;

use super::{Session, deliver, open, report, submit, verify};
use crate::domain::contract::Kind;
use crate::domain::ledger::report::Report;
use crate::error::{Failure, Result};
use crate::task::effect::Write;
use crate::task::session::Progress;
use crate::task::submission::is_last_patch;

#[derive(Debug, Clone, Copy)]
pub enum Subject<'a> {
    /// A task, or the only open one.
    Task(Option<&'a str>),
    /// A contract that is opened first.
    Contract(&'a [u8]),
}

/// How the steps are taken.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    pub sandbox: verify::Sandbox,
    pub proof: deliver::LiveProof,
    pub write: Write,
}

#[derive(Debug)]
pub struct Shipped {
    pub report: Report,
    /// Why it was not delivered, where the verification did not allow it.
    pub refused: Option<Failure>,
}

/// Ships and gives the report.
pub fn ship(
    session: &Session,
    subject: Subject<'_>,
    patch: Option<&[u8]>,
    options: Options,
    progress: Progress<'_>,
) -> Result<Shipped> {
    let task = match subject {
        Subject::Task(named) => session.task_id(named)?,
        Subject::Contract(bytes) => open::open(session, bytes, progress)?.task_id,
    };
    let (_, view) = session.view(Some(&task))?;
    let delivered_before = view.has_ended() && view.cancelled.is_none();
    // Another patch is another change, and no task takes one after its end.
    if let Some(patch) = patch.filter(|_| delivered_before)
        && !is_last_patch(session, &view, patch)?
    {
        view.require_active()?;
    }
    let explores = view.opened_terms()?.contract.kind == Kind::Explore;
    if !delivered_before {
        view.require_answered()?;
        let candidate = submit::submit_or_go_on(session, &task, patch)?;
        // To run verifiers for nothing would only take time: the delivery says that there is nothing.
        if !candidate.changes.is_empty() || explores {
            let how = verify::Options { sandbox: options.sandbox, ..Default::default() };
            let verification = verify::verify(session, Some(&task), &how, progress)?;
            if let Some(failure) = verify::refusal_of_rows(&task, &verification.requirements) {
                return Ok(Shipped { report: report::report(session, Some(&task))?, refused: Some(failure) });
            }
        }
    }
    let how = deliver::Options { write: options.write, proof: options.proof, ..Default::default() };
    let delivered = deliver::deliver(session, Some(&task), &how, progress)?;
    let mut report = report::report(session, Some(&task))?;
    if options.write == Write::DryRun {
        report.delivery = Some(delivered);
    }
    Ok(Shipped { report, refused: None })
}
