//! The ledger's first moment, and the room that it needs: a database that is not whole never gets its name,
//! and one that never held anything is no loss.

use super::layout::Layout;
use crate::error::{Code, Failure, Result};
use rusqlite::{Connection, OpenFlags};
use std::fs::File;
use std::path::Path;

/// SQLite's shared memory and the first rows.
const ROOM: u64 = 256 << 10;
/// SQLite reserves its shared memory page by page; blocks smaller than that it leaves out.
const PAGE: u64 = 4096;

/// Makes a database with these statements and gives it its name once it is closed, synced and was read back.
pub(super) fn make_database(
    path: &Path,
    version: i64,
    schema: &str,
    failed: impl Fn(&rusqlite::Error) -> Failure,
) -> Result<()> {
    let folder = path.parent().ok_or_else(|| Failure::internal("the ledger has no folder"))?;
    let fresh = tempfile::Builder::new()
        .prefix(".ledger-")
        .tempdir_in(folder)
        .map_err(|e| Failure::io("create a folder in", folder, &e))?;
    let file = fresh.path().join("ledger.db");
    let make = || -> rusqlite::Result<()> {
        let connection = Connection::open(&file)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.execute_batch(schema)?;
        connection.pragma_update(None, "user_version", version)?;
        // Closing takes the log in too, but does not say when that fails.
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        connection.close().map_err(|(_, e)| e)
    };
    make().map_err(|e| failed(&e))?;
    let not_made = |e: std::io::Error| Failure::io("create", path, &e);
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).map_err(not_made)?;
    File::open(&file).and_then(|file| file.sync_all()).map_err(not_made)?;
    if !is_whole(&file, version).map_err(|e| failed(&e))? {
        let message =
            format!("the ledger {} could not be made: what was written is not there", path.display());
        let text =
            format!("Look at the disk and the room on it (`df -h {}`), then repeat.", folder.display());
        let failure = Failure::new(Code::Io, message).subject(path.display().to_string());
        return Err(failure.remedy(text, ["git", "tender", "doctor"]));
    }
    std::fs::rename(&file, path).and_then(|()| File::open(folder)?.sync_all()).map_err(not_made)
}

fn is_whole(file: &Path, version: i64) -> rusqlite::Result<bool> {
    let connection = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let sound: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
    Ok(found == version && sound == "ok")
}

/// True for what a failure of ours has left under the ledger's name before anything was kept: it is as if it
/// had never been made.
pub(super) fn is_stillborn(layout: &Layout, failure: &Failure) -> Result<bool> {
    Ok(failure.code() == Code::StoreCorrupt && layout.remains()?.is_none() && !has_rows(&layout.ledger()))
}

/// Whether any row can be read. `false` also where nothing can.
fn has_rows(path: &Path) -> bool {
    let count = || -> rusqlite::Result<i64> {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        connection.query_row("SELECT count(*) FROM ledger", [], |row| row.get(0))
    };
    count().is_ok_and(|rows| rows > 0)
}

/// Where blocks are smaller than a page, a full disk would not be an error of SQLite's but the end of this
/// process: a page of its shared memory that has no block.
pub(super) fn require_room(path: &Path) -> Result<()> {
    let folder = path.parent().unwrap_or(path);
    let Ok(room) = rustix::fs::statvfs(folder) else { return Ok(()) };
    if room.f_frsize >= PAGE || room.f_bavail.saturating_mul(room.f_frsize) >= ROOM {
        return Ok(());
    }
    let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
    Err(Failure::io("use the ledger", path, &full))
}
