//! Where the old lines of a hunk are in a file: exactly once, or nowhere.
//!
//! Three comparisons, each weaker than the one before, and the first that finds anything decides: the bytes;
//! the bytes without the line ends; also without white space at the end of a line. What is found more than
//! once is ambiguous, whatever a header's numbers say. White space at the beginning of a line means
//! something, and so does every character: neither is guessed.
//!
//! Searching costs the length of file and hunk together, however much they repeat themselves.

mod nearest;

use super::lines::quote_line;
use super::{Ends, HunkLine, PatchHunk, patch_invalid};
use crate::error::{Failure, Result, Retry};
use std::collections::HashMap;

/// That many places are listed where a hunk matches more than once; how many there are is told.
const LISTED: usize = 20;

/// A line of a file and what ends it: `\n`, `\r\n`, or nothing at the end of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileLine<'a> {
    pub text: &'a str,
    pub ending: &'a str,
}

/// The lines of a file.
pub(super) fn file_lines(text: &str) -> Vec<FileLine<'_>> {
    text.split_inclusive('\n').map(FileLine::from_line).collect()
}

impl<'a> FileLine<'a> {
    fn from_line(line: &'a str) -> Self {
        let text = match line.strip_suffix('\n') {
            None => line,
            Some(rest) => rest.strip_suffix('\r').unwrap_or(rest),
        };
        Self { text, ending: &line[text.len()..] }
    }
}

impl HunkLine {
    /// Text and line end, told apart as those of a file are.
    pub(super) fn split_line_end(&self) -> (&str, &'static str) {
        match self.text.strip_suffix('\r') {
            _ if !self.ended => (&self.text, ""),
            Some(text) => (text, "\r\n"),
            None => (&self.text, "\n"),
        }
    }
}

/// What two lines have in common to be taken for the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MatchTier {
    Exact,
    /// All but the line end.
    Endings,
    /// All but white space at the end.
    Trailing,
}

impl MatchTier {
    const ALL: [Self; 3] = [Self::Exact, Self::Endings, Self::Trailing];

