//! A task's lock with its holder's name in it, and the way to ask that holder to stop.
//!
//! Whoever takes a task's lock writes a fresh name into the lock's file. A request to stop is a file beside
//! it that holds this name: so a request that was left over (its writer crashed, or the holder was done
//! before it looked) means nobody, and never stops a later command. The holder looks at it between its steps,
//! and many times a second while a program runs.

use super::layout::{Layout, write_private};
use super::lock::{LockGuard, PATIENCE};
use crate::error::Result;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often who wants the lock looks whether the holder has gone.
const INTERVAL: Duration = Duration::from_millis(10);

#[derive(Debug)]
#[must_use = "the lock is released when this is dropped"]
pub struct Claim {
    name: String,
    request: PathBuf,
    _lock: LockGuard,
}

impl Claim {
    /// Waits for the task's lock, at most [`PATIENCE`]; then `store.busy`.
    pub fn acquire(layout: &Layout, task: &str) -> Result<Self> {
        Ok(Self::of(layout, task, LockGuard::acquire(&layout.task_lock(task))?))
    }

    /// The same for who may be called off while waiting.
    pub fn acquire_unless(layout: &Layout, task: &str, called_off: &dyn Fn() -> bool) -> Result<Self> {
        let lock = LockGuard::acquire_unless(&layout.task_lock(task), PATIENCE, called_off)?;
        Ok(Self::of(layout, task, lock))
    }

    /// Asks whoever holds the task's lock to stop, and takes it then. A holder that cannot stop is waited
    /// for, at most [`PATIENCE`].
    pub fn acquire_stopping(layout: &Layout, task: &str) -> Result<Self> {
        let path = layout.task_lock(task);
        let end = Instant::now() + PATIENCE;
        let mut asked = Vec::new();
        loop {
            if let Some(lock) = LockGuard::try_acquire(&path)? {
                return Ok(Self::of(layout, task, lock));
            }
            if Instant::now() >= end {
                return LockGuard::acquire_within(&path, INTERVAL).map(|lock| Self::of(layout, task, lock));
            }
            // Each command has a name of its own: a chain of them is asked one after the other.
            let holder = std::fs::read(&path).unwrap_or_default();
            if !holder.is_empty() && holder != asked {
                write_private(&layout.stop_request(task), &holder)?;
                asked = holder;
            }
            std::thread::sleep(INTERVAL);
        }
    }

    /// On a full disk the holder stays without a name: nobody can ask it to stop, and it works all the same.
    fn of(layout: &Layout, task: &str, lock: LockGuard) -> Self {
        let name = fresh_name();
        let mut file = lock.file();
        let written = file.set_len(0).and_then(|()| file.write_all(name.as_bytes()));
        let name = written.map_or_else(|_| String::new(), |()| name);
        Self { name, request: layout.stop_request(task), _lock: lock }
    }

    /// True once somebody asked this holder to stop.
    pub fn is_asked_to_stop(&self) -> bool {
        names_program(&self.request, &self.name)
    }
}

fn names_program(request: &Path, name: &str) -> bool {
    !name.is_empty() && std::fs::read(request).is_ok_and(|bytes| bytes == name.as_bytes())
}

fn fresh_name() -> String {
    let mut bytes = [0u8; 16];
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    let random: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
    format!("{}-{random}", rustix::process::getpid().as_raw_nonzero())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;

    fn layout() -> (tempfile::TempDir, Layout) {
        let dir = tempfile::tempdir().expect("a directory");
        let layout = Layout::new(dir.path());
        layout.create().expect("creates");
        (dir, layout)
    }

    #[test]
    fn who_is_asked_stops_and_the_next_holder_is_not_meant() {
        let (_dir, layout) = layout();
        let first = Claim::acquire(&layout, "t1").expect("free");
        assert!(!first.is_asked_to_stop());
        let other = layout.clone();
        let asking = std::thread::spawn(move || Claim::acquire_stopping(&other, "t1").map(drop));
        let deadline = Instant::now() + Duration::from_secs(20);
        while !first.is_asked_to_stop() {
            assert!(Instant::now() < deadline, "nobody asked");
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(first);
        asking.join().expect("joins").expect("gets the lock");
        assert!(layout.stop_request("t1").exists(), "the request is still there");
        let next = Claim::acquire(&layout, "t1").expect("free");
        assert!(!next.is_asked_to_stop(), "a request that was left over means nobody");
        assert!(
            LockGuard::acquire_within(&layout.task_lock("t1"), INTERVAL)
                .is_err_and(|e| e.code() == Code::StoreBusy)
        );
    }
}
