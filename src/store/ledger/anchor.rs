//! The head of the ledger, kept outside the store: a copy of the store that was put back does not have it.
//!
//! It is written after the commit and without a sync of its own: a ledger that is ahead of it is in order.
//! For the same reason a failure to write it is no failure of the commit. A row that nobody waited for, such
//! as the last one of a delivery, is named by a second head, once the ledger is left.

use super::{Ledger, damaged, last};
use crate::domain::ledger::head::{HeadAnchor, KeptHeads, LedgerHead};
use crate::error::Result;
use crate::store::layout::replace_unsynced;
use rusqlite::{OptionalExtension, params};

impl Ledger {
    /// From now on each commit leaves the head there.
    pub fn keep_head_at(&mut self, anchor: Option<HeadAnchor>) {
        self.anchor = anchor;
    }

    /// The last row; `None` where there is none.
    pub fn head(&self) -> Result<Option<LedgerHead>> {
        let (seq, hash) = last(&self.connection).map_err(|e| damaged(&self.path, &e))?;
        if seq == 0 {
            return Ok(None);
        }
        let sha256 =
            hash.parse().map_err(|_| self.broken(seq, &format!("row {seq} has an unreadable hash")))?;
        Ok(Some(LedgerHead { seq, sha256 }))
    }

    /// True where the ledger has that very row, and with it all rows before.
    pub fn has_head(&self, head: &LedgerHead) -> Result<bool> {
        let found = self
            .connection
            .prepare_cached("SELECT hash FROM ledger WHERE seq = ?1")
            .and_then(|mut rows| rows.query_row(params![head.seq], |row| row.get::<_, String>(0)).optional());
        let found = found.map_err(|e| damaged(&self.path, &e))?;
        Ok(found.is_some_and(|hash| hash == head.sha256.to_string()))
    }

    /// Leaves the head there now. Its row is on the disk.
    pub fn keep_head_outside(&mut self) {
        self.has_late_rows = false;
        if let (Some(anchor), Ok(Some(head))) = (&self.anchor, self.head()) {
            write_heads(anchor, &KeptHeads { safe: Some(head), late: None });
        }
    }

    /// Leaves a head there whose row was not waited for, behind the one that is safe.
    pub(super) fn keep_late_head_outside(&mut self) {
        if !std::mem::take(&mut self.has_late_rows) {
            return;
        }
        let (Some(anchor), Ok(Some(head))) = (&self.anchor, self.head()) else { return };
        let known = std::fs::read_to_string(&anchor.path).unwrap_or_default();
        let known: KeptHeads = known.parse().unwrap_or_default();
        if !anchor.boot.is_empty() {
            write_heads(anchor, &KeptHeads { late: Some((head, anchor.boot.clone())), ..known });
        }
    }
}

fn write_heads(anchor: &HeadAnchor, heads: &KeptHeads) {
    let _ = replace_unsynced(&anchor.path, heads.to_string().as_bytes());
}
