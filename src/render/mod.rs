//! Results as text for people: one view a file. Pure: values in, text out. `--format json` needs nothing of
//! this: there the values are what is shown.

pub mod agent;
mod answer;
mod brief;
mod cancel;
mod candidate;
mod check;
mod ci_formats;
mod delivery;
mod demo;
mod doctor;
mod evidence;
mod failure;
mod gc;
mod init;
mod log;
mod manual;
mod recovery;
mod report;
mod run;
mod status;
mod style;
mod task;
mod verification;
mod worker;

pub use answer::answer_text;
pub use brief::brief_text;
pub use cancel::cancel_text;
pub use candidate::candidate_text;
pub use check::{check_end_text, checked_text, settled_text};
pub use ci_formats::{github_text, junit_text, sarif_text};
pub use delivery::delivery_text;
pub use demo::demo_text;
pub use doctor::doctor_text;
pub use evidence::evidence_text;
pub use failure::{failure_text, refusal_text};
pub use gc::gc_text;
pub use init::init_text;
pub use log::{action_text, entry_line};
pub use manual::manual_text;
pub use recovery::recovery_text;
pub use report::report_text;
pub use status::{lost_head_line, status_text, unfinished_line};
pub use task::task_text;
pub use verification::verification_text;
