//! A task's tools over the Model Context Protocol: `git tender mcp`.
//!
//! One server is one worker of one task. It owns a connection (lines of JSON-RPC), and the gate's door;
//! everything that a tool may or may not do is the gate's.
//!
//! Two threads matter. The caller's runs the calls, one after the other, and owns the door: it may block for
//! as long as a verifier runs. The other has the protocol's runtime: it hears a cancellation, answers a ping
//! or lists tools meanwhile. What holds:
//! - calls run in the order of their arrival; one that is called off while it waits never runs, and is
//!   refused in the ledger like any other;
//! - at the end of the input every call that came is still run and answered;
//! - once nobody reads any more, or a signal came, the running call is told to stop, and those that wait
//!   never run;
//! - nothing is written to the output but messages of the protocol.

mod answers;
mod elicit;
mod lines;
mod messages;
mod server;
mod stop;
mod wire;

use crate::error::{Failure, Result};
use crate::ops::gate::{CallControl, Door};
use crate::ops::{Session, report};
use crate::render::brief_text;
use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use server::{ProgressStep, QueuedCall, Server, ToolShelf, WorkerJob};
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc;
use std::thread::JoinHandle;
use stop::{ServerStop, StopReason};
use wire::InputEnd;

/// The two ends of a connection.
#[derive(Debug)]
pub struct Channel {
    pub input: File,
    pub output: File,
}

#[derive(Debug)]
pub struct ServerEnd {
    /// The exit code of the process: 0 where the client has gone, 128 and the number of a signal.
    pub code: u8,
    /// What went wrong once the protocol had begun. The output is the protocol's, so it can only be told
    /// elsewhere.
    pub failure: Option<Failure>,
}

/// Serves a task's tools until the client ends. Fails before anything was read or written, or not at all.
pub fn serve(session: &Session, named: Option<&str>, channel: Channel) -> Result<ServerEnd> {
    let mut door = Door::open(session, named)?;
    let shelf = ToolShelf::default();
    show_present_tools(&door, &shelf)?;
    let brief = brief_text(&report::brief(session, named)?.for_instructions());
    let instructions = answers::instructions(&brief, &door.tools()?);
    let stop = ServerStop::new();
    let failed = |e: std::io::Error| Failure::internal(format!("the connection cannot be set up: {e}"));
    stop.watch(channel.output.try_clone().map_err(failed)?)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(failed)?;
    let (give, jobs) = mpsc::channel();
    let input_ended = InputEnd::default();
    let server = Server::new(give, shelf.clone(), instructions, input_ended.clone());
    let ending = stop.clone();
    let protocol =
        start_thread(move || runtime.block_on(run_protocol(server, channel, ending, input_ended)))?;
    let broken = run_jobs(&mut door, &jobs, &stop, &shelf);
    let spoken =
        protocol.join().unwrap_or_else(|_| Err(Failure::internal("the protocol's thread broke off")));
    let failure = broken.or(spoken.err());
    let code = match (&failure, stop.reason()) {
        (Some(failure), _) => failure.exit_code(),
        (None, Some(StopReason::Signal(number))) => 128 + number,
        (None, _) => 0,
    };
    Ok(ServerEnd { code, failure })
}

/// A thread of the server's; the system may refuse one.
fn start_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<JoinHandle<T>> {
    std::thread::Builder::new()
        .spawn(work)
        .map_err(|e| Failure::io("start", Path::new("a thread of the server"), &e))
}

/// The protocol's side, until the connection has ended. The line to the worker ends with it.
async fn run_protocol(
    server: Server,
    channel: Channel,
    stop: ServerStop,
    input_ended: InputEnd,
) -> Result<()> {
    let wire = wire::McpTransport::new(lines::read_lines(channel.input)?, channel.output, stop, input_ended)?;
    let failed = |text: String| Failure::internal(format!("the protocol broke off: {text}"));
    match server.serve(wire).await {
        Ok(running) => running.waiting().await.map(drop).map_err(|e| failed(e.to_string())),
        // Who connects and goes again without a word does no harm; nor does one whose handshake was refused:
        // it was told why.
        Err(
            ServerInitializeError::ConnectionClosed(_)
            | ServerInitializeError::TransportError { .. }
            | ServerInitializeError::InitializeFailed(_),
        ) => Ok(()),
        Err(error) => Err(failed(error.to_string())),
    }
}

/// The worker's side: job after job, until the protocol's side has ended. Gives the failure where a call
/// broke off by our fault.
fn run_jobs(
    door: &mut Door<'_>,
    jobs: &mpsc::Receiver<WorkerJob>,
    stop: &ServerStop,
    shelf: &ToolShelf,
) -> Option<Failure> {
    let mut broken = None;
    for job in jobs {
        match job {
            WorkerJob::Call(call, looked) => {
                broken = broken.or_else(|| run_queued_call(door, call, stop));
                // A person may have agreed to other tools; an old list is no reason to end.
                let changed = show_present_tools(door, shelf).unwrap_or(false);
                shelf.done();
                let _ = looked.send(changed);
            }
            WorkerJob::Hint(hint, kept) => {
                let wants_to_stop = || stop.reason().is_some();
                let line = CallControl { wants_to_stop: &wants_to_stop, progress: &|_, _, _| {} };
                let _ = kept.send(door.hint(&hint, &line).ok().flatten());
                shelf.done();
            }
            WorkerJob::List(looked) => {
                let _ = show_present_tools(door, shelf);
                shelf.done();
                let _ = looked.send(());
            }
        }
    }
    broken
}

/// Runs one call, unless the server ends. What its client has called off meanwhile the gate refuses.
fn run_queued_call(door: &mut Door<'_>, call: QueuedCall, stop: &ServerStop) -> Option<Failure> {
    let QueuedCall { called, is_off, progress, reply } = call;
    let is_unwanted = || stop.reason().is_some() || is_off();
    if stop.reason().is_some() {
        return None;
    }
    let report = |done: u64, total: u64, what: &str| {
        let _ = progress.try_send(ProgressStep { done, total, what: what.to_owned() });
    };
    let line = CallControl { wants_to_stop: &is_unwanted, progress: &report };
    let answer = catch_unwind(AssertUnwindSafe(|| door.call(&called.name, &called.arguments, &line)));
    if let Ok(answer) = answer {
        let _ = reply.send(answer);
        return None;
    }
    // What the door knows is not to be trusted any more; the next server reads it anew from the ledger.
    let failure = Failure::internal(format!("a call of {} broke off", called.name));
    let _ = reply.send(answers::broken_off(&failure));
    stop.ask_to_end(StopReason::Fault);
    Some(failure)
}

/// Puts up the tools that there are now. True where they are others than before.
fn show_present_tools(door: &Door<'_>, shelf: &ToolShelf) -> Result<bool> {
    Ok(shelf.show(door.tools()?.iter().map(answers::tool).collect()))
}
