//! Builds contracts.

use super::Lab;
use serde_json::{Value, json};
use std::path::PathBuf;

/// A contract in the making; every method overwrites a field.
#[derive(Clone)]
pub struct Contract(pub Value);

impl Contract {
    /// Everything may change, nothing has to be shown.
    pub fn new(id: &str) -> Self {
        Self(json!({
            "taskId": id,
            "goal": "a change for a test",
            "writeScope": ["**"],
            "allowedTools": ["read_file", "apply_patch"],
        }))
    }

    pub fn set(mut self, field: &str, value: Value) -> Self {
        self.0[field] = value;
        self
    }

    pub fn without(mut self, field: &str) -> Self {
        self.0.as_object_mut().expect("object").remove(field);
        self
    }

    pub fn scope(self, paths: &[&str]) -> Self {
        self.set("writeScope", json!(paths))
    }

    pub fn allowed(mut self, ids: &[&str]) -> Self {
        self.0["verification"]["allowed"] = json!(ids);
        if self.0["verification"].get("forbidden").is_none() {
            self.0["verification"]["forbidden"] = json!([]);
        }
        self
    }

    pub fn forbidden(mut self, ids: &[&str]) -> Self {
        self.0["verification"]["forbidden"] = json!(ids);
        if self.0["verification"].get("allowed").is_none() {
            self.0["verification"]["allowed"] = json!([]);
        }
        self
    }

    /// Delivered by a commit: the mode alone, or with what goes with it.
    pub fn committed(self, delivery: Value) -> Self {
        self.set("commitAllowed", json!(true)).set("delivery", delivery)
    }

    /// Writes it outside every repository and returns the file.
    pub fn file(&self, lab: &Lab) -> PathBuf {
        raw(lab, &serde_json::to_vec_pretty(&self.0).expect("serializes"))
    }
}

/// Any bytes as a contract file, each in a file of its own.
pub fn raw(lab: &Lab, bytes: &[u8]) -> PathBuf {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let path = lab.path(format!("contracts/{number}.json"));
    std::fs::write(&path, bytes).expect("writes the contract");
    path
}
