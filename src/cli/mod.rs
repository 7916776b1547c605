//! The command line: arguments in, one operation, an object or text out.

pub mod args;
pub mod commands;
pub mod environment;
pub mod output;
