//! One line of the client as a message of the protocol, or the answer to what is none.
//!
//! A call keeps its name and arguments beside the typed request, as they came: what a worker may call with
//! which arguments is the gate's business, which writes each refusal down, and never a matter of what the
//! protocol's types can hold.

use super::lines::{LONGEST, id_of};
use crate::domain::value::document::Node;
use rmcp::model::{ClientRequest, RequestId};
use rmcp::service::{RoleServer, RxJsonRpcMessage};
use serde_json::{Map, Value, json};
use std::sync::Arc;

const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;

/// A call as it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct McpCall {
    /// The tool's name; what is no text stands here as JSON.
    pub name: String,
    /// The arguments; an empty object where none were given.
    pub arguments: Value,
}

#[derive(Debug)]
pub enum Heard {
    /// A message; the id that a request waits for an answer under.
    Message(Box<RxJsonRpcMessage<RoleServer>>, Option<RequestId>),
    /// Nothing that can be handled: what to answer.
    Refused(Value),
    /// Nothing that is answered: an empty line, a notification or an answer that makes no sense.
    Nothing,
}

pub fn hear(line: &[u8]) -> Heard {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return Heard::Nothing;
    }
    let mut message = match serde_json::from_slice::<Value>(line) {
        Ok(Value::Object(message)) => message,
        Ok(Value::Array(_)) => return invalid(None, "one message a line; a list of messages is not taken"),
        Ok(_) => return invalid(None, "a message is a JSON object"),
        Err(error) => {
            // Whoever waits for an answer under an id that can be seen gets one.
            let text = format!("this line is not JSON that can be read: {error}");
            return Heard::Refused(refusal(id_of(line), PARSE_ERROR, &text));
        }
    };
    let id = match message.get("id") {
        None => None,
        Some(id @ Value::String(_)) => Some(id.clone()),
        Some(id) if id.is_i64() => Some(id.clone()),
        Some(_) => return invalid(None, "an id is a text or a whole number"),
    };
    // Of two values under one key everybody may read another one.
    if let Some(key) = serde_json::from_slice::<Node>(line).ok().as_ref().and_then(Node::doubled_key) {
        return invalid(id, &format!("the key {key:?} stands twice in one object"));
    }
    let asks = message.contains_key("method") && id.is_some();
    let called = match message.get("method").and_then(Value::as_str) {
        Some("tools/call") if asks => Some(lift_call(&mut message)),
        _ => None,
    };
    let is_message = ["method", "result", "error"].iter().any(|key| message.contains_key(*key));
    match serde_json::from_value::<RxJsonRpcMessage<RoleServer>>(Value::Object(message)) {
        Ok(message) => placed(message, called),
        Err(error) if asks => invalid(id, &format!("this is no request of JSON-RPC 2.0: {error}")),
        Err(_) if is_message => Heard::Nothing,
        Err(_) => invalid(id, "this is neither a request nor an answer"),
    }
}

/// The answer to a line that was too long.
pub fn too_long(id: Option<Value>) -> Value {
    refusal(id, INVALID_REQUEST, &format!("a line is longer than {LONGEST} bytes and was skipped"))
}

/// The answer to a second request under an id that is still waited for. It must not look like the answer to
/// the first one.
pub fn twice(id: &RequestId) -> Value {
    refusal(None, INVALID_REQUEST, &format!("the request {id} has not been answered yet; take another id"))
}

fn invalid(id: Option<Value>, text: &str) -> Heard {
    Heard::Refused(refusal(id, INVALID_REQUEST, text))
}

fn refusal(id: Option<Value>, code: i32, text: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": text } })
}

/// Takes name and arguments out of the parameters, and leaves some that always fit the type.
fn lift_call(message: &mut Map<String, Value>) -> McpCall {
    let params = message.remove("params").unwrap_or_else(|| json!({}));
    let Value::Object(mut params) = params else {
        message.insert("params".to_owned(), json!({ "name": "" }));
        return McpCall { name: String::new(), arguments: params };
    };
    let mut kept = Map::from_iter([("name".to_owned(), json!(""))]);
    if let Some(meta @ Value::Object(_)) = params.remove("_meta") {
        kept.insert("_meta".to_owned(), meta);
    }
    message.insert("params".to_owned(), Value::Object(kept));
    let name = match params.remove("name") {
        Some(Value::String(name)) => name,
        Some(other) => other.to_string(),
        None => String::new(),
    };
    let arguments = params.remove("arguments").filter(|arguments| !arguments.is_null());
    McpCall { name, arguments: arguments.unwrap_or_else(|| json!({})) }
}

