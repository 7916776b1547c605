//! The head of the ledger, kept outside the store: a copy of the store that was put back does not have it.
//!
//! It is written after the commit and without a sync of its own: a ledger that is ahead of it is in order.
//! For the same reason a failure to write it is no failure of the commit.

use super::{Ledger, damaged, last};
use crate::domain::ledger::head::LedgerHead;
use crate::error::Result;
use crate::store::layout::replace_unsynced;
use rusqlite::{OptionalExtension, params};
use std::path::{Path, PathBuf};

impl Ledger {
    /// From now on each commit leaves the head in this file.
    pub fn keep_head_at(&mut self, anchor: Option<PathBuf>) {
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

    /// Leaves the head in that file now.
    pub fn keep_head_outside(&self) {
        if let (Some(anchor), Ok(Some(head))) = (&self.anchor, self.head()) {
            write_head(anchor, &head);
        }
    }
}

fn write_head(anchor: &Path, head: &LedgerHead) {
    let _ = replace_unsynced(anchor, format!("{head}\n").as_bytes());
}
