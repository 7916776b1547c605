//! Everything that reads or writes git data or a working tree.

pub mod command;
pub mod convert;
pub mod drivers;
pub mod objects;
pub mod repository;
#[cfg(test)]
pub(crate) mod testing;
pub mod tree;

pub use command::{Environment, Git, Output};
pub use objects::{Objects, Quarantine};
pub use repository::{Caller, Repository};
