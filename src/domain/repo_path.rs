//! Paths inside a repository: relative, normalised, bytes (git paths are bytes), never one that git or a
//! file system could take for `.git` or for a place outside the tree.
//!
//! The rules are git's `verify_path` with `core.protectHFS` and `core.protectNTFS` on, on every system,
//! because a delivered tree is checked out elsewhere too.

use crate::error::{Code, Failure, Result};
use base64::Engine;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A checked path relative to the top of the tree, with `/` between components.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepoPath(Vec<u8>);

impl RepoPath {
    /// Checks and takes a path. The failure is a `scope.violation` that names the path and the rule.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Self> {
        let bytes = bytes.into();
        match refusal(&bytes) {
            None => Ok(Self(bytes)),
            Some(rule) => Err(Failure::new(
                Code::ScopeViolation,
                format!("the path {} is refused: {rule}", display(&bytes)),
            )
            .subject(display(&bytes))
            .detail("rule", rule)),
        }
    }

    /// The raw bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// As a relative file system path.
    #[must_use]
    pub fn as_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.0))
    }

    /// The components from the top down.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.0.split(|b| *b == b'/')
    }

    /// The last component.
    #[must_use]
    pub fn file_name(&self) -> &[u8] {
        self.0.rsplit(|b| *b == b'/').next().unwrap_or(&self.0)
    }

    /// The directory that holds it; `None` at the top.
    #[must_use]
    pub fn parent(&self) -> Option<RepoPath> {
        let at = self.0.iter().rposition(|b| *b == b'/')?;
        Some(Self(self.0[..at].to_vec()))
    }

    /// Every directory above it, from the top down; empty at the top.
    #[must_use]
    pub fn ancestors(&self) -> Vec<RepoPath> {
        (0..self.0.len()).filter(|at| self.0[*at] == b'/').map(|at| Self(self.0[..at].to_vec())).collect()
    }
}

/// Bytes as text for a message: lossless for UTF-8 without control characters, escaped otherwise.
#[must_use]
pub fn display(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.chars().any(char::is_control) => text.to_owned(),
        _ => format!("\"{}\"", bytes.escape_ascii()),
    }
}

/// Why these bytes are no path that may be written, or `None`.
fn refusal(bytes: &[u8]) -> Option<&'static str> {
    if bytes.is_empty() {
        return Some("it is empty");
    }
    if bytes.contains(&0) {
        return Some("it holds a NUL byte");
    }
    if bytes[0] == b'/' {
        return Some("it is absolute");
    }
    bytes.split(|b| *b == b'/').find_map(|component| match component {
        b"" => Some("it has an empty component"),
        b"." => Some("it has a `.` component"),
        b".." => Some("it has a `..` component"),
        _ if is_dot_git(component) => Some("a component is a spelling of `.git`"),
        _ => None,
    })
}

/// True where some file system takes the component for `.git`.
#[must_use]
pub fn is_dot_git(component: &[u8]) -> bool {
    component.eq_ignore_ascii_case(b".git")
}

impl fmt::Display for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&display(&self.0))
    }
}

impl fmt::Debug for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for RepoPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        if let Ok(text) = std::str::from_utf8(&self.0) {
            return serializer.serialize_str(text);
        }
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry("bytes", &base64::engine::general_purpose::STANDARD.encode(&self.0))?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for RepoPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Wire {
            Text(String),
            Bytes { bytes: String },
        }
        let bytes = match Wire::deserialize(deserializer)? {
            Wire::Text(text) => text.into_bytes(),
            Wire::Bytes { bytes } => {
                base64::engine::general_purpose::STANDARD.decode(bytes).map_err(serde::de::Error::custom)?
            }
        };
        Self::new(bytes).map_err(serde::de::Error::custom)
    }
}
