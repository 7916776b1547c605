//! git-tender as a library; the binary is a thin shell around it. This page is the map of `src/`.
//!
//! # Which thing lives where
//!
//! - [`cli`]: arguments in, one operation, output; the only place that prints or reads the environment.
//!   Begin with [`cli::args`], [`cli::commands`].
//! - [`mcp`]: a task's tools for a worker, over the Model Context Protocol; each call goes through the gate.
//!   Begin with [`mcp::serve()`].
//! - [`ops`]: one use case a file, named like its command: what happens, and in which order. Begin with
//!   [`ops::deliver`].
//! - [`task`]: what every use case stands on: the way into a task, its actions, its evidence, recovery, and
//!   the
//!   effects that it can have. Begin with [`task::enter`], [`task::action`], [`task::effect`].
//! - [`render`]: results as text for people. Begin with [`render::report_text`].
//! - [`tools`]: what a worker may call: arguments, answers, and how the worktree is reached. Begin with
//!   [`tools::table`], [`tools::place`], [`tools::patch_formats`].
//! - [`verifier`]: manifests, runs of verifiers, what they wrote, the evidence that comes of it. Begin with
//!   [`verifier::manifest`], [`verifier::formats`].
//! - [`git`]: all that reads or writes git data, worktrees or the user's files. Begin with [`git::capture`]
//!   (worktree → candidate), [`git::live`] (looking at the user's files), [`git::apply`] (the only writer of
//!   them).
//! - [`store`]: what is kept under `.git/tender/`. Begin with [`store::ledger`], [`store::layout`].
//! - [`process`]: starting programs other than git. Begin with [`process::launch`].
//! - [`domain`]: everything that is decided, as pure functions over values. Begin with [`domain::contract`],
//!   [`domain::change::patch`], [`domain::proof::evidence`], [`domain::proof::judge`], [`domain::delivery`],
//!   [`domain::delivery::recovery`].
//! - [`error`]: the one failure type, and the table from code to exit code. Begin with [`error::Failure`].
//!
//! Beside `src/`: `verifiers/` is embedded by [`verifier::shipped`]; `tests/it/` drives the built program
//! from outside, a module an operation; `tests/crash/` kills, starves and damages it, `tests/soak/` lets many
//! work at once; `tests/independent/` reads the ledger without our code. `fixtures/scenarios/` holds cases as
//! files; `tests/architecture.rs` keeps the rules of this page.
//!
//! # Which way they look
//!
//! ```text
//! main ─> cli, mcp ─> ops ─> task ─> tools ─> verifier ─> git, store, process ─> domain ─> error
//!          └───────────┴───> render ───────────────────────────────────────^
//! ```
//!
//! Never back, and `git`, `store` and `process` do not know each other. What has to be decided is decided in
//! [`domain`] on values that the other layers have looked up; they then carry out what was decided. So a hard
//! question ("may this file be written?") is answered by a function that a unit test can call without a disk.
//!
//! # The life of one task
//!
//! 1. `open` ([`ops::open`]): [`domain::contract`] parses and seals the document,
//!    [`domain::contract::policy`] narrows it, [`git::worktree`] makes the folder to work in.
//! 2. Someone works there. Either we are not asked and run nothing; or a worker comes over [`mcp`], and every
//!    call of it goes through [`ops::gate`]: parsed and authorized on what is really there ([`tools`]),
//!    charged ([`domain::ledger::charges`]), journaled ([`domain::worker::call`]), and only then carried out.
//! 3. `submit` ([`ops::submit`]): [`git::capture`] (or [`git::patch_intake`], for a patch) makes a tree,
//!    [`git::limits`] holds it to the scope,
//! 4. and [`git::bound`] writes the patch with its manifest ([`domain::change::patch`]): a candidate, which
//!    never changes again.
//! 5. `verify` ([`ops::verify`]): [`verifier::observe()`] works out per requirement which key a record must
//!    have; what no record has is run in a [`git::slot`], and each run becomes a record
//!    ([`domain::proof::evidence`]) in the ledger.
//! 6. [`domain::proof::judge`] reads records and keys and says what is shown. It is asked again each time; no
//!    verdict is stored.
//! 7. `deliver` ([`ops::deliver`]): the verdicts have to be passes ([`domain::delivery::Clearance`]),
//!    [`git::live`] looks at each touched path,
//! 8. [`domain::delivery::plan_delivery`] compares: a plan for all paths, or conflicts and nothing happens.
//! 9. [`git::apply`] writes the plan, looks at what it replaced, and goes back if that was not it. Cut off in
//!    between, [`task::recover`] asks [`domain::delivery::recovery`] which way to go.
//! 10. `report` ([`ops::report`]) is read from the ledger and the blobs alone. `undo` is a delivery
//!     backwards; `gc` tidies up.
//!
//! What is staged is shown without a task by `check` ([`ops::check`]): [`git::staged_tree`] makes a tree
//! of it, and 5 and 6 follow.
//!
//! Where the base or the live tree moved, [`ops::rebase`] carries the candidate over ([`git::merge`]) and
//! moves the worktree ([`git::advance`]); then it goes on with 5.
//!
//! Where the contract says `branch` or `push`, [`task::effect::refs`] takes the place of the steps from 7's
//! look
//! on: [`git::branch`] makes a commit, and a ref is moved here or on a remote ([`git::push`]), from what
//! [`domain::delivery::publication`] says it has to be.
//!
//! Beside that: what a task may use is looked up and reserved in [`task::meter`] by the rules of
//! [`domain::ledger::charges`]; what changes around it is seen by [`git::tripwire`]; who is asked to stop
//! sees that in [`store::claim`].
//!
//! Each step is an action ([`domain::ledger::action`]) whose states stand in the ledger, so that
//! [`domain::ledger::task`] can tell a task's state by folding its rows.

mod cli;
mod domain;
mod error;
#[cfg(test)]
mod fuzz;
mod git;
mod mcp;
mod ops;
mod process;
mod render;
mod store;
mod task;
mod tools;
mod verifier;

pub use cli::main;
