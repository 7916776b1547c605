//! What follows the header of a file: hunks of lines, or a binary patch. A hunk is as long as its counts say;
//! whatever its lines look like, within the counts they are content.

use crate::domain::change::patch_text::cursor::{Cursor, unreadable_at};
use crate::error::Result;
use std::ops::Range;

/// One hunk: where it stands on both sides, and its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// The line of its header in the text, from 1.
    pub line: usize,
    /// The bytes of its header line, without the line end.
    pub header: Range<usize>,
    /// The bytes of its lines.
    pub body: Range<usize>,
    /// First line on the old side, from 1; with a count of 0 the line after which it stands.
    pub old_start: usize,
    /// Lines on the old side.
    pub old_count: usize,
    /// First line on the new side, likewise.
    pub new_start: usize,
    /// Lines on the new side.
    pub new_count: usize,
}

/// The side that a line of a hunk is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Only on the old one.
    Old,
    /// Only on the new one.
    New,
    Both,
}

/// The form in which a binary patch gives its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinaryKind {
    Literal,
    /// A difference to the other side's content.
    Delta,
}

/// One direction of a binary patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BinaryHunk {
    pub kind: BinaryKind,
    /// Bytes after inflating: of the content, or of the delta.
    pub size: u64,
    pub data: Range<usize>,
}

/// The change of the content that a section asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    None,
    Text(Vec<Hunk>),
    /// A binary patch, and the way back where it is given.
    Binary(BinaryHunk, Option<BinaryHunk>),
}

impl Hunk {
    /// Its lines with their line ends; a line that `\ No newline at end of file` follows has none.
    pub fn body_lines<'a>(&self, text: &'a [u8]) -> impl Iterator<Item = (Side, &'a [u8])> {
        let mut lines = text[self.body.clone()].split_inclusive(|b| *b == b'\n').peekable();
        std::iter::from_fn(move || {
            let line = lines.next()?;
            let (side, content) = match line[0] {
                b'+' => (Side::New, &line[1..]),
                b'-' => (Side::Old, &line[1..]),
                b' ' => (Side::Both, &line[1..]),
                // An empty context line whose blank was lost.
                _ => (Side::Both, line),
            };
            let unended = lines.next_if(|next| next[0] == b'\\').is_some();
            Some((side, if unended { &content[..content.len() - 1] } else { content }))
        })
    }

    /// The lines of one side.
    pub fn side_lines<'a>(&self, text: &'a [u8], wanted: Side) -> Vec<&'a [u8]> {
        self.body_lines(text)
            .filter(|(side, _)| *side == wanted || *side == Side::Both)
            .map(|(_, line)| line)
            .collect()
    }
}

/// The hunks at the cursor; none where no hunk stands there.
pub(super) fn parse_hunks(cursor: &mut Cursor) -> Result<Vec<Hunk>> {
    let mut found: Vec<Hunk> = Vec::new();
    while cursor.peek_line().starts_with(b"@@") {
        let hunk = parse_hunk(cursor)?;
        if let Some(before) = found.last() {
            let end = |start: usize, count: usize| if count == 0 { start + 1 } else { start + count };
            if hunk.old_start + usize::from(hunk.old_count == 0) < end(before.old_start, before.old_count) {
                return Err(unreadable_at(
                    hunk.line,
                    "the hunk overlaps the one before it, or stands out of order",
                ));
            }
        }
        found.push(hunk);
    }
    if !found.is_empty() {
        nothing_left_over(cursor)?;
    }
    Ok(found)
}

fn parse_hunk(cursor: &mut Cursor) -> Result<Hunk> {
    let line = cursor.line();
    let start = cursor.at();
    let head = cursor.take_whole_line()?;
    let Some([old_start, old_count, new_start, new_count]) = parse_hunk_numbers(head) else {
        return Err(unreadable_at(line, "the hunk header does not read `@@ -START,COUNT +START,COUNT @@`"));
    };
    let header = start..start + head.len();
    let body = cursor.at();
    let (mut old_left, mut new_left) = (old_count, new_count);
    let short = |cursor: &Cursor, old: usize, new: usize| {
        unreadable_at(
            cursor.line(),
            format!("the hunk of line {line} ends here, {old} old and {new} new lines short of its counts"),
        )
    };
    while old_left > 0 || new_left > 0 {
        let (old, new) = match cursor.peek_line().first() {
            Some(b' ' | b'\n') => (1, 1),
            Some(b'-') => (1, 0),
            Some(b'+') => (0, 1),
            Some(b'\\') if cursor.at() > body => (0, 0),
            _ => return Err(short(cursor, old_left, new_left)),
        };
        if old > old_left || new > new_left {
            return Err(short(cursor, old_left, new_left));
        }
        (old_left, new_left) = (old_left - old, new_left - new);
        cursor.take_whole_line()?;
    }
    if cursor.peek_line().starts_with(b"\\ ") && cursor.at() > body {
        cursor.take_whole_line()?;
    }
    if old_count == 0 && new_count == 0
        || (old_count > 0 && old_start == 0)
        || (new_count > 0 && new_start == 0)
    {
        return Err(unreadable_at(line, "the hunk header gives an impossible place"));
    }
    let hunk = Hunk { line, header, body: body..cursor.at(), old_start, old_count, new_start, new_count };
    markers_in_place(cursor.text(), &hunk)?;
    Ok(hunk)
}