    fn comparison_key<'a>(self, text: &'a str, ending: &'a str) -> (&'a str, &'a str) {
        match self {
            Self::Exact => (text, ending),
            Self::Endings => (text, ""),
            Self::Trailing => (text.trim_end_matches([' ', '\t', '\r']), ""),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HunkPlace {
    /// Number of the first line, from 0.
    pub at: usize,
    pub count: usize,
    pub tier: MatchTier,
}

/// Finds a hunk. `above`: where the hunk before it in its section ends. `fixed`: the file is the one that the
/// patch was made from.
pub(super) fn place_hunk(
    hunk: &PatchHunk,
    file: &[FileLine<'_>],
    lookup: &Lookup<'_>,
    (above, fixed): (usize, bool),
) -> Result<HunkPlace> {
    let old: Vec<&HunkLine> = hunk.old_lines().collect();
    let lower = match &lookup.anchors {
        Some(anchors) if !hunk.anchors.is_empty() => below_anchors(hunk, (file, anchors), above)?,
        _ => 0,
    };
    let at_its_number =
        hunk.old_start.filter(|_| fixed).and_then(|start| at_its_number(hunk, &old, file, start));
    let found = match at_its_number {
        Some(found) => found,
        None if old.is_empty() => place_insertion(hunk, file)?,
        None => place_without_anchor(hunk, &old, (file, lookup.hunks.as_ref()), lower)?,
    };
    if found.at >= above {
        return Ok(found);
    }
    let message = format!(
        "the hunk at line {} of the patch matches at line {}, above the end of the hunk before it; hunks follow the order of the file",
        hunk.line,
        found.at + 1
    );
    Err(failure_about(hunk, message).detail("line", found.at + 1))
}

fn failure_about(hunk: &PatchHunk, message: String) -> Failure {
    patch_invalid(message).detail("patchLine", hunk.line)
}

/// Positions count where the file is the one that the patch was made from, and the very lines are there.
fn at_its_number(
    hunk: &PatchHunk,
    old: &[&HunkLine],
    file: &[FileLine<'_>],
    start: usize,
) -> Option<HunkPlace> {
    let at = if old.is_empty() { start } else { start.saturating_sub(1) };
    let there = file.get(at..at.checked_add(old.len())?)?;
    let same =
        |(line, found): (&&HunkLine, &FileLine<'_>)| line.split_line_end() == (found.text, found.ending);
    let fits = old.iter().zip(there).all(same) && may_stand(hunk, file, at, old.len());
    fits.then_some(HunkPlace { at, count: old.len(), tier: MatchTier::Exact })
}

/// New lines without context: only where there is no choice.
fn place_insertion(hunk: &PatchHunk, file: &[FileLine<'_>]) -> Result<HunkPlace> {
    if file.is_empty() || hunk.at_end {
        let tier = if file.is_empty() { MatchTier::Exact } else { MatchTier::Endings };
        return Ok(HunkPlace { at: file.len(), count: 0, tier });
    }
    let message = format!(
        "the hunk at line {} of the patch only adds lines and shows none that are there: it could go anywhere; add context",
        hunk.line
    );
    Err(failure_about(hunk, message))
}

fn place_without_anchor(
    hunk: &PatchHunk,
    old: &[&HunkLine],
    (file, index): (&[FileLine<'_>], Option<&LineIndex<'_>>),
    lower: usize,
) -> Result<HunkPlace> {
    let few = match reaches_end(hunk) {
        true => Some(file.len().checked_sub(old.len()).into_iter().collect()),
        false => index.and_then(|index| index.candidate_places(old, file.len())),
    };
    for tier in MatchTier::ALL {
        let found = match &few {
            Some(few) => {
                let fits = |at: &usize| *at >= lower && matches_at(hunk, old, file, tier, *at);
                few.iter().copied().filter(fits).collect()
            }
            None => matching_places(hunk, old, file, tier, lower),
        };
        match found.as_slice() {
            [] => {}
            [at] => {
                let place = HunkPlace { at: *at, count: old.len(), tier };
                return if ends_as_said(old, file, place) { Ok(place) } else { Err(has_newline(hunk, file)) };
            }
            many => return Err(place_ambiguous(hunk, many)),
        }
    }
    Err(nearest::no_match(hunk, old, file, lower))
}

/// A line that has no newline, by what the patch says, has none. The other way round nothing is said: most
/// writers leave that out.
fn ends_as_said(old: &[&HunkLine], file: &[FileLine<'_>], place: HunkPlace) -> bool {
    old.iter().zip(&file[place.at..]).all(|(line, found)| line.ended || found.ending.is_empty())
}

fn has_newline(hunk: &PatchHunk, file: &[FileLine<'_>]) -> Failure {
    let message = format!(
        "the hunk at line {} of the patch says that the file ends without a newline (`\\ No newline at end of file`), and line {} ends with one",
        hunk.line,
        file.len()
    );
    failure_about(hunk, message).detail("line", file.len()).retry(Retry::Reread)
}

/// A hunk that reaches the end of the file, by what it says, has to.
fn may_stand(hunk: &PatchHunk, file: &[FileLine<'_>], at: usize, count: usize) -> bool {
    !reaches_end(hunk) || at + count == file.len()
}

fn reaches_end(hunk: &PatchHunk) -> bool {
    hunk.at_end || hunk.lines.iter().any(|line| !line.ended)
}

/// Where lines of a file stand, so that not each hunk and each line above one walks through all of it.
#[derive(Debug)]
pub(super) struct Lookup<'a> {
    /// For the hunks, without white space at the end. For a few of them it costs more than it saves.
    hunks: Option<LineIndex<'a>>,
    /// For the lines that are named above hunks, as they are and without white space at the end.
    anchors: Option<[LineIndex<'a>; 2]>,
}

impl<'a> Lookup<'a> {
    /// Of a file's lines, for some hunks.
    pub fn from_lines(hunks: &[PatchHunk], file: &[FileLine<'a>]) -> Self {
        let has_anchors = hunks.iter().any(|hunk| !hunk.anchors.is_empty());
        Self {
            hunks: (hunks.len() > 8).then(|| LineIndex::from_lines(file, MatchTier::Trailing)),
            anchors: has_anchors.then(|| {
                [MatchTier::Endings, MatchTier::Trailing].map(|tier| LineIndex::from_lines(file, tier))
            }),
        }
    }
}

/// Where each line of a file stands, by what its tier compares of the text.
#[derive(Debug)]
struct LineIndex<'a> {
    tier: MatchTier,
    places: HashMap<&'a str, Vec<usize>>,
}

impl<'a> LineIndex<'a> {
    fn from_lines(file: &[FileLine<'a>], tier: MatchTier) -> Self {
        let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, line) in file.iter().enumerate() {
            places.entry(tier.comparison_key(line.text, "").0).or_default().push(at);
        }
        Self { tier, places }
    }

    /// The places of a line, in order.
    fn places_of(&self, line: &str) -> &[usize] {
        self.places.get(self.tier.comparison_key(line, "").0).map(Vec::as_slice).unwrap_or_default()
    }

    /// Those from a line of the file on.
    fn places_from(&self, line: &str, lower: usize) -> &[usize] {
        let all = self.places_of(line);
        &all[all.partition_point(|at| *at < lower)..]
    }

    /// Every place where these lines can begin, by the rarest of them; `None` where those are so many that
    /// one pass is less work.
    fn candidate_places(&self, old: &[&HunkLine], lines: usize) -> Option<Vec<usize>> {
        let each = old.iter().map(|line| self.places_of(line.split_line_end().0)).enumerate();
        let (offset, rarest) = each.min_by_key(|(_, found)| found.len())?;
        if rarest.len().saturating_mul(old.len()) > lines {
            return None;
        }
        Some(rarest.iter().filter_map(|at| at.checked_sub(offset)).collect())
    }
}

fn matches_at(
    hunk: &PatchHunk,
    old: &[&HunkLine],
    file: &[FileLine<'_>],
    tier: MatchTier,
    at: usize,
) -> bool {
    let Some(there) = file.get(at..at + old.len()) else { return false };
    old.iter().zip(there).all(|(line, found)| {
        let (text, ending) = line.split_line_end();
        tier.comparison_key(text, ending) == tier.comparison_key(found.text, ending_of(hunk, found))
    })
}

/// A form that says nothing of the end of the file does not say that a newline is there.
fn ending_of<'a>(hunk: &PatchHunk, line: &FileLine<'a>) -> &'a str {
    if hunk.ends == Ends::AsInFile && line.ending.is_empty() { "\n" } else { line.ending }
}

/// Knuth, Morris and Pratt: every place from `lower` on, in one pass and in order. `old` is not empty.
fn matching_places(
    hunk: &PatchHunk,
    old: &[&HunkLine],
    file: &[FileLine<'_>],
    tier: MatchTier,
    lower: usize,
) -> Vec<usize> {
    let wanted: Vec<(&str, &str)> = old
        .iter()
        .map(|line| {
            let (text, ending) = line.split_line_end();
            tier.comparison_key(text, ending)
        })
        .collect();
    let fallback = fallback_table(&wanted);
    let (mut matched, mut found) = (0, Vec::new());
    for (at, line) in file.iter().enumerate().skip(lower) {
        let key = tier.comparison_key(line.text, ending_of(hunk, line));
        while matched > 0 && (matched == wanted.len() || wanted[matched] != key) {
            matched = fallback[matched - 1];
        }
        if wanted[matched] == key {
            matched += 1;
        }
        if matched == wanted.len() {
            found.push(at + 1 - matched);
        }
    }
    found
}

/// For each beginning of the wanted lines: the length of its longest part that is also its end.
fn fallback_table<T: PartialEq>(wanted: &[T]) -> Vec<usize> {
    let mut lengths = vec![0; wanted.len()];
    for at in 1..wanted.len() {
        let mut length: usize = lengths[at - 1];
        while length > 0 && wanted[length] != wanted[at] {
            length = lengths[length - 1];
        }
        lengths[at] = if wanted[length] == wanted[at] { length + 1 } else { 0 };
    }
    lengths
}

/// The first line beneath all anchors, each found exactly once beneath the one before.
fn below_anchors(
    hunk: &PatchHunk,
    (file, [exact, trailing]): (&[FileLine<'_>], &[LineIndex<'_>; 2]),
    above: usize,
) -> Result<usize> {
    let mut lower = above;
    for anchor in &hunk.anchors {
        let anchor = anchor.trim_end_matches('\r');
        let found = match exact.places_from(anchor, lower) {
            [] => trailing.places_from(anchor, lower),
            found => found,
        };
        match found {
            [one] => lower = one + 1,
            [] => return Err(no_anchor(hunk, anchor, file, lower)),
            many => {
                let anchor = quote_line(anchor);
                let message = format!(
                    "the line {anchor:?}, which the patch names after `@@`, is there {} times: at lines {}",
                    many.len(),
                    list_line_numbers(many)
                );
                return Err(failure_about(hunk, message)
                    .detail("anchor", anchor)
                    .detail("matches", many.len())
                    .detail("lines", line_numbers(many)));
            }
        }
    }
    Ok(lower)
}

fn no_anchor(hunk: &PatchHunk, anchor: &str, file: &[FileLine<'_>], lower: usize) -> Failure {
    let nearest = file.iter().position(|line| line.text.trim() == anchor.trim());
    let anchor = quote_line(anchor);
    let message = format!("no line {} or below is {anchor:?}, which the patch names after `@@`", lower + 1);
    let failure = failure_about(hunk, message).retry(Retry::Reread).detail("anchor", anchor);
    match nearest {
        Some(at) => {
            let shown = serde_json::json!({ "line": at + 1, "actual": quote_line(file[at].text) });
            failure.detail("nearest", shown)
        }
        None => failure,
    }
}

fn line_numbers(found: &[usize]) -> Vec<usize> {
    found.iter().take(LISTED).map(|at| at + 1).collect()
}

fn list_line_numbers(found: &[usize]) -> String {
    let shown: Vec<String> = found.iter().take(10).map(|at| (at + 1).to_string()).collect();
    let more = if found.len() > 10 { ", …" } else { "" };
    shown.join(", ") + more
}

fn place_ambiguous(hunk: &PatchHunk, found: &[usize]) -> Failure {
    let message = format!(
        "the hunk at line {} of the patch matches {} times, at lines {}; add context until it can be only one",
        hunk.line,
        found.len(),
        list_line_numbers(found)
    );
    failure_about(hunk, message).detail("matches", found.len()).detail("lines", line_numbers(found))
}
