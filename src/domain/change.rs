//! What was made: a patch bound to the blobs that it was made against, and the text of one.

pub mod patch;
pub mod patch_text;
