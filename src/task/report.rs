//! What is known of a task, as its report and its brief report: from the ledger and the blobs alone.

use super::reach::allowed_tools;
use super::{Session, budget, evidence, runs};
use crate::domain::ledger::brief::Brief;
use crate::domain::ledger::report::Report;
use crate::domain::ledger::risk::Known;
use crate::domain::ledger::task::TaskView;
use crate::error::Result;
use crate::store::Ledger;

/// The report of a task that is known already.
pub fn report_of_view(session: &Session, ledger: &Ledger, view: &TaskView) -> Result<Report> {
    let evidence = evidence::counting_for(ledger, view)?;
    let mut rows = evidence::current_rows(&session.blobs(), view, &evidence)?;
    budget::explain(view, &mut rows);
    let runs = runs::of_rows(&session.blobs(), &evidence, &rows);
    Ok(Report::new(Known {
        view,
        opened: view.opened_terms()?,
        rows: &rows,
        evidence: &evidence,
        runs: &runs,
    }))
}

/// The same in brief: for a worker whose context was cut, and as the answer of `task_status`.
pub fn brief_of_view(session: &Session, ledger: &Ledger, view: &TaskView) -> Result<Brief> {
    let report = report_of_view(session, ledger, view)?;
    let opened = view.opened_terms()?;
    Ok(Brief::new(report, view, opened, &allowed_tools(view)?))
}
