//! `submit --patch`: a patch that someone brings, applied to the base and nowhere else.
//!
//! Two judges, and both must agree: git applies it to a private index, and our own code works out the same files from the hunks exactly where
//! they say they are. Git alone would accept an offset; our own code alone would not know all that git refuses. A mailbox is taken apart by
//! git, its mails are applied one after the other, and a file that comes twice in one mail is applied step by step.

mod groups;
mod mail;

use super::capture::Capture;
use super::limits::{Limits, refusal, violations};
use super::objects::{Objects, Quarantine};
use super::private_index::PrivateIndex;
use super::repository::Repository;
use super::tree;
use crate::domain::digest::{Mode, ObjectId};
use crate::domain::exact;
use crate::domain::patch_text::{self, Binary, Moved, Name, Section};
use crate::domain::repo_path::{RepoPath, display};
use crate::error::{Code, Failure, Result};
use std::collections::{BTreeMap, BTreeSet};

/// What the patch makes of the base. A patch that is not usable is `patch.invalid`, one for other blobs than the base has is
/// `version.conflict`; paths and links that are not allowed are `scope.violation`, all of them in one failure.
pub fn take(
    repository: &Repository,
    quarantine: &Quarantine,
    base_tree: &ObjectId,
    patch: &[u8],
    limits: &Limits,
) -> Result<Capture> {
    let index = PrivateIndex::isolated(repository, quarantine, base_tree)?;
    let mut at = base_tree.clone();
    let mut links = BTreeSet::new();
    for text in mail::patches(&index, patch)? {
        let sections = patch_text::parse(&text)?;
        let objects = repository.objects(Some(quarantine))?;
        let strip = has_prefixes(&objects, &at, &sections)?;
        let steps: Vec<Step> = sections.into_iter().map(|s| Step::new(s, strip)).collect::<Result<_>>()?;
        refuse_paths(&steps, limits, &mut links)?;
        let mut rest = steps.as_slice();
        while !rest.is_empty() {
            let objects = repository.objects(Some(quarantine))?;
            let count = groups::first(&objects, &at, rest)?;
            at = apply_group(&index, &objects, &at, &text, &rest[..count], strip)?;
            rest = &rest[count..];
        }
    }
    let objects = repository.objects(Some(quarantine))?;
    if let Some(failure) = Failure::first_of(violations(&objects, base_tree, &at, limits)?) {
        return Err(failure);
    }
    let changes = tree::changes(&objects, base_tree, &at)?;
    let mut total = 0u64;
    for change in &changes {
        let Some(new) = &change.new else { continue };
        total += objects.blob(&new.git_blob)?.len() as u64;
        if let Some(failure) = limits.too_much(&change.path, total) {
            return Err(failure);
        }
    }
    Ok(Capture { tree: at, changes })
}

/// A section with its paths checked.
struct Step {
    section: Section,
    old: Option<RepoPath>,
    new: Option<RepoPath>,
}

impl Step {
    fn new(section: Section, strip: bool) -> Result<Self> {
        let path = |name: &Option<Name>| -> Result<Option<RepoPath>> {
            let Some(name) = name else { return Ok(None) };
            let bytes = name.path(strip).ok_or_else(|| {
                Failure::new(
                    Code::PatchInvalid,
                    format!("the patch mixes names with and without a prefix: {}", display(&name.bytes)),
                )
                .subject(display(&name.bytes))
            })?;
            RepoPath::new(bytes).map(Some)
        };
        let (old, new) = (path(&section.old)?, path(&section.new)?);
        let step = Self { section, old, new };
        step.check_modes()?;
        if step.section.moved.is_none() && step.old.is_some() && step.new.is_some() && step.old != step.new {
            // `diff -u x.orig x`: the file that changes is the one that the second line names.
            return Ok(Self { old: step.new.clone(), ..step });
        }
        Ok(step)
    }

    fn name(&self) -> String {
        self.new.as_ref().or(self.old.as_ref()).map_or_else(String::new, ToString::to_string)
    }

    fn invalid(&self, why: &str) -> Failure {
        let name = self.name();
        Failure::new(Code::PatchInvalid, format!("the patch of {name} is not usable: {why}"))
            .subject(name)
            .detail("patchLine", self.section.line)
            .remedy(
                "Make the patch anew against the task's base and submit that one; see where the task stands:",
                ["git", "tender", "status"],
            )
    }

