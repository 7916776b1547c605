//! The protocol's side: what a client may ask for, handed to the one worker, and the answers handed back.
//!
//! Calls are put in the worker's line when their request is first looked at. The runtime has one thread and
//! starts its tasks in the order in which they were made, so that is the order of arrival. Nothing here waits
//! for a call but the request it belongs to.

use super::messages::McpCall;
use super::wire::InputEnd;
use super::{answers, elicit};
use crate::domain::ledger::inquiries::HintObject;
use crate::domain::worker::inquiry::Hint;
use crate::error::Failure;
use crate::ops::gate::GateAnswer;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorData, Implementation, ListToolsResult,
    PaginatedRequestParams, ProgressNotificationParam, ProgressToken, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{Peer, RequestContext, RoleServer};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{mpsc, oneshot};

/// What the worker has to do.
pub enum WorkerJob {
    /// A call of a tool; after it, say whether there are other tools than before.
    Call(QueuedCall, oneshot::Sender<bool>),
    /// Keep what the user said through the client; gives it back as it was kept.
    Hint(Hint, oneshot::Sender<Option<HintObject>>),
    /// Look again which tools there are, then say so.
    List(oneshot::Sender<()>),
}

/// One call on its way to the gate.
pub struct QueuedCall {
    pub called: Arc<McpCall>,
    /// Whether the client has called it off.
    pub is_off: Box<dyn Fn() -> bool + Send + Sync>,
    /// Where progress goes; it may be dropped where the client is slow.
    pub progress: mpsc::Sender<ProgressStep>,
    /// Where the answer goes; dropped where there is none.
    pub reply: oneshot::Sender<GateAnswer>,
}

#[derive(Debug)]
pub struct ProgressStep {
    pub done: u64,
    pub total: u64,
    pub what: String,
}

/// The tools as they were when the worker last looked, and how many jobs it has.
#[derive(Debug, Clone, Default)]
pub struct ToolShelf {
    tools: Arc<Mutex<Vec<Tool>>>,
    jobs: Arc<AtomicUsize>,
}

impl ToolShelf {
    /// Puts the present tools up. True where they are others than before.
    pub fn show(&self, tools: Vec<Tool>) -> bool {
        let mut shown = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = *shown != tools;
        *shown = tools;
        changed
    }

    /// The worker is done with a job.
    pub fn done(&self) {
        self.jobs.fetch_sub(1, Ordering::SeqCst);
    }

    fn tools(&self) -> Vec<Tool> {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn is_idle(&self) -> bool {
        self.jobs.load(Ordering::SeqCst) == 0
    }
}

/// The handler of one connection.
pub struct Server {
    jobs: std::sync::mpsc::Sender<WorkerJob>,
    shelf: ToolShelf,
    config: ServerConfig,
    input_ended: InputEnd,
}

impl Server {
    /// Hands its calls to `jobs`; says `instructions` to who connects.
    pub fn new(
        jobs: std::sync::mpsc::Sender<WorkerJob>,
        shelf: ToolShelf,
        instructions: String,
        input_ended: InputEnd,
    ) -> Self {
        let program = Implementation::new("git-tender", env!("CARGO_PKG_VERSION")).with_title("git-tender");
        let config = ServerConfig::new(
            ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build(),
        )
        .with_server_info(program)
        .with_instructions(instructions);
        Self { jobs, shelf, config, input_ended }
    }

    /// Puts a question that was just recorded to the user, as long as the client wants the answer to its call
    /// and can still say something.
    async fn elicit(&self, called: &McpCall, answer: &mut GateAnswer, context: &RequestContext<RoleServer>) {
        let Some(id) = elicit::recorded(called, answer) else { return };
        let hint = tokio::select! {
            biased;
            hint = elicit::ask_through_client(&context.peer, called, &id) => hint,
            () = context.ct.cancelled() => None,
            () = self.input_ended.wait_for_end() => None,
        };
        let Some(hint) = hint else { return };
        let (keep, kept) = oneshot::channel();
        if self.give(WorkerJob::Hint(hint, keep)).is_err() {
            return;
        }
        if let (Ok(Some(hint)), Ok(Value::Object(fields))) = (kept.await, &mut answer.result) {
            fields.insert("hint".to_owned(), json!(hint));
        }
    }

    fn give(&self, job: WorkerJob) -> Result<(), ErrorData> {
        self.shelf.jobs.fetch_add(1, Ordering::SeqCst);
        self.jobs.send(job).map_err(|_| ended())
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        self.config.clone()
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        // An amendment may have been answered since. While a call runs nobody can look, and the last list has
        // to do.
        if self.shelf.is_idle() {
            let (tell, looked) = oneshot::channel();
            self.give(WorkerJob::List(tell))?;
            let _ = looked.await;
        }
        Ok(ListToolsResult::with_all_items(self.shelf.tools()))
    }

    async fn call_tool(
        &self,
        _request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let called = context.extensions.get::<Arc<McpCall>>().cloned();
        let called = called.ok_or_else(|| ErrorData::internal_error("the call was lost on its way", None))?;
        let cancellation = context.ct.clone();
        let (progress, steps) = mpsc::channel(16);
        let (reply, answer) = oneshot::channel();
        let (looked, changed) = oneshot::channel();
        let is_off = Box::new(move || cancellation.is_cancelled());
        self.give(WorkerJob::Call(
            QueuedCall { called: Arc::clone(&called), is_off, progress, reply },
            looked,
        ))?;
        tell_of_other_tools(context.peer.clone(), changed);
        let answer = match context.meta.get_progress_token() {
            Some(token) => accompanied(answer, steps, &context.peer, token).await,
            None => answer.await.ok(),
        };
        let mut answer = answer.ok_or_else(ended)?;
        self.elicit(&called, &mut answer, &context).await;
        Ok(answers::result(answer).into())
    }
}

/// Tells the client once a call has shown that there are other tools by now. Without a handshake nobody wants
/// to be told.
fn tell_of_other_tools(client: Peer<RoleServer>, changed: oneshot::Receiver<bool>) {
    tokio::spawn(async move {
        if changed.await == Ok(true) && client.peer_info().is_some() {
            let _ = client.notify_tool_list_changed().await;
        }
    });
}

/// Waits for the answer and passes on the progress until then. A client that does not take it in holds up
/// nothing but the reports.
async fn accompanied(
    mut answer: oneshot::Receiver<GateAnswer>,
    mut steps: mpsc::Receiver<ProgressStep>,
    client: &Peer<RoleServer>,
    token: ProgressToken,
) -> Option<GateAnswer> {
    let mut last = None;
    loop {
        let step = tokio::select! {
            biased;
            Some(step) = steps.recv() => step,
            answer = &mut answer => return answer.ok(),
        };
        // The protocol wants every report to be further on than the one before.
        if last.is_some_and(|last| step.done <= last) {
            continue;
        }
        last = Some(step.done);
        let mut report = ProgressNotificationParam::new(token.clone(), as_float(step.done));
        report.total = (step.total > 0).then(|| as_float(step.total));
        report.message = Some(step.what);
        let _ = client.notify_progress(report).await;
    }
}

#[expect(clippy::cast_precision_loss, reason = "a count of steps is far from 2^52")]
fn as_float(count: u64) -> f64 {
    count as f64
}

/// Seen by nobody but a client whose call came while the server was on its way out.
fn ended() -> ErrorData {
    let failure = Failure::new(crate::error::Code::Cancelled, "the server is ending; this call did not run");
    ErrorData::internal_error(failure.message().to_owned(), serde_json::to_value(&failure).ok())
}
