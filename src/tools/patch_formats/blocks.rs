//! Search/replace blocks: a path, then `<<<<<<< SEARCH`, old lines, `=======`, new lines, `>>>>>>> REPLACE`.
//!
//! The path stands on the line before, with a fence and empty lines in between at most; a block without one is about the file of the
//! block before. Blocks need not follow the order of the file. One whose own lines look like its borders cannot be told apart, and is
//! refused.

use super::lines::{Text, is_fence};
use super::{Ends, FilePatch, Form, Hunk, Kind, Op, broken};
use crate::domain::repo_path::RepoPath;
use crate::error::Result;

/// True at the line that opens a block.
pub(super) fn begins(line: &str) -> bool {
    line.trim_end() == "<<<<<<< SEARCH"
}

fn divides(line: &str) -> bool {
    line.trim_end() == "======="
}

fn ends(line: &str) -> bool {
    line.trim_end() == ">>>>>>> REPLACE"
}

pub(super) fn parse(text: &Text<'_>) -> Result<Vec<FilePatch>> {
    let mut files: Vec<FilePatch> = Vec::new();
    let (mut at, mut outside) = (0, 0);
    while at < text.len() {
        let line = text.line(at);
        if !begins(line) {
            if divides(line) || ends(line) {
                return Err(broken(
                    at + 1,
                    "this line ends a part of a block, but no `<<<<<<< SEARCH` stands before it",
                ));
            }
            Form::Blocks.alone_at(text, at)?;
            at += 1;
            continue;
        }
        let path = match (path_above(text, outside, at), files.last()) {
            (Some(name), _) => RepoPath::new(name)?,
            (None, Some(last)) => last.path.clone(),
            (None, None) => return Err(broken(at + 1, "the path of the file is missing on the line before")),
        };
        let hunk = block(text, &mut at)?;
        let creates = hunk.only_inserts();
        let hunks = vec![hunk.checked()?];
        let kind = Kind::Update { hunks, move_to: None, executable: None, creates };
        files.push(FilePatch { path, kind, preimage: None, postimage: None });
        outside = at;
    }
    Ok(files)
}

/// The name right above a block, within the lines that belong to no other.
fn path_above<'a>(text: &Text<'a>, from: usize, block: usize) -> Option<&'a str> {
    let above: Vec<&str> =
        (from..block).rev().map(|at| text.line(at).trim()).filter(|line| !line.is_empty()).collect();
    let name = match above.as_slice() {
        [fence, name, ..] if is_fence(fence) => name,
        [name, ..] => name,
        [] => return None,
    };
    if is_fence(name) {
        return None;
    }
    let quoted = |mark: &str| name.strip_prefix(mark).and_then(|rest| rest.strip_suffix(mark));
    let name = quoted("**").or_else(|| quoted("`")).unwrap_or(name);
    (!name.is_empty()).then_some(name)
}

/// One block, from its first line to behind its last.
fn block(text: &Text<'_>, at: &mut usize) -> Result<Hunk> {
    let start = *at;
    let (mut old, mut new, mut divided) = (Vec::new(), Vec::new(), false);
    for here in start + 1..text.len() {
        let line = text.line(here);
        if ends(line) && divided {
            *at = here + 1;
            return Ok(hunk(start + 1, &old, &new));
        }
        if divides(line) && !divided {
            divided = true;
        } else if divides(line) || ends(line) || begins(line) {
            let message = "the lines of a block look like its borders; use another form for this change";
            return Err(broken(here + 1, message));
        } else {
            if divided { &mut new } else { &mut old }.push(line);
        }
    }
    let missing = if divided { "`>>>>>>> REPLACE`" } else { "`=======`" };
    Err(broken(start + 1, format!("{missing} is missing: the block was cut off")).detail("truncated", true))
}

/// Lines that stand on both sides are context: the file keeps its own.
fn hunk(number: usize, old: &[&str], new: &[&str]) -> Hunk {
    let mut hunk = Hunk::new(number, Ends::AsInFile);
    hunk.first = true;
    for change in similar::capture_diff_slices(similar::Algorithm::Myers, old, new) {
        let (tag, old_range, new_range) = change.as_tag_tuple();
        if tag == similar::DiffTag::Equal {
            old[old_range].iter().for_each(|line| hunk.push(Op::Keep, line));
        } else {
            old[old_range].iter().for_each(|line| hunk.push(Op::Remove, line));
            new[new_range].iter().for_each(|line| hunk.push(Op::Insert, line));
        }
    }
    hunk
}
