//! A model that says what a script tells it to: a server on loopback that speaks as much of the two model
//! APIs as the two coding agents need, and keeps what they sent.
//!
//! A turn of the script is a list of calls made at once. Which turn is next is seen from the calls that the
//! conversation has already answered, so that a request that an agent sends twice gets the same answer twice.
//! After the last turn the model says that it is done.

use crate::support::http::{Listener, Request};
use serde_json::{Value, json};
use std::io::Write as _;
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

/// Which of the two is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// OpenAI's Responses, as codex asks it.
    Responses,
    /// Anthropic's Messages, as claude asks it.
    Messages,
}

/// What happens just before a turn is given, seen from outside of the agent.
type Aside = Box<dyn FnOnce() + Send>;

/// Calls that the model makes at once.
pub struct Turn {
    pub calls: Vec<(String, Value)>,
    pub before: Option<Aside>,
}

/// One call in a turn of its own.
pub fn turn(tool: &str, arguments: Value) -> Turn {
    Turn { calls: vec![(tool.to_owned(), arguments)], before: None }
}

impl Turn {
    pub fn after(mut self, aside: impl FnOnce() + Send + 'static) -> Self {
        self.before = Some(Box::new(aside));
        self
    }
}

/// What an agent was answered for one call of the script, as it handed it on to the model.
#[derive(Debug, Clone)]
pub struct Heard {
    pub tool: String,
    pub text: String,
}

impl Heard {
    /// The tool's own object within the text: agents put words of theirs before it.
    #[track_caller]
    pub fn object(&self) -> Value {
        let start = self.text.find('{').unwrap_or_else(|| panic!("{self:?}: no object"));
        let mut objects = serde_json::Deserializer::from_str(&self.text[start..]).into_iter::<Value>();
        objects.next().and_then(Result::ok).unwrap_or_else(|| panic!("{self:?}: no object"))
    }

    /// The code of the failure in it, if it is one.
    pub fn code(&self) -> Option<String> {
        let start = self.text.find('{')?;
        let mut objects = serde_json::Deserializer::from_str(&self.text[start..]).into_iter::<Value>();
        let object = objects.next()?.ok()?;
        object["error"]["code"].as_str().map(str::to_owned)
    }
}

struct Shared {
    api: Api,
    script: Vec<Vec<(String, Value)>>,
    asides: Mutex<Vec<Option<Aside>>>,
    /// Every request that asked the model something, with a body that is an object.
    requests: Mutex<Vec<Value>>,
}

/// The model; it ends with this value.
pub struct StandIn {
    shared: Arc<Shared>,
    listener: Listener,
}

impl StandIn {
    pub fn start(api: Api, script: Vec<Turn>) -> Self {
        let (calls, asides) = script.into_iter().map(|turn| (turn.calls, turn.before)).unzip();
        let shared =
            Arc::new(Shared { api, script: calls, asides: Mutex::new(asides), requests: Mutex::default() });
        let theirs = Arc::clone(&shared);
        let listener = Listener::start(move |stream| theirs.serve(stream));
        Self { shared, listener }
    }

    /// What the agent is told as the address of its provider.
    pub fn url(&self) -> String {
        match self.shared.api {
            Api::Responses => format!("http://127.0.0.1:{}/v1", self.listener.port),
            Api::Messages => format!("http://127.0.0.1:{}", self.listener.port),
        }
    }

    /// Everything that was asked, in order.
    pub fn requests(&self) -> Vec<Value> {
        self.shared.requests.lock().expect("lives").clone()
    }

    /// The answers that the agent reported for the calls of the script, in the script's order; a call without
    /// one is left out.
    pub fn heard(&self) -> Vec<Heard> {
        let requests = self.requests();
        let answers: Vec<(String, String)> =
            requests.iter().flat_map(|body| answered(self.shared.api, body)).collect();
        let mut heard = Vec::new();
        for (number, calls) in self.shared.script.iter().enumerate() {
            for (place, (tool, _)) in calls.iter().enumerate() {
                let id = call_id(number, place);
                if let Some((_, text)) = answers.iter().find(|(known, _)| *known == id) {
                    heard.push(Heard { tool: tool.clone(), text: text.clone() });
                }
            }
        }
        heard
    }

    /// The names of the tender's tools as the model was offered them, sorted.
    pub fn offered(&self) -> Vec<String> {
        let requests = self.requests();
        let tools = requests.iter().filter_map(|body| body["tools"].as_array()).flatten();
        let mut names: Vec<String> = tools
            .flat_map(|tool| {
                match self.shared.api {
                    Api::Responses if tool["name"] == "mcp__tender" => tool["tools"].as_array().cloned(),
                    Api::Responses => None,
                    Api::Messages => Some(vec![tool.clone()]),
                }
                .unwrap_or_default()
            })
            .filter_map(|tool| tool["name"].as_str().map(str::to_owned))
            .map(|name| name.trim_start_matches("mcp__tender__").to_owned())
            .collect();
        names.sort();
        names.dedup();
        names
    }
}

