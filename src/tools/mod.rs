//! The tools of a worker: their arguments, their answers, and what those do that only look at or change the
//! worktree.
//!
//! One file a tool, and one table of all ([`table`]). Nothing here decides whether a call may be made: that
//! is the gate's (`ops::gate`), which parses a [`ToolCall`], authorizes it on the real target ([`place`]),
//! records it, and only then carries it out.

pub mod apply_patch;
pub mod list_files;
pub mod patch_formats;
pub mod place;
pub mod read_file;
pub mod search_text;
pub mod table;
pub mod text;

pub use table::{ToolCall, ToolDescription, tool_descriptions};
