//! The ledger: append-only, hash-chained, in SQLite.
//!
//! A row is one step of one action. Its hash covers everything in it and the hash before it, so a
//! changed, removed or inserted row shows. Rows are only ever appended, in one immediate transaction
//! per call, each durable before the call returns. The database is created under a lock: two first
//! users must not race for the journal mode.
//!
//! A commit is one wait for the disk. SQLite keeps the order of what is written (WAL with
//! `synchronous=NORMAL`), and we wait for its log after each commit ourselves; so rows that precede no
//! effect, and the last row of one that recovery would finish in the same way, can be left to be on
//! the disk with the next row ([`Ledger::commit_unawaited`]). The log is kept when the last user
//! leaves: to take it into the database at each end would cost two waits more, and to begin it anew
//! another two. It is taken in by whoever opens the ledger to write and finds it long.

use super::layout::{Layout, beside};
use super::spare::SpareConnection;
use super::unsynced::UnsyncedBlobs;
use crate::domain::ledger::entry::{Entry, EntryBody, RowVersion};
use crate::domain::ledger::head::HeadAnchor;
use crate::domain::ledger::objects::UnfinishedRow;
use crate::domain::ledger::row_json::RowJson;
use crate::domain::value::digest::Sha256;
use crate::error::{Code, Failure, Result};
use rusqlite::{Connection, params};
use rustix::fs::Access;
use serde_json::Value;
use std::path::{Path, PathBuf};

mod anchor;
mod check;
mod kept_tasks;
mod opening;
mod recent;

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
    path: PathBuf,
    /// Where the head is kept outside the store after each commit.
    anchor: Option<HeadAnchor>,
    /// True where rows were committed since that nobody waited for.
    has_late_rows: bool,
    /// Where the connection goes afterwards; `None` for one to a copy.
    spare: Option<SpareConnection>,
    /// What has to be on the disk before a row is.
    unsynced: UnsyncedBlobs,
    // Dropped after the connection that reads in it.
    _copy: Option<tempfile::TempDir>,
}

impl Ledger {
    /// Appends rows in one transaction, or as a part of the one that is under way. Each is durable
    /// when this, or that, returns.
    pub fn append(&mut self, drafts: &[Draft]) -> Result<Vec<Entry>> {
        if self.connection.is_autocommit() {
            return self.atomically(|ledger| ledger.append(drafts));
        }
        append_to(&self.connection, drafts).map_err(|e| damaged(&self.path, &e))
    }

    /// The same as [`Ledger::atomically`] for rows that every process sees at once, and that are on
    /// the disk when the next row is. The head outside names them once the ledger is left, as rows that a
    /// power cut may take.
    pub fn commit_unawaited<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let done = self.commit_work(work)?;
        self.has_late_rows = true;
        Ok(done)
    }

    fn commit_work<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let path = self.path.clone();
        let fail = |e: rusqlite::Error| damaged(&path, &e);
        self.connection.execute_batch("BEGIN IMMEDIATE").map_err(fail)?;
        let done = work(self).and_then(|value| self.unsynced.sync_all().map(|()| value));
        let end = if done.is_ok() { "COMMIT" } else { "ROLLBACK" };
        let ended = self.connection.execute_batch(end).map_err(fail);
        if ended.is_err() && !self.connection.is_autocommit() {
            // What comes next must not become a part of this.
            drop(self.connection.execute_batch("ROLLBACK"));
        }
        done.and_then(|value| ended.map(|()| value))
    }

    /// Looks and appends in one transaction: what `work` has read still holds when its rows are written.
    /// Nothing is written where it fails.
    pub fn atomically<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let done = self.commit_work(work)?;
        let log = beside(&self.path, "-wal");
        std::fs::File::open(&log)
            .and_then(|file| file.sync_data())
            .map_err(|e| Failure::io_of_ours("sync", &log, &e))?;
        self.keep_head_outside();
        Ok(done)
    }

    /// Lets another part of the same command have the connection; [`Ledger::take_up`] comes before the
    /// next use.
    pub fn set_aside(&mut self) {
        self.keep_late_head_outside();
        if let (Some(spare), Ok(nothing)) = (&self.spare, Connection::open_in_memory()) {
            spare.give_back(std::mem::replace(&mut self.connection, nothing), &self.path);
        }
    }

    pub fn take_up(&mut self, layout: &Layout) -> Result<()> {
        let mut again = Self::create(layout)?;
        std::mem::swap(&mut again.connection, &mut self.connection);
        again.spare = None;
        Ok(())
    }

    fn read_pairs(&self, sql: &str) -> Result<Vec<(String, String)>> {
        let fail = |e: rusqlite::Error| damaged(&self.path, &e);
        let mut statement = self.connection.prepare(sql).map_err(fail)?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).map_err(fail)?;
        rows.collect::<rusqlite::Result<_>>().map_err(fail)
    }

    /// True where the record of a delivery or of its reversal names this object; what it says of HEAD
    /// is no part of what it delivered.
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
            "SELECT seq, at, task, actor, action, tool, state, params_sha256, basis, origin, result, prev, hash, {} FROM ledger {tail}",
            self.version_column()?
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
        let version = row.get(13).map_err(|e| damaged(&self.path, &e))?;
        let entry = Entry {
            version: RowVersion::from_number(version).ok_or_else(|| bad("version"))?,
            seq,
            at: text(1)?,
            body: EntryBody {
                task: row.get(2).map_err(|e| damaged(&self.path, &e))?,
                actor: serde_json::from_value(word(3, "actor")?).map_err(|_| bad("actor"))?,
                action: text(4)?,
                tool: text(5)?,
                state: serde_json::from_value(word(6, "state")?).map_err(|_| bad("state"))?,
                params_sha256: text(7)?.parse().map_err(|_| bad("digest"))?,
                basis: RowJson::from_stored(text(8)?),
                origin: text(9)?,
                result: RowJson::from_stored(text(10)?),
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
        self.set_aside();
    }
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
    let mut entry = Entry {
        version: RowVersion::NOW,
        seq,
        at: now(),
        body: draft.body.clone(),
        prev: prev.to_owned(),
        hash: Sha256::of(b""),
    };
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
    kept_tasks::take_entries(connection, &entries)?;
    Ok(entries)
}

