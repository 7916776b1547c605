//! Makes a staged file like the one that it will replace: owner, extended attributes (among them ACLs),
//! permissions.

use crate::domain::delivery::receipt::{Attributes, Note};
use crate::git::beneath::FolderEntry;
use rustix::fs::{Mode, XattrFlags};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;

/// Carries over what belongs to the file but not to its bytes. Owner first: a change of owner clears
/// permission bits.
pub(super) fn carry_over(from: &File, to: &File) -> io::Result<Vec<Note>> {
    let old = read_attributes(from)?;
    set_owner(&old, to)?;
    let notes = set_extended(&old, to)?;
    rustix::fs::fchmod(
        to,
        Mode::from_raw_mode(FolderEntry::from_stat(&rustix::fs::fstat(from)?).permissions),
    )?;
    Ok(notes)
}

/// Gives a file what a former one had, as far as the user may: what they may not is noted.
pub(super) fn restore_attributes(former: &Attributes, to: &File) -> io::Result<Vec<Note>> {
    let owned = set_owner(former, to);
    let mut notes = set_extended(former, to)?;
    match owned {
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => notes.push(Note::OwnerLost),
        other => other?,
    }
    Ok(notes)
}

/// What belongs to a file beside its bytes and its permissions.
pub(super) fn read_attributes(file: &File) -> io::Result<Attributes> {
    let stat = rustix::fs::fstat(file)?;
    let extended = attribute_names(file)?
        .into_iter()
        .map(|name| Ok((name.to_bytes().to_vec(), attribute_value(file, &name)?)));
    Ok(Attributes { user: stat.st_uid, group: stat.st_gid, extended: extended.collect::<io::Result<_>>()? })
}

fn set_owner(wanted: &Attributes, to: &File) -> io::Result<()> {
    let now = rustix::fs::fstat(to)?;
    if (wanted.user, wanted.group) != (now.st_uid, now.st_gid) {
        let (user, group) = (rustix::fs::Uid::from_raw(wanted.user), rustix::fs::Gid::from_raw(wanted.group));
        rustix::fs::fchown(to, Some(user), Some(group))?;
    }
    Ok(())
}

/// Extended attributes. The user's own and ACLs must come along; those that only the system may set are noted
/// where they do not.
fn set_extended(wanted: &Attributes, to: &File) -> io::Result<Vec<Note>> {
    let present = attribute_names(to)?;
    let wanted: BTreeMap<CString, &Vec<u8>> = wanted
        .extended
        .iter()
        .filter_map(|(name, value)| Some((CString::new(name.clone()).ok()?, value)))
        .collect();
    let mut notes = Vec::new();
    for name in present.iter().filter(|name| !wanted.contains_key(*name)) {
        if let Err(e) = rustix::fs::fremovexattr(to, name.as_c_str()) {
            note_refused(name, e, &mut notes)?;
        }
    }
    for (name, value) in &wanted {
        if Some(*value) == present.get(name).map(|n| self::attribute_value(to, n)).transpose()?.as_ref() {
            continue;
        }
        if let Err(e) = rustix::fs::fsetxattr(to, name.as_c_str(), value, XattrFlags::empty()) {
            note_refused(name, e, &mut notes)?;
        }
    }
    Ok(notes)
}

fn note_refused(name: &CStr, error: Errno, notes: &mut Vec<Note>) -> io::Result<()> {
    let bytes = name.to_bytes();
    if bytes.starts_with(b"user.") || bytes.starts_with(b"system.posix_acl") {
        return Err(error.into());
    }
    notes.push(Note::AttributeLost(String::from_utf8_lossy(bytes).into_owned()));
    Ok(())
}

fn attribute_names(file: &File) -> io::Result<BTreeSet<CString>> {
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

fn attribute_value(file: &File, name: &CStr) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0u8; 1 << 16];
    let length = rustix::fs::fgetxattr(file, name, &mut buffer[..])?;
    buffer.truncate(length);
    Ok(buffer)
}
