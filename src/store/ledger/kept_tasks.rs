//! Which tasks there are, of which they are parts, and which have ended: kept beside the rows, so that
//! no command reads the rows of tasks that it is not about.
//!
//! All of it follows from the rows. Each commit takes its own in; where it does not end where the rows
//! do (a program from before wrote some, or nobody has made it yet), the rest is read from the rows,
//! by the next commit for good and by a reader for itself. `check_chain` compares it with all rows.

use super::{Ledger, damaged};
use crate::domain::ledger::action::ActionState;
use crate::domain::ledger::entry::Entry;
use crate::error::Result;
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::Value;
use std::collections::BTreeMap;

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS kept_tasks (
  task TEXT PRIMARY KEY, seq INTEGER NOT NULL, parent TEXT, ended INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS kept_tasks_open ON kept_tasks (seq) WHERE ended = 0;
CREATE INDEX IF NOT EXISTS kept_tasks_parts ON kept_tasks (parent) WHERE parent IS NOT NULL;
CREATE TABLE IF NOT EXISTS kept_tasks_upto (one INTEGER PRIMARY KEY, seq INTEGER NOT NULL, hash TEXT NOT NULL) STRICT;
";

/// Rows that say something of it, after a position and up to another.
const TELLING: &str =
    "SELECT seq, task, json_extract(result, '$.record'), json_extract(result, '$.contract.parent')
 FROM ledger WHERE seq > ?1 AND seq <= ?2 AND state = 'succeeded' AND task IS NOT NULL
 AND json_extract(result, '$.record') IN ('opened', 'delivered', 'cancelled') ORDER BY seq";

/// A task as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TaskOutline {
    /// The row that opened it.
    seq: i64,
    parent: Option<String>,
    ended: bool,
}

/// Something that a row says of a task.
enum TaskNews {
    Opened { seq: i64, parent: Option<String> },
    Ended,
}

impl TaskNews {
    fn from_parts(seq: i64, record: &str, parent: Option<&str>) -> Option<Self> {
        match record {
            "opened" => Some(Self::Opened { seq, parent: parent.map(str::to_owned) }),
            "delivered" | "cancelled" => Some(Self::Ended),
            _ => None,
        }
    }

    fn of_entry(entry: &Entry) -> Option<Self> {
        let record = entry.result.record_kind().filter(|_| entry.state == ActionState::Succeeded)?;
        let contract: Option<Value> = (record == "opened").then(|| entry.result.field("contract")).flatten();
        let parent = contract.as_ref().and_then(|contract| contract.get("parent")?.as_str());
        Self::from_parts(entry.seq, &record, parent)
    }
}

type News = (String, TaskNews);

/// Takes rows in that were just appended. What is missing before them is read first.
pub(super) fn take_entries(connection: &Connection, entries: &[Entry]) -> rusqlite::Result<()> {
    let (Some(first), Some(last)) = (entries.first(), entries.last()) else { return Ok(()) };
    let before = first.seq - 1;
    let known = fitting_end(connection)?;
    if known != Some(before) {
        connection.execute_batch(TABLES)?;
        if known.is_none() {
            connection.execute("DELETE FROM kept_tasks", [])?;
        }
        for (task, news) in read_news(connection, known.unwrap_or_default(), before)? {
            store_news(connection, &task, &news)?;
        }
    }
    for entry in entries {
        if let (Some(task), Some(news)) = (&entry.task, TaskNews::of_entry(entry)) {
            store_news(connection, task, &news)?;
        }
    }
    connection
        .prepare_cached("INSERT OR REPLACE INTO kept_tasks_upto (one, seq, hash) VALUES (1, ?1, ?2)")?
        .execute(params![last.seq, last.hash.to_string()])
        .map(drop)
}

fn store_news(connection: &Connection, task: &str, news: &TaskNews) -> rusqlite::Result<()> {
    let stored = match news {
        TaskNews::Opened { seq, parent } => connection
            .prepare_cached(
                "INSERT OR IGNORE INTO kept_tasks (task, seq, parent, ended) VALUES (?1, ?2, ?3, 0)",
            )?
            .execute(params![task, seq, parent]),
        TaskNews::Ended => connection
            .prepare_cached("UPDATE kept_tasks SET ended = 1 WHERE task = ?1")?
            .execute(params![task]),
    };
    stored.map(drop)
}

