//! Reading a patch as text: which files, which hunks, where in the bytes. Git patches and plain unified diffs.
//!
//! Nothing is applied here and nothing guessed: counts must be right, a hunk ends where its header says, a last line without its newline
//! means that the patch was cut off. What stands between sections (a commit message, a diffstat, a mail's signature) is skipped, as git does.

mod name;
mod section;

pub use name::Name;

use super::repo_path::display;
use crate::error::{Code, Failure, Result};
use std::ops::Range;

/// One file of a patch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Section {
    /// Its bytes in the patch, from its first header line to the end of its last hunk.
    pub range: Range<usize>,
    /// Number of its first line in the patch, from 1.
    pub line: usize,
    /// True for `diff --git`.
    pub git: bool,
    /// What it starts from; `None` where it makes a file.
    pub old: Option<Name>,
    /// What it ends at; `None` where it removes a file.
    pub new: Option<Name>,
    /// The mode before, where told.
    pub old_mode: Option<String>,
    /// The mode after, where told.
    pub new_mode: Option<String>,
    /// Told to be a rename or a copy.
    pub moved: Option<Moved>,
    /// The blob ids of the `index` line, perhaps abbreviated.
    pub index: Option<(String, String)>,
    /// A change of bytes that are no text.
    pub binary: Binary,
    /// The hunks, in the order of the patch.
    pub hunks: Vec<Hunk>,
}

/// A file that gets another name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moved {
    /// The old name goes away.
    Renamed,
    /// The old name stays.
    Copied,
}

/// Whether a section holds binary content.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Binary {
    /// It is text.
    #[default]
    No,
    /// With its data.
    Data,
    /// Only told to differ.
    Missing,
}

/// One hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// Number of its header line in the patch, from 1.
    pub line: usize,
    /// The `@@ … @@` part of its header.
    pub header: String,
    /// First line of the old file, from 1; with no old lines the line before.
    pub old_start: usize,
    /// Number of old lines.
    pub old_count: usize,
    /// First line of the new file, likewise.
    pub new_start: usize,
    /// Number of new lines.
    pub new_count: usize,
    /// Its lines.
    pub lines: Vec<Line>,
}

/// What a line of a hunk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// In both files.
    Context,
    /// Only in the old file.
    Removed,
    /// Only in the new file.
    Added,
}

/// A line of a hunk: its bytes with the newline, where it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// What it is.
    pub kind: Kind,
    /// The bytes as they stand in the file.
    pub bytes: Vec<u8>,
}

impl Hunk {
    /// The lines that the old file must have.
    pub fn old_lines(&self) -> impl Iterator<Item = &[u8]> {
        self.lines.iter().filter(|l| l.kind != Kind::Added).map(|l| l.bytes.as_slice())
    }

    /// The lines that the new file gets.
    pub fn new_lines(&self) -> impl Iterator<Item = &[u8]> {
        self.lines.iter().filter(|l| l.kind != Kind::Removed).map(|l| l.bytes.as_slice())
    }
}

/// All sections of a patch. A patch without any is `patch.invalid`.
pub fn parse(text: &[u8]) -> Result<Vec<Section>> {
    let mut reader = Reader { text, at: 0, line: 1 };
    let mut sections = Vec::new();
    while let Some(line) = reader.peek() {
        if line.starts_with(b"diff --git ") {
            sections.push(section::git(&mut reader)?);
        } else if line.starts_with(b"--- ") && reader.looks_plain() {
            sections.push(section::plain(&mut reader)?);
        } else if line.starts_with(b"@@@ ")
            || line.starts_with(b"diff --cc ")
            || line.starts_with(b"diff --combined ")
        {
            return Err(reader.invalid("it is a merge's combined diff, which no tool can apply"));
        } else if line.starts_with(b"@@ -") {
            return Err(reader.invalid("a hunk stands without the name of its file"));
        } else {
            reader.skip();
        }
    }
    if sections.is_empty() {
        return Err(Failure::new(Code::PatchInvalid, "there is no change in the patch").remedy(
            "Give the output of `git diff`, `git format-patch` or `diff -u`.",
            ["git", "diff", "--binary", "--full-index"],
        ));
    }
    Ok(sections)
}

/// Goes through the lines and knows where it is.
struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    line: usize,
}

impl<'a> Reader<'a> {
    /// The line at hand with its newline; `None` at the end.
    fn peek(&self) -> Option<&'a [u8]> {
        line_at(self.text, self.at)
    }

    fn skip(&mut self) {
        self.at += self.peek().map_or(0, <[u8]>::len);
        self.line += 1;
    }

    /// The three lines that begin a file in a plain unified diff.
    fn looks_plain(&self) -> bool {
        let second = self.at + self.peek().map_or(0, <[u8]>::len);
        let Some(plus) = line_at(self.text, second) else { return false };
        let third = line_at(self.text, second + plus.len());
        plus.starts_with(b"+++ ") && third.is_some_and(|l| l.starts_with(b"@@ -"))
    }

    /// A header line without its newline.
    fn header(&mut self) -> Result<&'a [u8]> {
        let line = self.peek().unwrap_or_default();
        if line.ends_with(b"\r\n") {
            return Err(self
                .invalid(
                    "its own header lines end in CRLF: an editor or a mail program converted the line ends",
                )
                .remedy(
                    "Send the patch as it was made, as a file or an attachment.",
                    ["git", "format-patch", "--stdout"],
                ));
        }
        let Some(text) = line.strip_suffix(b"\n") else {
            return Err(self.invalid("it ends in the middle of a line: its last bytes are missing"));
        };
        self.skip();
        Ok(text)
    }

    fn invalid(&self, why: &str) -> Failure {
        Failure::new(Code::PatchInvalid, format!("the patch is not usable at line {}: {why}", self.line))
            .subject(format!("line {}", self.line))
            .detail("line", self.line)
            .detail("text", display(self.peek().unwrap_or_default().trim_ascii_end()))
    }
}

fn line_at(text: &[u8], at: usize) -> Option<&[u8]> {
    let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
    let end = rest.iter().position(|b| *b == b'\n').map_or(rest.len(), |n| n + 1);
    Some(&rest[..end])
}

#[cfg(test)]
mod tests;
