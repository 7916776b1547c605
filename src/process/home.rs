//! A private, empty `HOME` and `TMPDIR` for one run.
//!
//! Tools keep caches and settings in the home directory; what a verifier read there would be an input that
//! nobody declared. So it gets an empty one, and what its manifest names in `read` is linked into it at the
//! same place. The links lead to the real directories: without a sandbox a program could write through them.

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};

use crate::error::{Code, Failure, Result};

/// The two directories; both go away when this is dropped. Links in them are removed, never followed.
#[derive(Debug)]
pub struct PrivateHome {
    root: tempfile::TempDir,
    home: PathBuf,
    tmp: PathBuf,
}

impl PrivateHome {
    /// Makes the directories below `under`, which must exist, and links `read` entries of the form `~/…`.
    ///
    /// Absolute entries need no link. Entries that do not exist are passed over.
    ///
    /// # Errors
    /// `config.invalid` for the home directory as a whole, for `..`, and for what is neither `~/…` nor
    /// absolute; `io` if a directory or link cannot be made.
    pub fn create_under(under: &Path, real_home: &Path, read: &[String]) -> Result<Self> {
        let mut wanted = Vec::new();
        for entry in read {
            if let Some(below) = below_home(entry)? {
                wanted.push(below);
            }
        }
        // An ancestor comes before what lies below it, so that what is below is never made inside a link.
        wanted.sort();
        let root = tempfile::Builder::new()
            .prefix("run-")
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir_in(under)
            .map_err(|error| Failure::io("make a private directory in", under, &error))?;
        let (home, tmp) = (root.path().join("home"), root.path().join("tmp"));
        for directory in [&home, &tmp] {
            make_directory(directory)?;
        }
        let made = Self { root, home, tmp };
        let mut linked: Vec<PathBuf> = Vec::new();
        for below in wanted {
            let real = real_home.join(&below);
            if real.exists() && !linked.iter().any(|done| below.starts_with(done)) {
                made.link_entry(&real, &below)?;
                linked.push(below);
            }
        }
        Ok(made)
    }

    /// The value for `HOME`.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The value for `TMPDIR`.
    pub fn tmp(&self) -> &Path {
        &self.tmp
    }

    fn link_entry(&self, real: &Path, below: &Path) -> Result<()> {
        let place = self.home.join(below);
        if let Some(parent) = place.parent() {
            make_directory(parent)?;
        }
        symlink(real, &place).map_err(|error| Failure::io("make the link", &place, &error))
    }
}

impl Drop for PrivateHome {
    fn drop(&mut self) {
        // Some tools make their caches read-only (Go's module cache); such a directory cannot be emptied.
        make_removable(self.root.path());
    }
}

/// The path below the home directory, or none for an absolute entry.
fn below_home(entry: &str) -> Result<Option<PathBuf>> {
    let invalid = |expected: &str| {
        Failure::new(Code::ConfigInvalid, format!("read entry {entry:?} cannot be used: {expected}"))
            .subject("read")
            .expected(expected, entry)
    };
    let path = Path::new(entry);
    if path.components().any(|component| component == Component::ParentDir) || entry.contains('\0') {
        return Err(invalid("a path without `..`"));
    }
    if path.is_absolute() {
        return Ok(None);
    }
    let Ok(below) = path.strip_prefix("~") else {
        return Err(invalid("a path that begins with `~/` or `/`"));
    };
    if below.as_os_str().is_empty() {
        return Err(invalid("a path below `~/`, not the whole home directory"));
    }
    Ok(Some(below.components().filter(|component| *component != Component::CurDir).collect()))
}

fn make_directory(directory: &Path) -> Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(|error| Failure::io("make the directory", directory, &error))
}

/// Gives the owner write access to every directory of the tree; looks at each without following links.
fn make_removable(directory: &Path) {
    let is_directory = fs::symlink_metadata(directory).is_ok_and(|found| found.is_dir());
    if !is_directory {
        return;
    }
    let mut pending = vec![directory.to_path_buf()];
    while let Some(next) = pending.pop() {
        // A failure shows itself as a directory that stays behind; there is nobody to tell in a drop.
        let _ = fs::set_permissions(&next, fs::Permissions::from_mode(0o700));
        let Ok(entries) = fs::read_dir(&next) else { continue };
        for entry in entries.flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                pending.push(entry.path());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct HomeFixture {
        dir: tempfile::TempDir,
    }

    impl HomeFixture {
        fn new() -> Self {
            let dir = tempfile::tempdir().expect("tempdir");
            for sub in ["real/.cargo/bin", "real/.config/tool", "under"] {
                fs::create_dir_all(dir.path().join(sub)).expect("directory");
            }
            Self { dir }
        }

        fn create_home(&self, read: &[&str]) -> Result<PrivateHome> {
            let read: Vec<String> = read.iter().map(|entry| (*entry).to_owned()).collect();
            PrivateHome::create_under(&self.dir.path().join("under"), &self.dir.path().join("real"), &read)
        }
    }

    #[test]
    fn what_is_named_is_linked_at_its_place_and_nothing_else_is_there() {
        let place = HomeFixture::new();
        let home = place
            .create_home(&["~/.config/tool/", "~/./.cargo/bin", "~/.cargo", "~/.none", "/usr"])
            .expect("made");
        let real = place.dir.path().join("real");
        assert_eq!(fs::read_link(home.home().join(".cargo")).expect("link"), real.join(".cargo"));
        assert_eq!(fs::read_link(home.home().join(".config/tool")).expect("link"), real.join(".config/tool"));
        assert_eq!(fs::read_dir(home.home()).expect("read").count(), 2);
        for directory in [home.root.path(), home.home(), home.tmp(), &home.home().join(".config")] {
            let mode = fs::metadata(directory).expect("there").permissions().mode();
            assert_eq!(mode & 0o777, 0o700, "{}", directory.display());
        }
    }

    #[test]
    fn dropping_removes_the_links_and_keeps_what_they_lead_to() {
        let place = HomeFixture::new();
        let home = place.create_home(&["~/.cargo"]).expect("made");
        fs::create_dir_all(home.tmp().join("cache/deep")).expect("directory");
        fs::set_permissions(home.tmp().join("cache"), fs::Permissions::from_mode(0o500)).expect("mode");
        let root = home.root.path().to_path_buf();
        drop(home);
        assert!(!root.exists());
        assert!(place.dir.path().join("real/.cargo/bin").exists());
    }

    #[test]
    fn what_would_open_the_whole_home_is_refused() {
        let place = HomeFixture::new();
        for entry in ["~", "~/", "~/.", "~/..", "~/a/../..", "~root/x", "x", "", "/a/../b"] {
            let failure = place.create_home(&[entry]).expect_err(entry);
            assert_eq!(failure.code(), Code::ConfigInvalid, "{entry}");
        }
        assert_eq!(fs::read_dir(place.dir.path().join("under")).expect("read").count(), 0);
    }
}
