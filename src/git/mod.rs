//! Everything that reads or writes git data or a working tree.

pub mod beneath;
pub mod capture;
pub mod command;
pub mod convert;
pub mod drivers;
pub mod index;
pub mod keep;
pub mod limits;
pub mod live_base;
pub mod materialise;
pub mod objects;
pub mod repository;
#[cfg(test)]
pub(crate) mod testing;
pub mod tree;
pub mod worktree;

pub use command::{Environment, Git, Output};
pub use objects::{Objects, Quarantine};
pub use repository::{Caller, Repository};
