//! Charges from rows, whatever the clocks say; shares of a family; slices that never overspend.

use crate::domain::contract::Kind;
use crate::domain::contract::budget::*;
use crate::domain::ledger::action::{ActionState, Actor};
use crate::domain::ledger::charges::Charges;
use crate::domain::ledger::charges::share::{Member, family_standing, is_at_or_beneath};
use crate::domain::ledger::entry::{Entry, EntryBody, RowVersion};
use crate::domain::ledger::row_json::RowJson;
use crate::domain::value::digest::Sha256;
use proptest::prelude::*;
use serde_json::{Value, json};

fn ledger_row(action: &str, state: ActionState, at: &str, result: Value) -> Entry {
    let digest = Sha256::of(b"");
    Entry {
        version: RowVersion::NOW,
        seq: 1,
        at: at.to_owned(),
        body: EntryBody {
            task: Some("t".to_owned()),
            actor: Actor::Harness,
            action: action.to_owned(),
            tool: "verifier".to_owned(),
            state,
            params_sha256: digest,
            basis: RowJson::null(),
            origin: "cli".to_owned(),
            result: result.into(),
        },
        prev: String::new(),
        hash: digest,
    }
}

fn cost_of(milliseconds: u64, output_bytes: u64) -> Cost {
    Cost { milliseconds, output_bytes }
}

fn reservation_result(reserved: Cost, used: Cost) -> Value {
    json!({"record": "reserved", "reserved": reserved, "used": used})
}

fn time_at(second: u64) -> String {
    format!("2026-01-01T00:{:02}:{:02}.000000Z", second / 60, second % 60)
}

/// Charges of rows, each with its state, its time in seconds and its result.
fn charges_of(rows: &[(ActionState, u64, Value)]) -> Charges {
    let mut charges = Charges::default();
    rows.iter().for_each(|(state, second, result)| {
        charges.take_row(&ledger_row("a", *state, &time_at(*second), result.clone()))
    });
    charges
}

#[test]
fn a_run_is_reserved_and_then_charged_with_what_it_took() {
    use ActionState::{Dispatched, FailedWithoutEffect, Planned, Succeeded};
    let begun = (Dispatched, 0, reservation_result(cost_of(5000, 100), cost_of(0, 0)));
    let running = charges_of(&[(Planned, 0, Value::Null), begun.clone()]);
    assert_eq!((running.reserved_cost(), running.ended), (cost_of(5000, 100), cost_of(0, 0)));
    let done = charges_of(&[
        begun.clone(),
        (Succeeded, 3, json!({"record": "charged", "cost": cost_of(2500, 40)})),
        (Succeeded, 3, json!({"record": "evidence"})),
    ]);
    assert_eq!((done.reserved_cost(), done.ended), (cost_of(0, 0), cost_of(2500, 40)));
    let failed =
        charges_of(&[begun, (FailedWithoutEffect, 9, json!({"record": "failure", "cost": cost_of(700, 3)}))]);
    assert_eq!(failed.ended, cost_of(700, 3));
    let other = charges_of(&[(Dispatched, 0, Value::Null), (Succeeded, 60, json!({"record": "observed"}))]);
    assert_eq!(other, Charges::default(), "what reserves nothing is charged with nothing");
}

#[test]
fn a_run_that_was_cut_off_is_charged_by_its_rows_within_what_was_reserved() {
    use ActionState::{Dispatched, OutcomeUnknown, SafeToRetry};
    let cut = |second: u64| {
        charges_of(&[
            (Dispatched, 10, reservation_result(cost_of(5000, 100), cost_of(0, 0))),
            (Dispatched, 14, reservation_result(cost_of(9000, 200), cost_of(4000, 70))),
            (OutcomeUnknown, second, Value::Null),
            (SafeToRetry, second, json!({"record": "done"})),
        ])
        .ended
    };
    assert_eq!(cut(16), cost_of(6000, 70));
    assert_eq!(cut(900), cost_of(9000, 70), "the days that nobody looked are nobody's");
    assert_eq!(cut(0), cost_of(4000, 70), "a clock that went back takes nothing away");
}

