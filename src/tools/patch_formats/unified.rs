//! Unified diffs: git's, with or without its index lines, and plain ones.
//!
//! Models count badly, so the numbers of a hunk header are used where they fit the lines that follow, and otherwise the lines are
//! counted anew; a header without numbers does as well. Where `git apply` would refuse or drop something else, so do we. Only regular files:
//! links, submodules and binary patches are refused.

mod header;

use super::lines::Text;
use super::{Ends, FilePatch, Form, Hunk, Kind, Op, broken};
use crate::error::Result;
use header::Head;

/// True at the first line of a file's section.
pub(super) fn begins(text: &Text<'_>, at: usize) -> bool {
    let line = text.line(at);
    line.starts_with("diff --git ") || line.starts_with("--- ") && text.line(at + 1).starts_with("+++ ")
}

pub(super) fn parse(text: &Text<'_>) -> Result<Vec<FilePatch>> {
    let mut files = Vec::new();
    let mut at = 0;
    while at < text.len() {
        if begins(text, at) {
            files.push(section(text, &mut at)?);
        } else {
            no_part_of_a_section(text, at)?;
            at += 1;
        }
    }
    Ok(files)
}

/// Lines that mean nothing outside of a section: the header before them was lost.
fn no_part_of_a_section(text: &Text<'_>, at: usize) -> Result<()> {
    let line = text.line(at);
    Form::Unified.alone_at(text, at)?;
    if line.starts_with("diff --cc ") || line.starts_with("diff --combined ") {
        return Err(broken(at + 1, "it is the combined diff of a merge, which says nothing of one file"));
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
        return Err(broken(at + 1, "this line belongs to a file, but no file's header stands before it"));
    }
    Ok(())
}

fn is_binary(line: &str) -> bool {
    let line = line.trim_end();
    line == "GIT binary patch" || line.starts_with("Binary files ") && line.ends_with(" differ")
}

fn no_binary(at: usize) -> crate::error::Failure {
    broken(at + 1, "binary files cannot be changed with this tool")
}

fn section(text: &Text<'_>, at: &mut usize) -> Result<FilePatch> {
    let start = *at;
    let head = Head::read(text, at)?;
    if is_binary(text.line(*at)) {
        return Err(no_binary(*at));
    }
    let mut hunks = Vec::new();
    while text.line(*at).starts_with("@@") {
        let mut hunk = hunk(text, at)?;
        hunk.first = hunks.is_empty();
        hunks.push(hunk.checked()?);
    }
    if hunks.is_empty() && !head.is_whole() {
        let message = "the file's header is there, but its change is missing: the patch was cut off";
        return Err(broken(start + 1, message).detail("truncated", true));
    }
    let Head { old, new, executable, preimage, postimage, .. } = head;
    let kind = match (&old, &new) {
        (None, _) => Kind::Add { text: whole_file(start, &hunks)?, executable: executable == Some(true) },
        (Some(_), None) => Kind::Delete { hunks },
        (Some(old), Some(new)) => {
            let move_to = (old != new).then(|| new.clone());
            let creates = !head.is_git && matches!(hunks.as_slice(), [only] if only.only_inserts());
            Kind::Update { hunks, move_to, executable, creates }
        }
    };
    let Some(path) = old.or(new) else { return Err(broken(start + 1, "a file without a name")) };
    Ok(FilePatch { path, kind, preimage, postimage })
}

fn whole_file(start: usize, hunks: &[Hunk]) -> Result<String> {
    match hunks {
        [] => Ok(String::new()),
        [only] if only.only_inserts() => Ok(only.new_text()),
        _ => Err(broken(start + 1, "a new file has one hunk, and no old lines in it")),
    }
}

/// Where the old lines begin and how many lines there are of each side, from `@@ -a,b +c,d @@`.
pub(super) fn numbers(line: &str) -> Option<(usize, usize, usize)> {
    let (ranges, _) = line.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let range = |text: &str| -> Option<(usize, usize)> {
        let (start, count) = text.split_once(',').unwrap_or((text, "1"));
        Some((start.parse().ok()?, count.parse().ok()?))
    };
    let ((start, old), (_, new)) = (range(old)?, range(new)?);
    Some((start, old, new))
}

fn hunk(text: &Text<'_>, at: &mut usize) -> Result<Hunk> {
    let mut hunk = Hunk::new(*at + 1, Ends::AsWritten);
    let numbers = numbers(text.line(*at));
    hunk.old_start = numbers.map(|(start, ..)| start);
    *at += 1;
    let end = match numbers.and_then(|(_, old, new)| counted(text, *at, old, new)) {
        Some(end) => end,
        None => recounted(text, *at),
    };
    let start = *at;
    for number in *at..end {
        let line = text.line(number);
        let rest = line.get(1..).unwrap_or_default();
        match line.bytes().next() {
            None => hunk.push(Op::Keep, ""),
            Some(b'\r') => hunk.push(Op::Keep, line),
            Some(b' ') => hunk.push(Op::Keep, rest),
            Some(b'+') => hunk.push(Op::Insert, rest),
            Some(b'-') => hunk.push(Op::Remove, rest),
            _ => match hunk.lines.last_mut() {
                Some(last) => last.ended = false,
                None => {
                    return Err(broken(number + 1, "no line stands before this one that it could be about"));
                }
            },
        }
    }
    *at = end;
    match numbers.filter(|_| rest_is_empty(text, end)) {
        Some((_, old, new)) => not_cut_off(&hunk, start, old, new).map(|()| hunk),
        None => Ok(hunk),
    }
}

/// Nothing follows but empty lines.
fn rest_is_empty(text: &Text<'_>, from: usize) -> bool {
    (from..text.len()).all(|at| text.line(at).trim().is_empty())
}

/// A hunk that ends the text and has fewer lines than its header says is most likely what was left of a longer one: half a change.
fn not_cut_off(hunk: &Hunk, at: usize, old: usize, new: usize) -> Result<()> {
    let count = |side: fn(Op) -> bool| hunk.lines.iter().filter(|line| side(line.op)).count();
    let (has_old, has_new) = (count(Op::is_old), count(Op::is_new));
    if has_old >= old && has_new >= new {
        return Ok(());
    }
    let message = format!(
        "the header of the last hunk says {old} old and {new} new lines, and {has_old} and {has_new} follow: the patch was cut off, or counted wrongly (a header `@@ @@` says no numbers)"
    );
    Err(broken(at, message).detail("truncated", true).expected([old, new], [has_old, has_new]))
}

/// Where the hunk ends by its header's counts; `None` where those are not the counts of the lines that follow.
fn counted(text: &Text<'_>, from: usize, mut old: usize, mut new: usize) -> Option<usize> {
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
    let next = text.line(at);
    let goes_on = next.starts_with([' ', '+', '-', '\\']) && !begins(text, at) && next.trim_end() != "--";
    (!goes_on).then_some(at)
}

/// Where the lines end that can be a hunk's. Empty lines at its end may be the text's around it; as context they would say little.
fn recounted(text: &Text<'_>, from: usize) -> usize {
    let mut end = from;
    while end < text.len() && is_hunk_line(text.line(end)) && !begins(text, end) {
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
