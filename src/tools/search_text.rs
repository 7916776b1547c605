//! `search_text`: lines of the worktree's text files that a regular expression matches, within bounds that
//! the answer names.

use super::list_files::{each_file, no_folder};
use super::patch_formats::quote_line;
use super::place::{LARGEST, Place};
use super::text;
use crate::domain::value::outside::Origin;
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Code, Failure, Result};
use crate::git::beneath::{Folder, file_type};
use regex::{Regex, RegexBuilder};
use rustix::fs::{FileType, Stat};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io::Read;

/// The most hits of one answer.
pub const MOST_HITS: usize = 200;
/// The most characters of a line that are shown.
const MOST_SHOWN: usize = 400;
/// The largest file that is searched, in bytes.
const LARGEST_SEARCHED: u64 = 8 << 20;
/// The most bytes that one call reads.
const MOST_READ: u64 = 8 * LARGEST;
/// The longest expression, in bytes.
const LONGEST_PATTERN: usize = 4 << 10;
/// The longest expression that is told as a whole where it is at fault, in bytes.
const SHORT_PATTERN: usize = 200;
/// The most memory that a compiled expression may take, in bytes: enough for some dozens of any letters
/// (`\w{5,30}`).
const LARGEST_PATTERN: usize = 4 << 20;
/// The most memory that is used to be fast, in bytes.
const LARGEST_CACHE: usize = 4 << 20;
/// After that many bytes it is asked whether the answer is still wanted.
const ASKED_AFTER: usize = 1 << 20;

/// Arguments.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchTextArguments {
    /// A regular expression, matched line by line; `(?i)` in front of it ignores case.
    pub pattern: String,
    /// A file or directory of the worktree; all of it where it is left out.
    #[serde(default)]
    pub path: Option<String>,
}

/// What was found.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchTextAnswer {
    /// The first hits, by path and line.
    pub hits: Vec<SearchHit>,
    /// True where there may be more: narrow the pattern or the path.
    pub truncated: bool,
    /// How many files were searched.
    pub files: u64,
    /// Files that were left out, since they are no text or too large, and directories that cannot be looked
    /// into.
    pub skipped: u64,
    /// Where the text came from.
    pub origin: Origin,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SearchHit {
    /// The file.
    pub path: String,
    /// The line, from 1.
    pub line: u64,
    /// Its text, cut where it is very long.
    pub text: String,
}

impl SearchTextArguments {
    /// The expression, made ready.
    pub fn compile_pattern(&self) -> Result<Regex> {
        let pattern = &self.pattern;
        let wrong = |why: String| {
            Failure::new(Code::ArgumentsInvalid, format!("`pattern` cannot be searched for: {why}"))
                .subject("pattern")
        };
        if pattern.is_empty() {
            return Err(wrong("it is empty".to_owned()).expected("a regular expression", ""));
        }
        if pattern.len() > LONGEST_PATTERN {
            let why = format!("it has {} bytes; at most {LONGEST_PATTERN} are taken", pattern.len());
            return Err(wrong(why).expected(LONGEST_PATTERN, pattern.len()));
        }
        let ready =
            RegexBuilder::new(pattern).size_limit(LARGEST_PATTERN).dfa_size_limit(LARGEST_CACHE).build();
        ready.map_err(|e| {
            // The reason stands in the last line, below the expression with the place at fault.
            let (told, short) = (e.to_string(), pattern.len() <= SHORT_PATTERN);
            let why = if short { told.as_str() } else { told.lines().last().unwrap_or_default() };
            wrong(why.to_owned()).expected("a regular expression", quote_line(pattern))
        })
    }
}

/// Refuses once nobody wants the answer any more.
pub type Wanted<'a> = dyn Fn() -> Result<()> + 'a;

/// Searches a file, or a directory and everything beneath it. `wanted` is asked at each file, and within long
/// ones.
pub fn search_files(
    place: &Place<'_>,
    path: Option<&RepoPath>,
    regex: &Regex,
    wanted: &Wanted<'_>,
) -> Result<SearchTextAnswer> {
    let mut answer = SearchTextAnswer {
        hits: Vec::new(),
        truncated: false,
        files: 0,
        skipped: 0,
        origin: Origin::new("search", regex.as_str()),
    };
    if let Some(file) = path
        && let Some((file_handle, _)) = opened_file(place, file)?
    {
        place.require_readable(file)?;
        read_into(&mut answer, file_handle, file, (regex, wanted))?;
        return Ok(answer);
    }
    let mut read = 0u64;
    let walked = each_file(place, path, &mut |dir, found, stat| {
        wanted()?;
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        if file_type(stat) != FileType::RegularFile || stat.st_nlink > 1 || size > LARGEST_SEARCHED {
            answer.skipped += 1;
            return Ok(true);
        }
        read = read.saturating_add(size);
        if let Some(file) = open_same(dir, found, stat) {
            read_into(&mut answer, file, found, (regex, wanted))?;
        }
        Ok(answer.hits.len() < MOST_HITS && read < MOST_READ)
    })?;
    answer.truncated |= !walked.complete;
    answer.skipped += walked.skipped;
    if path.is_some() && answer.files + answer.skipped == 0 {
        return Err(no_folder(path));
    }
    Ok(answer)
}

/// The path as a file; `None` where it is a directory or not there.
fn opened_file(place: &Place<'_>, path: &RepoPath) -> Result<Option<(std::fs::File, Stat)>> {
    match place.folder_of(path)?.map(|dir| dir.stat(path.file_name())) {
        Some(Ok(stat)) if file_type(&stat) != FileType::Directory => place.open_file(path),
        _ => Ok(None),
    }
}

/// Opens what was listed, if it still is that.
fn open_same(dir: &Folder, path: &RepoPath, listed: &Stat) -> Option<std::fs::File> {
    let file = dir.open_file(path.file_name()).ok()?;
    let stat = rustix::fs::fstat(&file).ok()?;
    (stat.st_ino == listed.st_ino && stat.st_dev == listed.st_dev && stat.st_nlink == 1).then_some(file)
}

/// Searches a file; of one that is too large its beginning, in whole lines, which the answer says.
fn read_into(
    answer: &mut SearchTextAnswer,
    file: std::fs::File,
    path: &RepoPath,
    (regex, wanted): (&Regex, &Wanted<'_>),
) -> Result<()> {
    wanted()?;
    let mut bytes = Vec::new();
    file.take(LARGEST_SEARCHED + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| Failure::io("read", path.as_path(), &e))?;
    let most = usize::try_from(LARGEST_SEARCHED).unwrap_or(usize::MAX);
    let is_cut = bytes.len() > most;
    let bytes = if is_cut { text::whole_lines(&bytes[..most]) } else { &bytes };
    answer.truncated |= is_cut;
    let decoded = text::decode_text(bytes).filter(|_| !is_cut || !bytes.is_empty());
    let Some((_, text)) = decoded else {
        answer.skipped += 1;
        return Ok(());
    };
    answer.files += 1;
    let mut since = 0;
    for (line, number) in text.lines().zip(1u64..) {
        since += line.len() + 1;
        if since > ASKED_AFTER {
            wanted()?;
            since = 0;
        }
        if !regex.is_match(line) {
            continue;
        }
        if answer.hits.len() == MOST_HITS {
            answer.truncated = true;
            break;
        }
        let text = line.chars().take(MOST_SHOWN).collect();
        answer.hits.push(SearchHit { path: path.to_string(), line: number, text });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
