//! What is kept of a stream: its head and its tail, up to a cap, after redaction.
//!
//! The first lines say what was started and the last ones say how it ended, so half of the cap goes to each.
//! The gap is at line borders, where the lines are not longer than that allows, and never inside of a
//! character; a line in between tells how much was left out. Memory never exceeds the cap plus one read.

use std::collections::VecDeque;

use super::redact::{Redactor, Secrets};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Captured {
    /// What was kept, redacted; the cap plus at most one marker line.
    pub bytes: Vec<u8>,
    /// How many bytes the program wrote, before redaction and cap.
    pub total: u64,
    /// True if something is missing: beyond the cap, or not readable before the drain's deadline.
    pub truncated: bool,
}

/// Takes a stream piece by piece.
pub struct Collector {
    redactor: Redactor,
    head: Vec<u8>,
    head_cap: usize,
    tail: VecDeque<u8>,
    tail_cap: usize,
    total: u64,
    left_out: u64,
    /// True where what stands before the tail ends with a line.
    tail_begins_a_line: bool,
}

impl Collector {
    /// A collector that keeps at most `cap` bytes.
    pub fn new(secrets: &Secrets, cap: u64) -> Self {
        let cap = usize::try_from(cap).unwrap_or(usize::MAX);
        let head_cap = cap.div_ceil(2);
        Self {
            redactor: secrets.stream_redactor(),
            head: Vec::new(),
            head_cap,
            tail: VecDeque::new(),
            tail_cap: cap - head_cap,
            total: 0,
            left_out: 0,
            tail_begins_a_line: false,
        }
    }

    /// Takes the next bytes as they were read.
    pub fn push_bytes(&mut self, raw: &[u8]) {
        self.total += raw.len() as u64;
        let clean = self.redactor.push_bytes(raw);
        self.keep_bounded(&clean);
    }

    /// How many bytes were taken so far.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Ends the stream. `complete` is false if the reader gave up before its end.
    pub fn finish_stream(mut self, complete: bool) -> Captured {
        let rest = self.redactor.finish_stream();
        self.keep_bounded(&rest);
        let mut bytes = self.head;
        let tail = self.tail.make_contiguous();
        if self.left_out > 0 {
            let (end, begin) = (end_of_head(&bytes), begin_of_tail(tail, self.tail_begins_a_line));
            self.left_out += (bytes.len() - end + begin) as u64;
            bytes.truncate(end);
            self.tail.drain(..begin);
            if bytes.last().is_some_and(|last| *last != b'\n') {
                bytes.push(b'\n');
            }
            bytes.extend_from_slice(format!("[... {} bytes left out ...]\n", self.left_out).as_bytes());
        }
        bytes.extend_from_slice(self.tail.make_contiguous());
        Captured { bytes, total: self.total, truncated: self.left_out > 0 || !complete }
    }

    fn keep_bounded(&mut self, clean: &[u8]) {
        let into_head = clean.len().min(self.head_cap - self.head.len());
        let (head, rest) = clean.split_at(into_head);
        self.head.extend_from_slice(head);
        let useful = rest.len().min(self.tail_cap);
        self.left_out += (rest.len() - useful) as u64;
        let (skipped, useful) = rest.split_at(rest.len() - useful);
        let overflow = (self.tail.len() + useful.len()).saturating_sub(self.tail_cap);
        // What is skipped came after the old tail, all of which is then dropped too.
        if let Some(last) = skipped.last().or(overflow.checked_sub(1).and_then(|at| self.tail.get(at))) {
            self.tail_begins_a_line = *last == b'\n';
        }
        self.tail.drain(..overflow);
        self.left_out += overflow as u64;
        self.tail.extend(useful);
    }
}

