//! What a task may still do outside of this repository, or may have done: read from its actions without an
//! end, and from those that had not arrived when they were asked for. Whoever ends the task, or reads its
//! report, is told.

use crate::domain::contract::DeliveryMode;
use crate::domain::delivery::publishing::Publishing;
use crate::domain::ledger::task::TaskView;

impl TaskView {
    /// True where the delivery moves a ref and leaves the live tree alone.
    pub fn publishes(&self) -> bool {
        let mode = self.opened.as_ref().map(|opened| opened.value.contract.delivery);
        mode.is_some_and(DeliveryMode::publishes)
    }

    /// The refs that an action without an end may have moved, or may still move; each with its action.
    pub fn open_effects(&self) -> impl Iterator<Item = (&str, &Publishing)> {
        self.unfinished
            .iter()
            .filter_map(|u| u.publishing.as_deref().map(|publishing| (u.action.as_str(), publishing)))
    }

    /// Effects outside that may still happen, or may have happened, as sentences with their actions.
    pub fn outside_effects(&self) -> Vec<(String, &str)> {
        let open = self.open_effects().map(|(action, publishing)| (publishing.effect_sentence(), action));
        let late = self.late.iter().map(|(action, publishing)| (publishing.late_effect(), action.as_str()));
        open.chain(late).collect()
    }
}
