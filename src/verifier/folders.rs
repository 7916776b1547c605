//! Looks at trees folder by folder, and remembers what a folder showed by its tree's id: the next candidate
//! costs the folders in which it differs, however many files there are.

use super::load::Verifier;
use super::view::is_input;
use crate::domain::proof::listing::{DigestedEntry, InputFile, folder_digest};
use crate::domain::value::digest::{Mode, ObjectId, Sha256};
use crate::domain::value::repo_path::RepoPath;
use crate::domain::value::scope::Scope;
use crate::error::Result;
use crate::git::Objects;
use crate::git::laid_tree::{LaidFolder, LaidNode, LaidTree};
use crate::git::tree::TreeFile;
use crate::store::Memo;
use serde_json::json;

/// What is remembered is told apart from what another version found.
const VERSION: &str = "1";

/// How much of a folder belongs to something that is looked for. What is all, or none but the attributes,
/// needs no place: the folder shows the same wherever it lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    All,
    Attributes,
    Some,
}

/// Which files of a tree a run depends on: its inputs, and the attribute files of the tree, which decide how
/// the inputs' bytes are checked out. What the closure names is not among them: that is the base's.
#[derive(Debug)]
pub(super) struct InputView<'v> {
    verifier: &'v Verifier,
    /// What is left out: the case of a repair.
    without: Option<&'v Scope>,
    /// Of the patterns that decide.
    id: Sha256,
}

impl<'v> InputView<'v> {
    pub(super) fn new(verifier: &'v Verifier, without: Option<&'v Scope>) -> Self {
        let manifest = &verifier.manifest;
        let patterns = json!({
            "inputs": manifest.inputs, "watch": manifest.watch, "own": verifier.scope, "without": without,
        });
        Self { verifier, without, id: Sha256::of_json(&patterns) }
    }

    pub(super) fn id(&self) -> &Sha256 {
        &self.id
    }

    pub(super) fn takes(&self, path: &RepoPath) -> bool {
        let is_attributes = path.file_name() == b".gitattributes";
        !self.without.is_some_and(|case| case.matches_path(path))
            && (is_attributes || is_input(path, self.verifier))
    }

    fn extent_in(&self, folder: Option<&RepoPath>) -> Extent {
        let manifest = &self.verifier.manifest;
        let may_hold = |scope: &Scope| match folder {
            Some(folder) => scope.may_hold(folder),
            None => !scope.is_empty(),
        };
        if self.without.is_some_and(may_hold) {
            return Extent::Some;
        }
        let seen = [manifest.inputs.as_ref(), Some(&manifest.watch)];
        let is_covered = |scope: Option<&Scope>| scope.is_none_or(|scope| scope.covers_folder(folder));
        if seen.into_iter().any(is_covered) && !may_hold(&self.verifier.scope) {
            return Extent::All;
        }
        match seen.into_iter().any(|scope| scope.is_none_or(may_hold)) {
            true => Extent::Some,
            false => Extent::Attributes,
        }
    }
}

/// Something that files of a tree are looked through for, by their paths alone.
pub(super) struct Wanted<'w> {
    /// Tells it from everything else that is remembered.
    pub(super) id: Sha256,
    pub(super) fits: &'w dyn Fn(&RepoPath) -> bool,
    /// False where certainly nothing in a folder fits; `None` is the top.
    pub(super) may_hold: &'w dyn Fn(Option<&RepoPath>) -> bool,
}

/// Everything that was seen of folders before.
#[derive(Debug)]
pub(super) struct FolderMemory {
    memo: Memo,
}

impl FolderMemory {
    pub(super) fn new(memo: Memo) -> Self {
        Self { memo }
    }

    pub(super) fn save(self) {
        self.memo.save();
    }

    /// The sha256 of an entry's bytes; of its id's text where it is a commit of another repository.
    pub(super) fn file_digest(&self, objects: &Objects, mode: Mode, id: &ObjectId) -> Result<Sha256> {
        if mode == Mode::Gitlink {
            return Ok(Sha256::of(id.as_str().as_bytes()));
        }
        let key = key_of(&["blob", id.as_str()], b"");
        if let Some(known) = self.memo.recall(&key).and_then(|known| Sha256::from_bytes(&known)) {
            return Ok(known);
        }
        let sha256 = Sha256::of(&objects.read_blob(id)?);
        self.memo.remember(key, sha256.as_bytes().to_vec());
        Ok(sha256)
    }

    /// What is known under a name that holds no NUL.
    pub(super) fn recall_note<T: serde::de::DeserializeOwned>(&self, words: &[&str]) -> Option<T> {
        serde_json::from_slice(&self.memo.recall(&key_of(words, b""))?).ok()
    }

    pub(super) fn remember_note(&self, words: &[&str], note: &impl serde::Serialize) {
        if let Ok(bytes) = serde_json::to_vec(note) {
            self.memo.remember(key_of(words, b""), bytes);
        }
    }

    /// Takes over what is known of a blob from elsewhere.
    pub(super) fn learn_blob(&self, id: &ObjectId, sha256: Sha256) {
        let key = key_of(&["blob", id.as_str()], b"");
        if self.memo.recall(&key).as_deref() != Some(sha256.as_bytes()) {
            self.memo.remember(key, sha256.as_bytes().to_vec());
        }
    }

    /// The digest of all files of a tree that a view takes.
    pub(super) fn tree_digest(&self, tree: &LaidTree<'_, '_>, view: &InputView<'_>) -> Result<Sha256> {
        Ok(self.digest_folder(tree, &tree.top(), view)?.unwrap_or_else(|| folder_digest(&[])))
    }

