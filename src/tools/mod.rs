//! What a worker can call, one tool a file: arguments in, a result or a failure out. Whether a call is allowed at all was decided before
//! ([`crate::ops`]); a tool looks at the worktree that it is given, and at nothing else.

pub mod apply_patch;
pub mod patch_formats;
pub mod text;
