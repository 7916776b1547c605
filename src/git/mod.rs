//! Everything that reads or writes git data or a working tree.

pub mod apply;
pub mod command;
pub mod convert;
pub mod drivers;
pub mod fsops;
pub mod lease;
pub mod live;
pub mod objects;
pub mod repository;
pub mod tree;

pub use command::{Environment, Git, Output};
pub use objects::{Objects, Quarantine};
pub use repository::{Caller, Repository};
