//! `agent`: the snippet for a coding agent's client. Needs no repository, reads nothing, installs nothing.

use crate::domain::value::document::is_id;
use crate::error::{Code, Failure, Result};
use crate::render::agent::{AgentSnippet, Client, Described, Snippet, render_snippet};
use crate::tools::tool_descriptions;

/// Makes a snippet, with the tools of this version.
///
/// # Errors
/// `arguments.invalid` for what can be no task's id: it would stand in text that others run and read.
pub fn agent(what: Snippet, target: Client, task: Option<&str>) -> Result<AgentSnippet> {
    if let Some(task) = task.filter(|task| !is_id(task)) {
        return Err(Failure::new(Code::ArgumentsInvalid, format!("{task:?} can be no task's id"))
            .subject("TASK")
            .expected("[A-Za-z0-9][A-Za-z0-9._-]{0,63}", task));
    }
    let described: Vec<Described<'_>> =
        tool_descriptions().iter().map(|tool| (tool.tool.name(), tool.description)).collect();
    Ok(render_snippet(what, target, task, &described))
}
