//! The pure core: no files, no clock, no processes, no environment, no git library.

pub mod action;
pub mod contract;
pub mod digest;
pub mod document;
pub mod entry;
pub mod patch;
pub mod patch_text;
pub mod policy;
pub mod repo_path;
pub mod scope;
pub mod verdict;
