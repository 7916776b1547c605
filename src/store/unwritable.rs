//! Looking at a ledger where nothing can be written: read-only media, or somebody else's repository.
//!
//! SQLite wants to write beside a database in WAL mode even to read it. Where it cannot, the database is
//! taken as one that nobody changes; rows that only its log holds would be missed then, so with such a log
//! both are copied to where one can write.

use super::layout::{beside, write_private};
use crate::error::presence::is_filled_file;
use crate::error::{Failure, Result};
use rusqlite::{Connection, OpenFlags};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use tempfile::TempDir;

/// A connection that only reads, and the private folder of the copy that it reads, if it is one.
pub(super) type Opened = (Connection, Option<TempDir>);

/// Opens a database that cannot be written, nor anything beside it. `damaged` says what an error of SQLite
/// means.
pub(super) fn open(path: &Path, damaged: impl Fn(&rusqlite::Error) -> Failure) -> Result<Opened> {
    if is_filled_file(&beside(path, "-wal"))? {
        return copied(path, damaged);
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(immutable(path), flags).map_err(|e| damaged(&e))?;
    Ok((connection, None))
}

fn copied(path: &Path, damaged: impl Fn(&rusqlite::Error) -> Failure) -> Result<Opened> {
    let folder = tempfile::Builder::new()
        .prefix("git-tender-ledger-")
        .tempdir()
        .map_err(|e| Failure::io("make a folder for a copy of", path, &e))?;
    let copy = folder.path().join("ledger.db");
    for suffix in ["", "-wal"] {
        let (from, to) = (beside(path, suffix), beside(&copy, suffix));
        // Read and written, not copied with its mode: that may forbid writing.
        let bytes = std::fs::read(&from).map_err(|e| Failure::io("copy", &from, &e))?;
        write_private(&to, &bytes)?;
    }
    let connection =
        Connection::open_with_flags(&copy, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(|e| damaged(&e))?;
    Ok((connection, Some(folder)))
}

fn immutable(path: &Path) -> String {
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => uri.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(*byte)),
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri + "?immutable=1"
}
