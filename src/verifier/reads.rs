//! What a verifier may read beside its tree: digested for the key, and looked at again after a run.
//!
//! Without a sandbox the real files are read, through links in the private home. A folder of a bounded number
//! of files is in the key by content. One that is larger, or a store whose content a lock file names, is not;
//! its programs are, as tools.

use super::Host;
use super::cache::{FileDigests, stamp_of};
use super::load::Verifier;
use crate::domain::value::digest::Sha256;
use crate::git::slot::ConfigurationAbove;
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// How many files of a folder are digested.
const MOST_FILES: usize = 2000;

/// Files in which tools note that they were there.
const BOOKKEEPING: &[&str] = &[".package-cache", ".package-cache-mutate", ".global-cache"];

/// The digests of what a verifier may read, by how its manifest names it, and of the configuration above its
/// slot; `None` for what is in no key.
pub(super) fn read_digests(
    host: &Host<'_>,
    verifier: &Verifier,
    digests: &mut FileDigests,
) -> BTreeMap<String, Option<Sha256>> {
    let above = host.slots.parent().map(ConfigurationAbove::above_place).unwrap_or_default();
    let above = above.digests().map(|(path, sha256)| (path.display().to_string(), Some(sha256)));
    let entries = verifier.manifest.read.iter();
    let read = entries.map(|entry| {
        let is_store = verifier.manifest.stores.contains(entry);
        (entry.clone(), if is_store { None } else { digest_entry(&real_path(host, entry), digests) })
    });
    above.chain(read).collect()
}

/// Those entries of `read` that are not on this machine.
pub(super) fn absent_reads(host: &Host<'_>, verifier: &Verifier) -> Vec<String> {
    let entries = verifier.manifest.read.iter();
    entries.filter(|entry| !real_path(host, entry).exists()).cloned().collect()
}

/// The place that an entry of `read` means.
pub(super) fn real_path(host: &Host<'_>, entry: &str) -> PathBuf {
    match (entry.strip_prefix("~/"), host.home) {
        (Some(below), Some(home)) => home.join(below),
        _ => PathBuf::from(entry),
    }
}

fn digest_entry(path: &Path, digests: &mut FileDigests) -> Option<Sha256> {
    let Ok(real) = path.canonicalize() else { return Some(Sha256::of(b"nothing there")) };
    if !real.is_dir() {
        return Some(digests.of(&real).unwrap_or_else(|e| Sha256::of(e.kind().to_string().as_bytes())));
    }
    let files = files_below(&real)?;
    let mut listing = Vec::new();
    for file in &files {
        listing.extend(file.strip_prefix(&real).unwrap_or(file).as_os_str().as_bytes());
        let (own, target) = (std::fs::symlink_metadata(file), std::fs::metadata(file));
        for found in [own, target].into_iter().flatten().filter(|found| !found.is_dir()) {
            listing.extend(format!("\0{:o} {}", found.mode(), stamp_of(&found)).as_bytes());
        }
        listing.push(0);
    }
    let name = format!("folder:{}", Sha256::of(&listing));
    if let Some(known) = digests.known(&name) {
        return Some(known);
    }
    let mut content = Vec::new();
    for file in &files {
        content.extend(file.strip_prefix(&real).unwrap_or(file).as_os_str().as_bytes());
        let target = std::fs::read_link(file).map(PathBuf::into_os_string).unwrap_or_default();
        let mode = std::fs::metadata(file).map(|found| found.mode()).unwrap_or_default();
        let sha256 = if file.is_file() { digests.of(file).ok() } else { None };
        content.extend(format!("\0{mode:o} {target:?} {sha256:?}\0").as_bytes());
    }
    let sha256 = Sha256::of(&content);
    digests.learn(name, sha256);
    Some(sha256)
}

/// Everything below a folder that is none, sorted; links are not followed. `None` where it is too much.
fn files_below(folder: &Path) -> Option<Vec<PathBuf>> {
    let (mut files, mut pending) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(next) = pending.pop() {
        for entry in std::fs::read_dir(&next).into_iter().flatten().flatten() {
            let name = entry.file_name();
            match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                true => pending.push(entry.path()),
                false if BOOKKEEPING.iter().any(|known| name == *known) => {}
                false => files.push(entry.path()),
            }
            if files.len() + pending.len() > MOST_FILES {
                return None;
            }
        }
    }
    files.sort();
    Some(files)
}
