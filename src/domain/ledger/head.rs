//! The last row of the ledger at some moment, by its place and its hash.
//!
//! Each row's hash covers all rows before it. Whoever keeps such a head outside the ledger can tell later
//! whether the ledger still has that history.

use crate::domain::value::digest::Sha256;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerHead {
    /// Position of the row, from 1.
    pub seq: i64,
    /// Its hash.
    pub sha256: Sha256,
}

/// A head that is kept outside the ledger, and that the ledger does not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LostHead {
    /// The task in whose worktree's git directory it was found.
    pub task_id: String,
    pub worktree: String,
    #[serde(flatten)]
    pub head: LedgerHead,
}

impl LostHead {
    /// What was lost, as a clause.
    pub fn clause(&self) -> String {
        format!("row {} is missing, which the worktree of {} knows", self.head.seq, self.task_id)
    }
}

impl fmt::Display for LedgerHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.seq, self.sha256)
    }
}

impl FromStr for LedgerHead {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (seq, sha256) = text.split_once(':').ok_or(())?;
        Ok(Self { seq: seq.parse().map_err(|_| ())?, sha256: sha256.parse().map_err(|_| ())? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_as_it_is_written_and_nothing_else_is_one() {
        let head = LedgerHead { seq: 12, sha256: Sha256::of(b"row") };
        let text = head.to_string();
        assert_eq!(text.parse(), Ok(head));
        for other in ["", "12", &text[1..text.len() - 1], &text.replace(':', ""), &format!("{text}\n")] {
            assert_eq!(other.parse::<LedgerHead>(), Err(()), "{other:?}");
        }
    }
}
