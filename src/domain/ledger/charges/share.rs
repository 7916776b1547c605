//! Shares: what each task of a family has used, reserved and left, and the next slice of a run.

use crate::domain::contract::budget::{Cost, Key, Limits, Reservation};
use crate::domain::ledger::charges::Charges;
use crate::error::{Code, Failure};
use serde_json::{Map, Value, json};

/// One task of a family.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    pub id: String,
    pub parent: Option<String>,
    /// Its limits, with what was added.
    pub limits: Limits,
    /// The use of its own actions.
    pub charges: Charges,
    /// Bytes of its last candidate; none once it was cancelled.
    pub artifact_bytes: u64,
}

/// One task's limits, and what it and all tasks beneath it have used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    pub task: String,
    limits: Limits,
    pub(super) ended: Cost,
    pub(super) reserved: Cost,
    artifact_bytes: u64,
    calls: u64,
    /// The rows of the last call that was charged, and of the last one that was refused, of the task and all
    /// beneath it.
    last_charged: i64,
    last_refused: i64,
    /// The highest count of the same call with the same result, of this task alone.
    repeated: u64,
    stopped_at: Option<String>,
}

/// Where a task stands: its own account and those of the tasks above it, nearest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    accounts: Vec<Account>,
    own_artifact_bytes: u64,
}

/// The use of a task's family and what it has reserved. The order of `members` does not matter.
pub fn family_standing(members: &[Member], id: &str) -> Standing {
    let chain = chain_above(members, id);
    let own = chain.first().map_or(0, |member| member.artifact_bytes);
    let account = |above: &&Member| {
        let mut account = Account {
            task: above.id.clone(),
            limits: above.limits.clone(),
            ended: Cost::default(),
            reserved: Cost::default(),
            artifact_bytes: 0,
            calls: 0,
            last_charged: 0,
            last_refused: 0,
            repeated: above.charges.repetition.highest_count(),
            stopped_at: above
                .charges
                .repetition
                .stopped_tool(above.limits.limit_of(Key::RepeatedFailures))
                .map(str::to_owned),
        };
        for member in members.iter().filter(|member| is_at_or_beneath(members, member, &above.id)) {
            account.ended = account.ended.plus(member.charges.ended);
            account.reserved = account.reserved.plus(member.charges.reserved_cost());
            account.artifact_bytes = account.artifact_bytes.saturating_add(member.artifact_bytes);
            account.calls = account.calls.saturating_add(member.charges.calls);
            account.last_charged = account.last_charged.max(member.charges.last_charged);
            account.last_refused = account.last_refused.max(member.charges.last_refused);
        }
        account
    };
    Standing { accounts: chain.iter().map(account).collect(), own_artifact_bytes: own }
}

/// A task and those above it, nearest first.
fn chain_above<'a>(members: &'a [Member], id: &str) -> Vec<&'a Member> {
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

pub(super) fn is_at_or_beneath(members: &[Member], member: &Member, above: &str) -> bool {
    chain_above(members, &member.id).iter().any(|one| one.id == above)
}

impl Account {
    /// The use of a key; `None` where nothing measures it.
    pub fn used_of(&self, key: Key) -> Option<u64> {
        match key {
            // A second that was begun counts: whoever ran something has used something.
            Key::WallSeconds => Some(self.ended.milliseconds.div_ceil(1000)),
            Key::OutputBytes => Some(self.ended.output_bytes),
            Key::ArtifactBytes => Some(self.artifact_bytes),
            Key::ToolCalls => Some(self.calls),
            Key::RepeatedFailures => Some(self.repeated),
            Key::Turns => None,
        }
    }

    /// The limit of a key.
    pub fn limit_of(&self, key: Key) -> u64 {
        self.limits.limit_of(key)
    }

    pub(super) fn allowed_cost(&self) -> Cost {
        Cost {
            milliseconds: self.limit_of(Key::WallSeconds).saturating_mul(1000),
            output_bytes: self.limit_of(Key::OutputBytes),
        }
    }

    /// The rest that nobody has used or reserved.
    fn free_cost(&self) -> Cost {
        self.allowed_cost().minus(self.ended.plus(self.reserved))
    }

