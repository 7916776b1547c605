//! Stand-in.
use serde_json::Value;
/// A tool.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "stand-in")]
pub struct Spec { pub name: &'static str, pub title: &'static str, pub description: &'static str, pub input: Value, pub output: Value, pub read_only: bool, pub destructive: bool, pub idempotent: bool }
