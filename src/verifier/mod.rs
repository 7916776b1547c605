//! x

pub mod builtin;
pub mod formats;
pub mod manifest;
pub mod shipped;
