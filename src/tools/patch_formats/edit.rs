//! What becomes of a file: its hunks placed, its lines put together again, its encoding and line ends kept.
//!
//! Where the old lines were found byte for byte the new ones are written as the patch has them. Where they
//! were not, a new line ends as the line that it takes the place of, else as its neighbour above, else as the
//! one below. Context always stays as the file has it. The missing newline at the end of a file follows the
//! patch where its form can say it, and else stays as it is.

use super::matcher::{FileLine, HunkPlace, Lookup, MatchTier, file_lines, place_hunk};
use super::{Ends, FilePatch, LineOp, PatchHunk, PatchKind, patch_invalid};
use crate::domain::value::digest::{ObjectFormat, ObjectId};
use crate::error::{Code, Failure, Result, Retry};
use crate::tools::text::{self, Encoding};

pub(super) fn apply_patch(
    patch: &FilePatch,
    present: Option<&[u8]>,
    format: ObjectFormat,
) -> Result<Option<Vec<u8>>> {
    let version = match present {
        Some(bytes) => compare_version(patch, bytes, format)?,
        None => FileVersion::Unnamed,
    };
    let new = change_text(patch, present, version)?;
    let is_known = version == FileVersion::Exact || matches!(patch.kind, PatchKind::Add { .. });
    if let (Some(id), Some(bytes), true) = (&patch.postimage, &new, is_known) {
        leads_to(patch, id, &format.blob_id(bytes)?)?;
    }
    Ok(new)
}

/// How the file is the one that the patch was made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileVersion {
    Unnamed,
    /// It is what git stores of this file, with other line ends.
    Stored,
    Exact,
}

fn change_text(patch: &FilePatch, present: Option<&[u8]>, version: FileVersion) -> Result<Option<Vec<u8>>> {
    let fixed = version == FileVersion::Exact;
    match (&patch.kind, present) {
        (PatchKind::Add { text, .. }, None) => Ok(Some(text.as_bytes().to_vec())),
        (PatchKind::Add { .. }, Some(_)) => {
            Err(patch_invalid(format!("{} is there already; a new file overwrites nothing", patch.path))
                .retry(Retry::Reread))
        }
        (PatchKind::Update { hunks, creates: true, .. }, None) => {
            Ok(Some(hunks.iter().map(PatchHunk::new_text).collect::<String>().into_bytes()))
        }
        (_, None) => Err(patch_invalid(format!("{} does not exist", patch.path))
            .detail("missing", true)
            .retry(Retry::Reread)),
        (PatchKind::Delete { shown: None }, Some(_)) => Ok(None),
        (PatchKind::Delete { shown: Some(hunks) }, Some(bytes)) => {
            let left = match hunks.as_slice() {
                [] if version == FileVersion::Unnamed => bytes.to_vec(),
                [] => Vec::new(),
                hunks => edit_text(patch, hunks, bytes, fixed)?,
            };
            if left.is_empty() || text::decode_text(&left).is_some_and(|(_, left)| left.is_empty()) {
                return Ok(None);
            }
            Err(shows_too_little(patch, hunks))
        }
        (PatchKind::Update { hunks, .. }, Some(bytes)) if hunks.is_empty() => Ok(Some(bytes.to_vec())),
        (PatchKind::Update { hunks, .. }, Some(bytes)) => edit_text(patch, hunks, bytes, fixed).map(Some),
    }
}

fn shows_too_little(patch: &FilePatch, hunks: &[PatchHunk]) -> Failure {
    let shown = if hunks.is_empty() { "none" } else { "only a part" };
    let message = format!(
        "the patch deletes {}, but shows {shown} of its lines: it was cut off; show all of them, or name the blob that goes in an index line",
        patch.path
    );
    patch_invalid(message).detail("truncated", true).retry(Retry::Reread)
}

