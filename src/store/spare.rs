//! A connection to the ledger that nobody uses at the moment: a command opens the database once, however
//! many of its steps ask for the ledger. SQLite takes the log in whenever the last connection is closed,
//! which costs several waits for the disk.

use rusqlite::Connection;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Shared by everyone who has the same layout.
#[derive(Debug, Clone, Default)]
pub(super) struct SpareConnection(Arc<Mutex<Option<KnownConnection>>>);

#[derive(Debug)]
struct KnownConnection {
    connection: Connection,
    /// Device and inode of the database when the connection was given back.
    file: (u64, u64),
}

impl SpareConnection {
    /// Takes the connection, if it still leads to the file at this path.
    pub(super) fn take_for(&self, path: &Path) -> Option<Connection> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        (file_at(path) == Some(known.file)).then_some(known.connection)
    }

    /// Gives a connection back; one in a transaction that was never ended is closed.
    pub(super) fn give_back(&self, connection: Connection, path: &Path) {
        let Some(file) = file_at(path).filter(|_| connection.is_autocommit()) else { return };
        let known = KnownConnection { connection, file };
        drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).replace(known));
    }
}

fn file_at(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|known| (known.dev(), known.ino()))
}
