//! Walking trees: all files of one, and the difference of two. The cost of a difference grows with what
//! differs, because equal subtrees are not opened.

use super::objects::{Objects, TreeEntry};
use crate::domain::change::patch::Change;
use crate::domain::value::digest::{FileState, Mode, ObjectId, Sha256, TreeObject};
use crate::domain::value::repo_path::RepoPath;
use crate::error::Result;
use std::collections::{BTreeSet, HashMap};

/// One file, link or gitlink of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeFile {
    pub path: RepoPath,
    pub mode: Mode,
    pub id: ObjectId,
}

/// A path that differs between two trees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeDifference {
    pub path: RepoPath,
    pub old: Option<TreeObject>,
    pub new: Option<TreeObject>,
}

/// Every file of a tree, sorted by path bytes.
pub fn list_files(objects: &Objects, tree: &ObjectId) -> Result<Vec<TreeFile>> {
    let mut found = Vec::new();
    collect_files(objects, tree, b"", &mut |path, mode, id| found.push(TreeFile { path, mode, id }))?;
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// What a tree has at a path; `None` where there is nothing or a directory.
pub fn find_entry(objects: &Objects, tree: &ObjectId, path: &RepoPath) -> Result<Option<TreeObject>> {
    let mut at = tree.clone();
    let mut components = path.components().peekable();
    while let Some(name) = components.next() {
        let Some(entry) = objects.read_tree(&at)?.into_iter().find(|e| e.name == name) else {
            return Ok(None);
        };
        match (entry.mode, components.peek().is_some()) {
            (None, true) => at = entry.id,
            (Some(mode), false) => return Ok(Some(TreeObject { mode, id: entry.id })),
            _ => return Ok(None),
        }
    }
    Ok(None)
}

/// Every file below a directory of a tree; none where it has no such directory.
pub fn files_beneath(objects: &Objects, tree: &ObjectId, folder: &RepoPath) -> Result<Vec<TreeFile>> {
    let mut at = tree.clone();
    for name in folder.components() {
        match objects.read_tree(&at)?.into_iter().find(|e| e.name == name && e.mode.is_none()) {
            Some(entry) => at = entry.id,
            None => return Ok(Vec::new()),
        }
    }
    let mut found = Vec::new();
    collect_files(objects, &at, folder.as_bytes(), &mut |path, mode, id| {
        found.push(TreeFile { path, mode, id })
    })?;
    Ok(found)
}

/// True where a folder from the top down to one of these paths has an entry of this name.
pub fn is_on_the_way(objects: &Objects, tree: &ObjectId, name: &[u8], paths: &[&RepoPath]) -> Result<bool> {
    let top = objects.read_tree(tree)?;
    if top.iter().any(|entry| entry.name == name) {
        return Ok(true);
    }
    let parents: BTreeSet<RepoPath> = paths.iter().filter_map(|path| path.parent()).collect();
    // Folders come after those above them.
    let folders: BTreeSet<RepoPath> =
        parents.into_iter().flat_map(|folder| folder.ancestors().into_iter().chain([folder])).collect();
    let mut entered = HashMap::from([(None, top)]);
    for folder in folders {
        let is_it = |entry: &&TreeEntry| entry.mode.is_none() && entry.name == folder.file_name();
        let Some(above) = entered.get(&folder.parent()).and_then(|above| above.iter().find(is_it)) else {
            continue;
        };
        let entries = objects.read_tree(&above.id)?;
        if entries.iter().any(|entry| entry.name == name) {
            return Ok(true);
        }
        entered.insert(Some(folder), entries);
    }
    Ok(false)
}

/// What differs between two trees, sorted by path bytes.
pub fn list_differences(objects: &Objects, old: &ObjectId, new: &ObjectId) -> Result<Vec<TreeDifference>> {
    let mut found = Vec::new();
    compare_trees(objects, Some(old), Some(new), b"", &mut found)?;
    found.sort_by(|a: &TreeDifference, b| a.path.cmp(&b.path));
    Ok(found)
}

/// The manifest between two trees: the difference with the digests of both sides' bytes.
pub fn changes_between(objects: &Objects, old: &ObjectId, new: &ObjectId) -> Result<Vec<Change>> {
    let state = |side: Option<TreeObject>| -> Result<Option<FileState>> {
        let Some(TreeObject { mode, id: git_blob }) = side else { return Ok(None) };
        let sha256 = match mode {
            Mode::Gitlink => Sha256::of(git_blob.as_str().as_bytes()),
            _ => Sha256::of(&objects.read_blob(&git_blob)?),
        };
        Ok(Some(FileState { mode, git_blob, sha256 }))
    };
    list_differences(objects, old, new)?
        .into_iter()
        .map(|d| Ok(Change::new(d.path, state(d.old)?, state(d.new)?)))
        .collect()
}

fn collect_files(
    objects: &Objects,
    tree: &ObjectId,
    prefix: &[u8],
    found: &mut dyn FnMut(RepoPath, Mode, ObjectId),
) -> Result<()> {
    for entry in objects.read_tree(tree)? {
        let path = join_path(prefix, &entry.name);
        match entry.mode {
            None => collect_files(objects, &entry.id, &path, found)?,
            Some(mode) => found(RepoPath::new(path)?, mode, entry.id),
        }
    }
    Ok(())
}

fn compare_trees(
    objects: &Objects,
    old: Option<&ObjectId>,
    new: Option<&ObjectId>,
    prefix: &[u8],
    found: &mut Vec<TreeDifference>,
) -> Result<()> {
    if old == new {
        return Ok(());
    }
    let read = |tree: Option<&ObjectId>| tree.map_or(Ok(Vec::new()), |id| objects.read_tree(id));
    let (old, new) = (read(old)?, read(new)?);
    let names: BTreeSet<&[u8]> = old.iter().chain(&new).map(|e| e.name.as_slice()).collect();
    let (old_by, new_by) = (index_by_name(&old), index_by_name(&new));
    for name in names {
        let (a, b) = (old_by.get(name).copied(), new_by.get(name).copied());
        if a.map(|e| (e.mode, &e.id)) == b.map(|e| (e.mode, &e.id)) {
            continue;
        }
        let path = join_path(prefix, name);
        let subtree = |e: Option<&TreeEntry>| e.filter(|e| e.mode.is_none()).map(|e| e.id.clone());
        let file =
            |e: Option<&TreeEntry>| e.and_then(|e| e.mode.map(|mode| TreeObject { mode, id: e.id.clone() }));
        let (old_file, new_file) = (file(a), file(b));
        if old_file.is_some() || new_file.is_some() {
            found.push(TreeDifference { path: RepoPath::new(path.clone())?, old: old_file, new: new_file });
        }
        compare_trees(objects, subtree(a).as_ref(), subtree(b).as_ref(), &path, found)?;
    }
    Ok(())
}

fn index_by_name(entries: &[TreeEntry]) -> HashMap<&[u8], &TreeEntry> {
    entries.iter().map(|e| (e.name.as_slice(), e)).collect()
}

fn join_path(prefix: &[u8], name: &[u8]) -> Vec<u8> {
    if prefix.is_empty() { name.to_vec() } else { [prefix, b"/", name].concat() }
}
