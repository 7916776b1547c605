//! What interpreters answered, kept between runs. An answer counts as long as every file and folder that it
//! rests on looks as it did; a damaged or missing cache costs another question and nothing else.

use super::site::Pointer;
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

#[derive(Serialize, Deserialize)]
struct KeptAnswer {
    answer: ImportAnswer,
    stamps: Vec<String>,
}

pub(super) struct KeptAnswers {
    file: PathBuf,
    known: BTreeMap<String, KeptAnswer>,
}

impl KeptAnswers {
    pub(super) fn open(folder: &Path) -> Self {
        let file = folder.join("imports.json");
        let read = std::fs::read(&file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Self { file, known: read.unwrap_or_default() }
    }

    pub(super) fn get(&self, question: &Sha256) -> Option<ImportAnswer> {
        let kept = self.known.get(&question.to_string())?;
        (stamps_of(&kept.answer) == kept.stamps).then(|| kept.answer.clone())
    }

    /// Keeps an answer. Losing it is no harm, so a failure is none.
    pub(super) fn put(&mut self, question: Sha256, answer: ImportAnswer) {
        while self.known.len() >= MOST {
            self.known.pop_first();
        }
        let stamps = stamps_of(&answer);
        self.known.insert(question.to_string(), KeptAnswer { answer, stamps });
        let Some(folder) = self.file.parent() else { return };
        let bytes = serde_json::to_vec(&self.known).unwrap_or_default();
        drop(create_private_dir(folder).and_then(|()| write_private(&self.file, &bytes)));
    }
}

fn stamps_of(answer: &ImportAnswer) -> Vec<String> {
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
