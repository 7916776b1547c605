//! The envelope: `*** Begin Patch`, sections with `*** Add File:`, `*** Delete File:` or `*** Update File:`,
//! `*** End Patch`.
//!
//! A shell's here-document around it is left out like any other text. The lines of an update are told by
//! their first character; an empty line is an empty line of context. `@@ LINE` names a line above the hunk,
//! several of them each the next one further down.

use super::lines::{PatchLines, quote_line};
use super::{
    Ends, FilePatch, LineOp, PatchForm, PatchHunk, PatchKind, line_invalid, parse_written_path, patch_invalid,
};
use crate::error::Result;

const END_OF_FILE: &str = "*** End of File";

/// True at the line that opens an envelope.
pub(super) fn opens_envelope(line: &str) -> bool {
    line.trim() == "*** Begin Patch"
}

fn closes_envelope(line: &str) -> bool {
    line.trim() == "*** End Patch"
}

/// True at the end of an envelope, also where a hunk is open: set in it is a line of context, unless no other
/// end comes.
fn ends_here(text: &PatchLines<'_>, at: usize) -> bool {
    let line = text.line(at);
    closes_envelope(line)
        && (!line.starts_with(' ') || !(at + 1..text.len()).any(|after| closes_envelope(text.line(after))))
}

pub(super) fn parse_envelopes(text: &PatchLines<'_>) -> Result<Vec<FilePatch>> {
    let mut at = 0;
    while !opens_envelope(text.line(at)) {
        at += 1;
    }
    let start = at;
    at += 1;
    let mut files = Vec::new();
    while at < text.len() && !closes_envelope(text.line(at)) {
        if text.line(at).trim().is_empty() {
            at += 1;
            continue;
        }
        files.push(parse_section(text, &mut at)?);
    }
    if at >= text.len() {
        return Err(line_invalid(start + 1, "`*** End Patch` is missing: the patch was cut off")
            .detail("truncated", true));
    }
    for after in at + 1..text.len() {
        PatchForm::Envelope.alone_at(text, after)?;
        if opens_envelope(text.line(after)) {
            return Err(line_invalid(after + 1, "a second `*** Begin Patch`; put all sections into one"));
        }
        // Words may follow, half a patch may not: what stands there would be left out in silence.
        if text.line(after).trim_start().starts_with("*** ") {
            let what = "a section below `*** End Patch`; put all sections before it";
            return Err(line_invalid(after + 1, what).detail("line", quote_line(text.line(after))));
        }
    }
    if files.is_empty() {
        return Err(patch_invalid(
            "the patch is empty: no section stands between `*** Begin Patch` and `*** End Patch`",
        ));
    }
    Ok(files)
}

