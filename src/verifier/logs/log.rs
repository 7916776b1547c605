//! A log as lines that can be read: colours taken out, progress bars reduced to what was last seen of them.

use serde_json::Value;
use std::borrow::Cow;

/// What is looked at of one line, in bytes. A line of JSON is looked at whole.
const WIDTH: usize = 2048;
/// The longest line of JSON that is looked at.
const JSON_WIDTH: usize = 1 << 20;

/// A line and its number in the log.
#[derive(Debug, Clone)]
pub(super) struct LogLine {
    pub(super) number: u32,
    pub(super) text: String,
    /// Of which package and test `go test -json` says that it is; the text is then what they wrote.
    pub(super) owner: Option<LineOwner>,
}

/// Whose output an event of `go test -json` holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LineOwner {
    pub(super) package: String,
    pub(super) test: Option<String>,
}

/// The rest of a log. A clone looks ahead.
#[derive(Debug, Clone)]
pub(super) struct LogLines<'l> {
    rest: &'l [u8],
    number: u32,
}

impl<'l> LogLines<'l> {
    pub(super) fn new(log: &'l [u8]) -> Self {
        Self { rest: log, number: 0 }
    }

    /// Whether the next lines have a word in them, at most so many: cheaper than to read them.
    pub(super) fn mention(&self, count: usize, word: &str) -> bool {
        let near = &self.rest[..self.rest.len().min(count * WIDTH)];
        let lines = near.split(|b| *b == b'\n').take(count);
        let word = word.as_bytes();
        lines.into_iter().any(|line| line.windows(word.len()).any(|window| window == word))
    }

    /// What is not read yet.
    pub(super) fn rest(&self) -> &'l [u8] {
        self.rest
    }

    /// Passes over so many bytes, and over what is left of the line that they end in.
    pub(super) fn pass_over(&mut self, bytes: usize) {
        let end = self.rest.len().min(bytes);
        let line =
            self.rest[end..].iter().position(|b| *b == b'\n').map_or(self.rest.len(), |at| end + at + 1);
        let lines = self.rest[..line].iter().filter(|b| **b == b'\n').count();
        self.rest = &self.rest[line..];
        self.number = self.number.saturating_add(u32::try_from(lines).unwrap_or(u32::MAX));
    }

    /// The next lines, at most so many.
    pub(super) fn ahead(&self, count: usize) -> impl Iterator<Item = LogLine> + use<'l> {
        self.clone().take(count)
    }

    /// The next lines as far as they belong together, at most so many.
    pub(super) fn ahead_while(&self, count: usize, belongs: impl Fn(&str) -> bool) -> Vec<String> {
        self.ahead(count).map(|line| line.text).take_while(|text| belongs(text)).collect()
    }
}

impl Iterator for LogLines<'_> {
    type Item = LogLine;

    fn next(&mut self) -> Option<LogLine> {
        if self.rest.is_empty() {
            return None;
        }
        let end = self.rest.iter().position(|b| *b == b'\n').unwrap_or(self.rest.len());
        let line = &self.rest[..end];
        self.rest = self.rest.get(end + 1..).unwrap_or_default();
        self.number = self.number.saturating_add(1);
        let (text, owner) = readable_line(line);
        Some(LogLine { number: self.number, text, owner })
    }
}

/// The log in UTF-8 and without a mark in front of it, where its mark says how it is written.
pub(super) fn decode_by_mark(log: &[u8]) -> Cow<'_, [u8]> {
    let pairs = |rest: &[u8], word: fn([u8; 2]) -> u16| -> Vec<u16> {
        rest.chunks_exact(2).map(|pair| word([pair[0], pair[1]])).collect()
    };
    let units = match log {
        [0xef, 0xbb, 0xbf, rest @ ..] => return Cow::Borrowed(rest),
        [0xff, 0xfe, rest @ ..] => pairs(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => pairs(rest, u16::from_be_bytes),
        _ => return Cow::Borrowed(log),
    };
    let text = char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER));
    Cow::Owned(text.collect::<String>().into_bytes())
}

fn readable_line(line: &[u8]) -> (String, Option<LineOwner>) {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let shown = line.rsplit(|b| *b == b'\r').next().unwrap_or(line);
    if shown.first() == Some(&b'{') {
        let whole = &shown[..shown.len().min(JSON_WIDTH)];
        return match go_test_output(whole) {
            Some((text, owner)) => (text, Some(owner)),
            None => (String::from_utf8_lossy(whole).into_owned(), None),
        };
    }
    let shown = &shown[..shown.len().min(WIDTH)];
    let plain = if shown.contains(&0x1b) { Cow::Owned(without_escapes(shown)) } else { Cow::Borrowed(shown) };
    (String::from_utf8_lossy(&plain).trim_end().to_owned(), None)
}

