//! The table of tools: for each the arguments that it reads, what a client sees of it, and the shapes of
//! those that have no work of their own here, since they are operations on the ledger.
//!
//! Every table is a match over [`WorkerTool`] without a rest, so that a new tool is missing nowhere.

use super::patch_formats::quote_line;
use super::{apply_patch, list_files, read_file, search_text};
use crate::domain::contract::tool::WorkerTool;
use crate::domain::ledger::inquiries::HintObject;
use crate::domain::proof::run::Run;
use crate::domain::worker::finding::Kind as FindingKind;
use crate::error::{Code, Failure, Result};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

/// A call whose arguments fit its tool.
#[derive(Debug, Clone)]
pub enum ToolCall {
    ReadFile(read_file::ReadFileArguments),
    ListFiles(list_files::ListFilesArguments),
    SearchText(search_text::SearchTextArguments),
    ApplyPatch(apply_patch::ApplyPatchArguments),
    RunCheck(RunCheckArguments),
    NoteFinding(NoteFindingArguments),
    RequestInput(RequestInputArguments),
    ProposeAmendment(ProposeAmendmentArguments),
    TaskStatus,
    Finish,
}

impl ToolCall {
    /// Reads the arguments of a tool. An unknown field, a missing one or one of another type is
    /// `arguments.invalid`.
    pub fn parse_arguments(tool: WorkerTool, arguments: &Value) -> Result<Self> {
        Ok(match tool {
            WorkerTool::ReadFile => Self::ReadFile(read_arguments(tool, arguments)?),
            WorkerTool::ListFiles => Self::ListFiles(read_arguments(tool, arguments)?),
            WorkerTool::SearchText => Self::SearchText(read_arguments(tool, arguments)?),
            WorkerTool::ApplyPatch => Self::ApplyPatch(read_arguments(tool, arguments)?),
            WorkerTool::RunCheck => Self::RunCheck(read_arguments(tool, arguments)?),
            WorkerTool::NoteFinding => Self::NoteFinding(read_arguments(tool, arguments)?),
            WorkerTool::RequestInput => Self::RequestInput(read_arguments(tool, arguments)?),
            WorkerTool::ProposeAmendment => Self::ProposeAmendment(read_arguments(tool, arguments)?),
            WorkerTool::TaskStatus => {
                read_arguments::<NoArguments>(tool, arguments).map(|_| Self::TaskStatus)?
            }
            WorkerTool::Finish => read_arguments::<NoArguments>(tool, arguments).map(|_| Self::Finish)?,
            WorkerTool::RunCommand | WorkerTool::Shell => {
                return Err(Failure::new(Code::NotSupported, "named commands are not in this version")
                    .subject(tool.name())
                    .advice("Use run_check for what the contract lets you check."));
            }
        })
    }
}

fn read_arguments<T: DeserializeOwned>(tool: WorkerTool, arguments: &Value) -> Result<T> {
    let object = match arguments {
        Value::Null => Ok(Value::Object(Map::new())),
        Value::Object(_) => Ok(arguments.clone()),
        // A list would be taken for the fields in their order.
        _ => Err("they are no object".to_owned()),
    };
    let read = object.and_then(|object| serde_json::from_value(object).map_err(|e| e.to_string()));
    read.map_err(|e| {
        // It quotes a field or a value as long as whoever called made it.
        let (e, name) = (quote_line(&e), tool.name());
        let expected = tool_descriptions().iter().find(|described| described.tool == tool);
        Failure::new(Code::ArgumentsInvalid, format!("the arguments of {name} do not fit: {e}"))
            .subject(name)
            .detail("schema", expected.map(|described| &described.input))
            .advice("Call it again with the arguments of its schema, and nothing else.")
    })
}

/// A tool as a client sees it.
#[derive(Debug, Clone)]
pub struct ToolDescription {
    pub tool: WorkerTool,
    /// A name for people.
    pub title: &'static str,
    /// What it does and when to use it.
    pub description: &'static str,
    /// JSON schema of its arguments.
    pub input: Value,
    /// JSON schema of its answer, where it is no failure.
    pub output: Value,
    /// It changes no file.
    pub read_only: bool,
    /// It can remove what a file held.
    pub destructive: bool,
    /// Calling it again with the same arguments changes nothing more.
    pub idempotent: bool,
}

/// The tools that this version offers, in the order in which clients list them. Their schemas are made once,
/// not with every call.
pub fn tool_descriptions() -> &'static [ToolDescription] {
    static ALL: LazyLock<Vec<ToolDescription>> = LazyLock::new(|| {
        let mut all: Vec<ToolDescription> = WorkerTool::ALL.into_iter().filter_map(describe_tool).collect();
        // Those that only look come first, then the check.
        all.sort_by_key(|described| (!described.read_only, described.tool != WorkerTool::RunCheck));
        all
    });
    &ALL
}

