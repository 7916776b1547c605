//! What a command answered, and the checks that hold for every answer.

use super::shape;
use serde_json::{Value, json};
use std::os::unix::process::ExitStatusExt as _;

/// The raw end of a process.
#[derive(Debug)]
pub struct Out {
    pub shown: String,
    pub code: i32,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl Out {
    pub fn new(shown: String, output: std::process::Output) -> Self {
        let code = output.status.code().unwrap_or_else(|| 128 + output.status.signal().unwrap_or(0));
        Self { shown, code, stdout: output.stdout, stderr: output.stderr }
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    pub fn errors(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// Both streams, for messages and for "is it said anywhere".
    pub fn all(&self) -> String {
        format!("{}\n{}", self.text(), self.errors())
    }

    #[track_caller]
    pub fn ok(self) -> Self {
        self.exits(0)
    }

    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(
            self.code,
            code,
            "{}\n--- stdout\n{}\n--- stderr\n{}",
            self.shown,
            self.text(),
            self.errors()
        );
        assert!(!self.errors().contains("panicked at"), "{}\n{}", self.shown, self.errors());
        self
    }
}

/// The end of a process that was asked for JSON.
#[derive(Debug)]
pub struct Answer {
    pub shown: String,
    pub code: i32,
    pub json: Value,
    pub stderr: String,
}

/// The table of the overview: category, exit code and the codes in it.
pub const CODES: &[(&str, i32, &[&str])] = &[
    ("verification", 1, &["verification.failed", "evidence.stale", "evidence.missing", "verifier.protocol"]),
    (
        "usage",
        2,
        &[
            "arguments.invalid",
            "contract.invalid",
            "config.invalid",
            "patch.invalid",
            "not_supported",
            "not_found",
            "state.invalid",
        ],
    ),
    ("conflict", 3, &["delivery.conflict", "version.conflict", "push.conflict"]),
    ("denied", 4, &["scope.violation", "tool.not_allowed", "check.forbidden", "permission.denied"]),
    ("budget", 5, &["budget.exhausted", "failure.repeated"]),
    ("person", 6, &["confirmation.required", "input.required", "decision.required"]),
    ("unknown", 7, &["outcome.unknown"]),
    ("cancelled", 8, &["cancelled"]),
    ("busy", 9, &["store.busy"]),
    (
        "environment",
        10,
        &["git.unsupported", "sandbox.unavailable", "store.corrupt", "store.rolled_back", "io"],
    ),
    ("internal", 70, &["internal"]),
];

impl Answer {
    /// Exactly one JSON object on stdout, whatever the exit code.
    #[track_caller]
    pub fn of(out: Out) -> Self {
        let mut stream = serde_json::Deserializer::from_slice(&out.stdout).into_iter::<Value>();
        let first = stream.next();
        let rest = stream.next();
        let (Some(Ok(json)), None) = (first, rest) else {
            panic!(
                "{}: stdout is not exactly one JSON object (exit {})\n--- stdout\n{}\n--- stderr\n{}",
                out.shown,
                out.code,
                out.text(),
                out.errors()
            );
        };
        assert!(json.is_object(), "{}: not an object: {json}", out.shown);
        assert!(!out.errors().contains("panicked at"), "{}\n{}", out.shown, out.errors());
        Self { shown: out.shown.clone(), code: out.code, json, stderr: out.errors() }
    }

    /// A result (no `error`) with exit 0.
    #[track_caller]
    pub fn ok(self) -> Self {
        self.result(0)
    }

    /// A result (no `error`) with this exit code, and a `schema`.
    #[track_caller]
    pub fn result(self, exit: i32) -> Self {
        assert_eq!(self.code, exit, "{}\n{:#}\n{}", self.shown, self.json, self.stderr);
        assert!(self.json.get("error").is_none(), "{}\n{:#}", self.shown, self.json);
        let schema = self.json["schema"].as_str().unwrap_or_default();
        assert!(
            schema.starts_with("git-tender/")
                && (schema.ends_with("/v1") || schema == "git-tender/status/v2"),
            "{}: no schema in {:#}",
            self.shown,
            self.json
        );
        self
    }

    /// A failure with this code: full shape, the category and exit code of the table. Returns the error
    /// object.
    #[track_caller]
    pub fn fails(&self, code: &str) -> &Value {
        let error = self.error();
        assert_eq!(error["code"], code, "{}\n{:#}", self.shown, self.json);
        error
    }

    /// A failure with one of these codes, where the design leaves open which.
    #[track_caller]
    pub fn fails_one_of(&self, codes: &[&str]) -> &Value {
        let error = self.error();
        let code = error["code"].as_str().unwrap_or_default();
        assert!(codes.contains(&code), "{}: {code} is none of {codes:?}\n{:#}", self.shown, self.json);
        error
    }

    /// Any failure, checked for its shape and for the exit code that belongs to its category.
    #[track_caller]
    pub fn error(&self) -> &Value {
        let Some(error) = self.json.get("error") else {
            panic!("{}: no error, exit {}\n{:#}", self.shown, self.code, self.json);
        };
        shape::check(
            error,
            &json!({
                "code": "$str", "category": "$str", "message": "$text", "subject": "$str?", "retry": "$str",
                "details": "$object", "remedy": {"text": "$text", "command": ["$str"]}, "ref": "$str?"
            }),
        );
        let code = error["code"].as_str().expect("checked");
        let row = CODES.iter().find(|row| row.2.contains(&code));
        let (category, exit, _) = row.unwrap_or_else(|| panic!("{code} is not in the table"));
        assert_eq!(error["category"], *category, "{:#}", self.json);
        assert_eq!(self.code, *exit, "{}\n{:#}", self.shown, self.json);
        let retries = ["fix_arguments", "reread", "wait", "ask_user", "query_state", "never"];
        assert!(retries.contains(&error["retry"].as_str().expect("checked")), "{:#}", self.json);
        assert!(
            can_be_typed(&error["remedy"]["command"]),
            "no such command as the remedy names: {:#}",
            self.json
        );
        error
    }

    /// Every conflict of a refused delivery as (path, reason), sorted.
    #[track_caller]
    pub fn conflicts(&self) -> Vec<(String, String)> {
        let error = self.fails("delivery.conflict");
        let list = error["details"]["conflicts"].as_array();
        let list = list.unwrap_or_else(|| panic!("no conflicts in {:#}", self.json));
        let state = |value: &Value| {
            value.is_null()
                || (value["mode"].is_string() && (value["gitBlob"].is_string() || value["gitBlob"].is_null()))
        };
        let mut all = Vec::new();
        for conflict in list {
            let mut shape = json!({"path": "$any", "reason": "$word", "expected": "$any", "actual": "$any", "mergeable": "$bool"});
            if conflict["reason"] == "collision" {
                shape["partner"] = json!("$any");
            }
            shape::check(conflict, &shape);
            assert!(state(&conflict["expected"]) && state(&conflict["actual"]), "{conflict:#}");
            all.push((
                conflict["path"].as_str().unwrap_or_default().to_owned(),
                conflict["reason"].as_str().expect("checked").to_owned(),
            ));
        }
        all.sort();
        all
    }

    /// The row of a requirement, from a verification or a report.
    #[track_caller]
    pub fn row(&self, id: &str) -> &Value {
        let rows = self.json["requirements"].as_array();
        let rows = rows.unwrap_or_else(|| panic!("{}: no requirements in {:#}", self.shown, self.json));
        let found = rows.iter().find(|row| row["id"] == id);
        found.unwrap_or_else(|| panic!("{}: no row {id} in {:#}", self.shown, self.json))
    }

    #[track_caller]
    pub fn verdict(&self, id: &str) -> &str {
        self.row(id)["verdict"].as_str().expect("verdict is a string")
    }

    #[track_caller]
    pub fn reason(&self, id: &str) -> &str {
        self.row(id)["reason"].as_str().unwrap_or_default()
    }

    /// Every path with its outcome, of a delivery.
    #[track_caller]
    pub fn outcomes(&self) -> Vec<(String, String)> {
        let paths = self.json["paths"].as_array();
        let paths = paths.unwrap_or_else(|| panic!("{}: no paths in {:#}", self.shown, self.json));
        let mut all: Vec<_> = paths
            .iter()
            .map(|entry| {
                (
                    entry["path"].as_str().unwrap_or_default().to_owned(),
                    entry["outcome"].as_str().expect("outcome is a string").to_owned(),
                )
            })
            .collect();
        all.sort();
        all
    }

    /// Every changed path with its status, of a candidate or report.
    #[track_caller]
    pub fn changes(&self) -> Vec<(String, String)> {
        let list = self.json["changes"].as_array();
        let list = list.unwrap_or_else(|| panic!("{}: no changes in {:#}", self.shown, self.json));
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut all: Vec<_> = list.iter().map(|c| (text(&c["path"]), text(&c["status"]))).collect();
        all.sort();
        all
    }

    /// Whether any risk of a report says this (letter case apart).
    #[track_caller]
    pub fn has_risk(&self, words: &str) -> bool {
        let risks = self.json["risks"].as_array();
        let risks = risks.unwrap_or_else(|| panic!("{}: no risks in {:#}", self.shown, self.json));
        let words = words.to_lowercase();
        risks.iter().any(|risk| risk["text"].as_str().unwrap_or_default().to_lowercase().contains(&words))
    }
}

/// A remedy's command is git's own, or one that this version has.
fn can_be_typed(command: &Value) -> bool {
    let words: Vec<&str> = command.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    match words.as_slice() {
        ["git", "tender", "-h"] => true,
        ["git", "tender", name, ..] => {
            let help = std::process::Command::new(super::lab::TENDER).args([name, "--help"]).output();
            help.expect("runs").status.success()
        }
        ["git", _, ..] => true,
        _ => false,
    }
}
