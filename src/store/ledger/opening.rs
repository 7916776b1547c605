//! Opening the ledger, and making it.
//!
//! A command that writes makes it where there is none; one that looks makes nothing. One that was lost
//! is not made anew.

use super::{Ledger, damaged};
use crate::error::presence::is_present;
use crate::error::{Code, Failure, Result};
use crate::store::birth::{is_stillborn, make_database, require_room};
use crate::store::layout::{Layout, beside};
use crate::store::lock::{LockGuard, PATIENCE};
use crate::store::unsynced::UnsyncedBlobs;
use crate::store::unwritable;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A log of this many bytes is taken into the database by the next writer: reading it costs every
/// command.
pub(super) const LONG_LOG: u64 = 2 << 20;

/// Version of the database's layout. A newer one is refused; one from before is read as it is, and brought up
/// to this one by the first who writes.
const VERSION: i64 = 2;

/// The layout whose rows had no version.
const UNVERSIONED: i64 = 1;

/// What rows got with a layout that has versions. The rows stay as they were written.
const WITH_VERSIONS: &str = "ALTER TABLE ledger ADD COLUMN version INTEGER NOT NULL DEFAULT 1";

const SCHEMA: &str = "
CREATE TABLE ledger (
  seq INTEGER PRIMARY KEY,
  at TEXT NOT NULL,
  task TEXT,
  actor TEXT NOT NULL,
  action TEXT NOT NULL,
  tool TEXT NOT NULL,
  state TEXT NOT NULL,
  params_sha256 TEXT NOT NULL,
  basis TEXT NOT NULL,
  origin TEXT NOT NULL,
  result TEXT NOT NULL,
  prev TEXT NOT NULL,
  hash TEXT NOT NULL UNIQUE,
  key TEXT,
  version INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE INDEX ledger_task ON ledger (task, seq);
CREATE INDEX ledger_action ON ledger (action);
CREATE INDEX ledger_key ON ledger (key) WHERE key IS NOT NULL;
CREATE INDEX ledger_opens ON ledger (seq) WHERE tool = 'open';
CREATE TABLE unfinished (action TEXT PRIMARY KEY, task TEXT, tool TEXT NOT NULL) STRICT;
CREATE TRIGGER ledger_keeps BEFORE UPDATE ON ledger BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_holds BEFORE DELETE ON ledger BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
";

impl Ledger {
    /// Opens the ledger for writing; makes it where it does not exist.
    pub fn create(layout: &Layout) -> Result<Self> {
        let path = layout.ledger();
        if !is_present(&path)? {
            layout.create()?;
            let _creating = LockGuard::acquire(&layout.lock())?;
            if !is_present(&path)? {
                refuse_remains(layout)?;
                make_ledger(&path)?;
            }
        }
        let ledger = match layout.spare.take_for(&path) {
            Some(connection) => Self::again(connection, path, layout),
            None => Self::open_to_write(layout, &path)?.belonging_to(layout),
        };
        ledger.bring_layout_up_to_date()?;
        ledger.shorten_log(LONG_LOG)?;
        Ok(ledger)
    }

    fn layout_version(&self) -> Result<i64> {
        let read = self.connection.pragma_query_value(None, "user_version", |row| row.get(0));
        read.map_err(|e| damaged(&self.path, &e))
    }

    /// The version of a row, where it is read from.
    pub(super) fn version_column(&self) -> Result<&'static str> {
        Ok(if self.layout_version()? == UNVERSIONED { "1" } else { "version" })
    }

    fn bring_layout_up_to_date(&self) -> Result<()> {
        if self.layout_version()? != UNVERSIONED {
            return Ok(());
        }
        let migrate = || {
            self.connection.execute_batch("BEGIN IMMEDIATE")?;
            // Another one may have come first.
            let now: i64 = self.connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
            if now == UNVERSIONED {
                self.connection.execute_batch(WITH_VERSIONS)?;
                self.connection.pragma_update(None, "user_version", VERSION)?;
            }
            self.connection.execute_batch("COMMIT")
        };
        migrate().map_err(|e| {
            drop(self.connection.execute_batch("ROLLBACK"));
            damaged(&self.path, &e)
        })
    }

    fn open_to_write(layout: &Layout, path: &Path) -> Result<Self> {
        let open = || {
            require_room(path)?;
            make_log_file(path)?;
            let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
                .map_err(|e| damaged(path, &e))?;
            Self::prepare((connection, None), path.to_owned())
        };
        match open() {
            Err(failure) if is_stillborn(layout, &failure)? => {
                let _creating = LockGuard::acquire(&layout.lock())?;
                match open() {
                    Err(failure) if is_stillborn(layout, &failure)? => make_ledger(path)?,
                    _ => {}
                }
                open()
            }
            opened => opened,
        }
    }

    fn again(connection: Connection, path: PathBuf, layout: &Layout) -> Self {
        Self::over((connection, None), path).belonging_to(layout)
    }

    fn over((connection, copy): unwritable::Opened, path: PathBuf) -> Self {
        let unsynced = UnsyncedBlobs::default();
        Self { connection, path, anchor: None, has_late_rows: false, spare: None, unsynced, _copy: copy }
    }

    /// Gives its connection back to this layout afterwards, and waits for its blobs.
    fn belonging_to(mut self, layout: &Layout) -> Self {
        self.spare = Some(layout.spare.clone());
        self.unsynced = layout.unsynced.clone();
        self
    }

    /// Takes a log that is longer than this into the database. Nobody is waited for: whoever reads now
    /// keeps us from it, and the next writer does it.
    pub fn shorten_log(&self, longest: u64) -> Result<()> {
        let log = beside(&self.path, "-wal");
        if std::fs::metadata(log).is_ok_and(|log| log.len() > longest) {
            let wait = |time| self.connection.busy_timeout(time).map_err(|e| damaged(&self.path, &e));
            wait(Duration::ZERO)?;
            drop(self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())));
            wait(PATIENCE)?;
        }
        Ok(())
    }

    /// Opens an existing ledger for reading; `None` where there is none and never was. Creates nothing
    /// in the repository.
    pub fn open(layout: &Layout) -> Result<Option<Self>> {
        let path = layout.ledger();
        if !is_present(&path)? {
            return refuse_remains(layout).map(|()| None).or_else(|gone| match is_present(&path)? {
                // Somebody has made it meanwhile.
                true => Self::open(layout),
                false => Err(gone),
            });
        }
        if let Some(connection) = layout.spare.take_for(&path) {
            return Ok(Some(Self::again(connection, path, layout)));
        }
        let opened = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_WRITE)
            .or_else(|_| Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY))
            .map_err(|e| damaged(&path, &e));
        let opened = require_room(&path)
            .and(opened)
            .and_then(|connection| Self::prepare((connection, None), path.clone()));
        match opened {
            Err(failure) if failure.code() == Code::Io => {
                let opened = unwritable::open(&path, |e| damaged(&path, e)).map_err(|_| failure)?;
                Self::prepare(opened, path).map(Some)
            }
            Err(failure) if is_stillborn(layout, &failure)? => Ok(None),
            opened => Ok(Some(opened?.belonging_to(layout))),
        }
    }

    pub(super) fn prepare((connection, copy): unwritable::Opened, path: PathBuf) -> Result<Self> {
        let run = || -> rusqlite::Result<i64> {
            connection.busy_timeout(PATIENCE)?;
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
            connection.pragma_update(None, "synchronous", "NORMAL")?;
            connection.pragma_query_value(None, "user_version", |row| row.get(0))
        };
        match run() {
            Ok(VERSION | UNVERSIONED) => Ok(Self::over((connection, copy), path)),
            Ok(other) if other < VERSION => Err(Failure::new(
                Code::StoreCorrupt,
                format!("{} is not a ledger any more: it has no layout version", path.display()),
            )
            .subject(path.display().to_string())
            .expected(VERSION, other)
            .remedy(GONE, ["git", "tender", "doctor"])),
            Ok(other) => Err(Failure::new(
                Code::NotSupported,
                format!(
                    "{} has layout version {other}; this git-tender knows version {VERSION}",
                    path.display()
                ),
            )
            .expected(VERSION, other)),
            Err(e) => Err(damaged(&path, &e)),
        }
    }
}

const GONE: &str = "Nothing was repaired. Put the ledger back from a copy, if there is one.";

/// Where there is no ledger, but something that came after one, the ledger was lost.
fn refuse_remains(layout: &Layout) -> Result<()> {
    let Some(remains) = layout.remains()? else { return Ok(()) };
    let path = layout.ledger().display().to_string();
    Err(Failure::new(
        Code::StoreCorrupt,
        format!("the ledger {path} is missing, although {} holds something", remains.display()),
    )
    .subject(path)
    .remedy(GONE, ["git", "tender", "doctor"]))
}

/// The log's file, whose name is on the disk before the first row is written to it.
fn make_log_file(path: &Path) -> Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let log = beside(path, "-wal");
    if is_present(&log)? {
        return Ok(());
    }
    let made = std::fs::File::options().append(true).create(true).mode(0o600).open(&log);
    made.and_then(|_| std::fs::File::open(path.parent().unwrap_or(path))?.sync_all())
        .map_err(|e| Failure::io_of_ours("make", &log, &e))
}

fn make_ledger(path: &Path) -> Result<()> {
    make_database(path, VERSION, SCHEMA, |e| damaged(path, e))
}