/// `\ No newline` may follow only the last line of a side.
fn markers_in_place(text: &[u8], hunk: &Hunk) -> Result<()> {
    for side in [Side::Old, Side::New] {
        let lines = hunk.side_lines(text, side);
        let before_last = lines.split_last().map_or(&[][..], |(_, rest)| rest);
        if before_last.iter().any(|line| line.last() != Some(&b'\n')) {
            return Err(unreadable_at(hunk.line, "the hunk has a line without an end before another one"));
        }
    }
    Ok(())
}

/// A line that looks like one of a hunk right after the counts are used up: the counts are wrong, and git
/// would drop it without a word.
fn nothing_left_over(cursor: &mut Cursor) -> Result<()> {
    let rest = cursor.rest();
    let blanks = rest.iter().take_while(|b| **b == b'\n').count();
    let next = &rest[blanks..];
    let is_header = next.starts_with(b"--- ")
        && next.split(|b| *b == b'\n').nth(1).is_some_and(|line| line.starts_with(b"+++ "));
    let is_signature =
        next.starts_with(b"-- \n") || next.starts_with(b"--\n") || next == b"-- " || next == b"--";
    let suspicious = match next.first() {
        Some(b'+' | b'\\') => true,
        Some(b'-') => !is_header && !is_signature,
        Some(b' ') => blanks == 0,
        _ => false,
    };
    if suspicious {
        return Err(unreadable_at(
            cursor.line() + blanks,
            "a line follows that the counts of the hunk leave out",
        ));
    }
    Ok(())
}

/// The four numbers of a hunk header.
fn parse_hunk_numbers(head: &[u8]) -> Option<[usize; 4]> {
    let text = std::str::from_utf8(head.get(..head.len().min(100))?)
        .unwrap_or_else(|e| std::str::from_utf8(&head[..e.valid_up_to()]).unwrap_or_default());
    let (old, rest) = text.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let pair = |text: &str| {
        let (start, count) = text.split_once(',').unwrap_or((text, "1"));
        let number = |text: &str| {
            let digits = !text.is_empty() && text.len() < 10 && text.bytes().all(|b| b.is_ascii_digit());
            if digits { text.parse::<usize>().ok() } else { None }
        };
        Some((number(start)?, number(count)?))
    };
    let ((old_start, old_count), (new_start, new_count)) = (pair(old)?, pair(new)?);
    Some([old_start, old_count, new_start, new_count])
}

/// True for a line that is the header of a hunk.
pub(super) fn is_hunk_header(line: &[u8]) -> bool {
    parse_hunk_numbers(line).is_some()
}

/// The binary patch whose first line stands at the cursor.
pub(super) fn parse_binary(cursor: &mut Cursor) -> Result<Body> {
    cursor.take_whole_line()?;
    let Some(forward) = binary_hunk(cursor)? else {
        return Err(unreadable_at(
            cursor.line(),
            "`literal` or `delta` and a size are missing after `GIT binary patch`",
        ));
    };
    Ok(Body::Binary(forward, binary_hunk(cursor)?))
}

fn binary_hunk(cursor: &mut Cursor) -> Result<Option<BinaryHunk>> {
    let head = cursor.peek_line();
    let (kind, size) = match (head.strip_prefix(b"literal "), head.strip_prefix(b"delta ")) {
        (Some(size), _) => (BinaryKind::Literal, size),
        (_, Some(size)) => (BinaryKind::Delta, size),
        _ => return Ok(None),
    };
    let size = std::str::from_utf8(size).ok().and_then(|text| text.trim_end().parse::<u64>().ok());
    let Some(size) = size else {
        return Err(unreadable_at(cursor.line(), "the size of the binary patch is no number"));
    };
    cursor.take_whole_line()?;
    let start = cursor.at();
    while cursor.peek_line() != b"\n" {
        let line = cursor.line();
        let data = cursor.take_whole_line()?;
        if !is_encoded_line(data) {
            return Err(unreadable_at(line, "the binary patch is damaged or cut off here"));
        }
    }
    let data = start..cursor.at();
    cursor.take_whole_line()?;
    Ok(Some(BinaryHunk { kind, size, data }))
}

/// One line of git's base85: a letter for the number of bytes, then five characters for every four.
fn is_encoded_line(line: &[u8]) -> bool {
    let Some((letter, digits)) = line.split_first() else { return false };
    length_of(*letter).is_some_and(|length| digits.len() == length.div_ceil(4) * 5)
        && digits.iter().all(|digit| BASE85.contains(digit))
}

const BASE85: &[u8; 85] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";

fn length_of(letter: u8) -> Option<usize> {
    match letter {
        b'A'..=b'Z' => Some(usize::from(letter - b'A') + 1),
        b'a'..=b'z' => Some(usize::from(letter - b'a') + 27),
        _ => None,
    }
}

impl BinaryHunk {
    /// Its first bytes, still deflated: those of its first `lines` lines.
    pub fn deflated_start(&self, text: &[u8], lines: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for line in text[self.data.clone()].split(|b| *b == b'\n').take(lines).filter(|line| !line.is_empty())
        {
            let length = length_of(line[0]).unwrap_or(0);
            let words = line[1..].chunks_exact(5).flat_map(|five| {
                let digit = |b: &u8| BASE85.iter().position(|d| d == b).unwrap_or(0) as u64;
                let value = five.iter().fold(0u64, |value, b| value * 85 + digit(b));
                u32::try_from(value).unwrap_or(u32::MAX).to_be_bytes()
            });
            bytes.extend(words.take(length));
        }
        bytes
    }
}
