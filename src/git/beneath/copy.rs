//! A file's content under another name, shared with it where the file system can do that.

use super::Folder;
use rustix::fs::{Stat, Timespec, Timestamps};
use std::fs::File;
use std::io;

/// How a copy came to its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyCost {
    /// The blocks are shared: nothing was written.
    Shared,
    Written,
}

/// Copies a regular file to a name that must be free, with its permissions and its time.
pub fn copy_file(from: &Folder, to: &Folder, name: &[u8], stat: &Stat) -> io::Result<CopyCost> {
    let mut source = from.open_file(name)?;
    let mut target = to.create_file(name, stat.st_mode & 0o777)?;
    let cost = match shares_blocks(&target, &source) {
        true => CopyCost::Shared,
        false => {
            io::copy(&mut source, &mut target)?;
            CopyCost::Written
        }
    };
    to.set_times(name, &timestamps_of(stat))?;
    Ok(cost)
}

/// Makes a file's content that of another one without copying it, where the file system can.
pub fn shares_blocks(target: &File, source: &File) -> bool {
    #[cfg(target_os = "linux")]
    return rustix::fs::ioctl_ficlone(target, source).is_ok();
    #[cfg(not(target_os = "linux"))]
    return false;
}

/// The times that a copy gets.
#[expect(clippy::allow_attributes, reason = "the field types differ between architectures")]
#[allow(clippy::unnecessary_cast, reason = "the field types differ between architectures")]
pub fn timestamps_of(stat: &Stat) -> Timestamps {
    let last_modification = Timespec { tv_sec: stat.st_mtime as _, tv_nsec: stat.st_mtime_nsec as _ };
    Timestamps { last_access: last_modification, last_modification }
}
