//! Whether something is at a path. What cannot be looked at is a failure: it must never read as absent.

use super::{Failure, Result};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// True where there is something of that name; a link is not followed.
pub fn is_present(path: &Path) -> Result<bool> {
    found(path, path.symlink_metadata()).map(|found| found.is_some())
}

/// True for a folder, also behind a link.
pub fn is_folder(path: &Path) -> Result<bool> {
    found(path, path.metadata()).map(|found| found.is_some_and(|found| found.is_dir()))
}

/// True for a file with content, also behind a link.
pub fn is_filled_file(path: &Path) -> Result<bool> {
    found(path, path.metadata()).map(|found| found.is_some_and(|found| found.is_file() && found.len() > 0))
}

/// True where a sync of the whole file system waits for each of its files. One that a program answers for may
/// hear of files only.
pub fn syncs_as_whole(file: impl std::os::fd::AsFd) -> bool {
    const ANSWERED_BY_A_PROGRAM: rustix::fs::FsWord = 0x6573_5546;
    rustix::fs::fstatfs(file).is_ok_and(|found| found.f_type != ANSWERED_BY_A_PROGRAM)
}

/// True for an error that says that nothing is there.
pub fn means_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn found<T>(path: &Path, looked: std::io::Result<T>) -> Result<Option<T>> {
    match looked {
        Ok(found) => Ok(Some(found)),
        Err(e) if means_absent(&e) => Ok(None),
        Err(e) => Err(Failure::io_of_ours("look at", path, &e)),
    }
}

impl Failure {
    /// An operation on a file of ours failed. Where another user's bars the way, that is what has to change.
    pub fn io_of_ours(doing: &str, path: &Path, error: &std::io::Error) -> Self {
        let failure = Self::io(doing, path, error);
        if error.kind() != ErrorKind::PermissionDenied {
            return failure;
        }
        let me = rustix::process::geteuid().as_raw();
        let barring = path.ancestors().find_map(|part| Some((part, part.symlink_metadata().ok()?.uid())));
        let (part, owner) = barring.unwrap_or((path, me));
        let part = part.display();
        // In words alone: a program that follows remedies by itself should not become root.
        let text = match owner == me {
            true => format!("Give yourself the right to it, as with `chmod -R u+rwX {part}`."),
            false => format!(
                "It belongs to the user {owner}. Give it back to whoever works here, as with `sudo chown -R {me} {part}`; where both work here, each needs a clone of their own."
            ),
        };
        failure.remedy(text, ["git", "tender", "doctor"])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Write;

    #[test]
    fn what_is_not_there_is_absent_and_what_cannot_be_looked_at_is_a_failure() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("file");
        File::create(&file).and_then(|mut file| file.write_all(b"x")).expect("writes");
        assert_eq!(
            (is_present(&file), is_folder(&file), is_filled_file(&file)),
            (Ok(true), Ok(false), Ok(true))
        );
        assert_eq!((is_present(dir.path()), is_folder(dir.path())), (Ok(true), Ok(true)));
        for gone in [dir.path().join("gone"), file.join("below")] {
            assert_eq!(
                (is_present(&gone), is_folder(&gone), is_filled_file(&gone)),
                (Ok(false), Ok(false), Ok(false))
            );
        }
        let looped = dir.path().join("loop");
        std::os::unix::fs::symlink(&looped, &looped).expect("links");
        assert_eq!(is_present(&looped), Ok(true));
        assert!(is_folder(&looped).is_err() && is_filled_file(&looped).is_err());
    }
}
