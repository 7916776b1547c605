//! From the text of a patch to checked paths: which prefix its names have, whether every path may be touched
//! at all, and how large its binary contents say that they are. Nothing is applied here.

use super::super::limits::{CandidateLimits, refuse_by_rule};
use super::mail::MailPart;
use super::view::{Found, TreeView};
use crate::domain::change::patch_text;
use crate::domain::change::patch_text::{BinaryHunk, BinaryKind, Body, Operation, Section, Strip};
use crate::domain::value::digest::Mode;
use crate::domain::value::repo_path::{RepoPath, display_bytes};
use crate::error::{Code, Failure, Result};
use std::collections::HashSet;

/// A section with its paths checked.
#[derive(Debug)]
pub(super) struct PatchItem<'t> {
    pub section: Section,
    /// The text that its ranges belong to.
    pub text: &'t [u8],
    /// The mail it came in.
    pub mail: Option<usize>,
    /// What git has to strip.
    pub strip: Strip,
    /// The path that it reads; for anything but a copy also the one that it changes or removes.
    pub old: Option<RepoPath>,
    /// The path that it writes.
    pub new: Option<RepoPath>,
    /// Where its header gives one: the mode before and after.
    pub modes: (Option<Mode>, Option<Mode>),
}

impl PatchItem<'_> {
    /// The path that it changes or removes.
    pub(super) fn consumed_path(&self) -> Option<&RepoPath> {
        self.old.as_ref().filter(|_| self.section.operation != Operation::Copy)
    }

    /// A failure about this section, with its mail.
    pub(super) fn section_failure(&self, code: Code, message: impl Into<String>) -> Failure {
        let failure = Failure::new(code, message)
            .subject(display_bytes(self.section.shown_path()))
            .detail("line", self.section.line);
        with_mail(failure, self.mail)
    }
}

/// Reads every part. The failure names all paths that may not be touched.
pub(super) fn read_items<'t>(
    view: &TreeView,
    parts: &'t [MailPart],
    limits: &CandidateLimits,
) -> Result<Vec<PatchItem<'t>>> {
    let mut made: HashSet<Vec<u8>> = HashSet::new();
    let (mut items, mut failures) = (Vec::new(), Vec::new());
    for part in parts {
        let (strip, sections) =
            read_sections(view, &part.text, &made).map_err(|f| with_mail(f, part.mail))?;
        made.extend(sections.iter().filter_map(|section| section.new.clone()));
        for section in sections {
            match item_from_section(section, part, strip) {
                Ok(item) => {
                    failures.extend(refuse_paths(&item, limits));
                    items.push(item);
                }
                Err(failure) => failures.push(with_mail(failure, part.mail)),
            }
        }
    }
    if let Some(failure) = Failure::first_of(failures) {
        return Err(failure);
    }
    announced_size(&items, limits)?;
    Ok(items)
}

fn with_mail(failure: Failure, mail: Option<usize>) -> Failure {
    match mail {
        Some(number) => failure.detail("mail", number),
        None => failure,
    }
}

fn item_from_section<'t>(section: Section, part: &'t MailPart, strip: Strip) -> Result<PatchItem<'t>> {
    let path = |name: &Option<Vec<u8>>| name.clone().map(RepoPath::new).transpose();
    let mode = |text: &Option<String>| match text.as_deref() {
        None => Ok(None),
        Some("100644") => Ok(Some(Mode::File)),
        Some("100755") => Ok(Some(Mode::Executable)),
        Some("120000") => Ok(Some(Mode::Symlink)),
        Some("160000") => Ok(Some(Mode::Gitlink)),
        Some(other) => Err(Failure::new(
            Code::PatchInvalid,
            format!("{} has the mode {other}, which git does not keep", display_bytes(section.shown_path())),
        )
        .subject(display_bytes(section.shown_path()))
        .expected(["100644", "100755", "120000"], other)),
    };
    let (old, new) = (path(&section.old)?, path(&section.new)?);
    let modes = (mode(&section.old_mode)?, mode(&section.new_mode)?);
    Ok(PatchItem { section, text: &part.text, mail: part.mail, strip, old, new, modes })
}

/// Paths out of scope and gitlinks.
fn refuse_paths(item: &PatchItem, limits: &CandidateLimits) -> Vec<Failure> {
    let mut paths: Vec<&RepoPath> = item.consumed_path().into_iter().chain(&item.new).collect();
    paths.dedup();
    if item.modes.0 == Some(Mode::Gitlink) || item.modes.1 == Some(Mode::Gitlink) {
        return paths.last().map(|path| with_mail(refuse_gitlink(path), item.mail)).into_iter().collect();
    }
    paths
        .into_iter()
        .filter_map(|path| limits.refuse_outside(path))
        .map(|f| with_mail(f, item.mail))
        .collect()
}