    /// The keys of which nothing is left.
    fn used_up(&self) -> Vec<Key> {
        let left = self.allowed_cost().minus(self.ended);
        let all = [
            (Key::WallSeconds, left.milliseconds),
            (Key::ToolCalls, self.calls_left()),
            (Key::OutputBytes, left.output_bytes),
        ];
        all.into_iter().filter(|(_, left)| *left == 0).map(|(key, _)| key).collect()
    }

    /// The keys that are spent: used up, and for calls one more was asked for since. The last call may have
    /// been the one that finished, and a refusal from before more was added says nothing of what was charged
    /// after it.
    pub fn spent_keys(&self) -> Vec<Key> {
        let asks_for_more = self.last_refused > self.last_charged;
        let mut keys = self.used_up();
        keys.retain(|key| *key != Key::ToolCalls || asks_for_more);
        keys
    }

    /// Calls that may still be made.
    fn calls_left(&self) -> u64 {
        self.limit_of(Key::ToolCalls).saturating_sub(self.calls)
    }

    /// Used and limit of the given keys.
    pub fn shares_of(&self, keys: impl IntoIterator<Item = Key>) -> Map<String, Value> {
        let share = |key: Key| {
            let used = self.used_of(key).map_or_else(|| json!("not measured"), |used| json!(used));
            (key.as_str().to_owned(), json!({ "used": used, "limit": self.limit_of(key) }))
        };
        keys.into_iter().map(share).collect()
    }
}

/// A budget that is used up: of which task, and which keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spent {
    account: Account,
    keys: Vec<Key>,
}

impl Spent {
    /// In words, such as `the budget of t1 is spent: wallSeconds 60 of 60`.
    pub fn budget_sentence(&self) -> String {
        let shares: Vec<String> = self
            .keys
            .iter()
            .map(|key| {
                format!(
                    "{} {} of {}",
                    key.as_str(),
                    self.account.used_of(*key).unwrap_or(0),
                    self.account.limit_of(*key)
                )
            })
            .collect();
        format!("the budget of {} is spent: {}", self.account.task, shares.join(", "))
    }

    /// The refusal of everything that would use more.
    pub fn refuse_more(&self, kept: &str) -> Failure {
        let task = self.account.task.as_str();
        let failure =
            Failure::new(Code::BudgetExhausted, format!("{}; {kept}", self.budget_sentence())).subject(task);
        let failure = self
            .account
            .shares_of(self.keys.iter().copied())
            .into_iter()
            .fold(failure, |failure, (key, share)| failure.detail(&key, share));
        let mut command = vec!["git".to_owned(), "tender".to_owned(), "resume".to_owned(), task.to_owned()];
        for key in &self.keys {
            command.push("--add".to_owned());
            command.push(format!("{}={}", key.as_str(), self.account.limit_of(*key).max(1)));
        }
        failure.remedy("A person can add to the budget; the task then goes on.", command)
    }
}

impl Standing {
    /// The budget that is used up, of the task itself or of one above it.
    pub fn spent_budget(&self) -> Option<Spent> {
        self.first_lacking(Account::spent_keys)
    }

    /// The same, of what a run uses only: how many calls are left is nothing to who is under way.
    pub fn spent_for_runs(&self) -> Option<Spent> {
        self.first_lacking(|account| {
            let mut keys = account.spent_keys();
            keys.retain(|key| Key::OF_RUNS.contains(key));
            keys
        })
    }

    /// The budget that keeps one more call from being charged: the task, or one above it, has none left.
    pub fn without_call(&self) -> Option<Spent> {
        self.first_lacking(|account| if account.calls_left() == 0 { account.used_up() } else { Vec::new() })
    }

    fn first_lacking(&self, keys: impl Fn(&Account) -> Vec<Key>) -> Option<Spent> {
        self.accounts.iter().find_map(|account| {
            let keys = keys(account);
            (!keys.is_empty()).then(|| Spent { account: account.clone(), keys })
        })
    }

    /// The refusal of a task that does the same over and over.
    pub fn refuse_repetition(&self) -> Option<Failure> {
        let own = self.own_account()?;
        let (tool, task) = (own.stopped_at.as_deref()?, own.task.as_str());
        let text = format!(
            "the task {task} is stopped: {tool} was called {} times with the same arguments and the same result",
            own.repeated
        );
        let shares = own.shares_of([Key::RepeatedFailures]);
        let failure = Failure::new(Code::FailureRepeated, text).subject(task).detail("tool", tool);
        let failure = shares.into_iter().fold(failure, |failure, (key, share)| failure.detail(&key, share));
        Some(failure.remedy("A person can let the task go on.", ["git", "tender", "resume", task]))
    }