/// The row up to which it is kept, where the ledger still has that very row.
fn fitting_end(connection: &Connection) -> rusqlite::Result<Option<i64>> {
    let made = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'kept_tasks_upto')";
    if !connection.prepare_cached(made)?.query_row([], |row| row.get::<_, bool>(0))? {
        return Ok(None);
    }
    connection
        .prepare_cached(
            "SELECT kept.seq FROM kept_tasks_upto AS kept
             JOIN ledger ON ledger.seq = kept.seq AND ledger.hash = kept.hash",
        )?
        .query_row([], |row| row.get(0))
        .optional()
}

fn read_news(connection: &Connection, after: i64, upto: i64) -> rusqlite::Result<Vec<News>> {
    let mut statement = connection.prepare_cached(TELLING)?;
    let mut rows = statement.query(params![after, upto])?;
    let mut news = Vec::new();
    while let Some(row) = rows.next()? {
        let (record, parent): (String, Option<String>) = (row.get(2)?, row.get(3)?);
        if let Some(told) = TaskNews::from_parts(row.get(0)?, &record, parent.as_deref()) {
            news.push((row.get(1)?, told));
        }
    }
    Ok(news)
}

/// What is kept up to a row, with what the rows after it say.
fn read_tasks(connection: &Connection, kept: Option<i64>) -> rusqlite::Result<BTreeMap<String, TaskOutline>> {
    let mut tasks = BTreeMap::new();
    if kept.is_some() {
        let mut statement = connection.prepare_cached("SELECT task, seq, parent, ended FROM kept_tasks")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let task = TaskOutline { seq: row.get(1)?, parent: row.get(2)?, ended: row.get(3)? };
            tasks.insert(row.get(0)?, task);
        }
    }
    for (task, news) in read_news(connection, kept.unwrap_or_default(), i64::MAX)? {
        match news {
            TaskNews::Opened { seq, parent } => {
                tasks.entry(task).or_insert(TaskOutline { seq, parent, ended: false });
            }
            TaskNews::Ended => {
                if let Some(task) = tasks.get_mut(&task) {
                    task.ended = true;
                }
            }
        }
    }
    Ok(tasks)
}

impl Ledger {
    /// The tasks that have not ended, in the order in which they were opened.
    pub fn open_tasks(&self) -> Result<Vec<String>> {
        self.read_kept(
            "SELECT task FROM kept_tasks WHERE ended = 0 ORDER BY seq",
            |row| row.get(0),
            |id, task| (!task.ended).then(|| id.to_owned()),
        )
    }

    /// Every task that is a part of another one, with that one, in the order in which they were opened.
    pub fn list_kin(&self) -> Result<Vec<(String, String)>> {
        self.read_kept(
            "SELECT task, parent FROM kept_tasks WHERE parent IS NOT NULL ORDER BY seq",
            |row| Ok((row.get(0)?, row.get(1)?)),
            |id, task| Some((id.to_owned(), task.parent.clone()?)),
        )
    }