/// The path is, or becomes, a commit of another repository.
pub(super) fn refuse_gitlink(path: &RepoPath) -> Failure {
    refuse_by_rule(&path.to_string(), "a submodule cannot be added, changed or removed by a task")
}

/// Reads one text with the prefix that its names turn out to have: `a/` and `b/` or another pair of prefixes
/// are taken off, unless only the whole names exist. `made` are the paths that earlier parts create.
fn read_sections(view: &TreeView, text: &[u8], made: &HashSet<Vec<u8>>) -> Result<(Strip, Vec<Section>)> {
    let one = patch_text::parse_sections(text, Strip::One);
    if let Ok(sections) = &one
        && (sections.is_empty()
            || has_known_prefixes(sections) && all_sources_exist(view, sections, made)? != Some(false))
    {
        return Ok((Strip::One, one?));
    }
    let Ok(whole) = patch_text::parse_sections(text, Strip::None) else { return Ok((Strip::One, one?)) };
    let whole_exist = all_sources_exist(view, &whole, made)?;
    let take_whole = match &one {
        // Only new files: the whole name is the likely one where its folder is there.
        Ok(sections) if !has_known_prefixes(sections) => {
            whole_exist == Some(true) || whole_exist.is_none() && has_folders(view, &whole)?
        }
        Ok(_) => whole_exist == Some(true),
        Err(_) => whole_exist != Some(false),
    };
    if take_whole { Ok((Strip::None, whole)) } else { Ok((Strip::One, one?)) }
}

/// True where the prefixes are those that git or `diff -r` writes.
fn has_known_prefixes(sections: &[Section]) -> bool {
    const KNOWN: [&[u8]; 8] = [b"a", b"b", b"i", b"w", b"c", b"o", b"1", b"2"];
    sections.iter().all(|section| match &section.prefixes {
        Some((old, new)) => old != new || KNOWN.contains(&old.as_slice()) || old.is_empty(),
        None => section.is_git,
    })
}

/// Whether all files that the sections read are there; `None` where they read none.
fn all_sources_exist(view: &TreeView, sections: &[Section], made: &HashSet<Vec<u8>>) -> Result<Option<bool>> {
    let mut made_here: HashSet<&[u8]> = HashSet::new();
    let mut any = None;
    for section in sections {
        if let Some(old) = section.old.as_deref().filter(|_| !section.may_create()) {
            let there =
                made_here.contains(old) || made.contains(old) || view.find_path(old)? != Found::Nothing;
            any = Some(any.unwrap_or(true) && there);
        }
        made_here.extend(section.new.as_deref());
    }
    Ok(any)
}

fn has_folders(view: &TreeView, sections: &[Section]) -> Result<bool> {
    for path in sections.iter().filter_map(|section| section.new.as_deref()) {
        let Some(at) = path.iter().position(|b| *b == b'/') else { continue };
        if view.find_path(&path[..at])? != Found::Folder {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Adds up what the binary contents will be, by their headers alone, so that a small text cannot become a
/// huge content.
fn announced_size(items: &[PatchItem], limits: &CandidateLimits) -> Result<()> {
    let mut total = 0u64;
    for item in items {
        let Body::Binary(forward, _) = &item.section.body else { continue };
        let size = match forward.kind {
            BinaryKind::Literal => forward.size,
            BinaryKind::Delta => forward.size.max(delta_result(item, forward)?),
        };
        total = total.saturating_add(size);
        let path = item.new.as_ref().or(item.old.as_ref());
        if let Some(failure) = path.and_then(|path| limits.too_much(path, total)) {
            return Err(with_mail(failure, item.mail));
        }
    }
    Ok(())
}

/// The size of the content that a delta makes: the second of the two numbers that it begins with.
fn delta_result(item: &PatchItem, hunk: &BinaryHunk) -> Result<u64> {
    let deflated = hunk.deflated_start(item.text, 4);
    let start = match miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(&deflated, 20) {
        Ok(bytes) => bytes,
        Err(stopped) => stopped.output,
    };
    let mut bytes = start.into_iter();
    let mut number = || {
        let (mut value, mut shift) = (0u64, 0);
        loop {
            let byte = bytes.next()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift)?;
            shift += 7;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
    };
    number();
    number().ok_or_else(|| {
        item.section_failure(Code::PatchInvalid, "the binary patch is damaged: its delta has no sizes")
    })
}
