//! The notes of a receipt as sentences for people.

use crate::domain::delivery::receipt::{Note, Receipt};
use crate::domain::value::repo_path::RepoPath;

impl Note {
    /// The note as a sentence about a path.
    pub fn sentence_about(&self, path: &RepoPath) -> String {
        match self {
            Self::HardLinkBroken => format!("{path} had further hard links; they keep the old content"),
            Self::LeaseNotChecked => {
                format!(
                    "whether {path} was open for writing elsewhere could not be asked; it was hashed twice instead"
                )
            }
            Self::NotExchanged => {
                format!("the file system cannot exchange two names: {path} was absent for a moment")
            }
            Self::AttributeLost(name) => {
                format!("the extended attribute {name} of {path} could not be carried over")
            }
            Self::OwnerLost => format!("{path} could not be given back to its former owner and group"),
            Self::ExecutableBitLeft => format!(
                "core.fileMode is off here, so the executable bit of {path} was left as it is; `git update-index --chmod` sets it in the index"
            ),
            Self::LaterEditKept => format!("{path} was edited after it was written; that version was kept"),
            Self::EarlierEditStored(digest) => {
                format!("a version of {path} made way for a later one; it is stored as sha256:{digest}")
            }
            Self::LeftAt(name) => format!("something of yours that belongs to {path} lies at {name} now"),
            Self::NotFound(name) => format!(
                "{name}, which was set aside for {path}, cannot be found: its directory is gone; if you moved that, remove the file there"
            ),
        }
    }
}

impl Receipt {
    /// All notes as sentences, in path order.
    pub fn note_sentences(&self) -> Vec<String> {
        self.paths
            .iter()
            .flat_map(|path| path.notes.iter().map(|note| note.sentence_about(&path.change.path)))
            .chain(self.publication.iter().flat_map(|publication| publication.notes.clone()))
            .collect()
    }
}
