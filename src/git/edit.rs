//! A worker's edit of its own worktree, byte for byte: no conversion, no filter, no index. What was computed
//! from bytes that were looked at is written by the same careful writer that delivers into a user's tree
//! ([`super::apply`]): all of it or nothing, and only where those bytes still lie.
//!
//! Everything is found from an open descriptor of the top, component by component, no link followed. What is
//! no regular file of exactly one name, or lies behind a link or in a repository of its own, is out of scope:
//! writing to it would reach something else. The cost is that of the touched paths, whatever else the
//! worktree holds.

use super::beneath::{Barred, TreeTop};
use super::live::places::{self, LivePlaces};
use super::live::{Body, BodyPermissions, LiveBytes, Materials};
use super::repository::Repository;
use crate::domain::change::patch::{Change, find_clashes, manifest_sha256};
use crate::domain::delivery::conflict::EDITED_MEANWHILE;
use crate::domain::delivery::{
    Clearance, ClearedPlan, Conflict, IndexRule, IndexState, LiveFact, LiveFile, LiveKind, ParentProblem,
    Reason, plan_delivery,
};
use crate::domain::value::digest::{FileState, Mode, Sha256};
use crate::domain::value::repo_path::{RULE, RepoPath};
use crate::error::{Code, Failure, Result, Retry};
use rustix::fs::FileType;
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// The largest file that is read, in bytes.
pub const LARGEST: u64 = 64 << 20;

#[derive(Debug)]
pub struct Worktree<'a> {
    repository: &'a Repository,
    top: TreeTop,
}

/// What lies at a path.
#[derive(Debug, Clone)]
pub struct SeenFile {
    /// The file, if one is there.
    pub file: Option<PresentFile>,
    /// A directory above it is a file.
    parent: Option<ParentProblem>,
}

/// A regular file of one name.
#[derive(Debug, Clone)]
pub struct PresentFile {
    pub bytes: Vec<u8>,
    /// Its mode, and the ids of these bytes, without any conversion.
    pub state: FileState,
    pub permissions: u32,
    owner_kept: bool,
}

/// What becomes of a path.
#[derive(Debug)]
pub struct Edit {
    pub path: RepoPath,
    /// What lies there, as it was looked at.
    pub seen: SeenFile,
    pub new: Option<NewFile>,
}

/// A file that will be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFile {
    pub bytes: Vec<u8>,
    pub permissions: BodyPermissions,
}

impl NewFile {
    fn file_mode(&self) -> Mode {
        match self.permissions {
            BodyPermissions::New { executable } => mode_of(executable),
            BodyPermissions::Exactly(bits) => mode_of(bits & 0o100 != 0),
        }
    }
}

fn mode_of(executable: bool) -> Mode {
    if executable { Mode::Executable } else { Mode::File }
}

impl PresentFile {
    /// Its permissions, with the executable bits as told, if anything is told.
    pub fn with_executable(&self, executable: Option<bool>) -> BodyPermissions {
        let bits = self.permissions;
        BodyPermissions::Exactly(match executable {
            Some(true) if bits & 0o100 == 0 => bits | ((bits & 0o444) >> 2),
            Some(false) => bits & !0o111,
            _ => bits,
        })
    }
}

/// An edit that is ready to be written. Nothing was touched yet.
#[derive(Debug)]
pub struct PreparedEdit {
    /// Every path that changes, sorted.
    pub changes: Vec<Change>,
    pub cleared: ClearedPlan,
    pub materials: Materials,
}

impl<'a> Worktree<'a> {
    /// Opens a worktree. Links on the way to its top are the user's own business.
    pub fn open_worktree(repository: &'a Repository, path: &Path) -> Result<Self> {
        let top = TreeTop::open_top(path).map_err(|e| Failure::io("open", path, &e))?;
        Ok(Self { repository, top })
    }

