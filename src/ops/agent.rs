//! `agent`: the snippet for a coding agent's client. Needs no repository, reads nothing, installs nothing.

use crate::render::agent::{AgentSnippet, Client, Described, Snippet, snippet};
use crate::tools::specs;

/// Makes a snippet, with the tools of this version.
#[must_use]
pub fn agent(what: Snippet, target: Client, task: Option<&str>) -> AgentSnippet {
    let tools = specs();
    let described: Vec<Described<'_>> = tools.iter().map(|spec| (spec.name, spec.description)).collect();
    snippet(what, target, task, &described)
}
