//! Answers of programs that hold as long as the files that they come from look the same, kept so that a small
//! command asks git and interpreters nothing. A lost or damaged cache costs another question, nothing else.

use super::beneath::Stamp;
use super::command::Environment;
use crate::domain::value::digest::Sha256;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How many answers are kept.
const MOST: usize = 64;
/// A file that was written this short a time ago may be written again without looking otherwise.
const RACY: Duration = Duration::from_millis(50);
/// The same where the file system keeps whole seconds.
const RACY_IN_SECONDS: Duration = Duration::from_secs(3);

#[derive(Serialize, Deserialize)]
struct KeptAnswer {
    /// What the answer rests on; `None` for a file that was not there.
    places: Vec<(PathBuf, Option<Stamp>)>,
    answer: String,
}

/// The answers in a file.
pub struct Answers {
    file: PathBuf,
    known: BTreeMap<String, KeptAnswer>,
}

impl Answers {
    /// Those that a file of ours keeps. Its folder is not made.
    pub fn open(file: PathBuf) -> Self {
        let read = std::fs::read(&file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Self { file, known: read.unwrap_or_default() }
    }

    pub fn get(&self, question: &Sha256) -> Option<&str> {
        let kept = self.known.get(&question.to_string())?;
        kept.places.iter().all(|(place, stamp)| stamp_of(place) == *stamp).then_some(&kept.answer)
    }

    /// Keeps an answer that rests on these files. `asked` is when the question was put: a file that was
    /// written later, or just before, may look the same the next time and be another one.
    pub fn put(&mut self, question: &Sha256, places: &[PathBuf], asked: SystemTime, answer: &str) {
        let places: Vec<_> = places.iter().map(|place| (place.clone(), stamp_of(place))).collect();
        if places.iter().filter_map(|(_, stamp)| stamp.as_ref()).any(|stamp| is_racy(stamp, asked)) {
            return;
        }
        // Others may have kept theirs since this was read.
        self.known = Self::open(self.file.clone()).known;
        while self.known.len() >= MOST {
            self.known.pop_first();
        }
        self.known.insert(question.to_string(), KeptAnswer { places, answer: answer.to_owned() });
        // Losing it is no harm, so a failure is none.
        drop(self.save());
    }

    fn save(&self) -> std::io::Result<()> {
        let folder = self.file.parent().ok_or(std::io::ErrorKind::NotFound)?;
        let mut fresh = tempfile::Builder::new().prefix(".new-").tempfile_in(folder)?;
        fresh.write_all(&serde_json::to_vec(&self.known)?)?;
        fresh.persist(&self.file)?;
        Ok(())
    }
}

/// Where git's own answers are kept, of a folder of ours.
pub(super) fn answers_of_git(folder: &Path) -> Answers {
    Answers::open(folder.join("git-answers.json"))
}

/// The digest of a question to git: its words, the program that answers and the variables that it hears.
pub(super) fn question_to_git(environment: &Environment, words: &[&[u8]]) -> Sha256 {
    let mut text = Vec::new();
    let heard = environment.iter().filter(|(name, _)| {
        let name = name.as_bytes();
        name.starts_with(b"GIT_") || matches!(name, b"HOME" | b"XDG_CONFIG_HOME")
    });
    let pairs = heard.map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat());
    for part in pairs.chain(words.iter().map(|word| word.to_vec())) {
        text.extend_from_slice(&(part.len() as u64).to_be_bytes());
        text.extend_from_slice(&part);
    }
    Sha256::of(&text)
}

/// What the file system says of a file; links are followed.
fn stamp_of(place: &Path) -> Option<Stamp> {
    rustix::fs::stat(place).ok().map(|stat| Stamp::of_stat(&stat))
}

fn is_racy(stamp: &Stamp, asked: SystemTime) -> bool {
    let asked = asked.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let written = stamp.mtime.max(stamp.ctime);
    let window = if written % 1_000_000_000 == 0 { RACY_IN_SECONDS } else { RACY };
    Duration::from_nanos(u64::try_from(written).unwrap_or(u64::MAX)).saturating_add(window) > asked
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    #[expect(clippy::disallowed_methods, reason = "a test plays the user")]
    fn write_text(file: &Path, text: &str) {
        std::fs::write(file, text).expect("writes");
    }

    fn later() -> SystemTime {
        SystemTime::now() + Duration::from_secs(10)
    }

    #[test]
    fn an_answer_holds_while_its_files_look_the_same() {
        let folder = tempfile::tempdir().expect("folder");
        let (there, absent) = (folder.path().join("there"), folder.path().join("absent"));
        write_text(&there, "1");
        let asked = question_to_git(&Environment::default(), &[b"config"]);
        let put = || {
            let mut answers = answers_of_git(folder.path());
            answers.put(&asked, &[there.clone(), absent.clone()], later(), "a\nb");
        };
        let get = || answers_of_git(folder.path()).get(&asked).map(str::to_owned);
        put();
        assert_eq!(get().as_deref(), Some("a\nb"));
        write_text(&absent, "");
        assert_eq!(get(), None, "a file that was not there");
        put();
        assert!(get().is_some());
        write_text(&there, "22");
        assert_eq!(get(), None, "a file that was written");
        write_text(&folder.path().join("git-answers.json"), "{");
        assert_eq!(get(), None, "a damaged cache");
    }

    #[test]
    fn an_answer_from_a_file_that_was_just_written_is_not_kept() {
        let folder = tempfile::tempdir().expect("folder");
        let file = folder.path().join("config");
        write_text(&file, "1");
        let asked = question_to_git(&Environment::default(), &[b"config"]);
        answers_of_git(folder.path()).put(&asked, std::slice::from_ref(&file), SystemTime::now(), "a");
        assert_eq!(answers_of_git(folder.path()).get(&asked), None);
    }

    #[test]
    fn a_question_knows_who_asks() {
        let with = |name: &str, value: &str| {
            question_to_git(
                &Environment::scrub_variables([(OsString::from(name), OsString::from(value))]),
                &[b"q"],
            )
        };
        assert_ne!(with("HOME", "/a"), with("HOME", "/b"));
        assert_ne!(with("GIT_CONFIG_GLOBAL", "/a"), with("GIT_CONFIG_SYSTEM", "/a"));
        assert_eq!(with("EDITOR", "vi"), with("EDITOR", "ed"));
    }
}