/// Whether the file is the one that the patch names as its own beginning. Refused where it names another one.
fn compare_version(patch: &FilePatch, bytes: &[u8], format: ObjectFormat) -> Result<FileVersion> {
    let Some(id) = &patch.preimage else { return Ok(FileVersion::Unnamed) };
    let actual = format.blob_id(bytes)?;
    if actual.as_str().starts_with(id.as_str()) {
        return Ok(FileVersion::Exact);
    }
    // Git names what it stores, which may have other line ends than the disk.
    let ends = bytes.iter().zip(bytes.iter().skip(1)).map(|two| two == (&b'\r', &b'\n')).chain([false]);
    let stored: Vec<u8> =
        bytes.iter().zip(ends).filter(|(_, is_end)| !is_end).map(|(byte, _)| *byte).collect();
    if format.blob_id(&stored)?.as_str().starts_with(id.as_str()) {
        return Ok(FileVersion::Stored);
    }
    let message = format!("nothing was changed: the patch was made for another version of {}", patch.path);
    Err(Failure::new(Code::VersionConflict, message)
        .expected(id, actual)
        .retry(Retry::Reread)
        .advice("Read the file again, then send a patch against what is there, or leave the index line out."))
}

fn leads_to(patch: &FilePatch, id: &str, found: &ObjectId) -> Result<()> {
    if found.as_str().starts_with(id) {
        return Ok(());
    }
    let message = format!(
        "the patch does not lead to the version of {} that its index line names: it was cut off or changed; leave the index line out if this is what was meant",
        patch.path
    );
    Err(patch_invalid(message).detail("truncated", true).expected(id, found))
}

fn edit_text(patch: &FilePatch, hunks: &[PatchHunk], bytes: &[u8], fixed: bool) -> Result<Vec<u8>> {
    let Some((encoding, content)) = decode_for_hunks(hunks, bytes) else {
        return Err(patch_invalid(format!("{} holds NUL bytes: it cannot be edited as text", patch.path)));
    };
    let file = file_lines(&content);
    let places = place_hunks(hunks, &file, fixed)?;
    let new = put_together(hunks, &places, &file)?;
    if new == content {
        return Err(patch_invalid(format!("{} would not change", patch.path)));
    }
    text::encode_text(encoding, &new)
}

/// The text of a file. Its byte order mark is part of the first line only where the patch shows it there, as
/// git's diffs do.
fn decode_for_hunks(hunks: &[PatchHunk], bytes: &[u8]) -> Option<(Encoding, String)> {
    let (encoding, content) = text::decode_text(bytes)?;
    let shown = hunks.iter().flat_map(PatchHunk::old_lines).any(|line| line.text.starts_with('\u{feff}'));
    Some(match encoding {
        Encoding::Utf8Bom if shown => (Encoding::Utf8, format!("\u{feff}{content}")),
        _ => (encoding, content),
    })
}

/// After that many hunks that fit nowhere the others are not looked at: saying where each comes nearest is
/// work.
pub const FAILURES: usize = 20;

