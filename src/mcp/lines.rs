//! The input as lines: one message a line, none longer than a limit.
//!
//! A line above the limit is skipped without being kept. Its client still waits for an answer, so the id of
//! the request is looked for in the little that is kept of it: its beginning, and its end (some clients write
//! the id last). Both looks are exact for a line that is JSON; for any other they may find an id that nobody
//! waits for, which harms nobody.

use crate::error::Result;
use serde_json::Value;
use std::io::Read;
use tokio::sync::mpsc;

/// The longest line that is taken, in bytes.
pub const LONGEST: usize = 8 << 20;

/// How much of a line that is too long is looked at, at its beginning.
const HEAD: usize = 64 << 10;
const TAIL: usize = 512;
const PIECE: usize = 64 << 10;

#[derive(Debug, PartialEq)]
pub enum InputLine {
    /// A line without its newline; the last one of the input may have had none.
    Whole(Vec<u8>),
    /// A line above the limit: the id of the request in it, where it was seen.
    TooLong(Option<Value>),
}

#[derive(Debug)]
pub struct LineSplitter {
    limit: usize,
    line: Vec<u8>,
    skipped: Option<Skipped>,
}

/// What is kept of a line that is too long.
#[derive(Debug)]
struct Skipped {
    id: Option<Value>,
    tail: Vec<u8>,
}

impl LineSplitter {
    /// With the most bytes that a line may have.
    pub fn new(limit: usize) -> Self {
        Self { limit, line: Vec::new(), skipped: None }
    }

    /// The next bytes of the input; hands out every line that ends in them.
    pub fn push(&mut self, bytes: &[u8], out: &mut impl FnMut(InputLine)) {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|b| *b == b'\n') {
            self.take_in(&rest[..end]);
            rest = &rest[end + 1..];
            out(self.finish());
        }
        self.take_in(rest);
    }

    /// The end of the input: the last line may lack its newline.
    pub fn end(&mut self, out: &mut impl FnMut(InputLine)) {
        if !self.line.is_empty() || self.skipped.is_some() {
            out(self.finish());
        }
    }

    fn take_in(&mut self, bytes: &[u8]) {
        if self.skipped.is_none() {
            if self.line.len() + bytes.len() <= self.limit {
                self.line.extend_from_slice(bytes);
                return;
            }
            let room = HEAD.saturating_sub(self.line.len()).min(bytes.len());
            self.line.extend_from_slice(&bytes[..room]);
            let line = std::mem::take(&mut self.line);
            let tail = line[line.len().saturating_sub(TAIL)..].to_vec();
            self.skipped = Some(Skipped { id: id_at_start(&line[..line.len().min(HEAD)]), tail });
        }
        if let Some(skipped) = &mut self.skipped {
            skipped.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(TAIL)..]);
            let surplus = skipped.tail.len().saturating_sub(TAIL);
            skipped.tail.drain(..surplus);
        }
    }

    fn finish(&mut self) -> InputLine {
        match self.skipped.take() {
            Some(skipped) => InputLine::TooLong(skipped.id.or_else(|| id_at_end(&skipped.tail))),
            None => InputLine::Whole(std::mem::take(&mut self.line)),
        }
    }
}

/// Reads an input on a thread of its own, as far ahead as one line. The channel closes at its end; an input
/// that cannot be read has ended.
pub fn read_lines(mut input: impl Read + Send + 'static) -> Result<mpsc::Receiver<InputLine>> {
    let (give, lines) = mpsc::channel(1);
    super::start_thread(move || {
        let mut splitter = LineSplitter::new(LONGEST);
        let mut piece = vec![0; PIECE];
        let mut found = Vec::new();
        loop {
            let got = match input.read(&mut piece) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Ok(0) | Err(_) => break,
                Ok(got) => got,
            };
            splitter.push(&piece[..got], &mut |line| found.push(line));
            for line in found.drain(..) {
                if give.blocking_send(line).is_err() {
                    return;
                }
            }
        }
        splitter.end(&mut |line| found.push(line));
        for line in found {
            let _ = give.blocking_send(line);
        }
    })?;
    Ok(lines)
}

/// A request's id, where a line that cannot be read shows it.
pub(super) fn id_of(line: &[u8]) -> Option<Value> {
    id_at_start(line).or_else(|| id_at_end(line))
}

