//! What a worker asked for and was told: calls, repetition of them, findings, questions, hooks.

pub mod call;
pub mod finding;
pub mod hook;
pub mod inquiry;
pub mod repetition;