/// Where the last line that is whole ends; where that would cost more than half, the last character.
fn end_of_head(head: &[u8]) -> usize {
    match head.iter().rposition(|byte| *byte == b'\n') {
        Some(at) if at + 1 >= head.len() / 2 => at + 1,
        _ => {
            // A character has four bytes at most; of other bytes nothing is taken away.
            let begin = (1..=head.len().min(4))
                .map(|back| head.len() - back)
                .find(|at| !continues_character(head[*at]));
            begin.filter(|at| cut_short(&head[*at..])).unwrap_or(head.len())
        }
    }
}

/// Where the first line that is whole begins; where that would cost more than half, the first character.
fn begin_of_tail(tail: &[u8], begins_a_line: bool) -> usize {
    if begins_a_line {
        return 0;
    }
    match tail.iter().position(|byte| *byte == b'\n') {
        Some(at) if at < tail.len() / 2 => at + 1,
        _ => tail.iter().take(4).position(|byte| !continues_character(*byte)).unwrap_or(if tail.len() < 4 {
            tail.len()
        } else {
            0
        }),
    }
}

/// True for a byte that is never the first of a character.
fn continues_character(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

/// True where a character begins that has not all of its bytes.
fn cut_short(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture_pieces(cap: u64, pieces: &[&[u8]]) -> Captured {
        let mut collector = Collector::new(&Secrets::new(&[b"hunter2".to_vec()]), cap);
        for piece in pieces {
            collector.push_bytes(piece);
        }
        collector.finish_stream(true)
    }

    #[test]
    fn below_the_cap_everything_is_kept() {
        let got = capture_pieces(10, &[b"01234", b"56789"]);
        assert_eq!(got.bytes, b"0123456789");
        assert_eq!((got.total, got.truncated), (10, false));
    }

    #[test]
    fn head_and_tail_are_kept_and_the_gap_is_counted() {
        for pieces in [&[b"aaaabbbbccccdddd".as_slice()][..], &[b"aaaab".as_slice(), b"bbbcc", b"ccdddd"][..]]
        {
            let got = capture_pieces(8, pieces);
            assert_eq!(String::from_utf8_lossy(&got.bytes), "aaaa\n[... 8 bytes left out ...]\ndddd");
            assert_eq!((got.total, got.truncated), (16, true));
        }
    }

    #[test]
    fn the_gap_lies_between_lines_and_never_inside_of_a_character() {
        let text = |cap, pieces: &[&[u8]]| {
            String::from_utf8(capture_pieces(cap, pieces).bytes).expect("whole characters")
        };
        let lines = b"one\ntwo\nthree\nfour\nfive\nsix\n".as_slice();
        assert_eq!(text(18, &[lines]), "one\ntwo\n[... 11 bytes left out ...]\nfive\nsix\n");
        // The tail begins with a line by itself: none of it is lost.
        assert_eq!(text(18, &[&lines[..9], &lines[9..]]), text(18, &[lines]));
        assert_eq!(text(8, &[b"abc\nxxxxxxxx\nefg\n"]), "abc\n[... 9 bytes left out ...]\nefg\n");
        for cap in 1..16 {
            let wide = "\u{20ac}".repeat(20);
            let kept = text(cap, &[wide.as_bytes()]).replace('\u{20ac}', "");
            assert!(kept.trim().starts_with("[... ") && kept.trim().ends_with(" ...]"), "{kept}");
        }
    }

    #[test]
    fn the_cap_cannot_cut_a_secret_out_of_sight_of_the_redactor() {
        let got = capture_pieces(16, &[b"12345hunt", b"er2 and then a lot more text hun", b"ter2"]);
        let text = String::from_utf8_lossy(&got.bytes).into_owned();
        assert!(!text.contains("hunt") && !text.contains("ter2"), "{text}");
    }

    #[test]
    fn no_cap_and_an_early_end_are_said() {
        let got = capture_pieces(0, &[b"abc"]);
        assert_eq!((got.total, got.truncated), (3, true));
        assert!(Collector::new(&Secrets::new(&[]), 9).finish_stream(false).truncated);
    }
}
