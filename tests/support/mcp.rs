//! A client of the Model Context Protocol that knows nothing of the program's code: lines of JSON over two
//! pipes, a deadline for everything.

use super::{Lab, Out, Repo};
use rustix::event::{PollFd, PollFlags, poll};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Long enough for a machine with much else to do.
const PATIENCE: Duration = Duration::from_secs(120);

/// One running server and what it has said so far.
pub struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    reader: Option<JoinHandle<()>>,
    deaf: Arc<AtomicBool>,
    errors: Option<JoinHandle<Vec<u8>>>,
    next: i64,
    /// What was said and not yet asked for, in its order.
    pub heard: Vec<Value>,
}

/// What a call gave: `structuredContent`, and whether it is an error.
#[derive(Debug)]
pub struct Reply {
    /// The whole result.
    pub result: Value,
}

impl Client {
    /// Starts `git tender mcp ARGS` and says nothing.
    pub fn start(repo: &Repo<'_>, args: &[&str]) -> Self {
        Self::start_in(repo.lab, &repo.path, &[], args)
    }

    /// In a folder, with variables. Without a session of its own: a signal has to reach the program itself.
    pub fn start_in(lab: &Lab, cwd: &std::path::Path, env: &[(&str, &str)], args: &[&str]) -> Self {
        let mut command = lab.command(super::lab::TENDER, cwd);
        command.arg("mcp").args(args).envs(env.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("starts");
        let (give, lines) = channel();
        let stdout = child.stdout.take().expect("piped");
        let deaf = Arc::new(AtomicBool::new(false));
        let ears = Arc::clone(&deaf);
        let reader = std::thread::spawn(move || listen(stdout, &give, &ears));
        let mut stderr = child.stderr.take().expect("piped");
        let errors = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = stderr.read_to_end(&mut bytes);
            bytes
        });
        let stdin = child.stdin.take();
        Self {
            child,
            stdin,
            lines,
            reader: Some(reader),
            deaf,
            errors: Some(errors),
            next: 0,
            heard: Vec::new(),
        }
    }

    /// Starts a server for a task and shakes hands.
    #[track_caller]
    pub fn open(repo: &Repo<'_>, task: &str) -> Self {
        let mut client = Self::start(repo, &[task]);
        client.initialize();
        client
    }

    /// The handshake; its result.
    #[track_caller]
    pub fn initialize(&mut self) -> Value {
        self.initialize_with(json!({}))
    }

    /// The handshake of a client with capabilities; its result.
    #[track_caller]
    pub fn initialize_with(&mut self, capabilities: Value) -> Value {
        let client = json!({"name": "test", "version": "1"});
        let params =
            json!({"protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": client});
        let id = self.request("initialize", params);
        let result = self.answer(id)["result"].clone();
        self.notify("notifications/initialized", json!({}));
        result
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends bytes as they are. A server that has gone does not read them.
    pub fn send_raw(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("the input is open");
        let _ = stdin.write_all(bytes).and_then(|()| stdin.flush());
    }

    pub fn send(&mut self, message: &Value) {
        self.send_raw(format!("{message}\n").as_bytes());
    }

    /// A request under the next number.
    pub fn request(&mut self, method: &str, params: Value) -> i64 {
        self.next += 1;
        let id = self.next;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Asks for a call and does not wait.
    pub fn begin(&mut self, tool: &str, arguments: Value) -> i64 {
        self.request("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// Asks for several calls in one write.
    pub fn burst(&mut self, calls: &[(&str, Value)]) -> Vec<i64> {
        let mut bytes = Vec::new();
        let mut ids = Vec::new();
        for (tool, arguments) in calls {
            self.next += 1;
            let call = json!({"jsonrpc": "2.0", "id": self.next, "method": "tools/call",
                "params": {"name": tool, "arguments": arguments}});
            bytes.extend_from_slice(format!("{call}\n").as_bytes());
            ids.push(self.next);
        }
        self.send_raw(&bytes);
        ids
    }

    pub fn cancel(&mut self, id: i64) {
        self.notify("notifications/cancelled", json!({"requestId": id, "reason": "a test"}));
    }

    /// A call and what it gave.
    #[track_caller]
    pub fn call(&mut self, tool: &str, arguments: Value) -> Reply {
        let id = self.begin(tool, arguments);
        self.reply(id)
    }

    #[track_caller]
    pub fn reply(&mut self, id: i64) -> Reply {
        let answer = self.answer(id);
        assert!(answer["result"].is_object(), "no result: {answer:#}");
        Reply { result: answer["result"].clone() }
    }

    /// The answer to a request; what else comes meanwhile is kept in `heard`.
    #[track_caller]
    pub fn answer(&mut self, id: impl Into<Value>) -> Value {
        let id = id.into();
        self.wait_for(&format!("an answer to {id}"), |said| {
            said.get("id") == Some(&id) && said.get("method").is_none()
        })
    }

    /// The next message of a kind, taken out of what was said.
    #[track_caller]
    pub fn wait_for(&mut self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + PATIENCE;
        let mut looked = 0;
        loop {
            if let Some(at) = self.heard[looked..].iter().position(&is_it) {
                return self.heard.remove(looked + at);
            }
            looked = self.heard.len();
            match self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) => self.heard.push(said(&line)),
                Err(RecvTimeoutError::Timeout) => panic!("{what} does not come; heard {:#?}", self.heard),
                Err(RecvTimeoutError::Disconnected) => {
                    let complaint = self.complaint();
                    panic!("the server ended before {what}; heard {:#?}; {complaint}", self.heard)
                }
            }
        }
    }

    fn complaint(&mut self) -> String {
        let bytes = self.errors.take().map(|errors| errors.join().expect("reads")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Closes the server's input.
    pub fn close_input(&mut self) {
        drop(self.stdin.take());
    }

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        let status = std::process::Command::new("kill").args(["-s", name, &self.pid().to_string()]).status();
        assert!(status.expect("runs").success());
    }

    /// As if the client had been killed: both pipes go, and what was not read is lost. The server's exit code
    /// and what it complained of.
    #[track_caller]
    pub fn vanish(mut self) -> (i32, String) {
        self.close_input();
        self.deaf.store(true, Ordering::SeqCst);
        self.reader.take().expect("there").join().expect("ends");
        let status = wait(&mut self.child);
        (status.code().unwrap_or(-1), self.complaint())
    }

    /// Closes the input and waits for the end; what was said and not asked for stands in `heard` of the
    /// answer's text.
    #[track_caller]
    pub fn end(mut self) -> Out {
        self.close_input();
        let out = self.ended();
        assert!(out.stderr.is_empty(), "it complains: {}", out.errors());
        out
    }

    /// Waits for the end of the server without closing its input.
    #[track_caller]
    pub fn ended(&mut self) -> Out {
        let status = wait(&mut self.child);
        let mut stdout: Vec<u8> =
            self.heard.drain(..).flat_map(|said| format!("{said}\n").into_bytes()).collect();
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            stdout.extend(line);
        }
        let stderr = self.errors.take().map(|errors| errors.join().expect("reads")).unwrap_or_default();
        Out::new("mcp".to_owned(), std::process::Output { status, stdout, stderr })
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Only the child that was started here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads line by line until the end, or until nobody wants to hear any more; the pipe is closed then.
fn listen(mut stdout: ChildStdout, give: &Sender<Vec<u8>>, deaf: &AtomicBool) {
    let (mut line, mut piece) = (Vec::new(), vec![0; 1 << 16]);
    while !deaf.load(Ordering::SeqCst) {
        let moment = rustix::event::Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
        let mut fds = [PollFd::new(&stdout, PollFlags::IN)];
        if !poll(&mut fds, Some(&moment)).is_ok_and(|ready| ready > 0) {
            continue;
        }
        let Ok(read @ 1..) = stdout.read(&mut piece) else { return };
        for part in piece[..read].split_inclusive(|b| *b == b'\n') {
            line.extend_from_slice(part);
            if part.ends_with(b"\n") && give.send(std::mem::take(&mut line)).is_err() {
                return;
            }
        }
    }
}

#[track_caller]
fn wait(child: &mut Child) -> std::process::ExitStatus {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().expect("waits") {
            return status;
        }
        if Instant::now() > end {
            let _ = child.kill();
            panic!("the server does not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[track_caller]
fn said(line: &[u8]) -> Value {
    let text = String::from_utf8_lossy(line);
    let value: Value = serde_json::from_slice(line).unwrap_or_else(|e| panic!("not JSON-RPC ({e}): {text}"));
    assert_eq!(value["jsonrpc"], "2.0", "{text}");
    value
}

impl Reply {
    pub fn is_error(&self) -> bool {
        self.result["isError"] == json!(true)
    }

    /// The code of the failure; empty for a call that went well.
    pub fn code(&self) -> &str {
        self.result["structuredContent"]["error"]["code"].as_str().unwrap_or_default()
    }

    /// The result object of a call that went well.
    #[track_caller]
    pub fn ok(&self) -> &Value {
        assert!(!self.is_error(), "{:#}", self.result);
        &self.result["structuredContent"]
    }

    /// The failure of a call with this code.
    #[track_caller]
    pub fn fails(&self, code: &str) -> &Value {
        let error = &self.result["structuredContent"]["error"];
        assert!(self.is_error() && error["code"] == code, "{code} is expected: {:#}", self.result);
        error
    }
}
