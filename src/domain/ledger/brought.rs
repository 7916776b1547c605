//! What a task's worktree got beside the files of its base. None of it is ever captured.

use crate::domain::value::digest::Sha256;
use crate::domain::value::repo_path::RepoPath;
use serde::{Deserialize, Serialize};

/// What was brought, as `open` records it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Brought {
    /// Files, and links that lay in copied folders.
    pub copied: u64,
    /// Links to the user's own files.
    pub linked: u64,
    /// Submodules that are checked out.
    pub submodules: Vec<RepoPath>,
    pub setup: Option<SetupEnd>,
    /// What the set-up's result was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_from: Option<Sha256>,
    /// How many bytes had to be written.
    pub bytes: u64,
    /// How many more there are that the file system shares.
    pub shared: u64,
    /// What was wished for and is not there.
    pub left: Vec<LeftOut>,
    /// Blob with the list of [`BroughtEntry`], as JSON.
    pub entries: Sha256,
}

/// What was brought, as `open` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BroughtObject {
    pub copied: u64,
    pub linked: u64,
    pub submodules: Vec<RepoPath>,
    pub setup: Option<SetupEnd>,
    /// How many bytes had to be written; only where it was asked for.
    pub bytes: Option<u64>,
    /// How many more there are that the file system shares; likewise.
    pub shared: Option<u64>,
    pub left: Vec<LeftOut>,
}

impl Brought {
    /// As it is shown, with what it cost.
    pub fn shown_object(&self) -> BroughtObject {
        BroughtObject {
            copied: self.copied,
            linked: self.linked,
            submodules: self.submodules.clone(),
            setup: self.setup,
            bytes: Some(self.bytes),
            shared: Some(self.shared),
            left: self.left.clone(),
        }
    }
}

impl BroughtObject {
    /// Without what it cost.
    pub fn without_size(self) -> Self {
        Self { bytes: None, shared: None, ..self }
    }
}

/// How the command ended that makes a worktree ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SetupEnd {
    Ran,
    /// What an earlier run made was taken.
    Cached,
    Failed,
}

/// A path that is not in the worktree, and why not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    pub path: RepoPath,
    pub why: String,
}

/// One of the places that were filled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BroughtEntry {
    pub path: RepoPath,
    pub kind: BroughtKind,
}

/// What lies there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum BroughtKind {
    /// A file with this content.
    File(Sha256),
    /// All that is beneath it.
    Folder,
    Link,
}

/// The places that were filled, to be looked up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BroughtPlaces(pub Vec<BroughtEntry>);

impl BroughtPlaces {
    /// The place at exactly this path.
    pub fn entry_at(&self, path: &[u8]) -> Option<&BroughtEntry> {
        self.0.iter().find(|entry| entry.path.as_bytes() == path)
    }

    /// True for such a place, and for what is beneath one that is a folder.
    pub fn hold(&self, path: &RepoPath) -> bool {
        let above = path.ancestors();
        self.0.iter().any(|entry| {
            entry.path == *path || (entry.kind == BroughtKind::Folder && above.contains(&entry.path))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_holds_itself_and_a_folder_what_is_beneath() {
        let path = |text: &str| RepoPath::new(text).expect("a path");
        let entry = |text: &str, kind| BroughtEntry { path: path(text), kind };
        let places = BroughtPlaces(vec![
            entry("node_modules", BroughtKind::Folder),
            entry("a/.env", BroughtKind::File(Sha256::of(b"x"))),
            entry(".venv", BroughtKind::Link),
        ]);
        for (text, held) in [
            ("node_modules", true),
            ("node_modules/a/b", true),
            ("node_modules2", false),
            ("a/.env", true),
            ("a/.env/x", false),
            (".venv/x", false),
            ("a", false),
        ] {
            assert_eq!(places.hold(&path(text)), held, "{text}");
        }
        assert!(places.entry_at(b"a/.env").is_some() && places.entry_at(b"a").is_none());
    }
}
