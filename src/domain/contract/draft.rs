//! A contract that is being read: what has been understood of it so far.

use super::{Artifact, Base, DeliveryMode, Kind, Requirement, SandboxWish};
use crate::domain::contract::budget::Amounts;
use crate::domain::contract::terms::Terms;
use crate::domain::value::scope::Scope;

/// The fields that have been read so far; `None` where one is not there or wrong.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) task_id: Option<String>,
    pub(super) kind: Option<Kind>,
    pub(super) case: Option<Scope>,
    pub(super) goal: Option<String>,
    pub(super) base: Option<Base>,
    pub(super) write_scope: Option<Scope>,
    pub(super) read_scope: Option<Scope>,
    pub(super) allowed_tools: Option<Vec<String>>,
    pub(super) scratch: Option<Scope>,
    pub(super) sandbox: Option<SandboxWish>,
    pub(super) allowed: Option<Vec<String>>,
    pub(super) forbidden: Vec<String>,
    pub(super) requirements: Option<Vec<Requirement>>,
    pub(super) artifacts: Vec<Artifact>,
    pub(super) budget: Amounts,
    pub(super) parent: Option<String>,
    pub(super) delivery: Option<DeliveryMode>,
    pub(super) terms: Terms,
    pub(super) commit_allowed: Option<bool>,
    /// The fields that are there, right or wrong.
    pub(super) present: Vec<String>,
}

impl Draft {
    pub(super) fn has_field(&self, field: &str) -> bool {
        self.present.iter().any(|name| name == field)
    }
}
