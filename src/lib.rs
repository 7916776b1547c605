//! git-tender as a library; the binary is a thin shell around it.

pub mod cli;
pub mod domain;
pub mod error;
pub mod git;
pub mod ops;
pub mod process;
pub mod render;
pub mod store;
pub mod verifier;
