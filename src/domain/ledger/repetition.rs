//! Repetition: the same call with the same result, again and again.
//!
//! A fingerprint is the tool, its canonical arguments, and the code of a failure or the digest of a result. A
//! result that the task has not seen before, and that is no refusal, sets all counts back: something has
//! moved. So a poll whose result changes is never stopped, and two calls in turn that bring nothing new are.
//! What changes in wording only is another call, and is bounded by the budgets.

use crate::domain::ledger::action::ActionState;
use crate::domain::ledger::entry::Entry;
use crate::domain::value::digest::Sha256;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// From this count on the answer carries a warning.
const WARN_FROM: u64 = 3;

/// Counts of calls that came back with the same result, folded from the rows of one task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Repetition {
    seen: BTreeSet<Sha256>,
    counts: BTreeMap<Sha256, u64>,
    /// The highest count since something was new, with the tool.
    most: Option<(String, u64)>,
    /// The last call that counted, and how often it had come back by then.
    last: Option<(String, u64)>,
}

/// Refusals that stop the task: they follow from its state, and repeating them says nothing about the call.
const NOT_COUNTED: [&str; 4] = ["budget.exhausted", "failure.repeated", "store.busy", "cancelled"];

impl Repetition {
    /// Takes one row in: the end of a call. The caller knows that it is one.
    pub fn take_row(&mut self, entry: &Entry) {
        let Some(outcome) = outcome_key(entry) else { return };
        let print = Sha256::of_json(&json!([entry.tool, entry.params_sha256, outcome]));
        // A refusal moves nothing: a task that is stopped stays so, whatever else it is refused.
        if self.seen.insert(print) && entry.state != ActionState::Denied {
            self.counts.clear();
            self.most = None;
        }
        let count = self.counts.entry(print).or_default();
        *count += 1;
        let count = *count;
        self.last = Some((entry.action.clone(), count));
        if count > self.highest_count() {
            self.most = Some((entry.tool.clone(), count));
        }
    }

    /// A person lets the task go on: it is counted anew.
    pub fn count_anew(&mut self) {
        self.counts.clear();
        self.most = None;
        self.last = None;
    }

    /// The highest count since something was new.
    pub fn highest_count(&self) -> u64 {
        self.most.as_ref().map_or(0, |(_, count)| *count)
    }

    /// The tool that came back that often, where that reaches the limit. A single call is no repetition,
    /// whatever the limit.
    pub fn stopped_tool(&self, limit: u64) -> Option<&str> {
        self.most.as_ref().filter(|(_, count)| *count >= limit.max(2)).map(|(tool, _)| tool.as_str())
    }

    /// What to say with the answer of this call, if it was the last one that counted: how often it came back,
    /// where that is worth a word.
    pub fn warning_for(&self, action: &str, limit: u64) -> Option<String> {
        let from = WARN_FROM.min(limit.saturating_sub(1)).max(2);
        let (_, count) = self.last.as_ref().filter(|(last, count)| last == action && *count >= from)?;
        Some(format!(
            "this is the same call with the same result for the {} time; at {} the task stops",
            ordinal_word(*count),
            limit.max(2)
        ))
    }
}

/// The outcome of a call, as far as it tells one result from another.
fn outcome_key(entry: &Entry) -> Option<Value> {
    match entry.state {
        ActionState::Succeeded => entry.result.field("result"),
        ActionState::Denied | ActionState::FailedWithoutEffect => {
            let failure: Value = entry.result.field("failure")?;
            let code = failure.get("code").and_then(Value::as_str);
            code.filter(|code| !NOT_COUNTED.contains(code)).map(Value::from)
        }
        _ => None,
    }
}

fn ordinal_word(number: u64) -> String {
    let suffix = match (number % 10, number % 100) {
        (1, hundred) if hundred != 11 => "st",
        (2, hundred) if hundred != 12 => "nd",
        (3, hundred) if hundred != 13 => "rd",
        _ => "th",
    };
    format!("{number}{suffix}")
}

#[cfg(test)]
mod tests {
    use crate::domain::ledger::action::Actor;
    use crate::domain::ledger::entry::{EntryBody, RowVersion};
    use crate::domain::ledger::repetition::*;
    use crate::domain::ledger::row_json::RowJson;

