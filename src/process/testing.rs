//! Where the tests of this crate find the program itself, which starts every run.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The built program, beside the folder of the test binary.
pub(crate) fn program_under_test() -> &'static Path {
    static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
        let test = std::env::current_exe().expect("this test has a file");
        let deps = test.parent().expect("a folder");
        deps.with_file_name("git-tender")
    });
    assert!(
        PROGRAM.is_file(),
        "{} is not built: run `cargo build` before `cargo test --lib`",
        PROGRAM.display()
    );
    &PROGRAM
}