    /// What lies at a path now. Refused (`scope.violation`) where that is anything but a regular file that is
    /// the worktree's alone, or nothing.
    pub fn look_at(&self, path: &RepoPath) -> Result<SeenFile> {
        let folder = match self.top.open_folder(path.parent().as_ref()) {
            Ok(folder) => folder,
            Err(Barred::Missing) => return Ok(SeenFile { file: None, parent: None }),
            Err(Barred::NotFolder(at)) => {
                return Ok(SeenFile { file: None, parent: Some(ParentProblem::File(at)) });
            }
            Err(Barred::Link(at)) => return Err(out_of_scope(path, &format!("{at} is a symbolic link"))),
            Err(Barred::Error(e)) => {
                return Err(places::live_operation_failed("open the directory of", path, &e));
            }
        };
        let name = path.file_name();
        match folder.look_up(name).map_err(|e| places::live_operation_failed("look at", path, &e))? {
            Some(entry) if entry.kind == FileType::RegularFile => {}
            Some(entry) => return Err(not_a_file(path, entry.kind)),
            None => return self.check_absent(path),
        }
        let size = folder.open_file(name).and_then(|file| file.metadata()).map_or(0, |about| about.len());
        if size > LARGEST {
            let message = format!("{path} has {size} bytes; the largest file that is read has {LARGEST}");
            return Err(Failure::new(Code::PatchInvalid, message)
                .subject(path.to_string())
                .expected(LARGEST, size));
        }
        let none = HashSet::new();
        let seen = LivePlaces::new(&self.top, &none).look_at(path)?;
        if seen.nested_repository {
            return Err(out_of_scope(path, "another repository lies in between"));
        }
        match seen.file {
            Some((about, _)) if about.links > 1 => {
                let why = format!("the file has {} names (hard links)", about.links);
                Err(out_of_scope(path, &why))
            }
            Some((about, LiveBytes { bytes, sha256 })) => {
                let git_blob = self.repository.format().blob_id(&bytes)?;
                let state = FileState { mode: mode_of(about.permissions & 0o100 != 0), git_blob, sha256 };
                let (permissions, owner_kept) = (about.permissions, seen.owner_kept);
                Ok(SeenFile {
                    file: Some(PresentFile { bytes, state, permissions, owner_kept }),
                    parent: None,
                })
            }
            // Replaced just now by something else.
            None => Err(moved_meanwhile(path)),
        }
    }

    /// Nothing lies at the path; the directories above it have to be the worktree's own all the same.
    fn check_absent(&self, path: &RepoPath) -> Result<SeenFile> {
        let none = HashSet::new();
        match LivePlaces::new(&self.top, &none).look_at(path)? {
            seen if seen.nested_repository => Err(out_of_scope(path, "another repository lies in between")),
            seen if seen.file.is_some() || seen.parent.is_some() => Err(moved_meanwhile(path)),
            _ => Ok(SeenFile { file: None, parent: None }),
        }
    }

    /// Makes an edit ready. Refused where a name or an owner is in the way.
    pub fn prepare_edit(self, edits: Vec<Edit>) -> Result<PreparedEdit> {
        let mut changes = Vec::with_capacity(edits.len());
        for edit in &edits {
            changes.push(self.change_of(edit)?);
        }
        let facts = self.live_facts(&edits, &changes)?;
        let plan = plan_delivery(&changes, &facts, IndexRule::Stays, &[])
            .map_err(|conflicts| in_the_way(&conflicts))?;
        let (mut live, mut new) = (HashMap::new(), HashMap::new());
        for edit in edits {
            if let Some(present) = edit.seen.file {
                let (bytes, sha256) = (present.bytes, present.state.sha256);
                live.insert(edit.path.clone(), LiveBytes { bytes, sha256 });
            }
            if let Some(NewFile { bytes, permissions }) = edit.new {
                new.insert(edit.path, Body::File { bytes, permissions, attributes: None });
            }
        }
        let bodies = plan.items().iter().map(|item| new.remove(&item.change.path)).collect();
        let cleared = plan.clear_with(&Clearance::for_a_worktree(manifest_sha256(&changes)))?;
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(PreparedEdit { changes, cleared, materials: Materials { top: self.top, live, bodies } })
    }

    fn change_of(&self, edit: &Edit) -> Result<Change> {
        let new = match &edit.new {
            None => None,
            Some(new) => Some(FileState {
                mode: new.file_mode(),
                git_blob: self.repository.format().blob_id(&new.bytes)?,
                sha256: Sha256::of(&new.bytes),
            }),
        };
        Ok(Change::new(edit.path.clone(), edit.seen.file.as_ref().map(|file| file.state.clone()), new))
    }