/// `None` where this version does not offer it.
fn describe_tool(tool: WorkerTool) -> Option<ToolDescription> {
    Some(match tool {
        WorkerTool::ReadFile => ToolDescription {
            description: "Reads a text file of the worktree, or a stored log by its reference, whole or by lines or bytes. Gives the ids of the bytes: quote \
                          gitBlob in apply_patch's `expected`.",
            ..read_only_tool::<read_file::ReadFileArguments, read_file::ReadFileAnswer>(tool, "Read a file")
        },
        WorkerTool::ListFiles => ToolDescription {
            description: "Lists the files of the worktree, or of one of its directories, with their sizes. Says so when the list was cut.",
            ..read_only_tool::<list_files::ListFilesArguments, list_files::ListFilesAnswer>(
                tool,
                "List files",
            )
        },
        WorkerTool::SearchText => ToolDescription {
            description: "Searches the text files of the worktree for a regular expression, line by line. Says so when the hits were cut.",
            ..read_only_tool::<search_text::SearchTextArguments, search_text::SearchTextAnswer>(
                tool,
                "Search text",
            )
        },
        WorkerTool::ApplyPatch => ToolDescription {
            description: "Changes files of the worktree: a unified diff, a `*** Begin Patch` block, or search/replace blocks. Every hunk has to \
                          match exactly once; all files are changed or none. Quote the gitBlob that read_file gave in `expected`.",
            destructive: true,
            ..plain_tool::<apply_patch::ApplyPatchArguments, apply_patch::ApplyPatchAnswer>(
                tool,
                "Change files",
            )
        },
        WorkerTool::RunCheck => ToolDescription {
            description: "Captures the worktree and runs one verifier of the contract on it. Gives the verdict, the error to begin with and the \
                          whole log by reference.",
            idempotent: true,
            ..plain_tool::<RunCheckArguments, RunCheckAnswer>(tool, "Run one check")
        },
        WorkerTool::NoteFinding => ToolDescription {
            description: "Records something that was found out, or a limit of what was looked at, with what it rests on.",
            ..plain_tool::<NoteFindingArguments, NoteFindingAnswer>(tool, "Note a finding")
        },
        WorkerTool::RequestInput => ToolDescription {
            description: "Puts a question to the user. The answer does not come back at once: the task waits for it, and task_status shows it.",
            ..plain_tool::<RequestInputArguments, RequestInputAnswer>(tool, "Ask the user")
        },
        WorkerTool::ProposeAmendment => ToolDescription {
            description: "Proposes a change of the contract's fields, such as a wider write scope, with the reason. Nothing changes unless the \
                          user agrees.",
            ..plain_tool::<ProposeAmendmentArguments, ProposeAmendmentAnswer>(tool, "Propose an amendment")
        },
        WorkerTool::TaskStatus => ToolDescription {
            description: "What the contract allows, which requirements are open, what was done so far, answers of the user, and the budget that is left.",
            ..read_only_tool::<NoArguments, TaskStatusAnswer>(tool, "Where the task stands")
        },
        WorkerTool::Finish => ToolDescription {
            description: "Says that the work is done: captures the worktree and runs all its verifiers. It answers whether it really is, and what \
                          is missing.",
            idempotent: true,
            ..plain_tool::<NoArguments, FinishAnswer>(tool, "Finish")
        },
        WorkerTool::RunCommand | WorkerTool::Shell => return None,
    })
}

fn read_only_tool<A: JsonSchema, R: JsonSchema>(tool: WorkerTool, title: &'static str) -> ToolDescription {
    ToolDescription { read_only: true, idempotent: true, ..plain_tool::<A, R>(tool, title) }
}

fn plain_tool<A: JsonSchema, R: JsonSchema>(tool: WorkerTool, title: &'static str) -> ToolDescription {
    ToolDescription {
        tool,
        title,
        description: "",
        input: schema_of::<A>(),
        output: schema_of::<R>(),
        read_only: false,
        destructive: false,
        idempotent: false,
    }
}

/// One schema without references into itself: not every client resolves those.
fn schema_of<T: JsonSchema>() -> Value {
    let generator = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut value = generator.into_generator().into_root_schema_for::<T>().to_value();
    without_formats(&mut value);
    if let Some(object) = value.as_object_mut() {
        object.remove("title");
        object.entry("properties").or_insert_with(|| json!({}));
    }
    value
}

/// The formats of Rust's number types are none of JSON schema's; strict clients warn about each.
fn without_formats(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.remove("format");
            object.values_mut().for_each(without_formats);
        }
        Value::Array(items) => items.iter_mut().for_each(without_formats),
        _ => {}
    }
}

