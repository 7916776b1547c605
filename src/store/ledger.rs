//! The ledger: append-only, hash-chained, in SQLite.
//!
//! A row is one step of one action. Its hash covers everything in it and the hash before it, so a changed,
//! removed or inserted row shows. Rows are only ever appended, in one immediate transaction per call, each
//! durable before the call returns (WAL with `synchronous=FULL`). The database is created under a lock: two
//! first users must not race for the journal mode.

use self::kin::KnownKin;
use super::birth::{is_stillborn, make_database, require_room};
use super::layout::Layout;
use super::lock::LockGuard;
use super::spare::SpareConnection;
use super::unwritable;
use crate::domain::ledger::entry::{Entry, EntryBody};
use crate::domain::ledger::objects::UnfinishedRow;
use crate::domain::value::digest::Sha256;
use crate::error::presence::is_present;
use crate::error::{Code, Failure, Result};
use rusqlite::{Connection, OpenFlags, TransactionBehavior, params};
use rustix::fs::Access;
use serde_json::Value;
use std::cell::RefCell;
use std::path::{Path, PathBuf};

mod anchor;
mod check;
mod kin;
mod recent;

/// Version of the database's layout. A newer one is refused, an older one would be migrated.
const VERSION: i64 = 1;

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
  key TEXT
) STRICT;
CREATE INDEX ledger_task ON ledger (task, seq);
CREATE INDEX ledger_action ON ledger (action);
CREATE INDEX ledger_key ON ledger (key) WHERE key IS NOT NULL;
CREATE INDEX ledger_opens ON ledger (seq) WHERE tool = 'open';
CREATE TABLE unfinished (action TEXT PRIMARY KEY, task TEXT, tool TEXT NOT NULL) STRICT;
CREATE TRIGGER ledger_keeps BEFORE UPDATE ON ledger BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_holds BEFORE DELETE ON ledger BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
";

/// A row to be appended.
#[derive(Debug, Clone)]
pub struct Draft {
    pub body: EntryBody,
    /// Evidence key, so that a later task finds the row without reading all of them.
    pub key: Option<Sha256>,
}

impl From<EntryBody> for Draft {
    fn from(body: EntryBody) -> Self {
        Self { body, key: None }
    }
}

