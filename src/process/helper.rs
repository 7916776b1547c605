//! The supervisor: this binary, started again by `launch`, one for each run.
//!
//! Its standard input is the socket to the launcher, its standard output and error are those of the program.
//! It makes a session of its own (no terminal, no Ctrl-C meant for the harness) and becomes child subreaper,
//! starts the program in a process group, and waits for the first of: the program ends, the time is up, the
//! launcher wants it to end (it closes its sending direction), the launcher is gone. Then everything below it
//! is ended (`supervise`) before it answers and exits itself. The program is confined (`confine`) by the
//! thread that starts it; in namespaces of its own the supervisor is already.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, WaitStatus};

use super::command::{NotStarted, ProcessLimits, ProgramEnd};
use super::confine::confine_thread;
use super::launch::{self, HELPER_ARGUMENT};
use super::supervise::{Children, Tree, ask_to_end};
use super::wire::{ConfinementOrder, SupervisorAnswer, SupervisorOrder};

/// While nothing happens, orphans that ended are taken notice of this often.
const REAP_INTERVAL: Duration = Duration::from_secs(1);

/// Runs the supervisor if the arguments (program name included) ask for it; `main` calls this before all
/// else.
pub fn run_if_supervisor(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    (arguments.into_iter().nth(1)? == HELPER_ARGUMENT)
        .then(|| supervise_program().map_or(ExitCode::from(70), |()| ExitCode::SUCCESS))
}

