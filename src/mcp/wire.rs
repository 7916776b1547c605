//! The transport: lines in, lines out, and when the input counts as ended.
//!
//! What holds: the messages are handed on in the order of their arrival; every request is answered once,
//! under its own id; at the end of the input nothing ends until every request that came has its answer
//! written; a client that has gone, or a signal, ends it at once. Writing has a thread of its own, so that a
//! client that does not read cannot keep the rest from listening.
//!
//! What waits is bounded, by number and by bytes; the next request then has to wait, and the input behind it
//! is left unread. A call that was called off counts until whoever handles it has let go of it
//! ([`RequestSlot`]): its arguments are kept for as long, since it is still refused in the ledger.

use super::lines::InputLine;
use super::messages::{self, Heard};
use super::stop::{ServerStop, StopReason};
use rmcp::model::{ClientNotification, ClientRequest, RequestId};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::Serialize;
use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot, watch};

/// As many requests may wait for their answers; then the next one waits until one has its own, and what is
/// behind it is left unread.
const MOST_WAITING: usize = 1024;

/// Likewise once their lines have so many bytes together. What is kept of a line in memory is a multiple of
/// it.
const MOST_BYTES: usize = 16 << 20;

type Written = oneshot::Receiver<std::io::Result<()>>;

/// The two directions of one connection.
#[derive(Debug)]
pub struct McpTransport {
    lines: mpsc::Receiver<InputLine>,
    writer: MessageWriter,
    waiting: Waiting,
    stop: ServerStop,
    input_ended: InputEnd,
    /// The handshake has begun. Before it the SDK takes nothing but requests.
    opened: bool,
    /// An answer of our own that is being written.
    refusal: Option<Written>,
    /// A request that was read, and for which there may be no room yet, with the length of its line. Whoever
    /// receives may give up waiting and come again.
    next_request: Option<(Box<RxJsonRpcMessage<RoleServer>>, RequestId, usize)>,
}

impl McpTransport {
    /// Over lines that were read, and an output.
    pub fn new(
        lines: mpsc::Receiver<InputLine>,
        output: impl Write + Send + 'static,
        stop: ServerStop,
        input_ended: InputEnd,
    ) -> crate::error::Result<Self> {
        let writer = MessageWriter::start(output, stop.clone())?;
        Ok(Self {
            lines,
            writer,
            waiting: Waiting::new(),
            stop,
            input_ended,
            opened: false,
            refusal: None,
            next_request: None,
        })
    }

    async fn next(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Some(written) = &mut self.refusal {
                let _ = written.await;
                self.refusal = None;
            }
            if self.next_request.is_some() {
                self.waiting.until_there_is_room().await;
            }
            if let Some((mut message, id, bytes)) = self.next_request.take() {
                match self.admit(&mut message, Some(id), bytes) {
                    Ok(true) => return Some(*message),
                    Ok(false) => {}
                    Err(id) => self.refusal = Some(self.writer.push(&messages::twice(&id))),
                }
                continue;
            }
            let Some(line) = self.lines.recv().await else {
                self.input_ended.announce_end();
                self.waiting.until_none().await;
                return None;
            };
            let answer = match line {
                InputLine::TooLong(id) => messages::too_long(id),
                InputLine::Whole(line) => match messages::hear(&line) {
                    Heard::Nothing => continue,
                    Heard::Refused(answer) => answer,
                    Heard::Message(message, Some(id)) => {
                        self.next_request = Some((message, id, line.len()));
                        continue;
                    }
                    Heard::Message(mut message, None) => match self.admit(&mut message, None, 0) {
                        Ok(true) => return Some(*message),
                        Ok(false) | Err(_) => continue,
                    },
                },
            };
            self.refusal = Some(self.writer.push(&answer));
        }
    }

    /// Whether a message is handed on; `Err` where its id is taken.
    fn admit(
        &mut self,
        message: &mut RxJsonRpcMessage<RoleServer>,
        id: Option<RequestId>,
        bytes: usize,
    ) -> Result<bool, RequestId> {
        match message {
            RxJsonRpcMessage::<RoleServer>::Request(request) => {
                self.opened |= opens(&request.request);
                let Some(id) = id else { return Ok(true) };
                if !self.waiting.add(&id, bytes) {
                    return Err(id);
                }
                if let ClientRequest::CallToolRequest(call) = &mut request.request {
                    call.extensions.insert(Arc::new(self.waiting.hold(&id)));
                }
                return Ok(true);
            }
            RxJsonRpcMessage::<RoleServer>::Notification(told) => {
                // The SDK answers nothing any more where a request was called off.
                if let ClientNotification::CancelledNotification(cancelled) = &told.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.waiting.call_off(id);
                }
            }
            _ => {}
        }
        Ok(self.opened)
    }
}

