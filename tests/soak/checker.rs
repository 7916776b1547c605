//! The independent checker: goes through the ledger's raw rows, the live tree, git's objects and what
//! everybody wrote down, and tells what does not fit. It shares no code with the product.

use crate::independent::{Row, by_action, canonical, faults, rows, sha256};
use crate::world::{Command, Deed, What, World, files};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What came out.
pub struct Report {
    pub problems: Vec<String>,
    pub figures: String,
    kills: usize,
    delivered: usize,
    overlaps: usize,
}

impl Report {
    /// A run in which nothing happened proves nothing.
    pub fn assert_worth(&self) {
        let Self { kills, delivered, overlaps, .. } = self;
        assert!(*kills > 0 && *delivered > 0 && *overlaps > 0, "{}", self.figures);
    }
}

struct Checker<'w, 'l> {
    world: &'w World<'l>,
    rows: Vec<Row>,
    commands: Vec<Command>,
    deeds: Vec<Deed>,
    live: BTreeMap<String, String>,
    problems: Vec<String>,
}

/// One path of a delivery or of an undo that took place.
struct Written<'r> {
    path: &'r str,
    task: &'r str,
    before: Option<&'r str>,
    after: Option<&'r str>,
    kept: &'r Value,
}

pub fn check(world: &World<'_>) -> Report {
    let rows = rows(&world.repo.store()).expect("the ledger can be read");
    let mut checker = Checker {
        world,
        problems: faults(&rows),
        rows,
        commands: world.commands.lock().expect("whole").clone(),
        deeds: world.deeds.lock().expect("whole").clone(),
        live: files(&world.repo),
    };
    checker.each_effect_once();
    checker.each_delivery_was_proven();
    checker.nothing_outside_of_a_scope();
    checker.every_save_is_accounted_for();
    checker.every_file_is_somebodys();
    checker.what_was_answered_is_what_the_ledger_says();
    checker.git_is_whole();
    checker.report()
}

impl Checker<'_, '_> {
    fn problem(&mut self, text: String) {
        self.problems.push(text);
    }

    /// Rows that end a delivery or an undo.
    fn ends(&self, record: &str) -> Vec<&Row> {
        self.rows.iter().filter(|row| row.record() == record && row.state == "succeeded").collect()
    }

