//! The tools of a worker: their names, arguments, answers, and what those do that only look at or change the
//! worktree.
//!
//! One file a tool. Nothing here decides whether a call may be made: that is the gate's (`ops::gate`), which
//! parses a [`Call`], authorizes it on the real target ([`place`]), records it, and only then carries it out.
//! Tools that are ledger operations (`note_finding`, `request_input`, `propose_amendment`, `task_status`,
//! `run_check`, `finish`) have only their shapes here.

pub mod apply_patch;
pub mod list_files;
pub mod patch_formats;
pub mod place;
pub mod read_file;
pub mod requests;
pub mod search_text;
mod spec;
pub mod text;

pub use spec::{Spec, specs};

use crate::error::{Code, Failure, Result};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Tools that every task has, whether its contract names them or not.
pub const ALWAYS: [&str; 4] = ["finish", "propose_amendment", "request_input", "task_status"];

/// A call whose arguments fit its tool.
#[derive(Debug, Clone)]
pub enum Call {
    /// `read_file`
    ReadFile(read_file::Arguments),
    /// `list_files`
    ListFiles(list_files::Arguments),
    /// `search_text`
    SearchText(search_text::Arguments),
    /// `apply_patch`
    ApplyPatch(apply_patch::Arguments),
    /// `run_check`
    RunCheck(requests::RunCheck),
    /// `request_input`
    RequestInput(requests::RequestInput),
    /// `propose_amendment`
    ProposeAmendment(requests::ProposeAmendment),
    /// `note_finding`
    NoteFinding(requests::NoteFinding),
    /// `task_status`
    TaskStatus,
    /// `finish`
    Finish,
}

impl Call {
    /// Reads the arguments of a tool. An unknown field, a missing one or one of another type is
    /// `arguments.invalid`.
    pub fn parse(tool: &str, arguments: &Value) -> Result<Self> {
        Ok(match tool {
            "read_file" => Self::ReadFile(read(tool, arguments)?),
            "list_files" => Self::ListFiles(read(tool, arguments)?),
            "search_text" => Self::SearchText(read(tool, arguments)?),
            "apply_patch" => Self::ApplyPatch(read(tool, arguments)?),
            "run_check" => Self::RunCheck(read(tool, arguments)?),
            "request_input" => Self::RequestInput(read(tool, arguments)?),
            "propose_amendment" => Self::ProposeAmendment(read(tool, arguments)?),
            "note_finding" => Self::NoteFinding(read(tool, arguments)?),
            "task_status" => read::<requests::Nothing>(tool, arguments).map(|_| Self::TaskStatus)?,
            "finish" => read::<requests::Nothing>(tool, arguments).map(|_| Self::Finish)?,
            "run_command" => {
                return Err(Failure::new(Code::NotSupported, "named commands are not in this version")
                    .subject(tool)
                    .advice("Use run_check for what the contract lets you check."));
            }
            _ => return Err(Failure::internal(format!("the tool {tool} has no reader"))),
        })
    }
}

fn read<T: DeserializeOwned>(tool: &str, arguments: &Value) -> Result<T> {
    let object = match arguments {
        Value::Null => Ok(Value::Object(Map::new())),
        Value::Object(_) => Ok(arguments.clone()),
        // A list would be taken for the fields in their order.
        _ => Err("they are no object".to_owned()),
    };
    let read = object.and_then(|object| serde_json::from_value(object).map_err(|e| e.to_string()));
    read.map_err(|e| {
        // It quotes a field or a value as long as whoever called made it.
        let e = patch_formats::clipped(&e);
        let expected = specs().iter().find(|spec| spec.name == tool).map(|spec| &spec.input);
        Failure::new(Code::ArgumentsInvalid, format!("the arguments of {tool} do not fit: {e}"))
            .subject(tool)
            .detail("schema", expected)
            .advice("Call it again with the arguments of its schema, and nothing else.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_does_not_fit_is_not_told_at_length() {
        let long = "k".repeat(1 << 20);
        for arguments in [
            json!({"path": "a", &long: 1}),
            json!({"path": {&long: 1}}),
            json!({"bytes": [&long]}),
            json!({"path": &long, "ref": &long}),
        ] {
            let read = Call::parse("read_file", &arguments).and_then(|call| match call {
                Call::ReadFile(arguments) => arguments.target().map(drop),
                _ => Ok(()),
            });
            let failure = read.expect_err("it does not fit");
            assert_eq!(failure.code(), Code::ArgumentsInvalid);
            let details: usize = failure
                .details()
                .iter()
                .filter(|(key, _)| *key != "schema")
                .map(|(_, value)| value.to_string().len())
                .sum();
            assert!(failure.message().len() + details < 2_000, "{failure}");
        }
    }
}
