//! A ledger that a program from before wrote goes on, its chain included.

use crate::independent;
use crate::support::Lab;
use crate::support::repo::lines_with;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Makes the ledger in a store as a program from before would have written it: in the layout without versions,
/// each row under the hash of that time.
fn as_before_versions(store: &Path) {
    let rows = independent::rows(store).expect("readable");
    let connection = rusqlite::Connection::open(store.join("ledger.db")).expect("opens");
    let (mut prev, mut renamed) = ("0".repeat(64), BTreeMap::new());
    let script = "DROP TRIGGER ledger_keeps; DROP TRIGGER ledger_holds; ALTER TABLE ledger DROP COLUMN version; \
                  PRAGMA user_version = 1";
    connection.execute_batch(script).expect("takes the versions off");
    for mut row in rows {
        row.prev.clone_from(&prev);
        prev = independent::hash_of_version_1(&row);
        let values = rusqlite::params![row.prev, prev, row.seq];
        connection.execute("UPDATE ledger SET prev = ?1, hash = ?2 WHERE seq = ?3", values).expect("writes");
        renamed.insert(row.hash, prev.clone());
    }
    let kept: String =
        connection.query_row("SELECT hash FROM kept_tasks_upto", [], |row| row.get(0)).expect("reads");
    let values = rusqlite::params![renamed[&kept]];
    connection.execute("UPDATE kept_tasks_upto SET hash = ?1", values).expect("writes");
    let keeps =
        "CREATE TRIGGER ledger_keeps BEFORE UPDATE ON ledger BEGIN SELECT RAISE(ABORT, 'append-only'); END";
    connection.execute_batch(keeps).expect("as it was");
}

#[test]
fn rows_of_both_kinds_make_one_chain() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.changing("t1", &[("docs/a.md", Some(&lines_with(5, "five")))]);
    as_before_versions(&repo.store());
    // Its hash is another one now.
    std::fs::remove_file(repo.join(".git/worktrees/t1/tender-ledger")).expect("was kept");
    let before = independent::rows(&repo.store()).expect("readable");
    assert!(before.len() > 3 && before.iter().all(|row| row.version == 1), "{before:?}");
    assert_eq!(independent::faults(&before), [] as [String; 0]);

    // Whoever looks leaves it as it is.
    repo.json(&["report", "t1"]).ok();
    repo.tender(&["log"]).ok();
    let looked = independent::rows(&repo.store()).expect("readable");
    assert_eq!(looked.len(), before.len());

    repo.json(&["deliver", "t1"]).ok();
    let rows = independent::rows(&repo.store()).expect("readable");
    assert_eq!(independent::faults(&rows), [] as [String; 0]);
    let (old, new) = rows.split_at(before.len());
    assert!(old.iter().all(|row| row.version == 1), "{old:?}");
    assert!(new.len() > 3 && new.iter().all(|row| row.version == 2), "{new:?}");
    assert!(repo.tender(&["recover"]).ok().text().contains("the ledger is whole"));

    let log = repo.tender(&["log", "--format", "json"]).ok().text();
    let versions: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("an object")["version"].clone())
        .collect();
    assert!(versions[..before.len()].iter().all(Value::is_null), "{versions:?}");
    assert!(versions[before.len()..].iter().all(|version| version == 2), "{versions:?}");
}

/// Each kind of row is checked by its own rule; saying another one is no way around it.
#[test]
fn a_changed_row_of_either_kind_is_noticed() {
    for before_versions in [true, false] {
        for change in
            ["origin = 'x'", "result = replace(result, 't1', 't2')", "basis = '{}'", "version = 3 - version"]
        {
            let lab = Lab::new();
            let repo = lab.repo("app");
            repo.changing("t1", &[("docs/a.md", Some(&lines_with(5, "five")))]);
            if before_versions {
                as_before_versions(&repo.store());
                std::fs::remove_file(repo.join(".git/worktrees/t1/tender-ledger")).expect("was kept");
                repo.tender(&["verify", "t1", "--again"]);
                repo.tender(&["cancel", "t1"]).ok();
            }
            let forged = rusqlite::Connection::open(repo.store().join("ledger.db")).expect("opens");
            let row = "WHERE seq = (SELECT MIN(seq) FROM ledger WHERE result LIKE '%t1%')";
            let script = format!("DROP TRIGGER ledger_keeps; UPDATE ledger SET {change} {row}");
            forged.execute_batch(&script).expect("forged");
            eprintln!("{change}, before versions: {before_versions}");
            repo.json(&["recover"]).fails("store.corrupt");
        }
    }
}