    fn writes(&self) -> Vec<Written<'_>> {
        let delivered = self.ends("delivered").into_iter().map(|row| (row, &row.result["receipt"]));
        let undone = self.ends("undone").into_iter().map(|row| (row, &row.result));
        let mut writes = Vec::new();
        for (row, receipt) in delivered.chain(undone) {
            let paths = receipt["paths"].as_array().map(Vec::as_slice).unwrap_or_default();
            for path in paths.iter().filter(|path| path["outcome"] != "already") {
                writes.push(Written {
                    path: path["change"]["path"].as_str().unwrap_or_default(),
                    task: row.task.as_deref().unwrap_or_default(),
                    before: path["before"]["sha256"].as_str(),
                    after: path["after"]["sha256"].as_str(),
                    kept: &path["kept"],
                });
            }
        }
        writes
    }

    fn each_effect_once(&mut self) {
        let mut found = Vec::new();
        for record in ["delivered", "undone"] {
            let mut tasks = BTreeSet::new();
            for row in self.ends(record) {
                if !tasks.insert(row.task.clone()) {
                    found.push(format!("{:?} was {record} twice (row {})", row.task, row.seq));
                }
            }
        }
        for (action, rows) in by_action(&self.rows) {
            let ends = rows.iter().filter(|row| row.state == "succeeded").count();
            if ["deliver", "undo"].contains(&rows[0].tool.as_str()) && ends > 1 {
                found.push(format!("{action} succeeded {ends} times"));
            }
            let last = &rows[rows.len() - 1].state;
            if ["planned", "authorized", "dispatched", "outcome_unknown", "reconcile"]
                .contains(&last.as_str())
            {
                found.push(format!("{action} ({}) is still {last} after the last recover", rows[0].tool));
            }
        }
        let temporary = self.live.keys().filter(|path| path.contains(".tender-"));
        found.extend(temporary.map(|path| format!("the temporary file {path} is left")));
        self.problems.extend(found);
    }

    /// Every required row of the contract had evidence that passed, of just the digests that were seen of
    /// just the delivered manifest.
    fn each_delivery_was_proven(&mut self) {
        let mut found = Vec::new();
        let evidence: BTreeMap<String, &Row> = self
            .rows
            .iter()
            .filter(|row| row.record() == "evidence")
            .flat_map(|row| digests(&row.result).into_iter().map(move |digest| (digest, row)))
            .collect();
        let bad = self.world.bad.lock().expect("whole");
        let wanted = self.world.tasks.lock().expect("whole");
        for row in self.ends("delivered") {
            let task = row.task.clone().unwrap_or_default();
            let manifest = &row.result["receipt"]["manifestSha256"];
            let named = row.result["evidence"].as_array().cloned().unwrap_or_default();
            let named: Vec<&Row> = named
                .iter()
                .filter_map(|id| evidence.get(id.as_str()?.trim_start_matches("sha256:")).copied())
                .collect();
            let seen = self.rows.iter().rev().find(|seen| {
                seen.seq < row.seq
                    && seen.task == row.task
                    && observation(seen)["manifestSha256"] == *manifest
            });
            let Some(seen) = seen.map(|row| observation(row)["rows"].as_array().cloned().unwrap_or_default())
            else {
                found.push(format!("{task}: what was delivered was never looked at"));
                continue;
            };
            for required in &wanted[&task].required {
                let key =
                    seen.iter().find(|row| row["clause"]["id"] == required.as_str()).map(|row| &row["key"]);
                let shown = named.iter().any(|evidence| {
                    let record = &evidence.result;
                    record["requirement"] == required.as_str()
                        && record["outcome"] == "passed"
                        && Some(&record["key"]) == key
                        && evidence.seq < row.seq
                });
                if !shown {
                    found.push(format!("{task}: delivered (row {}) without a pass for {required}", row.seq));
                }
            }
            let paths = row.result["receipt"]["paths"].as_array().cloned().unwrap_or_default();
            let carries_bad = paths.iter().any(|path| {
                path["change"]["new"]["sha256"].as_str().is_some_and(|sha256| bad.contains(sha256))
            });
            if carries_bad && wanted[&task].required.iter().any(|required| required == "clean") {
                found.push(format!("{task}: what `clean` must refuse was delivered"));
            }
        }
        drop((bad, wanted));
        self.problems.extend(found);
    }

    fn nothing_outside_of_a_scope(&mut self) {
        let wanted = self.world.tasks.lock().expect("whole");
        let outside = |write: &&Written<'_>| {
            !wanted
                .get(write.task)
                .is_some_and(|w| w.scope.iter().any(|place| write.path.starts_with(place.as_str())))
        };
        let found: Vec<String> = self
            .writes()
            .iter()
            .filter(outside)
            .map(|write| format!("{}: {} is outside of its scope", write.task, write.path))
            .collect();
        drop(wanted);
        self.problems.extend(found);
    }

    /// A save is at its path, or the user wrote over it, removed it or moved it themselves, or a delivery
    /// that was made from just these bytes replaced it and kept them.
    fn every_save_is_accounted_for(&mut self) {
        let mut holds: BTreeMap<&str, &str> = BTreeMap::new();
        for deed in &self.deeds {
            match &deed.what {
                What::Wrote { path, sha256 } => drop(holds.insert(path, sha256)),
                What::Removed { path } => drop(holds.remove(path.as_str())),
                What::Moved { from, to } => match holds.remove(from.as_str()) {
                    Some(moved) => drop(holds.insert(to, moved)),
                    None => drop(holds.remove(to.as_str())),
                },
                What::Committed => {}
            }
        }
        let anywhere: BTreeSet<&str> = self.live.values().map(String::as_str).collect();
        let writes = self.writes();
        let mut found = Vec::new();
        for (path, sha256) in holds {
            if self.live.get(path).is_some_and(|now| now == sha256) || anywhere.contains(sha256) {
                continue;
            }
            match writes.iter().find(|write| write.before == Some(sha256)) {
                None => found.push(format!("LOST: the user's last save of {path} ({sha256}) is nowhere")),
                Some(write) if !self.is_kept(write.kept, sha256) => {
                    found.push(format!(
                        "LOST: {} replaced the save of {path} and did not keep it",
                        write.task
                    ));
                }
                Some(_) => {}
            }
        }
        self.problems.extend(found);
    }

    fn is_kept(&self, kept: &Value, expected: &str) -> bool {
        let (Some(blob), Some(offset), Some(length)) =
            (kept["blob"].as_str(), kept["offset"].as_u64(), kept["length"].as_u64())
        else {
            return false;
        };
        let path = self.world.repo.store().join("blobs/sha256").join(&blob[..2]).join(&blob[2..]);
        let bytes = std::fs::read(path).unwrap_or_default();
        let range = usize::try_from(offset).expect("fits")..usize::try_from(offset + length).expect("fits");
        bytes.get(range).is_some_and(|part| sha256(part) == expected)
    }

    /// Whatever lies in the live tree was there at first, or is a save of the user's, or was delivered to
    /// just that path.
    fn every_file_is_somebodys(&mut self) {
        let saved: BTreeSet<&str> = self
            .deeds
            .iter()
            .filter_map(|deed| match &deed.what {
                What::Wrote { sha256, .. } => Some(sha256.as_str()),
                _ => None,
            })
            .collect();
        let moved: BTreeSet<&str> = self
            .deeds
            .iter()
            .filter_map(|deed| match &deed.what {
                What::Moved { to, .. } => Some(to.as_str()),
                _ => None,
            })
            .collect();
        let writes = self.writes();
        let first: BTreeSet<&str> = self.world.first.values().map(String::as_str).collect();
        let mut found = Vec::new();
        for (path, now) in &self.live {
            let delivered = writes.iter().any(|write| write.path == path && write.after == Some(now));
            let was_moved = moved.contains(path.as_str())
                && (first.contains(now.as_str()) || writes.iter().any(|write| write.after == Some(now)));
            if self.world.first.get(path) != Some(now)
                && !saved.contains(now.as_str())
                && !delivered
                && !was_moved
            {
                found.push(format!("{path} holds {now}, which is nobody's"));
            }
        }
        // What is gone was removed or moved by the user, or by a delivery.
        let gone_by_user: BTreeSet<&str> = self
            .deeds
            .iter()
            .filter_map(|deed| match &deed.what {
                What::Removed { path } | What::Moved { from: path, .. } => Some(path.as_str()),
                _ => None,
            })
            .collect();
        for path in self.world.first.keys().filter(|path| !self.live.contains_key(*path)) {
            let by_us = writes.iter().any(|write| write.path == path && write.after.is_none());
            if !by_us && !gone_by_user.contains(path.as_str()) {
                found.push(format!("LOST: {path} is gone, and nobody removed it"));
            }
        }
        self.problems.extend(found);
    }

    fn what_was_answered_is_what_the_ledger_says(&mut self) {
        let mut found = Vec::new();
        let actions = by_action(&self.rows);
        let delivered: BTreeSet<&str> =
            self.ends("delivered").into_iter().filter_map(|row| row.task.as_deref()).collect();
        let undone: BTreeSet<&str> =
            self.ends("undone").into_iter().filter_map(|row| row.task.as_deref()).collect();
        let allowed = [0, 1, 2, 3, 4, 6, 7, 8, 9];
        for command in self.commands.iter().filter(|command| !command.killed) {
            let name = command.args.join(" ");
            let Command { code, json, .. } = command;
            if !allowed.contains(code) {
                found.push(format!("{name} ended with {code}: {json}"));
            }
            let task = command.args.get(1).map(String::as_str).unwrap_or_default();
            match (command.args[0].as_str(), code) {
                ("deliver", 0) if !delivered.contains(task) => {
                    found.push(format!("{name} said that it delivered; the ledger does not"));
                }
                ("undo", 0) if !undone.contains(task) => {
                    found.push(format!("{name} said that it reverted; the ledger does not"));
                }
                _ => {}
            }
            if json["state"] == "completed"
                && !delivered.contains(json["taskId"].as_str().unwrap_or_default())
            {
                found.push(format!("{name} called a task completed that was not delivered"));
            }
            let refused = json["error"]["ref"].as_str().and_then(|action| actions.get(action));
            if refused.is_some_and(|rows| rows.iter().any(|row| row.state == "succeeded")) && *code != 7 {
                found.push(format!("{name} ended with {code}, but its action succeeded"));
            }
        }
        self.problems.extend(found);
    }

    fn git_is_whole(&mut self) {
        let fsck = self.world.repo.git_out(&["fsck", "--strict", "--no-dangling"]);
        if fsck.code != 0 || fsck.all().contains("error") {
            self.problem(format!("git fsck: {}", fsck.all()));
        }
    }

    fn report(self) -> Report {
        let kills = self.commands.iter().filter(|command| command.killed).count();
        let windows: Vec<&Command> = self.commands.iter().filter(|command| command.may_write()).collect();
        let edits: Vec<&Deed> =
            self.deeds.iter().filter(|deed| !matches!(deed.what, What::Committed)).collect();
        let overlaps = edits
            .iter()
            .filter(|deed| windows.iter().any(|window| deed.begin < window.end && deed.end > window.begin))
            .count();
        let delivered = self.ends("delivered").len();
        let taken_back = self.rows.iter().filter(|row| row.record() == "taken_back").count();
        let by_recovery = self.ends("delivered").iter().filter(|row| row.origin == "recovery").count();
        let conflicts = self.commands.iter().filter(|command| command.code == 3).count();
        let mut ends: BTreeMap<String, usize> = BTreeMap::new();
        for command in self.commands.iter().filter(|command| !command.killed) {
            *ends.entry(format!("{} {}", command.args[0], command.code)).or_default() += 1;
        }
        crate::support::say(&format!("soak: how commands ended: {ends:?}"));
        let lost = self.problems.iter().filter(|problem| problem.starts_with("LOST")).count();
        let figures = format!(
            "{} commands, {kills} of them killed, {} tasks, {delivered} deliveries ({by_recovery} finished by recovery), {taken_back} taken back, \
{} undone, {conflicts} conflicts, {} edits by the user, {overlaps} overlapped a delivery, {} rows in the ledger, losses: {lost}, other problems: {}",
            self.commands.len(),
            self.world.tasks.lock().expect("whole").len(),
            self.ends("undone").len(),
            edits.len(),
            self.rows.len(),
            self.problems.len() - lost,
        );
        Report { problems: self.problems, figures, kills, delivered, overlaps }
    }
}

/// What was seen of a candidate: its digests, from the row of a capture or of a later look.
fn observation(row: &Row) -> &Value {
    match row.record() {
        "captured" => &row.result["observation"],
        "observed" => &row.result,
        _ => &Value::Null,
    }
}

/// The names that a record of evidence may go by: the digest of its canonical form, with or without the tag
/// of the row.
fn digests(record: &Value) -> Vec<String> {
    let mut plain = record.clone();
    plain.as_object_mut().map(|object| object.remove("record"));
    vec![sha256(canonical(&plain).as_bytes()), sha256(canonical(record).as_bytes())]
}