fn supervise_program() -> std::io::Result<()> {
    // Descriptors that the harness inherited from its own caller must not reach the program.
    close_fds::set_fds_cloexec(3, &[]);
    let mut socket = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let mut reader = BufReader::new(socket.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let order: SupervisorOrder = serde_json::from_str(&line)?;
    let mut stdin = Vec::new();
    reader.take(order.stdin_len).read_to_end(&mut stdin)?;
    if stdin.len() as u64 != order.stdin_len {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    rustix::process::setsid()?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    apply_limits(&order.limits)?;
    if order.confinement.is_some() {
        // So the program can neither trace it nor read its memory.
        let hidden = rustix::process::DumpableBehavior::NotDumpable;
        rustix::process::set_dumpable_behavior(hidden)?;
    }
    let answer = match start_program(&order, !stdin.is_empty()) {
        Ok((main, input)) => SupervisedRun::new(&order, main, input, &stdin, &socket).finish_run(),
        Err(end) => Some(SupervisorAnswer { end, duration_us: 0, survivors_killed: 0, unkillable: 0 }),
    };
    // No answer where the launcher is gone.
    if let Some(answer) = answer {
        let mut line = serde_json::to_vec(&answer)?;
        line.push(b'\n');
        socket.write_all(&line)?;
    }
    Ok(())
}

/// Sets the limits on this process, which hands them on; it has no need that they could touch.
fn apply_limits(limits: &ProcessLimits) -> std::io::Result<()> {
    let wanted = [
        (Resource::Core, Some(0)),
        (Resource::Fsize, limits.file_size),
        (Resource::Nofile, limits.open_files),
        (Resource::As, limits.memory),
        (Resource::Nproc, limits.processes),
    ];
    for (resource, limit) in wanted {
        let Some(limit) = limit else { continue };
        let highest =
            rustix::process::getrlimit(resource).maximum.map_or(limit, |highest| highest.min(limit));
        rustix::process::setrlimit(resource, Rlimit { current: Some(highest), maximum: Some(highest) })?;
    }
    Ok(())
}

/// Starts the program. Its output descriptors are those of this process.
fn start_program(order: &SupervisorOrder, with_stdin: bool) -> Result<(Pid, Option<ChildStdin>), ProgramEnd> {
    let cwd = Path::new(&order.cwd.0);
    let not_started = |kind, message: String| ProgramEnd::NotStarted { kind, message };
    let Some((program, rest)) = order.argv.split_first() else {
        return Err(not_started(NotStarted::Other, "the command is empty".to_owned()));
    };
    if !cwd.is_dir() {
        let message = format!("{} is not a directory to run in", cwd.display());
        return Err(not_started(NotStarted::NoDirectory, message));
    }
    let path =
        order.env.iter().rev().find(|(name, _)| name.0 == "PATH").map(|(_, value)| value.0.as_os_str());
    let file = find_program(&program.0, cwd, path).map_err(|kind| {
        let what = match kind {
            NotStarted::PermissionDenied => "is not executable",
            _ if program.0.as_bytes().contains(&b'/') => "does not exist",
            _ => "is in no directory of PATH",
        };
        not_started(kind, format!("{} {what}", program.0.display()))
    })?;
    let mut command = launch::program_command(&file);
    command
        .arg0(&program.0)
        .args(rest.iter().map(|argument| &argument.0))
        .env_clear()
        .envs(order.env.iter().map(|(name, value)| (&name.0, &value.0)))
        .current_dir(cwd)
        .stdin(if with_stdin { Stdio::piped() } else { Stdio::null() })
        .process_group(0);
    let spawned = match &order.confinement {
        None => command.spawn(),
        Some(confinement) => spawn_confined(&mut command, confinement)
            .map_err(|why| not_started(NotStarted::NotConfined, why))?,
    };
    let mut child = spawned.map_err(|error| could_not(&file, &error))?;
    let main = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let main =
        main.ok_or_else(|| not_started(NotStarted::Other, "the system gave no process id".to_owned()))?;
    Ok((main, child.stdin.take()))
}

/// Starts the program from a thread that is confined before; a process takes over what its starter was.
fn spawn_confined(
    command: &mut std::process::Command,
    confinement: &ConfinementOrder,
) -> Result<std::io::Result<std::process::Child>, String> {
    let paths = |texts: &[super::wire::OsText]| texts.iter().map(|text| PathBuf::from(&text.0)).collect();
    let (read, write): (Vec<PathBuf>, Vec<PathBuf>) = (paths(&confinement.read), paths(&confinement.write));
    let started = std::thread::scope(|scope| {
        let start = || confine_thread(confinement.layer, &read, &write).map(|()| command.spawn());
        scope.spawn(start).join()
    });
    started.map_err(|_| "the thread that confines broke off".to_owned())?
}

/// What the system said when it did not start the file.
fn could_not(file: &Path, error: &std::io::Error) -> ProgramEnd {
    const NO_FORMAT: Option<i32> = Some(rustix::io::Errno::NOEXEC.raw_os_error());
    let kind = match error.kind() {
        std::io::ErrorKind::NotFound => NotStarted::NotFound,
        std::io::ErrorKind::PermissionDenied => NotStarted::PermissionDenied,
        _ => NotStarted::Other,
    };
    let hint = match kind {
        NotStarted::NotFound => "; is the interpreter of its first line there?",
        _ if error.raw_os_error() == NO_FORMAT => "; a script needs a first line such as `#!/bin/sh`",
        _ => "",
    };
    ProgramEnd::NotStarted {
        kind,
        message: format!("{} could not be started: {error}{hint}", file.display()),
    }
}

/// The file that a program name stands for: below `cwd` if it has a slash, else in the directories of `path`.
///
/// # Errors
/// `NotFound` if there is none, `PermissionDenied` if what is there cannot be executed.
pub fn find_program(program: &OsStr, cwd: &Path, path: Option<&OsStr>) -> Result<PathBuf, NotStarted> {
    let candidates: Vec<PathBuf> = if program.as_bytes().contains(&b'/') {
        vec![cwd.join(program)]
    } else {
        let path = path.unwrap_or(OsStr::new("/usr/bin:/bin"));
        // As in `base_environment`: a relative entry would mean a file of the tree.
        path.as_bytes()
            .split(|byte| *byte == b':')
            .filter(|entry| entry.starts_with(b"/"))
            .map(|entry| Path::new(OsStr::from_bytes(entry)).join(program))
            .collect()
    };
    let mut kind = NotStarted::NotFound;
    for file in candidates {
        if file.is_file() {
            if rustix::fs::access(&file, rustix::fs::Access::EXEC_OK).is_ok() {
                return Ok(file);
            }
            kind = NotStarted::PermissionDenied;
        } else if file.is_dir() && program.as_bytes().contains(&b'/') {
            kind = NotStarted::PermissionDenied;
        }
    }
    Err(kind)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndCause {
    MainEnded,
    TimeUp,
    Unwanted,
    LauncherGone,
}

struct SupervisedRun<'a> {
    tree: Tree,
    main: Pid,
    main_descriptor: Option<OwnedFd>,
    input: Option<ChildStdin>,
    to_write: &'a [u8],
    socket: &'a UnixStream,
    started: Instant,
    timeout: Duration,
    grace: Duration,
}

impl<'a> SupervisedRun<'a> {
    fn new(
        order: &SupervisorOrder,
        main: Pid,
        input: Option<ChildStdin>,
        stdin: &'a [u8],
        socket: &'a UnixStream,
    ) -> Self {
        if let Some(pipe) = &input {
            // Cannot fail on a pipe; if it did, a program that does not read would only end by its time-out.
            let _ = rustix::io::ioctl_fionbio(pipe, true);
        }
        Self {
            tree: Tree::new(main),
            main,
            main_descriptor: rustix::process::pidfd_open(main, PidfdFlags::empty()).ok(),
            input,
            to_write: stdin,
            socket,
            started: Instant::now(),
            timeout: Duration::from_millis(order.timeout_ms),
            grace: Duration::from_millis(order.grace_ms),
        }
    }

    fn finish_run(mut self) -> Option<SupervisorAnswer> {
        let cause = self.watch_program();
        let mut duration = self.started.elapsed();
        self.input = None;
        let survivors = match cause {
            EndCause::MainEnded => self.tree.let_children_settle(),
            EndCause::TimeUp | EndCause::Unwanted => {
                ask_to_end(self.main);
                let children = self.tree.wait_for_all(self.grace);
                duration = self.started.elapsed();
                let alive = if children == Children::None { 0 } else { super::supervise::alive_below_us() };
                alive.saturating_sub(u32::from(self.tree.main_status().is_none()))
            }
            EndCause::LauncherGone => 0,
        };
        let unkillable = self.tree.kill_all();
        let end = match cause {
            EndCause::LauncherGone => return None,
            EndCause::TimeUp => ProgramEnd::TimedOut,
            EndCause::Unwanted => ProgramEnd::Stopped,
            EndCause::MainEnded => self.tree.main_status().map_or(ProgramEnd::SupervisorLost, end_of),
        };
        let duration_us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        Some(SupervisorAnswer { end, duration_us, survivors_killed: survivors, unkillable })
    }

    fn watch_program(&mut self) -> EndCause {
        loop {
            let children = self.tree.reap_children();
            if self.tree.main_status().is_some() || children == Children::None {
                return EndCause::MainEnded;
            }
            let left = self.timeout.saturating_sub(self.started.elapsed());
            if left.is_zero() {
                return EndCause::TimeUp;
            }
            let (socket, input) = self.wait_for_event(left);
            if let Some(cause) = socket {
                return cause;
            }
            if input {
                self.write_input();
            }
        }
    }

    /// Waits for something to do; returns what the socket says, and whether the program's input is ready.
    fn wait_for_event(&self, left: Duration) -> (Option<EndCause>, bool) {
        let mut descriptors = vec![PollFd::new(self.socket, PollFlags::IN)];
        if let Some(main) = &self.main_descriptor {
            descriptors.push(PollFd::new(main, PollFlags::IN));
        }
        let input: Option<BorrowedFd<'_>> = self.input.as_ref().map(|pipe| pipe.as_fd());
        if let Some(pipe) = input {
            descriptors.push(PollFd::from_borrowed_fd(pipe, PollFlags::OUT));
        }
        // Without a descriptor for the main process (a very old kernel) its end is looked for often.
        let interval = if self.main_descriptor.is_some() { REAP_INTERVAL } else { Duration::from_millis(10) };
        let timeout = Timespec::try_from(left.min(interval)).ok();
        if rustix::event::poll(&mut descriptors, timeout.as_ref()).is_err() {
            return (None, false);
        }
        let ready = |at: usize| descriptors.get(at).is_some_and(|one| !one.revents().is_empty());
        // Nothing follows the order, so what is readable is an end of file. Of a launcher that is dead both
        // directions are closed.
        let gone = |one: &PollFd<'_>| one.revents().intersects(PollFlags::HUP | PollFlags::ERR);
        let cause = || {
            if descriptors.first().is_some_and(gone) { EndCause::LauncherGone } else { EndCause::Unwanted }
        };
        (ready(0).then(cause), input.is_some() && ready(descriptors.len() - 1))
    }

    fn write_input(&mut self) {
        let Some(pipe) = &mut self.input else { return };
        match pipe.write(self.to_write) {
            Ok(written) => self.to_write = &self.to_write[written..],
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
            // The program does not want any more of it.
            Err(_) => self.to_write = &[],
        }
        if self.to_write.is_empty() {
            self.input = None;
        }
    }
}

fn end_of(status: WaitStatus) -> ProgramEnd {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => ProgramEnd::Exited(code),
        (None, Some(signal)) => ProgramEnd::Signalled(signal),
        (None, None) => ProgramEnd::SupervisorLost,
    }
}
