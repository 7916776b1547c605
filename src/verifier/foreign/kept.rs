//! What interpreters answered, kept between runs. An answer counts as long as every file and folder that it
//! rests on looks as it did; a damaged or missing cache costs another question and nothing else.

use crate::domain::value::digest::Sha256;
use crate::store::layout::{create_private_dir, write_private};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// How many answers are kept.
const MOST: usize = 64;

/// An interpreter's answer.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Answer {
    /// What names a place (empty for the interpreter itself), and the place.
    pub(super) places: Vec<(String, PathBuf)>,
    /// Files and folders that it rests on.
    pub(super) stamped: Vec<PathBuf>,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    answer: Answer,
    stamps: Vec<String>,
}

pub(super) struct KeptAnswers {
    file: PathBuf,
    known: BTreeMap<String, Kept>,
}

impl KeptAnswers {
    pub(super) fn open(folder: &Path) -> Self {
        let file = folder.join("imports.json");
        let read = std::fs::read(&file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Self { file, known: read.unwrap_or_default() }
    }

    pub(super) fn get(&self, question: &Sha256) -> Option<Answer> {
        let kept = self.known.get(&question.to_string())?;
        (stamps_of(&kept.answer) == kept.stamps).then(|| kept.answer.clone())
    }

    /// Keeps an answer. Losing it is no harm, so a failure is none.
    pub(super) fn put(&mut self, question: Sha256, answer: Answer) {
        while self.known.len() >= MOST {
            self.known.pop_first();
        }
        let stamps = stamps_of(&answer);
        self.known.insert(question.to_string(), Kept { answer, stamps });
        let Some(folder) = self.file.parent() else { return };
        let bytes = serde_json::to_vec(&self.known).unwrap_or_default();
        drop(create_private_dir(folder).and_then(|()| write_private(&self.file, &bytes)));
    }
}

fn stamps_of(answer: &Answer) -> Vec<String> {
    answer.stamped.iter().map(|path| stamp_of(path)).collect()
}

/// What the file system says of a file; links are followed.
pub(super) fn stamp_of(path: &Path) -> String {
    let stamp = |m: std::fs::Metadata| {
        let (dev, ino, size) = (m.dev(), m.ino(), m.size());
        format!("{dev}:{ino}:{size}:{}.{}:{}.{}", m.mtime(), m.mtime_nsec(), m.ctime(), m.ctime_nsec())
    };
    std::fs::metadata(path).map(stamp).unwrap_or_default()
}