fn insert(connection: &Connection, entry: &Entry, key: Option<&Sha256>) -> rusqlite::Result<()> {
    let word = |value: Value| value.as_str().map(str::to_owned).unwrap_or_default();
    let mut statement = connection.prepare_cached(
        "INSERT INTO ledger (seq, at, task, actor, action, tool, state, params_sha256, basis, origin, result, prev, hash, key, version)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
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
        entry.basis.as_str(),
        entry.origin,
        entry.result.as_str(),
        entry.prev,
        entry.hash.to_string(),
        key.map(Sha256::to_string),
        entry.version.number(),
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
    use super::opening::LONG_LOG;
    use super::*;
    use crate::domain::ledger::action::{ActionState, Actor};
    use crate::domain::ledger::head::KeptHeads;
    use crate::store::unwritable;
    use serde_json::json;

    fn draft(task: &str, n: u64) -> Draft {
        EntryBody {
            task: Some(task.to_owned()),
            actor: Actor::User,
            action: format!("a{n}"),
            tool: "open".to_owned(),
            state: ActionState::Planned,
            params_sha256: Sha256::of(b"{}"),
            basis: json!({"contract": 1}).into(),
            origin: "cli".to_owned(),
            result: json!({"n": n, "text": "修"}).into(),
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

    /// The log stays when the last user leaves; a long one goes into the database with the next writer.
    #[test]
    fn a_log_is_kept_until_it_is_long() {
        let (_dir, layout, mut ledger) = ledger();
        let length = || std::fs::metadata(beside(&layout.ledger(), "-wal")).map_or(0, |log| log.len());
        let close = |ledger: Ledger| {
            drop(ledger);
            drop(layout.spare.take_for(&layout.ledger()));
        };
        let text = "x".repeat(1 << 16);
        let long = |n| {
            let mut draft = draft("a", n);
            draft.body.result = json!({ "text": text }).into();
            draft
        };
        ledger.append(&[draft("a", 1)]).expect("appends");
        close(ledger);
        assert!(length() > 0);
        let mut again = Ledger::create(&layout).expect("opens");
        again.append(&(2..50).map(long).collect::<Vec<_>>()).expect("appends");
        close(again);
        assert!(length() > LONG_LOG);
        let last = Ledger::create(&layout).expect("opens");
        assert_eq!((length(), last.check_chain().expect("whole")), (0, 49));
    }

    /// Such rows are seen by everyone at once, and the head outside waits for a row that is safe.
    #[test]
    fn a_row_that_was_not_waited_for_leaves_the_head_outside_behind() {
        let (dir, layout, mut ledger) = ledger();
        let anchor = HeadAnchor { path: dir.path().join("head"), boot: "boot-1".to_owned() };
        ledger.keep_head_at(Some(anchor.clone()));
        ledger.commit_unawaited(|ledger| ledger.append(&[draft("a", 1)])).expect("appends");
        assert!(!anchor.path.exists());
        let other = Ledger::open(&layout).expect("opens").expect("there");
        assert_eq!(other.entries(Some("a")).expect("reads").len(), 1);
        ledger.append(&[draft("a", 2)]).expect("appends");
        let kept = || -> KeptHeads {
            std::fs::read_to_string(&anchor.path).expect("is there").parse().expect("heads")
        };
        let safe = ledger.head().expect("reads");
        assert_eq!(kept(), KeptHeads { safe, late: None });
        // Left behind as what it is: a row that a power cut may take, and nothing else.
        ledger.commit_unawaited(|ledger| ledger.append(&[draft("a", 3)])).expect("appends");
        let late = ledger.head().expect("reads").map(|head| (head, anchor.boot.clone()));
        drop(ledger);
        assert_eq!(kept(), KeptHeads { safe, late });
    }

    #[test]
    fn a_ledger_that_never_held_anything_is_made_anew_and_no_other() {
        let dir = tempfile::tempdir().expect("a directory");
        let layout = Layout::new(dir.path());
        layout.create().expect("creates");
        let break_ledger = || {
            // Its log alone would bring the rows back.
            let _ = std::fs::remove_file(beside(&layout.ledger(), "-wal"));
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
        let names = || {
            let all = std::fs::read_dir(layout.ledger().parent().expect("a folder")).expect("lists");
            let mut all: Vec<_> = all.flatten().map(|entry| entry.file_name()).collect();
            all.sort();
            all
        };
        let before = names();
        assert_eq!(look(), 1);
        assert_eq!(names(), before);
    }
}
