//! The way to a person: the controlling terminal, `/dev/tty`.
//!
//! Standard input will not do: an agent in the user's shell can start any command and type into it. Whoever
//! wants to do without a terminal sets `tender.approveWithoutTerminal` in the repository's own git
//! configuration, which no confined worker can write.

use crate::error::Result;
use crate::git::Repository;
use crate::ops::Person;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};

/// A person at the controlling terminal, or the standing consent of the repository's owner.
#[derive(Debug)]
pub struct Terminal {
    tty: Option<File>,
    consent: bool,
}

impl Terminal {
    /// Looks for the terminal and for the consent.
    pub fn new(repository: &Repository) -> Result<Self> {
        let tty = File::options().read(true).write(true).open("/dev/tty").ok();
        // Only the repository's own configuration counts; but where no configuration has it, nobody need
        // look.
        if repository.config_value("tender.approveWithoutTerminal")?.is_none() {
            return Ok(Self { tty, consent: false });
        }
        let config = repository.common_dir().join("config");
        let said = repository
            .git_call()
            .args(["config", "--type=bool", "--get", "--file"])
            .arg(&config)
            .arg("tender.approveWithoutTerminal")
            .run()?;
        Ok(Self { tty, consent: said.first_text() == "true" })
    }
}

impl Person for Terminal {
    fn confirm(&self, question: &str) -> Option<bool> {
        if self.consent {
            return Some(true);
        }
        let mut tty = self.tty.as_ref()?;
        write!(tty, "{question} Type yes to confirm: ").ok()?;
        let mut answer = String::new();
        BufReader::new(tty).read_line(&mut answer).ok()?;
        Some(answer.trim() == "yes")
    }

    fn has_consented(&self) -> bool {
        self.consent
    }

    fn choose(&self, lines: &[String], question: &str) -> Option<String> {
        let mut tty = self.tty.as_ref()?;
        for line in lines {
            writeln!(tty, "{line}").ok()?;
        }
        write!(tty, "{question} ").ok()?;
        let mut answer = String::new();
        // An end without a line is no answer.
        let read = BufReader::new(tty).read_line(&mut answer).ok()?;
        (read > 0).then(|| answer.trim().to_owned())
    }

    fn is_at_terminal(&self) -> bool {
        self.tty.is_some()
    }
}
