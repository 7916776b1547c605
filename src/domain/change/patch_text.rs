//! Reading the text of a patch: which files it names, what it does to each, and its hunks, as ranges of the
//! text.
//!
//! The reader finds what `git apply` finds, and refuses what git would drop without a word: a line that the
//! counts of a hunk leave out, a header without its file, content that cannot be in the text. It judges the
//! text alone; whether the patch fits a base is for [`exact`] and for git.

mod body;
mod cursor;
pub mod exact;
mod header;
pub mod names;

pub use body::{BinaryHunk, BinaryKind, Body, Hunk, Side};
pub use header::LINE_ENDS;
pub use names::Strip;

use crate::error::Result;
use cursor::{Cursor, unreadable_at};
use std::ops::Range;

/// The kind of a change to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Its content or mode changes.
    Modify,
    Create,
    Delete,
    /// It moves, with or without a change.
    Rename,
    /// Another appears with its content, with or without a change.
    Copy,
}

/// The ids of an `index` line, as they stand there: perhaps abbreviated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexLine {
    /// Of the preimage; zeros for none.
    pub old: String,
    /// Of the postimage; zeros for none.
    pub new: String,
}

/// One file of the patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    pub range: Range<usize>,
    /// Its first line in the text, from 1.
    pub line: usize,
    /// True for a section that begins with `diff --git`.
    pub is_git: bool,
    pub operation: Operation,
    /// The path before; `None` for a created file. A copy only reads it.
    pub old: Option<Vec<u8>>,
    /// The path after; `None` for a deleted file.
    pub new: Option<Vec<u8>>,
    /// True where its header shows that its names begin with a prefix: the two differ in nothing else, or
    /// the prefix is one of git's own.
    pub has_prefix: bool,
    /// The mode before, in octal, where the patch names it.
    pub old_mode: Option<String>,
    pub new_mode: Option<String>,
    /// The ids, where the patch names them.
    pub index: Option<IndexLine>,
    /// The change of the content.
    pub body: Body,
}

impl Section {
    /// The name that a message shows.
    pub fn shown_path(&self) -> &[u8] {
        self.new.as_deref().or(self.old.as_deref()).unwrap_or_default()
    }

    /// The hunks; none for a binary patch.
    pub fn hunks(&self) -> &[Hunk] {
        match &self.body {
            Body::Text(hunks) => hunks,
            _ => &[],
        }
    }

    /// A plain diff cannot say that a file is new except by having no old lines: then it may be.
    pub fn may_create(&self) -> bool {
        let nothing_before = matches!(self.hunks(), [only] if only.old_count == 0);
        !self.is_git && self.operation == Operation::Modify && nothing_before
    }
}

/// Reads every section of a text. Text between sections is left out. An empty result is no failure.
pub fn parse_sections(text: &[u8], strip: Strip) -> Result<Vec<Section>> {
    let mut cursor = Cursor::new(text);
    let mut sections = Vec::new();
    if text.starts_with(b"\xff\xfe") || text.starts_with(b"\xfe\xff") || text.starts_with(b"\xef\xbb\xbf") {
        return Err(unreadable_at(
            1,
            "it begins with a byte order mark; write it as plain bytes, without an encoding",
        ));
    }
    while !cursor.is_at_end() {
        let line = cursor.peek_line();
        let found = sections.len();
        if line.starts_with(b"diff --git ") {
            sections.push(header::git_section(&mut cursor, strip)?);
        } else if is_plain_header(&cursor)? {
            sections.push(header::plain_section(&mut cursor, strip)?);
        } else {
            no_part_of_a_diff(line, cursor.line(), !sections.is_empty())?;
            cursor.skip_line();
        }
        if sections.len() > found {
            whole_line_follows(cursor.peek_line(), cursor.line())?;
        }
    }
    Ok(sections)
}

/// `--- `, `+++ ` and a hunk. The first two without the third are a header whose hunks git would not see.
fn is_plain_header(cursor: &Cursor) -> Result<bool> {
    if !cursor.peek_line().starts_with(b"--- ") {
        return Ok(false);
    }
    let mut ahead = cursor.clone();
    ahead.skip_line();
    if !ahead.peek_line().starts_with(b"+++ ") {
        return Ok(false);
    }
    ahead.skip_line();
    if ahead.peek_line().starts_with(b"@@ -") {
        return Ok(true);
    }
    Err(unreadable_at(
        ahead.line(),
        "a hunk header (`@@ -START,COUNT +START,COUNT @@`) is missing after `---` and `+++`",
    ))
}

/// Half a line right after a section is the rest of it, or of the next one; a signature may end as it likes.
fn whole_line_follows(line: &[u8], number: usize) -> Result<()> {
    if line.is_empty() || line.ends_with(b"\n") || line == b"-- " || line == b"--" {
        return Ok(());
    }
    Err(unreadable_at(number, "the text ends within a line: the patch was cut off").detail("truncated", true))
}

/// Lines outside a section that belong to one: something before them was lost.
fn no_part_of_a_diff(line: &[u8], number: usize, inside: bool) -> Result<()> {
    let content = line.trim_ascii_end();
    if inside && b"diff --git ".starts_with(line) {
        return whole_line_follows(line, number);
    }
    if line.starts_with(b"diff --cc ") || line.starts_with(b"diff --combined ") {
        return Err(unreadable_at(
            number,
            "it is the combined diff of a merge, which says nothing of one base",
        ));
    }
    if content.starts_with(b"Binary files ") && content.ends_with(b" differ") {
        return Err(unreadable_at(
            number,
            "the content of a binary file is missing; make the patch with --binary",
        ));
    }
    let stray = body::is_hunk_header(line) || inside && line.starts_with(b"@@ ");
    let lost = [
        b"old mode 1".as_slice(),
        b"new mode 1",
        b"new file mode ",
        b"deleted file mode ",
        b"GIT binary patch",
    ];
    if stray || lost.iter().any(|start| line.starts_with(start)) {
        return Err(unreadable_at(
            number,
            "this line belongs to a file, but no file's header stands before it",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
