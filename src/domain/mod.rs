//! The pure core: no files, no clock, no processes, no environment, no git library.
//!
//! Its rooms, from the bottom up; a room names itself and those above it in this list only, and the
//! architecture test keeps that:
//!
//! - [`value`]: what everything is made of. Digests, `repo_path`s and `scope`s over them, `document`s as they
//!   are read, text from `outside`.
//! - [`contract`]: what a task may do and must show. The contract itself, the `policy` above it, `clause`s,
//!   names of `tool`s, `budget`, `terms` of a delivery, `hook`s, `family` (a task as a part of another),
//!   `amendment`.
//! - [`change`]: what was made. A `patch` bound to blobs, and `patch_text`.
//! - [`worker`]: what a worker did and asked for. `call`, `finding`, `inquiry`.
//! - [`proof`]: what is shown. `evidence` as recorded, the `verdict` words, `judge` (evidence to verdicts),
//!   what is told of a `run`, `tripwire` (what changed around the task).
//! - [`delivery`]: what is done. Look, then plan (or `conflict`), with the `index`; `publication` onto a
//!   branch or a remote; `receipt`, `recovery`, and the `decision` that only a person can take.
//! - [`ledger`]: what happened. An `entry` is a row and a `record` what it holds; `action`, `calls`,
//!   `charges`, `repetition` and `inquiries` are folded from rows, and `task` from all of them; `report` and
//!   `risk` are read from a task.

pub mod change;
pub mod contract;
pub mod delivery;
pub mod ledger;
pub mod proof;
pub mod value;
pub mod worker;
