//! `read_file`: text of a worktree file or of a stored log, by lines or bytes, with the ids of all of its
//! bytes.

use super::patch_formats::quote_line;
use super::place::Place;
use super::text;
use crate::domain::value::digest::Sha256;
use crate::domain::value::outside::Origin;
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Code, Failure, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most bytes of text in one answer.
pub const MOST_TEXT: usize = 128 << 10;

/// Arguments: one of `path` and `ref`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadFileArguments {
    /// A file of the worktree, relative to its top.
    #[serde(default)]
    pub path: Option<String>,
    /// A stored log of this task: `sha256:…`.
    #[serde(default, rename = "ref")]
    pub reference: Option<String>,
    /// Lines from 1: `"10-20"`, `"10-"`, `"10"`, `10`, or `[10, 20]`. All where it is left out.
    #[serde(default)]
    pub lines: Option<LinesArgument>,
    /// Bytes of the text as UTF-8, from 0, the last one included: `"0-4095"` or `"4096-"`; for a line that is
    /// too long. Widened to whole characters; `bytesShown` says what was given. Not beside `lines`.
    #[serde(default)]
    pub bytes: Option<String>,
}

/// A range of lines as written.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum LinesArgument {
    /// `"10-20"`, `"10-"` or `"10"`
    Text(String),
    /// `10`
    One(u64),
    /// `[10, 20]`
    Pair([u64; 2]),
    /// What is none of these; so that it is refused in words.
    #[schemars(skip)]
    Other(serde_json::Value),
}

/// What was read.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReadFileAnswer {
    /// The file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The stored log.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The lines that were asked for, as far as they fit; null where it is no text.
    pub text: Option<String>,
    /// `utf-8`, `utf-8-bom`, `utf-16le`, `utf-16be`, `iso-8859-1` or `binary`; of a log that holds NUL
    /// `utf-8-lossy`.
    #[schemars(with = "String")]
    pub encoding: text::Encoding,
    /// First and last line of the text, and how many there are in all; null where it is no text.
    pub lines: Option<LineRange>,
    /// Which bytes of the whole text, as UTF-8, this is; null where it is no text.
    pub bytes_shown: Option<ByteRange>,
    /// Length of all of it, in bytes.
    pub bytes: u64,
    /// Git's id of all bytes as they are on disk; quote it in `expected`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git_blob: Option<String>,
    /// The sha256 of all bytes.
    pub sha256: String,
    /// True where not all that was asked for did fit; `next` says how to go on.
    pub truncated: bool,
    /// The argument that gives the rest: one of `lines` and `bytes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<NextPart>,
    /// Where the text came from.
    pub origin: Origin,
}

/// First, last and number of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LineRange {
    /// The first line of the text, from 1.
    pub first: u64,
    /// The last line of the text; less than `first` where there is none.
    pub last: u64,
    /// How many lines there are.
    pub total: u64,
}

/// A part of a text in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ByteRange {
    /// The first byte, from 0.
    pub first: u64,
    /// The byte after the last one.
    pub end: u64,
    /// How many there are.
    pub total: u64,
}

/// How to go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NextPart {
    /// From the first line that is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<String>,
    /// From the first byte that is missing, where that is inside of a line or bytes were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<String>,
}

/// What is to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadTarget {
    /// A file.
    File(RepoPath),
    /// A stored blob.
    Stored(Sha256),
}

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WantedPart {
    /// Lines, from 1; the last, which is included, may be open.
    Lines((u64, Option<u64>)),
    /// Bytes, from 0, likewise.
    Bytes((u64, Option<u64>)),
}

impl ReadFileArguments {
    /// What they name: exactly one of both.
    pub fn read_target(&self) -> Result<ReadTarget> {
        match (&self.path, &self.reference) {
            (Some(path), None) => Place::check_path(path).map(ReadTarget::File),
            (None, Some(reference)) => reference
                .strip_prefix("sha256:")
                .unwrap_or(reference)
                .parse()
                .map(ReadTarget::Stored)
                .map_err(|_| {
                    Failure::new(Code::ArgumentsInvalid, "`ref` is no reference of this task")
                        .subject("ref")
                        .expected("sha256:…", quote_line(reference))
                }),
            (path, reference) => {
                Err(Failure::new(Code::ArgumentsInvalid, "read_file takes either `path` or `ref`")
                    .subject("path")
                    .expected(
                        "one of path and ref",
                        [path, reference].map(|text| text.as_deref().map(quote_line)),
                    ))
            }
        }
    }

    /// What is asked for of the text. Refused where it is no range, or two.
    pub fn wanted_part(&self) -> Result<WantedPart> {
        match self.byte_range()? {
            Some(bytes) => Ok(WantedPart::Bytes(bytes)),
            None => self.line_range().map(WantedPart::Lines),
        }
    }