/// Each hunk's place, in the order of the file, and none over another.
fn place_hunks(hunks: &[PatchHunk], file: &[FileLine<'_>], fixed: bool) -> Result<Vec<(usize, HunkPlace)>> {
    let mut places: Vec<(usize, HunkPlace)> = Vec::with_capacity(hunks.len());
    let (mut above, mut failures, mut not_looked_at) = (0, Vec::new(), 0);
    let lookup = Lookup::from_lines(hunks, file);
    for (number, hunk) in hunks.iter().enumerate() {
        if failures.len() == FAILURES {
            not_looked_at = hunks.len() - number;
            break;
        }
        if hunk.first {
            above = 0;
        }
        match place_hunk(hunk, file, &lookup, (above, fixed)) {
            Ok(found) => {
                above = found.at + found.count;
                places.push((number, found));
            }
            // The others are looked at all the same, so that several can be mended at once.
            Err(failure) => failures.push(failure),
        }
    }
    if let Some(failure) = Failure::first_of(failures) {
        let is_all = not_looked_at == 0;
        return Err(if is_all { failure } else { failure.detail("hunksNotLookedAt", not_looked_at) });
    }
    places.sort_by_key(|(number, place)| (place.at, *number));
    for pair in places.windows(2) {
        let [(first, above), (second, below)] = pair else { continue };
        if above.at + above.count > below.at {
            let message = format!(
                "the hunks at lines {} and {} of the patch both change line {} of the file",
                hunks[*first].line,
                hunks[*second].line,
                below.at + 1
            );
            return Err(patch_invalid(message)
                .detail("patchLine", hunks[*second].line)
                .detail("line", below.at + 1));
        }
    }
    Ok(places)
}

fn put_together(hunks: &[PatchHunk], places: &[(usize, HunkPlace)], file: &[FileLine<'_>]) -> Result<String> {
    let mut new: Vec<FileLine<'_>> = Vec::with_capacity(file.len());
    let mut at = 0;
    let mut says_its_end = true;
    for (number, place) in places {
        let hunk = &hunks[*number];
        new.extend(file[at..place.at].iter().copied());
        let old = &file[place.at..place.at + place.count];
        let literal = is_literal(hunk, *place, old);
        let rewritten = rewrite_lines(hunk, *place, file, literal);
        if rewritten == old {
            let message = format!(
                "the hunk at line {} of the patch changes nothing: the lines are so already",
                hunk.line
            );
            return Err(patch_invalid(message).detail("patchLine", hunk.line).detail("line", place.at + 1));
        }
        new.extend(rewritten);
        at = place.at + place.count;
        if at == file.len() {
            says_its_end = match hunk.ends {
                Ends::AsWritten => literal || hunk.lines.iter().any(|line| !line.ended),
                Ends::AsInFile => false,
            };
        }
    }
    new.extend(file[at..].iter().copied());
    Ok(join_lines(&new, file, says_its_end))
}

/// True where new lines are written as they stand in the patch.
fn is_literal(hunk: &PatchHunk, place: HunkPlace, old: &[FileLine<'_>]) -> bool {
    let as_written = hunk.ends == Ends::AsWritten || old.iter().all(|line| !line.ending.is_empty());
    place.tier == MatchTier::Exact && as_written
}

fn rewrite_lines<'a>(
    hunk: &'a PatchHunk,
    place: HunkPlace,
    file: &[FileLine<'a>],
    literal: bool,
) -> Vec<FileLine<'a>> {
    let mut new = Vec::with_capacity(hunk.lines.len());
    let mut at = place.at;
    // Between two lines of context: the ends of the lines that go, for those that come.
    for run in hunk.lines.chunk_by(|one, next| (one.op == LineOp::Keep) == (next.op == LineOp::Keep)) {
        let gone: Vec<&str> = (at..)
            .zip(run.iter().filter(|line| line.op == LineOp::Remove))
            .map(|(at, _)| file[at].ending)
            .collect();
        let mut inserted = 0;
        for line in run {
            match line.op {
                LineOp::Keep => new.push(file[at]),
                LineOp::Remove => {}
                LineOp::Insert => {
                    let ending = if literal || !line.ended {
                        line.split_line_end().1
                    } else {
                        let replaced = gone.get(inserted).or(gone.last()).filter(|ending| !ending.is_empty());
                        replaced.copied().unwrap_or_else(|| neighbouring_line_end(file, at))
                    };
                    new.push(FileLine { text: line.split_line_end().0, ending });
                    inserted += 1;
                }
            }
            at += usize::from(line.op.is_old());
        }
    }
    new
}

/// How the line above ends that comes before a place, else the one below, else any.
fn neighbouring_line_end<'a>(file: &[FileLine<'a>], at: usize) -> &'a str {
    let above = file[..at].iter().rev();
    let below = file[at.min(file.len())..].iter();
    above.chain(below).map(|line| line.ending).find(|ending| !ending.is_empty()).unwrap_or("\n")
}

fn join_lines(new: &[FileLine<'_>], file: &[FileLine<'_>], says_its_end: bool) -> String {
    let last = new.len().saturating_sub(1);
    let mut text = String::new();
    for (number, line) in new.iter().enumerate() {
        let ending = match line.ending {
            // What was the last line has lines beneath it now.
            "" if number < last => neighbouring_line_end(file, file.len()),
            ending => ending,
        };
        text.extend([line.text, ending]);
    }
    let ended = file.last().is_none_or(|line| !line.ending.is_empty());
    if says_its_end || text.is_empty() || ended == text.ends_with('\n') {
        return text;
    }
    if ended {
        text.push_str(neighbouring_line_end(file, file.len()));
        return text;
    }
    let length = text.strip_suffix("\r\n").or(text.strip_suffix('\n')).map_or(text.len(), str::len);
    text.truncate(length);
    text
}
