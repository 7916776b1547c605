//! `apply_patch`: a change of files in the worktree, written down as a patch ([`super::patch_formats`]). All
//! of it or nothing.
//!
//! Here everything is decided, and nothing is written: the patch is read, every path of it is held to the
//! scope and looked at without following a link, each file is compared with the version that the caller
//! means, and the new bytes are computed. What comes out is an edit that [`crate::git::edit`] can write.
//!
//! Which version is meant: the one named in `expected`; else the one that this worker last read or wrote;
//! else whatever is there.

use super::patch_formats::{self, FilePatch, PatchKind};
use super::place::refuse_too_long;
use crate::domain::value::digest::{FileState, ObjectFormat, ObjectId};
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Code, Failure, Result, Retry};
use crate::git::Repository;
use crate::git::edit::{Edit, NewFile, PreparedEdit, PresentFile, SeenFile, Worktree};
use crate::git::live::BodyPermissions;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;

/// The arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplyPatchArguments {
    /// The change: a unified diff, or Codex's `*** Begin Patch` form, or search/replace blocks. One form
    /// only. Every hunk must match exactly one place of the file as it is now; all files are changed or none.
    pub patch: String,
    /// The version that each file must have, by path: the git blob id that `read_file` gave, of 7 hex digits
    /// at least; zeros where nothing may be there. Without it, the version that was last read or written
    /// here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub expected: BTreeMap<String, String>,
}

/// What a call works on.
#[derive(Clone, Copy)]
pub struct PatchGround<'a> {
    /// The repository; says how blobs are named.
    pub repository: &'a Repository,
    /// The top of the worktree.
    pub worktree: &'a Path,
    /// Refuses paths that may not be read.
    pub may_read: &'a dyn Fn(&RepoPath) -> Result<()>,
    /// Refuses paths that may not be written.
    pub may_write: &'a dyn Fn(&RepoPath) -> Result<()>,
    /// The blob that this worker last read or wrote at a path.
    pub known: &'a dyn Fn(&RepoPath) -> Option<ObjectId>,
}

impl std::fmt::Debug for PatchGround<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ground").field("worktree", &self.worktree).finish_non_exhaustive()
    }
}

/// What a call did, by path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ApplyPatchAnswer {
    /// Each path with its state before and after; a rename is a deletion and an addition.
    #[schemars(with = "Vec<serde_json::Map<String, serde_json::Value>>")]
    pub changes: Vec<crate::domain::change::patch::Change>,
}

/// Decides what a call comes to; nothing is written. Of each kind of refusal (scope, version, patch) all are
/// listed, in that order.
pub fn prepare_edit(arguments: &ApplyPatchArguments, ground: PatchGround<'_>) -> Result<PreparedEdit> {
    let RequestedPatch { files, expected, paths } = read_request(arguments, ground)?;
    let worktree = Worktree::open_worktree(ground.repository, ground.worktree)?;
    let mut seen = BTreeMap::new();
    let (mut failures, mut conflicts) = (Vec::new(), Vec::new());
    let new = new_paths(&files);
    for path in &paths {
        match worktree.look_at(path) {
            Ok(found) => {
                let known =
                    || (ground.known)(path).filter(|_| !new.contains(path)).map(ExpectedVersion::Blob);
                let wanted = expected.get(path).cloned().or_else(known);
                conflicts.extend(wanted.and_then(|wanted| wanted.conflict_with(path, found.file.as_ref())));
                seen.insert(path.clone(), found);
            }
            Err(failure) => failures.push(failure),
        }
    }
    all_or(failures)?;
    all_or(conflicts)?;
    let edits = all_edits(&files, &mut seen, ground.repository.format())?;
    all_or(within_each_other(&edits))?;
    worktree.prepare_edit(edits)
}

/// What is to be new takes the place of no version that was seen before: it only must not be there.
fn new_paths(files: &[FilePatch]) -> HashSet<&RepoPath> {
    let is_add = |file: &&FilePatch| matches!(file.kind, PatchKind::Add { .. });
    let mut new: HashSet<&RepoPath> = files.iter().filter(is_add).map(|file| &file.path).collect();
    new.extend(files.iter().filter_map(FilePatch::move_to));
    for file in files.iter().filter(|file| !is_add(file)) {
        new.remove(&file.path);
    }
    new
}