#[derive(Debug)]
pub struct Ledger {
    connection: Connection,
    kin: RefCell<KnownKin>,
    path: PathBuf,
    /// Where the head is kept outside the store after each commit.
    anchor: Option<PathBuf>,
    /// Where the connection goes afterwards; `None` for one to a copy.
    spare: Option<SpareConnection>,
    // Dropped after the connection that reads in it.
    _copy: Option<tempfile::TempDir>,
}

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
        if let Some(connection) = layout.spare.take_for(&path) {
            return Ok(Self::again(connection, path, layout));
        }
        let open = || {
            require_room(&path)?;
            let connection = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_WRITE)
                .map_err(|e| damaged(&path, &e))?;
            Self::prepare((connection, None), path.clone())
        };
        let mut ledger = match open() {
            Err(failure) if is_stillborn(layout, &failure)? => {
                let _creating = LockGuard::acquire(&layout.lock())?;
                match open() {
                    Err(failure) if is_stillborn(layout, &failure)? => make_ledger(&path)?,
                    _ => {}
                }
                open()?
            }
            opened => opened?,
        };
        ledger.spare = Some(layout.spare.clone());
        Ok(ledger)
    }

    fn again(connection: Connection, path: PathBuf, layout: &Layout) -> Self {
        Self {
            connection,
            kin: RefCell::default(),
            path,
            anchor: None,
            spare: Some(layout.spare.clone()),
            _copy: None,
        }
    }

    /// Opens an existing ledger for reading; `None` where there is none and never was. Creates nothing in the
    /// repository.
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
            opened => {
                let mut ledger = opened?;
                ledger.spare = Some(layout.spare.clone());
                Ok(Some(ledger))
            }
        }
    }

    fn prepare((connection, copy): unwritable::Opened, path: PathBuf) -> Result<Self> {
        let run = || -> rusqlite::Result<i64> {
            connection.busy_timeout(super::lock::PATIENCE)?;
            connection.pragma_update(None, "synchronous", "FULL")?;
            connection.pragma_query_value(None, "user_version", |row| row.get(0))
        };
        match run() {
            Ok(VERSION) => {
                Ok(Self { connection, kin: RefCell::default(), path, anchor: None, spare: None, _copy: copy })
            }
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

    /// Appends rows in one transaction, or as a part of the one that is under way. Each is durable when this,
    /// or that, returns.
    pub fn append(&mut self, drafts: &[Draft]) -> Result<Vec<Entry>> {
        let path = self.path.clone();
        let fail = |e: rusqlite::Error| damaged(&path, &e);
        if !self.connection.is_autocommit() {
            return append_to(&self.connection, drafts).map_err(fail);
        }
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fail)?;
        let entries = append_to(&transaction, drafts).map_err(fail)?;
        transaction.commit().map_err(fail)?;
        self.keep_head_outside();
        Ok(entries)
    }

    /// Looks and appends in one transaction: what `work` has read still holds when its rows are written.
    /// Nothing is written where it fails.
    pub fn atomically<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let path = self.path.clone();
        let fail = |e: rusqlite::Error| damaged(&path, &e);
        self.connection.execute_batch("BEGIN IMMEDIATE").map_err(fail)?;
        let done = work(self);
        if done.is_err() {
            // What was read of rows that are never written.
            self.kin.take();
        }
        let end = if done.is_ok() { "COMMIT" } else { "ROLLBACK" };
        let ended = self.connection.execute_batch(end).map_err(fail);
        let done = done.and_then(|value| ended.map(|()| value));
        if done.is_ok() {
            self.keep_head_outside();
        }
        done
    }

    fn read_pairs(&self, sql: &str) -> Result<Vec<(String, String)>> {
        let fail = |e: rusqlite::Error| damaged(&self.path, &e);
        let mut statement = self.connection.prepare(sql).map_err(fail)?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).map_err(fail)?;
        rows.collect::<rusqlite::Result<_>>().map_err(fail)
    }

    /// True where the record of a delivery or of its reversal names this object; what it says of HEAD is no
    /// part of what it delivered.
    pub fn delivered_names(&self, id: &str) -> Result<bool> {
        let fail = |e: rusqlite::Error| damaged(&self.path, &e);
        self.connection
            .query_row(
                "SELECT EXISTS (SELECT 1 FROM ledger WHERE tool IN ('deliver', 'undo') AND state = 'succeeded'
                 AND instr(json_remove(result, '$.head'), ?1) > 0)",
                params![id],
                |row| row.get(0),
            )
            .map_err(fail)
    }

    /// The rows of one task, or all rows, in order. Each row's own hash is checked.
    pub fn entries(&self, task: Option<&str>) -> Result<Vec<Entry>> {
        match task {
            Some(task) => self.query("WHERE task = ?1 ORDER BY seq", params![task]),
            None => self.query("ORDER BY seq", params![]),
        }
    }

    /// The rows of one task after a position, in order.
    pub fn entries_after(&self, task: &str, seq: i64) -> Result<Vec<Entry>> {
        self.query("WHERE task = ?1 AND seq > ?2 ORDER BY seq", params![task, seq])
    }

    /// Rows that carry an evidence key, oldest first, from whichever task.
    pub fn entries_with_key(&self, key: &Sha256) -> Result<Vec<Entry>> {
        let entries = self.query("WHERE key = ?1 ORDER BY seq", params![key.to_string()])?;
        entries.iter().try_for_each(|entry| self.check_key(entry, Some(key)))?;
        Ok(entries)
    }

    /// The rows of one action.
    pub fn action(&self, action: &str) -> Result<Vec<Entry>> {
        self.query("WHERE action = ?1 ORDER BY seq", params![action])
    }

    /// Actions without an end. An index that is kept with the rows, so that looking for them does not cost a
    /// walk through the whole history.
    pub fn unfinished(&self) -> Result<Vec<UnfinishedRow>> {
        let fail = |e: rusqlite::Error| damaged(&self.path, &e);
        let mut statement = self
            .connection
            .prepare("SELECT action, task, tool FROM unfinished ORDER BY rowid")
            .map_err(fail)?;
        let rows = statement
            .query_map([], |row| {
                Ok(UnfinishedRow { action: row.get(0)?, task: row.get(1)?, tool: row.get(2)? })
            })
            .map_err(fail)?;
        rows.collect::<rusqlite::Result<_>>().map_err(fail)
    }

    /// The ids of all tasks, in the order in which they first appear.
    pub fn tasks(&self) -> Result<Vec<String>> {
        let fail = |e: rusqlite::Error| damaged(&self.path, &e);
        let mut statement = self
            .connection
            .prepare("SELECT task FROM ledger WHERE task IS NOT NULL GROUP BY task ORDER BY MIN(seq)")
            .map_err(fail)?;
        let rows = statement.query_map([], |row| row.get(0)).map_err(fail)?;
        rows.collect::<rusqlite::Result<_>>().map_err(fail)
    }

    fn query(&self, tail: &str, values: impl rusqlite::Params) -> Result<Vec<Entry>> {
        let fail = |e: rusqlite::Error| damaged(&self.path, &e);
        let sql = format!(
            "SELECT seq, at, task, actor, action, tool, state, params_sha256, basis, origin, result, prev, hash FROM ledger {tail}"
        );
        let mut statement = self.connection.prepare(&sql).map_err(fail)?;
        let mut rows = statement.query(values).map_err(fail)?;
        let mut entries = Vec::new();
        while let Some(row) = rows.next().map_err(fail)? {
            entries.push(self.entry(row)?);
        }
        Ok(entries)
    }

    fn entry(&self, row: &rusqlite::Row<'_>) -> Result<Entry> {
        let seq: i64 = row.get(0).map_err(|e| damaged(&self.path, &e))?;
        let text = |at: usize| {
            row.get::<_, Option<String>>(at)
                .map_err(|e| damaged(&self.path, &e))
                .map(Option::unwrap_or_default)
        };
        let bad = |what: &str| self.broken(seq, &format!("row {seq} has an unreadable {what}"));
        let word =
            |at: usize, what: &str| -> Result<Value> { Ok(Value::String(text(at).map_err(|_| bad(what))?)) };
        let entry = Entry {
            seq,
            at: text(1)?,
            body: EntryBody {
                task: row.get(2).map_err(|e| damaged(&self.path, &e))?,
                actor: serde_json::from_value(word(3, "actor")?).map_err(|_| bad("actor"))?,
                action: text(4)?,
                tool: text(5)?,
                state: serde_json::from_value(word(6, "state")?).map_err(|_| bad("state"))?,
                params_sha256: text(7)?.parse().map_err(|_| bad("digest"))?,
                basis: serde_json::from_str(&text(8)?).map_err(|_| bad("basis"))?,
                origin: text(9)?,
                result: serde_json::from_str(&text(10)?).map_err(|_| bad("result"))?,
            },
            prev: text(11)?,
            hash: text(12)?.parse().map_err(|_| bad("hash"))?,
        };
        if entry.computed_hash() == entry.hash {
            Ok(entry)
        } else {
            Err(self.broken(seq, &format!("row {seq} was changed after it was written")))
        }
    }

    fn broken(&self, seq: i64, what: &str) -> Failure {
        Failure::new(Code::StoreCorrupt, format!("the ledger {} is damaged: {what}", self.path.display()))
            .subject(self.path.display().to_string())
            .detail("seq", seq)
            .remedy(
                "Nothing was repaired. Keep a copy of the file, then look at what it still holds.",
                ["git", "tender", "log"],
            )
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        let Some(spare) = self.spare.take() else { return };
        if let Ok(nothing) = Connection::open_in_memory() {
            spare.give_back(std::mem::replace(&mut self.connection, nothing), &self.path);
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

fn make_ledger(path: &Path) -> Result<()> {
    make_database(path, VERSION, SCHEMA, |e| damaged(path, e))
}

fn zeros() -> String {
    "0".repeat(64)
}

fn last(connection: &Connection) -> rusqlite::Result<(i64, String)> {
    let mut statement =
        connection.prepare_cached("SELECT seq, hash FROM ledger ORDER BY seq DESC LIMIT 1")?;
    let mut rows = statement.query([])?;
    match rows.next()? {
        Some(row) => Ok((row.get(0)?, row.get(1)?)),
        None => Ok((0, zeros())),
    }
}

fn chained(draft: &Draft, seq: i64, prev: &str) -> Entry {
    let mut entry =
        Entry { seq, at: now(), body: draft.body.clone(), prev: prev.to_owned(), hash: Sha256::of(b"") };
    entry.hash = entry.computed_hash();
    entry
}

fn append_to(connection: &Connection, drafts: &[Draft]) -> rusqlite::Result<Vec<Entry>> {
    let (mut seq, mut prev) = last(connection)?;
    let mut entries = Vec::with_capacity(drafts.len());
    for draft in drafts {
        seq += 1;
        let entry = chained(draft, seq, &prev);
        insert(connection, &entry, draft.key.as_ref())?;
        track(connection, &entry)?;
        prev = entry.hash.to_string();
        entries.push(entry);
    }
    Ok(entries)
}

fn insert(connection: &Connection, entry: &Entry, key: Option<&Sha256>) -> rusqlite::Result<()> {
    let word = |value: Value| value.as_str().map(str::to_owned).unwrap_or_default();
    let mut statement = connection.prepare_cached(
        "INSERT INTO ledger (seq, at, task, actor, action, tool, state, params_sha256, basis, origin, result, prev, hash, key)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
    )?;
    statement.execute(params![
        entry.seq,
        entry.at,
        entry.task,
        word(serde_json::json!(entry.actor)),
        entry.action,
        entry.tool,
        word(serde_json::json!(entry.state)),
        entry.params_sha256.to_string(),
        entry.basis.to_string(),
        entry.origin,
        entry.result.to_string(),
        entry.prev,
        entry.hash.to_string(),
        key.map(Sha256::to_string),
    ])?;
    Ok(())
}

fn track(connection: &Connection, entry: &Entry) -> rusqlite::Result<()> {
    if entry.state.is_final() {
        connection
            .prepare_cached("DELETE FROM unfinished WHERE action = ?1")?
            .execute(params![entry.action])?;
    } else {
        connection
            .prepare_cached("INSERT OR IGNORE INTO unfinished (action, task, tool) VALUES (?1, ?2, ?3)")?
            .execute(params![entry.action, entry.task, entry.tool])?;
    }
    Ok(())
}

/// The present time as RFC 3339 in UTC, to the microsecond.
pub fn now() -> String {
    format!("{:.6}", jiff::Timestamp::now())
}

fn damaged(path: &Path, error: &rusqlite::Error) -> Failure {
    use rusqlite::ErrorCode;
    let code = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Code::StoreBusy,
        Some(
            ErrorCode::DiskFull
            | ErrorCode::SystemIoFailure
            | ErrorCode::CannotOpen
            | ErrorCode::ReadOnly
            | ErrorCode::PermissionDenied,
        ) => Code::Io,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Code::StoreCorrupt,
        _ => Code::StoreCorrupt,
    };
    if code == Code::Io
        && let Err(barred) = rustix::fs::access(path, Access::READ_OK | Access::WRITE_OK)
    {
        return Failure::io_of_ours("use the ledger", path, &barred.into());
    }
    Failure::new(code, format!("the ledger {} cannot be used: {error}", path.display()))
        .subject(path.display().to_string())
        .remedy(
            "Nothing was repaired. Keep a copy of the file; `doctor` says more.",
            ["git", "tender", "doctor"],
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ledger::action::{ActionState, Actor};
    use serde_json::json;

    fn draft(task: &str, n: u64) -> Draft {
        EntryBody {
            task: Some(task.to_owned()),
            actor: Actor::User,
            action: format!("a{n}"),
            tool: "open".to_owned(),
            state: ActionState::Planned,
            params_sha256: Sha256::of(b"{}"),
            basis: json!({"contract": 1}),
            origin: "cli".to_owned(),
            result: json!({"n": n, "text": "修"}),
        }
        .into()
    }

    fn ledger() -> (tempfile::TempDir, Layout, Ledger) {
        let dir = tempfile::tempdir().expect("a directory");
        let layout = Layout::new(dir.path());
        let ledger = Ledger::create(&layout).expect("creates");
        (dir, layout, ledger)
    }

    #[test]
    fn rows_come_back_as_written_and_the_chain_holds() {
        let (_dir, layout, mut ledger) = ledger();
        let written = ledger.append(&[draft("a", 1), draft("b", 2)]).expect("appends");
        ledger.append(&[draft("a", 3)]).expect("appends");
        assert_eq!(ledger.entries(None).expect("reads")[..2], written[..]);
        assert_eq!(ledger.entries(Some("a")).expect("reads").len(), 2);
        assert_eq!(ledger.tasks().expect("reads"), ["a", "b"]);
        assert_eq!(ledger.check_chain().expect("whole"), 3);
        let again = Ledger::open(&layout).expect("opens").expect("there");
        assert_eq!(again.check_chain().expect("whole"), 3);
    }

    #[test]
    fn a_ledger_that_never_held_anything_is_made_anew_and_no_other() {
        let dir = tempfile::tempdir().expect("a directory");
        let layout = Layout::new(dir.path());
        layout.create().expect("creates");
        let break_ledger = || {
            let mut file = std::fs::File::create(layout.ledger()).expect("creates");
            std::io::Write::write_all(&mut file, &[7; 12_288]).expect("writes");
        };
        break_ledger();
        assert!(Ledger::open(&layout).expect("as if it had never been").is_none());
        let mut ledger = Ledger::create(&layout).expect("made anew");
        ledger.append(&[draft("a", 1)]).expect("appends");
        drop(ledger);
        let layout = Layout::new(dir.path());
        std::fs::create_dir_all(layout.task("a")).expect("creates");
        break_ledger();
        assert_eq!(Ledger::create(&layout).expect_err("was in use").code(), Code::StoreCorrupt);
        assert_eq!(Ledger::open(&layout).expect_err("was in use").code(), Code::StoreCorrupt);
    }

    #[test]
    fn a_changed_or_removed_row_is_noticed() {
        let (_dir, layout, mut ledger) = ledger();
        ledger.append(&[draft("a", 1), draft("a", 2), draft("a", 3)]).expect("appends");
        let raw = Connection::open(layout.ledger()).expect("opens");
        assert!(
            raw.execute("UPDATE ledger SET origin = 'mcp' WHERE seq = 2", []).is_err(),
            "the trigger holds"
        );
        raw.execute_batch("DROP TRIGGER ledger_keeps; DROP TRIGGER ledger_holds; UPDATE ledger SET origin = 'mcp' WHERE seq = 2").expect("forged");
        assert_eq!(ledger.entries(Some("a")).expect_err("changed").code(), Code::StoreCorrupt);
        raw.execute_batch("DELETE FROM ledger WHERE seq = 2").expect("forged");
        assert!(ledger.entries(Some("a")).is_ok(), "each remaining row is whole");
        assert_eq!(ledger.check_chain().expect_err("a gap").code(), Code::StoreCorrupt);
    }

    #[test]
    fn a_list_of_unfinished_actions_that_does_not_fit_is_noticed() {
        let (_dir, layout, mut ledger) = ledger();
        ledger.append(&[draft("a", 1), draft("a", 2)]).expect("appends");
        let raw = Connection::open(layout.ledger()).expect("opens");
        raw.execute("DELETE FROM unfinished WHERE action = 'a1'", []).expect("forged");
        assert_eq!(ledger.check_chain().expect_err("one is missing").code(), Code::StoreCorrupt);
        raw.execute("INSERT INTO unfinished VALUES ('a1', 'a', 'open'), ('a9', 'a', 'open')", [])
            .expect("forged");
        assert_eq!(ledger.check_chain().expect_err("one too many").code(), Code::StoreCorrupt);
    }

    #[test]
    fn concurrent_first_users_get_one_chain() {
        let dir = tempfile::tempdir().expect("a directory");
        let layout = Layout::new(dir.path());
        std::thread::scope(|scope| {
            for n in 0..8 {
                let layout = &layout;
                scope.spawn(move || {
                    let mut ledger = Ledger::create(layout).expect("creates");
                    for m in 0..10 {
                        ledger.append(&[draft("t", n * 10 + m)]).expect("appends");
                    }
                });
            }
        });
        let ledger = Ledger::open(&layout).expect("opens").expect("there");
        assert_eq!(ledger.check_chain().expect("whole"), 80);
    }

    #[test]
    fn a_row_under_another_key_than_its_own_is_noticed() {
        let (_dir, layout, mut ledger) = ledger();
        let key = Sha256::of(b"key");
        ledger.append(&[Draft { key: Some(key), ..draft("a", 1) }]).expect("appends");
        let code = |failure: Failure| failure.code();
        assert_eq!(ledger.entries_with_key(&key).map_err(code), Err(Code::StoreCorrupt));
        assert_eq!(ledger.check_chain().map_err(code), Err(Code::StoreCorrupt));
        assert_eq!(Ledger::open(&layout).expect("opens").expect("there").tasks().expect("reads"), ["a"]);
    }

    #[test]
    fn a_ledger_that_lost_its_rows_is_corrupt_and_no_new_one_is_made() {
        let both = |layout: &Layout| {
            let codes = [Ledger::open(layout).map(drop), Ledger::create(layout).map(drop)];
            codes.map(|result| result.map_err(|failure| failure.code()))
        };
        let (_dir, layout, open) = ledger();
        drop(open);
        super::super::layout::write_private(&layout.ledger(), b"").expect("writes");
        let used = layout.task("t0");
        super::super::layout::create_private_dir(&used).expect("makes");
        assert_eq!(both(&layout), [Err(Code::StoreCorrupt); 2]);
        std::fs::remove_dir(used).expect("removes");
        std::fs::remove_file(layout.ledger()).expect("removes");
        assert!(Ledger::open(&layout).expect("folders alone say nothing").is_none());
        for remains in [layout.blobs().join("ab"), layout.task("t1")] {
            super::super::layout::create_private_dir(&remains).expect("makes");
            assert_eq!(both(&layout), [Err(Code::StoreCorrupt); 2]);
            assert!(!layout.ledger().exists());
            std::fs::remove_dir(remains).expect("removes");
        }
        Ledger::create(&layout).expect("a first writer may have been cut off here");
    }

    #[test]
    fn where_nothing_can_be_written_all_rows_are_read_and_nothing_is_left() {
        let (_dir, layout, mut ledger) = ledger();
        let path = layout.ledger();
        let look = || {
            let opened = unwritable::open(&path, |e| damaged(&path, e)).expect("opens");
            Ledger::prepare(opened, path.clone()).expect("a ledger").tasks().expect("reads").len()
        };
        ledger.append(&[draft("a", 1)]).expect("appends");
        assert_eq!(look(), 1, "the row is in the log only");
        ledger.connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").expect("moves the rows");
        drop(ledger);
        drop(layout.spare.take_for(&path));
        assert_eq!(look(), 1);
        let names = std::fs::read_dir(layout.ledger().parent().expect("a folder")).expect("lists");
        let beside = names.flatten().filter(|name| name.file_name().to_string_lossy().contains("ledger.db-"));
        assert_eq!(beside.count(), 0);
    }
}
