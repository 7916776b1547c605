//! A damaged ledger: cut short, with flipped bits, without its write-ahead log. It is noticed and said, or it
//! does no harm; nothing is repaired, and the damaged file stays as it is.

use crate::mixed::{Stage, TOUCHED, alike};
use crate::strace::{Call, What, calls, disturbed};
use crate::support::Lab;
use crate::support::snapshot::{Entry, tree};
use crate::{independent, more};
use std::path::PathBuf;

/// All that a command may do with a damaged ledger: refuse as `store.corrupt` and leave it alone; or, if it
/// still holds what it held, go on as if nothing had happened.
fn noticed_or_harmless(stage: &Stage<'_>, rows: usize, damaged: &[u8], shown: &str) -> bool {
    let repo = &stage.repo;
    let file = repo.store().join("ledger.db");
    let recovered = repo.json(&["recover"]);
    let noticed = recovered.code != 0;
    if noticed {
        // A flipped version number reads as another layout, or makes SQLite refuse to write.
        recovered.fails_one_of(&["store.corrupt", "not_supported", "io"]);
        assert!(
            std::fs::read(&file).expect("reads") == damaged,
            "{shown}: `recover` changed the damaged file"
        );
        let log = repo.tender(&["log"]);
        assert!([0, 2, 10].contains(&log.code), "{shown}: {}", log.all());
        let answer = repo.json(&["deliver", "t1"]);
        if answer.code == 0 {
            assert!(alike(&stage.after, &tree(&repo.path)), "{shown}: a false `completed`");
        } else {
            answer.fails_one_of(&["store.corrupt", "not_supported", "io", "not_found"]);
        }
        return true;
    }
    let now = independent::rows(&repo.store()).unwrap_or_else(|e| panic!("{shown}: not noticed: {e}"));
    assert_eq!(independent::faults(&now), [] as [String; 0], "{shown}: not noticed");
    assert!(now.len() >= rows, "{shown}: {} of {rows} rows are left, and nothing was said", now.len());
    let whole = [&stage.before, &stage.after].iter().any(|side| alike(side, &tree(&repo.path)));
    assert!(whole, "{shown}: `recover` went through, and the tree is half of both: {:#}", recovered.json);
    let report = repo.json(&["report", "t1"]).ok();
    let completed = report.json["state"] == "completed";
    assert!(!completed || alike(&stage.after, &tree(&repo.path)), "{shown}: a false `completed`");
    false
}

/// A delivery that was killed between two of its renames, with all of its ledger in one file. Made anew only
/// where a trial has brought it to its end: what was staged is known by its inodes, so it cannot be copied.
struct Broken<'s, 'l> {
    stage: &'s Stage<'l>,
    call: Call,
    ready: bool,
    ledger: Vec<u8>,
    rows: usize,
}

impl<'s, 'l> Broken<'s, 'l> {
    fn new(stage: &'s Stage<'l>) -> Self {
        let calls = calls(&stage.repo, &["deliver", "t1"], 1);
        let renames: Vec<_> = calls.iter().filter(|call| call.line.starts_with("renameat2(")).collect();
        // Without tracing there are no names; then the kill falls somewhere.
        let call = renames.get(4).copied().unwrap_or(&calls[calls.len() / 2]).clone();
        let mut broken = Self { stage, call, ready: false, ledger: Vec::new(), rows: 0 };
        broken.prepare();
        broken
    }

    fn file(&self) -> PathBuf {
        self.stage.repo.store().join("ledger.db")
    }

    fn prepare(&mut self) {
        if !self.ready {
            self.stage.again();
            disturbed(&self.stage.repo, &["deliver", "t1"], &self.call, What::Kill);
            let connection = rusqlite::Connection::open(self.file()).expect("opens");
            let whole = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
            whole.expect("goes into one file");
            drop(connection);
            self.ledger = std::fs::read(self.file()).expect("reads");
            self.rows = independent::rows(&self.stage.repo.store()).expect("readable").len();
        }
        for aside in ["ledger.db-wal", "ledger.db-shm"] {
            let _ = std::fs::remove_file(self.stage.repo.store().join(aside));
        }
        std::fs::write(self.file(), &self.ledger).expect("writes");
        self.ready = true;
    }

    /// One trial; true where the damage was noticed.
    fn with(&mut self, shown: &str, change: impl FnOnce(&mut Vec<u8>)) -> bool {
        self.prepare();
        let mut damaged = self.ledger.clone();
        change(&mut damaged);
        std::fs::write(self.file(), &damaged).expect("writes");
        let before = tree(&self.stage.repo.path);
        let noticed = noticed_or_harmless(self.stage, self.rows, &damaged, shown);
        self.ready = noticed && before == tree(&self.stage.repo.path);
        noticed
    }
}

