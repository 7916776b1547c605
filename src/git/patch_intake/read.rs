//! From the text of a patch to checked paths: which prefix its names have, whether every path may be touched
//! at all, and how large its binary contents say that they are. Nothing is applied here.

use super::super::limits::{CandidateLimits, refuse_by_rule};
use super::mail::MailPart;
use super::view::{Found, TreeView};
use crate::domain::change::patch_text::{
    self, BinaryHunk, BinaryKind, Body, Operation, Section, Strip, exact,
};
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

/// Reads one text as git does: the first component of every name is a prefix, but where all names of a plain
/// diff lie at the top. Where the names may as well have no prefix, and are files like that, it is not for us
/// to say which of the two is meant. `made` are the paths that earlier parts create.
fn read_sections(view: &TreeView, text: &[u8], made: &HashSet<Vec<u8>>) -> Result<(Strip, Vec<Section>)> {
    let stripped = patch_text::parse_sections(text, Strip::One);
    if let Ok(sections) = &stripped
        && sections.iter().all(|section| section.has_prefix)
    {
        return Ok((Strip::One, stripped?));
    }
    let Ok(whole) = patch_text::parse_sections(text, Strip::None) else { return Ok((Strip::One, stripped?)) };
    let at_top = |section: &Section| !section.is_git && !section.shown_path().contains(&b'/');
    if whole.iter().all(at_top) {
        return Ok((Strip::None, whole));
    }
    let whole_fits = reading_fits(view, text, &whole, made)?;
    let Ok(sections) = stripped else {
        return if whole_fits == Some(true) {
            Err(refuse_bare_names(&whole[0]))
        } else {
            Ok((Strip::One, stripped?))
        };
    };
    let pairs = sections.iter().zip(&whole);
    let Some((one, other)) = pairs.clone().find(|(one, other)| one.shown_path() != other.shown_path()) else {
        return Ok((Strip::One, sections));
    };
    // Only new files: a name without a prefix is likely where its folder is there.
    let other_fits = match whole_fits {
        None => has_folders(view, &whole)?,
        Some(fits) => fits,
    };
    match reading_fits(view, text, &sections, made)? {
        _ if !other_fits => Ok((Strip::One, sections)),
        Some(false) => Err(refuse_bare_names(other).detail("alsoRead", display_bytes(one.shown_path()))),
        _ => Err(ambiguous_names(one, other)),
    }
}

/// Git would take the first folder of each name for a prefix, and finds nothing there.
fn refuse_bare_names(section: &Section) -> Failure {
    let path = display_bytes(section.shown_path());
    let message = format!(
        "the names of the patch have no prefix: git takes the first folder off, and {path} is no longer found"
    );
    Failure::new(Code::PatchInvalid, message).subject(path).detail("line", section.line)
}

fn ambiguous_names(one: &Section, other: &Section) -> Failure {
    let (short, long) = (display_bytes(one.shown_path()), display_bytes(other.shown_path()));
    let message = format!("the patch can mean {short} or {long}: its names may have a prefix or none");
    Failure::new(Code::PatchInvalid, message).subject(long).detail("line", one.line).detail("alsoRead", short)
}

/// Whether all files that the sections read are there and as the sections need them; `None` where they read
/// none.
fn reading_fits(
    view: &TreeView,
    text: &[u8],
    sections: &[Section],
    made: &HashSet<Vec<u8>>,
) -> Result<Option<bool>> {
    let mut made_here: HashSet<&[u8]> = HashSet::new();
    let mut any = None;
    for section in sections {
        if let Some(old) = section.old.as_deref().filter(|_| !section.may_create()) {
            let fits = made_here.contains(old) || made.contains(old) || fits_base(view, text, section, old)?;
            any = Some(any.unwrap_or(true) && fits);
        }
        made_here.extend(section.new.as_deref());
    }
    Ok(any)
}

fn fits_base(view: &TreeView, text: &[u8], section: &Section, old: &[u8]) -> Result<bool> {
    let Found::File(object) = view.find_path(old)? else { return Ok(false) };
    match (&section.index, &section.body) {
        (Some(index), _) => Ok(object.id.as_str().starts_with(&index.old)),
        (None, Body::Text(hunks)) => Ok(exact::apply_hunks(text, hunks, &view.read_file(&object)?).is_ok()),
        (None, _) => Ok(true),
    }
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
