//! The pure core: no files, no clock, no processes, no environment, no git library.
//!
//! - What a task may do: `contract` (from a `document`), `policy`, `scope` over `repo_path`s; how much of it:
//!   `budget`; as a part of another one: `family`.
//! - What was made: `patch` and `patch_text`, with `digest`s to name it.
//! - What is shown: `clause` (required of it), `evidence` (recorded), `verdict` (both put together), `risk`
//!   (`tripwire`: what changed around it), `report`.
//! - What is done: `delivery` (look, then plan; `index` with it; or a `conflict`), `publication` (onto a
//!   branch, to a remote), `receipt`, `recovery`.
//! - What a worker did: `call`, and `repetition` of it.
//! - What is asked and noted: `inquiry` (of a person), `amendment` (another contract), `finding`; all in
//!   words from `outside`. What is asked or told of calls: `hook`.
//! - What happened: `entry` (a row of the ledger), `record` (what it holds), `decision` (what only a person
//!   can say), `action` and `task` (rows folded to a state).

pub mod change;
pub mod contract;
pub mod delivery;
pub mod ledger;
pub mod proof;
pub mod value;
pub mod worker;
