//! The `git-tender` binary: all of it is in the library, so that one build of it serves the program and its
//! unit tests.

fn main() -> std::process::ExitCode {
    git_tender::main()
}
