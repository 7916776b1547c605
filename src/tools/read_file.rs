//! `read_file`: text of a worktree file or of a stored log, by lines, with the ids of all of its bytes.

use super::place::Place;
use super::text;
use crate::domain::call::Origin;
use crate::domain::digest::Sha256;
use crate::domain::repo_path::RepoPath;
use crate::error::{Code, Failure, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most bytes of text in one answer.
pub const MOST_TEXT: usize = 128 << 10;

/// Arguments: one of `path` and `ref`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// A file of the worktree, relative to its top.
    #[serde(default)]
    pub path: Option<String>,
    /// A stored log of this task: `sha256:…`.
    #[serde(default, rename = "ref")]
    pub reference: Option<String>,
    /// Lines from 1: `"10-20"`, `"10-"`, `"10"`, or `[10, 20]`. All where it is left out.
    #[serde(default)]
    pub lines: Option<Lines>,
}

/// A range of lines as written.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Lines {
    /// `"10-20"`, `"10-"` or `"10"`
    Text(String),
    /// `[10, 20]`
    Pair([u64; 2]),
}

/// What was read.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// The file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The stored log.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The lines that were asked for, as far as they fit; null where it is no text.
    pub text: Option<String>,
    /// `utf-8`, `utf-8-bom`, `utf-16le`, `utf-16be`, `iso-8859-1` or `binary`.
    #[schemars(with = "String")]
    pub encoding: text::Encoding,
    /// First and last line of the text, and how many there are in all; null where it is no text.
    pub lines: Option<Range>,
    /// Length of all of it, in bytes.
    pub bytes: u64,
    /// Git's id of all bytes as they are on disk; quote it in `expected`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git_blob: Option<String>,
    /// The sha256 of all bytes.
    pub sha256: String,
    /// True where lines that were asked for did not fit; go on with those after the last one.
    pub truncated: bool,
    /// Where the text came from.
    pub origin: Origin,
}

/// First, last and number of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Range {
    /// The first line of the text, from 1.
    pub first: u64,
    /// The last line of the text; less than `first` where there is none.
    pub last: u64,
    /// How many lines there are.
    pub total: u64,
}

/// What is to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A file.
    File(RepoPath),
    /// A stored blob.
    Stored(Sha256),
}

impl Arguments {
    /// What they name: exactly one of both.
    pub fn target(&self) -> Result<Target> {
        match (&self.path, &self.reference) {
            (Some(path), None) => Place::path(path).map(Target::File),
            (None, Some(reference)) => {
                reference.strip_prefix("sha256:").unwrap_or(reference).parse().map(Target::Stored).map_err(
                    |_| {
                        Failure::new(Code::ArgumentsInvalid, "`ref` is no reference of this task")
                            .subject("ref")
                            .expected("sha256:…", reference)
                    },
                )
            }
            (path, reference) => {
                Err(Failure::new(Code::ArgumentsInvalid, "read_file takes either `path` or `ref`")
                    .subject("path")
                    .expected("one of path and ref", [path, reference]))
            }
        }
    }

    /// The lines that are asked for, from 1; the last may be open.
    pub fn range(&self) -> Result<(u64, Option<u64>)> {
        let wrong = |shown: String| {
            Failure::new(Code::ArgumentsInvalid, format!("`lines` is {shown}, which is no range of lines"))
                .subject("lines")
                .expected("\"10-20\", \"10-\", \"10\" or [10, 20], from 1", shown)
        };
        let (first, last, shown) = match &self.lines {
            None => return Ok((1, None)),
            Some(Lines::Pair([first, last])) => {
                (Some(*first), Some(Some(*last)), format!("[{first}, {last}]"))
            }
            Some(Lines::Text(text)) => {
                let (first, last) = text.split_once('-').unwrap_or((text, text));
                let last =
                    if last.trim().is_empty() { Some(None) } else { last.trim().parse().ok().map(Some) };
                (first.trim().parse().ok(), last, format!("{text:?}"))
            }
        };
        match (first, last) {
            (Some(first), Some(last)) if first > 0 && last.is_none_or(|last| last >= first) => {
                Ok((first, last))
            }
            _ => Err(wrong(shown)),
        }
    }
}

