//! x

/// The ids of the verifiers that need no manifest.
pub const NAMES: [&str; 3] = ["scope", "artifacts", "whitespace"];
