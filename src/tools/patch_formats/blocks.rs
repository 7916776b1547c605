//! Search/replace blocks: a path, then `<<<<<<< SEARCH`, old lines, `=======`, new lines, `>>>>>>> REPLACE`.
//!
//! The path stands on the line before, with a fence and empty lines in between at most, and perhaps dressed
//! up as a heading, a label or in marks; a block without one is about the file of the block before. Where a
//! block would make a file, the line has to look like a path: any sentence would do for a name. Blocks need
//! not follow the order of the file. One whose own lines look like its borders cannot be told apart, and is
//! refused.

use super::lines::{PatchLines, is_fence, quote_line};
use super::{Ends, FilePatch, LineOp, PatchForm, PatchHunk, PatchKind, line_invalid, parse_written_path};
use crate::error::{Failure, Result};

/// True at the line that opens a block.
pub(super) fn opens_block(line: &str) -> bool {
    line.trim_end() == "<<<<<<< SEARCH"
}

fn divides_block(line: &str) -> bool {
    line.trim_end() == "======="
}

fn closes_block(line: &str) -> bool {
    line.trim_end() == ">>>>>>> REPLACE"
}

pub(super) fn parse_blocks(text: &PatchLines<'_>) -> Result<Vec<FilePatch>> {
    let mut files: Vec<FilePatch> = Vec::new();
    let (mut at, mut outside) = (0, 0);
    while at < text.len() {
        let line = text.line(at);
        if !opens_block(line) {
            if divides_block(line) || closes_block(line) {
                return Err(line_invalid(
                    at + 1,
                    "this line ends a part of a block, but no `<<<<<<< SEARCH` stands before it",
                ));
            }
            PatchForm::Blocks.alone_at(text, at)?;
            at += 1;
            continue;
        }
        let named = Named::find_above(text, outside, at);
        let path = match (&named, files.last()) {
            (Some(named), _) => parse_written_path(named.path)?,
            (None, Some(last)) => last.path.clone(),
            (None, None) => {
                return Err(line_invalid(at + 1, "the path of the file is missing on the line before"));
            }
        };
        let hunk = parse_block(text, &mut at)?;
        let creates = hunk.only_inserts();
        if let Some(named) = named.filter(|named| creates && !named.looks_like_a_path()) {
            return Err(named.is_no_path(text));
        }
        let hunks = vec![hunk.check_sides()?];
        let kind = PatchKind::Update { hunks, move_to: None, executable: None, creates };
        files.push(FilePatch { path, kind, preimage: None, postimage: None });
        outside = at;
    }
    Ok(files)
}

/// What is taken for the path of a block.
struct Named<'a> {
    /// Number of its line, from 0.
    at: usize,
    path: &'a str,
    /// It stands in marks of its own, which say where it begins and ends.
    quoted: bool,
}

impl<'a> Named<'a> {
    /// The name right above a block, within the lines that belong to no other.
    fn find_above(text: &PatchLines<'a>, from: usize, block: usize) -> Option<Self> {
        let mut above = (from..block).rev().filter(|at| !text.line(*at).trim().is_empty());
        let mut at = above.next()?;
        if is_fence(text.line(at)) {
            at = above.next()?;
        }
        let line = text.line(at);
        if is_fence(line) {
            return None;
        }
        let (path, quoted) = undress_name(line);
        (!path.is_empty()).then_some(Self { at, path, quoted })
    }

    fn looks_like_a_path(&self) -> bool {
        let is_prose =
            self.path.contains(char::is_whitespace) || self.path.ends_with(['.', ':', ',', '!', '?']);
        self.quoted || !is_prose
    }

    fn is_no_path(&self, text: &PatchLines<'_>) -> Failure {
        let line = quote_line(text.line(self.at));
        let message = format!(
            "an empty SEARCH makes a file, and {line:?} was taken for its path; expected the path alone on the line before the block, in back-ticks where it has blanks"
        );
        line_invalid(self.at + 1, message).detail("line", line)
    }
}

/// That often something is taken off a name: each time its line is looked through, and nobody puts more
/// around one.
const LAYERS: usize = 16;

/// The name in a line without what writers put around one, and whether it stood in marks of its own.
fn undress_name(line: &str) -> (&str, bool) {
    let mut name = line.trim();
    for _ in 0..LAYERS {
        let within = |mark: &str| {
            name.strip_prefix(mark).and_then(|rest| rest.strip_suffix(mark)).filter(|n| !n.is_empty())
        };
        if let Some(quoted) = ["`", "\"", "'"].into_iter().find_map(within) {
            return (quoted.trim_matches('`'), true);
        }
        let bare = within("**").or_else(|| within("*")).unwrap_or(name);
        let bare = bare.trim_start_matches('#').trim_end_matches(':');
        let bare = without_label(bare).trim();
        if bare == name || bare.is_empty() {
            break;
        }
        name = bare;
    }
    (name, false)
}

/// Without the word for a file before a name. Its colon may stand within the marks around it.
fn without_label(name: &str) -> &str {
    let Some((label, rest)) = name.split_once(':') else { return name };
    let label = label.trim_matches(['*', ' ']).to_ascii_lowercase();
    let is_label =
        ["file", "filename", "file name", "path", "filepath", "file path"].contains(&label.as_str());
    if is_label { rest.trim_start_matches('*') } else { name }
}

/// One block, from its first line to behind its last.
fn parse_block(text: &PatchLines<'_>, at: &mut usize) -> Result<PatchHunk> {
    let start = *at;
    let (mut old, mut new, mut divided) = (Vec::new(), Vec::new(), false);
    for here in start + 1..text.len() {
        let line = text.line(here);
        if closes_block(line) && divided {
            *at = here + 1;
            return Ok(hunk_from_sides(start + 1, &old, &new));
        }
        if divides_block(line) && !divided {
            divided = true;
        } else if divides_block(line) || closes_block(line) || opens_block(line) {
            let message = "the lines of a block look like its borders; use another form for this change";
            return Err(line_invalid(here + 1, message));
        } else {
            if divided { &mut new } else { &mut old }.push(line);
        }
    }
    let missing = if divided { "`>>>>>>> REPLACE`" } else { "`=======`" };
    Err(line_invalid(start + 1, format!("{missing} is missing: the block was cut off"))
        .detail("truncated", true))
}

/// Lines that stand on both sides are context: the file keeps its own.
fn hunk_from_sides(number: usize, old: &[&str], new: &[&str]) -> PatchHunk {
    let mut hunk = PatchHunk::new(number, Ends::AsInFile);
    hunk.first = true;
    for change in similar::capture_diff_slices(similar::Algorithm::Myers, old, new) {
        let (tag, old_range, new_range) = change.as_tag_tuple();
        if tag == similar::DiffTag::Equal {
            old[old_range].iter().for_each(|line| hunk.push_line(LineOp::Keep, line));
        } else {
            old[old_range].iter().for_each(|line| hunk.push_line(LineOp::Remove, line));
            new[new_range].iter().for_each(|line| hunk.push_line(LineOp::Insert, line));
        }
    }
    hunk
}
