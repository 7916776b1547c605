//! A patch as numbered lines.

use std::cell::OnceCell;
use std::collections::HashSet;

/// The lines of a text, each without its newline.
#[derive(Debug)]
pub(super) struct PatchLines<'a> {
    lines: Vec<&'a str>,
    here_documents: OnceCell<HashSet<&'a str>>,
}

impl<'a> PatchLines<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let mut lines: Vec<&str> = text.split('\n').collect();
        if lines.last().is_some_and(|last| last.is_empty()) {
            lines.pop();
        }
        Self { lines, here_documents: OnceCell::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    /// A line by its number from 0; empty beyond the end.
    pub(super) fn line(&self, at: usize) -> &'a str {
        self.lines.get(at).copied().unwrap_or_default()
    }

    /// The words that end the here-documents which a shell opens above the first hunk. Found once: they are
    /// asked for at many lines.
    pub(super) fn here_documents(&self) -> &HashSet<&'a str> {
        self.here_documents.get_or_init(|| {
            let above = self.lines.iter().take_while(|line| !line.starts_with("@@"));
            let words = above.filter_map(|line| line.rsplit_once("<<"));
            words.map(|(_, rest)| rest.trim().trim_matches(['-', '\'', '"'])).collect()
        })
    }
}

/// A line that opens or closes a fenced part of a text.
pub(super) fn is_fence(line: &str) -> bool {
    line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~")
}

/// The longest part of a line that is quoted, in characters.
const QUOTED: usize = 400;

/// A line as it is quoted: a long one is cut, and says how long it is.
pub(in crate::tools) fn quote_line(line: &str) -> String {
    match line.char_indices().nth(QUOTED) {
        None => line.to_owned(),
        Some((at, _)) => format!("{}… ({} bytes)", &line[..at], line.len()),
    }
}
