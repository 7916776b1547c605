//! What every use case stands on: a task, the one way into it, what is written down of it, and the effects
//! that it can have. No command is known by name here.

pub mod action;
pub mod amendment;
pub mod budget;
pub mod candidate;
pub mod effect;
pub mod enter;
pub mod evidence;
pub mod family;
pub mod finding;
pub mod furnish;
pub mod held;
pub mod home;
pub mod hooks;
pub mod inquiry;
pub mod journal;
pub mod known_verifiers;
pub mod live_ground;
pub mod meter;
mod newer_rules;
pub mod observation;
pub mod on_live;
pub mod part;
pub mod reach;
pub mod recover;
pub mod reference;
pub mod report;
pub mod rollback;
pub mod runs;
pub mod sandbox;
pub mod session;
pub mod submission;
pub mod task_object;
pub mod terms;
pub mod tripwire;
pub mod unfinished;
pub mod verification;
pub mod view;

pub use session::Session;
