//! What was made: a patch bound to the blobs that it was made against, the text of one, and the
//! hunks between two versions of a file.

pub mod hunks;
pub mod patch;
pub mod patch_text;
