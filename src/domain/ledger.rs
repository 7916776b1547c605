//! What happened: rows, what they hold, the states that actions and tasks come to, and the report of it.

pub mod action;
pub mod brief;
pub mod decision;
mod effects;
pub mod entry;
pub mod objects;
pub mod record;
pub mod report;
pub mod task;