    /// The lines that are asked for, from 1; the last may be open.
    fn line_range(&self) -> Result<(u64, Option<u64>)> {
        let wrong = |shown: String| {
            let shown = quote_line(&shown);
            Failure::new(Code::ArgumentsInvalid, format!("`lines` is {shown}, which is no range of lines"))
                .subject("lines")
                .expected("\"10-20\", \"10-\", \"10\", 10 or [10, 20], from 1", shown)
        };
        let (first, last, shown) = match &self.lines {
            None => return Ok((1, None)),
            Some(LinesArgument::Pair([first, last])) => {
                (Some(*first), Some(Some(*last)), format!("[{first}, {last}]"))
            }
            Some(LinesArgument::One(line)) => (Some(*line), Some(Some(*line)), line.to_string()),
            Some(LinesArgument::Other(value)) => (None, None, value.to_string()),
            Some(LinesArgument::Text(text)) => {
                let (first, last) = parse_line_range(text);
                (first, last, format!("{text:?}"))
            }
        };
        match (first, last) {
            (Some(first), Some(last)) if first > 0 && last.is_none_or(|last| last >= first) => {
                Ok((first, last))
            }
            _ => Err(wrong(shown)),
        }
    }

    /// The bytes that are asked for, from 0; the last, which is included, may be open. `None` where lines are
    /// meant.
    fn byte_range(&self) -> Result<Option<(u64, Option<u64>)>> {
        let Some(text) = &self.bytes else { return Ok(None) };
        if self.lines.is_some() {
            return Err(Failure::new(Code::ArgumentsInvalid, "read_file takes either `lines` or `bytes`")
                .subject("bytes")
                .expected("one of lines and bytes", "both"));
        }
        match parse_line_range(text) {
            (Some(first), Some(last)) if last.is_none_or(|last| last >= first) => Ok(Some((first, last))),
            _ => Err(Failure::new(
                Code::ArgumentsInvalid,
                format!("`bytes` is {:?}, which is no range of bytes", quote_line(text)),
            )
            .subject("bytes")
            .expected("\"0-4095\" or \"4096-\", from 0", quote_line(text))),
        }
    }
}

/// First and last of `"10-20"`, `"10-"` (an open last) or `"10"`; `None` for each that is no number.
fn parse_line_range(text: &str) -> (Option<u64>, Option<Option<u64>>) {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let last = if last.trim().is_empty() { Some(None) } else { last.trim().parse().ok().map(Some) };
    (first.trim().parse().ok(), last)
}

/// Reads a file of the worktree.
pub fn read_worktree_file(
    place: &Place<'_>,
    path: &RepoPath,
    arguments: &ReadFileArguments,
) -> Result<ReadFileAnswer> {
    let bytes = place.read_bytes(path)?;
    let origin = Origin::new("file", path.to_string());
    let answer = answer_with_part(&bytes, text::decode_text(&bytes), arguments, origin)?;
    Ok(ReadFileAnswer {
        path: Some(path.to_string()),
        git_blob: Some(place.blob_id(&bytes)?.to_string()),
        ..answer
    })
}

/// Shows a stored log, whatever it holds.
pub fn read_stored_log(
    bytes: &[u8],
    digest: &Sha256,
    arguments: &ReadFileArguments,
) -> Result<ReadFileAnswer> {
    let reference = format!("sha256:{digest}");
    let answer =
        answer_with_part(bytes, Some(text::decode_lossy(bytes)), arguments, Origin::new("log", &reference))?;
    Ok(ReadFileAnswer { reference: Some(reference), ..answer })
}

