//! A client of a few lines that speaks the protocol itself: it can send what no well-behaved client would, all at once, and
//! go away at any moment.

use crate::clients::serve;
use crate::support::Repo;
use crate::support::lab::TENDER;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// What a client says before anything else, and once it was answered.
pub fn greeting() -> [Value; 2] {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
                        "clientInfo": {"name": "wire", "version": "1"}});
    [
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ]
}

/// Longer than anything here takes; what is not there by then hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server and the only client that it has.
pub struct Wire {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    /// What came and was not asked for yet.
    messages: Vec<Value>,
    next: i64,
}

/// What a call was answered.
#[derive(Debug, Clone)]
pub struct Reply(pub Value);

impl Wire {
    /// Starts a server for the task and greets it.
    #[track_caller]
    pub fn start(repo: &Repo<'_>, task: &str) -> Self {
        let mut wire = Self::silent(repo, task);
        let [hello, thanks] = greeting();
        wire.send(&hello);
        let answer = wire.answer(0);
        assert!(answer["result"]["capabilities"]["tools"].is_object(), "{answer:#}");
        wire.send(&thanks);
        wire
    }

    /// Starts a server and says nothing.
    #[track_caller]
    pub fn silent(repo: &Repo<'_>, task: &str) -> Self {
        let mut command = repo.lab.command(TENDER, &repo.lab.path("home"));
        command.args(serve(repo, task)).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("starts");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        Self { child, input, lines, messages: Vec::new(), next: 0 }
    }

    /// Writes these bytes as they are; a server that has ended does not read them.
    pub fn raw(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("open");
        let _ = input.write_all(bytes).and_then(|()| input.flush());
    }

    pub fn send(&mut self, message: &Value) {
        self.raw(format!("{message}\n").as_bytes());
    }

    fn request(&mut self, method: &str, params: Value) -> (i64, Value) {
        self.next += 1;
        (self.next, json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}))
    }

    /// Sends a request and gives its id.
    pub fn ask(&mut self, method: &str, params: Value) -> i64 {
        let (id, message) = self.request(method, params);
        self.send(&message);
        id
    }

    /// Sends a call and does not wait for its answer.
    pub fn begin(&mut self, tool: &str, arguments: Value) -> i64 {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// The next message that fits, now or earlier; `None` where the server ended before.
    fn message(&mut self, fits: impl Fn(&Value) -> bool) -> Option<Value> {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(place) = self.messages.iter().position(&fits) {
                return Some(self.messages.remove(place));
            }
            let left = end.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    let message = serde_json::from_str(&line);
                    self.messages
                        .push(message.unwrap_or_else(|_| panic!("stdout is not the protocol: {line}")));
                }
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return None,
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("no answer within {PATIENCE:?}"),
            }
        }
    }

    /// The answer to a request.
    #[track_caller]
    pub fn answer(&mut self, id: i64) -> Value {
        self.message(|message| message["id"] == id).expect("the server answers before it ends")
    }

    /// Waits for the answer to a call.
    #[track_caller]
    pub fn reply(&mut self, id: i64) -> Reply {
        Reply::of(self.answer(id))
    }

    #[track_caller]
    pub fn call(&mut self, tool: &str, arguments: Value) -> Reply {
        let id = self.begin(tool, arguments);
        self.reply(id)
    }

    /// Several calls in one write; their answers in the order of the calls.
    #[track_caller]
    pub fn burst(&mut self, calls: &[(&str, Value)]) -> Vec<Reply> {
        let mut bytes = Vec::new();
        let mut ids = Vec::new();
        for (tool, arguments) in calls {
            let (id, message) = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
            ids.push(id);
            bytes.extend_from_slice(format!("{message}\n").as_bytes());
        }
        self.raw(&bytes);
        ids.into_iter().map(|id| self.reply(id)).collect()
    }

    /// Closes its input, as a client does that has no more to say.
    pub fn shut(&mut self) {
        drop(self.input.take());
    }

    /// Closes its input and waits for the end.
    #[track_caller]
    pub fn close(mut self) -> ExitStatus {
        self.shut();
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("waits") {
                return status;
            }
            assert!(Instant::now() < end, "the server does not end with its input");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// SIGKILL for the server.
    pub fn kill(mut self) {
        self.child.kill().expect("lives");
        self.child.wait().expect("waits");
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Reply {
    /// Checks the form of an answer: one object, as structure and as text, and marked where it is a failure.
    #[track_caller]
    fn of(answer: Value) -> Self {
        if answer.get("error").is_some() {
            return Self(answer);
        }
        let result = &answer["result"];
        let said = &result["structuredContent"];
        assert!(said.is_object(), "no structure in {answer:#}");
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        assert_eq!(
            &serde_json::from_str::<Value>(text).unwrap_or_default(),
            said,
            "the text is another: {answer:#}"
        );
        assert_eq!(said.get("error").is_some(), result["isError"] == true, "{answer:#}");
        Self(answer)
    }

    /// What the tool said.
    pub fn said(&self) -> &Value {
        &self.0["result"]["structuredContent"]
    }

    /// The code of the tool's failure; `-32602` and the like where the protocol itself refused; empty for a result.
    pub fn code(&self) -> String {
        match (&self.0["error"]["code"], &self.said()["error"]["code"]) {
            (Value::Number(number), _) => number.to_string(),
            (_, Value::String(code)) => code.clone(),
            _ => String::new(),
        }
    }

    #[track_caller]
    pub fn ok(&self) -> &Value {
        assert_eq!(self.code(), "", "{:#}", self.0);
        self.said()
    }

    #[track_caller]
    pub fn fails(&self, code: &str) -> &Value {
        assert_eq!(self.code(), code, "{:#}", self.0);
        &self.said()["error"]
    }
}
