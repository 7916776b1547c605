//! The pure core: no files, no clock, no processes, no environment, no git library.

pub mod action;
pub mod clause;
pub mod contract;
pub mod delivery;
pub mod digest;
pub mod document;
pub mod entry;
pub mod evidence;
pub mod link;
mod note;
pub mod os_path;
pub mod patch;
pub mod patch_text;
pub mod policy;
pub mod receipt;
pub mod recovery;
pub mod repo_path;
pub mod report;
pub mod risk;
pub mod scope;
pub mod task;
pub mod verdict;