/// No arguments.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoArguments {}

/// Arguments of `run_check`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunCheckArguments {
    /// The verifier's id, one of those that the contract allows.
    pub id: String,
}

/// Arguments of `request_input`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestInputArguments {
    /// What a person has to answer.
    pub question: String,
}

/// Arguments of `propose_amendment`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProposeAmendmentArguments {
    /// The contract's fields as they should be, such as {"writeScope": ["docs/", "src/parser/"]}.
    pub change: Map<String, Value>,
    /// Why the task cannot be done otherwise.
    pub reason: String,
}

/// Arguments of `note_finding`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoteFindingArguments {
    /// What was found.
    pub text: String,
    /// What it rests on: `path`, `path:line`, `path:first-last`, or a reference of this task. Without any it
    /// is recorded as unverified.
    #[serde(default)]
    pub refs: Vec<String>,
    /// `finding`, or `limit`: what was not looked at, and why.
    #[serde(default)]
    pub kind: FindingKind,
}

/// Answer of `run_check`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunCheckAnswer {
    /// The candidate that was checked: the worktree as it was when the call began.
    pub candidate: u32,
    /// The worst verdict of its rows: `passed`, `failed`, `not_run`, `stale`, `needs_confirmation` or
    /// `error`.
    pub verdict: String,
    /// The requirement rows that this verifier shows.
    pub requirements: Vec<Map<String, Value>>,
    /// Programs that failed, with their logs.
    pub runs: Vec<Run>,
}

/// Answer of `finish`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FinishAnswer {
    /// True where nothing is left for the worker to do: every required row has passed, or waits for a person.
    pub done: bool,
    /// What keeps it from being done, or who is waited for.
    pub why: Vec<String>,
    /// The task's state.
    pub state: String,
    /// The candidate.
    pub candidate: u32,
    /// All requirement rows.
    pub requirements: Vec<Map<String, Value>>,
    /// The candidate's changes.
    pub changes: Vec<Map<String, Value>>,
    /// Programs that failed, with their logs.
    pub runs: Vec<Run>,
}

/// Answer of `request_input`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RequestInputAnswer {
    /// Always `waiting_input`.
    pub status: String,
    /// The question's id.
    pub id: String,
    /// What to do now.
    pub next: String,
    /// What the user said through the client, where it can ask them. No answer yet: the task waits all the
    /// same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<HintObject>,
}

impl RequestInputAnswer {
    /// Of a question that was recorded under this id.
    pub fn recorded_as(id: &str) -> Self {
        Self {
            status: "waiting_input".to_owned(),
            id: id.to_owned(),
            next: "The user answers on the command line; task_status shows the answer. Until then reading and patching go on, finish does not."
                .to_owned(),
            hint: None,
        }
    }
}

impl ProposeAmendmentAnswer {
    /// Of a wish that was recorded under this id.
    pub fn recorded_as(id: &str) -> Self {
        Self {
            status: "proposed".to_owned(),
            id: id.to_owned(),
            next: "Nothing has changed yet. The user decides on the command line; task_status shows it, and the contract that is in force."
                .to_owned(),
        }
    }
}

/// Answer of `propose_amendment`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ProposeAmendmentAnswer {
    /// Always `proposed`: nothing has changed.
    pub status: String,
    /// The proposal's id.
    pub id: String,
    /// What to do now.
    pub next: String,
}

/// Answer of `note_finding`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct NoteFindingAnswer {
    /// The finding's id.
    pub id: String,
    /// True where it has references.
    pub verified: bool,
}

/// What `task_status` answers: the brief report.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used: the report itself is made elsewhere")]
struct TaskStatusAnswer {
    schema: String,
    task_id: String,
    state: String,
    goal: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_is_an_object_that_takes_no_unknown_arguments() {
        for described in tool_descriptions() {
            assert_eq!(described.input["type"], "object", "{}", described.tool.name());
            assert_eq!(described.output["type"], "object", "{}", described.tool.name());
            assert_eq!(
                described.input["additionalProperties"],
                false,
                "{}: {}",
                described.tool.name(),
                described.input
            );
            assert!(
                !described.description.is_empty() && !described.input.to_string().contains("$ref"),
                "{}",
                described.tool.name()
            );
        }
    }

    #[test]
    fn what_does_not_fit_is_not_told_at_length() {
        let long = "k".repeat(1 << 20);
        for arguments in [
            json!({"path": "a", &long: 1}),
            json!({"path": {&long: 1}}),
            json!({"bytes": [&long]}),
            json!({"path": &long, "ref": &long}),
        ] {
            let read =
                ToolCall::parse_arguments(WorkerTool::ReadFile, &arguments).and_then(|call| match call {
                    ToolCall::ReadFile(arguments) => arguments.read_target().map(drop),
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
