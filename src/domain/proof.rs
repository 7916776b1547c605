//! What is shown: evidence as it was recorded, the verdicts that come of it, and what else to know.

pub mod evidence;
pub mod risk;
pub mod run;
pub mod tripwire;
pub mod verdict;
