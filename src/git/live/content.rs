//! Does a live file hold the preimage or the postimage? And which bytes go where the postimage belongs? Both
//! by git's own conversions.

use super::{FormerFiles, LiveBytes, LiveTerms, endings};
use crate::domain::change::patch::Change;
use crate::domain::delivery::receipt::Attributes;
use crate::domain::delivery::{Item, LiveKind, Plan, Step};
use crate::domain::value::digest::{FileState, Mode, ObjectId, Sha256};
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Code, Failure, Result};
use crate::git::Objects;
use crate::git::convert::{COMPLAINT, Conversions, Drivers, write_blobs};
use crate::git::merge::{self, Labels};
use std::collections::HashMap;

/// What a live file's content was found to be.
#[derive(Debug, Clone)]
pub(super) struct Match {
    pub git_blob: ObjectId,
    pub is_before: bool,
    pub is_after: bool,
}

/// The new object of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    File {
        bytes: Vec<u8>,
        permissions: BodyPermissions,
        /// What an earlier file here had beside its bytes, if it comes back.
        attributes: Option<Attributes>,
    },
    Link {
        target: Vec<u8>,
    },
}

/// The permissions of a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyPermissions {
    /// As any new file's: by umask and the directory's default ACL.
    New {
        executable: bool,
    },
    Exactly(u32),
}

impl LiveTerms<'_> {
    fn conversions(&self) -> Conversions<'_> {
        Conversions { repository: self.repository, quarantine: self.quarantine }
    }

    fn selected_drivers(&self) -> Drivers<'_> {
        Drivers::SelectedBy(self.drivers)
    }

    /// True where both trees give every path the same attributes, because the patch touches no attribute
    /// file.
    fn same_attributes(&self) -> bool {
        self.before_tree == self.after_tree
            || !self.changes.iter().any(|c| c.path.file_name() == b".gitattributes")
    }

    /// The ids that git would store. A file that cannot be converted is nobody's image; it keeps its plain
    /// id. Where it is not known whether it can, because git was killed or nothing can be read, that is a
    /// failure.
    fn clean_ids(&self, tree: &ObjectId, items: &[(RepoPath, Vec<u8>)]) -> Result<Vec<ObjectId>> {
        let convert = |items: &[(RepoPath, Vec<u8>)]| {
            self.conversions().clean_blobs(tree, &self.selected_drivers(), items, false)
        };
        match convert(items) {
            Err(e) if e.has_detail(&COMPLAINT) => {}
            other => return other,
        }
        let one = |item: &(RepoPath, Vec<u8>)| match convert(std::slice::from_ref(item)) {
            Ok(mut ids) => ids.pop().ok_or_else(|| Failure::internal("a conversion gave nothing")),
            Err(e) if e.has_detail(&COMPLAINT) => self.repository.format().blob_id(&item.1),
            Err(e) => Err(e),
        };
        items.iter().map(one).collect()
    }

    fn smudge_bytes(&self, tree: &ObjectId, items: &[(RepoPath, ObjectId)]) -> Result<Vec<Vec<u8>>> {
        let mut out = vec![Vec::new(); items.len()];
        self.conversions().smudge_blobs(tree, &self.selected_drivers(), items, &mut |at, bytes| {
            out[at] = bytes;
            Ok(())
        })?;
        Ok(out)
    }
}

fn regular_only(state: Option<&FileState>) -> Option<&FileState> {
    state.filter(|s| s.mode.is_regular())
}

/// Compares the content of every live file. `live` is in the order of the changes.
pub(super) fn match_contents(
    terms: &LiveTerms<'_>,
    live: &[Option<LiveBytes>],
) -> Result<Vec<Option<Match>>> {
    let mut found: Vec<Option<Match>> = Vec::with_capacity(live.len());
    for (change, live) in terms.changes.iter().zip(live) {
        found.push(live.as_ref().map(|live| by_bytes(terms, change, live)).transpose()?);
    }
    let same = terms.same_attributes();
    by_cleaning(terms, live, &mut found, terms.before_tree, [true, same])?;
    if !same {
        by_cleaning(terms, live, &mut found, terms.after_tree, [false, true])?;
    }
    by_smudging(terms, live, &mut found, terms.before_tree, |c| c.old.as_ref(), |m| &mut m.is_before)?;
    by_smudging(terms, live, &mut found, terms.after_tree, |c| c.new.as_ref(), |m| &mut m.is_after)?;
    Ok(found)
}

