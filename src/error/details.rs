//! Details that code reads back from a failure.
//!
//! Each has one key, a constant beside the type of its value. Writer and reader name the constant, so that
//! neither can take another key or another type than the other.

use super::{Failure, several};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::borrow::Borrow;
use std::marker::PhantomData;

/// The key of a detail in JSON, with the type of its value.
#[derive(Debug)]
pub struct DetailKey<T>(&'static str, PhantomData<fn() -> T>);

impl<T> DetailKey<T> {
    pub const fn new(name: &'static str) -> Self {
        Self(name, PhantomData)
    }

    pub fn name(&self) -> &'static str {
        self.0
    }
}

impl Failure {
    /// Adds a detail that is read back somewhere.
    pub fn with_detail<T: Borrow<B>, B: Serialize + ?Sized>(self, key: &DetailKey<T>, value: &B) -> Self {
        self.detail(key.name(), value)
    }

    pub fn has_detail<T>(&self, key: &DetailKey<T>) -> bool {
        self.details().contains_key(key.name())
    }

    /// The detail, where the failure has it whole: a text that was clipped may fit its type no more.
    pub fn read_detail<T: DeserializeOwned>(&self, key: &DetailKey<T>) -> Option<T> {
        self.details().get(key.name()).and_then(|value| serde_json::from_value(value.clone()).ok())
    }

    pub fn detail(mut self, key: &str, value: impl Serialize) -> Self {
        let value = serde_json::to_value(value).unwrap_or(Value::Null);
        self.0.details.insert(key.to_owned(), several::with_bounds(value));
        self
    }

    /// All details of another failure.
    pub fn details_of(mut self, other: &Failure) -> Self {
        self.0.details.extend(other.details().clone());
        self
    }
}