fn member_of(id: &str, parent: Option<&str>, wall: u64, ended: Cost) -> Member {
    let asked = [(Key::WallSeconds, wall), (Key::OutputBytes, 1 << 20)].into();
    Member {
        id: id.to_owned(),
        parent: parent.map(str::to_owned),
        limits: Limits::within_ceiling(Kind::Edit, &asked, &Amounts::new()).0,
        charges: Charges { ended, ..Charges::default() },
        artifact_bytes: 10,
    }
}

#[test]
fn what_a_part_uses_counts_for_all_above_it_and_stops_all_beneath_it() {
    let mut family = vec![
        member_of("top", None, 10, cost_of(1000, 1)),
        member_of("left", Some("top"), 8, cost_of(2000, 2)),
        member_of("leaf", Some("left"), 8, cost_of(3000, 3)),
        member_of("right", Some("top"), 8, cost_of(100, 4)),
        member_of("stranger", None, 1, cost_of(9000, 0)),
    ];
    let used = |family: &[Member], id: &str| {
        family_standing(family, id).own_account().map(|a| {
            (a.used_of(Key::WallSeconds), a.used_of(Key::OutputBytes), a.used_of(Key::ArtifactBytes))
        })
    };
    assert_eq!(used(&family, "top"), Some((Some(7), Some(10), Some(40))));
    assert_eq!(used(&family, "left"), Some((Some(5), Some(5), Some(20))));
    assert_eq!(used(&family, "leaf"), Some((Some(3), Some(3), Some(10))));
    assert!(family_standing(&family, "leaf").spent_budget().is_none());
    family[3].charges.ended = cost_of(4000, 4);
    let leaf = family_standing(&family, "leaf");
    let spent = leaf.spent_budget().expect("the top is spent");
    assert_eq!(spent.budget_sentence(), "the budget of top is spent: wallSeconds 10 of 10");
    let refusal = spent.refuse_more("candidate 1 is kept");
    assert_eq!(refusal.details()["wallSeconds"], json!({"used": 10, "limit": 10}));
    assert_eq!(refusal.next_step().command[..4], ["git", "tender", "resume", "top"]);
    assert_eq!(leaf.tasks_above().collect::<Vec<_>>(), ["left", "top"]);
    assert!(family_standing(&family, "stranger").tasks_above().next().is_none());
}

#[test]
fn a_circle_in_a_damaged_ledger_ends() {
    let family = [member_of("a", Some("b"), 5, cost_of(1, 1)), member_of("b", Some("a"), 5, cost_of(1, 1))];
    assert_eq!(family_standing(&family, "a").tasks_above().collect::<Vec<_>>(), ["b"]);
}

#[test]
fn a_candidate_fits_beside_those_of_the_family_and_replaces_its_own() {
    let mut family = [
        member_of("top", None, 5, cost_of(0, 0)),
        member_of("a", Some("top"), 5, cost_of(0, 0)),
        member_of("b", Some("top"), 5, cost_of(0, 0)),
    ];
    family[0].limits =
        Limits::within_ceiling(Kind::Edit, &[(Key::ArtifactBytes, 100)].into(), &Amounts::new()).0;
    assert_eq!(family_standing(&family, "a").artifact_bytes(), 80, "10 of the top's and 10 of b's are taken");
    family[2].artifact_bytes = 95;
    assert_eq!(family_standing(&family, "a").artifact_bytes(), 0);
}

#[test]
fn a_silent_run_reserves_no_further_output() {
    let mut members = vec![member_of("t", None, 3600, cost_of(0, 0))];
    let mut held = family_standing(&members, "t").next_slice();
    for extension in 0..1000 {
        let used = cost_of(held.milliseconds, 0);
        let charges = [(ActionState::Dispatched, 0, reservation_result(held, used))];
        members[0].charges = self::charges_of(&charges);
        let left = family_standing(&members, "t");
        let Some(slice) = left.further_slice(Reservation { reserved: held, used }) else {
            assert_eq!(left.cost_left().milliseconds, 0, "it ended after {extension} for another reason");
            assert!(left.cost_left().output_bytes > 0);
            return;
        };
        assert_eq!(slice.output_bytes, 0);
        held = held.plus(slice);
    }
    panic!("time has to end it");
}