    /// The account of the task itself.
    pub fn own_account(&self) -> Option<&Account> {
        self.accounts.first()
    }

    /// The ids of the tasks above it, nearest first.
    #[cfg(test)]
    pub fn tasks_above(&self) -> impl Iterator<Item = &str> {
        self.accounts.iter().skip(1).map(|account| account.task.as_str())
    }

    /// Used and limit of every key, as reports show it.
    pub fn shares_object(&self) -> Value {
        let all = Key::ALL.map(|(_, key)| key);
        self.own_account().map_or(Value::Null, |account| Value::Object(account.shares_of(all)))
    }

    /// The next slice of a run that has something reserved already: of what it has used up only, since the
    /// rest carries over. `None` where there is nothing left of that, or less than was printed already.
    pub fn further_slice(&self, held: Reservation) -> Option<Cost> {
        let (slice, left) = (self.next_slice(), self.cost_left());
        let Reservation { reserved, used } = held;
        let wants_time = used.milliseconds >= reserved.milliseconds;
        let printed = used.minus(reserved).output_bytes;
        if (wants_time && left.milliseconds == 0) || printed > left.output_bytes {
            return None;
        }
        Some(Cost {
            milliseconds: if wants_time { slice.milliseconds } else { 0 },
            output_bytes: if printed > 0 { slice.output_bytes.max(printed) } else { 0 },
        })
    }

    /// The first slice of a run; a part of it is nothing where all that is left is reserved by others.
    pub fn next_slice(&self) -> Cost {
        let slice = self.accounts.iter().fold(LARGEST_SLICE, |slice, account| {
            let allowed = account.allowed_cost();
            slice.at_most(Cost {
                milliseconds: (allowed.milliseconds / PARTS).max(SMALLEST_SLICE.milliseconds),
                output_bytes: (allowed.output_bytes / PARTS).max(SMALLEST_SLICE.output_bytes),
            })
        });
        self.cost_left().at_most(slice)
    }

    /// The slice without limits, for a caller that may go beyond them.
    pub fn slice_without_limits() -> Cost {
        LARGEST_SLICE
    }

    /// The rest that nobody of the family has used or reserved.
    pub fn cost_left(&self) -> Cost {
        let most = Cost { milliseconds: u64::MAX, output_bytes: u64::MAX };
        self.accounts.iter().fold(most, |least, account| least.at_most(account.free_cost()))
    }

    /// Which budget has nothing free, or less than was printed beyond what was reserved, in words; reserved
    /// counts as used.
    pub fn lacking_sentence(&self, held: Option<Reservation>) -> String {
        let printed = held.map_or(0, |held| held.used.minus(held.reserved).output_bytes);
        let lack = |account: &Account| {
            let free = account.free_cost();
            let wants_time = held.is_none_or(|held| held.used.milliseconds >= held.reserved.milliseconds);
            let keys = [
                (Key::WallSeconds, wants_time && free.milliseconds == 0),
                (
                    Key::OutputBytes,
                    if held.is_some() { free.output_bytes < printed } else { free.output_bytes == 0 },
                ),
            ];
            let (key, _) = keys.into_iter().find(|(_, lacks)| *lacks)?;
            Some(format!(
                "the budget {} of {} is spent: its limit is {}",
                key.as_str(),
                account.task,
                account.limit_of(key)
            ))
        };
        self.accounts.iter().find_map(lack).unwrap_or_else(|| "the budget is spent".to_owned())
    }

    /// The most bytes that the task's next candidate may have.
    pub fn artifact_bytes(&self) -> u64 {
        let left = |account: &Account| {
            let others = account.artifact_bytes.saturating_sub(self.own_artifact_bytes);
            account.limit_of(Key::ArtifactBytes).saturating_sub(others)
        };
        self.accounts.iter().map(left).min().unwrap_or(0)
    }
}

/// Into how many slices a limit is cut, so that runs side by side get something each.
const PARTS: u64 = 16;
const LARGEST_SLICE: Cost = Cost { milliseconds: 30_000, output_bytes: 16 << 20 };
const SMALLEST_SLICE: Cost = Cost { milliseconds: 1_000, output_bytes: 64 << 10 };
