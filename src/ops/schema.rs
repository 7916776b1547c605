//! `schema`: the JSON schema of a document that people write, so that their editors complete it.
//!
//! The schemas are files beside this one. What the readers take from tables (tools, modes, formats, words) is
//! filled in from those tables, and a test compares the names of the fields with the readers'.

use crate::domain::contract::DeliveryMode;
use crate::domain::contract::policy::BaseRuns;
use crate::domain::contract::tool::WorkerTool;
use crate::error::{Failure, Result};
use crate::verifier::formats;
use serde_json::{Value, json};

/// A document that has a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum SchemaName {
    /// A contract.
    Contract,
    /// `.tender/config.toml`.
    Config,
    /// A `verifier.toml`.
    Verifier,
}

/// The schema of a document.
pub fn schema_of(name: SchemaName) -> Result<Value> {
    let text = match name {
        SchemaName::Contract => include_str!("schema/contract.json"),
        SchemaName::Config => include_str!("schema/config.json"),
        SchemaName::Verifier => include_str!("schema/verifier.json"),
    };
    let mut schema = serde_json::from_str(text)
        .map_err(|e| Failure::internal(format!("a schema of ours is no JSON: {e}")))?;
    for (place, words) in words_of_tables(name) {
        let slot = Value::pointer_mut(&mut schema, place)
            .ok_or_else(|| Failure::internal(format!("a schema of ours has no {place}")))?;
        *slot = words;
    }
    Ok(schema)
}

