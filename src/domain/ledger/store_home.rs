//! Which repository a store belongs to, and whether that is the one in which it is found.
//!
//! A store names its repository by the path and the inode of the git directory. One of the two may change: a
//! folder is renamed, a container mounts it elsewhere, a backup is put back. Where both would have to fit
//! another repository, the store is a copy, and the other one's working tree is none of its business.

use crate::domain::delivery::receipt::Inode;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoreHome {
    /// The git directory that all worktrees share. Text, or `{"bytes":"base64"}`.
    #[serde(with = "crate::domain::value::bytes")]
    pub git_dir: PathBuf,
    /// `None` where only the path was ever written down.
    #[serde(default)]
    pub inode: Option<Inode>,
}

/// What the store's own word and the repository around it come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whereabouts {
    AtHome,
    /// The same one, of which something else is to be written down: a device number, or an inode at all.
    Noted,
    /// Another git directory has taken the place of the one that was written down.
    Replaced,
    /// The git directory was renamed; nothing is at its old place.
    Moved,
    /// Neither fits, and nothing is at the old place any more.
    Carried,
    /// Another repository is at the old place.
    Copied,
}

impl StoreHome {
    /// Compares what was written down with the repository in which the store is now, and with what is at the
    /// place that was written down.
    pub fn compare(&self, here: &Self, at_old_place: Option<Inode>) -> Whereabouts {
        let is_same_file = |one: Inode, other: Inode| {
            one.ino == other.ino && (one.dev == other.dev || self.git_dir == here.git_dir)
        };
        let same_inode = self.inode.zip(here.inode).map(|(then, now)| is_same_file(then, now));
        if self.git_dir == here.git_dir {
            return match same_inode {
                _ if self == here => Whereabouts::AtHome,
                Some(false) => Whereabouts::Replaced,
                _ => Whereabouts::Noted,
            };
        }
        match (at_old_place, same_inode) {
            // Two names of one folder.
            (Some(there), _) if Some(there) == here.inode => Whereabouts::AtHome,
            (Some(_), _) => Whereabouts::Copied,
            (None, Some(true)) => Whereabouts::Moved,
            (None, _) => Whereabouts::Carried,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(path: &str, dev: u64, ino: u64) -> StoreHome {
        StoreHome { git_dir: path.into(), inode: Some(Inode { dev, ino }) }
    }

    #[test]
    fn path_or_inode_has_to_fit_and_nobody_else_may_claim_it() {
        let known = home("/a/.git", 1, 10);
        let at = |here: &StoreHome, there: Option<(u64, u64)>| {
            known.compare(here, there.map(|(dev, ino)| Inode { dev, ino }))
        };
        assert_eq!(at(&known, Some((1, 10))), Whereabouts::AtHome);
        assert_eq!(at(&home("/a/.git", 2, 10), Some((2, 10))), Whereabouts::Noted, "another device number");
        assert_eq!(at(&home("/a/.git", 1, 11), Some((1, 11))), Whereabouts::Replaced);
        assert_eq!(at(&home("/b/.git", 1, 10), None), Whereabouts::Moved);
        assert_eq!(at(&home("/b/.git", 1, 10), Some((1, 10))), Whereabouts::AtHome, "a second name");
        assert_eq!(at(&home("/b/.git", 1, 10), Some((1, 12))), Whereabouts::Copied, "its place is taken");
        assert_eq!(at(&home("/b/.git", 1, 12), Some((1, 10))), Whereabouts::Copied);
        assert_eq!(at(&home("/b/.git", 1, 12), None), Whereabouts::Carried);
        assert_eq!(at(&home("/b/.git", 2, 10), None), Whereabouts::Carried, "a number of another device");
        let by_path = StoreHome { inode: None, ..known.clone() };
        assert_eq!(by_path.compare(&known, Some(Inode { dev: 1, ino: 10 })), Whereabouts::Noted);
        let elsewhere = home("/b/.git", 1, 12);
        assert_eq!(by_path.compare(&elsewhere, Some(Inode { dev: 1, ino: 10 })), Whereabouts::Copied);
        assert_eq!(by_path.compare(&elsewhere, None), Whereabouts::Carried);
    }
}
