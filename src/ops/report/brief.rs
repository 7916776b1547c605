//! The brief report: for a worker whose context was cut, and as the answer of `task_status`. From the ledger
//! and the blobs alone.

use super::super::Session;
use super::super::gate::reach::allowed_tools;
use super::of_view;
use crate::domain::ledger::brief::Brief;
use crate::domain::ledger::task::TaskView;
use crate::error::Result;
use crate::store::Ledger;

/// The brief report of a task.
pub fn brief(session: &Session, named: Option<&str>) -> Result<Brief> {
    let (ledger, view) = session.view(named)?;
    brief_of_view(session, &ledger, &view)
}

/// The brief report of a task that is known already.
pub fn brief_of_view(session: &Session, ledger: &Ledger, view: &TaskView) -> Result<Brief> {
    let report = of_view(session, ledger, view)?;
    let opened = view.opened_terms()?;
    Ok(Brief::new(report, view, opened, &allowed_tools(view)?))
}
