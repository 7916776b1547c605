//! Budgets: how much a task may use, what it has used, and what is left of it for the task and its family.
//!
//! - Everything is computed from the ledger's rows ([`Charges::take`]), so a restart refills nothing.
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

pub use share::{Member, Spent, Standing, standing};

use crate::domain::contract::Kind;
use crate::domain::ledger::action::ActionState;
use crate::domain::ledger::entry::Entry;
use crate::domain::worker::repetition::Repetition;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Key {
    WallSeconds,
    /// Calls of a worker's tools.
    ToolCalls,
    Turns,
    /// Bytes that the verifiers print.
    OutputBytes,
    /// Bytes of the files that a candidate adds or changes.
    ArtifactBytes,
    /// The same failure, again and again.
    RepeatedFailures,
}

/// Some keys with a number each: what a contract asks for, a policy's ceiling, what a person adds.
pub type Amounts = BTreeMap<Key, u64>;

impl Key {
    /// What a run uses of a budget.
    pub const OF_RUNS: [Key; 2] = [Self::WallSeconds, Self::OutputBytes];

    /// Every key with its word.
    pub const ALL: [(&'static str, Key); 6] = [
        ("wallSeconds", Self::WallSeconds),
        ("toolCalls", Self::ToolCalls),
        ("turns", Self::Turns),
        ("outputBytes", Self::OutputBytes),
        ("artifactBytes", Self::ArtifactBytes),
        ("repeatedFailures", Self::RepeatedFailures),
    ];

    pub fn words() -> [&'static str; 6] {
        Self::ALL.map(|(word, _)| word)
    }

    /// The key of a word.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(own, _)| *own == word).map(|(_, key)| *key)
    }

    /// The word in contract, policy and objects.
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(_, key)| *key == self).map_or("", |(word, _)| word)
    }

    /// What holds where neither contract nor policy says anything.
    pub fn built_in(self, kind: Kind) -> u64 {
        match (self, kind) {
            (Self::WallSeconds, Kind::Repair) => 7200,
            (Self::WallSeconds, _) => 3600,
            (Self::ToolCalls, Kind::Repair) => 300,
            (Self::ToolCalls, _) => 200,
            (Self::Turns, Kind::Repair) => 150,
            (Self::Turns, _) => 100,
            (Self::OutputBytes, Kind::Repair) => 512 << 20,
            (Self::OutputBytes, _) => 256 << 20,
            (Self::ArtifactBytes, _) => 64 << 20,
            (Self::RepeatedFailures, _) => 5,
        }
    }
}

/// The limit of every key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Limits(Amounts);

impl Limits {
    /// What a contract asks for within the policy's ceiling, where it asks for nothing the ceiling or what is
    /// built in; and the keys that were narrowed.
    pub fn within(kind: Kind, asked: &Amounts, ceiling: &Amounts) -> (Self, Vec<Key>) {
        let mut narrowed = Vec::new();
        let limit = |key: Key| match (asked.get(&key), ceiling.get(&key)) {
            (Some(asked), Some(ceiling)) if asked > ceiling => {
                narrowed.push(key);
                *ceiling
            }
            (Some(asked), _) => *asked,
            (None, ceiling) => ceiling.copied().unwrap_or_else(|| key.built_in(kind)),
        };
        let all = Key::ALL.map(|(_, key)| key);
        (Self(all.into_iter().zip(all.map(limit)).collect()), narrowed)
    }

    /// The limit of a key.
    pub fn of(&self, key: Key) -> u64 {
        self.0.get(&key).copied().unwrap_or_else(|| key.built_in(Kind::Edit))
    }

    /// No key above what another task has.
    pub fn at_most(&self, other: &Limits) -> Self {
        Self(Key::ALL.iter().map(|(_, key)| (*key, self.of(*key).min(other.of(*key)))).collect())
    }

    /// No key above a ceiling, where that has one.
    pub fn beneath(mut self, ceiling: &Amounts) -> Self {
        for (key, most) in ceiling {
            self.0.entry(*key).and_modify(|own| *own = (*own).min(*most));
        }
        self
    }

