//! The way from a path to its open directory, component by component.

use super::{FOLDER, Folder, path_operation_failed};
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Failure, Result};
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::rc::Rc;

/// Open directories are kept up to this number.
const OPEN_FOLDERS: usize = 200;

/// The top of a tree, open.
#[derive(Debug)]
pub struct TreeTop {
    root: Rc<Folder>,
    open: RefCell<HashMap<RepoPath, Rc<Folder>>>,
}

/// Why a directory cannot be entered.
#[derive(Debug)]
pub enum Barred {
    /// This component does not exist.
    Missing,
    /// This component is a symbolic link.
    Link(RepoPath),
    /// This component is no directory.
    NotFolder(RepoPath),
    Error(io::Error),
}

/// A directory that may be absent. One that could not be looked at is a failure: nothing is decided by what
/// was not seen.
pub fn or_absent<T>(found: std::result::Result<T, Barred>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Barred::Error(e)) => Err(e),
        Err(Barred::Missing | Barred::Link(_) | Barred::NotFolder(_)) => Ok(None),
    }
}

impl From<Folder> for TreeTop {
    fn from(root: Folder) -> Self {
        Self { root: Rc::new(root), open: RefCell::default() }
    }
}

impl TreeTop {
    /// Opens the top. Links on the way to it are the user's own business.
    pub fn open_top(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Folder::new(rustix::fs::open(path, flags, Mode::empty())?).map(Self::from)
    }

    /// The directory of that name, as found before or newly opened.
    pub fn open_folder(&self, path: Option<&RepoPath>) -> std::result::Result<Rc<Folder>, Barred> {
        let Some(path) = path else { return Ok(Rc::clone(&self.root)) };
        if let Some(folder) = self.open.borrow().get(path) {
            return Ok(Rc::clone(folder));
        }
        let folder = Rc::new(self.resolve_folder(Some(path))?);
        let mut open = self.open.borrow_mut();
        if open.len() >= OPEN_FOLDERS {
            open.clear();
        }
        open.insert(path.clone(), Rc::clone(&folder));
        Ok(folder)
    }

    /// The directory of that name, resolved now from the top.
    pub fn resolve_folder(&self, path: Option<&RepoPath>) -> std::result::Result<Folder, Barred> {
        let Some(path) = path else { return self.root.clone_handle().map_err(Barred::Error) };
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(&self.root.file, path.as_path(), FOLDER, Mode::empty(), beneath) {
            Ok(fd) => Folder::new(fd).map_err(Barred::Error),
            Err(_) => self.walk_components(path),
        }
    }

    /// Component by component: where `openat2` does not exist, and to find out which component bars the way.
    fn walk_components(&self, path: &RepoPath) -> std::result::Result<Folder, Barred> {
        let mut at = self.root.clone_handle().map_err(Barred::Error)?;
        for step in path.ancestors().into_iter().chain([path.clone()]) {
            at = match at.open_child(step.file_name()) {
                Ok(next) => next,
                Err(Errno::NOENT) => return Err(Barred::Missing),
                Err(Errno::LOOP | Errno::NOTDIR) => {
                    let link = at.look_up(step.file_name()).ok().flatten();
                    let is_link = link.is_some_and(|e| e.kind == FileType::Symlink);
                    return Err(if is_link { Barred::Link(step) } else { Barred::NotFolder(step) });
                }
                Err(e) => return Err(Barred::Error(e.into())),
            };
        }
        Ok(at)
    }
}

/// Walks along sorted paths and keeps the directories on the way open, so that neighbours cost one open each.
#[derive(Debug)]
pub struct FolderCursor {
    root: Folder,
    open: Vec<(Vec<u8>, Folder)>,
}

impl FolderCursor {
    pub fn new(root: &Path) -> Result<Self> {
        Ok(Self { root: Folder::open_path(root)?, open: Vec::new() })
    }

    /// The directory that holds `path`; `None` where it is missing and not to be made, or where something
    /// else is in the way of it.
    pub fn folder_of(&mut self, path: &RepoPath) -> Result<Option<&Folder>> {
        self.go_to_folder(path, false)
    }

    /// The directory that holds `path`, made where it is missing.
    pub fn made_folder(&mut self, path: &RepoPath) -> Result<&Folder> {
        self.go_to_folder(path, true)?
            .ok_or_else(|| Failure::internal("a directory that was just made is missing"))
    }

    fn go_to_folder(&mut self, path: &RepoPath, make: bool) -> Result<Option<&Folder>> {
        let mut names: Vec<&[u8]> = path.components().collect();
        names.pop();
        let common = self.open.iter().zip(&names).take_while(|((have, _), want)| have == *want).count();
        self.open.truncate(common);
        for name in &names[common..] {
            let here = self.open.last().map_or(&self.root, |(_, dir)| dir);
            let next = if make { here.make_subfolder(name) } else { here.open_subfolder(name) };
            match next {
                Ok(dir) => self.open.push((name.to_vec(), dir)),
                Err(e) if !make && is_not_a_folder(&e) => return Ok(None),
                Err(e) => return Err(path_operation_failed("open the directory of", path.as_bytes(), e)),
            }
        }
        Ok(Some(self.open.last().map_or(&self.root, |(_, dir)| dir)))
    }

    /// Removes the directory that holds `path`, and those above it, as far as they are empty.
    pub fn remove_empty_folders(&mut self, path: &RepoPath) -> Result<()> {
        for folder in path.ancestors().iter().rev() {
            let Some(above) = self.folder_of(folder)? else { continue };
            if above.remove_folder(folder.file_name()).is_err() {
                break;
            }
            self.open.clear();
        }
        Ok(())
    }
}

/// True where nothing, or something else than a directory, was in its place.
pub(super) fn is_not_a_folder(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP))
}