/// Whether a request begins a session: the handshake, or since 2026-07-28 any but a probe that says all about
/// itself.
fn opens(request: &ClientRequest) -> bool {
    use rmcp::model::{GetMeta, ProtocolVersion};
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        other => other.get_meta().missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty(),
    }
}

impl Transport<RoleServer> for McpTransport {
    type Error = std::io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = std::io::Result<()>> + Send + 'static {
        let id = match &message {
            TxJsonRpcMessage::<RoleServer>::Response(response) => Some(response.id.clone()),
            TxJsonRpcMessage::<RoleServer>::Error(error) => error.id.clone(),
            _ => None,
        };
        // It takes its place in the line now, not when somebody waits for it.
        let written = self.writer.push(&message);
        let waiting = self.waiting.clone();
        async move {
            let result = written.await.unwrap_or_else(|_| Err(std::io::ErrorKind::BrokenPipe.into()));
            if let Some(id) = id {
                waiting.remove(&id);
            }
            result
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let stop = self.stop.clone();
        tokio::select! {
            biased;
            _ = stop.asked() => None,
            message = self.next() => message,
        }
    }

    async fn close(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Says when nothing more will be heard: whoever waits for the client to say something waits in vain from
/// then on.
#[derive(Debug, Clone, Default)]
pub struct InputEnd(Arc<watch::Sender<bool>>);

impl InputEnd {
    fn announce_end(&self) {
        self.0.send_replace(true);
    }

    pub async fn wait_for_end(&self) {
        let _ = self.0.subscribe().wait_for(|ended| *ended).await;
    }
}

/// The requests that have no answer yet, or whose calls are still kept by somebody.
#[derive(Debug, Clone)]
struct Waiting(Arc<watch::Sender<WaitingRequests>>);

#[derive(Debug, Default)]
struct WaitingRequests {
    known: HashMap<RequestId, WaitingRequest>,
    bytes: usize,
    /// How many there have been, so that one is told from a later one with its id.
    made: u64,
}

#[derive(Debug)]
struct WaitingRequest {
    number: u64,
    bytes: usize,
    /// Its call is kept by whoever handles it.
    is_held: bool,
    /// There will be no answer.
    is_off: bool,
}

/// A call's place among the requests that wait. It goes with the call, and is given back once that is dropped
/// and no answer can come.
#[derive(Debug)]
struct RequestSlot {
    waiting: Waiting,
    id: RequestId,
    number: u64,
}

impl Drop for RequestSlot {
    fn drop(&mut self) {
        self.waiting.let_go(&self.id, self.number);
    }
}

impl Waiting {
    fn new() -> Self {
        Self(Arc::new(watch::Sender::new(WaitingRequests::default())))
    }

    /// False where the id is taken.
    fn add(&self, id: &RequestId, bytes: usize) -> bool {
        self.0.send_if_modified(|requests| {
            if requests.known.contains_key(id) {
                return false;
            }
            requests.made += 1;
            requests.bytes += bytes;
            let request = WaitingRequest { number: requests.made, bytes, is_held: false, is_off: false };
            requests.known.insert(id.clone(), request);
            true
        })
    }

    /// For a request that was just added.
    fn hold(&self, id: &RequestId) -> RequestSlot {
        let mut number = 0;
        self.0.send_modify(|requests| {
            if let Some(request) = requests.known.get_mut(id) {
                request.is_held = true;
                number = request.number;
            }
        });
        RequestSlot { waiting: self.clone(), id: id.clone(), number }
    }

    fn remove(&self, id: &RequestId) {
        self.0.send_if_modified(|requests| requests.remove(id));
    }

    /// Its client wants no answer, and none will be written.
    fn call_off(&self, id: &RequestId) {
        self.0.send_if_modified(|requests| match requests.known.get_mut(id) {
            Some(request) if request.is_held => {
                request.is_off = true;
                false
            }
            _ => requests.remove(id),
        });
    }

    fn let_go(&self, id: &RequestId, number: u64) {
        self.0.send_if_modified(|requests| match requests.known.get_mut(id) {
            Some(request) if request.number == number && request.is_off => requests.remove(id),
            Some(request) if request.number == number => {
                request.is_held = false;
                false
            }
            _ => false,
        });
    }

    async fn until_there_is_room(&self) {
        let has_room =
            |requests: &WaitingRequests| requests.known.len() < MOST_WAITING && requests.bytes < MOST_BYTES;
        let _ = self.0.subscribe().wait_for(has_room).await;
    }

    async fn until_none(&self) {
        let _ = self.0.subscribe().wait_for(|requests| requests.known.is_empty()).await;
    }
}

impl WaitingRequests {
    fn remove(&mut self, id: &RequestId) -> bool {
        let removed = self.known.remove(id);
        self.bytes -= removed.as_ref().map_or(0, |request| request.bytes);
        removed.is_some()
    }
}

/// Writes one message after the other.
#[derive(Debug)]
struct MessageWriter(std::sync::mpsc::Sender<(Vec<u8>, oneshot::Sender<std::io::Result<()>>)>);

impl MessageWriter {
    fn start(mut output: impl Write + Send + 'static, stop: ServerStop) -> crate::error::Result<Self> {
        let (give, messages) = std::sync::mpsc::channel::<(Vec<u8>, oneshot::Sender<_>)>();
        super::start_thread(move || {
            for (message, done) in messages {
                let result = output.write_all(&message).and_then(|()| output.flush());
                if result.is_err() {
                    stop.ask_to_end(StopReason::Gone);
                }
                let _ = done.send(result);
            }
        })?;
        Ok(Self(give))
    }

    fn push(&self, message: &impl Serialize) -> Written {
        let (done, written) = oneshot::channel();
        match serde_json::to_vec(message) {
            Ok(mut line) => {
                line.push(b'\n');
                let _ = self.0.send((line, done));
            }
            Err(error) => drop(done.send(Err(error.into()))),
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::sync::Mutex;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("a lock").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl Kept {
        fn lines(&self) -> Vec<Value> {
            let bytes = self.0.lock().expect("a lock");
            let lines = bytes.split(|b| *b == b'\n').filter(|line| !line.is_empty());
            lines.map(|line| serde_json::from_slice(line).expect("JSON")).collect()
        }
    }

    fn wire(lines: Vec<InputLine>) -> (McpTransport, Kept) {
        let (give, taken) = mpsc::channel(64);
        for line in lines {
            give.try_send(line).expect("room");
        }
        let kept = Kept::default();
        (
            McpTransport::new(taken, kept.clone(), ServerStop::new(), InputEnd::default()).expect("starts"),
            kept,
        )
    }

    fn line(value: Value) -> InputLine {
        InputLine::Whole(value.to_string().into_bytes())
    }

    fn ping(id: i64) -> InputLine {
        line(json!({"jsonrpc":"2.0","id":id,"method":"ping"}))
    }

    fn answer(id: i64) -> TxJsonRpcMessage<RoleServer> {
        TxJsonRpcMessage::<RoleServer>::response(rmcp::model::ServerResult::empty(()), RequestId::Number(id))
    }

    fn run<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime").block_on(work)
    }

    #[test]
    fn the_input_has_not_ended_before_every_request_has_its_answer() {
        run(async {
            let (mut wire, kept) = wire(vec![ping(1), ping(2)]);
            assert!(wire.receive().await.is_some() && wire.receive().await.is_some());
            let first = wire.send(answer(1));
            first.await.expect("written");
            let short = std::time::Duration::from_millis(50);
            assert!(tokio::time::timeout(short, wire.receive()).await.is_err(), "one is not answered");
            let second = wire.send(answer(2));
            second.await.expect("written");
            assert!(wire.receive().await.is_none());
            assert_eq!(kept.lines().len(), 2);
        });
    }

    #[test]
    fn a_request_that_was_called_off_is_not_waited_for() {
        run(async {
            let off = json!({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}});
            let (mut wire, _) = wire(vec![ping(1), line(off)]);
            wire.opened = true;
            assert!(wire.receive().await.is_some() && wire.receive().await.is_some());
            assert!(wire.receive().await.is_none());
        });
    }

    /// A loop of large calls that are called off at once, while none of them is looked at.
    #[test]
    fn calls_that_were_called_off_are_bounded_until_they_are_let_go() {
        run(async {
            let call = |id: i64| {
                line(
                    json!({"jsonrpc":"2.0","id":id,"method":"tools/call","params":{"name":"x","arguments":{"a": "y".repeat(7 << 20)}}}),
                )
            };
            let off = |id: i64| {
                line(json!({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":id}}))
            };
            let lines = (1..=6).flat_map(|id| [call(id), off(id)]).collect();
            let (mut wire, _) = wire(lines);
            wire.opened = true;
            let mut kept = Vec::new();
            let short = std::time::Duration::from_millis(500);
            while let Ok(Some(message)) = tokio::time::timeout(short, wire.receive()).await {
                kept.push(message);
            }
            assert_eq!(kept.len(), 6, "three calls and their ends: then there is no room");
            kept.clear();
            for _ in 0..6 {
                assert!(wire.receive().await.is_some(), "the other three, each let go at once");
            }
            assert!(wire.receive().await.is_none(), "nobody waits for any of them");
        });
    }

    #[test]
    fn an_id_that_is_taken_is_refused_and_the_first_request_keeps_its_answer() {
        run(async {
            let (mut wire, kept) = wire(vec![ping(1), ping(1), ping(2)]);
            assert!(wire.receive().await.is_some() && wire.receive().await.is_some());
            let lines = kept.lines();
            assert_eq!((lines.len(), &lines[0]["id"]), (1, &Value::Null));
            assert_eq!(lines[0]["error"]["code"], -32600);
        });
    }

    #[test]
    fn what_cannot_be_handled_is_answered_and_the_next_line_is_read() {
        run(async {
            let told = json!({"jsonrpc":"2.0","method":"notifications/initialized"});
            let garbage = InputLine::Whole(b"garbage".to_vec());
            let (mut wire, kept) =
                wire(vec![garbage, InputLine::TooLong(Some(json!(9))), line(told), ping(3)]);
            let heard = wire.receive().await.expect("the request");
            assert!(
                matches!(heard, RxJsonRpcMessage::<RoleServer>::Request(_)),
                "before the handshake: {heard:?}"
            );
            let ids: Vec<Value> = kept.lines().iter().map(|line| line["id"].clone()).collect();
            assert_eq!(ids, [Value::Null, json!(9)]);
        });
    }

    #[test]
    fn a_reason_to_stop_ends_it_at_once() {
        run(async {
            let (mut wire, _) = wire(vec![ping(1), ping(2)]);
            assert!(wire.receive().await.is_some());
            wire.stop.ask_to_end(StopReason::Gone);
            assert!(wire.receive().await.is_none());
        });
    }
}
