//! What a verifier sees: the candidate's files under its inputs, and its closure as it is in the base. The
//! same list is digested and shown, so that nothing can be shown that is not digested.

use super::load::{FOLDER, Verifier, Verifiers};
use super::manifest::{OUT, VerifierKind};
use crate::domain::change::patch::Change;
use crate::domain::proof::records::On;
use crate::domain::value::repo_path::RepoPath;
use crate::domain::value::scope::Scope;
use crate::error::Result;
use crate::git::tree::TreeFile;
use std::collections::{BTreeMap, HashSet};

/// The files of a tree with some changes on top, sorted by path bytes.
pub(super) fn with_changes<'a>(
    files: &[TreeFile],
    changes: impl Iterator<Item = &'a Change>,
) -> Vec<TreeFile> {
    let mut all: BTreeMap<&RepoPath, TreeFile> =
        files.iter().map(|file| (&file.path, file.clone())).collect();
    for change in changes {
        match &change.new {
            None => drop(all.remove(&change.path)),
            Some(new) => {
                let file = TreeFile { path: change.path.clone(), mode: new.mode, id: new.git_blob.clone() };
                all.insert(&change.path, file);
            }
        }
    }
    let mut all: Vec<TreeFile> = all.into_values().collect();
    drop_what_lies_beneath_files(&mut all);
    all
}

/// A change of a part only can leave a file where another one needs a directory; the file wins then.
fn drop_what_lies_beneath_files(files: &mut Vec<TreeFile>) {
    let paths: HashSet<RepoPath> = files.iter().map(|file| file.path.clone()).collect();
    files.retain(|file| !file.path.ancestors().iter().any(|above| paths.contains(above)));
}

/// True where a run sees the candidate's file of this path.
pub(super) fn is_input(path: &RepoPath, verifier: &Verifier) -> bool {
    verifier.manifest.sees(path) && !verifier.scope.touches_path(path)
}

/// The candidate's files that a verifier depends on. What its closure names is not among them: that is the
/// base's.
fn inputs<'a>(files: &'a [TreeFile], verifier: &Verifier) -> Vec<&'a TreeFile> {
    files.iter().filter(|file| is_input(&file.path, verifier)).collect()
}

/// What the slot holds: the inputs and the closure, sorted by path bytes. Nothing of the candidate lies in
/// the way of the closure.
pub(super) fn shown_files(files: &[TreeFile], verifier: &Verifier) -> Vec<TreeFile> {
    let closure: Vec<TreeFile> = verifier
        .closure
        .iter()
        .map(|f| TreeFile { path: f.file.path.clone(), mode: f.file.mode, id: f.file.git_blob.clone() })
        .collect();
    let own: HashSet<&RepoPath> = closure.iter().map(|file| &file.path).collect();
    let above: HashSet<RepoPath> = closure.iter().flat_map(|file| file.path.ancestors()).collect();
    let clear = |path: &RepoPath| !above.contains(path) && !path.ancestors().iter().any(|a| own.contains(a));
    let mut all: Vec<TreeFile> =
        inputs(files, verifier).into_iter().filter(|f| clear(&f.path)).cloned().collect();
    all.extend(closure);
    all.sort_by(|a, b| a.path.cmp(&b.path));
    all
}

/// A command that is a file of the tree, where the slot would not have that file. `is_there` says whether
/// the tree has it.
pub(super) fn missing_program(
    verifier: &Verifier,
    is_there: &dyn Fn(&RepoPath) -> Result<bool>,
) -> Result<Option<String>> {
    let manifest = &verifier.manifest;
    let programs =
        manifest.command.first().into_iter().chain(manifest.setup.iter().filter_map(|s| s.command.first()));
    for program in programs {
        if program.starts_with('/') || !program.contains('/') || program.contains(OUT) {
            continue;
        }
        let shown = match RepoPath::new(program.trim_start_matches("./").as_bytes()) {
            Ok(path) => manifest.scratch.matches_path(&path) || shows_file(verifier, &path, is_there)?,
            Err(_) => false,
        };
        if !shown {
            return Ok(Some(format!("{program} is neither among the verifier's inputs nor in its closure")));
        }
    }
    Ok(None)
}

/// True where the slot has a file at this path: one of the closure, or an input that does not lie in the way
/// of it.
fn shows_file(
    verifier: &Verifier,
    path: &RepoPath,
    is_there: &dyn Fn(&RepoPath) -> Result<bool>,
) -> Result<bool> {
    let mut own = verifier.closure.iter().map(|file| &file.file.path);
    let above = path.ancestors();
    if own.clone().any(|own| own == path) {
        return Ok(true);
    }
    let in_the_way = own.any(|own| own.ancestors().contains(path) || above.contains(own));
    Ok(!in_the_way && is_input(path, verifier) && is_there(path)?)
}

/// True where a change touches what judges: the manifest, the verifier's directory, its closure.
pub(super) fn judge_changed(changes: &[Change], verifier: &Verifier) -> bool {
    let own = format!("{FOLDER}/{}", verifier.manifest.id);
    changes.iter().any(|c| verifier.scope.touches_path(&c.path) || c.path.as_bytes() == own.as_bytes())
}

/// The changes that make up a repair's case.
pub(super) fn case_of<'a>(changes: &'a [Change], case: &'a Scope) -> impl Iterator<Item = &'a Change> {
    changes.iter().filter(|change| case.matches_path(&change.path))
}

/// The files of one of the base's trees.
pub(super) fn on_base(files: &[TreeFile], changes: &[Change], case: &Scope, on: On) -> Vec<TreeFile> {
    match on {
        On::BaseWithCase => with_changes(files, case_of(changes, case)),
        On::BaseWithoutCase => files.iter().filter(|file| !case.matches_path(&file.path)).cloned().collect(),
        On::Base | On::Candidate => files.to_vec(),
    }
}

/// A question about a path.
pub type PathTest<'a> = Box<dyn Fn(&RepoPath) -> bool + 'a>;

/// Says of a path whether a verifier that runs a command depends on it, as an input or as a part of the
/// judge; `None` for every other verifier.
pub fn depends_on<'a>(verifiers: &'a Verifiers, id: &str) -> Option<PathTest<'a>> {
    let verifier = verifiers.get(id).ok().flatten()?;
    if verifier.manifest.kind != VerifierKind::Command {
        return None;
    }
    Some(Box::new(move |path| verifier.manifest.sees(path) || verifier.scope.matches_path(path)))
}
