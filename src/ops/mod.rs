//! One use case a file. Typed options in, a typed result out; nothing here prints.

pub mod session;

pub use session::Session;
