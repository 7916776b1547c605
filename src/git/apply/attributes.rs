//! Makes a staged file like the one that it will replace: owner, extended attributes (among them ACLs), permissions.

use crate::domain::receipt::Note;
use crate::git::fsops::Entry;
use rustix::fs::{Mode, XattrFlags};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;

/// Carries over what belongs to the file but not to its bytes. Owner first: a change of owner clears permission bits.
pub(super) fn carry_over(from: &File, to: &File) -> io::Result<Vec<Note>> {
    let old = rustix::fs::fstat(from)?;
    let new = rustix::fs::fstat(to)?;
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid) {
        let (user, group) = (rustix::fs::Uid::from_raw(old.st_uid), rustix::fs::Gid::from_raw(old.st_gid));
        rustix::fs::fchown(to, Some(user), Some(group))?;
    }
    let notes = extended(from, to)?;
    rustix::fs::fchmod(to, Mode::from_raw_mode(Entry::of(&old).permissions))?;
    Ok(notes)
}

/// Extended attributes. The user's own and ACLs must come along; those that only the system may set are noted where they do not.
fn extended(from: &File, to: &File) -> io::Result<Vec<Note>> {
    let (wanted, present) = (names(from)?, names(to)?);
    let mut notes = Vec::new();
    for name in present.difference(&wanted) {
        if let Err(e) = rustix::fs::fremovexattr(to, name.as_c_str()) {
            refused(name, e, &mut notes)?;
        }
    }
    for name in &wanted {
        let value = value(from, name)?;
        if Some(&value) == present.get(name).map(|n| self::value(to, n)).transpose()?.as_ref() {
            continue;
        }
        if let Err(e) = rustix::fs::fsetxattr(to, name.as_c_str(), &value, XattrFlags::empty()) {
            refused(name, e, &mut notes)?;
        }
    }
    Ok(notes)
}

fn refused(name: &CStr, error: Errno, notes: &mut Vec<Note>) -> io::Result<()> {
    let bytes = name.to_bytes();
    if bytes.starts_with(b"user.") || bytes.starts_with(b"system.posix_acl") {
        return Err(error.into());
    }
    notes.push(Note::AttributeLost(String::from_utf8_lossy(bytes).into_owned()));
    Ok(())
}

fn names(file: &File) -> io::Result<BTreeSet<CString>> {
    let mut buffer = vec![0u8; 1 << 16];
    match rustix::fs::flistxattr(file, &mut buffer[..]) {
        Ok(length) => {
            let listed = buffer[..length].split(|b| *b == 0).filter(|name| !name.is_empty());
            Ok(listed.filter_map(|name| CString::new(name).ok()).collect())
        }
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(BTreeSet::new()),
        Err(e) => Err(e.into()),
    }
}

fn value(file: &File, name: &CStr) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0u8; 1 << 16];
    let length = rustix::fs::fgetxattr(file, name, &mut buffer[..])?;
    buffer.truncate(length);
    Ok(buffer)
}
