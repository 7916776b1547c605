//! The tasks that share a budget: one, those above it, and all that are beneath one of those.

use super::view::load;
use crate::domain::ledger::charges::{Member, family_standing};
use crate::domain::ledger::task::TaskView;
use crate::error::Result;
use crate::store::Ledger;

/// Looks up where the task stands: its own use and limits, and those of its family.
pub fn attach(ledger: &Ledger, view: &mut TaskView) -> Result<()> {
    view.standing = Some(family_standing(&family(ledger, view)?, &view.id));
    Ok(())
}

/// The task, those above it, and all that are beneath one of those.
pub fn family(ledger: &Ledger, view: &TaskView) -> Result<Vec<Member>> {
    let kin = ledger.list_kin()?;
    let mut ids = vec![view.id.clone()];
    let related = |(child, parent): &&(String, String), ids: &[String]| {
        (ids.contains(parent) && !ids.contains(child)) || (ids.contains(child) && !ids.contains(parent))
    };
    while let Some((child, parent)) = kin.iter().find(|pair| related(pair, &ids)) {
        let next = if ids.contains(child) { parent } else { child };
        ids.push(next.clone());
    }
    let mut members = vec![view.family_member()];
    for id in ids.iter().filter(|id| **id != view.id) {
        members.extend(load(ledger, id)?.map(|view| view.family_member()));
    }
    Ok(members)
}

/// The tasks that are parts of this one, and not of one of those.
pub fn children(ledger: &Ledger, task: &str) -> Result<Vec<String>> {
    let kin = ledger.list_kin()?;
    Ok(kin.into_iter().filter(|(_, parent)| parent == task).map(|(child, _)| child).collect())
}