    fn check_modes(&self) -> Result<()> {
        let (old, new) = (self.section.old_mode.as_deref(), self.section.new_mode.as_deref());
        for mode in [old, new].into_iter().flatten() {
            if mode == "160000" {
                return Err(refusal(
                    &self.name(),
                    "a submodule cannot be added, changed or removed by a task",
                ));
            }
            if !matches!(mode, "100644" | "100755" | "120000") {
                return Err(self
                    .invalid(&format!("{mode} is not a mode that a file in git has"))
                    .expected(["100644", "100755", "120000"], mode));
            }
        }
        if let (Some(old), Some(new)) = (old, new)
            && (old == "120000") != (new == "120000")
        {
            return Err(self.invalid("a file becomes a link only by a deletion and a creation"));
        }
        if self.section.binary == Binary::Missing {
            return Err(self.invalid("its binary content is not in the patch").remedy(
                "Make the patch with its binary content.",
                ["git", "diff", "--binary", "--full-index"],
            ));
        }
        let full = |id: &str| id.len() == 40 || id.len() == 64;
        let ids = self.section.index.as_ref();
        if self.section.binary == Binary::Data && !ids.is_some_and(|(old, new)| full(old) && full(new)) {
            return Err(self
                .invalid("binary content needs the whole blob ids")
                .remedy("Make the patch with whole ids.", ["git", "diff", "--binary", "--full-index"]));
        }
        Ok(())
    }
}

/// Whether the names begin with a component like `a/` that is not part of the path.
fn has_prefixes(objects: &Objects, at: &ObjectId, sections: &[Section]) -> Result<bool> {
    let (mut with, mut without, mut asked) = (0usize, 0usize, 0usize);
    let mut looks = true;
    for section in sections {
        for (name, letters) in [(&section.old, b"aciow"), (&section.new, b"bwico")] {
            let Some(name) = name.as_ref().filter(|n| n.prefixed) else { continue };
            looks &= matches!(name.bytes.as_slice(), [letter, b'/', _, ..] if letters.contains(letter));
        }
        // Where both sides are told, the second names the file; `diff -u x.orig x` has no first one in the tree.
        let Some(name) = section.old.as_ref().and(section.new.as_ref().or(section.old.as_ref())) else {
            continue;
        };
        if !name.prefixed || section.moved.is_some() {
            continue;
        }
        asked += 1;
        let there = |path: Option<&[u8]>| match path.map(RepoPath::new) {
            Some(Ok(path)) => tree::entry(objects, at, &path).map(|e| e.is_some()),
            _ => Ok(false),
        };
        with += usize::from(there(name.path(true))?);
        without += usize::from(there(name.path(false))?);
    }
    Ok(if with == without || asked == 0 { looks } else { with > without })
}

/// Paths outside the scope, and files that would be written through a link of the same patch.
fn refuse_paths(steps: &[Step], limits: &Limits, links: &mut BTreeSet<RepoPath>) -> Result<()> {
    let mut paths: BTreeSet<&RepoPath> = BTreeSet::new();
    for step in steps {
        paths.extend(step.old.iter().chain(&step.new));
        if step.section.new_mode.as_deref() == Some("120000") {
            links.extend(step.new.clone());
        }
    }
    let mut refused: Vec<Failure> = paths.iter().filter_map(|path| limits.outside(path)).collect();
    for step in steps {
        let Some(path) = &step.new else { continue };
        if let Some(link) = path.ancestors().into_iter().find(|above| links.contains(above)) {
            let rule = format!("it lies beneath the link {link}, which the same patch makes");
            refused.push(refusal(&path.to_string(), &rule));
        }
    }
    Failure::first_of(refused).map_or(Ok(()), Err)
}

type State = Option<(Mode, ObjectId)>;

/// What a group of sections must give, worked out without git. `None` for content that only git can work out.
struct Expected {
    mode: Mode,
    content: Option<Vec<u8>>,
}

fn apply_group(
    index: &PrivateIndex,
    objects: &Objects,
    at: &ObjectId,
    text: &[u8],
    steps: &[Step],
    strip: bool,
) -> Result<ObjectId> {
    let mut expected: BTreeMap<RepoPath, Option<Expected>> = BTreeMap::new();
    for step in steps {
        let old = preimage(objects, at, step)?;
        if let Some(path) = step.old.as_ref().filter(|_| step.section.moved != Some(Moved::Copied)) {
            // The new name of another file may be this old one; then that decides.
            expected.entry(path.clone()).or_insert(None);
        }
        if let Some(path) = &step.new {
            let told = postimage(objects, step, &old)?;
            expected.insert(path.clone(), Some(told));
        }
    }
    let ranges: Vec<u8> = steps.iter().flat_map(|s| text[s.section.range.clone()].iter().copied()).collect();
    let apply =
        ["apply", "--cached", "--binary", "--whitespace=nowarn", if strip { "-p1" } else { "-p0" }, "-"];
    let output = index.git().args(apply).stdin(ranges).run()?;
    if !output.success() {
        return Err(refused_by_git(steps, &output.stderr));
    }
    let tree = index.write_tree()?;
    compare(objects, index, at, &tree, steps, &expected)?;
    Ok(tree)
}

fn refused_by_git(steps: &[Step], said: &str) -> Failure {
    let line = said.lines().find_map(|l| l.strip_prefix("error: ")).unwrap_or(said.trim());
    let step = steps.iter().find(|s| line.contains(&s.name())).or(steps.first());
    let failure = match step {
        Some(step) => step.invalid(line),
        None => Failure::new(Code::PatchInvalid, format!("git does not apply the patch: {line}")),
    };
    failure.detail("git", said.trim())
}