/// The line that stands within an event of `go test -json`; that is then read like any other.
fn go_test_output(line: &[u8]) -> Option<(String, LineOwner)> {
    // Looked for before it is parsed: most lines that begin like this are others.
    let key = b"\"Output\":";
    line.windows(key.len()).any(|window| window == key).then_some(())?;
    let event: Value = serde_json::from_slice(line).ok()?;
    matches!(event["Action"].as_str(), Some("output" | "build-output")).then_some(())?;
    let text = event["Output"].as_str()?.trim_end_matches('\n').to_owned();
    let named = |key: &str| event[key].as_str().map(str::to_owned);
    let package = named("Package").or_else(|| named("ImportPath")).unwrap_or_default();
    Some((text, LineOwner { package, test: named("Test") }))
}

/// Takes out terminal escapes: `ESC [ … letter`, `ESC ] … BEL` (or `ESC \`), and any other `ESC` with the
/// character after it.
fn without_escapes(line: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(line.len());
    let mut at = 0;
    while at < line.len() {
        if line[at] != 0x1b {
            out.push(line[at]);
            at += 1;
            continue;
        }
        let rest = &line[at + 1..];
        at += 1 + match rest.first() {
            Some(b'[') => 1 + length_until(&rest[1..], |b| (0x40..=0x7e).contains(&b)),
            Some(b']') => {
                let body = length_until(&rest[1..], |b| b == 0x07 || b == 0x1b);
                1 + body + usize::from(rest.get(body) == Some(&0x1b))
            }
            Some(_) => 1,
            None => 0,
        };
    }
    out
}

/// How many bytes there are up to and with the first that ends it.
fn length_until(bytes: &[u8], ends: impl Fn(u8) -> bool) -> usize {
    bytes.iter().position(|b| ends(*b)).map_or(bytes.len(), |at| at + 1)
}

#[cfg(test)]
mod tests {
    use crate::verifier::logs::log::*;

    fn texts(log: &str) -> Vec<String> {
        LogLines::new(log.as_bytes()).map(|line| line.text).collect()
    }

    #[test]
    fn colours_and_progress_bars_are_taken_out() {
        assert_eq!(texts("\x1b[1m\x1b[91merror[E1]\x1b[0m: x\x1b[K\n"), ["error[E1]: x"]);
        assert_eq!(texts("10%\r50%\r100% done\r\nnext"), ["100% done", "next"]);
        assert_eq!(texts("\x1b]8;;file:///a\x07link\x1b]8;;\x07 b\x1b(Bc"), ["link bBc"]);
        assert_eq!(texts("\x1b]0;title\x1b\\text"), ["text"]);
        assert_eq!(texts("cut \x1b[3"), ["cut"]);
        assert_eq!(texts("\n\nthird"), ["", "", "third"]);
        assert!(texts("").is_empty());
    }

    #[test]
    fn a_log_that_is_no_text_is_read_too() {
        let lines: Vec<LogLine> = LogLines::new(b"\xff\xfe\x00\n\x1b").collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(texts(&"x".repeat(1 << 20))[0].len(), WIDTH);
    }

    #[test]
    fn a_mark_says_how_a_log_is_written() {
        assert_eq!(decode_by_mark(b"\xef\xbb\xbfplain").as_ref(), b"plain");
        assert_eq!(decode_by_mark(b"\xff\xfee\x00\xe9\x00").as_ref(), "eé".as_bytes());
        assert_eq!(decode_by_mark(b"\xfe\xff\x00e\xd8\x00x").as_ref(), "e\u{fffd}".as_bytes());
        assert_eq!(decode_by_mark(b"\xff").as_ref(), b"\xff");
    }

    #[test]
    fn what_is_passed_over_is_counted() {
        let mut lines = LogLines::new(b"[\n1\n] x\nnext\n");
        lines.pass_over(5);
        assert_eq!(lines.next().map(|line| (line.number, line.text)), Some((4, "next".to_owned())));
        assert!(!lines.mention(9, "next"));
        assert!(
            LogLines::new(b"a\nnext\n").mention(2, "next") && !LogLines::new(b"a\nnext\n").mention(1, "next")
        );
        lines.pass_over(9);
        assert!(lines.next().is_none());
    }
}
