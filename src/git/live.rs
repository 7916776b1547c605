//! Facts of the touched paths in the live tree, and the bytes that a delivery will write there.
//!
//! Only the paths of the patch are looked at, and each by its content: the stat cache, `assume-unchanged` and
//! `skip-worktree` prove nothing. Everything is found from an open descriptor of the top, without following a
//! link. What counts as equal is git's own answer, by the attributes of the tree that the change was made
//! for; what is written follows the attributes of the tree that it leads to. Nothing here changes anything.

mod content;
mod endings;
mod index;
mod operations;
pub(in crate::git) mod places;

pub use content::{Body, BodyPermissions};
pub(super) use index::{read_index_states, state_of};

use crate::domain::change::patch::{Change, find_clashes};
use crate::domain::delivery::receipt::{Attributes, Kept, Outcome, Raw, Receipt};
use crate::domain::delivery::{IndexState, LiveFact, LiveFile, LiveKind, Plan};
use crate::domain::value::digest::{FileState, Mode, ObjectId, Sha256, TreeObject};
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Code, Failure, Result};
use crate::git::beneath::TreeTop;
use crate::git::private_index::PrivateIndexEntry;
use crate::git::{Quarantine, Repository};
use index::Index;
use places::LivePlaces;
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// What a comparison rests on.
#[derive(Debug)]
pub struct LiveTerms<'a> {
    pub repository: &'a Repository,
    /// Where blobs of the candidate lie.
    pub quarantine: Option<&'a Quarantine>,
    /// The top of the live tree.
    pub top: &'a Path,
    pub changes: &'a [Change],
    /// The tree whose attributes count for what is there: the base (for `undo`: the candidate).
    pub before_tree: &'a ObjectId,
    /// The tree whose attributes count for what is written: the candidate (for `undo`: the base).
    pub after_tree: &'a ObjectId,
    /// The tree whose attributes decide which filter drivers may run: always the base.
    pub drivers: &'a ObjectId,
    /// What the delivery that is to be undone found and wrote.
    pub former: Option<&'a FormerFiles>,
    /// What the configuration says of the live tree.
    pub settings: Settings,
}

/// The settings that say how git sees the live tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// `core.fileMode`: the executable bit on disk counts.
    pub file_mode: bool,
    /// `core.symlinks`: links are links, not files that hold their target.
    pub symlinks: bool,
    /// `core.sparseCheckout`
    pub sparse: bool,
}

impl Settings {
    pub fn read_settings(repository: &Repository) -> Result<Self> {
        let config = repository.configuration()?;
        Ok(Self {
            file_mode: config.bool_value("core.fileMode").unwrap_or(true),
            symlinks: config.bool_value("core.symlinks").unwrap_or(true),
            sparse: config.bool_value("core.sparseCheckout").unwrap_or(false),
        })
    }
}

/// What a delivery found and wrote, for the one that undoes it.
#[derive(Debug, Default)]
pub struct FormerFiles(HashMap<RepoPath, FormerPath>);

#[derive(Debug)]
struct FormerPath {
    written: Option<Raw>,
    found: Option<Raw>,
    bytes: Option<Vec<u8>>,
    attributes: Option<Attributes>,
}

impl FormerFiles {
    /// From a receipt. `get` reads a stored blob.
    pub fn from_receipt(receipt: &Receipt, get: &dyn Fn(&Sha256) -> Result<Vec<u8>>) -> Result<Self> {
        let mut paths = HashMap::new();
        let mut last: Option<(Sha256, Vec<u8>)> = None;
        for path in receipt.paths.iter().filter(|p| p.outcome != Outcome::Already) {
            let mut bytes = None;
            if let (Some(kept), Some(Raw::File { .. })) = (&path.kept, &path.before) {
                if last.as_ref().is_none_or(|(blob, _)| *blob != kept.blob) {
                    last = Some((kept.blob, get(&kept.blob)?));
                }
                bytes = last.as_ref().and_then(|(_, all)| slice_preimage(all, kept));
            }
            let attributes = path.kept.as_ref().and_then(|kept| kept.attributes.clone());
            let former =
                FormerPath { written: path.after.clone(), found: path.before.clone(), bytes, attributes };
            paths.insert(path.change.path.clone(), former);
        }
        Ok(Self(paths))
    }

    fn digest_written(&self, path: &RepoPath) -> Option<Sha256> {
        sha256_of(self.0.get(path)?.written.as_ref()?)
    }

    fn digest_found(&self, path: &RepoPath) -> Option<Sha256> {
        sha256_of(self.0.get(path)?.found.as_ref()?)
    }

    fn bytes_at(&self, path: &RepoPath) -> Option<&[u8]> {
        self.0.get(path)?.bytes.as_deref()
    }

    fn attributes_at(&self, path: &RepoPath) -> Option<&Attributes> {
        self.0.get(path)?.attributes.as_ref()
    }

    fn permissions_at(&self, path: &RepoPath) -> Option<u32> {
        match self.0.get(path)?.found.as_ref()? {
            Raw::File { permissions, .. } => *permissions,
            _ => None,
        }
    }
}

