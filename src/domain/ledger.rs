//! What happened: rows and what they hold, the task that they are folded to, and the report of it.

pub mod action;
pub mod brief;
pub mod brought;
pub mod calls;
pub mod charges;
pub mod entry;
pub mod head;
pub mod inquiries;
pub mod objects;
pub mod record;
pub mod repetition;
pub mod report;
pub mod risk;
pub mod row_json;
pub mod store_home;
pub mod task;
pub mod turn;
pub mod verifier_objects;