    fn call_row(tool: &str, arguments: &str, state: ActionState, result: Value) -> Entry {
        Entry {
            version: RowVersion::NOW,
            seq: 1,
            at: String::new(),
            body: EntryBody {
                task: None,
                actor: Actor::Agent,
                action: String::new(),
                tool: tool.to_owned(),
                state,
                params_sha256: Sha256::of(arguments.as_bytes()),
                basis: RowJson::null(),
                origin: String::new(),
                result: result.into(),
            },
            prev: String::new(),
            hash: Sha256::of(b""),
        }
    }

    fn succeeded_row(tool: &str, result: &str) -> Entry {
        call_row(tool, "same", ActionState::Succeeded, json!({ "result": result }))
    }

    fn failed_row(tool: &str, arguments: &str, code: &str) -> Entry {
        let result = json!({ "failure": { "code": code } });
        call_row(tool, arguments, ActionState::FailedWithoutEffect, result)
    }

    fn repetition_after(rows: impl IntoIterator<Item = Entry>) -> Repetition {
        let mut repetition = Repetition::default();
        rows.into_iter().for_each(|entry| repetition.take_row(&entry));
        repetition
    }

    #[test]
    fn the_third_is_warned_of_and_the_fifth_stops() {
        let same = |n| std::iter::repeat_with(|| failed_row("apply_patch", "a", "patch.invalid")).take(n);
        assert_eq!(repetition_after(same(2)).warning_for("", 5), None);
        assert!(repetition_after(same(3)).warning_for("", 5).is_some_and(|text| text.contains("3rd")));
        assert_eq!(repetition_after(same(3)).warning_for("one whose outcome is not known", 5), None);
        assert_eq!(repetition_after(same(4)).stopped_tool(5), None);
        assert_eq!(repetition_after(same(5)).stopped_tool(5), Some("apply_patch"));
        assert_eq!(repetition_after(same(1)).stopped_tool(1), None);
    }

    #[test]
    fn two_in_turn_are_stopped_and_a_poll_that_changes_is_not() {
        let turns = (0..10).map(|n| succeeded_row(if n % 2 == 0 { "a" } else { "b" }, "old"));
        assert!(repetition_after(turns).stopped_tool(5).is_some());
        let poll = (0..50).map(|n| succeeded_row("task_status", &n.to_string()));
        assert_eq!(repetition_after(poll).highest_count(), 1);
        // Something new in between starts all over, and what was seen long ago is nothing new.
        let mut rows: Vec<Entry> = (0..4).map(|_| succeeded_row("a", "old")).collect();
        rows.push(succeeded_row("b", "new"));
        rows.extend((0..4).map(|_| succeeded_row("a", "old")));
        assert_eq!(repetition_after(rows.clone()).stopped_tool(5), None);
        rows.push(succeeded_row("a", "old"));
        assert_eq!(repetition_after(rows).stopped_tool(5), Some("a"));
    }

    #[test]
    fn a_refusal_of_something_else_lets_no_task_go_on() {
        let denied = |arguments: &str| {
            let result = json!({ "failure": { "code": "scope.violation" } });
            call_row("apply_patch", arguments, ActionState::Denied, result)
        };
        let mut rows: Vec<Entry> = (0..5).map(|_| denied("src/a")).collect();
        assert!(repetition_after(rows.clone()).stopped_tool(5).is_some());
        rows.push(denied("src/b"));
        assert!(repetition_after(rows.clone()).stopped_tool(5).is_some());
        rows.push(succeeded_row("read_file", "new"));
        assert_eq!(repetition_after(rows).stopped_tool(5), None);
    }

    #[test]
    fn other_words_are_another_call_and_refusals_of_a_stopped_task_do_not_count() {
        let worded = (0..9).map(|n| failed_row("apply_patch", &n.to_string(), "patch.invalid"));
        assert_eq!(repetition_after(worded).highest_count(), 1);
        let refused = (0..9).map(|_| failed_row("apply_patch", "a", "budget.exhausted"));
        assert_eq!(repetition_after(refused).highest_count(), 0);
        let mut repetition = repetition_after((0..5).map(|_| succeeded_row("a", "old")));
        repetition.count_anew();
        assert_eq!(repetition.stopped_tool(5), None);
        repetition.take_row(&succeeded_row("a", "old"));
        assert_eq!(repetition.highest_count(), 1);
    }
}
