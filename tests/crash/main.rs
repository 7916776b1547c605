//! The built program under fire: killed from outside at its system calls, its disk full, failing or
//! read-only, its ledger damaged.
//!
//! Nothing of the product's code takes part; what is on disk afterwards, and what the ledger says, is looked
//! at with code of the tests' own. `TENDER_CRASH=1` widens everything: every page of the ledger, more kills
//! of the large delivery; a higher number, more still.

#![expect(
    clippy::disallowed_methods,
    reason = "tests spawn, write and read the environment on their own; the rules are the product's"
)]

#[path = "../independent/mod.rs"]
mod independent;
#[path = "../support/mod.rs"]
#[expect(dead_code, reason = "the harness of all; a part of it is used here")]
mod support;

mod calls;
mod damage;
mod faults;
mod fixes;
mod kills;
mod many;
mod mixed;
mod moved;
mod strace;

/// How much more than the default is wanted; 0 is the default.
fn more() -> u64 {
    support::setting("TENDER_CRASH", 0)
}
