//! The tree of processes below the supervisor: who is in it, and how all of it is ended.
//!
//! The supervisor is child subreaper: whatever loses its parent (a double fork, a new session) becomes its
//! child. So "nothing survives" has an exact test: waiting for any child says that there is none. Until then
//! the whole tree is looked up and killed again and again, because a process can fork between the look and
//! the signal.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, WaitStatus};

/// How long killing may take before what is left counts as unkillable (a process in an uninterruptible wait).
pub(super) const KILL_LIMIT: Duration = Duration::from_secs(5);
/// How long processes that are just ending may take once the main one has ended, before they count as
/// survivors.
const SETTLE: Duration = Duration::from_millis(100);
const SHORTEST_WAIT: Duration = Duration::from_micros(200);
const LONGEST_WAIT: Duration = Duration::from_millis(5);

/// What is known of one process.
#[derive(Debug, Clone, Copy)]
struct Process {
    pid: Pid,
    parent: i32,
    session: i32,
    /// Start time in clock ticks since boot; with the pid it names a process for good.
    started: u64,
    ended: bool,
}

/// What waiting for children gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Children {
    /// There are none, and so no descendants.
    None,
    Some,
}

/// The children of this process, with the main one's status once it has ended.
#[derive(Debug)]
pub(super) struct Tree {
    main: Pid,
    status: Option<WaitStatus>,
}

impl Tree {
    pub(super) fn new(main: Pid) -> Self {
        Self { main, status: None }
    }

    /// How the main process ended, if it was seen to.
    pub(super) fn main_status(&self) -> Option<WaitStatus> {
        self.status
    }

    /// Takes notice of every child that has ended, without waiting.
    pub(super) fn reap_children(&mut self) -> Children {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.main => self.status = Some(status),
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => return Children::Some,
                Err(_) => return Children::None,
            }
        }
    }

    /// Waits until no child is left or the time is up.
    pub(super) fn wait_for_all(&mut self, limit: Duration) -> Children {
        self.repeat_until_childless(limit, || {})
    }

    /// Gives processes that are about to end the time to do so; returns how many live on.
    pub(super) fn let_children_settle(&mut self) -> u32 {
        match self.wait_for_all(SETTLE) {
            Children::None => 0,
            Children::Some => alive_below_us(),
        }
    }

    /// Kills everything; returns how many could not be killed.
    pub(super) fn kill_all(&mut self) -> u32 {
        let us = rustix::process::getpid();
        match self.repeat_until_childless(KILL_LIMIT, || descendants_of(us).iter().for_each(kill_process)) {
            Children::None => 0,
            Children::Some => alive_below_us().max(1),
        }
    }

    fn repeat_until_childless(&mut self, limit: Duration, act: impl Fn()) -> Children {
        let deadline = Instant::now() + limit;
        let mut wait = SHORTEST_WAIT;
        loop {
            // First of all: in most runs nothing is left, and looking through all processes is what costs.
            if self.reap_children() == Children::None {
                return Children::None;
            }
            if Instant::now() >= deadline {
                return Children::Some;
            }
            act();
            std::thread::sleep(wait);
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }
}

/// Asks the main process and its group to end. A stopped one is woken, else it could not.
pub(super) fn ask_to_end(group: Pid) {
    // The group may be gone already; what is left is killed later in any case.
    let _ = rustix::process::kill_process_group(group, Signal::TERM);
    let _ = rustix::process::kill_process_group(group, Signal::CONT);
}

/// How many descendants of this process are alive.
pub(super) fn alive_below_us() -> u32 {
    let alive = descendants_of(rustix::process::getpid()).iter().filter(|found| !found.ended).count();
    u32::try_from(alive).unwrap_or(u32::MAX)
}

