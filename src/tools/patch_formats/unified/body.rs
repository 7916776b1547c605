//! The lines beneath a hunk's header, and where they end.
//!
//! Nothing that could be a hunk's is left out in silence. A body that has fewer lines of a side than its
//! header says was broken off, whatever follows it. One that has more is taken as far as its lines go on.
//! Right behind a body stands an empty line, a line that opens or closes something, or nothing: any other
//! line lost its prefix, or is the rest of a wrapped one. So did one before a line with its sign that stands
//! in what looks like prose.

use super::super::lines::{PatchLines, is_fence, quote_line};
use super::super::{Ends, LineOp, PatchHunk, line_invalid};
use super::{begins_section, parse_hunk_range};
use crate::error::{Failure, Result};

/// Reads a hunk, from its header to behind its last line.
pub(super) fn read_hunk(text: &PatchLines<'_>, at: &mut usize) -> Result<PatchHunk> {
    let header = *at;
    let mut hunk = PatchHunk::new(header + 1, Ends::AsWritten);
    let numbers = parse_hunk_range(text.line(header));
    hunk.old_start = numbers.map(|(start, ..)| start);
    let start = header + 1;
    let counted = numbers.and_then(|(_, old, new)| end_by_counts(text, start, old, new));
    let end = counted.unwrap_or_else(|| end_by_signs(text, start));
    for number in start..end {
        take_hunk_line(&mut hunk, text.line(number), number)?;
    }
    *at = end;
    if let Some((_, old, new)) = numbers {
        not_cut_off(&hunk, text, end, [old, new])?;
    }
    match find_lost_line(text, end) {
        Some(lost) => Err(lost_line(&hunk, text, lost)),
        None => Ok(hunk),
    }
}

fn take_hunk_line(hunk: &mut PatchHunk, line: &str, number: usize) -> Result<()> {
    let rest = line.get(1..).unwrap_or_default();
    match line.bytes().next() {
        None => hunk.push_line(LineOp::Keep, ""),
        Some(b'\r') => hunk.push_line(LineOp::Keep, line),
        Some(b' ') => hunk.push_line(LineOp::Keep, rest),
        Some(b'+') => hunk.push_line(LineOp::Insert, rest),
        Some(b'-') => hunk.push_line(LineOp::Remove, rest),
        _ => match hunk.lines.last_mut() {
            Some(last) => last.ended = false,
            None => {
                return Err(line_invalid(
                    number + 1,
                    "no line stands before this one that it could be about",
                ));
            }
        },
    }
    Ok(())
}

/// A hunk that has fewer lines than its header says is what was left of a longer one: half a change.
fn not_cut_off(hunk: &PatchHunk, text: &PatchLines<'_>, end: usize, said: [usize; 2]) -> Result<()> {
    let count = |side: fn(LineOp) -> bool| hunk.lines.iter().filter(|line| side(line.op)).count();
    let ([old, new], has @ [has_old, has_new]) = (said, [count(LineOp::is_old), count(LineOp::is_new)]);
    if has_old >= old && has_new >= new {
        return Ok(());
    }
    let header = quote_line(text.line(hunk.line - 1));
    let next = next_line(text, end);
    let broken_by = match &next {
        Some((number, line)) => format!("before line {number}, {line:?}"),
        None => "before the end".to_owned(),
    };
    let message = format!(
        "the hunk `{header}` says {old} old and {new} new lines, and {has_old} and {has_new} stand there {broken_by}: it was cut off, or a line has no ` `, `+` or `-` before it, or it was counted wrongly (a header `@@ @@` says no numbers)"
    );
    let failure = line_invalid(hunk.line, message)
        .detail("truncated", true)
        .detail("header", header)
        .expected(said, has);
    Err(match next {
        Some((number, line)) => failure.detail("endsAt", number).detail("line", line),
        None => failure,
    })
}

/// A line behind a hunk that is most likely one of its own: right behind it, or with a sign before it in the
/// text below an empty line.
fn find_lost_line(text: &PatchLines<'_>, end: usize) -> Option<usize> {
    if !is_border(text, end) {
        return Some(end);
    }
    let mut below =
        (end..text.len()).take_while(|at| text.line(*at).trim().is_empty() || !is_border(text, *at));
    below.find(|at| is_changed_line(text.line(*at)))
}

