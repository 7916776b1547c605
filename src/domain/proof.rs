//! What is shown: evidence as it was recorded, the verdicts that follow from it, and what changed around it.

pub mod case_changes;
pub mod cases;
pub mod evidence;
pub mod judge;
pub mod on_live;
pub mod run;
pub mod tripwire;
pub mod verdict;
