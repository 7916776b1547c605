//! Amendments: what a worker wishes to be different in its contract, and the contract that comes of it once a
//! person agrees.
//!
//! A wish replaces whole fields of the document as it was given. It can never change what the task is: its
//! id, base, parent and kind.

use crate::domain::contract::Contract;
use crate::domain::value::outside::{accept_text, plain_line};
use crate::error::{Code, Failure, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The longest reason, in characters.
pub const LONGEST_REASON: usize = 4000;
/// The longest change, in bytes of its JSON.
pub const LONGEST_CHANGE: usize = 64 * 1024;
/// Fields that make the task what it is.
const FIXED: [&str; 5] = ["taskId", "schema", "base", "parent", "kind"];

/// A wish of the worker's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    /// The fields of the contract that it replaces.
    pub change: Map<String, Value>,
    /// The reason in the worker's words.
    pub reason: String,
    /// The version of the contract that it was made for.
    #[serde(default)]
    pub version: u32,
}

impl Proposal {
    /// From a call's arguments, for a contract as it was given. The failure is `arguments.invalid` where the
    /// arguments say nothing, and `contract.invalid` (or `not_supported`) where what would come of it is no
    /// contract.
    pub fn new(document: &[u8], change: &Map<String, Value>, reason: &str) -> Result<Self> {
        let fields: Vec<&String> = change.keys().collect();
        let refused = |why: &str| {
            Failure::new(Code::ArgumentsInvalid, format!("`change` {why}"))
                .subject("change")
                .expected("the fields of the contract that are to be replaced", &fields)
        };
        if change.is_empty() {
            return Err(refused("names no field"));
        }
        let length = Value::Object(change.clone()).to_string().len();
        if length > LONGEST_CHANGE {
            return Err(refused(&format!("has {length} bytes; at most {LONGEST_CHANGE} are taken"))
                .expected(LONGEST_CHANGE, length));
        }
        let reason = accept_text("reason", reason, LONGEST_REASON)?;
        let proposal = Self { change: change.clone(), reason, version: 0 };
        let fixed = change.keys().filter_map(|field| FIXED.iter().find(|fixed| *fixed == field));
        if let Some(failure) = Failure::first_of(fixed.map(|field| cannot_change(field))) {
            return Err(failure);
        }
        let (_, contract) = proposal.merge_into(document)?;
        if contract == Contract::parse_document(document)? {
            return Err(refused("changes nothing: the contract says so already"));
        }
        Ok(proposal)
    }

    /// The document that comes of it, and the contract that it says.
    pub fn merge_into(&self, document: &[u8]) -> Result<(Vec<u8>, Contract)> {
        let unreadable =
            |e: serde_json::Error| Failure::internal(format!("a sealed contract is no JSON: {e}"));
        let mut fields: Map<String, Value> = serde_json::from_slice(document).map_err(unreadable)?;
        for (field, value) in &self.change {
            fields.insert(field.clone(), value.clone());
        }
        let mut merged = serde_json::to_vec_pretty(&fields).map_err(unreadable)?;
        merged.push(b'\n');
        let contract = Contract::parse_document(&merged)?;
        Ok((merged, contract))
    }

    /// Field by field what is there now and what takes its place, whole: nobody agrees to what was not shown.
    /// One line each, in words that cannot act on a terminal.
    pub fn field_differences(&self, document: &[u8]) -> Result<Vec<String>> {
        let unreadable =
            |e: serde_json::Error| Failure::internal(format!("a sealed contract is no JSON: {e}"));
        let fields: Map<String, Value> = serde_json::from_slice(document).map_err(unreadable)?;
        let difference = |(field, new): (&String, &Value)| {
            let old = fields.get(field).map_or_else(|| "not set".to_owned(), Value::to_string);
            format!(
                "{field}: {} -> {}",
                plain_line(&old, usize::MAX),
                plain_line(&new.to_string(), usize::MAX)
            )
        };
        Ok(self.change.iter().map(difference).collect())
    }
}

fn cannot_change(field: &str) -> Failure {
    Failure::new(
        Code::ContractInvalid,
        format!("no amendment can change `{field}`: it makes the task what it is"),
    )
    .subject(field)
    .expected("a field that can change", field)
    .detail("fixed", FIXED)
    .remedy("Open another task for it.", ["git", "tender", "open", "--help"])
}

#[cfg(test)]
mod tests {
    use crate::domain::contract::amendment::*;
    use serde_json::json;

    const PLAIN: &[u8] =
        br#"{ "taskId": "t1", "goal": "g", "writeScope": ["docs/"], "allowedTools": ["read_file"], "budget": {"toolCalls": 5} }"#;

    fn refuse_change(change: Value) -> Failure {
        Proposal::new(PLAIN, change.as_object().expect("an object"), "because").expect_err("refused")
    }

    #[test]
    fn whole_fields_are_replaced_and_the_rest_stays() {
        let change = json!({"writeScope": ["docs/", "src/"], "budget": {"wallSeconds": 7}});
        let proposal =
            Proposal::new(PLAIN, change.as_object().expect("an object"), "because").expect("taken");
        let (document, contract) = proposal.merge_into(PLAIN).expect("a contract");
        assert_eq!(contract, Contract::parse_document(&document).expect("reads"));
        assert_eq!(contract.write_scope.patterns(), ["docs/", "src/"]);
        assert_eq!(contract.budget.len(), 1, "the whole field, not its keys");
        assert_eq!((contract.goal.as_str(), contract.task_id.as_str()), ("g", "t1"));
        assert_eq!(proposal.change.keys().collect::<Vec<_>>(), ["writeScope", "budget"]);
    }

    #[test]
    fn what_makes_the_task_and_what_is_no_contract_is_refused_by_name() {
        for field in FIXED {
            let failure = refuse_change(json!({ "goal": "x", field: "other" }));
            assert_eq!((failure.code(), failure.subject_text()), (Code::ContractInvalid, Some(field)));
        }
        let unknown = refuse_change(json!({"wirteScope": []}));
        assert_eq!(
            (unknown.code(), unknown.details()["nearest"].as_str()),
            (Code::ContractInvalid, Some("writeScope"))
        );
        assert_eq!(refuse_change(json!({"delivery": "branch"})).subject_text(), Some("commitAllowed"));
        assert_eq!(refuse_change(json!({"network": "enabled"})).code(), Code::NotSupported);
        for nothing in [json!({}), json!({"goal": "g"})] {
            assert_eq!(refuse_change(nothing).code(), Code::ArgumentsInvalid);
        }
        assert_eq!(
            refuse_change(json!({"goal": "x".repeat(LONGEST_CHANGE)})).details()["expected"],
            LONGEST_CHANGE
        );
        let change = json!({"goal": "x"});
        let failure =
            Proposal::new(PLAIN, change.as_object().expect("an object"), " ").expect_err("no reason");
        assert_eq!(failure.subject_text(), Some("reason"));
    }
}