    /// With what a person added.
    pub fn plus(&self, added: &Amounts) -> Self {
        let more = |key: &Key| added.get(key).copied().unwrap_or(0);
        Self(Key::ALL.iter().map(|(_, key)| (*key, self.of(*key).saturating_add(more(key)))).collect())
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cost {
    /// Milliseconds from its dispatch to its end.
    pub milliseconds: u64,
    /// Bytes that its programs printed, before anything was cut.
    pub output_bytes: u64,
}

impl Cost {
    pub fn plus(self, other: Cost) -> Cost {
        Cost {
            milliseconds: self.milliseconds.saturating_add(other.milliseconds),
            output_bytes: self.output_bytes.saturating_add(other.output_bytes),
        }
    }

    /// What of it lies beyond another one.
    fn minus(self, other: Cost) -> Cost {
        Cost {
            milliseconds: self.milliseconds.saturating_sub(other.milliseconds),
            output_bytes: self.output_bytes.saturating_sub(other.output_bytes),
        }
    }

    pub fn at_most(self, other: Cost) -> Cost {
        Cost {
            milliseconds: self.milliseconds.min(other.milliseconds),
            output_bytes: self.output_bytes.min(other.output_bytes),
        }
    }

    /// True where there is nothing left of one of both.
    pub fn lacks_something(self) -> bool {
        self.milliseconds == 0 || self.output_bytes == 0
    }
}

/// What a run may use, as the ledger has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// The sum of its slices.
    pub reserved: Cost,
    /// What it had used when it asked for the last one.
    pub used: Cost,
}

/// What a person added to the limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Addition {
    /// How much, by key, within the policy.
    pub added: Amounts,
    /// What the policy took away of it, as sentences.
    pub narrowed: Vec<String>,
}

/// A run that has not ended in the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Running {
    /// When it was dispatched, RFC 3339.
    since: String,
    /// All that was reserved for it so far.
    reserved: Cost,
    /// What it had used when it asked for its last slice.
    used: Cost,
}

/// What one task's own actions took, and what a person added to its limits.
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
    pub fn take(&mut self, entry: &Entry) {
        let record = entry.result.get("record").and_then(Value::as_str);
        match (record, entry.state) {
            (Some("reserved"), ActionState::Dispatched) => self.reserve(entry),
            (Some("call"), ActionState::Planned) => self.call(entry),
            (Some("resumed"), ActionState::Succeeded) => {
                let added: Option<Amounts> = field(entry, "added");
                self.repetition.forgive();
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
            self.ended = self.ended.plus(field(entry, "cost").unwrap_or_else(|| run.cut_off(&entry.at)));
        }
    }

    fn reserve(&mut self, entry: &Entry) {
        let reserved = field(entry, "reserved").unwrap_or_default();
        let used = field(entry, "used").unwrap_or_default();
        let since = || Running { since: entry.at.clone(), reserved, used };
        let run = self.running.entry(entry.action.clone()).or_insert_with(since);
        (run.reserved, run.used) = (reserved, used);
    }

    fn call(&mut self, entry: &Entry) {
        self.open_calls.insert(entry.action.clone());
        if field(entry, "charged").unwrap_or(true) {
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
        let of_a_failure = || field(entry, "cost").map(|cost: Cost| cost.milliseconds);
        let milliseconds = field(entry, "milliseconds").or_else(of_a_failure).unwrap_or(0);
        self.ended = self.ended.plus(Cost { milliseconds, output_bytes: 0 });
        if entry.state.is_final() {
            self.open_calls.remove(&entry.action);
            self.repetition.take(entry);
        }
    }

    pub fn ended(&self) -> Cost {
        self.ended
    }

    /// How often the same came back.
    pub fn repetition(&self) -> &Repetition {
        &self.repetition
    }

    /// What a person added to each limit.
    pub fn added(&self) -> &Amounts {
        &self.added
    }

    /// What is reserved for runs that have not ended.
    pub fn reserved(&self) -> Cost {
        self.running.values().fold(Cost::default(), |sum, run| sum.plus(run.reserved))
    }

    /// The actions that something is reserved for.
    pub fn running(&self) -> impl Iterator<Item = &str> {
        self.running.keys().map(String::as_str)
    }
}

impl Running {
    /// What it took, where nobody could say so any more.
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

fn field<T: serde::de::DeserializeOwned>(entry: &Entry, name: &str) -> Option<T> {
    entry.result.get(name).and_then(|value| serde_json::from_value(value.clone()).ok())
}

#[cfg(test)]
mod tests;
