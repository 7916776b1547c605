//! The `git-tender` binary: parse, run, exit code.

use git_tender::cli::{self, environment::Surroundings, output};
use git_tender::error::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<std::ffi::OsString> = std::env::args_os().collect();
    if let Some(code) = git_tender::process::helper::entry(args.iter().cloned()) {
        return code;
    }
    let format = output::wanted(&args);
    // A panic is our fault and is reported like every other failure, so that a script still gets its object and exit code.
    std::panic::set_hook(Box::new(|_| {}));
    let run = || Surroundings::read().and_then(|surroundings| cli::run(&args, &surroundings));
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run))
        .unwrap_or_else(|panic| Err(fault(panic.as_ref())));
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(failure) => ExitCode::from(output::show_failure(format, &failure)),
    }
}

fn fault(panic: &(dyn std::any::Any + Send)) -> Failure {
    let text =
        panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    Failure::internal(format!("git-tender broke off: {}", text.unwrap_or("no message")))
}
