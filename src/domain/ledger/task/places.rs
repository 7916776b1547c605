//! Where a task's live tree and worktree are, after the repository was moved.

use crate::domain::delivery::receipt::DeliveryPlan;
use crate::domain::ledger::record::{Home, Opened, Relocation};
use crate::domain::ledger::task::TaskView;
use crate::error::Result;
use std::path::Path;

impl TaskView {
    /// The worktree and the live tree.
    pub fn place(&self) -> Result<(String, Home)> {
        let opened = self.opened_terms()?;
        Ok((opened.worktree.clone(), opened.home.clone()))
    }

    pub(super) fn take_relocation(&mut self, relocation: Relocation) {
        let (Some((worktree, home)), Some(known)) = (relocation.place, &mut self.opened) else { return };
        let opened = &mut known.value;
        let pairs = [
            (&opened.worktree, &worktree),
            (&opened.home.top, &home.top),
            (&opened.home.git_dir, &home.git_dir),
        ];
        let moved = pairs.into_iter().filter(|(from, to)| from != to);
        self.moved.extend(moved.map(|(from, to)| (from.clone(), to.clone())));
        (opened.worktree, opened.home) = (worktree, home);
    }

    /// Terms that were written down before the repository was moved, with the places of now.
    pub fn bring_up_to_date(&self, opened: Opened) -> Opened {
        let home = Home {
            top: self.place_now(&opened.home.top),
            git_dir: self.place_now(&opened.home.git_dir),
            branch: opened.home.branch,
        };
        Opened { worktree: self.place_now(&opened.worktree), home, ..opened }
    }

    /// The same for the plan of a write that was cut off.
    pub fn bring_plan_up_to_date(&self, plan: &mut DeliveryPlan) {
        let now = |path: &Path| path.to_str().map(|text| self.place_now(text));
        if let Some(top) = now(&plan.top) {
            plan.top = top.into();
        }
        if let Some(index) = &mut plan.index
            && let Some(git_dir) = now(&index.git_dir)
        {
            index.git_dir = git_dir.into();
        }
    }

    fn place_now(&self, place: &str) -> String {
        let mut now = place.to_owned();
        for (from, to) in &self.moved {
            if *from == now {
                now.clone_from(to);
            }
        }
        now
    }
}