/// True where a line is one of code with its sign, and no item of a list.
fn is_changed_line(line: &str) -> bool {
    match line.split_at_checked(1) {
        Some(("+", rest)) => !rest.trim().is_empty() && (!rest.starts_with(' ') || rest.starts_with("  ")),
        Some(("-", rest)) => !rest.trim().is_empty() && !rest.starts_with([' ', '-']),
        _ => false,
    }
}

/// A line that belongs neither to the hunk above it nor to anything else.
fn lost_line(hunk: &PatchHunk, text: &PatchLines<'_>, at: usize) -> Failure {
    let line = quote_line(text.line(at));
    let what = match is_changed_line(&line) {
        true => "below text that is none of them: a line before it has no ` `, `+` or `-`",
        false => {
            "and has no ` `, `+` or `-` before it: the prefix was lost, or the line before was wrapped; put an empty line before text that is no part of the hunk"
        }
    };
    let message = format!("{line:?} stands behind the lines of the hunk at line {}, {what}", hunk.line);
    line_invalid(at + 1, message).detail("header", quote_line(text.line(hunk.line - 1))).detail("line", line)
}

/// The first line that is not empty, with its number from 1.
fn next_line(text: &PatchLines<'_>, from: usize) -> Option<(usize, String)> {
    let at = (from..text.len()).find(|at| !text.line(*at).trim().is_empty())?;
    Some((at + 1, quote_line(text.line(at))))
}

/// Where the hunk ends by its header's counts; `None` where those are not the counts of the lines that
/// follow.
fn end_by_counts(text: &PatchLines<'_>, from: usize, mut old: usize, mut new: usize) -> Option<usize> {
    let mut at = from;
    while old > 0 || new > 0 {
        if at >= text.len() {
            return None;
        }
        let (is_old, is_new) = match text.line(at).bytes().next() {
            None | Some(b' ' | b'\r') => (1, 1),
            Some(b'-') => (1, 0),
            Some(b'+') => (0, 1),
            Some(b'\\') => (0, 0),
            _ => return None,
        };
        old = old.checked_sub(is_old)?;
        new = new.checked_sub(is_new)?;
        at += 1;
    }
    if text.line(at).starts_with('\\') {
        at += 1;
    }
    // Lines that go on behind empty ones are the hunk's too: dropped, they would be lost.
    let after = (at..text.len()).find(|at| !text.line(*at).trim_end_matches('\r').is_empty()).unwrap_or(at);
    let next = text.line(after);
    let goes_on =
        next.starts_with([' ', '+', '-', '\\']) && !begins_section(text, after) && next.trim_end() != "--";
    (!goes_on).then_some(at)
}

/// Where the lines end that can be a hunk's. Empty lines at its end may be the text's around it; as context
/// they would say little.
fn end_by_signs(text: &PatchLines<'_>, from: usize) -> usize {
    let mut end = from;
    while end < text.len()
        && is_hunk_line(text.line(end))
        && !begins_section(text, end)
        && !is_signature(text, end)
    {
        end += 1;
    }
    while end > from && text.line(end - 1).trim_end_matches('\r').is_empty() {
        end -= 1;
    }
    end
}

fn is_hunk_line(line: &str) -> bool {
    matches!(line.bytes().next(), None | Some(b' ' | b'+' | b'-' | b'\\' | b'\r'))
}

/// True where a hunk may end: at the end of the text, an empty line, or a line that opens or closes
/// something.
fn is_border(text: &PatchLines<'_>, at: usize) -> bool {
    let line = text.line(at);
    let opens = ["@@", "diff ", "Index: ", "Only in ", "*** "];
    line.trim().is_empty()
        || opens.iter().any(|start| line.starts_with(start))
        || begins_section(text, at)
        || super::is_binary(line)
        || line.trim_end() == "--"
        || is_fence(line) && !text.line(at + 1).starts_with([' ', '+', '-'])
        || closes_here_document(text, at)
}

/// Two dashes and the version of git below them, as mails end.
fn is_signature(text: &PatchLines<'_>, at: usize) -> bool {
    let version = text.line(at + 1).trim_end();
    text.line(at).trim_end() == "--"
        && version.starts_with(|c: char| c.is_ascii_digit())
        && text.line(at + 2).trim().is_empty()
}

/// The word that ends a shell's here-document, where the patch is in one.
fn closes_here_document(text: &PatchLines<'_>, at: usize) -> bool {
    let word = text.line(at).trim_end();
    !word.is_empty() && text.here_documents().contains(word)
}
