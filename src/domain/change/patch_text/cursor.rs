//! A place in the text of a patch, line by line, that knows the number of its line.

use crate::domain::value::repo_path::display_bytes;
use crate::error::{Code, Failure, Result};

/// The cursor always stands at the start of a line, or at the end.
#[derive(Debug, Clone)]
pub(super) struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
    line: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0, line: 1 }
    }

    pub(super) fn text(&self) -> &'a [u8] {
        self.text
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn line(&self) -> usize {
        self.line
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        &self.text[self.at..]
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at == self.text.len()
    }

    /// The line at the cursor with its end; empty at the end of the text.
    pub(super) fn peek_line(&self) -> &'a [u8] {
        self.rest().split_inclusive(|b| *b == b'\n').next().unwrap_or_default()
    }

    /// Goes to the next line.
    pub(super) fn skip_line(&mut self) {
        let length = self.peek_line().len();
        self.at += length;
        self.line += usize::from(length > 0);
    }

    /// The line without its end, which must be there: a patch that stops within a line was cut.
    pub(super) fn take_whole_line(&mut self) -> Result<&'a [u8]> {
        let line = self.peek_line();
        let Some(content) = line.strip_suffix(b"\n") else {
            let what = if line.is_empty() { "the text ends too early" } else { "the last line has no end" };
            return Err(
                unreadable_at(self.line, format!("{what}: the patch was cut off")).detail("truncated", true)
            );
        };
        self.skip_line();
        Ok(content)
    }
}

/// The patch cannot be read at a line.
pub(super) fn unreadable_at(line: usize, what: impl AsRef<str>) -> Failure {
    Failure::new(Code::PatchInvalid, format!("the patch cannot be read at line {line}: {}", what.as_ref()))
        .subject(format!("line {line}"))
        .detail("line", line)
}

/// A line for a message, cut to a bearable length.
pub(super) fn shown_line(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    display_bytes(&line[..line.len().min(200)])
}
