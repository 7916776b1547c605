//! One use case a file, named like its command. Typed options in, a typed result out; nothing here prints.
//!
//! The pipeline is `open`, `submit`, `verify`, `deliver`; `ship` chains them, `rebase` carries a candidate
//! over to a base that moved, `undo` goes back. What a worker does comes through `gate`, and a person's side
//! of it is `answer`. What is decided is decided in `domain`; here it is looked up, recorded and carried out,
//! in that order. None of them names another, but for the few that are sequences of others: what several
//! stand on is in [`crate::task`].

pub mod agent;
pub mod answer;
pub mod attest;
pub mod cancel;
pub mod check;
pub mod deliver;
pub mod demo;
pub mod doctor;
pub mod gate;
pub mod gc;
pub mod init;
pub mod open;
pub mod path;
pub mod rebase;
pub mod recover;
pub mod report;
pub mod resume;
pub mod schema;
pub mod ship;
pub mod start;
pub mod submit;
pub mod undo;
pub mod verifiers;
pub mod verify;
pub mod widen;

pub use crate::task::session::{Machine, Person, Session};