/// What the section starts from, shown to be what its index line names.
fn preimage(objects: &Objects, at: &ObjectId, step: &Step) -> Result<State> {
    let Some(path) = &step.old else {
        let there = step.new.as_ref().map(|path| tree::entry(objects, at, path)).transpose()?.flatten();
        return match there {
            Some((_, id)) => Err(conflict(step, None, Some(&id))),
            None => Ok(None),
        };
    };
    let state = tree::entry(objects, at, path)?;
    let named = step.section.index.as_ref().map(|(old, _)| old.as_str());
    let creates = step.section.hunks.iter().all(|h| h.old_count == 0) && !step.section.git;
    match (&state, named) {
        (None, None) if creates && step.section.hunks.len() == 1 => Ok(None),
        (None, _) => Err(conflict(step, named, None)),
        (Some((_, id)), Some(named)) if !id.as_str().starts_with(named) => {
            Err(conflict(step, Some(named), Some(id)))
        }
        _ => Ok(state),
    }
}

fn conflict(step: &Step, named: Option<&str>, actual: Option<&ObjectId>) -> Failure {
    let path = step.old.as_ref().or(step.new.as_ref()).map_or_else(String::new, ToString::to_string);
    let message = match (named, actual) {
        (_, None) => format!("the patch changes {path}, which the base does not have"),
        (None, Some(_)) => format!("the patch adds {path}, which the base has already"),
        (Some(named), Some(actual)) => {
            format!(
                "the patch was made for another version of {path}: it names the blob {named}, the base has {actual}"
            )
        }
    };
    Failure::new(Code::VersionConflict, message)
        .subject(path)
        .expected(named, actual.map(ObjectId::as_str))
        .detail("patchLine", step.section.line)
        .remedy(
            "Make the patch anew against the task's base and submit that one; see where the task stands:",
            ["git", "tender", "status"],
        )
}

fn postimage(objects: &Objects, step: &Step, old: &State) -> Result<Expected> {
    let told = step.section.new_mode.as_deref().map(str::parse::<Mode>).transpose()?;
    let kept = old.as_ref().map(|(mode, _)| *mode);
    if let (Some(kept), Some(old_mode)) = (kept, step.section.old_mode.as_deref())
        && kept.as_str() != old_mode
    {
        return Err(conflict_of_modes(step, old_mode, kept));
    }
    let mode = told.or(kept).unwrap_or(Mode::File);
    let content = match step.section.binary {
        Binary::Data => None,
        _ => {
            let bytes = old.as_ref().map_or(Ok(Vec::new()), |(_, id)| objects.blob(id))?;
            Some(exact::apply(&step.name(), &step.section, &bytes)?)
        }
    };
    Ok(Expected { mode, content })
}

fn conflict_of_modes(step: &Step, named: &str, actual: Mode) -> Failure {
    let name = step.name();
    Failure::new(
        Code::VersionConflict,
        format!("the patch was made for another mode of {name}: it names {named}, the base has {actual}"),
    )
    .subject(name)
    .expected(named, actual.as_str())
}

/// Git's result and ours must be the same files with the same bytes, and the ids that the patch promises.
fn compare(
    objects: &Objects,
    index: &PrivateIndex,
    before: &ObjectId,
    after: &ObjectId,
    steps: &[Step],
    expected: &BTreeMap<RepoPath, Option<Expected>>,
) -> Result<()> {
    let fresh = index.objects()?;
    let differs = |path: &RepoPath, why: &str| {
        Failure::new(Code::PatchInvalid, format!("the patch is ambiguous: {why} at {path}"))
            .subject(path.to_string())
    };
    for change in tree::difference(&fresh, before, after)? {
        if !expected.contains_key(&change.path) {
            return Err(differs(&change.path, "git changes a file that no section names"));
        }
    }
    for (path, wanted) in expected {
        let have = tree::entry(&fresh, after, path)?;
        let same = match (wanted, &have) {
            (None, None) => true,
            (Some(wanted), Some((mode, id))) => {
                let format = objects.format();
                let content = wanted.content.as_ref().map(|bytes| format.blob_id(bytes)).transpose()?;
                wanted.mode == *mode && content.is_none_or(|wanted| wanted == *id)
            }
            _ => false,
        };
        if !same {
            return Err(differs(path, "git reads it differently than its hunks say"));
        }
    }
    for step in steps {
        let (Some(path), Some((_, promised))) = (&step.new, &step.section.index) else { continue };
        let have = tree::entry(&fresh, after, path)?.map(|(_, id)| id);
        if have.as_ref().is_some_and(|id| !id.as_str().starts_with(promised.as_str())) {
            return Err(step
                .invalid("it does not give the blob that its index line promises; parts of it may be missing")
                .expected(promised, have.as_ref().map(ObjectId::as_str)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
