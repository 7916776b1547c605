//! The tiers of confinement: what a confined program is shown, what it may write, and what this machine
//! offers.
//!
//! - *full*: bubblewrap puts the supervisor and the program into namespaces of their own (user, mount, pid,
//!   net, ipc, uts). What is not named is not there: no home, no live tree, no other slot, no network but a
//!   loopback of its own. Landlock and seccomp follow inside.
//! - *partial*: Landlock and seccomp alone. What is not named cannot be opened; there are no sockets.
//! - *none*: nothing of it.
//!
//! Which tier there is, is found by starting a program in it, never by looking at versions.

use super::command::{Confinement, Invocation, ProgramEnd, SandboxLayer};
use super::helper::find_program;
use super::launch::run_program;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long trying a tier may take.
const TRY_TIME: Duration = Duration::from_secs(10);

/// What somebody's runs get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SandboxGrant {
    /// Nothing was asked for, or the user does without.
    Unconfined,
    Confined {
        layer: SandboxLayer,
        bubblewrap: PathBuf,
    },
    /// It was asked for and cannot be had, for this reason: nothing may be started.
    Refused(String),
}

impl SandboxGrant {
    /// The word that stands in keys and records.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Unconfined => SandboxLayer::None.as_str(),
            Self::Confined { layer, .. } => layer.as_str(),
            Self::Refused(_) => "unavailable",
        }
    }
}

/// What this machine offers, as it was tried.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SandboxOffer {
    /// The best tier that worked.
    pub layer: SandboxLayer,
    pub bubblewrap: PathBuf,
    /// Why the better tiers did not, a sentence each.
    pub lacks: Vec<String>,
}

impl SandboxOffer {
    /// Tries the tiers, the best first. `path` is the `PATH` in which bubblewrap is looked for.
    pub fn try_tiers(helper: &Path, path: Option<&OsStr>) -> Self {
        let mut offer = Self::default();
        let mut tries = vec![SandboxLayer::Partial];
        match find_bubblewrap(path) {
            Some(file) => {
                offer.bubblewrap = file;
                tries.insert(0, SandboxLayer::Full);
            }
            None => offer.lacks.push("full: bubblewrap (bwrap) is not on PATH".to_owned()),
        }
        for layer in tries {
            match try_tier(helper, layer, &offer.bubblewrap) {
                Ok(()) => {
                    offer.layer = layer;
                    break;
                }
                Err(why) => offer.lacks.push(format!("{}: {why}", layer.as_str())),
            }
        }
        offer
    }
}

pub fn find_bubblewrap(path: Option<&OsStr>) -> Option<PathBuf> {
    find_program(OsStr::new("bwrap"), Path::new("/"), path).ok()
}

/// Starts this program in a tier, to say its version.
fn try_tier(helper: &Path, layer: SandboxLayer, bubblewrap: &Path) -> Result<(), String> {
    let mut command = Invocation::new([helper.as_os_str(), OsStr::new("--version")], "/");
    command.timeout = TRY_TIME;
    command.confinement = Some(Confinement {
        layer,
        bubblewrap: bubblewrap.to_owned(),
        read: vec![helper.to_owned()],
        write: Vec::new(),
        bare: Vec::new(),
    });
    let finished =
        run_program(helper, &command, &|_| true).map_err(|failure| failure.message().to_owned())?;
    match finished.end {
        ProgramEnd::Exited(0) => Ok(()),
        end => Err(format!("a program that was tried in it ended with {end:?}")),
    }
}

/// What tells these files, in this start of the machine and for this user, from all others.
pub fn stamps_of_files(files: &[&Path]) -> String {
    use std::os::unix::fs::MetadataExt as _;
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let mut text = format!("{} {}", boot.trim(), rustix::process::geteuid().as_raw());
    for file in files {
        let stamp = std::fs::metadata(file).map(|m| (m.dev(), m.ino(), m.size(), m.ctime(), m.ctime_nsec()));
        text.push_str(&format!(" {} {:?}", file.display(), stamp.ok()));
    }
    text
}

/// The absolute entries of a `PATH`.
pub fn program_folders(path: &OsStr) -> Vec<PathBuf> {
    let entries = path.as_bytes().split(|byte| *byte == b':').filter(|entry| entry.starts_with(b"/"));
    entries.map(|entry| PathBuf::from(OsStr::from_bytes(entry))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_absolute_folders_of_the_path_are_shown() {
        let found = program_folders(OsStr::new("/a:b::./c:/d"));
        assert_eq!(found, [PathBuf::from("/a"), PathBuf::from("/d")]);
    }
}
