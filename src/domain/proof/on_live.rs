//! Whether a pass speaks of the live tree too: a verifier saw the candidate's inputs, and the live tree may
//! have others.

use super::verdict::Row;
use crate::domain::value::repo_path::RepoPath;
use serde::{Deserialize, Serialize};

/// What the live tree has of a verifier's inputs and judge, after the delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnLive {
    Same,
    Differs,
    /// It differs, and the verifier passed there before anything was written.
    Proven,
}

/// A requirement's inputs in the live tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LiveInputs {
    /// The requirement.
    pub id: String,
    pub verifier: String,
    /// `None` where nothing was looked at, or what was seen does not tell.
    pub on_live: Option<OnLive>,
    /// The first paths that differ.
    pub differs: Vec<RepoPath>,
}

impl LiveInputs {
    /// The sentence for a reader, where the live tree has other inputs.
    pub fn risk_sentence(&self) -> Option<String> {
        let first = self.differs.first().filter(|_| self.on_live == Some(OnLive::Differs))?;
        let more = if self.differs.len() > 1 { " and others" } else { "" };
        Some(format!(
            "{} was shown on other files than the live tree has: its verifier {} depends on {first}{more}",
            self.id, self.verifier
        ))
    }
}

/// What was seen right after a delivery of the live tree, and of what the delivery left behind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenAfterDelivery {
    /// The requirements' inputs in the live tree.
    pub rows: Vec<LiveInputs>,
    /// Newer rules at HEAD, and work that is in no candidate: sentences for a reader.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<String>,
    /// Every required row was shown on the live tree before anything was written, by the rules of HEAD.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub proven: bool,
}

impl SeenAfterDelivery {
    /// Every sentence for a reader.
    pub fn risks(&self) -> Vec<String> {
        self.rows.iter().filter_map(LiveInputs::risk_sentence).chain(self.told.iter().cloned()).collect()
    }
}

/// A row of a delivery.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeliveredRow {
    #[serde(flatten)]
    pub row: Row,
    pub on_live: Option<OnLive>,
    pub differs: Vec<RepoPath>,
}

/// The rows, each with what the live tree has of its inputs.
pub fn add_live_inputs(rows: &[Row], seen: &[LiveInputs]) -> Vec<DeliveredRow> {
    let with = |row: &Row| {
        let inputs = seen.iter().find(|inputs| inputs.id == row.id);
        DeliveredRow {
            row: row.clone(),
            on_live: inputs.and_then(|inputs| inputs.on_live),
            differs: inputs.map(|inputs| inputs.differs.clone()).unwrap_or_default(),
        }
    };
    rows.iter().map(with).collect()
}
