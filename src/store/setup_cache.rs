//! What the set-up of a worktree made, kept for the next one that is made from the same inputs.
//!
//! A result is filled under another name and renamed once it is whole, so that whoever finds it may take it.

use super::layout::{Layout, create_private_dir, replace_private_unsynced};
use crate::domain::value::digest::Sha256;
use crate::domain::value::repo_path::RepoPath;
use crate::error::presence::means_absent;
use crate::error::{Failure, Result};
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The list of what is in a result.
const PLACES: &str = "places.json";

/// How long a result is kept that nobody uses.
const KEPT: Duration = Duration::from_secs(14 * 24 * 3600);

/// One result, by what it was made from.
#[derive(Debug)]
pub struct SetupCache {
    folder: PathBuf,
    above: PathBuf,
}

impl SetupCache {
    pub fn new(layout: &Layout, made_from: Sha256) -> Self {
        let above = layout.setups();
        Self { folder: above.join(made_from.to_string()), above }
    }

    /// Where its files lie.
    pub fn tree_folder(&self) -> PathBuf {
        self.folder.join("tree")
    }

    /// The places that it has, where it is there; it counts as used from now on.
    pub fn find_places(&self) -> Option<Vec<RepoPath>> {
        let list = self.folder.join(PLACES);
        let places = serde_json::from_slice(&std::fs::read(&list).ok()?).ok()?;
        if let Ok(file) = File::options().append(true).open(&list) {
            // Losing the time costs running it again some day.
            let _ = file.set_modified(SystemTime::now());
        }
        Some(places)
    }

    /// Keeps a result: `fill` puts its files into the folder that it is given. Where somebody else was first,
    /// theirs stays.
    pub fn keep_result(&self, places: &[RepoPath], fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        create_private_dir(&self.above)?;
        let failed = |e: std::io::Error| Failure::io_of_ours("keep a set-up in", &self.above, &e);
        let new = tempfile::Builder::new().prefix(".new-").tempdir_in(&self.above).map_err(failed)?;
        let tree = new.path().join("tree");
        create_private_dir(&tree)?;
        fill(&tree)?;
        let list = serde_json::to_vec(places)
            .map_err(|e| Failure::internal(format!("the list of a set-up cannot be written: {e}")))?;
        replace_private_unsynced(&new.path().join(PLACES), &list)?;
        // A power cut must not leave a whole list beside half of the files.
        File::open(new.path()).and_then(|file| Ok(rustix::fs::syncfs(file)?)).map_err(failed)?;
        if std::fs::rename(new.path(), &self.folder).is_ok() {
            let _ = new.keep();
        }
        Ok(())
    }
}

/// Removes the results that no open task uses and that nobody has taken for long. Gives how many.
pub fn remove_unused_setups(layout: &Layout, used: &BTreeSet<Sha256>) -> Result<u64> {
    let above = layout.setups();
    let entries = match std::fs::read_dir(&above) {
        Ok(entries) => entries,
        Err(e) if means_absent(&e) => return Ok(0),
        Err(e) => return Err(Failure::io_of_ours("list", &above, &e)),
    };
    let used: BTreeSet<String> = used.iter().map(Sha256::to_string).collect();
    let mut removed = 0;
    for entry in entries.flatten() {
        let folder = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        let taken = [folder.join(PLACES), folder.clone()].iter().find_map(|path| path.metadata().ok());
        let age = taken.and_then(|found| found.modified().ok()?.elapsed().ok()).unwrap_or_default();
        if used.contains(&name) || age < KEPT {
            continue;
        }
        std::fs::remove_dir_all(&folder).map_err(|e| Failure::io_of_ours("remove", &folder, &e))?;
        removed += 1;
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_whole_or_absent_and_goes_once_nobody_uses_it() {
        let home = tempfile::tempdir().expect("a directory");
        let layout = Layout::new(home.path());
        let key = Sha256::of(b"lock 1");
        let cache = SetupCache::new(&layout, key);
        let places = vec![RepoPath::new("deps").expect("a path")];
        let cut_off = cache.keep_result(&places, |tree| {
            replace_private_unsynced(&tree.join("deps"), b"half")?;
            Err(Failure::internal("killed"))
        });
        assert!(cut_off.is_err() && cache.find_places().is_none());
        let fill =
            |bytes: &'static [u8]| move |tree: &Path| replace_private_unsynced(&tree.join("deps"), bytes);
        cache.keep_result(&places, fill(b"first")).expect("kept");
        cache.keep_result(&places, fill(b"second")).expect("the first stays");
        assert_eq!(cache.find_places(), Some(places));
        assert_eq!(std::fs::read(cache.tree_folder().join("deps")).expect("reads"), b"first");
        assert_eq!(remove_unused_setups(&layout, &BTreeSet::new()).expect("looks"), 0, "it was just used");
        let list = File::options().append(true).open(cache.folder.join(PLACES)).expect("opens");
        list.set_modified(SystemTime::now() - KEPT * 2).expect("set");
        assert_eq!(remove_unused_setups(&layout, &BTreeSet::from([key])).expect("looks"), 0, "it is used");
        assert_eq!(remove_unused_setups(&layout, &BTreeSet::new()).expect("looks"), 1);
        assert!(cache.find_places().is_none());
    }
}
