//! What bubblewrap is told to show, and what it said where it could not.

use super::command::Confinement;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// What belongs to the system and is shown to every confined program, read-only.
pub(super) const SYSTEM: &[&str] =
    &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu"];

/// What of the system is for its administrator only. A program that runs as root would read it.
const MASKED: &[&str] = &["/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers"];

/// Where this program lies for a supervisor in namespaces of its own.
const INSIDE: &str = "/run/git-tender";

/// How a folder is shown without what is in it.
const BARE: &str = "--tmpfs";

/// What bubblewrap is told so that the supervisor runs in namespaces of its own; `first` is its first
/// argument.
pub(super) fn bubblewrap_arguments(confinement: &Confinement, helper: &Path, first: &str) -> Vec<OsString> {
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
    arguments.extend(["--remount-ro", "/", "--chdir", "/", "--", INSIDE, first].map(OsString::from));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::SandboxLayer;
    use std::path::PathBuf;

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
}
