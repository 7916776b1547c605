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

use super::command::{Invocation, ProgramEnd, SandboxLayer};
use super::helper::find_program;
use super::launch::{HELPER_ARGUMENT, run_program};
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What belongs to the system and is shown to every confined program, read-only.
pub(super) const SYSTEM: &[&str] =
    &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu"];

/// What of the system is for its administrator only. A program that runs as root would read it.
const MASKED: &[&str] = &["/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers"];

/// Where this program lies for a supervisor in namespaces of its own.
const INSIDE: &str = "/run/git-tender";

/// How a folder is shown without what is in it.
const BARE: &str = "--tmpfs";

/// How long trying a tier may take.
const TRY_TIME: Duration = Duration::from_secs(10);

/// What a program is confined to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confinement {
    pub layer: SandboxLayer,
    /// The file of bubblewrap, for the tier full.
    pub bubblewrap: PathBuf,
    /// What it may read beside the system. What is not there is passed over.
    pub read: Vec<PathBuf>,
    /// What it may write; each has to be there.
    pub write: Vec<PathBuf>,
    /// Folders of which nothing is shown but what is named otherwise, and in which nothing can be made.
    pub bare: Vec<PathBuf>,
}

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

/// What bubblewrap is told so that the supervisor runs in namespaces of its own.
pub(super) fn bubblewrap_arguments(confinement: &Confinement, helper: &Path) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = [
        "--unshare-user",
        "--unshare-pid",
        "--unshare-net",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-cgroup-try",
        "--die-with-parent",
        "--cap-drop",
        "ALL",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--tmpfs",
        "/tmp",
        "--tmpfs",
        "/run",
        "--tmpfs",
        "/var/tmp",
    ]
    .map(OsString::from)
    .to_vec();
    let mut mount = |how: &str, from: &OsStr, to: &Path| {
        arguments.extend([how.into(), from.to_owned(), to.as_os_str().to_owned()]);
    };
    for place in SYSTEM.iter().map(Path::new) {
        match std::fs::read_link(place) {
            Ok(target) => mount("--symlink", target.as_os_str(), place),
            Err(_) if place.is_dir() => mount("--ro-bind", place.as_os_str(), place),
            Err(_) => {}
        }
    }
    for place in MASKED.iter().map(Path::new).filter(|place| place.is_file()) {
        mount("--ro-bind", OsStr::new("/dev/null"), place);
    }
    mount("--ro-bind", helper.as_os_str(), Path::new(INSIDE));
    for (how, place) in mounts_in_order(confinement) {
        match how {
            BARE => arguments.extend([how.into(), place.as_os_str().to_owned()]),
            _ => arguments.extend([how.into(), place.as_os_str().to_owned(), place.as_os_str().to_owned()]),
        }
    }
    for place in &confinement.bare {
        arguments.extend(["--remount-ro".into(), place.as_os_str().to_owned()]);
    }
    arguments
        .extend(["--remount-ro", "/", "--chdir", "/", "--", INSIDE, HELPER_ARGUMENT].map(OsString::from));
    arguments
}

/// What is shown beside the system, what lies above before what lies below.
fn mounts_in_order(confinement: &Confinement) -> Vec<(&'static str, &Path)> {
    let of_system = |path: &Path| SYSTEM.iter().any(|system| path.starts_with(system));
    let read = confinement.read.iter().filter(|path| !of_system(path));
    let mut mounts: Vec<(&'static str, &Path)> = read.map(|path| ("--ro-bind-try", path.as_path())).collect();
    mounts.extend(confinement.bare.iter().map(|path| (BARE, path.as_path())));
    mounts.extend(confinement.write.iter().map(|path| ("--bind", path.as_path())));
    mounts.sort_by_key(|(how, path)| (path.components().count(), *how != BARE, *how != "--bind"));
    mounts
}

/// What bubblewrap said when it could not make the namespaces, with the known causes by name.
pub(super) fn explain_refusal(stderr: &[u8]) -> String {
    let said = String::from_utf8_lossy(stderr);
    let said = said.lines().find(|line| line.contains("bwrap")).unwrap_or_default().trim();
    let switches = [
        ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "AppArmor restricts user namespaces"),
        ("/proc/sys/kernel/unprivileged_userns_clone", "0", "user namespaces are switched off"),
        ("/proc/sys/user/max_user_namespaces", "0", "no user namespaces are allowed"),
    ];
    let cause = switches.iter().find_map(|(file, off, what)| {
        let value = std::fs::read_to_string(file).ok()?;
        (value.trim() == *off).then(|| format!("{what} ({file} is {off})"))
    });
    match cause {
        Some(cause) => format!("{cause}: {said}"),
        None => said.to_owned(),
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
    fn what_lies_above_is_mounted_before_what_lies_below() {
        let confinement = Confinement {
            layer: SandboxLayer::Full,
            bubblewrap: PathBuf::new(),
            read: vec!["/w/tree/.git".into(), "/usr/lib/x".into(), "/w".into()],
            write: vec!["/w/tree".into(), "/w".into()],
            bare: vec!["/v".into()],
        };
        let mut order: Vec<String> = mounts_in_order(&confinement)
            .iter()
            .map(|(how, path)| format!("{how} {}", path.display()))
            .collect();
        assert_eq!(order.remove(0), "--tmpfs /v");
        assert_eq!(order, ["--bind /w", "--ro-bind-try /w", "--bind /w/tree", "--ro-bind-try /w/tree/.git"]);
    }

    #[test]
    fn only_absolute_folders_of_the_path_are_shown() {
        let found = program_folders(OsStr::new("/a:b::./c:/d"));
        assert_eq!(found, [PathBuf::from("/a"), PathBuf::from("/d")]);
    }
}
