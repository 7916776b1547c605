//! Charges from rows, whatever the clocks say; shares of a family; slices that never overspend.

use crate::domain::contract::Kind;
use crate::domain::contract::budget::*;
use crate::domain::ledger::action::{ActionState, Actor};
use crate::domain::ledger::charges::Charges;
use crate::domain::ledger::charges::share::{Member, is_at_or_beneath, standing};
use crate::domain::ledger::entry::{Entry, EntryBody};
use crate::domain::value::digest::Sha256;
use proptest::prelude::*;
use serde_json::{Value, json};

fn row(action: &str, state: ActionState, at: &str, result: Value) -> Entry {
    let digest = Sha256::of(b"");
    Entry {
        seq: 1,
        at: at.to_owned(),
        body: EntryBody {
            task: Some("t".to_owned()),
            actor: Actor::Harness,
            action: action.to_owned(),
            tool: "verifier".to_owned(),
            state,
            params_sha256: digest,
            basis: Value::Null,
            origin: "cli".to_owned(),
            result,
        },
        prev: String::new(),
        hash: digest,
    }
}

fn cost(milliseconds: u64, output_bytes: u64) -> Cost {
    Cost { milliseconds, output_bytes }
}

fn reserved(reserved: Cost, used: Cost) -> Value {
    json!({"record": "reserved", "reserved": reserved, "used": used})
}

fn at(second: u64) -> String {
    format!("2026-01-01T00:{:02}:{:02}.000000Z", second / 60, second % 60)
}

/// Charges of rows, each with its state, its time in seconds and its result.
fn charges(rows: &[(ActionState, u64, Value)]) -> Charges {
    let mut charges = Charges::default();
    rows.iter()
        .for_each(|(state, second, result)| charges.take(&row("a", *state, &at(*second), result.clone())));
    charges
}

#[test]
fn a_run_is_reserved_and_then_charged_with_what_it_took() {
    use ActionState::{Dispatched, FailedWithoutEffect, Planned, Succeeded};
    let begun = (Dispatched, 0, reserved(cost(5000, 100), cost(0, 0)));
    let running = charges(&[(Planned, 0, Value::Null), begun.clone()]);
    assert_eq!((running.reserved(), running.ended), (cost(5000, 100), cost(0, 0)));
    let done = charges(&[
        begun.clone(),
        (Succeeded, 3, json!({"record": "charged", "cost": cost(2500, 40)})),
        (Succeeded, 3, json!({"record": "evidence"})),
    ]);
    assert_eq!((done.reserved(), done.ended), (cost(0, 0), cost(2500, 40)));
    let failed =
        charges(&[begun, (FailedWithoutEffect, 9, json!({"record": "failure", "cost": cost(700, 3)}))]);
    assert_eq!(failed.ended, cost(700, 3));
    let other = charges(&[(Dispatched, 0, Value::Null), (Succeeded, 60, json!({"record": "observed"}))]);
    assert_eq!(other, Charges::default(), "what reserves nothing is charged with nothing");
}

#[test]
fn a_run_that_was_cut_off_is_charged_by_its_rows_within_what_was_reserved() {
    use ActionState::{Dispatched, OutcomeUnknown, SafeToRetry};
    let cut = |second: u64| {
        charges(&[
            (Dispatched, 10, reserved(cost(5000, 100), cost(0, 0))),
            (Dispatched, 14, reserved(cost(9000, 200), cost(4000, 70))),
            (OutcomeUnknown, second, Value::Null),
            (SafeToRetry, second, json!({"record": "done"})),
        ])
        .ended
    };
    assert_eq!(cut(16), cost(6000, 70));
    assert_eq!(cut(900), cost(9000, 70), "the days that nobody looked are nobody's");
    assert_eq!(cut(0), cost(4000, 70), "a clock that went back takes nothing away");
}

fn member(id: &str, parent: Option<&str>, wall: u64, ended: Cost) -> Member {
    let asked = [(Key::WallSeconds, wall), (Key::OutputBytes, 1 << 20)].into();
    Member {
        id: id.to_owned(),
        parent: parent.map(str::to_owned),
        limits: Limits::within(Kind::Edit, &asked, &Amounts::new()).0,
        charges: Charges { ended, ..Charges::default() },
        artifact_bytes: 10,
    }
}

