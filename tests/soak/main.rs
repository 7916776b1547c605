//! A soak test: several actors and a user work at one repository at the same time, commands are killed, and
//! at the end an independent checker goes through the ledger and the trees.
//!
//! `TENDER_SOAK_SECONDS` (default 60) is how long the actors work, `TENDER_SOAK_SEED` what they do; the seed
//! is printed. Threads and kills make no two runs the same, but the same seed makes the same intentions.

#![expect(
    clippy::disallowed_methods,
    reason = "tests spawn, write and read the environment on their own; the rules are the product's"
)]

mod actor;
mod checker;
#[path = "../independent/mod.rs"]
mod independent;
#[path = "../support/mod.rs"]
#[expect(dead_code, unused_imports, reason = "the harness of all; a part of it is used here")]
mod support;
mod user;
mod world;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use support::{Lab, setting};
use world::World;

/// Actors that work at the same time, beside the user.
const ACTORS: u64 = 3;

#[test]
fn nothing_is_lost_and_nothing_is_done_twice() {
    let seconds = setting("TENDER_SOAK_SECONDS", 60);
    let clock = u64::from(std::time::UNIX_EPOCH.elapsed().map_or(0, |time| time.subsec_nanos()));
    let seed = setting("TENDER_SOAK_SEED", clock);
    crate::support::say(&format!(
        "soak: seed {seed}, {seconds} seconds (TENDER_SOAK_SEED, TENDER_SOAK_SECONDS)"
    ));
    let lab = Lab::within(&crate::independent::memory());
    let world = World::new(&lab);
    let end = Instant::now() + Duration::from_secs(seconds);
    std::thread::scope(|scope| {
        let actors: Vec<_> = (0..ACTORS)
            .map(|n| {
                scope.spawn({
                    let world = &world;
                    move || actor::work(world, n, seed, end)
                })
            })
            .collect();
        let user = scope.spawn(|| user::work(&world, seed, end));
        actors.into_iter().for_each(|actor| actor.join().expect("an actor does not fail"));
        world.stop.store(true, Ordering::SeqCst);
        user.join().expect("the user does not fail");
    });
    world.settle();
    let report = checker::check(&world);
    crate::support::say(&format!("soak: seed {seed}: {}", report.figures));
    assert!(
        report.problems.is_empty(),
        "seed {seed}: {} problems\n{}",
        report.problems.len(),
        report.problems.join("\n")
    );
    if seconds >= 20 {
        report.assert_worth();
    }
}
