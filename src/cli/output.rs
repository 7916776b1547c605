//! The only place that prints.
//!
//! Results go to standard output, as text for people or as one JSON object; progress and failures for people
//! go to standard error. A reader that went away (a closed pipe) is no failure of ours.

use crate::error::{Failure, Result, error_object};
use clap::ValueEnum;
use serde::Serialize;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};

/// How results are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// For people.
    Text,
    /// One JSON object (`log`: one a line).
    Json,
    /// Workflow commands of GitHub (`check` alone).
    Github,
    /// SARIF 2.1.0 (`check` alone).
    Sarif,
    /// JUnit's XML (`check` alone).
    Junit,
}

/// Shows a result.
pub fn show(format: OutputFormat, object: &impl Serialize, text: impl FnOnce() -> String) -> Result<()> {
    match format {
        OutputFormat::Json => {
            let mut line = serde_json::to_vec(object)
                .map_err(|e| Failure::internal(format!("cannot write JSON: {e}")))?;
            line.push(b'\n');
            write_out(&line)
        }
        _ => write_out(text().as_bytes()),
    }
}

/// Shows a failure and gives its exit code.
pub fn show_failure(format: OutputFormat, failure: &Failure) -> u8 {
    match format {
        OutputFormat::Json => {
            let _ = show(format, &error_object(failure), String::new);
        }
        _ => write_err(&crate::render::failure_text(failure)),
    }
    failure.exit_code()
}

/// Writes bytes to standard output. A closed pipe ends the output silently. Whoever prints has done the work
/// before, so that a lost answer says that only the answer is lost.
pub fn write_out(bytes: &[u8]) -> Result<()> {
    let mut out = anstream::stdout();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::new(crate::error::Code::Io, format!("cannot write to standard output: {e}"))
                .remedy("The command ran to its end, only its answer is lost: see what it did.", ANSWER_LOST))
        }
        _ => Ok(()),
    }
}

const ANSWER_LOST: [&str; 5] = ["git", "tender", "log", "-n", "1"];

/// Writes text to standard error; nobody can be told if that fails.
pub fn write_err(text: &str) {
    let mut err = anstream::stderr();
    let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
}

/// Standard input and output as the two ends of a connection, without buffers. Whoever takes them is the only
/// one who writes there.
pub fn take_channel() -> Result<(File, File)> {
    let (input, output) = (std::io::stdin(), std::io::stdout());
    let own = |fd: BorrowedFd<'_>| fd.try_clone_to_owned().map(File::from);
    own(input.as_fd())
        .and_then(|input| Ok((input, own(output.as_fd())?)))
        .map_err(|e| Failure::internal(format!("standard input and output cannot be taken: {e}")))
}

/// A progress display on standard error: only where that is a terminal, and only for what takes a while.
#[derive(Debug)]
pub struct ProgressBar {
    bar: Option<indicatif::ProgressBar>,
}

impl ProgressBar {
    /// A display for one step; silent unless standard error is a terminal and text is wanted.
    pub fn start(format: OutputFormat, step: impl Into<std::borrow::Cow<'static, str>>) -> Self {
        use std::io::IsTerminal;
        if format != OutputFormat::Text || !std::io::stderr().is_terminal() {
            return Self { bar: None };
        }
        let bar = indicatif::ProgressBar::new(0);
        let style = indicatif::ProgressStyle::with_template("{spinner} {msg} {wide_bar} {pos}/{len}");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        bar.set_message(step);
        // A step that cannot say how far it is still shows that it is alive.
        bar.enable_steady_tick(std::time::Duration::from_millis(120));
        Self { bar: Some(bar) }
    }

    /// `done` of `total` steps are through.
    pub fn advance(&self, done: u64, total: u64) {
        if let Some(bar) = &self.bar {
            bar.set_length(total);
            bar.set_position(done);
        }
    }
}

impl Drop for ProgressBar {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// The format that a command line asks for, found without parsing it: a command line that does not parse has
/// one too.
pub fn find_format(args: &[std::ffi::OsString]) -> OutputFormat {
    let words: Vec<_> = args.iter().take_while(|arg| *arg != "--").map(|arg| arg.to_string_lossy()).collect();
    let json = words.iter().any(|word| word == "--format=json")
        || words.windows(2).any(|pair| pair[0] == "--format" && pair[1] == "json");
    if json { OutputFormat::Json } else { OutputFormat::Text }
}
