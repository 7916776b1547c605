//! A JSON value of a row, as its text stands there: the hash of the row covers these very bytes, and most of
//! those who read rows ask for a field or two.

use crate::error::{Failure, Result};
use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

/// Compact JSON. What is read from a ledger may be anything; it has no fields then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowJson(Arc<str>);

/// What the text of a record begins with.
const TAG: &str = r#"{"record":""#;

impl RowJson {
    pub fn null() -> Self {
        Self("null".into())
    }

    /// As it was stored.
    pub fn from_stored(text: String) -> Self {
        Self(text.into())
    }

    pub fn from_serialized(value: &impl Serialize) -> Result<Self> {
        let text = serde_json::to_string(value);
        text.map(|text| Self(text.into()))
            .map_err(|e| Failure::internal(format!("a record cannot be written: {e}")))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn is_null(&self) -> bool {
        &*self.0 == "null"
    }

    /// The kind of record that it holds; `None` where it holds none.
    pub fn record_kind(&self) -> Option<Cow<'_, str>> {
        let written_by_us = self.0.strip_prefix(TAG).and_then(|rest| rest.split_once('"'));
        match written_by_us {
            Some((kind, _)) if !kind.contains('\\') => Some(Cow::Borrowed(kind)),
            _ => self.field("record").map(Cow::Owned),
        }
    }

    /// A field of it, where it is there and of that kind.
    pub fn field<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let fields: HashMap<Cow<'_, str>, &RawValue> = serde_json::from_str(&self.0).ok()?;
        serde_json::from_str(fields.get(name)?.get()).ok()
    }
}

impl Serialize for RowJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match serde_json::from_str::<&RawValue>(&self.0) {
            Ok(raw) => raw.serialize(serializer),
            Err(_) => serializer.serialize_str(&self.0),
        }
    }
}

impl From<Value> for RowJson {
    fn from(value: Value) -> Self {
        Self(value.to_string().into())
    }
}
