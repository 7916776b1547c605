//! A slot whose files a verifier may change, and what it made of them. Such a slot is never given back: the
//! next holder fills it anew.

use super::super::beneath::{FolderCursor, Stamp, file_type};
use super::super::materialise::pass_tick;
use super::Slot;
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Failure, Result};
use crate::git::tree::TreeFile;
use rustix::fs::FileType;
use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;

/// The most that a file may have that a verifier changed.
const MOST_BYTES: u64 = 64 << 20;

/// The files of a slot as they were before a verifier could change them.
#[derive(Debug)]
pub struct WritableFiles(BTreeMap<RepoPath, Stamp>);

/// A file as a verifier left it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MendedFile {
    pub path: RepoPath,
    /// The bytes as they lie there, before any conversion.
    pub bytes: Vec<u8>,
    pub executable: bool,
}

impl Slot {
    /// Lets the owner write to the regular files of the view.
    pub fn open_for_mending(&self, files: &[TreeFile]) -> Result<WritableFiles> {
        let mut cursor = FolderCursor::new(&self.tree_folder())?;
        let (mut stamps, mut latest) = (BTreeMap::new(), 0);
        for file in files.iter().filter(|file| file.mode.is_regular()) {
            let failed = |e: std::io::Error| Failure::io("make writable", file.path.as_path(), &e);
            let Some(folder) = cursor.folder_of(&file.path)? else { continue };
            let handle = folder.open_file(file.path.file_name()).map_err(failed)?;
            let now = handle.metadata().map_err(failed)?.permissions().mode();
            handle.set_permissions(std::fs::Permissions::from_mode(now | 0o200)).map_err(failed)?;
            let stamp = Stamp::of_stat(&folder.stat(file.path.file_name()).map_err(failed)?);
            latest = latest.max(stamp.ctime);
            stamps.insert(file.path.clone(), stamp);
        }
        pass_tick(latest);
        Ok(WritableFiles(stamps))
    }

    /// The files that have changed since and are regular files still, in the order of their paths. What was
    /// removed or became something else is no mending.
    pub fn collect_mended(&self, before: &WritableFiles) -> Result<Vec<MendedFile>> {
        let mut cursor = FolderCursor::new(&self.tree_folder())?;
        let mut mended = Vec::new();
        for (path, stamp) in &before.0 {
            let Some(folder) = cursor.folder_of(path)? else { continue };
            let Ok(stat) = folder.stat(path.file_name()) else { continue };
            if Stamp::of_stat(&stat) == *stamp || file_type(&stat) != FileType::RegularFile {
                continue;
            }
            let failed = |e: std::io::Error| Failure::io("read", path.as_path(), &e);
            let file = folder.open_file(path.file_name()).map_err(failed)?;
            let found = file.metadata().map_err(failed)?;
            if !found.is_file() {
                continue;
            }
            let mut bytes = Vec::new();
            file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
            if bytes.len() as u64 <= MOST_BYTES {
                let executable = found.permissions().mode() & 0o100 != 0;
                mended.push(MendedFile { path: path.clone(), bytes, executable });
            }
        }
        Ok(mended)
    }
}
