//! Budgets: how much a task may use, what it has used, and what is left of it for the task and its family.
//!
//! - Everything is computed from the ledger's rows ([`Charges::take`]), so a restart refills nothing.
//! - A run of a verifier uses only what was reserved for it beforehand, slice by slice. Reserving is one transaction over the whole family
//!   ([`Standing::next_slice`]), so that runs side by side never use the same rest twice.
//! - What a sub-task uses counts for each task above it; what is left is the least that any of them has left.
//! - A run that was cut off is charged by the times of its rows, within what was reserved for it. Clocks may go backwards: no charge is
//!   negative, and none is below what had been used up when the last slice was asked for.

use super::action::ActionState;
use super::contract::Kind;
use super::entry::Entry;
use crate::error::{Code, Failure};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// What can be limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Key {
    /// Seconds of dispatched actions.
    WallSeconds,
    /// Calls of a worker's tools.
    ToolCalls,
    /// Turns of a model.
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
    /// Every key with its word.
    pub const ALL: [(&'static str, Key); 6] = [
        ("wallSeconds", Self::WallSeconds),
        ("toolCalls", Self::ToolCalls),
        ("turns", Self::Turns),
        ("outputBytes", Self::OutputBytes),
        ("artifactBytes", Self::ArtifactBytes),
        ("repeatedFailures", Self::RepeatedFailures),
    ];

    /// The words alone.
    #[must_use]
    pub fn words() -> [&'static str; 6] {
        Self::ALL.map(|(word, _)| word)
    }

    /// The key of a word.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(own, _)| *own == word).map(|(_, key)| *key)
    }

    /// The word in contract, policy and objects.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(_, key)| *key == self).map_or("", |(word, _)| word)
    }

    /// What holds where neither contract nor policy says anything.
    #[must_use]
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
    /// What a contract asks for within the policy's ceiling, where it asks for nothing the ceiling or what is built in; and the keys
    /// that were narrowed.
    #[must_use]
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
    #[must_use]
    pub fn of(&self, key: Key) -> u64 {
        self.0.get(&key).copied().unwrap_or_else(|| key.built_in(Kind::Edit))
    }

    /// No key above what another task has.
    #[must_use]
    pub fn at_most(&self, other: &Limits) -> Self {
        Self(Key::ALL.iter().map(|(_, key)| (*key, self.of(*key).min(other.of(*key)))).collect())
    }

    /// With what a person added.
    #[must_use]
    pub fn plus(&self, added: &Amounts) -> Self {
        let more = |key: &Key| added.get(key).copied().unwrap_or(0);
        Self(Key::ALL.iter().map(|(_, key)| (*key, self.of(*key).saturating_add(more(key)))).collect())
    }
}

/// What something took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cost {
    /// Milliseconds from its dispatch to its end.
    pub milliseconds: u64,
    /// Bytes that its programs printed, before anything was cut.
    pub output_bytes: u64,
}

impl Cost {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Cost) -> Cost {
        Cost {
            milliseconds: self.milliseconds.saturating_add(other.milliseconds),
            output_bytes: self.output_bytes.saturating_add(other.output_bytes),
        }
    }

    /// What of it lies beyond another one.
    #[must_use]
    fn minus(self, other: Cost) -> Cost {
        Cost {
            milliseconds: self.milliseconds.saturating_sub(other.milliseconds),
            output_bytes: self.output_bytes.saturating_sub(other.output_bytes),
        }
    }

    /// The lesser of each.
    #[must_use]
    pub fn at_most(self, other: Cost) -> Cost {
        Cost {
            milliseconds: self.milliseconds.min(other.milliseconds),
            output_bytes: self.output_bytes.min(other.output_bytes),
        }
    }

    /// True where there is nothing left of one of both.
    #[must_use]
    pub fn lacks_something(self) -> bool {
        self.milliseconds == 0 || self.output_bytes == 0
    }
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
}

