//! What lies above a slot. A tool looks for its configuration in the folders above its own, so that a file
//! there judges along. Slots lie where no folder above holds a project; what a run left there is found after
//! it.

use super::super::beneath::{Folder, Stamp, file_type, path_operation_failed, remove_content};
use crate::domain::value::digest::Sha256;
use crate::domain::value::repo_path::display_bytes;
use crate::error::Result;
use rustix::fs::{AtFlags, CWD, FileType};
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Names that runners and the tools around them look for in the folders above. What only selects a version of
/// a tool is not among them: the tools are in the key.
const CONFIGURATION: &[&str] = &[
    ".babelrc",
    ".babelrc.json",
    ".cargo/config",
    ".cargo/config.toml",
    ".coveragerc",
    ".eslintrc",
    ".eslintrc.cjs",
    ".eslintrc.js",
    ".eslintrc.json",
    ".eslintrc.yaml",
    ".eslintrc.yml",
    ".flake8",
    ".golangci.yml",
    ".mocharc.json",
    ".mocharc.yml",
    ".pytest.ini",
    ".ruff.toml",
    ".rustfmt.toml",
    "Cargo.toml",
    "GNUmakefile",
    "Gemfile",
    "Makefile",
    "babel.config.js",
    "babel.config.json",
    "clippy.toml",
    "conftest.py",
    "deno.json",
    "eslint.config.cjs",
    "eslint.config.js",
    "eslint.config.mjs",
    "eslint.config.ts",
    "go.mod",
    "go.work",
    "jest.config.js",
    "jest.config.json",
    "jest.config.ts",
    "justfile",
    "makefile",
    "mypy.ini",
    "node_modules",
    "noxfile.py",
    "package.json",
    "pnpm-workspace.yaml",
    "pyproject.toml",
    "pytest.ini",
    "ruff.toml",
    "rustfmt.toml",
    "setup.cfg",
    "setup.py",
    "tox.ini",
    "tsconfig.json",
    "vite.config.js",
    "vite.config.ts",
    "vitest.config.js",
    "vitest.config.ts",
];

/// What of [`CONFIGURATION`] lies in the folders above a place, each with what tells that it was changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ConfigurationAbove(BTreeMap<PathBuf, Option<Stamp>>);

impl ConfigurationAbove {
    /// Looks at every folder above `place`, itself included.
    pub fn above_place(place: &Path) -> Self {
        let place = place.canonicalize().unwrap_or_else(|_| place.to_path_buf());
        let all = place.ancestors().flat_map(|folder| CONFIGURATION.iter().map(|name| folder.join(name)));
        let there = all.filter_map(|path| {
            let stat = rustix::fs::statat(CWD, &path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
            // Whoever installs a package does no harm to a folder of packages that was there before.
            let stamp = (file_type(&stat) != FileType::Directory).then(|| Stamp::of_stat(&stat));
            Some((path, stamp))
        });
        Self(there.collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is new or changed since `before`.
    pub fn changed_since(&self, before: &Self) -> Vec<&Path> {
        let fresh = self.0.iter().filter(|(path, stamp)| before.0.get(*path) != Some(*stamp));
        fresh.map(|(path, _)| path.as_path()).collect()
    }

    /// Each path with the digest of its content; of a folder, that it is there.
    pub fn digests(&self) -> impl Iterator<Item = (&Path, Sha256)> {
        self.0.keys().map(|path| (path.as_path(), Sha256::of(&std::fs::read(path).unwrap_or_default())))
    }
}

/// The first of some folders for slots above which no project lies; where there is none, the first of all,
/// and what lies above it is in the key.
pub fn choose_slots_folder(wanted: PathBuf, cache: Option<&Path>, common_dir: &Path) -> PathBuf {
    let is_clear =
        |slots: &Path| slots.parent().is_none_or(|above| ConfigurationAbove::above_place(above).is_empty());
    if is_clear(&wanted) {
        return wanted;
    }
    let name = Sha256::of(common_dir.as_os_str().as_bytes()).to_string();
    let user = rustix::process::geteuid().as_raw();
    let shared = PathBuf::from(format!("/var/tmp/git-tender-{user}"));
    let is_private = |folder: &Path| match std::fs::symlink_metadata(folder) {
        Ok(found) => found.is_dir() && found.uid() == user && found.mode() & 0o022 == 0,
        Err(_) => folder.parent().is_some_and(Path::is_dir),
    };
    let others =
        [cache.map(|cache| cache.join("git-tender/slots")), Some(shared).filter(|folder| is_private(folder))];
    let mut others = others.into_iter().flatten().map(|folder| folder.join(&name[..16]));
    others.find(|slots| is_clear(slots)).unwrap_or(wanted)
}

/// Removes what is not ours from the folder of a slot and from the folder of all slots; gives its paths.
pub(super) fn remove_strangers(slots: &Path, book: &Path, folder: &Path) -> Result<Vec<PathBuf>> {
    let is_slot = |name: &[u8]| {
        let lock = [name, b".lock"].concat();
        name == b".runs" || name == b".kept" || book.join(std::ffi::OsStr::from_bytes(&lock)).exists()
    };
    let mut strangers = remove_others(folder, &|name| name == b"tree")?;
    strangers.extend(remove_others(slots, &is_slot)?);
    Ok(strangers)
}

/// Removes from a folder of ours what was put there under a name that tools look for.
pub(super) fn remove_configuration(path: &Path) -> Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    remove_entry(&Folder::open_path(parent)?, name.as_bytes())
}

fn remove_others(folder: &Path, is_ours: &dyn Fn(&[u8]) -> bool) -> Result<Vec<PathBuf>> {
    let opened = Folder::open_path(folder)?;
    let names =
        opened.sorted_names().map_err(|e| path_operation_failed("list", folder.as_os_str().as_bytes(), e))?;
    let mut strangers = Vec::new();
    for name in names {
        let is_folder = opened.stat(&name).is_ok_and(|stat| file_type(&stat) == FileType::Directory);
        if !(is_folder && is_ours(&name)) {
            remove_entry(&opened, &name)?;
            strangers.push(folder.join(display_bytes(&name)));
        }
    }
    Ok(strangers)
}

fn remove_entry(folder: &Folder, name: &[u8]) -> Result<()> {
    let removed = match folder.open_subfolder(name) {
        Ok(child) => {
            remove_content(&child)?;
            folder.remove_folder(name)
        }
        Err(_) => folder.unlink(name),
    };
    match removed {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(path_operation_failed("remove", name, e)),
        _ => Ok(()),
    }
}
