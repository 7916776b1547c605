//! Everything that reads or writes git data or a working tree.
//!
//! - Running git and reading objects: `command` (the only way to start it), `repository` with `ordinary`
//!   (found and read without it), `config` with `answers` (what it said and still holds), `objects`,
//!   `tree`, `laid_tree` (one opened as far as needed), `private_index`, `user_index`, and `index_file` for
//!   what an index holds.
//! - From a worktree or a patch to a candidate: `worktree`, `capture`, `patch_intake`, `limits`, `bound`,
//!   `live_base`, `staged_tree` (what an index holds), `keep`.
//! - From one base to another: `merge` (in memory), `advance` (the worktree after it).
//! - From a candidate to a ref: `branch` (a commit, and the branch of this repository), `push` (the same on a
//!   remote), `address` (which parts of a remote's address are secret).
//! - From a tree to files: `materialise`, `slot`, and `convert` with `drivers` and `attributes` for what git
//!   does to bytes on the way.
//! - A worker's own edit of its worktree, byte for byte: `edit`.
//! - What lies around a task: `tripwire` looks at it.
//! - The user's own files: `live` looks, `apply` writes, and nothing else here does either. `beneath` and
//!   `lease` are their tools: everything by descriptors, no link followed. `index_write` changes entries of
//!   the user's index, for `apply` alone.

pub mod address;
pub mod advance;
pub mod anchor;
pub mod answers;
pub mod apply;
pub mod attributes;
pub mod beneath;
mod boot;
pub mod bound;
pub mod branch;
pub mod capture;
pub mod command;
pub mod config;
pub mod convert;
pub mod drivers;
pub mod edit;
mod hash;
mod index_file;
pub mod index_write;
pub mod keep;
pub mod laid_tree;
pub mod lease;
pub mod limits;
pub mod live;
pub mod live_base;
pub mod live_difference;
mod live_walk;
pub mod materialise;
pub mod merge;
mod object_store;
pub mod objects;
mod ordinary;
pub mod patch_intake;
pub mod private_index;
pub mod push;
pub mod registration;
pub mod relocate;
pub mod repository;
pub mod slot;
pub mod staged_tree;
pub mod submodule;
#[cfg(test)]
pub(crate) mod testing;
pub mod tree;
pub mod tripwire;
pub mod user_index;
pub mod version;
pub mod worktree;
pub mod worktree_extras;

pub use command::{Environment, Git, Quarantine};
pub use objects::Objects;
pub use repository::{Caller, Repository};
