//! Which files of the user's, copied into worktrees, hold values that no log may show. Their places are kept,
//! never their values.

use super::layout::{Layout, replace_private_unsynced};
use crate::error::Result;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// How much of such a file is read.
const LARGEST_READ: u64 = 64 << 10;

/// Adds places to the list; those that are gone are forgotten.
pub fn note_secret_files(layout: &Layout, places: &[PathBuf]) -> Result<()> {
    let mut known = listed_places(layout);
    let before = known.clone();
    known.retain(|place| place.is_file());
    known.extend(places.iter().cloned());
    if known == before {
        return Ok(());
    }
    let lines: Vec<&[u8]> = known.iter().map(|place| place.as_os_str().as_bytes()).collect();
    replace_private_unsynced(&layout.secret_files(), &lines.join(&0))
}

/// The content of each file that is there.
pub fn read_secret_files(layout: &Layout) -> Vec<Vec<u8>> {
    listed_places(layout).iter().filter_map(|place| read_start(place).ok()).collect()
}

fn read_start(place: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if place.symlink_metadata()?.is_file() {
        std::fs::File::open(place)?.take(LARGEST_READ).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

fn listed_places(layout: &Layout) -> BTreeSet<PathBuf> {
    let listed = std::fs::read(layout.secret_files()).unwrap_or_default();
    let places = listed.split(|b| *b == 0).filter(|place| !place.is_empty());
    places.map(|place| PathBuf::from(OsStr::from_bytes(place))).collect()
}
