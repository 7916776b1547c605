//! The launcher: runs one program to its end and returns what it printed and how it ended.
//!
//! The program is started by a supervisor (`helper`), never from here. This side sends the order, reads the
//! two output pipes while the program runs, and waits for the answer; it waits in `poll`, with a deadline for
//! everything, so that neither a process that holds a pipe open nor a lost supervisor can block it.

use std::ffi::OsStr;
use std::io::{Read, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::Pid;

use super::command::{Confinement, FinishedRun, Invocation, NotStarted, ProgramEnd, SandboxLayer};
use super::mounts::{bubblewrap_arguments, explain_refusal};
use super::output::{Captured, Collector};
use super::redact::Secrets;
use super::supervise::{KILL_LIMIT, kill_session};
use super::wire::{ConfinementOrder, OsText, SupervisorAnswer, SupervisorOrder};
use crate::error::{Code, Failure, Result};

/// The hidden first argument that makes the binary a supervisor.
pub(super) const HELPER_ARGUMENT: &str = "__supervise";

/// How long the pipes are read on once everything that could write is dead.
const DRAIN: Duration = Duration::from_secs(1);
/// How much later than it must at the latest the supervisor may answer before it counts as lost.
const MARGIN: Duration = Duration::from_secs(5);
const PIECE: usize = 64 * 1024;
/// How often at least whoever watches a run is asked whether it may go on.
const WATCH_INTERVAL: Duration = Duration::from_millis(50);

/// Whoever watches a run: hears how many bytes it has printed so far, says whether it may go on.
pub type Watch<'a> = &'a dyn Fn(u64) -> bool;

/// The one place where `std::process::Command` is made, for the supervisor and for what it starts.
#[expect(clippy::disallowed_methods, reason = "the one spawn site")]
pub(super) fn program_command(file: impl AsRef<OsStr>) -> std::process::Command {
    std::process::Command::new(file)
}

/// Runs a program to its end, or until `watch` says that it may not go on: then all of it is asked to end,
/// given its grace, and killed. `helper_exe` is the absolute path of this binary.
///
/// That the program failed, was killed or could not be started is no error here: see [`ProgramEnd`].
///
/// # Errors
/// `io` if the supervisor cannot be started or spoken to; `sandbox.unavailable` where what the program is to
/// be confined to cannot be had: it is not started then.
pub fn run_program(helper_exe: &Path, command: &Invocation, watch: Watch<'_>) -> Result<FinishedRun> {
    let failed = |doing: &'static str| move |error: std::io::Error| Failure::io(doing, helper_exe, &error);
    let (socket, theirs) = UnixStream::pair().map_err(failed("make the socket for"))?;
    let mut starter = supervisor_command(helper_exe, command);
    starter
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut supervisor = starter.spawn().map_err(failed("start the supervisor"))?;
    // The starter keeps the other ends of what it was given.
    drop(starter);
    let started = Instant::now();
    // Where this fails the supervisor is already gone, and the listener says so.
    let sent = send_order(&socket, command);
    let secrets = Secrets::new(&command.secrets);
    let mut listener = Listener::new(&socket, &mut supervisor, &secrets, command, started);
    listener.watch = watch;
    let (answer, stdout, stderr) = listener.listen_to_end();
    drop(socket);
    let answer = match (answer, sent) {
        (Some(answer), _) => {
            supervisor.wait().map_err(failed("wait for the supervisor"))?;
            answer
        }
        (None, Err(error)) => {
            give_up(&mut supervisor);
            return Err(failed("send the order to the supervisor")(error));
        }
        (None, Ok(())) => SupervisorAnswer {
            survivors_killed: give_up(&mut supervisor),
            end: ProgramEnd::SupervisorLost,
            duration_us: u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX),
            unkillable: 0,
        },
    };
    let end = match answer.end {
        ProgramEnd::NotStarted { kind: NotStarted::NotConfined, message } => {
            return Err(confinement_refused(&message));
        }
        ProgramEnd::SupervisorLost if refused_by_bubblewrap(command, &stdout, &stderr) => {
            return Err(confinement_refused(&explain_refusal(&stderr.bytes)));
        }
        ProgramEnd::NotStarted { kind, message } => {
            ProgramEnd::NotStarted { kind, message: secrets.redact_text(&message) }
        }
        end => end,
    };
    Ok(FinishedRun {
        end,
        stdout,
        stderr,
        duration: Duration::from_micros(answer.duration_us),
        survivors_killed: answer.survivors_killed,
        unkillable: answer.unkillable,
    })
}