#[test]
fn flipped_bits_in_a_ledger_with_an_unfinished_delivery_are_noticed_or_harmless() {
    let lab = Lab::within(&crate::independent::memory());
    let stage = Stage::delivery(&lab);
    let mut broken = Broken::new(&stage);
    let (mut noticed, mut flips) = (0, 0);
    let step = if more() > 0 { 101 } else { 1_201 };
    let length = broken.ledger.len();
    for (at, offset) in (0..length).step_by(step).chain([18, 24, 28, 60, 96, 100]).enumerate() {
        let bit = 1u8 << (at % 8);
        flips += 1;
        let shown = format!("bit {bit} of byte {offset} flipped");
        noticed += usize::from(broken.with(&shown, |bytes| bytes[offset] ^= bit));
    }
    crate::support::say(&format!(
        "damage: {flips} flipped bits, {noticed} noticed, the others without effect"
    ));
    assert!(noticed * 3 > flips, "only {noticed} of {flips}");
}

#[test]
fn a_truncated_ledger_is_noticed() {
    let lab = Lab::within(&crate::independent::memory());
    let stage = Stage::delivery(&lab);
    let mut broken = Broken::new(&stage);
    let length = broken.ledger.len();
    for to in [length - 1, length - 512, length - 4096, length - 8192, length / 2, 4096, 1024, 100, 50, 1, 0]
    {
        let noticed = broken.with(&format!("cut to {to} of {length} bytes"), |bytes| bytes.truncate(to));
        assert!(noticed, "cut to {to} of {length} bytes");
    }
}

#[test]
fn without_the_write_ahead_log_no_byte_is_lost_and_nothing_is_called_completed() {
    let lab = Lab::within(&crate::independent::memory());
    let stage = Stage::delivery(&lab);
    let repo = &stage.repo;
    let all = calls(repo, &["deliver", "t1"], 24);
    let mut refused = 0;
    for call in all.iter().step_by((all.len() / 16).max(1)) {
        stage.again();
        // The log is kept between commands; this takes it in, so that only the delivery's rows get lost.
        repo.json(&["gc"]).ok();
        disturbed(repo, &["deliver", "t1"], call, What::Kill);
        let _ = std::fs::remove_file(repo.store().join("ledger.db-wal"));
        let shown = format!("without the log, killed before {}", call.line);
        let before = tree(&repo.path);
        let mut recovered = repo.json(&["recover"]);
        // A ledger without its last rows was set back: a person has to say that it goes on so.
        if recovered.json["error"]["code"] == "store.rolled_back" {
            assert_eq!(before, tree(&repo.path), "{shown}: written by a ledger that was set back");
            repo.approve_without_terminal();
            recovered = repo.json(&["recover", "--accept-rollback"]);
        }
        let now = tree(&repo.path);
        // Killed while the log was being taken over into the database: without it that is damaged, and said
        // to be. Nothing is touched then.
        let is_damaged = recovered.code == 10;
        if is_damaged {
            refused += 1;
            recovered.fails("store.corrupt");
            assert_eq!(before, now, "{shown}: written by a damaged ledger");
        } else {
            recovered.ok();
        }
        for path in TOUCHED {
            // What lay there lies there still, or under the name that it was moved to, or it is git's.
            let Some(before @ Entry::File { .. }) = stage.before.get(*path) else { continue };
            let somewhere = now.iter().any(|(name, entry)| {
                (name.as_str() == *path || name.contains(".tender-")) && same_bytes(entry, before)
            });
            let written = now.get(*path) == stage.after.get(*path);
            assert!(somewhere || written, "{shown}: {path} is nowhere");
        }
        if is_damaged {
            continue;
        }
        let state = repo.json(&["report", "t1"]).ok().json["state"].clone();
        assert!(state != "completed" || alike(&stage.after, &now), "{shown}: a false `completed`");
        let rows = independent::rows(&repo.store()).expect("readable");
        assert_eq!(independent::faults(&rows), [] as [String; 0], "{shown}");
    }
    assert!(refused < 8, "{refused} times the ledger could not be read");
}

fn same_bytes(one: &Entry, other: &Entry) -> bool {
    matches!((one, other), (Entry::File { bytes: one, .. }, Entry::File { bytes: other, .. }) if one == other)
}