/// A request's id among the members of the outermost object, as far as these bytes go.
fn id_at_start(head: &[u8]) -> Option<Value> {
    let (mut at, mut depth) = (0, 0_usize);
    while at < head.len() {
        match head[at] {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let end = at + string_length(&head[at..])?;
                if depth == 1
                    && &head[at..end] == b"\"id\""
                    && let Some(value) = after_colon(&head[end..])
                {
                    return whole_value(value);
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// The id as the last member of the outermost object: in JSON nothing else can look like it there, since
/// quotes within a string are escaped.
fn id_at_end(tail: &[u8]) -> Option<Value> {
    let members = tail.trim_ascii_end().strip_suffix(b"}")?.trim_ascii_end();
    let key = b"\"id\"";
    let at = members.windows(key.len()).rposition(|window| window == key)?;
    matches!(members[..at].trim_ascii_end().last(), Some(b',' | b'{')).then_some(())?;
    usable(serde_json::from_slice(after_colon(&members[at + key.len()..])?).ok()?)
}

fn after_colon(bytes: &[u8]) -> Option<&[u8]> {
    Some(bytes.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start())
}

/// The value that these bytes begin with; none where it may go on behind them.
fn whole_value(bytes: &[u8]) -> Option<Value> {
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<Value>();
    let value = values.next()?.ok()?;
    (values.byte_offset() < bytes.len()).then_some(())?;
    usable(value)
}

fn usable(value: Value) -> Option<Value> {
    (value.is_string() || value.is_i64()).then_some(value)
}

/// The length of the JSON string that these bytes begin with, quotes included.
fn string_length(bytes: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn split(limit: usize, input: &[u8], piece: usize) -> Vec<InputLine> {
        let mut splitter = LineSplitter::new(limit);
        let mut lines = Vec::new();
        for bytes in input.chunks(piece) {
            splitter.push(bytes, &mut |line| lines.push(line));
        }
        splitter.end(&mut |line| lines.push(line));
        lines
    }

    #[test]
    fn lines_are_the_same_however_they_arrive() {
        let long = format!("{{\"id\":7,\"params\":\"{}\"}}", "x".repeat(90));
        let input = format!("one\n\n{long}\ntwo\r\nlast");
        let expected = vec![
            InputLine::Whole(b"one".to_vec()),
            InputLine::Whole(Vec::new()),
            InputLine::TooLong(Some(json!(7))),
            InputLine::Whole(b"two\r".to_vec()),
            InputLine::Whole(b"last".to_vec()),
        ];
        for piece in [1, 2, 3, 7, 50, 1000] {
            assert_eq!(split(50, input.as_bytes(), piece), expected, "in pieces of {piece}");
        }
    }

    #[test]
    fn a_line_of_exactly_the_limit_is_taken() {
        assert_eq!(split(4, b"1234\n", 2), [InputLine::Whole(b"1234".to_vec())]);
        assert_eq!(split(4, b"12345\n", 2), [InputLine::TooLong(None)]);
        assert_eq!(split(4, b"12345", 5), [InputLine::TooLong(None)]);
    }

    #[test]
    fn little_is_kept_of_a_line_that_is_too_long() {
        let mut splitter = LineSplitter::new(1000);
        for _ in 0..10_000 {
            splitter.push(&[b'x'; 1000], &mut |_| panic!("no line ended"));
            let kept = splitter.line.capacity() + splitter.skipped.as_ref().map_or(0, |s| s.tail.capacity());
            assert!(kept <= HEAD + 4096, "{kept} bytes are kept");
        }
        assert_eq!(splitter.finish(), InputLine::TooLong(None));
    }

    #[test]
    fn the_id_is_seen_at_the_outermost_level_only() {
        let seen = |head: &str| id_at_start(head.as_bytes());
        assert_eq!(seen(r#"{"jsonrpc":"2.0", "id" : 12 ,"params"#), Some(json!(12)));
        assert_eq!(seen(r#"{"id":"a\"b","x"#), Some(json!("a\"b")));
        assert_eq!(seen(r#"{"params":{"id":1},"a":["id"],"b":"id","id":2,"#), Some(json!(2)));
        assert_eq!(seen(r#"{"params":{"id":1},"text":"\"id\":3,"#), None);
        assert_eq!(seen(r#"{"id":12"#), None, "it may go on");
        for odd in [r#"{"id":1.5,"#, r#"{"id":null,"#, r#"{"id":{},"#, r#"["id",1,"#, r#"{"id"#, ""] {
            assert_eq!(seen(odd), None, "{odd}");
        }
    }

    #[test]
    fn the_id_is_seen_at_the_end() {
        let seen = |tail: &str| id_at_end(tail.as_bytes());
        assert_eq!(seen(r#"xxx"},"jsonrpc":"2.0","id":41}"#), Some(json!(41)));
        assert_eq!(seen(r#"xxx"}, "id" : "abc" } "#), Some(json!("abc")));
        for odd in
            [r#"x \"id\":4}"#, r#"x"id":4}"#, r#","id":{"a":1}}"#, r#","id":4"#, r#","id":4,"b":1}"#, ""]
        {
            assert_eq!(seen(odd), None, "{odd}");
        }
    }

    /// However the bytes come, they make the same messages, and nothing of them is lost.
    #[test]
    fn fuzz_messages_of_a_client() {
        const CALL: &[u8] = br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x","arguments":{"id":"a\"b"}}}
{"method":"x","id":"s"}
"#;
        let words: &[&[u8]] = &[b"\"id\":", b"\"", b"\\", b"\\u00", b"{", b"}", b"[", b"\n", b"1.5", b"null"];
        crate::fuzz::holds(&[CALL], words, |bytes| {
            let _ = id_of(bytes);
            // Where an id may be looked for depends on the pieces only below the limit that is in force.
            let shape = |line: &InputLine| matches!(line, InputLine::Whole(_));
            for limit in [10, 1000, LONGEST] {
                let (pieces, whole) = (split(limit, bytes, 7), split(limit, bytes, bytes.len().max(1)));
                assert!(pieces.iter().map(shape).eq(whole.iter().map(shape)));
            }
            assert_eq!(split(LONGEST, bytes, 7), split(LONGEST, bytes, bytes.len().max(1)));
            let whole: Vec<u8> = split(LONGEST, bytes, 100)
                .into_iter()
                .flat_map(|line| match line {
                    InputLine::Whole(line) => [line, b"\n".to_vec()].concat(),
                    InputLine::TooLong(_) => panic!("no line is that long"),
                })
                .collect();
            assert_eq!(
                whole.strip_suffix(b"\n").unwrap_or_default(),
                bytes.strip_suffix(b"\n").unwrap_or(bytes)
            );
        });
    }
}