#[test]
fn what_was_printed_is_followed_and_time_carries_over() {
    let members = vec![member_of("t", None, 3600, cost_of(0, 0))];
    let held = Reservation { reserved: cost_of(1000, 100), used: cost_of(10, 101) };
    let slice = family_standing(&members, "t").further_slice(held).expect("there is some left");
    assert_eq!(slice.milliseconds, 0);
    assert!(slice.output_bytes > 0);
    let flood = Reservation { used: cost_of(10, 100 + 900_000), ..held };
    assert_eq!(
        family_standing(&members, "t").further_slice(flood).map(|slice| slice.output_bytes),
        Some(900_000)
    );
    let over = Reservation { used: cost_of(10, 101 + (1 << 20)), ..held };
    assert_eq!(family_standing(&members, "t").further_slice(over), None);
    assert!(family_standing(&members, "t").lacking_sentence(Some(over)).contains("outputBytes"));
}

proptest! {
    /// Runs of a family reserve slice by slice, use them up or not, end or are cut off, with clocks that
    /// jump: no one is charged below nothing, what a task has used never shrinks, equals the sum over all at
    /// and beneath it, and never goes beyond its limit.
    #[test]
    fn slices_never_overspend(
        walls in proptest::array::uniform4(1u64..20),
        steps in proptest::collection::vec((0usize..4, 0u8..4, 0u64..90), 1..60),
    ) {
        let ids = ["top", "left", "leaf", "right"];
        let parents = [None, Some("top"), Some("left"), Some("top")];
        let mut family: Vec<Member> =
            (0..4).map(|n| member_of(ids[n], parents[n], walls[n], cost_of(0, 0))).collect();
        let mut before = [0u64; 4];
        for (number, (who, what, clock)) in steps.into_iter().enumerate() {
            let slice = family_standing(&family, ids[who]).next_slice();
            let running = family[who].charges.running.get("run").map(|run| run.reserved);
            let (state, result) = match (what, running) {
                (0 | 1, held) if !slice.lacks_something() => {
                    let held = held.unwrap_or_default();
                    (ActionState::Dispatched, reservation_result(held.plus(slice), held))
                }
                (2, Some(held)) => {
                    let took = cost_of(held.milliseconds / 2, held.output_bytes);
                    (ActionState::Succeeded, json!({"record": "charged", "cost": took}))
                }
                (3, Some(_)) => (ActionState::SafeToRetry, json!({"record": "done"})),
                _ => continue,
            };
            family[who].charges.take_row(&ledger_row("run", state, &time_at(clock), result));
            for (n, id) in ids.iter().enumerate() {
                let stands = family_standing(&family, id);
                let account = stands.own_account().expect("an account");
                let sum: u64 = family
                    .iter()
                    .filter(|member| is_at_or_beneath(&family, member, id))
                    .map(|member| member.charges.ended.milliseconds)
                    .sum();
                prop_assert_eq!(account.ended.milliseconds, sum, "step {}", number);
                let all = account.ended.plus(account.reserved);
                prop_assert!(all.milliseconds <= account.allowed_cost().milliseconds, "{:?}", account);
                prop_assert!(all.output_bytes <= account.allowed_cost().output_bytes, "{:?}", account);
                // Ending halfway gives back what was reserved; what was used is never given back.
                prop_assert!(sum >= before[n]);
                before[n] = sum;
            }
        }
    }
}

/// A member whose calls arrived in these rows: charged (true) or refused, since nothing was left.
fn calling_member(id: &str, parent: Option<&str>, limit: u64, calls: &[(i64, bool)]) -> Member {
    let mut member = member_of(id, parent, 100, cost_of(0, 0));
    member.limits = Limits::within_ceiling(Kind::Edit, &[(Key::ToolCalls, limit)].into(), &Amounts::new()).0;
    for (seq, charged) in calls {
        let result = json!({"record": "call", "worker": "w", "charged": charged});
        let arrived = ledger_row(&format!("a{seq}"), ActionState::Planned, &time_at(0), result);
        member.charges.take_row(&Entry { seq: *seq, ..arrived });
    }
    member
}

