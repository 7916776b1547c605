//! A worker's question put to the user through the client, where the client says that it can. Nothing depends
//! on it: a client that cannot, does not want to, or never comes back leaves the question as it is, recorded
//! and open.

use super::messages::McpCall;
use crate::domain::contract::tool::WorkerTool;
use crate::domain::value::outside::plain_line;
use crate::domain::worker::inquiry::Hint;
use crate::ops::gate::GateAnswer;
use rmcp::model::{
    ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability,
    ElicitationSchema, PrimitiveSchemaDefinition, ServerRequest, StringSchema,
};
use rmcp::service::{Peer, PeerRequestOptions, RoleServer};
use serde_json::Value;
use std::time::Duration;

/// How long the user may take. The worker's call waits for it, and its client has a limit of its own.
const PATIENCE: Duration = Duration::from_secs(300);

/// The property that the user fills in.
const ANSWER: &str = "answer";

/// The id of a question that was just recorded.
pub fn recorded(called: &McpCall, answer: &GateAnswer) -> Option<String> {
    let result = answer.result.as_ref().ok().filter(|_| called.name == WorkerTool::RequestInput.name())?;
    result["id"].as_str().map(str::to_owned)
}

/// Asks, and waits until the user has said something. `None` where nothing came of it.
pub async fn ask_through_client(client: &Peer<RoleServer>, called: &McpCall, id: &str) -> Option<Hint> {
    let info = client.peer_info()?;
    if !info.capabilities.elicitation.as_ref().is_some_and(shows_forms) {
        return None;
    }
    let through = info.client_info.name.clone();
    let question = called.arguments["question"].as_str().unwrap_or_default();
    let form = form(question, id).ok()?;
    let said = request_form(client, form).await?;
    Some(Hint { to: id.to_owned(), text: text(&said)?, through: plain_line(&through, 80) })
}

/// A client that names no kind shows forms: there was no other kind at first.
fn shows_forms(capability: &ElicitationCapability) -> bool {
    capability.form.is_some() || capability.url.is_none()
}

/// By hand: the library's own call for this brings the whole of Unicode's tables for web addresses with it.
async fn request_form(client: &Peer<RoleServer>, form: ElicitRequestParams) -> Option<ElicitResult> {
    let options = PeerRequestOptions::with_timeout(PATIENCE);
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(form));
    let answer = client.send_request_with_option(request, options).await.ok()?.await_response().await.ok()?;
    match answer {
        ClientResult::ElicitResult(said) => Some(said),
        _ => None,
    }
}

fn form(question: &str, id: &str) -> Result<ElicitRequestParams, &'static str> {
    let message = format!(
        "The worker asks: {}\nWhat you say here is passed on to it. The task waits until you answer on the command line: git tender answer TASK {id} TEXT",
        plain_line(question, usize::MAX)
    );
    let answer = PrimitiveSchemaDefinition::String(StringSchema::new().title("Answer"));
    let requested_schema = ElicitationSchema::builder().required_property(ANSWER, answer).build()?;
    Ok(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema })
}

/// What the user said, if they meant to say something.
fn text(said: &ElicitResult) -> Option<String> {
    let content = said.content.as_ref().filter(|_| said.action == ElicitationAction::Accept)?;
    let text = content.get(ANSWER).and_then(Value::as_str)?;
    (!text.trim().is_empty()).then(|| text.to_owned())
}
