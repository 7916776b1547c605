//! Applying hunks exactly: the old lines of each stand at the very place that its header names, and its new
//! lines come to stand at the place that the header names for them. No offset and no fuzz: a patch that was
//! made from this base needs neither.

use crate::domain::change::patch_text::body::{Hunk, Side};
use crate::domain::change::patch_text::cursor::shown_line;

/// The reason why a hunk does not stand where it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    pub hunk: usize,
    pub what: String,
    /// The lines (from 1) at which its old lines do stand; at most ten.
    pub would_apply_at: Vec<usize>,
    /// The first line of the file that is not what the hunk says: its number, what the hunk has, what the
    /// file has.
    pub differs: Option<(usize, String, Option<String>)>,
}

/// The search for another place ends after this many comparisons of lines.
const SEARCH: usize = 20_000_000;

/// The content after the hunks.
pub fn apply_hunks(text: &[u8], hunks: &[Hunk], before: &[u8]) -> Result<Vec<u8>, Misfit> {
    let lines: Vec<&[u8]> = before.split_inclusive(|b| *b == b'\n').collect();
    let mut after = Vec::with_capacity(before.len());
    let (mut done, mut written) = (0, 0);
    for (number, hunk) in hunks.iter().enumerate() {
        let misfit = |what: String| Misfit { hunk: number, what, would_apply_at: Vec::new(), differs: None };
        let old = hunk.side_lines(text, Side::Old);
        let start = first_line_index(hunk.old_start, hunk.old_count);
        if start < done {
            return Err(misfit("it overlaps the hunk before it".into()));
        }
        if let Some(at) = first_difference(&lines, start, &old) {
            let differs = (
                start + at + 1,
                old.get(at).map_or_else(String::new, |l| shown_line(l)),
                lines.get(start + at).map(|l| shown_line(l)),
            );
            let would_apply_at = find_places(&lines, &old);
            let what = format!("its old lines do not stand at line {}", hunk.old_start);
            return Err(Misfit { would_apply_at, differs: Some(differs), ..misfit(what) });
        }
        let kept = lines.get(done..start).unwrap_or_default();
        kept.iter().for_each(|line| after.extend_from_slice(line));
        written += kept.len();
        if written != first_line_index(hunk.new_start, hunk.new_count) {
            let there = written + usize::from(hunk.new_count > 0);
            let what = format!(
                "its new lines come to stand at line {there}, where the header says {}",
                hunk.new_start
            );
            return Err(Misfit { would_apply_at: vec![there], ..misfit(what) });
        }
        if kept.last().is_some_and(|line| line.last() != Some(&b'\n')) {
            return Err(misfit("it follows a line that has no end".into()));
        }
        let new = hunk.side_lines(text, Side::New);
        new.iter().for_each(|line| after.extend_from_slice(line));
        written += new.len();
        done = start + old.len();
        if done < lines.len() && new.last().is_some_and(|line| line.last() != Some(&b'\n')) {
            return Err(misfit(
                "it says that its last line is the end of the file, but more lines follow".into(),
            ));
        }
    }
    lines[done..].iter().for_each(|line| after.extend_from_slice(line));
    Ok(after)
}

/// The index (from 0) of the first line of a range; an empty range stands after the line it names.
fn first_line_index(start: usize, count: usize) -> usize {
    if count == 0 { start } else { start.saturating_sub(1) }
}

/// The first of the wanted lines that does not stand there; also where an empty range lies behind the end.
fn first_difference(lines: &[&[u8]], start: usize, wanted: &[&[u8]]) -> Option<usize> {
    if wanted.is_empty() {
        return (start > lines.len()).then_some(0);
    }
    (0..wanted.len()).find(|at| lines.get(start + at) != Some(&wanted[*at]))
}

/// The line numbers at which the wanted lines stand in full.
fn find_places(lines: &[&[u8]], wanted: &[&[u8]]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut left = SEARCH;
    let last = (lines.len() + 1).saturating_sub(wanted.len());
    for start in 0..last {
        if wanted.is_empty() || found.len() == 10 || left == 0 {
            break;
        }
        let equal = wanted.iter().zip(&lines[start..]).take_while(|(a, b)| a == b).count();
        left = left.saturating_sub(equal + 1);
        if equal == wanted.len() {
            found.push(start + 1);
        }
    }
    found
}