/// The bytes of one preimage in a stored blob.
pub fn slice_preimage(all: &[u8], kept: &Kept) -> Option<Vec<u8>> {
    let start = usize::try_from(kept.offset).ok()?;
    let end = start.checked_add(usize::try_from(kept.length).ok()?)?;
    all.get(start..end).map(<[u8]>::to_vec)
}

fn sha256_of(raw: &Raw) -> Option<Sha256> {
    match raw {
        Raw::File { sha256, .. } => Some(*sha256),
        _ => None,
    }
}

/// A regular file or a link of the live tree, read once.
#[derive(Debug, Clone)]
pub struct LiveBytes {
    /// The bytes on disk; for a link its target.
    pub bytes: Vec<u8>,
    pub sha256: Sha256,
}

/// What was seen at the touched paths.
#[derive(Debug)]
pub struct LiveSurvey {
    /// In the order of the changes.
    pub facts: Vec<LiveFact>,
    live: HashMap<RepoPath, LiveBytes>,
    top: TreeTop,
}

/// A plan's bytes: everything that the executor needs beside the plan itself.
#[derive(Debug)]
pub struct Materials {
    /// The top of the live tree, open since the survey.
    pub(super) top: TreeTop,
    /// What lies at the touched paths.
    pub(super) live: HashMap<RepoPath, LiveBytes>,
    /// The new object of each item of the plan, in its order.
    pub(super) bodies: Vec<Option<Body>>,
}

/// Looks at every touched path. Fails where an unfinished merge or the like touches them, and where a file
/// cannot be read.
pub fn survey_paths(terms: &LiveTerms<'_>) -> Result<LiveSurvey> {
    refuse_link_files(terms)?;
    let top = TreeTop::open_top(terms.top).map_err(|e| Failure::io("open", terms.top, &e))?;
    let index = Index::read_entries(terms.repository, terms.top, terms.changes)?;
    operations::refuse_unfinished(terms.repository, terms.changes, &index)?;
    let deleted: HashSet<&RepoPath> =
        terms.changes.iter().filter(|c| c.new.is_none()).map(|c| &c.path).collect();
    let mut places = LivePlaces::new(&top, &deleted);
    let seen = terms.changes.iter().map(|c| places.look_at(&c.path)).collect::<Result<Vec<_>>>()?;
    let mut collisions = find_partners(terms.changes, &index, &mut places, &deleted)?;
    let files: Vec<Option<LiveBytes>> = seen.iter().map(|s| s.file.as_ref().map(|f| f.1.clone())).collect();
    let matches = content::match_contents(terms, &files)?;
    let outside = outside_sparse(terms, &index)?;
    let mut facts = Vec::with_capacity(seen.len());
    let mut live = HashMap::new();
    for (at, (change, seen)) in terms.changes.iter().zip(seen).enumerate() {
        let entry = index.entry_at(&change.path);
        let found = matches[at].as_ref();
        let mut mergeable = false;
        if let (Some(m), Some((_, bytes))) = (found, &seen.file)
            && !m.is_before
            && !m.is_after
        {
            mergeable = content::would_merge_cleanly(terms, change, bytes)?;
        }
        let kind = match (seen.file, found) {
            (Some((about, bytes)), Some(found)) => {
                let bit_counts = terms.settings.file_mode;
                let executable = match bit_counts {
                    true => about.permissions & 0o100 != 0,
                    false => executable_by_content(change, &entry.state, found),
                };
                let sha256 = bytes.sha256;
                live.insert(change.path.clone(), bytes);
                LiveKind::File(LiveFile {
                    executable,
                    bit_counts,
                    permissions: about.permissions,
                    links: about.links,
                    sha256,
                    git_blob: found.git_blob.clone(),
                    is_before: found.is_before,
                    is_after: found.is_after,
                    owner_kept: seen.owner_kept,
                })
            }
            _ => other_kind(terms, &change.path, seen.other, &mut live)?,
        };
        facts.push(LiveFact {
            kind,
            parent: seen.parent,
            nested_repository: seen.nested_repository,
            collision: collisions[at].take(),
            outside_sparse: entry.skip_worktree || outside.contains(&change.path),
            index: entry.state,
            mergeable,
        });
    }
    drop(places);
    Ok(LiveSurvey { facts, live, top })
}

/// What each new path collides with: in the change itself, in the index, or in the tree.
fn find_partners(
    changes: &[Change],
    index: &Index,
    places: &mut LivePlaces<'_>,
    deleted: &HashSet<&RepoPath>,
) -> Result<Vec<Option<RepoPath>>> {
    let mut partners = find_clashes(changes);
    for (change, partner) in changes.iter().zip(&mut partners) {
        if partner.is_none() && change.old.is_none() {
            *partner = index.find_collision(&change.path, deleted);
        }
        if partner.is_none() && change.old.is_none() {
            *partner = places.find_collision(&change.path)?;
        }
    }
    Ok(partners)
}

