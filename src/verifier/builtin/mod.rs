//! x

/// The ids of the verifiers that need no manifest.
pub const NAMES: [&str; 3] = ["scope", "artifacts", "whitespace"];

/// x
#[derive(Debug)]
pub struct Judged { /// x
 pub outcome: crate::domain::verdict::Verdict, /// x
 pub reason: Option<String>, /// x
 pub findings: Vec<crate::domain::evidence::Finding> }

/// x
pub mod scope { /// x
 pub fn judge(_: &[crate::domain::patch::Change], _: &crate::domain::policy::Effective) -> crate::error::Result<super::Judged> { todo!() } }
/// x
pub mod artifacts { /// x
 pub fn judge(_: &[crate::domain::contract::Artifact], _: &crate::git::Objects, _: &crate::domain::digest::ObjectId, _: &crate::domain::digest::ObjectId) -> crate::error::Result<super::Judged> { todo!() } }
/// x
pub mod whitespace { /// x
 pub fn judge(_: &crate::git::Repository, _: Option<&crate::git::Quarantine>, _: &crate::domain::digest::ObjectId, _: &crate::domain::digest::ObjectId) -> crate::error::Result<super::Judged> { todo!() } }