fn placed(mut message: RxJsonRpcMessage<RoleServer>, called: Option<McpCall>) -> Heard {
    let RxJsonRpcMessage::<RoleServer>::Request(request) = &mut message else {
        return Heard::Message(Box::new(message), None);
    };
    let id = request.id.clone();
    if let (ClientRequest::CallToolRequest(call), Some(called)) = (&mut request.request, called) {
        // Its arguments may be large, and several parts of the server look at them.
        call.extensions.insert(Arc::new(called));
    }
    Heard::Message(Box::new(message), Some(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &str) -> (Value, i64) {
        match hear(line.as_bytes()) {
            Heard::Refused(answer) => {
                assert_eq!(answer["jsonrpc"], "2.0");
                (answer["id"].clone(), answer["error"]["code"].as_i64().expect("a code"))
            }
            other => panic!("{line}: {other:?}"),
        }
    }

    fn called(params: &str) -> McpCall {
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\"{params}}}");
        let Heard::Message(message, Some(RequestId::Number(1))) = hear(line.as_bytes()) else {
            panic!("{line} is no request")
        };
        let RxJsonRpcMessage::<RoleServer>::Request(request) = *message else {
            panic!("{line} is no request")
        };
        let ClientRequest::CallToolRequest(call) = request.request else { panic!("{line} is no call") };
        McpCall::clone(call.extensions.get::<Arc<McpCall>>().expect("the call as it came"))
    }

    #[test]
    fn any_call_reaches_the_gate_as_it_came() {
        let call = |name: &str, arguments: Value| McpCall { name: name.to_owned(), arguments };
        assert_eq!(called(r#","params":{"name":"x","arguments":{"a":1}}"#), call("x", json!({"a":1})));
        assert_eq!(called(r#","params":{"name":"x"}"#), call("x", json!({})));
        assert_eq!(called(r#","params":{"name":"x","arguments":null}"#), call("x", json!({})));
        assert_eq!(called(r#","params":{"name":"x","arguments":"text"}"#), call("x", json!("text")));
        assert_eq!(called(r#","params":{"name":"x","arguments":[1]}"#), call("x", json!([1])));
        assert_eq!(called(r#","params":{"name":5}"#), call("5", json!({})));
        assert_eq!(
            called(r#","params":{"name":"x","_meta":7,"task":{},"requestState":4}"#),
            call("x", json!({}))
        );
        assert_eq!(called(r#","params":[1,2]"#), call("", json!([1, 2])));
        assert_eq!(called(""), call("", json!({})));
    }

    #[test]
    fn what_is_no_message_is_answered() {
        assert_eq!(refused("garbage"), (Value::Null, -32700));
        assert_eq!(refused("{\"id\":1"), (Value::Null, -32700));
        let surrogate = r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"\ud800"}}"#;
        assert_eq!(refused(surrogate), (json!(9), -32700));
        let twice = r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"a","name":"b"}}"#;
        assert_eq!(refused(twice), (json!(9), -32600));
        assert_eq!(refused("\u{0}"), (Value::Null, -32700));
        assert_eq!(refused("[]"), (Value::Null, -32600));
        assert_eq!(refused("5"), (Value::Null, -32600));
        assert_eq!(refused("{}"), (Value::Null, -32600));
        assert_eq!(refused(r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#), (Value::Null, -32600));
        assert_eq!(refused(r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#), (Value::Null, -32600));
        assert_eq!(refused(r#"{"jsonrpc":"1.0","id":4,"method":"tools/call"}"#), (json!(4), -32600));
        assert_eq!(refused(r#"{"id":"a","method":"ping"}"#), (json!("a"), -32600));
        assert_eq!(refused(r#"{"jsonrpc":"2.0","id":3,"method":3}"#), (json!(3), -32600));
        assert_eq!(refused(r#"{"jsonrpc":"2.0","id":3}"#), (json!(3), -32600));
    }

    #[test]
    fn what_asks_nothing_is_not_answered() {
        for line in
            ["", "  \r", "\u{feff}", r#"{"method":"notifications/x"}"#, r#"{"jsonrpc":"2.0","method":7}"#]
        {
            assert!(matches!(hear(line.as_bytes()), Heard::Nothing), "{line}");
        }
        let call = r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"x"}}"#;
        assert!(
            matches!(hear(call.as_bytes()), Heard::Message(_, None)),
            "a call without an id is a notification"
        );
    }
}
