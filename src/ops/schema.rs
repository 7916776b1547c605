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
    use crate::domain::contract::{CONTRACT_FIELDS, policy};
    use crate::verifier::manifest::MANIFEST_FIELDS;

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

    #[test]
    fn no_list_of_words_is_left_empty() {
        for name in [SchemaName::Contract, SchemaName::Config, SchemaName::Verifier] {
            let text = schema_of(name).expect("a schema").to_string();
            assert!(!text.contains("\"enum\":[]"), "{name:?}: {text}");
        }
    }
}
