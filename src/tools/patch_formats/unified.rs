//! Unified diffs: git's, with or without its index lines, and plain ones.
//!
//! Models count badly, so a hunk that is longer than its header says is taken as it stands, and a header
//! without numbers does as well. One that is shorter was broken off, and is refused (`body`). Where `git
//! apply` would refuse or drop something else, so do we. Only regular files: links, submodules and binary
//! patches are refused.

mod body;
mod header;

use super::lines::PatchLines;
use super::{FilePatch, PatchForm, PatchHunk, PatchKind, line_invalid};
use crate::error::Result;
use header::SectionHeader;

/// True at the first line of a file's section.
pub(super) fn begins_section(text: &PatchLines<'_>, at: usize) -> bool {
    let line = text.line(at);
    line.starts_with("diff --git ") || line.starts_with("--- ") && text.line(at + 1).starts_with("+++ ")
}

pub(super) fn parse_sections(text: &PatchLines<'_>) -> Result<Vec<FilePatch>> {
    let mut files = Vec::new();
    let mut at = 0;
    while at < text.len() {
        if begins_section(text, at) {
            files.push(parse_section(text, &mut at)?);
        } else {
            no_part_of_a_section(text, at)?;
            at += 1;
        }
    }
    Ok(files)
}

/// Lines that mean nothing outside of a section: the header before them was lost.
fn no_part_of_a_section(text: &PatchLines<'_>, at: usize) -> Result<()> {
    let line = text.line(at);
    PatchForm::Unified.alone_at(text, at)?;
    if line.starts_with("diff --cc ") || line.starts_with("diff --combined ") {
        return Err(line_invalid(
            at + 1,
            "it is the combined diff of a merge, which says nothing of one file",
        ));
    }
    if is_binary(line) {
        return Err(no_binary(at));
    }
    let lost = [
        "@@ ",
        "old mode 1",
        "new mode 1",
        "new file mode 1",
        "deleted file mode 1",
        "rename from ",
        "rename to ",
    ];
    if line == "@@" || lost.iter().any(|start| line.starts_with(start)) {
        return Err(line_invalid(
            at + 1,
            "this line belongs to a file, but no file's header stands before it",
        ));
    }
    Ok(())
}

fn is_binary(line: &str) -> bool {
    let line = line.trim_end();
    line == "GIT binary patch" || line.starts_with("Binary files ") && line.ends_with(" differ")
}

fn no_binary(at: usize) -> crate::error::Failure {
    line_invalid(at + 1, "binary files cannot be changed with this tool")
}

fn parse_section(text: &PatchLines<'_>, at: &mut usize) -> Result<FilePatch> {
    let start = *at;
    let head = SectionHeader::read_section(text, at)?;
    if is_binary(text.line(*at)) {
        return Err(no_binary(*at));
    }
    let mut hunks = Vec::new();
    while text.line(*at).starts_with("@@") {
        let mut hunk = body::read_hunk(text, at)?;
        hunk.first = hunks.is_empty();
        hunks.push(hunk.check_sides()?);
    }
    if hunks.is_empty() && !head.is_whole() {
        let message = "the file's header is there, but its change is missing: the patch was cut off";
        return Err(line_invalid(start + 1, message).detail("truncated", true));
    }
    let SectionHeader { old, new, executable, preimage, postimage, .. } = head;
    let kind = match (&old, &new) {
        (None, _) => {
            PatchKind::Add { text: whole_file(start, &hunks)?, executable: executable == Some(true) }
        }
        (Some(_), None) => PatchKind::Delete { shown: Some(hunks) },
        (Some(old), Some(new)) => {
            let move_to = (old != new).then(|| new.clone());
            let creates = !head.is_git && matches!(hunks.as_slice(), [only] if only.only_inserts());
            PatchKind::Update { hunks, move_to, executable, creates }
        }
    };
    let Some(path) = old.or(new) else { return Err(line_invalid(start + 1, "a file without a name")) };
    Ok(FilePatch { path, kind, preimage, postimage })
}

fn whole_file(start: usize, hunks: &[PatchHunk]) -> Result<String> {
    match hunks {
        [] => Ok(String::new()),
        [only] if only.only_inserts() => Ok(only.new_text()),
        _ => Err(line_invalid(start + 1, "a new file has one hunk, and no old lines in it")),
    }
}

/// Where the old lines begin and how many lines there are of each side, from `@@ -a,b +c,d @@`.
pub(super) fn parse_hunk_range(line: &str) -> Option<(usize, usize, usize)> {
    let rest = line.strip_prefix("@@ -")?;
    let ranges = rest.split_once(" @@").map_or(rest.trim_end(), |(ranges, _)| ranges);
    let (old, new) = ranges.split_once(" +")?;
    let range = |text: &str| -> Option<(usize, usize)> {
        let (start, count) = text.split_once(',').unwrap_or((text, "1"));
        Some((start.parse().ok()?, count.parse().ok()?))
    };
    let ((start, old), (_, new)) = (range(old)?, range(new)?);
    Some((start, old, new))
}
