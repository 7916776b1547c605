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
//!   the effects that it can have. Begin with [`task::enter`], [`task::action`], [`task::effect`].
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
//! # Where one looks first
//!
//! | for | in |
//! |---|---|
//! | when a live file is in conflict | `domain/delivery.rs`: `plan_delivery`, a path at a time |
//! | which exit code a failure has | `error.rs`: the table of codes, and the number of each category |
//! | how a secret is hidden | `process/redact.rs`; of rows of the ledger where `task/action.rs` writes them |
//! | what a key of a contract means | `domain/contract/parse.rs`: an arm a key |
//! | what a key of the configuration means | `domain/contract/policy/read.rs`, `domain/contract/hook.rs` |
//! | what a key of a manifest means | `verifier/manifest/read.rs` |
//! | what delivery modes differ in | `domain/contract/mode.rs`: a row a mode; each acts in `task/effect/` |
//! | which result formats there are | `verifier/formats/mod.rs`: a row a format, beside its reader |
//! | what a command does | `cli/commands.rs`: an arm a command, which leads to one file of `ops/` |
//!
//! # Words
//!
//! One meaning each, in names, comments and what is shown.
//!
//! | word | what it is here |
//! |---|---|
//! | contract | the document that says what a task may do and has to show; another version is another seal |
//! | seal | version and digest of a contract's document |
//! | policy | what the base commit lets a contract ask for at most |
//! | terms | contract and policy together: what is in force for a task |
//! | task | all that happens under one contract: a folder, a budget, a history |
//! | actor | who acts: `user`, `agent`, `bot` or `harness`, told from the way they came in |
//! | worker | a program that calls a task's tools; each connection is one |
//! | call | one use of a tool by a worker |
//! | action | anything that is written down with an id and goes through states |
//! | state | where an action is between planned and ended |
//! | effect | what an action changes beyond the ledger |
//! | base | the commit, or captured tree, that a task starts from |
//! | worktree | the task's own folder, which git knows as a linked worktree |
//! | scope | the patterns that say which paths may be written |
//! | capture | reading a worktree into a tree, without running anything of it |
//! | candidate | a captured tree with its patch, which never changes |
//! | manifest | of a patch: what each path was and is, by mode, blob and digest; of a verifier: its file |
//! | requirement | one thing that a contract wants shown |
//! | verifier | a program, or a part of this one, that looks at a candidate and says something |
//! | slot | a folder into which a tree is laid out so that a verifier can run on it |
//! | key | all digests that a run depends on; the same key, the same question |
//! | evidence | what one run showed, kept under its key |
//! | verdict | what is known of a requirement for exactly these bytes |
//! | row | one requirement with its verdict, as a report lists it |
//! | clearance | the proof, as a type, that the rows let a candidate be delivered |
//! | live tree | the user's own files, with whatever is going on in them |
//! | plan | what a delivery will do to each path, before it does anything |
//! | conflict | a path, or a ref, that is not what the change was made for |
//! | receipt | what a delivery found and left behind, path by path; `undo` needs nothing else |
//! | publication | a delivery to a ref, here or on a remote |
//! | quarantine | where a task's objects lie as long as the repository shall not have them |
//! | ledger | all entries, in order, each with the hash of the one before; nothing else is true |
//! | entry | one line of the ledger: an action in a state, with a record |
//! | report | what the ledger says of a task, put in order |
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
//! 3. `submit` ([`task::submission`]): [`git::capture`] (or [`git::patch_intake`], for a patch) makes a tree,
//!    [`git::limits`] holds it to the scope,
//! 4. and [`git::bound`] writes the patch with its manifest ([`domain::change::patch`]): a candidate, which
//!    never changes again.
//! 5. `verify` ([`task::verification`]): [`verifier::observe()`] works out which key a record of each
//!    requirement must have; what no record has is run in a [`git::slot`], and each run becomes a record
//!    ([`domain::proof::evidence`]) in the ledger.
//! 6. [`domain::proof::judge`] reads records and keys and says what is shown. It is asked again each time; no
//!    verdict is stored.
//! 7. `deliver` ([`ops::deliver`]): the verdicts have to be passes ([`domain::delivery::Clearance`]),
//!    [`git::live`] looks at each touched path,
//! 8. [`domain::delivery::plan_delivery`] compares: a plan for all paths, or conflicts and nothing happens.
//! 9. [`git::apply`] writes the plan, looks at what it replaced, and goes back if that was not it. Cut off in
//!    between, [`task::recover`] finds it, [`task::effect::cut_off`] says whose it is, and
//!    [`domain::delivery::recovery`] which way to go.
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
//! look on: [`git::branch`] makes a commit, and a ref is moved here or on a remote ([`git::push`]), from what
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