    /// The digest of a folder; `None` where it holds nothing that the view takes.
    fn digest_folder(
        &self,
        tree: &LaidTree<'_, '_>,
        folder: &LaidFolder,
        view: &InputView<'_>,
    ) -> Result<Option<Sha256>> {
        let key = tree.tree_of(folder).map(|id| match view.extent_in(folder.path.as_ref()) {
            Extent::All => key_of(&["all", id.as_str()], b""),
            Extent::Attributes => key_of(&["attributes", id.as_str()], b""),
            Extent::Some => key_of(&["some", id.as_str(), &view.id.to_string()], place_of(folder)),
        });
        if let Some(known) = key.as_ref().and_then(|key| self.memo.recall(key)) {
            match (known.is_empty(), Sha256::from_bytes(&known)) {
                (true, _) => return Ok(None),
                (false, Some(digest)) => return Ok(Some(digest)),
                (false, None) => {}
            }
        }
        let mut entries = Vec::new();
        for entry in tree.entries(folder)? {
            match entry {
                LaidNode::File(file) if view.takes(&file.path) => {
                    let sha256 = self.file_digest(tree.objects(), file.mode, &file.id)?;
                    let name = RepoPath::new(file.path.file_name())?;
                    entries.push(DigestedEntry::File { git_blob: file.id, mode: file.mode, name, sha256 });
                }
                LaidNode::File(_) => {}
                LaidNode::Folder(below) => {
                    if let Some(files) = self.digest_folder(tree, &below, view)? {
                        let name = RepoPath::new(name_of(&below))?;
                        entries.push(DigestedEntry::Folder { files, name });
                    }
                }
            }
        }
        let digest = (!entries.is_empty()).then(|| folder_digest(&entries));
        if let Some(key) = key {
            self.memo.remember(key, digest.map(|digest| digest.as_bytes().to_vec()).unwrap_or_default());
        }
        Ok(digest)
    }

    /// The files that a view takes, sorted by path bytes. Every folder is opened.
    pub(super) fn list(&self, tree: &LaidTree<'_, '_>, view: &InputView<'_>) -> Result<Vec<InputFile>> {
        let mut found = Vec::new();
        let mut open = vec![tree.top()];
        while let Some(folder) = open.pop() {
            for entry in tree.entries(&folder)? {
                match entry {
                    LaidNode::File(file) if view.takes(&file.path) => {
                        found.push(self.input_file(tree.objects(), file)?);
                    }
                    LaidNode::File(_) => {}
                    LaidNode::Folder(below) => open.push(below),
                }
            }
        }
        found.sort_by(|a, b| a.path.as_bytes().cmp(b.path.as_bytes()));
        Ok(found)
    }

    pub(super) fn input_file(&self, objects: &Objects, file: TreeFile) -> Result<InputFile> {
        let sha256 = self.file_digest(objects, file.mode, &file.id)?;
        Ok(InputFile { git_blob: file.id, mode: file.mode, path: file.path, sha256 })
    }

    /// True where a file of the tree fits.
    pub(super) fn has_any(&self, tree: &LaidTree<'_, '_>, wanted: &Wanted<'_>) -> Result<bool> {
        self.folder_has_any(tree, &tree.top(), wanted)
    }

    /// The files of the tree that fit, sorted by path bytes.
    pub(super) fn find_all(&self, tree: &LaidTree<'_, '_>, wanted: &Wanted<'_>) -> Result<Vec<TreeFile>> {
        let mut found = Vec::new();
        let mut open = vec![tree.top()];
        while let Some(folder) = open.pop() {
            if !self.folder_has_any(tree, &folder, wanted)? {
                continue;
            }
            for entry in tree.entries(&folder)? {
                match entry {
                    LaidNode::File(file) if (wanted.fits)(&file.path) => found.push(file),
                    LaidNode::File(_) => {}
                    LaidNode::Folder(below) => open.push(below),
                }
            }
        }
        found.sort_by(|a, b| a.path.as_bytes().cmp(b.path.as_bytes()));
        Ok(found)
    }

    fn folder_has_any(
        &self,
        tree: &LaidTree<'_, '_>,
        folder: &LaidFolder,
        wanted: &Wanted<'_>,
    ) -> Result<bool> {
        if !(wanted.may_hold)(folder.path.as_ref()) {
            return Ok(false);
        }
        let key = tree
            .tree_of(folder)
            .map(|id| key_of(&["any", id.as_str(), &wanted.id.to_string()], place_of(folder)));
        let remembered = key.as_ref().and_then(|key| self.memo.recall(key));
        if let Some([known @ (0 | 1)]) = remembered.as_deref() {
            return Ok(*known == 1);
        }
        let entries = tree.entries(folder)?;
        let fits = |entry: &LaidNode| matches!(entry, LaidNode::File(file) if (wanted.fits)(&file.path));
        let mut found = entries.iter().any(fits);
        for entry in &entries {
            if let LaidNode::Folder(below) = entry
                && !found
            {
                found = self.folder_has_any(tree, below, wanted)?;
            }
        }
        if let Some(key) = key {
            self.memo.remember(key, vec![u8::from(found)]);
        }
        Ok(found)
    }
}

fn name_of(folder: &LaidFolder) -> &[u8] {
    folder.path.as_ref().map(RepoPath::file_name).unwrap_or_default()
}

fn place_of(folder: &LaidFolder) -> &[u8] {
    folder.path.as_ref().map(RepoPath::as_bytes).unwrap_or_default()
}

/// The name of something remembered. The words hold no NUL, so that what comes last may.
fn key_of(words: &[&str], last: &[u8]) -> Sha256 {
    let mut text = [&[VERSION], words].concat().join("\0").into_bytes();
    text.push(0);
    text.extend(last);
    Sha256::of(&text)
}

#[cfg(test)]
mod tests;