    fn live_facts(&self, edits: &[Edit], changes: &[Change]) -> Result<Vec<LiveFact>> {
        let deleted: HashSet<&RepoPath> =
            changes.iter().filter(|c| c.new.is_none()).map(|c| &c.path).collect();
        let mut places = LivePlaces::new(&self.top, &deleted);
        let mut facts = Vec::with_capacity(edits.len());
        for ((edit, change), clash) in edits.iter().zip(changes).zip(find_clashes(changes)) {
            let kind = match &edit.seen.file {
                None => LiveKind::Missing,
                Some(present) => LiveKind::File(LiveFile {
                    executable: present.state.mode == Mode::Executable,
                    bit_counts: true,
                    permissions: present.permissions,
                    links: 1,
                    sha256: present.state.sha256,
                    git_blob: present.state.git_blob.clone(),
                    is_before: true,
                    is_after: change.new.as_ref().is_some_and(|new| new.sha256 == present.state.sha256),
                    owner_kept: present.owner_kept,
                }),
            };
            facts.push(LiveFact {
                kind,
                parent: edit.seen.parent.clone(),
                nested_repository: false,
                collision: match clash {
                    None if change.old.is_none() => places.find_collision(&edit.path)?,
                    clash => clash,
                },
                index: IndexState::Absent,
                outside_sparse: false,
                mergeable: false,
            });
        }
        Ok(facts)
    }

    fn is_folder(&self, path: &RepoPath) -> bool {
        self.top.resolve_folder(Some(path)).is_ok()
    }

    /// After the write: every path read and hashed again. Refused (`version.conflict`) where one is not what
    /// was written.
    pub fn confirm_written(&self, changes: &[Change]) -> Result<()> {
        let differs = |change: &Change| -> Option<Failure> {
            let found = match self.look_at(&change.path) {
                Ok(seen) => seen.file.map(|file| file.state),
                // Other paths of the patch lie beneath it now.
                Err(_) if change.new.is_none() && self.is_folder(&change.path) => None,
                Err(failure) => return Some(failure),
            };
            if found == change.new {
                return None;
            }
            let message = format!("{} was written, and is not what was written any more", change.path);
            let failure = Failure::new(Code::VersionConflict, message).subject(change.path.to_string());
            Some(failure.expected(&change.new, &found))
        };
        Failure::first_of(changes.iter().filter_map(differs)).map_or(Ok(()), Err)
    }
}

/// What the writer met was not what was looked at before, and everything was taken back: to the worker that
/// is a conflict of versions. Other failures stay.
pub fn as_version_conflict(failure: Failure) -> Failure {
    if failure.code() != Code::DeliveryConflict {
        return failure;
    }
    let subject = failure.subject_text().unwrap_or_default().to_owned();
    let what = if failure.has_detail(&EDITED_MEANWHILE) {
        "what this patch had changed was taken back, but for what was edited meanwhile"
    } else {
        "nothing was changed"
    };
    let message = format!("{what}: {subject} was changed by somebody else just now");
    let conflict = Failure::new(Code::VersionConflict, message).subject(subject).details_of(&failure);
    reread_advice(conflict.also(failure.others().to_vec()))
}

/// The next step after a conflict.
fn reread_advice(failure: Failure) -> Failure {
    failure.retry(Retry::Reread).advice("Read the file again, then decide anew.")
}

/// The refusal of a path whose bytes are not the worktree's alone.
fn out_of_scope(path: &RepoPath, why: &str) -> Failure {
    Failure::new(Code::ScopeViolation, format!("{path} is refused: {why}"))
        .subject(path.to_string())
        .with_detail(&RULE, why)
}

fn not_a_file(path: &RepoPath, kind: FileType) -> Failure {
    out_of_scope(
        path,
        match kind {
            FileType::Symlink => "it is a symbolic link",
            FileType::Directory => "it is a directory",
            _ => "it is no regular file",
        },
    )
}

fn moved_meanwhile(path: &RepoPath) -> Failure {
    let message = format!("{path} was replaced by something else while it was looked at");
    reread_advice(Failure::new(Code::VersionConflict, message).subject(path.to_string()))
}

/// Everything else was looked at before, so that only names and owners are left to be in the way.
fn in_the_way(conflicts: &[Conflict]) -> Failure {
    let one = |conflict: &Conflict| {
        let path = &conflict.path;
        let (code, why) = match conflict.reason {
            Reason::Collision => (
                Code::PatchInvalid,
                "another name differs from it in upper and lower case or Unicode form only",
            ),
            Reason::ParentIsFile => (Code::PatchInvalid, "a directory on the way is a file"),
            Reason::Owner => {
                (Code::ScopeViolation, "the file is another user's, and could not be given back to them")
            }
            _ => (Code::VersionConflict, "it is not what it was just now"),
        };
        Failure::new(code, format!("{path} cannot be written: {why}"))
            .subject(path.to_string())
            .advice("Nothing was changed. Look at what is there, or choose another name.")
    };
    Failure::first_of(conflicts.iter().map(one))
        .unwrap_or_else(|| Failure::internal("a refusal without a conflict"))
}

#[cfg(test)]
mod tests;
