//! Whose turn it was last: the task that a command means which names none.

use super::{Ledger, damaged};
use crate::error::Result;
use rusqlite::OptionalExtension;

impl Ledger {
    /// The task of the last row that belongs to one.
    pub fn last_task(&self) -> Result<Option<String>> {
        self.find_task("SELECT task FROM ledger WHERE task IS NOT NULL ORDER BY seq DESC LIMIT 1")
    }

    /// The task whose delivery, or whose reversal, was recorded last.
    pub fn last_delivered_task(&self) -> Result<Option<String>> {
        self.find_task(
            "SELECT task FROM ledger WHERE task IS NOT NULL AND state = 'succeeded'
             AND json_extract(result, '$.record') IN ('delivered', 'undone') ORDER BY seq DESC LIMIT 1",
        )
    }

    fn find_task(&self, sql: &str) -> Result<Option<String>> {
        self.connection.query_row(sql, [], |row| row.get(0)).optional().map_err(|e| damaged(&self.path, &e))
    }
}
