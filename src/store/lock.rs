//! Locks. A held lock is a value; dropping it, or the end of the process, releases it.
//!
//! Order, never the other way round: delivery, then task, then slot, then the store's creation lock. The
//! ledger's own transactions come last.
//!
//! Two tasks' locks are held at once only where the second one is tried and not waited for. A family of tasks
//! shares its budget through the ledger alone: what a run may use is looked up and reserved in one
//! transaction, whichever of the tasks' locks are held meanwhile.

use crate::error::{Code, Failure, Result};
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a writer waits for another before it gives up.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// An exclusive lock on a file.
#[derive(Debug)]
#[must_use = "the lock is released when this is dropped"]
pub struct LockGuard {
    file: File,
}

impl LockGuard {
    /// Waits for the lock, at most [`PATIENCE`]; then `store.busy`. Makes the file, and its directory, where
    /// they are missing.
    pub fn acquire(path: &Path) -> Result<Self> {
        Self::acquire_within(path, PATIENCE)
    }

    /// Waits for the lock for a given time.
    pub fn acquire_within(path: &Path, patience: Duration) -> Result<Self> {
        Self::acquire_unless(path, patience, &|| false)
    }

    /// The same, but ends with `cancelled` once whoever waits is called off.
    pub fn acquire_unless(path: &Path, patience: Duration, called_off: &dyn Fn() -> bool) -> Result<Self> {
        let end = Instant::now() + patience;
        let mut pause = Duration::from_millis(2);
        loop {
            if let Some(guard) = Self::try_acquire(path)? {
                return Ok(guard);
            }
            if Instant::now() >= end {
                return Err(busy(path, patience));
            }
            if called_off() {
                return Err(Failure::new(Code::Cancelled, "it was called off while it waited for a lock")
                    .subject(path.display().to_string()));
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }

    /// Takes the lock if it is free.
    pub fn try_acquire(path: &Path) -> Result<Option<Self>> {
        if let Some(folder) = path.parent() {
            super::layout::create_private_dir(folder)?;
        }
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)
            .map_err(|e| Failure::io_of_ours("open the lock", path, &e))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self { file })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(e) => Err(Failure::io("lock", path, &e.into())),
        }
    }

    /// The open file of the lock.
    pub fn file(&self) -> &File {
        &self.file
    }
}

impl Drop for LockGuard {
    /// Released by name and not only by closing: a child that was just forked may still share the descriptor.
    fn drop(&mut self) {
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

fn busy(path: &Path, patience: Duration) -> Failure {
    Failure::new(
        Code::StoreBusy,
        format!("another git-tender held {} for more than {} seconds", path.display(), patience.as_secs()),
    )
    .subject(path.display().to_string())
    .remedy("Wait until it has finished, then run the same command again.", ["git", "tender", "status"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holder_waits_and_then_gives_up() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("deep").join("x.lock");
        let held = LockGuard::acquire(&path).expect("free");
        let refused = LockGuard::acquire_within(&path, Duration::from_millis(20)).expect_err("held");
        assert_eq!(refused.code(), Code::StoreBusy);
        drop(held);
        assert!(LockGuard::try_acquire(&path).expect("works").is_some());
    }
}
