//! Clients that no one here wrote do a task through `git-tender mcp` alone: the inspector's command line, the
//! Python SDK, and two coding agents, codex and claude, whose model is a stand-in on loopback that says what
//! a script tells it to. A script that misbehaves gets nowhere, and the report says so.
//!
//! Managers of git's hooks that no one here wrote call `git-tender check`, and are called by it.
//!
//! `tests/clients/install` puts them in place. Where they are not, a test says that it skipped; in CI it
//! fails.

#![expect(
    clippy::disallowed_methods,
    reason = "tests spawn, write and read the environment on their own; the rules are the product's"
)]

#[path = "../support/mod.rs"]
#[expect(dead_code, reason = "the harness of all; a part of it is used here")]
mod support;

mod clients;
mod deaths;
mod hostile;
mod local;
mod stand_in;
mod tasks;
mod world;
