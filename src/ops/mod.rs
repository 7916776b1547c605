//! One use case a file. Typed options in, a typed result out; nothing here prints.

pub mod attest;
pub mod cancel;
pub mod deliver;
pub mod demo;
pub mod doctor;
pub mod gc;
pub mod init;
mod live;
pub mod open;
pub mod recover;
pub mod report;
pub mod session;
pub mod ship;
pub mod submit;
pub mod undo;
pub mod verify;

pub use session::Session;
