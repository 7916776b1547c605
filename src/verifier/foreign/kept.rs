//! What interpreters answered, in the form in which it is kept between runs.

use super::site::Pointer;
use serde::{Deserialize, Serialize};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// An interpreter's answer.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct ImportAnswer {
    /// The search path; a relative entry stands for the folder that the run is in.
    pub(super) path: Vec<PathBuf>,
    /// What its finders hold that are asked before the search path.
    pub(super) first: Vec<PathBuf>,
    /// The same of those that are asked after it.
    pub(super) last: Vec<PathBuf>,
    /// The files of what it loaded to start.
    pub(super) loaded: Vec<PathBuf>,
    /// What is installed by reference.
    pub(super) pointers: Vec<Pointer>,
    /// Files and folders that it rests on.
    pub(super) stamped: Vec<PathBuf>,
}

/// What the file system says of a file; links are followed.
pub(super) fn stamp_of(path: &Path) -> String {
    let stamp = |m: std::fs::Metadata| {
        let (dev, ino, size) = (m.dev(), m.ino(), m.size());
        format!("{dev}:{ino}:{size}:{}.{}:{}.{}", m.mtime(), m.mtime_nsec(), m.ctime(), m.ctime_nsec())
    };
    std::fs::metadata(path).map(stamp).unwrap_or_default()
}