/// Makes the bytes of a plan's new objects.
pub fn prepare_materials(terms: &LiveTerms<'_>, survey: LiveSurvey, plan: &Plan) -> Result<Materials> {
    let bodies = content::make_bodies(terms, plan, &survey.live)?;
    Ok(Materials { top: survey.top, live: survey.live, bodies })
}

/// Stores what the survey found at these paths in the quarantine, as git would with the attributes of a tree;
/// `None` where nothing lies that git could store.
pub fn store_found(
    terms: &LiveTerms<'_>,
    survey: &LiveSurvey,
    attributes: &ObjectId,
    wanted: &HashSet<&RepoPath>,
) -> Result<Vec<PrivateIndexEntry>> {
    let (mut found, mut files, mut links) = (Vec::new(), Vec::new(), Vec::new());
    for (change, fact) in terms.changes.iter().zip(&survey.facts).filter(|(c, _)| wanted.contains(&c.path)) {
        let bytes = survey.live.get(&change.path).map(|live| live.bytes.clone());
        match (fact.tree_object(), bytes) {
            (Some(side), Some(bytes)) if side.mode == Mode::Symlink => {
                links.push((change.path.clone(), side.mode, bytes))
            }
            (Some(side), Some(bytes)) => files.push((change.path.clone(), side.mode, bytes)),
            _ => found.push((change.path.clone(), None)),
        }
    }
    let texts: Vec<(RepoPath, Vec<u8>)> =
        files.iter().map(|(path, _, bytes)| (path.clone(), bytes.clone())).collect();
    let targets: Vec<Vec<u8>> = links.iter().map(|(.., bytes)| bytes.clone()).collect();
    let (file_ids, link_ids) = content::store_files(terms, attributes, &texts, &targets)?;
    let stored = files.into_iter().zip(file_ids).chain(links.into_iter().zip(link_ids));
    found.extend(stored.map(|((path, mode, _), id)| (path, Some(TreeObject { mode, id }))));
    Ok(found)
}

fn other_kind(
    terms: &LiveTerms<'_>,
    path: &RepoPath,
    other: places::OtherKind,
    live: &mut HashMap<RepoPath, LiveBytes>,
) -> Result<LiveKind> {
    Ok(match other {
        places::OtherKind::Missing => LiveKind::Missing,
        places::OtherKind::Directory { strangers } => LiveKind::Directory { strangers },
        places::OtherKind::Link(bytes) => {
            let git_blob = terms.repository.format().blob_id(&bytes)?;
            let sha256 = Sha256::of(&bytes);
            live.insert(path.clone(), LiveBytes { bytes, sha256 });
            LiveKind::Link { git_blob, sha256 }
        }
        places::OtherKind::Other => LiveKind::Other,
    })
}

/// The executable bit where none on disk counts: that of the side whose content is there, else the index's.
fn executable_by_content(change: &Change, index: &IndexState, found: &content::Match) -> bool {
    let mode = |side: &Option<FileState>| side.as_ref().map(|state| state.mode);
    let at_index = match index {
        IndexState::Entry { mode, .. } => Some(*mode),
        _ => None,
    };
    let side = match (found.is_after, found.is_before) {
        (true, _) => mode(&change.new),
        (_, true) => mode(&change.old),
        _ => at_index.or(mode(&change.old)).or(mode(&change.new)),
    };
    side == Some(Mode::Executable)
}

/// Paths that a sparse checkout leaves out.
fn outside_sparse(terms: &LiveTerms<'_>, index: &Index) -> Result<HashSet<RepoPath>> {
    if !terms.settings.sparse {
        return Ok(HashSet::new());
    }
    let absent = |path: &&RepoPath| index.entry_at(path).state == IndexState::Absent;
    let asked: Vec<&RepoPath> = terms.changes.iter().map(|c| &c.path).filter(absent).collect();
    if asked.is_empty() {
        return Ok(HashSet::new());
    }
    let stdin = asked.iter().flat_map(|p| [p.as_bytes(), b"\0"].concat()).collect();
    let git = terms.repository.git_call().work_tree(terms.top);
    let answer = git.args(["sparse-checkout", "check-rules", "-z"]).stdin(stdin).run_for_stdout()?;
    let inside: HashSet<&[u8]> = answer.split(|b| *b == 0).collect();
    Ok(asked.into_iter().filter(|p| !inside.contains(p.as_bytes())).cloned().collect())
}

/// Where links are checked out as files, a delivery could not tell the two apart afterwards.
fn refuse_link_files(terms: &LiveTerms<'_>) -> Result<()> {
    let is_link = |change: &&Change| {
        [&change.old, &change.new].into_iter().flatten().any(|state| state.mode == Mode::Symlink)
    };
    match terms.changes.iter().find(is_link) {
        Some(change) if !terms.settings.symlinks => {
            let message =
                format!("{} is a symbolic link, and core.symlinks is off in this repository", change.path);
            Err(Failure::new(Code::NotSupported, message).subject(change.path.to_string()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
