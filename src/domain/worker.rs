//! What a worker did and asked for: calls, findings, questions.

pub mod call;
pub mod finding;
pub mod inquiry;
