//! git-tender as a library; the binary is a thin shell around it.

pub mod domain;
pub mod error;
pub mod git;
pub mod process;
pub mod store;
pub mod verifier;
