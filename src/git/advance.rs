//! Moves a task's worktree from one tree that was captured to another, touching only what differs. A file that is neither side's is the
//! worker's and stays. It can be cut off anywhere: done again, it goes on from what it finds.

use super::beneath::{Cursor, Stamp};
use super::capture::Capture;
use super::command::Git;
use super::convert::{Conversions, Drivers};
use super::drivers::runnable_drivers;
use super::materialise::{Held, HeldFile, Permissions, bring};
use super::objects::Quarantine;
use super::repository::Repository;
use super::tree::{self, TreeDifference, TreeFile};
use super::worktree::admin_of;
use crate::domain::digest::ObjectId;
use crate::domain::repo_path::RepoPath;
use crate::error::{Code, Failure, Result};
use std::path::Path;

/// A worktree on its way to another base.
#[derive(Debug, Clone, Copy)]
pub struct Move<'a> {
    /// The repository.
    pub repository: &'a Repository,
    /// Where the trees lie.
    pub quarantine: &'a Quarantine,
    /// The worktree.
    pub worktree: &'a Path,
    /// What it holds.
    pub from: &'a ObjectId,
    /// What it will hold.
    pub to: &'a ObjectId,
    /// The commit that its HEAD will be at.
    pub commit: &'a ObjectId,
    /// What its index will hold: the new base.
    pub base: &'a ObjectId,
}

impl Move<'_> {
    /// The paths where something lies that no capture takes, although the new tree has a file there.
    pub fn obstacles(&self) -> Result<Vec<RepoPath>> {
        let mut found = Vec::new();
        let mut cursor = Cursor::new(self.worktree)?;
        for change in self.differences()?.into_iter().filter(|d| d.old.is_none()) {
            let there = match cursor.folder(&change.path)? {
                Some(folder) => folder.stat(change.path.file_name()).is_ok(),
                None => false,
            };
            if there {
                found.push(change.path);
            }
        }
        Ok(found)
    }

    /// Moves it. `now` is a capture of what it holds at this moment, `held` what we wrote there. Gives what we wrote by now, and the
    /// paths that are the worker's.
    pub fn carry_out(&self, now: &Capture, held: Held) -> Result<(Held, Vec<RepoPath>)> {
        let objects = self.repository.objects(Some(self.quarantine))?;
        let (mut there, mut wanted, mut kept) = (Held::default(), Vec::new(), Vec::new());
        for TreeDifference { path, old, new } in self.differences()? {
            let is = tree::entry(&objects, &now.tree, &path)?;
            if is == new {
                continue;
            }
            if is != old {
                kept.push(path);
                continue;
            }
            if let Some((mode, id)) = old {
                let stamp = Stamp { ino: 0, size: 0, mtime: 0, ctime: 0 };
                there.0.insert(path.clone(), HeldFile { mode, id, conversion: String::new(), stamp });
            }
            wanted.extend(new.map(|(mode, id)| TreeFile { path, mode, id }));
        }
        let gone: Vec<RepoPath> = there.0.keys().cloned().collect();
        let conversions = Conversions { repository: self.repository, quarantine: Some(self.quarantine) };
        let drivers = runnable_drivers(self.repository)?;
        let named = Drivers::Named(&drivers);
        let written = bring(
            &conversions,
            self.to,
            &named,
            self.worktree,
            there,
            &wanted,
            Permissions::Writable,
            &|_, _| {},
        )?;
        self.tell_git()?;
        let mut all = held;
        gone.iter().for_each(|path| drop(all.0.remove(path)));
        all.0.extend(written.0);
        Ok((all, kept))
    }

    fn differences(&self) -> Result<Vec<TreeDifference>> {
        tree::difference(&self.repository.objects(Some(self.quarantine))?, self.from, self.to)
    }

    /// Git's own view from inside: HEAD at the new commit, the new base in the index, so that `git diff` shows the change.
    fn tell_git(&self) -> Result<()> {
        let Some(admin) = admin_of(self.repository, self.worktree)? else {
            return Err(Failure::new(
                Code::NotFound,
                format!("git has no record of the worktree {} any more", self.worktree.display()),
            )
            .subject(self.worktree.display().to_string()));
        };
        let git = || Git::new(self.repository.environment(), Some(&admin)).work_tree(self.worktree);
        git()
            .args(["update-ref", "--no-deref", "-m", "git-tender: rebase", "HEAD", self.commit.as_str()])
            .ok()?;
        git().args(["read-tree", self.base.as_str()]).ok().map(|_| ())
    }
}