fn call_id(turn: usize, place: usize) -> String {
    format!("call_{turn}_{place}")
}

/// The calls that a conversation has answers for: id and text.
fn answered(api: Api, body: &Value) -> Vec<(String, String)> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let (items, id, text) = match api {
        Api::Responses => (list(&body["input"]), "call_id", "output"),
        Api::Messages => {
            let contents = list(&body["messages"]).into_iter().flat_map(|message| list(&message["content"]));
            (contents.collect(), "tool_use_id", "content")
        }
    };
    let answers =
        items.iter().filter(|item| item["type"] == "function_call_output" || item["type"] == "tool_result");
    answers.filter_map(|item| Some((item[id].as_str()?.to_owned(), plain(&item[text])))).collect()
}

/// A text, or the texts of a list of parts.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
        other => other.to_string(),
    }
}

impl Shared {
    fn serve(&self, mut stream: &TcpStream) -> std::io::Result<()> {
        let request = Request::read(stream)?;
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let asks = request.method == "POST" && body["stream"] == true;
        let (status, kind, answer) = if asks {
            self.requests.lock().expect("lives").push(body.clone());
            ("200 OK", "text/event-stream", self.answer(&body))
        } else if request.method == "HEAD" {
            ("200 OK", "application/json", String::new())
        } else {
            ("404 Not Found", "application/json", json!({"error": {"type": "not_found_error"}}).to_string())
        };
        let head = format!(
            "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
            answer.len()
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(answer.as_bytes())?;
        stream.shutdown(std::net::Shutdown::Both)
    }

    fn answer(&self, body: &Value) -> String {
        let known = answered(self.api, body);
        let is_known = |number: usize| known.iter().any(|(id, _)| id.starts_with(&format!("call_{number}_")));
        let next = (0..self.script.len()).find(|number| !is_known(*number));
        // A request without tools is none of the script's: agents ask for titles and the like.
        let next = next.filter(|_| body["tools"].as_array().is_some_and(|tools| !tools.is_empty()));
        if let Some(aside) = next.and_then(|number| self.asides.lock().expect("lives")[number].take()) {
            aside();
        }
        let calls = next.map_or(&[][..], |number| &self.script[number]);
        let calls = calls.iter().enumerate().map(|(place, call)| (call_id(next.unwrap_or(0), place), call));
        let events = match self.api {
            Api::Responses => responses(calls),
            // A message's own id: claude takes two answers of one id for one message.
            Api::Messages => messages(&format!("message_{}", known.len()), calls),
        };
        let mut text = String::new();
        for event in events {
            text.push_str(&format!("event: {}\ndata: {event}\n\n", event["type"].as_str().expect("typed")));
        }
        text
    }
}

/// The events of one answer by codex's protocol.
fn responses<'c>(calls: impl Iterator<Item = (String, &'c (String, Value))>) -> Vec<Value> {
    let mut items: Vec<Value> = calls
        .map(|(id, (tool, arguments))| {
            json!({"type": "function_call", "namespace": "mcp__tender", "name": tool, "call_id": id,
                   "arguments": arguments.to_string()})
        })
        .collect();
    if items.is_empty() {
        items.push(json!({"type": "message", "role": "assistant",
                          "content": [{"type": "output_text", "text": "I am done."}]}));
    }
    let mut events = vec![json!({"type": "response.created", "response": {"id": "response"}})];
    events.extend(items.into_iter().map(|item| json!({"type": "response.output_item.done", "item": item})));
    let usage = json!({"input_tokens": 1, "input_tokens_details": null, "output_tokens": 1,
                       "output_tokens_details": null, "total_tokens": 2});
    events.push(json!({"type": "response.completed", "response": {"id": "response", "usage": usage}}));
    events
}

/// The events of one answer by claude's protocol.
fn messages<'c>(id: &str, calls: impl Iterator<Item = (String, &'c (String, Value))>) -> Vec<Value> {
    let mut blocks: Vec<(Value, Value)> = calls
        .map(|(id, (tool, arguments))| {
            let name = format!("mcp__tender__{tool}");
            (
                json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
                json!({"type": "input_json_delta", "partial_json": arguments.to_string()}),
            )
        })
        .collect();
    let reason = if blocks.is_empty() { "end_turn" } else { "tool_use" };
    if blocks.is_empty() {
        blocks
            .push((json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": "I am done."})));
    }
    let mut events = vec![json!({"type": "message_start", "message": {
        "id": id, "type": "message", "role": "assistant", "model": "stand-in", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 1}
    }})];
    for (index, (block, delta)) in blocks.into_iter().enumerate() {
        events.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
        events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    let delta = json!({"stop_reason": reason, "stop_sequence": null});
    events.push(json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 1}}));
    events.push(json!({"type": "message_stop"}));
    events
}
