//! When a server has to end before its input does: the client has gone, or a signal came.
//!
//! One thread waits for both, another one for whatever the reason is, and bounds how long the end may take.
//! They live until the process ends; nothing has to wake them. The first signal asks, a second one of the
//! same process ends it at once. The ledger and the worktree can take an end at any moment, like that of a
//! crash, and a work that does not listen must neither keep anybody nor hold the task's lock for nobody.

use crate::error::{Failure, Result};
use rustix::event::{PollFd, PollFlags, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::fs::File;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// How long it may take to end once there is a reason.
const LONGEST_END: Duration = Duration::from_secs(10);

/// Why a server ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// Nobody reads what it says any more.
    Gone,
    Signal(u8),
    /// It cannot go on by its own fault.
    Fault,
}

impl StopReason {
    /// The exit code of a process that did not come to its end in time.
    fn exit_code(self) -> i32 {
        match self {
            // Nobody is there to be told.
            Self::Gone => 0,
            Self::Signal(number) => 128 + i32::from(number),
            Self::Fault => i32::from(Failure::internal("").exit_code()),
        }
    }
}

/// Whether a server has to end early. Clones speak of the same server.
#[derive(Debug, Clone)]
pub struct ServerStop(watch::Sender<Option<StopReason>>);

impl ServerStop {
    pub fn new() -> Self {
        Self(watch::Sender::new(None))
    }

    /// Asks it to end; the first reason stays.
    pub fn ask_to_end(&self, reason: StopReason) {
        self.0.send_if_modified(|known| match known {
            Some(_) => false,
            None => {
                *known = Some(reason);
                true
            }
        });
    }

    /// The reason, once it has to end.
    pub fn reason(&self) -> Option<StopReason> {
        *self.0.borrow()
    }

    /// Waits until it has to end; the reason.
    pub async fn asked(&self) -> StopReason {
        // The sender is this value's own, so the channel is open.
        self.0
            .subscribe()
            .wait_for(Option::is_some)
            .await
            .ok()
            .and_then(|reason| *reason)
            .unwrap_or(StopReason::Fault)
    }

    /// Watches for signals and for the end of whoever reads `output`.
    pub fn watch(&self, output: File) -> Result<()> {
        let failed = |e: std::io::Error| Failure::internal(format!("signals cannot be listened to: {e}"));
        let number = Arc::new(AtomicUsize::new(0));
        let (wake, tell) = UnixStream::pair().map_err(failed)?;
        for signal in [SIGTERM, SIGINT, SIGHUP] {
            register(signal, &number, &tell).map_err(failed)?;
        }
        let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(failed)?;
        let (asks, bounds) = (self.clone(), self.clone());
        super::start_thread(move || asks.wait(&wake, &output, &number))?;
        super::start_thread(move || {
            let reason = runtime.block_on(bounds.asked());
            // A client that reads nothing keeps whoever writes to it from ever coming to an end, and not
            // every tool listens while it works.
            std::thread::sleep(LONGEST_END);
            std::process::exit(reason.exit_code());
        })
        .map(drop)
    }

    /// Until a signal has come, whose number it gives.
    fn wait(&self, mut wake: &UnixStream, output: &File, number: &AtomicUsize) -> u8 {
        let mut fds = [
            PollFd::new(wake, PollFlags::IN),
            // Nothing is asked for: what comes is an error or a hang-up.
            PollFd::new(output, PollFlags::empty()),
        ];
        while let Err(rustix::io::Errno::INTR) = poll(&mut fds, None) {}
        if fds[0].revents().is_empty() {
            self.ask_to_end(StopReason::Gone);
            // A signal that comes later still finds somebody who takes it.
            let _ = wake.read(&mut [0]);
        }
        let number = u8::try_from(number.load(Ordering::SeqCst)).unwrap_or_default();
        self.ask_to_end(StopReason::Signal(number));
        number
    }
}

/// The first one is noted and wakes the thread, the next one ends the process. The actions run in the order
/// in which they are registered.
fn register(signal: i32, number: &Arc<AtomicUsize>, tell: &UnixStream) -> std::io::Result<()> {
    let known = usize::try_from(signal).unwrap_or_default();
    let again = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&again))?;
    signal_hook::flag::register(signal, again)?;
    signal_hook::flag::register_usize(signal, Arc::clone(number), known)?;
    signal_hook::low_level::pipe::register(signal, tell.try_clone()?)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_stays() {
        let stop = ServerStop::new();
        assert_eq!(stop.reason(), None);
        stop.clone().ask_to_end(StopReason::Gone);
        stop.ask_to_end(StopReason::Signal(15));
        assert_eq!(stop.reason(), Some(StopReason::Gone));
    }

    #[test]
    fn a_reader_that_goes_is_noticed_without_a_word() {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        let (wake, tell) = UnixStream::pair().expect("a pair");
        let stop = ServerStop::new();
        let watching = stop.clone();
        let thread = std::thread::spawn(move || {
            watching.wait(&wake, &File::from(std::os::fd::OwnedFd::from(writer)), &AtomicUsize::new(15))
        });
        assert_eq!(stop.reason(), None);
        drop(reader);
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(stop.asked());
        assert_eq!(stop.reason(), Some(StopReason::Gone));
        drop(tell);
        assert_eq!(thread.join().expect("ends"), 15);
    }
}
