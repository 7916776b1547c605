//! What is known of a task: its rows, folded in their order.

use crate::domain::ledger::task::TaskView;
use crate::error::Result;
use crate::store::Ledger;

/// Folds a task's rows; `None` where it has none that opened it.
pub fn load(ledger: &Ledger, id: &str) -> Result<Option<TaskView>> {
    let mut view = TaskView::new(id);
    catch_up(ledger, &mut view)?;
    Ok(view.opened.is_some().then_some(view))
}

/// Takes the rows in that a view does not have yet, in their order.
pub fn catch_up(ledger: &Ledger, view: &mut TaskView) -> Result<()> {
    for entry in ledger.entries_after(&view.id, view.upto)? {
        view.apply_row(&entry)?;
    }
    Ok(())
}