/// Byte for byte, without any conversion; or what an earlier delivery wrote or found.
fn by_bytes(terms: &LiveTerms<'_>, change: &Change, live: &LiveBytes) -> Result<Match> {
    let id = terms.repository.format().blob_id(&live.bytes)?;
    let is = |side: Option<&FileState>| side.is_some_and(|s| s.git_blob == id && s.sha256 == live.sha256);
    let former = |pick: fn(&FormerFiles, &RepoPath) -> Option<Sha256>| {
        terms.former.is_some_and(|f| pick(f, &change.path) == Some(live.sha256))
    };
    let is_before = is(regular_only(change.old.as_ref())) || former(FormerFiles::digest_written);
    let is_after = is(regular_only(change.new.as_ref())) || former(FormerFiles::digest_found);
    let side = if is_before { change.old.as_ref() } else { change.new.as_ref().filter(|_| is_after) };
    Ok(Match { git_blob: side.map_or(id, |s| s.git_blob.clone()), is_before, is_after })
}

/// The places that are still neither.
fn open_questions(found: &[Option<Match>]) -> Vec<usize> {
    let open = |m: &Option<Match>| m.as_ref().is_some_and(|m| !m.is_before && !m.is_after);
    (0..found.len()).filter(|at| open(&found[*at])).collect()
}

fn by_cleaning(
    terms: &LiveTerms<'_>,
    live: &[Option<LiveBytes>],
    found: &mut [Option<Match>],
    tree: &ObjectId,
    [ask_before, ask_after]: [bool; 2],
) -> Result<()> {
    let open = open_questions(found);
    let items: Vec<(RepoPath, Vec<u8>)> = open
        .iter()
        .filter_map(|at| live[*at].as_ref().map(|l| (terms.changes[*at].path.clone(), l.bytes.clone())))
        .collect();
    if items.is_empty() {
        return Ok(());
    }
    for (at, id) in open.into_iter().zip(terms.clean_ids(tree, &items)?) {
        let change = &terms.changes[at];
        let is = |side: Option<&FileState>| regular_only(side).is_some_and(|s| s.git_blob == id);
        if let Some(m) = &mut found[at] {
            m.is_before = ask_before && is(change.old.as_ref());
            m.is_after = ask_after && is(change.new.as_ref());
            if ask_before || m.is_after {
                m.git_blob = id;
            }
        }
    }
    Ok(())
}

/// A checkout that git would not store as the same blob (carriage returns committed under `text`, say) is
/// still git's own checkout.
fn by_smudging(
    terms: &LiveTerms<'_>,
    live: &[Option<LiveBytes>],
    found: &mut [Option<Match>],
    tree: &ObjectId,
    side: impl Fn(&Change) -> Option<&FileState>,
    answer: impl Fn(&mut Match) -> &mut bool,
) -> Result<()> {
    let mut open = open_questions(found);
    open.retain(|at| regular_only(side(&terms.changes[*at])).is_some());
    let items: Vec<(RepoPath, ObjectId)> = open
        .iter()
        .filter_map(|at| {
            let change = &terms.changes[*at];
            side(change).map(|s| (change.path.clone(), s.git_blob.clone()))
        })
        .collect();
    if items.is_empty() {
        return Ok(());
    }
    for (at, bytes) in open.into_iter().zip(terms.smudge_bytes(tree, &items)?) {
        if let (Some(m), Some(live), Some(state)) = (&mut found[at], &live[at], side(&terms.changes[at]))
            && live.bytes == bytes
        {
            *answer(m) = true;
            m.git_blob = state.git_blob.clone();
        }
    }
    Ok(())
}