fn answer_with_part(
    bytes: &[u8],
    decoded: Option<(text::Encoding, String)>,
    arguments: &ReadFileArguments,
    origin: Origin,
) -> Result<ReadFileAnswer> {
    let encoding = decoded.as_ref().map_or(text::Encoding::Binary, |(encoding, _)| *encoding);
    let part = match (&decoded, arguments.wanted_part()?) {
        (None, _) => None,
        (Some((_, text)), WantedPart::Bytes(range)) => Some(part_of_bytes(text, range)?),
        (Some((_, text)), WantedPart::Lines(range)) => Some(part_of_lines(text, range)?),
    };
    let next = part.as_ref().and_then(|part| part.next.clone());
    Ok(ReadFileAnswer {
        path: None,
        reference: None,
        encoding,
        lines: part.as_ref().map(|part| part.lines),
        bytes_shown: part.as_ref().map(|part| part.bytes),
        text: part.map(|part| part.text),
        bytes: bytes.len() as u64,
        git_blob: None,
        sha256: Sha256::of(bytes).to_string(),
        truncated: next.is_some(),
        next,
        origin,
    })
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TextPart {
    text: String,
    lines: LineRange,
    bytes: ByteRange,
    /// Where not all that was wanted did fit.
    next: Option<NextPart>,
}

impl TextPart {
    /// What stands from `start` to `end`, which begins in the line `first` of `total`.
    fn new(
        text: &str,
        (start, end): (usize, usize),
        (first, total): (u64, u64),
        next: Option<NextPart>,
    ) -> Self {
        let shown = &text[start..end];
        let last = first.saturating_sub(1) + count_lines(shown);
        let bytes = ByteRange { first: start as u64, end: end as u64, total: text.len() as u64 };
        Self { text: shown.to_owned(), lines: LineRange { first, last, total }, bytes, next }
    }
}

fn count_lines(text: &str) -> u64 {
    text.split_inclusive('\n').count() as u64
}

/// The lines of a range, as many as fit; a line that alone does not fit is cut within.
fn part_of_lines(text: &str, (first, last): (u64, Option<u64>)) -> Result<TextPart> {
    let total = count_lines(text);
    if first > total.max(1) {
        return Err(Failure::new(
            Code::ArgumentsInvalid,
            format!("there is no line {first}: the text has {total}"),
        )
        .subject("lines")
        .expected(format!("lines from 1 to {total}"), first));
    }
    let before = |line: u64| -> usize {
        text.split_inclusive('\n').zip(0..).take_while(|(_, at)| *at < line).map(|(line, _)| line.len()).sum()
    };
    let (start, wanted) = (before(first - 1), before(last.unwrap_or(total).min(total)));
    if wanted - start <= MOST_TEXT {
        return Ok(TextPart::new(text, (start, wanted), (first, total), None));
    }
    let most = character_boundary(text, start + MOST_TEXT);
    let Some(whole) = text[start..most].rfind('\n') else {
        let next = NextPart { lines: None, bytes: Some(format!("{most}-{}", wanted - 1)) };
        return Ok(TextPart::new(text, (start, most), (first, total), Some(next)));
    };
    let mut part = TextPart::new(text, (start, start + whole + 1), (first, total), None);
    let last = last.map(|last| last.to_string()).unwrap_or_default();
    part.next = Some(NextPart { lines: Some(format!("{}-{last}", part.lines.last + 1)), bytes: None });
    Ok(part)
}

/// The bytes of a range, widened to whole characters, as many as fit.
fn part_of_bytes(text: &str, (first, last): (u64, Option<u64>)) -> Result<TextPart> {
    let total = text.len();
    let start = usize::try_from(first).ok().filter(|first| *first < total.max(1)).ok_or_else(|| {
        Failure::new(Code::ArgumentsInvalid, format!("there is no byte {first}: the text has {total}"))
            .subject("bytes")
            .expected(format!("bytes from 0, less than {total}"), first)
    })?;
    let start = character_boundary(text, start);
    let last = last.and_then(|last| usize::try_from(last).ok()).unwrap_or(usize::MAX);
    let wanted = last.saturating_add(1).min(total);
    let wanted = (wanted..=total).find(|at| text.is_char_boundary(*at)).unwrap_or(total);
    let place = (1 + text[..start].matches('\n').count() as u64, count_lines(text));
    if wanted - start <= MOST_TEXT {
        return Ok(TextPart::new(text, (start, wanted), place, None));
    }
    let end = character_boundary(text, start + MOST_TEXT);
    let next = NextPart { lines: None, bytes: Some(format!("{end}-{}", wanted - 1)) };
    Ok(TextPart::new(text, (start, end), place, Some(next)))
}

/// The last place at or before `at` where a character begins.
fn character_boundary(line: &str, at: usize) -> usize {
    (0..=at).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments_with_lines(lines: serde_json::Value) -> ReadFileArguments {
        serde_json::from_value(serde_json::json!({ "path": "a", "lines": lines })).expect("arguments")
    }

    #[test]
    fn ranges_are_read_in_every_form() {
        for (written, range) in [
            (serde_json::json!("2-3"), (2, Some(3))),
            (serde_json::json!("2-"), (2, None)),
            (serde_json::json!("2"), (2, Some(2))),
            (serde_json::json!([2, 3]), (2, Some(3))),
            (serde_json::Value::Null, (1, None)),
        ] {
            assert_eq!(arguments_with_lines(written).line_range().expect("a range"), range);
        }
        for wrong in ["0-1", "3-2", "x", "", "-", "-3", "1-2-3"] {
            assert!(arguments_with_lines(serde_json::json!(wrong)).line_range().is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_no_range_is_refused_in_our_words() {
        assert_eq!(arguments_with_lines(serde_json::json!(5)).line_range().expect("a line"), (5, Some(5)));
        for wrong in
            [serde_json::json!([1]), serde_json::json!({}), serde_json::json!(-1), serde_json::json!(true)]
        {
            let failure = arguments_with_lines(wrong.clone()).line_range().expect_err("no range");
            assert!(failure.message().contains(&wrong.to_string()), "{}", failure.message());
        }
    }

    #[test]
    fn both_kinds_of_ranges_are_checked_before_anything_is_read() {
        let ask = |json: serde_json::Value| -> Result<WantedPart> {
            serde_json::from_value::<ReadFileArguments>(json).expect("arguments").wanted_part()
        };
        assert_eq!(ask(serde_json::json!({"bytes": "0-9"})).expect("fine"), WantedPart::Bytes((0, Some(9))));
        assert_eq!(ask(serde_json::json!({"lines": 2})).expect("fine"), WantedPart::Lines((2, Some(2))));
        let long = "9".repeat(1 << 20);
        for wrong in [
            serde_json::json!({"bytes": "x"}),
            serde_json::json!({"bytes": "3-1"}),
            serde_json::json!({"bytes": "0-1", "lines": 1}),
            serde_json::json!({"bytes": long}),
            serde_json::json!({"lines": long}),
            serde_json::json!({"lines": [1, 2, long]}),
        ] {
            let failure = ask(wrong).expect_err("no range");
            assert!(serde_json::to_vec(&failure).expect("json").len() < 4_000, "{failure}");
        }
    }

    #[test]
    fn lines_are_cut_whole_and_say_so() {
        let text = "one\ntwo\nthree";
        let cut = |text: &str, first, last| part_of_lines(text, (first, last));
        let two = cut(text, 2, Some(9)).expect("lines");
        assert_eq!((two.text.as_str(), two.lines), ("two\nthree", LineRange { first: 2, last: 3, total: 3 }));
        assert_eq!((two.bytes, two.next), (ByteRange { first: 4, end: 13, total: 13 }, None));
        assert_eq!(cut(text, 1, Some(1)).expect("a line").text, "one\n");
        assert!(cut(text, 4, None).is_err());
        assert_eq!(cut("", 1, None).expect("nothing").lines, LineRange { first: 1, last: 0, total: 0 });
        let short = "0123456789\n".repeat(MOST_TEXT / 5);
        let part = cut(&short, 2, None).expect("lines");
        assert!(part.text.ends_with('\n') && part.text.len() <= MOST_TEXT, "{:?}", part.lines);
        assert_eq!(part.next.expect("more").lines, Some(format!("{}-", part.lines.last + 1)));
    }

    #[test]
    fn a_line_that_is_too_long_is_read_to_its_end_by_bytes() {
        let long = format!("a\n{}\nend\n", "\u{e9}\u{20ac}".repeat(MOST_TEXT));
        let mut part = part_of_lines(&long, (2, Some(2))).expect("lines");
        assert_eq!((part.bytes.first, part.lines), (2, LineRange { first: 2, last: 2, total: 3 }));
        let mut read = part.text.clone();
        while let Some(next) = part.next {
            let (first, last) = parse_line_range(&next.bytes.expect("bytes"));
            part = part_of_bytes(&long, (first.expect("a number"), last.expect("a number"))).expect("bytes");
            assert!(part.text.len() <= MOST_TEXT && part.lines.first == 2, "{:?}", part.lines);
            read.push_str(&part.text);
        }
        assert_eq!(read, long.split_inclusive('\n').nth(1).expect("the line"));
        let inside = part_of_bytes("a\u{20ac}b", (2, Some(2))).expect("bytes");
        assert_eq!(
            (inside.text.as_str(), inside.bytes),
            ("\u{20ac}", ByteRange { first: 1, end: 4, total: 5 })
        );
        assert!(part_of_bytes("ab", (2, None)).is_err());
    }

    #[test]
    fn a_log_is_text_whatever_it_holds_and_lines_and_bytes_are_not_mixed() {
        let log = b"one\0\ntwo \xff\n";
        let ask = |json: serde_json::Value| {
            read_stored_log(log, &Sha256::of(log), &serde_json::from_value(json).expect("arguments"))
        };
        let answer = ask(serde_json::json!({"ref": "x", "lines": 2})).expect("a log");
        assert_eq!(
            (answer.text.as_deref(), answer.encoding),
            (Some("two \u{fffd}\n"), text::Encoding::Lossy)
        );
        assert!(ask(serde_json::json!({"ref": "x", "lines": 2, "bytes": "0-1"})).is_err());
        assert!(ask(serde_json::json!({"ref": "x", "bytes": "3-1"})).is_err());
    }
}