impl Charges {
    /// Takes one row in.
    pub fn take(&mut self, entry: &Entry) {
        let record = entry.result.get("record").and_then(Value::as_str);
        match (record, entry.state) {
            (Some("reserved"), ActionState::Dispatched) => self.reserve(entry),
            (Some("resumed"), ActionState::Succeeded) => {
                let added: Option<Amounts> = field(entry, "added");
                for (key, amount) in added.unwrap_or_default() {
                    let sum = self.added.entry(key).or_default();
                    *sum = sum.saturating_add(amount);
                }
            }
            _ => {}
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

    /// What a person added to each limit.
    #[must_use]
    pub fn added(&self) -> &Amounts {
        &self.added
    }

    /// What is reserved for runs that have not ended.
    #[must_use]
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

/// One task of a family.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// Its id.
    pub id: String,
    /// The task above it.
    pub parent: Option<String>,
    /// Its limits, with what was added.
    pub limits: Limits,
    /// What its own actions took.
    pub charges: Charges,
    /// Bytes of its last candidate; none once it was cancelled.
    pub artifact_bytes: u64,
}

/// One task's limits, and what it and all tasks beneath it have used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The task.
    pub task: String,
    limits: Limits,
    ended: Cost,
    reserved: Cost,
    artifact_bytes: u64,
}

/// Where a task stands: its own account and those of the tasks above it, nearest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    accounts: Vec<Account>,
    own_artifact_bytes: u64,
}

/// What a task's family has used and reserved, as one value. The order of `members` does not matter.
#[must_use]
pub fn standing(members: &[Member], id: &str) -> Standing {
    let chain = chain(members, id);
    let own = chain.first().map_or(0, |member| member.artifact_bytes);
    let account = |above: &&Member| {
        let mut account = Account {
            task: above.id.clone(),
            limits: above.limits.clone(),
            ended: Cost::default(),
            reserved: Cost::default(),
            artifact_bytes: 0,
        };
        for member in members.iter().filter(|member| is_at_or_beneath(members, member, &above.id)) {
            account.ended = account.ended.plus(member.charges.ended);
            account.reserved = account.reserved.plus(member.charges.reserved());
            account.artifact_bytes = account.artifact_bytes.saturating_add(member.artifact_bytes);
        }
        account
    };
    Standing { accounts: chain.iter().map(account).collect(), own_artifact_bytes: own }
}

/// A task and those above it, nearest first.
fn chain<'a>(members: &'a [Member], id: &str) -> Vec<&'a Member> {
    let find = |id: &str| members.iter().find(|member| member.id == id);
    let mut chain: Vec<&Member> = Vec::new();
    let mut next = find(id);
    // A parent is there before its child, so there is no circle; a damaged ledger shall not make one.
    while let Some(member) = next.filter(|member| chain.iter().all(|known| known.id != member.id)) {
        chain.push(member);
        next = member.parent.as_deref().and_then(find);
    }
    chain
}

fn is_at_or_beneath(members: &[Member], member: &Member, above: &str) -> bool {
    chain(members, &member.id).iter().any(|one| one.id == above)
}

impl Account {
    /// What has been used of a key; `None` where nothing measures it.
    #[must_use]
    pub fn used(&self, key: Key) -> Option<u64> {
        match key {
            // A second that was begun counts: whoever ran something has used something.
            Key::WallSeconds => Some(self.ended.milliseconds.div_ceil(1000)),
            Key::OutputBytes => Some(self.ended.output_bytes),
            Key::ArtifactBytes => Some(self.artifact_bytes),
            Key::ToolCalls | Key::RepeatedFailures => Some(0),
            Key::Turns => None,
        }
    }

    /// The limit of a key.
    #[must_use]
    pub fn limit(&self, key: Key) -> u64 {
        self.limits.of(key)
    }

    fn allowed(&self) -> Cost {
        Cost {
            milliseconds: self.limit(Key::WallSeconds).saturating_mul(1000),
            output_bytes: self.limit(Key::OutputBytes),
        }
    }

    /// What nobody has used or reserved.
    fn free(&self) -> Cost {
        self.allowed().minus(self.ended.plus(self.reserved))
    }

    /// The keys that are used up.
    #[must_use]
    pub fn spent(&self) -> Vec<Key> {
        let left = self.allowed().minus(self.ended);
        let all = [(Key::WallSeconds, left.milliseconds), (Key::OutputBytes, left.output_bytes)];
        all.into_iter().filter(|(_, left)| *left == 0).map(|(key, _)| key).collect()
    }

    /// Used and limit of the given keys.
    #[must_use]
    pub fn shares(&self, keys: impl IntoIterator<Item = Key>) -> Map<String, Value> {
        let share = |key: Key| {
            let used = self.used(key).map_or_else(|| json!("not measured"), |used| json!(used));
            (key.as_str().to_owned(), json!({ "used": used, "limit": self.limit(key) }))
        };
        keys.into_iter().map(share).collect()
    }
}

/// A budget that is used up: of which task, and which keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spent<'a> {
    account: &'a Account,
    keys: Vec<Key>,
}

