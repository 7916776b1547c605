//! Budgets: how much a task may use, by key, and the sizes that runs are measured in.

use crate::domain::contract::Kind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
    /// The keys that a run uses.
    pub const OF_RUNS: [Key; 2] = [Self::WallSeconds, Self::OutputBytes];

    /// Every key with its word.
    pub const ALL: [(&'static str, Key); 6] = [
        (Self::WallSeconds.as_str(), Self::WallSeconds),
        (Self::ToolCalls.as_str(), Self::ToolCalls),
        (Self::Turns.as_str(), Self::Turns),
        (Self::OutputBytes.as_str(), Self::OutputBytes),
        (Self::ArtifactBytes.as_str(), Self::ArtifactBytes),
        (Self::RepeatedFailures.as_str(), Self::RepeatedFailures),
    ];

    pub fn all_words() -> [&'static str; 6] {
        Self::ALL.map(|(word, _)| word)
    }

    /// The key of a word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(own, _)| *own == word).map(|(_, key)| *key)
    }

    /// The word in contract, policy and objects.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::WallSeconds => "wallSeconds",
            Self::ToolCalls => "toolCalls",
            Self::Turns => "turns",
            Self::OutputBytes => "outputBytes",
            Self::ArtifactBytes => "artifactBytes",
            Self::RepeatedFailures => "repeatedFailures",
        }
    }

    /// The limit where neither contract nor policy says anything.
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
    pub fn within_ceiling(kind: Kind, asked: &Amounts, ceiling: &Amounts) -> (Self, Vec<Key>) {
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
    pub fn limit_of(&self, key: Key) -> u64 {
        self.0.get(&key).copied().unwrap_or_else(|| key.built_in(Kind::Edit))
    }

    /// No key above what another task has.
    pub fn at_most(&self, other: &Limits) -> Self {
        Self(Key::ALL.iter().map(|(_, key)| (*key, self.limit_of(*key).min(other.limit_of(*key)))).collect())
    }

    /// No key above a ceiling, where that has one.
    pub fn lowered_to(mut self, ceiling: &Amounts) -> Self {
        for (key, most) in ceiling {
            self.0.entry(*key).and_modify(|own| *own = (*own).min(*most));
        }
        self
    }

    /// With what a person added.
    pub fn with_added(&self, added: &Amounts) -> Self {
        let more = |key: &Key| added.get(key).copied().unwrap_or(0);
        Self(Key::ALL.iter().map(|(_, key)| (*key, self.limit_of(*key).saturating_add(more(key)))).collect())
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

    /// The part of it that lies beyond another one.
    pub(in crate::domain) fn minus(self, other: Cost) -> Cost {
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

/// The sizes that a run may use, as the ledger has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// The sum of its slices.
    pub reserved: Cost,
    /// The use when it asked for the last one.
    pub used: Cost,
}

/// An addition to the limits by a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Addition {
    /// The amount by key, within the policy.
    pub added: Amounts,
    /// One sentence for each thing that the policy took away of it.
    pub narrowed: Vec<String>,
}
