//! Everything that reads or writes git data or a working tree.

pub mod bound;
pub mod command;
pub mod convert;
pub mod drivers;
pub mod isolated;
pub mod objects;
pub mod patch_intake;
pub mod repository;
#[cfg(test)]
pub(crate) mod testing;
pub mod tree;

pub use command::{Environment, Git, Output};
pub use objects::{Objects, Quarantine};
pub use repository::{Caller, Repository};
