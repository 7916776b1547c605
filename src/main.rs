//! The `git-tender` binary.

fn main() {}