/// Would a three-way merge of the file be clean? On what git stores of it, as a rebase merges; a file with
/// NUL bytes is never merged.
pub(super) fn would_merge_cleanly(terms: &LiveTerms<'_>, change: &Change, live: &LiveBytes) -> Result<bool> {
    let (Some(old), Some(new), Some(quarantine)) =
        (regular_only(change.old.as_ref()), regular_only(change.new.as_ref()), terms.quarantine)
    else {
        return Ok(false);
    };
    if terms.conversions().unmergeable_paths(terms.before_tree, std::slice::from_ref(&change.path))?
        != [false]
    {
        return Ok(false);
    }
    let file = [(change.path.clone(), live.bytes.clone())];
    let stored = match store_files(terms, terms.before_tree, &file, &[]) {
        Ok((stored, _)) => stored,
        Err(e) if e.has_detail(&COMPLAINT) => return Ok(false),
        Err(e) => return Err(e),
    };
    let objects = terms.repository.object_reader(terms.quarantine)?;
    let [base, ours, theirs] = [
        objects.read_blob(&old.git_blob)?,
        objects.read_blob(&new.git_blob)?,
        objects.read_blob(&stored[0])?,
    ];
    let folder = quarantine.objects.parent().unwrap_or(&quarantine.objects);
    let labels = Labels { theirs: "", ours: "" };
    let merged = merge::merge_lines(terms.repository, folder, [&base, &ours, &theirs], labels)?;
    Ok(merged.is_some_and(|merged| merged.clean))
}

/// Stores what lies at these paths as git would, in the quarantine. Links are stored as they are.
pub(super) fn store_files(
    terms: &LiveTerms<'_>,
    attributes: &ObjectId,
    files: &[(RepoPath, Vec<u8>)],
    links: &[Vec<u8>],
) -> Result<(Vec<ObjectId>, Vec<ObjectId>)> {
    let conversions = terms.conversions();
    let files = conversions.clean_blobs(attributes, &terms.selected_drivers(), files, true)?;
    Ok((files, write_blobs(&conversions, links)?))
}

/// The new objects of a plan's items, in their order; `None` where an item has none to write.
pub(super) fn make_bodies(
    terms: &LiveTerms<'_>,
    plan: &Plan,
    live: &HashMap<RepoPath, LiveBytes>,
) -> Result<Vec<Option<Body>>> {
    let objects = terms.repository.object_reader(terms.quarantine)?;
    let mut writer = ContentWriter { terms, objects, checked_out: HashMap::new(), carried: Vec::new() };
    writer.check_out(plan)?;
    let mut bodies = Vec::with_capacity(plan.items().len());
    for (at, item) in plan.items().iter().enumerate() {
        bodies.push(writer.make_body(at, item, live)?);
    }
    writer.confirm_carried(plan, &mut bodies)?;
    Ok(bodies)
}

struct ContentWriter<'a> {
    terms: &'a LiveTerms<'a>,
    objects: Objects,
    /// By item: what a checkout writes for the preimage and the postimage.
    checked_out: HashMap<usize, (Option<Vec<u8>>, Vec<u8>)>,
    /// Items whose lines were carried over, and git's own bytes for them.
    carried: Vec<(usize, Vec<u8>)>,
}