#[test]
fn what_a_part_uses_counts_for_all_above_it_and_stops_all_beneath_it() {
    let mut family = vec![
        member("top", None, 10, cost(1000, 1)),
        member("left", Some("top"), 8, cost(2000, 2)),
        member("leaf", Some("left"), 8, cost(3000, 3)),
        member("right", Some("top"), 8, cost(100, 4)),
        member("stranger", None, 1, cost(9000, 0)),
    ];
    let used = |family: &[Member], id: &str| {
        standing(family, id)
            .own()
            .map(|a| (a.used(Key::WallSeconds), a.used(Key::OutputBytes), a.used(Key::ArtifactBytes)))
    };
    assert_eq!(used(&family, "top"), Some((Some(7), Some(10), Some(40))));
    assert_eq!(used(&family, "left"), Some((Some(5), Some(5), Some(20))));
    assert_eq!(used(&family, "leaf"), Some((Some(3), Some(3), Some(10))));
    assert!(standing(&family, "leaf").spent().is_none());
    family[3].charges.ended = cost(4000, 4);
    let leaf = standing(&family, "leaf");
    let spent = leaf.spent().expect("the top is spent");
    assert_eq!(spent.sentence(), "the budget of top is spent: wallSeconds 10 of 10");
    let refusal = spent.refusal("candidate 1 is kept");
    assert_eq!(refusal.details()["wallSeconds"], json!({"used": 10, "limit": 10}));
    assert_eq!(refusal.next_step().command[..4], ["git", "tender", "resume", "top"]);
    assert_eq!(leaf.above().collect::<Vec<_>>(), ["left", "top"]);
    assert!(standing(&family, "stranger").above().next().is_none());
}

#[test]
fn a_circle_in_a_damaged_ledger_ends() {
    let family = [member("a", Some("b"), 5, cost(1, 1)), member("b", Some("a"), 5, cost(1, 1))];
    assert_eq!(standing(&family, "a").above().collect::<Vec<_>>(), ["b"]);
}

#[test]
fn a_candidate_fits_beside_those_of_the_family_and_replaces_its_own() {
    let mut family = [
        member("top", None, 5, cost(0, 0)),
        member("a", Some("top"), 5, cost(0, 0)),
        member("b", Some("top"), 5, cost(0, 0)),
    ];
    family[0].limits = Limits::within(Kind::Edit, &[(Key::ArtifactBytes, 100)].into(), &Amounts::new()).0;
    assert_eq!(standing(&family, "a").artifact_bytes(), 80, "10 of the top's and 10 of b's are taken");
    family[2].artifact_bytes = 95;
    assert_eq!(standing(&family, "a").artifact_bytes(), 0);
}

#[test]
fn a_silent_run_reserves_no_further_output() {
    let mut members = vec![member("t", None, 3600, cost(0, 0))];
    let mut held = standing(&members, "t").next_slice();
    for extension in 0..1000 {
        let used = cost(held.milliseconds, 0);
        let charges = [(ActionState::Dispatched, 0, reserved(held, used))];
        members[0].charges = self::charges(&charges);
        let left = standing(&members, "t");
        let Some(slice) = left.further_slice(Reservation { reserved: held, used }) else {
            assert_eq!(left.left().milliseconds, 0, "it ended after {extension} for another reason");
            assert!(left.left().output_bytes > 0);
            return;
        };
        assert_eq!(slice.output_bytes, 0);
        held = held.plus(slice);
    }
    panic!("time has to end it");
}

#[test]
fn what_was_printed_is_followed_and_time_carries_over() {
    let members = vec![member("t", None, 3600, cost(0, 0))];
    let held = Reservation { reserved: cost(1000, 100), used: cost(10, 101) };
    let slice = standing(&members, "t").further_slice(held).expect("there is some left");
    assert_eq!(slice.milliseconds, 0);
    assert!(slice.output_bytes > 0);
    let flood = Reservation { used: cost(10, 100 + 900_000), ..held };
    assert_eq!(standing(&members, "t").further_slice(flood).map(|slice| slice.output_bytes), Some(900_000));
    let over = Reservation { used: cost(10, 101 + (1 << 20)), ..held };
    assert_eq!(standing(&members, "t").further_slice(over), None);
    assert!(standing(&members, "t").lacking(Some(over)).contains("outputBytes"));
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
            (0..4).map(|n| member(ids[n], parents[n], walls[n], cost(0, 0))).collect();
        let mut before = [0u64; 4];
        for (number, (who, what, clock)) in steps.into_iter().enumerate() {
            let slice = standing(&family, ids[who]).next_slice();
            let running = family[who].charges.running.get("run").map(|run| run.reserved);
            let (state, result) = match (what, running) {
                (0 | 1, held) if !slice.lacks_something() => {
                    let held = held.unwrap_or_default();
                    (ActionState::Dispatched, reserved(held.plus(slice), held))
                }
                (2, Some(held)) => {
                    let took = cost(held.milliseconds / 2, held.output_bytes);
                    (ActionState::Succeeded, json!({"record": "charged", "cost": took}))
                }
                (3, Some(_)) => (ActionState::SafeToRetry, json!({"record": "done"})),
                _ => continue,
            };
            family[who].charges.take(&row("run", state, &at(clock), result));
            for (n, id) in ids.iter().enumerate() {
                let stands = standing(&family, id);
                let account = stands.own().expect("an account");
                let sum: u64 = family
                    .iter()
                    .filter(|member| is_at_or_beneath(&family, member, id))
                    .map(|member| member.charges.ended.milliseconds)
                    .sum();
                prop_assert_eq!(account.ended.milliseconds, sum, "step {}", number);
                let all = account.ended.plus(account.reserved);
                prop_assert!(all.milliseconds <= account.allowed().milliseconds, "{:?}", account);
                prop_assert!(all.output_bytes <= account.allowed().output_bytes, "{:?}", account);
                // Ending halfway gives back what was reserved; what was used is never given back.
                prop_assert!(sum >= before[n]);
                before[n] = sum;
            }
        }
    }
}