/// The supervisor: this program by itself, or in namespaces of its own.
fn supervisor_command(helper_exe: &Path, command: &Invocation) -> std::process::Command {
    let in_namespaces = command.confinement.as_ref().filter(|one| one.layer == SandboxLayer::Full);
    match in_namespaces {
        Some(confinement) => {
            let mut starter = program_command(&confinement.bubblewrap);
            starter.args(bubblewrap_arguments(confinement, helper_exe, HELPER_ARGUMENT));
            starter
        }
        None => {
            let mut starter = program_command(helper_exe);
            starter.arg(HELPER_ARGUMENT);
            starter
        }
    }
}

/// True where nothing ran because bubblewrap could not make the namespaces, or show what it was told to.
fn refused_by_bubblewrap(command: &Invocation, stdout: &Captured, stderr: &Captured) -> bool {
    let in_namespaces = command.confinement.as_ref().is_some_and(|one| one.layer == SandboxLayer::Full);
    in_namespaces && stdout.total == 0 && stderr.bytes.starts_with(b"bwrap: ")
}

/// Nothing was started, since it would not have been confined.
pub fn confinement_refused(why: &str) -> Failure {
    Failure::new(Code::SandboxUnavailable, format!("the program was not started: {why}"))
        .subject("sandbox")
        .remedy("See what this machine offers, and how to get the rest.", ["git", "tender", "doctor"])
}

/// The time after which a supervisor that works has answered, where the program may run for `time`.
fn longest_supervision(time: Duration, command: &Invocation) -> Duration {
    let limit = time.saturating_add(command.grace);
    // A bound, so that adding it to a point in time cannot overflow.
    limit.saturating_add(KILL_LIMIT).saturating_add(MARGIN).min(Duration::from_secs(10 * 365 * 24 * 3600))
}

fn send_order(mut socket: &UnixStream, command: &Invocation) -> std::io::Result<()> {
    let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let order = SupervisorOrder {
        argv: command.argv.iter().map(OsText::from_os).collect(),
        cwd: OsText::from_os(&command.cwd),
        env: command
            .env
            .iter()
            .map(|(name, value)| (OsText::from_os(name), OsText::from_os(value)))
            .collect(),
        stdin_len: command.stdin.len() as u64,
        timeout_ms: milliseconds(command.timeout),
        grace_ms: milliseconds(command.grace),
        limits: command.limits,
        confinement: command.confinement.as_ref().map(order_confinement),
    };
    let mut line = serde_json::to_vec(&order)?;
    line.push(b'\n');
    socket.write_all(&line)?;
    socket.write_all(&command.stdin)
}

fn order_confinement(confinement: &Confinement) -> ConfinementOrder {
    let texts = |paths: &[std::path::PathBuf]| paths.iter().map(OsText::from_os).collect();
    ConfinementOrder {
        layer: confinement.layer,
        read: texts(&confinement.read),
        write: texts(&confinement.write),
    }
}

/// Kills a supervisor that does not answer, and what is left of its session. Returns how many that were.
fn give_up(supervisor: &mut Child) -> u32 {
    // It may be dead already, which is what is wanted.
    let _ = supervisor.kill();
    let _ = supervisor.wait();
    i32::try_from(supervisor.id()).ok().and_then(Pid::from_raw).map_or(0, kill_session)
}

/// One output pipe with what was read from it.
struct Stream<R> {
    /// None once its end was reached.
    pipe: Option<R>,
    collector: Collector,
}

impl<R: Read + AsFd> Stream<R> {
    fn new(pipe: Option<R>, secrets: &Secrets, cap: u64) -> Self {
        Self { pipe, collector: Collector::new(secrets, cap) }
    }