/// Where a schema lists the words of a table, and these.
fn words_of_tables(name: SchemaName) -> Vec<(&'static str, Value)> {
    let base = json!(BaseRuns::ALL.map(|(word, _)| word));
    match name {
        SchemaName::Contract => vec![
            ("/properties/allowedTools/items/enum", json!(WorkerTool::all_names())),
            ("/properties/requirements/items/properties/base/enum", base),
        ],
        SchemaName::Config => vec![
            (
                "/properties/policy/properties/delivery/items/enum",
                json!(DeliveryMode::ALL.map(|(word, _)| word)),
            ),
            ("/properties/policy/properties/base/enum", base),
        ],
        SchemaName::Verifier => vec![
            (
                "/properties/outputs/items/properties/format/enum",
                json!(formats::ALL.iter().map(|format| format.name).collect::<Vec<_>>()),
            ),
            ("/properties/base/enum", base),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::contract::{CONTRACT_FIELDS, Contract, policy};
    use crate::verifier::manifest::{MANIFEST_FIELDS, Manifest};

    fn names_at(schema: &Value, place: &str) -> Vec<String> {
        let names = schema.pointer(place).and_then(Value::as_object).expect("properties");
        let mut names: Vec<String> = names.keys().cloned().collect();
        names.sort();
        names
    }

    fn sorted(names: &[&str]) -> Vec<String> {
        let mut names: Vec<String> = names.iter().map(ToString::to_string).collect();
        names.sort();
        names
    }

    #[test]
    fn a_schema_names_exactly_the_fields_that_are_read() {
        let contract = schema_of(SchemaName::Contract).expect("a schema");
        assert_eq!(names_at(&contract, "/properties"), sorted(&CONTRACT_FIELDS));
        let config = schema_of(SchemaName::Config).expect("a schema");
        assert_eq!(names_at(&config, "/properties"), sorted(&policy::CONFIG_FIELDS));
        assert_eq!(names_at(&config, "/properties/policy/properties"), sorted(&policy::POLICY_FIELDS));
        let verifier = schema_of(SchemaName::Verifier).expect("a schema");
        assert_eq!(names_at(&verifier, "/properties"), sorted(&MANIFEST_FIELDS));
    }

    /// Keys that say nothing of what is done. The first is for editors; the next name the form, or the
    /// folder, and are refused where they name another; the last is a ceiling of what no contract can ask
    /// for.
    const SAYS_NOTHING: [&str; 5] = ["$schema", "schema", "protocol", "id", "env"];

    /// A value of each key that is not the one without it.
    const CONTRACT_VALUES: [(&str, &str); 20] = [
        ("taskId", r#""other""#),
        ("parent", r#""above""#),
        ("kind", r#""explore""#),
        ("case", r#"["tests/"]"#),
        ("goal", r#""another""#),
        ("base", r#""v1""#),
        ("writeScope", r#"["other/"]"#),
        ("readScope", r#"["docs/"]"#),
        ("allowedTools", r#"["read_file"]"#),
        ("scratch", r#"["tmp/"]"#),
        ("commands", r#"{"a": {"argv": ["b"]}}"#),
        ("network", r#""enabled""#),
        ("sandbox", r#""optional""#),
        ("verification", r#"{"allowed": ["unit"]}"#),
        ("requirements", r#"[{"id": "a", "text": "b", "verifier": "c"}]"#),
        ("artifacts", r#"[{"path": "src/a"}]"#),
        ("budget", r#"{"toolCalls": 7}"#),
        ("env", r#"{"pass": ["TERM"]}"#),
        ("delivery", r#""staged""#),
        ("commitAllowed", "true"),
    ];
    const CONFIG_VALUES: [(&str, &str); 4] = [
        ("worktree", r#"{ copy = [".env"] }"#),
        ("filters", r#"["lfs"]"#),
        ("policy", "{ commit = false }"),
        ("hooks", r#"[{ event = "after_task", kind = "observer", command = ["true"] }]"#),
    ];
    const POLICY_VALUES: [(&str, &str); 12] = [
        ("network", r#""disabled""#),
        ("write", r#"["src/"]"#),
        ("protected", r#"["docs/"]"#),
        ("require", r#"[{ verifier = "unit", when = ["**"] }]"#),
        ("delivery", r#"["staged"]"#),
        ("commit", "false"),
        ("flaky", r#""warn""#),
        ("live", r#""prove""#),
        ("goneCases", r#""warn""#),
        ("base", r#""always""#),
        ("accept", r#""signed""#),
        ("budget", "{ edit = { toolCalls = 7 } }"),
    ];
    const MANIFEST_VALUES: [(&str, &str); 21] = [
        ("title", r#""Unit""#),
        ("command", r#"["other"]"#),
        ("setup", r#"{ command = ["a"], inputs = ["b"] }"#),
        ("read", r#"["~/.cargo"]"#),
        ("kind", r#""manual""#),
        ("inputs", r#"["src/**"]"#),
        ("closure", r#"["run.sh"]"#),
        ("tools", r#"[{ name = "cargo" }]"#),
        ("env", r#"["TERM"]"#),
        ("outputs", r#"[{ format = "sarif" }]"#),
        ("pass", r#""exit-code""#),
        ("min_checks", "2"),
        ("timeout", r#""1s""#),
        ("network", "true"),
        ("scratch", r#"["target/"]"#),
        ("reuse", r#""never""#),
        ("attempts", "2"),
        ("watch", r#"["build.rs"]"#),
        ("base", r#""always""#),
        ("cases", "false"),
        ("uses", r#""pre-commit""#),
    ];

    /// Each key of a reader has a value that is not read like its absence, or is refused by its name.
    fn require_effect<T: std::fmt::Debug>(
        fields: &[&str],
        values: &[(&str, &str)],
        read: impl Fn(Option<(&str, &str)>) -> Result<T>,
    ) {
        let without = format!("{:?}", read(None).expect("reads"));
        for field in fields {
            let Some(value) = values.iter().find(|(key, _)| key == field) else {
                assert!(SAYS_NOTHING.contains(field), "{field} has no value here");
                continue;
            };
            match read(Some(*value)) {
                Ok(with) => assert_ne!(format!("{with:?}"), without, "{field} changes nothing"),
                Err(failure) => {
                    let subject = failure.subject_text().unwrap_or_default();
                    assert_eq!(subject.rsplit('.').next(), Some(*field), "{failure}");
                }
            }
        }
    }

    #[test]
    fn each_key_changes_what_is_read_or_is_refused_by_name() {
        require_effect(&CONTRACT_FIELDS, &CONTRACT_VALUES, |given| {
            let mut document =
                json!({ "taskId": "t", "goal": "g", "writeScope": ["src/"], "allowedTools": [] });
            if let Some((key, value)) = given {
                document[key] = serde_json::from_str(value).expect("JSON");
            }
            Contract::parse_document(document.to_string().as_bytes())
        });
        let config = |given: Option<(&str, &str)>| given.map(|(key, value)| format!("{key} = {value}\n"));
        require_effect(&policy::CONFIG_FIELDS, &CONFIG_VALUES, |given| {
            policy::Config::parse_config(config(given).unwrap_or_default().as_bytes())
        });
        require_effect(&policy::POLICY_FIELDS, &POLICY_VALUES, |given| {
            let text = format!("[policy]\n{}", config(given).unwrap_or_default());
            policy::Config::parse_config(text.as_bytes())
        });
        require_effect(&MANIFEST_FIELDS, &MANIFEST_VALUES, |given| {
            let mut document = toml::Table::from_iter([
                ("protocol".to_owned(), toml::Value::from(1)),
                ("id".to_owned(), toml::Value::from("unit")),
                ("command".to_owned(), toml::Value::from(vec!["true"])),
                ("pass".to_owned(), toml::Value::from("protocol")),
            ]);
            if let Some((key, value)) = given {
                if key == "kind" {
                    document.retain(|key, _| key == "protocol" || key == "id");
                }
                document.extend(format!("{key} = {value}").parse::<toml::Table>().expect("TOML"));
            }
            Manifest::parse("verifier.toml", "unit", document.to_string().as_bytes())
        });
    }

    #[test]
    fn no_list_of_words_is_left_empty() {
        for name in [SchemaName::Contract, SchemaName::Config, SchemaName::Verifier] {
            let text = schema_of(name).expect("a schema").to_string();
            assert!(!text.contains("\"enum\":[]"), "{name:?}: {text}");
        }
    }
}
