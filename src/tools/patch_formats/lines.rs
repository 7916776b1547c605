//! A patch as numbered lines.

/// The lines of a text, each without its newline.
#[derive(Debug)]
pub(super) struct Text<'a>(Vec<&'a str>);

impl<'a> Text<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let mut lines: Vec<&str> = text.split('\n').collect();
        if lines.last().is_some_and(|last| last.is_empty()) {
            lines.pop();
        }
        Self(lines)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// A line by its number from 0; empty beyond the end.
    pub(super) fn line(&self, at: usize) -> &'a str {
        self.0.get(at).copied().unwrap_or_default()
    }
}

/// A line that opens or closes a fenced part of a text.
pub(super) fn is_fence(line: &str) -> bool {
    line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~")
}

/// The longest part of a line that is quoted, in characters.
const QUOTED: usize = 400;

/// A line as it is quoted: a long one is cut, and says how long it is.
pub(in crate::tools) fn clipped(line: &str) -> String {
    match line.char_indices().nth(QUOTED) {
        None => line.to_owned(),
        Some((at, _)) => format!("{}… ({} bytes)", &line[..at], line.len()),
    }
}
