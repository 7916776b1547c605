//! How a call ends that the gate has let through.

use crate::domain::value::outside::Origin;
use crate::domain::worker::call::{Effect, Seen};
use crate::error::{Failure, Result};
use serde::Serialize;
use serde_json::Value;

/// The result of a call.
#[derive(Debug)]
pub struct CallOutcome {
    pub value: Value,
    /// The part of it that tells a new result from an old one; `None` for all of it.
    pub novelty: Option<Value>,
    /// Where its content came from.
    pub origin: Option<Origin>,
    /// The blobs that the worker knows of by it.
    pub seen: Vec<Seen>,
    pub effect: Option<Effect>,
}

/// Why a call has no result.
#[derive(Debug)]
pub enum CallFailure {
    WithoutEffect(Failure),
    /// It cannot be said what was changed; recovery will look.
    Unknown(Failure),
}

impl From<Failure> for CallFailure {
    fn from(failure: Failure) -> Self {
        Self::WithoutEffect(failure)
    }
}

impl CallOutcome {
    /// An answer that changes nothing.
    pub fn of_answer(answer: &impl Serialize) -> Result<Self> {
        let value = serde_json::to_value(answer)
            .map_err(|e| Failure::internal(format!("an answer cannot be written: {e}")))?;
        Ok(Self { value, novelty: None, origin: None, seen: Vec::new(), effect: None })
    }

    /// The whole effect of the call is that it stands in the ledger. The id that it got there says nothing
    /// new.
    pub fn of_note(answer: &impl Serialize, effect: Effect) -> Result<Self> {
        Ok(Self { effect: Some(effect), novelty: Some(Value::Null), ..Self::of_answer(answer)? })
    }

    /// An answer whose content is not the harness's own.
    pub fn of_content(answer: &impl Serialize, origin: Origin) -> Result<Self> {
        Ok(Self { origin: Some(origin), ..Self::of_answer(answer)? })
    }
}
