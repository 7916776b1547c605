//! Which tasks are parts of which: read from the rows that opened them, and those once only.

use super::{Ledger, damaged};
use crate::error::Result;
use rusqlite::params;

/// What is known of the kinship of tasks, up to a row.
#[derive(Debug, Default)]
pub(super) struct KnownKin {
    pub(super) upto: i64,
    pub(super) pairs: Vec<(String, String)>,
}

impl Ledger {
    /// Every task that is a part of another one, with that one. The rows themselves say so; this only says
    /// where to look. What was read of them before is not read again.
    pub fn list_kin(&self) -> Result<Vec<(String, String)>> {
        let fail = |e: rusqlite::Error| damaged(&self.path, &e);
        let mut kin = self.kin.borrow_mut();
        let mut statement = self
            .connection
            .prepare_cached(
                "SELECT seq, task, json_extract(result, '$.contract.parent') FROM ledger
                 WHERE tool = 'open' AND state = 'succeeded' AND seq > ?1 ORDER BY seq",
            )
            .map_err(fail)?;
        let rows = statement.query_map(params![kin.upto], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
        for row in rows.map_err(fail)? {
            let (seq, child, parent): (i64, String, Option<String>) = row.map_err(fail)?;
            kin.upto = seq;
            kin.pairs.extend(parent.map(|parent| (child, parent)));
        }
        Ok(kin.pairs.clone())
    }
}