    /// Reads what is there; the descriptor must be ready.
    fn read_ready_bytes(&mut self, buffer: &mut [u8]) {
        let Some(pipe) = &mut self.pipe else { return };
        match pipe.read(buffer) {
            Ok(0) => self.pipe = None,
            Ok(count) => self.collector.push_bytes(&buffer[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => self.pipe = None,
        }
    }

    fn finish_stream(self) -> Captured {
        self.collector.finish_stream(self.pipe.is_none())
    }
}

/// Reads the socket and both outputs until the answer is there and the pipes are at their ends.
struct Listener<'a> {
    socket: &'a UnixStream,
    socket_open: bool,
    line: Vec<u8>,
    stdout: Stream<std::process::ChildStdout>,
    stderr: Stream<std::process::ChildStderr>,
    deadline: Instant,
    watch: Watch<'a>,
    /// How long the supervisor may take once it was told to end the run; `None` once it was.
    end_within: Option<Duration>,
}

impl<'a> Listener<'a> {
    fn new(
        socket: &'a UnixStream,
        supervisor: &mut Child,
        secrets: &Secrets,
        command: &Invocation,
        started: Instant,
    ) -> Self {
        let cap = command.output_cap;
        Self {
            socket,
            socket_open: true,
            line: Vec::new(),
            stdout: Stream::new(supervisor.stdout.take(), secrets, cap),
            stderr: Stream::new(supervisor.stderr.take(), secrets, cap),
            deadline: started + longest_supervision(command.timeout, command),
            watch: &|_| true,
            end_within: Some(longest_supervision(Duration::ZERO, command)),
        }
    }

    fn listen_to_end(mut self) -> (Option<SupervisorAnswer>, Captured, Captured) {
        let mut buffer = vec![0; PIECE];
        while self.socket_open || self.stdout.pipe.is_some() || self.stderr.pipe.is_some() {
            let left = self.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            self.ask_the_watch();
            let [socket, stdout, stderr] = self.wait_for_sources(left);
            if stdout {
                self.stdout.read_ready_bytes(&mut buffer);
            }
            if stderr {
                self.stderr.read_ready_bytes(&mut buffer);
            }
            if socket {
                self.read_answer(&mut buffer);
            }
        }
        (serde_json::from_slice(&self.line).ok(), self.stdout.finish_stream(), self.stderr.finish_stream())
    }

    /// Tells the supervisor to end the run where it may not go on. Closing this direction of the socket is
    /// what tells it: that cannot get lost.
    fn ask_the_watch(&mut self) {
        let Some(within) = self.end_within.filter(|_| self.socket_open) else { return };
        let printed = self.stdout.collector.total() + self.stderr.collector.total();
        if (self.watch)(printed) {
            return;
        }
        self.end_within = None;
        // Where it fails the supervisor is gone, and the socket says so.
        let _ = self.socket.shutdown(std::net::Shutdown::Write);
        self.deadline = self.deadline.min(Instant::now() + within);
    }

    fn read_answer(&mut self, buffer: &mut [u8]) {
        match self.socket.read(buffer) {
            Ok(count) if count > 0 => self.line.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => return,
            Ok(_) | Err(_) => self.socket_open = false,
        }
        if self.line.ends_with(b"\n") {
            self.socket_open = false;
        }
        if !self.socket_open {
            // All who could write are dead, or are about to be; only a stranger can still hold a pipe.
            self.deadline = self.deadline.min(Instant::now() + DRAIN);
        }
    }

    /// Waits for one of the three to be ready.
    fn wait_for_sources(&self, left: Duration) -> [bool; 3] {
        let sources: [Option<BorrowedFd<'_>>; 3] = [
            self.socket_open.then(|| self.socket.as_fd()),
            self.stdout.pipe.as_ref().map(AsFd::as_fd),
            self.stderr.pipe.as_ref().map(AsFd::as_fd),
        ];
        let mut places = Vec::new();
        let mut descriptors = Vec::new();
        for (place, source) in sources.into_iter().enumerate() {
            if let Some(source) = source {
                places.push(place);
                descriptors.push(PollFd::from_borrowed_fd(source, PollFlags::IN));
            }
        }
        let mut ready = [false; 3];
        let timeout = Timespec::try_from(left.min(WATCH_INTERVAL)).ok();
        if rustix::event::poll(&mut descriptors, timeout.as_ref()).is_ok() {
            for (place, descriptor) in places.into_iter().zip(&descriptors) {
                ready[place] = !descriptor.revents().is_empty();
            }
        }
        ready
    }
}
