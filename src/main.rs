//! The `git-tender` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    git_tender::process::helper::entry(std::env::args_os()).unwrap_or(ExitCode::SUCCESS)
}
