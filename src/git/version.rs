//! Which git is there, and which is old enough to be refused.

use super::Repository;
use crate::error::{Code, Failure, Result};

/// The oldest git whose `--attr-source` we rely on.
pub const OLDEST_GIT: (u32, u32) = (2, 41);

/// Major and minor of `git version 2.47.3`.
pub fn parse_version(said: &str) -> Option<(u32, u32)> {
    let mut numbers = said.split_whitespace().nth(2)?.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Refuses a git that is too old. Asked where a task is opened, because everything later rests on it.
pub fn require_git(repository: &Repository) -> Result<()> {
    // A git that breaks off has said nothing of its age.
    let said = repository.ask_git_once("version", &[], || {
        let said = repository.git_call().arg("version").run_for_stdout()?;
        Ok(String::from_utf8_lossy(&said).trim().to_owned())
    })?;
    if parse_version(&said).is_some_and(|found| found >= OLDEST_GIT) {
        return Ok(());
    }
    Err(Failure::new(Code::GitUnsupported, format!("{said:?} is too old"))
        .expected("git 2.41 or newer", said)
        .remedy("Install a newer git; `doctor` says what else is missing.", ["git", "tender", "doctor"]))
}
