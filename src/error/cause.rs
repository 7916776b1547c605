//! What helps when the system refuses an operation on a file: most of its words say what has to change, and
//! nothing that we could say of ourselves would.

use super::{Failure, Remedy};
use std::io::{Error, ErrorKind};
use std::path::Path;

/// The next step, where the system's word names one. What has to be typed for it stands in the text: it is
/// a person's, and no program should become root by following remedies.
pub(super) fn advise_on_cause(path: &Path, error: &Error) -> Option<Remedy> {
    let named = path.display();
    let text = match error.kind() {
        ErrorKind::StorageFull => format!("Make room on that file system (`df -h {named}`), then repeat."),
        ErrorKind::QuotaExceeded => "Make room within your quota (`quota -s`), then repeat.".to_owned(),
        ErrorKind::ReadOnlyFilesystem => {
            format!("That file system is mounted read-only (`findmnt -T {named}`): mount it for writing.")
        }
        ErrorKind::PermissionDenied if is_eperm(error) => format!(
            "Not even its owner may do that: it is immutable or append-only (`lsattr -d {named}`, `chattr -ia`), or its file system cannot do it."
        ),
        ErrorKind::PermissionDenied => format!(
            "Another user's file or folder bars the way (`ls -ld {named}`): get the right to it, or work in a clone of your own."
        ),
        ErrorKind::WouldBlock => {
            "No further process or thread may be made: end some, or raise the limit (`ulimit -u`, a container's pids limit)."
                .to_owned()
        }
        ErrorKind::Unsupported => format!(
            "Its file system (`findmnt -T {named}`) cannot do that: keep the repository, or the task worktrees (tender.worktreeRoot), on another one."
        ),
        _ if is_too_many_files(error) => {
            "Too many files are open: raise the limit (`ulimit -n`), or close some.".to_owned()
        }
        _ => return None,
    };
    Some(Remedy { text, command: ["git", "tender", "doctor"].map(str::to_owned).to_vec() })
}

fn is_eperm(error: &Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::PERM.raw_os_error())
}

fn is_too_many_files(error: &Error) -> bool {
    use rustix::io::Errno;
    [Errno::MFILE, Errno::NFILE].iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

impl Failure {
    /// Adds what helps against the cause; nothing where the system's word says nothing.
    pub(super) fn advised_by(self, path: &Path, error: &Error) -> Self {
        match advise_on_cause(path, error) {
            Some(Remedy { text, command }) => self.remedy(text, command),
            None => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn what_the_system_says_decides_what_helps() {
        let path = Path::new("/some/file");
        let advice = |errno: Errno| {
            let failure = Failure::io("write", path, &errno.into());
            failure.has_remedy().then(|| failure.next_step().text)
        };
        for (errno, word) in [
            (Errno::NOSPC, "df -h /some/file"),
            (Errno::DQUOT, "quota -s"),
            (Errno::ROFS, "findmnt -T /some/file"),
            (Errno::PERM, "lsattr -d /some/file"),
            (Errno::ACCESS, "ls -ld /some/file"),
            (Errno::AGAIN, "ulimit -u"),
            (Errno::OPNOTSUPP, "tender.worktreeRoot"),
            (Errno::MFILE, "ulimit -n"),
        ] {
            assert!(advice(errno).is_some_and(|text| text.contains(word)), "{errno:?}");
        }
        assert_eq!(advice(Errno::NOENT), None);
    }
}
