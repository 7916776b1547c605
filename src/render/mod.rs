//! Results as text for people: one view a file. Pure: values in, text out. `--format json` needs nothing of
//! this: there the values are what is shown.

pub mod agent;
pub mod answer;
pub mod brief;
pub mod cancel;
pub mod candidate;
pub mod delivery;
pub mod demo;
pub mod doctor;
pub mod evidence;
pub mod failure;
pub mod gc;
pub mod init;
pub mod log;
pub mod manual;
pub mod recovery;
pub mod report;
mod run;
pub mod status;
pub mod style;
pub mod task;
pub mod verification;
mod worker;