/// Reads a file of the worktree.
pub fn file(place: &Place<'_>, path: &RepoPath, arguments: &Arguments) -> Result<Answer> {
    let bytes = place.bytes(path)?;
    let origin = Origin::new("file", path.to_string());
    let answer = answer(&bytes, arguments, origin)?;
    Ok(Answer { path: Some(path.to_string()), git_blob: Some(place.blob(&bytes)?.to_string()), ..answer })
}

/// Shows a stored log.
pub fn stored(bytes: &[u8], digest: &Sha256, arguments: &Arguments) -> Result<Answer> {
    let reference = format!("sha256:{digest}");
    let answer = answer(bytes, arguments, Origin::new("log", &reference))?;
    Ok(Answer { reference: Some(reference), ..answer })
}

fn answer(bytes: &[u8], arguments: &Arguments, origin: Origin) -> Result<Answer> {
    let decoded = text::decode(bytes);
    let (text, lines, truncated) = match decoded.as_ref().map(|(_, text)| text) {
        None => (None, None, false),
        Some(text) => {
            let (text, range, truncated) = cut(text, arguments.range()?)?;
            (Some(text), Some(range), truncated)
        }
    };
    Ok(Answer {
        path: None,
        reference: None,
        text,
        encoding: text::encoding_of(bytes),
        lines,
        bytes: bytes.len() as u64,
        git_blob: None,
        sha256: Sha256::of(bytes).to_string(),
        truncated,
        origin,
    })
}

/// The lines of a range, as many as fit; a line that alone does not fit is cut within.
fn cut(text: &str, (first, last): (u64, Option<u64>)) -> Result<(String, Range, bool)> {
    let total = text.split_inclusive('\n').count() as u64;
    if first > total.max(1) {
        return Err(Failure::new(
            Code::ArgumentsInvalid,
            format!("there is no line {first}: the text has {total}"),
        )
        .subject("lines")
        .expected(format!("lines from 1 to {total}"), first));
    }
    let end = last.unwrap_or(total).min(total);
    let mut out = String::new();
    let mut shown = first.saturating_sub(1);
    let wanted = text.split_inclusive('\n').zip(1u64..).filter(|(_, number)| (first..=end).contains(number));
    for (line, number) in wanted {
        if out.len() + line.len() > MOST_TEXT {
            if out.is_empty() {
                out.push_str(&line[..boundary(line, MOST_TEXT)]);
                shown = number;
            }
            return Ok((out, Range { first, last: shown, total }, true));
        }
        out.push_str(line);
        shown = number;
    }
    Ok((out, Range { first, last: shown, total }, false))
}

/// The last place at or before `at` where a character begins.
fn boundary(line: &str, at: usize) -> usize {
    (0..=at).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(lines: serde_json::Value) -> Arguments {
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
            assert_eq!(arguments(written).range().expect("a range"), range);
        }
        for wrong in ["0-1", "3-2", "x", "", "-", "-3", "1-2-3"] {
            assert!(arguments(serde_json::json!(wrong)).range().is_err(), "{wrong}");
        }
    }

    #[test]
    fn lines_are_cut_whole_and_say_so() {
        let text = "one\ntwo\nthree";
        let cut_at = |first, last| cut(text, (first, last)).expect("lines");
        assert_eq!(
            cut_at(2, Some(9)),
            ("two\nthree".to_owned(), Range { first: 2, last: 3, total: 3 }, false)
        );
        assert_eq!(cut_at(1, Some(1)).0, "one\n");
        assert!(cut(text, (4, None)).is_err());
        assert_eq!(cut("", (1, None)).expect("nothing").1, Range { first: 1, last: 0, total: 0 });
        let long = format!("{}\n{}\nend\n", "é".repeat(MOST_TEXT), "b".repeat(10));
        let (shown, range, truncated) = cut(&long, (1, None)).expect("lines");
        assert!(truncated && shown.len() <= MOST_TEXT && range.last == 1, "{range:?}");
        let (_, range, truncated) = cut(&"0123456789\n".repeat(MOST_TEXT / 5), (1, None)).expect("lines");
        assert!(truncated && range.last < range.total);
    }
}