/// Kills what is left of a session whose supervisor is gone, with all descendants that can still be found.
///
/// This is the last resort for a supervisor that was itself killed: a process that made its own session and
/// lost its parent before cannot be found any more. Returns how many were there.
pub(super) fn kill_session(leader: Pid) -> u32 {
    let deadline = Instant::now() + KILL_LIMIT;
    let mut seen = std::collections::HashSet::new();
    loop {
        let all = running_processes();
        let left: Vec<Process> = all
            .iter()
            .filter(|one| one.session == leader.as_raw_nonzero().get() && !one.ended)
            .flat_map(|one| std::iter::once(*one).chain(processes_below(&all, one.pid)))
            .filter(|one| !one.ended)
            .collect();
        if left.is_empty() || Instant::now() >= deadline {
            return u32::try_from(seen.len()).unwrap_or(u32::MAX);
        }
        for one in &left {
            kill_process(one);
            seen.insert((one.pid.as_raw_nonzero(), one.started));
        }
        std::thread::sleep(SHORTEST_WAIT);
    }
}

fn descendants_of(root: Pid) -> Vec<Process> {
    processes_below(&running_processes(), root)
}

fn processes_below(all: &[Process], root: Pid) -> Vec<Process> {
    let mut by_parent: HashMap<i32, Vec<Process>> = HashMap::new();
    for process in all {
        by_parent.entry(process.parent).or_default().push(*process);
    }
    let mut found: Vec<Process> = Vec::new();
    let mut pending = vec![root.as_raw_nonzero().get()];
    while let Some(parent) = pending.pop() {
        // Removing makes this end even if the table, which is no snapshot, shows a circle.
        for child in by_parent.remove(&parent).unwrap_or_default() {
            pending.push(child.pid.as_raw_nonzero().get());
            found.push(child);
        }
    }
    found
}

/// Kills exactly this process: the descriptor is opened first and then checked, so a reused pid is not hit.
fn kill_process(process: &Process) {
    let Ok(descriptor) = rustix::process::pidfd_open(process.pid, PidfdFlags::empty()) else { return };
    if read_process(process.pid).is_some_and(|now| now.started == process.started) {
        // It may have ended meanwhile; whether it has is seen by waiting.
        let _ = rustix::process::pidfd_send_signal(&descriptor, Signal::KILL);
    }
}

fn running_processes() -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str().and_then(|name| name.parse().ok()))
        .filter_map(Pid::from_raw)
        .filter_map(read_process)
        .collect()
}

fn read_process(pid: Pid) -> Option<Process> {
    let raw = std::fs::read(Path::new("/proc").join(pid.as_raw_nonzero().to_string()).join("stat")).ok()?;
    parse_process_stat(pid, &String::from_utf8_lossy(&raw))
}

/// Reads `/proc/PID/stat`; the name in parentheses may itself hold parentheses and spaces.
fn parse_process_stat(pid: Pid, stat: &str) -> Option<Process> {
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    Some(Process {
        pid,
        ended: matches!(*fields.first()?, "Z" | "X"),
        parent: fields.get(1)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_entry_is_read() {
        let us = read_process(rustix::process::getpid()).expect("own entry");
        assert_eq!(us.parent, rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get()));
        assert!(us.started > 0 && !us.ended);
    }

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let pid = Pid::from_raw(7).expect("pid");
        let stat = "7 (a) Z 9 (b)) S 5 6 4 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 12345 0 0";
        let got = parse_process_stat(pid, stat).expect("parses");
        assert_eq!((got.parent, got.session, got.started, got.ended), (5, 4, 12345, false));
        assert!(parse_process_stat(pid, "7 (a").is_none());
    }

    #[test]
    fn a_circle_in_the_table_ends() {
        let one = |pid, parent| Process {
            pid: Pid::from_raw(pid).expect("pid"),
            parent,
            session: 1,
            started: 1,
            ended: false,
        };
        let all = [one(2, 1), one(3, 2), one(4, 3), one(5, 9), one(1, 4)];
        let found: Vec<i32> =
            processes_below(&all, all[0].pid).iter().map(|p| p.pid.as_raw_nonzero().get()).collect();
        assert_eq!(found, [3, 4, 1, 2]);
    }
}
