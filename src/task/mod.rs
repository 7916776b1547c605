//! What every use case stands on: a task, the one way into it, what is written down of it, and the effects
//! that it can have. No command is known by name here.

pub mod action;
pub mod budget;
pub mod candidate;
pub mod effect;
pub mod enter;
pub mod evidence;
pub mod family;
pub mod held;
pub mod home;
pub mod hooks;
pub mod journal;
pub mod live_ground;
pub mod meter;
mod newer_rules;
pub mod observation;
pub mod on_live;
pub mod recover;
pub mod rollback;
pub mod runs;
pub mod session;
pub mod terms;
pub mod tripwire;
pub mod unfinished;
pub mod view;

pub use session::Session;
