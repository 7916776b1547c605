//! Values that everything else is made of: digests, paths, globs over them, documents, text from outside.

pub mod bytes;
pub mod digest;
pub mod document;
pub mod link;

pub mod outside;
pub mod repo_path;
pub mod scope;
