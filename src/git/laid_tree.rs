//! A tree with some paths laid over it, opened folder by folder as far as somebody asks. Where nothing is
//! laid over a folder, its tree's id says all that is in it.

use super::objects::{Objects, TreeEntry};
use super::tree::TreeFile;
use crate::domain::value::digest::{ObjectId, TreeObject};
use crate::domain::value::repo_path::RepoPath;
use crate::error::Result;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// Trees that were read, each once.
#[derive(Debug)]
pub struct ReadTrees<'o> {
    objects: &'o Objects,
    read: RefCell<HashMap<ObjectId, Rc<Vec<TreeEntry>>>>,
}

impl<'o> ReadTrees<'o> {
    pub fn new(objects: &'o Objects) -> Self {
        Self { objects, read: RefCell::default() }
    }

    pub fn objects(&self) -> &'o Objects {
        self.objects
    }

    /// How many trees were read.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.read.borrow().len()
    }

    fn entries(&self, tree: &ObjectId) -> Result<Rc<Vec<TreeEntry>>> {
        if let Some(known) = self.read.borrow().get(tree) {
            return Ok(Rc::clone(known));
        }
        let entries = Rc::new(self.objects.read_tree(tree)?);
        self.read.borrow_mut().insert(tree.clone(), Rc::clone(&entries));
        Ok(entries)
    }
}

/// A folder of a laid tree.
#[derive(Debug, Clone)]
pub struct LaidFolder {
    /// `None` for the top.
    pub path: Option<RepoPath>,
    /// `None` where only what is laid over the tree makes it.
    tree: Option<ObjectId>,
}

/// What a folder holds. A folder may turn out to hold no file.
#[derive(Debug, Clone)]
pub enum LaidNode {
    File(TreeFile),
    Folder(LaidFolder),
}

/// A tree with some paths as they are elsewhere. Where one of them is a file, it is one, whatever the tree
/// has beneath it; where the tree has a file, nothing is beneath it.
#[derive(Debug)]
pub struct LaidTree<'t, 'o> {
    trees: &'t ReadTrees<'o>,
    tree: ObjectId,
    /// By path bytes; `None` where the path is gone.
    over: BTreeMap<Vec<u8>, Option<TreeObject>>,
}

impl<'t, 'o> LaidTree<'t, 'o> {
    /// Later paths win over earlier ones.
    pub fn new(
        trees: &'t ReadTrees<'o>,
        tree: &ObjectId,
        over: impl Iterator<Item = (RepoPath, Option<TreeObject>)>,
    ) -> Self {
        let over = over.map(|(path, object)| (path.as_bytes().to_vec(), object)).collect();
        Self { trees, tree: tree.clone(), over }
    }