    fn read_kept<T>(
        &self,
        kept: &str,
        of_row: impl Fn(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
        of_task: impl Fn(&str, &TaskOutline) -> Option<T>,
    ) -> Result<Vec<T>> {
        let read = || {
            let connection = &self.connection;
            let end = fitting_end(connection)?;
            if end.unwrap_or_default() == super::last(connection)?.0 {
                if end.is_none() {
                    return Ok(Vec::new());
                }
                return connection.prepare_cached(kept)?.query_map([], of_row)?.collect();
            }
            let mut tasks: Vec<_> = read_tasks(connection, end)?.into_iter().collect();
            tasks.sort_by_key(|(_, task)| task.seq);
            Ok(tasks.iter().filter_map(|(id, task)| of_task(id, task)).collect())
        };
        read().map_err(|e| damaged(&self.path, &e))
    }

    /// What is kept of the tasks follows from the rows.
    pub(super) fn check_kept_tasks(&self) -> Result<()> {
        let read = || {
            let end = fitting_end(&self.connection)?;
            Ok((read_tasks(&self.connection, end)?, read_tasks(&self.connection, None)?))
        };
        let (kept, told) = read().map_err(|e| damaged(&self.path, &e))?;
        let wrong = |id: &&String| kept.get(*id) != told.get(*id);
        match kept.keys().chain(told.keys()).find(wrong) {
            None => Ok(()),
            Some(id) => {
                Err(self.broken(0, &format!("what is kept of the task {id} is not what its rows say")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ledger::action::Actor;
    use crate::domain::ledger::entry::EntryBody;
    use crate::domain::value::digest::Sha256;
    use crate::error::Code;
    use crate::store::{Draft, Layout};
    use serde_json::json;

    fn row(task: &str, result: Value) -> Draft {
        EntryBody {
            task: Some(task.to_owned()),
            actor: Actor::User,
            action: format!("a{task}{}", result["record"]),
            tool: "open".to_owned(),
            state: ActionState::Succeeded,
            params_sha256: Sha256::of(b"{}"),
            basis: json!({}).into(),
            origin: "cli".to_owned(),
            result: result.into(),
        }
        .into()
    }

    fn opened(task: &str, parent: Option<&str>) -> Draft {
        row(task, json!({"record": "opened", "contract": {"parent": parent}}))
    }

    fn ledger() -> (tempfile::TempDir, Ledger) {
        let dir = tempfile::tempdir().expect("a directory");
        let mut ledger = Ledger::create(&Layout::new(dir.path())).expect("creates");
        assert!(ledger.open_tasks().expect("reads").is_empty());
        let rows = [opened("b", None), opened("a", Some("b")), opened("c", None), opened("d", None)];
        ledger.append(&rows).expect("appends");
        (dir, ledger)
    }

    fn look(ledger: &Ledger) -> (Vec<String>, Vec<(String, String)>) {
        (ledger.open_tasks().expect("reads"), ledger.list_kin().expect("reads"))
    }

    #[test]
    fn tasks_are_open_until_a_row_ends_them() {
        let (_dir, mut ledger) = ledger();
        let part = vec![("a".to_owned(), "b".to_owned())];
        assert_eq!(look(&ledger), (["b", "a", "c", "d"].map(str::to_owned).to_vec(), part.clone()));
        let ends = [row("c", json!({"record": "delivered"})), row("a", json!({"record": "cancelled"}))];
        ledger.append(&ends).expect("appends");
        ledger.append(&[row("b", json!({"record": "observed"}))]).expect("appends");
        assert_eq!(look(&ledger), (["b", "d"].map(str::to_owned).to_vec(), part));
        ledger.check_chain().expect("whole");
    }

    /// A program from before appends rows and keeps nothing; or nobody has kept anything yet.
    #[test]
    fn what_was_not_kept_is_read_from_the_rows() {
        let (_dir, mut ledger) = ledger();
        ledger.append(&[row("d", json!({"record": "cancelled"}))]).expect("appends");
        let whole = look(&ledger);
        let spoil = [
            "UPDATE kept_tasks_upto SET seq = 3, hash = (SELECT hash FROM ledger WHERE seq = 3);
             DELETE FROM kept_tasks WHERE task = 'd'",
            "UPDATE kept_tasks_upto SET hash = 'another'; UPDATE kept_tasks SET task = task || 'x'",
            "DROP TABLE kept_tasks; DROP TABLE kept_tasks_upto",
        ];
        for (at, sql) in spoil.into_iter().enumerate() {
            ledger.connection.execute_batch(sql).expect("spoilt");
            assert_eq!(look(&ledger), whole, "{sql}");
            ledger.check_chain().expect("whole");
            ledger.append(&[row("b", json!({"record": "observed", "n": at}))]).expect("appends");
            let end = fitting_end(&ledger.connection).expect("reads");
            assert_eq!(end, Some(ledger.head().expect("reads").expect("there").seq));
            assert_eq!(look(&ledger), whole, "{sql}");
        }
    }

    #[test]
    fn a_kept_task_that_its_rows_do_not_tell_of_is_noticed() {
        for sql in
            ["UPDATE kept_tasks SET ended = 1 WHERE task = 'b'", "DELETE FROM kept_tasks WHERE task = 'c'"]
        {
            let (_dir, ledger) = ledger();
            ledger.connection.execute_batch(sql).expect("forged");
            assert_eq!(ledger.check_chain().map_err(|failure| failure.code()), Err(Code::StoreCorrupt));
        }
    }
}