impl Spent<'_> {
    /// In words, such as `the budget of t1 is spent: wallSeconds 60 of 60`.
    #[must_use]
    pub fn sentence(&self) -> String {
        let shares: Vec<String> = self
            .keys
            .iter()
            .map(|key| {
                format!(
                    "{} {} of {}",
                    key.as_str(),
                    self.account.used(*key).unwrap_or(0),
                    self.account.limit(*key)
                )
            })
            .collect();
        format!("the budget of {} is spent: {}", self.account.task, shares.join(", "))
    }

    /// The refusal of everything that would use more.
    #[must_use]
    pub fn refusal(&self, kept: &str) -> Failure {
        let task = self.account.task.as_str();
        let failure =
            Failure::new(Code::BudgetExhausted, format!("{}; {kept}", self.sentence())).subject(task);
        let failure = self
            .account
            .shares(self.keys.iter().copied())
            .into_iter()
            .fold(failure, |failure, (key, share)| failure.detail(&key, share));
        let mut command = vec!["git".to_owned(), "tender".to_owned(), "resume".to_owned(), task.to_owned()];
        for key in &self.keys {
            command.push("--add".to_owned());
            command.push(format!("{}={}", key.as_str(), self.account.limit(*key).max(1)));
        }
        failure.remedy("A person can add to the budget; the task then goes on.", command)
    }
}

impl Standing {
    /// What is used up, of the task itself or of one above it.
    #[must_use]
    pub fn spent(&self) -> Option<Spent<'_>> {
        self.accounts.iter().find_map(|account| {
            let keys = account.spent();
            (!keys.is_empty()).then_some(Spent { account, keys })
        })
    }

    /// The account of the task itself.
    #[must_use]
    pub fn own(&self) -> Option<&Account> {
        self.accounts.first()
    }

    /// The ids of the tasks above it, nearest first.
    pub fn above(&self) -> impl Iterator<Item = &str> {
        self.accounts.iter().skip(1).map(|account| account.task.as_str())
    }

    /// Used and limit of every key, as reports show it.
    #[must_use]
    pub fn object(&self) -> Value {
        let all = Key::ALL.map(|(_, key)| key);
        self.own().map_or(Value::Null, |account| Value::Object(account.shares(all)))
    }

    /// The next slice that a run may use; a part of it is nothing where all that is left is reserved by others.
    #[must_use]
    pub fn next_slice(&self) -> Cost {
        let slice = self.accounts.iter().fold(LARGEST_SLICE, |slice, account| {
            let allowed = account.allowed();
            slice.at_most(Cost {
                milliseconds: (allowed.milliseconds / PARTS).max(SMALLEST_SLICE.milliseconds),
                output_bytes: (allowed.output_bytes / PARTS).max(SMALLEST_SLICE.output_bytes),
            })
        });
        self.left().at_most(slice)
    }

    /// What a slice without limits is, for whoever may go beyond them.
    #[must_use]
    pub fn slice_without_limits() -> Cost {
        LARGEST_SLICE
    }

    /// What nobody of the family has used or reserved.
    #[must_use]
    pub fn left(&self) -> Cost {
        let most = Cost { milliseconds: u64::MAX, output_bytes: u64::MAX };
        self.accounts.iter().fold(most, |least, account| least.at_most(account.free()))
    }

    /// Which budget has nothing free, in words; reserved counts as used.
    #[must_use]
    pub fn lacking(&self) -> String {
        let lack = |account: &Account| {
            let free = account.free();
            let keys = [(Key::WallSeconds, free.milliseconds), (Key::OutputBytes, free.output_bytes)];
            let (key, _) = keys.into_iter().find(|(_, free)| *free == 0)?;
            Some(format!(
                "the budget {} of {} is spent: its limit is {}",
                key.as_str(),
                account.task,
                account.limit(key)
            ))
        };
        self.accounts.iter().find_map(lack).unwrap_or_else(|| "the budget is spent".to_owned())
    }

    /// The most bytes that the task's next candidate may have.
    #[must_use]
    pub fn artifact_bytes(&self) -> u64 {
        let left = |account: &Account| {
            let others = account.artifact_bytes.saturating_sub(self.own_artifact_bytes);
            account.limit(Key::ArtifactBytes).saturating_sub(others)
        };
        self.accounts.iter().map(left).min().unwrap_or(0)
    }
}

/// Into how many slices a limit is cut, so that runs side by side get something each.
const PARTS: u64 = 16;
const LARGEST_SLICE: Cost = Cost { milliseconds: 30_000, output_bytes: 16 << 20 };
const SMALLEST_SLICE: Cost = Cost { milliseconds: 1_000, output_bytes: 64 << 10 };

#[cfg(test)]
mod tests;