enum Header<'a> {
    Add(&'a str),
    Delete(&'a str),
    Update(&'a str),
}

fn parse_header(line: &str) -> Option<Header<'_>> {
    let line = line.trim();
    let after = |word: &str| line.strip_prefix(word).map(str::trim);
    after("*** Add File:")
        .map(Header::Add)
        .or_else(|| after("*** Delete File:").map(Header::Delete))
        .or_else(|| after("*** Update File:").map(Header::Update))
}

fn parse_section(text: &PatchLines<'_>, at: &mut usize) -> Result<FilePatch> {
    let number = *at + 1;
    let Some(header) = parse_header(text.line(*at)) else {
        let what = "expected `*** Add File: PATH`, `*** Delete File: PATH`, `*** Update File: PATH` or `*** End Patch`";
        return Err(line_invalid(number, what));
    };
    *at += 1;
    let (name, kind) = match header {
        Header::Add(name) => (name, parse_added_file(text, at)?),
        Header::Delete(name) => (name, PatchKind::Delete { shown: None }),
        Header::Update(name) => (name, parse_updated_file(text, at, number)?),
    };
    Ok(FilePatch { path: parse_written_path(name)?, kind, preimage: None, postimage: None })
}

fn parse_added_file(text: &PatchLines<'_>, at: &mut usize) -> Result<PatchKind> {
    let mut content = String::new();
    while *at < text.len() {
        let line = text.line(*at);
        match line.strip_prefix('+') {
            Some(line) => content.extend([line, "\n"]),
            None if line.trim().is_empty() && is_border(text.line(next_filled_line(text, *at))) => {
                // At once beyond all empty lines: looked at from each of them anew, many would take their
                // square.
                *at = next_filled_line(text, *at);
                continue;
            }
            None if line.trim_start().starts_with("***") => break,
            None => return Err(line_invalid(*at + 1, "each line of a new file begins with `+`")),
        }
        *at += 1;
    }
    Ok(PatchKind::Add { text: content, executable: false })
}

/// The next line that is not empty; the text's end where there is none.
fn next_filled_line(text: &PatchLines<'_>, from: usize) -> usize {
    (from..text.len()).find(|at| !text.line(*at).trim().is_empty()).unwrap_or(text.len())
}

/// True where the line behind empty ones opens the next section or ends the envelope, or is none.
fn is_border(line: &str) -> bool {
    line.is_empty() || parse_header(line).is_some() || closes_envelope(line)
}

fn parse_updated_file(text: &PatchLines<'_>, at: &mut usize, number: usize) -> Result<PatchKind> {
    let mut move_to = None;
    if let Some(name) = text.line(*at).trim().strip_prefix("*** Move to:") {
        move_to = Some(parse_written_path(name.trim())?);
        *at += 1;
    }
    let mut hunks: Vec<PatchHunk> = Vec::new();
    let mut open: Option<PatchHunk> = None;
    while *at < text.len() {
        let line = text.line(*at);
        if ends_here(text, *at) || line.starts_with("***") && line.trim() != END_OF_FILE {
            break;
        }
        // Before the first line of a hunk a header may be set in.
        if open.is_none() && (closes_envelope(line) || parse_header(line).is_some()) {
            break;
        }
        let hunk = open.get_or_insert_with(|| PatchHunk::new(*at + 1, Ends::AsInFile));
        if line.trim() == END_OF_FILE && !line.starts_with(' ') {
            hunk.at_end = true;
            hunks.extend(open.take());
        } else if let Some(rest) = line.strip_prefix("@@") {
            if !hunk.lines.is_empty() {
                hunks.extend(open.replace(PatchHunk::new(*at + 1, Ends::AsInFile)));
            }
            if let (Some(anchor), Some(hunk)) = (parse_anchor(rest), &mut open) {
                hunk.anchors.push(anchor.to_owned());
            }
        } else {
            hunk_line(hunk, line, *at + 1)?;
        }
        *at += 1;
    }
    hunks.extend(open);
    if hunks.is_empty() && move_to.is_none() {
        return Err(line_invalid(number, "an update without a change"));
    }
    if let Some(first) = hunks.first_mut() {
        first.first = true;
    }
    let hunks = hunks.into_iter().map(PatchHunk::check_sides).collect::<Result<_>>()?;
    Ok(PatchKind::Update { hunks, move_to, executable: None, creates: false })
}

/// The line that `@@` names. Numbers, as a unified diff has them there, name none.
fn parse_anchor(rest: &str) -> Option<&str> {
    let anchor = rest.strip_prefix(' ').unwrap_or(rest);
    let trimmed = anchor.trim();
    let is_empty = trimmed.is_empty() || trimmed == "..." || trimmed == "... @@" || trimmed == "@@";
    let is_numbers = super::unified::parse_hunk_range(&format!("@@{rest}")).is_some();
    (!is_empty && !is_numbers).then_some(anchor)
}

fn hunk_line(hunk: &mut PatchHunk, line: &str, number: usize) -> Result<()> {
    let mut rest = line.chars();
    match rest.next() {
        None => hunk.push_line(LineOp::Keep, ""),
        Some('\r') if line.len() == 1 => hunk.push_line(LineOp::Keep, line),
        Some(' ') => hunk.push_line(LineOp::Keep, rest.as_str()),
        Some('+') => hunk.push_line(LineOp::Insert, rest.as_str()),
        Some('-') => hunk.push_line(LineOp::Remove, rest.as_str()),
        Some(_) => {
            return Err(line_invalid(
                number,
                "a line of a hunk begins with ` `, `+` or `-`; a new hunk with `@@`",
            ));
        }
    }
    Ok(())
}
