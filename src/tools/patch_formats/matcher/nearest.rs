//! What to say of a hunk that matches nowhere: the place that comes nearest, and the first line there that is
//! another.
//!
//! The place is where the most of its lines follow each other, the first ones before all; a line that is
//! missing in the hunk or in the file moves nothing but what is below it. Where not one line is the same, the
//! most similar one is named.

use super::super::lines::quote_line;
use super::super::{HunkLine, PatchHunk};
use super::{FileLine, MatchTier, failure_about};
use crate::error::{Failure, Retry};
use std::cmp::Reverse;
use std::collections::HashMap;

/// That many comparisons are made.
const EFFORT: usize = 2_000_000;
/// That many lines are compared letter by letter.
const COMPARED: usize = 32;
/// The beginning of a line that is compared, in characters.
const BEGINNING: usize = 200;
/// From here on two lines are alike: the part that they have in common.
const ALIKE: f32 = 0.4;

/// A place, by numbers from 0: where the hunk would begin, and the first lines that differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Near {
    at: usize,
    old: usize,
    file: usize,
}

/// Says where the old lines of a hunk come nearest, in the lines of the file from `lower` on.
pub(super) fn no_match(hunk: &PatchHunk, old: &[&HunkLine], file: &[FileLine<'_>], lower: usize) -> Failure {
    let keys = Keys::from_lines(old, &file[lower.min(file.len())..]);
    let near = match keys.longest_run() {
        Some(run) => Some(keys.first_difference(run)),
        None => keys.most_alike(),
    };
    let Some(near) = near else { return nothing_alike(hunk, keys.missing_text(), file, lower) };
    let near = Near { at: near.at + lower, file: near.file + lower, ..near };
    let Some(expected) = old.get(near.old).map(|line| quote_line(line.split_line_end().0)) else {
        let message = format!(
            "the hunk at line {} of the patch ends the file, as the patch says it; its lines are at line {}, and the file goes on",
            hunk.line,
            near.at + 1
        );
        return failure_about(hunk, message).retry(Retry::Reread).detail("nearest", near.at + 1);
    };
    let actual = file.get(near.file).map(|line| quote_line(line.text));
    let message = format!(
        "the hunk at line {} of the patch matches nowhere; nearest is line {}, where line {} is {} and not {expected:?}",
        hunk.line,
        near.at + 1,
        near.file + 1,
        actual.as_ref().map_or_else(|| "the end of the file".to_owned(), |line| format!("{line:?}")),
    );
    failure_about(hunk, message)
        .retry(Retry::Reread)
        .expected(expected, actual)
        .detail("line", near.file + 1)
        .detail("nearest", near.at + 1)
}

fn nothing_alike(hunk: &PatchHunk, wanted: &str, file: &[FileLine<'_>], lower: usize) -> Failure {
    let wanted = quote_line(wanted);
    let why = match file.len() {
        0 => "the file is empty".to_owned(),
        lines if lower >= lines => "the line that it names after `@@` is the last one".to_owned(),
        lines => format!("none of the {} lines there is {wanted:?} or like it", lines - lower),
    };
    let message = format!("the hunk at line {} of the patch matches nowhere in the file: {why}", hunk.line);
    failure_about(hunk, message)
        .retry(Retry::Reread)
        .expected(wanted, None::<&str>)
        .detail("lines", file.len())
}

/// The lines of both sides as numbers, the same ones by the same number.
struct Keys<'a> {
    /// The texts of the hunk's old lines, and of the file's.
    texts: [Vec<&'a str>; 2],
    old: Vec<usize>,
    /// `usize::MAX` where the hunk has no such line.
    file: Vec<usize>,
    /// By the number of a line: whether the file has it.
    held: Vec<bool>,
}

/// Lines that follow each other on both sides.
#[derive(Debug, Clone, Copy)]
struct MatchingRun {
    old: usize,
    file: usize,
}

impl<'a> Keys<'a> {
    fn from_lines(old: &[&'a HunkLine], file: &[FileLine<'a>]) -> Self {
        let key = |text: &'a str| MatchTier::Trailing.comparison_key(text, "").0;
        let old: Vec<&str> = old.iter().map(|line| key(line.split_line_end().0)).collect();
        let file: Vec<&str> = file.iter().map(|line| key(line.text)).collect();
        let mut known: HashMap<&str, usize> = HashMap::new();
        let numbers = old
            .iter()
            .map(|line| {
                let next = known.len();
                *known.entry(line).or_insert(next)
            })
            .collect();
        let in_file: Vec<usize> =
            file.iter().map(|line| known.get(line).copied().unwrap_or(usize::MAX)).collect();
        let mut held = vec![false; known.len()];
        in_file.iter().filter(|number| **number != usize::MAX).for_each(|number| held[*number] = true);
        Self { texts: [old, file], old: numbers, file: in_file, held }
    }

    fn is_same_line(&self, old: usize, file: usize) -> bool {
        self.old.get(old).is_some_and(|number| self.file.get(file) == Some(number))
    }

    /// How many lines are the same from here on.
    fn matching_length(&self, old: usize, file: usize) -> usize {
        (0..).take_while(|more| self.is_same_line(old + more, file + more)).count()
    }

    /// The run of most lines that say something; one from the hunk's first line on counts double.
    fn longest_run(&self) -> Option<MatchingRun> {
        let looked_at = (EFFORT / self.file.len().max(1)).max(1).min(self.old.len());
        let mut runs = vec![0_usize; self.file.len() + 1];
        // How many lines are the same where the hunk begins at that line.
        let mut in_all = vec![0_usize; self.file.len()];
        let mut best = None;
        for old in (0..looked_at).rev() {
            let says = usize::from(self.texts[0][old].contains(char::is_alphanumeric));
            for file in 0..self.file.len() {
                if !self.is_same_line(old, file) {
                    runs[file] = 0;
                    continue;
                }
                // A line of nothing but marks goes with the others, but is none to go by.
                runs[file] = runs[file + 1] + says;
                let begin = file.checked_sub(old);
                begin.into_iter().for_each(|begin| in_all[begin] += says);
                let weight = if old == 0 { 2 * runs[file] } else { runs[file] };
                let equal = if old == 0 { in_all[file] } else { 0 };
                let key = (weight, Reverse(old), equal, Reverse(file));
                if weight > 0 && best.is_none_or(|best| best < key) {
                    best = Some(key);
                }
            }
        }
        best.map(|(_, Reverse(old), _, Reverse(file))| MatchingRun { old, file })
    }

    /// The first difference of the hunk that a run belongs to: below its first lines, where those stand near
    /// enough.
    fn first_difference(&self, run: MatchingRun) -> Near {
        let begin = run.file.saturating_sub(run.old);
        let reach = run.old + 8;
        let first_lines = (begin.saturating_sub(reach)..=run.file.min(begin + reach))
            .map(|at| (self.matching_length(0, at), Reverse(at.abs_diff(begin)), at))
            .filter(|(length, ..)| *length > 0)
            .max();
        match first_lines {
            Some((length, _, at)) => Near { at, old: length, file: at + length },
            None => Near { at: begin, old: 0, file: begin },
        }
    }

    /// The number of the first line of the hunk that the file does not hold, else of its first one.
    fn first_missing_line(&self) -> usize {
        let is_missing = |at: &usize| !self.texts[0][*at].trim().is_empty() && !self.held[self.old[*at]];
        (0..self.old.len()).find(is_missing).unwrap_or(0)
    }

    fn missing_text(&self) -> &'a str {
        self.texts[0].get(self.first_missing_line()).copied().unwrap_or_default()
    }

    /// The line of the file that is most like the one that is missing.
    fn most_alike(&self) -> Option<Near> {
        let missing = self.first_missing_line();
        let wanted = shorten_line(self.missing_text());
        let lines = self.texts[1].iter().take(EFFORT / 10).map(|line| shorten_line(line)).enumerate();
        let letters = Letters::count_letters(wanted);
        let mut few: Vec<(usize, usize, &str)> =
            lines.map(|(at, line)| (letters.in_common(line), at, line)).collect();
        few.sort_by_key(|(in_common, at, _)| (Reverse(*in_common), *at));
        few.truncate(COMPARED);
        let ratio = |line: &str| similar::TextDiff::from_chars(wanted, line).ratio();
        let scored = few.into_iter().map(|(_, at, line)| (ratio(line), at));
        let (score, file) =
            scored.max_by(|(one, at), (other, below)| one.total_cmp(other).then(below.cmp(at)))?;
        (score >= ALIKE).then_some(Near { at: file.saturating_sub(missing), old: missing, file })
    }
}

fn shorten_line(line: &str) -> &str {
    let line = line.trim();
    line.char_indices().nth(BEGINNING).map_or(line, |(at, _)| &line[..at])
}

/// How often each byte is there: what two lines can have in common at most.
struct Letters([u16; 256], usize);

impl Letters {
    fn count_letters(line: &str) -> Self {
        let mut counts = [0; 256];
        line.bytes().for_each(|byte| counts[usize::from(byte)] += 1);
        Self(counts, line.len())
    }

    /// In thousandths of both lines.
    fn in_common(&self, line: &str) -> usize {
        let other = Self::count_letters(line);
        let shared: usize = self.0.iter().zip(other.0).map(|(one, two)| usize::from((*one).min(two))).sum();
        2000 * shared / (self.1 + other.1).max(1)
    }
}