/// A member whose calls arrived in these rows: charged (true) or refused, since nothing was left.
fn calling(id: &str, parent: Option<&str>, limit: u64, calls: &[(i64, bool)]) -> Member {
    let mut member = member(id, parent, 100, cost(0, 0));
    member.limits = Limits::within(Kind::Edit, &[(Key::ToolCalls, limit)].into(), &Amounts::new()).0;
    for (seq, charged) in calls {
        let result = json!({"record": "call", "worker": "w", "charged": charged});
        let arrived = row(&format!("a{seq}"), ActionState::Planned, &at(0), result);
        member.charges.take(&Entry { seq: *seq, ..arrived });
    }
    member
}

#[test]
fn who_was_charged_the_last_call_may_finish_although_others_are_refused() {
    let family = [
        calling("top", None, 1, &[]),
        calling("a", Some("top"), 1, &[(10, true)]),
        calling("b", Some("top"), 1, &[(11, false)]),
    ];
    for id in ["top", "a", "b"] {
        let standing = standing(&family, id);
        assert!(standing.spent().is_some_and(|spent| spent.sentence().contains("toolCalls 1 of 1")), "{id}");
        assert_eq!(standing.spent_for_runs(), None, "{id}: calls are nothing to a run");
        assert!(standing.without_call().is_some(), "{id}");
    }
}

#[test]
fn a_refusal_from_before_more_was_added_is_over_with_the_next_charged_call() {
    let spent = |family: &[Member], id: &str| standing(family, id).spent().is_some();
    // Three of three, the fourth refused; then an amendment gave six, and nothing was resumed.
    let grown = [calling("t", None, 6, &[(1, true), (2, true), (3, true), (4, false), (5, true), (6, true)])];
    assert!(!spent(&grown, "t"), "one is left");
    let last = [calling(
        "t",
        None,
        6,
        &[(1, true), (2, true), (3, true), (4, false), (5, true), (6, true), (7, true)],
    )];
    assert!(!spent(&last, "t"), "the last one was charged, and nobody has asked for more");
    // A part was refused; more was added to the task above it only, and used there.
    let family =
        [calling("top", None, 2, &[(1, true), (3, true)]), calling("part", Some("top"), 2, &[(2, false)])];
    assert!(!spent(&family, "top") && !spent(&family, "part"));
    let asked = [family[0].clone(), calling("part", Some("top"), 2, &[(2, false), (4, false)])];
    assert!(spent(&asked, "top") && spent(&asked, "part"));
}

#[test]
fn the_time_of_a_call_counts_whatever_its_end_and_once() {
    use ActionState::{
        Denied, Dispatched, FailedWithoutEffect, OutcomeUnknown, Planned, Reconcile, SafeToRetry,
    };
    let arrived = (Planned, 0, json!({"record": "call", "worker": "w", "charged": true}));
    let failure = json!({"record": "failure", "cost": cost(700, 0)});
    let of = |rows: &[(ActionState, Value)]| {
        let rows = rows.iter().map(|(state, result)| (*state, 1, result.clone()));
        charges(&std::iter::once(arrived.clone()).chain(rows).collect::<Vec<_>>()).ended()
    };
    assert_eq!(of(&[(Dispatched, Value::Null), (FailedWithoutEffect, failure.clone())]), cost(700, 0));
    let settled = json!({"record": "done"});
    let lost = [
        (Dispatched, Value::Null),
        (OutcomeUnknown, failure),
        (Reconcile, Value::Null),
        (SafeToRetry, settled),
    ];
    assert_eq!(of(&lost), cost(700, 0));
    assert_eq!(of(&[(Denied, json!({"record": "failure"}))]), cost(0, 0));
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
