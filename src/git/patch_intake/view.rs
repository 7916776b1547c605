//! What a tree has at a path, with every directory read once.

use super::super::objects::{Objects, TreeEntry};
use crate::domain::value::digest::{Mode, ObjectId, TreeObject};
use crate::error::Result;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

type Folder = Rc<HashMap<Vec<u8>, TreeEntry>>;

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    Nothing,
    Folder,
    /// A file, a link or a gitlink.
    File(TreeObject),
}

impl Found {
    /// The file, if it is one.
    pub(super) fn file(&self) -> Option<&TreeObject> {
        match self {
            Self::File(object) => Some(object),
            _ => None,
        }
    }
}

/// A tree that is looked into at many places.
pub(super) struct TreeView<'a> {
    objects: &'a Objects,
    root: ObjectId,
    folders: RefCell<HashMap<ObjectId, Folder>>,
}

impl<'a> TreeView<'a> {
    pub(super) fn new(objects: &'a Objects, root: &ObjectId) -> Self {
        Self { objects, root: root.clone(), folders: RefCell::default() }
    }

    pub(super) fn root(&self) -> &ObjectId {
        &self.root
    }

    /// What stands at a path of `/`-separated components; the empty path is the top.
    pub(super) fn find_path(&self, path: &[u8]) -> Result<Found> {
        let mut at = self.root.clone();
        let mut components = path.split(|b| *b == b'/').filter(|c| !c.is_empty()).peekable();
        while let Some(name) = components.next() {
            let folder = self.read_folder(&at)?;
            let Some(entry) = folder.get(name) else { return Ok(Found::Nothing) };
            match (entry.mode, components.peek().is_some()) {
                (None, _) => at = entry.id.clone(),
                (Some(mode), false) => return Ok(Found::File(TreeObject { mode, id: entry.id.clone() })),
                (Some(_), true) => return Ok(Found::Nothing),
            }
        }
        Ok(Found::Folder)
    }

    /// The content of a file; none of a gitlink.
    pub(super) fn read_file(&self, object: &TreeObject) -> Result<Vec<u8>> {
        if object.mode == Mode::Gitlink { Ok(Vec::new()) } else { self.objects.read_blob(&object.id) }
    }

    fn read_folder(&self, id: &ObjectId) -> Result<Folder> {
        if let Some(folder) = self.folders.borrow().get(id) {
            return Ok(Rc::clone(folder));
        }
        let entries = self.objects.read_tree(id)?;
        let folder: Folder = Rc::new(entries.into_iter().map(|entry| (entry.name.clone(), entry)).collect());
        self.folders.borrow_mut().insert(id.clone(), Rc::clone(&folder));
        Ok(folder)
    }
}
