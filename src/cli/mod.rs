//! The command line: arguments in, one operation, an object or text out.
//!
//! `args` is the grammar, `commands` has a few lines a command, `output` prints. `environment` is the only
//! reader of the environment, `person` the only way to the terminal; both are passed down as values.

pub mod args;
pub mod commands;
pub mod environment;
pub mod manual;
pub mod output;
pub mod person;

use crate::domain::ledger::action::Actor;
use crate::error::{Code, Failure, Result};
use crate::git::Repository;
use crate::ops::{Machine, Person as _, Session};
use crate::store::Layout;
use args::Cli;
use clap::Parser;
use environment::Surroundings;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The program: parse, run, exit code.
pub fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    if let Some(code) = crate::process::helper::run_if_supervisor(args.iter().cloned()) {
        return code;
    }
    let format = output::find_format(&args);
    // A panic is our fault and is reported like every other failure: a script still gets its object and exit
    // code.
    std::panic::set_hook(Box::new(|_| {}));
    let run = || Surroundings::read().and_then(|surroundings| run_arguments(&args, &surroundings));
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run))
        .unwrap_or_else(|panic| Err(failure_of_panic(panic.as_ref())));
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(failure) => ExitCode::from(output::show_failure(format, &failure)),
    }
}

fn failure_of_panic(panic: &(dyn std::any::Any + Send)) -> Failure {
    let text =
        panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    Failure::internal(format!("git-tender broke off: {}", text.unwrap_or("no message")))
}

/// Parses and runs one command line; gives the exit code.
fn run_arguments(args: &[OsString], surroundings: &Surroundings) -> Result<u8> {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) if !error.use_stderr() => {
            output::write_out(error.render().ansi().to_string().as_bytes())?;
            return Ok(0);
        }
        Err(error) => return Err(bad_arguments(&error)),
    };
    commands::run_command(&cli, surroundings)
}

/// What clap says, as a failure: its first paragraph is the message, the usage a detail.
fn bad_arguments(error: &clap::Error) -> Failure {
    let text = error.render().to_string();
    let (said, rest) = text.split_once("\n\n").unwrap_or((&text, ""));
    let said = said.trim().trim_start_matches("error: ").replace('\n', " ");
    let usage = rest.lines().find(|line| line.starts_with("Usage:")).unwrap_or_default();
    let tip = rest.lines().find_map(|line| line.trim_start().strip_prefix("tip: "));
    let subject = error
        .get(clap::error::ContextKind::InvalidArg)
        .or_else(|| error.get(clap::error::ContextKind::InvalidSubcommand));
    let failure = Failure::new(Code::ArgumentsInvalid, said.split_whitespace().collect::<Vec<_>>().join(" "));
    let failure = match subject {
        Some(subject) => failure.subject(subject.to_string()),
        None => failure,
    };
    let failure = match tip {
        Some(tip) => failure.detail("tip", tip),
        None => failure,
    };
    let failure =
        if usage.is_empty() { failure } else { failure.detail("usage", usage.trim_start_matches("Usage: ")) };
    // Git itself answers `git tender --help`, with a manual page that may not be there; the other two forms
    // reach us.
    match usage.split_whitespace().nth(3).filter(|word| word.starts_with(|c: char| c.is_ascii_lowercase())) {
        Some(command) => failure.remedy("See what this command takes.", ["git", "tender", command, "--help"]),
        None => failure.remedy("See which commands there are.", ["git", "tender", "-h"]),
    }
}

/// The session of a command: the repository that is meant, and who asks. The folder is that of `-C`.
fn open_session(folder: Option<&Path>, surroundings: &Surroundings) -> Result<Session> {
    let caller = surroundings.caller(folder);
    if folder.is_some() && !caller.cwd.is_dir() {
        return Err(Failure::new(
            Code::ArgumentsInvalid,
            format!("{} is not a folder", caller.cwd.display()),
        )
        .subject("-C"));
    }
    let repository = Repository::discover(&caller)?;
    let layout = Layout::new(repository.common_dir());
    let person = person::Terminal::new(&repository)?;
    let actor = if person.is_at_terminal() { Actor::User } else { Actor::Agent };
    let origin = "cli".to_owned();
    Ok(Session {
        repository,
        layout,
        actor,
        origin,
        machine: machine(surroundings),
        person: Box::new(person),
    })
}

fn machine(surroundings: &Surroundings) -> Machine {
    let home = surroundings.get("HOME").map(PathBuf::from);
    let cache = surroundings
        .get("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| home.as_ref().map(|home| home.join(".cache")));
    let mut machine = Machine::new(surroundings.program.clone(), surroundings.vars.clone());
    (machine.home, machine.cache) = (home, cache);
    machine
}
