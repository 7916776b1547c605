//! Is somebody writing into this file? Asked by a read lease: the kernel refuses it while any descriptor (or,
//! on most file systems, any shared mapping) has the file open for writing.
//!
//! This is the one file with `unsafe` code: `F_SETLEASE` has no safe wrapper. The calls pass integers only.
//! The signal that the kernel sends to a lease holder when somebody wants to write is set to one that is
//! ignored by default: SIGIO, the usual one, would end the process.

#![expect(unsafe_code, reason = "fcntl(F_SETLEASE) has no safe wrapper; only integers are passed")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// `F_SETSIG` of `asm-generic/fcntl.h`; the libc crate does not name it.
const F_SETSIG: i32 = 10;

#[derive(Debug)]
pub enum LeaseAnswer {
    /// Nobody writes; nobody can begin to while the lease is held.
    Held(Lease),
    /// Somebody has it open for writing.
    Writing,
    /// It cannot be asked here (another owner, a file system without leases).
    CannotAsk,
}

/// A read lease. Dropping it lets writers in again.
#[derive(Debug)]
#[must_use = "the lease ends when this is dropped"]
pub struct Lease {
    file: File,
}

/// Asks for a lease on a file that is open for reading only.
pub fn ask_for_lease(file: &File) -> LeaseAnswer {
    let file = match file.try_clone() {
        Ok(file) => file,
        Err(_) => return LeaseAnswer::CannotAsk,
    };
    if call_fcntl(&file, F_SETSIG, libc::SIGURG).is_err() {
        return LeaseAnswer::CannotAsk;
    }
    match call_fcntl(&file, libc::F_SETLEASE, libc::F_RDLCK) {
        Ok(_) => LeaseAnswer::Held(Lease { file }),
        Err(e) if e.raw_os_error() == Some(libc::EAGAIN) => LeaseAnswer::Writing,
        Err(_) => LeaseAnswer::CannotAsk,
    }
}

impl Lease {
    /// True while no writer waits for the lease to end. To be asked after the bytes were read.
    pub fn is_undisturbed(&self) -> bool {
        call_fcntl(&self.file, libc::F_GETLEASE, 0).is_ok_and(|kind| kind == libc::F_RDLCK)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let _ = call_fcntl(&self.file, libc::F_SETLEASE, libc::F_UNLCK);
    }
}

fn call_fcntl(file: &File, command: i32, argument: i32) -> io::Result<i32> {
    // SAFETY: the descriptor is open for as long as `file` is borrowed, and these commands take an integer,
    // no pointer.
    match unsafe { libc::fcntl(file.as_raw_fd(), command, argument) } {
        -1 => Err(io::Error::last_os_error()),
        answer => Ok(answer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn an_open_writer_is_seen_and_a_waiting_one_too() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("x");
        let mut writer = File::create(&path).expect("creates");
        writer.write_all(b"x").expect("writes");
        let reader = File::open(&path).expect("opens");
        assert!(matches!(ask_for_lease(&reader), LeaseAnswer::Writing));
        drop(writer);
        let LeaseAnswer::Held(lease) = ask_for_lease(&reader) else { panic!("nobody writes") };
        assert!(lease.is_undisturbed());
        let late = path.clone();
        let opener = std::thread::spawn(move || File::options().append(true).open(late).is_ok());
        while lease.is_undisturbed() {
            std::thread::yield_now();
        }
        drop(lease);
        assert!(opener.join().expect("ends"));
        assert!(matches!(ask_for_lease(&reader), LeaseAnswer::Held(_)));
    }
}
