//! What was worked out once about things that never change under their name, in one file: digests of blobs,
//! and of folders by the ids of their trees. It is read entry by entry, so that knowing much costs nothing.
//!
//! A memo only saves work. An entry carries a digest of itself with its key, so a torn or forged one counts
//! as unknown; a file that cannot be read is thrown away. Nothing waits for the disk.

use super::layout::{Layout, beside, create_private_dir};
use crate::domain::value::digest::Sha256;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension};
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::Duration;

/// Beyond this many bytes the file is begun anew.
const LARGEST: u64 = 256 << 20;
/// How long another process may hold it before we go on without.
const PATIENCE: Duration = Duration::from_millis(500);
/// How many bytes of its own digest an entry carries.
const CHECK: usize = 8;

const PREPARE: &str = "PRAGMA synchronous=OFF; PRAGMA cache_size=-16384; PRAGMA temp_store=MEMORY;";
const TABLE: &str =
    "CREATE TABLE IF NOT EXISTS memo (key BLOB PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID";

/// Values by keys; what is put becomes known to other processes when it is saved.
pub struct Memo {
    file: PathBuf,
    /// Opened at the first question: most commands ask none.
    kept: OnceCell<Option<Connection>>,
    fresh: RefCell<BTreeMap<Sha256, Vec<u8>>>,
}

impl std::fmt::Debug for Memo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memo").field("file", &self.file).finish_non_exhaustive()
    }
}

impl Memo {
    /// That of a store; nothing is made where there is none yet.
    pub fn of_layout(layout: &Layout) -> Self {
        Self {
            file: layout.digests().join("memo.db"),
            kept: OnceCell::new(),
            fresh: RefCell::new(BTreeMap::new()),
        }
    }

    /// What is known under a key.
    pub fn recall(&self, key: &Sha256) -> Option<Vec<u8>> {
        if let Some(fresh) = self.fresh.borrow().get(key) {
            return Some(fresh.clone());
        }
        let kept = self.kept.get_or_init(|| self.open_kept()).as_ref()?;
        let read = || {
            let mut statement = kept.prepare_cached("SELECT value FROM memo WHERE key = ?1")?;
            statement.query_row([key.as_bytes()], |row| row.get::<_, Vec<u8>>(0)).optional()
        };
        let stored = read().inspect_err(|e| self.discard_damaged(e)).ok()??;
        let (value, check) = stored.split_at_checked(stored.len().checked_sub(CHECK)?)?;
        (check_of(key, value) == check).then(|| value.to_vec())
    }

    pub fn remember(&self, key: Sha256, value: Vec<u8>) {
        self.fresh.borrow_mut().insert(key, value);
    }

    /// Keeps what is new. Losing it is no harm, so a failure is none.
    pub fn save(mut self) {
        // Our own look at the file would keep us from writing to it.
        drop(self.kept.take());
        if !self.fresh.borrow().is_empty()
            && let Err(e) = self.write_fresh()
        {
            self.discard_damaged(&e);
        }
    }

    fn open_kept(&self) -> Option<Connection> {
        let open = || {
            let connection = Connection::open_with_flags(&self.file, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
            connection.busy_timeout(PATIENCE)?;
            // One look at the file for all questions.
            connection.execute_batch(&format!("{PREPARE} BEGIN"))?;
            Ok(connection)
        };
        std::fs::metadata(&self.file).ok()?;
        open().inspect_err(|e| self.discard_damaged(e)).ok()
    }

    fn write_fresh(&self) -> rusqlite::Result<()> {
        if std::fs::metadata(&self.file).is_ok_and(|file| file.len() > LARGEST) {
            self.discard();
        }
        if let Some(folder) = self.file.parent()
            && create_private_dir(folder).is_ok()
        {
            // SQLite would make one that others may read.
            drop(std::fs::File::options().create(true).append(true).mode(0o600).open(&self.file));
        }
        let mut connection = Connection::open_with_flags(&self.file, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection.busy_timeout(PATIENCE)?;
        connection.execute_batch(PREPARE)?;
        let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        transaction.execute_batch(TABLE)?;
        {
            let mut insert = transaction.prepare("INSERT OR REPLACE INTO memo VALUES (?1, ?2)")?;
            for (key, value) in self.fresh.borrow().iter() {
                insert.execute((key.as_bytes(), [value, check_of(key, value).as_slice()].concat()))?;
            }
        }
        transaction.commit()
    }

    fn discard_damaged(&self, error: &rusqlite::Error) {
        let code = error.sqlite_error_code();
        if matches!(code, Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)) {
            self.discard();
        }
    }

    fn discard(&self) {
        drop(std::fs::remove_file(&self.file));
        drop(std::fs::remove_file(beside(&self.file, "-journal")));
    }
}

fn check_of(key: &Sha256, value: &[u8]) -> [u8; CHECK] {
    let digest = Sha256::of(&[key.as_bytes().as_slice(), value].concat());
    let mut check = [0; CHECK];
    check.copy_from_slice(&digest.as_bytes()[..CHECK]);
    check
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Sha256 {
        Sha256::of(name.as_bytes())
    }

    #[test]
    fn entries_are_kept_and_a_forged_one_or_a_damaged_file_is_not_believed() {
        let dir = tempfile::tempdir().expect("a directory");
        let layout = Layout::new(dir.path());
        let memo = Memo::of_layout(&layout);
        assert_eq!(memo.recall(&key("a")), None);
        memo.remember(key("a"), b"one".to_vec());
        memo.remember(key("b"), Vec::new());
        assert_eq!(memo.recall(&key("a")), Some(b"one".to_vec()));
        memo.save();
        let again = Memo::of_layout(&layout);
        assert_eq!(again.recall(&key("a")), Some(b"one".to_vec()));
        assert_eq!(again.recall(&key("b")), Some(Vec::new()));
        again.remember(key("c"), b"three".to_vec());
        again.save();

        let file = layout.digests().join("memo.db");
        let forger = Connection::open(&file).expect("opens");
        let sql = "UPDATE memo SET value = (SELECT value FROM memo WHERE key = ?1) WHERE key = ?2";
        forger.execute(sql, (key("a").as_bytes(), key("c").as_bytes())).expect("writes");
        drop(forger);
        let forged = Memo::of_layout(&layout);
        assert_eq!(forged.recall(&key("c")), None, "the value of another key");
        assert_eq!(forged.recall(&key("a")), Some(b"one".to_vec()));
        drop(forged);

        super::super::layout::write_private(&file, &[b'x'; 4096]).expect("writes");
        let damaged = Memo::of_layout(&layout);
        assert_eq!(damaged.recall(&key("a")), None);
        damaged.remember(key("d"), b"four".to_vec());
        damaged.save();
        assert_eq!(Memo::of_layout(&layout).recall(&key("d")), Some(b"four".to_vec()));
    }
}
