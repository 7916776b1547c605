//! What is shown: evidence as it was recorded, the verdicts that follow from it, and what changed around it.

pub mod base_runs;
pub mod case_changes;
pub mod cases;
pub mod evidence;
pub mod gone_cases;
pub mod judge;
pub mod listing;
pub mod on_live;
pub mod records;
pub mod reproduction;
pub mod run;
pub mod tripwire;
pub mod verdict;
