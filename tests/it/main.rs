//! The whole program from outside: the real binary, real git, a hermetic home, no terminal.
//!
//! One module per operation or family of cases. What is compared is the wire format of the command
//! line, the bytes on disk, the index, the stash list and what git itself says of the repository.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "tests spawn, write and read the environment on their own; the rules are the product's"
)]

#[path = "../independent/mod.rs"]
#[expect(dead_code, reason = "the crash tests ask more of it")]
mod independent;
#[path = "../support/mod.rs"]
mod support;

mod again;
mod agent;
mod amendment;
mod answer;
mod asked;
mod attest;
mod barred;
mod branch;
mod budget;
mod cancel;
mod cases;
mod cheats;
mod check;
mod check_fix;
mod check_hook;
mod check_untouched;
mod commands;
mod content;
mod contract;
mod counted;
mod deliver;
mod deliver_guard;
mod environment;
mod evidence;
mod explore;
mod family;
mod formats;
mod furnished;
mod gate;
mod history;
mod home;
mod hooks;
mod inquiry;
mod live_code;
mod mcp;
mod older_ledger;
mod on_live;
mod open;
mod part;
mod patches;
mod policy;
mod prove;
mod push;
mod push_outcomes;
mod queue;
mod race;
mod readme;
mod rebase;
mod remedies;
mod repair;
mod report;
mod repositories;
mod rollback;
mod sandbox;
mod scenarios;
mod ship;
mod staged;
mod states;
mod submit;
mod submodules;
mod tripwire;
mod undo;
mod verifiers;
mod verify;
mod views;
mod warm;
mod words;
