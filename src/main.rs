//! The `git-tender` binary: parse, run, exit code.

use git_tender::cli::{self, environment::Surroundings, output};
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<std::ffi::OsString> = std::env::args_os().collect();
    if let Some(code) = git_tender::process::helper::entry(args.iter().cloned()) {
        return code;
    }
    let format = output::wanted(&args);
    let outcome = Surroundings::read().and_then(|surroundings| cli::run(&args, &surroundings));
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(failure) => ExitCode::from(output::show_failure(format, &failure)),
    }
}