impl ContentWriter<'_> {
    /// Git's bytes for every file that is written from git's objects.
    fn check_out(&mut self, plan: &Plan) -> Result<()> {
        let (mut old, mut new) = (Vec::new(), Vec::new());
        for (at, item) in plan.items().iter().enumerate() {
            let path = &item.change.path;
            let former = self.terms.former.is_some_and(|f| f.bytes_at(path).is_some());
            let Some(state) = regular_only(item.change.new.as_ref()) else { continue };
            if former || !matches!(item.step, Step::Create | Step::Replace) {
                continue;
            }
            new.push((at, (path.clone(), state.git_blob.clone())));
            if let (LiveKind::File(_), Some(state)) = (&item.kind, regular_only(item.change.old.as_ref())) {
                old.push((at, (path.clone(), state.git_blob.clone())));
            }
        }
        let wanted = |list: &[(usize, (RepoPath, ObjectId))]| -> Vec<_> {
            list.iter().map(|(_, item)| item.clone()).collect()
        };
        let (old_bytes, new_bytes) = if self.terms.same_attributes() {
            let both = [wanted(&old), wanted(&new)].concat();
            let mut both = self.terms.smudge_bytes(self.terms.after_tree, &both)?;
            let new_bytes = both.split_off(old.len());
            (both, new_bytes)
        } else {
            let old_bytes = self.terms.smudge_bytes(self.terms.before_tree, &wanted(&old))?;
            (old_bytes, self.terms.smudge_bytes(self.terms.after_tree, &wanted(&new))?)
        };
        let mut old: HashMap<usize, Vec<u8>> = old.into_iter().map(|(at, _)| at).zip(old_bytes).collect();
        for ((at, _), bytes) in new.into_iter().zip(new_bytes) {
            self.checked_out.insert(at, (old.remove(&at), bytes));
        }
        Ok(())
    }

    fn make_body(
        &mut self,
        at: usize,
        item: &Item,
        live: &HashMap<RepoPath, LiveBytes>,
    ) -> Result<Option<Body>> {
        let (Some(state), Step::Create | Step::Replace) = (&item.change.new, item.step) else {
            return Ok(None);
        };
        let blob = self.objects.read_blob(&state.git_blob)?;
        check_blob(&item.change.path, state, &blob)?;
        if state.mode == Mode::Symlink {
            return Ok(Some(Body::Link { target: blob }));
        }
        let permissions = self.body_permissions(item, state.mode == Mode::Executable);
        if let Some(bytes) = self.terms.former.and_then(|f| f.bytes_at(&item.change.path)) {
            let attributes = self.terms.former.and_then(|f| f.attributes_at(&item.change.path)).cloned();
            return Ok(Some(Body::File { bytes: bytes.to_vec(), permissions, attributes }));
        }
        let (before, after) = self
            .checked_out
            .remove(&at)
            .ok_or_else(|| Failure::internal(format!("{} was not converted", item.change.path)))?;
        let bytes = match (before, live.get(&item.change.path), &item.change.old) {
            (Some(before), Some(live), Some(old)) if live.bytes != before => {
                let kept = if old.git_blob == state.git_blob {
                    Some(live.bytes.clone())
                } else {
                    endings::carry_over(&self.objects.read_blob(&old.git_blob)?, &blob, &live.bytes)
                };
                match kept {
                    Some(kept) => {
                        self.carried.push((at, after));
                        kept
                    }
                    None => after,
                }
            }
            _ => after,
        };
        Ok(Some(Body::File { bytes, permissions, attributes: None }))
    }

    /// What the user had, but for the executable bits where the change is about them.
    fn body_permissions(&self, item: &Item, executable: bool) -> BodyPermissions {
        match &item.kind {
            LiveKind::File(file) if file.executable == executable => {
                BodyPermissions::Exactly(file.permissions)
            }
            LiveKind::File(file) if !self.terms.settings.file_mode => {
                BodyPermissions::Exactly(file.permissions)
            }
            LiveKind::File(file) if executable => {
                BodyPermissions::Exactly(file.permissions | ((file.permissions & 0o444) >> 2))
            }
            LiveKind::File(file) => BodyPermissions::Exactly(file.permissions & !0o111),
            _ => match self.terms.former.and_then(|f| f.permissions_at(&item.change.path)) {
                Some(permissions) => BodyPermissions::Exactly(permissions),
                None => BodyPermissions::New { executable },
            },
        }
    }

    /// Carried-over lines are used only where git stores them as exactly the new blob.
    fn confirm_carried(&mut self, plan: &Plan, bodies: &mut [Option<Body>]) -> Result<()> {
        let carried = std::mem::take(&mut self.carried);
        let mut items = Vec::with_capacity(carried.len());
        for (at, _) in &carried {
            if let Some(Body::File { bytes, .. }) = &bodies[*at] {
                items.push((plan.items()[*at].change.path.clone(), bytes.clone()));
            }
        }
        if items.is_empty() {
            return Ok(());
        }
        let ids = self.terms.clean_ids(self.terms.after_tree, &items)?;
        for ((at, plain), id) in carried.into_iter().zip(ids) {
            let wanted = plan.items()[at].change.new.as_ref().map(|s| &s.git_blob);
            if let (Some(Body::File { bytes, .. }), true) = (&mut bodies[at], wanted != Some(&id)) {
                *bytes = plain;
            }
        }
        Ok(())
    }
}

/// The git id may be SHA-1: the bytes have to be those that the manifest binds.
fn check_blob(path: &RepoPath, state: &FileState, blob: &[u8]) -> Result<()> {
    let actual = Sha256::of(blob);
    if actual == state.sha256 {
        return Ok(());
    }
    let message = format!("the blob {} for {path} is not the one that was verified", state.git_blob);
    Err(Failure::new(Code::StoreCorrupt, message).subject(path.to_string()).expected(state.sha256, actual))
}
