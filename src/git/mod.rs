//! Everything that reads or writes git data or a working tree.

pub mod beneath;
pub mod command;
pub mod convert;
pub mod drivers;
pub mod materialise;
pub mod objects;
pub mod repository;
pub mod slot;
#[cfg(test)]
pub(crate) mod testing;
pub mod tree;

pub use command::{Environment, Git, Output};
pub use objects::{Objects, Quarantine};
pub use repository::{Caller, Repository};