/// What all files of the patch come to. Once enough was found that does not fit, the rest is not looked at.
fn all_edits(
    files: &[FilePatch],
    seen: &mut BTreeMap<RepoPath, SeenFile>,
    format: ObjectFormat,
) -> Result<Vec<Edit>> {
    let (mut edits, mut failures, mut not_looked_at) = (Vec::new(), Vec::new(), 0);
    for (number, file) in files.iter().enumerate() {
        if failures.iter().map(Failure::number).sum::<usize>() >= patch_formats::FAILURES {
            not_looked_at = files.len() - number;
            break;
        }
        match edits_of(file, seen, format) {
            Ok(more) => edits.extend(more),
            Err(failure) => failures.push(failure),
        }
    }
    match Failure::first_of(failures) {
        None => Ok(edits),
        Some(failure) if not_looked_at == 0 => Err(failure),
        Some(failure) => Err(failure.detail("filesNotLookedAt", not_looked_at)),
    }
}

/// Where one new file would have to be a directory for another one.
fn within_each_other(edits: &[Edit]) -> Vec<Failure> {
    let new: BTreeMap<&RepoPath, ()> =
        edits.iter().filter(|edit| edit.new.is_some()).map(|edit| (&edit.path, ())).collect();
    let above = |path: &&RepoPath| {
        let file = path.ancestors().into_iter().find(|above| new.contains_key(above))?;
        Some(refuse_at_path(format!("{file} cannot be a file, since {path} is to lie in it"), path))
    };
    new.keys().filter_map(above).collect()
}

/// Refuses a call that is no patch, or that goes where the task may not, by the paths and by what lies there
/// now.
pub fn authorize_patch(arguments: &ApplyPatchArguments, ground: PatchGround<'_>) -> Result<()> {
    let asked = read_request(arguments, ground)?;
    let worktree = Worktree::open_worktree(ground.repository, ground.worktree)?;
    let looked = asked.paths.iter().filter_map(|path| worktree.look_at(path).err());
    all_or(looked.filter(|failure| failure.code() == Code::ScopeViolation))
}

/// What a call asks for.
struct RequestedPatch {
    files: Vec<FilePatch>,
    expected: BTreeMap<RepoPath, ExpectedVersion>,
    /// Every path that it changes or names, each once.
    paths: Vec<RepoPath>,
}

/// Reads a call, and holds its paths to the scopes.
fn read_request(arguments: &ApplyPatchArguments, ground: PatchGround<'_>) -> Result<RequestedPatch> {
    let files = patch_formats::parse_patch(&arguments.patch)?;
    let expected = parse_expected_versions(&arguments.expected, ground.repository.format())?;
    let touched: Vec<&RepoPath> =
        files.iter().flat_map(|file| [Some(&file.path), file.move_to()]).flatten().collect();
    let known: HashSet<&RepoPath> = touched.iter().copied().collect();
    let only_expected: Vec<&RepoPath> = expected.keys().filter(|path| !known.contains(path)).collect();
    let refused = touched.iter().filter_map(|path| (ground.may_write)(path).err());
    let unreadable = touched.iter().chain(&only_expected).filter_map(|path| (ground.may_read)(path).err());
    all_or(refused.chain(unreadable))?;
    let long = touched.iter().filter_map(|path| refuse_too_long(path, Code::PatchInvalid).err());
    all_or(long)?;
    let paths = touched.into_iter().chain(only_expected).cloned().collect();
    Ok(RequestedPatch { files, expected, paths })
}

fn all_or(failures: impl IntoIterator<Item = Failure>) -> Result<()> {
    Failure::first_of(failures).map_or(Ok(()), Err)
}

/// Which version of a file a call means.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ExpectedVersion {
    /// As last read or written.
    Blob(ObjectId),
    /// As the caller spells it: the beginning of the blob's id, or the whole sha256 of the bytes.
    Named(String),
    /// Nothing may be there.
    Nothing,
}

impl ExpectedVersion {
    fn is_version_of(&self, found: Option<&FileState>) -> bool {
        match (self, found) {
            (Self::Nothing, found) => found.is_none(),
            (_, None) => false,
            (Self::Blob(id), Some(state)) => state.git_blob == *id,
            (Self::Named(id), Some(state)) => {
                state.git_blob.as_str().starts_with(id.as_str()) || state.sha256.to_string() == *id
            }
        }
    }

