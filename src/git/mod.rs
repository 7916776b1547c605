//! Everything that reads or writes git data or a working tree.

pub mod apply;
pub mod beneath;
pub mod bound;
pub mod capture;
pub mod command;
pub mod convert;
pub mod drivers;
pub mod fsops;
pub mod keep;
pub mod lease;
pub mod limits;
pub mod live;
pub mod live_base;
pub mod materialise;
pub mod objects;
pub mod patch_intake;
pub mod private_index;
pub mod repository;
pub mod slot;
#[cfg(test)]
pub(crate) mod testing;
pub mod tree;
pub mod user_index;
pub mod worktree;

pub use command::{Environment, Git, Output};
pub use objects::{Objects, Quarantine};
pub use repository::{Caller, Repository};
