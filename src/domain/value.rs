//! Values that everything else is made of: digests, paths, globs over them, documents, text from outside.

pub mod digest;
pub mod document;
pub mod link;
pub mod os_path;
pub mod outside;
pub mod repo_path;
pub mod scope;
