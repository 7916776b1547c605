//! Whether a ledger is what was written: the chain, and all that is kept beside it and has to follow from it.

use super::{Ledger, damaged, zeros};
use crate::domain::ledger::entry::Entry;
use crate::domain::ledger::objects::UnfinishedRow;
use crate::domain::ledger::record::Record;
use crate::domain::value::digest::Sha256;
use crate::error::Result;
use std::collections::BTreeMap;

impl Ledger {
    /// Checks the whole chain: every hash, every link, no gap; and what is kept beside it: that each index
    /// leads to the rows, that the actions that count as unfinished are those without an end, and that
    /// what is kept of the tasks is what the rows say. Returns the
    /// number of rows.
    pub fn check_chain(&self) -> Result<u64> {
        // One state of the database for all that is compared; others go on appending meanwhile.
        let _snapshot = self.connection.unchecked_transaction().map_err(|e| damaged(&self.path, &e))?;
        let mut prev = zeros();
        let entries = self.entries(None)?;
        for (expected, entry) in (1i64..).zip(&entries) {
            if entry.seq != expected || entry.prev != prev {
                return Err(
                    self.broken(expected, &format!("row {} does not follow the row before it", entry.seq))
                );
            }
            prev = entry.hash.to_string();
        }
        self.check_indexes()?;
        self.check_keys(&entries)?;
        self.check_kept_tasks()?;
        let mut open: BTreeMap<&str, i64> = BTreeMap::new();
        for entry in &entries {
            if entry.state.is_final() {
                open.remove(entry.action.as_str());
            } else {
                open.insert(&entry.action, entry.seq);
            }
        }
        for UnfinishedRow { action, .. } in self.unfinished()? {
            if open.remove(action.as_str()).is_none() {
                return Err(self.broken(0, &format!("the action {action} counts as unfinished, but is not")));
            }
        }
        match open.iter().next() {
            None => Ok(entries.len() as u64),
            Some((action, seq)) => Err(self
                .broken(*seq, &format!("the action {action} has no end, but does not count as unfinished"))),
        }
    }

    fn check_keys(&self, entries: &[Entry]) -> Result<()> {
        let keyed: Vec<(String, String)> =
            self.read_pairs("SELECT hash, key FROM ledger WHERE key IS NOT NULL ORDER BY seq")?;
        let keyed: BTreeMap<String, String> = keyed.into_iter().collect();
        for entry in entries {
            let key = keyed.get(&entry.hash.to_string()).map(|key| key.parse()).transpose();
            let key = key.map_err(|_| self.broken(entry.seq, "a row has an unreadable key"))?;
            self.check_key(entry, key.as_ref())?;
        }
        Ok(())
    }

    fn check_indexes(&self) -> Result<()> {
        let fail = |e: rusqlite::Error| damaged(&self.path, &e);
        let found: String =
            self.connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).map_err(fail)?;
        if found == "ok" { Ok(()) } else { Err(self.broken(0, &found)) }
    }

    /// The key is no part of what a row's hash covers, but follows from what is.
    pub(super) fn check_key(&self, entry: &Entry, key: Option<&Sha256>) -> Result<()> {
        let record = Record::from_row(entry).ok();
        match record.and_then(|record| record.lookup_key()).as_ref() == key {
            true => Ok(()),
            false => {
                Err(self
                    .broken(entry.seq, &format!("row {} is kept under another key than its own", entry.seq)))
            }
        }
    }
}