    pub fn objects(&self) -> &'o Objects {
        self.trees.objects()
    }

    pub fn top(&self) -> LaidFolder {
        LaidFolder { path: None, tree: Some(self.tree.clone()) }
    }

    /// What is laid over the paths beneath a folder.
    fn laid_beneath(&self, folder: Option<&[u8]>) -> impl Iterator<Item = (&[u8], &Option<TreeObject>)> {
        let (from, to) = match folder {
            None => (Vec::new(), None),
            // The byte after `/` begins what comes after everything beneath.
            Some(path) => ([path, b"/"].concat(), Some([path, b"0"].concat())),
        };
        let length = from.len();
        let range = match to {
            Some(to) => self.over.range(from..to),
            None => self.over.range(from..),
        };
        range.map(move |(path, object)| (&path[length..], object))
    }

    /// The tree that is exactly what the folder is; `None` where something is laid over it.
    pub fn tree_of<'f>(&self, folder: &'f LaidFolder) -> Option<&'f ObjectId> {
        let is_touched = self.laid_beneath(folder.path.as_ref().map(RepoPath::as_bytes)).next().is_some();
        folder.tree.as_ref().filter(|_| !is_touched)
    }

    /// What is in a folder, in the order of the names' bytes.
    pub fn entries(&self, folder: &LaidFolder) -> Result<Vec<LaidNode>> {
        let place = |name: &[u8]| match &folder.path {
            Some(path) => path.join_below(name),
            None => RepoPath::new(name),
        };
        let mut found: BTreeMap<Vec<u8>, LaidNode> = BTreeMap::new();
        if let Some(tree) = &folder.tree {
            for entry in self.trees.entries(tree)?.iter() {
                let (path, id) = (place(&entry.name)?, entry.id.clone());
                let entry_here = match entry.mode {
                    Some(mode) => LaidNode::File(TreeFile { path, mode, id }),
                    None => LaidNode::Folder(LaidFolder { path: Some(path), tree: Some(id) }),
                };
                found.insert(entry.name.clone(), entry_here);
            }
        }
        for (below, object) in self.laid_beneath(folder.path.as_ref().map(RepoPath::as_bytes)) {
            let name = below.split(|b| *b == b'/').next().unwrap_or(below);
            let (known, is_here) = (found.get(name), name.len() == below.len());
            match (object, known) {
                (Some(TreeObject { mode, id }), _) if is_here => {
                    let file = TreeFile { path: place(name)?, mode: *mode, id: id.clone() };
                    found.insert(name.to_vec(), LaidNode::File(file));
                }
                (None, Some(LaidNode::File(_))) if is_here => drop(found.remove(name)),
                (Some(_), None) => {
                    let folder = LaidFolder { path: Some(place(name)?), tree: None };
                    found.insert(name.to_vec(), LaidNode::Folder(folder));
                }
                _ => {}
            }
        }
        Ok(found.into_values().collect())
    }

    /// What is at a path: a file, or a folder that holds one.
    pub fn find(&self, path: &RepoPath) -> Result<Option<LaidNode>> {
        let found = match self.descend_to(path)? {
            Some(LaidNode::Folder(folder)) if !self.holds_file(&folder)? => None,
            found => found,
        };
        Ok(found)
    }

    /// The file at a path.
    pub fn file_at(&self, path: &RepoPath) -> Result<Option<TreeFile>> {
        Ok(match self.descend_to(path)? {
            Some(LaidNode::File(file)) => Some(file),
            _ => None,
        })
    }

    fn descend_to(&self, path: &RepoPath) -> Result<Option<LaidNode>> {
        let mut at = Some(self.tree.clone());
        for place in path.ancestors().into_iter().chain([path.clone()]) {
            let is_last = place == *path;
            let laid = self.over.get(place.as_bytes());
            let own = match &at {
                Some(tree) => {
                    let entries = self.trees.entries(tree)?;
                    let own = entries.iter().find(|entry| entry.name == place.file_name());
                    own.map(|entry| (entry.mode, entry.id.clone()))
                }
                None => None,
            };
            let file = match (laid, &own) {
                (Some(Some(TreeObject { mode, id })), _) => Some((*mode, id.clone())),
                (None, Some((Some(mode), id))) => Some((*mode, id.clone())),
                _ => None,
            };
            if let Some((mode, id)) = file {
                return Ok(is_last.then_some(LaidNode::File(TreeFile { path: place, mode, id })));
            }
            at = own.and_then(|(mode, id)| mode.is_none().then_some(id));
            if at.is_none() && self.laid_beneath(Some(place.as_bytes())).next().is_none() {
                return Ok(None);
            }
        }
        Ok(Some(LaidNode::Folder(LaidFolder { path: Some(path.clone()), tree: at })))
    }

    fn holds_file(&self, folder: &LaidFolder) -> Result<bool> {
        for entry in self.entries(folder)? {
            match entry {
                LaidNode::File(_) => return Ok(true),
                LaidNode::Folder(folder) if self.holds_file(&folder)? => return Ok(true),
                LaidNode::Folder(_) => {}
            }
        }
        Ok(false)
    }
}
