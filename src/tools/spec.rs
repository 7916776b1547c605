//! The table of tools as clients see it: names, what they are for, the schemas of arguments and answers.

use super::requests::{
    Asked, Checked, Finished, NoteFinding, Noted, Nothing, ProposeAmendment, Proposed, RequestInput, RunCheck,
};
use super::{apply_patch, list_files, read_file, search_text};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};
use std::sync::LazyLock;

/// A tool as a client sees it.
#[derive(Debug, Clone)]
pub struct Spec {
    /// Its name.
    pub name: &'static str,
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

/// All tools of this version. Their schemas are made once, not with every call.
pub fn specs() -> &'static [Spec] {
    static ALL: LazyLock<Vec<Spec>> = LazyLock::new(|| [looking(), working()].concat());
    &ALL
}

fn looking() -> Vec<Spec> {
    vec![
        looks(
            spec::<read_file::Arguments, read_file::Answer>("read_file", "Read a file"),
            "Reads a text file of the worktree, or a stored log by its reference, whole or by lines or bytes. Gives the ids of the bytes: quote \
             gitBlob in apply_patch's `expected`.",
        ),
        looks(
            spec::<list_files::Arguments, list_files::Answer>("list_files", "List files"),
            "Lists the files of the worktree, or of one of its directories, with their sizes. Says so when the list was cut.",
        ),
        looks(
            spec::<search_text::Arguments, search_text::Answer>("search_text", "Search text"),
            "Searches the text files of the worktree for a regular expression, line by line. Says so when the hits were cut.",
        ),
        looks(
            spec::<Nothing, TaskStatus>("task_status", "Where the task stands"),
            "What the contract allows, which requirements are open, what was done so far, answers of the user, and the budget that is left.",
        ),
    ]
}

fn working() -> Vec<Spec> {
    vec![
        Spec {
            description: "Captures the worktree and runs one verifier of the contract on it. Gives the verdict, the error to begin with and the \
                          whole log by reference.",
            idempotent: true,
            ..spec::<RunCheck, Checked>("run_check", "Run one check")
        },
        Spec {
            description: "Changes files of the worktree: a unified diff, a `*** Begin Patch` block, or search/replace blocks. Every hunk has to \
                          match exactly once; all files are changed or none. Quote the gitBlob that read_file gave in `expected`.",
            destructive: true,
            ..spec::<apply_patch::Arguments, apply_patch::Applied>("apply_patch", "Change files")
        },
        Spec {
            description: "Records something that was found out, or a limit of what was looked at, with what it rests on.",
            ..spec::<NoteFinding, Noted>("note_finding", "Note a finding")
        },
        Spec {
            description: "Puts a question to the user. The answer does not come back at once: the task waits for it, and task_status shows it.",
            ..spec::<RequestInput, Asked>("request_input", "Ask the user")
        },
        Spec {
            description: "Proposes a change of the contract's fields, such as a wider write scope, with the reason. Nothing changes unless the \
                          user agrees.",
            ..spec::<ProposeAmendment, Proposed>("propose_amendment", "Propose an amendment")
        },
        Spec {
            description: "Says that the work is done: captures the worktree and runs all its verifiers. It answers whether it really is, and what \
                          is missing.",
            idempotent: true,
            ..spec::<Nothing, Finished>("finish", "Finish")
        },
    ]
}

/// What `task_status` answers: the brief report.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used: the report itself is made elsewhere")]
struct TaskStatus {
    schema: String,
    task_id: String,
    state: String,
    goal: String,
}

fn looks(spec: Spec, description: &'static str) -> Spec {
    Spec { description, read_only: true, idempotent: true, ..spec }
}

fn spec<A: JsonSchema, R: JsonSchema>(name: &'static str, title: &'static str) -> Spec {
    Spec {
        name,
        title,
        description: "",
        input: schema::<A>(),
        output: schema::<R>(),
        read_only: false,
        destructive: false,
        idempotent: false,
    }
}

/// One schema without references into itself: not every client resolves those.
fn schema<T: JsonSchema>() -> Value {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_is_an_object_that_takes_no_unknown_arguments() {
        for spec in specs() {
            assert_eq!(spec.input["type"], "object", "{}", spec.name);
            assert_eq!(spec.output["type"], "object", "{}", spec.name);
            assert_eq!(spec.input["additionalProperties"], false, "{}: {}", spec.name, spec.input);
            assert!(
                !spec.description.is_empty() && !spec.input.to_string().contains("$ref"),
                "{}",
                spec.name
            );
        }
    }
}
