//! Budgets: how much a task may use, what it has used, and what is left of it for the task and its family.
//!
//! - Everything is computed from the ledger's rows ([`Charges::take_row`]), so a restart refills nothing.
//! - A run of a verifier uses only what was reserved for it beforehand, slice by slice. Reserving is one
//!   transaction over the whole family ([`Standing::next_slice`]), so that runs side by side never use the
//!   same rest twice.
//! - What a sub-task uses counts for each task above it; what is left is the least that any of them has left.
//! - Calls are counted where they arrive, and never stop what is under way. A task pauses for them only once
//!   it has asked for more than it had: what was refused is compared with what was charged by the order of
//!   the rows, over the whole family.
//! - A run that was cut off is charged by the times of its rows, within what was reserved for it. Clocks may
//!   go backwards: no charge is negative, and none is below what had been used up when the last slice was
//!   asked for.

mod share;

pub use share::{Member, Spent, Standing, family_standing};

use crate::domain::contract::budget::{Amounts, Cost};
use crate::domain::ledger::action::ActionState;
use crate::domain::ledger::entry::Entry;
use crate::domain::ledger::repetition::Repetition;
use std::collections::{BTreeMap, BTreeSet};

/// A run that has not ended in the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Running {
    /// When it was dispatched, RFC 3339.
    since: String,
    /// All that was reserved for it so far.
    reserved: Cost,
    /// The use when it asked for its last slice.
    used: Cost,
}

/// The use of one task's own actions, and a person's additions to its limits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Charges {
    ended: Cost,
    running: BTreeMap<String, Running>,
    added: Amounts,
    calls: u64,
    /// The row of the last call that was charged; 0 before there was one.
    last_charged: i64,
    /// The row of the last call that was refused because nothing was left; 0 before there was one.
    last_refused: i64,
    open_calls: BTreeSet<String>,
    repetition: Repetition,
}

impl Charges {
    pub fn take_row(&mut self, entry: &Entry) {
        let record = entry.result.record_kind();
        match (record.as_deref(), entry.state) {
            (Some("reserved"), ActionState::Dispatched) => self.take_reservation(entry),
            (Some("call"), ActionState::Planned) => self.take_call(entry),
            (Some("resumed"), ActionState::Succeeded) => {
                let added: Option<Amounts> = row_field(entry, "added");
                self.repetition.count_anew();
                for (key, amount) in added.unwrap_or_default() {
                    let sum = self.added.entry(key).or_default();
                    *sum = sum.saturating_add(amount);
                }
            }
            _ => {}
        }
        if self.open_calls.contains(&entry.action) {
            self.call_went_on(entry);
        }
        if entry.state.is_final()
            && let Some(run) = self.running.remove(&entry.action)
        {
            self.ended = self.ended.plus(row_field(entry, "cost").unwrap_or_else(|| run.cut_off(&entry.at)));
        }
    }

    fn take_reservation(&mut self, entry: &Entry) {
        let reserved = row_field(entry, "reserved").unwrap_or_default();
        let used = row_field(entry, "used").unwrap_or_default();
        let since = || Running { since: entry.at.clone(), reserved, used };
        let run = self.running.entry(entry.action.clone()).or_insert_with(since);
        (run.reserved, run.used) = (reserved, used);
    }

    fn take_call(&mut self, entry: &Entry) {
        self.open_calls.insert(entry.action.clone());
        if row_field(entry, "charged").unwrap_or(true) {
            self.calls = self.calls.saturating_add(1);
            self.last_charged = entry.seq;
        } else {
            self.last_refused = entry.seq;
        }
    }

    /// Whatever its end: what it took of its own is in that row. One that was lost is charged when that is
    /// written, and not again once it is settled. What a crash cut off is not charged, since nobody knows for
    /// how long it went on; what it ran is, as far as that was reserved.
    fn call_went_on(&mut self, entry: &Entry) {
        let of_a_failure = || row_field(entry, "cost").map(|cost: Cost| cost.milliseconds);
        let milliseconds = row_field(entry, "milliseconds").or_else(of_a_failure).unwrap_or(0);
        self.ended = self.ended.plus(Cost { milliseconds, output_bytes: 0 });
        if entry.state.is_final() {
            self.open_calls.remove(&entry.action);
            self.repetition.take_row(entry);
        }
    }

    pub fn ended_cost(&self) -> Cost {
        self.ended
    }

    /// The count of calls that came back with the same result.
    pub fn repetition(&self) -> &Repetition {
        &self.repetition
    }

    /// A person's addition to each limit.
    pub fn added_amounts(&self) -> &Amounts {
        &self.added
    }

    /// The sum that is reserved for runs that have not ended.
    pub fn reserved_cost(&self) -> Cost {
        self.running.values().fold(Cost::default(), |sum, run| sum.plus(run.reserved))
    }

    /// The actions that something is reserved for.
    pub fn running_actions(&self) -> impl Iterator<Item = &str> {
        self.running.keys().map(String::as_str)
    }
}

impl Running {
    /// The charge for a run that a crash cut off.
    fn cut_off(&self, at: &str) -> Cost {
        let time = |text: &str| text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond);
        let passed = match (time(&self.since), time(at)) {
            (Some(since), Some(at)) => u64::try_from(at.saturating_sub(since)).unwrap_or(0),
            _ => 0,
        };
        let milliseconds = passed.min(self.reserved.milliseconds).max(self.used.milliseconds);
        Cost { milliseconds, output_bytes: self.used.output_bytes }
    }
}

fn row_field<T: serde::de::DeserializeOwned>(entry: &Entry, name: &str) -> Option<T> {
    entry.result.field(name)
}

#[cfg(test)]
mod tests;