#[test]
fn who_was_charged_the_last_call_may_finish_although_others_are_refused() {
    let family = [
        calling_member("top", None, 1, &[]),
        calling_member("a", Some("top"), 1, &[(10, true)]),
        calling_member("b", Some("top"), 1, &[(11, false)]),
    ];
    for id in ["top", "a", "b"] {
        let standing = family_standing(&family, id);
        assert!(
            standing.spent_budget().is_some_and(|spent| spent.budget_sentence().contains("toolCalls 1 of 1")),
            "{id}"
        );
        assert_eq!(standing.spent_for_runs(), None, "{id}: calls are nothing to a run");
        assert!(standing.without_call().is_some(), "{id}");
    }
}

#[test]
fn a_refusal_from_before_more_was_added_is_over_with_the_next_charged_call() {
    let spent = |family: &[Member], id: &str| family_standing(family, id).spent_budget().is_some();
    // Three of three, the fourth refused; then an amendment gave six, and nothing was resumed.
    let grown =
        [calling_member("t", None, 6, &[(1, true), (2, true), (3, true), (4, false), (5, true), (6, true)])];
    assert!(!spent(&grown, "t"), "one is left");
    let last = [calling_member(
        "t",
        None,
        6,
        &[(1, true), (2, true), (3, true), (4, false), (5, true), (6, true), (7, true)],
    )];
    assert!(!spent(&last, "t"), "the last one was charged, and nobody has asked for more");
    // A part was refused; more was added to the task above it only, and used there.
    let family = [
        calling_member("top", None, 2, &[(1, true), (3, true)]),
        calling_member("part", Some("top"), 2, &[(2, false)]),
    ];
    assert!(!spent(&family, "top") && !spent(&family, "part"));
    let asked = [family[0].clone(), calling_member("part", Some("top"), 2, &[(2, false), (4, false)])];
    assert!(spent(&asked, "top") && spent(&asked, "part"));
}

#[test]
fn the_time_of_a_call_counts_whatever_its_end_and_once() {
    use ActionState::{
        Denied, Dispatched, FailedWithoutEffect, OutcomeUnknown, Planned, Reconcile, SafeToRetry,
    };
    let arrived = (Planned, 0, json!({"record": "call", "worker": "w", "charged": true}));
    let failure = json!({"record": "failure", "cost": cost_of(700, 0)});
    let of = |rows: &[(ActionState, Value)]| {
        let rows = rows.iter().map(|(state, result)| (*state, 1, result.clone()));
        charges_of(&std::iter::once(arrived.clone()).chain(rows).collect::<Vec<_>>()).ended_cost()
    };
    assert_eq!(of(&[(Dispatched, Value::Null), (FailedWithoutEffect, failure.clone())]), cost_of(700, 0));
    let settled = json!({"record": "done"});
    let lost = [
        (Dispatched, Value::Null),
        (OutcomeUnknown, failure),
        (Reconcile, Value::Null),
        (SafeToRetry, settled),
    ];
    assert_eq!(of(&lost), cost_of(700, 0));
    assert_eq!(of(&[(Denied, json!({"record": "failure"}))]), cost_of(0, 0));
}

#[test]
fn the_documented_limits_are_those_that_hold() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/budgets.md");
    let documentation = std::fs::read_to_string(file).expect("reads").replace(['|', '`'], " ");
    for (word, key) in Key::ALL {
        let of = |line: &str| -> Vec<u64> {
            let words: Vec<&str> = line.split_whitespace().collect();
            let named = words.first() == Some(&word);
            words.iter().filter(|_| named).filter_map(|cell| cell.parse().ok()).take(3).collect()
        };
        let numbers = documentation.lines().map(of).find(|numbers| numbers.len() == 3).unwrap_or_default();
        assert_eq!(
            numbers,
            [Kind::Edit, Kind::Repair, Kind::Explore].map(|kind| key.built_in(kind)),
            "{word}"
        );
    }
}
