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

pub mod action;
pub mod amendment;
pub mod budget;
pub mod call;
pub mod clause;
pub mod conflict;
pub mod contract;
pub mod decision;
pub mod delivery;
pub mod digest;
pub mod document;
mod effects;
pub mod entry;
pub mod evidence;
pub mod family;
pub mod finding;
pub mod first_error;
pub mod hook;
pub mod index;
pub mod inquiry;
pub mod link;
mod note;
pub mod os_path;
pub mod outside;
pub mod patch;
pub mod patch_text;
pub mod policy;
pub mod publication;
pub mod receipt;
pub mod record;
pub mod recovery;
pub mod repetition;
pub mod repo_path;
pub mod report;
pub mod risk;
pub mod run;
pub mod scope;
pub mod task;
pub mod tripwire;
pub mod verdict;