    /// The conflict, if what is there is not what is meant.
    fn conflict_with(&self, path: &RepoPath, found: Option<&PresentFile>) -> Option<Failure> {
        let state = found.map(|file| &file.state);
        if self.is_version_of(state) {
            return None;
        }
        let (since, expected) = match self {
            Self::Blob(id) => ("was changed since it was last read or written here", Some(id.to_string())),
            Self::Named(id) => ("is not the version that the call names", Some(id.clone())),
            Self::Nothing => ("is there, and the call says that nothing is", None),
        };
        let failure = Failure::new(Code::VersionConflict, format!("nothing was changed: {path} {since}"))
            .subject(path.to_string())
            .expected(expected, state.map(|state| &state.git_blob))
            .retry(Retry::Reread)
            .advice("Read the file again, then send a patch against what is there.");
        Some(failure)
    }
}

/// The versions that a call names.
fn parse_expected_versions(
    named: &BTreeMap<String, String>,
    format: ObjectFormat,
) -> Result<BTreeMap<RepoPath, ExpectedVersion>> {
    let one = |(path, id): (&String, &String)| -> Result<(RepoPath, ExpectedVersion)> {
        let checked = patch_formats::parse_written_path(path)?;
        let id = id.trim().to_ascii_lowercase();
        let is_hex = id.len() >= 7 && id.bytes().all(|b| b.is_ascii_hexdigit());
        if !is_hex || id.len() > format.hex_len() && id.len() != 64 {
            let message = format!(
                "expected[{path:?}] is {:?}; it has to be a git blob id of 7 to {} hex digits, as `read_file` gives it",
                patch_formats::quote_line(&id),
                format.hex_len()
            );
            return Err(Failure::new(Code::ArgumentsInvalid, message).subject("expected"));
        }
        let nothing = id.bytes().all(|b| b == b'0');
        Ok((checked, if nothing { ExpectedVersion::Nothing } else { ExpectedVersion::Named(id) }))
    };
    let mut all = BTreeMap::new();
    for one in named.iter().map(one) {
        let (path, expected) = one?;
        if all.get(&path).is_some_and(|other| *other != expected) {
            let message = format!("`expected` names two versions of {path}");
            return Err(Failure::new(Code::ArgumentsInvalid, message).subject("expected"));
        }
        all.insert(path, expected);
    }
    Ok(all)
}

/// What one file's part of the patch comes to; a rename is two paths.
fn edits_of(
    file: &FilePatch,
    seen: &mut BTreeMap<RepoPath, SeenFile>,
    format: ObjectFormat,
) -> Result<Vec<Edit>> {
    let mut take = |path: &RepoPath| {
        seen.remove(path).ok_or_else(|| Failure::internal(format!("{path} was not looked at")))
    };
    let before = take(&file.path)?;
    let bytes = file.apply_to_file(before.file.as_ref().map(|present| present.bytes.as_slice()), format)?;
    let permissions = match &before.file {
        Some(present) => present.with_executable(file.executable_bit()),
        None => BodyPermissions::New { executable: file.executable_bit() == Some(true) },
    };
    let new = bytes.map(|bytes| NewFile { bytes, permissions });
    if let Some(to) = file.move_to() {
        let there = take(to)?;
        if there.file.is_some() {
            let message = format!("{to} is there already; a renamed file overwrites nothing");
            return Err(refuse_at_path(message, to));
        }
        let from = Edit { path: file.path.clone(), seen: before, new: None };
        return Ok(vec![from, Edit { path: to.clone(), seen: there, new }]);
    }
    let same = match (&before.file, &new) {
        (Some(old), Some(new)) => {
            old.bytes == new.bytes && new.permissions == BodyPermissions::Exactly(old.permissions)
        }
        _ => false,
    };
    if same && matches!(file.kind, PatchKind::Update { .. }) {
        return Err(refuse_at_path(format!("{} would not change", file.path), &file.path));
    }
    Ok(vec![Edit { path: file.path.clone(), seen: before, new }])
}

fn refuse_at_path(message: String, path: &RepoPath) -> Failure {
    Failure::new(Code::PatchInvalid, message)
        .subject(path.to_string())
        .retry(Retry::Reread)
        .advice("Nothing was changed. Look at what is there, then send a corrected patch.")
}

#[cfg(test)]
mod tests;
